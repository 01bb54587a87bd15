"""Measure the text of real pages in many languages.

    python benchmarks/languages.py --pages DIR

DIR has a folder for each language with a dump in it, such as dump/src/test/resources/minidumps of DBpedia's
extraction-framework, whose pages we do not copy. No measure takes our own parser as the truth:

markup      Sentences with braces, brackets, tags, switches, marks of tables or of a picture. They are printed.
fragments   Sentences that end with a number, a letter or a Roman numeral and a full stop inside of a line, or that
            begin there with a small letter or a closing mark. Some of them are right.
changed     Paragraphs that are another text after their sentences were joined.
links       Links in lines of prose, except years and the like, whose text stands in the page's text as whole words.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from plain_text import read_articles, share
from table import Cell, show

from temporalwiki.builders.snapshot import LANGUAGES
from temporalwiki.builders.wikidata.align import says
from temporalwiki.builders.wikipedia.outline import links
from temporalwiki.builders.wikipedia.plain_text import paragraphs
from temporalwiki.builders.wikipedia.sentences import join_sentences, split_sentences

FEW = 500  # sentences, below which languages share a row of the table
MARKUP = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|'{3,}|-\{|\}-|</?[A-Za-z]{1,15}\b[^<>]*>|<!--|-->|__\w+__|＿＿|\|-"
    r"|^\s*[|!]|\|\s*(?:thumb|thumbnail|mini|miniatur\w*|right|left|frame)\s*\||\b\d{2,4}px\b",
    re.IGNORECASE,
)
CUT_OFF = re.compile(r"(?:^|(?<!\d)[\s(])(?:\d{1,3}|[^\W\d_]|[IVXLC]{1,6})\.$")
PROSE = re.compile(r"[^{}<>|!*#:;=\s\[][^{}<>]{79,}")
LINK = re.compile(r"\[\[(?!\d)[^\[\]|:{}<>\n]+(?:\|[^\[\]|{}<>\n]+)?\]\][^\W\d_]*")


def measure(page: str, language: str) -> Counter[str]:
    """Count what the columns of the table show."""
    texts = paragraphs(page, language=language)
    found = Counter(pages=1, paragraphs=len(texts))
    for text in texts:
        found["changed"] += join_sentences(split_sentences(text, language)) != text
        for line in text.split("\n"):
            sentences = split_sentences(line, language)
            found["sentences"] += len(sentences)
            inside = [sentence[0].islower() or sentence[0] in ")]}»”’」』,;:" for sentence in sentences[1:]]
            found["fragments"] += sum(inside) + sum(bool(CUT_OFF.search(sentence)) for sentence in sentences[:-1])
            for sentence in filter(MARKUP.search, sentences):
                found["markup"] += 1
                print(f"{language}: {sentence}")
    whole = " ".join(texts)
    for line in filter(PROSE.fullmatch, page.split("\n")):
        for link in LINK.findall(line):
            found["links"] += 1
            found["links found"] += all(says(whole, text) for text in links(link))
    return found


def row(name: str, found: Counter[str]) -> list[Cell]:
    """Return a row of the table."""
    fragments, changed = share(found["fragments"], found["sentences"]), share(found["changed"], found["paragraphs"])
    counts = [found[key] for key in ("pages", "sentences", "markup")]
    return [name, *counts, fragments, changed, found["links"], share(found["links found"], found["links"])]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, required=True, help="folder with a folder of dumps for each language")
    options = parser.parse_args()

    every: dict[str, Counter[str]] = {}
    for path in sorted(options.pages.glob("*/*.xml*")):
        code = LANGUAGES.get(path.parent.name, path.parent.name.replace("_", "-"))
        for page in read_articles(path):
            every.setdefault(code, Counter()).update(measure(page, code))
    few = [code for code, found in every.items() if found["sentences"] < FEW]
    rows = [row(code, found) for code, found in every.items() if code not in few]
    for name, codes in ((f"{len(few)} others", few), ("all", list(every))):
        rows.append(row(name, sum((every[code] for code in codes), Counter())))
    show("Languages", ("language", "pages", "sentences", "markup", "fragments", "changed", "links", "found"), rows)


if __name__ == "__main__":
    main()
