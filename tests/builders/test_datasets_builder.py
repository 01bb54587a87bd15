"""The ``datasets`` builder gives what the folder holds."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from temporalwiki.builders.datasets_builder import TemporalWiki
from temporalwiki.builders.errors import InputError

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
    assert builder("diffset", dumps, seed=1).cache_dir != first.cache_dir
    multistream(articles_file(dumps, "20211201"), [page(1, "Ann", "Ann lives in Bergen.", revision_id=2)])
    assert builder("diffset", dumps).cache_dir != first.cache_dir


def test_an_unknown_config_or_a_missing_dump_is_refused(dumps: Path) -> None:
    with pytest.raises(InputError, match="there are diffset"):
        builder("diffsets", dumps)
    with pytest.raises(InputError, match="no such dump"):
        TemporalWiki("diffset", dumps=str(dumps), prev="20211001", recent="20211201")
