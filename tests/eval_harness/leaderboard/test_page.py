"""The leaderboard's page as a file: its content, escaping of hostile names, and the same bytes every time."""

import base64
import hashlib
import json
import math
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.page.items import ShownFact
from temporalwiki.eval_harness.leaderboard.page.scores import score_text, scores_data
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import write_tables
from temporalwiki.methods import CONTROLS
from temporalwiki.push_scripts.leaderboard import without_results

from a_row import make_row

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "-->",
    "</style><img src=x onerror=window.hacked=1>",
    "\"'><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "\u2028line\u2029",
    "\u202egnp.exe",
    "a|b\nc\r\0d",
    "../../etc/passwd",
    "=cmd()",
    "$title ${data} $$ %s {0}",
    "&lt;b&gt;&amp;",
    "😀",
    "\ud800",
    "",
]
PAGE = Path(__file__).with_name("page.html")
VOID = {"meta", "link", "img", "input", "source"}


class Shown(NamedTuple):
    title: str
    caption: str


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and the text of its scripts and styles."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page.read_text("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def page_of(rows: list[Row], out: Path, **options: Any) -> Elements:
    return Elements(write_page(rows, {}, {}, out, **options))


def everything_named(name: str) -> list[Row]:
    """Rows of the page's first table and of its other scores, with a name in all texts."""
    texts = ("label", "method", "base", "model", "revision", "task", "config", "kind", "test", "measure", "result")
    shown = {"label": name, "method": name, "base": name, "model": name, "config": name, "result": name}
    found = {"task": "learned_and_forgotten", "test": "all", **shown}
    return [
        make_row(test="average"),
        make_row(test="average", **shown),
        make_row(**dict.fromkeys(texts, name)),
        *(make_row(measure=measure, **found) for measure in ("new_known", "old_known")),
    ]


@pytest.mark.fault(
    "hostile titles",
    "names of models and configs that contain markup, on the leaderboard's page",
    "they are shown as text",
)
@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_a_hostile_name_adds_no_element_and_is_whole_in_the_data(tmp_path: Path, name: str) -> None:
    pages = []
    for text in ("plain", name):
        figures, tables = {text: Shown(text, text)}, {text: Shown(text, text)}
        of = {"title": text, "results": "results", "warnings": [text], "datasets": [text]}
        pages.append(Elements(write_page(everything_named(text), figures, tables, tmp_path, **of)))
    page, found = pages
    assert [tag for tag, _ in found.found] == [tag for tag, _ in page.found]
    assert "table" in {tag for tag, _ in found.found}
    assert not found.open[1:]  # all are closed
    for (_, attributes), (_, plain) in zip(found.found, page.found, strict=True):
        assert list(attributes) == list(plain)
    data = json.loads(found.inside["script"][1])
    assert name in {model["name"] for model in data["models"]}
    files = {unquote(file) for board in data["boards"] for file in board["file"]}
    assert name.encode("utf-8", "replace").decode() in files


def test_a_link_is_relative_or_to_the_hub(tmp_path: Path) -> None:
    rows = [row for name in HOSTILE for row in everything_named(name)]
    page = Elements(write_page(rows, {name: Shown(name, name) for name in HOSTILE}, {}, tmp_path, results=".."))
    links = [link["href"] or "" for link in page.all("a")] + [link["srcset"] or "" for link in page.all("source")]
    ours = {link for link in links if re.fullmatch(r"https://(arxiv\.org/abs|github\.com/ORG)/[a-z0-9./#]+", link)}
    assert len(ours) == 4
    assert all(re.fullmatch(r"#[a-z-]+\d*|\.[!-~]*", link) for link in links if link not in ours), links


@pytest.mark.parametrize(
    ("model", "revision", "card"),
    [
        ("acme/gpt2", "0123456789" * 4, "https://huggingface.co/acme/gpt2"),
        ("gpt2", "a" * 40, "https://huggingface.co/gpt2"),
        ("acme/lora", f"{'a' * 40}+{'b' * 40}", "https://huggingface.co/acme/lora"),
        ("lora", f"0123456789abcdef+{'b' * 40}", None),
        ("models/diff-0910", "0123456789abcdef", None),  # a folder: its revision is a hash of its files
        ("acme/gpt2", "0123456789abcdef+" + "a" * 40, None),  # an adapter in a folder
        ("../acme/gpt2", "a" * 40, None),
        ("/acme/gpt2", "a" * 40, None),
        ("acme/gpt2/x", "a" * 40, None),
        ("acme/gpt2?x", "a" * 40, None),
        ("javascript:1", "a" * 40, None),
        ("äcme/gpt2", "a" * 40, None),
    ],
)
def test_the_card_of_a_model_of_the_hub_alone(model: str, revision: str, card: str | None) -> None:
    assert scores_data([make_row(model=model, revision=revision)], None)["models"][0]["card"] == card


def test_scores_that_others_reported_are_apart_and_lead_to_their_source(tmp_path: Path) -> None:
    source = "https://example.org/?a=1&b=<c>"
    theirs = {"label": "acme/x (reported by others)", "model": "acme/x", "revision": "", "result": "", "month": None}
    theirs |= {"measure": "exact_match", "higher_is_better": True, "method": None, "competes": False}
    rows = [*some_rows(), make_row(**theirs, reported=source, low=None, high=None)]
    before = write_page(some_rows(), {}, write_tables(some_rows(), tmp_path), tmp_path).read_text("utf-8")
    page = write_page(rows, {}, write_tables(rows, tmp_path), tmp_path)
    links = [link for link in Elements(page).all("a") if link["href"] == source]
    assert [link["rel"] for link in links] == ["noopener nofollow"]
    assert "cutoffs grey" in {table.get("class") for table in Elements(page).all("table")}
    texts = before, page.read_text("utf-8")
    ranking = [text_between(text, '<section aria-labelledby="ranking"', "</section>") for text in texts]
    assert ranking[0] == ranking[1]
    [model] = [one for one in json.loads(Elements(page).inside["script"][1])["models"] if one["reported"]]
    assert (model["reported"], model["card"], model["month"]) == (source, "https://huggingface.co/acme/x", "not known")


def test_the_policy_allows_this_script_and_style_and_no_other(tmp_path: Path) -> None:
    page = page_of([make_row()], tmp_path)
    policy = next(meta["content"] or "" for meta in page.all("meta") if "content" in meta and "http-equiv" in meta)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == digest(page.inside["script"][0])
    assert rules["style-src"] == digest(page.inside["style"][0])
    assert not re.search("http|unsafe|[*]", policy)
    loaded = [link.get("src") or link.get("href") for tag in ("script", "link", "img") for link in page.all(tag)]
    assert set(loaded) == {None, "data:,"}


def test_the_picture_of_known_facts_is_the_preview(tmp_path: Path) -> None:
    figures = {name: Shown(f"Title of {name}", "x") for name in ("fuar", "learned_and_forgotten")}
    page = Elements(write_page(known("diff", 61, 70), figures, {}, tmp_path))
    about = {meta["property"]: meta["content"] for meta in page.all("meta") if "property" in meta}
    assert about["og:image"] == "./figures/learned_and_forgotten.png"
    assert about["og:title"] == "Diff knows 61 % of new facts and 70 % of old ones"
    assert next(image["src"] for image in page.all("img")) == "./figures/learned_and_forgotten.svg"
    assert "og:image" not in write_page([make_row()], {}, {}, tmp_path).read_text("utf-8")


def known(label: str, new: float, old: float, **of: Any) -> list[Row]:
    of = {"task": "learned_and_forgotten", "test": "all", "label": label, "method": label, **of}
    of = {"higher_is_better": True, "control": label in CONTROLS, **of}
    return [
        make_row(measure=measure, value=value, low=value - 5, high=value + 5, **of)
        for measure, value in (("new_known", new), ("old_known", old), ("chance", 17.0))
    ]


def some_rows() -> list[Row]:
    """Two methods and the start model in two months."""
    rows = known("diff", 41, 80, month="20211001-20211101", tested="20211001-20211101")
    month = {"month": "20211101-20211201", "tested": "20211101-20211201"}
    first, second = {"rank_best": 1, "rank_worst": 1}, {"rank_best": 2, "rank_worst": 2}
    rows += known("diff", 31, 88, runs=3, spread=1.5, result="d.json", **month, **second)
    rows += known("mix_review", 61, 72, **month, **first) + known("shuffled", 18, 60, competes=False, **month)
    return rows + known("initial", 4, 73, competes=False, **month | {"month": None}, result="i.json")


def test_the_page_is_the_one_that_was_looked_at(tmp_path: Path) -> None:
    """All but its head, script and scores: banner, links, methods by month, figures, tables."""
    figures = {name: Shown(f"Title of {name}", "Gained & lost") for name in ("learned_and_forgotten", "fuar")}
    warnings = ["<b> & `<c>`, `small", "the second one"]
    items = {"d.json": {"a": ShownFact("a", "changed", "Ann head of", "</b>", "Bo", 0.0, None)}}
    more: dict[str, Any] = {"warnings": warnings, "datasets": ["acme/wiki"], "results": "../results", "items": items}
    page = write_page(some_rows(), figures, {"ckl": Shown("CKL", "x")}, tmp_path, **more).read_text("utf-8")
    assert text_between(page, "<body>", '<script type="application/json"') == PAGE.read_text("utf-8")
    bare = write_page([make_row()], {}, {}, tmp_path).read_text("utf-8")
    assert 'class="notice"' not in bare and "Figures" not in bare


def text_between(text: str, begin: str, end: str) -> str:
    return text[text.index(begin) : text.index(end, text.index(begin))]


def test_without_known_facts_it_says_what_to_add_and_ranks_nothing(tmp_path: Path) -> None:
    ranked = {"rank_best": 1, "rank_worst": 1}
    rows = [make_row(label="initial", method="initial", month=None, value=200.0), make_row(**ranked)]
    page = write_page(rows, {}, {}, tmp_path)
    assert "add learned_and_forgotten to the tasks" in page.read_text("utf-8")
    assert "methods" not in {table.get("class") for table in Elements(page).all("table")}
    assert json.loads(Elements(page).inside["script"][1])["ranked"] is False  # the script leaves the column out


@pytest.mark.parametrize("results", ["../results", ".", "..", "tables", "/home/alice", "/", *filter(None, HOSTILE)])
def test_a_page_that_goes_elsewhere_is_one_that_never_had_results(tmp_path: Path, results: str) -> None:
    rows = [row for name in ('{"results":"x",', "a</a>", *HOSTILE) for row in everything_named(name)]
    shown = {"tables": Shown('{"results":"x",', '<span class="value"><a href="x">y</a>')}
    with_, without = (
        write_page(rows, shown, shown, tmp_path, results=of).read_text("utf-8") for of in (results, None)
    )
    assert with_ != without
    assert without_results(with_) == without_results(without) == without


def test_no_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no scores"):
        write_page([], {}, {}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_order_of_rows_means_nothing(tmp_path: Path) -> None:
    rows = [
        make_row(label=label, month=month, method=method, tested=tested, task=task, test=test, config=tested or "x")
        for label, month, method in (("initial", None, None), ("diff", "0910", "diff"), ("diff", "1011", "diff"))
        for tested in ("0910", "1011", None)
        for task in ("twiki_probes", "lama")
        for test in ("changed", "unchanged")
    ]
    first = write_page(rows, {}, {}, tmp_path).read_bytes()
    random.Random(0).shuffle(rows)
    assert write_page(rows, {}, {}, tmp_path).read_bytes() == first


@pytest.mark.parametrize(
    ("scores", "first"),
    [
        (["learned_and_forgotten/all/new_known", "twiki_probes/average/perplexity", "deleted/all/chance"], 0),
        (["deleted/all/let_go", "twiki_probes/average/perplexity", "twiki_probes/changed/perplexity"], 1),
        (["kilt/all/f1", "lama/all/f1"], 0),
    ],
)
def test_the_first_board_is_the_most_important_one(scores: list[str], first: int) -> None:
    rows = [make_row(task=task, test=test, measure=of) for task, test, of in (score.split("/") for score in scores)]
    data = scores_data(rows, None)
    board = data["boards"][data["start"]]
    assert f"{board['task']}/{board['test']}/{board['measure']}" == scores[first].replace("new_known", "new known")


def test_tests_of_several_kinds_and_versions_are_apart() -> None:
    rows = [
        make_row(task="twiki_intrinsic", kind="diffset", test="train"),
        make_row(task="twiki_intrinsic", kind="unchanged", test="train"),
        make_row(task="lama", version=1),
        make_row(task="lama", version=2),
        make_row(task="other", test=""),
    ]
    boards = [(board["task"], board["test"]) for board in scores_data(rows, None)["boards"]]
    assert boards == [
        ("lama (version 2)", "changed"),
        ("lama (version 1)", "changed"),
        ("other", "all"),
        ("twiki_intrinsic", "diffset: train"),
        ("twiki_intrinsic", "unchanged: train"),
    ]


def test_two_scores_of_one_checkpoint_are_two_lines() -> None:
    data = scores_data([make_row(value=1.0), make_row(value=2.0), make_row(value=3.0, tested="1011")], None)
    assert [model["name"] for model in data["models"]] == ["Diff", "Diff"]
    (board,) = data["boards"]
    assert sorted(zip(board["model"], board["month"], board["value"], strict=True)) == [
        (0, 0, 1),
        (0, 1, 3),
        (1, 0, 2),
    ]


def test_a_large_board_is_small(tmp_path: Path) -> None:
    """Ten methods, two years and all measures stay far below 1.5 MB."""
    months = [f"{year}{month:02}01" for year in (2020, 2021) for month in range(1, 13)]
    rows = [
        make_row(label=f"m{i}", month=month, tested=tested, test=test, model=f"m{i}-{month}", value=100.0 + i)
        for i in range(10)
        for month in months
        for tested in months
        for test in ("changed", "unchanged")
    ]
    assert len(rows) == 11_520
    assert write_page(rows, {}, {}, tmp_path).stat().st_size < 1.5e6


@pytest.mark.parametrize(("best", "worst", "rank"), [(1, 3, "1–3"), (2, 2, "2"), (None, None, "")])
def test_a_rank_is_a_range(best: int | None, worst: int | None, rank: str) -> None:
    (board,) = scores_data([make_row(rank_best=best, rank_worst=worst)], None)["boards"]
    assert (board["best"], board["rank"]) == ([best], [rank])


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([347.0, 253.07, 409.31], 0),
        ([20.5, 30.1, 5000.0], 1),
        ([5.03, 1.62, 24.17], 2),
        ([0.28, 0.33, 1.08], 3),
        ([0.001], 4),
        ([12345.6], 0),
        ([0.0, math.inf, math.nan], 2),
        ([-3.0, 2.0], 2),
    ],
)
def test_scores_have_three_digits_in_the_middle_of_a_board(values: list[float], decimals: int) -> None:
    rows = [make_row(label=f"{i}", value=value) for i, value in enumerate(values)]
    shown = dict(zip(values, scores_data(rows, None)["boards"][0]["text"], strict=True))
    assert all(text == score_text(value, decimals) for value, text in shown.items())


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (346.83, 0, "347"),
        (346.5, 0, "347"),
        (1234.5, 0, "1,235"),
        (1234567.0, 0, "1,234,567"),
        (12345678.0, 0, "1.23e7"),
        (5.125, 2, "5.13"),
        (-5.125, 2, "−5.13"),
        (1234.5, 2, "1,234.50"),
        (5.1, 0, "5.10"),  # less than two digits with the board's decimals
        (9.999, 0, "10.0"),
        (0.05, 1, "0.0500"),
        (0.0, 2, "0.00"),
        (1e-9, 2, "1.00e−9"),
        (math.inf, 2, "∞"),
        (-math.inf, 2, "−∞"),
        (math.nan, 2, "not a number"),
    ],
)
def test_a_score_as_text(value: float, decimals: int, text: str) -> None:
    assert score_text(value, decimals) == text


@given(st.floats(-1e300, 1e300), st.integers(0, 4))
def test_a_score_as_text_is_the_score(value: float, decimals: int) -> None:
    read = float(score_text(value, decimals).replace("−", "-").replace(",", ""))
    assert math.isclose(read, value, rel_tol=0.0501)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, ""),
        (0, "0"),
        (999, "999"),
        (1000, "1.00 K"),
        (404_480, "404 K"),
        (999_499, "999 K"),
        (999_500, "1.00 M"),
        (9_994_000, "9.99 M"),
        (9_996_000, "10.0 M"),
        (774_030_080, "774 M"),
        (11_000_000_000, "11.0 B"),
        (4_600_000_000_000, "4.60 T"),
    ],
)
def test_a_count_in_three_digits(count: int | None, text: str) -> None:
    assert scores_data([make_row(trainable=count)], None)["models"][0]["trainable_text"] == text


@given(st.lists(st.floats(), min_size=1, max_size=8))
@example([8.988465e307, 8.988465e307])
def test_any_score_gets_into_the_page_with_six_digits(values: list[float]) -> None:
    rows = [make_row(label=f"{i}", value=value, low=value, high=None) for i, value in enumerate(values)]
    data = json.loads(json.dumps(scores_data(rows, None), allow_nan=False))
    (board,) = data["boards"]
    assert [float(value) for value in board["value"]] == pytest.approx(values, rel=1e-5, nan_ok=True)
    assert board["interval"] == ["no interval"] * len(values)
