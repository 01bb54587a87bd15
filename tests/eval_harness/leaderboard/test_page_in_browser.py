"""The leaderboard's page in a real browser, opened from disk and without a network."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from matplotlib.image import imread

from temporalwiki.eval_harness.leaderboard.figures import write_figures
from temporalwiki.eval_harness.leaderboard.page import write_page
from temporalwiki.eval_harness.leaderboard.page.items import ShownFact
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import ScoreTable

from a_row import make_row

pytest.importorskip("playwright", reason="the browser tests need playwright: pip install -e '.[test]'")

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium to open the page with; on Debian: apt-get install chromium"
    ),
]

SCRIPT = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
COMMIT = "0123456789" * 4
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><path d="M0 0L30 20" stroke="black"/></svg>'


class Shown(NamedTuple):
    title: str
    caption: str


FIGURES = {
    name: Shown(f"Figure {name}", f"What {name} shows: <b>all</b>.") for name in ("learned_and_forgotten", "fuar")
}
TABLES = {name: Shown(f"Table {name}", "Exact match.") for name in ("ckl", "learned_and_forgotten")}
ITEMS = {
    "diff.json": {
        "1": ShownFact("1", "changed", "Chile head of state", SCRIPT, "=Piñera", 0.0, 0.0),
        "2": ShownFact("2", "unchanged", "Chile capital", "Santiago", "Santiago", 1.0, None),
    }
}


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

BASES = {checkpoint.label: checkpoint.base for checkpoint in CHECKPOINTS}


def some_rows() -> list[Row]:
    rows = []
    for checkpoint in CHECKPOINTS:
        hub = checkpoint.model.startswith("acme/")
        for tested, value in checkpoint.values.items():
            name = re.sub(r"\W+", "-", checkpoint.model)
            best, worst = checkpoint.ranks if checkpoint.ranks and tested == "1112" else (None, None)
            row: dict[str, Any] = {name: getattr(checkpoint, name) for name in ("label", "month", "method", "model")}
            row |= {"base": checkpoint.base, "trainable": checkpoint.trainable, "tested": tested}
            row |= {"revision": COMMIT if hub else "0123456789abcdef", "config": f"probes-{tested}"}
            row["result"] = f"{name}/probes {tested}#.json"
            limits = {"low": None, "high": None} if checkpoint.label == "diff" and tested == "0910" else {}
            of = {"value": value, "low": value * 0.9, "high": value * 1.1, **limits}
            ranks = {"rank_best": best, "rank_worst": worst}
            rows.append(make_row(test="average", **row, **of, **ranks))
            rows.append(make_row(test="changed", **row, **of | {"value": value * 2}))
            f1 = {"value": 1000 / value, "low": None, "high": None, "measure": "f1", "higher_is_better": True}
            rows.append(make_row(test="average", **row, **f1))
    for label, learned, forgotten in (("diff", 61.0, 70.0), ("lora", 30.0, 88.0), (SCRIPT, 21.0, 30.0)):
        for measure, value in (("new_known", learned), ("old_known", forgotten)):
            of: dict[str, Any] = {"task": "learned_and_forgotten", "test": "all", "measure": measure}
            of |= {"base": BASES.get(label, "gpt2"), "month": "1112", "tested": "1112"}
            of |= {"higher_is_better": True, "low": value - 5, "high": value + 5, "model": f"models/{label[:4]}"}
            rows.append(make_row(label=label, method=label, value=value, result=f"{label[:4]}.json", **of))
            rows.append(make_row(label=label, method=label, value=value, **of | {"month": "0910", "tested": "0910"}))
    for label, value in (("diff", math.inf), ("lora", 0.5)):
        fuar = {"task": "fuar", "kind": "fuar", "test": "probes", "measure": "fuar", "tested": "1112"}
        rows.append(make_row(label=label, method=label, base=BASES.get(label, "gpt2"), value=value, low=None, **fuar))
    rows.append(make_row(task="lama", test="", measure="f1", tested=None, month=None, label="t5", value=1.0))
    return rows


def folder_of(rows: list[Row], root: Path) -> Path:
    """Write a leaderboard's folder with all files that its page links to, and return it."""
    out = root / "leader board"
    for name in FIGURES:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for ending in ("", "_narrow"):
            (out / "figures" / f"{name}{ending}.svg").write_text(SVG)
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
    warnings = [f"invented: {SCRIPT}", "and " * 99]
    write_page(rows, FIGURES, TABLES, out, items=ITEMS, results="../results", warnings=warnings)
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
        heads = [text.strip(" ▲▼") for text in self.page.locator("#board thead th").all_inner_texts()]
        return [
            self.page.locator("#board .label").nth(i).inner_text() if head == "Model" else text
            for i, text in enumerate(
                self.page.locator(f"#board tbody tr > :nth-child({heads.index(head) + 1})").all_inner_texts()
            )
        ]

    def models(self) -> list[str]:
        """Return label and month of the lines."""
        return [
            f"{label} {month}" for label, month in zip(self.column("Model"), self.column("Trained to"), strict=True)
        ]

    def values(self) -> list[str]:
        return self.column("Score")

    def sorted_by(self) -> list[tuple[str, str | None]]:
        heads = self.page.locator("#board thead th[aria-sort]").all()
        return [(head.inner_text().strip(" ▲▼"), head.get_attribute("aria-sort")) for head in heads]

    def choose(self, control: str, option: str) -> None:
        self.page.get_by_role("combobox", name=control, exact=True).select_option(label=option)

    def press_head(self, head: str) -> None:
        self.page.locator("#board thead").get_by_role("button", name=head).click()

    def hash(self) -> str:
        return unquote(urlsplit(self.page.url).fragment)


Open = Callable[..., Tab]


@pytest.fixture
def open_tab(browser: Browser, folder: Path) -> Iterator[Open]:
    """Open the page with a hash and browser settings; at the end, fail if any tab had an error."""
    tabs: list[tuple[Tab, Path]] = []

    def opened(of: str = PERPLEXITY, page: Path = folder / "index.html", **kind: Any) -> Tab:
        tabs.append((Tab(new_context(browser, **kind)), page.parent))
        return tabs[-1][0].goto(page.as_uri() + of)

    yield opened
    for tab, root in tabs:
        assert tab.wrong == []
        assert all(url.startswith((root.as_uri() + "/", "data:,")) for url in tab.asked), tab.asked
        tab.page.context.close()


SEP, NOV = "September to October", "November to December"
A, B = f"Diff {SEP}", f"Diff {NOV}"
HACKED = f"{SCRIPT} {NOV}"
LORA, START = f"LoRA {NOV}", "Start model before any month"
BEST_FIRST = [LORA, B, HACKED, A, START]
PERPLEXITY = "#task=twiki_probes"


def test_it_opens_with_learned_and_forgotten(open_tab: Open) -> None:
    tab = open_tab("")
    assert tab.page.evaluate("document.compatMode") == "CSS1Compat"
    title = tab.page.get_by_role("heading", level=1).inner_text().replace("\u2060", "").replace("\u00a0", " ")
    assert title == "No clear winner: 3 of 3 methods know 21–61 % of new facts"
    assert tab.page.locator(".methods:visible tbody th bdi").all_inner_texts() == ["Diff", "LoRA", SCRIPT]
    assert tab.models() == [B, LORA, HACKED]
    assert tab.values() == ["61.0", "30.0", "21.0"]
    assert tab.sorted_by() == [("Score", "descending")]
    assert "Higher is better. 3 scores." in tab.page.inner_text("#summary")
    assert not tab.page.locator("noscript").is_visible()


def test_the_first_screen_has_the_title_the_table_and_the_top_of_the_figure(open_tab: Open, tmp_path: Path) -> None:
    of = {"task": "learned_and_forgotten", "test": "all", "higher_is_better": True, "tested": "0910"}
    rows = [
        make_row(label=method, method=method, measure=measure, value=50.0, **of)
        for method in ("diff", "recadam", "mix_review", "lora", "k_adapter", "replay", "ewc", "lwf", "dora", "full")
        for measure in ("new_known", "old_known")
    ]
    shown = folder_of(rows, tmp_path) / "index.html"
    page = open_tab("", shown, viewport={"width": 1280, "height": 800}).page
    boxes = [page.locator(what).first.bounding_box() for what in (".notice", "h1", ".methods", "figure img")]
    tops = [box["y"] for box in boxes if box]
    assert tops == sorted(tops) and tops[-1] < 700
    assert boxes[0] is not None and boxes[0]["height"] < 40  # one line, which unfolds
    page.locator(".notice summary").click()
    assert page.locator(".notice li").all_inner_texts()[1].startswith("and and")


def test_a_click_on_a_method_shows_what_it_answered(open_tab: Open) -> None:
    tab = open_tab("")
    button = tab.page.locator(".methods:visible").get_by_role("button")
    assert button.all_inner_texts() == ["Diff"]  # the others have no items
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    lines = [
        line.split("\t") for line in tab.page.get_by_role("region", name="Facts", exact=True).inner_text().splitlines()
    ]
    assert [[cell.strip() for cell in line] for line in lines if len(line) > 1] == [
        ["Fact", "Question", "Right answer", "Model’s answer", "Known before → after"],
        ["new", "Chile head of state", SCRIPT, "=Piñera", "no → no"],
        ["old", "Chile capital", "Santiago", "Santiago", "– → yes"],
    ]
    button.click()
    assert tab.page.get_by_role("region", name="Facts", exact=True).count() == 0


def test_the_list_of_months_shows_the_table_of_each(open_tab: Open) -> None:
    tab = open_tab("", java_script_enabled=False)
    shown = tab.page.locator(".methods:visible caption")
    links = tab.page.locator(".months > a")
    assert links.all_inner_texts() == [NOV, SEP]
    for month in (SEP, NOV):
        tab.page.get_by_role("link", name=month).click()
        assert shown.all_inner_texts() == [month]
        lines = links.evaluate_all("links => links.map(link => getComputedStyle(link).textDecorationLine)")
        assert lines == ["none" if name == month else "underline" for name in (NOV, SEP)]  # a heading, and links


def test_the_scores_on_the_screen_are_a_csv_file(open_tab: Open) -> None:
    tab = open_tab(f"{PERPLEXITY}&q=acme")
    with tab.page.expect_download() as download:
        tab.page.locator("#scores ~ .links").click()
    lines = list(csv.reader(download.value.path().read_text("utf-8").splitlines()))
    assert lines[0][:3] == ["Model", "Score", "Rank"]
    assert [line[:3] for line in lines[1:]] == [["LoRA", "250", "1"], ["Start model", "1,235", "5"]]


def test_scores_of_the_newest_month_are_shown_best_first(open_tab: Open) -> None:
    tab = open_tab()
    assert tab.models() == BEST_FIRST
    assert tab.values() == ["250", "290", "300", "310", "1,235"]
    assert tab.column("95 % interval")[0] == "225 to 275"
    assert tab.column("Rank") == ["1", "2–4", "2–4", "2–4", "5"]
    assert tab.sorted_by() == [("Score", "ascending")]
    assert tab.page.inner_text("#summary") == "Lower is better. 5 scores."


# A column head, and the order of the models after the first and the second press.
SORTS = {
    "Model": ([HACKED, A, B, LORA, START], [START, LORA, A, B, HACKED]),
    "Trained to": ([START, A, HACKED, B, LORA], [HACKED, B, LORA, A, START]),
    "Rank": ([LORA, A, HACKED, B, START], [START, A, HACKED, B, LORA]),
    "Trained parameters": ([LORA, A, B, HACKED, START], [HACKED, A, B, LORA, START]),  # the start model has none
}


@pytest.mark.parametrize("key", ["", "Enter", " "])
def test_heads_sort_both_ways_by_mouse_and_by_key(open_tab: Open, key: str) -> None:
    tab = open_tab()
    presses = [(head, i, way) for head in SORTS for i, way in enumerate(("ascending", "descending"))]
    for head, i, way in presses:
        button = tab.page.locator("#board thead").get_by_role("button", name=head)
        if key:
            button.focus()
            tab.page.keyboard.press(key)
        else:
            button.click()
        assert tab.models() == SORTS[head][i]
        assert tab.sorted_by() == [(head, way)]
        assert button.evaluate("button => button === document.activeElement")  # back to the default for the next press


def test_all_months_have_a_line_each(open_tab: Open) -> None:
    tab = open_tab(f"{PERPLEXITY}&month=all+months")
    assert tab.column("Tested on").count(SEP) == 5 and tab.column("Tested on").count(NOV) == 5
    tab.press_head("Tested on")
    assert tab.column("Tested on") == [SEP] * 5 + [NOV] * 5
    of_diff = [i for i, name in enumerate(tab.models()) if name == A]
    assert [tab.column("95 % interval")[i] for i in of_diff] == ["no interval", "279 to 341"]


def test_a_model_that_does_not_compete_is_last(open_tab: Open, tmp_path: Path) -> None:
    """A model that forgets everything competes with nobody, whatever its score is, nor does one without a score."""
    of = {"measure": "new_known", "higher_is_better": True}
    rows = [make_row(label="random", value=9.0, competes=False, **of)]
    rows += [make_row(label=f"m{i}", value=float(i), rank_best=3 - i, rank_worst=3 - i, **of) for i in (1, 2)]
    rows.insert(2, make_row(label="m1 failed", value=math.nan, **of))
    rows += [
        make_row(label=f"m{i}", value=1.0, measure="chance", higher_is_better=None, competes=False) for i in (2, 1)
    ]
    tab = open_tab("#measure=new_known", folder_of(rows, tmp_path) / "index.html")
    assert tab.column("Model")[:2] == ["m2", "m1"]
    tab.press_head("Score")
    assert tab.sorted_by() == [("Score", "ascending")]
    assert tab.column("Model")[:2] == ["m1", "m2"] and len(tab.models()) == 4
    tab.choose("Measure", "chance")
    assert tab.column("Model") == ["m1", "m2"]
    assert "Neither higher nor lower is better" in tab.page.inner_text("#summary")


SEARCHES = {
    "DIFF": [B, A],
    "diff december": [B],
    "November diff ": [B],
    "acme/": [LORA, START],
    "t5": [LORA],
    "k_adapter": [HACKED],
    "<script>": [HACKED],
    "[": [],
    "": BEST_FIRST,
}


def test_search(open_tab: Open) -> None:
    tab, other = open_tab(), open_tab()
    for text, expected in SEARCHES.items():
        tab.page.get_by_label("Search").fill("")
        tab.page.get_by_label("Search").press_sequentially(text)
        assert tab.models() == expected
        assert other.goto(tab.page.url).models() == expected
        count = f"{len(expected) or 'No'} score{'s' * (len(expected) != 1)}{' found' * bool(text)}"
        assert tab.page.inner_text("#summary") == f"Lower is better. {count}."
    assert tab.page.evaluate("history.length") == 2  # letters are no steps to go back by (the first is a blank page)


def test_search_knows_letters_with_marks(open_tab: Open) -> None:
    tab = open_tab(f"{PERPLEXITY}&month={SEP}")
    tab.page.get_by_label("Search").fill("A\u030angstro\u0308m")
    assert tab.column("Model") == ["Ångström"]


def test_what_is_scored_is_chosen_and_linked(open_tab: Open) -> None:
    tab = open_tab()
    tab.choose("Test", "changed")
    assert tab.values() == ["500", "580", "600", "620", "2,469"]
    assert not any(tab.column("Rank"))
    tab.choose("Test", "average")
    tab.choose("Measure", "f1")
    assert tab.values() == ["4.00", "3.45", "3.33", "3.23", "0.81"]
    assert tab.sorted_by() == [("Score", "descending")]
    tab.choose("Tested on", SEP)
    assert tab.models() == [f"Ångström {SEP}", A, B, HACKED, START]
    tab.press_head("Model")
    assert {"sort=Model", "measure=f1"} <= set(tab.hash().split("&"))
    other = open_tab(f"#{urlsplit(tab.page.url).fragment}")
    assert (other.models(), other.sorted_by()) == (tab.models(), tab.sorted_by())
    tab.choose("Task", "fuar")
    assert (tab.models(), tab.values()) == ([f"LoRA {SEP}", f"Diff {SEP}"], ["0.500", "∞"])


def test_an_address_that_means_nothing_is_the_first_view(open_tab: Open) -> None:
    tab = open_tab("#tables")
    first, page = tab.models(), tab.page.url.partition("#")[0]
    for of in ("task=none", "month=9999&sort=x&down=up", "=%", "=&=", "test=&measure=&month=", f"q={'+' * 99}"):
        assert tab.goto(f"{page}{PERPLEXITY}").models() == BEST_FIRST
        assert tab.goto(f"{page}#{of}").models() == first


def test_a_place_in_the_page_changes_no_view(open_tab: Open) -> None:
    tab = open_tab()
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the results"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**#ranking")  # a key is pressed when it is sent; the browser follows the link after that
    assert tab.models() == BEST_FIRST


def test_a_task_without_months_and_one_with_infinity(open_tab: Open) -> None:
    assert open_tab("#task=lama").models() == ["t5 before any month"]
    assert open_tab("#task=fuar").values() == ["0.500", "∞"]


def test_links_lead_to_files_that_are_there_and_to_cards(open_tab: Open) -> None:
    tab = open_tab(f"{PERPLEXITY}&month=all+months")
    links = tab.page.locator("a[href]").evaluate_all("links => links.map(link => [link.href, link.rel, link.target])")
    cards = {tuple(link) for link in links if link[0].startswith("https://huggingface.co")}
    assert cards == {(f"https://huggingface.co/acme/{name}", "noopener", "_blank") for name in ("gpt2", "lora-1112")}
    files = {urlsplit(url).path for url, _, _ in links if url.startswith("file:")}
    assert all(Path(unquote(file)).is_file() for file in files), files
    results = [file for file in files if "/results/" in file]
    assert len(results) == sum(len(checkpoint.values) for checkpoint in CHECKPOINTS)


def test_a_hostile_label_is_text(open_tab: Open) -> None:
    tab = open_tab()
    assert SCRIPT in tab.column("Model")
    assert SCRIPT in tab.page.locator(".methods").first.inner_text()
    assert SCRIPT in tab.page.inner_text(".notice")
    assert tab.page.evaluate("window.hacked") is None
    assert tab.page.locator("script").count() == 2
    assert tab.page.locator("table img").count() == 0


def test_no_other_script_runs_even_where_one_got_into_the_page(browser: Browser, folder: Path) -> None:
    text = (folder / "index.html").read_text("utf-8")
    inside = (
        "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><base href='https://example.org/'>"
    )
    copy = folder / "with-a-script.html"
    copy.write_text(text.replace("<main>", f"<main>{inside}"), "utf-8")
    context = new_context(browser)
    tab = Tab(context).goto(copy.as_uri() + PERPLEXITY)
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
def test_page_and_figures_follow_the_theme(open_tab: Open, tmp_path: Path, scheme: str) -> None:
    """A figure has the background of the page's sheets, and its text is light where the page's is."""
    rows = [
        make_row(label=label, month=month, test="average", value=value)
        for label, month, value in (("initial", None, 9.0), ("diff", "0910", 8.0))
    ]
    figures = write_figures(rows, tmp_path / "figures")
    tab = open_tab("", write_page(rows, figures, {}, tmp_path), color_scheme=scheme)
    tab.page.locator("#figures + details summary").click()
    tab.page.locator("figure img").first.evaluate("image => image.decode()")
    pixels = imread(io.BytesIO(tab.page.locator("figure img").first.screenshot()))[..., :3]
    sheet = pixels[4, 4]  # in the padding
    assert (sheet.mean() > 0.9) == (scheme == "light") and (sheet.mean() < 0.2) == (scheme == "dark")
    same = (abs(pixels - sheet) < 0.01).all(axis=2).mean()
    assert same > 0.8  # no box of another colour
    assert abs(pixels - sheet).max() > 0.7  # and ink that one can see


@pytest.mark.parametrize(("width", "name"), [(1280, "fuar.svg"), (390, "fuar_narrow.svg")])
def test_a_phone_gets_narrow_figures(open_tab: Open, width: int, name: str) -> None:
    tab = open_tab(viewport={"width": width, "height": 800})
    tab.page.get_by_text("Figure fuar", exact=True).click()
    image = tab.page.get_by_role("img", name="Figure fuar")
    image.evaluate("image => image.decode()")
    assert image.evaluate("image => image.currentSrc").endswith(f"figures/{name}")
    frame, main = image.bounding_box(), tab.page.locator("main").bounding_box()
    assert frame is not None and main is not None and frame["width"] == main["width"]  # it fills the page


@pytest.mark.parametrize("of", ["", PERPLEXITY, f"{PERPLEXITY}&q=nothing+like+it"])
def test_a_phone_scrolls_the_board_and_not_the_page(open_tab: Open, of: str) -> None:
    tab = open_tab(of, viewport={"width": 360, "height": 740}, has_touch=True)
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
    methods = tab.page.locator(".board:has(.methods)").first
    assert methods.evaluate("board => board.scrollWidth === board.clientWidth")
    if of != PERPLEXITY:
        return
    for head in ("Score", "Rank"):
        box = tab.page.locator("#board thead").get_by_role("button", name=head).bounding_box()
        assert box is not None and box["x"] + box["width"] <= 360, head
    board = tab.page.locator("#board")
    assert board.evaluate("board => board.scrollWidth > board.clientWidth")
    left = "th => th.getBoundingClientRect().left"
    before = tab.page.locator("#board tbody th").first.evaluate(left)
    board.evaluate("board => board.scrollTo(200, 0)")
    assert tab.page.locator("#board tbody th").first.evaluate(left) == before  # names stay


def test_cutoffs_without_scores_are_a_page_without_errors(open_tab: Open, tmp_path: Path) -> None:
    table = ScoreTable(
        "Knowledge cutoffs", "what", ("model", "cutoff"), (("gpt2", "2021-03"), ("W" * 200, "cannot tell"))
    )
    tab = open_tab("", write_page([], {}, {"cutoffs": table}, tmp_path))
    assert tab.page.locator(".cutoffs tbody tr").first.inner_text().split() == ["gpt2", "2021-03"]
    assert not tab.page.get_by_text("All scores", exact=True).first.is_visible()
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_a_script_the_page_opens_the_same(open_tab: Open) -> None:
    with_script, without = open_tab(), open_tab(java_script_enabled=False)
    assert without.page.locator("noscript .note").is_visible()
    assert not without.page.locator("#controls").is_visible()
    texts = [tab.page.locator("section").first.inner_text() for tab in (with_script, without)]
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
@pytest.mark.parametrize("of", ["", f"{PERPLEXITY}&month=all+months", "#q=nothing+like+it"])
def test_all_text_has_contrast_in_both_themes(open_tab: Open, scheme: str, of: str) -> None:
    tab = open_tab(of, color_scheme=scheme)
    tab.page.locator("summary").first.click()
    tab.page.locator(".methods:visible button").click()
    tab.page.locator(".methods:visible tbody tr").last.hover()
    count, least, where = tab.page.evaluate(CONTRAST)
    assert count > 30
    assert least >= 4.5, where


def test_every_control_has_a_name_and_a_visible_focus(open_tab: Open) -> None:
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
    assert len(stops) > 20 and stops[0] == "Skip to the results"


def test_there_is_one_main_part_one_heading_and_a_language(open_tab: Open) -> None:
    tab = open_tab()
    for role, count in (("main", 1), ("banner", 1), ("contentinfo", 1), ("navigation", 1), ("note", 1)):
        assert tab.page.get_by_role(role).count() == count, role  # type: ignore[arg-type]
    assert tab.page.get_by_role("heading", level=1).count() == 1
    headings = tab.page.get_by_role("heading", level=2).all_inner_texts()
    assert headings == ["All scores", *headings[1:2], "Tables and data", "Add a model", "Cite"]
    assert tab.page.locator("html").get_attribute("lang") == "en"
    assert tab.page.get_by_role("table", name=NOV).is_visible()
    assert tab.page.locator("#board").get_by_role("rowheader").count() == 5


def test_it_is_printed_whole_light_and_without_controls(open_tab: Open) -> None:
    tab = open_tab(color_scheme="dark")
    assert len(tab.page.pdf()) > 10_000
    tab.page.emulate_media(media="print")
    assert not tab.page.locator("#controls").is_visible()
    board = tab.page.locator("#board")
    assert board.evaluate("board => board.scrollHeight === board.clientHeight")
    assert tab.page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 29, 26)"


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
            tab = Tab(context).goto(f"{url}leader%20board/index.html{PERPLEXITY}")
            sizes = tab.page.locator("figure img").evaluate_all("images => images.map(image => image.naturalWidth)")
            assert sizes == [30, 30]
            tab.choose("Tested on", "all months")
            assert len(tab.models()) == 10
            assert tab.wrong == []
            assert all(address.startswith((url, "data:,")) for address in tab.asked)
        finally:
            context.close()
            server.shutdown()
            thread.join()
