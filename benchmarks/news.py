"""Compare the text and dates that our news reader finds with trafilatura's own, on pages whose text is known.

    python benchmarks/news.py FOLDER... [--before CHECKOUT] [--worst N]

Each folder has saved pages, ``Site_2024_05_17.html.gz``, and their texts, ``Site.json``, as fundus keeps them for its
tests; or ``html/ID.html.gz`` and ``ground-truth.json``, as the article extraction benchmark keeps them. --before adds
the reader of another checkout of this project. The program prints a Markdown table, and with --worst the pages with
the lowest scores:

F1          Token F1 of the text, the mean over pages. A token is a word, or a character of Chinese, Japanese or Thai.
below .5    Pages with a lower F1 than that; a page that is dropped has an F1 of 0.
titles      Pages whose title is right, of those with a known title.
dates       Pages whose day of publishing is right, of those with a known date.
CPU         Seconds for all pages, with the start of the program.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import html
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import regex

HERE = Path(__file__).resolve()
TOKEN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[^\W_]+")


@dataclass(frozen=True)
class Article:
    """What a page says, or what a contender finds in it."""

    text: str
    title: str | None = None
    published: str | None = None  # UTC


def tokens(text: str) -> Counter[str]:
    return Counter(TOKEN.findall(text.lower()))


def f1(found: str, gold: str) -> float:
    one, other = tokens(found), tokens(gold)
    return 2 * (one & other).total() / (one.total() + other.total() or 1)


# Pages


def pages(folder: Path) -> Iterator[Path]:
    """Yield the saved pages of a folder and its subfolders."""
    yield from sorted(folder.rglob("*.html.gz"))


def content(page: Path) -> bytes:
    return gzip.decompress(page.read_bytes())


def gold(page: Path) -> Article | None:
    """Return what a page says; None if nobody has written it down."""
    truth = page.parent.parent / "ground-truth.json"
    if truth.exists():
        known = json.loads(truth.read_text("utf-8"))[page.name.removesuffix(".html.gz")]
        return Article(known.get("articleBody", ""))
    site = page.with_name(regex.sub(r"_\d{4}_\d\d_\d\d.*", ".json", page.name))
    if not site.exists():
        return None
    # of the texts of a site, the one whose words the page has
    said = tokens(html.unescape(content(page).decode("utf-8", "replace")).replace("\\u003c", "<"))
    written = [_article(one) for one in json.loads(site.read_text("utf-8")).values()]
    written = [one for one in written if one.text]
    return max(written, key=lambda one: (said & tokens(one.text)).total() / tokens(one.text).total(), default=None)


def _article(one: dict[str, Any]) -> Article:
    body = one.get("body") or {"summary": [], "sections": []}
    lines = [*body["summary"]]
    for part in body["sections"]:
        lines += [*part["headline"], *part["paragraphs"]]
    return Article("\n".join(lines), one.get("title"), one.get("publishing_date"))


# Contenders: from the bytes of a page to its article; None if it is dropped


def temporalwiki() -> Callable[[bytes], Article | None]:
    from temporalwiki.builders.ckl.html_page import Extractor

    extractor = Extractor().__enter__()  # its process ends with this one

    def read(data: bytes) -> Article | None:
        found = extractor.read(data)
        if isinstance(found, str):
            return None
        moment = None if found.published is None else datetime.datetime.fromtimestamp(found.published, datetime.UTC)
        return Article(found.text or "", found.title, moment and moment.isoformat())

    return read


def trafilatura() -> Callable[[bytes], Article | None]:
    import trafilatura

    def read(data: bytes) -> Article | None:
        found = trafilatura.extract(data, output_format="json", with_metadata=True)
        if found is None:
            return None
        fields = json.loads(found)
        return Article(fields["text"] or "", fields["title"], fields["date"])

    return read


CONTENDERS = {"temporalwiki": temporalwiki, "trafilatura": trafilatura}


def run(contender: str, folders: list[Path], checkout: Path) -> tuple[dict[str, Any], float]:
    """Return what a contender finds in each page, and the CPU seconds that it takes."""
    path = os.pathsep.join([str(checkout / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE), *map(str, folders), "--contender", contender]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(out), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name: str, found: dict[str, Any], golds: dict[str, Article], cpu: float) -> tuple[str, dict[str, float]]:
    """Return a line of the table, and the F1 of each page."""
    scores, titles, dates = {}, [], []
    for page, known in golds.items():
        article = Article(**found[page]) if found[page] else Article("")
        scores[page] = f1(article.text, known.text)
        if known.title:
            titles.append(tokens(article.title or "") == tokens(known.title))
        if known.published:
            dates.append((article.published or "")[:10] == utc_day(known.published))
    f1s = list(scores.values())
    line = f"| {name} | {mean(f1s):.3f} | {sum(one < 0.5 for one in f1s)} | {sum(one < 0.3 for one in f1s)} | "
    return line + f"{sum(titles)} of {len(titles)} | {sum(dates)} of {len(dates)} | {cpu:.0f} |", scores


def utc_day(moment: str) -> str:
    return datetime.datetime.fromisoformat(moment).astimezone(datetime.UTC).date().isoformat()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="name this many pages of each contender")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = {str(page): page for folder in options.folders for page in pages(folder)}
    if options.contender:
        read = CONTENDERS[options.contender]()
        articles = {name: read(content(page)) for name, page in known.items()}
        print(json.dumps({name: article and vars(article) for name, article in articles.items()}))
        return
    golds = {name: article for name, page in known.items() if (article := gold(page))}
    checkouts = {name: (name, HERE.parents[1]) for name in CONTENDERS}
    if options.before:
        checkouts["temporalwiki before"] = ("temporalwiki", options.before)
    lines, worst = [], []
    for name, (contender, checkout) in checkouts.items():
        found, cpu = run(contender, options.folders, checkout)
        line, scores = row(name, found, golds, cpu)
        lines.append(line)
        lowest = sorted(scores, key=scores.__getitem__)[: options.worst]
        worst += [f"{name}: {scores[page]:.3f} {page}" for page in lowest]
    print(f"{len(golds)} pages\n\n| reader | F1 | below .5 | below .3 | titles | dates | CPU |\n|{'---|' * 7}")
    print("\n".join([*lines, *worst]))


if __name__ == "__main__":
    main()
