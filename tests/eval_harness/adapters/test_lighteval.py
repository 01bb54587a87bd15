"""lighteval, in an environment of its own, gives the numbers of plain `transformers` for our probes, and ours.

TEMPORALWIKI_LIGHTEVAL names the Python of that environment (docs/adapters.md); without it, what needs it is skipped.
"""

from __future__ import annotations

import json
import math
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.loading import load_dataset
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes

import tiny_models
from .conftest import EXACT_MATCH, F1, PROBES, Reference, teach

FILE = Path(__file__).parents[3] / "eval_harness" / "adapters" / "lighteval_tasks.py"
PYTHON = os.environ.get("TEMPORALWIKI_LIGHTEVAL")
needs_lighteval = pytest.mark.skipif(
    not PYTHON, reason="TEMPORALWIKI_LIGHTEVAL names no Python with lighteval 0.13 (docs/adapters.md)"
)
SPLITS = ("unchanged", "changed")

# our measure -> task and metric, and the factor between them: our EM and F1 are percent
SAME = {
    "perplexity": ("twiki_probes", "perplexity", 1),
    "perplexity_instance_mean": ("twiki_probes", "perplexity_instance_mean", 1),
    "bits_per_byte": ("twiki_probes", "bits_per_byte", 1),
    "object_perplexity": ("twiki_objects", "object_perplexity", 1),
    "exact_match": ("twiki_answers", "exact_match", 100),
    "f1": ("twiki_answers", "f1", 100),
}


def bpe(alphabet: list[str], specials: list[str], **parts: Any) -> Tokenizer:
    backend = Tokenizer(BPE(unk_token="<unk>" if "<unk>" in specials else None))
    for name, part in parts.items():
        setattr(backend, name, part)
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=alphabet)
    backend.train_from_iterator(tiny_models.CORPUS, trainer)
    return backend


def no_bos() -> Any:
    """As Qwen's: no BOS at all."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    specials = ["<|im_start|>", "<|endoftext|>", "<|pad|>"]
    backend = bpe(byte_level.alphabet(), specials, pre_tokenizer=byte_level, decoder=decoders.ByteLevel())
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>", pad_token="<|pad|>")


def space_before_text() -> Any:
    """As Llama 2's: it adds BOS by itself, and a space before every text."""
    backend = bpe(
        [chr(code) for code in range(33, 127)],
        ["<s>", "</s>", "<unk>"],
        normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        pre_tokenizer=pre_tokenizers.Split("▁", "merged_with_next"),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
    )
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    )


KINDS: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: tiny_models.tokenizer("gpt2"),  # BOS is EOS
    "space before text": space_before_text,
    "no BOS": no_bos,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models; those with a BOS were taught what they are to say."""
    made = {}
    for kind, tokenizer_of in KINDS.items():
        tokenizer = tokenizer_of()
        model = tiny_models.model("gpt2" if kind == "gpt2" else "llama", len(tokenizer)).eval()  # without dropout
        if tokenizer.bos_token:
            teach(model, tokenizer)
        made[kind] = tmp_path_factory.mktemp("model")
        model.save_pretrained(made[kind])
        tokenizer.save_pretrained(made[kind])
    return made


def lighteval(model: Path, month: Path, out: Path, tasks: str, **settings: bool) -> dict[str, dict[str, float]]:
    """Run the command of docs/adapters.md and return its results."""
    arguments = {
        "model_name": model.name,
        "dtype": "float32",
        "batch_size": 8,
        "add_special_tokens": False,
        "override_chat_template": False,
        "cache_dir": out / "cache",
    }
    listed = ",".join(f"{name}={value}" for name, value in (arguments | settings).items())
    variables = {"DATA": str(month), "CONFIG": "probes-1112", "TOKENIZER": model.name}
    subprocess.run(
        [str(PYTHON), "-m", "lighteval", "accelerate", listed, tasks, "--custom-tasks", FILE, "--output-dir", out],
        cwd=model.parent,
        env=os.environ | {f"TEMPORALWIKI_{name}": value for name, value in variables.items()},
        check=True,
    )
    (path,) = out.glob(f"results/{model.name}/results_*.json")
    results: dict[str, dict[str, float]] = json.loads(path.read_text("utf-8"))["results"]
    return results


def check_ours(results: dict[str, dict[str, float]], model: Path, month: Path, out: Path, *tests: str) -> None:
    dataset = load_dataset(str(month), "probes-1112")
    rows = {split: list(dataset[split]) for split in SPLITS}
    ours = TwikiProbes(light_tuning=False).run(CachedModel(str(model), out / "store"), rows)
    assert not ours.excluded
    for test in tests:
        for measure, (task, metric, factor) in SAME.items():
            theirs = results[f"{task}:{'_average' if test == 'average' else test}|0"][metric]
            assert factor * theirs == pytest.approx(ours.scores[f"{test}/{measure}"].value, rel=1e-5), (test, measure)


@needs_lighteval
@pytest.mark.parametrize("kind", ["gpt2", "space before text"])
def test_numbers_are_those_of_transformers_and_ours(
    folders: dict[str, Path], month: Path, tmp_path: Path, kind: str
) -> None:
    results = lighteval(folders[kind], month, tmp_path, "twiki_probes,twiki_objects,twiki_answers")
    reference = Reference(folders[kind])
    for split in SPLITS:
        facts = [(f"{s} {r}", o) for s, r, o, *_ in PROBES[split]]
        for task, perplexity, texts in (
            ("twiki_probes", "perplexity", [("", f"{prompt} {o}") for prompt, o in facts]),
            ("twiki_objects", "object_perplexity", [(prompt, f" {o}") for prompt, o in facts]),
        ):
            nll = -math.fsum(reference.log_likelihood(*text) for text in texts)
            tokens = sum(reference.tokens_of_target(*text) for text in texts)
            size = sum(len(target.encode()) for _, target in texts)
            result = results[f"{task}:{split}|0"]
            assert result["same_tokens"] == 1
            assert result[perplexity] == pytest.approx(math.exp(nll / tokens), rel=1e-5)
            assert result["bits_per_byte"] == pytest.approx(nll / math.log(2) / size, rel=1e-5)
        if kind == "gpt2":  # the other does not know every letter
            result = results[f"twiki_answers:{split}|0"]
            assert result["exact_match"] == pytest.approx(sum(EXACT_MATCH[split]) / len(facts))
            assert result["f1"] == pytest.approx(sum(F1[split]) / len(facts))
    check_ours(results, folders[kind], month, tmp_path, *SPLITS, "average")


@needs_lighteval
def test_without_bos_the_first_token_is_not_scored(folders: dict[str, Path], month: Path, tmp_path: Path) -> None:
    """The first token must end where a character does: that of 東京 is one byte."""
    results = lighteval(folders["no BOS"], month, tmp_path, "twiki_probes,twiki_objects,twiki_answers")
    assert results["twiki_objects:changed|0"]["same_tokens"] == 1
    assert results["twiki_probes:unchanged|0"]["same_tokens"] == 1
    assert results["twiki_probes:changed|0"]["same_tokens"] == 3 / 4
    check_ours(results, folders["no BOS"], month, tmp_path, "unchanged")


@needs_lighteval
def test_other_tokens_are_reported(folders: dict[str, Path], month: Path, tmp_path: Path) -> None:
    results = lighteval(folders["space before text"], month, tmp_path, "twiki_objects", add_special_tokens=True)
    assert results["twiki_objects:unchanged|0"]["same_tokens"] == 0  # BOS twice


class Anything:
    """What lighteval has, for the file to be read without it."""

    LOGPROBS = GENERATIVE = ""

    def __init__(self, *_: Any, **given: Any) -> None:
        self.given = given


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """Run the file without lighteval."""
    for name, imported in re.findall(r"^from (lighteval\S*) import (.*)", FILE.read_text("utf-8"), re.M):
        module = ModuleType(name)
        module.__dict__.update(dict.fromkeys(imported.split(", "), Anything))
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("DATA", "CONFIG", "TOKENIZER"):
        monkeypatch.setenv(f"TEMPORALWIKI_{name}", "x")
    return lambda: runpy.run_path(str(FILE))


ANSWERS = st.text() | st.text("aA nthe.!?,'’ \nSt<extra_id_0>é", max_size=20)


def test_the_copied_definitions_are_the_originals(tasks: Callable[[], dict[str, Any]]) -> None:
    copied = tasks()

    @given(ANSWERS, ANSWERS)
    @example(" St. Louis. Next", "The “Saint-Louis” <extra_id_1> a")
    @example("Baden Baden Easton", "Baden Baden Norland")
    @example("the", "")
    def same(text: str, other: str) -> None:
        assert copied["first_sentence"](text) == answer(text)
        assert copied["normalize"](text) == normalize(text)
        assert copied["exact_match"](text, other) == exact_match(text, [other])
        assert copied["f1"](text, other) == f1(text, [other])

    same()


@pytest.mark.parametrize("name", ["TEMPORALWIKI_DATA", "TEMPORALWIKI_CONFIG", "TEMPORALWIKI_TOKENIZER"])
def test_a_missing_setting_is_named(
    tasks: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name)
    with pytest.raises(SystemExit, match=f"{name} is not set; set it to"):
        tasks()


@pytest.mark.parametrize(
    ("data", "repository", "revision"),
    [
        ("org/temporalwiki", "org/temporalwiki", None),
        ("org/temporalwiki@2021.12", "org/temporalwiki", "2021.12"),
        ("me@home/temporalwiki", "me@home/temporalwiki", None),  # a folder
    ],
)
def test_where_the_data_is(
    tasks: Callable[[], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    data: str,
    repository: str,
    revision: str | None,
) -> None:
    (tmp_path / "me@home" / "temporalwiki").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEMPORALWIKI_DATA", data)
    table = [task.given for task in tasks()["TASKS_TABLE"]]
    assert {(task["hf_repo"], task["hf_revision"]) for task in table} == {(repository, revision)}
    assert [task["name"] for task in table] == [
        f"twiki_{of}:{split}" for of in ("probes", "objects", "answers") for split in SPLITS
    ]
