"""Invented names and sentences, made from small word lists; nothing here comes from a real text."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Text:
    """A piece of text as a reader sees it, and as wikitext."""

    plain: str
    wiki: str


def as_is(plain: str) -> Text:
    """Return text without markup."""
    return Text(plain, plain)


def fill(template: str, **fields: Text) -> Text:
    """Fill a template twice: for readers and as wikitext."""
    return Text(
        template.format(**{name: text.plain for name, text in fields.items()}),
        template.format(**{name: text.wiki for name, text in fields.items()}),
    )


PEOPLE = ("footballer", "politician", "actor", "scientist", "musician", "executive")
GIVEN_NAMES = {
    "she": "Adela Brisa Corin Dalia Edda Fenna Gisla Hanne Ilsa Jorun Katla Lioba Mirela Nives Orla Petra Runa Ulla",
    "he": "Anders Bram Cato Dario Emil Falk Goran Hamid Ivo Janek Kaspar Levin Marek Nils Oskar Pavel Rufus Ulrich",
}
# A word of the first list and one of the second make a name.
_PARTS = {
    "surname": (
        "Al Bar Cal Dor El Fen Gar Hol Ing Jar Kel Lor Mar Nor Ost Pel Quar Ros Sol Tor Ul Var Wes Yar Zan Brand Stav",
        "aker bin cott dane eby ferth gren holt ickson jord kamp lund mire nell ovic pin quist rud sen tveit wald zik",
    ),
    "place": (
        "Amber Brack Cold Dun Ever Far Glen Hart Iron Jun King Lang Mill North Oak Pine Quay Raven Stone Thorn Hazel",
        "bury combe dale eford field gate haven ingham keld low mere ness over port ridge stead ton uley wick worth",
    ),
    "land": (
        "Astra Bel Cor Dal Esk Fer Gal Hel Ist Jur Kar Lus Mor Nav Oss Pol Ruth Sar Tav Ul Vor Zem",
        "avia onia istan mark ania esia oria land enia ara",
    ),
    "thing": (
        "Silent Crooked Distant Painted Hollow Borrowed Scarlet Patient Velvet Northern Paper Copper Second Electric",
        "Orchard Lantern Harbour Compass Winter Staircase Letter Meridian Garden Clock Voyage Mirror Choir Railway",
    ),
}
_WORKS = "The {thing}|{thing}|A {thing}|{thing} of {place}"
# Kinds of item: how many there are for each person, what Wikidata calls them, and how they are named.
# Some names are longer than five words: the build leaves such objects out of its probes.
KINDS = {
    "country": (0.07, "country", "{land}"),
    "region": (0.06, "region", "{land} Province"),
    "city": (0.16, "city", "{place}"),
    "league": (0.04, "association football league", "{place} Premier League|{place} First Division"),
    "club": (0.10, "association football club", "{place} United|{place} Rovers|{place} City|A.F.C. {place}"),
    "stadium": (0.09, "stadium", "{surname} Park|{place} Stadium|{surname} Road"),
    "company": (0.17, "company", "{surname} Group|{surname} Systems|{surname} Motors|{surname} Foods"),
    "university": (0.10, "university", "University of {place}|Royal Technical University of the {place} Isles"),
    "party": (0.08, "political party", "Progress Party of {place}|{surname} Alliance|Farmers' List {place}"),
    "organization": (0.06, "learned society", "{place} Academy of Sciences|{surname} Society|{place} Guild"),
    "band": (0.10, "musical group", "The {thing}s"),
    "film": (0.12, "film", _WORKS),
    "book": (0.12, "novel", _WORKS),
    "award": (0.06, "award", "{surname} Prize|Order of the Silver Falcon of {place}|{place} Medal"),
    "position": (0.15, "public office", "Mayor of {place}|Senator for {place}|Governor of {place}"),
}
# Small kinds: all their items with their names.
VOCABULARY = {
    "occupation": "carpenter|translator|choreographer|sailor|beekeeper|cartographer|glassblower|stage magician",
    "language": "Astrian|Belonic|Corish|Dalmarkish|Eskanian|Feroric|Galesian|Helarian",
    "industry": "clock making|salt trading|airship building|tea blending|rail freight|paper milling",
    "genre": "slow folk|river blues|courtroom drama|space western|chamber pop|island noir|pastoral comedy",
}


class Names:
    """Makes names, none of them twice."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def part(self, name: str) -> str:
        """Return a random name of the kind ``name``: surname, place, land or thing. It may be returned again."""
        first, second = (self._rng.choice(words.split()) for words in _PARTS[name])
        return f"{first} {second}" if name == "thing" else first + second

    def unique(self, templates: str) -> str:
        """Fill one of the templates, which are separated by bars, with a name that no other item has."""
        attempt = 0
        while True:
            name = self._rng.choice(templates.split("|")).format(**{part: self.part(part) for part in _PARTS})
            attempt += 1
            if attempt > 20:  # most names are taken
                name += f" {self._rng.randrange(2, 20 * attempt)}"
            if name not in self._taken:
                self._taken.add(name)
                return name


_SUBJECTS = (
    "The local press|A regional archive|The annual report|One early review|The programme|A small exhibition|"
    "The committee|A later survey|The opening ceremony|A touring group|A public lecture|The second edition"
)
_VERBS = "described|welcomed|documented|postponed|supported|criticised|recorded|financed|inspired|revived|praised"
_OBJECTS = (
    "the new building|a series of concerts|the older rules|a long debate|the river project|several workshops|"
    "a modest budget|the winter schedule|a joint statement|the training plan|an open letter|a photographic record"
)
_ENDINGS = (
    "in {year}|after {n} meetings|with help from {n} volunteers|for the {small}th time|before an audience of {n}|"
    "over a period of {small} weeks|at a cost of {small} million|within {small} miles of the centre"
)


def filler_sentence(rng: Random) -> Text:
    """Return a sentence that states no fact about any item."""
    words = " ".join(rng.choice(part.split("|")) for part in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS))
    numbers = {"year": rng.randrange(1950, 2021), "n": f"{rng.randrange(12, 9800):,}", "small": rng.randrange(4, 21)}
    return as_is(f"{words.format(**numbers)}.")
