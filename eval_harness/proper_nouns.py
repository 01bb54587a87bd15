"""Find the proper nouns of a text, and the tokens of a language model that overlap them.

TemporalWiki's intrinsic evaluation measures the perplexity of proper nouns (NNP and NNPS of the Penn Treebank),
because most facts of a text are in them. A spaCy pipeline finds them. If none is installed, this module trains a small
one from a treebank: ``python -m temporalwiki.eval_harness.proper_nouns --help``.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import random
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.files import whole_folder
from temporalwiki.base.terminal import print_result, say
from temporalwiki.builders.ckl.salient_spans import Span, load_pipeline, pieces
from temporalwiki.methods.packing import Ints

TAGS = frozenset(("NNP", "NNPS"))

_TRAIN = "python -m temporalwiki.eval_harness.proper_nouns"
_PIPES_NOT_NEEDED = ["parser", "senter", "ner", "entity_linker", "lemmatizer", "trainable_lemmatizer", "textcat"]
_BATCH_PIECES, _PIECE_CHARACTERS = 8, 20_000  # read at once: a small tagger then takes at most 450 MB


class ProperNouns:
    """Finds proper nouns with a spaCy pipeline: words tagged NNP or NNPS.

    If the pipeline has no such tags, proper nouns are the words whose part of speech is PROPN. ``key`` identifies the
    version of spaCy and the files of the pipeline.
    """

    def __init__(self, name: str) -> None:
        """Load a pipeline by name or folder. Raises InputError if it is missing, or does not tag proper nouns."""
        instead = f"train a small one ({_TRAIN} --help)"
        self._nlp, self.key = load_pipeline(name, _PIPES_NOT_NEEDED, instead)
        labels = {label for labels in self._nlp.pipe_labels.values() for label in labels}
        self._tagged = not labels.isdisjoint(TAGS)
        mapped = {"tagger", "attribute_ruler"} <= set(self._nlp.pipe_names)  # maps other tags to parts of speech
        if not (self._tagged or mapped or any("POS=PROPN" in label.split("|") for label in labels)):
            raise InputError(
                f"{name}: this pipeline tags no proper nouns; take one with a tagger or a morphologizer, "
                f"such as en_core_web_sm, or {instead}"
            )

    def __call__(self, texts: Iterable[str]) -> Iterator[list[Span]]:
        """Yield the spans of the proper nouns of each text, in characters, in order and without white space.

        Long texts are tagged in pieces that end at the end of a paragraph, a line or a word.
        """
        spans: list[Span] = []
        for doc, (start, last) in self._nlp.pipe(self._cut(texts), as_tuples=True, batch_size=_BATCH_PIECES):
            for token in doc:
                if token.tag_ in TAGS if self._tagged else token.pos_ == "PROPN":
                    at = start + token.idx
                    spans += [(at + word.start(), at + word.end()) for word in re.finditer(r"\S+", token.text)]
            if last:
                yield spans
                spans = []

    def _cut(self, texts: Iterable[str]) -> Iterator[tuple[str, tuple[int, bool]]]:
        """Yield (piece, (its position in the text, whether it is the last piece)) for all texts."""
        for text in texts:
            for start, end in pieces(text, min(self._nlp.max_length, _PIECE_CHARACTERS)):
                yield text[start:end], (start, end == len(text))


def overlap(offsets: Ints, spans: Sequence[Span]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether each token shares a character with a span, bool [tokens].

    ``offsets`` are the tokens' positions, int [tokens, 2], as a tokenizer gives them: with or without the space before
    a word, twice the same if a character became two tokens, (0, 0) if a token has no text. A single "▁" of T5 has the
    offsets of the next letter, and counts as that letter does. ``spans`` are in order and do not overlap.
    """
    starts, ends = np.array([*spans, (2**62, 2**62)], np.int64).T  # the last one is after every token
    begin, end = offsets[:, 0], offsets[:, 1]
    after = np.searchsorted(ends, begin, side="right")  # the first span that ends after the token begins
    return (begin < end) & (starts[after] < end)


# Treebanks


class Word(NamedTuple):
    """A word of a treebank."""

    form: str
    tag: str  # of the Penn Treebank; "" if it is not known
    space: bool  # whether white space follows


_ID = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?|[0-9]+\.[1-9][0-9]*")
_DAMAGE = (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile)
_TEXT_WORDS = 200  # words after which a text ends if the treebank does not mark paragraphs


def read_conllu(path: Path) -> Iterator[list[Word]]:
    """Yield the paragraphs of a treebank in CoNLL-U, which may be gzipped.

    The tags are in the column XPOS. A token of several words becomes these words if they spell it ("don't" is
    "do" and "n't"), else one word without a tag. Empty nodes are left out. Raises InputError, with the line, for a
    file that is not CoNLL-U, and OSError.
    """
    text: list[Word] = []
    words: list[Word] = []  # of the current token
    form, space = "", True  # of the current token
    number = end = 0  # of the current word, and of the last word of the current token
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for at, line in enumerate(_undamaged(path, file), 1):
            if not line or line.startswith("#"):
                if number < end:
                    raise InputError(f"{path}: line {at}: the sentence ends within the token {form!r}")
                number = end = 0
                if text and (line.startswith(("# newdoc", "# newpar")) or (not line and len(text) >= _TEXT_WORDS)):
                    yield text
                    text = []
                continue
            columns = line.split("\t")
            found = _ID.fullmatch(columns[0])
            if found is None or len(columns) != 10 or not columns[1]:
                raise InputError(f"{path}: line {at}: not CoNLL-U: a number, a word and 8 more columns, between tabs")
            if found[1] is None:  # an empty node
                continue
            first, last = int(found[1]), int(found[2] or found[1])
            if first != number + 1 or (found[2] and not number == end < first < last):
                raise InputError(f"{path}: line {at}: {columns[0]} cannot stand after word {number}")
            if number == end:
                form, space, end = columns[1], "SpaceAfter=No" not in columns[9].split("|"), last
            if found[2]:
                continue
            number = first
            words.append(Word(columns[1], "" if columns[4] == "_" else columns[4], space and number == end))
            if number == end:
                text += words if "".join(word.form for word in words) == form else [Word(form, "", space)]
                words = []
    if text:
        yield text


def _undamaged(path: Path, file: TextIO) -> Iterator[str]:
    """Yield the lines of a file without line ends, then an empty line. Raises InputError for a damaged file."""
    try:
        yield from (line.rstrip("\n") for line in file)
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged, or not UTF-8 ({in_one_line(error)[:200]})") from None
    yield ""


def _plain(words: Sequence[Word]) -> tuple[str, list[Span]]:
    """Return the original text, and the spans of its proper nouns."""
    spans, at = [], 0
    for word in words:
        if word.tag in TAGS:
            spans.append((at, at + len(word.form)))
        at += len(word.form) + word.space
    return "".join(word.form + " " * word.space for word in words), spans


# Training


def train_tagger(texts: Iterable[Sequence[Word]], out: Path, epochs: int = 3, seed: int = 0) -> None:
    """Train a small tagger for English and write it to the folder ``out``, for spacy.load and ProperNouns.

    If one token of spaCy is several words of the treebank, the tagger learns from it only if the words have the same
    tag. The function seeds the random numbers of Python, NumPy and torch; the same texts and seed give the same bytes.
    Raises UsageError for less than one epoch, and InputError if no word is a proper noun or ``out`` exists.
    """
    if epochs < 1:
        raise UsageError(f"--epochs {epochs}: must be at least 1")
    try:
        spacy, training = importlib.import_module("spacy"), importlib.import_module("spacy.training")
    except ImportError:
        raise InputError("spaCy is not installed; pip install spacy") from None
    if out.exists():
        raise InputError(f"{out}: exists already; remove it, or name another folder")
    texts = list(texts)
    if not any(word.tag in TAGS for text in texts for word in text):
        raise InputError("no word of the treebank is tagged NNP or NNPS; XPOS, the fifth column, must have these tags")
    with whole_folder(out) as part:  # an error here comes before minutes of training
        spacy.util.fix_random_seed(seed)
        nlp = spacy.blank("en")
        nlp.add_pipe("tagger")
        examples = []
        for text in texts:
            forms, tags, spaces = (list(column) for column in zip(*text, strict=True))
            gold = spacy.tokens.Doc(nlp.vocab, words=forms, tags=tags, spaces=spaces)
            examples.append(training.Example(nlp.make_doc(gold.text), gold))
        optimizer = nlp.initialize(lambda: examples)
        order = random.Random(seed)
        for epoch in range(1, epochs + 1):
            order.shuffle(examples)
            losses: dict[str, float] = {}
            for batch in training.minibatch_by_words(examples, 1000):
                nlp.update(batch, drop=0.1, sgd=optimizer, losses=losses)
            say(f"epoch {epoch} of {epochs}: loss {losses['tagger']:.0f}")
        nlp.to_disk(part)


@dataclass(frozen=True)
class Agreement:
    """The agreement of found proper nouns with a treebank, each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def agreement(nouns: ProperNouns, texts: Sequence[Sequence[Word]]) -> Agreement:
    """Return how well ``nouns`` finds the proper nouns of a treebank in its original text.

    A found proper noun is right if the treebank has one with exactly the same characters.
    """
    right = found = known = 0
    for spans, (_, gold) in zip(nouns(_plain(text)[0] for text in texts), map(_plain, texts), strict=True):
        right += len(set(spans) & set(gold))
        found += len(spans)
        known += len(gold)
    return Agreement(right / max(found, 1), right / max(known, 1), 2 * right / max(found + known, 1))


_EXAMPLE = f"""\
example, with the English Web Treebank of Universal Dependencies:
  {_TRAIN} en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu tagger
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Train a tagger from the command line; return 0 if done, 1 after an error (in one line), 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog=_TRAIN,
        description="Train a small spaCy tagger for English from a treebank, if no pipeline is installed.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("train", nargs="+", type=Path, metavar="TRAIN", help="treebank, .conllu or .conllu.gz")
    parser.add_argument("out", type=Path, metavar="OUT", help="new folder for the tagger")
    parser.add_argument("--dev", type=Path, metavar="DEV", help="treebank to measure the tagger on")
    parser.add_argument("--epochs", type=int, default=3, metavar="N", help="passes over the treebank (default: 3)")
    given = parser.parse_intermixed_args(argv)  # --dev may stand between the treebanks and OUT
    try:
        dev = list(read_conllu(given.dev)) if given.dev else []
        train_tagger(chain.from_iterable(map(read_conllu, given.train)), given.out, given.epochs)
        if given.dev:
            scores = agreement(ProperNouns(str(given.out)), dev)
            print_result(
                f"proper nouns of {given.dev.name}, word by word: precision {scores.precision:.3f}, "
                f"recall {scores.recall:.3f}, F1 {scores.f1:.3f}"
            )
    except (InputError, OSError) as error:
        say(f"proper_nouns: {in_one_line(error)[:200]}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
