"""Large, dense dumps for measurements of speed: the demo's world and as many more pages and items as wanted.

A page is about 9 KB of wikitext, an item about 14 KB of JSON; both pack about as well as in real dumps.
``share`` of them change each month: a sentence and a number of a page, one fact of an item.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import Any

from temporalwiki.builders.dumps import Page, entities, write_entities, write_pages
from temporalwiki.builders.world import Story, World
from temporalwiki.builders.world.items import LABELS, NamePool

Json = dict[str, Any]

FIRST_PAGE, FIRST_ITEM = 10_000_000, 50_000_000  # above all ids of the world
_POOL = 1 << 16  # random values of a kind: they repeat far beyond what gzip sees at once
_LANGUAGES = "de fr es it nl sv pl pt ca nb da fi cs hu ro tr id eu sk sl hr et lt lv sq nn gl oc"
_OTHER_LETTERS = dict(
    zip(
        ["ru", "uk", "el", "he", "ar", "hy", "ka", "bn", "hi", "ta", "th", "zh", "ja", "ko"],
        "аааאاաაঅअஅก一あ가",
        strict=True,
    )
)


def write_load(dumps: Path, world: World, pages: int, items: int) -> None:
    """Write the dumps of a world with so many more pages and items, a process for each month."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(partial(_write_month, dumps, world, Load(pages, items)), range(len(world.dates))))


def _write_month(dumps: Path, world: World, load: Load, month: int) -> None:
    story, date, wikidata_date = Story(world), world.dates[month], world.wikidata_dates[month]
    for _ in range(month):
        story.next_month()
    pages = itertools.chain(sorted(story.pages, key=lambda page: page.id), load.pages_of(world, month))
    write_pages(dumps / world.wiki / date, world.wiki, date, pages)
    items = (item.written(world.wiki) for item in story.items)
    lines = itertools.chain(entities(items, LABELS), load.entities(world, month))
    write_entities(dumps / "wikidatawiki" / "entities" / wikidata_date, wikidata_date, lines)


@dataclass(frozen=True)
class Load:
    """Pages and items in any number."""

    pages: int
    items: int
    share: float = 0.05

    def last_change(self, number: int, month: int) -> int:
        """Return the newest month up to ``month`` that changed a page or an item, or 0."""
        # 7919 and 10,000 have no common factor, so changes are spread evenly.
        of = (m for m in range(month, 0, -1) if (number * 7919 + m * 3571) % 10_000 < self.share * 10_000)
        return next(of, 0)

    def pages_of(self, world: World, month: int) -> Iterator[Page]:
        """Yield the pages of a month by id."""
        for k in range(self.pages):
            changed, id = self.last_change(k, month), FIRST_PAGE + k
            start = k * 14 % (len(self._paragraphs) - 14)
            body = "\n\n".join(self._paragraphs[start : start + 1 + k * 17 % 13 + (changed > 0 and k % 3 == 0)])
            text = (
                f"{{{{Infobox settlement\n| name = Place {k}\n| image = Place {k}.jpg\n| country = [[Land {k % 97}]]\n"
                f"| population = {k % 9999 + changed}\n| area = {{{{convert|{k % 89}|km2|sqmi}}}}\n}}}}\n"
                f"'''Place {k}''' is a place. Survey {id} counted {id * 7 % 9973} items in its edition {changed}.\n\n"
                f"== History ==\n{body}\n\n== References ==\n{{{{Reflist}}}}\n\n[[Category:Places]]"
            )
            day = world.dates[changed - 1] if changed else "20200101"
            revision = 900_000_000 + changed * 30_000_000 + k
            stamp = f"{day[:4]}-{day[4:6]}-{day[6:]}T12:00:00Z"
            yield Page(id, f"Place {k}", text=text, revision=revision, parent=revision - 1, timestamp=stamp)

    @cached_property
    def _paragraphs(self) -> list[str]:
        """Paragraphs of six sentences with links, templates and references; word frequencies are Zipf's."""
        rng = Random("pages")
        names = NamePool(rng)
        words = [
            (names.part("place") + names.part("surname")[-4:]).lower()[: rng.randint(2, 11)] for _ in range(20_000)
        ]
        weights = list(itertools.accumulate(1 / (rank + 40) for rank in range(len(words))))
        sentences = []
        for number in range(20_000):
            chosen = rng.choices(words, cum_weights=weights, k=rng.randint(8, 26))
            for place in range(rng.randrange(1, 14), len(chosen), 14):
                word = chosen[place]
                chosen[place] = rng.choice((f"[[{word}]]", f"[[{word.title()} {number}|{word}]]"))
            if number % 9 == 4:
                chosen[-1] = rng.choice((f"{{{{nowrap|{number} km}}}}", f"{{{{convert|{number}|km|mi}}}}"))
            text = " ".join(chosen).capitalize() + "."
            if rng.random() < 0.35:
                title, last, site = (" ".join(rng.choices(words, k=3)) for _ in range(3))
                url = f"https://{site.replace(' ', '')}.example/{rng.randrange(10**9)}"
                text += f"<ref>{{{{cite web|url={url}|title={title}|last={last}|pages={rng.randrange(999)}}}}}</ref>"
            sentences.append(text)
        return [" ".join(sentences[i : i + 6]) for i in range(0, len(sentences), 6)]

    def entities(self, world: World, month: int) -> Iterator[str]:
        """Yield the items of a month as lines of JSON: one fact (P54) of an item can change, all else stays."""
        for k in range(self.items):
            changed, number = self.last_change(k, month), FIRST_ITEM + k
            template, fields = self._templates[k // 4 * 389 % len(self._templates)]  # four in a row are alike
            known = {
                "number": number,
                "k": k,
                "club": _both_ids(FIRST_ITEM + (k * 31 + 7919 * changed + 1) % self.items),
                "club guid": f"{number:08X}-0000-4000-9000-{changed:012X}",
                "page": number + 200,
                "revision": 1_600_000_000 + changed * 100_000_000 + k,
                "day": world.wikidata_dates[changed],
            }
            start = k * 1_060_247 % (_POOL - 600)
            values = {name: iter(pool[start : start + 600]) for name, pool in self._pools.items()}
            yield template % tuple(known[field] if field in known else next(values[field]) for field in fields)

    @cached_property
    def _pools(self) -> dict[str, list[Any]]:
        rng = Random("items")
        names = NamePool(rng)
        hashes = [rng.randbytes(20).hex() for _ in range(_POOL)]
        return {
            "hash": hashes,
            "guid": ["-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:32])).upper() for h in hashes],
            "word": [f"{names.part('place')} {names.part('surname')}" for _ in range(_POOL)],
            "digits": [rng.randrange(100_000, 100_000_000) for _ in range(_POOL)],
            "item": [_both_ids(FIRST_ITEM + rng.randrange(self.items)) for _ in range(_POOL)],
        }

    @cached_property
    def _templates(self) -> list[tuple[str, list[str]]]:
        """Items as format strings with the names of their fields; each sort is as frequent as in Wikidata."""
        rng = Random("templates")
        sorts = rng.choices(SORTS, weights=[sort.weight for sort in SORTS], k=101)
        texts = [json.dumps(Template(rng, sort).entity(), separators=(",", ":")) for sort in sorts]
        # Numbers stand in quotation marks and hash signs.
        return [
            (re.sub("<[a-z ]+>", "%s", re.sub('"#|#"', "", text)), re.findall("<([a-z ]+)>", text)) for text in texts
        ]


def _both_ids(number: int) -> str:
    """Return the number of an item and, as JSON, the key that follows in a data value."""
    return f'{number},"id":"Q{number}"'


@dataclass(frozen=True)
class Sort:
    """A sort of item: how many of 100 items, and how many labels, descriptions and links to wikis at most."""

    weight: int
    labels: int
    descriptions: int
    links: int
    statements: str  # "P31=item P569=time ...": all items have them
    others: str  # a third of these


SORTS = (
    Sort(  # articles in journals
        40, 3, 34, 0, "P31=class P1476=title P577=time P1433=item P2093=author P2093=author P356=id P304=id P478=text",
        "P921=item P921=item P407=item P698=id P932=id P50=item P50=item P2860=item P2860=item P2860=item "
        "P2093=author P2093=author P2093=author P433=text P1104=text P859=item",
    ),
    Sort(  # people
        22, 30, 16, 5, "P31=class P21=class P106=class P569=time P27=item P19=item",
        "P735=item P734=item P214=id P213=id P227=id P244=id P18=file P69=item P1412=item P166=item P108=item "
        "P463=item P570=time P646=id P345=id P106=item P20=item P102=item P39=held P39=held P264=item",
    ),
    Sort(  # places
        20, 40, 20, 12, "P31=class P17=item P131=item P625=place P1566=id",
        "P18=file P373=text P646=id P2044=amount P1082=amount P1082=amount P421=item P47=item P47=item P190=item "
        "P36=item P37=item P6=held P281=text P856=url P910=item P2046=amount P242=file",
    ),
    Sort(  # genes, stars, species: made by programs
        18, 5, 30, 3, "P31=class P528=text P703=item P351=id P2393=id P215=text",
        "P684=item P684=item P682=item P682=item P680=item P681=item P2215=amount P1215=amount P6257=amount "
        "P59=item P171=item P225=text P105=item P846=id P59=item P688=item",
    ),
)  # fmt: skip


class Template:
    """One item whose changing parts are fields in angle brackets."""

    def __init__(self, rng: Random, sort: Sort) -> None:
        self.rng, self.sort = rng, sort
        self.words = ["".join(rng.choices("abcdefghiklmnoprstuvw", k=rng.randint(3, 9))) for _ in range(40)]

    def entity(self) -> Json:
        """Return the item."""
        rng, sort = self.rng, self.sort
        others = sort.others.split()
        claims: dict[str, list[Json]] = {}
        for each in [*sort.statements.split(), *rng.sample(others, len(others) // 2), "P54=club"]:
            relation, form = each.split("=")
            claims.setdefault(relation, []).append(self.statement(relation, form))
        sites = [
            "enwiki",
            *(f"{language}wiki" for language in rng.sample(_LANGUAGES.split(), rng.randint(0, sort.links))),
        ]
        return {
            "type": "item",
            "id": "Q<number>",
            "labels": self.terms(sort.labels, "Filler <k>"),
            "descriptions": self.terms(sort.descriptions, None),
            "aliases": {"en": [{"language": "en", "value": "<word>"} for _ in range(rng.randint(1, 3))]},
            "claims": claims,
            "sitelinks": {site: {"site": site, "title": "Place <k>", "badges": []} for site in sites},
            "pageid": "#<page>#",
            "ns": 0,
            "title": "Q<number>",
            "lastrevid": "#<revision>#",
            "modified": "<day>T10:00:00Z",
        }

    def terms(self, most: int, text: str | None) -> Json:
        """Return a text in some languages, or what a program has written in each."""
        rng = self.rng
        terms = {}
        for language in ["en", *rng.sample([*_LANGUAGES.split(), *_OTHER_LETTERS], rng.randint(most // 2, most))]:
            words = " ".join(rng.sample(self.words, 4))
            if (first := _OTHER_LETTERS.get(language)) is not None:
                words = "".join(chr(ord(first) + ord(c) - ord("a")) if c != " " else c for c in words)
            terms[language] = {"language": language, "value": text or words}
        return terms

    def statement(self, relation: str, form: str) -> Json:
        """Return a statement, most often with a reference."""
        qualifiers = {
            "author": {"P1545": self.snak("P1545", "ordinal", "3d" * 20)},
            "held": {id: self.snak(id, "time", "<hash>") for id in ("P580", "P582")},
        }.get(form)
        guid = "<club guid>" if form == "club" else "<guid>"
        json: Json = {"mainsnak": self.snak(relation, form), "type": "statement"}
        if qualifiers is not None:
            ids = list(qualifiers)
            json |= {"qualifiers": {id: [qualifiers[id]] for id in ids}, "qualifiers-order": ids}
        json |= {"id": f"Q<number>${guid}", "rank": "normal"}
        if self.rng.random() < 0.75:
            digest, snaks = "fa" * 20, {"P143": self.snak("P143", "class", "e4" * 20)}  # as thousands of items have it
            if self.rng.random() < 0.65:
                digest, snaks = "<hash>", {"P248": self.snak("P248", "class", "ab" * 20)}
                if self.rng.random() < 0.6:
                    snaks["P854"] = self.snak("P854", "url", "<hash>")
                snaks["P813"] = self.snak("P813", "time", "7c" * 20)
            groups = {id: [snak] for id, snak in snaks.items()}
            json["references"] = [{"hash": digest, "snaks": groups, "snaks-order": list(snaks)}]
        return json

    def snak(self, relation: str, form: str, digest: str | None = None) -> Json:
        """Return the value of a property."""
        rng = self.rng
        kind, datatype, value = "string", "string", "<word>"
        data: Any = value
        if form in ("item", "held", "club", "class"):
            kind, datatype = "wikibase-entityid", "wikibase-item"
            number = rng.randrange(1001, 1040)
            ids = {"numeric-id": number, "id": f"Q{number}"} if form == "class" else {"numeric-id": "#<item>#"}
            data = {"entity-type": "item"} | ({"numeric-id": "#<club>#"} if form == "club" else ids)
        elif form == "time":
            kind = datatype = "time"
            day = f"+19{rng.randint(10, 99)}-0{rng.randint(1, 9)}-1{rng.randrange(9)}T00:00:00Z"
            data = {"time": day, "timezone": 0, "before": 0, "after": 0, "precision": 11}
            data["calendarmodel"] = "http://www.wikidata.org/entity/Q1985727"
        elif form == "title":
            kind = datatype = "monolingualtext"
            data = {"text": "<word> of <word>: <word>", "language": "en"}
        elif form == "place":
            kind, datatype = "globecoordinate", "globe-coordinate"
            data = {"latitude": f"#{rng.randint(1, 80)}.<digits>#", "longitude": f"#-{rng.randint(1, 170)}.<digits>#"}
            data |= {"altitude": None, "precision": 0.000277, "globe": "http://www.wikidata.org/entity/Q2"}
        elif form == "amount":
            kind = datatype = "quantity"
            data = {"amount": "+<digits>", "unit": "1"}
        elif form != "author":
            datatype = {"id": "external-id", "file": "commonsMedia", "url": "url"}.get(form, "string")
            url = f"https://{rng.choice(self.words)}.example/records/<digits>?id=<number>"
            data = {"id": "<digits>", "file": "<word> <digits>.jpg", "url": url, "ordinal": "3"}.get(form, "<word>")
        return {
            "snaktype": "value", "property": relation, **({} if digest is None else {"hash": digest}),
            "datavalue": {"value": data, "type": kind}, "datatype": datatype,
        }  # fmt: skip
