"""The leaderboard's page in a real browser, opened from disk and without a network."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.rows import Row

from a_row import make_row

pytest.importorskip("playwright", reason="the browser tests need playwright: pip install -e '.[test]'")

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium to open the page with; on Debian: apt-get install chromium"
)

SCRIPT = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
FORMULA = "=cmd|'/c calc'!A0, \"x\""
COMMIT = "0123456789" * 4
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><path d="M0 0L30 20" stroke="black"/></svg>'


class Shown(NamedTuple):
    title: str
    caption: str


FIGURES = {name: Shown(f"Figure {name}", f"What {name} shows: <b>all</b>.") for name in ("fuar", "misalignment")}
TABLES = {"ckl": Shown("CKL, table 2", "Exact match.")}


class Checkpoint(NamedTuple):
    label: str
    month: str | None
    method: str | None
    model: str
    values: dict[str, float]  # average perplexity, by tested month
    ranks: tuple[int, int] | None = None
    trainable: int | None = 1_000
    base: str = "gpt2"


CHECKPOINTS = [
    Checkpoint("initial", None, None, "acme/gpt2", {"0910": 400.0, "1112": 1234.5}, (5, 5), None),
    Checkpoint("diff", "0910", "diff", "models/diff-0910", {"0910": 300.0, "1112": 310.0}, (2, 4)),
    Checkpoint("diff", "1112", "diff", "models/diff-1112", {"0910": 320.0, "1112": 290.0}, (2, 4)),
    Checkpoint("lora", "1112", "lora", "acme/lora-1112", {"1112": 250.0}, (1, 1), 400, "t5"),
    Checkpoint("Ångström", "0910", "lora", "models/x", {"0910": 280.0}, None, 500),
    Checkpoint(SCRIPT, "1112", "k_adapter", SCRIPT, {"0910": 350.0, "1112": 300.0}, (2, 4), 36_400_000),
]


def some_rows() -> list[Row]:
    rows = []
    for checkpoint in CHECKPOINTS:
        hub = checkpoint.model.startswith("acme/")
        for tested, value in checkpoint.values.items():
            name = re.sub(r"\W+", "-", checkpoint.model)
            best, worst = checkpoint.ranks if checkpoint.ranks and tested == "1112" else (None, None)
            row: dict[str, Any] = {
                "label": checkpoint.label,
                "month": checkpoint.month,
                "method": checkpoint.method,
                "model": checkpoint.model,
                "base": checkpoint.base,
                "revision": COMMIT if hub else "0123456789abcdef",
                "trainable": checkpoint.trainable,
                "tested": tested,
                "config": f"probes-{tested}",
                "result": f"{name}/probes {tested}#.json",
            }
            limits = {"low": None, "high": None} if checkpoint.label == "diff" and tested == "0910" else {}
            of = {"value": value, "low": value * 0.9, "high": value * 1.1, **limits}
            ranks = {"rank_best": best, "rank_worst": worst}
            rows.append(make_row(test="average", **row, **of, **ranks))
            rows.append(make_row(test="changed", **row, **of | {"value": value * 2}))
            f1 = {"value": 1000 / value, "low": None, "high": None, "measure": "f1", "higher_is_better": True}
            rows.append(make_row(test="average", **row, **f1))
    for label, value in (("diff", math.inf), ("lora", 0.5)):
        fuar = {"task": "fuar", "kind": "fuar", "test": "probes", "measure": "fuar", "tested": "1112"}
        rows.append(make_row(label=label, method=label, value=value, low=None, high=None, **fuar))
    rows.append(make_row(task="lama", test="", measure="f1", tested=None, month=None, label="t5", value=1.0))
    return rows


def folder_of(rows: list[Row], root: Path) -> Path:
    """Write a leaderboard's folder with all files that its page links to, and return it."""
    out = root / "leader board"
    for name in FIGURES:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        (out / "figures" / f"{name}.svg").write_text(SVG)
        (out / "figures" / f"{name}.png").write_bytes(b"\x89PNG")
    (out / "tables").mkdir()
    for name in TABLES:
        for kind in ("md", "csv"):
            (out / "tables" / f"{name}.{kind}").write_text("x")
    (out / "results.parquet").write_bytes(b"PAR1")
    for row in rows:
        file = root / "results" / row.result
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    write_page(rows, FIGURES, TABLES, out, results="../results")
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield launched
        launched.close()


def new_context(browser: Browser, **kind: Any) -> BrowserContext:
    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}} | kind)
    context.set_default_timeout(5_000)
    return context


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(some_rows(), tmp_path_factory.mktemp("board"))


class Tab:
    """A browser page that records its errors and requests."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def goto(self, url: str) -> Tab:
        self.page.goto(url)
        return self

    def column(self, head: str) -> list[str]:
        """Return the texts of a column; the first line of the models'."""
        heads = [text.rstrip("▲▼") for text in self.page.locator("thead th").all_inner_texts()]
        return [
            self.page.locator(".label").nth(i).inner_text() if head == "Model" else text
            for i, text in enumerate(
                self.page.locator(f"tbody tr > :nth-child({heads.index(head) + 1})").all_inner_texts()
            )
        ]

    def models(self) -> list[str]:
        """Return label and month of the lines."""
        return [
            f"{label} {month}" for label, month in zip(self.column("Model"), self.column("Trained to"), strict=True)
        ]

    def values(self) -> list[str]:
        return self.page.locator("tbody .value").all_inner_texts()

    def sorted_by(self) -> list[tuple[str, str | None]]:
        heads = self.page.locator("thead th[aria-sort]").all()
        return [(head.inner_text().rstrip("▲▼"), head.get_attribute("aria-sort")) for head in heads]

    def choose(self, control: str, option: str) -> None:
        self.page.get_by_role("combobox", name=control, exact=True).select_option(label=option)

    def press_head(self, head: str) -> None:
        self.page.locator("thead").get_by_role("button", name=head).click()

    def hash(self) -> str:
        return unquote(urlsplit(self.page.url).fragment)


@pytest.fixture
def open_tab(browser: Browser, folder: Path) -> Iterator[Callable[..., Tab]]:
    """Open the page with a hash and browser settings; at the end, fail if any tab had an error."""
    contexts, tabs = [], []

    def opened(of: str = "", **kind: Any) -> Tab:
        contexts.append(new_context(browser, **kind))
        tabs.append(Tab(contexts[-1]))
        return tabs[-1].goto((folder / "index.html").as_uri() + of)

    yield opened
    for tab in tabs:
        assert tab.wrong == []
        assert all(url.startswith((folder.as_uri() + "/", "data:,", "blob:")) for url in tab.asked), tab.asked
    for context in contexts:
        context.close()


A, B = "diff 0910", "diff 1112"
HACKED = f"{SCRIPT} 1112"
BEST_FIRST = ["lora 1112", B, HACKED, A, "initial none"]


def test_it_opens_with_the_newest_month_best_first(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    assert tab.models() == BEST_FIRST
    assert tab.values() == ["250", "290", "300", "310", "1,235"]
    assert tab.column("Rank") == ["1", "2–4", "2–4", "2–4", "5"]
    assert tab.sorted_by() == [("Perplexity on 1112", "ascending")]
    assert "lower is better" in tab.page.locator("#direction").inner_text().lower()
    assert "lora, trained to 1112, scores best on these items. One training run" in tab.page.inner_text("#direction")
    assert tab.page.inner_text("#count") == "5 models"
    assert tab.page.evaluate("document.compatMode") == "CSS1Compat"
    assert not tab.page.locator("noscript").is_visible()


# A column head, and the order of the models after the first and the second press.
SORTS = {
    "Model": (
        [HACKED, A, B, "initial none", "lora 1112"],
        ["lora 1112", "initial none", A, B, HACKED],
    ),
    "Trained to": (
        [A, HACKED, B, "lora 1112", "initial none"],
        [HACKED, B, "lora 1112", A, "initial none"],
    ),
    "Rank": (
        ["lora 1112", A, HACKED, B, "initial none"],
        ["initial none", A, HACKED, B, "lora 1112"],
    ),
    "Trainable": (  # initial has none: it comes last either way
        ["lora 1112", A, B, HACKED, "initial none"],
        [HACKED, A, B, "lora 1112", "initial none"],
    ),
}


@pytest.mark.parametrize("key", ["", "Enter", " "])
def test_heads_sort_both_ways_by_mouse_and_by_key(open_tab: Callable[..., Tab], key: str) -> None:
    tab = open_tab()
    presses = [(head, i, way) for head in SORTS for i, way in enumerate(("ascending", "descending"))]
    for head, i, way in presses:
        button = tab.page.locator("thead").get_by_role("button", name=head)
        if key:
            button.focus()
            tab.page.keyboard.press(key)
        else:
            button.click()
        assert tab.models() == SORTS[head][i]
        assert tab.sorted_by() == [(head, way)]
        assert button.evaluate("button => button === document.activeElement")  # back to the default for the next press


def test_missing_scores_are_last_both_ways(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#month=all")
    for _ in range(2):
        tab.press_head("0910")
        assert tab.column("Model")[-1] == "lora"
        assert tab.column("0910")[-1] == "–"
    assert [text.split("\n")[0] for text in tab.column("0910")] == ["400", "350", "320", "300", "280", "–"]


def test_all_months_have_a_column_each(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#month=all")
    heads = tab.page.locator("thead th").all_inner_texts()
    assert [head for head in heads if head[:4].isdigit()] == ["0910", "1112▲"]
    assert "Rank" not in heads
    lora = tab.page.locator("tbody tr", has_text="acme/lora-1112")
    assert "rank 1" in lora.inner_text() and "225 – 275" in lora.inner_text()
    assert "no interval" in tab.page.locator("tbody tr", has_text="models/diff-0910").inner_text()
    assert tab.page.locator("td.own").count() == 5  # tested on their own month
    assert tab.page.locator("#own").is_visible()


# A control, the chosen value, and the remaining models.
FILTERS = [
    ("Method", "diff", [B, A]),
    ("Method", "not trained", ["initial none"]),
    ("Base model", "t5", ["lora 1112"]),
    ("Trained to", "0910", [A]),
    ("Trained to", "before any month", ["initial none"]),
]


def test_filters(open_tab: Callable[..., Tab]) -> None:
    tab, other = open_tab(), open_tab()
    for control, option, expected in FILTERS:
        tab.choose(control, option)
        assert tab.models() == expected
        assert tab.page.inner_text("#count") == f"{len(expected)} of 5 models"
        assert other.goto(tab.page.url).models() == expected
        tab.page.go_back()
        assert tab.models() == BEST_FIRST
        tab.page.go_forward()
        assert tab.models() == expected
        tab.choose(control, "all")
        assert tab.models() == BEST_FIRST


SEARCHES = {
    "DIFF": [B, A],
    "diff 1112": [B],
    "1112 diff ": [B],
    "acme/": ["lora 1112", "initial none"],
    "<script>": [HACKED],
    "[": [],
    "": BEST_FIRST,
}


def test_search(open_tab: Callable[..., Tab]) -> None:
    tab, other = open_tab(), open_tab()
    for text, expected in SEARCHES.items():
        tab.page.get_by_label("Search").fill("")
        tab.page.get_by_label("Search").press_sequentially(text)
        assert tab.models() == expected
        assert other.goto(tab.page.url).models() == expected
    assert tab.page.evaluate("history.length") == 2  # letters are no steps to go back by (the first is a blank page)


def test_search_knows_letters_with_marks(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#month=0910")
    tab.page.get_by_label("Search").fill("A\u030angstro\u0308m")
    assert tab.column("Model") == ["Ångström"]


def test_where_nothing_fits_it_says_so_and_starts_over(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    tab.choose("Method", "diff")
    tab.page.get_by_label("Search").fill("nothing like it")
    assert tab.page.get_by_text("No model fits these filters.").is_visible()
    assert not tab.page.locator("#board").is_visible()
    assert tab.page.get_by_role("button", name="Download CSV").is_disabled()
    tab.page.get_by_role("button", name="Show all models").click()
    assert tab.models() == BEST_FIRST
    assert tab.page.get_by_label("Search").input_value() == ""
    assert not tab.page.locator("#empty").is_visible()


def test_what_is_scored_is_chosen_linked_and_gone_back_from(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    tab.choose("Test", "changed")
    assert tab.values() == ["500", "580", "600", "620", "2,469"]
    assert not any(tab.column("Rank"))
    tab.choose("Test", "average")
    tab.choose("Measure", "f1")
    assert tab.values() == ["4.00", "3.45", "3.33", "3.23", "0.81"]
    assert tab.sorted_by() == [("F1 on 1112", "descending")]
    assert "Higher is better" in tab.page.inner_text("#direction")
    tab.choose("Tested on", "0910")
    assert tab.models() == ["Ångström 0910", A, B, HACKED, "initial none"]
    tab.press_head("Model")
    assert "sort=model" in tab.hash() and "measure=f1" in tab.hash() and "month=0910" in tab.hash()
    other = open_tab(f"#{urlsplit(tab.page.url).fragment}")
    assert (other.models(), other.sorted_by()) == (tab.models(), tab.sorted_by())
    tab.choose("Task", "fuar")
    assert tab.models() == ["diff 0910", "lora 0910"] and tab.values() == ["∞", "0.500"]
    for _ in range(3):
        tab.page.go_back()
    assert tab.values() == ["4.00", "3.45", "3.33", "3.23", "0.81"]
    for _ in range(3):
        tab.page.go_back()
    assert tab.models() == BEST_FIRST and tab.hash() == ""


def test_an_address_that_means_nothing_is_the_first_view(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#tables")
    assert tab.models() == BEST_FIRST
    first = tab.page.url.partition("#")[0]
    for of in ("task=none", "month=9999&sort=x&dir=up", "=%", "=&=", "test=&measure=&month=", f"q={'+' * 99}"):
        assert tab.goto(f"{first}#month=0910").models() != BEST_FIRST
        assert tab.goto(f"{first}#{of}").models() == BEST_FIRST


def test_a_place_in_the_page_changes_no_view(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#month=0910")
    before = tab.models()
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the board"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**#board")  # a key is pressed when it is sent; the browser follows the link after that
    assert tab.hash() == "board" and tab.models() == before
    tab.choose("Method", "diff")
    assert "month=0910" in tab.hash() and tab.models() == [A, B]


def test_a_task_without_months_and_one_with_infinity(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#task=lama")
    assert tab.models() == ["t5 none"]
    assert tab.page.locator("thead").inner_text().startswith("Model")
    tab = open_tab("#task=fuar")
    assert [tab.values(), tab.page.locator("tbody circle").count()] == [["0.500", "∞"], 0]


def test_links_lead_to_files_that_are_there_and_to_cards(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#month=all")
    links = tab.page.locator("a[href]").evaluate_all("links => links.map(link => [link.href, link.rel, link.target])")
    cards = [link for link in links if not link[0].startswith("file:")]
    assert sorted(cards) == [
        [f"https://huggingface.co/acme/{name}", "noopener", "_blank"] for name in ("gpt2", "lora-1112")
    ]
    files = {urlsplit(url).path for url, _, _ in links if url.startswith("file:")}
    assert all(Path(unquote(file)).is_file() for file in files), files
    results = [file for file in files if "/results/" in file]
    assert len(results) == sum(len(checkpoint.values) for checkpoint in CHECKPOINTS)


def test_a_hostile_label_is_text(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab("#month=all")
    assert SCRIPT in tab.column("Model")
    assert tab.page.evaluate("window.hacked") is None
    assert tab.page.locator("script").count() == 2
    tab.choose("Method", "k_adapter")
    assert tab.page.locator("tbody img").count() == 0


def test_no_other_script_runs_even_where_one_got_into_the_page(browser: Browser, folder: Path) -> None:
    text = (folder / "index.html").read_text("utf-8")
    inside = (
        "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><base href='https://example.org/'>"
    )
    copy = folder / "with-a-script.html"
    copy.write_text(text.replace("<main>", f"<main>{inside}"), "utf-8")
    context = new_context(browser)
    tab = Tab(context).goto(copy.as_uri())
    assert tab.column("Rank") == ["1", "2–4", "2–4", "2–4", "5"]
    assert tab.page.evaluate("window.hacked") is None
    assert len([text for text in tab.wrong if "Content Security Policy" in text]) == 3
    refused = "document.body.innerHTML = '<b>x</b>'", "fetch('https://example.org').catch(e => { throw e; })"
    for script in refused:
        with pytest.raises(Exception, match=r"TrustedHTML|fetch"):
            tab.page.evaluate(script)
    assert not [url for url in tab.asked if url.startswith("http")]
    context.close()
    copy.unlink()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_chosen(open_tab: Callable[..., Tab], scheme: str) -> None:
    tab = open_tab(color_scheme=scheme)
    other = {"light": "dark", "dark": "light"}[scheme]

    def seen() -> str:
        color = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return "light" if sum(map(int, re.findall(r"\d+", color))) > 380 else "dark"

    def becomes(theme: str) -> bool:
        """Wait up to five seconds: under load the browser repaints late."""
        end = time.monotonic() + 5
        while seen() != theme and time.monotonic() < end:
            time.sleep(0.05)
        return seen() == theme

    assert seen() == scheme
    tab.page.get_by_role("button", name=f"{other.capitalize()} theme").click()
    assert becomes(other)
    tab.page.reload()
    assert becomes(other)
    tab.page.get_by_role("button", name=f"{scheme.capitalize()} theme").click()
    assert becomes(scheme)


def test_without_storage_the_theme_still_changes(browser: Browser, folder: Path) -> None:
    context = new_context(browser)
    context.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('none') } })")
    tab = Tab(context).goto((folder / "index.html").as_uri())
    tab.page.get_by_role("button", name="Dark theme").click()
    assert tab.page.get_by_role("button", name="Light theme").is_visible()
    assert tab.wrong == []
    context.close()


def test_figures_open_large_and_close_by_key_alone(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    shown = tab.page.locator("figure img")
    assert shown.evaluate_all("images => images.map(image => image.naturalWidth)") == [30, 30]
    assert shown.first.get_attribute("alt") == FIGURES["fuar"].caption
    dialog = tab.page.get_by_role("dialog", name="Figure misalignment")
    for close in ("Escape", "Enter"):  # Enter: its button has the focus
        tab.page.locator("a.open").nth(1).focus()
        tab.page.keyboard.press("Enter")
        assert dialog.is_visible()
        assert FIGURES["misalignment"].caption in dialog.inner_text()
        assert dialog.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 30
        links = dialog.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
        assert [Path(unquote(urlsplit(link).path)).name for link in links] == ["misalignment.svg", "misalignment.png"]
        tab.page.keyboard.press(close)
        assert not dialog.is_visible()
        assert tab.page.evaluate("document.activeElement.className") == "open"  # where it was


def test_the_visible_table_is_saved_as_csv(browser: Browser, tmp_path: Path) -> None:
    labels = [FORMULA, "+1", "-1", "@x", "\tx", "＝x", "plain", 'a "b", c\nd', "é"]
    rows = [make_row(label=label, value=-1.5 - i) for i, label in enumerate(labels)]
    rows.append(make_row(label="filtered", method="other"))
    context = new_context(browser)
    tab = Tab(context).goto(folder_of(rows, tmp_path).joinpath("index.html").as_uri() + "#sort=on-0910&dir=desc")
    tab.choose("Method", "diff")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "twiki_probes-changed-perplexity-0910.csv"
    text = Path(download.value.path()).read_bytes().decode("utf-8")
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head[:2] == ["label", "trained_to"] and head[-5:-2] == ["0910 value", "0910 low", "0910 high"]
    assert [line[0] for line in lines] == [f"'{label}" for label in labels[:6]] + labels[6:]
    assert [float(line[head.index("0910 value")]) for line in lines] == [-1.5 - i for i in range(len(labels))]
    assert tab.wrong == []
    context.close()


@pytest.mark.parametrize("of", ["", "#month=all", "#q=nothing+like+it"])
def test_a_phone_scrolls_the_board_and_not_the_page(open_tab: Callable[..., Tab], of: str) -> None:
    tab = open_tab(of, viewport={"width": 360, "height": 740}, has_touch=True)
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
    if of != "#month=all":
        return
    board = tab.page.locator("#board")
    assert board.evaluate("board => board.scrollWidth > board.clientWidth")
    left = "th => th.getBoundingClientRect().left"
    before = tab.page.locator("tbody th").first.evaluate(left)
    board.evaluate("board => board.scrollTo(200, 0)")
    assert tab.page.locator("tbody th").first.evaluate(left) == before  # names stay


def test_without_a_script_there_is_the_first_table(open_tab: Callable[..., Tab]) -> None:
    with_script, without = open_tab(), open_tab(java_script_enabled=False)
    assert without.page.locator("noscript .note").is_visible()
    assert not without.page.locator("#controls").is_visible()
    assert "lower is better" in without.page.locator("caption").inner_text()
    for head in ("Model", "Trained to", "Rank", "Base", "Trainable", "Tokens"):
        assert without.column(head) == with_script.column(head)


def test_numbers_are_the_same_with_and_without_a_script(browser: Browser, tmp_path: Path) -> None:
    sizes = [0.0, 1e-9, 9.994e-7, 1e-6, 0.00012345, 0.05, 0.125, 1.005, 2.5, 9.995, 9.999, 12.345, 99.95]
    sizes += [100.5, 101.5, 999.5, 1234.5, 123456.5, 1e6, 9999994.0, 9999996.0, 12345678.0, 1.245e7, 1e20, 1e300]
    rows = []
    for scale in (1e-3, 1.0, 1e3):  # moves the board's decimals
        values = [-math.inf, math.inf, math.nan, *(sign * size for size in sizes for sign in (1, -1))]
        values += [scale * 5] * len(values)
        task = f"scale {scale}"
        rows.append([make_row(task=task, label=f"{i:03}", value=x, low=x, high=x) for i, x in enumerate(values)])
    for of in rows:
        page = write_page(of, {}, {}, tmp_path).as_uri()
        texts = []
        for enabled in (True, False):
            context = new_context(browser, java_script_enabled=enabled)
            tab = Tab(context).goto(page)
            assert tab.page.locator("tbody tr").count() == len(of)
            texts.append(tab.page.locator("tbody .value, tbody .interval, tbody .label").all_inner_texts())
            context.close()
        assert texts[0] == texts[1]


# The lowest contrast ratio (WCAG 2) of a text with its background, and that text.
CONTRAST = """() => {
  const parse = color => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return { r, g, b, a }; };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.a === 1) return color;
      if (color.a !== 0) throw new Error('half transparent');
    }
    return { r: 255, g: 255, b: 255 };
  };
  const found = [];
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (element.closest('script, style, noscript') || !(own || element.matches('select, input'))) continue;
    if (!element.checkVisibility() || element.closest('option')) continue;
    const colors = [getComputedStyle(element).color];
    if (element.matches('[placeholder]')) colors.push(getComputedStyle(element, '::placeholder').color);
    for (const color of colors) {
      const [a, b] = [light(parse(color)), light(behind(element))];
      found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML.slice(0, 80)]);
    }
  }
  return [found.length, ...found.sort((a, b) => a[0] - b[0])[0]];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("of", ["", "#month=all", "#q=nothing+like+it"])
def test_all_text_has_contrast_in_both_themes(open_tab: Callable[..., Tab], scheme: str, of: str) -> None:
    tab = open_tab(of, color_scheme=scheme)
    if not of:
        tab.page.locator("a.open").first.click()
    elif tab.models():
        tab.page.locator("tbody tr").last.hover()
    count, least, where = tab.page.evaluate(CONTRAST)
    assert count > 30
    assert least >= 4.5, where


def test_every_control_has_a_name_and_a_visible_focus(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    stops: list[str] = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        name, outline = tab.page.evaluate(
            """() => { const at = document.activeElement; const style = getComputedStyle(at);
            return [at.ariaLabel || at.labels?.[0]?.textContent || at.textContent
                    || at.querySelector('img')?.alt || '',
                    `${style.outlineStyle} ${style.outlineWidth}`]; }"""
        )
        if tab.page.evaluate("document.activeElement === document.body"):
            break
        assert name.strip() and outline == "solid 2px", (name, outline)
        stops.append(name)
    assert len(stops) > 20 and stops[0] == "Skip to the board"


def test_there_is_one_main_part_one_heading_and_a_language(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    for role, count in (("main", 1), ("banner", 1), ("contentinfo", 1), ("region", 4)):
        assert tab.page.get_by_role(role).count() == count, role  # type: ignore[arg-type]
    assert tab.page.get_by_role("heading", level=1).count() == 1
    assert tab.page.get_by_role("heading", level=2).all_inner_texts() == ["Scores", "Figures", "Tables and data"]
    assert tab.page.locator("html").get_attribute("lang") == "en"
    assert tab.page.get_by_role("table", name="twiki_probes, average, perplexity on 1112").is_visible()
    assert tab.page.get_by_role("rowheader").count() == 5


def test_it_is_printed_whole_light_and_without_controls(browser: Browser, tmp_path: Path) -> None:
    rows = [make_row(label=f"model {i}", value=100.0 + i) for i in range(450)]
    folder = folder_of(rows, tmp_path)
    context = new_context(browser, color_scheme="dark")
    tab = Tab(context).goto((folder / "index.html").as_uri())
    assert tab.page.locator("tbody tr").count() == 200
    assert tab.page.get_by_role("button", name="Show all 450 models").is_visible()
    assert len(tab.page.pdf()) > 10_000
    assert tab.page.locator("tbody tr").count() == 450
    tab.page.emulate_media(media="print")
    assert not tab.page.locator("#controls").is_visible()
    assert not tab.page.get_by_role("button", name="theme").is_visible()
    board = tab.page.locator("#board")
    assert board.evaluate("board => board.scrollHeight === board.clientHeight")
    assert tab.page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 29, 26)"
    head = tab.page.locator("thead th").first
    assert head.evaluate("head => getComputedStyle(head, '::after').content") == '"Model"'  # on each sheet of paper
    assert tab.wrong == []
    context.close()


def test_more_lines_are_shown_when_asked_for(browser: Browser, tmp_path: Path) -> None:
    rows = [make_row(label=f"model {i}", value=100.0 + i) for i in range(201)]
    context = new_context(browser)
    tab = Tab(context).goto((folder_of(rows, tmp_path) / "index.html").as_uri())
    tab.press_head("Perplexity on 0910")  # the other way
    assert tab.column("Model")[0] == "model 200" and len(tab.column("Model")) == 200
    tab.page.get_by_role("button", name="Show all 201 models").click()
    assert tab.page.locator("tbody tr").count() == 201
    assert not tab.page.locator("#more").is_visible()
    assert tab.wrong == []
    context.close()


@pytest.mark.parametrize(
    ("ranks", "says", "marks"),
    [
        ([(1, 2), (1, 2)], "No significant differences between these 2 models.", 2),
        ([(1, 1), (2, 2)], "a, trained to 0910, is significantly better than the other 1.", 0),
        ([(1, 2), (1, 3), (2, 3)], "2 of 3 models may be the best", 1),
    ],
)
def test_ties_are_said_in_words(
    browser: Browser, tmp_path: Path, ranks: list[tuple[int, int]], says: str, marks: int
) -> None:
    rows = [
        make_row(label="abc"[i], value=float(i), rank_best=best, rank_worst=worst, runs=3)
        for i, (best, worst) in enumerate(ranks)
    ]
    context = new_context(browser)
    tab = Tab(context).goto((folder_of(rows, tmp_path) / "index.html").as_uri())
    assert says in tab.page.inner_text("#direction")
    assert tab.page.locator("tbody abbr", has_text="n.s.").count() == marks
    context.close()


def test_it_works_from_a_server_as_a_space_has_one(browser: Browser, folder: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    context = new_context(browser)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder.parent))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            tab = Tab(context).goto(f"{url}leader%20board/index.html")
            sizes = tab.page.locator("figure img").evaluate_all("images => images.map(image => image.naturalWidth)")
            assert sizes == [30, 30]
            tab.choose("Tested on", "all months")
            assert len(tab.models()) == 6
            assert tab.wrong == []
            assert all(address.startswith((url, "data:,")) for address in tab.asked)
        finally:
            context.close()
            server.shutdown()
            thread.join()
