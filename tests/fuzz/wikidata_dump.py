"""A Wikidata dump: every line is an entity or counted as dropped, for pieces of any size."""

import shutil
import zlib
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.wikidata.extract import EntityExtractTask, lines, run
from temporalwiki.builders.wikidata.extract import check as check_reports

from fuzz import wikidata_json
from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate

SEEDS = (
    b"[\n" + b",\n".join(wikidata_json.SEEDS) + b"\n]\n",
    b"[" + wikidata_json.SEEDS[0] + b"]",
    wikidata_json.SEEDS[0] + b"\n" + wikidata_json.SEEDS[0] + b",\r\n\n",
    b"[\n]\n",
)
WORDS = (*wikidata_json.WORDS, b"\n", b",\n", b"[\n", b"\n]", b"]", b"}]", b"\r\n", b"\xef\xbb\xbf", b"\n\n", b" ")
LONGEST = 8192


def check(data: bytes) -> None:
    path = file("wikidata.json", data)
    chosen = zlib.crc32(data)
    task = EntityExtractTask(0, str(path), 0, None, "enwiki", "en", bool(chosen & 1))
    one = _run(task)
    with mock.patch.object(streams, "OUT", 1 + chosen % 97):
        assert _run(task) == one, "pieces of another size give another result"
        found = list(lines(task)) if data else []
    rest = data.removesuffix(b"\n").split(b"\n") if data else []
    assert [line for _, line in found] == rest, "other lines than the file has"
    assert all(data.startswith(line, place) for place, line in found), "lines that stand elsewhere"
    if isinstance(one, str):
        return
    report, rows = one
    counted = report["entities"]
    texts = [text for line in rest if (text := line.strip())]
    texts[:1] = [text.removeprefix(b"[") for text in texts[:1]]
    entities = sum(1 for text in texts if text not in (b"", b",", b"]"))
    assert counted["items"] + counted["properties"] + sum(counted["dropped"].values()) == entities, "a line is lost"
    statements = report["statements"]
    assert rows["facts"] == statements["facts"] + statements["not_best_rank"], "a fact is lost"
    assert rows["entities"] == counted["items"] and rows["properties"] == counted["properties"]


def _run(task: EntityExtractTask) -> tuple[dict[str, Any], dict[str, int]] | str:
    out = folder() / "extract"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    try:
        report = run(task, out)
        check_reports(out, [report], task.allow_truncated)
    except InputError as error:
        assert "\n" not in str(error), f"not one line: {error}"
        return str(error)
    tables = ("facts", "entities", "properties")
    rows = {table: sum(pq.read_metadata(path).num_rows for path in out.glob(f"{table}-*")) for table in tables}
    return report, rows
