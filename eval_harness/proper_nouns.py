"""Find the proper nouns of a text, and the tokens of a language model that overlap them.

TemporalWiki's intrinsic evaluation measures the perplexity of proper nouns (NNP and NNPS of the Penn Treebank),
because most facts of a text are in them. A spaCy pipeline finds them. If none is installed, this module trains a small
one from a treebank: ``python -m temporalwiki.eval_harness.proper_nouns --help``.
"""

import argparse
import gzip
import importlib
import random
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

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


class Agreement(NamedTuple):
    """The agreement of found proper nouns with a treebank, each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def read_conllu(path: Path) -> list[list[Word]]:
    """Return the texts of a treebank in CoNLL-U, which may be gzipped: ten sentences each, with the tags of XPOS.

    Raises InputError for a file that is damaged or not CoNLL-U, and OSError.
    """
    _, training = _spacy()
    raw = path.read_bytes()
    try:
        lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
        content = "\n".join(line for line in lines if not line.startswith("#"))
        docs = list(training.converters.conllu_to_docs(content, no_print=True))
        return [[Word(word.text, word.tag_, bool(word.whitespace_)) for word in doc] for doc in docs]
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, IndexError) as error:
        raise InputError(f"{path}: damaged, or not CoNLL-U in UTF-8 ({in_one_line(error)[:100]})") from None


def agreement(nouns: ProperNouns, texts: Sequence[Sequence[Word]]) -> Agreement:
    """Return how well ``nouns`` finds the proper nouns of a treebank in its text.

    A found proper noun is right if the treebank has one with exactly the same characters.
    """
    right = found = known = 0
    plain = ["".join(form + " " * space for form, _, space in text) for text in texts]
    for text, spans in zip(texts, nouns(plain), strict=True):
        begins = accumulate((len(form) + space for form, _, space in text), initial=0)
        words = zip(begins, text, strict=False)
        gold = {(begin, begin + len(form)) for begin, (form, tag, _) in words if tag in TAGS}
        right += len(gold.intersection(spans))
        found += len(spans)
        known += len(gold)
    return Agreement(right / max(found, 1), right / max(known, 1), 2 * right / max(found + known, 1))


def train_tagger(texts: Iterable[Sequence[Word]], out: Path, epochs: int = 3, seed: int = 0) -> None:
    """Train a small tagger for English and write it to the folder ``out``, for spacy.load and ProperNouns.

    The same texts and seed give the same bytes; the random numbers of Python, NumPy and torch are seeded. Raises
    UsageError for less than one epoch, and InputError if no word is a proper noun or ``out`` exists.
    """
    if epochs < 1:
        raise UsageError(f"--epochs {epochs}: must be at least 1")
    spacy, training = _spacy()
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


def _spacy() -> tuple[Any, Any]:
    try:
        return importlib.import_module("spacy"), importlib.import_module("spacy.training")
    except ImportError:
        raise InputError("spaCy is not installed; pip install spacy") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Train a tagger from the command line; return 0 if done, 1 after an error (in one line), 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog=_TRAIN,
        description="Train a small spaCy tagger for English from a treebank, if no pipeline is installed.",
        epilog=f"example, with the English Web Treebank of Universal Dependencies: "
        f"{_TRAIN} en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu tagger",
    )
    parser.add_argument("train", nargs="+", type=Path, metavar="TRAIN", help="treebank, .conllu or .conllu.gz")
    parser.add_argument("out", type=Path, metavar="OUT", help="new folder for the tagger")
    parser.add_argument("--dev", type=Path, metavar="DEV", help="treebank to measure the tagger on")
    parser.add_argument("--epochs", type=int, default=3, metavar="N", help="passes over the treebank (default: 3)")
    given = parser.parse_intermixed_args(argv)  # --dev may stand between the treebanks and OUT
    try:
        dev = read_conllu(given.dev) if given.dev else []
        train_tagger(chain.from_iterable(map(read_conllu, given.train)), given.out, given.epochs)
        if given.dev:
            precision, recall, f1 = agreement(ProperNouns(str(given.out)), dev)
            print_result(
                f"proper nouns of {given.dev.name}, word by word: precision {precision:.3f}, recall {recall:.3f}, "
                f"F1 {f1:.3f}"
            )
    except (InputError, OSError) as error:
        say(f"proper_nouns: {in_one_line(error)[:200]}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
