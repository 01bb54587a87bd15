"""Convert a clone of github.com/endoflife-date/endoflife.date to Wikipedia and Wikidata dumps at given dates.

For each date it takes the newest commit up to the end of that day (UTC). A product is a page and an item, and so is
each of its releases. The prose is the source's; each cell of its table of releases is a sentence (``words.yaml``).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import html
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.terminal import in_line, say
from temporalwiki.builders.dumps import Item, Page, Statement, stable_number, wikitext, write_dumps
from temporalwiki.builders.git_history import Commit, NoCommit, commits_until, files, month_before
from temporalwiki.builders.snapshot import check_date

PRODUCT = re.compile(r"products/([a-z0-9][a-z0-9._-]{0,80})\.md")
LARGEST = 1 << 20  # bytes of a file; the source's largest has an eighth of it
DEEPEST = 20  # lists and maps within each other
LONGEST = 120  # characters of a name, a label or a version
LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # all values are text: 3.10 stays 3.10
TABLES = read_yaml(Path(__file__).with_name("words.yaml"))
LABELS = {relation: one["label"] for relation, one in TABLES["relations"].items()}
CATEGORY, TAG, NEWEST, LATEST, RELEASED = list(LABELS)[:5]


@dataclass
class Snapshot:
    """What one commit says: pages and items, what could not be read, and how many cells state nothing, by reason."""

    commit: Commit
    products: set[str] = field(default_factory=set)  # the names of their files
    pages: list[Page] = field(default_factory=list)
    items: dict[str, Item] = field(default_factory=dict)
    values: dict[str | None, Item] = field(default_factory=dict)  # versions, dates, categories and tags
    problems: list[str] = field(default_factory=list)
    empty: Counter[str] = field(default_factory=Counter)

    def value(self, label: str, alias: str = "") -> str:
        """Return the id of the item with a label."""
        id = f"Q{stable_number(f'value {label}')}"
        self.values.setdefault(id, Item(id, {"en": label}, aliases={"en": [alias]} if alias else {}))
        return id


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields of a product's file, all of them text, and its Markdown. Raises ValueError if it cannot."""
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*$", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise ValueError("no front matter between two lines of ---")
    depth = 0
    for event in yaml.parse(match[1], Loader=LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has an alias, which could stand for a thousand others")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError("lists within lists, too deep")
    fields = yaml.load(match[1], Loader=LOADER)
    if not isinstance(fields, dict) or not isinstance(fields.get("releases"), list):
        raise ValueError("its front matter has no list of releases")
    return fields, text[match.end() :]


def plain(value: object) -> str:
    """Return a short text without HTML, templates and characters that titles cannot have, or ""."""
    text = html.unescape(re.sub(r"<[^<>]*>|\{[^{}]*\}+", " ", value)) if isinstance(value, str) else ""
    text = " ".join(text.translate(str.maketrans("[]{}|<>#_", "()()/()  ")).split())
    return text if len(text) <= LONGEST and text.isprintable() else ""


def day(value: object) -> str | None:
    """Return a date as it is, 2026-04-01, or None for anything else, such as "true"."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return None
    try:
        return str(datetime.date.fromisoformat(value))
    except ValueError:
        return None


def prose(markdown: str) -> str:
    """Return Markdown as wikitext: paragraphs, lists and headings, without tables, code and addresses."""
    text = re.sub(r"^ *(```|~~~).*?(?:^ *\1|\Z)|<!--.*?(?:-->|\Z)", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\{%[^%]*%\}|\{\{[^{}]*\}\}|\{:[^{}]*\}|!\[[^\[\]]*\]\([^()]*\)|\[\^[^\[\]]*\]:?", "", text)
    text = re.sub(r"\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])", r"\1", text)
    text = html.unescape(re.sub(r"<(https?://[^<>]*)>|</?[A-Za-z][^<>]*>", r"\1", text))
    text = re.sub(r"(?<![\w*])[*_]([^*_\n]+)[*_](?![\w*])", r"\1", text.replace("**", "").replace("`", ""))
    lines: list[str] = [""]  # each is a block or a part of a list; "" ends a block
    for line in (re.sub(r"^[ \t]*>[ \t]?", "", one).strip() for one in text.split("\n")):
        heading, part = re.match(r"#{1,6} (.*?)[ #]*$", line), re.match(r"(?:[-*+]|\d{1,3}[.)]) (.*)", line)
        if re.match(r"\||\[[^\[\]]*\]: |[-=*_ :]{3,}$", line):
            continue
        if heading:
            lines += ["", f"== {wikitext(heading[1])} ==", ""]
        elif part:
            lines.append(f"* {wikitext(part[1])}")
        elif line and lines[-1] and not lines[-1].startswith("=="):
            lines[-1] += " " + wikitext(f".{line}")[1:]  # the point keeps what may not begin a line
        else:
            lines.append(wikitext(line))
    text = "".join(c for c in "\n".join(lines) if c == "\n" or c.isprintable())
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def titled(product: str, label: str) -> str:
    """Return the title of a release: the "iPhone 17" of the "Apple iPhone" is "Apple iPhone 17"."""
    words = product.split()
    for at in range(len(words)):
        if f"{label} ".casefold().startswith(f"{' '.join(words[at:])} ".casefold()):
            return " ".join([*words[:at], label])
    return f"{product} {label}"


class Subject:
    """A page and its item, which grow with each fact."""

    def __init__(self, found: Snapshot, name: str, title: str) -> None:
        self.found, self.title, self.sentences = found, title, list[str]()
        self.item = Item(f"Q{stable_number(name)}", {"en": title}, sitelinks={"enwiki": title[:1].upper() + title[1:]})

    def state(self, relation: str, label: str, start: str | None = None, more: str = "", alias: str = "") -> None:
        """Add a fact and its sentence; the sentence goes on with ``more``."""
        self.item.statements.append(Statement(relation, self.found.value(label, alias), start))
        pattern = TABLES["patterns"][stable_number(f"{self.item.id} {relation}") % len(TABLES["patterns"])]
        what = LABELS[relation]
        words = {"label": what, "Label": what.capitalize(), "title": self.title, "value": label + more}
        self.sentences.append(wikitext(pattern.format(**words)))

    def write(self, text: str) -> None:
        """Add the page and the item to the snapshot."""
        self.found.items[self.item.id] = self.item
        moment, title = f"{self.found.commit.day}T00:00:00Z", self.item.sitelinks["enwiki"]
        self.found.pages.append(Page(int(self.item.id[1:]), title, text, timestamp=moment))


def read_product(found: Snapshot, file: str, fields: dict[str, Any], markdown: str, titles: set[str]) -> None:
    """Add a product and its releases. Raises ValueError if it has no name of its own."""
    name, category = plain(fields.get("title")), plain(fields.get("category"))
    if not name or name.casefold() in titles:
        raise ValueError("no title, or that of another page")
    titles.add(name.casefold())
    product = Subject(found, f"product {file}", name)
    if category:
        product.state(CATEGORY, TABLES["categories"].get(category, category))
    for tag in dict.fromkeys(plain(fields.get("tags")).split()):
        product.state(TAG, tag)
    newest: tuple[str, str, dict[str, Any]] = ("", "", {})  # its day, its label and its cells
    for number, row in enumerate(fields["releases"]):
        cycle = plain(row.get("releaseCycle")) if isinstance(row, dict) else ""
        if not cycle:
            found.problems.append(f"products/{file}.md: release {number + 1}: no releaseCycle")
            continue
        template = row.get("releaseLabel", fields.get("releaseLabel"))
        label, codename = template if isinstance(template, str) else "", plain(row.get("codename"))
        if "{{" in label or (not codename and "__CODENAME__" in label):
            label = ""
        label = plain(label.replace("__RELEASE_CYCLE__", cycle).replace("__CODENAME__", codename)) or cycle
        free = (one for one in (titled(name, label), titled(name, cycle)) if one.casefold() not in titles)
        release = Subject(found, f"release {file} {cycle}", next(free, ""))
        if not release.title or release.item.id in found.items:
            found.problems.append(f"products/{file}.md: {in_line(cycle)}: another release has its name")
            continue
        titles.add(release.title.casefold())
        read_release(found, release, row)
        if category:  # the topic of its facts; the product's page says it
            class_id = found.value(TABLES["categories"].get(category, category))
            release.item.statements.append(Statement(CATEGORY, class_id))
        opening = wikitext(f"This page is about {release.title}, a release of {name}.")
        release.write("\n\n".join([opening, " ".join(release.sentences)]).strip())
        released = day(row.get("releaseDate")) or ""
        if newest[0] < released <= found.commit.day:
            newest = released, label, row
    if newest[1]:
        product.state(NEWEST, newest[1], newest[0], f" ({newest[0]})")
        state_latest(product, newest[2])
    first, _, rest = prose(markdown).partition("\n\n")
    product.write("\n\n".join(filter(None, (first, " ".join(product.sentences), rest))))


def read_release(found: Snapshot, release: Subject, row: dict[str, Any]) -> None:
    """Add the cells of a release, and count the cells that state nothing."""
    if not state_latest(release, row):
        found.empty["no latest version"] += 1
    for relation, one in TABLES["relations"].items():
        given = [row[key] for key in one.get("keys", "").split() if row.get(key) not in (None, "", "~", "null")]
        when = day(given[0]) if given else None
        if when:
            year, month, number = when.split("-")
            words = f"{int(number)} {TABLES['months'].split()[int(month) - 1]} {year}"
            release.state(relation, when, when if relation == RELEASED else None, alias=words)
        elif given:
            yes_or_no = given[0] in ("true", "false")
            found.empty[f"{one['label']}: {'yes or no instead of a date' if yes_or_no else 'not a date'}"] += 1
        elif one.get("needed"):
            found.empty[f"{one['label']}: no such cell"] += 1


def state_latest(subject: Subject, row: dict[str, Any]) -> bool:
    """Add the latest version of a release, and return whether it has one."""
    version, since = plain(row.get("latest")), day(row.get("latestReleaseDate"))
    if version:
        subject.state(LATEST, version, since, f" ({since})" if since else "")
    return bool(version)


def read_snapshot(clone: Path, date: str) -> Snapshot:
    """Read the newest commit up to a date. Raises InputError if it has no product."""
    found = Snapshot(next(commits_until(clone, date)))
    titles = set[str]()
    for path, content in sorted(files(clone, found.commit.id, PRODUCT, LARGEST, found.problems)):
        file = PRODUCT.fullmatch(path)[1]  # type: ignore[index]
        try:
            read_product(found, file, *front_matter(content.decode("utf-8")), titles)
        except (ValueError, yaml.YAMLError, RecursionError) as error:
            found.problems.append(f"{path}: {error}")
        else:
            found.products.add(file)
    if not found.products:
        raise InputError(f"{clone}: the commit of {found.commit.day} has no product in products/*.md")
    return found


def main() -> int:
    """Write the dumps of all dates and say what each holds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("clone", "dumps"):
        parser.add_argument(name, type=Path)
    parser.add_argument("dates", nargs="+", help="YYYYMMDD")
    options = parser.parse_args()
    read = functools.lru_cache(3)(functools.partial(read_snapshot, options.clone))
    values, seen = dict[str | None, Item](), set[str]()
    try:
        for date in sorted(map(check_date, set(options.dates))):
            found = read(date)
            old = dict(values)  # an object without an item would look deleted or merged
            with contextlib.suppress(NoCommit):
                old |= read(f"{month_before(datetime.date.fromisoformat(date)):%Y%m%d}").values
            items = [*found.items.values(), *sorted((old | found.values).values(), key=lambda item: item.id)]
            write_dumps(options.dumps, date, found.pages, items, LABELS)
            values |= found.values
            gone, seen = sorted(seen - found.products), seen | found.products
            for problem in found.problems:
                say(f"{date}: {in_line(problem)}")
            what = f"{len(found.products)} products, {len(found.pages)} pages, {len(items)} items"
            say(f"{date}: commit {found.commit.id[:12]} of {found.commit.day}: {what}; {len(gone)} gone {gone}")
            say(f"{date}: cells without a fact: " + "; ".join(f"{n} {why}" for why, n in sorted(found.empty.items())))
    except (InputError, UsageError) as error:
        say(f"convert.py: {error}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
