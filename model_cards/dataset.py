"""The card of a dataset folder with intervals, made from its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.base.markdown import code, escaped, table_row
from temporalwiki.builders.configs import DATED, SCHEMAS, SPLITS, SUPPORT
from temporalwiki.builders.manifests import BuiltManifest, Config, ImportedManifest
from temporalwiki.model_cards.dataset_header import CardConfig, header, languages, loadable
from temporalwiki.model_cards.edits import MARKS, signed
from temporalwiki.model_cards.template import citations, fill, in_words, kinds

Manifest = BuiltManifest | ImportedManifest


_SIZES = ("K", "M", "B", "T")  # thousands, as the Hub writes them


def dataset_card(
    manifests: Sequence[Manifest],
    repo_id: str | None = None,
    kept: Mapping[str, Any] | None = None,
    rows: str = "",
    tokens: str = "",
) -> str:
    """Return the card for a folder with these intervals, oldest first: YAML header and Markdown.

    On the Hub, ``repo_id`` names the repository and each manifest its tag. ``kept`` has the settings that the
    maintainer added to the header, with further configs and their ``dataset_info``. ``rows`` are the sections that
    show rows (``dataset_rows``), and ``tokens`` is a sentence about the tokens of the newest interval.
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
        size_categories=[_size(sum(_row_count(config) for one in manifests for config in one.configs.values()))],
    )
    card = f"{front}\n{_body(manifests, configs, repo_id, rows, tokens)}\n"
    return signed(card) if repo_id else card


def _configs(manifest: Manifest) -> list[tuple[str, Config]]:
    """Return the configs in the order of SCHEMAS; the manifest has them sorted by name."""
    kinds_in_order = list(SCHEMAS)
    return sorted(manifest.configs.items(), key=lambda config: (kinds_in_order.index(_kind(config[0])), config[0]))


def _kind(name: str) -> str:
    return name.split("-")[0]


def _row_count(config: Config) -> int:
    return sum(split.num_examples for split in config.splits.values())


def _size(rows: int) -> str:
    """Return a number of rows as the Hub classifies it."""
    if rows < 1000:
        return "n<1K"
    power = min(len(str(rows)) - 1, 12)
    low, high = (f"{10 ** (at % 3)}{_SIZES[at // 3 - 1]}" for at in (power, min(power + 1, 12)))
    return f"{low}<n<{high}" if power < 12 else "n>1T"


def _body(
    manifests: Sequence[Manifest],
    offered_configs: Mapping[str, CardConfig],
    repo_id: str | None,
    rows: str,
    tokens: str,
) -> str:
    built = [manifest for manifest in manifests if isinstance(manifest, BuiltManifest)]
    imported = [manifest for manifest in manifests if isinstance(manifest, ImportedManifest)]
    offered = {_kind(name) for name in offered_configs}
    newest = [(name, config) for name, config in _configs(manifests[-1]) if name in offered_configs]
    short_names = {_kind(name): str(config.short_name) for name, config in newest}
    in_example: Mapping[str, str] = {
        kind: short_names[kind] for kind in ("diffset", "probes") if kind in short_names
    } or short_names
    columns = {
        "texts": {"diffset", "deletions", "unchanged", "wikipedia"},
        "facts": {"probes", "lighttuning", "facts"},
        "all_facts": {"facts"},
    }
    warnings = [f"- {_dates(manifest)}: {escaped(warning)}" for manifest in manifests for warning in manifest.warnings]
    return fill(
        "dataset",
        origin=_origin(built, imported),
        example=_example(in_example, manifests[-1], repo_id),
        short_name=next(iter(in_example.values()), "diffset-1112"),
        yours=MARKS if repo_id else "",
        rows=rows,
        newest=_newest(built[-1], tokens) if built else "",
        use=_use(short_names, manifests[-1], repo_id) if repo_id and built else "",
        names="\n".join(_name_row(name, config) for name, config in newest),
        changelog=_changelog(built) if repo_id else "",
        build=_cite_build(manifests[-1], repo_id) if repo_id else "",
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
    return "\n".join([f"{lines[0]}  # the newest interval", *lines[1:]]) if lines else "# no config has rows"


def _newest(manifest: BuiltManifest, tokens: str) -> str:
    """Return what changed in an interval, in plain words."""
    counts, probes = manifest.counts, manifest.counts.probes
    return fill(
        "dataset_newest",
        wiki=manifest.interval.wiki,
        prev=in_words(manifest.interval.prev),
        recent=in_words(manifest.interval.recent),
        articles=f"{counts.pages.new + counts.pages.updated:,}",
        words=f"{counts.diffset.words:,}",
        tokens=f" {tokens}" if tokens else "",
        changed=f"{probes.changed.kept:,}",
        unchanged=f"{probes.unchanged.kept:,}",
        deleted=f"{probes.deleted.kept:,}",
    )


def _use(short_names: Mapping[str, str], newest: Manifest, repo_id: str) -> str:
    """Return the section on how to train and score, or "" without both kinds of configs."""
    if not {"diffset", "probes"} <= short_names.keys():
        return ""
    names = {kind: short_names[kind] for kind in ("diffset", "probes")}
    return fill("dataset_use", data=f"{repo_id}@{newest.tag}", **names)


def _name_row(name: str, config: Config) -> str:
    """Return a row of the table of configs."""
    splits = [(split, config.splits[split]) for split in SPLITS[_kind(name)] if split in config.splits]
    rows = ", ".join(f"{split} {written.num_examples:,}" for split, written in splits if written.num_examples)
    size = sum(file.size for _, written in splits for file in written.files) / 1e6
    return table_row(f"`{name}`", f"`{config.short_name}`", rows, f"{size:,.2f}")


def _changelog(manifests: Sequence[BuiltManifest]) -> str:
    rows = []
    for manifest in reversed(manifests):
        maker = manifest.content.get("made_by")
        by = f", built by {escaped(maker)}" if isinstance(maker, str) else ""
        rows.append(f"- `{manifest.tag}`: {manifest.interval.wiki} {_dates(manifest)}{by}")
    return fill("dataset_changelog", rows="\n".join(rows))


def _cite_build(manifest: Manifest, repo_id: str) -> str:
    from huggingface_hub import constants

    return fill(
        "dataset_cite_build",
        key=re.sub(r"\W+", "_", f"{repo_id}_{manifest.tag}"),
        wiki=manifest.interval.wiki,
        dates=_dates(manifest),
        url=f"{constants.ENDPOINT}/datasets/{repo_id}",
        tag=str(manifest.tag),
        year=manifest.interval.recent[:4],
    )


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
        table_row(
            f"`{kind}`, {split}",
            *(f"{of.support.get(name, 0):,}" for name in SUPPORT),
            *(f"{of.dated.get(name, 0):,}" for name in DATED),
            f"{of.strict:,}",
        )
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
