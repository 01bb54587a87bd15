"""The English wording of Wikidata's relations: a cloze and a question for each.

The wording is this project's own. The blank comes last, so that models that read from left to right can fill it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

SENTINEL = "<extra_id_0>"  # stands for the object
ANY_SENTINEL = re.compile(r"<extra_id_[0-9]+>")
# control characters and marks of direction, which models read but people cannot see
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """Return a label with each run of white space, line breaks included, as one space."""
    return " ".join(text.split())


def unsafe_label(label: str) -> str | None:
    """Return why a label must not stand in a cloze, as a key of counts; None if it may."""
    if ANY_SENTINEL.search(label):
        return "label_with_sentinel"
    return "label_with_control_character" if _INVISIBLE.search(label) else None


@dataclass(frozen=True)
class Template:
    """The wording of a relation's facts: [X] stands for the subject, [Y] for the object."""

    cloze: str
    question: str
    # Facts never change: a place of birth, an award. A new value only corrects or completes Wikidata.
    lasting: bool = False
    # Facts end with the subject's death, though Wikidata may have no end time: an employer, a spouse.
    ends_with_life: bool = False

    def statement(self, subject: str) -> str:
        """Return the cloze about ``subject``, with <extra_id_0> for the object."""
        # by parts: the subject itself may contain "[Y]"
        return "".join({"[X]": subject, "[Y]": SENTINEL}.get(part, part) for part in _parts(self.cloze))

    def ask(self, subject: str) -> str:
        """Return the question about ``subject``."""
        return "".join(subject if part == "[X]" else part for part in _parts(self.question))


def find_template(relation_id: str, label: str, lama: Mapping[str, str] | None = None) -> Template | None:
    """Return the template of a relation ("P6"), or None if it has no wording.

    ``lama`` has LAMA's clozes by relation id, which replace our own. A relation that is missing from the table below
    gets its wording from its label, if that is a noun phrase.
    """
    own = _TABLE.get(relation_id) or (None if relation_id in _NEVER else _from_label(relation_id, label))
    if own is None or lama is None or relation_id not in lama:
        return own
    return dataclasses.replace(own, cloze=lama[relation_id])


@functools.lru_cache
def _parts(text: str) -> list[str]:
    return re.split(r"(\[[XY]\])", text)


# A label must be a noun phrase in the singular ("head of government", "military unit"). Labels that begin or end with
# these words are not: "located in", "has effect", "capital of", "different from".
_PREPOSITION = r"(?:of|in|on|at|by|for|from|to|with|within|as|after|before|into|than|over|about|between|per|near)"
_NO_START = re.compile(
    rf"(?:{_PREPOSITION}|an?|the|is|are|was|has|have|had|does|do|can|said|found|\w+ing$)\b", re.IGNORECASE
)
_NO_END = re.compile(rf"\b{_PREPOSITION}$", re.IGNORECASE)
_OF = re.compile(rf" {_PREPOSITION} ", re.IGNORECASE)
_NOT_A_NOUN = re.compile(r"\w+(?:[^e]ed|[^suia]s)", re.IGNORECASE)  # "owned", "follows", "characters"
# Labels with a verb or a participle ("office held by", "record held", "set in period"), labels of pages rather than
# facts ("history of topic"), and labels about Wikidata and Wikimedia.
_NO_WORDS = re.compile(
    r"\b(?:has|have|is|are|this|subject|object|id|identifier|property|sandbox|topic|also|with|within|by|lists?"
    r"|deprecation|discography|filmography|bibliography|exception|constraint"
    r"|held|sent|made|lost|won|set|shown|born|built|given|known|found|written|taken|worn|said|led|run|put|sung"
    r"|spoken|drawn|driven|thrown|done|seen|sold|bought|brought|caught|taught|kept|left|met|paid|told|begun|chosen"
    r"|fallen|grown|hidden|ridden|eaten|beaten|cut|hit|shot|struck|hung|fed|fought|bound|sought|spent|laid|meant"
    r"|broken|forgotten|gone|lain|learnt|read|risen|shut|stolen|sworn|torn|understood|woken|withdrawn|overthrown"
    r"|\w{2,}[^e]ed)\b|wiki|categor|template|commons",
    re.IGNORECASE,
)
# Relations that no cloze asks for: private matters (sexual orientation, ethnic group, medical condition), parts of the
# subject's own name, and relations that describe another statement.
_NEVER = frozenset((
    "P91", "P172", "P1050",
    "P734", "P735", "P1950", "P2358", "P2359", "P2365", "P2366", "P453", "P405", "P459", "P517", "P654", "P805",
    "P812", "P1264", "P1353", "P1354", "P1534", "P1642", "P1643", "P1906", "P2184", "P2241", "P2309", "P2522", "P3005",
    "P4390", "P5054", "P5102", "P7367", "P7452", "P9215",
))  # fmt: skip
# Relations worded by their label whose value can change. For all others, later ones included, nobody has checked
# whether it can: a second value counts as an addition or a correction.
_MAY_CHANGE = frozenset((
    "P78", "P85", "P141", "P163", "P208", "P209", "P210", "P237", "P263", "P275", "P504", "P505", "P532", "P822",
    "P831", "P1192", "P1304", "P1387", "P1435", "P1454", "P1622", "P1640", "P1789", "P2094", "P2238", "P2499", "P2500",
    "P2541", "P2828", "P3033", "P3075", "P3320", "P3460", "P3975", "P4100", "P8047",
))  # fmt: skip

# Relations worded by their label whose values are people: "Who is the translator of", not "What is".
_PEOPLE = frozenset((
    "P87", "P110", "P185", "P210", "P344", "P417", "P505", "P631", "P655", "P823", "P943", "P1290", "P1591", "P1592",
    "P1593", "P1594", "P1598", "P1620", "P1640", "P1652", "P1779", "P1789", "P1809", "P2438", "P2515", "P2554",
    "P2679", "P2680", "P2828", "P3080", "P3092", "P3174", "P3300", "P3320", "P3448", "P3460", "P3975",
))  # fmt: skip


@functools.lru_cache(10_000)
def _from_label(relation_id: str, label: str) -> Template | None:
    """Return a template worded by a relation's label; None if the label is not a plain noun phrase."""
    words = label.split(" ")
    head = _OF.split(label)[0].split(" ")
    if (
        not re.fullmatch(r"[A-Za-z][A-Za-z-]*(?: [A-Za-z][A-Za-z-]*){0,5}", label)
        or _NO_START.match(label)
        or _NO_END.search(label)
        or _NOT_A_NOUN.fullmatch(words[0])
        or _NOT_A_NOUN.fullmatch(head[-1])
        or _NO_WORDS.search(label)
    ):
        return None
    return Template(
        f"The {label} of [X] is [Y].",
        f"{'Who' if relation_id in _PEOPLE else 'What'} is the {label} of [X]?",
        lasting=relation_id not in _MAY_CHANGE,
        ends_with_life=relation_id in _ENDS_WITH_LIFE,
    )


# Facts about people that end with their death. An occupation, a religion, a language, a citizenship or a rank do not.
_ENDS_WITH_LIFE = frozenset((
    "P26", "P39", "P54", "P102", "P108", "P118", "P263", "P413", "P451", "P463", "P551", "P859", "P937",
    "P1327", "P1416", "P1532", "P2632", "P4100", "P6087",
))  # fmt: skip
# fmt: off
_CHANGING: dict[str, tuple[str, str]] = {
    "P6": ("The head of government of [X] is [Y].", "Who is the head of government of [X]?"),
    "P17": ("The country of [X] is [Y].", "What is the country of [X]?"),
    "P26": ("A spouse of [X] is [Y].", "Who is a spouse of [X]?"),
    "P27": ("The country of citizenship of [X] is [Y].", "What is the country of citizenship of [X]?"),
    "P35": ("The head of state of [X] is [Y].", "Who is the head of state of [X]?"),
    "P36": ("The capital city of [X] is [Y].", "What is the capital of [X]?"),
    "P37": ("An official language of [X] is [Y].", "What is an official language of [X]?"),
    "P38": ("The currency of [X] is [Y].", "What is the currency of [X]?"),
    "P39": ("A position of [X] is [Y].", "What is a position of [X]?"),
    "P47": ("[X] has a border with [Y].", "What does [X] have a border with?"),
    "P54": ("A sports team of [X] is [Y].", "What is a sports team of [X]?"),
    "P97": ("A noble title of [X] is [Y].", "What is a noble title of [X]?"),
    "P98": ("The editor of [X] is [Y].", "Who is the editor of [X]?"),
    "P101": ("A field of work of [X] is [Y].", "What is a field of work of [X]?"),
    "P102": ("The political party of [X] is [Y].", "What is the political party of [X]?"),
    "P106": ("An occupation of [X] is [Y].", "What is an occupation of [X]?"),
    "P108": ("An employer of [X] is [Y].", "Who is an employer of [X]?"),
    "P113": ("A hub of the airline [X] is [Y].", "Which airport is a hub of the airline [X]?"),
    "P114": ("The airline alliance of [X] is [Y].", "Which airline alliance does [X] belong to?"),
    "P115": ("The home venue of [X] is [Y].", "What is the home venue of [X]?"),
    "P118": ("The league of [X] is [Y].", "What is the league of [X]?"),
    "P122": ("The form of government of [X] is [Y].", "What is the form of government of [X]?"),
    "P123": ("The publisher of [X] is [Y].", "Who is the publisher of [X]?"),
    "P126": ("[X] is maintained by [Y].", "Who maintains [X]?"),
    "P127": ("An owner of [X] is [Y].", "Who is an owner of [X]?"),
    "P131": ("The administrative area where [X] is located is [Y].", "In which administrative area is [X] located?"),
    "P137": ("An operator of [X] is [Y].", "Who is an operator of [X]?"),
    "P140": ("A religion or worldview of [X] is [Y].", "What is a religion or worldview of [X]?"),
    "P156": ("[X] is followed by [Y].", "What is [X] followed by?"),
    "P159": ("The headquarters of [X] are in [Y].", "Where are the headquarters of [X]?"),
    "P169": ("The chief executive officer of [X] is [Y].", "Who is the chief executive officer of [X]?"),
    "P190": ("[X] is twinned with [Y].", "Which place is [X] twinned with?"),
    "P194": ("The legislature of [X] is [Y].", "What is the legislature of [X]?"),
    "P195": ("The collection that holds [X] is [Y].", "Which collection holds [X]?"),
    "P197": ("The station next to [X] is [Y].", "Which station is next to [X]?"),
    "P241": ("The military branch of [X] is [Y].", "What is the military branch of [X]?"),
    "P264": ("A record label of [X] is [Y].", "What is a record label of [X]?"),
    "P276": ("The location of [X] is [Y].", "What is the location of [X]?"),
    "P286": ("The head coach of [X] is [Y].", "Who is the head coach of [X]?"),
    "P306": ("An operating system on which [X] runs is [Y].", "Which operating system does [X] run on?"),
    "P355": ("A subsidiary of [X] is [Y].", "What is a subsidiary of [X]?"),
    "P361": ("[X] forms part of [Y].", "What is [X] a part of?"),
    "P371": ("A presenter of [X] is [Y].", "Who is a presenter of [X]?"),
    "P400": ("A platform on which [X] runs is [Y].", "Which platform does [X] run on?"),
    "P410": ("The military rank of [X] is [Y].", "What is the military rank of [X]?"),
    "P413": ("The playing position of [X] is [Y].", "What is the playing position of [X]?"),
    "P414": ("The stock exchange on which [X] is traded is [Y].", "Which stock exchange is [X] traded on?"),
    "P421": ("The time zone of [X] is [Y].", "Which time zone is [X] in?"),
    "P451": ("A partner of [X] is [Y].", "Who is a partner of [X]?"),
    "P452": ("An industry of [X] is [Y].", "What is an industry of [X]?"),
    "P463": ("An organization with [X] among its members is [Y].", "Which organization has [X] among its members?"),
    "P466": ("The occupant of [X] is [Y].", "Who is the occupant of [X]?"),
    "P488": ("The chairperson of [X] is [Y].", "Who is the chairperson of [X]?"),
    "P527": ("A part or member of [X] is [Y].", "What is a part or member of [X]?"),
    "P530": ("[X] has diplomatic relations with [Y].", "Which country does [X] have diplomatic relations with?"),
    "P551": ("A place of residence of [X] is [Y].", "What is a place of residence of [X]?"),
    "P559": ("A terminus of [X] is [Y].", "Where does [X] end?"),
    "P609": ("A place where [X] ends is [Y].", "Where does [X] end?"),
    "P611": ("The religious order of [X] is [Y].", "What is the religious order of [X]?"),
    "P634": ("The captain of [X] is [Y].", "Who is the captain of [X]?"),
    "P641": ("The sport that [X] is associated with is [Y].", "Which sport is [X] associated with?"),
    "P664": ("An organizer of [X] is [Y].", "Who organizes [X]?"),
    "P669": ("The street on which [X] lies is [Y].", "Which street does [X] lie on?"),
    "P708": ("The diocese of [X] is [Y].", "Which diocese does [X] belong to?"),
    "P710": ("A participant in [X] is [Y].", "Who is a participant in [X]?"),
    "P726": ("A candidate in [X] is [Y].", "Who is a candidate in [X]?"),
    "P749": ("The parent organization of [X] is [Y].", "What is the parent organization of [X]?"),
    "P750": ("A distributor of [X] is [Y].", "Who is a distributor of [X]?"),
    "P768": ("The electoral district of [X] is [Y].", "What is the electoral district of [X]?"),
    "P859": ("A sponsor of [X] is [Y].", "Who is a sponsor of [X]?"),
    "P931": ("A place that [X] serves is [Y].", "Which place does [X] serve?"),
    "P937": ("A place of work of [X] is [Y].", "What is a place of work of [X]?"),
    "P945": ("An allegiance of [X] is [Y].", "What is an allegiance of [X]?"),
    "P1001": ("The jurisdiction of [X] is [Y].", "What is the jurisdiction of [X]?"),
    "P1037": ("The director or manager of [X] is [Y].", "Who is the director or manager of [X]?"),
    "P1056": ("A product of [X] is [Y].", "What is a product of [X]?"),
    "P1075": ("The rector of [X] is [Y].", "Who is the rector of [X]?"),
    "P1142": ("A political ideology of [X] is [Y].", "What is a political ideology of [X]?"),
    "P1303": ("An instrument or voice of [X] is [Y].", "What is an instrument or voice of [X]?"),
    "P1308": ("The holder of the office of [X] is [Y].", "Who holds the office of [X]?"),
    "P1327": ("A partner of [X] in business or sport is [Y].", "Who is a partner of [X] in business or sport?"),
    "P1366": ("The successor of [X] is [Y].", "Who or what is the successor of [X]?"),
    "P1376": ("The area of which [X] is the capital is [Y].", "What is [X] the capital of?"),
    "P1412": ("A language of [X] is [Y].", "What is a language of [X]?"),
    "P1416": ("An affiliation of [X] is [Y].", "What is an affiliation of [X]?"),
    "P1532": ("The sporting country of [X] is [Y].", "What is the sporting country of [X]?"),
    "P1830": ("A property that [X] owns is [Y].", "What does [X] own?"),
    "P2416": ("A sports discipline of [X] is [Y].", "What is a sports discipline of [X]?"),
    "P2632": ("The place of detention of [X] is [Y].", "What is the place of detention of [X]?"),
    "P3342": ("A significant person to [X] is [Y].", "Who is a significant person to [X]?"),
    "P5769": ("The editor-in-chief of [X] is [Y].", "Who is the editor-in-chief of [X]?"),
    "P6087": ("A sports team coached by [X] is [Y].", "What is a sports team coached by [X]?"),
}
_LASTING: dict[str, tuple[str, str]] = {
    "P19": ("The place where [X] was born is [Y].", "Where was [X] born?"),
    "P20": ("The place where [X] died is [Y].", "Where did [X] die?"),
    "P21": ("The sex or gender of [X] is [Y].", "What is the sex or gender of [X]?"),
    "P22": ("The father of [X] is [Y].", "Who is the father of [X]?"),
    "P25": ("The mother of [X] is [Y].", "Who is the mother of [X]?"),
    "P30": ("The continent of [X] is [Y].", "Which continent does [X] belong to?"),
    "P31": ("[X] is an instance of [Y].", "What is [X] an instance of?"),
    "P40": ("A child of [X] is [Y].", "Who is a child of [X]?"),
    "P50": ("The author of [X] is [Y].", "Who is the author of [X]?"),
    "P53": ("The family of [X] is [Y].", "What is the family of [X]?"),
    "P57": ("The director of [X] is [Y].", "Who directed [X]?"),
    "P58": ("A screenwriter of [X] is [Y].", "Who is a screenwriter of [X]?"),
    "P59": ("The constellation in which [X] lies is [Y].", "Which constellation does [X] lie in?"),
    "P61": ("The discoverer or inventor of [X] is [Y].", "Who discovered or invented [X]?"),
    "P69": ("A place of education of [X] is [Y].", "What is a place of education of [X]?"),
    "P84": ("The architect of [X] is [Y].", "Who is the architect of [X]?"),
    "P86": ("The composer of the music of [X] is [Y].", "Who composed the music of [X]?"),
    "P103": ("The mother tongue of [X] is [Y].", "What is the mother tongue of [X]?"),
    "P105": ("The taxonomic rank of [X] is [Y].", "What is the taxonomic rank of [X]?"),
    "P112": ("A founder of [X] is [Y].", "Who founded [X]?"),
    "P119": ("The place of burial of [X] is [Y].", "What is the place of burial of [X]?"),
    "P135": ("A movement of [X] is [Y].", "What is a movement of [X]?"),
    "P136": ("A genre of [X] is [Y].", "What is a genre of [X]?"),
    "P138": ("The name of [X] comes from [Y].", "What is [X] named after?"),
    "P144": ("[X] is based on [Y].", "What is [X] based on?"),
    "P149": ("The architectural style of [X] is [Y].", "What is the architectural style of [X]?"),
    "P155": ("[X] comes after [Y].", "What does [X] come after?"),
    "P157": ("[X] was killed by [Y].", "Who or what killed [X]?"),
    "P161": ("An actor in [X] is [Y].", "Who is an actor in [X]?"),
    "P162": ("A producer of [X] is [Y].", "Who is a producer of [X]?"),
    "P166": ("An award that [X] received is [Y].", "Which award did [X] receive?"),
    "P170": ("The creator of [X] is [Y].", "Who created [X]?"),
    "P171": ("The parent taxon of [X] is [Y].", "What is the parent taxon of [X]?"),
    "P175": ("The performer of [X] is [Y].", "Who performed [X]?"),
    "P176": ("The manufacturer of [X] is [Y].", "Who is the manufacturer of [X]?"),
    "P177": ("[X] crosses [Y].", "What does [X] cross?"),
    "P178": ("The developer of [X] is [Y].", "Who developed [X]?"),
    "P179": ("The series to which [X] belongs is [Y].", "Which series does [X] belong to?"),
    "P180": ("Something that [X] depicts is [Y].", "What does [X] depict?"),
    "P184": ("The doctoral advisor of [X] was [Y].", "Who was the doctoral advisor of [X]?"),
    "P186": ("A material of which [X] is made is [Y].", "What is [X] made of?"),
    "P206": ("[X] lies in or beside the body of water [Y].", "Which body of water does [X] lie in or beside?"),
    "P272": ("A production company of [X] is [Y].", "What is a production company of [X]?"),
    "P277": ("A programming language of [X] is [Y].", "Which programming language is [X] written in?"),
    "P279": ("A broader term for [X] is [Y].", "What is a broader term for [X]?"),
    "P282": ("A writing system of [X] is [Y].", "What is a writing system of [X]?"),
    "P287": ("The designer of [X] is [Y].", "Who designed [X]?"),
    "P289": ("The vessel class of [X] is [Y].", "What is the vessel class of [X]?"),
    "P291": ("The place of publication of [X] is [Y].", "Where was [X] published?"),
    "P364": ("The language in which [X] was first made is [Y].", "What is the original language of [X]?"),
    "P366": ("A use of [X] is [Y].", "What is a use of [X]?"),
    "P403": ("[X] flows into [Y].", "What does [X] flow into?"),
    "P407": ("A language of [X] is [Y].", "What is a language of [X]?"),
    "P408": ("The software engine of [X] is [Y].", "What is the software engine of [X]?"),
    "P412": ("The voice type of [X] is [Y].", "What is the voice type of [X]?"),
    "P437": ("A form of distribution of [X] is [Y].", "What is a form of distribution of [X]?"),
    "P449": ("The original broadcaster of [X] is [Y].", "Who first broadcast [X]?"),
    "P495": ("The country of origin of [X] is [Y].", "What is the country of origin of [X]?"),
    "P509": ("The cause of the death of [X] was [Y].", "What did [X] die of?"),
    "P512": ("An academic degree of [X] is [Y].", "What is an academic degree of [X]?"),
    "P541": ("The office contested in [X] is [Y].", "Which office is contested in [X]?"),
    "P607": ("A conflict in which [X] took part is [Y].", "Which conflict did [X] take part in?"),
    "P610": ("The highest point of [X] is [Y].", "What is the highest point of [X]?"),
    "P647": ("The team that drafted [X] is [Y].", "Which team drafted [X]?"),
    "P674": ("A character in [X] is [Y].", "Which character appears in [X]?"),
    "P676": ("The lyrics of [X] are by [Y].", "Who wrote the lyrics of [X]?"),
    "P706": ("The landform on which [X] lies is [Y].", "Which landform does [X] lie on?"),
    "P725": ("A voice actor in [X] is [Y].", "Who is a voice actor in [X]?"),
    "P737": ("[X] was influenced by [Y].", "Who or what influenced [X]?"),
    "P740": ("The place where [X] was formed is [Y].", "Where was [X] formed?"),
    "P793": ("A significant event of [X] is [Y].", "What is a significant event of [X]?"),
    "P800": ("A notable work of [X] is [Y].", "What is a notable work of [X]?"),
    "P802": ("A student of [X] is [Y].", "Who was a student of [X]?"),
    "P807": ("[X] separated from [Y].", "What did [X] separate from?"),
    "P828": ("A cause of [X] is [Y].", "What is a cause of [X]?"),
    "P840": ("The story of [X] is set in [Y].", "Where is the story of [X] set?"),
    "P915": ("A place where [X] was filmed is [Y].", "Where was [X] filmed?"),
    "P921": ("The main subject of [X] is [Y].", "What is the main subject of [X]?"),
    "P991": ("The successful candidate in [X] was [Y].", "Who was the successful candidate in [X]?"),
    "P1027": ("[X] is conferred by [Y].", "Who confers [X]?"),
    "P1038": ("A relative of [X] is [Y].", "Who is a relative of [X]?"),
    "P1040": ("The film editor of [X] is [Y].", "Who is the film editor of [X]?"),
    "P1066": ("A teacher of [X] was [Y].", "Who was a teacher of [X]?"),
    "P1196": ("The manner of the death of [X] was [Y].", "What was the manner of the death of [X]?"),
    "P1344": ("An event with the participation of [X] is [Y].", "What is an event with the participation of [X]?"),
    "P1346": ("The winner of [X] is [Y].", "Who won [X]?"),
    "P1365": ("The predecessor of [X] is [Y].", "Who or what is the predecessor of [X]?"),
    "P1399": ("A crime of which [X] was convicted is [Y].", "What was [X] convicted of?"),
    "P1411": ("An award for which [X] was nominated is [Y].", "Which award was [X] nominated for?"),
    "P1431": ("An executive producer of [X] is [Y].", "Who is an executive producer of [X]?"),
    "P1433": ("[X] was published in [Y].", "In what was [X] published?"),
    "P1441": ("A work in which [X] appears is [Y].", "Which work does [X] appear in?"),
    "P1923": ("A participating team of [X] is [Y].", "What is a participating team of [X]?"),
    "P3373": ("A sibling of [X] is [Y].", "Who is a sibling of [X]?"),
    "P4552": ("The mountain range of [X] is [Y].", "Which mountain range does [X] belong to?"),
    "P7937": ("The form of the creative work [X] is [Y].", "What is the form of the creative work [X]?"),
}
# fmt: on
_TABLE = {
    relation: Template(cloze, question, lasting, relation in _ENDS_WITH_LIFE)
    for table, lasting in ((_CHANGING, False), (_LASTING, True))
    for relation, (cloze, question) in table.items()
}
