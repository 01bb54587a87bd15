"""Words that express a relation: labels of the property in the dump, and a table for the most frequent properties."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Self

from temporalwiki.builders.wikipedia.words import words

# English phrases for the most frequent properties: first the property's label, then words of prose. A sentence that
# has the stems of all words of a phrase, close to one another, expresses the relation.
_TABLE = """
P6: head of government|prime minister|mayor|premier|chancellor|governor|government led
P17: country|located in|lies in|city in|town in|village in|state in|region of|regions of|province of|county of
    |municipality in|situated in|based in
P19: place of birth|born|birthplace|native of
P20: place of death|died|death in|killed in|passed away|assassinated in|executed in
P22: father|son of|daughter of
P25: mother|son of|daughter of
P26: spouse|married|wife|husband|wed|marriage
P27: country of citizenship|citizen|citizenship|nationality|national of|naturalized
P30: continent|continental|country in|countries in|state in|located in|lies in|situated in|city in|largest in
P31: instance of|is a|is an|was a|was an|are a
P35: head of state|chief of state|president|presidency|king|queen|monarch|emperor
P36: capital|seat of government
P37: official language
P38: currency|legal tender
P39: position held|served as|appointed|elected|took office|became|position|office|sworn in
P40: child|son|daughter|father of|mother of
P47: shares border with|border|bordered|bounded|frontier|boundary with|neighbour|neighbor
P50: author|written by|wrote|novel by|book by
P54: member of sports team|plays for|played for|signed for|joined|team|club|transferred|midfielder|striker|footballer
P57: director|directed|film by
P61: discoverer or inventor|discovered|invented|discoverer|inventor
P69: educated at|studied|educated|graduated|degree|attended|alumnus|student at|doctorate|admitted|enrolled|education
P84: architect|designed by
P86: composer|composed|music by|score
P101: field of work|field|specialist in|expert in|researcher in
P102: member of political party|party|member of the|joined|candidate|belongs to
P103: native language|mother tongue|native speaker
P106: occupation|was a|is a|was an|is an|worked as|became a|career as|known as a|profession
P108: employer|employed|works for|worked for|working for|worked at|works at|professor at|professor of|taught at
    |joined|joining|position at|faculty|chief executive|CEO|president of|chairman of|director of|presenter
    |journalist at|reporter for
P112: founded by|founded|founder|established|co-founded|created by
P115: home venue|stadium|home ground|played at|home matches|home games
P118: league|competes in|plays in|play in
P119: place of burial|buried|grave|interred|burial
P123: publisher|published by
P127: owned by|owned|owner|belongs to
P131: located in the administrative territorial entity|country of|country in|state within|located in|lies in
    |situated in|city in|town in|village in|municipality in|district of|county|is in
P136: genre|is a|is an|was a|was an
P138: named after|named for|eponym|named in honour|named in honor|namesake
P140: religion|faith|adherent|church|converted
P150: contains administrative territorial entity|divided into|consists of|districts|provinces|states|regions
    |municipalities|counties|parishes|subdivided
P155: follows|followed|preceded|successor
P156: followed by|followed|succeeded|predecessor|preceded
P157: killed by|killed|murdered|shot by
P159: headquarters location|headquarters|headquartered|based in|head office
P161: cast member|starring|stars|cast|played by|actor|actress|role
P162: producer|produced
P166: award received|awarded|won|received|award|prize|recipient|laureate|honoured|honored|holds the|holder of
P169: chief executive officer|chief executive|CEO
P170: creator|created by|painted by
P172: ethnic group|ethnicity|ethnic
P175: performer|performed|sung by|recorded by|song by|album by
P176: manufacturer|manufactured|made by|built by|produced by
P178: developer|developed
P184: doctoral advisor|supervised|supervisor|under the supervision|thesis
P185: doctoral student|student
P190: twinned administrative body|twinned|sister city|twin town|partner city
P194: legislative body|legislature|parliament|assembly|legislative
P206: located in or next to body of water|border|coast|coastline|shore|banks of|bounded|lies to|seas
P264: record label|signed to|released by|label
P272: production company|produced by
P276: location|held in|located in|took place
P279: subclass of|is a|is an|was a|are a|are an|kind of|type of|form of|branch of|subclass
P282: writing system|alphabet|script|written in
P286: head coach|coach|manager|coached|managed
P344: director of photography|cinematography|cinematographer
P361: part of|belongs to|component of
P364: original language of film or TV show|language
P400: platform|released for
P403: mouth of the watercourse|flows into|mouth|empties|drains
P407: language of work or name|language|written in
P413: position played on team / speciality|plays as|position
P449: original broadcaster|aired|broadcast|network
P452: industry|industries|manufactures|sector|active in
P463: member of|member|joined|membership|international organizations|fellow
P488: chairperson|chairman|chair|chaired
P495: country of origin|country|from
P509: cause of death|died of|death
P527: has part(s)|consists of|includes|comprises|members|composed of|made up of|divided into|branches|subgroups
    |line-up
P530: diplomatic relation|diplomatic relations|relations with
P551: residence|lives in|lived in|resides|resided|moved to
P607: conflict|fought|battle|war|served in
P610: highest point|highest mountain|highest peak
P641: sport|plays
P676: lyrics by|lyrics
P706: located in/on physical feature|located|lies
P710: participant|participated|took part
P734: family name|surname
P737: influenced by|influenced|influence
P740: location of formation|formed in|founded in|from|origin|originated|formation
P800: notable work|wrote|best known|known for|works include|films include|novels|author of|directed|notable works
    |famous for
P802: student|pupil|taught
P825: dedicated to|named for
P828: has cause|caused by|cause
P832: public holiday|national day|independence day|national holiday
P840: narrative location|set in|takes place
P921: main subject|about|subject
P937: work location|worked in|work
P1001: applies to jurisdiction|jurisdiction
P1037: director / manager|director|manager|headed by|run by
P1056: product or material produced|produces|products
P1066: student of|pupil of|studied under
P1269: facet of|aspect|branch
P1303: instrument|plays|guitar|piano|played the
P1313: office held by head of government|prime minister|head of government
P1344: participant in|participated|competed in|took part
P1365: replaces|replaced|succeeded|predecessor
P1366: replaced by|succeeded by|successor
P1376: capital of|capital
P1412: languages spoken, written or signed|speaks|spoke|language|fluent in|writes in|wrote in|written in
P1441: present in work|appears in|character in
P1589: lowest point
P2348: time period|period|century
P2936: language used|language|spoken|speak
P3373: sibling|brother|sister
"""
_GENERIC = words("""
    a an and any as at be been body by for form from had has have her his in into is it its main of on or other
    original part place some that the their there they thing this to type used was were where which who with basic
    given being first located location share shared item are administrative territorial entity
""")
# Words that say little without those around them: "works at" is a cue, "works" is not.
_WEAK = words("""
    work play live name make take hold move write come go know call see use own list city state birth death
""")
# Scripts without spaces between words: Han, kana and Hangul; Thai, Lao, Khmer, Burmese, Tibetan and Javanese.
UNSPACED = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u109f\u1780-\u17ff\ua980-\ua9df"
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:['’][^\W_{UNSPACED}]+)?")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class Cue(tuple[str, ...]):
    """The stems of a phrase's words; ``tight`` if they must follow one another."""

    tight: bool

    def __new__(cls, stems: Iterable[str], tight: bool = False) -> Self:
        """Return a cue."""
        cue = super().__new__(cls, stems)
        cue.tight = tight
        return cue


def stems(text: str) -> list[tuple[str, int, int]]:
    """Return the stem of each word of a text, and where the word begins and ends.

    In scripts without spaces between words, each character counts as a word.
    """
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
    """Return the cues for a property: ``phrases`` (its label and aliases); for English, the table adds more."""
    found = dict.fromkeys(map(cue_of, (*phrases, *(table(number) if language == "en" else ()))))
    return [cue for cue in found if len(cue) > cue.tight]  # a word that says little is not a cue by itself


def cue_of(phrase: str) -> Cue:
    """Return the cue for a phrase; it is empty if the phrase has no words."""
    whole = [word for word, *_ in stems(phrase)]
    core = [word for word in whole if word not in _GENERIC_STEMS]
    # "works at": "works" says little, so both words must stand together
    if all(word in _WEAK_STEMS for word in core) or _UNSPACED.search(phrase):
        return Cue(whole, tight=True)
    return Cue(core)


def table(number: int) -> Sequence[str]:
    """Return the table's phrases for a property."""
    return _table().get(number, ())


def labels() -> dict[int, str]:
    """Return the English labels of the most frequent properties."""
    return {number: phrases[0] for number, phrases in _table().items()}


@functools.cache
def _table() -> dict[int, Sequence[str]]:
    rows = (line.split(": ", 1) for line in _TABLE.replace("\n    ", "").strip().splitlines())
    return {int(number[1:]): phrases.split("|") for number, phrases in rows}


_GENERIC_STEMS = frozenset(map(stem, _GENERIC)) | _GENERIC
_WEAK_STEMS = frozenset(map(stem, _WEAK))
