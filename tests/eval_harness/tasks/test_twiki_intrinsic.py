"""The task twiki_intrinsic: windows, proper nouns in them, and their perplexity."""

import math
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.proper_nouns import ProperNouns
from temporalwiki.eval_harness.results import Outcome, Result
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.eval_harness.tasks.twiki_intrinsic import TwikiIntrinsic, windows
from temporalwiki.methods.packing import Encoder

import tiny_models
from a_dataset import write_dataset

spacy = pytest.importorskip("spacy", reason="proper nouns are found by spaCy, which is not installed")

KINDS = ("gpt2", "llama", "without BOS")
WINDOW = 40


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny models; the one without BOS has GPT-2's architecture."""
    folder = tmp_path_factory.mktemp("models")
    made = {kind: tiny_models.save(kind, folder / kind) for kind in tiny_models.KINDS}
    made["without BOS"] = Path(shutil.copytree(made["gpt2"], folder / "without"))
    tokenizer = AutoTokenizer.from_pretrained(made["gpt2"])
    tokenizer.bos_token = None
    tokenizer.save_pretrained(made["without BOS"])
    assert AutoTokenizer.from_pretrained(made["without BOS"]).bos_token is None
    return made


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that tags words with a capital letter as proper nouns.

    A tagger without training gives every word its first label; a rule then changes these words.
    """
    nlp = spacy.blank("en")
    words = nlp.add_pipe("tagger")
    for label in ("NN", "NNP"):
        words.add_label(label)
    nlp.add_pipe("attribute_ruler").add([[{"TEXT": {"REGEX": r"^[A-ZŁ]"}}]], {"TAG": "NNP"})
    words.initialize(lambda: [spacy.training.Example.from_dict(nlp.make_doc("a"), {"tags": ["NN"]})])
    folder = tmp_path_factory.mktemp("tagger") / "capitals"
    nlp.to_disk(folder)
    return folder


def row(number: int, title: str | None, text: str | None) -> dict[str, Any]:
    return {"id": number, "title": title, "text": text}


LONG = "In Norland there is a river. Its name is Łaba, and Anna Weber of Easton lives at it. " * 5
ROWS = [
    row(1, "Norland", LONG),
    row(2, "Easton", "Easton is its capital."),
    row(3, "a river", "it is long.\n\nno one has a name here."),
    row(4, None, "Łukasz ☃ Weber and 東京."),
    row(5, " ", "Anna"),
    row(6, "Empty", " \n "),
    row(7, "None", None),
]


def run(folder: Path, rows: list[dict[str, Any]], tagger: Path | str, store: Path, **options: Any) -> Outcome:
    task = TwikiIntrinsic(**{"window": WINDOW, "tagger": str(tagger)} | options)
    return task.run(CachedModel(str(folder), store), {"train": rows})


# ---- numbers, against transformers, one article at a time, one character at a time


@torch.no_grad()
def reference(folder: Path, rows: list[dict[str, Any]]) -> dict[str, float]:
    """The four scores."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    sums: dict[str, float] = dict.fromkeys(["nll", "tokens", "bytes", "noun nll", "noun tokens", "noun bytes"], 0)
    for of in rows:
        text = f"{of['title']}. {of['text']}" if (of["title"] or "").strip() else of["text"]
        capitals = {at for match in re.finditer(r"\b[A-ZŁ]\w*", text) for at in range(*match.span())}
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids = (bos + encoded.input_ids)[:WINDOW]
        offsets = encoded.offset_mapping[: WINDOW - len(bos)]
        log = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        seen: set[int] = set()
        for place in range(1, len(ids)):
            start, end = offsets[place - len(bos)]
            nll = -float(log[place - 1, ids[place]])
            sums["nll"] += nll
            sums["tokens"] += 1
            if capitals & set(range(start, end)):
                sums["noun nll"] += nll
                sums["noun tokens"] += 1
            seen |= set(range(start, end))
        sums["bytes"] += sum(len(text[at].encode()) for at in seen)
        sums["noun bytes"] += sum(len(text[at].encode()) for at in seen & capitals)
    return {
        "train/proper_noun_perplexity": math.exp(sums["noun nll"] / sums["noun tokens"]),
        "train/proper_noun_bits_per_byte": sums["noun nll"] / math.log(2) / sums["noun bytes"],
        "train/perplexity": math.exp(sums["nll"] / sums["tokens"]),
        "train/bits_per_byte": sums["nll"] / math.log(2) / sums["bytes"],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_transformers(kind: str, models: dict[str, Path], tagger: Path, tmp_path: Path) -> None:
    outcome = run(models[kind], ROWS, tagger, tmp_path)
    found = {name: score.value for name, score in outcome.scores.items()}
    assert found == pytest.approx(reference(models[kind], ROWS[:5]), rel=1e-5)
    assert found["train/proper_noun_perplexity"] != pytest.approx(found["train/perplexity"], rel=1e-3)
    assert outcome.excluded == {"train: no text": 2, "train: no proper noun, so only in the scores of all tokens": 1}
    assert [item["id"] for item in outcome.items] == [1, 2, 3, 4, 5]
    sizes = {name.removeprefix("train/"): score.items for name, score in outcome.scores.items()}
    assert sizes == {"proper_noun_perplexity": 4, "proper_noun_bits_per_byte": 4, "perplexity": 5, "bits_per_byte": 5}
    predicted = {item["id"]: item["tokens"] for item in outcome.items}
    assert predicted[1] == WINDOW - 1


def test_what_cannot_be_predicted_is_counted(models: dict[str, Path], tagger: Path, tmp_path: Path) -> None:
    """A lone first token without BOS."""
    outcome = run(models["without BOS"], [row(1, "", "a"), row(2, "", "It is")], tagger, tmp_path)
    assert outcome.excluded["train: longer than the context, or nothing to predict"] == 1
    assert [item["id"] for item in outcome.items] == [2]


# ---- windows


TOKENIZERS = {kind: tiny_models.tokenizer(kind) for kind in ("gpt2", "llama")} | {
    "without BOS": tiny_models.tokenizer("gpt2")
}
TOKENIZERS["without BOS"].bos_token = None


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.text("aeinrst EWN.'\n語é😀", max_size=30) | st.just(LONG), max_size=3), st.integers(2, 12))
def test_a_window_is_as_much_of_the_beginning_as_fits(kind: str, written: list[str], size: int) -> None:
    tokenizer = TOKENIZERS[kind]
    encoder = Encoder(tokenizer)
    room = size - (kind != "without BOS")
    found = list(windows(written, tokenizer, size))
    assert len(found) == len(written)
    for text, window in zip(written, found, strict=True):
        whole, cut = (list(ids) for ids in encoder.ids([text, window]))
        assert text.startswith(window)
        if len(whole) <= room:
            assert window == text
        else:  # of a character's bytes, at most four, one did not fit
            assert room - 3 <= len(cut) <= room
            assert cut == whole[: len(cut)]


# ---- runs


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A dataset folder with a diffset, an unchanged config, and a config of another kind."""
    configs = {}
    for config, rows in (("diffset-1112", ROWS), ("unchanged-1112", ROWS[1:3]), ("wikipedia-12", ROWS)):
        edited = [{**row, "timestamp": datetime(2021, 12, 1, tzinfo=UTC)} for row in rows]
        configs[config] = {"train": pa.Table.from_pylist(edited, SCHEMAS[config.partition("-")[0]])}
    return write_dataset(tmp_path / "temporalwiki", configs)


def results(model: Path, data: Path, output: Path, **options: Any) -> list[Result]:
    task = TwikiIntrinsic(**{"window": WINDOW} | options)
    wanted = Evaluation(str(model), str(data), {"twiki_intrinsic": task}, (), output, None)
    return evaluate(wanted, CachedModel(str(model), output / "scores"))


def test_each_config_has_its_result(models: dict[str, Path], tagger: Path, data: Path, tmp_path: Path) -> None:
    found = results(models["gpt2"], data, tmp_path / "out", tagger=str(tagger))
    assert [result.data["data"]["config"] for result in found] == ["diffset-1112", "unchanged-1112"]
    expected = reference(models["gpt2"], ROWS[1:3])
    assert {name: score["value"] for name, score in found[1].data["scores"].items()} == pytest.approx(expected)
    assert [item["proper_noun_nll"] is None for item in found[1].items()] == [False, True]
    assert find_task("twiki_intrinsic") is TwikiIntrinsic


def test_so_many_articles_are_drawn(models: dict[str, Path], tagger: Path, data: Path, tmp_path: Path) -> None:
    diffset, unchanged = results(models["gpt2"], data, tmp_path / "out", tagger=str(tagger), windows=3)
    assert diffset.data["data"]["rows"] == {"train": 3}
    assert unchanged.data["data"]["rows"] == {"train": 2}


@pytest.fixture
def tagged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the texts that are tagged."""
    seen: list[str] = []
    tag = ProperNouns.__call__

    def watched(self: ProperNouns, texts: list[str]) -> Iterator[Any]:
        seen.extend(texts)
        return tag(self, texts)

    monkeypatch.setattr(ProperNouns, "__call__", watched)
    return seen


def test_a_text_is_tagged_once_for_all_models(
    models: dict[str, Path], tagger: Path, tagged: list[str], tmp_path: Path
) -> None:
    first = run(models["gpt2"], ROWS + ROWS, tagger, tmp_path)
    assert len(tagged) == len(set(tagged)) == 5
    other = tiny_models.model("gpt2", 400, seed=1)
    other.save_pretrained(shutil.copytree(models["gpt2"], tmp_path / "other"))
    second = run(tmp_path / "other", ROWS + ROWS, tagger, tmp_path)
    assert len(tagged) == 5
    nouns = [[item["proper_noun_tokens"] for item in outcome.items] for outcome in (first, second)]
    assert nouns[0] == nouns[1]
    assert first.scores["train/perplexity"] != second.scores["train/perplexity"]


def test_a_result_is_that_of_the_tagger_s_files(
    models: dict[str, Path], tagger: Path, data: Path, tmp_path: Path
) -> None:
    """The recorded tagger does not depend on the place of its files."""
    (tmp_path / "elsewhere").mkdir()
    same = shutil.copytree(tagger, tmp_path / "elsewhere" / tagger.name)
    first, moved = (
        results(models["gpt2"], data, tmp_path / "out", tagger=str(folder))[0] for folder in (tagger, same)
    )
    assert moved.path == first.path
    assert re.fullmatch(rf"capitals, spacy {spacy.__version__} \w+", first.data["task"]["options"]["tagger"])
    with (same / "meta.json").open("a") as file:
        file.write("\n")
    assert results(models["gpt2"], data, tmp_path / "out", tagger=str(same))[0].path != first.path


# ---- errors


@pytest.mark.parametrize("wrong", [{"window": 1}, {"windows": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} must be at least"):
        TwikiIntrinsic(**wrong)


def test_models_that_do_not_fit_are_refused(models: dict[str, Path], tagger: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the perplexity of running text; name a decoder-only"):
        run(models["t5"], ROWS, tagger, tmp_path)
    with pytest.raises(UsageError, match="--window 257 is too long: the model reads 256 tokens"):
        run(models["gpt2"], ROWS, tagger, tmp_path, window=257)
    longest = run(models["gpt2"], [row(1, "Norland", LONG * 5)], tagger, tmp_path, window=256)
    assert [item["tokens"] for item in longest.items] == [255]


def test_a_tagger_that_is_not_there_is_asked_for_before_the_model(data: Path, tmp_path: Path) -> None:
    message = (
        "^--tagger en_core_web_xyz: no such spaCy pipeline.*"
        r"python -m spacy download en_core_web_xyz, or train a small one \(python -m .*proper_nouns --help\)$"
    )
    (tmp_path / "model").mkdir()
    with pytest.raises(InputError, match=message):
        results(tmp_path / "model", data, tmp_path / "out", tagger="en_core_web_xyz")
