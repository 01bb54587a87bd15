"""Wikitext to paragraphs of prose.

`paragraphs` is what the rest of the build uses. The page goes through a fixed number of passes, in
MediaWiki's own order (verbatim tags, templates, tables, links, HTML, lines). Each pass cuts the text at
its tokens with one regular expression that cannot backtrack and pairs the tokens with an explicit stack,
so the time is proportional to the length of the page whatever is in it, and nothing recurses.

What is kept and what is dropped, and why: docs/wikitext.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from html.entities import html5

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 200

FILE, CATEGORY = 6, 14

Args = dict[str, str]
Rule = Callable[[Args], str]

# Marks that live in the text between passes. No XML document can hold these characters.
GONE = "\x01"  # something was dropped here: whoever comes last tidies what it left behind
BESIDE = "\x02"  # a picture or category stood here: it does not interrupt the paragraph
SOUND, END_SOUND = "\x03", "\x04"  # around a pronunciation, which goes if it stands in brackets
JOINT = "\x05"  # a fraction begins here: 1{{frac|1|4}} is 1 1/4 and not 11/4
MARKS = (GONE, BESIDE, SOUND, END_SOUND, JOINT)


def _words(text: str, separator: str = " ") -> list[str]:
    """The words of a table that is written over several lines."""
    return [word.strip() for word in text.replace("\n", separator).split(separator) if word.strip()]


class UnreadablePage(ValueError):
    """The page is outside the fixed bounds of this parser.

    `reason` is a short name under which the build counts the drop: "too_long" or "nested_too_deep".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def paragraphs(wikitext: str, *, namespaces: Mapping[str, int] | None = None) -> list[str]:
    """The prose paragraphs of a page in reading order.

    A list is one paragraph whose items are separated by a newline; every other paragraph is one line.
    All text is NFC with single spaces. `namespaces` maps the wiki's own namespace names to their numbers
    (from the dump's siteinfo), so that its files (6) and categories (14) are known under every name.

    Raises UnreadablePage if the page has over MAX_CHARACTERS characters or constructs nested deeper than
    MAX_DEPTH.
    """
    if len(wikitext) > MAX_CHARACTERS:
        raise UnreadablePage("too_long")
    text = wikitext
    for mark in MARKS:
        text = text.replace(mark, "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text[:40].lstrip().lower().startswith("#redirect"):
        return []
    text = _without_verbatim(text)
    text = _expand_templates(text)
    text = _without_tables(text)
    text = _unlink(text, _hidden_namespaces(namespaces))
    text = _without_html(text)
    return _read_lines(text)


# ---------------------------------------------------------------------------------------------------
# Pass 1: comments, references and the tags whose content is not wikitext.

_NOT_PROSE = (
    "math|ce|chem|gallery|timeline|syntaxhighlight|source|score|hiero|imagemap|inputbox|templatedata|graph|"
    "mapframe|maplink|categorytree|charinsert|templatestyles|indicator|pre|includeonly|references|section|"
    "listing|rss|phonos|dynamicpagelist|languages|ref|nowiki"
)
_VERBATIM = re.compile(rf"<(?:!--|({_NOT_PROSE})(?=[\s/>])([^<>]*)>)", re.IGNORECASE)
_VERBATIM_END = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _NOT_PROSE.split("|")}
_NEXT_REF = re.compile(r"<(?:(/ref)\s*>|ref(?=[\s>])[^<>]*(?<!/)>)", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"[ \t]*+\n")
_BLANK_LINE = re.compile(r"\n[ \t]*+\n|\n=")
# Inside <nowiki> these are letters like any other; as entities they pass through the later passes.
_INERT = {ord(character): f"&#{ord(character)};" for character in "[]{}|'<>=*#:;_"}
_BEFORE_GONE = ' (;,/\n[“"$£€'


def _without_verbatim(text: str) -> str:
    match = _VERBATIM.search(text)
    if not match:
        return text
    kept: list[str] = []
    position = 0
    line_start = True
    never_closed: set[str] = set()
    while match:
        start, end = match.span()
        before = text[position:start]
        left = ""
        if match[1] is None:
            close = text.find("-->", end)
            end = len(text) if close < 0 else close + 3
            # A comment that has a line for itself goes with its line, or it would split the paragraph.
            indent = before.rstrip(" \t")
            line_start = indent[-1:] == "\n" or (line_start and not indent)
            if line_start and (line_end := _REST_OF_LINE.match(text, end)):
                before = indent
                end = line_end.end()
            elif before[-1:] == " ":
                left = GONE
        else:
            line_start = False
            name = match[1].lower()
            if match[2].endswith("/"):
                pass
            elif name == "ref":
                end = _end_of_reference(text, end)
            elif name in never_closed:
                pass
            elif close_tag := _VERBATIM_END[name].search(text, end):
                if name == "nowiki":
                    left = text[end : close_tag.start()].translate(_INERT)
                end = close_tag.end()
            else:
                never_closed.add(name)
            if not left and before[-1:] in _BEFORE_GONE:
                left = GONE
        kept.append(before)
        kept.append(left)
        position = end
        match = _VERBATIM.search(text, position)
    kept.append(text[position:])
    return "".join(kept)


def _end_of_reference(text: str, start: int) -> int:
    """Where the reference ends whose opening tag ends at `start`.

    References do not nest: if another one opens first, this one was never closed, and takes at most the
    rest of its paragraph with it.
    """
    following = _NEXT_REF.search(text, start)
    if following and following[1]:
        return following.end()
    limit = following.start() if following else len(text)
    blank = _BLANK_LINE.search(text, start, limit)
    return blank.start() if blank else limit


# ---------------------------------------------------------------------------------------------------
# Pass 2: templates.

_BRACES = re.compile(r"(\{\{|\}\})")
_ARGUMENT_TOKENS = re.compile(r"(\[\[|\]\]|\|)")
_PARAMETER_NAME = re.compile(r"[ \n\t]*+[\w .\-]{0,40}+\Z")


def _expand_templates(text: str) -> str:
    parts = _BRACES.split(text)
    if len(parts) == 1:
        return text
    # Each frame is the text of one open template: raw, child, raw, child, ... raw. Children are finished
    # and are never looked into again, which keeps nesting linear.
    frame = [parts[0]]
    depth = 0
    open_frames: list[tuple[list[str], int]] = []
    for index in range(1, len(parts), 2):
        after = parts[index + 1]
        if parts[index] == "{{":
            open_frames.append((frame, depth))
            frame, depth = [after], 0
        elif open_frames:
            inside, inside_depth = frame, depth + 1
            if inside_depth > MAX_DEPTH:
                raise UnreadablePage("nested_too_deep")
            frame, depth = open_frames.pop()
            depth = max(depth, inside_depth)
            rendered = _render(inside)
            if not rendered and frame[-1][-1:] in _BEFORE_GONE:
                rendered = GONE
            if inside[0][:1] == "{" and after[:1] == "}":  # {{{a parameter}}}
                after = after[1:]
            frame.append(rendered)
            frame.append(after)
        else:
            frame.append("")
            frame.append("}}" + after)
    if not open_frames:
        return "".join(frame)
    # What is still open was never closed: MediaWiki shows the braces.
    pieces: list[str] = []
    for outer, _ in open_frames:
        pieces.extend(outer)
        pieces.append("{{")
    pieces.extend(frame)
    return "".join(pieces)


def _render(inside: list[str]) -> str:
    """The text that the template whose content is `inside` puts into the sentence, often none."""
    name = inside[0].partition("|")[0].strip().replace("_", " ").lower()
    rule = TEMPLATES.get(name)
    if rule is None:
        rule = _family_rule(name)
        if rule is None:
            return ""
    return rule(_arguments(inside))


def _family_rule(name: str) -> Rule | None:
    if name.startswith("lang-"):
        return _language_rule(name[5:])
    if name.startswith("script/"):
        return _text
    if name.startswith("ipa-"):
        return _pronunciation
    if ":" in name:
        function, _, argument = name.partition(":")
        parser_function = PARSER_FUNCTIONS.get(function)
        if parser_function:
            return parser_function
        if function == "template":
            return TEMPLATES.get(argument.strip())
    return None


def _arguments(inside: list[str]) -> Args:
    """The arguments by name; those without a name are "1", "2", ...; "0" is the template's name."""
    values: list[str] = []
    current: list[str] = []
    links = 0
    for index, piece in enumerate(inside):
        if index % 2 or "|" not in piece:
            current.append(piece)
            if "[" in piece and not index % 2:
                links = max(0, links + piece.count("[[") - piece.count("]]"))
            continue
        for token in _ARGUMENT_TOKENS.split(piece):
            if token == "|" and not links:
                values.append("".join(current))
                current = []
                continue
            if token == "[[":
                links += 1
            elif token == "]]":
                links = max(0, links - 1)
            current.append(token)
    values.append("".join(current))
    arguments = {"0": values[0]}
    count = 0
    for value in values[1:]:
        key, equals, named = value.partition("=")
        if equals and len(key) < 60 and _PARAMETER_NAME.match(key):
            arguments[key.strip().lower()] = named.strip()
        else:
            count += 1
            arguments[str(count)] = value
    return arguments


# ---------------------------------------------------------------------------------------------------
# The rules for templates that carry text. Everything that is not in TEMPLATES below leaves nothing.
# A rule gets the arguments as wikitext (links and quotes are resolved later) and returns wikitext.


def _positional(args: Args, start: int = 1) -> list[str]:
    """Positional arguments from `start`, stripped, up to the first that is missing."""
    found = []
    while (value := args.get(str(start))) is not None:
        found.append(value.strip())
        start += 1
    return found


def _text(args: Args) -> str:
    return args.get("1") or args.get("text", "")


def _second(args: Args) -> str:
    return args.get("2", "").strip() or args.get("text", "")


def _last(args: Args) -> str:
    """The last positional argument that says something: {{transl|ar|ALA|kitab}} -> kitab."""
    return next((value for value in reversed(_positional(args)) if value), "")


def _joined(args: Args) -> str:
    return "".join(_positional(args))


def _always(text: str) -> Rule:
    return lambda args: text


def _around(before: str, after: str = "") -> Rule:
    """The first argument between two strings, or nothing without an argument."""

    def rule(args: Args) -> str:
        inner = args.get("1", "").strip()
        return f"{before}{inner}{after}" if inner else ""

    return rule


def _before(word: str) -> Rule:
    return lambda args: f"{word} {_text(args)}".rstrip()


def _approximate(word: str) -> Rule:
    """{{circa|1450|1516}} -> c. 1450–1516."""
    return lambda args: f"{word} {'–'.join(value for value in _positional(args)[:2] if value)}".rstrip()


def _function_argument(args: Args) -> str:
    """What follows the colon of a parser function."""
    return args["0"].partition(":")[2].strip()


# Languages whose name goes before the word, as MediaWiki shows {{lang-de|Wort}}: "German: Wort".
LANGUAGES = dict(
    entry.split(" ", 1)
    for entry in _words("""
    af Afrikaans/am Amharic/ar Arabic/arc Aramaic/ast Asturian/az Azerbaijani/be Belarusian/ber Berber
    bg Bulgarian/bn Bengali/bo Tibetan/br Breton/bs Bosnian/ca Catalan/ce Chechen/co Corsican/cs Czech
    cy Welsh/da Danish/de German/dv Maldivian/el Greek/en English/eo Esperanto/es Spanish/et Estonian
    eu Basque/fa Persian/fi Finnish/fil Filipino/fo Faroese/fr French/fy West Frisian/ga Irish
    gd Scottish Gaelic/gl Galician/grc Ancient Greek/grc-gre Greek/gsw Swiss German/gu Gujarati/gv Manx
    ha Hausa/haw Hawaiian/he Hebrew/hi Hindi/hr Croatian/ht Haitian Creole/hu Hungarian/hy Armenian
    id Indonesian/ig Igbo/is Icelandic/it Italian/ja Japanese/jv Javanese/ka Georgian/kk Kazakh/km Khmer
    kn Kannada/ko Korean/ku Kurdish/kw Cornish/ky Kyrgyz/la Latin/lb Luxembourgish/lo Lao/lt Lithuanian
    lv Latvian/mg Malagasy/mi Maori/mk Macedonian/ml Malayalam/mn Mongolian/mr Marathi/ms Malay/mt Maltese
    my Burmese/nah Nahuatl/nds Low German/ne Nepali/nl Dutch/nn Norwegian Nynorsk/no Norwegian/nv Navajo
    nb Norwegian Bokmål/oc Occitan/or Odia/os Ossetian/ota Ottoman Turkish/pa Punjabi/pl Polish/ps Pashto
    pt Portuguese/qu Quechua/rm Romansh/ro Romanian/ru Russian/rus Russian/sa Sanskrit/sc Sardinian
    scn Sicilian/sco Scots/sd Sindhi/se Northern Sami/sh Serbo-Croatian/si Sinhala/sk Slovak/sl Slovene
    so Somali/sq Albanian/sr Serbian/sv Swedish/sw Swahili/ta Tamil/te Telugu/tg Tajik/th Thai/tk Turkmen
    tl Tagalog/tr Turkish/tt Tatar/ug Uyghur/uk Ukrainian/ur Urdu/uz Uzbek/vi Vietnamese/xh Xhosa
    yi Yiddish/yo Yoruba/zu Zulu
    """, "/")
)  # fmt: skip


def _language_rule(code: str) -> Rule:
    if code == "zh":
        return _chinese

    def rule(args: Args) -> str:
        word = args.get("1", "").strip() or args.get("text", "")
        name = LANGUAGES.get(code) or LANGUAGES.get(code.partition("-")[0])
        if not word or not name or args.get("label", "") == "none":
            return word
        return f"{name}: {word}"

    return rule


def _langx(args: Args) -> str:
    shifted = {**args, "1": args.get("2", "")}
    return _language_rule(args.get("1", "").strip().lower())(shifted)


def _pronunciation(args: Args) -> str:
    sound = args.get("1", "").strip()
    if not sound:
        return ""
    if sound[:1] not in "[/⟨":
        sound = f"&#91;{sound}&#93;"
    return f"{SOUND}{sound}{END_SOUND}"


def _respelling(args: Args) -> str:
    return f"{SOUND}{'-'.join(_positional(args))}{END_SOUND}"


_CHINESE_PARTS = (
    ("s", "simplified Chinese"), ("t", "traditional Chinese"), ("c", "Chinese"), ("p", "pinyin"),
    ("w", "Wade–Giles"), ("j", "Jyutping"), ("cy", "Cantonese Yale"), ("poj", "Pe̍h-ōe-jī"),
    ("l", "lit."), ("tr", "trans."),
)  # fmt: skip


def _chinese(args: Args) -> str:
    labelled = args.get("labels", "") != "no"
    found = []
    for key, label in _CHINESE_PARTS:
        value = args.get(key, "").strip()
        if value:
            value = f"'{value}'" if key in ("l", "tr") else value
            separator = " " if label.endswith(".") else ": "
            found.append(f"{label}{separator}{value}" if labelled else value)
    if not found and args.get("1", "").strip():
        found.append(f"Chinese: {args['1'].strip()}" if labelled else args["1"].strip())
    return "; ".join(found)


def _korean(args: Args) -> str:
    parts = (("hangul", "Korean"), ("hanja", "Hanja"), ("rr", "RR"), ("mr", "MR"), ("lit", "lit."))
    found = [f"{label}: {args[key].strip()}" for key, label in parts if args.get(key, "").strip()]
    return "; ".join(found) or _text(args)


def _japanese(args: Args) -> str:
    """{{nihongo|English|kanji|romaji|more}} -> English (kanji, romaji, more)."""
    english, kanji, romaji, *more = [*_positional(args), "", "", ""][: max(3, len(_positional(args)))]
    extra = [value for value in (*more, args.get("extra", "").strip()) if value]
    if not english:
        english, romaji = romaji, ""
    inside = ", ".join(value for value in (kanji, romaji, *extra) if value)
    return f"{english} ({inside})" if english and inside else english or inside


def _japanese_romaji_first(args: Args) -> str:
    english, kanji, romaji = [*_positional(args), "", "", ""][:3]
    inside = ", ".join(value for value in (kanji, english) if value)
    return f"{romaji} ({inside})" if romaji and inside else romaji or inside


_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[a-z]+)?\Z")


def _interlanguage_link(args: Args) -> str:
    if args.get("lt", "").strip():
        return args["lt"]
    values = _positional(args)
    if values and _LANGUAGE_CODE.match(values[0]) and len(values) > 1 and not _LANGUAGE_CODE.match(values[1]):
        # The form before 2015: language, foreign title, local title, text.
        return values[3] if len(values) > 3 and values[3] else values[2] if len(values) > 2 else values[1]
    return values[0] if values else ""


# Dates.

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


def _month(value: str) -> str:
    return _MONTHS[int(value) - 1] if value.isdecimal() and 1 <= int(value) <= 12 else value


def _yes(args: Args, key: str) -> bool:
    return args.get(key, "").strip().lower() in ("y", "yes", "1", "true", "on", "dmy")


def _date_text(year: str, month: str, day: str, day_first: bool) -> str:
    month = _month(month.strip())
    year, day = year.strip(), day.strip().lstrip("0")
    if not month:
        return year
    if not day:
        return f"{month} {year}".strip()
    return f"{day} {month} {year}".strip() if day_first else f"{month} {day}, {year}".strip(", ")


def _date(args: Args) -> str:
    """A date given as year, month, day. Ages depend on the day one reads them, so they are left out."""
    year, month, day = args.get("1", ""), args.get("2", ""), args.get("3", "")
    if not year.strip().isdecimal():
        return year
    return _date_text(year, month, day, _yes(args, "df"))


def _as_of(args: Args) -> str:
    if args.get("alt", "").strip():
        return args["alt"]
    word = "since" if _yes(args, "since") else "as of"
    word = word if _yes(args, "lc") else word.capitalize()
    year, month, day = args.get("1", ""), args.get("2", ""), args.get("3", "")
    date = _date_text(year, month, day, args.get("df", "").strip().upper() != "US")
    bare = _yes(args, "bare")
    return (date if bare else f"{word} {date}" if date else word) + args.get("post", "")


def _old_style_date(args: Args) -> str:
    new, year, old = [*_positional(args), "", "", ""][:3]
    return f"{new} &#91;O.S. {old}&#93; {year}" if old else f"{new} {year}"


def _era(name: str) -> Rule:
    def rule(args: Args) -> str:
        year = next((value for value in _positional(args) if value != "link"), "")
        return f"{year} {name}" if year else name

    return rule


# Numbers.

_SUPERSCRIPT = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")
_PLAIN_NUMBER = re.compile(r"[+\-−]?\d+(?:\.\d*)?\Z")


def _thousands(number: str) -> str:
    """A plain number with commas between thousands and a true minus; anything else as it is."""
    number = number.strip()
    if not _PLAIN_NUMBER.match(number) or len(number) > 40:
        return number
    sign = number[0] if number[0] in "+-−" else ""
    whole, dot, decimals = number[len(sign) :].partition(".")
    groups = []
    while len(whole) > 3:
        whole, group = whole[:-3], whole[-3:]
        groups.append(group)
    groups.append(whole)
    return ("−" if sign in ("-", "−") else sign) + ",".join(reversed(groups)) + dot + decimals


def _fraction(args: Args) -> str:
    values = _positional(args)
    if len(values) > 2:
        return f"{JOINT}{values[0]} {values[1]}/{values[2]}"
    if len(values) == 2:
        return f"{JOINT}{values[0]}/{values[1]}"
    return f"{JOINT}1/{values[0]}" if values and values[0] else "/"


def _power_of_ten(exponent: str) -> str:
    return f"×10{exponent.strip().translate(_SUPERSCRIPT)}"


def _value(args: Args) -> str:
    values = _positional(args)
    number = _thousands(values[0]) if values else ""
    if len(values) > 1 and values[1]:
        uncertainty = values[1]
        if len(values) > 2 and values[2]:
            number += f" +{uncertainty} −{values[2]}"
        elif uncertainty.startswith("("):
            number += uncertainty
        else:
            number += f"±{uncertainty}"
    if args.get("e", "").strip():
        number += _power_of_ten(args["e"])
    unit = (args.get("u") or args.get("ul") or "").strip()
    per = (args.get("up") or args.get("upl") or "").strip()
    unit = re.sub(r"(?<=[A-Za-z])([-−]?\d)\b", lambda match: match[1].translate(_SUPERSCRIPT), unit[:60])
    if per:
        unit += f"/{per}"
    prefix = args.get("p", "").strip()
    suffix = args.get("s", "").strip()
    separator = "" if unit in ("%", "°") else " "
    return f"{prefix}{number}{suffix}" + (f"{separator}{unit}" if unit else "")


def _ordinal(args: Args) -> str:
    number = args.get("1", "").strip()
    if not number.isdecimal():
        return number
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return number + ("th" if number[-2:] in ("11", "12", "13") else ending)


_MASS = re.compile(r"\d+\Z")
_CHARGE = re.compile(r"\d*[+\-−]\Z")


def _chemical(args: Args) -> str:
    """{{chem|Ge|9|4-}} -> Ge9⁴⁻; {{chem|40|Ar}} -> ⁴⁰Ar."""
    text = ""
    for value in _positional(args):
        if _CHARGE.match(value) or (not text and _MASS.match(value)):
            value = value.translate(_SUPERSCRIPT)
        text += value
    return text


_CHEM2_CHARGE = re.compile(r"(?<=[A-Za-z\d)\]])(?:\((\d*[+\-−])\)|([+\-−]))\Z")


def _chemical_2(args: Args) -> str:
    formula = args.get("1", "").strip()[:200]
    return _CHEM2_CHARGE.sub(lambda match: (match[1] or match[2]).translate(_SUPERSCRIPT), formula)


_CURRENCIES = {
    "usd": "US$", "us": "US$", "gbp": "£", "eur": "€", "jpy": "¥", "inr": "₹", "krw": "₩", "aud": "A$",
    "cad": "C$", "nzd": "NZ$", "hkd": "HK$", "sgd": "S$", "cny": "CN¥", "rub": "₽", "try": "₺", "ils": "₪",
    "php": "₱", "ngn": "₦", "uah": "₴", "vnd": "₫", "brl": "R$", "zar": "R",
}  # fmt: skip


def _money(symbol: str) -> Rule:
    return lambda args: symbol + _thousands(args.get("1", ""))


def _currency(args: Args) -> str:
    code = args.get("2", "").strip() or args.get("type", "").strip() or "usd"
    amount = _thousands(args.get("1", ""))
    symbol = _CURRENCIES.get(code.lower())
    return f"{symbol}{amount}" if symbol else f"{amount} {code}"


# Measures. Only what the editor measured is kept: the conversion depends on rounding rules of a module of
# 4,000 lines that has changed over the years, and a number that we compute is not in the article.

_RANGES = {
    "-": "–", "–": "–", "—": "–", "to": " to ", "to(-)": " to ", "and": " and ", "and(-)": " and ",
    "or": " or ",
    "x": " × ", "×": " × ", "by": " by ", "xx": " × ", "+/-": " ± ", "±": " ± ", "+": " + ", ",": ", ",
    ", and": ", and ", ", or": ", or ", "&": " & ", "to about": " to about ",
}  # fmt: skip
_MEASURED = re.compile(r"[+\-−]?[\d.,]+(?:e[+\-−]?\d+)?(?:[+\-−]?\d+)?(?://?\d+)?\Z")
_MIXED = re.compile(r"(\d)[+\-](\d+//?\d+)\Z")
# Code, symbol, singular and plural; a low line stands for a space.
_UNITS = {
    code.replace("_", " "): (symbol.replace("_", " "), one.replace("_", " "), many.replace("_", " "))
    for code, symbol, one, many in (entry.split() for entry in _words("""
    m m metre metres|km km kilometre kilometres|cm cm centimetre centimetres|mm mm millimetre millimetres
    um μm micrometre micrometres|μm μm micrometre micrometres|nm nm nanometre nanometres
    dm dm decimetre decimetres|hm hm hectometre hectometres|mi mi mile miles|yd yd yard yards
    ft ft foot feet|foot ft foot feet|feet ft foot feet|in in inch inches
    nmi nmi nautical_mile nautical_miles|fathom fathom fathom fathoms|furlong furlong furlong furlongs
    chain chain chain chains|hand h hand hands|ly ly light-year light-years
    AU AU astronomical_unit astronomical_units|au au astronomical_unit astronomical_units
    pc pc parsec parsecs|miles mi mile miles|m2 m² square_metre square_metres
    km2 km² square_kilometre square_kilometres|sqm m² square_metre square_metres
    cm2 cm² square_centimetre square_centimetres|mm2 mm² square_millimetre square_millimetres
    sqkm km² square_kilometre square_kilometres|sqmi sq_mi square_mile square_miles
    mi2 sq_mi square_mile square_miles|sqft sq_ft square_foot square_feet
    ft2 sq_ft square_foot square_feet|sqyd sq_yd square_yard square_yards
    sqin sq_in square_inch square_inches|acre acres acre acres|acres acres acre acres
    ha ha hectare hectares|m3 m³ cubic_metre cubic_metres|km3 km³ cubic_kilometre cubic_kilometres
    cm3 cm³ cubic_centimetre cubic_centimetres|cc cc cubic_centimetre cubic_centimetres
    cuft cu_ft cubic_foot cubic_feet|cuin cu_in cubic_inch cubic_inches|ft3 cu_ft cubic_foot cubic_feet
    cuyd cu_yd cubic_yard cubic_yards|cumi cu_mi cubic_mile cubic_miles|cumi cu_mi cubic_mile cubic_miles
    L L litre litres|l l litre litres|mL mL millilitre millilitres|ml ml millilitre millilitres
    impgal imp_gal imperial_gallon imperial_gallons|USgal US_gal US_gallon US_gallons
    U.S.gal U.S._gal U.S._gallon U.S._gallons|USoz US_fl_oz US_fluid_ounce US_fluid_ounces
    acre.ft acre⋅ft acre-foot acre-feet|oilbbl bbl barrel barrels|bbl bbl barrel barrels
    koilbbl thousand_bbl thousand_barrels thousand_barrels
    Moilbbl million_bbl million_barrels million_barrels
    Goilbbl billion_bbl billion_barrels billion_barrels|g g gram grams|kg kg kilogram kilograms
    mg mg milligram milligrams|t t tonne tonnes|MT t metric_ton metric_tons|lb lb pound pounds
    lbs lb pound pounds|oz oz ounce ounces|ozt ozt troy_ounce troy_ounces|st st stone stone
    LT long_tons long_ton long_tons|ST short_tons short_ton short_tons
    long_ton long_tons long_ton long_tons|short_ton short_tons short_ton short_tons
    kt kt kilotonne kilotonnes|carat carat carat carats|gr gr grain grains
    km/h km/h kilometre_per_hour kilometres_per_hour|kph km/h kilometre_per_hour kilometres_per_hour
    mph mph mile_per_hour miles_per_hour|mi/h mph mile_per_hour miles_per_hour
    m/s m/s metre_per_second metres_per_second|kn kn knot knots
    knot kn knot knots|ft/s ft/s foot_per_second feet_per_second
    km/s km/s kilometre_per_second kilometres_per_second|C °C °C °C|F °F °F °F|K K K K|C-change °C °C °C
    F-change °F °F °F|°C °C °C °C|°F °F °F °F|W W watt watts|kW kW kilowatt kilowatts
    MW MW megawatt megawatts|GW GW gigawatt gigawatts|hp hp horsepower horsepower
    bhp bhp brake_horsepower brake_horsepower|PS PS metric_horsepower metric_horsepower
    shp shp shaft_horsepower shaft_horsepower|J J joule joules|kJ kJ kilojoule kilojoules
    MJ MJ megajoule megajoules|kcal kcal kilocalorie kilocalories|cal cal calorie calories
    eV eV electronvolt electronvolts|Wh Wh watt-hour watt-hours|kWh kWh kilowatt-hour kilowatt-hours
    MWh MWh megawatt-hour megawatt-hours|GWh GWh gigawatt-hour gigawatt-hours
    TWh TWh terawatt-hour terawatt-hours|N N newton newtons|kN kN kilonewton kilonewtons
    Nm N⋅m newton-metre newton-metres|N.m N⋅m newton-metre newton-metres|lbf lbf pound-force pounds-force
    lbft lb⋅ft pound-foot pound-feet|lbfft lbf⋅ft pound-foot pound-feet|lb.ft lb⋅ft pound-foot pound-feet
    Pa Pa pascal pascals|kPa kPa kilopascal kilopascals|MPa MPa megapascal megapascals
    GPa GPa gigapascal gigapascals|hPa hPa hectopascal hectopascals|bar bar bar bars
    mbar mbar millibar millibars|psi psi pound_per_square_inch pounds_per_square_inch
    atm atm standard_atmosphere standard_atmospheres|inHg inHg inch_of_mercury inches_of_mercury
    mmHg mmHg millimetre_of_mercury millimetres_of_mercury|Hz Hz hertz hertz|kHz kHz kilohertz kilohertz
    MHz MHz megahertz megahertz|s s second seconds|min min minute minutes|h h hour hours|d d day days
    day d day days|year year year years|a a year years|mpgus mpg‑US mile_per_US_gallon miles_per_US_gallon
    mpgimp mpg‑imp mile_per_imperial_gallon miles_per_imperial_gallon
    L/100km L/100_km litre_per_100_kilometres litres_per_100_kilometres
    USgal/min US_gal/min US_gallon_per_minute US_gallons_per_minute
    PD/km2 inhabitants/km² inhabitant_per_square_kilometre inhabitants_per_square_kilometre
    PD/sqmi inhabitants/sq_mi inhabitant_per_square_mile inhabitants_per_square_mile
    """, "|"))
}  # fmt: skip
_SCALES = {"e3": "thousand", "e6": "million", "e9": "billion", "e12": "trillion"}
_SCALED = re.compile(r"(e3|e6|e9|e12)([A-Za-z].*)")
_COMPOUND = {("ft", "in"), ("mi", "yd"), ("lb", "oz"), ("st", "lb"), ("mi", "chain"), ("yd", "ft")}


def _unit(code: str) -> tuple[str, str, str]:
    known = _UNITS.get(code)
    if known:
        return known
    scaled = _SCALED.match(code)
    if scaled and scaled[2] in _UNITS:
        word = _SCALES[scaled[1]]
        symbol, one, many = _UNITS[scaled[2]]
        return (f"{word} {symbol}", f"{word} {one}", f"{word} {many}")
    above, slash, below = code.partition("/")
    if slash and below:
        top, bottom = _UNITS.get(above, (above,) * 3), _UNITS.get(below, (below,) * 3)
        return (f"{top[0]}/{bottom[0]}", f"{top[1]} per {bottom[1]}", f"{top[2]} per {bottom[1]}")
    return (code, code, code)


def _measured(value: str) -> str:
    value = _MIXED.sub(r"\1 \2", value[:60]).replace("//", "/")
    mantissa, e, exponent = value.partition("e")
    return _thousands(mantissa) + (_power_of_ten(exponent) if e else "")


def _convert(args: Args) -> str:
    values = _positional(args)
    text = ""
    index = 0
    singular = False
    while index < len(values):
        if not _MEASURED.match(values[index]):
            break
        text += _measured(values[index])
        singular = values[index] in ("1", "-1", "−1") or values[index].startswith(("1/", "0."))
        index += 1
        following = values[index] if index < len(values) else ""
        if following in _RANGES and index + 1 < len(values) and _MEASURED.match(values[index + 1]):
            text += _RANGES[following]
            index += 1
            continue
        break
    if not text or index >= len(values):
        return text or _joined(args)
    code = values[index]
    units = [(code, "")]
    number, second = [*values[index + 1 : index + 3], "", ""][:2]
    if (code, second) in _COMPOUND and _MEASURED.match(number):
        units.append((second, _measured(number)))
    abbreviation = args.get("abbr", "").strip() or ("on" if args["0"].strip().lower() == "cvt" else "")
    if abbreviation in ("none", "values"):
        return text
    adjective = args.get("adj", "").strip()
    american = args.get("sp", "").strip() == "us"
    for code, number in units:
        symbol, one, many = _unit(code)
        text += f" {number}" if number else ""
        if abbreviation in ("on", "in", "~") or symbol[:1] == "°" or symbol == one:
            text += f" {symbol}"
            continue
        name = one if adjective in ("on", "mid", "pre") or (singular and not number) else many
        if american:
            name = name.replace("metre", "meter").replace("litre", "liter")
        text += f"-{name.replace(' ', '-')}" if adjective in ("on", "mid") else f" {name}"
        if adjective == "mid" and index + 1 < len(values) and values[-1] not in _UNITS:
            text += f" {values[-1]}" if not _MEASURED.match(values[-1]) else ""
    return text


def _population_density(args: Args) -> str:
    try:
        people, area = (float(args.get(key, "").replace(",", "")) for key in ("1", "2"))
        digits = min(9, max(0, int(args.get("prec") or 0)))
        density = f"{people / area:.{digits}f}"
    except (ValueError, ZeroDivisionError, OverflowError):
        return ""
    return f"{_thousands(density)}/{_unit(args.get('3', '').strip())[0]}"


_GAUGE = re.compile(r"([\d.]+)\s*(mm|m|ft|in)?")


def _rail_gauge(args: Args) -> str:
    gauge = _GAUGE.match(args.get("1", "").strip())
    return f"{_thousands(gauge[1])} {gauge[2] or 'mm'}" if gauge else _text(args)


def _coordinates(args: Args) -> str:
    """The position as text, unless it is only shown beside the title."""
    display = args.get("display", "inline")
    if "inline" not in display and display not in ("i", "it", "ti"):
        return ""
    text = ""
    marks = iter("°′″")
    values: list[str] = []
    for value in _positional(args):
        if not value or ":" in value or len(values) == 8:
            break
        values.append(value)
    if len(values) == 2:
        return f"{values[0]}°, {values[1]}°"
    for value in values:
        if value in ("N", "S", "E", "W"):
            text += f"{value} "
            marks = iter("°′″")
        else:
            text += value + next(marks, "")
    return text.strip()


# Ships, places, citations in the running text.


def _ship_name(prefix: str, name: str, hull: str, form: str) -> str:
    prefix, name, hull, form = prefix.strip(), name.strip(), hull.strip(), form.strip()
    full = f"{prefix} {name}".strip()
    if form == "1":
        return hull or full
    if form == "2":
        return name
    if form == "3":
        return f"{name} ({hull})" if hull else name
    if form == "4":
        return f"{prefix} {hull}".strip() if hull else full
    if form in ("5", "6"):
        return full if form == "6" else name
    return f"{full} ({hull})" if hull else full


def _ship(args: Args) -> str:
    return _ship_name(args.get("1", ""), args.get("2", ""), args.get("3", ""), args.get("4", ""))


def _prefixed_ship(args: Args) -> str:
    prefix = args["0"].strip()
    prefix = {"SMU": "SM"}.get(prefix.upper(), prefix.upper() if len(prefix) < 7 else prefix)
    return _ship_name(prefix, args.get("1", ""), args.get("2", ""), args.get("3", ""))


def _ship_class(args: Args) -> str:
    name, kind, form = [*_positional(args), "", "", ""][:3]
    return f"{name} class" if form == "5" else f"{name}-class {kind}".strip()


def _scripture(args: Args) -> str:
    values = [value for value in _positional(args)[:3] if value]
    return " ".join(value for value in values[:2])


def _textual_citation(args: Args) -> str:
    """{{harvtxt|Boolos|Jeffrey|1974}} -> Boolos & Jeffrey (1974)."""
    *authors, year = _positional(args) or [""]
    if not authors:
        return year
    names = f"{authors[0]} et al." if len(authors) > 3 else ", ".join(authors[:-1])
    if len(authors) <= 3:
        names = f"{names} & {authors[-1]}" if names else authors[-1]
    return f"{names} ({year})"


def _court_reports(args: Args) -> str:
    volume, page, year = [*_positional(args), "", "", ""][:3]
    return f"{volume} U.S. {page}" + (f" ({year})" if year else "")


# Blocks. Text that stands for itself goes into its own paragraph.


def _quotation(args: Args) -> str:
    quote = args.get("1", "").strip() or args.get("text", "") or args.get("quote", "")
    return f"\n\n{quote}\n\n" if quote else ""


def _items(args: Args) -> str:
    items = "\n".join(f"* {value}" for value in _positional(args) if value)
    return f"\n{items}\n" if items else ""


def _inline_list(args: Args) -> str:
    return ", ".join(value.strip("* \n").replace("\n*", ", ") for value in _positional(args) if value)


def _block(args: Args) -> str:
    values = [value for value in _positional(args) if value and not value.isdecimal()]
    content = values[0] if values else args.get("content", "")
    return f"\n{content}\n" if content else ""


def _sic(args: Args) -> str:
    words = _joined(args)
    return words if words or _yes(args, "hide") else "&#91;sic&#93;"


_MUSIC = {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "n": "♮"}

# Flag templates named by a country code, {{DEU}}: ISO 3166 codes and the Olympic ones where they differ.
COUNTRIES = dict(
    entry.split(" ", 1)
    for entry in _words("""
    AFG Afghanistan/AGO Angola/ALB Albania/ALG Algeria/AND Andorra/ANG Angola/ARE United Arab Emirates
    ARG Argentina/ARM Armenia/AUS Australia/AUT Austria/AZE Azerbaijan/BAN Bangladesh/BEL Belgium
    BEN Benin/BGD Bangladesh/BGR Bulgaria/BHR Bahrain/BHS Bahamas/BIH Bosnia and Herzegovina/BLR Belarus
    BLZ Belize/BMU Bermuda/BOL Bolivia/BRA Brazil/BRB Barbados/BRN Brunei/BTN Bhutan/BUL Bulgaria
    BWA Botswana/CAN Canada/CHE Switzerland/CHI Chile/CHL Chile/CHN China/CIV Ivory Coast/CMR Cameroon
    COD Democratic Republic of the Congo/COG Republic of the Congo/COL Colombia/CPV Cape Verde
    CRC Costa Rica/CRI Costa Rica/CRO Croatia/CUB Cuba/CYP Cyprus/CZE Czech Republic/DEN Denmark
    DEU Germany/DNK Denmark/DOM Dominican Republic/DZA Algeria/ECU Ecuador/EGY Egypt/ESH Western Sahara
    ESP Spain/EST Estonia/ETH Ethiopia/FIN Finland/FJI Fiji/FLK Falkland Islands/FRA France
    FRO Faroe Islands/GAB Gabon/GBR United Kingdom/GEO Georgia/GER Germany/GHA Ghana/GIN Guinea/GMB Gambia
    GNB Guinea-Bissau/GNQ Equatorial Guinea/GRC Greece/GRE Greece/GRL Greenland/GTM Guatemala/GUY Guyana
    HKG Hong Kong/HND Honduras/HRV Croatia/HTI Haiti/HUN Hungary/IDN Indonesia/IND India/IRL Ireland
    IRN Iran/IRQ Iraq/ISL Iceland/ISR Israel/ITA Italy/JAM Jamaica/JOR Jordan/JPN Japan/KAZ Kazakhstan
    KEN Kenya/KGZ Kyrgyzstan/KHM Cambodia/KOR South Korea/KSA Saudi Arabia/KWT Kuwait/LAO Laos/LAT Latvia
    LBN Lebanon/LBR Liberia/LBY Libya/LIE Liechtenstein/LKA Sri Lanka/LTU Lithuania/LUX Luxembourg
    LVA Latvia/MAC Macau/MAR Morocco/MAS Malaysia/MCO Monaco/MDA Moldova/MDG Madagascar/MDV Maldives
    MEX Mexico/MKD Macedonia/MLI Mali/MLT Malta/MMR Myanmar/MNE Montenegro/MNG Mongolia/MOZ Mozambique
    MRT Mauritania/MUS Mauritius/MYS Malaysia/NAM Namibia/NED Netherlands/NER Niger/NGA Nigeria
    NIC Nicaragua/NLD Netherlands/NOR Norway/NPL Nepal/NZL New Zealand/OMN Oman/PAK Pakistan/PAN Panama
    PER Peru/PHI Philippines/PHL Philippines/POL Poland/POR Portugal/PRC China/PRK North Korea
    PRT Portugal/PRY Paraguay/PSE Palestine/QAT Qatar/ROM Romania/ROU Romania/RSA South Africa/RUS Russia
    RWA Rwanda/SAU Saudi Arabia/SCO Scotland/SEN Senegal/SGP Singapore/SIN Singapore/SLE Sierra Leone
    SLO Slovenia/SLV El Salvador/SOM Somalia/SRB Serbia/SUD Sudan/SDN Sudan/SUI Switzerland/SUR Suriname
    SVK Slovakia/SVN Slovenia/SWE Sweden/SYR Syria/TCD Chad/TGO Togo/THA Thailand/TJK Tajikistan
    TKM Turkmenistan/TTO Trinidad and Tobago/TUN Tunisia/TUR Turkey/TWN Taiwan/TZA Tanzania
    UAE United Arab Emirates/UGA Uganda/UKR Ukraine/URS Soviet Union/URU Uruguay/URY Uruguay
    USA United States/UZB Uzbekistan/VEN Venezuela/VIE Vietnam/VNM Vietnam/WAL Wales/YEM Yemen
    YUG Yugoslavia/ZAF South Africa/ZMB Zambia/ZWE Zimbabwe
    """, "/")
)  # fmt: skip

# Template names, in lower case and separated by |, and what they leave in the text. Names are grouped by
# what they do; redirects of the same template stand side by side.
_RULES: tuple[tuple[str, Rule], ...] = (
    # The text itself, in some look.
    (
        "nowrap|nobr|nobreak|j|small|smaller|big|larger|large|huge|resize|sup|sub|center|strong|em"
        "|smallcaps|sc|sc1|sc2"
        "|smcaps|allcaps|uppercase|caps|mono|monospace|code|kbd|samp|var|mvar|math|bigmath|overline"
        "|underline|u|strike|del|ins|highlight|noitalic|no italic|not italic|nobold|normal|serif"
        "|sans-serif|keypress|key press|key"
        "|isolate|bdi",
        _text,
    ),
    ("unicode|polytonic|iast|pie|hebrew|he|arabic|nq|nastaliq|urdu|transcription|script/hebrew", _text),
    ("abbr|abbrv|tooltip|hover title|h:title|dfn", _text),
    ("visible anchor|vanchor|vanc|anchor text|format link|nsmdns|tq|dp|lcons|screen reader-only", _text),
    ("citation needed span|cn-span|cnspan|cns|cl-span|clarify span|clarify-span|dubious span", _text),
    ("flag|flagcountry|flagu|flag+link|flagteam|flaglist", _text),
    (
        "by|mlby|mlb year|baseball year|nfly|nfl year|nbay|nba year|nhly|nhl year|wsy|mlsy"
        "|scy|cfby|cfb year|afly|f1|24hlm|nhl season|alcsy|nlcsy|wnbay|nihongo2|ipalink|ipa link"
        "|nihongo foot",
        _text,
    ),
    ("lang|rtl-lang|rtl lang|ltr-lang|script|wikt-lang|color|font color|colour|textcolor|sort", _second),
    ("transl|translit|translation|tlit|transliteration|trans|text color|lang-trans", _last),
    ("linktext|not a typo|notatypo|as written|mpl|mp|mp-|mpl-|gaps|proper name", _joined),
    # Other languages.
    ("langx", _langx),
    ("ill|ill2|interlanguage link|interlanguage link multi|link-interwiki|illm|ill-wd", _interlanguage_link),
    ("nihongo|nihongo4|nihongo core|nihongo krt", _japanese),
    ("nihongo3", _japanese_romaji_first),
    ("zh|lang-zh|chinese|zh-cn|zh-full", _chinese),
    ("korean|ko-hhrm|lang-ko text", _korean),
    ("ipa|audio-ipa", _pronunciation),
    ("ipablink", _around("&#91;", "&#93;")),
    ("ipaslink", _around("/", "/")),
    ("respell|pronunciation respelling key", _respelling),
    ("angbr|angle bracket|angbr ipa|vr", _around("⟨", "⟩")),
    # Words.
    ("sic|sic?", _sic),
    ("aside", _around(" — ", " — ")),
    ("née|nee", _before("née")),
    ("né", _before("né")),
    ("circa|c.|ca.|ca", _approximate("c.")),
    ("fl.|floruit|fl", _approximate("fl.")),
    ("reign|r.", _approximate("r.")),
    # Dates.
    ("dash year|year range", lambda args: "–".join(_positional(args)[:2])),
    ("as of|asof", _as_of),
    (
        "birth date|birth-date|birthdate|dob|bda|birth date and age|birth-date and age|birthdate and age"
        "|death date|death-date|death date and age|death-date and age|dda|start date|start-date|end date"
        "|film date|start date and age|date|dts|birth year and age|birth year|launch date|event date"
        "|release date",
        _date,
    ),
    ("oldstyledate|old style date|oldstyledatedy", _old_style_date),
    ("bce", _era("BCE")),
    ("bc", _era("BC")),
    # Numbers, formulas, measures.
    ("frac|fraction|sfrac", _fraction),
    ("val|value", _value),
    ("e|×10^|10^", lambda args: _power_of_ten(args.get("1", ""))),
    ("ordinal|nth", _ordinal),
    ("format price|formatprice|number|nts|formatnum", lambda args: _thousands(args.get("1", ""))),
    ("chem|chemf|chemical formula", _chemical),
    ("chem2", _chemical_2),
    ("su|subsup|supsub", lambda args: args.get("b", "") + args.get("p", "").translate(_SUPERSCRIPT)),
    ("convert|cvt|conv", _convert),
    ("pop density|population density", _population_density),
    ("railgauge|rail gauge|track gauge", _rail_gauge),
    ("coord", _coordinates),
    ("ma|mya", _around("", " million years ago")),
    ("radic|sqrt", _around("√")),
    ("abs", _around("&#124;", "&#124;")),
    ("closed-closed", _around("&#91;", "&#93;")),
    ("closed-open", _around("&#91;", ")")),
    ("open-closed", _around("(", "&#93;")),
    ("open-open", _around("(", ")")),
    ("music", lambda args: _MUSIC.get(args.get("1", "").strip().lower(), "")),
    # Money.
    ("us$|usd|us dollar", _money("US$")),
    ("gbp|£|pound sterling", _money("£")),
    ("euro|eur|€", _money("€")),
    ("inr|₹|indian rupee", _money("₹")),
    ("jpy|¥|yen", _money("¥")),
    ("cny|rmb|cn¥", _money("CN¥")),
    ("krw|₩", _money("₩")),
    ("aud|a$|au$", _money("A$")),
    ("cad|c$|ca$", _money("C$")),
    ("nzd|nz$", _money("NZ$")),
    ("hk$|hkd", _money("HK$")),
    ("php|₱", _money("₱")),
    ("ils|nis|₪", _money("₪")),
    ("currency", _currency),
    # Ships.
    (
        "uss|uscgc|usns|usat|css|hms|hmt|hmas|hmcs|hmnzs|hmis|hmsas|hdms|hnlms|hswms|hnoms|ins|jds|js"
        "|orp|rfa|rms|ss|mv|ms"
        "|mt|mts|rv|sms|smu|sv|ts|tss|ps|nrp|ara|bns|roks|rocs|rss|kri|lé|hmy|gts|my|fv",
        _prefixed_ship,
    ),
    ("ship", _ship),
    ("sclass|sclass2|sclass-", _ship_class),
    # Sources that are part of the sentence.
    ("bibleref|bibleref2|bibleverse|bibleref2-nb|bibleref2c|bibleverse-nb", _scripture),
    ("cite quran|qref", lambda args: "Quran " + ":".join(_positional(args)[:2])),
    ("harvtxt|harvcoltxt", _textual_citation),
    ("ussc", _court_reports),
    ("us patent", lambda args: f"U.S. Patent {_thousands(_text(args))}"),
    ("isbn|isbnt", _around("ISBN ")),
    ("section link|slink", lambda args: " § ".join(value for value in _positional(args) if value)),
    ("sortname", lambda args: " ".join(_positional(args)[:2])),
    # Blocks.
    (
        "quote|blockquote|cquote|quotation|bquote|block quote|centered quote|poemquote|poem quote|bq",
        _quotation,
    ),
    ("plainlist|flatlist|columns-list|col-list|columns list|block indent", _block),
    ("ubl|unbulleted list|ublist|bulleted list|bulletlist|blist|ordered list|unordered list", _items),
    ("hlist|horizontal list|cslist|comma separated entries|comma separated values", _inline_list),
    # Characters that wikitext cannot hold or that are awkward to type. Entities, where the later passes
    # would take the character for markup.
    ("!", _always("&#124;")),
    ("=", _always("&#61;")),
    ("colon", _always("&#58;")),
    ("snd|snds|sndash|spnd|spaced ndash|spaced en dash|spaced en-dash|nbndash|dash", _always(" – ")),
    ("ndash|endash|en dash|--", _always("–")),
    ("mdash|emdash|em dash|mdashb", _always("—")),
    ("smd|spaced mdash|spaced em dash|---", _always(" — ")),
    ("'|-'|'-|' -|apos", _always("&#39;")),
    ("'s|-'s", _always("&#39;s")),
    ("s'", _always("s&#39;")),
    ("' \"", _always("&#39; &quot;")),
    ("'\"", _always("&#39;&quot;")),
    ("\" '", _always("&quot; &#39;")),
    ("\"'", _always("&quot;&#39;")),
    ("' '", _always("&#39; &#39;")),
    ("-\"|\"-", _always("&quot;")),
    (
        "nbsp|nbs|space|spaces|thinsp|thin space|hair space|hairsp|emsp|ensp|figure space|nnbsp|sp|pad|in5",
        _always(" "),
    ),
    ("·|dot|middot|•|bullet|bull", _always(" · ")),
    ("pi", _always("π")),
    ("ell", _always("ℓ")),
    ("prime", _always("′")),
    ("pprime", _always("″")),
    ("deg|degree", _always("°")),
    ("minus", _always("−")),
    ("times", _always("×")),
    ("plusminus|±|pm", _always("±")),
    ("eqm", _always("⇌")),
    ("hamza", _always("ʾ")),
    ("ayin|ayn", _always("ʿ")),
    ("okina|ʻ|'okina", _always("ʻ")),
    ("lord", _always("LORD")),
    ("numero", _always("No.")),
    ("...", _always("…")),
    ("carbon", _always("C")),
    ("hydrogen", _always("H")),
    ("radium", _always("Ra")),
    ("bismuth", _always("Bi")),
)  # fmt: skip
TEMPLATES: dict[str, Rule] = {name: rule for names, rule in _RULES for name in names.split("|")}
for _code, _name in COUNTRIES.items():
    TEMPLATES.setdefault(_code.lower(), _always(_name))

PARSER_FUNCTIONS: dict[str, Rule] = {
    "formatnum": lambda args: _thousands(_function_argument(args)),
    "lc": lambda args: _function_argument(args).lower(),
    "uc": lambda args: _function_argument(args).upper(),
    "lcfirst": lambda args: _function_argument(args)[:1].lower() + _function_argument(args)[1:],
    "ucfirst": lambda args: _function_argument(args)[:1].upper() + _function_argument(args)[1:],
}


# ---------------------------------------------------------------------------------------------------
# Pass 3: tables.

_TABLE = re.compile(rf"\n[ \t:*#;{GONE}]*+(?:(\{{\|)|\|\}}(?!\}}))|<(?:(table)\b[^<>]*|/table\s*)>", re.IGNORECASE)
_HEADING_LINE = re.compile(r"\n=")


def _without_tables(text: str) -> str:
    if "{|" not in text and "<table" not in text.lower():
        return text
    text = "\n" + text
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for match in _TABLE.finditer(text):
        if match[1] or match[2]:
            opened.append(match.start())
        elif opened:
            spans.append((opened.pop(), match.end()))
    if opened:
        # A table that is never closed ends with its section.
        headings = [match.start() for match in _HEADING_LINE.finditer(text)]
        headings.append(len(text))
        headings.reverse()
        for start in opened:
            while headings[-1] < start:
                headings.pop()
            spans.append((start, headings[-1]))
    kept: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            kept.append(text[position:start])
            kept.append("\n\n")
        position = max(position, end)
    kept.append(text[position:])
    return "".join(kept)


# ---------------------------------------------------------------------------------------------------
# Pass 4: links.

_BRACKETS = re.compile(r"(\[\[|\]\])")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|ircs?|gopher|news|sftp|git|svn|telnet|nntp|worldwind|mms|rtsp)://|//|mailto:|urn:|tel:)"
    r"[^\s\[\]<>\"]*+([^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+)*+)\]",
    re.IGNORECASE,
)
_QUALIFIER = re.compile(r"[ _]*(?:\([^()]*\)|（[^（）]*）)\Z|,[^,]*\Z")

# Names of the file and category namespaces that any wiki understands, and those of some larger wikis.
# A wiki's own names come from its siteinfo.
NAMESPACES = {
    **dict.fromkeys(
        _words(
            """
            file image datei bild fichier archivo imagen immagine bestand afbeelding ficheiro imagem
            arquivo fil plik grafika файл изображение зображення
            ファイル 画像 파일 그림 文件 檔案 图像 ملف صورة پرونده
            tập_tin hình dosya resim tiedosto kuva soubor fájl kép fișier imagine berkas gambar קובץ תמונה
            चित्र
            """
        ),
        FILE,
    ),
    **dict.fromkeys(
        _words(
            """
            category kategorie catégorie categoría categoria categorie kategoria kategori категория
            категорія カテゴリ 분류 分类 分類 تصنيف رده thể_loại luokka kategória קטגוריה श्रेणी
            """
        ),
        CATEGORY,
    ),
}
# Prefixes of the other language editions: [[de:Wort]] is shown beside the page, not in it.
INTERLANGUAGE = frozenset(
    _words(
        """
        ab ace ady af ak als alt am an ang ar arc ary arz as ast atj av avk awa ay az azb ba ban bar
        bat-smg bcl be be-tarask be-x-old bg bh bi bjn bm bn bo bpy br bs bug bxr ca cbk-zam cdo ce ceb ch
        cho chr chy ckb co cr crh cs csb cu cv cy da de din diq dsb dty dv dz ee el eml en eo es et eu ext
        fa ff fi fiu-vro fj fo fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gu gv ha hak haw
        he hi hif ho hr hsb ht hu hy hyw hz ia id ie ig ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab
        kbd kbp kg ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lfn lg li lij lld
        lmo ln lo lrc lt ltg lv mai map-bms mdf mg mh mhr mi min mk ml mn mnw mo mr mrj ms mt mus mwl my
        myv mzn na nah nap nds nds-nl ne new ng nl nn no nov nqo nrm nso nv ny oc olo om or os pa pag pam
        pap pcd pdc pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa-rup roa-tara ru rue rw sa sah sat
        sc scn sco sd se sg sh shi shn si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy te
        tet tg th ti tk tl tn to tpi tr ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo
        wuu xal xh xmf yi yo za zea zh zh-classical zh-min-nan zh-yue zu
        """
    )
)


def _hidden_namespaces(names: Mapping[str, int] | None) -> Mapping[str, int]:
    """Prefixes of links that are shown elsewhere than in the sentence, with what they stand for."""
    if not names:
        return NAMESPACES
    own = {name.replace(" ", "_").lower(): key for name, key in names.items() if key in (FILE, CATEGORY)}
    return {**NAMESPACES, **own}


def _unlink(text: str, namespaces: Mapping[str, int]) -> str:
    if "[" not in text:
        return text
    parts = _BRACKETS.split(text)
    frame = [parts[0]]  # raw, child, raw, child, ... raw, as for templates
    depth = 0
    open_frames: list[tuple[list[str], int]] = []
    for index in range(1, len(parts), 2):
        after = parts[index + 1]
        if parts[index] == "[[":
            open_frames.append((frame, depth))
            frame, depth = [after], 0
        elif open_frames:
            inside, inside_depth = frame, depth + 1
            if inside_depth > MAX_DEPTH:
                raise UnreadablePage("nested_too_deep")
            frame, depth = open_frames.pop()
            depth = max(depth, inside_depth)
            frame.append(_shown_text(inside, namespaces))
            frame.append(after)
        else:
            frame.append("")
            frame.append("]]" + after)
    if open_frames:
        pieces: list[str] = []
        frames = [outer for outer, _ in open_frames] + [frame]
        pieces.extend(frames[0])
        for inside in frames[1:]:
            if _namespace(inside[0], namespaces) is None:
                pieces.append("[[")
            else:
                inside[0] = "\n" + inside[0].partition("\n")[2]
            pieces.extend(inside)
        text = "".join(pieces)
    else:
        text = "".join(frame)
    if "[" in text:
        text = _EXTERNAL.sub(_external_label, text)
    return text


def _external_label(match: re.Match[str]) -> str:
    return match[1].strip() or GONE


def _namespace(target: str, namespaces: Mapping[str, int]) -> int | None:
    prefix, colon, _ = target[:80].partition(":")
    if not colon:
        return None
    return namespaces.get(prefix.strip().replace(" ", "_").lower())


def _shown_text(inside: list[str], namespaces: Mapping[str, int]) -> str:
    """What a reader sees of [[...]]; "" for pictures, categories and links to other languages."""
    target, bar, text = inside[0].partition("|")
    if ":" in target:
        prefix = target[: target.index(":")].strip().replace(" ", "_").lower()
        if prefix in namespaces or prefix in INTERLANGUAGE:
            return BESIDE
        if not prefix:
            target = target.lstrip(" :")
    if len(inside) > 1:
        # A link inside a link: MediaWiki makes no link of the outer one. Its text is what counts.
        children = "".join(inside[1:])
        return text + children if bar else target + children
    if not bar:
        return target.strip() if "\n" not in target else f"[[{target}]]"
    if text.strip():
        return text
    # The pipe trick: [[Help:Pipe (trick)|]] -> Pipe
    name = target.rpartition(":")[2]
    return _QUALIFIER.sub("", name).strip() or target


# ---------------------------------------------------------------------------------------------------
# Pass 5: HTML.

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)\b[^<>]*>")
_BROKEN_REF = re.compile(r"</?ref\b[^<>\n]*+>?", re.IGNORECASE)
_RAISED = re.compile(r"<sup[^<>]*>[ ]?([+\-−–]?\d{1,9}[+\-−–]?|[+\-−–])[ ]?</sup\s*>", re.IGNORECASE)
_RAISED_SIGNS = str.maketrans("–-−+0123456789", "⁻⁻⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹")
_BREAKS = re.compile(r"<br\b[^<>]*>(?:\s*+<br\b[^<>]*>)++", re.IGNORECASE)
_BLOCK_TAGS = frozenset(
    _words(
        """
        p div blockquote center hr ul ol dl table tr td th caption tbody thead h1 h2 h3 h4 h5 h6 section
        poem
        """
    )
)
_INLINE_TAGS = frozenset(
    _words(
        """
        a abbr b bdi bdo big br cite code data del dfn em font i ins kbd mark noinclude nobr nowiki
        onlyinclude q rb rp rt rtc ruby s samp small span strike strong sub sup time tt u var wbr li dt dd
        ref references includeonly includeonly nowiki gallery math pre
        """
    )
)
_RAW_TAG_NAMES = frozenset(_NOT_PROSE.split("|"))


def _without_html(text: str) -> str:
    if "<" not in text:
        return text
    if "<sup" in text:
        text = _RAISED.sub(lambda match: match[1].translate(_RAISED_SIGNS), text)
    if "<poem" in text:
        text = _with_lines_of_verse(text)
    text = _BREAKS.sub("\n\n", text)
    text = _TAG.sub(_shown_tag, text)
    if "ref" in text:
        text = _BROKEN_REF.sub("", text)
    return text


def _shown_tag(match: re.Match[str]) -> str:
    name = match[2].lower()
    if name in _BLOCK_TAGS:
        return "\n\n"
    if name in ("li", "dd", "dt"):
        return "\n" if match[1] else "\n* "
    if name == "br":
        return " "
    if name in _INLINE_TAGS or name in _RAW_TAG_NAMES:
        return ""
    return match[0]


def _with_lines_of_verse(text: str) -> str:
    """Each line of a <poem> becomes an item, so that a poem is one paragraph of lines."""
    pieces: list[str] = []
    position = 0
    while (start := text.find("<poem", position)) >= 0 and (end := text.find("</poem", start)) >= 0:
        pieces.append(text[position:start])
        verse = text[start:end].partition(">")[2].strip()
        pieces.append("\n:" + verse.replace("\n", "\n:") + "\n")
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


# ---------------------------------------------------------------------------------------------------
# Pass 6: lines, sections and paragraphs.

# Sections that hold apparatus and lists of links; their prose, where there is any, is about sources.
APPARATUS = frozenset(
    _words(
        """
        references|external links|external link|see also|further reading|notes and references|external sources
        references and notes|references and sources|sources and references|citations and references
        general references|footnotes and references|references and further reading|cited sources|works cited
        further reading and external links|related articles|see also and references|web links|weblinks|links
        """,
        "|",
    )
)
# In these the lists are apparatus but a paragraph may be about the subject.
LISTS_ARE_APPARATUS = frozenset(
    _words(
        "notes|footnotes|endnotes|citations|sources|bibliography|notes and citations|notes and sources|gallery", "|"
    )
)
_SWITCH = re.compile(r"__[^\W\d_a-z]{2,40}+(?:_[^\W\d_a-z]{1,40}+)*+__")
_QUOTES = re.compile(r"'{2,}")
_ENTITY = re.compile(r"&(#[0-9]{1,8}|#[xX][0-9A-Fa-f]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\x00\x06-\x08\x0e-\x1b\x7f]"
)
_UNSEEN = f" \t{GONE}{BESIDE}"


def _read_lines(text: str) -> list[str]:
    if "__" in text:
        text = _SWITCH.sub("", text)
    result: list[str] = []
    prose: list[str] = []
    items: list[str] = []
    skipped_level, lists_only = 0, False
    lead = True

    def finish() -> None:
        if prose:
            paragraph = _clean(" ".join(prose), lead)
            prose.clear()
            if paragraph:
                result.append(paragraph)
        elif items:
            cleaned = [item for item in (_clean(_unquote(item), lead) for item in items) if item]
            items.clear()
            if cleaned:
                result.append("\n".join(cleaned))

    for line in text.split("\n"):
        first = line[:1]
        if first in _UNSEEN:  # true of an empty line as well
            bare = line.strip(_UNSEEN)
            if not bare:
                if BESIDE not in line:
                    finish()
                continue
            if first not in " \t" and bare[0] in "=*#:;":
                line, first = bare, bare[0]
        if first == "=" and (heading := _heading(line)):
            finish()
            lead = False
            level, title = heading
            if not skipped_level or level <= skipped_level:
                lists_only = title in LISTS_ARE_APPARATUS
                skipped_level = level if lists_only or title in APPARATUS else 0
            continue
        if skipped_level and (not lists_only or first in "*#:;"):
            finish()
            continue
        if first in "*#:;":
            if prose:
                finish()
            if first == ";" and ":" in line:
                term, _, definition = line.lstrip("*#:; ").partition(":")
                items.append(term)
                items.append(definition)
            else:
                items.append(line.lstrip("*#:; "))
        elif first == "|" or line.startswith("----") or line.isspace():
            finish()
        else:
            if items:
                finish()
            prose.append(_unquote(line))
    finish()
    return result


def _heading(line: str) -> tuple[int, str] | None:
    line = line.strip(_UNSEEN)
    left = len(line) - len(line.lstrip("="))
    right = len(line) - len(line.rstrip("="))
    level = min(left, right, 6)
    title = line[level : len(line) - level].strip(f"{_UNSEEN}:.'")
    if not level or not title or left == len(line):
        return None
    return level, " ".join(title.split()).lower()


def _unquote(line: str) -> str:
    """Bold and italic marks taken away as MediaWiki reads them: l'''orage'' keeps its apostrophe."""
    if "''" not in line:
        return line
    pieces = _QUOTES.split(line)
    lengths = [len(run) for run in _QUOTES.findall(line)]
    italics = sum(length in (2, 5) or length > 5 for length in lengths)
    bolds = sum(length in (3, 4, 5) or length > 5 for length in lengths)
    literal = [0 if length in (2, 3, 5) else 1 if length == 4 else length - 5 for length in lengths]
    if italics % 2 and bolds % 2:
        # One ''' must be an apostrophe and ''. Best after a one-letter word, then inside a word.
        chosen, rank = -1, 3
        for index, length in enumerate(lengths):
            if length != 3:
                continue
            before = pieces[index]
            if before[-1:] in (" ", ""):
                here = 2
            elif len(before) < 2 or before[-2] == " ":
                here = 0
            else:
                here = 1
            if here < rank:
                chosen, rank = index, here
        if chosen >= 0:
            literal[chosen] = 1
    out = [pieces[0]]
    for count, piece in zip(literal, pieces[1:], strict=True):
        out.append("'" * count)
        out.append(piece)
    return "".join(out)


# What dropped templates leave behind. The text is folded to single spaces before, and every repetition is
# bounded, so that no pattern can look far from where it starts.
_GONE_RUN = re.compile(rf"{GONE}(?:(?: ?[,;/:])?(?: or| and)?(?: sometimes| also| locally)? ?{GONE})+")
_AFTER_OPENING = re.compile(rf"([(\[（]) ?{GONE}(?: ?[,;:，、/](?![^ {GONE}])| or(?= )| and(?= )){{0,3}} ?")
_BEFORE_CLOSING = re.compile(
    rf"[ ,;:–—]{{0,3}}(?:\b(?:pronounced|pronunciation|IPA|pron\.)[ :]{{0,2}})?{GONE}[ ,;:]{{0,3}}(?=[)\]）])"
)
_EMPTIED = re.compile(rf" ?[(\[（]{GONE}{{1,3}}[)\]）]")
_BETWEEN_STOPS = re.compile(rf"[,;:] ?{GONE} ?(?=[,;:.])|\. ?{GONE} ?(?=\.(?: |$))")
# Amounts in today's money come from a table outside the article: "$5 ($75 in 2014 dollars)".
_AMOUNT_GONE = re.compile(rf"\([A-Za-z ]{{0,40}}[$£€]{GONE}[^()]{{0,80}}\)")
_BEFORE_STOP = re.compile(rf" ?{GONE} ?(?=[.,;:!?)\]）])")
_BRACKET_GONE = re.compile(rf"([(\[（]){GONE} ?")
_SOUNDS = re.compile(rf"([()])|{SOUND}([^{SOUND}{END_SOUND}]*){END_SOUND}")
_JOINT_AFTER_DIGIT = re.compile(rf"(?<=[0-9]){JOINT}")
_WORD_CHARACTER = re.compile(r"[^\W_]")


def _clean(line: str, lead: bool) -> str:
    """One line as it is emitted; "" if no letter or digit is left."""
    if "&" in line:
        line = _ENTITY.sub(_character, line)
    if BESIDE in line:
        line = line.replace(BESIDE, "")
    if JOINT in line:
        line = _JOINT_AFTER_DIGIT.sub(" ", line).replace(JOINT, "")
    if not line.isprintable():
        line = _INVISIBLE.sub("", line)
    line = " ".join(line.split())
    if SOUND in line:
        line = _without_sounds(line, lead)
    if GONE in line:
        line = _tidy(line)
    if not _WORD_CHARACTER.search(line):
        return ""
    return unicodedata.normalize("NFC", line)


def _character(match: re.Match[str]) -> str:
    name = match[1]
    if name[0] != "#":
        return html5.get(name + ";", match[0])
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    if code < 32 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return " " if code in (9, 10, 13) else ""
    return chr(code)


def _without_sounds(line: str, lead: bool) -> str:
    """Pronunciations dropped from the brackets that follow the name in the lead, kept elsewhere."""
    depth = 0

    def shown(match: re.Match[str]) -> str:
        nonlocal depth
        if match[1]:
            depth = depth + 1 if match[1] == "(" else max(0, depth - 1)
            return match[1]
        return GONE if depth and lead else match[2]

    line = _SOUNDS.sub(shown, line)
    return line.replace(SOUND, "").replace(END_SOUND, "")


def _tidy(line: str) -> str:
    line = _AMOUNT_GONE.sub(GONE, line)
    for _ in range(2):  # twice, for brackets within brackets
        line = _GONE_RUN.sub(GONE, line)
        line = _AFTER_OPENING.sub(rf"\1{GONE}", line)
        line = _BEFORE_CLOSING.sub(GONE, line)
        line = _EMPTIED.sub(GONE, line)
    line = _BETWEEN_STOPS.sub("", line)
    line = _BEFORE_STOP.sub("", line)
    line = _BRACKET_GONE.sub(r"\1", line)
    return " ".join(line.replace(GONE, "").split())
