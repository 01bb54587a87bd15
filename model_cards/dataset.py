"""The dataset card: the README.md of a dataset folder, made from its manifests."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

import datasets
import yaml
from huggingface_hub import DatasetCardData

from temporalwiki.builders.dataset_folder import SCHEMAS, SPLITS, Manifest

_ROWS = {
    "diffset": "an article with the sentences that the earlier snapshot's article does not have (Algorithm 1)",
    "deletions": "the mirror image: sentences that are gone",
    "unchanged": "what a sampled article of the later snapshot says beside its diffset",
    "wikipedia": "an article of the whole later snapshot",
    "probes": "a fact, with the sentence that states it (Algorithm 2, alignment, filters); splits unchanged, changed, "
    "deleted, as far as they have rows",
    "lighttuning": "a fact for light-tuning, none of them about a subject of the probes",
    "facts": "a fact that is aligned and passed the first two filters, before the caps, with all that is right with it",
}

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
            configs[name] = {"files": name, **config}
    for manifest in manifests:
        for name, config in manifest["configs"].items():
            configs[config["short_name"]] = {"files": name, **config}
    # datasets 5 cannot load a config one of whose splits is empty ("corresponds to no data"): such splits stay out
    # of the card, though their files are written
    for config in configs.values():
        config["splits"] = {name: files for name, files in config["splits"].items() if files["num_examples"]}
    configs = {name: config for name, config in configs.items() if config["splits"]}
    diffsets = [name for manifest in manifests for name in manifest["configs"] if name.startswith("diffset-")]
    default = next((name for name in reversed(diffsets) if name in configs), None)
    header = DatasetCardData(
        language=languages(newest["interval"]["language"]),
        license=["cc-by-sa-4.0", "cc0-1.0"],
        pretty_name="TemporalWiki",
        task_categories=["text-generation", "fill-mask"],
        tags=["temporalwiki", "continual-learning", "knowledge", "wikipedia", "wikidata"],
        source_datasets=["original"],
        annotations_creators=["machine-generated"],
        configs=[
            *(_config(name, config, name == default) for name, config in configs.items()),
            # two defaults are an error
            *({k: v for k, v in config.items() if k != "default"} for config in kept.get("configs", ())),
        ],
        dataset_info=[*(_info(name, config) for name, config in configs.items()), *kept.get("dataset_info", ())],
    )
    said = header.to_dict()  # type: ignore[no-untyped-call]
    ours = {key: value for key, value in said.items() if value is not None}
    # a key that is the name of a method breaks the card for whoever reads it with huggingface_hub
    more = {key: value for key, value in kept.items() if key not in ours and not hasattr(DatasetCardData, key)}
    shown = yaml.safe_dump(ours | more, sort_keys=False, width=120)
    return f"---\n{shown}---\n\n{_text(manifests, repo_id)}"


def languages(code: str) -> list[str] | None:
    """Return what a card says of a language: the Hub takes ISO 639 alone, so that be-tarask is be."""
    found = re.match(r"([a-z]{2,3})(?:-|$)", code)
    return [found[1]] if found else None


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


def _config(name: str, config: dict[str, Any], default: bool) -> dict[str, Any]:
    files = [{"split": split, "path": f"data/{config['files']}/{split}-*.parquet"} for split in config["splits"]]
    return {"config_name": name, "data_files": files} | ({"default": True} if default else {})


def _info(name: str, config: dict[str, Any]) -> dict[str, Any]:
    splits = [
        {"name": split, "num_bytes": files["num_bytes"], "num_examples": files["num_examples"]}
        for split, files in config["splits"].items()
    ]
    schema = SCHEMAS[config["files"].split("-")[0]]
    return {
        "config_name": name,
        "features": datasets.Features.from_arrow_schema(schema)._to_yaml_list(),
        "splits": splits,
        "download_size": sum(f["size"] for files in config["splits"].values() for f in files["files"]),
        "dataset_size": sum(split["num_bytes"] for split in splits),
    }


def _text(manifests: list[Manifest], repo_id: str | None) -> str:
    newest = manifests[-1]
    interval = newest["interval"]
    short = next(c["short_name"] for n, c in newest["configs"].items() if n.startswith("diffset-"))
    rows = "\n".join(_interval_row(manifest, repo_id is not None) for manifest in reversed(manifests))
    revision = f', revision="{newest["tag"]}"' if repo_id else ""
    revisions = (" revision |", "---|") if repo_id else ("", "")
    path = repo_id or "temporalwiki"
    return f"""# TemporalWiki: what changed between two snapshots

Text that is new in Wikipedia between two snapshots, and facts of Wikidata that changed or did not change in
between, for training and evaluating language models that are kept up to date. It follows TemporalWiki (EMNLP
2022), built anew from the dumps of {interval["wiki"]} and Wikidata.

```python
from datasets import load_dataset

diffset = load_dataset("{path}", "{short}"{revision})  # the newest interval
probes = load_dataset("{path}", "{short.replace("diffset", "probes")}"{revision})
```

A short name such as `{short}` means the newest interval with those months; the full name never changes.
{_REVISIONS if repo_id else ""}
| interval |{revisions[0]} articles in the diffset | words | probes: unchanged | changed | deleted |
|---|{revisions[1]}---:|---:|---:|---:|---:|
{rows}

## Configs

| config | one row is |
|---|---|
{_kinds(manifests)}

## Columns

Texts (`diffset`, `deletions`, `unchanged`, `wikipedia`):

| column | what it is |
|---|---|
| `id`, `title`, `url` | the page |
| `text` | paragraphs with a blank line between them; the items of a list on lines of their own |
| `kind` | `new` or `updated`; `deleted` for a page that is no article any more |
| `revision_id`, `timestamp` | the revision in the later snapshot; of a deleted page null and the earlier time |
| `previous_revision_id` | its revision in the earlier snapshot; null if that has no such page |
| `paragraphs` | how many `text` holds |

Facts (`probes`, `lighttuning`):

| column | what it is |
|---|---|
| `subject`, `relation`, `object` | labels; `subject_id`, `relation_id`, `object_id` are their Wikidata ids |
| `kind` | changed: `new_subject`, `new_relation`, `new_object`; deleted: `replaced`, `ended`, `removed`; `unchanged` |
| `previous_objects` | of `new_object`: labels of what the relation had before |
| `statement_id` | the statement in Wikidata |
| `page_id`, `page_revision_id`, `title` | the subject's article |
| `evidence` | the sentence of it that holds the object's label |

`facts` has five more: `current` (it holds at the later dump's date: of best rank, begun and not ended), `objects`
(labels of all that is right then for the subject and the relation), `gone_objects` (what was right at the earlier
dump's date and is not any more), `start_time` and `end_time` as Wikidata has them.

## Counts

Seed {newest["options"]["seed"]}; of the unchanged facts a share of {newest["options"]["unchanged_fraction"]:g} is
sampled.

{_categories(newest)}

## Sources

{_sources(newest)}

Every count, every drop by reason and the SHA-1 of each input stand in `manifests/`.
{_warnings(manifests)}

## Limits

Text is what Wikipedia said at the dates of the snapshots, with its errors and its biases; a sentence that was
reworded counts as new. A fact counts as changed when Wikidata changed, which may be long after the world did, or
because an editor added what was always true. Names of living people occur, as they do in Wikipedia.

## Licence

Text: CC BY-SA 4.0, by the contributors to Wikipedia (`url` and `revision_id` name the page's history). Facts: CC0.

## Citation

```bibtex
@inproceedings{{jang2022temporalwiki,
  title = {{TemporalWiki: A Lifelong Benchmark for Training and Evaluating Ever-Evolving Language Models}},
  author = {{Jang, Joel and Ye, Seonghyeon and Lee, Changho and Yang, Sohee and Shin, Joongbo and Han, Janghoon
            and Kim, Gyeonghun and Seo, Minjoon}},
  booktitle = {{EMNLP}},
  year = {{2022}}
}}
```
"""


def _kinds(manifests: list[Manifest]) -> str:
    offered = {name.split("-")[0] for manifest in manifests for name in manifest["configs"]}
    return "\n".join(f"| `{kind}-*` | {row} |" for kind, row in _ROWS.items() if kind in offered)


def _interval_row(manifest: Manifest, tagged: bool) -> str:
    interval, counts = manifest["interval"], manifest["counts"]
    tag = f" `{manifest['tag']}` |" if tagged else ""
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
        f"- {manifest['interval']['prev']} to {manifest['interval']['recent']}: {html.escape(_one_line(warning))}"
        for manifest in manifests
        for warning in manifest["warnings"]
    ]
    return "\n## Warnings\n\n" + "\n".join(found) + "\n" if found else ""


def _sources(manifest: Manifest) -> str:
    files = [(_one_line(source["file"]).replace("`", "'"), source["size"]) for source in manifest["inputs"]]
    return "\n".join(f"- `{file}`, {size:,} bytes" for file, size in files)


def _one_line(text: str) -> str:
    return " ".join(text.split())
