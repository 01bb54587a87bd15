"""The card of CKL's dataset folder: its configs, their licences, and the counts of their rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from temporalwiki.base.markdown import code, escaped
from temporalwiki.builders.ckl.invariantlama import RELATIONS, RULES, table
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.manifests import CklManifest, Config
from temporalwiki.model_cards.dataset_header import CardConfig, header, languages, loadable
from temporalwiki.model_cards.edits import MARKS, signed
from temporalwiki.model_cards.template import fill, kinds

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
    manifests = _in_order(manifests)
    offered = offered_configs(manifests)
    found = {code: None for manifest in manifests for code in languages(manifest.language) or ()}
    front = header(
        offered,
        kept or {},
        language=list(found) or None,
        license=licences_of(manifests),
        pretty_name="CKL",
        task_categories=["fill-mask", "question-answering", "text-generation"],
        tags=["temporalwiki", "continual-learning", "knowledge"],
        annotations_creators=sorted(set(map(_annotated_by, manifests))),
    )
    card = f"{front}\n{_body(manifests, offered, repo_id)}\n"
    return signed(card) if repo_id else card


def offered_configs(manifests: Sequence[CklManifest]) -> dict[str, CardConfig]:
    """Return the configs that can be loaded, by their full and short names."""
    configs = {}
    for manifest in _in_order(manifests):
        splits = dict(sorted(_config(manifest).splits.items(), key=lambda split: _place(_SPLITS, split[0])))
        configs[manifest.config] = CardConfig(manifest.config, SCHEMAS[manifest.kind], splits)
    short_names = {}
    for manifest in _in_order(manifests):  # by name: the newest interval with the same months takes the short name
        if (short_name := _config(manifest).short_name) not in (None, *configs):
            short_names[str(short_name)] = configs[manifest.config]
    return loadable(configs | short_names)


def _in_order(manifests: Sequence[CklManifest]) -> list[CklManifest]:
    in_order = list(SCHEMAS)
    return sorted(manifests, key=lambda manifest: (in_order.index(manifest.kind), manifest.config))


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
    return isinstance(judges, list) and name in judges


def licences_of(manifests: Sequence[CklManifest]) -> list[str]:
    """Return all licences, the most restrictive first."""
    found = {licence for manifest in manifests for licence in manifest.licences}
    return sorted(found, key=lambda licence: ("-nc" not in licence, licence))


def _body(manifests: Sequence[CklManifest], offered: Mapping[str, CardConfig], repo_id: str | None) -> str:
    # imported rows of any kind are as their authors made them
    groups: dict[tuple[str, str], list[CklManifest]] = {}
    for manifest in sorted(manifests, key=lambda one: one.imported):
        groups.setdefault((manifest.kind, "imported" if manifest.imported else manifest.kind), []).append(manifest)
    sources: dict[str, list[CklManifest]] = {}
    for manifest in manifests:
        sources.setdefault(_source(manifest), []).append(manifest)
    return fill(
        "ckl",
        manifests=manifests,
        offered=offered,
        repo_id=repo_id,
        all_imported=all(manifest.imported for manifest in manifests),
        imported=_names([manifest for manifest in manifests if manifest.imported]),
        yours=MARKS if repo_id else "",
        configs=[_config_row(manifest, offered) for manifest in manifests if manifest.config in offered],
        columns=[
            (_names(group), ", ".join(f"`{name}`" for name in SCHEMAS[kind].names), described)
            for (kind, described), group in groups.items()
        ],
        deciders=[(one.config, _deciders(one)) for one in manifests if one.counts.decided_by],
        relations=[(one.config, _relations(one)) for one in manifests if one.counts.relations],
        rules=RULES,
        sources={source: _names(group) for source, group in sources.items()},
        licences={
            licence: _names([manifest for manifest in manifests if licence in manifest.licences])
            for licence in licences_of(manifests)
        },
        limits=dict.fromkeys(kinds()["ckl"][described]["limits"] for _, described in groups),
        papers=list(_papers(manifests)),
    )


def _names(manifests: Sequence[CklManifest]) -> str:
    return ", ".join(f"`{manifest.config}`" for manifest in manifests)


def _config_row(manifest: CklManifest, offered: Mapping[str, CardConfig]) -> list[str]:
    config = _config(manifest)
    splits = sorted(config.splits.items(), key=lambda split: _place(_SPLITS, split[0]))
    newest = config.short_name in offered and offered[str(config.short_name)].folder == manifest.config
    imported = "imported: " if manifest.imported else ""
    judged = " (decided only by a judge, not by a person)" if _only_judges(manifest) else ""
    return [
        f"`{manifest.config}`",
        f"`{config.short_name}`" if newest else "",
        f"{imported}{escaped(manifest.about)}{judged}",
        ", ".join(f"{split} {written.num_examples:,}" for split, written in splits if written.num_examples),
        "; ".join(kinds()["licences"].get(licence, licence) for licence in manifest.licences),
    ]


def _deciders(manifest: CklManifest) -> str:
    """Return the annotators and how many candidates each of them decided."""
    return ", ".join(
        f"{escaped(name)}{' (a judge)' if _is_judge(manifest, name) else ''} {count:,}"
        for name, count in sorted(manifest.counts.decided_by.items())
    )


def _relations(manifest: CklManifest) -> str:
    relations = manifest.content["counts"]["relations"]
    return table({"relations": dict(sorted(relations.items(), key=lambda one: _place(RELATIONS, one[0])))})


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


def _papers(manifests: Sequence[CklManifest]) -> Iterator[str]:
    yield "jang2022towards"
    if any(manifest.kind == "invariant" or "cc-by-nc-4.0" in manifest.licences for manifest in manifests):
        yield "petroni2019language"
    if any(manifest.kind == "kilt" for manifest in manifests):
        yield "petroni2021kilt"
    if any(manifest.kind == "live" for manifest in manifests):
        yield "jang2022temporalwiki"
