"""Wikitext to paragraphs: the table below is the specification."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.wikipedia import plain_text
from temporalwiki.builders.wikipedia.plain_text import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    UnreadablePage,
    paragraphs,
    read_page,
    read_versions,
)
from temporalwiki.builders.wikipedia.prose_lines import FORMULA, MARKS

CASES = {
    # Paragraphs and lines.
    "a newline in prose is a space": ("one\ntwo", ["one two"]),
    "a blank line splits": ("one\n\ntwo", ["one", "two"]),
    "a line of blanks splits": ("one\n \t \ntwo", ["one", "two"]),
    "a heading splits and is not text": ("one\n== Head ==\ntwo", ["one", "two"]),
    "an equals sign in prose": ("= x is y\nand z", ["= x is y and z"]),
    "Windows line ends": ("one\r\n\r\ntwo\r\nthree", ["one", "two three"]),
    "a rule splits": ("one\n----\ntwo", ["one", "two"]),
    "white space folds": ("  a \t b\u00a0\u2003c  ", ["a b c"]),
    "text is NFC": ("Cafe\u0301", ["Caf\u00e9"]),
    "only punctuation": ("''...''\n\n—", []),
    "an empty page": ("", []),
    "a redirect": ("#REDIRECT [[Berlin]]", []),
    # Lists.
    "a list is one paragraph of lines": ("* a\n* b\n** c", ["a\nb\nc"]),
    "a list ends the paragraph before it": ("Intro:\n* a\n* b\nMore.", ["Intro:", "a\nb", "More."]),
    "numbered and indented items": ("# one\n#: more\n: aside", ["one\nmore\naside"]),
    "a definition list": ("; Term : what it means\n; Other", ["Term\nwhat it means\nOther"]),
    "empty items go": ("* a\n*\n* {{flagicon|X}}\n* b", ["a\nb"]),
    # Formatting.
    "bold and italic": ("'''bold''' ''italic'' '''''both'''''", ["bold italic both"]),
    "an apostrophe before italics": ("l'''Orage'' and '''b'''", ["l'Orage and b"]),
    "four apostrophes": ("''''tis''' x", ["'tis x"]),
    "possessive of an italic title": ("''Eagle''{{'s}} side", ["Eagle's side"]),
    "entities": ("a&nbsp;b &amp; c &lt;d&gt; &#65;&#x42; &unknown;", ["a b & c <d> AB &unknown;"]),
    "invisible characters go": ("a\u200bb&shy;c\ufeff", ["abc"]),
    "dropped templates in italics": ("a (''{{x}}'') ''{{x}}'' b, l{{x}}'", ["a b, l'"]),
    "switches": ("__NOTOC__\ntext __FORCETOC__", ["text"]),
    "a name with low lines stays": ("call __init__ now", ["call __init__ now"]),
    # Links.
    "a link": ("[[bus]]", ["bus"]),
    "a link with text": ("[[a|b]]", ["b"]),
    "a link trail": ("[[bus]]es", ["buses"]),
    "the pipe trick": ("[[Fish (food)|]], [[Help:Me|]]", ["Fish, Me"]),
    "a shown category": ("[[:Category:Ships|ships]] in [[:Category:Ports]]", ["ships in Category:Ports"]),
    "a category": ("text\n[[Category:Ships]]", ["text"]),
    "a language": ("text [[de:Wort]]", ["text"]),
    "another project": ("[[wikt:word|word]]", ["word"]),
    "a picture": ("a [[File:x.jpg|thumb|A [[link]] in it]]b", ["a b"]),
    "a picture does not split a paragraph": ("one\n[[Image:x.jpg|thumb]]\ntwo", ["one two"]),
    "a picture in German": ("[[Datei:x.jpg|mini|Bild]]text", ["text"]),
    "an external link": ("[http://example.org/a_b?c=d label text].", ["label text."]),
    "an external link with brackets": ("[//example.org a [b] c]", ["a [b] c"]),
    "a bare external link": ("see [http://example.org] there", ["see there"]),
    "brackets are not links": ("he [the king] said", ["he [the king] said"]),
    "link in link": ("[[a|b [[c]] d]]", ["b c d"]),
    # What is dropped.
    "a comment": ("a<!-- x\n\ny -->b", ["ab"]),
    "a comment on its own line": ("one\n<!-- x -->\ntwo", ["one two"]),
    "comments on their own lines": ("one\n<!-- x -->\n <!-- y -->\ntwo", ["one two"]),
    "a comment before markup": ("<!-- x -->* a\n<!-- y -->{|\n| b\n|}\nc", ["a", "c"]),
    "a dropped template before a table": ("a\n\n{{clear}}{|\n| b\n|}\nc", ["a", "c"]),
    "a reference": ('a.<ref name="x">see [[b]]\n\n* c</ref> d<ref name=y /> e', ["a. d e"]),
    "a reference before a full stop": ("a <ref>x</ref>.", ["a."]),
    "tags that are not text": (
        "a <math>x_1</math> b <gallery>\nx.jpg\n</gallery> c <syntaxhighlight>d</syntaxhighlight>",
        ["a x₁ b c"],
    ),
    "a formula that reads as it is written": (
        "where <math>m</math> is <math>x = y\n  + 1</math>, <math>|a| < f''</math>",
        ["where m is x = y + 1, |a| < f''"],
    ),
    "a formula in TeX": (r"a <math>\alpha</math> b <chem>H2O</chem> c <math>x^2</math> d", ["a α b H2O c x² d"]),
    "a formula that plain text cannot show": (
        "a <math>\\begin{x}</math> b (<ce>\\x</ce>).\n* <math>\\x</math>\n* c",
        [f"a {FORMULA} b ({FORMULA}).", "c"],
    ),
    "no formula": ("a (<math> </math>) b", ["a b"]),
    "a formula that ends a sentence": (
        r"the values <math>\hat{a}.</math> The mean <math>a_1.</math> It",
        [f"the values {FORMULA}. The mean a₁. It"],
    ),
    "code in a line": ('the <source lang="x" inline>LET [] = []</source> is', ["the LET [] = [] is"]),
    "a block of code": ('the\n<source lang="x">\nLET [] = []\n</source>\nis', ["the", "is"]),
    "digits below a number": ("20<sub>[[hexadecimal|16]]</sub> to 7E<sub>16</sub>", ["20₁₆ to 7E₁₆"]),
    "digits below a letter": ("H<sub>2</sub>O and C<sub>6</sub>H<sub>12</sub>", ["H2O and C6H12"]),
    "sounds": ("x\n== Sounds ==\nThe {{angbr|{{IPA|a}}}} is {{IPA|fr|a}}", ["x", "The ⟨a⟩ is [a]"]),
    "nowiki is literal": ("<nowiki>''[[a]]''</nowiki>", ["''[[a]]''"]),
    "a table": ("one\n{| class=x\n|-\n| a || b\n|}\ntwo", ["one", "two"]),
    "a table in a table": ("{|\n|\n{|\n| a\n|}\n| b\n|}\ntext", ["text"]),
    "an HTML table": ("a<table><tr><td>b</td></tr></table>c", ["a", "c"]),
    "an infobox": ("{{Infobox person\n| name = A\n| born = {{birth date|1900|1|2}}\n}}\n'''A''' b", ["A b"]),
    "a template inside a sentence": ("the end.{{citation needed|date=May 2014}} Next", ["the end. Next"]),
    "apparatus": ("a\n== See also ==\n* b\n=== c ===\nd\n== M ==\ne\n==References==\n{{reflist}}\nf", ["a", "e"]),
    # HTML.
    "inline tags": ("<small>a</small> <span style='x'>b</span><br/>c", ["a b c"]),
    "two breaks are a paragraph": ("a<br><br />b", ["a", "b"]),
    "block tags": ("a<blockquote>b</blockquote>c", ["a", "b", "c"]),
    "raised, lowered": ("10<sup>6</sup> m<sup>2</sup> H<sub>2</sub>O 5<sup>th</sup>", ["10⁶ m² H2O 5th"]),
    "unknown tags are text": ("x <y> z, 1 < 2", ["x <y> z, 1 < 2"]),
    "letters that only look like a tag": ("a <ſource> b <nowıki> c", ["a <ſource> b <nowıki> c"]),
    "a poem": ("<poem>\nRoses\nViolets\n</poem>", ["Roses\nViolets"]),
    # What dropped templates leave behind.
    "an emptied bracket": ("A ({{IPAc-en|a}}) is", ["A is"]),
    "first in a bracket": ("A ({{IPAc-en|a}}; {{audio|x}}, born 1900) is", ["A (born 1900) is"]),
    "last in a bracket": ("A (born 1900; {{IPAc-en|a}}) is", ["A (born 1900) is"]),
    "all in a bracket": ("A ({{x}} or {{y}}, {{z}}) is", ["A is"]),
    "brackets of the author stay": ("printf() is {{cn}} a call", ["printf() is a call"]),
    "before a stop": ("word {{cn}}, word {{cn}}.", ["word, word."]),
    "between full stops": ("1888. {{OCLC|1}}. Next", ["1888. Next"]),
    "an amount in money of today": ("cost $5 (${{formatnum:{{Inflation|US|5|1929}}}} today) each", ["cost $5 each"]),
    "a pronunciation in the lead": ("A ({{IPA|/a/}}) is", ["A is"]),
    "a pronunciation in the text": ("x\n== Sounds ==\nAs {{IPA|/a/}} ({{IPA|[b]}})", ["x", "As /a/ ([b])"]),
    # Templates.
    "a number that a template cuts is one number": ("{{convert|5{{foo}}|km}} of x{{foo}}y", ["5 kilometres of xy"]),
    "lists made by templates": ("{{plainlist|\n* a\n* b\n}}\n\n{{ubl|c|d}}", ["a\nb", "c\nd"]),
    **{
        f"a {name} is a paragraph": (f"He:{{{{{name}|To be.|Author}}}}And left.", ["He:", "To be.", "And left."])
        for name in ("quote", "blockquote", "Cquote", "quotation", "bquote")
    },
    # Unclosed.
    "unclosed braces": ("a {{b|c=d\n\ne", ["a {{b|c=d", "e"]),
    "unclosed braces before a template": ("{{a {{nowrap|b}} c", ["{{a b c"]),
    "unclosed link": ("a [[b c [[d]]", ["a [[b c d"]),
    "unclosed picture": ("[[File:x.jpg|thumb\ntext", ["text"]),
    "unclosed reference": ("a<ref>b c\n\nd", ["a", "d"]),
    "unclosed reference before another": ("a<ref>b\nc<ref>d</ref> e", ["a e"]),
    "unclosed comment": ("a<!-- b\n\nc", ["a"]),
    "unclosed table": ("a\n{|\n| b\n\n| c\n== d ==\ne", ["a", "e"]),
    "unclosed math": ("a <math> b", ["a b"]),
    "stray ends": ("a}} b]] c</ref> d\n|}\ne", ["a}} b]] c d", "e"]),
}  # fmt: skip

TEMPLATES = {
    "{{nowrap|Boeing 747-400}}": "Boeing 747-400",
    "{{nowrap|1=''x'' = 1}}": "x = 1",
    "{{small|a [[b|c]]}}": "a c",
    "{{nowrap|{{lang|la|{{small|nunc}}}}}}": "nunc",
    "{{convert|10|km|mi}}": "10 kilometres",
    "{{convert|1|mi}}": "1 mile",
    "{{convert|60|mi|km|adj=on}}": "60-mile",
    "{{convert|8|km|0|abbr=on}}": "8 km",
    "{{convert|1500|m|ft|sp=us}}": "1,500 meters",
    "{{convert|2|to|10|in|mm|abbr=on}}": "2 to 10 in",
    "{{convert|5|ft|9|in|cm}}": "5 feet 9 inches",
    "{{convert|800|koilbbl/d}}": "800 thousand barrels per day",
    "{{convert|1+1/2|mi}}": "1 1/2 miles",
    "{{cvt|2|-|3|km}}": "2–3 km",
    "{{cvt|-4|C}}": "−4 °C",
    "{{cvt|4.5e6|km2}}": "4.5×10⁶ km²",
    "{{convert|7|smoots}}": "7 smoots",
    "{{lang|de|Wort}}": "Wort",
    "{{lang-de|Wort}}": "German: Wort",
    "{{langx|de|Wort}}": "German: Wort",
    "{{lang-xyz|Wort}}": "Wort",
    "{{transl|ar|ALA|kitab}}": "kitab",
    "{{nihongo|'''Aikido'''|合気道|aikidō}}": "Aikido (合気道, aikidō)",
    "{{zh|c=牌照|p=pái zhào}}": "Chinese: 牌照; pinyin: pái zhào",
    "{{zh|labels=no|c=牌照}}": "牌照",
    "{{circa|1450}}": "c. 1450",
    "{{c.|1450|1516}}": "c. 1450–1516",
    "{{ill|Hans Muster|de}}": "Hans Muster",
    "{{ill|Hans Muster|de|lt=Muster}}": "Muster",
    "{{ill|de|Hans Muster}}": "Hans Muster",
    "{{birth date|1900|1|2}}": "January 2, 1900",
    "{{birth date and age|1900|1|2|df=y}}": "2 January 1900",
    "{{as of|2014}}": "As of 2014",
    "{{as of|2014|6|lc=y}}": "as of June 2014",
    "{{frac|1|2}}": "1/2",
    "1{{frac|1|4}}": "1 1/4",
    "{{frac|3|1|4}}": "3 1/4",
    "{{val|2.5|e=-15|u=m}}": "2.5×10⁻¹⁵ m",
    "{{val|1234567|0.5|u=km}}": "1,234,567±0.5 km",
    "1.25{{e|9}}": "1.25×10⁹",
    "{{ordinal|21}} {{nth|12}}": "21st 12th",
    "{{formatnum:1234567.5}}": "1,234,567.5",
    "a{{snd}}b{{ndash}}c{{mdash}}d": "a – b–c—d",
    "{{abbr|no.|number}} 10": "no. 10",
    "{{convert|3|e6carat|kg|abbr=off}}": "3 million carats",
    "{{INR|1500}} {{GBP|20 million}} {{euro|5}} {{INR}}3": "₹1,500 £20 million €5 ₹3",
    "Hawai{{okina}}i 5{{prime}} 3{{deg}}C {{circa}}": "Hawaiʻi 5′ 3°C c.",
    "{{fl.|1066}} {{reign|1066|1087}}": "fl. 1066 r. 1066–1087",
    "{{US$|2 billion}} {{currency|13 billion|GBP}}": "US$2 billion £13 billion",
    "{{flag|Latvia}} {{flagicon|LAT}} {{DEU}}": "Latvia Germany",
    "{{HMS|Ajax|22|6}} {{USS|Hornet|CV-12}}": "HMS Ajax USS Hornet (CV-12)",
    "{{ship|MV|Red Osprey}}": "MV Red Osprey",
    "{{sclass|Nimitz|aircraft carrier}}": "Nimitz-class aircraft carrier",
    "{{chem2|SO4(2-)}} {{chem2|2 H2 + O2 -> 2 H2O}} {{chem2|^{235}_{92}U}}": "SO4²⁻ 2 H2 + O2 → 2 H2O ²³⁵92U",
    "{{nuclide|uranium|235}} {{nuclide|link=yes|C|14}} {{SimpleNuclide|Aluminium|26}}": "²³⁵U ¹⁴C ²⁶Al",
    "5 {{Solar luminosity}} {{solar mass}}": "5 L☉ M☉",
    "{{w|Target|the text}} {{avoid wrap|a b}} one{{break}}two{{br}}three": "the text a b one two three",
    "on {{OldStyleDateNY|22 February|11 February}} 1732": "on 22 February [O.S. 11 February] 1732",
    "{{val|5.2e6}} {{val|-1.5E-3|u=m}} {{val|5|e=6}} {{val|12e+3}}": "5.2×10⁶ −1.5×10⁻³ m 5×10⁶ 12×10³",
    "{{chem|Ge|9|4-}} {{chem|40|Ar}} {{chem|H|2|O}}": "Ge9⁴⁻ ⁴⁰Ar H2O",
    "{{math|{{!}}''x''{{!}} {{=}} 1}}": "|x| = 1",
    "{{linktext|三|星}}": "三星",
    "promoted {{sic}} it": "promoted [sic] it",
    "{{sic|teh}}": "teh",
    "{{vanchor|here}}": "here",
    "{{angbr|ph}}": "⟨ph⟩",
    "{{coord|36|28|N|22|57|E|display=inline}}": "36°28′N 22°57′E",
    "{{hlist|a|b|c}}": "a, b, c",
    "{{bibleref|Mark|3:25|9}}": "Mark 3:25",
    "{{harvtxt|Muster|Meier|1974}}": "Muster & Meier (1974)",
    "{{Unknown thing|with|words}} x": "x",
    "{{cite book|title=T}} x": "x",
}


DROPPED = {
    "inside a sentence": ("it is {{foo|1}} high", ["foo"]),
    "at its end, under another name of the template": ("it is {{Template:Foo_bar}}.", ["foo bar"]),
    "in a list": ("* it is {{foo}}\n* {{foo}} with {{Foo}}", ["foo", "foo", "foo"]),
    "on a line of its own of its own": ("{{foo}}\nit is\n\n{{foo}}\n{{bar}} it\n* {{foo}}", []),
    "in another template": ("it is {{foo|{{bar}}}} and {{nowrap|{{bar}}}}", ["foo"]),
    "that carries text, or never any": ("it is {{nowrap|1}}{{citation needed|date=x}} {{cite web|url=x}}", []),
    "in a reference, a table or a section of references": (
        "a<ref>b {{foo}}</ref>\n\n{|\n| c {{foo}}\n|}\n\n== See also ==\nd {{foo}}",
        [],
    ),
    "that is a function of MediaWiki": ("it is {{#if:x|y}} {{{foo}}} {{lc:X}} {{ }}", []),
    "whose name is markup": ("it is {{[[a]]}} {{<b>}} {{" + "x" * 61 + "}}", []),
}


@pytest.mark.parametrize(("wikitext", "names"), DROPPED.values(), ids=DROPPED)
def test_templates_that_are_dropped_inside_prose_are_named(wikitext: str, names: list[str]) -> None:
    assert read_page(wikitext).dropped == names


@pytest.mark.parametrize(("wikitext", "expected"), CASES.values(), ids=CASES)
def test_wikitext(wikitext: str, expected: list[str]) -> None:
    assert paragraphs(wikitext) == expected


@pytest.mark.parametrize("wikitext", TEMPLATES)
def test_templates_that_carry_text(wikitext: str) -> None:
    assert paragraphs(f"It is {wikitext}, they say.") == [f"It is {TEMPLATES[wikitext]}, they say."]


def test_namespace_names_of_the_wiki() -> None:
    page = "a [[Kép:x.jpg|bélyegkép]]b [[Íomhá:x.jpg|mion]]c\n[[Catagóir:D]]"
    assert paragraphs(page, namespaces={"Íomhá": 6, "Catagóir": 14}) == ["a b c"]
    assert paragraphs("[[Íomhá:x.jpg|mion]]") == ["mion"]


@pytest.mark.fault("nested wikitext", "templates and links one level deeper than the limit", "dropped by reason")
@pytest.mark.parametrize(("opening", "closing"), [("{{nowrap|", "}}"), ("[[a|", "]]")])
def test_depth_is_bounded(opening: str, closing: str) -> None:
    assert paragraphs(opening * MAX_DEPTH + "text" + closing * MAX_DEPTH) == ["text"]
    with pytest.raises(UnreadablePage) as caught:
        paragraphs(opening * (MAX_DEPTH + 1) + "text" + closing * (MAX_DEPTH + 1))
    assert caught.value.reason == "nested_too_deep"


# Each of these took a backtracking or recursive parser minutes, or its stack. Here a square of these sizes
# would not come back within the patience of any test run.
HOSTILE = {
    "templates never closed": ("{{a|b=c " * 100_000 + "\n\nend", "end"),
    "links never closed": ("[[" * 100_000 + "\n\nend", "end"),
    "references never closed": ("<ref>" * 100_000 + "\n\nend", "end"),
    "references with half a tag": ("<ref name=" * 100_000 + "\n\nend", "end"),
    "tables never closed": ("{|\n" * 10_000 + "== x ==\nend", "end"),
    "tables and headings": ("{|\n== x ==\n" * 50_000 + "end", "end"),
    "tables closed too often": ("\n|}" * 100_000 + "\n\nend", "end"),
    "bold": ("'''" * 1_000_000 + "\n\nend", "end"),
    "bold words": ("'''a ''b " * 100_000 + "\n\nend", "end"),
    "comments after line ends": ("\n<!--" * 100_000 + "-->\n\nend", "end"),
    "math never closed": ("<math>" * 100_000 + "\n\nend", "end"),
    "external links never closed": ("[http://a b " * 100_000 + "\n\nend", "end"),
    "external link with many brackets": ("[http://a " + "[b] " * 100_000 + "\n\nend", "end"),
    "stops and a dropped template": ("{{x}}" + ",;: " * 200_000 + "\n\nend", "end"),
    "dropped templates": ("({{x}} or " * 100_000 + "\n\nend", "end"),
    "low lines": ("__A_" * 200_000 + "\n\nend", "end"),
    "equals signs": ("=\n" * 200_000 + "\n\nend", "end"),
    "tags never closed": ("<sup><br <span " * 50_000 + "\n\nend", "end"),
    "ampersands": ("&#1" * 300_000 + "\n\nend", "end"),
    "breaks": ("<br> " * 200_000 + "end", "end"),
    "arguments": ("{{nowrap" + "|a" * 500_000 + "}}\n\nend", "end"),
    "references with odd names": ("<ref/a>\n\n" * 100_000 + "end", "end"),
    "a pipe trick": ("[[a" + "_" * 500_000 + "b|]]\n\nend", "end"),
    "a measure": ("{{convert|" + "1" * 500_000 + "x|m}}\n\nend", "end"),
    "powers of powers": ("{{e|" * 190 + "1" * 500_000 + "}}" * 190 + "\n\nend", "end"),
    "a month": ("{{birth date|1900|" + "1" * 500_000 + "|2}}\n\nend", "end"),
    "accents": ("a" + "&#x301;&#x316;" * 100_000 + "\n\nend", "end"),
    "marks that are two accents": ("a" + "\u0f73" * 500_000 + "\n\nend", "end"),
    "deep and wide": (("{{nowrap|" * 190 + "x" * 5_000 + "}}" * 190 + "\n\n") * 100 + "end", "end"),
}


@pytest.mark.fault(
    "nested wikitext", "a hundred thousand opening tags or brackets of each kind, without a build", "text comes out"
)
@pytest.mark.parametrize(("wikitext", "last"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_pages_come_back(wikitext: str, last: str) -> None:
    assert paragraphs(wikitext)[-1] == last


SOUP_PIECES = """
    {{ }} [[ ]] {| |} | == * # : ; '' ''' <ref> </ref> <ref <!-- --> <nowiki> </nowiki> <math> </math> <br>
    <poem> &nbsp; &#1; &#x110000; nowrap| convert|1|km frac|1|2 zh|c= nihongo| coord|1|N File:a Category: http://a [ ]
    ( ) , ; . = a B é 漢 1 val|1|2|3 IPA| quote| chem|H|2 as_of| ill|de| __TOC__ <table> <sup>2</sup>
"""
SOUP_MARKS = ("\n", "\n\n", " ", "\u0301", "\x01", "\x03", "\x08")
SOUP = st.lists(st.sampled_from([*SOUP_PIECES.split(), *SOUP_MARKS]), max_size=60).map("".join)


@settings(max_examples=400)
@given(SOUP | st.text(max_size=200))
def test_any_text_gives_clean_paragraphs(wikitext: str) -> None:
    """Marks in the page change nothing. Of the builder's own, only that of a formula is left, for sentences."""
    assert paragraphs(wikitext) == paragraphs(wikitext.translate(dict.fromkeys(map(ord, MARKS))))
    for paragraph in paragraphs(wikitext):
        assert unicodedata.is_normalized("NFC", paragraph)
        for line in paragraph.split("\n"):
            assert line
            assert line == " ".join(line.split())
            assert not set(line) & (set(MARKS) - {FORMULA})


LINKS = st.lists(
    st.sampled_from(["[[", "]]", "[[a]]", "[[b|c]]", "[", "]", "|", ":", "\n", " ", "a", "File", "(b)", ",", "de"]),
    max_size=20,
).map("".join)


@settings(max_examples=400)
@given(LINKS)
def test_links_by_one_pattern_are_links_by_pairs(text: str) -> None:
    def shown(inside: list[str], _: str, after: str) -> tuple[str, str]:
        return plain_text._shown_text(inside, hidden), after

    hidden = plain_text.hidden_prefixes((), "en")
    quick, paired = plain_text._without_links(text, hidden), plain_text._without_pairs(text, "[[", "]]", shown)
    assert list(map("".join, quick)) == list(map("".join, paired))


TOO_LONG, TOO_DEEP = "a" * (MAX_CHARACTERS + 1), "{{a|" * (MAX_DEPTH + 1) + "}}" * (MAX_DEPTH + 1)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("a", TOO_LONG, "too_long"),
        ("a", TOO_DEEP, "nested_too_deep"),
        (TOO_LONG, "a", "too_long_in_prev"),
        (TOO_DEEP, "a", "nested_too_deep_in_prev"),
        (TOO_LONG, TOO_DEEP, "nested_too_deep"),
        (TOO_DEEP, TOO_LONG, "too_long"),
        (f"a\n\n{TOO_DEEP}\n\nb", "a\n\nb", "nested_too_deep_in_prev"),
    ],
    ids=range(7),
)
def test_the_reason_tells_which_version_cannot_be_read(before: str, after: str, reason: str) -> None:
    with pytest.raises(UnreadablePage, match=f"^{reason}$"):
        read_versions(before, after)


WORDS = st.lists(st.text("abcdefgéß漢字", min_size=1, max_size=8), min_size=1, max_size=12).map(" ".join)


@given(st.lists(WORDS, max_size=6))
def test_plain_prose_is_left_alone(prose: list[str]) -> None:
    assert paragraphs("\n\n".join(prose)) == prose
