"""Languages other than English: the names in their markup, their numbers, templates and headings.

The names and marks are those of MediaWiki's own Messages*.php and of the settings of the wikis, looked up by hand.
"""

from pathlib import Path

import pytest

from temporalwiki.builders.snapshot import LANGUAGES
from temporalwiki.builders.wikipedia import languages, xml_dump
from temporalwiki.builders.wikipedia.languages import is_redirect, lacking, language_of, mediawiki_names
from temporalwiki.builders.wikipedia.plain_text import paragraphs

PAGES = {
    "de": (
        'Ein Epos ({{grcS|ἔπος|de=Wort}}) ist {{"|lang}} nach {{§|1}}{{citation needed}}, {{Bruch|1|2}} aus {{DEU}}.'
        " {{nowrap|Ja.}}\n\n== Einzelnachweise ==\n* Buch\n\n== Literatur ==\n* Buch\nProsa.",
        ["Ein Epos (altgriechisch ἔπος ‚Wort‘) ist „lang“ nach § 1, 1/2 aus Deutschland. Ja.", "Prosa."],
    ),
    "fr": (
        "Le {{1er}} roi, {{souverain2|Louis XIV}}, dit {{citation|Oui}} au {{s-|XVII|e}}, le"
        " {{date-|14|juillet|1789}}, à {{unité|5|km}} de {{lien|fr=Ville|lang=en}} ({{av JC}}).\n\n"
        "== Notes et références ==\nTexte.",
        ["Le 1er roi, Louis XIV, dit « Oui » au XVIIe siècle, le 14 juillet 1789, à 5 km de Ville (av. J.-C.)."],
    ),
    "ja": (
        "{{仮リンク|甲法|en|A Act}}と{{仮リンク|乙|label=丙|de|B}}、{{読み仮名|'''東京'''|とうきょう}}。\n\n"
        "== 脚注 ==\n文。",
        ["甲法と丙、東京（とうきょう）。"],
    ),
    "ru": (
        "{{нп5|Зал (Берлин)|Зал|de|Saal}}, {{iw|Дом|||House}} и {{число|3644826}} {{s|жителей}}.\n\n"
        "== Литература ==\n* Книга\nПроза.\n\n== См. также ==\nТекст.",
        ["Зал, Дом и 3 644 826 жителей.", "Проза."],
    ),
    "zh": (
        "{{link-de|甲|A}}和{{le|乙|B|丙}}及{{tsl|en|C|丁}}。\n\n== 參考文獻 ==\n* 書\n\n== 外部链接 ==\n文。",
        ["甲和丙及丁。"],
    ),
}


@pytest.mark.parametrize("language", PAGES)
def test_a_page_reads_as_in_its_language(language: str) -> None:
    page, expected = PAGES[language]
    assert paragraphs(page, language=language) == expected
    assert paragraphs(page, language=f"{language}-x") == expected
    assert paragraphs(page, language="eo") != expected


FILES_AND_CATEGORIES = {  # canonical names, names of earlier years, short ones; no siteinfo is given
    "hr": ("Datoteka", "Slika", "DT", "Kategorija", "KT"),
    "el": ("Αρχείο", "Εικόνα", "Κατηγορία"),
    "th": ("ไฟล์", "ภาพ", "หมวดหมู่"),
    "be": ("Файл", "Выява", "Катэгорыя"),
    "eo": ("Dosiero", "Kategorio"),
    "fo": ("Mynd", "Bólkur"),
    "hi": ("चित्र", "श्रेणी", "श्र"),
    "gsw": ("Datei", "Bild", "Kategorie"),  # alswiki
    "vi": ("Tập tin", "Tập_tin", "Hình", "Thể loại"),
    "zh": ("文件", "檔案", "图像", "分类", "CAT"),
    "mk": ("Податотека", "Слика", "Категорија"),
}


@pytest.mark.parametrize("language", FILES_AND_CATEGORIES)
def test_files_and_categories_vanish_under_every_name(language: str) -> None:
    for name in (*FILES_AND_CATEGORIES[language], "File", "Image", "Category"):
        for link in (f"[[{name}:A.jpg|thumb|230px|A [[b]] c.]]", f"[[ {name.lower()} : A]]"):
            shown = paragraphs(f"{link}\nText one.\n\n{link}\nText two.", language=language)
            assert shown == ["Text one.", "Text two."]


def test_the_names_are_those_of_every_wikipedia() -> None:
    """Every wiki has a row, by the language code that its text is read with."""
    table = mediawiki_names()
    known = table["languages"]
    for edition in table["editions"]:
        wiki = edition.replace("-", "_")
        synonyms = {"cmn": "zh", "cz": "cs", "dk": "da", "egl": "eml", "en-simple": "en", "epo": "eo", "jp": "ja"}
        code = synonyms.get(edition) or LANGUAGES.get(wiki, edition)
        assert code in known or code.partition("-")[0] in known, edition
    assert len(known) > 330
    for row in known.values():
        for names in (row.get(key, ()) for key in ("files", "categories", "formatnum", "raw", "plain")):
            assert all(name == name.strip().lower().replace(" ", "_") for name in names)
        assert len(row.get("digits", "")) in (0, 10)
        assert len(row.get("marks", "ab")) == 2


@pytest.mark.parametrize(
    ("language", "page"),
    [
        ("en", "__notoc__\nText. __NoToc__ __DISAMBIG__ __NOINDEX__"),
        ("ja", "＿＿目次非表示＿＿\n\nText. __目次__"),
        ("hi", "__विषय_सूची_हीन__\nText. __बिना_अनुक्रम__"),
        ("vi", "__KHÔNGMỤCLỤC__ Text. __khôngmụclục__"),
        ("de", "__KEIN_INHALTSVERZEICHNIS__ Text. __Inhaltsverzeichnis__"),
        ("fr", "Text. __AUCUNSOMMAIRE__ __sommaire__"),
        ("ar", "__لاتحريرقسم__ Text."),
        ("ko", "__목차숨김__ Text. __NOTOC__"),
        ("tr", "__İÇİNDEKİLERYOK__ Text."),
    ],
)
def test_switches_vanish_in_every_form(language: str, page: str) -> None:
    assert paragraphs(page, language=language) == ["Text."]


@pytest.mark.parametrize("text", ["call __init__ now", "__index__ gives a number", "a __b c__ d", "x_1__2"])
def test_other_words_between_low_lines_stay(text: str) -> None:
    """MediaWiki reads __INDEX__ in capitals only."""
    assert paragraphs(text) == [text]


@pytest.mark.parametrize("edition", ["pcm", "skr", "De", "zh-yue", "be-tarask", "nb", "lzh", "ann", "zgh", "simple"])
def test_links_to_other_editions_vanish(edition: str) -> None:
    assert paragraphs(f"A sentence. [[{edition}:Foo]]\n[[:{edition}:Bar|Bar]] stays.") == ["A sentence. Bar stays."]


@pytest.mark.parametrize(
    ("text", "redirect"),
    [
        ("#REDIRECT [[X]]", True),
        ("#redirect: [[X]]", True),
        (" \n#WEITERLEITUNG[[Berlin]]", True),
        ("＃転送 [[東京]]", True),
        ("#đổi hướng [[Hà Nội]]", True),
        ("#Yönlendirme [[X]]", True),
        ("#पुनर्प्रेषित [[X]]", True),
        ("#перенаправление [[X]]", True),
        ("#تحويل [[X]]", True),
        ("#重定向 [[X]]", True),
        ("#넘겨주기 [[X]]", True),
        ("#REDIRECT to nothing", False),
        ("#Apples and [[pears]]", False),
        ("# [[X]]", False),
        ("A #REDIRECT [[X]]", False),
        ("", False),
    ],
)
def test_redirects_are_known_by_the_words_of_every_language(text: str, redirect: bool) -> None:
    assert is_redirect(text) is redirect
    assert not (redirect and paragraphs(text))


NUMBERS = [  # language, in braces, shown
    ("en", "formatnum:1234567.891", "1,234,567.891"),
    ("en", "formatnum:-1234", "−1,234"),
    ("en", "formatnum:1,234|R", "1234"),
    ("en", "formatnum:1234|NOSEP", "1234"),
    ("fr", "formatnum:1234567", "1 234 567"),
    ("fr", "FORMATNOMBRE:3.5", "3,5"),
    ("fr", "formatnum:1 234,5|R", "1234.5"),
    ("de", "ZAHLENFORMAT:1234.5", "1.234,5"),
    ("de", "formatnum:1234.5|NOSEP", "1234,5"),
    ("es", "formatnum:1234", "1234"),
    ("es", "formatnum:12345", "12 345"),
    ("pl", "formatnum:1234.5", "1234,5"),
    ("hi", "संख्या_रूप:1234567", "12,34,567"),
    ("bn", "formatnum:1234567", "১২,৩৪,৫৬৭"),
    ("fa", "formatnum:1234.5", "۱٬۲۳۴٫۵"),
    ("fa", "formatnum:۱٬۲۳۴٫۵|R", "1234.5"),
    ("ar", "formatnum:1234.5", "1٬234٫5"),
    ("sr", "formatnum:1234.5", "1.234,5"),
    ("zh-tw", "formatnum:1234.5", "1,234.5"),
    ("xx", "formatnum:1234.5", "1,234.5"),
    ("fr", "formatnum:12e5", "12e5"),
    ("fr", "formatnum:{{nowrap|1234}}", "1 234"),
    ("it", "val|12345.6|u=km", "12 345,6 km"),
    ("nl", "formatnum:12345", "12.345"),
    ("sv", "nts|12345", "12 345"),
    ("fr", "unité|144.2|km", "144,2 km"),
    ("fr", "unité|70000 km", "70 000 km"),
    ("fr", "langue|de|texte=Wort", "Wort"),
]


@pytest.mark.parametrize(("language", "inside", "shown"), NUMBERS)
def test_numbers_have_the_marks_of_the_language(language: str, inside: str, shown: str) -> None:
    assert paragraphs(f"a {{{{{inside}}}}} b", language=language) == [f"a {shown} b"]


@pytest.mark.parametrize(
    ("inside", "english", "shown"),
    [
        ("lang-de|Wort", "German: Wort", "Wort"),
        ("langx|fr|mot", "French: mot", "mot"),
        ("zh|c=牌照|p=pái zhào", "Chinese: 牌照; pinyin: pái zhào", "牌照; pái zhào"),
        ("convert|2500|km|mi", "2,500 kilometres", "2.500 km"),
    ],
)
def test_templates_add_words_of_english_only_to_english(inside: str, english: str, shown: str) -> None:
    for language, expected in (("en", english), ("xx", english), ("nl", shown), ("id", shown), ("sr-el", shown)):
        assert paragraphs(f"a {{{{{inside}}}}} b", language=language) == [f"a {expected} b"]


@pytest.mark.parametrize(
    ("language", "page"),
    [
        ("en", "{| class=wikitable\n|-\n| 1987\n{{end}}\n\nProse."),
        ("fr", "{|\n! A\n|-\n| {{x}}\n{{Fin de tableau}}\nProse."),
        ("ru", "<table><tr><td>a</td></tr>\n{{Конец}}\nProse."),
        ("de", "{|\n{{Kopf}}\n| a\n| b\n{{Ende}} \nProse.\n\n== H ==\n"),
        ("eo", "{{Tabelkapo}}\n! Jaro\n! Nombro\n|-\n| 1999 || 3\n|}\nProse."),
        ("ja", "{{表}}\n! 年\n|-\n| 1\n|}\nProse."),
    ],
)
def test_a_template_opens_or_closes_a_table(language: str, page: str) -> None:
    assert paragraphs(page, language=language) == ["Prose."]


def test_a_table_that_nothing_closes_ends_with_its_section() -> None:
    assert paragraphs("{|\n| a\nrest\n\n{{x}} more\n== H ==\n!Kung people.") == ["!Kung people."]


def test_a_language_says_which_tables_it_lacks() -> None:
    templates, names = "templates and headings", "names of namespaces, switches and numbers"
    of_languages = {"en": [], "de-at": [], "eo": [templates], "zh-tw": [], "xx": [templates, names]}
    assert {code: lacking(code) for code in of_languages} == of_languages


TEXTS = {
    "en_interlanguage": ["A sentence."],
    "en_switch": ["A sentence."],
    "en_table_end": ["Prose behind the table."],
    "fr_formatnum": ["Ville de 12 345 habitants, 3,5 km."],
    "ja_switch": ["これは文です。"],
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_texts_of_reports_are_right(name: str, shared_data: Path) -> None:
    page = (shared_data / "reports" / "texts" / f"{name}.txt").read_text("utf-8")
    assert paragraphs(page, language=name[:2]) == TEXTS[name]


def test_redirects_of_a_reported_history_are_known(shared_data: Path) -> None:
    path = shared_data / "reports" / "texts" / "history_redirects.xml"
    pages = xml_dump.read_pages(path, xml_dump.read_header(path), xml_dump.DumpCounts(), at="20211101")
    assert [page.page_id for page in pages if page.redirect] == [9, 10, 11, 12, 13]


def test_a_language_is_added_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/how_to/add_a_language.md: a language of its own row of names, and a file of templates."""
    file = tmp_path / "language_tlh.yaml"
    file.write_text('templates: {as lang: [hol], "{1:,} qelI": [qeli]}\nreferences: [mu]\nlists_of_references: []\n')
    names = mediawiki_names()
    row = {"files": ["ngu"], "switches": ["pagh"], "formatnum": ["mi"], "marks": ["'", ";"]}
    monkeypatch.setattr(languages, "_FILES", {**languages._FILES, "tlh": file})
    monkeypatch.setitem(names["languages"], "tlh", row)
    languages.language_of.cache_clear()
    page = "__PAGH__ {{hol|de|a}} {{qelI|1234.5}} {{mi:1234}} [[Ngu:A]]\n\n== Mu ==\nb\n"
    assert paragraphs(page, language="tlh") == ["a 1'234;5 qelI 1'234"]
    assert lacking("tlh") == []
    languages.language_of.cache_clear()


def test_every_file_can_be_read_and_adds_to_english() -> None:
    files = Path(languages.__file__).parent.glob("language_*.yaml")
    assert {file.stem.removeprefix("language_") for file in files} == {"en", *PAGES}
    english = language_of("en")
    for code in PAGES:
        language = language_of(code)
        assert language.templates.keys() > english.templates.keys()
        assert all(name == name.lower().strip() for name in language.templates)
        assert all(title == title.lower().strip() for titles in language.headings for title in titles)
    assert language_of("en-x") is language_of("../de") is english
