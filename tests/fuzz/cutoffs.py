"""The result of `temporalwiki cutoff`: it is refused in one line, or the leaderboard shows it."""

import json

from temporalwiki.base.errors import InputError
from temporalwiki.builders.after_cutoff import read_after
from temporalwiki.eval_harness.leaderboard.cutoffs import read_cutoffs
from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.tables import write_tables

from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate

_OVERALL = {"verdict": "found", "cutoff": "2021-03", "low": "2021-02", "high": "2021-05"}
_CUTOFF = {"model": "m", "data": "d", "evidence": {"facts": 3}, "curve": [{"month": "2021-01", "known": 0.5}]}
SEEDS = (json.dumps(_CUTOFF | {"overall": _OVERALL, "topics": {}}).encode(),)
WORDS = (
    b'"verdict":',
    b'"after the data"',
    b'"before the data"',
    b'"cannot tell"',
    b'"forms":',
    b"2021-13",
    b"0000-01",
)


def check(data: bytes) -> None:
    path = file("cutoffs/m/cutoff.json", data)
    try:
        found = read_cutoffs(folder() / "cutoffs")
        page = write_page([], {}, write_tables([], folder() / "tables", found), folder() / "page").read_text("utf-8")
        assert len(found) == 1 and "<script>x" not in page, "what a cutoff says is part of the page's code"
        read_after(str(path))
    except InputError as error:
        said = str(error)
        assert str(path) in said and "\n" not in said and len(said) < 2000 + len(data), f"not one line: {said}"
