"""The card of a dataset folder with intervals, made from its manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.base.markdown import code, escaped, table_row
from temporalwiki.builders.configs import DATED, SCHEMAS, SPLITS, SUPPORT
from temporalwiki.builders.manifests import BuiltManifest, Config, ImportedManifest
from temporalwiki.model_cards.dataset_header import CardConfig, header, languages, loadable
from temporalwiki.model_cards.edits import MARKS, signed
from temporalwiki.model_cards.template import citations, fill, kinds

Manifest = BuiltManifest | ImportedManifest


def dataset_card(
    manifests: Sequence[Manifest], repo_id: str | None = None, kept: Mapping[str, Any] | None = None
) -> str:
    """Return the card for a folder with these intervals, oldest first: YAML header and Markdown.

    On the Hub, ``repo_id`` names the repository and each manifest its tag. ``kept`` has the settings that the
    maintainer added to the header, with further configs and their ``dataset_info``.
    """
    configs: dict[str, CardConfig] = {}
    for manifest in manifests:
        for name, config in _configs(manifest):
            kind = _kind(name)
            splits = {split: config.splits[split] for split in SPLITS[kind] if split in config.splits}
            configs[name] = CardConfig(name, SCHEMAS[kind], splits)
    for manifest in manifests:  # a later interval with the same months takes the short name over
        for name, config in _configs(manifest):
            configs[str(config.short_name)] = configs[name]
    configs = loadable(configs)
    diffsets = [name for manifest in manifests for name, _ in _configs(manifest) if _kind(name) == "diffset"]
    imported = [isinstance(manifest, ImportedManifest) for manifest in manifests]
    front = header(
        configs,
        kept or {},
        default=next((name for name in reversed(diffsets) if name in configs), None),
        language=languages(manifests[-1].interval.language),
        license=[*([] if all(imported) else ["cc-by-sa-4.0", "cc0-1.0"]), *(["unknown"] if any(imported) else [])],
        pretty_name="TemporalWiki",
        task_categories=["text-generation", "fill-mask"],
        tags=["temporalwiki", "continual-learning", "knowledge", "wikipedia", "wikidata"],
        source_datasets=["original"],
        annotations_creators=["machine-generated"],
    )
    card = f"{front}\n{_body(manifests, repo_id)}\n"
    return signed(card) if repo_id else card


def _configs(manifest: Manifest) -> list[tuple[str, Config]]:
    """Return the configs in the order of SCHEMAS; the manifest has them sorted by name."""
    kinds_in_order = list(SCHEMAS)
    return sorted(manifest.configs.items(), key=lambda config: (kinds_in_order.index(_kind(config[0])), config[0]))


def _kind(name: str) -> str:
    return name.split("-")[0]


def _body(manifests: Sequence[Manifest], repo_id: str | None) -> str:
    built = [manifest for manifest in manifests if isinstance(manifest, BuiltManifest)]
    imported = [manifest for manifest in manifests if isinstance(manifest, ImportedManifest)]
    offered = {_kind(name) for manifest in manifests for name in manifest.configs}
    short_names = {_kind(name): str(config.short_name) for name, config in manifests[-1].configs.items()}
    in_example = [kind for kind in ("diffset", "probes") if kind in short_names]
    columns = {
        "texts": {"diffset", "deletions", "unchanged", "wikipedia"},
        "facts": {"probes", "lighttuning", "facts"},
        "all_facts": {"facts"},
    }
    warnings = [f"- {_dates(manifest)}: {escaped(warning)}" for manifest in manifests for warning in manifest.warnings]
    return fill(
        "dataset",
        origin=_origin(built, imported),
        example=_example({kind: short_names[kind] for kind in in_example}, manifests[-1], repo_id),
        short_name=short_names[in_example[0]],
        yours=MARKS if repo_id else "",
        revisions=fill("dataset_revisions") if repo_id else "",
        intervals="\n".join(_interval_row(manifest, repo_id is not None) for manifest in reversed(manifests)),
        configs="\n".join(
            table_row(f"`{kind}-*`", row) for kind, row in kinds()["dataset"].items() if kind in offered
        ),
        columns="\n\n".join(
            fill(f"dataset_columns_{group}") for group, of_kinds in columns.items() if offered & of_kinds
        ),
        counts=_counts(built[-1]) if built else "",
        imported=_imported(imported) if imported else "",
        warnings="## Warnings\n\n" + "\n".join(warnings) if warnings else "",
        licence="\n\n".join(
            [*([fill("dataset_licence")] if built else []), *([fill("dataset_no_licence")] if imported else [])]
        ),
        citation=citations("jang2022temporalwiki"),
    )


def _origin(built: Sequence[BuiltManifest], imported: Sequence[ImportedManifest]) -> str:
    """Return the end of a sentence that says where the data are from."""
    if not built:
        return "imported from the archives that its authors released."
    more = "\nIntervals marked as imported come from the archives that its authors released." if imported else ""
    return f"built from the dumps of {built[-1].interval.wiki} and Wikidata.{more}"


def _example(short_names: Mapping[str, str], newest: Manifest, repo_id: str | None) -> str:
    revision = f', revision="{newest.tag}"' if repo_id else ""
    lines = [
        f'{kind} = load_dataset("{repo_id or "temporalwiki"}", "{short_name}"{revision})'
        for kind, short_name in short_names.items()
    ]
    return "\n".join([f"{lines[0]}  # the newest interval", *lines[1:]])


def _dates(manifest: Manifest) -> str:
    return f"{manifest.interval.prev} to {manifest.interval.recent}"


def _interval_row(manifest: Manifest, on_hub: bool) -> str:
    interval = _dates(manifest) + (f", revision `{manifest.tag}`" if on_hub else "")
    if isinstance(manifest, ImportedManifest):
        rows = {
            (_kind(name), split): f"{written.num_examples:,}"
            for name, config in manifest.configs.items()
            for split, written in config.splits.items()
        }
        probes = [rows.get(("probes", split), "") for split in SPLITS["probes"]]
        return table_row(f"{interval} (imported)", rows.get(("diffset", "train"), ""), "", *probes)
    counts = manifest.counts
    numbers = [counts.pages.new + counts.pages.updated, counts.diffset.words]
    numbers += [facts.kept for facts in counts.probes.by_split().values()]
    return table_row(interval, *(f"{number:,}" for number in numbers))


def _counts(manifest: BuiltManifest) -> str:
    """Return the sections on the counts of one interval (Table 2 of the paper) and on its sources."""
    facts = [
        table_row(split, *(f"{number:,}" for number in (c.categorised, c.sampled, c.aligned, c.filtered, c.kept)))
        for split, c in manifest.counts.probes.by_split().items()
    ]
    return fill(
        "dataset_counts",
        seed=str(manifest.options.seed),
        unchanged_fraction=f"{manifest.options.unchanged_fraction:g}",
        interval=_dates(manifest),
        novelty=_novelty(manifest),
        facts="\n".join(facts),
        caps=", ".join(f"{share:g}" for share in manifest.options.caps) if manifest.options.caps else "none",
        grades=_grades(manifest),
        sources="\n".join(_sources(manifest)),
    )


def _novelty(manifest: BuiltManifest) -> str:
    """Return how many words of the diffset are new, or "" for an older manifest."""
    diffset = manifest.counts.diffset
    if diffset.words_new is None or diffset.words_reworded is None:
        return ""
    counts = (diffset.words, diffset.words_new, diffset.words_reworded, diffset.words_of_other_typography)
    words, new, reworded, other_typography = (f"{count:,}" for count in counts)
    return fill(
        "dataset_novelty",
        words=words,
        new=new,
        reworded=reworded,
        other_typography=other_typography if manifest.options.compare == "folded" else "No",
        without_formula=f"{diffset.sentences_without_formula:,}",
    )


def _grades(manifest: BuiltManifest) -> str:
    """Return the section on support, dates and strict facts, or "" for an older manifest."""
    rows = [
        table_row(f"`{kind}`, {split}", *(f"{n:,}" for n in (*of.support.values(), *of.dated.values(), of.strict)))
        for split, counts in manifest.counts.probes.by_split().items()
        for kind, of in (("facts", counts.facts), ("probes", counts.probes))
        if of is not None
    ]
    if not rows:
        return ""
    names = [name for values in (SUPPORT, DATED) for name in values]
    heads = [table_row("", *(f"`{name}`" for name in names), "strict"), "|---" + "|---:" * (len(names) + 1) + "|"]
    return "\n".join(["How well the text supports them, and when they began or ended:", "", *heads, *rows])


def _imported(manifests: Sequence[ImportedManifest]) -> str:
    """Return the section on imported intervals: their rows and the archives' files."""
    rows = []
    for manifest in reversed(manifests):
        for name, config in _configs(manifest):
            for split in sorted(config.splits, key=SPLITS[_kind(name)].index):
                counts = manifest.counts[name][split]
                dropped = ", ".join(f"{count:,}: {escaped(why)}" for why, count in sorted(counts.dropped.items()))
                rows.append(table_row(f"`{name}`", split, f"{counts.read:,}", f"{counts.kept:,}", dropped or "0"))
    # one zip can be the input of two splits
    sources = dict.fromkeys(line for manifest in manifests for line in _sources(manifest))
    return fill("dataset_imported", rows="\n".join(rows), sources="\n".join(sources))


def _sources(manifest: Manifest) -> list[str]:
    return [f"- {code(source.file)}, {source.size:,} bytes" for source in manifest.inputs]
