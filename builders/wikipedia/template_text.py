"""The text that a template adds to its sentence.

Most templates (infoboxes, maintenance notes, citations) add none. language_en.yaml lists the others with the phrase
that each becomes, or "as NAME" for a renderer of RENDERERS, at the end of this module; template_words.yaml has the
words that renderers need. To add a template, add its name to language_en.yaml, and a case to
tests/builders/wikipedia/test_plain_text.py.

A renderer gets a template's arguments as wikitext and returns wikitext. Later passes resolve its links, quotes and
HTML, so it must escape all characters that are not markup, by entities. Its time must be proportional to the length of
its arguments: a pattern that can backtrack may only be applied to values of bounded length.
"""

import functools
import re
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from temporalwiki.base.json_files import read_yaml

# Marks that renderers leave in the text. No XML document can contain these characters.
SOUND, END_SOUND = "\x03", "\x04"  # around a pronunciation, which is dropped if it is in brackets
JOINT = "\x05"  # before a fraction: 1{{frac|1|4}} is 1 1/4 and not 11/4


_PLAIN_NUMBER = re.compile(r"([+\-−]?)(\d+)(?:\.(\d*))?(\s\D*)?\Z")  # and its unit
_GROUPS = {False: re.compile(r"(?<=\d)(?=(?:\d{3})+\Z)"), True: re.compile(r"(?<=\d)(?=(?:\d\d)*\d{3}\Z)")}


class Writing(NamedTuple):
    """How a language writes what templates add; without arguments, as English does."""

    marks: tuple[str, str] = (",", ".")  # between groups of digits, and before decimals
    lakh: bool = False  # groups as in 12,34,567
    least: int = 1  # digits before the first mark of a group
    digits: str = ""  # from 0 to 9, if they are not those of ASCII
    raw: tuple[str, ...] = ("r",)  # what asks formatnum for a number as computers write it
    plain: tuple[str, ...] = ("nosep",)  # what asks formatnum for a number without groups
    english: bool = True  # whether words of English may be added

    def number(self, number: str, grouped: bool = True) -> str:
        """Return a plain number with the language's marks and a true minus sign, and anything else unchanged.

        A unit can follow it.
        """
        number = number.strip()
        found = _PLAIN_NUMBER.match(number) if len(number) <= 40 else None
        if not found:
            return number
        sign, whole, decimals, unit = found.groups()
        if grouped and len(whole) >= 3 + self.least:
            whole = _GROUPS[self.lakh].sub(self.marks[0], whole)
        text = sign.replace("-", "−") + whole + ("" if decimals is None else self.marks[1] + decimals)
        digits = dict(zip(b"0123456789", self.digits, strict=False))
        return text.translate(digits) + (unit or "")

    def read(self, text: str) -> str:
        """Return a number of the language as computers write it."""
        mark = self.marks[0]
        text = "".join(text.split()) if mark == " " else text.replace(mark, "") if mark else text
        text = text.replace(self.marks[1], ".").replace("−", "-").strip()
        return text.translate(dict(zip(map(ord, self.digits), "0123456789", strict=False)))


class Arguments(dict[str, str]):
    """The arguments of a template by name; positional ones are "1", "2", ...; "0" is the template's own name."""

    writing = Writing()  # of the wiki's language

    def first(self, *names: str) -> str:
        """Return the first of these arguments that is not blank, stripped, or ""."""
        for name in names:
            if value := self.get(name, "").strip():
                return value
        return ""

    def positional(self, least: int = 0) -> list[str]:
        """Return the positional arguments, stripped, with "" at the end until there are ``least`` of them."""
        found: list[str] = []
        while (value := self.get(str(len(found) + 1))) is not None:
            found.append(value.strip())
        return found + [""] * (least - len(found))

    def given(self) -> list[str]:
        """Return the positional arguments that are not blank."""
        return [value for value in self.positional() if value]

    def yes(self, name: str) -> bool:
        """Return whether the argument ``name`` means yes to a template."""
        return self.first(name).lower() in ("y", "yes", "1", "true", "on", "dmy")


Renderer = Callable[[Arguments], str]
Rules = Mapping[str, Renderer | None]  # None: a template that is known to add no text


def template_name(start: str) -> str:
    """Return the name of a template as the tables have it, from the text after its opening braces."""
    name = start.partition("|")[0].strip().replace("_", " ").lower()
    return name.removeprefix("template:").lstrip()


def template_text(inside: list[str], rules: Rules, writing: Writing) -> str:
    """Return the text that a template adds to the sentence, often "".

    ``inside`` is the text between its braces in parts: raw text and the text of inner templates in turn. The first
    part is raw text. ``rules`` and ``writing`` come from the wiki's language.
    """
    name = template_name(inside[0])
    rule = rules.get(name)
    if rule is None and name.startswith(_FAMILY_NAMES):
        rule = next(rule for prefix, rule in FAMILIES.items() if name.startswith(prefix))
    elif rule is None and ":" in name:  # a function: {{formatnum:1234}}
        rule = rules.get(name.partition(":")[0].rstrip() + ":")
    if not rule:
        return ""
    arguments = _arguments(inside)
    arguments.writing = writing
    return rule(arguments)


_ARGUMENT_TOKENS = re.compile(r"(\[\[|\]\]|\|)")
_PARAMETER_NAME = re.compile(r"[ \n\t]*+[\w .\-]{0,40}+\Z")


def _arguments(inside: list[str]) -> Arguments:
    if len(inside) == 1 and "[[" not in inside[0]:
        name, *values = inside[0].split("|")
    else:
        name, *values = _split_arguments(inside)
    arguments = Arguments({"0": name})
    count = 0
    for value in values:
        key, equals, named = value.partition("=")
        if equals and len(key) < 60 and _PARAMETER_NAME.match(key):
            arguments[key.strip().lower()] = named.strip()
        else:
            count += 1
            arguments[str(count)] = value
    return arguments


def _split_arguments(inside: list[str]) -> list[str]:
    """Split at bars that are not inside of links."""
    values: list[str] = []
    current: list[str] = []
    links = 0
    for index, piece in enumerate(inside):
        if index % 2:
            current.append(piece)
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
    return [*values, "".join(current)]


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    return read_yaml(Path(__file__).with_name("template_words.yaml"))  # type: ignore[no-any-return]


@functools.cache
def _words(table: str) -> dict[str, str]:
    """Return a table of template_words.yaml, from codes to words."""
    return {code: word for word, codes in _tables()[table].items() for code in codes}


# ---------------------------------------------------------------------------------------------------
# Templates that show an argument, or all of them.


def _text(args: Arguments) -> str:
    return args.get("1") or args.get("text", "")


def _last(args: Arguments) -> str:
    """Return the last positional argument that is not blank: {{transl|ar|ALA|kitab}} -> kitab."""
    return (args.given() or [""])[-1]


def _joined(args: Arguments) -> str:
    return "".join(args.positional())


def _music(args: Arguments) -> str:
    return _words("accidentals").get(args.first("1").lower(), "")


def _sic(args: Arguments) -> str:
    return _joined(args) or ("" if args.yes("hide") else "&#91;sic&#93;")


# ---------------------------------------------------------------------------------------------------
# Blocks: text that becomes a paragraph of its own.


def _items(args: Arguments) -> str:
    items = "\n".join(f"* {value}" for value in args.given())
    return f"\n{items}\n" if items else ""


def _inline_list(args: Arguments) -> str:
    return ", ".join(value.strip("* \n").replace("\n*", ", ") for value in args.given())


def _block(args: Arguments) -> str:
    """Return a block of lines; a number among the arguments is a number of columns."""
    content = next((value for value in args.given() if not value.isdecimal()), args.get("content", ""))
    return f"\n{content}\n" if content else ""


# ---------------------------------------------------------------------------------------------------
# Other languages. MediaWiki shows {{lang-de|Wort}} as "German: Wort".


def _language_text(code: str, args: Arguments) -> str:
    if code == "zh":
        return _chinese(args)
    word = args.first("1", "text")
    name = _words("languages").get(code) or _words("languages").get(code.partition("-")[0])
    return f"{name}: {word}" if word and name and args.get("label", "") != "none" and args.writing.english else word


def _language_in_name(args: Arguments) -> str:
    """{{lang-de|Wort}}"""
    return _language_text(args["0"].strip().lower().partition("-")[2], args)


def _langx(args: Arguments) -> str:
    """{{langx|de|Wort}}"""
    code, args["1"] = args.first("1").lower(), args.get("2", "")
    return _language_text(code, args)


def _labelled(table: str, alone: str) -> Renderer:
    """Make a renderer of labelled arguments: {{zh|c=牌照|p=pái zhào}} -> Chinese: 牌照; pinyin: pái zhào.

    ``table`` is one of template_words.yaml. ``alone`` is the label of a single argument without a name.
    """

    def render(args: Arguments) -> str:
        with_labels = args.first("labels") != "no" and args.writing.english
        found = []
        for key, label in _tables()[table].items():
            value = args.first(key)
            if value and label.endswith("."):
                value = f"{label} '{value}'" if with_labels else f"'{value}'"
            elif value and with_labels:
                value = f"{label}: {value}"
            if value:
                found.append(value)
        if not found and (word := args.first("1")):
            found.append(f"{alone}: {word}" if alone and with_labels else word)
        return "; ".join(found)

    return render


_chinese = _labelled("chinese", alone="Chinese")
_korean = _labelled("korean", alone="")


def _japanese(args: Arguments) -> str:
    """{{nihongo|English|kanji|romaji|more}} -> English (kanji, romaji, more)."""
    english, kanji, romaji, *more = args.positional(3)
    if not english:
        english, romaji = romaji, ""
    inside = ", ".join(value for value in (kanji, romaji, *more, args.first("extra")) if value)
    return f"{english} ({inside})" if english and inside else english or inside


_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[a-z]+)?\Z")


def _interlanguage_link(args: Arguments) -> str:
    first, second, third, fourth = args.positional(4)[:4]
    if args.first("lt"):
        return args["lt"]
    if second and _LANGUAGE_CODE.match(first) and not _LANGUAGE_CODE.match(second):
        # the form before 2015: language, foreign title, local title, text
        return fourth or third or second
    return first


def _sound(text: str, delimited: bool = True) -> str:
    """Return a pronunciation with its marks, in [ ] unless it is ``delimited`` or has delimiters of its own."""
    shown = text if delimited or text[:1] in "[/⟨" else f"&#91;{text}&#93;"
    return f"{SOUND}{shown}{END_SOUND}" if shown else ""


def _ipa(args: Arguments) -> str:
    """Return the only argument as it is. After a language, return the second one, in [ ] unless it is delimited."""
    return _sound(args.first("2"), delimited=False) or _sound(args.first("1"))


def _pronunciation(args: Arguments) -> str:
    return _sound(args.first("1"), delimited=False)


def _respelling(args: Arguments) -> str:
    return f"{SOUND}{'-'.join(args.positional())}{END_SOUND}"


# ---------------------------------------------------------------------------------------------------
# Dates.


def _date_text(year: str, month: str, day: str, *, day_first: bool) -> str:
    month = _words("months").get(month.lstrip("0"), month)
    day = day.lstrip("0")
    if not month:
        return year
    if not day:
        return f"{month} {year}".strip()
    return f"{day} {month} {year}".strip() if day_first else f"{month} {day}, {year}".strip(", ")


def _date(args: Arguments) -> str:
    """Return a date given as year, month, day. An age is left out because it depends on the day of reading."""
    year, month, day = (args.first(key) for key in "123")
    return _date_text(year, month, day, day_first=args.yes("df")) if year.isdecimal() else year


def _as_of(args: Arguments) -> str:
    if args.first("alt"):
        return args["alt"]
    word = "since" if args.yes("since") else "as of"
    word = word if args.yes("lc") else word.capitalize()
    year, month, day = (args.first(key) for key in "123")
    date = _date_text(year, month, day, day_first=args.first("df").upper() != "US")
    return (date if args.yes("bare") else f"{word} {date}".rstrip()) + args.get("post", "")


def _before_christ(args: Arguments) -> str:
    year = next((value for value in args.given() if value != "link"), "")
    return f"{year} BCE".strip()


# ---------------------------------------------------------------------------------------------------
# Numbers, formulas, money.

_SUPERSCRIPT = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")


def formatted_number(args: Arguments) -> str:
    """{{formatnum:1234}}"""
    number, how = args["0"].partition(":")[2], args.first("1").lower()
    if how in args.writing.raw:
        return args.writing.read(number)
    return args.writing.number(number, grouped=how not in args.writing.plain)


def _fraction(args: Arguments) -> str:
    values = args.positional()
    if len(values) > 2:
        return f"{JOINT}{values[0]} {values[1]}/{values[2]}"
    if len(values) == 2:
        return f"{JOINT}{values[0]}/{values[1]}"
    return f"{JOINT}1/{values[0]}" if values and values[0] else "/"


def _raised(text: str) -> str:
    """Return an exponent or a charge in superscript, and a text that is too long for one unchanged."""
    return text.translate(_SUPERSCRIPT) if len(text) <= 100 else text


_UNIT_EXPONENT = re.compile(r"(?<=[A-Za-z])([-−]?\d)\b")


_EXPONENT = re.compile(r"(.{0,40})[eE]([+\-−]?\d{1,9})\Z", re.DOTALL)


def _value(args: Arguments) -> str:
    """{{val|1234567|0.5|u=km}} -> 1,234,567±0.5 km; {{val|5.2e6}} -> 5.2×10⁶."""
    number, uncertainty, below = args.positional(3)[:3]
    in_number = _EXPONENT.match(number)
    number, exponent = in_number.groups() if in_number else (number, args.first("e"))
    number = args.writing.number(number)
    if uncertainty and below:
        number += f" +{uncertainty} −{below}"
    elif uncertainty:
        number += uncertainty if uncertainty.startswith("(") else f"±{uncertainty}"
    if exponent:
        number += f"×10{_raised(exponent.lstrip('+'))}"
    unit = _UNIT_EXPONENT.sub(lambda match: _raised(match[1]), args.first("u", "ul")[:60])
    if per := args.first("up", "upl"):
        unit += f"/{per}"
    if unit and unit not in ("%", "°"):
        unit = f" {unit}"
    return f"{args.first('p')}{number}{args.first('s')}{unit}"


def _ordinal(args: Arguments) -> str:
    number = args.first("1")
    if not number.isdecimal():
        return number
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return number + ("th" if number[-2:] in ("11", "12", "13") else ending)


_MASS = re.compile(r"\d{1,4}\Z")
_CHARGE = re.compile(r"\d{0,4}[+\-−]\Z")


def _chemical(args: Arguments) -> str:
    """{{chem|Ge|9|4-}} -> Ge9⁴⁻; {{chem|40|Ar}} -> ⁴⁰Ar."""
    return "".join(
        _raised(value) if _CHARGE.match(value) or (not index and _MASS.match(value)) else value
        for index, value in enumerate(args.given())
    )


# In chem2, charges are in brackets, and isotopes are written as in TeX: ^{235}U, SO4(2-).
_CHEM2_RAISED = re.compile(r"\((\d{0,4}[+\-−])\)|\^\{?([\d+\-−]{1,9})\}?|_\{?(\d{1,9})\}?")
_ARROWS = (("<->", "↔"), ("<=>", "⇌"), ("<-", "←"), ("->", "→"))


def _chemical_formula(args: Arguments) -> str:
    """{{chem2|SO4(2-)}} -> SO4²⁻; {{chem2|2 H2 + O2 -> 2 H2O}} -> 2 H2 + O2 → 2 H2O."""
    text = _joined(args)
    for written, arrow in _ARROWS:
        text = text.replace(written, arrow)
    return _CHEM2_RAISED.sub(lambda match: match[3] or _raised(match[1] or match[2]), text)


def _nuclide(args: Arguments) -> str:
    """{{nuclide|uranium|235}} -> ²³⁵U."""
    element, mass, charge = args.positional(3)[:3]
    return f"{_raised(mass)}{_words('elements').get(element.lower(), element)}{_raised(charge)}"


def _currency(args: Arguments) -> str:
    code = args.first("2", "type") or "usd"
    symbol = _words("currencies").get(code.lower())
    amount = args.writing.number(args.first("1"))
    return f"{symbol}{amount}" if symbol else f"{amount} {code}"


# ---------------------------------------------------------------------------------------------------
# Measures. Only the value that the editor wrote is kept, and not its conversion: the rounding rules of MediaWiki's
# module, with 4,000 lines, have changed over the years, and a number that we compute is not in the article.

_MEASURED = re.compile(r"[+\-−]?[\d.,]++(?:e[+\-−]?\d++)?(?:[+\-−]\d++)?(?://?\d++)?\Z")
_MIXED = re.compile(r"(\d)[+\-](\d+//?\d+)\Z")


class _Unit(NamedTuple):
    symbol: str
    one: str
    many: str


@functools.cache
def _units() -> dict[str, _Unit]:
    """Return the units of ``convert``; a plural that is not given adds an s."""
    parts = {code: text.split("; ") for code, text in _words("units").items()}
    return {code: _Unit._make(part if len(part) == 3 else [*part, f"{part[1]}s"]) for code, part in parts.items()}


_SCALED = re.compile(r"(e3|e6|e9|e12)([A-Za-z].*)")
_COMPOUND = {("ft", "in"), ("mi", "yd"), ("lb", "oz"), ("st", "lb"), ("mi", "chain"), ("yd", "ft")}


def _unit(code: str) -> _Unit:
    """Return a unit of ``convert``; the code stands for the symbol and the names of an unknown one."""
    units = _units()
    if code in units:
        return units[code]
    scaled = _SCALED.match(code)
    if scaled and scaled[2] in units:
        return _Unit._make(f"{_words('scales')[scaled[1]]} {text}" for text in units[scaled[2]])
    above, slash, below = code.partition("/")
    if slash and below:
        top, bottom = (units.get(half, _Unit(half, half, half)) for half in (above, below))
        return _Unit(f"{top.symbol}/{bottom.symbol}", f"{top.one} per {bottom.one}", f"{top.many} per {bottom.one}")
    return _Unit(code, code, code)


def _measured(value: str, writing: Writing) -> str:
    mantissa, e, exponent = _MIXED.sub(r"\1 \2", value[:60]).replace("//", "/").partition("e")
    return writing.number(mantissa) + (f"×10{_raised(exponent)}" if e else "")


def _convert(args: Arguments) -> str:
    """{{convert|2|to|10|in|mm|abbr=on}} -> 2 to 10 in."""
    values, ranges = args.positional(), _words("ranges")
    text = ""
    index = 0
    while index < len(values) and _MEASURED.match(values[index]):
        text += _measured(values[index], args.writing)
        index += 1
        separator, following = [*values[index : index + 2], "", ""][:2]
        if separator not in ranges or not _MEASURED.match(following):
            break
        text += ranges[separator]
        index += 1
    if not text or index >= len(values):
        return text or _joined(args)
    code, number, second = [*values[index : index + 3], "", ""][:3]
    units = [(code, "")]
    if (code, second) in _COMPOUND and _MEASURED.match(number):
        units.append((second, _measured(number, args.writing)))
    short = args["0"].strip().lower() == "cvt" or not args.writing.english
    abbreviation = args.first("abbr") or ("on" if short else "")
    if abbreviation in ("none", "values"):
        return text
    adjective = args.first("adj")
    last = values[index - 1]
    one_of_them = last in ("1", "-1", "−1") or last.startswith(("1/", "0."))
    for code, number in units:
        symbol, one, many = _unit(code)
        text += f" {number}" if number else ""
        if abbreviation in ("on", "in", "~") or symbol[:1] == "°" or symbol == one == many:
            text += f" {symbol}"
            continue
        name = one if adjective in ("on", "mid", "pre") or (one_of_them and not number) else many
        if args.first("sp") == "us":
            name = name.replace("metre", "meter").replace("litre", "liter")
        text += f"-{name.replace(' ', '-')}" if adjective in ("on", "mid") else f" {name}"
        has_noun = index + 1 < len(values) and values[-1] not in _units() and not _MEASURED.match(values[-1])
        if adjective == "mid" and has_noun:
            text += f" {values[-1]}"
    return text


def _population_density(args: Arguments) -> str:
    try:
        people, area = (float(args.get(key, "").replace(",", "")) for key in "12")
        digits = min(9, max(0, int(args.get("prec") or 0)))
        density = f"{people / area:.{digits}f}"
    except (ValueError, ZeroDivisionError, OverflowError):
        return ""
    return f"{args.writing.number(density)}/{_unit(args.first('3')).symbol}"


_GAUGE = re.compile(r"([\d.]+)\s*(mm|m|ft|in)?")


def _rail_gauge(args: Arguments) -> str:
    gauge = _GAUGE.match(args.first("1"))
    return f"{args.writing.number(gauge[1])} {gauge[2] or 'mm'}" if gauge else _text(args)


def _coordinates(args: Arguments) -> str:
    """Return the position as text, unless it is only shown next to the title."""
    display = args.get("display", "inline")
    if "inline" not in display and display not in ("i", "it", "ti"):
        return ""
    values = list(takewhile(lambda value: value and ":" not in value, args.positional()[:8]))
    if len(values) == 2:
        return f"{values[0]}°, {values[1]}°"
    text = ""
    marks = iter("°′″")
    for value in values:
        if value in ("N", "S", "E", "W"):
            text += f"{value} "
            marks = iter("°′″")
        else:
            text += value + next(marks, "")
    return text.strip()


# ---------------------------------------------------------------------------------------------------
# Ships, sources that are part of the sentence, flags.


def _ship_name(prefix: str, name: str, hull: str, form: str) -> str:
    shown = _words("ship_forms").get(form, "{prefix} {name} ({hull})")
    if not hull:
        shown = "{name}" if form in ("2", "3", "5") else "{prefix} {name}"
    return shown.format(prefix=prefix, name=name, hull=hull).strip()


def _ship(args: Arguments) -> str:
    return _ship_name(*(args.first(key) for key in "1234"))


def _prefixed_ship(args: Arguments) -> str:
    """{{HMS|Ajax|22|6}}"""
    prefix = args["0"].strip().upper()
    return _ship_name("SM" if prefix == "SMU" else prefix, *(args.first(key) for key in "123"))


def _textual_citation(args: Arguments) -> str:
    """{{harvtxt|Boolos|Jeffrey|1974}} -> Boolos & Jeffrey (1974)."""
    *authors, year = args.positional() or [""]
    if not authors:
        return year
    if len(authors) > 3:
        return f"{authors[0]} et al. ({year})"
    names = " & ".join(part for part in (", ".join(authors[:-1]), authors[-1]) if part)
    return f"{names} ({year})"


# ---------------------------------------------------------------------------------------------------
# Phrases: text with arguments in it. {1} is an argument, {1/text} the first of two that is not blank, {1:,} a number
# with commas between thousands, {1:^} a superscript. Text in [...] is left out if an argument in it is blank. If one
# outside of [...] is blank, the whole phrase is left out.

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{([\w/]+)(?::([,^]))?\}")


def phrase(pattern: str) -> Renderer:
    """Return a renderer that fills a pattern's {...} with arguments; the comment above explains the form."""
    parts = [(part, [names.split("/") for names, _ in _FIELD.findall(part)]) for part in _OPTIONAL.split(pattern)]

    def render(args: Arguments) -> str:
        def shown(field: re.Match[str]) -> str:
            value, style = args.first(*field[1].split("/")), field[2]
            return args.writing.number(value) if style == "," else _raised(value) if style else value

        text = ""
        for index, (part, fields) in enumerate(parts):
            if all(args.first(*names) for names in fields):
                text += _FIELD.sub(shown, part)
            elif index % 2 == 0:  # outside of brackets
                return ""
        return text

    return render


# ---------------------------------------------------------------------------------------------------
# Renderers by the name of a template. language_en.yaml lists the other templates that they serve.

RENDERERS: dict[str, Renderer] = {
    "nowrap": _text, "w": _last, "linktext": _joined, "sic": _sic, "music": _music,
    "plainlist": _block, "ubl": _items, "hlist": _inline_list,
    "langx": _langx, "ill": _interlanguage_link, "nihongo": _japanese, "zh": _chinese, "korean": _korean,
    "ipa": _ipa, "audio-ipa": _pronunciation, "respell": _respelling,
    "as of": _as_of, "birth date": _date, "bce": _before_christ,
    "frac": _fraction, "val": _value, "ordinal": _ordinal, "currency": _currency,
    "chem": _chemical, "chem2": _chemical_formula, "nuclide": _nuclide,
    "convert": _convert, "pop density": _population_density, "railgauge": _rail_gauge, "coord": _coordinates,
    "uss": _prefixed_ship, "ship": _ship, "harvtxt": _textual_citation,
}  # fmt: skip
# Rules for all templates whose names begin with a prefix.
FAMILIES: dict[str, Renderer] = {"lang-": _language_in_name, "script/": _text, "ipa-": _pronunciation}
_FAMILY_NAMES = tuple(FAMILIES)
