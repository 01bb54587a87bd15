"""The card of CKL's dataset folder: its configs, their licences, and the counts of their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from temporalwiki.base.markdown import code, escaped, table_row
from temporalwiki.builders.ckl.invariantlama import RELATIONS, RULES, table
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.manifests import CklManifest, Config
from temporalwiki.model_cards.dataset_header import CardConfig, header, languages, loadable
from temporalwiki.model_cards.edits import MARKS, signed
from temporalwiki.model_cards.template import citations, fill, kinds

_SPLITS = ("train", "validation", "test")
_INPUTS_SHOWN = 8  # a month of news has thousands
_OPTIONS_SHOWN = 400  # characters


def ckl_card(
    manifests: Sequence[CklManifest], repo_id: str | None = None, kept: Mapping[str, Any] | None = None
) -> str:
    """Return the card for a CKL folder with these configs: YAML header and Markdown.

    On the Hub, ``repo_id`` names the repository. ``kept`` has the settings that the maintainer added to the header,
    with further configs and their ``dataset_info``.
    """
    in_order = list(SCHEMAS)
    manifests = sorted(manifests, key=lambda manifest: (in_order.index(manifest.kind), manifest.config))
    configs = {}
    for manifest in manifests:
        splits = dict(sorted(_config(manifest).splits.items(), key=lambda split: _place(_SPLITS, split[0])))
        configs[manifest.config] = CardConfig(manifest.config, SCHEMAS[manifest.kind], splits)
    short_names = {}
    for manifest in manifests:  # sorted by name, so the newest interval with the same months takes the short name
        if (short_name := _config(manifest).short_name) not in (None, *configs):
            short_names[str(short_name)] = configs[manifest.config]
    offered = loadable(configs | short_names)
    found = {code: None for manifest in manifests for code in languages(manifest.language) or ()}
    front = header(
        offered,
        kept or {},
        language=list(found) or None,
        license=_licences(manifests),
        pretty_name="CKL",
        task_categories=["fill-mask", "question-answering", "text-generation"],
        tags=["temporalwiki", "continual-learning", "knowledge"],
        annotations_creators=sorted(set(map(_annotated_by, manifests))),
    )
    card = f"{front}\n{_body(manifests, offered, repo_id)}\n"
    return signed(card) if repo_id else card


def _config(manifest: CklManifest) -> Config:
    return manifest.configs[manifest.config]


def _place(order: Sequence[str], name: str) -> tuple[int, str]:
    """Return a key that sorts names by ``order``, and other names after them."""
    return (*order, name).index(name), name


def _annotated_by(manifest: CklManifest) -> str:
    """Return who annotated, as one of the Hub's values. No value fits unknown people."""
    match manifest.kind:
        case "invariant" | "kilt":
            return "found"
        case "news":
            return "no-annotation"
        case "annotated":
            return "machine-generated" if _only_judges(manifest) else "other"
        case _:
            return "machine-generated"


def _only_judges(manifest: CklManifest) -> bool:
    deciders = manifest.counts.decided_by
    return bool(deciders) and all(_is_judge(manifest, name) for name in deciders)


def _is_judge(manifest: CklManifest, name: str) -> bool:
    judges = manifest.options.get("judges")
    return isinstance(judges, list | dict) and name in judges  # a dict in older folders


def _licences(manifests: Sequence[CklManifest]) -> list[str]:
    """Return all licences, the most restrictive first."""
    found = {licence for manifest in manifests for licence in manifest.licences}
    return sorted(found, key=lambda licence: ("-nc" not in licence, licence))


def _licence_name(licence: str) -> str:
    name: str = kinds()["licences"].get(licence, licence)
    return name


def _body(manifests: Sequence[CklManifest], offered: Mapping[str, CardConfig], repo_id: str | None) -> str:
    # imported rows of any kind are as their authors made them
    described = [(manifest, "imported" if manifest.imported else manifest.kind) for manifest in manifests]
    texts = kinds()["ckl"]
    groups: dict[tuple[str, str], list[CklManifest]] = {}
    for manifest, described_as in sorted(described, key=lambda one: one[1] == "imported"):
        groups.setdefault((manifest.kind, described_as), []).append(manifest)
    columns = []
    for (kind, described_as), group in groups.items():
        names = ", ".join(f"`{name}`" for name in SCHEMAS[kind].names)
        columns.append(f"- {_names(group)}: {names}. {texts[described_as]['columns']}")
    warnings = [
        f"- `{manifest.config}`: {escaped(warning.removeprefix(manifest.config + ': '))}"
        for manifest in manifests
        for warning in manifest.warnings
    ]
    return fill(
        "ckl",
        origin=_origin(manifests),
        example=_example(offered, repo_id),
        yours=MARKS if repo_id else "",
        configs="\n".join(_config_row(manifest, offered) for manifest in manifests if manifest.config in offered),
        columns="\n".join(columns),
        counts="\n".join(map(_count_row, manifests)),
        deciders=_deciders(manifests),
        relations="\n\n".join(_relations(manifest) for manifest in manifests if manifest.counts.relations),
        sources=_sources(manifests),
        warnings="## Warnings\n\n" + "\n".join(warnings) if warnings else "",
        limits="\n".join(dict.fromkeys(f"- {texts[described_as]['limits']}" for _, described_as in groups)),
        licences="\n".join(_licence_lines(manifests)),
        citation=citations(*_papers(manifests)),
    )


def _names(manifests: Sequence[CklManifest]) -> str:
    return ", ".join(f"`{manifest.config}`" for manifest in manifests)


def _origin(manifests: Sequence[CklManifest]) -> str:
    """Return the end of a sentence that says where the data are from."""
    if all(manifest.imported for manifest in manifests):
        return "imported from\nthe archive that its authors released."
    imported = any(manifest.imported for manifest in manifests)
    more = " Configs marked as imported come from\nthe archive that its authors released." if imported else ""
    return f"made from\nsources that still exist.{more}"


def _example(offered: Mapping[str, CardConfig], repo_id: str | None) -> str:
    if not offered:
        return ""
    name, config = next(iter(offered.items()))
    return fill("ckl_example", path=repo_id or "ckl", config=name, split=next(iter(config.splits)))


def _config_row(manifest: CklManifest, offered: Mapping[str, CardConfig]) -> str:
    splits = sorted(_config(manifest).splits.items(), key=lambda split: _place(_SPLITS, split[0]))
    rows = ", ".join(f"{split} {written.num_examples:,}" for split, written in splits if written.num_examples)
    short_name = _config(manifest).short_name or ""
    newest = short_name in offered and offered[short_name].folder == manifest.config
    imported = "imported: " if manifest.imported else ""
    judged = " (decided only by a judge, not by a person)" if _only_judges(manifest) else ""
    return table_row(
        f"`{manifest.config}`",
        f"`{short_name}`" if newest else "",
        f"{imported}{escaped(manifest.about)}{judged}",
        rows,
        "; ".join(map(_licence_name, manifest.licences)),
    )


def _count_row(manifest: CklManifest) -> str:
    counts = manifest.counts
    reasons = "; ".join(f"{_in_words(reason)} {count:,}" for reason, count in counts.dropped.items())
    numbers = [f"{number:,}" for number in (counts.read, counts.kept, sum(counts.dropped.values()))]
    return table_row(f"`{manifest.config}`", *numbers, reasons)


def _in_words(reason: str) -> str:
    return escaped(reason.replace("_", " "))


def _deciders(manifests: Sequence[CklManifest]) -> str:
    """Return a list of the annotators and how many candidates each of them decided, or nothing."""
    lines = []
    for manifest in manifests:
        deciders = ", ".join(
            f"{escaped(name)}{' (a judge)' if _is_judge(manifest, name) else ''} {count:,}"
            for name, count in sorted(manifest.counts.decided_by.items())
        )
        if deciders:
            lines.append(f"- `{manifest.config}`: {deciders}")
    return "Candidates that each annotator decided:\n\n" + "\n".join(lines) if lines else ""


def _relations(manifest: CklManifest) -> str:
    relations = manifest.content["counts"]["relations"]
    in_order = dict(sorted(relations.items(), key=lambda relation: _place(RELATIONS, relation[0])))
    rules = "\n".join(f"- {_in_words(reason)}: {escaped(rule)}" for reason, rule in RULES.items())
    return fill("ckl_relations", config=manifest.config, table=table({"relations": in_order}), rules=rules)


def _sources(manifests: Sequence[CklManifest]) -> str:
    """Return a list of the sources; configs with the same source share a line."""
    configs: dict[str, list[CklManifest]] = {}
    for manifest in manifests:
        configs.setdefault(_source(manifest), []).append(manifest)
    return "\n".join(f"- {_names(group)}: {source}" for source, group in configs.items())


def _source(manifest: CklManifest) -> str:
    files = ", ".join(f"{code(file.file)} ({file.size:,} bytes)" for file in manifest.inputs[:_INPUTS_SHOWN])
    more = len(manifest.inputs) - _INPUTS_SHOWN
    files += f" and {more:,} more files" if more > 0 else ""
    # relations and rules have their own table
    shown = {} if manifest.counts.relations else manifest.options
    options = json.dumps(shown, sort_keys=True, ensure_ascii=False)
    cut = " ... (all are in the manifest)" if len(options) > _OPTIONS_SHOWN else ""
    with_options = f"; options {code(options[:_OPTIONS_SHOWN] + cut)}" if shown else ""
    return f"{escaped(manifest.source).removesuffix('.')}. Read: {files or 'no files'}{with_options}"


def _licence_lines(manifests: Sequence[CklManifest]) -> Iterator[str]:
    for licence in _licences(manifests):
        under = [manifest for manifest in manifests if licence in manifest.licences]
        yield f"- {_licence_name(licence)}: {_names(under)}"
    if imported := [manifest for manifest in manifests if manifest.imported]:
        yield f"- Imported from an archive without a licence, and never published from here: {_names(imported)}"


def _papers(manifests: Sequence[CklManifest]) -> Iterator[str]:
    yield "jang2022towards"
    if any(manifest.kind == "invariant" or "cc-by-nc-4.0" in manifest.licences for manifest in manifests):
        yield "petroni2019language"
    if any(manifest.kind == "kilt" for manifest in manifests):
        yield "petroni2021kilt"
    if any(manifest.kind == "live" for manifest in manifests):
        yield "jang2022temporalwiki"
