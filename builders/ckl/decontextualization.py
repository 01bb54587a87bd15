"""Rewrite sentences so that they can be understood without their page: step 2 of CKL's Figure 4 (b).

After Choi et al. 2021. A model may do it. Rules replace relative dates and surnames, and reject sentences that depend
on their context in other ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

import regex

from temporalwiki.builders.ckl.question_generation import Passage, finite_verbs
from temporalwiki.builders.ckl.salient_spans import find_spans
from temporalwiki.builders.ckl.text_model import TextModel
from temporalwiki.builders.ckl.verb_forms import word_set

_CONTEXT = 1200  # characters before a sentence that a model reads
_SENTENCE_TOKENS = 128


def decontextualize(passages: Sequence[Passage], model: TextModel | None = None) -> list[str | None]:
    """Return each passage's sentence rewritten so that it can be understood without the page, or None.

    Without a model, rules rewrite. An encoder-decoder model reads the format of Choi et al.: title, section (empty),
    text before, sentence, text after (empty), joined by " [SEP] ". Any other model gets instructions.
    """
    if model is None:
        return [by_rules(passage) for passage in passages]
    prompts = [_prompt(passage, model) for passage in passages]
    texts = model.answers(prompts, "decontextualisation", _SENTENCE_TOKENS)
    return [None if text is None else _sentence(text) for text in texts]


def _prompt(item: Passage, model: TextModel) -> str:
    before = " ".join(item.context[-_CONTEXT:].split())
    if model.encoder_decoder:
        return " [SEP] ".join((item.title, "", before, item.sentence, ""))
    when = f"Published: {written(item.published)}\n" if item.published else ""
    return (
        "Rewrite the last sentence so that it can be understood without the text before it: replace pronouns and "
        "words that point to the text by names and dates from it. Change nothing else. Write the sentence only.\n"
        f"Title: {item.title}\n{when}Text: {before}\nLast sentence: {item.sentence}\nRewritten:"
    )


def _sentence(text: str) -> str | None:
    verdict, mark, rest = text.rpartition("####")  # "DONE #### sentence" of models trained on Choi et al.'s data
    if mark and "DONE" not in verdict.upper() and "UN" not in verdict.upper():
        return None  # "INFEASIBLE #### sentence"
    return rest.strip() or None


# By rules

_DATELINE = regex.compile(
    r"^\p{Lu}[\p{Lu} .'’-]{2,40}(?:, [\p{L}. ]{2,20})?(?:, \p{L}{3,9}\.? \d{1,2})? ?"
    r"(?:\((?:AP|AFP|Reuters|CNN|UPI)\) ?)?"
    r"[-–—]{1,2} "
)
_CONNECTIVE = regex.compile(
    r"^(?:However|Meanwhile|Moreover|Furthermore|In addition|Also|Still|Besides|Similarly|Nevertheless|Nonetheless|"
    r"Additionally|Indeed|In fact|Of course|Instead|Likewise|Finally|Even so|By contrast|As a result|For example|"
    r"For instance|At the same time|On the other hand|Overall|Separately), (?=\S)"
    r"|^(?:But|And|So|Yet),? (?=\S)"
)
_ALSO = regex.compile(
    r"\balso (?=\p{Ll})|, (?:however|meanwhile|though|too|by contrast|by comparison|of course)(?:,|(?=\.$))"
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAYS = "|".join(_WEEKDAYS)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]}|t\\.|\\.)?" if month != "May" else "May" for month in _MONTHS)
_WEEKDAY = regex.compile(
    rf"(?:\b(?P<before>on|On|until|by|since|before|after|from|through|between|than|next|last|this|early|late|every|each|"
    rf"and|or|to|of|the|a|most|past|that|one|same) )?\b(?P<day>{_DAYS})(?P<part> (?:morning|afternoon|evening|night))?"
    rf"(?!['’]s|,? (?:{_MONTH}) \d|s\b|[-‐]| \p{{Lu}})"
)
_NO_ON = frozenset(("until", "by", "since", "before", "after", "from", "through", "between", "than"))
_DAY_WORD = regex.compile(r"\b(?P<word>[Yy]esterday|[Tt]oday|[Tt]omorrow)\b(?!['’]s)")
_YEAR_WORD = regex.compile(
    r"\b(?:(?:[Ee]arlier|[Ll]ater) )?(?P<word>[Tt]his|[Ll]ast|[Nn]ext) (?P<unit>year|month)\b(?!['’]s)"
)
_STEPS = {"last": -1, "this": 0, "next": 1}
_MONTH_OF = regex.compile(rf"\b({_MONTH}) (?:of )?(this|last|next) year\b")
_DAY_OF_MONTH = regex.compile(rf"\b(?P<month>{_MONTH}) (?P<day>[1-3]?\d)\b(?![\d:]|,? \d{{4}}|[-–]\d|,\d)")
_MONTH_ALONE = regex.compile(
    rf"(?<=\b(?:in|In|since|Since|until|Until|of|by|By|early|late|mid|mid-|last|In early|In late)[ -])"
    rf"(?P<month>{_MONTH})\b(?!,? \d|['’]s|[-–]| \p{{Lu}}| of)"
)
_RELATIVE = regex.compile(
    rf"\b(?:(?:this|last|next|past|coming|previous|following) (?:week|weekend|month|year|season|quarter|decade|"
    rf"century|summer|winter|spring|autumn|fall|night|time|few|several|two|three|{_DAYS}|{_MONTH})|yesterday|today|tomorrow|"
    rf"tonight|ago|now|currently|recently|earlier|later|so far|to date|at the time|here|above|below|as follows|"
    rf"(?:{_DAYS})(?:['’]s)?|the (?:same )?(?:day|week|month|year|season)|the (?:latter|former)|in the (?:fall|spring|"
    rf"summer|winter)|(?:a|one|two|three) (?:day|week|month|year)s? after|"
    rf"there(?! (?:is|are|was|were|has|have|had|will|would|may|might|could|can|should)\b))\b",
    regex.IGNORECASE,
)
_POINTING = regex.compile(
    r"\b(?:[Tt]his|[Tt]hese|[Tt]hose|[Ss]uch|[Tt]he other|[Aa]nother|[Tt]he (?:two|three|four|pair|same))\b"
    r"|(?:^|, |\b(?:[Ii]n|[Oo]f|[Aa]t|[Bb]y|[Ff]or|[Ff]rom|to|[Ww]ith|[Oo]n|[Aa]s) )[Tt]hat (?=\p{Ll})"
)
_FUTURE = regex.compile(r"\b(?:will|would|is set to|is due to|are set to|are due to|plans? to|scheduled)\b")
_LEANING = regex.compile(
    r"(?:[Hh]e|[Ss]he|[Ii]t|[Tt]hey|[Hh]is|[Hh]er|[Ii]ts|[Tt]heir|[Tt]hat|[Bb]oth|[Oo]thers?|[Ss]ome|[Oo]ne|[Ee]ach|"
    r"[Nn]either|[Ee]ither|[Nn]one|[Aa]ll|[Mm]ost|[Mm]any|[Ff]ew|[Ss]everal)\b"
)
_OPENING = 8  # words that are searched for a predicate
_SPEAKERS = regex.compile(r"\b(?:I|we|We|me|my|My|our|Our|us|you|You|your|Your)\b(?!\.)")
_PRONOUN = regex.compile(r"\b(?:he|she|they|him|them|He|She|They|it|It)\b")
_SAYS = r"(?:said|says|told|added|wrote|tweeted|argued|testified|recalled|explained|joked|noted)\b"
_FULL = r"\p{Lu}[\p{L}'’-]+(?: \p{Lu}\.)?(?: \p{Lu}[\p{L}'’-]+){1,2}"
_TITLES = regex.compile(
    r"^(?:(?:President|Senator|Sen|Gov|Governor|Mayor|Dr|Mr|Mrs|Ms|Rep|Gen|Prof|Justice|Judge)\.? )+"
)
_NO_SURNAME = word_set(
    "house state states court street party union times post news university college school company group bank "
    "city county police department committee council board office center centre park river island lake coast "
    "north south east west republic kingdom army navy force guard service games cup league day month year world"
)


def by_rules(item: Passage) -> str | None:
    """Return the rewritten sentence, or None if it would still depend on its context."""
    text = _ALSO.sub("", item.sentence[opening(item.sentence) :].strip())
    text = text[:1].upper() + text[1:]
    if not text or _LEANING.match(text) or _SPEAKERS.search(text) or _opens_with_known(text):
        return None
    if item.published is not None:
        text = _dated(text, item.published)
    if _RELATIVE.search(text) or _POINTING.search(text):
        return None
    before = f"{item.title}\n{item.context}\n"
    text = _named(text, before, item.answer)
    # a pronoun needs a name before it in the same sentence
    pronoun = _PRONOUN.search(text)
    if pronoun and not any(end <= pronoun.start() for _, end in _names(text, before)):
        return None
    return text


def opening(sentence: str) -> int:
    """Return the length of an opening without content: "EASTON (AP) — ", "However, "."""
    dateline = _DATELINE.match(sentence)
    at = dateline.end() if dateline else 0
    connective = _CONNECTIVE.match(sentence[at:])
    return at + (connective.end() if connective else 0)


def _opens_with_known(text: str) -> bool:
    """Tell whether a sentence is about something mentioned before: "The airline said ..."."""
    words = text.split()
    if words[0] != "The":
        return False
    verbs = finite_verbs(words)
    subject = words[1 : verbs[0] if verbs else _OPENING]
    return not any(word[0].isupper() or word[0].isdigit() for word in subject)


def _names(text: str, before: str) -> list[tuple[int, int]]:
    """Return the names in ``text``, without dates; ``before`` helps to recognise names that begin a sentence."""
    at = len(before)
    spans = [(start - at, end - at) for start, end in find_spans(before + text) if start >= at]
    return [(a, b) for a, b in spans if not text[b - 1].isdigit() and not regex.match(_MONTH, text[a:b])]


def _dated(text: str, published: datetime) -> str:
    """Replace "on Friday", "yesterday", "last year" by dates, counted from the day of publishing."""
    today = published.date()
    future = bool(_FUTURE.search(text))

    def weekday(match: regex.Match[str]) -> str:
        before = match["before"] or ""
        if before and before.lower() != "on" and before not in _NO_ON:
            return match[0]  # "next Friday", "the Friday"
        back = (today.weekday() - _WEEKDAYS.index(match["day"])) % 7
        meant = today + timedelta((7 - back) % 7) if future else today - timedelta(back)
        preposition = before or ("On" if match.start() == 0 else "on")
        part = f" the{match['part']} of" if match["part"] else ""
        return f"{preposition}{part} {written(meant)}"

    def day_word(match: regex.Match[str]) -> str:
        meant = today + timedelta({"yesterday": -1, "today": 0, "tomorrow": 1}[match["word"].lower()])
        return f"{'On' if match['word'][0].isupper() else 'on'} {written(meant)}"

    def year_word(match: regex.Match[str]) -> str:
        step = _STEPS[match["word"].lower()]
        preposition = "In" if match[0][0].isupper() else "in"
        if match["unit"] == "year":
            return f"{preposition} {today.year + step}"
        month = today.year * 12 + today.month - 1 + step
        return f"{preposition} {_MONTHS[month % 12]} {month // 12}"

    def day_of_month(match: regex.Match[str]) -> str:
        month, day = _number(match["month"]), int(match["day"])
        later = (month, day) > (today.month, today.day)
        return f"{match[0]}, {today.year - (later and not future) + (future and not later)}"

    def month_alone(match: regex.Match[str]) -> str:
        month = _number(match["month"])
        later, before = month > today.month, month < today.month
        return f"{match[0]} {today.year - (later and not future) + (future and before)}"

    if len(_WEEKDAY.findall(text)) == 1:  # two days may be of different weeks
        text = _WEEKDAY.sub(weekday, text)
    text = _MONTH_OF.sub(lambda match: f"{match[1]} {today.year + _STEPS[match[2]]}", text)
    text = _YEAR_WORD.sub(year_word, _DAY_WORD.sub(day_word, text))
    text = _MONTH_ALONE.sub(month_alone, _DAY_OF_MONTH.sub(day_of_month, text))
    return regex.sub(r"\b(in|In|on|On) (?:in|on)(?= (?:\d{4}|\p{Lu}\p{Ll}+ \d))", r"\1", text)


def _number(month: str) -> int:
    return 1 + next(i for i, name in enumerate(_MONTHS) if name[:3] == month[:3])


def written(day: date) -> str:
    """Return a day as news write it: "April 24, 2023"."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _named(text: str, before: str, answer: str) -> str:
    """Replace surnames by full names, except the answer."""
    for name in dict.fromkeys(text[start:end] for start, end in _names(text, before)):
        name = _TITLES.sub("", name)
        if name == answer or len(regex.findall(rf"\b{regex.escape(name)}\b", text)) != 1:
            continue
        full = full_name(name, before, text)
        stands = regex.search(rf"(?:\b(?:Mr|Mrs|Ms|Dr)\. )?\b{regex.escape(name)}\b", text)
        if full and stands and answer not in full:
            text = f"{text[: stands.start()]}{full}{text[stands.end() :]}"
    return text


def full_name(surname: str, before: str, text: str) -> str | None:
    """Return the full name of a person whom ``text`` calls by a surname; None if it is not clear.

    Exactly one full name in ``before`` must have that surname, and the person must speak or have a title (Mr., Ms.).
    """
    if not surname.isalpha() or surname.lower() in _NO_SURNAME:
        return None
    word = rf"\b{regex.escape(surname)}\b"
    if not regex.search(rf"{word} {_SAYS}|\b(?:Mr|Mrs|Ms|Dr)\. {word}", before + text):
        return None
    found = (match[0] for match in regex.finditer(rf"\b{_FULL}(?<= {regex.escape(surname)})\b", before))
    full = {name for name in (_TITLES.sub("", one) for one in found) if " " in name}
    return full.pop() if len(full) == 1 else None
