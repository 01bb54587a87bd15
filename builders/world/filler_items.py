"""Items for load, as large and as dense as Wikidata's of 2021: about 14 KB each, 10 to 1 under gzip.

Real items differ little from each other but for ids, hashes, names and numbers. So a few dozen items are made
with care as templates, and every item is one of them with its own values from pools of random ones.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from temporalwiki.builders.world.names import Names

Json = dict[str, Any]

_VARIANTS = 24  # templates of a kind
_ROW = 4  # items in a row that are alike, as what programs make is: sets the ratio of gzip, with 4 it is 10 to 1
_POOL = 1 << 16  # values of a pool: what repeats is far beyond what gzip sees at once
_LATIN = (
    "en", "de", "fr", "es", "it", "nl", "sv", "pl", "pt", "ca", "nb", "da", "fi", "cs", "hu", "ro", "tr", "id", "eu",
    "sk", "sl", "hr", "et", "lt", "lv", "sq", "nn", "gl", "oc", "ast", "en-gb", "en-ca",
)  # fmt: skip
_OTHER = {"ru": 0x430, "uk": 0x430, "el": 0x3B1, "he": 0x5D0, "ar": 0x627, "hy": 0x561, "ka": 0x10D0, "bn": 0x995}
_OTHER |= {"hi": 0x915, "ta": 0xB95, "th": 0xE01, "zh": 0x4E00, "ja": 0x3042, "ko": 0xAC00}
_GROUPS = 6  # of pool values that one item takes in a row


@dataclass(frozen=True)
class _Kind:
    """A sort of item: its share, and its statements as property and kind of value, drawn by chance."""

    weight: int
    labels: tuple[int, int]  # least and most languages
    descriptions: tuple[int, int]
    sitelinks: tuple[int, int]
    statements: str  # "P31=item P569=time ...": always there
    others: str  # drawn from these
    drawn: tuple[int, int]
    referenced: float  # share of statements with a reference


_KINDS = (
    _Kind(  # articles in journals
        40, (1, 3), (18, 34), (0, 0), "P31=class P1476=title P577=time P1433=item P2093=author P2093=author P356=id "
        "P304=pages P478=number", "P921=item P921=item P407=item P698=id P932=id P50=item P50=item P2860=item "
        "P2860=item P2860=item P2093=author P2093=author P2093=author P433=number P1104=number P859=item",
        (5, 11), 0.75),
    _Kind(  # people
        22, (4, 30), (4, 16), (0, 5), "P31=class P21=class P106=class P569=time P27=item P19=item",
        "P735=item P734=item P214=id P213=id P227=id P244=id P18=file P69=item P1412=item P166=item P108=item "
        "P463=item P569=time P570=time P646=id P345=id P106=item P20=item P102=item P39=held P39=held P264=item",
        (4, 13), 0.7),
    _Kind(  # places
        20, (6, 40), (6, 20), (1, 12), "P31=class P17=item P131=item P625=place P1566=id",
        "P18=file P373=text P646=id P2044=amount P1082=amount P1082=amount P421=item P47=item P47=item P190=item "
        "P36=item P37=item P6=held P281=text P856=url P910=item P2046=amount P242=file", (2, 9), 0.6),
    _Kind(  # genes, stars, species: made by programs
        18, (1, 5), (8, 30), (0, 3), "P31=class P528=text P703=item P351=id P2393=id P215=number",
        "P684=item P684=item P682=item P682=item P680=item P681=item P2215=amount P1215=amount P6257=amount "
        "P6258=amount P59=item P171=item P225=text P105=item P846=id P59=item P688=item", (3, 9), 0.85),
)  # fmt: skip


class FillerItems:
    """Lines of JSON of one world's filler items."""

    def __init__(self, seed: int, items: int, first: int) -> None:
        self._seed, self._items, self._first = seed, items, first

    def line(self, number: int, **known: object) -> str:
        """The item of a number from 0; what is known of it are the fields of ``_Template``."""
        templates = self._templates
        template, size = templates[number // _ROW * 389 % len(templates)]
        start = (number * 1_060_247 + self._seed) % (_POOL - size)
        others = {
            f"o{i}": self._first + (number * (i * 6_151 + 1) + i * 104_729) % max(1, self._items)
            for i in range(_GROUPS)
        }
        return template.format(
            h=self._hashes[start : start + size],
            g=self._guids[start : start + size],
            w=self._names[start % 8191 : start % 8191 + size],
            d=self._numbers[start : start + size],
            **others,
            **known,
        )

    @cached_property
    def _templates(self) -> list[tuple[str, int]]:
        """Format strings with the number of pool values that they take, as often as their kind's weight says."""
        made = []
        for number, kind in enumerate(_KINDS):
            for variant in range(_VARIANTS):
                template = _Template(Random(f"item {self._seed} {number} {variant}"), kind)
                made.append((number, template.text(), template.taken))
        rng = Random(f"items {self._seed}")
        picked = rng.choices(made, weights=[_KINDS[number].weight for number, _, _ in made], k=997)
        return [(text, taken) for _, text, taken in picked]

    @cached_property
    def _hashes(self) -> list[str]:
        rng = Random(f"hashes {self._seed}")
        return [rng.randbytes(20).hex() for _ in range(_POOL)]

    @cached_property
    def _guids(self) -> list[str]:
        rng = Random(f"guids {self._seed}")
        plain = (rng.randbytes(16).hex().upper() for _ in range(_POOL))
        return [f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}" for t in plain]

    @cached_property
    def _numbers(self) -> list[int]:
        rng = Random(f"numbers {self._seed}")
        return [rng.randrange(100_000, 100_000_000) for _ in range(_POOL)]

    @cached_property
    def _names(self) -> list[str]:
        names = Names(rng := Random(f"names {self._seed}"))
        words = [f"{names.place_name()}{rng.choice(('', ' ', '-'))}{names.surname()}" for _ in range(1024)]
        return [f"{rng.choice(words)} {rng.choice(words)}" for _ in range(8191 + 256)]


class _Template:
    """One item as a format string, written as a dict whose moving parts are markers.

    Fields: n (number), label, o (the item that P54 names), c (guid of that statement), page, rev, day, k; o0 to o5
    (other items); lists h, g, w, d of hashes, guids, names and numbers, of which each is used once.
    """

    def __init__(self, rng: Random, kind: _Kind) -> None:
        self._rng, self._kind = rng, kind
        self._at = {"h": 0, "g": 0, "w": 0, "d": 0}
        self._words = ["".join(rng.choices("abcdefghiklmnoprstuvw", k=rng.randint(3, 9))) for _ in range(40)]
        self._others = itertools.cycle(f"o{i}" for i in rng.sample(range(_GROUPS), _GROUPS))

    @property
    def taken(self) -> int:
        """The most values taken from one pool."""
        return max(self._at.values())

    def _next(self, pool: str) -> str:
        self._at[pool] += 1
        return f"<{pool}[{self._at[pool] - 1}]>"

    def text(self) -> str:
        """The format string."""
        text = json.dumps(self._entity(), separators=(",", ":")).replace("{", "{{").replace("}", "}}")
        return text.replace('"#', "").replace('#"', "").replace("<", "{").replace(">", "}")

    def _entity(self) -> Json:
        rng, kind = self._rng, self._kind
        claims: dict[str, list[Json]] = {}
        others = [word.split("=") for word in kind.others.split()]
        drawn = rng.sample(others, min(len(others), rng.randint(*kind.drawn)))
        for relation, form in [word.split("=") for word in kind.statements.split()] + drawn:
            claims.setdefault(relation, []).append(self._statement(relation, form))
        claims["P54"] = [self._statement("P54", "changing")]
        sites = rng.sample(_LATIN[1:30], rng.randint(*kind.sitelinks))
        return {
            "type": "item",
            "id": "Q<n>",
            "labels": self._terms(kind.labels, "<label>"),
            "descriptions": self._terms(kind.descriptions, None),
            "aliases": {
                language: [{"language": language, "value": self._next("w")} for _ in range(rng.randint(1, 3))]
                for language in rng.sample(_LATIN, rng.randint(0, 2))
            },
            "claims": claims,
            "sitelinks": {
                "enwiki": {"site": "enwiki", "title": "Place <k>", "badges": []},
                **{f"{s}wiki": {"site": f"{s}wiki", "title": "Place <k>", "badges": []} for s in sites},
            },
            "pageid": "#<page>#",
            "ns": 0,
            "title": "Q<n>",
            "lastrevid": "#<rev>#",
            "modified": "<day>T10:00:00Z",
        }

    def _terms(self, least_and_most: tuple[int, int], value: str | None) -> Json:
        """Terms in some languages, English among them; without a value, what a bot has written in each."""
        rng = self._rng
        count = rng.randint(*least_and_most)
        languages = ["en", *rng.sample([*_LATIN[1:], *_OTHER], count - 1)]
        terms = {}
        for language in languages:
            if value is None:
                text = " ".join(self._spell(language, word) for word in rng.sample(self._words, rng.randint(2, 6)))
            elif language in _OTHER:
                text = self._spell(language, rng.choice(self._words)) + " <k>"
            else:
                text = value
            terms[language] = {"language": language, "value": text}
        return terms

    def _spell(self, language: str, word: str) -> str:
        first = _OTHER.get(language)
        return word if first is None else "".join(chr(first + ord(letter) - ord("a")) for letter in word)

    def _statement(self, relation: str, form: str) -> Json:
        rng = self._rng
        guid = "<c>" if form == "changing" else self._next("g")
        statement: Json = {"mainsnak": self._snak(relation, form), "type": "statement"}
        if form == "author":
            place = rng.randint(1, 9)
            statement |= self._qualifiers({"P1545": self._snak("P1545", f"={place}", f"{place:040x}")})
        elif form == "held":
            times = {name: self._snak(name, "time", self._next("h")) for name in ("P580", "P582")}
            statement |= self._qualifiers(times)
        statement |= {"id": f"Q<n>${guid}", "rank": "normal"}
        if rng.random() < self._kind.referenced:
            statement["references"] = [self._reference()]
        return statement

    def _qualifiers(self, snaks: Json) -> Json:
        return {"qualifiers": {name: [snak] for name, snak in snaks.items()}, "qualifiers-order": list(snaks)}

    def _reference(self) -> Json:
        """A source: often one that thousands of items share, else with an address and a date of its own."""
        rng = self._rng
        if rng.random() < 0.35:
            digest, snaks = (
                "fa278ebfc458360e5aed63d5058cca83c46134f1",
                {"P143": self._snak("P143", "=Q328", "e4" * 20)},
            )
        else:
            digest = self._next("h")
            snaks = {"P248": self._snak("P248", f"=Q{rng.randint(1001, 1040)}", f"{rng.randrange(40):040x}")}
            if rng.random() < 0.6:
                snaks["P854"] = self._snak("P854", "url", self._next("h"))
            snaks["P813"] = self._snak("P813", "=day", "7c" * 20)
        return {"hash": digest, "snaks": {name: [snak] for name, snak in snaks.items()}, "snaks-order": list(snaks)}

    def _snak(self, relation: str, form: str, digest: str | None = None) -> Json:
        kind, datatype, value = self._value(form)
        return {
            "snaktype": "value", "property": relation, **({} if digest is None else {"hash": digest}),
            "datavalue": {"value": value, "type": kind}, "datatype": datatype,
        }  # fmt: skip

    def _value(self, form: str) -> tuple[str, str, object]:
        """Type, datatype and value; "=..." is the same for all items of the template."""
        rng = self._rng
        if form in ("item", "class", "changing") or form.startswith("=Q"):
            if form == "changing":
                number = "<o>"
            elif form == "class":
                number = rng.choice(("5", *(str(n) for n in range(1001, 1040))))
            else:
                number = form[2:] if form != "item" else f"<{next(self._others)}>"
            value: object = {"entity-type": "item", "numeric-id": f"#{number}#", "id": f"Q{number}"}
            return "wikibase-entityid", "wikibase-item", value
        if form in ("time", "held", "=day"):
            if form == "held":
                return self._value("item")
            day = (
                "2019-03-17"
                if form == "=day"
                else f"19<d[{rng.randrange(8)}]!s:.2>-0{rng.randint(1, 9)}-1{rng.randrange(9)}"
            )
            value = {
                "time": f"+{day}T00:00:00Z", "timezone": 0, "before": 0, "after": 0, "precision": 11,
                "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
            }  # fmt: skip
            return "time", "time", value
        number = self._next("d")
        if form == "title":
            text = {"text": f"{self._next('w')} of {self._next('w')}: {self._next('w')}", "language": "en"}
            return "monolingualtext", "monolingualtext", text
        if form == "place":
            value = {
                "latitude": f"#{rng.randint(1, 80)}.{number}#", "longitude": f"#-{rng.randint(1, 170)}.{number}1#",
                "altitude": None, "precision": 0.0002777777777777778, "globe": "http://www.wikidata.org/entity/Q2",
            }  # fmt: skip
            return "globecoordinate", "globe-coordinate", value
        if form == "amount":
            return "quantity", "quantity", {"amount": f"+{number}", "unit": "1"}
        texts = {
            "id": f"{rng.choice(('', '', 'nm', 'ENS', '10.1007/S', '/m/'))}{number}", "author": self._next("w"),
            "pages": f"{number}-<k>", "number": f"{rng.randint(1, 99)}", "file": f"{self._next('w')} {number}.jpg",
            "text": self._next("w"), "url": f"https://{rng.choice(self._words)}.example/records/{number}?id=<n>",
        }  # fmt: skip
        datatypes = {"id": "external-id", "file": "commonsMedia", "url": "url"}
        return "string", datatypes.get(form, "string"), texts.get(form, form[1:])
