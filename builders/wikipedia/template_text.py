"""The text that a template adds to its sentence.

Most templates (infoboxes, maintenance notes, citations) add none. The others are listed in RULES, at the end of
this module. To add a template, add its name to the row of a template that behaves alike, or a row with a phrase or
one of the renderers above it, and a case to tests/builders/wikipedia/test_plain_text.py.

Module ``languages`` adds the templates of other languages.

A renderer gets a template's arguments as wikitext and returns wikitext. Later passes resolve its links, quotes and
HTML, so it must escape all characters that are not markup, by entities. Its time must be proportional to the length of
its arguments: a pattern that can backtrack may only be applied to values of bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import takewhile

from temporalwiki.builders.wikipedia.words import words

# Marks that renderers leave in the text. No XML document can contain these characters.
SOUND, END_SOUND = "\x03", "\x04"  # around a pronunciation, which is dropped if it is in brackets
JOINT = "\x05"  # before a fraction: 1{{frac|1|4}} is 1 1/4 and not 11/4


class Arguments(dict[str, str]):
    """The arguments of a template by name; positional ones are "1", "2", ...; "0" is the template's own name."""

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
Rules = Mapping[str, Renderer]


def template_name(start: str) -> str:
    """Return the name of a template as the tables have it, from the text after its opening braces."""
    name = start.partition("|")[0].strip().replace("_", " ").lower()
    return name.removeprefix("template:").lstrip()


def template_text(inside: list[str], rules: Rules) -> str:
    """Return the text that a template adds to the sentence, often "".

    ``inside`` is the text between its braces in parts: raw text and the text of inner templates in turn. The first
    part is raw text. ``rules`` come from the wiki's language.
    """
    name = template_name(inside[0])
    rule = rules.get(name)
    if rule is None and name.startswith(_FAMILY_NAMES):
        rule = next(rule for prefix, rule in FAMILIES.items() if name.startswith(prefix))
    return rule(_arguments(inside)) if rule else ""


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


def _table(text: str) -> dict[str, str]:
    """Parse a table of "key,key value" entries, separated by | or line breaks."""
    entries = (entry.strip().partition(" ") for entry in text.replace("\n", "|").split("|"))
    return {key: value for keys, _, value in entries if value for key in keys.split(",")}


# ---------------------------------------------------------------------------------------------------
# Templates that show an argument, or all of them.


def _text(args: Arguments) -> str:
    return args.get("1") or args.get("text", "")


def _last(args: Arguments) -> str:
    """Return the last positional argument that is not blank: {{transl|ar|ALA|kitab}} -> kitab."""
    return (args.given() or [""])[-1]


def _joined(args: Arguments) -> str:
    return "".join(args.positional())


_ACCIDENTALS = {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "n": "♮"}


def _music(args: Arguments) -> str:
    return _ACCIDENTALS.get(args.first("1").lower(), "")


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

LANGUAGES = _table("""
    af Afrikaans|am Amharic|ar Arabic|arc Aramaic|ast Asturian|az Azerbaijani|be Belarusian|ber Berber|bg Bulgarian
    bn Bengali|bo Tibetan|br Breton|bs Bosnian|ca Catalan|ce Chechen|co Corsican|cs Czech|cy Welsh|da Danish
    de German|dv Maldivian|el,grc-gre Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian
    fi Finnish|fil Filipino|fo Faroese|fr French|fy West Frisian|ga Irish|gd Scottish Gaelic|gl Galician
    grc Ancient Greek|gsw Swiss German|gu Gujarati|gv Manx|ha Hausa|haw Hawaiian|he Hebrew|hi Hindi|hr Croatian
    ht Haitian Creole|hu Hungarian|hy Armenian|id Indonesian|ig Igbo|is Icelandic|it Italian|ja Japanese
    jv Javanese|ka Georgian|kk Kazakh|km Khmer|kn Kannada|ko Korean|ku Kurdish|kw Cornish|ky Kyrgyz|la Latin
    lb Luxembourgish|lo Lao|lt Lithuanian|lv Latvian|mg Malagasy|mi Maori|mk Macedonian|ml Malayalam|mn Mongolian
    mr Marathi|ms Malay|mt Maltese|my Burmese|nah Nahuatl|nds Low German|ne Nepali|nl Dutch|nn Norwegian Nynorsk
    no Norwegian|nv Navajo|nb Norwegian Bokmål|oc Occitan|or Odia|os Ossetian|ota Ottoman Turkish|pa Punjabi
    pl Polish|ps Pashto|pt Portuguese|qu Quechua|rm Romansh|ro Romanian|ru,rus Russian|sa Sanskrit|sc Sardinian
    scn Sicilian|sco Scots|sd Sindhi|se Northern Sami|sh Serbo-Croatian|si Sinhala|sk Slovak|sl Slovene|so Somali
    sq Albanian|sr Serbian|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|tk Turkmen|tl Tagalog
    tr Turkish|tt Tatar|ug Uyghur|uk Ukrainian|ur Urdu|uz Uzbek|vi Vietnamese|xh Xhosa|yi Yiddish|yo Yoruba|zu Zulu
""")


def _language_text(code: str, args: Arguments) -> str:
    if code == "zh":
        return _chinese(args)
    word = args.first("1", "text")
    name = LANGUAGES.get(code) or LANGUAGES.get(code.partition("-")[0])
    return f"{name}: {word}" if word and name and args.get("label", "") != "none" else word


def _language_in_name(args: Arguments) -> str:
    """{{lang-de|Wort}}"""
    return _language_text(args["0"].strip().lower().partition("-")[2], args)


def _langx(args: Arguments) -> str:
    """{{langx|de|Wort}}"""
    return _language_text(args.first("1").lower(), Arguments({**args, "1": args.get("2", "")}))


def _labelled(parts: tuple[tuple[str, str], ...], alone: str) -> Renderer:
    """Make a renderer of labelled arguments: {{zh|c=牌照|p=pái zhào}} -> Chinese: 牌照; pinyin: pái zhào.

    ``alone`` is the label of a single argument without a name. A label that ends with a full stop precedes a
    translation, which is quoted.
    """

    def render(args: Arguments) -> str:
        with_labels = args.first("labels") != "no"
        found = []
        for key, label in parts:
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


_chinese = _labelled(
    (
        ("s", "simplified Chinese"), ("t", "traditional Chinese"), ("c", "Chinese"), ("p", "pinyin"),
        ("w", "Wade–Giles"), ("j", "Jyutping"), ("cy", "Cantonese Yale"), ("poj", "Pe̍h-ōe-jī"),
        ("l", "lit."), ("tr", "trans."),
    ),
    alone="Chinese",
)  # fmt: skip
_korean = _labelled(
    (("hangul", "Korean"), ("hanja", "Hanja"), ("rr", "RR"), ("mr", "MR"), ("lit", "lit.")),
    alone="",
)


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


def _ipa(args: Arguments) -> str:
    """Return the only argument as it is. After a language, return the second one, in [ ] unless it is delimited."""
    sound = args.first("2")
    shown = f"&#91;{sound}&#93;" if sound and sound[0] not in "[/⟨" else sound or args.first("1")
    return f"{SOUND}{shown}{END_SOUND}" if shown else ""


def _pronunciation(args: Arguments) -> str:
    sound = args.first("1")
    if not sound:
        return ""
    if sound[0] not in "[/⟨":
        sound = f"&#91;{sound}&#93;"
    return f"{SOUND}{sound}{END_SOUND}"


def _respelling(args: Arguments) -> str:
    return f"{SOUND}{'-'.join(args.positional())}{END_SOUND}"


# ---------------------------------------------------------------------------------------------------
# Dates.

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def _date_text(year: str, month: str, day: str, *, day_first: bool) -> str:
    if len(month) < 9 and month.isdecimal() and 1 <= int(month) <= 12:
        month = _MONTHS[int(month) - 1]
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
_PLAIN_NUMBER = re.compile(r"([+\-−]?)(\d+)(\.\d*)?\Z")
_THOUSANDS_BOUND = re.compile(r"(?<=\d)(?=(?:\d{3})+\Z)")


def _thousands(number: str) -> str:
    """Return a plain number with commas between thousands and a true minus sign, and anything else unchanged."""
    number = number.strip()
    plain = _PLAIN_NUMBER.match(number) if len(number) <= 40 else None
    if not plain:
        return number
    sign, whole, decimals = plain.groups("")
    if len(whole) > 3:
        whole = _THOUSANDS_BOUND.sub(",", whole)
    return sign.replace("-", "−") + whole + decimals


def _formatted_number(args: Arguments) -> str:
    """{{formatnum:1234}}"""
    return _thousands(args["0"].partition(":")[2])


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
    number = _thousands(number)
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


ELEMENTS = _table("""
    hydrogen H|helium He|lithium Li|beryllium Be|boron B|carbon C|nitrogen N|oxygen O|fluorine F|neon Ne|sodium Na
    magnesium Mg|aluminium,aluminum Al|silicon Si|phosphorus P|sulfur,sulphur S|chlorine Cl|argon Ar|potassium K
    calcium Ca|scandium Sc|titanium Ti|vanadium V|chromium Cr|manganese Mn|iron Fe|cobalt Co|nickel Ni|copper Cu
    zinc Zn|gallium Ga|germanium Ge|arsenic As|selenium Se|bromine Br|krypton Kr|rubidium Rb|strontium Sr|yttrium Y
    zirconium Zr|niobium Nb|molybdenum Mo|technetium Tc|ruthenium Ru|rhodium Rh|palladium Pd|silver Ag|cadmium Cd
    indium In|tin Sn|antimony Sb|tellurium Te|iodine I|xenon Xe|caesium,cesium Cs|barium Ba|lanthanum La|cerium Ce
    praseodymium Pr|neodymium Nd|promethium Pm|samarium Sm|europium Eu|gadolinium Gd|terbium Tb|dysprosium Dy
    holmium Ho|erbium Er|thulium Tm|ytterbium Yb|lutetium Lu|hafnium Hf|tantalum Ta|tungsten W|rhenium Re|osmium Os
    iridium Ir|platinum Pt|gold Au|mercury Hg|thallium Tl|lead Pb|bismuth Bi|polonium Po|astatine At|radon Rn
    francium Fr|radium Ra|actinium Ac|thorium Th|protactinium Pa|uranium U|neptunium Np|plutonium Pu|americium Am
    curium Cm|berkelium Bk|californium Cf|einsteinium Es|fermium Fm|mendelevium Md|nobelium No|lawrencium Lr
    rutherfordium Rf|dubnium Db|seaborgium Sg|bohrium Bh|hassium Hs|meitnerium Mt|darmstadtium Ds|roentgenium Rg
    copernicium Cn|nihonium Nh|flerovium Fl|moscovium Mc|livermorium Lv|tennessine Ts|oganesson Og
""")


def _nuclide(args: Arguments) -> str:
    """{{nuclide|uranium|235}} -> ²³⁵U."""
    element, mass, charge = args.positional(3)[:3]
    return f"{_raised(mass)}{ELEMENTS.get(element.lower(), element)}{_raised(charge)}"


CURRENCIES = _table("""
    usd,us US$|gbp £|eur €|jpy ¥|inr ₹|krw ₩|aud A$|cad C$|nzd NZ$|hkd HK$|sgd S$|cny CN¥|rub ₽|try ₺|ils ₪|php ₱
    ngn ₦|uah ₴|vnd ₫|brl R$|zar R
""")


def _currency(args: Arguments) -> str:
    code = args.first("2", "type") or "usd"
    symbol = CURRENCIES.get(code.lower())
    amount = _thousands(args.first("1"))
    return f"{symbol}{amount}" if symbol else f"{amount} {code}"


# ---------------------------------------------------------------------------------------------------
# Measures. Only the value that the editor wrote is kept, and not its conversion: the rounding rules of MediaWiki's
# module, with 4,000 lines, have changed over the years, and a number that we compute is not in the article.

_RANGES = {
    "-": "–", "–": "–", "—": "–", "to": " to ", "to(-)": " to ", "and": " and ", "and(-)": " and ", "or": " or ",
    "x": " × ", "×": " × ", "by": " by ", "xx": " × ", "+/-": " ± ", "±": " ± ", "+": " + ", ",": ", ",
    ", and": ", and ", ", or": ", or ", "&": " & ", "to about": " to about ",
}  # fmt: skip
_MEASURED = re.compile(r"[+\-−]?[\d.,]++(?:e[+\-−]?\d++)?(?:[+\-−]\d++)?(?://?\d++)?\Z")
_MIXED = re.compile(r"(\d)[+\-](\d+//?\d+)\Z")


def _named_unit(entry: str) -> tuple[str, str, str]:
    symbol, one, many = (f"{entry} {entry.split()[1]}s".split())[:3]
    return symbol.replace("_", " "), one.replace("_", " "), many.replace("_", " ")


# Codes, then symbol, singular and plural (if it does not just add an s), with _ for spaces.
UNITS = {
    code.replace("_", " "): _named_unit(entry)
    for code, entry in _table("""
    m m metre|km km kilometre|cm cm centimetre|mm mm millimetre|um,μm μm micrometre|nm nm nanometre|dm dm decimetre
    hm hm hectometre|mi,miles mi mile|yd yd yard|ft,foot,feet ft foot feet|in in inch inches|nmi nmi nautical_mile
    fathom fathom fathom|furlong furlong furlong|chain chain chain|hand h hand|ly ly light-year
    AU AU astronomical_unit|au au astronomical_unit|pc pc parsec|m2,sqm m² square_metre
    km2,sqkm km² square_kilometre|cm2 cm² square_centimetre|mm2 mm² square_millimetre|sqmi,mi2 sq_mi square_mile
    sqft,ft2 sq_ft square_foot square_feet|sqyd sq_yd square_yard|sqin sq_in square_inch square_inches
    acre,acres acres acre|ha ha hectare|m3 m³ cubic_metre|km3 km³ cubic_kilometre|cm3 cm³ cubic_centimetre
    cc cc cubic_centimetre|cuft,ft3 cu_ft cubic_foot cubic_feet|cuin cu_in cubic_inch cubic_inches
    cuyd cu_yd cubic_yard|cumi cu_mi cubic_mile|L L litre|l l litre|mL mL millilitre|ml ml millilitre
    impgal imp_gal imperial_gallon|USgal US_gal US_gallon|U.S.gal U.S._gal U.S._gallon|USoz US_fl_oz US_fluid_ounce
    acre.ft acre⋅ft acre-foot acre-feet|oilbbl,bbl bbl barrel
    koilbbl thousand_bbl thousand_barrels thousand_barrels|Moilbbl million_bbl million_barrels million_barrels
    Goilbbl billion_bbl billion_barrels billion_barrels|g g gram|kg kg kilogram|mg mg milligram|t t tonne
    MT t metric_ton|lb,lbs lb pound|oz oz ounce|ozt ozt troy_ounce|st st stone stone|LT,long_ton long_tons long_ton
    ST,short_ton short_tons short_ton|kt kt kilotonne|carat carat carat|gr gr grain
    km/h,kph km/h kilometre_per_hour kilometres_per_hour|mph,mi/h mph mile_per_hour miles_per_hour
    m/s m/s metre_per_second metres_per_second|kn,knot kn knot|ft/s ft/s foot_per_second feet_per_second
    km/s km/s kilometre_per_second kilometres_per_second|C,C-change,°C °C °C °C|F,F-change,°F °F °F °F|K K K K
    W W watt|kW kW kilowatt|MW MW megawatt|GW GW gigawatt|hp hp horsepower horsepower
    bhp bhp brake_horsepower brake_horsepower|PS PS metric_horsepower metric_horsepower
    shp shp shaft_horsepower shaft_horsepower|J J joule|kJ kJ kilojoule|MJ MJ megajoule|kcal kcal kilocalorie
    cal cal calorie|eV eV electronvolt|Wh Wh watt-hour|kWh kWh kilowatt-hour|MWh MWh megawatt-hour
    GWh GWh gigawatt-hour|TWh TWh terawatt-hour|N N newton|kN kN kilonewton|Nm,N.m N⋅m newton-metre
    lbf lbf pound-force pounds-force|lbft,lb.ft lb⋅ft pound-foot pound-feet|lbfft lbf⋅ft pound-foot pound-feet
    Pa Pa pascal|kPa kPa kilopascal|MPa MPa megapascal|GPa GPa gigapascal|hPa hPa hectopascal|bar bar bar
    mbar mbar millibar|psi psi pound_per_square_inch pounds_per_square_inch|atm atm standard_atmosphere
    inHg inHg inch_of_mercury inches_of_mercury|mmHg mmHg millimetre_of_mercury millimetres_of_mercury
    Hz Hz hertz hertz|kHz kHz kilohertz kilohertz|MHz MHz megahertz megahertz|s s second|min min minute|h h hour
    d,day d day|year year year|a a year|mpgus mpg‑US mile_per_US_gallon miles_per_US_gallon
    mpgimp mpg‑imp mile_per_imperial_gallon miles_per_imperial_gallon
    L/100km L/100_km litre_per_100_kilometres litres_per_100_kilometres
    USgal/min US_gal/min US_gallon_per_minute US_gallons_per_minute
    PD/km2 inhabitants/km² inhabitant_per_square_kilometre inhabitants_per_square_kilometre
    PD/sqmi inhabitants/sq_mi inhabitant_per_square_mile inhabitants_per_square_mile
    """).items()
}
_SCALES = {"e3": "thousand", "e6": "million", "e9": "billion", "e12": "trillion"}
_SCALED = re.compile(r"(e3|e6|e9|e12)([A-Za-z].*)")
_COMPOUND = {("ft", "in"), ("mi", "yd"), ("lb", "oz"), ("st", "lb"), ("mi", "chain"), ("yd", "ft")}


def _unit(code: str) -> tuple[str, str, str]:
    """Return symbol, singular and plural of a unit of ``convert``, or the code three times if it is unknown."""
    if code in UNITS:
        return UNITS[code]
    scaled = _SCALED.match(code)
    if scaled and scaled[2] in UNITS:
        word = _SCALES[scaled[1]]
        symbol, one, many = UNITS[scaled[2]]
        return f"{word} {symbol}", f"{word} {one}", f"{word} {many}"
    above, slash, below = code.partition("/")
    if slash and below:
        top, bottom = UNITS.get(above, (above,) * 3), UNITS.get(below, (below,) * 3)
        return f"{top[0]}/{bottom[0]}", f"{top[1]} per {bottom[1]}", f"{top[2]} per {bottom[1]}"
    return code, code, code


def _measured(value: str) -> str:
    mantissa, e, exponent = _MIXED.sub(r"\1 \2", value[:60]).replace("//", "/").partition("e")
    return _thousands(mantissa) + (f"×10{_raised(exponent)}" if e else "")


def _convert(args: Arguments) -> str:
    """{{convert|2|to|10|in|mm|abbr=on}} -> 2 to 10 in."""
    values = args.positional()
    text = ""
    index = 0
    while index < len(values) and _MEASURED.match(values[index]):
        text += _measured(values[index])
        index += 1
        separator, following = [*values[index : index + 2], "", ""][:2]
        if separator not in _RANGES or not _MEASURED.match(following):
            break
        text += _RANGES[separator]
        index += 1
    if not text or index >= len(values):
        return text or _joined(args)
    code, number, second = [*values[index : index + 3], "", ""][:3]
    units = [(code, "")]
    if (code, second) in _COMPOUND and _MEASURED.match(number):
        units.append((second, _measured(number)))
    abbreviation = args.first("abbr") or ("on" if args["0"].strip().lower() == "cvt" else "")
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
        has_noun = index + 1 < len(values) and values[-1] not in UNITS and not _MEASURED.match(values[-1])
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
    return f"{_thousands(density)}/{_unit(args.first('3'))[0]}"


_GAUGE = re.compile(r"([\d.]+)\s*(mm|m|ft|in)?")


def _rail_gauge(args: Arguments) -> str:
    gauge = _GAUGE.match(args.first("1"))
    return f"{_thousands(gauge[1])} {gauge[2] or 'mm'}" if gauge else _text(args)


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

# The parts of the name that each number in the template's last argument selects; without it, all parts are shown.
_SHIP_FORMS = {
    "1": "{hull}", "2": "{name}", "3": "{name} ({hull})", "4": "{prefix} {hull}", "5": "{name}", "6": "{prefix} {name}"
}  # fmt: skip


def _ship_name(prefix: str, name: str, hull: str, form: str) -> str:
    shown = _SHIP_FORMS.get(form, "{prefix} {name} ({hull})")
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


# Flag templates named by a country code, {{DEU}}: ISO 3166 codes and the Olympic ones where they differ.
COUNTRIES = _table("""
    AFG Afghanistan|AGO,ANG Angola|ALB Albania|ALG,DZA Algeria|AND Andorra|ARE,UAE United Arab Emirates
    ARG Argentina|ARM Armenia|AUS Australia|AUT Austria|AZE Azerbaijan|BAN,BGD Bangladesh|BEL Belgium|BEN Benin
    BGR,BUL Bulgaria|BHR Bahrain|BHS Bahamas|BIH Bosnia and Herzegovina|BLR Belarus|BLZ Belize|BMU Bermuda
    BOL Bolivia|BRA Brazil|BRB Barbados|BRN Brunei|BTN Bhutan|BWA Botswana|CAN Canada|CHE,SUI Switzerland
    CHI,CHL Chile|CHN,PRC China|CIV Ivory Coast|CMR Cameroon|COD Democratic Republic of the Congo
    COG Republic of the Congo|COL Colombia|CPV Cape Verde|CRC,CRI Costa Rica|CRO,HRV Croatia|CUB Cuba|CYP Cyprus
    CZE Czech Republic|DEN,DNK Denmark|DEU,GER Germany|DOM Dominican Republic|ECU Ecuador|EGY Egypt
    ESH Western Sahara|ESP Spain|EST Estonia|ETH Ethiopia|FIN Finland|FJI Fiji|FLK Falkland Islands|FRA France
    FRO Faroe Islands|GAB Gabon|GBR United Kingdom|GEO Georgia|GHA Ghana|GIN Guinea|GMB Gambia|GNB Guinea-Bissau
    GNQ Equatorial Guinea|GRC,GRE Greece|GRL Greenland|GTM Guatemala|GUY Guyana|HKG Hong Kong|HND Honduras
    HTI Haiti|HUN Hungary|IDN Indonesia|IND India|IRL Ireland|IRN Iran|IRQ Iraq|ISL Iceland|ISR Israel|ITA Italy
    JAM Jamaica|JOR Jordan|JPN Japan|KAZ Kazakhstan|KEN Kenya|KGZ Kyrgyzstan|KHM Cambodia|KOR South Korea
    KSA,SAU Saudi Arabia|KWT Kuwait|LAO Laos|LAT,LVA Latvia|LBN Lebanon|LBR Liberia|LBY Libya|LIE Liechtenstein
    LKA Sri Lanka|LTU Lithuania|LUX Luxembourg|MAC Macau|MAR Morocco|MAS,MYS Malaysia|MCO Monaco|MDA Moldova
    MDG Madagascar|MDV Maldives|MEX Mexico|MKD Macedonia|MLI Mali|MLT Malta|MMR Myanmar|MNE Montenegro|MNG Mongolia
    MOZ Mozambique|MRT Mauritania|MUS Mauritius|NAM Namibia|NED,NLD Netherlands|NER Niger|NGA Nigeria|NIC Nicaragua
    NOR Norway|NPL Nepal|NZL New Zealand|OMN Oman|PAK Pakistan|PAN Panama|PER Peru|PHI,PHL Philippines|POL Poland
    POR,PRT Portugal|PRK North Korea|PRY Paraguay|PSE Palestine|QAT Qatar|ROM,ROU Romania|RSA,ZAF South Africa
    RUS Russia|RWA Rwanda|SCO Scotland|SEN Senegal|SGP,SIN Singapore|SLE Sierra Leone|SLO,SVN Slovenia
    SLV El Salvador|SOM Somalia|SRB Serbia|SUD,SDN Sudan|SUR Suriname|SVK Slovakia|SWE Sweden|SYR Syria|TCD Chad
    TGO Togo|THA Thailand|TJK Tajikistan|TKM Turkmenistan|TTO Trinidad and Tobago|TUN Tunisia|TUR Turkey|TWN Taiwan
    TZA Tanzania|UGA Uganda|UKR Ukraine|URS Soviet Union|URU,URY Uruguay|USA United States|UZB Uzbekistan
    VEN Venezuela|VIE,VNM Vietnam|WAL Wales|YEM Yemen|YUG Yugoslavia|ZMB Zambia|ZWE Zimbabwe
""")

# ---------------------------------------------------------------------------------------------------
# Phrases: text with arguments in it. {1} is an argument, {1/text} the first of two that is not blank, {1:,} a number
# with commas between thousands, {1:^} a superscript. Text in [...] is left out if an argument in it is blank. If one
# outside of [...] is blank, the whole phrase is left out.

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{([\w/]+)(?::([,^]))?\}")
_STYLES: dict[str | None, Callable[[str], str]] = {None: str, ",": _thousands, "^": _raised}


def phrase(pattern: str) -> Renderer:
    """Return a renderer that fills a pattern's {...} with arguments; the comment above explains the form."""
    parts = [(part, [names.split("/") for names, _ in _FIELD.findall(part)]) for part in _OPTIONAL.split(pattern)]

    def render(args: Arguments) -> str:
        text = ""
        for index, (part, fields) in enumerate(parts):
            if all(args.first(*names) for names in fields):
                text += _FIELD.sub(lambda field: _STYLES[field[2]](args.first(*field[1].split("/"))), part)
            elif index % 2 == 0:  # outside of brackets
                return ""
        return text

    return render


# ---------------------------------------------------------------------------------------------------
# The rules: names of templates, in lower case and separated by |, and the phrase or renderer for their text. Redirects
# to the same template share a row. A template without a rule adds no text.

RULES: tuple[tuple[str, str | Renderer], ...] = (
    # The text itself, with some formatting.
    (
        "nowrap|nobr|nobreak|avoid wrap|j|small|smaller|big|larger|large|huge|resize|sup|sub|center|strong|em"
        "|smallcaps|sc|sc1|sc2|smcaps|allcaps|uppercase|caps|mono|monospace|code|kbd|samp|var|mvar|math|bigmath|overline"
        "|underline|u|strike|del|ins|highlight|noitalic|no italic|not italic|nobold|normal|serif|sans-serif|keypress"
        "|key press|key|isolate|bdi",
        _text,
    ),
    ("unicode|polytonic|iast|pie|hebrew|he|arabic|nq|nastaliq|urdu|transcription", _text),
    ("abbr|abbrv|tooltip|hover title|h:title|dfn", _text),
    ("visible anchor|vanchor|vanc|anchor text|format link|nsmdns|tq|dp|lcons|screen reader-only", _text),
    ("citation needed span|cn-span|cnspan|cns|cl-span|clarify span|clarify-span|dubious span", _text),
    ("flag|flagcountry|flagu|flag+link|flagteam|flaglist", _text),
    (
        "by|mlby|mlb year|baseball year|nfly|nfl year|nbay|nba year|nhly|nhl year|wsy|mlsy|scy|cfby|cfb year|afly|f1"
        "|24hlm|nhl season|alcsy|nlcsy|wnbay|nihongo2|ipalink|ipa link|nihongo foot",
        _text,
    ),
    ("lang|rtl-lang|rtl lang|ltr-lang|script|wikt-lang|color|font color|colour|textcolor|sort", "{2/text}"),
    ("w|wikilink", _last),
    ("transl|translit|translation|tlit|transliteration|trans|text color|lang-trans", _last),
    ("linktext|not a typo|notatypo|as written|mpl|mp|mp-|mpl-|gaps|proper name", _joined),
    # Other languages.
    ("langx", _langx),
    ("ill|ill2|interlanguage link|interlanguage link multi|link-interwiki|illm|ill-wd", _interlanguage_link),
    ("nihongo|nihongo4|nihongo core|nihongo krt", _japanese),
    ("zh|lang-zh|chinese|zh-cn|zh-full", _chinese),
    ("korean|ko-hhrm|lang-ko text", _korean),
    ("ipa", _ipa),
    ("audio-ipa", _pronunciation),
    ("ipablink", "&#91;{1}&#93;"),
    ("ipaslink", "/{1}/"),
    ("respell|pronunciation respelling key", _respelling),
    ("angbr|angle bracket|angbr ipa|vr", "⟨{1}⟩"),
    # Words and dates.
    ("sic|sic?", _sic),
    ("aside", " — {1} — "),
    ("née|nee", "née[ {1}]"),
    ("circa|c.|ca.|ca", "c.[ {1}][–{2}]"),
    ("floruit|fl.", "fl.[ {1}][–{2}]"), ("reign", "r.[ {1}][–{2}]"), ("bc", "{1} BC"),
    ("dash year|year range", "{1}[–{2}]"),
    ("as of|asof", _as_of),
    (
        "birth date|birth-date|birthdate|dob|bda|birth date and age|birth-date and age|birthdate and age|death date"
        "|death-date|death date and age|death-date and age|dda|start date|start-date|end date|film date"
        "|start date and age|date|dts|birth year and age|birth year|launch date|event date|release date",
        _date,
    ),
    ("oldstyledate|old style date|oldstyledatedy", "{1}[ &#91;O.S. {3}&#93;][ {2}]"),
    ("oldstyledateny", "{1}[ &#91;O.S. {2}&#93;]"),
    ("bce", _before_christ),
    ("ma|mya", "{1} million years ago"),
    # Numbers, formulas, money.
    ("frac|fraction|sfrac", _fraction),
    ("val|value", _value),
    ("e|×10^|10^", "×10{1:^}"),
    ("ordinal|nth", _ordinal),
    ("format price|formatprice|number|nts|formatnum", "{1:,}"),
    ("chem|chemf|chemical formula", _chemical),
    ("chem2", _chemical_formula),
    ("nuclide|nuclide2|simplenuclide|simplenuclide2|isotope", _nuclide),
    ("solar mass", "M☉"), ("solar radius", "R☉"), ("solar luminosity", "L☉"),
    ("su|subsup|supsub", "[{b}][{p:^}]"),
    ("radic|sqrt", "√{1}"),
    ("closed-closed", "&#91;{1}&#93;"), ("closed-open", "&#91;{1})"), ("open-closed", "({1}&#93;"),
    ("us$|usd|us dollar", "US$[{1:,}]"),
    ("currency", _currency),
    ("inr|indian rupee|indian rupees|₹", "₹[{1:,}]"), ("gbp|£", "£[{1:,}]"), ("eur|euro|€", "€[{1:,}]"),
    ("jpy|¥|japanese yen", "¥[{1:,}]"), ("krw|₩", "₩[{1:,}]"), ("php|philippine peso|₱", "₱[{1:,}]"),
    ("cad|c$", "C$[{1:,}]"), ("aud|a$|au$", "A$[{1:,}]"), ("nzd|nz$", "NZ$[{1:,}]"), ("hkd|hk$", "HK$[{1:,}]"),
    ("brl|r$", "R$[{1:,}]"), ("zar", "R[{1:,}]"),
    # Measures and places.
    ("convert|cvt|conv", _convert),
    ("pop density|population density", _population_density),
    ("railgauge|rail gauge|track gauge", _rail_gauge),
    ("coord", _coordinates),
    # Ships.
    (
        "uss|uscgc|usns|usat|css|hms|hmt|hmas|hmcs|hmnzs|hmis|hmsas|hdms|hnlms|hswms|hnoms|ins|jds|js|orp|rfa|rms|ss|mv"
        "|ms|mt|mts|rv|sms|smu|sv|ts|tss|ps|nrp|ara|bns|roks|rocs|rss|kri|lé|hmy|gts|my|fv",
        _prefixed_ship,
    ),
    ("ship", _ship),
    ("sclass|sclass2|sclass-", "{1}-class[ {2}]"),
    # Sources that are part of the sentence.
    ("bibleref|bibleref2|bibleverse|bibleref2-nb|bibleref2c|bibleverse-nb", "{1}[ {2}]"),
    ("cite quran|qref", "Quran {1}[:{2}]"),
    ("harvtxt|harvcoltxt", _textual_citation),
    ("ussc", "{1} U.S. {2}[ ({3})]"),
    ("us patent", "U.S. Patent {1:,}"),
    ("isbn|isbnt", "ISBN {1}"),
    # Blocks.
    ("quote|blockquote|cquote|quotation|bquote|block quote|centered quote", "\n\n{1/text/quote}\n\n"),
    ("poemquote|poem quote|bq", "\n\n{1/text/quote}\n\n"),
    ("plainlist|flatlist|columns-list|col-list|columns list|block indent", _block),
    ("ubl|unbulleted list|ublist|bulleted list|bulletlist|blist|ordered list|unordered list", _items),
    ("hlist|horizontal list|cslist|comma separated entries|comma separated values", _inline_list),
    # Characters that wikitext cannot contain, or that are awkward to type.
    ("!", "&#124;"), ("=", "&#61;"), ("ell", "ℓ"), ("eqm", "⇌"),
    ("snd|snds|sndash|spnd|spaced ndash|spaced en dash|spaced en-dash|nbndash|dash", " – "),
    ("ndash|endash|en dash|--", "–"),
    ("mdash|emdash|em dash|mdashb", "—"),
    ("'|-'|'-|' -|apos", "&#39;"),
    ("'s|-'s", "&#39;s"), ("' \"", "&#39; &quot;"), ("'\"", "&#39;&quot;"), ("-\"|\"-", "&quot;"),
    ("nbsp|nbs|space|spaces|thinsp|thin space|hair space|hairsp|emsp|ensp|figure space|nnbsp|sp|pad|in5", " "),
    ("break|br", " "),
    ("·|dot|middot|•|bullet|bull", " · "),
    ("music", _music),
    ("okina|hamza", "ʻ"), ("ayin|ayn", "ʿ"), ("prime", "[{1}]′"), ("pprime", "[{1}]″"), ("deg|degree", "°"),
    ("colon", ":"),
    ("minus", "−"), ("times", "×"), ("plusminus|±|plus-minus", "±"), ("pi", "π"), ("...|ellipsis", "…"),
    ("numero", "№[ {1}]"),
    ("lord", "LORD"), ("carbon", "C"), ("hydrogen", "H"), ("radium", "Ra"), ("bismuth", "Bi"),
)  # fmt: skip
# Rules for all templates whose names begin with a prefix.
FAMILIES: dict[str, Renderer] = {
    "lang-": _language_in_name,
    "script/": _text,
    "ipa-": _pronunciation,
    "formatnum:": _formatted_number,
}
_FAMILY_NAMES = tuple(FAMILIES)
TEMPLATES = {code.lower(): phrase(country) for code, country in COUNTRIES.items()}
for _names, _rule in RULES:
    TEMPLATES.update(dict.fromkeys(_names.split("|"), phrase(_rule) if isinstance(_rule, str) else _rule))

# Templates that add no text to a sentence: sources, notes and requests. A build does not report that it dropped them.
SILENT = words(
    """
    citation needed|cn|fact|citation|cite|sfn
    |sfnp|sfnm|efn|efn-ua|efn-lr|refn|#tag:ref|r|rp|ref|ref label|note|note label|harv|harvnb|harvp|harvs|notetag
    |reflist|snf|sfnref|clarify|clarification needed|when|who|whom|by whom|which|where|why|how|what|says who|vague
    |dubious|disputed inline|failed verification|verify source|verification needed|not in citation given
    |better source|better source needed|psc|primary source inline|unreliable source|unreliable source?
    |self-published inline|self-published source|page needed|pn|volume needed|full citation needed|dead link
    |update inline|update after|needs update|copy edit inline|weasel inline|pov inline|pov-statement
    |according to whom|attribution needed|original research inline|or|syn|synthesis inline|undue inline
    |relevance inline|importance inline|contradict-inline|inconsistent|tone inline|specify|examples|example needed
    |quantify|non sequitur|discuss|huh|elucidate|expand section|anchor|anchors|shy|zwj|zwnj|wbr|zwsp|clear|clr|-
    |toc limit|citation not found|webarchive|subscription required|registration required|closed access|open access
    |free access|isbn missing|doi|oclc|issn|in lang|en icon|fr icon|de icon|es icon|it icon|ru icon|ja icon|pt icon
    |nl icon|icon|flagicon|flagicon image|noflag|audio|listen|pronunciation|pronunciation-needed|ipac-en|ipac-pl
    |ipa audio link|main article|main|see also|further|wikisource-inline|wikt-inline|portal-inline|commons-inline
    |commonscat-inline|refbegin|refend|div col|div col end|colbegin|colend|col-begin|col-2|col-3|col-break|col-end
    |end div col|multicol|multicol-break|multicol-end|wikidata|official website|imdb title|imdb name|youtube
    |retrieved|short description|use dmy dates|use mdy dates|use american english|use british english|good article
    |featured article|pp-move|defaultsort|sort hash
    |full|verify credibility|disambiguation needed|request quotation|notinsource|weasel-inline|primary source-inline
    |synthesis-inline|citation need|refimprove|unreliable medical source|buzzword inline|qualify evidence|cref
    |inflation-fn
    """,
    "|",
)
