"""Words that express a relation: those of the property in the dump, and a table for the most frequent properties."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Self

# English words for frequent properties, where the property's own label and aliases do not have the words of prose.
# A phrase is expressed by a sentence that has the stems of all its words, close to one another.
_TABLE = """
P6: head of government|prime minister|mayor|premier|chancellor|governor|government led
P17: located in|lies in|city in|town in|village in|state in|region of|regions of|province of|county of|municipality in|situated in|based in
P18: image
P19: born|birthplace|native of|place of birth
P20: died|death in|killed in|passed away|assassinated in|executed in
P22: father|son of|daughter of
P25: mother|son of|daughter of
P26: married|wife|husband|spouse|wed|marriage
P27: citizen|citizenship|nationality|national of|naturalized
P30: continent|continental|country in|countries in|state in|located in|lies in|situated in|city in|largest in
P31: is a|is an|was a|was an|are a
P35: head of state|chief of state|president|presidency|king|queen|monarch|emperor
P36: capital|seat of government
P37: official language
P38: currency|legal tender
P39: served as|appointed|elected|took office|became|position|office|sworn in
P40: child|son|daughter|father of|mother of
P47: border|bordered|bounded|frontier|boundary with|neighbour|neighbor
P50: author|written by|wrote|novel by|book by
P54: plays for|played for|signed for|joined|team|club|transferred|midfielder|striker|footballer
P57: directed|director|film by
P61: discovered|invented|discoverer|inventor
P69: studied|educated|graduated|degree|attended|alumnus|student at|doctorate|admitted|enrolled
P84: architect|designed by
P86: composer|composed|music by|score
P101: field|specialist in|expert in|researcher in
P102: party|member of the|joined|candidate
P103: native language|mother tongue|native speaker
P106: was a|is a|was an|is an|worked as|became a|career as|known as a|occupation|profession
P108: employed|works for|worked for|working for|worked at|works at|professor at|professor of|taught at|employer|joined|joining|position at|faculty|chief executive|CEO|president of|chairman of|director of|presenter|journalist at|reporter for
P112: founded|founder|established|co-founded|created by
P115: stadium|home ground|played at|home matches|home games
P118: league|competes in|plays in|play in
P119: buried|grave|interred|burial
P123: published by|publisher
P127: owned|owner|belongs to
P131: country of|country in|state within|located in|lies in|situated in|city in|town in|village in|municipality in|district of|county
P136: genre|is a|is an|was a|was an
P138: named after|named for|eponym|named in honour|named in honor|namesake
P140: religion|faith|adherent|church|converted
P150: divided into|consists of|districts|provinces|states|regions|municipalities|counties|parishes|subdivided
P155: followed|preceded|successor
P156: followed|succeeded|predecessor|preceded
P157: killed|murdered|shot by
P159: headquarters|headquartered|based in|head office
P161: starring|stars|cast|played by|actor|actress|role
P162: produced|producer
P166: awarded|won|received|award|prize|recipient|laureate|honoured|honored
P169: chief executive|CEO
P170: created by|creator|painted by
P172: ethnic group|ethnicity|ethnic
P175: performed|performer|sung by|recorded by|song by|album by
P176: manufactured|manufacturer|made by|built by|produced by
P178: developed|developer
P184: doctoral advisor|supervised|supervisor|under the supervision|thesis
P185: doctoral student|student
P190: twinned|sister city|twin town|partner city
P194: legislature|parliament|assembly|legislative
P206: border|coast|coastline|shore|banks of|bounded|lies to|seas
P264: record label|signed to|released by|label
P272: produced by|production company
P276: held in|located in|took place
P279: is a|is an|was a|are a|are an|kind of|type of|form of|branch of|subclass
P282: alphabet|script|written in
P286: coach|manager|coached|managed
P344: cinematography|cinematographer
P361: part of|belongs to|component of
P364: language
P400: platform|released for
P403: flows into|mouth|empties|drains
P407: language|written in
P413: plays as|position
P449: aired|broadcast|network
P452: industry|industries|manufactures|sector
P463: member|joined|membership|international organizations|fellow
P488: chairman|chairperson|chair|chaired
P495: country|from
P509: died of|cause of death|death
P527: consists of|includes|comprises|members|composed of|made up of|divided into|branches|subgroups|line-up
P530: diplomatic relations|relations with
P551: lives in|lived in|resides|resided|moved to|residence
P569: born
P570: died
P607: fought|battle|war|served in
P610: highest point|highest mountain|highest peak
P641: sport|plays
P676: lyrics
P706: located|lies
P710: participant|participated|took part
P734: surname
P737: influenced|influence
P740: formed in|founded in|from|origin|originated|formation
P800: wrote|best known|known for|works include|films include|novels|author of|directed|notable works|famous for
P802: student|pupil|taught
P825: dedicated to|named for
P828: caused by|cause
P832: national day|independence day|public holiday|national holiday
P840: set in|takes place
P921: about|subject
P937: worked in|work
P1001: jurisdiction
P1037: director|manager|headed by|run by
P1056: produces|products
P1066: student of|pupil of|studied under
P1269: aspect|branch
P1303: plays|guitar|piano|instrument|played the
P1313: prime minister|head of government
P1344: participated|competed in|took part
P1365: replaced|succeeded|predecessor
P1366: replaced by|succeeded by|successor
P1376: capital
P1412: speaks|spoke|language|fluent in|writes in|wrote in|written in
P1441: appears in|character in
P1589: lowest point
P2348: period|century
P2936: language|spoken|speak
P3373: brother|sister|sibling
"""  # fmt: skip
_GENERIC = frozenset(
    "a an and any as at be been body by for form from had has have her his in into is it its main of on or other "
    "original part place some that the their there they thing this to type used was were where which who with basic "
    "given being first located share shared has item main are administrative territorial entity".split()
)
_WEAK = frozenset("work play live name make take hold move write come go know call see use own list city state birth death".split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


class Cue(tuple[str, ...]):
    """The stems of a phrase's words; ``tight`` if they must follow one another."""

    tight: bool

    def __new__(cls, stems: Iterable[str], tight: bool = False) -> Self:
        """Return a cue."""
        cue = super().__new__(cls, stems)
        cue.tight = tight
        return cue


def stems(text: str) -> list[tuple[str, int, int]]:
    """Return the stem of each word of a text, and where the word begins and ends."""
    return [(stem(match[0]), *match.span()) for match in _WORD.finditer(text)]


@functools.lru_cache(1 << 16)
def stem(word: str) -> str:
    """Return a word in lower case without its ending, so that "bordered" is like "borders"."""
    word = word.casefold().removesuffix("'s").removesuffix("’s")
    if len(word) > 4 and word.isascii():
        for ending in ("ings", "ing", "ies", "ed", "es", "s", "e", "y"):
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)]
                break
        if len(word) > 4 and word[-1] == word[-2]:
            word = word[:-1]
    return word


def cues_of(number: int, phrases: Iterable[str], language: str) -> list[Cue]:
    """Return the cues for a property: its label and aliases, and the table's phrases in English."""
    found: dict[Cue, None] = {}
    table = _table().get(number, ()) if language == "en" else ()
    for phrase in (*phrases, *table):
        words = [word for word, *_ in stems(phrase)]
        core = [word for word in words if word not in _GENERIC_STEMS]
        if all(word in _WEAK_STEMS for word in core):  # "works at": the words of prose say little without the others
            found[Cue(words, tight=True)] = None
        else:
            found[Cue(core)] = None
    return [cue for cue in found if len(cue) > cue.tight]


@functools.cache
def _table() -> dict[int, Sequence[str]]:
    rows = (line.split(": ", 1) for line in _TABLE.strip().splitlines())
    return {int(number[1:]): phrases.split("|") for number, phrases in rows}


_GENERIC_STEMS = frozenset(map(stem, _GENERIC)) | _GENERIC
_WEAK_STEMS = frozenset(map(stem, _WEAK))
