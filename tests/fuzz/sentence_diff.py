"""Algorithm 1 on two versions of an article: all its sentences are of the text, in order, and each is there once."""

import zlib

from temporalwiki.builders.wikipedia.novelty import folded_key
from temporalwiki.builders.wikipedia.prose_lines import FORMULA
from temporalwiki.builders.wikipedia.sentence_diff import ArticleVersions, new_sentences
from temporalwiki.builders.wikipedia.sentences import (
    Paragraph,
    count_words,
    join_paragraphs,
    join_sentences,
    sentence_key,
    split_sentences,
)

_BETWEEN = b"\x00"  # the versions; a paragraph ends at a blank line
SEEDS = (
    b"It is old. It stays.\n\nGone.\x00It is new. It stays.\n\nA paragraph. Of its own.",
    "Tea, etc. She (he died.) drank 3 in.² No. 5 is; and 3. B.\n\n* a\nb. C\x00Tea, etc. She (he died.) b. C".encode(),
    '"He." said “she” c. 1900, p. 5. On Nov. 1. R.\x00漢。字。 é. e\u0301.'.encode(),
    b"A.\nB. C.\nD.\x00B.\nA. C.",
    (
        '"It was an old house that nobody wished to buy. It was cold in all of its rooms, and dark. Nobody came '
        'to see us in all the years. So we went home," he said.\0“He said it was.” He was. “' + "It is. " * 40
    ).encode(),
)
FOUND = ("R\x85.".encode(), "It is J\u00a0.".encode())  # sentencex panics
WORDS = (
    *b"\x00 \xc2\x85 ... \xe2\x80\xa8 \xe3\x80\x80 a.m. ( [ ' \x1c \xc2\xa0".split(),
    *(b"\n\n", b"\n", b". ", b"! ", b"? ", b"etc. ", b".) ", b' "', b"No. 5", b"c. 1", b"1. ", b"; and 3. "),
    *("².".encode(), "。".encode(), "“".encode(), "”".encode(), "»".encode(), "e\u0301".encode(), b"Mr. ", b"A. B. "),
)
_PUMPED = 30_000  # characters
_ONE_IN = 16  # inputs are pumped


def check(data: bytes) -> None:
    before, _, after = data.decode("utf-8", "replace").partition("\0")
    previous, recent = _paragraphs(before), _paragraphs(after)
    for language in ("en", "de", "ja"):
        old, new = _split(previous, language), _split(recent, language)
        versions = ArticleVersions(previous, recent, language, "exact")
        _check_new(old, new, versions.added())
        _check_new(new, old, versions.removed())
        assert new_sentences(new, new) == [] == ArticleVersions(recent, recent, language, "exact").added()
        _check_folded(old, new, ArticleVersions(previous, recent, language, "folded"))
        assert join_paragraphs(new) == "\n\n".join(map(join_sentences, new))
    if after and zlib.crc32(data) % _ONE_IN == 0:
        half = len(after) // 2
        for longer in (after * (_PUMPED // len(after)), after[:half] * (_PUMPED // len(after))):
            split_sentences(longer, "en")


def _check_folded(old: list[Paragraph], new: list[Paragraph], versions: ArticleVersions) -> None:
    added, removed = versions.added(), versions.removed()
    for before, after, found in ((old, new, added), (new, old, removed)):
        known = {folded_key(sentence) for paragraph in before for sentence in paragraph}
        wanted = [[s for s in paragraph if folded_key(s) not in known] for paragraph in after]
        assert _lines_apart(found) == _lines_apart(wanted), "not the sentences that are new"
    for changed, reworded in zip((added, removed), versions.reworded(added, removed), strict=True):
        assert 0 <= reworded <= sum(map(count_words, changed)), "more words than there are"
    assert versions.words_of_other_typography(added) >= 0


def _lines_apart(paragraphs: list[Paragraph]) -> list[Paragraph]:
    return [[sentence.strip() for sentence in paragraph] for paragraph in paragraphs if paragraph]


def _paragraphs(text: str) -> list[str]:
    """Paragraphs as they come out of wikitext."""
    lines = (" ".join(line.split()) for line in text.replace(FORMULA, "").split("\n"))
    found = "\n".join(lines).split("\n\n")
    return [paragraph for one in found if (paragraph := one.strip("\n"))]


def _split(paragraphs: list[str], language: str) -> list[Paragraph]:
    found = []
    for paragraph in paragraphs:
        sentences = split_sentences(paragraph, language)
        assert sentences == split_sentences(paragraph, language), "cut twice, other sentences"
        assert all(sentence.strip() for sentence in sentences), "an empty sentence"
        assert join_sentences(sentences) == _single_spaces(paragraph), "cutting lost something or added to it"
        if sentences:
            found.append(sentences)
    return found


def _single_spaces(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _check_new(before: list[Paragraph], after: list[Paragraph], fresh: list[Paragraph]) -> None:
    assert fresh == new_sentences(before, after), "another result than from all sentences"
    known = {sentence_key(sentence) for paragraph in before for sentence in paragraph}
    wanted = [[s for s in paragraph if sentence_key(s) not in known] for paragraph in after]
    assert _lines_apart(fresh) == _lines_apart(wanted), "not the sentences that are new"
