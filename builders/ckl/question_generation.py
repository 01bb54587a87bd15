"""Generate questions about sentences: step 4 of CKL's Figure 4 (b), and the questions of its Appendix B.

A model may write them. Rules write questions only if the answer is the subject of a simple sentence, or a date, a
place or an agent at its end.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import regex

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.salient_spans import find_spans
from temporalwiki.builders.ckl.text_model import TextModel
from temporalwiki.builders.ckl.verb_forms import IRREGULAR, base_form, word_set

_MARKS = ("<hl>", "[HL]")  # around the answer, where a model was trained with them
_CONTEXT = 600  # characters before a sentence that a model reads
_QUESTION_TOKENS = 96


class Passage(NamedTuple):
    """A sentence with an answer, and its context."""

    sentence: str
    answer: str
    start: int  # of the answer in the sentence, in characters
    title: str = ""
    context: str = ""  # the text before the sentence
    published: datetime | None = None


def occurs(answer: str, text: str) -> bool:
    """Tell whether a text contains an answer; see ``occurrences``."""
    return occurrences(answer, text) > 0


def occurrences(answer: str, text: str) -> int:
    """Return how often a text contains an answer as whole words, either both normalised or both only in lower case.

    Two comparisons are needed: normalisation makes one word of "AI-powered", and changes "the U.S. army".
    """
    answer_words = normalize(answer).split()
    words = normalize(text).split()
    normal = sum(words[at : at + len(answer_words)] == answer_words for at in range(len(words))) if answer_words else 0
    answer, text = (" ".join(unicodedata.normalize("NFC", part).lower().split()) for part in (answer, text))
    pattern = rf"(?<![\p{{L}}\p{{M}}\p{{N}}_]){regex.escape(answer)}(?![\p{{L}}\p{{M}}\p{{N}}_])"
    return max(normal, len(regex.findall(pattern, text)) if answer else 0)


def questions(passages: Sequence[Passage], model: TextModel | None = None) -> list[str | None]:
    """Return a question for each passage that its answer answers, or None.

    Without a model, rules ask. A model that knows the token ``<hl>`` or ``[HL]`` reads the sentence with the answer
    between two of them; another encoder-decoder model reads "answer: ... context: ..."; any other model gets
    instructions. A model's text that does not end with a question mark does not count as a question.
    """
    if model is None:
        return [by_rules(passage) for passage in passages]
    texts = model.answers([_prompt(passage, model) for passage in passages], "questions", _QUESTION_TOKENS)
    return [_question(text) for text in texts]


def _prompt(item: Passage, model: TextModel) -> str:
    sentence, answer = item.sentence, item.answer
    for mark in _MARKS:
        if model.knows(mark):
            end = item.start + len(answer)
            marked = f"{sentence[: item.start]}{mark} {answer} {mark}{sentence[end:]}"
            return f"generate question: {marked}" if mark == "<hl>" else marked
    if model.encoder_decoder:
        return f"answer: {answer} context: {sentence}"
    before = f"Text: {' '.join(item.context[-_CONTEXT:].split())}\n" if item.context else ""
    return (
        f"Write one question that is answered by {answer!r} according to the sentence below. The question must be "
        "understandable without the sentence and must not contain the answer.\n"
        f"{before}Sentence: {sentence}\nQuestion:"
    )


def _question(text: str | None) -> str | None:
    if not text or "?" not in text:
        return None
    found = text[: text.index("?") + 1].strip()
    return found.removeprefix("question:").removeprefix("Question:").strip() or None


# By rules

_AUXILIARIES = word_set("is are was were has have had will would can could may might must should did does do")
_BE = frozenset(("is", "are", "was", "were"))
# Past forms that are often a noun, a participle or another verb: "the set", "the left", "the cost".
_OFTEN_NOT = word_set("bet bit cost cut found hit hurt left let lit put quit set shot shut split spread felt")
_NOT_PAST = word_set(
    "agreed-upon aged bleed breed creed deed embed exceed feed greed hundred indeed kindred need proceed reed "
    "sacred seed shed sled speed succeed supposed unprecedented unexpected limited related based so-called "
    "alleged red bed wed weed naked wicked interested embattled beloved"
)
# A participle after these words is an adjective: "the proposed law", "its planned merger".
_BEFORE_ADJECTIVE = word_set(
    "the a an his her its their our your my this that these those some any no each every of by in on at to from "
    "with for and or but newly recently previously highly most more less very so as well widely formerly not than "
    "long also-called self two three four five several many few other"
)
_ADVERBS = word_set(
    "also now later then recently previously currently already soon still once first finally initially reportedly "
    "officially formally briefly quickly eventually subsequently narrowly repeatedly publicly famously originally "
    "again never ever always often only just"
)
_PRESENT = word_set(
    "says has does goes plans wants expects remains owns makes runs leads plays hosts offers operates holds "
    "includes provides produces sells employs serves represents believes hopes opposes supports faces costs stars "
    "features covers contains consists belongs begins opens ends lies stands sits borders needs seeks aims "
    "intends uses works lives wins becomes heads chairs manages edits writes directs teaches argues warns "
    "describes"
)
# Verbs whose subject is a person or an organisation, so that the question begins with "who".
_AGENTIVE = word_set(
    "said told won signed announced wrote asked argued warned described defeated beat met visited married died "
    "played spoke testified resigned pleaded tweeted posted voted promised denied accused blamed praised thanked "
    "urged directed starred sang founded invented discovered painted graduated scored coached lost agreed refused "
    "retired joined hired fired appointed nominated criticized criticised condemned added says wants believes "
    "hopes argues warns describes lives writes directs teaches plays wins thinks thought knew decided apologized "
    "apologised killed shot stole kidnapped murdered ruled sentenced vetoed campaigned earned"
)
_PERSON_NOUNS = word_set(
    "president minister senator governor mayor secretary chairman chairwoman chair king queen prince princess "
    "pope actor actress singer author writer artist painter musician composer director producer player striker "
    "goalkeeper midfielder quarterback coach manager lawyer attorney judge justice lawmaker politician diplomat "
    "ambassador general admiral commander officer soldier pilot astronaut scientist professor researcher "
    "economist analyst engineer doctor physician nurse teacher student man woman boy girl son daughter brother "
    "sister wife husband father mother founder co-founder ceo executive leader head spokesman spokeswoman "
    "spokesperson champion winner candidate member journalist reporter editor columnist critic philosopher "
    "historian poet novelist comedian host owner billionaire activist model dancer chef photographer swimmer "
    "boxer golfer driver chancellor premier vice-president representative congressman congresswoman guitarist "
    "drummer bassist rapper inventor successor one"
)
_THING_NOUNS = word_set(
    "company city town village country state province region county island river lake mountain capital bank firm "
    "university college school hospital airport station stadium team club band group party organization "
    "organisation agency newspaper magazine website platform app service film movie book novel album song series "
    "show game league festival award prize disease virus vaccine drug language religion planet star ship aircraft "
    "plane car airline museum church building bridge tower park law treaty agreement war battle species animal "
    "bird fish plant program programme project network store chain maker manufacturer producer provider startup "
    "start-up subsidiary place nation territory community district neighborhood neighbourhood venue tournament "
    "competition event"
)
_TITLE = regex.compile(
    r"(?:^|\s)(?:Mr|Mrs|Ms|Dr|Prof|Sen|Rep|Gov|Gen|Col|Capt|Lt|Sgt|Rev|President|Senator|Governor|Mayor|Secretary|"
    r"Minister|Chancellor|King|Queen|Prince|Princess|Pope|Judge|Justice|Professor|Chairman|Chairwoman|Sir|Dame|Lord|"
    r"Lady|Ambassador|Admiral|Commander|Coach|Representative|Congressman|Congresswoman|Sheriff|Detective|Director|"
    r"Analyst|Spokesman|Spokeswoman)\.?\s(?=\p{Lu})"
)
_THING = regex.compile(
    r"\b(?:Inc|Corp|Co|Ltd|LLC|PLC|AG|SA|Company|Corporation|Group|Holdings|Bank|Airlines|Airways|Motors|Records|"
    r"Pictures|Studios|Industries|Systems|Technologies|Partners|University|College|School|Institute|Institution|"
    r"Academy|Hospital|Museum|Library|Church|Cathedral|Ministry|Department|Agency|Bureau|Commission|Committee|"
    r"Council|Court|Parliament|Senate|Congress|House|Party|Union|Association|Federation|League|Foundation|Society|"
    r"Organi[sz]ation|Police|Army|Navy|Force|Guard|Service|Authority|Board|Fund|Office|Center|Centre|Times|Post|News|"
    r"Journal|Press|Award|Awards|Prize|Cup|Championship|Championships|Games|Olympics|Festival|Act|Treaty|Accord|"
    r"Agreement|War|Battle|Street|Road|Avenue|Square|Park|Bridge|Tower|Stadium|Coliseum|Arena|Airport|Station|River|"
    r"Lake|Sea|Ocean|Mountains?|Island|Islands|Valley|County|City|State|States|Kingdom|Republic|Province|District|"
    r"Coast|Beach|Bay|North|South|East|West|Facebook|Google|Twitter|Microsoft|Amazon|Apple)\b"
)
_UNSAFE = regex.compile(r"""["“”„«»;:()\[\]{}<>—–…?!*|\n\t]|\.\.|(?:^|\s)['‘]|['’](?:$|\s)(?<!s['’]\s)|\s-\s""")
_SAID = regex.compile(
    r",(?: [\w’'.&-]+){1,6} (?:said|says|told|added|announced|reported|according)(?: [\w’'.,&-]+){0,8}$"
    r"|, according to [^,]+$"
    r"|,(?: said| says| added)(?: [\w’'.&-]+){1,6}$"
)
_ADJUNCT = regex.compile(r"(?:In|On|At|During|Since|After|Before) [^,]{2,40}(?:, \d{4})?, $")
_NEXT_CLAUSE = regex.compile(r", (?:and|but|so|or|yet|then|it|it's|it’s|he|she|they|\p{Lu}\S+ \w+s)\b|\bbut\b")
_SUBORDINATE = word_set(
    "that which who whom whose when while after before because if although though unless until where whereas what "
    "how why whether and or but nor than saying adding as"
)
_PRONOUNS = word_set(
    "he she it they we i you this that these those his her its their our my your him them us there here one both "
    "all another others some such"
)
_OTHERS = word_set("i me my we us our you your them him this these those here")  # a question cannot refer to them
_LONGEST = 30  # words of a question

_DETERMINERS = frozenset(["the", "a", "an"])
_PARTICIPLES = IRREGULAR.keys() | word_set(
    "born begun blown broken chosen done drawn driven eaten fallen flown forgotten frozen given grown hidden "
    "known ridden risen seen shaken shown spoken stolen sworn taken thrown torn undergone withdrawn woken worn "
    "written"
)

# After these words "in" or "at" does not begin a place: "an interest in", "looked at".
_NO_PLACE_AFTER = word_set(
    "interest interested invest invested investing investment investments stake shares stock believe believed "
    "belief trust confidence faith involved involvement specialize specialized specializing specialised engaged "
    "increase decline rise drop fall changes change growth experience degree role part interests resulted result "
    "succeeded failed participated participate participation interested confident fluent aimed looked look "
    "laughed shouted directed angry surprised good bad better best written published spoken dressed covered "
    "married drop lead and or largest biggest smallest oldest highest lowest"
)
_NO_PLACE = regex.compile(
    r"(?:English|French|German|Spanish|Arabic|Russian|Chinese|Japanese|Latin|Hebrew|Portuguese|Italian|Hindi|Korean|"
    r"Congress|Parliament|January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Q[1-4]|.*\d.*|Christmas|Easter|Ramadan|.*(?:Inc|Corp|"
    r"Ltd|LLC|Games|Cup|Olympics|Championships?|League|War|Act|Awards?))\.?",
    regex.DOTALL,
)


def by_rules(item: Passage) -> str | None:
    """Return a question, or None if the rules do not cover the form of the sentence."""
    sentence, answer, start = item.sentence, item.answer, item.start
    if sentence[start : start + len(answer)] != answer or not answer.strip() or not sentence.endswith("."):
        return None
    before, after = sentence[:start], sentence[start + len(answer) : -1]
    if answer.endswith(".") and not after and start + len(answer) == len(sentence):
        return None  # the full stop belongs to the answer
    after = _SAID.sub("", after)
    if _UNSAFE.search(before + "x" + after) or after.endswith("."):
        return None
    question = _of_end(before, item) if not after else _of_subject(before, after, item)
    if question is None or len(question.split()) > _LONGEST:
        return None
    if occurs(answer, question) or len(question.split()) < 4:
        return None
    return question


def _of_subject(before: str, after: str, item: Passage) -> str | None:
    """Return a question about the subject: "Anna Weber won the cup in 2021." gives "Who won the cup in 2021?"."""
    adjunct = ""
    if _ADJUNCT.fullmatch(before) or _ADJUNCT.fullmatch(before.removesuffix("the ")):
        adjunct = before.removesuffix("the ").removesuffix(", ")
        if finite_verbs(adjunct.split()) or len(adjunct.split()) > 7 or not regex.search(r"\d", adjunct):
            return None
    elif before not in ("", "The "):
        return None
    if item.answer[:1].isdigit():
        return None  # a date is seldom a subject
    if not after.startswith(" "):
        return None
    words = after.split()
    while words and words[0] in _ADVERBS:
        words = words[1:]
    if not words or not _finite(words, 0, "X"):
        return None
    verb = words[0]
    if _NEXT_CLAUSE.search(after) or len(words) < 3 or not _OTHERS.isdisjoint(words):
        return None
    if verb in _BE and words[1] in ("his", "her", "its", "their"):
        return None
    if verb.endswith("ed") and verb not in _AUXILIARIES and words[1:2] == ["by"]:
        return None  # "the deal signed by": a participle, not a predicate
    if any(_finite(words, i) and words[i] in _AUXILIARIES for i in range(1, len(words))) and not any(
        word in _SUBORDINATE for word in words
    ):
        return None  # another predicate without its own subject: the first verb is a participle
    if _two_clauses(words):
        return None
    who = _who(before, words, item)
    if who is None:
        return None
    if verb in ("are", "were", "have", "do") and who == "What":
        return None  # the answer is several things of an unknown kind
    if verb in ("have", "do"):
        return None
    end = f" {adjunct[0].lower()}{adjunct[1:]}" if adjunct else ""
    return f"{who} {' '.join(words)}{end}?"


def _two_clauses(words: Sequence[str]) -> bool:
    """Tell whether "and" joins a clause with a subject of its own: "won the cup and the town was glad"."""
    joint = next((i for i, word in enumerate(words) if word == "and"), len(words))
    if not _SUBORDINATE.isdisjoint(words[:joint]) or _finite(words, min(joint + 1, len(words) - 1)):
        return False
    return any(_finite(words, i) for i in range(joint + 2, len(words)))


def _who(before: str, words: list[str], item: Passage) -> str | None:
    """Return "Who" for a person, "What" for a thing, None if that is not clear."""
    answer, verb = item.answer, words[0]
    noun = _predicate_noun(words) if verb in _BE else None
    surname = regex.escape(answer.split()[-1])
    if _TITLE.search(f" {answer} ") or regex.search(rf"\b(?:Mr|Mrs|Ms)\. {surname}\b", item.context):
        return "Who"
    if noun in _PERSON_NOUNS or verb in _AGENTIVE or (verb in _BE and words[1] in _PERSONAL_PASSIVE):
        return "Who"
    if noun in _THING_NOUNS or _THING.search(answer):
        return "What"
    if before.lower().endswith("the ") and not answer.endswith("s"):  # but "the Dodgers" are people
        return "What"
    return None


_PERSONAL_PASSIVE = word_set(
    "arrested born elected appointed nominated sentenced convicted married educated hired fired killed injured "
    "hospitalized hospitalised indicted acquitted survived succeeded promoted drafted crowned"
)


def _predicate_noun(words: list[str]) -> str | None:
    """Return the head of "is the first woman president of ...": "president"."""
    if len(words) < 3 or words[1] not in ("a", "an", "the", "one"):
        return None
    head = None
    for word in words[2:8]:
        if word.rstrip(",") in _PREPOSITIONS or word in _SUBORDINATE:
            break
        head = word.rstrip(",").lower()
        if word.endswith(","):
            break
    return head


_PREPOSITIONS = word_set(
    "of in on at by for from to with near since until under over between among against during based located known "
    "into through about within without"
)


def _of_end(before: str, item: Passage) -> str | None:
    """Return a question about the end of a sentence: "When was ...?", "Where did ...?", "By whom was ...?"."""
    if not before.endswith(" "):
        return None
    words = before.split()
    date = bool(find_spans(f"it ended in {item.answer}.")) and item.answer[-1:].isdigit() and _looks_dated(item.answer)
    article = words[-1] == "the"
    if article:
        words = words[:-1]
    if len(words) < 4:
        return None
    preposition, clause = words[-1], words[:-1]
    if date:
        if preposition not in ("in", "on"):
            return None
        ask = "When"
    elif preposition in ("in", "at"):
        if _NO_PLACE.fullmatch(item.answer) or clause[-1].lower() in _NO_PLACE_AFTER or clause[-1].endswith(","):
            return None
        if preposition == "at" and clause[-1].endswith("s"):
            return None  # "officials at Boeing"
        ask = "Where"
    elif preposition == "by" and clause[-1].endswith("ed"):
        ask = "By whom"
        if _THING.search(item.answer):
            ask = "By what"
    else:
        return None
    return _inverted(ask, clause, passive=preposition == "by")


def _looks_dated(answer: str) -> bool:
    return bool(regex.search(r"\d{4}$|\d(?:st|nd|rd|th)?$", answer)) and not answer[:1].islower()


def _inverted(ask: str, clause: list[str], passive: bool) -> str | None:
    """Return the question "ask AUXILIARY SUBJECT REST?" from a clause with exactly one clear verb."""
    verbs = finite_verbs(clause)
    if not verbs:
        return None
    at = verbs[0]
    subject, verb, rest = clause[:at], clause[at], clause[at + 1 :]
    if not subject or subject[0].lower() in _PRONOUNS or any(w.lower() in _SUBORDINATE - {"and"} for w in clause):
        return None
    if any(word.endswith(",") for word in clause):
        return None  # another clause or an insertion
    if len(verbs) > 1 or "and" in rest or "to" in subject or subject[0].lower() in _PREPOSITIONS:
        return None
    adverb = subject[-1:] if subject[-1] in _ADVERBS or subject[-1].endswith("ly") else []
    subject = subject[: len(subject) - len(adverb)]
    opening = subject[0].lower() if subject else ""
    if opening in _DETERMINERS and len(subject) > 1:
        subject = [opening, *subject[1:]]
    elif not any(start == 0 for start, _ in find_spans(" ".join(subject) + " was there.")):
        return None
    if verb in _BE:
        does = next((word for word in rest if word not in _ADVERBS and not word.endswith("ly")), "")
        if not (does.endswith(("ed", "ing")) or does in _PARTICIPLES):
            return None  # "is the largest city": the place belongs to the noun
        if passive and not does.endswith("ed"):
            return None
    if verb in _AUXILIARIES:
        return " ".join([ask, verb, *subject, *adverb, *rest]) + "?"
    if passive or verb in _PRESENT:
        return None
    return " ".join([ask, "did", *subject, *adverb, base_form(verb), *rest]) + "?"


def finite_verbs(words: Sequence[str]) -> list[int]:
    """Return the places of the words that the rules take for finite verbs."""
    return [i for i in range(1, len(words)) if _finite(words, i)]


def _finite(words: Sequence[str], at: int, previous: str | None = None) -> bool:
    word, before = words[at], previous if previous is not None else words[at - 1]
    if word in _AUXILIARIES:
        return not (word in ("have", "do") and before == "to")
    if before.lower() in _BEFORE_ADJECTIVE or before.endswith(("'s", "’s", "s'", "s’")):
        return False
    if before in _AUXILIARIES or (before in _ADVERBS and at > 1 and words[at - 2] in _AUXILIARIES):
        return False  # "was named", "has also won"
    if before in ("be", "been", "being", "not"):
        return False
    if word in _PRESENT:
        return True
    if word in IRREGULAR:
        return word not in _OFTEN_NOT or before[:1].isupper() or before == "X"
    return len(word) > 4 and word.isalpha() and word.islower() and word.endswith("ed") and word not in _NOT_PAST
