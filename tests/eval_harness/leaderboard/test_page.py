"""The leaderboard's page as a file: its content, escaping of hostile names, and the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.page import page_data, score_text, without_results, write_page
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables.learned_and_forgotten import learned_and_forgotten

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
VOID = {"meta", "link", "img", "input"}


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
    texts = ("label", "method", "base", "model", "revision", "task", "config", "kind", "test", "measure", "result")
    shown = make_row(test="average", label=name, method=name, base=name, model=name, config=name, result=name)
    return [make_row(test="average"), shown, make_row(**dict.fromkeys(texts, name))]


@pytest.mark.fault(
    "hostile titles",
    "names of models and configs that contain markup, on the leaderboard's page",
    "they are shown as text",
)
@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_a_hostile_name_adds_no_element_and_is_whole_in_the_data(tmp_path: Path, name: str) -> None:
    figures, tables = {"a": Shown("Figure", "Caption")}, {"a": Shown("Table", "Caption")}
    page = Elements(write_page(everything_named("plain"), figures, tables, tmp_path, title="plain", results="results"))
    figures, tables = {name: Shown(name, name)}, {name: Shown(name, name)}
    found = Elements(write_page(everything_named(name), figures, tables, tmp_path, title=name, results="results"))
    assert [tag for tag, _ in found.found] == [tag for tag, _ in page.found]
    assert not found.open[1:]  # all are closed
    for (_, attributes), (_, plain) in zip(found.found, page.found, strict=True):
        assert list(attributes) == list(plain)
    data = json.loads(found.inside["script"][1])
    assert name in data["models"]["label"] and name in data["files"]


def test_a_link_is_relative_or_to_the_hub(tmp_path: Path) -> None:
    rows = [row for name in HOSTILE for row in everything_named(name)]
    rows.append(make_row(test="average", model="acme/gpt2", revision="0" * 40))
    page = Elements(write_page(rows, {name: Shown(name, name) for name in HOSTILE}, {}, tmp_path, results=".."))
    links = [link["href"] or "" for link in page.all("a")]
    assert "https://huggingface.co/acme/gpt2" in links
    links.remove("https://huggingface.co/acme/gpt2")
    assert all(re.fullmatch(r"#[a-z-]+|\.[!-~]*", link) for link in links), links


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
    assert page_data([make_row(model=model, revision=revision)], None)["models"]["card"] == [card]


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


def test_figures_tables_and_results_are_linked(tmp_path: Path) -> None:
    figures = {"fuar": Shown("FUAR", "Forgotten & gained")}
    page = Elements(write_page([make_row()], figures, {"ckl": Shown("CKL", "x")}, tmp_path, results="../results"))
    (image,) = page.all("img")[:1]
    assert (image["src"], image["alt"]) == ("./figures/fuar.svg", "Forgotten & gained")
    links = {link["href"] for link in page.all("a")}
    assert links >= {"./figures/fuar.png", "./tables/ckl.md", "./tables/ckl.csv", "./results.parquet"}
    assert f"../results/{make_row().result}" in links


@pytest.mark.parametrize("results", ["../results", ".", "..", "tables", "/home/alice", "/", *filter(None, HOSTILE)])
def test_a_page_that_goes_elsewhere_is_one_that_never_had_results(tmp_path: Path, results: str) -> None:
    rows = [row for name in ('{"results":"x",', "a</a>", *HOSTILE) for row in everything_named(name)]
    shown = {"tables": Shown('{"results":"x",', '<span class="value"><a href="x">y</a>')}
    with_, without = (
        write_page(rows, shown, shown, tmp_path, results=of).read_text("utf-8") for of in (results, None)
    )
    assert with_ != without
    assert without_results(with_) == without_results(without) == without


def test_without_figures_there_is_no_heading_of_them(tmp_path: Path) -> None:
    assert "Figures" not in write_page([make_row()], {}, {}, tmp_path).read_text("utf-8")


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


def test_it_opens_with_the_average_perplexity_of_the_last_month(tmp_path: Path) -> None:
    rows = [
        make_row(label=f"{test} {measure} {tested}", test=test, measure=measure, tested=tested, task=task)
        for task in ("deleted", "twiki_probes")
        for test in ("changed", "average")
        for measure in ("f1", "perplexity")
        for tested in ("1011", "1112", "1201")  # December to January comes last
    ]
    text = write_page(rows, {}, {}, tmp_path).read_text("utf-8")
    labels = re.findall(r'<bdi class="label">(.*?)</bdi>', text)
    assert labels == ["average perplexity 1201"]


@pytest.mark.parametrize(("higher", "order"), [(False, ["a", "c", "b", "d"]), (True, ["d", "b", "c", "a"])])
def test_the_best_come_first(tmp_path: Path, higher: bool, order: list[str]) -> None:
    values = {"a": 1.0, "b": 9.5, "c": 9.0, "d": math.inf}
    rows = [make_row(label=label, value=value, higher_is_better=higher) for label, value in values.items()]
    rows.append(make_row(label="e", value=math.nan, higher_is_better=higher))
    text = write_page(rows, {}, {}, tmp_path).read_text("utf-8")
    assert re.findall(r'<bdi class="label">(.*?)</bdi>', text) == [*order, "e"]


def test_tests_of_several_kinds_and_versions_are_apart() -> None:
    rows = [
        make_row(task="twiki_intrinsic", kind="diffset", test="train"),
        make_row(task="twiki_intrinsic", kind="unchanged", test="train"),
        make_row(task="lama", version=1),
        make_row(task="lama", version=2),
        make_row(task="other", test=""),
    ]
    boards = [(board["task"], board["test"]) for board in page_data(rows, None)["boards"]]
    assert boards == [
        ("lama (version 2)", "changed"),
        ("lama (version 1)", "changed"),
        ("other", "all"),
        ("twiki_intrinsic", "diffset: train"),
        ("twiki_intrinsic", "unchanged: train"),
    ]


def test_two_scores_of_one_checkpoint_are_two_lines() -> None:
    data = page_data([make_row(value=1.0), make_row(value=2.0), make_row(value=3.0, tested="1011")], None)
    assert data["models"]["label"] == ["diff", "diff"]
    (board,) = data["boards"]
    assert sorted(zip(board["model"], board["tested"], board["value"], strict=True)) == [
        (0, 0, 1),
        (0, 1, 3),
        (1, 0, 2),
    ]


# Ranks of the models of a month, as (label, month, best, worst), and the sentence about them.
VERDICTS: list[tuple[list[tuple[str, str | None, int | None, int | None]], str]] = [
    ([("a", "0910", None, None), ("b", "0910", None, None)], ""),
    ([("a", "0910", 1, 1)], ""),
    (
        [("a", "0910", 1, 3), ("b", "0910", 1, 3), ("c", None, 1, 3)],
        "No significant differences between these 3 models.",
    ),
    (
        [("a", "0910", 1, 1), ("b", "0910", 2, 3), ("c", None, 2, 3)],
        "a, trained to 0910, is significantly better than the other 2.",
    ),
    ([("a", "0910", 2, 2), ("c", None, 1, 1)], "c is significantly better than the other 1."),
    (
        [("a", "0910", 1, 2), ("b", "0910", 1, 3), ("c", None, 2, 3)],
        "2 of 3 models may be the best: their ranges of ranks begin with 1.",
    ),
    ([("a", "0910", 1, 2), ("b", "0910", 1, 2), ("c", None, 1, 2), ("d", None, 1, 2)], ""),  # two pairs
]


@pytest.mark.parametrize(("ranks", "verdict"), VERDICTS)
def test_what_the_ranks_say_in_words(ranks: list[tuple[str, str | None, int, int]], verdict: str) -> None:
    rows = [
        make_row(label=label, month=month, rank_best=best, rank_worst=worst, runs=3)
        for label, month, best, worst in ranks
    ]
    assert page_data(rows, None)["boards"][0]["verdicts"] == {"0": verdict}


ONE_RUN = "One training run; differences between runs are not included."
ONE_RUN_EACH = {
    "one is best": ([(1, 1), (2, 3), (2, 3)], f"a, trained to 0910, scores best on these items. {ONE_RUN}"),
    "some may be best": ([(1, 2), (1, 3), (2, 3)], ONE_RUN),
    "all may be best": ([(1, 3), (1, 3), (1, 3)], ONE_RUN),
    "no ranks": ([(None, None)] * 3, ""),
}


@pytest.mark.parametrize("case", ONE_RUN_EACH)
def test_one_run_of_a_method_is_never_called_significantly_better(case: str) -> None:
    ranks, verdict = ONE_RUN_EACH[case]
    rows = [
        make_row(label=label, rank_best=best, rank_worst=worst, runs=1 if label == "a" else 3)
        for label, (best, worst) in zip("abc", ranks, strict=True)
    ]
    assert page_data(rows, None)["boards"][0]["verdicts"] == {"0": verdict}


def test_checkpoints_that_were_not_trained_here_have_no_runs() -> None:
    """Ranks of ready models are about these models, not about a method."""
    rows = [make_row(label=label, method=None, rank_best=i, rank_worst=i) for i, label in enumerate("ab", 1)]
    assert page_data(rows, None)["boards"][0]["verdicts"] == {
        "0": "a, trained to 0910, is significantly better than the other 1."
    }


def learned(**changes: Any) -> list[Row]:
    """Return a method's rows of learned_and_forgotten."""
    task = {"task": "learned_and_forgotten", "test": "all", "higher_is_better": True, **changes}
    return [
        make_row(measure="learned", **task | {"value": 1.5, "low": 1.2, "high": 1.8}),
        make_row(measure="forgotten", **task | {"higher_is_better": False, "value": 0.25, "low": 0.2, "high": 0.3}),
    ]


def test_the_page_opens_with_learned_against_forgotten(tmp_path: Path) -> None:
    rows = [*learned(), make_row(test="average")]
    table = learned_and_forgotten(rows)
    assert table is not None
    text = write_page(rows, {}, {"learned_and_forgotten": table}, tmp_path).read_text("utf-8")
    headline, board = text.index('<h2 id="headline">Learned and forgotten'), text.index('<h2 id="board-title">')
    assert headline < board
    assert "1.50" in text[headline:board] and "0.20 – 0.30" in text[headline:board] and ONE_RUN in text[headline:board]
    data = page_data(rows, None)
    assert (data["boards"][data["start"]]["task"], data["boards"][data["start"]]["measure"]) == (
        "learned_and_forgotten",
        "learned",
    )


def test_a_board_without_better_and_worse_has_no_order_and_who_does_not_compete_comes_last(tmp_path: Path) -> None:
    rows = [
        make_row(label=label, value=value, competes=competes, higher_is_better=True)
        for label, value, competes in (("a", 5.0, True), ("b", 9.0, False), ("c", 7.0, True))
    ]
    text = write_page(rows, {}, {}, tmp_path).read_text("utf-8")
    assert re.findall(r'<bdi class="label">(.)</bdi>', text) == ["c", "a", "b"]
    plain = [make_row(label=row.label, value=row.value, higher_is_better=None) for row in rows]
    text = write_page(plain, {}, {}, tmp_path).read_text("utf-8")
    assert re.findall(r'<bdi class="label">(.)</bdi>', text) == ["a", "b", "c"]
    assert "neither higher nor lower is better" in text


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
    assert page_data(rows, None)["boards"][0]["decimals"] == decimals


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
    assert page_data([make_row(trainable=count)], None)["models"]["trainable_text"] == [text]


@given(st.lists(st.floats(), min_size=1, max_size=8))
@example([8.988465e307, 8.988465e307])
def test_any_score_gets_into_the_page_with_six_digits(values: list[float]) -> None:
    rows = [make_row(label=f"{i}", value=value, low=value, high=None) for i, value in enumerate(values)]
    data = json.loads(json.dumps(page_data(rows, None), allow_nan=False))
    (board,) = data["boards"]
    for column in ("value", "low"):
        found = [float(value) for value in board[column]]
        assert found == pytest.approx(values, rel=1e-5, nan_ok=True)
    assert board["high"] == [None] * len(values)
