"""Compare the speed and quality of our wikitext parser with mwparserfromhell, on pages of real dumps.

    python benchmarks/plain_text.py --dumps DIR

The program reads all *.xml and *.xml.bz2 page dumps in DIR and prints a Markdown table. mwparserfromhell gets the page
without its references, which it would leave in the text. No measure takes our own parser as the truth:

whole       The share of easy paragraphs that a parser returns in one piece, white space and forms such as superscripts
            apart. The source of an easy paragraph has only text, plain links, quotes and references, so the
            benchmark can render it itself.
kept        The share of templates with text of the sentence ({{nowrap|...}}, {{lang|xx|...}}, {{convert|...}})
            whose text stands at its place.
residue     Faults in a page: braces, brackets, table marks, quotes, tags; empty brackets or brackets that begin or end
            with a separator; a blank before a comma or full stop that the source does not have.
"""

import argparse
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from table import Cell, show

from temporalwiki.builders.wikipedia import xml_dump
from temporalwiki.builders.wikipedia.plain_text import paragraphs

Contender = Callable[[str], str]


def ours(wikitext: str) -> str:
    return "\n\n".join(paragraphs(wikitext))


def mwparserfromhell_strip_code(wikitext: str) -> str:
    import mwparserfromhell

    return str(mwparserfromhell.parse(REFERENCE.sub("", wikitext)).strip_code())


CONTENDERS: dict[str, Contender] = {"temporalwiki": ours, "mwparserfromhell": mwparserfromhell_strip_code}


def read_articles(path: Path) -> Iterator[str]:
    """Yield the wikitext of the articles of a dump, which may be cut off."""
    for page in xml_dump.read_pages(path, xml_dump.read_header(path), xml_dump.DumpCounts(), allow_truncated=True):
        if page.namespace == 0 and not page.redirect and (text := page.text) is not None:
            yield text


# Parsers may write superscripts in different ways; all count as right.
def folded(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text.replace("''", "")))


REFERENCE = re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>[^<>]*</ref>|<!--[^<>]*-->")
PLAIN_LINK = re.compile(r"\[\[(?:[^\[\]|:{}]*\|)?([^\[\]|:{}]+)\]\]")
NOT_EASY = re.compile(r"[{}<>\[\]|&]|''''|\w'''\w|http|__")
APPARATUS = re.compile(
    r"^==\s*(?:see also|references|external links|further reading|notes.*|bibliography|footnotes"
    r"|sources|citations|works cited|gallery)\s*==\s*$",
    re.IGNORECASE,
)
CARRIERS = re.compile(
    r"([A-Za-z,;] ?)\{\{(nowrap|nobr|small|smaller|lang\|[\w-]+|transl\|\w+(?:\|[A-Z]+)?|abbr|convert|cvt"
    r"|unicode|mvar|vanchor|visible anchor|nihongo|linktext|angbr|currency|US\$|flag|IAST|sc|smallcaps"
    r"|interlanguage link|ill)\|([^{}|\[\]=<>&']+)(?![=\w])[^{}]*\}\}",
    re.IGNORECASE,
)


@dataclass
class Truth:
    """The expected text of a page: easy paragraphs, and (text before, text of the template) pairs."""

    easy: list[str] = field(default_factory=list)
    carried: list[tuple[str, str]] = field(default_factory=list)
    blank_before_stop: int = 0


def truth_of(wikitext: str) -> Truth:
    truth = Truth()
    source = REFERENCE.sub("", wikitext)
    apparatus = False
    depth = 0
    for block in source.split("\n"):
        if block.startswith("=="):
            if not block.startswith("==="):
                apparatus = bool(APPARATUS.match(block))
            continue
        before_depth = depth
        depth += block.count("{{") - block.count("}}") + block.count("{|") - block.count("|}")
        depth = max(0, depth)
        if before_depth or apparatus or len(block) < 80 or block[0] in "*#:;|!{ <[":
            continue
        truth.blank_before_stop += len(BLANK_BEFORE_STOP.findall(block))
        plain = PLAIN_LINK.sub(r"\1", block)
        if not NOT_EASY.search(plain) and "Category:" not in plain:
            truth.easy.append(folded(plain.replace("'''", "").replace("''", "")))
        for match in CARRIERS.finditer(block):
            before = block[max(0, match.start() - 30) : match.start() + len(match[1])]
            lead = re.split(r"[\[\]{}|<>']|&\w+;|!--", before)[-1]
            if len(lead.strip()) >= 6:
                truth.carried.append((folded(lead), folded(match[3])))
    return truth


BLANK_BEFORE_STOP = re.compile(r"\w ['\"]*[,.](?=\s|$)")
RESIDUE = {
    "markup": re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|'{3,}|</?(?:ref|div|span|br|small|sup|sub|table)\b|\|-"),
    "brackets": re.compile(r"\(\s*[,;:]|[,;]\s*\)|(?<!\w)\(\s*\)"),
    "blank before stop": BLANK_BEFORE_STOP,
}


@dataclass
class ParserScore:
    seconds: float = 0.0
    failed: int = 0
    easy: int = 0
    whole: int = 0
    carried: int = 0
    kept: int = 0
    residue: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESIDUE, 0))


def measure(contender: Contender, pages: list[str], truths: list[Truth]) -> ParserScore:
    score = ParserScore()
    for page, truth in zip(pages, truths, strict=True):
        start = time.process_time()
        try:
            text = contender(page)
        except ImportError:  # pip install 'temporalwiki[bench]'
            raise
        except Exception:  # noqa: BLE001 - parsers fail in many ways; all are counted
            score.failed += 1
            text = ""
        score.seconds += time.process_time() - start
        solid = folded(text)
        score.easy += len(truth.easy)
        score.whole += sum(paragraph in solid for paragraph in truth.easy)
        for lead, carried in truth.carried:
            score.carried += 1
            digits = re.sub(r"\D", "", carried)
            near = [solid[m.end() : m.end() + len(carried) + 40] for m in re.finditer(re.escape(lead), solid)]
            score.kept += any(
                carried in piece or (digits != "" and digits in re.sub(r"\D", "", piece)) for piece in near
            )
        for name, pattern in RESIDUE.items():
            found = len(pattern.findall(text))
            score.residue[name] += max(0, found - truth.blank_before_stop) if "stop" in name else found
    return score


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dumps", type=Path, required=True, help="folder with page dumps, searched deeply")
    options = parser.parse_args()

    files = [path for path in sorted(options.dumps.rglob("*.xml*")) if path.suffix in (".xml", ".bz2")]
    pages = list(dict.fromkeys(text for path in files if "index" not in path.name for text in read_articles(path)))
    if not pages:
        parser.error(f"{options.dumps}: no articles in *.xml or *.xml.bz2 there")
    size = sum(len(page.encode()) for page in pages) / 1e6
    truths = [truth_of(page) for page in pages]

    rows: list[list[Cell]] = []
    for name in CONTENDERS:
        score = measure(CONTENDERS[name], pages, truths)
        whole, kept = share(score.whole, score.easy), share(score.kept, score.carried)
        residue = [round(count / len(pages), 2) for count in score.residue.values()]
        rows.append([name, round(size / score.seconds, 1), score.failed, whole, kept, *residue])
    easy, carried = (sum(map(len, lists)) for lists in zip(*((one.easy, one.carried) for one in truths), strict=True))
    note = (
        f"{len(pages):,} articles of real dumps, {size:.1f} MB, with {easy:,} easy paragraphs and {carried:,} "
        "templates with text of the sentence. *Whole* and *kept* are the shares that come out right; the last columns "
        "are faults in a page. [From wikitext to paragraphs](wikitext.md) explains them."
    )
    columns = ("parser", "MB/s (CPU)", "pages that failed", "whole", "kept", *RESIDUE)
    show("Wikitext to plain text", columns, rows, note)


if __name__ == "__main__":
    main()
