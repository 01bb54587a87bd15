"""The dataset card: the README.md of a dataset folder, made from its manifests."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from temporalwiki.base.errors import in_one_line
from temporalwiki.builders.dataset_folder import SCHEMAS, SPLITS, Manifest
from temporalwiki.model_cards.citations import TEMPORALWIKI
from temporalwiki.model_cards.dataset_header import header, languages, loadable

_ROWS = {
    "diffset": "an article with the sentences that the earlier snapshot's article does not have (Algorithm 1)",
    "deletions": "the mirror image: sentences that are gone",
    "unchanged": "what a sampled article of the later snapshot says beside its diffset",
    "wikipedia": "an article of the whole later snapshot",
    "probes": "a fact, with the sentence that states it (Algorithm 2, alignment, filters); splits unchanged, changed, "
    "deleted, as far as they have rows",
    "lighttuning": "a fact for light-tuning, none of them about a subject of the probes",
    "facts": "a fact that is aligned and passed the first two filters, before the caps, with all that is right "
    "with it",
}

# What is said of columns, for the kinds of configs that have them.
_COLUMNS = {
    ("diffset", "deletions", "unchanged", "wikipedia"): """\
Texts (`diffset`, `deletions`, `unchanged`, `wikipedia`):

| column | what it is |
|---|---|
| `id`, `title`, `url` | the page |
| `text` | paragraphs with a blank line between them; the items of a list on lines of their own |
| `kind` | `new` or `updated`; `deleted` for a page that is no article any more |
| `revision_id`, `timestamp` | the revision in the later snapshot; of a deleted page null and the earlier time |
| `previous_revision_id` | its revision in the earlier snapshot; null if that has no such page |
| `paragraphs` | how many `text` holds |""",
    ("probes", "lighttuning", "facts"): """\
Facts (`probes`, `lighttuning`):

| column | what it is |
|---|---|
| `subject`, `relation`, `object` | labels; `subject_id`, `relation_id`, `object_id` are their Wikidata ids |
| `kind` | changed: `new_subject`, `new_relation`, `new_object`; deleted: `replaced`, `ended`, `removed`; `unchanged` |
| `previous_objects` | of `new_object`: labels of what the relation had before |
| `statement_id` | the statement in Wikidata |
| `page_id`, `page_revision_id`, `title` | the subject's article |
| `evidence` | the sentence of it that holds the object's label |""",
    ("facts",): """\
`facts` has more: `current` (it holds at the later dump's date: of best rank, begun and not ended), `objects` and
`objects_before` (labels of all that holds for the subject and the relation at the later dump's date, and that held at
the earlier one's), `gone_objects` (what held and does not any more), `known_before` (the earlier dump had the fact, if
at a lower rank), `dead` (the subject has a place or cause of death, or a grave), `start_time` and `end_time` as
Wikidata has them.""",
}

_LICENCE = """\
Text: CC BY-SA 4.0, by the contributors to Wikipedia (`url` and `revision_id` name the page's history). Facts: CC0.
"""

_NO_LICENCE = """
What was imported is its authors', who released it without a licence: it is for use here, and never published.
"""

_REVISIONS = """
Each interval came with a revision of its own, a tag that never changes: with `revision=` a name means for ever what it
meant then, and `main` has them all. `temporalwiki.load_dataset` takes the same arguments and says so where a cache
holds another revision, which `datasets` does not.
"""


def dataset_card(manifests: list[Manifest], repo_id: str | None = None, kept: Mapping[str, Any] | None = None) -> str:
    """Text of the card for a folder with these intervals (oldest first): YAML header and Markdown.

    On the Hub ``repo_id`` names the repository and each manifest its tag. ``kept`` is what else the header says:
    settings that are not made here, and further configs with their ``dataset_info``.
    """
    kept = kept or {}
    manifests = [manifest | {"configs": _in_order(manifest["configs"])} for manifest in manifests]
    newest = manifests[-1]
    configs: dict[str, dict[str, Any]] = {}
    for manifest in manifests:  # a later interval with the same months takes the short name over
        for name, config in manifest["configs"].items():
            configs[name] = {"files": name, "schema": SCHEMAS[name.split("-")[0]], **config}
    for manifest in manifests:
        for name, config in manifest["configs"].items():
            configs[config["short_name"]] = configs[name]
    configs = loadable(configs)
    diffsets = [name for manifest in manifests for name in manifest["configs"] if name.startswith("diffset-")]
    front = header(
        configs,
        kept,
        default=next((name for name in reversed(diffsets) if name in configs), None),
        language=languages(newest["interval"]["language"]),
        license=_licences(manifests),
        pretty_name="TemporalWiki",
        task_categories=["text-generation", "fill-mask"],
        tags=["temporalwiki", "continual-learning", "knowledge", "wikipedia", "wikidata"],
        source_datasets=["original"],
        annotations_creators=["machine-generated"],
    )
    return f"{front}\n{_text(manifests, repo_id)}"


def _in_order(configs: dict[str, Any]) -> dict[str, Any]:
    """Configs and their splits in the order of SCHEMAS and SPLITS, however a manifest was stored."""
    kinds = list(SCHEMAS)
    names = sorted(configs, key=lambda name: (kinds.index(name.split("-")[0]), name))
    return {
        name: configs[name]
        | {
            "splits": {
                s: configs[name]["splits"][s] for s in SPLITS[name.split("-")[0]] if s in configs[name]["splits"]
            }
        }
        for name in names
    }


def _licences(manifests: list[Manifest]) -> list[str]:
    """Return those of what was built, and that of what its authors released without one."""
    imported = [bool(manifest.get("imported")) for manifest in manifests]
    return [*([] if all(imported) else ["cc-by-sa-4.0", "cc0-1.0"]), *(["unknown"] if any(imported) else [])]


def _text(manifests: list[Manifest], repo_id: str | None) -> str:
    newest = manifests[-1]
    built = [manifest for manifest in manifests if not manifest.get("imported")]
    imported = [manifest for manifest in manifests if manifest.get("imported")]
    shorts = {name.split("-")[0]: config["short_name"] for name, config in newest["configs"].items()}
    loaded = [kind for kind in ("diffset", "probes") if kind in shorts]
    rows = "\n".join(_interval_row(manifest, repo_id is not None) for manifest in reversed(manifests))
    revision = f', revision="{newest["tag"]}"' if repo_id else ""
    revisions = (" revision |", "---|") if repo_id else ("", "")
    path = repo_id or "temporalwiki"
    lines = [f'{kind} = load_dataset("{path}", "{shorts[kind]}"{revision})' for kind in loaded]
    example = "\n".join([f"{lines[0]}  # the newest interval", *lines[1:]])
    return f"""# TemporalWiki: what changed between two snapshots

Text that is new in Wikipedia between two snapshots, and facts of Wikidata that changed or did not change in
between, for training and evaluating language models that are kept up to date. It follows TemporalWiki (EMNLP
{_origin(built, imported)}

```python
from datasets import load_dataset

{example}
```

A short name such as `{shorts[loaded[0]]}` means the newest interval with those months; the full name never changes.
{_REVISIONS if repo_id else ""}
| interval |{revisions[0]} articles in the diffset | words | probes: unchanged | changed | deleted |
|---|{revisions[1]}---:|---:|---:|---:|---:|
{rows}

## Configs

| config | one row is |
|---|---|
{_kinds(manifests)}

## Columns

{_columns(manifests)}

{_made_of(built[-1]) if built else ""}{_imports(imported)}Every count, every drop by reason and the SHA-1 of each \
input stand in `manifests/`.
{_warnings(manifests)}

## Limits

Text is what Wikipedia said at the dates of the snapshots, with its errors and its biases; a sentence that was
reworded counts as new. A fact counts as changed when Wikidata changed, which may be long after the world did, or
because an editor added what was always true. Names of living people occur, as they do in Wikipedia.

## Licence

{_LICENCE if built else ""}{_NO_LICENCE if imported else ""}
## Citation

```bibtex
{TEMPORALWIKI}```
"""


def _columns(manifests: list[Manifest]) -> str:
    offered = _offered(manifests)
    return "\n\n".join(text for kinds, text in _COLUMNS.items() if not offered.isdisjoint(kinds))


def _offered(manifests: list[Manifest]) -> set[str]:
    return {name.split("-")[0] for manifest in manifests for name in manifest["configs"]}


def _kinds(manifests: list[Manifest]) -> str:
    offered = _offered(manifests)
    return "\n".join(f"| `{kind}-*` | {row} |" for kind, row in _ROWS.items() if kind in offered)


def _origin(built: list[Manifest], imported: list[Manifest]) -> str:
    """Say where it is from, in the middle of a sentence."""
    if not built:
        return "2022), and was imported from the archives that its authors released."
    anew = f"2022), built anew from the dumps of {built[-1]['interval']['wiki']} and Wikidata."
    return f"{anew} What is marked so was imported\nfrom the archives that its authors released." if imported else anew


def _made_of(manifest: Manifest) -> str:
    options = manifest["options"]
    return f"""## Counts

Seed {options["seed"]}; of the unchanged facts a share of {options["unchanged_fraction"]:g} is
sampled.

{_categories(manifest)}

## Sources

{_sources(manifest)}

"""


def _imports(imported: list[Manifest]) -> str:
    """What came from archives: its rows, and the files; nothing where nothing did."""
    if not imported:
        return ""
    rows = [
        f"| `{name}` | {split} | {c['read']:,} | {c['kept']:,} | {_by_reason(c['dropped'])} |"
        for manifest in reversed(imported)
        for name, config in manifest["configs"].items()
        for split in config["splits"]
        for c in [manifest["counts"][name][split]]
    ]
    # a zip is the input of both splits
    files = dict.fromkeys(line for manifest in imported for line in _sources(manifest).splitlines())
    return "\n".join(
        [
            "## Imported\n",
            "What is null in a row is not in the authors' files.\n",
            "| config | split | rows read | kept | dropped |",
            "|---|---|---:|---:|---|",
            *rows,
            "",
            *files,
            "\n",
        ]
    )


def _by_reason(dropped: Mapping[str, int]) -> str:
    said = {
        html.escape(in_one_line(reason)).replace("|", "&#124;"): number for reason, number in sorted(dropped.items())
    }
    return ", ".join(f"{number:,}: {reason}" for reason, number in said.items()) or "0"


def _interval_row(manifest: Manifest, tagged: bool) -> str:
    interval, counts = manifest["interval"], manifest["counts"]
    tag = f" `{manifest['tag']}` |" if tagged else ""
    if manifest.get("imported"):
        rows = {
            (name.split("-")[0], split): f"{files['num_examples']:,}"
            for name, config in manifest["configs"].items()
            for split, files in config["splits"].items()
        }
        cells = [rows.get(at, "") for at in (("diffset", "train"), ("", ""))]
        cells += [rows.get(("probes", split), "") for split in SPLITS["probes"]]
        return f"| {interval['prev']} to {interval['recent']} (imported) |{tag} {' | '.join(cells)} |"
    kept = counts["probes"]
    articles = counts["pages"]["new"] + counts["pages"]["updated"]
    return (
        f"| {interval['prev']} to {interval['recent']} |{tag} {articles:,} | {counts['diffset']['words']:,} "
        f"| {kept['unchanged']['kept']:,} | {kept['changed']['kept']:,} | {kept['deleted']['kept']:,} |"
    )


def _categories(manifest: Manifest) -> str:
    """The paper's Table 2 for one interval."""
    interval, probes = manifest["interval"], manifest["counts"]["probes"]
    rows = "\n".join(
        f"| {split} | {c['categorised']:,} | {c['sampled']:,} | {c['aligned']:,} | {c['filtered']:,} | {c['kept']:,} |"
        for split, c in probes.items()
    )
    return f"""Facts of {interval["prev"]} to {interval["recent"]} on their way to probes:

| | categorised | sampled | aligned with text | after filters 1 and 2 | kept after the caps |
|---|---:|---:|---:|---:|---:|
{rows}"""


def _warnings(manifests: list[Manifest]) -> str:
    """What builds warned of; nothing where there was nothing."""
    found = [
        f"- {manifest['interval']['prev']} to {manifest['interval']['recent']}: {html.escape(in_one_line(warning))}"
        for manifest in manifests
        for warning in manifest["warnings"]
    ]
    return "\n## Warnings\n\n" + "\n".join(found) + "\n" if found else ""


def _sources(manifest: Manifest) -> str:
    files = [(in_one_line(source["file"]).replace("`", "'"), source["size"]) for source in manifest["inputs"]]
    return "\n".join(f"- `{file}`, {size:,} bytes" for file, size in files)
