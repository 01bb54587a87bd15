"""Invented names and filler prose from small word lists; nothing here comes from a real text."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


def _words(text: str) -> list[str]:
    return text.split()


GIVEN = {
    "she": _words(
        "Adela Brisa Corin Dalia Edda Fenna Gisla Hanne Ilsa Jorun Katla Lioba Mirela Nives Orla Petra "
        "Quilla Runa Senna Tilda Ulla Vesna Wanda Ysolt Zelda Amira Belinay Chiara Dunja Elif"
    ),
    "he": _words(
        "Anders Bram Cato Dario Emil Falk Goran Hamid Ivo Janek Kaspar Levin Marek Nils Oskar Pavel "
        "Quentin Rufus Stellan Tomas Ulrich Viktor Wim Xaver Yannick Zoran Arlo Boris Cyril Dmitri"
    ),
}
_SURNAME_HEADS = _words(
    "Al Bar Cal Dor El Fen Gar Hol Ing Jar Kel Lor Mar Nor Ost Pel Quar Ros Sol Tor Ul Var Wes Yar Zan "
    "Brand Crest Drav Flint Grim Hals Krast Lind Mold Stav"
)
_SURNAME_TAILS = _words(
    "aker bin cott dane eby ferth gren holt ickson jord kamp lund mire nell ovic pin quist rud sen tveit "
    "uda vik wald yard zik"
)
_PLACE_HEADS = _words(
    "Amber Brack Cold Dun Ever Far Glen Hart Iron Jun King Lang Mill North Oak Pine Quay Raven Stone Thorn "
    "Under Vale Wind Yew Ash Birch Clay Drift East Frost Gold Hazel"
)
_PLACE_TAILS = _words(
    "bury combe dale eford field gate haven ingham keld low mere ness over port ridge stead ton uley vale "
    "wick worth by thorpe mouth"
)
_LAND_HEADS = _words("Astra Bel Cor Dal Esk Fer Gal Hel Ist Jur Kar Lus Mor Nav Oss Pol Ruth Sar Tav Ul Vor Zem")
_LAND_TAILS = _words("avia onia istan mark ania esia oria land enia ara")
_WORK_ADJECTIVES = _words(
    "Silent Crooked Distant Painted Hollow Borrowed Scarlet Patient Broken Velvet Restless Northern Paper "
    "Copper Forgotten Second Endless Wooden Bitter Electric Quiet Burning Frozen Gentle"
)
_WORK_NOUNS = _words(
    "Orchard Lantern Harbour Compass Winter Staircase Letters Meridian Garden Clock Voyage Mirror Choir "
    "Railway Island Ledger Sparrow Theatre Horizon Cathedral Weather Bridge Carousel Almanac"
)


@dataclass(frozen=True)
class Text:
    """A piece of text as a reader sees it, and as wikitext."""

    plain: str
    wiki: str


def fill(template: str, **fields: Text) -> Text:
    """Fill a template once for readers and once as wikitext."""
    return Text(
        template.format(**{name: text.plain for name, text in fields.items()}),
        template.format(**{name: text.wiki for name, text in fields.items()}),
    )


def as_is(plain: str) -> Text:
    """Text without markup."""
    return Text(plain, plain)


class Names:
    """Names that are unique within one world."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def unique(self, make: str, *, pronoun: str = "she", place: str = "") -> str:
        """A new name of a kind: ``person``, ``city``, ``country``, ``work``, ``brand`` ...

        Raises RuntimeError where all are taken.
        """
        for attempt in range(1000):
            name = self._make(make, pronoun, place)
            if attempt > 20:  # the lists are exhausted: initials and numerals give room for huge worlds
                name = f"{name} {self._numeral(attempt)}" if make != "person" else self._with_initials(name)
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise RuntimeError(f"no free name of kind {make!r}: the world is too large for its word lists")

    def _with_initials(self, name: str) -> str:
        given, _, surname = name.partition(" ")
        initials = " ".join(f"{self._rng.choice('ABCDEFGHIJKLMNOPRSTVW')}." for _ in range(2))
        return f"{given} {initials} {surname}"

    def _numeral(self, attempt: int) -> str:
        return str(self._rng.randrange(2, 20 * attempt))

    def place_name(self) -> str:
        """A place name that may repeat."""
        return self._rng.choice(_PLACE_HEADS) + self._rng.choice(_PLACE_TAILS)

    def surname(self) -> str:
        """A family name that may repeat."""
        return self._rng.choice(_SURNAME_HEADS) + self._rng.choice(_SURNAME_TAILS)

    def _work(self) -> str:
        adjective, noun = self._rng.choice(_WORK_ADJECTIVES), self._rng.choice(_WORK_NOUNS)
        form = self._rng.choice(("The {a} {n}", "{a} {n}", "A {a} {n}", "{n} of {p}"))
        return form.format(a=adjective, n=noun, p=self.place_name())

    def _make(self, make: str, pronoun: str, place: str) -> str:
        choice = self._rng.choice
        match make:
            case "person":
                return f"{choice(GIVEN[pronoun])} {self.surname()}"
            case "city":
                return self.place_name()
            case "country":
                return choice(_LAND_HEADS) + choice(_LAND_TAILS)
            case "club":
                club = choice(("{p} United", "{p} Rovers", "{p} City", "{p} Athletic", "A.F.C. {p}"))
                return club.format(p=place)
            case "stadium":
                return choice((f"{self.surname()} Park", f"{place} Stadium", f"{self.surname()} Road"))
            case "university":
                long = "Royal Technical University of the {p} Isles"  # seven words: dropped by filter 2
                return choice(("University of {p}", "{p} College", "{p} Polytechnic", long)).format(p=place)
            case "party":
                return f"{choice(('Progress', 'Unity', 'Green', 'Labour', 'Liberty', 'Farmers'))} " + choice(
                    (f"Party of {place}", "Alliance", "Union", "Movement", f"List {place}")
                )
            case "brand":
                brand = choice(("Group", "Holdings", "Systems", "Motors", "Foods", "Energy"))
                return f"{self.surname()} {brand}"
            case "label":
                return f"{choice(_WORK_ADJECTIVES)} {choice(_WORK_NOUNS)} Records"
            case "band":
                return f"The {choice(_WORK_ADJECTIVES)} {choice(_WORK_NOUNS)}s"
            case "award":
                long = f"Order of the Silver Falcon of {place}"  # dropped by filter 2
                return choice((f"{self.surname()} Prize", long, f"{place} Medal"))
            case "organization":
                return choice((f"{place} Academy of Sciences", f"{self.surname()} Society", f"{place} Guild"))
            case "league":
                return f"{place} {choice(('Premier League', 'First Division', 'Super League'))}"
            case "position":
                return choice(
                    (
                        f"Minister of {choice(_WORK_NOUNS)}s",
                        f"Mayor of {place}",
                        f"Senator for {place}",
                        f"Governor of {place}",
                        f"member of the Parliament of {place}",
                    )
                )
            case _:
                return self._work()


_SUBJECTS = (
    "The local press",
    "A regional archive",
    "The annual report",
    "One early review",
    "The programme",
    "A small exhibition",
    "The committee",
    "A later survey",
    "The opening ceremony",
    "A touring group",
    "The restoration",
    "A public lecture",
    "The second edition",
    "A charity dinner",
    "The spring festival",
)
_VERBS = (
    "described",
    "welcomed",
    "documented",
    "postponed",
    "supported",
    "criticised",
    "recorded",
    "financed",
    "inspired",
    "revived",
    "praised",
    "outlined",
    "extended",
    "replaced",
    "summarised",
)
_OBJECTS = (
    "the new building",
    "a series of concerts",
    "the older rules",
    "a long debate",
    "the river project",
    "several workshops",
    "a modest budget",
    "the winter schedule",
    "a joint statement",
    "the training plan",
    "an open letter",
    "the library collection",
    "a photographic record",
    "the travel arrangements",
)
_ENDINGS = (
    "in {year}",
    "after {n} meetings",
    "with help from {n} volunteers",
    "for the {nth} time",
    "before an audience of {n}",
    "over a period of {small} weeks",
    "at a cost of {m}",
    "within {d} of the centre",
)
# Full stops that do not end a sentence: the truth keeps each of these as one.
_HARD = (
    "Dr. {i} {i2} {name} praised the plan in {year}.",
    "The U.S. edition sold {m} copies in {year}.",
    "{i} {i2} {name} wrote a report of {n} pages about it.",
    "The choir of St. Anne's performed there {small} times in {year}.",
    "It weighs approx. {dec} tonnes and stands {d} from the river.",
    "Attendance rose by {dec} per cent to {m} in {year}.",
    "Mr. {name} and Mrs. {name2} opened the site in {year}.",
    'The paper "What now? A reply" by {i} {name} appeared in {year}.',
    "The firm {name} & Co. paid for {n} lamps, i.e. the whole street.",
    "Gen. {name} visited at 9 a.m. and left {small} hours later.",
)


class Prose:
    """Sentences that state no fact about any item; their full stops are easy, or hard on request."""

    def __init__(self, rng: Random, names: Names, hard: float) -> None:
        self._rng = rng
        self._names = names
        self._hard = hard

    def sentence(self) -> Text:
        """One sentence; it may repeat, so the page has to check that it is new to it."""
        rng = self._rng
        number = rng.randrange(12, 9800)
        decimal = f"{rng.randrange(1, 90)}.{rng.randrange(1, 10)}"
        fields = {
            "year": as_is(str(rng.randrange(1950, 2021))),
            "n": as_is(f"{number:,}"),
            "small": as_is(str(rng.randrange(2, 40))),
            "nth": as_is(f"{rng.randrange(4, 21)}th"),
            "dec": as_is(decimal),
            "m": self._million(decimal),
            "d": Text(f"{decimal} kilometres", f"{{{{convert|{decimal}|km|mi}}}}"),
            "i": as_is(f"{rng.choice('ABCDEFGHJKLMNPRST')}."),
            "i2": as_is(f"{rng.choice('ABCDEFGHJKLMNPRST')}."),
            "name": as_is(self._names.surname()),
            "name2": as_is(self._names.surname()),
        }
        if rng.random() < self._hard:
            return fill(rng.choice(_HARD), **fields)
        subject, verb, thing = rng.choice(_SUBJECTS), rng.choice(_VERBS), rng.choice(_OBJECTS)
        return fill(f"{subject} {verb} {thing} {rng.choice(_ENDINGS)}.", **fields)

    def _million(self, decimal: str) -> Text:
        plain = f"{decimal} million"
        return Text(plain, self._rng.choice((plain, f"{{{{nowrap|{plain}}}}}", f"{decimal}&nbsp;million")))
