"""Sentences: what Algorithm 1 compares."""

import multiprocessing
import os
import re
import signal
import time
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikipedia import sentence_ends, sentences
from temporalwiki.builders.wikipedia.plain_text import UnreadablePage
from temporalwiki.builders.wikipedia.sentence_ends import words_of
from temporalwiki.builders.wikipedia.sentences import (
    article_sentences,
    join_paragraphs,
    join_sentences,
    sentence_key,
    sentences_without_formula,
    some_sentences,
    split_sentences,
)

# | is where a sentence ends
SPLITS = {
    "two sentences": "He came. |He saw.",
    "decimals": "It is 3.5 million. |It grows.",
    "initials": "J. R. Smith wrote it. |He died.",
    "St. and U.S.": "St. Anne's in the U.S. is old. |It stands.",
    "a number after an abbreviation": "It weighs approx. 3.5 tonnes.",
    "volumes": "See vol. 7 (no. 3). |It says so.",
    "a title with a question mark": "Do Androids Dream? and others.",
    "questions": "Who? |Nobody knows.",
    "brackets around a sentence": "(He died.) |She lived (until 1818.) |The farm stood.",
    "brackets inside one": "He died (in 1818.) and she lived.",
    "etc. at an end": "They drank tea, etc. |She drank milk, etc. in bed.",
    "a quotation after a sentence": 'It rose. |"On average we find it." |He left.',
    "an enumeration in a sentence": "Ranked as 1. Lincoln; 2. Washington; and 3. Roosevelt, he said.",
    "a number at an end": "It stood with 8 and 9. |This led to it.",
    "a day of a month": "It was November 1. |Roosevelt left.",
    "the time of day": "At 12:30 a.m. 365 days a year. |Always.",
    "a raised digit after a unit": "It bears 300 lbf/in.² |Adobe is old.",
    "a court case": "Roe v. Wade was a case.",
    "a long quotation": 'The man said: "It was an old house that nobody wished to buy in many years. |'
    "It was cold in all of its rooms and halls. |Nobody at all came to see us there. |"
    'We took the long road home at once," and left them. |“It was late, and so we went on to the end of it. |'
    "We were all tired, and yet nobody complained. |At last we saw the lights of a village in the dark. |"
    "There was still a light in the inn, and so we knocked. |It was the end.” |He died.",
    "a short quotation": 'He said: "It is. It was." |He left.',
}
OTHERS = {
    "white space is folded": ("  He   came.  \t He saw. ", ["He came.", "He saw."]),
    "a list keeps its lines": ("One item\nTwo items. Two sentences", ["One item", "\nTwo items.", "Two sentences"]),
    "formulas": (
        "It holds. Let \x08 be one. It is\nwhere \x08 is one\nTwo \x08. Three",
        ["It holds.", "It is", "\nThree"],
    ),
    "nothing": ("  ", []),
}


@pytest.mark.parametrize(("paragraph", "expected"), OTHERS.values(), ids=OTHERS)
def test_a_paragraph_is_split_into_sentences(paragraph: str, expected: list[str]) -> None:
    assert split_sentences(paragraph, "en") == expected


ENDS = {
    "an ordinal": [
        ("de", "Die Burg wurde im 12. Jahrhundert gebaut. |Der Verein stieg in die 3. Liga auf."),
        ("de", "Am 3. Oktober kam die 100. Ausgabe. |Er lebte im 19. und 20. Jahrhundert."),
        ("de-at", "Der 2. Weltkrieg endete. |Karl der 6./7. Sohn war da."),
        ("lb", "Am 19. Joerhonnert war et kleng. |Et ass al."),
        ("da", "Klubben rykkede op i 2. Division. |I 1. Verdenskrig faldt han."),
        ("cs", "Hrála 1. FC Praha. |Vznikla roku 1920."),
        ("is", "Það var 3. Deild. |Hann kom."),
        ("hu", "A 8. Henrik itt volt. |Az 1848. 03. 15. napja ünnep."),
        ("sl", "Bil je 1. Vojvoda. |Umrl je leta 1990."),
    ],
    "a Roman numeral": [
        ("tr", "XIX. Yüzyılda yaşadı. |Sonra II. Abdülhamid geldi. |Bu XX. yüzyıldı."),
        ("hu", "A XX. században élt. |Jött II. Rákóczi Ferenc."),
        ("pl", "Jan III. Sobieski i lata 60. XX wieku. |Potem przyszedł."),
        ("hr", "Karlo IV. Habsburški vladao je. |On je umro."),
        ("fi", "Kustaa II. Aadolf tuli. |Hän kuoli."),
        ("de", "Er hieß Friedrich II. von Burg. |Sein Sohn war Karl IV. von Tal. |Danach starb er."),
    ],
    "a number that is no ordinal": [
        ("de", "Es geschah im Jahr 1990. |Karl ging fort. |Es sind 130 000. |Er stieg auf 3,5. |Dann nichts."),
        ("fi", "Saaria on yhteensä 96. |Näistä osa on pieniä. |Määrä oli noin 250. |Musiikki soi."),
        ("no", "Antallet gikk ned til 12. |Berlins bydeler er små."),
        ("sv", "Han var nummer 3. |Karl kom. |Det var Karl XII. |Kriget tog slut."),
        ("fr", "Il naquit en 19. |Jean mourut. |C'est Louis XIV. |Versailles est grand."),
    ],
    "an abbreviation": [
        ("pl", "Kościół św. Anny stoi przy ul. Długiej. |Szkoła im. Jana ma ok. 300 uczniów."),
        ("hi", "डॉ. राम आए। |प्रो. शर्मा और पं. नेहरू गए।"),
        ("mr", "डॉ. आंबेडकर आले. |ते १९०१ मध्ये गेले."),
        ("fr", "M. Dupont vint. |Mme. Blanc partit avec Mgr. Roux."),
        ("cs", "Kostel sv. Víta stojí. |Dr. Novák a tzv. Malá strana."),
        ("ro", "Biserica Sf. Nicolae e veche. |Str. Lungă are cca. 300 de case."),
        ("ru", "Театр им. Шиллера стоит на ул. Ленина. |Ему ок. 100 лет."),
        ("sr", "Црква св. Саве је велика. |Др. Јован је дошао."),
        ("nl", "Hij kent dhr. Jansen, o.a. Piet en mevr. Smit. |Zij ging."),
        ("es", "El Sr. Pérez vive con la Sra. Ruiz. |La pág. Dos falta."),
        ("th", "ดร. สมชาย มา"),
        ("el", "Ο κ. Παππάς ήρθε. |Η οδ. Αθηνάς είναι μεγάλη."),
    ],
    "an initial without capitals": [
        ("ar", "قال د. محمد ذلك. |ثم ذهب."),
        ("fa", "دکتر م. رضا آمد. |او رفت."),
        ("he", "הרב א. כהן בא. |הוא הלך."),
        ("bn", "ড. রহিম আসেন। |তিনি যান।"),
    ],
    "an era or a part before a number": [
        ("tr", "M.Ö. 300 yılında kuruldu. |Şehir eskidir."),
        ("th", "เขาเกิดใน พ.ศ. 2470 ที่นี่"),
        ("ar", "في القرن ق.م. 200 رجل. |ثم ذهب."),
        ("mr", "इ.स. १७०१ मध्ये. |ते गेले."),
        ("fr", "Vers 300 av. J.-C. 200 hommes vinrent. |Ils partirent."),
        ("de", "Um 300 v. Chr. 200 Mann. |Nach Kap. 3 und Sept. 1990 war Ruhe."),
    ],
    "a year after a full stop": [
        ("de", "Er lebte in Berlin. |2018 wurde er Präsident. |Er kam ca. 1990, geb. 1950."),
        ("da", "Han bor i Oslo. |1990 kom han hjem."),
        ("fi", "Se on pääkaupunki. |1700-luvulla se kasvoi."),
        ("ca", "Va viure a Vic. |1936 va ser dur."),
        ("kk", "Ол орталыққа айналды. |1871 жылы келді."),
    ],
    "a quotation that ends within a sentence": [
        ("ja", "彼は「はい。」と言った。|次の文。"),
        ("ja", "「行く。行かない。」という歌がある。|「終わり。」|また来た。"),
        ("zh", "他喜欢《你好。》一书。|“我走了。”他说。|“好。”的人很多。"),
        ("ko", '그는 "간다."라고 말했다. |다음이다.'),
        ("zh-yue", "「好。」嘅人。|佢走。"),
    ],
    "a full stop without a blank": [
        ("fr", "Il est né en 300 av. J.-C. à Rome. |Il mourut."),
        ("mr", "हे ३४.७ टक्के आहे. |ते गेले."),
        ("my", "လူဦးရေ ၃.၄ သန်း။"),
        ("en", "The .NET framework is not ASP.NET. |'Twas late."),
        ("af", "Die John-F.-Kennedy-Schule is oud. |Dit staan."),
        ("sr", "Мандати креирани 2001.-ве године важе. |Он је дошао."),
        ("ta", "நகரம் அமைந்துள்ளது.|இது பெரியது."),
        ("en", 'It ended.|Then he went. |He said "It is."|The end (he died.)'),
    ],
    "an apostrophe at the beginning": [("en", "'Twas late. |'Tis so."), ("nl", "Hij ging. |'s Avonds kwam hij.")],
    "a quotation mark after a blank": [("en", 'The tale of Ab." |The pillar. |(10,000 men.) |He rose in.² |Then.')],
}


ENDS["English"] = [("en", text) for text in SPLITS.values()]


@pytest.mark.parametrize(("language", "text"), [case for cases in ENDS.values() for case in cases])
def test_a_sentence_ends_where_its_language_ends_it(language: str, text: str) -> None:
    whole = text.replace("|", "")
    assert [sentence.strip() for sentence in split_sentences(whole, language)] == [s.strip() for s in text.split("|")]
    assert join_sentences(split_sentences(whole, language)) == whole


PIECES = {
    "blanks": ("He came.  She saw.", "en", ["He came.", "She saw."]),
    "lines of a list": ("He came.\nShe saw. It is.", "en", ["He came.", "\nShe saw.", "It is."]),
    "Japanese": ("東京は大きい。「はい」。次。", "ja", ["東京は大きい。", "\x1f「はい」。", "\x1f次。"]),
    "Chinese with a blank": ("北京很大。\n人口很多。 好。", "zh", ["北京很大。", "\n人口很多。", "好。"]),
    "Korean": ("서울은 크다. 다음.다음.", "ko", ["서울은 크다.", "다음.다음."]),
    "an English page without a blank": ("It ended!Then he", "en", ["It ended!", "\x1fThen he"]),
}


@pytest.mark.parametrize(("text", "language", "pieces"), PIECES.values(), ids=PIECES)
def test_a_sentence_that_follows_without_a_blank_is_marked(text: str, language: str, pieces: list[str]) -> None:
    assert split_sentences(text, language) == pieces
    assert join_sentences(pieces) == text.replace("  ", " ")


SELECTED = {
    "a blank stays": (["A.", "b.", "C."], ["A.", "C."]),
    "glued to what is left out": (["A.", "b.", "\x1fC."], ["A.", "C."]),
    "left out, and glued": (["A.", "\x1fb.", "C."], ["A.", "C."]),
    "glued all along": (["A.", "\x1fb.", "\x1fC."], ["A.", "\x1fC."]),
    "a line stays": (["A.", "\nb.", "\x1fC."], ["A.", "\nC."]),
    "glued to what stays": (["A.", "\x1fB.", "c."], ["A.", "\x1fB."]),
    "the first": (["b.", "\nC.", "\x1fD."], ["C.", "\x1fD."]),
    "nothing": (["b."], []),
}


@pytest.mark.parametrize(("sentences", "expected"), SELECTED.values(), ids=SELECTED)
def test_sentences_that_are_left_out_leave_their_distance(sentences: list[str], expected: list[str]) -> None:
    assert some_sentences(sentences, lambda sentence: sentence[-2].isupper()) == expected


LANGUAGES = st.sampled_from(["en", "de", "hu", "fr", "hi", "th", "ja", "zh", "ar", "xx"])
PARTS = st.sampled_from(
    [*"aB1. ?!\"“”»(),-'’。」』はと", "XI", "12", "1990", "Dr", "ค", "ศ", "डॉ", "।", "\u0301", "म"]
)


@given(st.lists(PARTS, max_size=60).map("".join), LANGUAGES)
def test_joined_sentences_are_the_text_of_the_page(text: str, language: str) -> None:
    text = " ".join(text.split())
    sentences = split_sentences(text, language)
    assert join_sentences(sentences) == text
    assert all(sentence.strip() for sentence in sentences)


def test_the_words_of_every_language_are_ones_that_are_compared() -> None:
    file, tables = sentence_ends._tables()
    for code, table in tables.items():
        assert table.keys() <= {"goes_on", "before_a_number", "opens", "largest_ordinal", "after_quotation"}, code
        for name in ("goes_on", "before_a_number", "opens"):
            for word in table.get(name, ()):
                assert isinstance(word, str) and word == word.lower().strip(), f"{code}: {word!r}: quote it"
                assert " " not in word and (name == "opens" or word[-1] == "." or word in "§№"), (code, word)
    codes = [code for key in file["languages"] for code in key.split()]
    assert len(codes) == len(set(codes))
    assert words_of("de-at") is not words_of("at") and words_of("de-at") == words_of("de")
    assert words_of("zh-min-nan").after_quotation == words_of("zh").after_quotation


def test_sentences_that_lost_a_formula_are_counted() -> None:
    assert sentences_without_formula("It holds. Let \x08 be \x08.\nIt is\nTwo \x08.", "en") == 2
    assert sentences_without_formula("It holds.", "en") == 0


@given(st.text("abA.?! ()\"'“”«»3\né漢", max_size=400), st.sampled_from([1, 7, 50, sentences.LONGEST_LINE]))
def test_nothing_but_white_space_is_lost_however_short_lines_are_cut(paragraph: str, longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "LONGEST_LINE", longest)
        split = split_sentences(paragraph, "en")
    assert all(sentence.strip() for sentence in split)
    lines = (" ".join(line.split()) for line in paragraph.split("\n"))
    assert join_sentences(split) == "\n".join(filter(None, lines))


@pytest.mark.parametrize("space", ["\x85", "\xa0", "\u2028", "\u3000"])
def test_white_space_that_makes_the_segmenter_panic_is_white_space(space: str) -> None:
    sentences = split_sentences(f"It{space}was in 1999. He was R{space}.", "en")
    assert sentences == ["It was in 1999.", "He was R ."]


def test_a_line_that_the_segmenter_is_slow_on_is_split_in_pieces() -> None:
    split = split_sentences("“" * 400_000, "en")
    assert len(split) > 10 and join_sentences(split) == "“" * 400_000


def test_a_sentence_that_goes_on_a_million_times_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cut of the segmenter is mended; what is joined is not copied again for each."""
    monkeypatch.setattr(sentences.sentencex, "segment", lambda _language, line: re.findall(r" ?\S+ ?", line))
    assert split_sentences("He " + "went. " * 1_000_000, "en") == ["He " + " ".join(["went."] * 1_000_000)]


def test_lines_and_paragraphs_come_back_when_joined() -> None:
    article = "Some prose. And more.\n\n* one\n* two. three\n\nLast."
    paragraphs = article_sentences(article, "en")
    assert paragraphs == [["Some prose.", "And more."], ["one", "\ntwo. three"], ["Last."]]
    assert join_paragraphs(paragraphs) == "Some prose. And more.\n\none\ntwo. three\n\nLast."
    assert join_paragraphs([["\ntwo. three"]]) == "two. three"


def test_equal_sentences_have_equal_keys() -> None:
    assert sentence_key("\nCafe\u0301  Noir ") == sentence_key("Caf\u00e9\u00a0Noir") == "Caf\u00e9 Noir"


@pytest.mark.fault("large page", "a page that takes more than a minute", "dropped by reason")
def test_a_page_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(wikitext: str, **_options: object) -> list[str]:
        while True:
            wikitext += ""

    monkeypatch.setattr(sentences, "paragraphs", forever)
    monkeypatch.setattr(sentences, "SECONDS", 0.05)
    with pytest.raises(UnreadablePage) as problem:
        article_sentences("x", "en")
    assert problem.value.reason == "takes_too_long"
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def _read_slowly(connection: Connection) -> None:
    with sentences.time_limit(0.3):
        connection.send("begun")
        connection.recv()
    connection.send("read")


@pytest.mark.fault(
    "large page", "a build is paused for longer than the time limit of a page, then continued", "the page is read"
)
def test_a_page_at_which_the_process_was_stopped_is_read() -> None:
    """A laptop that sleeps, Ctrl-Z: what counts is the time of the processor."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_read_slowly, args=(theirs,))
    process.start()
    assert ours.recv() == "begun"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGCONT)
    ours.send("go on")
    theirs.close()
    process.join()
    assert process.exitcode == 0
    assert ours.recv() == "read"
