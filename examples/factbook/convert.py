"""Convert a clone of github.com/factbook/factbook.json to Wikipedia and Wikidata dumps at given dates.

For each date it takes the newest commit up to the end of that day (UTC). A country is a page and an item; a field is a
paragraph, and ``fields.yaml`` says which facts it states. Items of earlier dates stay, as in Wikidata.
"""

from __future__ import annotations

import argparse
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.terminal import in_line, say
from temporalwiki.builders.dumps import Item, Page, Statement, stable_number, wikitext, write_dumps
from temporalwiki.builders.git_history import Commit, commits_until, files
from temporalwiki.builders.snapshot import check_date
from temporalwiki.builders.wikidata.respelled import is_respelled, sound

COUNTRY = re.compile(r"(?!meta/|oceans/|world/)[a-z-]{3,40}/([a-z]{2})\.json")
LARGEST = 4 << 20  # bytes of a file; the source's largest has a tenth of it
TABLES = read_yaml(Path(__file__).with_name("fields.yaml"))
TITLES, NOT_NAMES, MONTHS = (TABLES[name].split() for name in ("titles", "not_names", "months"))


class _Stripper(HTMLParser):  # elements that begin a line in a browser begin one here
    text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.text += "\n" if re.fullmatch("br|p|div|li|[uo]l|h[1-6]|tr", tag) else ""

    def handle_data(self, data: str) -> None:
        self.text += data


def plain(text: str) -> str:
    """Return text without HTML, accents, control characters and typography; lines stay."""
    stripper = _Stripper()
    stripper.feed(text.replace(" ++ ", "<br>"))  # as the files of 2015 to 2017 end a line
    stripper.close()
    text = unicodedata.normalize("NFKD", stripper.text).translate(str.maketrans("’‘“”–—", "''\"\"--"))
    text = "".join(c for c in text if c == "\n" or unicodedata.category(c)[0] not in "CM")
    return "\n".join(line for line in (" ".join(line.split()) for line in text.split("\n")) if line)


def parts(text: str, ends: str = ";") -> list[str]:
    """Return the parts of a text that end with a line or one of ``ends`` and white space, not within brackets."""
    found, depth, start = [], 0, 0
    for number, character in enumerate(text):
        depth = max(0, depth + (character in "([") - (character in ")]"))
        if character == "\n" or (depth == 0 and character in ends and text[number + 1 : number + 2].isspace()):
            found.append(text[start:number])
            depth, start = 0, number + 1
    return [part for part in (one.strip(" ;") for one in [*found, text[start:]]) if part]


def bare(text: str) -> str:
    """Return text without what is in brackets, and without quotes."""
    text = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\]|[\"()\[\]]", " ", text)
    return re.sub(r"\s+([,.])", r"\1", " ".join(text.split())).strip(" ,.;:-")


def key(label: str, objects: str = "") -> str:
    """Return what spellings of one name share; initials of persons and plurals of other things do not count."""
    words = re.sub(r"[^a-z0-9]+", " ", TABLES["short_names"].get(label, label).lower().replace("'", "")).split()
    words = [word for word in words if word not in ("the", "and") and (objects != "person" or len(word) > 1)]
    words = words if objects == "person" else [word.removesuffix("s") for word in words]
    return "".join(words) if any(map(str.isdigit, label)) else sound("".join(words))


class Name(NamedTuple):
    """An object of a fact: its relation, label, other name, and first day."""

    relation: str
    label: str
    alias: str = ""
    start: str | None = None


def named(relation: str, label: str, alias: str = "", start: str | None = None) -> Iterator[Name]:
    """Yield a name if it can be one. The source writes surnames and capitals in capitals."""
    if TABLES["relations"][relation]["objects"] in ("person", "place"):
        label = re.sub(r"[A-Z][A-Z']+", lambda m: m[0] if re.fullmatch("[IVX]+", m[0]) else m[0].capitalize(), label)
    words = re.split(r"[\s/:]+", label.lower())
    strange = {*words[:2], words[-1]} & {*NOT_NAMES} or len(words) > 6 or re.search(r"(^|\s)\d", label)
    if label[:1].isalpha() and not strange:
        yield Name(relation, label, alias, start)


def listed(relation: str, text: str) -> Iterator[Name]:
    """Yield the members of a list such as "Norish 50% (official), Sudish; note - ...", without their shares."""
    for part in parts(text, ",;"):
        if part.lower().startswith("note"):
            return
        one = re.split(r"\s+[<>~]?\s*[-.]?\d|\.\d", bare(part))[0].removeprefix("and ").strip(" ,")
        label, _, alias = one.partition(" or ")
        for name in named(relation, label, alias):
            yield name
            if relation == "P2936" and re.search(r"\(.*\bofficial\b", part):
                yield name._replace(relation="P37")


def first(relation: str, text: str) -> Iterator[Name]:
    """Yield what a field begins with, such as "Diet" of "bicameral Diet or Ting consists of ..."."""
    ends = r"$" if relation == "P85" else r"\s+-?\d| or | in | per | consists| under |,"  # anthems have commas
    for part in parts(text)[:1]:
        label = re.sub(r"^(uni|bi|tri)cameral\s+", "", bare(part))
        yield from named(relation, re.split(ends, label)[0].strip())


def parties(relation: str, text: str) -> Iterator[Name]:
    """Yield parties, one a line: "Green Party or GP (a note) [LEADER]"; the short form is an alias."""
    for part in parts(text):
        label, _, alias = re.split(r",|:| - |-$", bare(re.split(r"\s[(\[-]", part)[0]))[0].partition(" or ")
        if label[:1].isupper():
            yield from named(relation, label.strip(), alias.strip())


def matched(relation: str, text: str) -> Iterator[Name]:
    """Yield what the relation's pattern matches."""
    for match in re.finditer(TABLES["relations"][relation]["pattern"], re.split(r"\bnote\b", text)[0]):
        yield from named(relation, bare(match[1]))


def persons(relation: str, text: str) -> Iterator[Name]:
    """Yield the first person, such as "President Maria SILVA (since May 2021); Vice President ...", and the deputy."""
    title, deputy = TABLES["deputies"].get(relation, ("", ""))
    holds = re.match(TABLES["relations"][relation].get("pattern", ""), text)
    for number, part in enumerate(parts(text) if holds else []):
        words = re.split(r",| since\b", bare(part).replace(", Jr", " Jr"))[0].split()
        is_deputy = deputy and " ".join(words).lower().removeprefix("first ").startswith(f"{title} ")
        while words and (words[0].lower().strip(".,-") in TITLES or words[0].endswith(".")):
            del words[0]
        if words and words[0][0].isupper() and (number == 0 or (is_deputy and "and" not in words)):
            yield from named(deputy if number else relation, " ".join(words), "", since(part))


def since(text: str) -> str | None:
    """Return the first day of an office, as 2021-05-00 if only the month is known."""
    match = re.search(rf"since (?:(\d{{1,2}}) )?(?:({'|'.join(MONTHS)}),? )?(\d{{4}})\b", text)
    month = MONTHS.index(match[2]) + 1 if match and match[2] else 0
    return f"{match[3]}-{month:02}-{int(match[1] or 0) if month else 0:02}" if match else None


READERS = {one.__name__: one for one in (first, listed, matched, parties, persons)}


@dataclass
class Snapshot:
    """What one commit says: the files of its countries, and what could not be read."""

    commit: Commit
    passed: int  # newer commits without a country
    countries: dict[str, Any] = field(default_factory=dict)  # by path
    problems: list[str] = field(default_factory=list)

    def text(self, path: str, name: str) -> str:
        """Return the plain text of a field and its note, or ""; a field that cannot be read is a problem."""
        here: Any = self.countries[path]
        for step in name.split(" / "):
            here = next((here[one] for one in step.split("|") if one in here), {}) if isinstance(here, dict) else None
        texts: list[Any] = [here.get(kind) or "" for kind in ("text", "note")] if isinstance(here, dict) else [None]
        if not all(isinstance(text, str) for text in texts):
            self.problems.append(f"{path}: {name}: not text")
            return ""
        joined = "; ".join(filter(None, map(plain, texts)))
        return re.sub(r'\s+"[A-Z]\w+"(?= [A-Z])', "", joined)  # no nicknames

    def title(self, path: str) -> str:
        """Return a country's short name, or the long one if the short one is an abbreviation, cut, or has brackets."""
        field = "Government / Country name / conventional"
        names = [self.text(path, f"{field} {form} form") for form in ("short", "long")]
        short, long = (re.split(r";\s", "" if name.lower() == "none" else name)[0] for name in names)
        cut = short.startswith("The ") and not long.endswith(short)
        return bare(long if long and (not short or short.isupper() or short.endswith(")") or cut) else short)


def read_snapshot(clone: Path, date: str) -> Snapshot:
    """Read the newest commit up to a date that has a country. Raises InputError if no commit has one."""
    for passed, commit in enumerate(commits_until(clone, date)):
        found = Snapshot(commit, passed)
        for path, content in files(clone, commit.id, COUNTRY, LARGEST, found.problems):
            try:
                found.countries[path] = msgspec.json.decode(content, type=dict[str, Any])
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                found.problems.append(f"{path}: not the JSON of a country ({error})")
        if found.countries:
            return found
    raise InputError(f"{clone}: no commit up to {date} has a country; name a later date")


class Items:
    """The objects of all dates. A name that is another spelling of one that its statement has lost keeps its item."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, ...], str] = {}  # by kind and key, and aliases by country, kind and key
        self.held: dict[tuple[str, str], dict[str | None, str]] = {}  # by country and relation: items, labels

    def of(self, country: str, names: Collection[Name]) -> Iterator[tuple[Name, str]]:
        """Yield the names with the ids of their items."""
        keys = {name: (kind := TABLES["relations"][name.relation]["objects"], key(name.label, kind)) for name in names}
        known = {self.ids[one] for one in keys.values() if one in self.ids}
        for name, one in keys.items():
            lost = self.held.get((country, name.relation), {}).items()
            alias = country, one[0], key(name.alias, one[0]) if name.alias else ""  # "DP" is another party elsewhere
            same = [id for id, label in lost if id not in known and is_respelled(name.label, [label])]
            ids = [self.ids.get(name) for name in (one, (country, *one), alias)]
            id = next(filter(None, [*ids, *same]), f"Q{stable_number(' '.join(one))}")
            known.add(id)
            self.ids |= dict.fromkeys((one, alias) if name.alias and alias not in self.ids else (one,), id)
            yield name, id

    def hold(self, country: str, statements: Iterable[Statement], items: Mapping[str | None, Item]) -> None:
        """Remember what a country's statements are at this date."""
        self.held = {place: held for place, held in self.held.items() if place[0] != country}
        for one in statements:
            self.held.setdefault((country, one.relation), {})[one.object] = items[one.object].labels["en"]


def convert(
    found: Snapshot, relations: Collection[str] = (), ids: Items | None = None
) -> tuple[list[Page], list[Item]]:
    """Return the pages and items of a snapshot. With ``relations``, only the fields that state these are read."""
    ids = ids or Items()
    countries: dict[str, Item] = {}  # by path
    titles = set[str]()
    pages: list[Page] = []
    for path in sorted(found.countries):
        title = found.title(path)
        if not title or key(title) in titles:
            found.problems.append(f"{path}: Government / Country name: no name, or that of another; it is left out")
            continue
        titles.add(key(title))
        countries[path] = Item(f"Q{int(path[-7:-5], 36)}", {"en": title}, sitelinks={"enwiki": title})  # its letters
        ids.ids["country", key(title)] = countries[path].id
    objects: dict[str | None, Item] = {item.id: item for item in countries.values()}
    for path, country in countries.items():
        title, number, text, heading = country.labels["en"], int(country.id[1:]), "", ""
        facts: dict[tuple[str, str], Statement] = {}
        for one in TABLES["fields"]:
            section, said = one["path"].split(" / ")[0], found.text(path, one["path"])
            if not said or (relations and one.get("relation") not in relations):
                continue
            names = list(READERS[one["read"]](one["relation"], said)) if "read" in one else []
            for name, id in ids.of(country.id, names):
                item = objects.setdefault(id, Item(id, {"en": name.label}))
                for other in (name.label, name.alias):
                    if other and other not in (item.labels["en"], *item.aliases.setdefault("en", [])):
                        item.aliases["en"].append(other)
                facts.setdefault((name.relation, id), Statement(name.relation, id, name.start))
            text += (f"== {section} ==\n\n" if section != heading else "") + paragraph(one, title, said, names)
            heading = section
        country.statements = list(facts.values())
        ids.hold(country.id, country.statements, objects)
        pages.append(Page(number, title, text, timestamp=f"{found.commit.day}T00:00:00Z"))
    return pages, list(objects.values())


def paragraph(one: dict[str, str], title: str, said: str, names: list[Name]) -> str:
    """Return a field as wikitext: its parts are sentences; a list is one sentence, and each party a line."""
    opening = f"{one['opening']} of {title}:" if "opening" in one else ""
    for name in names:  # the source writes SURNAMES
        said = re.sub(rf"\b{re.escape(name.label)}\b", name.label, said, flags=re.IGNORECASE)
    reader, pieces = one.get("read"), parts(said)
    if reader == "parties":
        rows = (wikitext(re.sub(r"\s*\[[^\]]*\]", "", piece)) for piece in pieces)
        return f"{wikitext(opening)}\n" + "".join(f"* {row}\n" for row in rows if row) + "\n"
    if reader == "first" and names and one["opening"] == "Legislature":  # without its chambers and seats
        pieces = [names[0].label]
    elif reader in ("listed", "matched"):
        rest = [piece for piece in pieces if piece.lower().startswith("note")]
        pieces = [", ".join(piece for piece in pieces if piece not in rest), *rest]
    said = " ".join(f"{piece[0].upper()}{piece[1:]}{'' if piece[-1] in '.!?' else '.'}" for piece in pieces if piece)
    return wikitext(f"{opening} {said}") + "\n\n"


def main() -> int:
    """Write the dumps of all dates and say what each holds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("clone", "dumps"):
        parser.add_argument(name, type=Path)
    parser.add_argument("dates", nargs="+", help="YYYYMMDD")
    known = sorted({one["relation"] for one in TABLES["fields"] if "relation" in one})
    parser.add_argument("--relations", nargs="+", choices=known, metavar="P", help="only their fields, such as P6 P35")
    options, seen, objects, ids = parser.parse_args(), set[str](), dict[str, Item](), Items()
    try:
        for date in sorted(map(check_date, set(options.dates))):
            found = read_snapshot(options.clone, date)
            pages, items = convert(found, options.relations or (), ids)
            now = {item.id: item for item in items if not item.sitelinks}
            items += [Item(id, item.labels) for id, item in objects.items() if id not in now]  # else they look merged
            objects |= now
            write_dumps(options.dumps, date, pages, items, {r: one["label"] for r, one in TABLES["relations"].items()})
            gone, seen = sorted(seen - (here := {path[-7:-5] for path in found.countries})), seen | here
            for problem in found.problems:
                say(f"{date}: {in_line(problem)}")
            say(f"{date}: commit {found.commit.id[:12]} of {found.commit.day}: {len(pages)} pages, {len(items)} items")
            say(f"{date}: {found.passed} newer commits without a country; {len(gone)} countries gone {gone}")
    except (InputError, UsageError) as error:
        say(f"convert.py: {error}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
