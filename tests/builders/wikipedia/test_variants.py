"""One variant of the text of a wiki that MediaWiki converts.

Expected texts follow ConverterRule and LanguageConverter of MediaWiki, by hand.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikipedia.plain_text import paragraphs
from temporalwiki.builders.wikipedia.variants import convert, label_variants, variant_of

SHOWN = {  # code, wikitext, what readers of the variant see
    "a reader who chose none": ("zh", "有-{zh-hans:信息;zh-hant:資訊}-中心", "有信息中心"),
    "a chosen variant": ("zh-hant", "有-{zh-hans:信息;zh-hant:資訊}-中心", "有資訊中心"),
    "the fallback of a variant": ("zh-hk", "有-{zh-hans:信息;zh-hant:資訊}-中心", "有資訊中心"),
    "a variant without a rule": ("zh-tw", "-{zh-cn:北;zh-sg:星}-", "北"),
    "Serbian": ("sr", "-{sr-ec:реч; sr-el:reč}-", "реч"),
    "Serbian in Latin letters, with a stop at the end": ("sr-el", "-{sr-ec:реч; sr-el:reč;}-", "reč"),
    "the other codes of Serbian": ("sr-el", "-{sr-Cyrl:реч; sr-Latn:reč}-", "reč"),
    "Kurdish": ("ku-arab", "-{ku-latn:av; ku-arab:ئاڤ}-", "ئاڤ"),
    "Kazakh, by two fallbacks": ("kk-tr", "-{kk-cyrl:су; kk-latn:sw}-", "sw"),
    "Uzbek": ("uz", "-{uz-cyrl:сув; uz-latn:suv}-", "suv"),
    "Inuktitut": ("iu", "-{ike-cans:ᐃᓄᒃ; ike-latn:inuk}-", "ᐃᓄᒃ"),
    "Gan": ("gan-hant", "-{gan-hans:国; gan-hant:國}-", "國"),
    "text that is left alone": ("sr", "дуг 56 -{km}- и (-{TXL}-)", "дуг 56 km и (TXL)"),
    "an empty rule": ("zh", "联-{}-邦", "联邦"),
    "raw text": ("zh", "-{R|zh-hans:a;zh-hant:b}-", "zh-hans:a;zh-hant:b"),
    "text for some variants": ("zh", "-{zh-hans;zh-hant|干}-", "干"),
    "a flag that is none": ("zh", "-{x|text}-", "text"),
    "a rule of one direction": ("zh-cn", "-{巨集=>zh-cn:宏}-", "宏"),
    "an entity in it": ("zh", "-{zh-hans:a&nbsp;b; zh-hant:c}-", "a&nbsp;b"),
    "a title": ("zh", "-{T|zh-hans:甲; zh-hant:乙}-文", "文"),
    "the name of a variant": ("zh", "-{N|zh-tw}-", "臺灣"),
    "a description": ("zh", "-{D|zh-cn:甲; zh-tw:乙}-", "大陆：甲；臺灣：乙；"),
    "a rule in a rule": ("zh", "-{zh-hans:甲-{乙}-; zh-hant:丙}-", "甲乙"),
    "a link in it": ("zh", "-{zh-hans:[[甲|乙]]; zh-hant:[[丙|丁]]}-", "[[甲|乙]]"),
    "a link alone": ("zh", "-{[[甲|乙]]}-", "[[甲|乙]]"),
    "a template in it": ("zh", "-{zh-hans:{{lang|en|x}}; zh-hant:y}-", "{{lang|en|x}}"),
    "a minus before a template": ("zh", "1-{{x}}-2", "1-{{x}}-2"),
    "one that is never closed": ("zh", "a -{b", "a -{b"),
    "one that was never opened": ("zh", "a }- b", "a }- b"),
}
RULES = {  # rules for the rest of the page
    "shown at its place": ("zh-cn", "-{A|zh-cn:博客; zh-tw:部落格}-和部落格", "博客和博客"),
    "not shown": ("zh-cn", "-{H|zh-cn:博客; zh-tw:部落格}-部落格", "博客"),
    "not before it": ("zh-tw", "博客-{H|zh-cn:博客; zh-tw:部落格}-博客", "博客部落格"),
    "by a fallback": ("zh-hk", "-{H|zh-cn:博客; zh-tw:部落格}-博客", "部落格"),
    "taken back": ("zh-cn", "-{H|zh-cn:博客; zh-tw:部落格}--{-|zh-cn:博客; zh-tw:部落格}-部落格", "部落格"),
    "of one direction": ("zh-hans", "-{H|巨集=>zh-hans:宏}-巨集", "宏"),
    "the longest word first": ("zh-cn", "-{H|zh-cn:甲; zh-tw:乙}--{H|zh-cn:丙; zh-tw:乙丁}-乙丁", "丙"),
    "with a title": ("zh-cn", "-{H;T|zh-cn:甲; zh-tw:乙}-乙", "甲"),
    "in Serbian": ("sr-el", "-{H|sr-ec:Беч; sr-el:Beč}-Беч", "Beč"),
    "not inside of other marks": ("zh-cn", "-{H|zh-cn:甲; zh-tw:乙}--{乙}-", "乙"),
    "a page as it was written": ("zh", "-{H|zh-cn:博客; zh-tw:部落格}-部落格", "部落格"),
    "no markup": ("zh-cn", "-{H|zh-cn:x; zh-tw:[[}-[[a]]", "[[a]]"),
    "nothing that grows much": ("zh-cn", "-{H|zh-cn:一二三四五六; zh-tw:七}-七", "七"),
}


@pytest.mark.parametrize("case", [*SHOWN, *RULES])
def test_a_reader_sees_one_variant(case: str) -> None:
    code, wikitext, shown = (SHOWN | RULES)[case]
    variant = variant_of(code)
    assert variant is not None
    assert convert(wikitext, variant) == shown


def test_only_the_wikis_that_mediawiki_converts_have_variants() -> None:
    page = "a -{b}- c"
    assert paragraphs(page, language="sr") == paragraphs(page, language="sr-el") == ["a b c"]
    assert paragraphs(page, language="hr") == paragraphs(page, language="en") == [page]
    # rules are read before templates and links
    page = "'''{{lang|zh|-{zh-hans:a; zh-hant:b}-}}''' [[甲|-{A|zh-hans:乙; zh-hant:丙}-]]\n[[文件:-{a}-.jpg|thumb|b]]"
    assert paragraphs(page, language="zh-tw") == ["b 丙"]


@pytest.mark.parametrize(
    ("language", "others"),
    [
        ("zh", ("zh-hans", "zh-hant", "zh-cn", "zh-tw")),
        ("zh-tw", ("zh-hant", "zh-hk", "zh-mo", "zh")),
        ("sr", ("sr-ec",)),
        ("sr-el", ("sr", "sr-ec")),
        ("pt", ("pt-br",)),
        ("nb", ("no", "nn")),
        ("nn", ("nb", "no")),
        ("en", ()),
        ("de", ()),
    ],
)
def test_labels_of_variants_serve_each_other(language: str, others: tuple[str, ...]) -> None:
    assert tuple(dict.fromkeys(label_variants(language)))[: len(others)] == others
    assert bool(label_variants(language)) == bool(others)


MARKS = st.lists(
    st.sampled_from(["-{", "}-", "{{", "}}", "|", ";", ":", "zh-cn:", "zh-tw:", "H", "A", "-", "=>", "甲", "乙", " "]),
    max_size=30,
).map("".join)


@given(MARKS)
def test_any_marks_give_a_text_that_is_not_much_longer(text: str) -> None:
    variant = variant_of("zh-cn")
    assert variant is not None
    left = convert(text, variant)
    assert len(left) <= 4 * len(text)
    assert convert(f"-{{{'x'}}}-{text}", variant) == f"x{left}" or text.startswith("}")


@pytest.mark.parametrize(
    "page",
    [
        "-{" * 300_000,
        "-{a" * 100_000 + "}-" * 100_000,
        "-{H|zh-cn:甲; zh-tw:乙}-乙" * 20_000,
        "".join(f"-{{H|zh-cn:甲{i}甲; zh-tw:乙{i}乙}}-乙" for i in range(20_000)),
        "-{zh-cn:" + " ; " * 200_000 + "}-",
        "-{" + "=>" * 200_000 + "}-",
        "-{" + "a;" * 200_000 + "|b}-",
    ],
    ids=["open", "deep", "one rule", "many rules", "blanks", "arrows", "flags"],
)
def test_hostile_pages_come_back(page: str) -> None:
    assert isinstance(paragraphs(page + "\n\nend", language="zh-cn"), list)
