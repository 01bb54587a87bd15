"""The dataset card of imported intervals, with and without built ones, and the header of many months."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.schemas import SCHEMAS as CKL_SCHEMAS
from temporalwiki.builders.configs import SCHEMAS, SPLITS, names
from temporalwiki.builders.dataset_folder import write_split
from temporalwiki.builders.finish import ALWAYS
from temporalwiki.builders.manifests import BuiltManifest, DataFile, ImportedManifest, Split, checked_as
from temporalwiki.builders.snapshot import Interval
from temporalwiki.model_cards import dataset_header
from temporalwiki.model_cards.dataset import dataset_card

from a_month import article, probe, stage_month

MONTH = "20210801-20210901"


def imported(folder: Path, file: str = "TWiki_Probes.zip", reason: str = "no text") -> dict[str, Any]:
    def config(kind: str, **splits: list[dict[str, Any]]) -> dict[str, Any]:
        name = f"{kind}-20210801-20210901"
        written = {split: vars(write_split(folder, name, split, rows)) for split, rows in splits.items()}
        return {name: {"short_name": f"{kind}-0809", "splits": written}}

    def counted(kept: int) -> dict[str, Any]:
        return {"read": kept + 1, "kept": kept, "dropped": {reason: 1}}

    return {
        "imported": True,
        "interval": {"wiki": "enwiki", "language": "en", "prev": "20210801", "recent": "20210901"},
        "inputs": [{"config": "probes-20210801-20210901", "file": file, "member": None, "size": 1234, "sha1": "x"}]
        * 2,
        "counts": {
            "probes-20210801-20210901": {"changed": counted(1), "unchanged": counted(2)},
            "diffset-20210801-20210901": {"train": counted(3)},
        },
        "warnings": [],
        "configs": config("probes", unchanged=[probe(1), probe(2)], changed=[probe(3)])
        | config("diffset", train=[article(1), article(2), article(3)]),
    }


def card_of(*manifests: dict[str, Any]) -> str:
    return dataset_card(
        [checked_as(ImportedManifest if one.get("imported") else BuiltManifest, one, "manifest") for one in manifests]
    )


def header(card: str) -> Any:
    return yaml.safe_load(card.split("---\n")[1])


def test_the_card_of_an_imported_interval(tmp_path: Path) -> None:
    card = card_of(imported(tmp_path))
    assert header(card)["license"] == ["unknown"]
    assert [config["config_name"] for config in header(card)["configs"]] == [
        "diffset-20210801-20210901",
        "probes-20210801-20210901",
        "diffset-0809",
        "probes-0809",
    ]
    assert "imported from the archives that its authors released" in card
    assert "built from" not in card and "## Counts" not in card and "The seed" not in card
    assert "| 20210801 to 20210901 (imported) | 3 |  | 2 | 1 |  |" in card
    assert "| `probes-20210801-20210901` | unchanged | 3 | 2 | 1: no text |" in card
    assert card.count("`TWiki_Probes.zip`, 1,234 bytes") == 1
    assert 'probes = load_dataset("temporalwiki", "probes-0809")' in card
    assert "never published" in card


def test_probes_alone(tmp_path: Path) -> None:
    manifest = imported(tmp_path)
    del manifest["configs"]["diffset-20210801-20210901"]
    card = card_of(manifest)
    assert not any(config.get("default") for config in header(card)["configs"])
    assert 'probes = load_dataset("temporalwiki", "probes-0809")  # the newest interval' in card
    assert "diffset =" not in card
    assert "| 20210801 to 20210901 (imported) |  |  | 2 | 1 |  |" in card


@pytest.mark.fault(
    "hostile JSON", "the manifest of an import has no count of a split or of a config", "refused in one line"
)
def test_an_imported_manifest_counts_every_split(tmp_path: Path) -> None:
    for path in (["probes-20210801-20210901", "changed"], ["diffset-20210801-20210901"]):
        manifest = imported(tmp_path)
        part = manifest["counts"]
        for name in path[:-1]:
            part = part[name]
        del part[path[-1]]
        with pytest.raises(InputError, match=f"^manifest: .*has no count of '[a-z]+' of {path[0]}"):
            card_of(manifest)


def test_of_what_was_imported_alone_no_licence_and_no_absent_config_is_spoken_of(tmp_path: Path) -> None:
    manifest = imported(tmp_path)
    card = card_of(manifest)
    assert "CC BY-SA" not in card and "CC0" not in card
    assert "`facts`" not in card
    del manifest["configs"]["diffset-20210801-20210901"]
    card = card_of(manifest)
    assert "Texts (`diffset`" not in card
    assert "Facts (`probes`" in card
    built = stage_month(tmp_path / "built", "20211101", "20211201", [article(1)], [probe(1)])
    both = card_of(imported(tmp_path), built)
    licence = both.split("## Licence\n")[1].split("## Citation")[0]
    assert "Text: CC BY-SA 4.0" in licence and "never published" in licence
    facts = vars(write_split(tmp_path / "built", "facts-20211101-20211201", "changed", [probe(1)]))
    built["configs"]["facts-20211101-20211201"] = {"short_name": "facts-1112", "splits": {"changed": facts}}
    assert "`facts` has these columns" in card_of(built) and "never published" not in card_of(built)


def test_configs_without_rows_are_not_listed(tmp_path: Path) -> None:
    card = card_of(stage_month(tmp_path, "20211101", "20211201", [], [probe(1)]))
    assert "| `probes-20211101-20211201` | `probes-1112` | unchanged 1, changed 1 |" in card
    assert "diffset-20211101-20211201" not in card and "`diffset-*`" not in card and "Texts (" not in card
    assert '= load_dataset("temporalwiki", "probes-1112")  # the newest interval' in card
    card = card_of(stage_month(tmp_path / "empty", "20211101", "20211201", [], []))
    assert "# no config has rows" in card and header(card)["configs"] == []


def test_grades_stand_under_their_names(tmp_path: Path) -> None:
    built = stage_month(tmp_path, "20211101", "20211201", [article(1)], [probe(1)])
    built["counts"]["probes"]["changed"] |= {
        "probes": {  # in the order of a manifest's file
            "dated": {"before": 1, "over": 0, "undated": 3, "within": 5},
            "strict": 6,
            "support": {"list": 3, "mentioned": 2, "stated": 4},
        }
    }
    card = card_of(built)
    assert "|  | `stated` | `list` | `mentioned` | `within` | `before` | `over` | `undated` | strict |" in card
    assert "| `probes`, changed | 4 | 3 | 2 | 5 | 1 | 0 | 3 | 6 |" in card


@pytest.mark.parametrize("newer", [True, False])
def test_beside_what_was_built(tmp_path: Path, newer: bool) -> None:
    months = ("20211101", "20211201") if newer else ("20210701", "20210801")
    built = stage_month(tmp_path / "built", *months, [article(1)], [probe(1)])
    manifests = [imported(tmp_path), built]
    card = card_of(*(manifests if newer else manifests[::-1]))
    assert header(card)["license"] == ["cc-by-sa-4.0", "cc0-1.0", "unknown"]
    assert "built from the dumps of enwiki and Wikidata.\nIntervals marked as imported come from" in card
    assert "(imported) | 3 |  | 2 | 1 |  |" in card
    assert f"| {months[0]} to {months[1]} | 1 | 7 |" in card
    assert "The seed is 0." in card and "`enwiki/a.bz2`, 5 bytes" in card
    [default] = [config["config_name"] for config in header(card)["configs"] if config.get("default")]
    assert default == ("diffset-20211101-20211201" if newer else "diffset-20210801-20210901")


def test_names_and_reasons_are_data(tmp_path: Path) -> None:
    card = card_of(imported(tmp_path, "`x`\n---\n</script> | {{a}}.zip", "<script>\n| x |"))
    assert len(header(card)["dataset_info"]) == 2
    assert "<script>" not in card
    [line] = [line for line in card.splitlines() if "1,234 bytes" in line]
    assert line == "- `'x' --- </script> ∣ {{a}}.zip`, 1,234 bytes"
    assert "| `diffset-20210801-20210901` | train | 4 | 3 | 1: &lt;script&gt; \\| x \\| |" in card.splitlines()


@pytest.mark.parametrize("room", [dataset_header._LARGEST, 0])
def test_what_the_card_says_of_the_columns_is_what_loads(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_header, "_LARGEST", room)
    card = card_of(imported(tmp_path))
    infos = header(card).get("dataset_info", [])
    assert [info["config_name"] for info in infos] == (["diffset-" + MONTH, "probes-" + MONTH] if room else [])
    (tmp_path / "README.md").write_text(card, "utf-8")
    for name in ("probes-0809", f"probes-{MONTH}"):
        loaded = datasets.load_dataset(str(tmp_path), name, cache_dir=str(tmp_path / "cache"))
        assert {split: len(rows) for split, rows in loaded.items()} == {"unchanged": 2, "changed": 1}
        streamed = datasets.load_dataset(str(tmp_path), name, split="changed", streaming=True)
        columns = datasets.Features.from_arrow_schema(SCHEMAS["probes"])
        assert loaded["changed"].features == streamed.features == columns


def test_a_warning_stands_above_all_else(tmp_path: Path) -> None:
    card = card_of(imported(tmp_path) | {"warnings": ["the demo | invented it"]})
    assert card.index("> **Warning:** the demo \\| invented it\n") < card.index("Text that Wikipedia gained")


def months(count: int) -> dict[str, dataset_header.CardConfig]:
    """The configs of months in a row, under their full and short names, as a card lists them."""
    dates = [f"{2021 + number // 12}{number % 12 + 1:02}01" for number in range(count + 1)]
    full, short = {}, {}
    for prev, recent in pairwise(dates):
        interval = Interval("enwiki", prev, recent)
        for kind in ALWAYS:
            name, alias = names(kind, interval)
            rows = Split(10_000, 10_000_000, [DataFile(f"data/{name}/x.parquet", 5_000_000, "0" * 64)])
            full[name] = dataset_header.CardConfig(name, SCHEMAS[kind], dict.fromkeys(SPLITS[kind], rows))
            short[alias] = full[name]
    return full | short


@pytest.mark.parametrize(("count", "described"), [(1, 1), (6, 6), (60, 1)])
def test_the_header_of_five_years_has_all_names_and_at_most_100_kb(count: int, described: int) -> None:
    configs = months(count)
    text = dataset_header.header(configs, {})
    assert len(text.encode()) < 100_000
    found = yaml.safe_load(text.split("---\n")[1])
    assert [config["config_name"] for config in found["configs"]] == list(configs)
    infos = [info["config_name"] for info in found["dataset_info"]]
    newest = {config.folder for config in list(configs.values())[: count * len(ALWAYS)][-described * len(ALWAYS) :]}
    assert set(infos) >= newest
    assert all(name == configs[name].folder for name in infos)  # a short name has the columns of its files
    assert text.count("\n") < 34 * count * len(ALWAYS)  # a line a column


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), *CKL_SCHEMAS.values()])
def test_columns_are_named_as_datasets_names_them(schema: pa.Schema) -> None:
    card = dataset_header.header({"one": dataset_header.CardConfig("one", schema, {})}, {})
    [info] = header(card)["dataset_info"]
    assert info["features"] == datasets.Features.from_arrow_schema(schema)._to_yaml_list()
