"""The card of a dataset folder with intervals, made from its manifests."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import constants

from temporalwiki.base.markdown import table_row
from temporalwiki.builders.configs import DATED, SCHEMAS, SPLITS, SUPPORT
from temporalwiki.builders.manifests import BuiltManifest, Config, ImportedManifest
from temporalwiki.model_cards.dataset_header import CardConfig, header, languages, loadable
from temporalwiki.model_cards.edits import MARKS, signed
from temporalwiki.model_cards.template import fill

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
    configs = offered_configs(manifests)
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


def offered_configs(manifests: Sequence[Manifest]) -> dict[str, CardConfig]:
    """Return the configs that can be loaded, by their full and short names; oldest interval first."""
    configs: dict[str, CardConfig] = {}
    for manifest in manifests:
        for name, config in _configs(manifest):
            kind = _kind(name)
            splits = {split: config.splits[split] for split in SPLITS[kind] if split in config.splits}
            configs[name] = CardConfig(name, SCHEMAS[kind], splits)
    for manifest in manifests:  # a later interval with the same months takes the short name over
        for name, config in _configs(manifest):
            configs[str(config.short_name)] = configs[name]
    return loadable(configs)


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
    manifests: Sequence[Manifest], offered: Mapping[str, CardConfig], repo_id: str | None, rows: str, tokens: str
) -> str:
    built = [manifest for manifest in manifests if isinstance(manifest, BuiltManifest)]
    imported = [manifest for manifest in manifests if isinstance(manifest, ImportedManifest)]
    newest = [(name, config) for name, config in _configs(manifests[-1]) if name in offered]
    short_names = {_kind(name): str(config.short_name) for name, config in newest}
    tag = manifests[-1].tag
    return fill(
        "dataset",
        manifests=manifests,
        newest=manifests[-1],
        built=built,
        imported=imported,
        repo_id=repo_id,
        offered={_kind(name) for name in offered},
        short_names={"diffset": "", "probes": ""} | short_names,
        example={kind: short_names[kind] for kind in ("diffset", "probes") if kind in short_names} or short_names,
        yours=MARKS if repo_id else "",
        rows=rows,
        tokens=tokens,
        counted=_counted,
        configs=[(name, config.short_name, *_size_of(name, config)) for name, config in newest],
        grades=_grades(built[-1]) if built else [],
        imported_counts=[
            (name, split, manifest.counts[name][split])
            for manifest in reversed(imported)
            for name, config in _configs(manifest)
            for split in sorted(config.splits, key=SPLITS[_kind(name)].index)
        ],
        # one zip can be the input of two splits
        archives=dict.fromkeys((one.file, one.size) for manifest in imported for one in manifest.inputs),
        key=re.sub(r"\W+", "_", f"{repo_id}_{tag}"),
        url=f"{constants.ENDPOINT}/datasets/{repo_id}",
    )


def _size_of(name: str, config: Config) -> tuple[str, str]:
    """Return the rows of each split of a config, and its size in MB."""
    splits = [(split, config.splits[split]) for split in SPLITS[_kind(name)] if split in config.splits]
    rows = ", ".join(f"{split} {written.num_examples:,}" for split, written in splits if written.num_examples)
    return rows, f"{sum(file.size for _, written in splits for file in written.files) / 1e6:,.2f}"


def _counted(manifest: Manifest) -> list[int | None]:
    """Return an interval's articles and words in the diffset, and its probes by split."""
    if isinstance(manifest, BuiltManifest):
        counts = manifest.counts
        kept = [facts.kept for facts in counts.probes.by_split().values()]
        return [counts.pages.new + counts.pages.updated, counts.diffset.words, *kept]
    rows = {
        (_kind(name), split): written.num_examples
        for name, config in manifest.configs.items()
        for split, written in config.splits.items()
    }
    return [rows.get(("diffset", "train")), None, *(rows.get(("probes", split)) for split in SPLITS["probes"])]


def _grades(manifest: BuiltManifest) -> list[str]:
    """Return the table of support, dates and strict facts, or nothing if they were not counted."""
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
    names = [*SUPPORT, *DATED]
    heads = [table_row("", *(f"`{name}`" for name in names), "strict"), "|---" + "|---:" * (len(names) + 1) + "|"]
    return [*heads, *rows] if rows else []
