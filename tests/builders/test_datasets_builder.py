"""The ``datasets`` builders give what the folders hold."""

import json
from pathlib import Path

import datasets
import pyarrow as pa
import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.datasets_builder import CKL, TemporalWiki, _tables
from temporalwiki.builders.parquet import ParquetWriter

from tiny_dumps import (
    articles_file,
    item,
    multistream,
    page,
    property_,
    statement,
    value,
    wikidata_file,
    write_wikidata,
)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    dumps = tmp_path / "dumps"
    multistream(articles_file(dumps, "20211101"), [page(1, "Ann", "Ann lives.", revision_id=1)])
    multistream(articles_file(dumps, "20211201"), [page(1, "Ann", "Ann lives in Oslo.", revision_id=2)])
    write_wikidata(wikidata_file(dumps, "20211101"), [item(1, label="Ann", title="Ann")])
    oslo, home = item(2, label="Oslo"), property_(551, "residence")
    ann = item(1, {"P551": [statement(value(2))]}, label="Ann", title="Ann")
    write_wikidata(wikidata_file(dumps, "20211129"), [ann, oslo, home])
    return dumps


def builder(config: str, dumps: Path, **fields: object) -> TemporalWiki:
    where = {"cache_dir": str(dumps.parent / "cache"), "work": str(dumps.parent / "work")}
    return TemporalWiki(config, dumps=str(dumps), prev="20211101", recent="20211201", **where, **fields)


def test_a_config_is_built_and_loaded(dumps: Path) -> None:
    made = builder("probes", dumps)
    made.download_and_prepare()
    probes = made.as_dataset()
    assert isinstance(probes, datasets.DatasetDict)
    assert list(probes) == ["changed"]  # no rows in the others
    [row] = probes["changed"]
    assert (row["subject"], row["relation"], row["object"]) == ("Ann", "residence", "Oslo")
    assert row["evidence"] == "Ann lives in Oslo."


def test_other_dumps_or_options_are_another_dataset_in_the_cache(dumps: Path) -> None:
    first = builder("diffset", dumps)
    assert builder("diffset", dumps).cache_dir == first.cache_dir
    for option in ({"seed": 1}, {"compare": "exact"}, {"caps": None}):
        assert builder("diffset", dumps, **option).cache_dir != first.cache_dir
    multistream(articles_file(dumps, "20211201"), [page(1, "Ann", "Ann lives in Bergen.", revision_id=2)])
    assert builder("diffset", dumps).cache_dir != first.cache_dir


def test_an_unknown_config_or_a_missing_dump_is_refused(dumps: Path) -> None:
    with pytest.raises(InputError, match="there are diffset"):
        builder("diffsets", dumps)
    with pytest.raises(InputError, match="no such dump"):
        TemporalWiki("diffset", dumps=str(dumps), prev="20211001", recent="20211201")


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def ckl(config: str, folder: Path, **fields: object) -> CKL:
    return CKL(config, cache_dir=str(folder / "cache"), work=str(folder / "work"), **fields)


def write_lama(folder: Path, subject: str) -> None:
    templates: list[dict[str, object]] = [{"relation": name, "template": "[X] : [Y] ."} for name in RELATIONS]
    write_jsonl(folder / "relations.jsonl", templates)
    for relation in RELATIONS:
        fact = {"predicate_id": relation, "uuid": relation, "sub_label": subject, "obj_label": "Oslo"}
        write_jsonl(folder / "TREx" / f"{relation}.jsonl", [fact, fact | {"obj_label": "oslo"}])


def test_ckl_is_made_of_lama_and_other_files_are_another_dataset_in_the_cache(tmp_path: Path) -> None:
    write_lama(tmp_path / "lama", "Ann")
    first = ckl("invariantlama", tmp_path, lama=str(tmp_path / "lama"))
    first.download_and_prepare()
    rows = first.as_dataset(split="test")
    assert isinstance(rows, datasets.Dataset)
    assert rows["relation_id"][:] == list(RELATIONS)
    assert rows["statement"][:1] == ["Ann : <extra_id_0> ."]
    assert rows.features.arrow_schema.equals(SCHEMAS["invariant"])
    assert ckl("invariantlama", tmp_path, lama=str(tmp_path / "lama")).cache_dir == first.cache_dir
    write_lama(tmp_path / "lama", "Bo")
    assert ckl("invariantlama", tmp_path, lama=str(tmp_path / "lama")).cache_dir != first.cache_dir


def test_a_split_of_ckl_without_rows_is_left_out(tmp_path: Path) -> None:
    kilt = tmp_path / "kilt"
    write_jsonl(kilt / "wned-dev-kilt.jsonl", [{"id": "1", "input": "a [START_ENT] b [END_ENT]", "output": []}])
    write_jsonl(kilt / "wned-test_without_answers-kilt.jsonl", [{"id": "2", "input": "c"}])
    made = ckl("kilt-wned", tmp_path, kilt=str(kilt))
    made.download_and_prepare()
    loaded = made.as_dataset()
    assert isinstance(loaded, dict)
    assert {split: rows["id"][:] for split, rows in loaded.items()} == {"test": ["2"]}  # no answer: dropped
    write_jsonl(kilt / "wned-test_without_answers-kilt.jsonl", [])
    with pytest.raises(InputError, match="kilt-wned: no rows; of 1 read, dropped"):
        ckl("kilt-wned", tmp_path, kilt=str(kilt)).download_and_prepare()


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("updatedlma", {}, "did you mean updatedlama"),
        ("kilt", {}, "kilt is several configs; name one of them"),
        ("newlama-1112", {}, "--probes"),
        ("recentnews", {"news": "crawl", "options": {"langauge": "en"}}, "did you mean language"),
        ("recentnews", {"news": "crawl", "past": "old"}, "it cannot be built from --news and --past"),
        ("invariantlama", {"options": {"language": "en"}}, "invariantlama has no options of its own"),
    ],
)
def test_what_cannot_be_asked_of_ckl_is_refused(
    name: str, fields: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        ckl(name, tmp_path, **fields).download_and_prepare()


def test_a_row_group_is_one_table(tmp_path: Path) -> None:
    """The limit for the files of strangers would make tables of a few rows."""
    with ParquetWriter(tmp_path / "file", pa.schema({"text": pa.string()}), rows=2000) as file:
        for number in range(3000):
            file.write({"text": f"{number:04}" * 1000}, size=4000)
    tables = list(_tables([str(tmp_path / "file")] * 2))
    rows = {(file, group): (2000, 1000)[group] for file in (0, 1) for group in (0, 1)}
    assert [(key, table.num_rows) for key, table in tables] == list(rows.items())
