"""How an article names an object, and how well a sentence supports a fact."""

from typing import NamedTuple

import pytest

from temporalwiki.builders.wikidata import cues, support
from temporalwiki.builders.wikidata.cues import cues_of
from temporalwiki.builders.wikidata.support import LinkText, Names, Subject, fold
from temporalwiki.builders.wikipedia.outline import Place, links, outline
from temporalwiki.builders.wikipedia.sentences import article_sentences
from temporalwiki.builders.wikipedia.titles import title_hash

CONGO = "Republic of the Congo"
LINKS = {
    f"Democratic {CONGO}": {f"Democratic {CONGO}"},
    "Congo": {CONGO},
    "British": {"United Kingdom"},
    "Georgia": {"Georgia (U.S. state)"},
    "Oslo": {"Oslo"},
}
# sentence, label, the object's page, whether the sentence names the object
NAMED: dict[str, tuple[str, str, str | None, bool]] = {
    "a label": ("Angola borders Zambia.", "Zambia", "Zambia", True),
    "inside a longer linked name": (f"Angola borders the Democratic {CONGO}.", CONGO, CONGO, False),
    "both": (f"The Democratic {CONGO} borders the {CONGO}.", CONGO, CONGO, True),
    "both, the longer name last": (f"The {CONGO} borders the Democratic {CONGO}.", CONGO, CONGO, True),
    "a link with another text": ("Angola borders Congo.", CONGO, CONGO, True),
    "a link with an adjective": ("He was a British painter.", "United Kingdom", "United Kingdom", True),
    "a link to another thing of that name": ("He was born in Georgia.", "Georgia", "Georgia", False),
    "a longer capitalised name, before": ("The Dutch West India Company came.", "India", "India", False),
    "a longer capitalised name, after": ("Great Zimbabwe lies here.", "Zimbabwe", "Zimbabwe", False),
    "a name with a hyphen": ("Trade with Guinea-Bissau grew.", "Guinea", "Guinea", False),
    "a name of a place in a name": ("She visited the University of Vienna.", "Vienna", None, False),
    "a kind of state": ("He visited the Republic of Kenya.", "Kenya", None, True),
    "a title": ("They met President Ann Weber.", "Ann Weber", None, True),
    "a title with a stop": ("They met Dr. Ann Weber.", "Ann Weber", None, True),
    "a title with of": ("They met the Queen of Norland.", "Norland", None, True),
    "a word with a stop": ("They met Messrs. Weber.", "Weber", None, True),
    "a name that begins with St.": ("They met in St. Marn.", "Marn", None, False),
    "a link to the page of that name": ("He was born in Oslo.", "Oslo", None, True),
    "after a word that opens the sentence": ("In Zambia it rained.", "Zambia", "Zambia", True),
    "after a comma": ("She lives in Bergen, Norway.", "Norway", None, True),
    "a linked label in a longer name": ("The City of Oslo Council met.", "Oslo", "Oslo", True),
    "a common noun": ("Natural resources: Iron ore, gold.", "gold", None, True),
    "in capitals": ("ZAMBIA", "Zambia", None, True),
    "a common noun before a name": ("It sells gold Krone coins.", "gold", None, True),
    "a name that ends in a stop": ("He left Acme Inc. They grew.", "Acme Inc.", None, True),
    "part of a place": ("Most of Vienna burned.", "Vienna", None, True),
    "part of a place, in a later sentence": ("It rained. Most of Vienna burned.", "Vienna", None, True),
    "a letter after a number": ("See 1.a there.", "a", None, True),
    "a letter before a number": ("See a.1 there.", "a", None, True),
    "a number of its own": ("It rose 3 4 times.", "3", None, True),
    "a number with a sign": ("It fell to -5 at night.", "5", None, True),
}


@pytest.mark.parametrize(("sentence", "label", "title", "expected"), NAMED.values(), ids=NAMED)
def test_a_sentence_names_an_object(sentence: str, label: str, title: str | None, expected: bool) -> None:
    texts = [LinkText.of(text, titles) for text, titles in LINKS.items()]
    names = Names(label, None if title is None else title_hash(title), texts)
    assert bool(list(names.find(sentence, fold(sentence)))) is expected


PHRASES = {
    6: ["head of government"],
    19: ["place of birth", "born in", "birthplace"],
    20: ["place of death"],
    26: ["spouse", "wife", "husband"],
    35: ["head of state"],
    36: ["capital"],
    37: ["official language"],
    47: ["shares border with", "bordered by"],
    69: ["educated at"],
    102: ["member of political party"],
    108: ["employer", "works at"],
    127: ["owned by"],
    166: ["award received"],
    190: ["twinned administrative body"],
    276: ["location", "venue"],
    463: ["member of"],
    9008: ["natural resource"],
}


class Case(NamedTuple):
    """A sentence of an article, and what it does for a fact about the article's subject."""

    subject: str
    relation: int
    object: str
    sentence: str
    expected: str
    heading: str = ""
    lead_in: str | None = None  # of a list item


CASES = [
    Case("Veska", 36, "Oslun", "Its capital is Oslun.", "stated"),
    Case("Veska", 36, "Oslun", "Oslun is the capital of Veska.", "stated"),
    Case("Veska", 36, "Oslun", "Capital of Veska: Oslun.", "stated"),
    Case("Veska", 36, "Oslun", "In 1920 it moved from Marn to Oslun, the capital ever since.", "stated"),
    Case("Veska", 36, "Oslun", "Many people of Oslun spend their holidays here.", "mentioned"),
    Case("Veska", 36, "Oslun", "The capital of Norland, Oslun, lies across the strait.", "mentioned"),
    Case("Veska", 36, "Oslun", "Norland's capital Oslun lies across the strait.", "mentioned"),
    Case("Veska", 36, "Oslun", "Marn is the capital, but Oslun is larger.", "mentioned"),
    Case("Veska", 36, "Oslun", "Oslun is not the capital.", "mentioned"),
    Case("Veska", 36, "Capital City", "The Capital City was founded.", "mentioned"),
    Case("Veska", 36, "Oslun City", "Oslun City is the capital.", "stated"),
    Case("Veska", 36, "Oslun", "Veska's capital is Oslun.", "stated"),
    Case("Veska", 36, "Oslun", "The Grand Prince is in the capital Oslun.", "stated"),
    Case("Veska", 36, "Oslun", "Bo Berg walked to the capital Oslun.", "stated"),
    Case("Veska", 36, "Oslun", "Oslun and Marn are capitals of Georgia.", "mentioned"),
    Case("Veska", 36, "Oslun", "Marn (capital), Oslun and Berg are here.", "mentioned"),
    Case("Veska", 36, "Oslun", "Here lies (as the capital) Oslun.", "stated"),
    Case("Veska", 36, "Oslun", "Marn is far (capital Oslun).", "stated"),
    Case("Veska", 35, "Ana Holt", "Head of State is Ana Holt.", "stated"),
    Case("Veska", 47, "Oslun", f"It borders {', '.join(f'S{n}' for n in 'abcdefghijklmnopq')} and Oslun.", "stated"),
    Case("Veska", 47, "Oslun", f"Its border {'runs along the river ' * 4} to Oslun.", "mentioned"),
    Case("Veska", 36, "Oslun", "It lies on the river.", "mentioned", "Capital"),
    Case("Veska", 36, "Oslun", "Oslun has a large harbour.", "stated", "Capital"),
    Case("Veska", 36, "Oslun", "Oslun has a large harbour.", "mentioned", "Capital punishment"),
    Case("Marn Cup", 276, "Oslun", "Oslun has a large harbour.", "stated", "Location"),
    Case("Marn Cup", 276, "Oslun", "Oslun has a large harbour.", "mentioned", "Venue"),  # an alias, not the label
    Case("Bo Lind", 19, "Marn", "Marn was a quiet town.", "stated", "Place of birth"),
    Case("Bo Lind", 19, "Marn", "Marn was a quiet town.", "mentioned", "Birth"),
    Case("Veska", 37, "French", "Languages of Veska: French (official), German.", "stated"),
    Case("Veska", 37, "German", "Languages of Veska: French (official), German.", "mentioned"),
    Case("Veska", 37, "French", "Languages: French is official.", "stated"),
    Case("Veska", 37, "French", "Languages: French is also official.", "mentioned"),
    Case("Veska", 37, "French", "Languages: French, official.", "mentioned"),
    Case("Veska", 47, "Norland", "It is bordered to the east by Ostland, to the west by Norland.", "stated"),
    Case("Veska", 47, "Norland", "In 1950 it signed a treaty with Norland.", "mentioned"),
    Case("Veska", 47, "Norland", "Norland", "list", "Geography", "It has borders with the following countries:"),
    Case("Veska", 47, "Norland", "Norland", "list", "Border countries", ""),
    Case("Veska", 47, "Norland", "Norland", "mentioned", "Trade", "Its main trading partners are:"),
    Case("Veska", 463, "SAARC", "Veska is a member of the SAARC.", "stated"),
    Case("Veska", 463, "SAARC", "Veska is a member of WTO, SAARC, ECO, and OIC.", "stated"),
    Case("Veska", 9008, "gold", "Natural resources of Veska: Iron ore, gold.", "stated"),
    Case("Veska", 9008, "iron", "Natural resources of Veska: Iron ore, gold.", "mentioned"),
    Case("Veska", 9008, "iron", "Natural resources of Veska: iron and gold.", "stated"),
    Case("Veska", 9008, "gold", "Natural resources of Veska: the gold.", "stated"),
    Case("Veska", 9008, "Gold", "Natural resources of Veska: mostly Gold.", "stated"),
    Case("Veska", 9008, "petroleum", "Natural resources of Veska: refined petroleum, gold.", "mentioned"),
    Case("Veska", 6, "Ana Holt", "Ana Holt took office as prime minister in May.", "stated"),
    Case("Veska", 6, "Ana Holt", "Prime Minister Ana Holt opened the fair.", "stated"),
    Case("Veska", 6, "Ana Holt", "Ana Holt, the prime minister of Norland, visited the town.", "mentioned"),
    Case("Veska", 6, "Ana Holt", "Ana Holt refused to become prime minister.", "mentioned"),
    Case("Veska", 35, "Ana Holt", "Head of state: Ana Holt", "stated", "", ""),
    Case("Bo Lind", 19, "Marn", "Bo Lind was born in Marn in 1950.", "stated"),
    Case("Bo Lind", 19, "Marn", "Young Bo Lind was born in Marn.", "stated"),
    Case("Bo Lind", 19, "Marn", "Records give Marn as the place of birth.", "stated"),
    Case("Bo Lind", 19, "Marn", "Bo Lind (4 May 1950, Marn – 3 June 2010, Oslun) was a painter.", "stated"),
    Case("Bo Lind", 19, "Oslun", "Bo Lind (4 May 1950, Marn – 3 June 2010, Oslun) was a painter.", "mentioned"),
    Case("Bo Lind", 20, "Oslun", "Bo Lind (4 May 1950, Marn – 3 June 2010, Oslun) was a painter.", "stated"),
    Case("Bo Lind", 20, "Marn", "Bo Lind (4 May 1950, Marn – 3 June 2010, Oslun) was a painter.", "mentioned"),
    Case("Bo Lind", 19, "Marn", "His wife was born in Marn.", "mentioned"),
    Case("Bo Lind", 19, "Marn", "Ida Lund was born in Marn.", "mentioned"),
    Case("Bo Lind", 19, "Marn", "Bo Lind was born in 1950; he studied in Marn.", "mentioned"),
    Case("Bo Lind", 19, "Marn", "He moved to Marn in 1970.", "mentioned"),
    Case("Bo Lind", 20, "Marn", "After his death, a museum was opened in Marn.", "mentioned"),
    Case("Bo Lind", 26, "Ida Lund", "In 1980 he married Ida Lund.", "stated"),
    Case("Bo Lind", 26, "Ana Holt", "Ida Lund married Ana Holt.", "mentioned"),
    Case("Bo Lind", 26, "Lund", "Lund's husband Bo came.", "stated"),
    Case("Bo Lind", 26, "Ida Lund", "He painted a portrait of Ida Lund and her husband.", "mentioned"),
    Case("Bo Lind", 108, "Marn University", "He has been a professor at Marn University since 1990.", "stated"),
    Case("Bo Lind", 108, "Marn University", "The library of Marn University has his work.", "mentioned", "Work"),
    Case("Bo Lind", 69, "Marn University", "Marn University", "list", "Education", ""),
    Case("Bo Lind", 166, "Silver Medal", "Silver Medal (1999)", "list", "Awards and honours", ""),
    Case("Bo Lind", 102, "Green League", "He was a sharp critic of the Green League.", "mentioned"),
    Case("Kestrel", 136, "jazz album", "Kestrel is a jazz album.", "stated"),
    Case("Kestrel", 136, "jazz album", "Kestrel is hardly a jazz album.", "mentioned"),
    Case("Kestrel", 127, "Hale Group", "Owner: Hale Group", "stated"),
    Case("Oslun", 190, "Marn", "Marn, Veska", "list", "Twin towns", "Oslun is twinned with:"),
]


def test_positions_stay_the_same_without_case() -> None:
    assert fold("İn Der STRAßE") == "İn der straße"


def words(count: int) -> str:
    return " ".join(["w"] * count)


# A sentence at a limit of the rule, which states that Oslun is the capital, and one beyond it, which mentions it.
LIMITS = {
    "words before the object": [f"The capital {words(count)} Oslun." for count in (14, 15)],
    "words before the object, in a list": [f"The capital S, {words(count)} Oslun." for count in (139, 140)],
    "words behind the object": [f"Oslun {words(count)} capital." for count in (7, 8)],
    "characters before the object": [f"The capital {'w' * count} Oslun." for count in (1498, 1499)],
    "characters behind the object": [f"Oslun {'w' * count} capital." for count in (1498, 1499)],
    "names of the object": ["Oslun; " * count + "its capital is Oslun." for count in (7, 8)],
    "words within a cue": [f"The seat {words(count)} government is Oslun." for count in (3, 4)],
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit(limit: str) -> None:
    for sentence, expected in zip(LIMITS[limit], ("stated", "mentioned"), strict=True):
        assert graded(Case("Veska", 36, "Oslun", sentence, expected))[1] == expected


def graded(case: Case, language: str = "en") -> tuple[int, str]:
    names, subject = Names(case.object, None, ()), Subject.of(case.subject)
    spans = list(names.find(case.sentence, fold(case.sentence)))
    if not spans:
        return 0, "mentioned"  # the sentence is not evidence
    place = Place((case.heading,) if case.heading else (), case.lead_in or "", case.lead_in is not None)
    phrases = PHRASES.get(case.relation, [])
    cues = cues_of(case.relation, phrases, language)
    label = phrases[0] if phrases else ""
    return support.support(case.relation, label, case.sentence, spans, place, cues, subject)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.relation} {case.sentence}"[:60])
def test_support(case: Case) -> None:
    by_heading = case.heading and case.lead_in is None
    rank = {"mentioned": 0, "list": 1, "stated": 2 if by_heading else 3}[case.expected]
    assert graded(case) == (rank, case.expected)


# A word, and a sentence that it turns into no support.
DENYING = {
    "not": "Oslun is {} the capital.",
    "never": "Oslun was {} the capital.",
    "denied": "Marn {} that Oslun is the capital.",
    "refused": "Oslun {} to be the capital.",
    "rejected": "The people {} Oslun as the capital.",
    "failed": "Oslun {} to become the capital.",
    "declined": "Oslun {} to become the capital.",
    "without": "They came to Oslun {} a capital.",
    "neither": "Oslun is {} the capital, nor is Marn.",
    "nor": "In 1920 {} Oslun was the capital.",
    "no": "Oslun is {} capital.",
}


@pytest.mark.parametrize("word", DENYING)
def test_a_word_that_denies(word: str) -> None:
    for said, expected in ((word, "mentioned"), ("now", "stated")):
        case = Case("Veska", 36, "Oslun", DENYING[word].format(said), expected)
        assert graded(case)[1] == expected


def test_a_sentence_that_begins_with_the_text_of_a_link_is_about_that_article() -> None:
    sentence, capital = "Marn is far from Oslun, the capital.", cues_of(36, ["capital"], "en")
    for others, expected in (((), True), (("marn",), False)):
        assert support.states(sentence, 17, 22, capital, Subject.of("Veska", others=others)) is expected


@pytest.mark.parametrize(
    ("language", "phrase", "sentence", "label", "expected"),
    [
        ("fr", "capitale", "La capitale est Marn.", "Marn", "stated"),
        ("fr", "capitale", "La cité de Marn est grande.", "Marn", "mentioned"),
        ("ja", "首都", "ノルランドの首都はマルンである。", "マルン", "stated"),
        ("ja", "首都", "首都マルンは大きい。", "マルン", "stated"),
        ("ja", "首都", "マルンで会議があった。", "マルン", "mentioned"),
    ],
)
def test_other_languages_have_the_cues_of_the_dump(
    language: str, phrase: str, sentence: str, label: str, expected: str
) -> None:
    spans = list(Names(label, None, ()).find(sentence, fold(sentence)))
    cues = cues_of(36, [phrase], language)
    assert support.support(36, phrase, sentence, spans, Place(), cues, Subject.of("x"))[1] == expected


def test_a_dump_without_properties_has_the_cues_of_the_table() -> None:
    case = Case("Bo Lind", 36, "Oslun", "The seat of government is Oslun.", "stated")
    of_table = cues_of(36, (), "en")
    assert support.support(36, "", case.sentence, [(26, 31)], Place(), of_table, Subject.of(""))[1] == "stated"
    assert cues_of(36, (), "de") == []
    assert cues.labels()[19] == "place of birth"


WIKITEXT = """\
'''Veska''' has borders with [[Norland]]<ref>A [[ref]].</ref>.

== Geography ==
It borders these countries:
* [[Norland|the north]]
** its [[island]]s
* [[Ost_land#History|Ostland]]

=== Rivers ===
The [[marn (river)|Marn]].
== References ==
* A book
"""


def test_the_places_of_sentences() -> None:
    found = [(place, sentence) for place, sentences in outline(WIKITEXT, "en") for sentence in sentences]
    borders = "It borders these countries:"
    assert found == [
        (Place(), "Veska has borders with Norland."),
        (Place(("Geography",)), borders),
        (Place(("Geography",), borders, item=True), "the north"),
        (Place(("Geography",), f"{borders} the north", item=True), "its islands"),
        (Place(("Geography",), borders, item=True), "Ostland"),
        (Place(("Geography", "Rivers")), "The Marn."),
    ]


ODD = [
    "A.\n\n* b\n* c. D.\n:e",
    "; term : text\nprose\n{|\n| x\n|}\nmore",
    "= h =\n== References ==\n* a\nprose",
    "A.\n[[File:x.png]]\nB.",
    " * not an item",
    "=no heading\n==",
    "* a\n\n** b\nc {{x}} d\n {{x}}\ne",
    "<poem>a\nb</poem>\n----\n#c",
    "{{x}} * a\n<!-- c -->\n* b",
]


@pytest.mark.parametrize("wikitext", [WIKITEXT, *ODD])
def test_an_outline_has_the_sentences_of_the_article(wikitext: str) -> None:
    found = [sentence for line in outline(wikitext, "en") for sentence in line.sentences]
    assert found == [s.strip() for paragraph in article_sentences(wikitext, "en") for s in paragraph]


def test_the_texts_of_links() -> None:
    of_list = {"the north": {"Norland"}, "islands": {"Island"}, "Ostland": {"Ost land"}}
    assert links(WIKITEXT) == {"Norland": {"Norland"}, "ref": {"Ref"}, "Marn": {"Marn (river)"}} | of_list


LINKED = {  # a link, the text that readers see, and the title of its page
    "an entity": ("[[Port&nbsp;Dee|the Port]]", "the Port", "Port Dee"),
    "an escape": ("[[Port%20Dee|Port]]", "Port", "Port Dee"),
    "an escaped letter": ("[[Caf%C3%A9]]", "Café", "Café"),
    "an invisible mark": ("[[Port Dee\u200e|Port]]", "Port", "Port Dee"),
    "a Hebrew preposition": ("שוכנת ב[[נמל]] הצפוני", "בנמל", "נמל"),
    "Hebrew letters around it": ("וה[[נמל]]ים", "והנמלים", "נמל"),
    "an Arabic article": ("زار ال[[قاهرة]]", "القاهرة", "قاهرة"),
    "a Hindi ending with a vowel sign": ("[[नदी]]ओं में", "नदीओं", "नदी"),
    "Latin letters before it": ("un[[happy]]", "happy", "Happy"),
    "Japanese before it": ("首都は[[東京]]だ", "東京だ", "東京"),
}


@pytest.mark.parametrize(("wikitext", "shown", "title"), LINKED.values(), ids=LINKED)
def test_a_link_is_read_as_readers_see_it(wikitext: str, shown: str, title: str) -> None:
    assert links(wikitext) == {shown: {title}}


WORDS_OF = {
    "vowel signs": ("मोहन चाय पीते", ["मोहन", "चाय", "पीते"]),
    "Tamil": ("தந்தை வந்தார்", ["தந்தை", "வந்தார்"]),
    "an apostrophe in a word": ("l'eau d’or", ["l'eau", "d’or"]),
    "raised digits": ("5 km²", ["5", "km²"]),
    "no blanks": ("東京 x", ["東", "京", "x"]),
}


@pytest.mark.parametrize(("text", "expected"), WORDS_OF.values(), ids=WORDS_OF)
def test_the_words_of_a_sentence(text: str, expected: list[str]) -> None:
    found = cues.stems(text)
    assert [text[at:end] for _, at, end in found] == expected


def test_words_with_the_same_consonants_are_other_words() -> None:
    """The label of the property is "father", and the sentence says "drinking"."""
    father = cues_of(22, ["पिता"], "hi")
    sentence = "मोहन चाय पीते समय राम से मिले।"
    at = sentence.index("राम")
    assert not support.states(sentence, at, at + 3, father, Subject.of("मोहन"))
    sentence = "मोहन के पिता राम थे।"
    at = sentence.index("राम")
    assert support.states(sentence, at, at + 3, father, Subject.of("मोहन"))
