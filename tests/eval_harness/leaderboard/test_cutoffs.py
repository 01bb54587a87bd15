"""The cutoffs of a leaderboard's models: read, as a table, as a timeline and on the page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import Rectangle

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.cutoffs import KnownUpTo, read_cutoffs
from temporalwiki.eval_harness.leaderboard.figures import TIMELINE
from temporalwiki.eval_harness.leaderboard.figures.style import NARROW, WIDTH
from temporalwiki.eval_harness.leaderboard.rows import read_parquet
from temporalwiki.eval_harness.leaderboard.tables import cutoffs_table
from temporalwiki.eval_harness.leaderboard.write import write_leaderboard
from temporalwiki.eval_harness.results import read_results
from temporalwiki.model_cards.space import space_card

from a_figure import check_texts
from a_result import facts, write_probes

Run = Callable[..., tuple[int, str, str]]

JANUARY = 2021 * 12  # 2021, as months are counted
NOTHING = dict.fromkeys(("cutoff", "low", "high"))


def write(path: Path, model: str, verdict: str, **more: Any) -> None:
    """Write a result of `temporalwiki cutoff` on a year of data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    months = {name: more.pop(name, None) for name in NOTHING}
    curve = [{"month": f"2021-{month:02}", "known": 0.5} for month in range(1, 13)]
    known = {"data": "ORG/temporalwiki", "evidence": {"facts": 1200, "text": 400}, "curve": curve, "topics": {}}
    path.write_text(json.dumps({**known, "model": model, "overall": {"verdict": verdict, **months}, **more}))


def write_all(folder: Path) -> None:
    write(folder / "cutoff.json", "unsure", "cannot tell", evidence={})
    write(folder / "a" / "cutoff.json", "org/early", "before the data", high="2021-02")
    june = {"cutoff": "2021-06", "low": "2021-05", "high": "2021-08", "data": "/home/anna/data"}
    write(folder / "b" / "cutoff.json", "/home/anna/runs/lora", "found", **june)
    write(folder / "c" / "cutoff.json", "org/late", "after the data", low="2021-11")
    september = dict.fromkeys(NOTHING, "2021-09")
    write(folder / "d" / "cutoff.json", "org/newer", "found", **september, evidence={"facts": 30}, curve=[])
    write(folder / "e" / "cutoff.json", "org/bounded", "cannot tell", high="2021-03", evidence={"answers": 30})
    write(folder / "d" / "other.json", "other", "cannot tell")


BOTH, WIKI, YEAR = "1,200 facts, 400 sentences", "ORG/temporalwiki", "2021-01 to 2021-12"
LINES = [
    ("org/late", "after the data", "from 2021-11", BOTH, WIKI, YEAR),
    ("org/newer", "2021-09", "2021-09", "30 facts", WIKI, ""),
    ("lora", "2021-06", "2021-05 to 2021-08", BOTH, "data", YEAR),
    ("org/early", "before the data", "up to 2021-02", BOTH, WIKI, YEAR),
    ("org/bounded", "cannot tell", "up to 2021-03", "30 answers", WIKI, YEAR),
    ("unsure", "cannot tell", "", "", WIKI, YEAR),
]


def test_a_line_for_each_model_the_newest_knowledge_first(tmp_path: Path) -> None:
    write_all(tmp_path)
    table = cutoffs_table(read_cutoffs(tmp_path))
    assert table is not None
    assert table.columns == ("model", "cutoff", "95 % interval", "evidence", "data", "months of the data")
    assert list(table.lines) == LINES


def test_older_results_do_not_say_their_data(tmp_path: Path) -> None:
    path = tmp_path / "a" / "cutoff.json"
    write(path, "a", "cannot tell")
    content = json.loads(path.read_text())
    path.write_text(json.dumps({name: content[name] for name in ("model", "overall", "curve")}))
    curve = {JANUARY + month: 0.5 for month in range(12)}
    known = KnownUpTo("a", "cannot tell", None, None, None, "", "", JANUARY, JANUARY + 11, curve)
    assert read_cutoffs(tmp_path) == [known]


DAMAGED: dict[str, dict[str, Any]] = {
    "an unknown verdict": {"verdict": "perhaps"},
    "not a month": {"verdict": "before the data", "high": "2021-13"},
    "the year 0": {"verdict": "before the data", "high": "0000-01"},
    "found without a month": {"verdict": "found"},
    "ends in the wrong order": {"verdict": "found", "cutoff": "2021-03", "low": "2021-04", "high": "2021-05"},
    "cannot tell, with a month": {"verdict": "cannot tell", "cutoff": "2021-03"},
    "no curve": {"verdict": "cannot tell", "curve": None},
    "a share above one": {"verdict": "cannot tell", "curve": [{"month": "2021-01", "known": 1.5}]},
    "a form that is damaged": {"verdict": "cannot tell", "forms": {"open": {"verdict": "found"}}},
    "evidence below zero": {"verdict": "cannot tell", "evidence": {"facts": -1}},
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_named(case: str, tmp_path: Path) -> None:
    path = tmp_path / "a" / "cutoff.json"
    write(path, "a", **DAMAGED[case])
    with pytest.raises(InputError, match=f"^{path}: not a result of `temporalwiki cutoff`; run the command again"):
        read_cutoffs(tmp_path)


# The timeline


def test_a_bar_is_the_interval_and_a_dot_the_cutoff(tmp_path: Path) -> None:
    write_all(tmp_path)
    figure = TIMELINE.draw(read_cutoffs(tmp_path))
    assert figure is not None
    [axes] = figure.axes
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    ends = {round(bar.get_y() + bar.get_height() / 2): (bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars}
    assert ends == {
        0: (JANUARY + 9.5, JANUARY + 11.5),  # from November to the end of the data
        1: (JANUARY + 7.5, JANUARY + 8.5),  # September
        2: (JANUARY + 3.5, JANUARY + 7.5),  # May to August
        3: (JANUARY - 0.5, JANUARY + 1.5),  # up to February
        4: (JANUARY - 0.5, JANUARY + 2.5),  # up to March
    }
    marks = {
        line.get_ydata()[0]: (line.get_xdata()[0], line.get_marker())
        for line in axes.lines
        if len(line.get_xdata()) == 1
    }
    assert marks == {
        0: (JANUARY + 11.5, ">"),
        1: (JANUARY + 8, "o"),
        2: (JANUARY + 5, "o"),
        3: (JANUARY - 0.5, "<"),
        4: (JANUARY - 0.5, "<"),
    }
    assert [text.get_text() for text in axes.get_yticklabels()] == [line[0] for line in LINES]
    assert [(text.get_text(), text.xy[1]) for text in axes.texts] == [("cannot tell", 5)]
    assert figure.get_label() == "The knowledge of 2 of 6 models ends between June and September 2021"


def asked_twice(folder: Path) -> None:
    """Write the cutoff of a model that was asked in two ways, and what it was asked."""
    month = {"low": "2021-05", "high": "2021-08", "verdict": "found"}
    forms = {"open": month | {"cutoff": "2021-06"}, "choice": month | {"cutoff": "2021-08"}}
    curve = [{"month": "2021-01", "known": 1.0}, {"month": "2021-02", "known": 0.0}]
    overall = {"cutoff": "2021-07", "low": "2021-05", "high": "2021-08"}
    write(folder / "a" / "cutoff.json", "m", "found", forms=forms, advertised="2021-10", curve=curve, **overall)
    (folder / "a" / "cutoff_items.csv").write_text("month,form,topic,event,outcome\n")


def test_a_month_is_darker_the_more_of_it_is_known_and_forms_have_their_marks(tmp_path: Path) -> None:
    asked_twice(tmp_path)
    figure = TIMELINE.draw(read_cutoffs(tmp_path))
    assert figure is not None
    [axes] = figure.axes
    cells, *marked = axes.collections
    marks = [tuple(map(float, one.get_offsets()[0])) for one in marked]  # type: ignore[arg-type]
    known, unknown = (sum(colour[:3]) for colour in cells.get_facecolor())
    assert known < unknown
    assert marks == [(JANUARY + 5, 0.3), (JANUARY + 7, 0.3), (JANUARY + 9, 0.0)]
    assert {"open", "choice", "advertised"} <= set(check_texts(figure))
    table = cutoffs_table(read_cutoffs(tmp_path))
    assert table is not None
    assert table.columns[:6] == ("model", "cutoff", "95 % interval", "open", "choice", "advertised")
    assert table.lines[0][:6] == ("m", "2021-07", "2021-05 to 2021-08", "2021-06", "2021-08", "2021-10")
    page, _ = board(tmp_path, tmp_path / "board")
    assert '<a href="../a/cutoff_items.csv"><bdi>m</bdi></a>' in page
    assert "A click on a model opens what it was asked." in page


FINDINGS: dict[str, tuple[list[int | None], str]] = {
    "one": ([JANUARY + 2], "The knowledge of 1 of 1 model ends in March 2021"),
    "the same month": ([JANUARY, JANUARY, None], "The knowledge of 2 of 3 models ends in January 2021"),
    "two years": (
        [JANUARY - 1, JANUARY],
        "The knowledge of 2 of 2 models ends between December 2020 and January 2021",
    ),
    "none": ([None], "The data do not show where the knowledge of a model ends"),
}


@pytest.mark.parametrize("case", FINDINGS)
def test_the_finding(case: str) -> None:
    months, said = FINDINGS[case]
    known = [
        KnownUpTo("m", "found" if at is not None else "cannot tell", at, at, at, "", "", None, None) for at in months
    ]
    figure = TIMELINE.draw(known)
    assert figure is not None
    assert figure.get_label() == said


NAMES = ("W" * 90, "_hidden", "$x^2$ $y$", "</script><b>", "twice", "twice", "😀", "")


@pytest.mark.parametrize("width", [WIDTH, NARROW])
@pytest.mark.parametrize("months", [1, 2, 18, 600])
def test_no_text_is_cut_off_or_lies_over_another(months: int, width: float) -> None:
    last = JANUARY + months - 1
    known = [KnownUpTo(name, "found", last, JANUARY, last, "", "", JANUARY, last) for name in NAMES]
    known.append(KnownUpTo("unsure", "cannot tell", None, None, None, "", "", JANUARY, last))
    figure = TIMELINE.draw(known, width)
    assert figure is not None
    assert "cannot tell" in check_texts(figure)


def test_without_a_cutoff_there_is_nothing() -> None:
    assert TIMELINE.draw([]) is None
    assert cutoffs_table([]) is None


# The leaderboard


def board(folder: Path, out: Path) -> tuple[str, list[str]]:
    """Write a leaderboard; return its page and the messages."""
    said = list(write_leaderboard(read_results(folder), folder, out, space_card))
    return (out / "index.html").read_text("utf-8"), said


def test_the_page_has_a_section_with_table_and_picture(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "board"
    write_probes(results, "probes-0910", {"changed": facts(1, 2, 3)}, name="a")
    write(results / "x" / "cutoff.json", "<b>&amp;", "found", cutoff="2021-06", low="2021-05", high="2021-08")
    page, said = board(results, out)
    section = page[page.index('<section aria-labelledby="cutoffs">') :].partition("</section>")[0]
    assert '<th scope="row"><bdi>&lt;b&gt;&amp;amp;</bdi></th><td><bdi>2021-06</bdi></td>' in section
    assert 'src="./figures/cutoffs.svg"' in section
    assert page.count('src="./figures/cutoffs.svg"') == 1
    assert "tables/cutoffs.csv" in page
    assert '<section aria-labelledby="scores">' in page
    assert "The knowledge of 1 of 1 model ends in June 2021" in section
    assert f"figures: cutoffs in {out / 'figures'}" in said
    for name in ("figures/cutoffs.svg", "figures/cutoffs_narrow.svg", "figures/cutoffs.png", "tables/cutoffs.md"):
        assert (out / name).is_file()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert board(results, out)[0] == page
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    (results / "x" / "cutoff.json").unlink()
    page, _ = board(results, out)
    assert 'id="cutoffs"' not in page
    assert "cutoffs.csv" not in page
    assert not (out / "figures" / "cutoffs.svg").exists()
    assert not (out / "tables" / "cutoffs.md").exists()


def test_cutoffs_alone_are_a_leaderboard_without_the_table_of_scores(tmp_path: Path) -> None:
    write(tmp_path / "results" / "x" / "cutoff.json", "a", "cannot tell")
    page, _ = board(tmp_path / "results", tmp_path / "board")
    assert '<section aria-labelledby="scores" hidden>' in page
    assert read_parquet(tmp_path / "board" / "results.parquet") == []
    board(tmp_path / "results", tmp_path / "board")  # it is written over
