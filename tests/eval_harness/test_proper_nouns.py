"""Proper nouns found by spaCy, their overlap with tokens, treebanks, and training of a tagger."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.proper_nouns import (
    Agreement,
    ProperNouns,
    Word,
    agreement,
    main,
    overlap,
    read_conllu,
    train_tagger,
)
from temporalwiki.methods.packing import Encoder

import tiny_models
from a_folder import contents

spacy = pytest.importorskip("spacy", reason="proper nouns are found by spaCy, which is not installed")

Span = tuple[int, int]


# Tokens

BY_HAND = {
    "special tokens have no characters": ([(0, 0), (0, 3), (3, 3), (3, 5), (0, 0)], [(0, 5)], ".x.x."),
    "an empty token within a span": ([(0, 4), (2, 2), (4, 6)], [(0, 6)], "x.x"),
    "a token that begins with the character before it": ([(0, 2), (1, 2), (2, 4)], [(0, 1)], "x.."),
    "no tokens": ([], [(0, 3)], ""),
}


@pytest.mark.parametrize(("offsets", "spans", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_a_token_counts_if_it_has_a_character_of_a_span(offsets: list[Span], spans: list[Span], expected: str) -> None:
    found = overlap(np.array(offsets, np.int64).reshape(-1, 2), spans)
    assert found.dtype == bool
    assert "".join(".x"[token] for token in found.tolist()) == expected


def llama2() -> Any:
    """Return a BPE of characters with "▁" before words, and bytes for unknown characters."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"aeginrst", "▁P", "an"]
    backend = Tokenizer(
        models.BPE(
            vocab={piece: number for number, piece in enumerate([*pieces, "P"])},
            merges=[("▁", "P"), ("a", "n")],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: tiny_models.tokenizer("gpt2"),
    "llama": lambda: tiny_models.tokenizer("llama"),
    "t5": lambda: tiny_models.tokenizer("t5"),
    "llama2": llama2,
}
ENCODERS = {name: Encoder(make()) for name, make in TOKENIZERS.items()}
LETTERS = (
    "aeinrstPT,.'-"
    " \n\t\u00a0\u3000\u2028"  # white space
    "éß\u0301\u0308ﬁ…"  # composed and combining characters, and characters that normalisation splits
    "語東京ひ한"
    "مرب\u064bאह\u094dน"
    "\u200b\u200d\u200e\ufeff"  # no width
    "😀👩🏽🇫🇷"
    "𝒫"
)
written = st.text(st.sampled_from(LETTERS) | st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A strategy for a text and spans of its characters that are not white space, in order."""
    text = draw(written)
    spans: list[Span] = []
    at = 0
    while at < len(text):
        end = at + draw(st.integers(1, 6))
        run = text[at:end]
        if not any(map(str.isspace, run)) and draw(st.booleans()):
            spans.append((at, at + len(run)))
        at = end
    return text, spans


def check(text: str, spans: list[Span], offsets: np.ndarray[Any, Any]) -> set[int]:
    """Compare ``overlap`` with a check of every character, and return the characters of overlapping tokens."""
    inside = {at for start, end in spans for at in range(start, end) if not text[at].isspace()}
    marked = overlap(offsets, spans)
    assert marked.tolist() == [any(at in inside for at in range(start, end)) for start, end in offsets.tolist()]
    reached = {at for start, end in offsets.tolist() for at in range(start, end)}
    marks = {at for start, end in offsets[marked].tolist() for at in range(start, end)}
    assert inside & reached == inside & marks
    return marks


@pytest.mark.parametrize("name", TOKENIZERS)
@given(texts_with_spans())
def test_the_tokens_of_proper_nouns_are_those_with_a_character_of_one(
    name: str, given_text: tuple[str, list[Span]]
) -> None:
    text, spans = given_text
    ((_, offsets),) = ENCODERS[name].with_offsets([text])
    marks = check(text, spans, offsets)
    if name != "t5":  # bytes can spell everything, so that no character is lost
        assert {at for start, end in spans for at in range(start, end)} <= marks


def test_the_tokens_of_gpt2(shared_data: Path) -> None:
    encoder = Encoder(AutoTokenizer.from_pretrained(shared_data / "gpt2_tokenizer"))
    ((_, offsets),) = encoder.with_offsets(["It is Paris, 語!"])
    #                                            It is Ġ-Paris , and three bytes of 語, the first of them with Ġ
    assert overlap(offsets, [(6, 11), (13, 14)]).tolist() == [False, False, True, False, True, True, True, False]


# Pipelines


def pipeline(folder: Path, kind: str, *names: str) -> str:
    """Write a pipeline that tags only the given words as proper nouns, and return its folder.

    A tagger without training gives every word its first label; rules then change these words.
    """
    nlp = spacy.blank("en")
    component, noun, name, where = {
        "NNP": ("tagger", "NN", "NNP", "TAG"),
        "NNPS": ("tagger", "NN", "NNPS", "TAG"),
        "other tags": ("tagger", "NN", "XX", "POS"),
        "morphologizer": ("morphologizer", "POS=NOUN", "Number=Sing|POS=PROPN", "POS"),
    }[kind]
    words = nlp.add_pipe(component)
    for label in (noun, name):
        words.add_label(label)
    ruler = nlp.add_pipe("attribute_ruler")
    for word in names:
        ruler.add([[{"ORTH": word}]], {where: "PROPN" if where == "POS" else name})
    nlp.add_pipe("sentencizer")
    words.initialize(lambda: [spacy.training.Example.from_dict(nlp.make_doc("a"), {"tags": [noun], "pos": ["NOUN"]})])
    nlp.to_disk(folder)
    return str(folder)


@pytest.fixture(scope="module")
def rome(tmp_path_factory: pytest.TempPathFactory) -> ProperNouns:
    """A pipeline that tags Rome, Elba and Nile as proper nouns."""
    return ProperNouns(pipeline(tmp_path_factory.mktemp("rome") / "small", "NNP", "Rome", "Elba", "Nile"))


TEXT = "Paris and Rome, not paris.\n\nIn Rome \u3000 Rome's 東京."
ROME_AND_TOKYO = [(10, 14), (31, 35), (38, 42), (45, 47)]


@pytest.mark.parametrize("kind", ["NNP", "NNPS", "other tags", "morphologizer"])
def test_proper_nouns_are_found_by_tag_else_by_part_of_speech(tmp_path: Path, kind: str) -> None:
    nouns = ProperNouns(pipeline(tmp_path / "small", kind, "Rome", "東京"))
    assert list(nouns([TEXT, "", "Rome", " \n ", "none", TEXT])) == [
        ROME_AND_TOKYO,
        [],
        [(0, 4)],
        [],
        [],
        ROME_AND_TOKYO,
    ]
    assert list(nouns([])) == []
    assert [TEXT[start:end] for start, end in ROME_AND_TOKYO] == ["Rome", "Rome", "Rome", "東京"]


def test_white_space_is_no_part_of_a_proper_noun(tmp_path: Path) -> None:
    nouns = ProperNouns(pipeline(tmp_path / "small", "NNP", "\n\n", "New York", "Rome"))
    nouns._nlp.tokenizer = lambda text: spacy.tokens.Doc(  # as pipelines of some languages do
        nouns._nlp.vocab, words=["New York", "\n\n", "Rome"], spaces=[True, False, False]
    )
    assert list(nouns(["New York \n\nRome"])) == [[(0, 3), (4, 8), (11, 15)]]


@pytest.mark.fault("large page", "evaluate: a text with more characters than spaCy accepts", "it is split into pieces")
@pytest.mark.parametrize("longest", [1, 9, 30])
def test_a_text_that_is_too_long_for_spacy_goes_in_pieces(
    rome: ProperNouns, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Rome\n\n" * 7, "", "In Rome and in Rome. So Rome is.", "Rome"]
    whole = list(rome(texts))
    assert [len(spans) for spans in whole] == [7, 0, 3, 1]
    monkeypatch.setattr(rome._nlp, "max_length", longest)
    pieces = list(rome(texts))
    if longest == 1:  # every name is cut
        assert pieces == [[], [], [], []]
    else:
        assert pieces == whole


def test_texts_are_read_as_they_are_wanted_and_their_order_is_kept(rome: ProperNouns) -> None:
    read = 0

    def texts() -> Iterator[str]:
        nonlocal read
        for number in range(100):
            read += 1
            yield "a " * number + "Rome"

    found = rome(texts())
    assert [next(found) for _ in range(3)] == [[(0, 4)], [(2, 6)], [(4, 8)]]
    assert read < 50
    assert list(found) == [[(2 * number, 2 * number + 4)] for number in range(3, 100)]


def test_the_key_is_that_of_the_files(tmp_path: Path, rome: ProperNouns) -> None:
    assert rome.key.startswith(f"spacy {spacy.__version__} ")
    for name in ("same", "other"):
        shutil.copytree(rome._nlp.path, tmp_path / name)
    with (tmp_path / "other" / "meta.json").open("a") as file:
        file.write("\n")
    assert ProperNouns(str(tmp_path / "same")).key == rome.key != ProperNouns(str(tmp_path / "other")).key


def test_a_pipeline_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    foreign = spacy.blank("de")
    foreign.add_pipe("tagger").add_label("NE")
    foreign.to_disk(tmp_path / "foreign")
    (tmp_path / "other").mkdir()
    download = "python -m spacy download en_core_web_xxl, or train a small one .*proper_nouns --help"
    for name, message in (
        ("en_core_web_xxl", f"en_core_web_xxl: no such spaCy pipeline, nor a folder with one; {download}"),
        (str(tmp_path / "blank"), "blank: this pipeline tags no proper nouns; take one with a tagger or a morph"),
        (str(tmp_path / "foreign"), "foreign: this pipeline tags no proper nouns"),
        (str(tmp_path / "other"), "other: spaCy cannot load it"),
    ):
        with pytest.raises(InputError, match=message) as raised:
            ProperNouns(name)
        assert "\n" not in str(raised.value)


def test_without_spacy_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    for use in (lambda: ProperNouns("en_core_web_sm"), lambda: train_tagger([], tmp_path / "out")):
        with pytest.raises(InputError, match="spaCy is not installed; pip install spacy"):
            use()


# Treebanks


def line(number: str, form: str, tag: str = "NN", misc: str = "_") -> str:
    return "\t".join([number, form, "_", "_", tag, "_", "0", "_", "_", misc])


def conllu(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_treebank_is_read(tmp_path: Path) -> None:
    words = [line("1", "In", "IN"), line("2", "Rome", "NNP", "SpaceAfter=No"), line("3", ".", ".")]
    path = conllu(tmp_path / "a.conllu", "# newdoc", *words, "", *[*words, ""] * 12)
    texts = read_conllu(path)
    assert [len(text) for text in texts] == [30, 9]
    assert texts[0][:3] == [Word("In", "IN", True), Word("Rome", "NNP", False), Word(".", ".", True)]
    (tmp_path / "a.conllu.gz").write_bytes(gzip.compress(path.read_bytes().replace(b"\n", b"\r\n")))
    assert read_conllu(tmp_path / "a.conllu.gz") == texts


PACKED = gzip.compress((line("1", "a") + "\n\n").encode() * 1000, mtime=0)
REFUSED = {
    "too-few-columns.conllu": b"1\ta\n",
    "spaces.conllu": b"1 a _ _ NN _ 0 _ _ _\n",
    "cut.conllu.gz": PACKED[:-20],
    "changed.conllu.gz": PACKED[:30] + b"\xff\xff\xff" + PACKED[33:],
    "plain.conllu.gz": b"1\ta",
    "latin.conllu": "é".encode("latin-1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_treebank_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(REFUSED[name])
    with pytest.raises(InputError, match=f"{name}: damaged, or not CoNLL-U in UTF-8"):
        read_conllu(tmp_path / name)


def test_a_real_treebank_is_read(shared_data: Path) -> None:
    path = shared_data / "ud" / "en_ewt-ud-dev.conllu"
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    words = [(columns[1], columns[4]) for columns in lines if len(columns) == 10 and columns[0].isdecimal()]
    assert [(word.form, word.tag) for text in read_conllu(path) for word in text] == words


# Training

NAMES = ["Norland", "Easton", "Weber", "Keltar", "Oxburn", "Anna"]
SENTENCES = [
    "In/IN {0}/NNP there/EX is/VBZ a/DT long/JJ river/NN ./.",
    "The/DT capital/NN of/IN {0}/NNP is/VBZ {1}/NNP ./.",
    "The/DT sons/NNS of/IN the/DT {0}s/NNPS live/VBP in/IN low-lying/JJ towns/NNS ./.",
]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two files of a few sentences each, one of them gzipped; spaCy cuts "low-lying" in three."""
    folder = tmp_path_factory.mktemp("treebank")
    sentences = [
        [line(str(at), *word.split("/")) for at, word in enumerate(sentence.format(first, second).split(), 1)]
        for first, second in zip(NAMES, NAMES[1:] + NAMES, strict=False)
        for sentence in SENTENCES
    ]
    halves = [[row for words in half for row in ["# newpar", *words, ""]] for half in (sentences[:9], sentences[9:])]
    first = conllu(folder / "a.conllu", *halves[0])
    second = folder / "b.conllu.gz"
    second.write_bytes(gzip.compress("\n".join(halves[1]).encode()))
    return [first, second]


def texts_of(treebank: list[Path]) -> list[list[Word]]:
    return [text for path in treebank for text in read_conllu(path)]


@pytest.fixture(scope="module")
def tagger(treebank: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "tagger"
    train_tagger(texts_of(treebank), out, epochs=20)
    return out


def test_a_tagger_learns_proper_nouns_from_text_as_it_was_written(treebank: list[Path], tagger: Path) -> None:
    nouns = ProperNouns(str(tagger))
    assert agreement(nouns, texts_of(treebank)) == Agreement(1, 1, 1)
    text = "The capital of Weber is Oxburn.\n\nThe sons of the Eastons live in low-lying towns."
    (spans,) = nouns([text])
    assert [text[start:end] for start, end in spans] == ["Weber", "Oxburn", "Eastons"]
    assert spacy.load(tagger).pipe_names == ["tagger"]
    assert [path.name for path in tagger.parent.iterdir()] == ["tagger"]


def test_the_command_trains_the_same_tagger_with_another_hash_seed(
    treebank: list[Path], tagger: Path, tmp_path: Path
) -> None:
    arguments = [*map(str, treebank), "--dev", str(treebank[0]), "--epochs", "20", str(tmp_path / "tagger")]
    command = [sys.executable, "-m", "temporalwiki.eval_harness.proper_nouns", *arguments]
    environment = os.environ | {"PYTHONHASHSEED": "77", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (
        0,
        "proper nouns of a.conllu, word by word: precision 1.000, recall 1.000, F1 1.000\n",
    ), done.stderr
    assert contents(tmp_path / "tagger") == contents(tagger)


def test_another_seed_makes_another_tagger(treebank: list[Path], tmp_path: Path) -> None:
    for seed in (0, 1):
        train_tagger(texts_of(treebank), tmp_path / "new" / str(seed), epochs=1, seed=seed)
    zero, one = contents(tmp_path / "new" / "0"), contents(tmp_path / "new" / "1")
    assert zero.keys() == one.keys()
    assert zero["tagger/model"] != one["tagger/model"]


def test_agreement_by_hand(rome: ProperNouns) -> None:
    texts = [
        [Word("Rome", "NNP", True), Word("and", "CC", True), Word("Paris", "NNP", False), Word(".", ".", True)],
        [Word("Elba", "NN", True), Word("Nile-Delta", "NNP", True)],  # the second in three parts
    ]
    # right: Rome; found: Rome, Elba, Nile; in the treebank: Rome, Paris, Nile-Delta
    assert agreement(rome, texts) == Agreement(1 / 3, 1 / 3, 1 / 3)
    assert agreement(rome, [*texts, [Word("Elba", "NNPS", True), Word("Oslo", "NNP", True)]]) == Agreement(
        2 / 4, 2 / 5, pytest.approx(2 * (2 / 4) * (2 / 5) / (2 / 4 + 2 / 5))
    )
    assert agreement(rome, []) == Agreement(0, 0, 0)


def test_what_cannot_be_trained_is_refused(treebank: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no word of the treebank is tagged NNP or NNPS; XPOS, the fifth column"):
        train_tagger([[Word("Rome", "", True)]], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="there: exists already; remove it, or name another folder"):
        train_tagger(texts_of(treebank), tmp_path / "there")


def test_the_command_says_what_is_wrong_in_a_line(
    treebank: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = conllu(tmp_path / "bad.conllu", "1 a")
    for status, arguments, message in (
        (1, [str(tmp_path / "missing.conllu"), str(tmp_path / "out")], "missing.conllu"),
        (1, [str(bad), str(tmp_path / "out")], "bad.conllu: damaged, or not CoNLL-U"),
        (1, [str(treebank[0]), str(tmp_path / "out"), "--dev", str(bad)], "bad.conllu: damaged, or not CoNLL-U"),
        (2, [str(treebank[0]), str(tmp_path / "out"), "--epochs", "0"], "--epochs 0: must be at least 1"),
    ):
        assert main(arguments) == status
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "English Web Treebank" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
