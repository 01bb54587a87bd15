"""Fine-tuning: it learns the answers, continues after a kill, and leaves nothing behind."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from temporalwiki.base import progress
from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness import fine_tuning
from temporalwiki.eval_harness.fine_tuning import fine_tuned
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.methods import checkpoint, find_method
from temporalwiki.methods.method import Phase
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.trainer import Display

import tiny_models
from a_stop import Killed

pytestmark = pytest.mark.usefixtures("quick")

EXAMPLES = [
    ("Where does Anna Weber live?", " Easton"),
    ("Where was it?", " In Norland, in 1961"),
    ("<|endoftext|> [START_ENT] Easton [END_ENT] won .", " Easton F.C."),
]
OPTIONS = {"batch_size": 2, "epochs": 2, "save_steps": 1, "logging_steps": 1, "learning_rate": 1e-2}
DROPOUTS = ("dropout_rate", "attn_pdrop", "embd_pdrop", "resid_pdrop", "attention_dropout")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny models without dropout, one of each kind."""
    found = {}
    for kind in tiny_models.KINDS:
        found[kind] = tiny_models.save(kind, tmp_path_factory.mktemp("models") / kind)
        model = load(found[kind])
        for name in DROPOUTS:
            if hasattr(model.config, name):
                setattr(model.config, name, 0.0)
        model.save_pretrained(found[kind])
    return found


def load(folder: Path) -> Any:
    auto = AutoModelForSeq2SeqLM if folder.name == "t5" else AutoModelForCausalLM
    return auto.from_pretrained(folder)


def options(**more: Any) -> TrainOptions:
    return TrainOptions(**{**OPTIONS, **more})


def folders(model: CachedModel) -> list[str]:
    return sorted(path.name for path in (model.cache_folder / "fine-tuned").iterdir())


def kill_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    end, done = Display.on_step_end, []

    def stop(self: Any, *args: Any, **kwargs: Any) -> None:
        end(self, *args, **kwargs)
        done.append(1)
        if len(done) == steps:
            raise Killed

    patch.setattr(Display, "on_step_end", stop)


def loss(folder: Path) -> float:
    """Return the cross entropy of answers and EOS, one example at a time, from plain transformers."""
    model, tokenizer = load(folder).eval(), AutoTokenizer.from_pretrained(folder)

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    total, tokens = 0.0, 0
    for prompt, answer in EXAMPLES:
        if folder.name == "t5":
            first, *_ = tokenizer.convert_tokens_to_ids(["<extra_id_0>"])
            said = [first, *ids(answer), tokenizer.eos_token_id]
            read = torch.tensor([[*ids(prompt), first, tokenizer.eos_token_id]])
            mean = model(input_ids=read, labels=torch.tensor([said])).loss
        else:
            said = [*ids(answer), tokenizer.eos_token_id]
            read = torch.tensor([[tokenizer.bos_token_id, *ids(prompt), *said]])
            labels = read.clone()
            labels[0, : -len(said)] = -100
            mean = model(input_ids=read, labels=labels).loss
        total, tokens = total + mean.item() * len(said), tokens + len(said)
    return total / tokens


@pytest.mark.parametrize("micro", [1, 4096], ids=["one-at-a-time", "together"])
@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_the_loss_is_that_of_the_answers_alone(
    kind: str,
    micro: int,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fine_tuning, "_TOKENS", micro)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    model = CachedModel(str(models[kind]), tmp_path)
    with fine_tuned(model, EXAMPLES, options(batch_size=4, epochs=1), "fine-tuning"):
        pass
    assert f"loss {loss(models[kind]):.4f}," in capsys.readouterr().err


def test_what_is_learnt_is_said_whole_or_up_to_the_sentences_end(models: dict[str, Path], tmp_path: Path) -> None:
    """Both kinds of answers are in one cache file and are not mixed up."""
    examples = [("Where is Anna?", "The. In"), ("Where is Bo?", "of")]
    prompts = [prompt for prompt, _ in examples]
    model = CachedModel(str(models["t5"]), tmp_path)
    assert model.generate(prompts, "before", 8, whole=True) != ["The. In", "of"]
    with fine_tuned(model, examples, options(epochs=60, schedule="constant", save_steps=500), "f") as tuned:
        assert tuned.generate(prompts, "whole", 8, whole=True) == ["The. In", "of"]
        assert tuned.generate(prompts, "a sentence", 8) == ["The", "of"]
        assert tuned.generate(prompts, "two beams", 8, beams=2, whole=True) == ["The. In", "of"]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_that_was_killed_goes_on(
    at: int,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed in one of 3 steps, it starts again with this step and ends with the same weights."""
    with fine_tuned(CachedModel(str(models["llama"]), tmp_path / "whole"), EXAMPLES, options(), "f") as tuned:
        expected = tuned.revision
    model = CachedModel(str(models["llama"]), tmp_path / "parts")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        kill_after(at, patch)
        with fine_tuned(model, EXAMPLES, options(), "f"):
            pass
    capsys.readouterr()
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    with fine_tuned(model, EXAMPLES, options(), "f") as tuned:
        assert tuned.revision == expected
    steps = re.findall(r"^f: .* (\d)/3 ", capsys.readouterr().err, re.MULTILINE)
    assert steps == [*(str(step) for step in range(at, 4)), "3"]


def test_weights_are_kept_until_they_are_done_with(
    models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    model = CachedModel(str(models["llama"]), tmp_path)
    with pytest.raises(Killed), fine_tuned(model, EXAMPLES, options(), "f") as tuned:
        first = tuned.revision
        raise Killed
    assert len(folders(model)) == 1
    assert "f: 100% 3/3" in capsys.readouterr().err
    with fine_tuned(model, EXAMPLES, options(), "f") as tuned:
        assert tuned.revision == first
    assert "f: 100% 3/3" not in capsys.readouterr().err
    assert folders(model) == []


@pytest.mark.parametrize(
    "other",
    [
        lambda model: (model, EXAMPLES[:2], options()),
        lambda model: (model, EXAMPLES, options(learning_rate=2e-2)),
        lambda model: (model, EXAMPLES, options(seed=1)),
    ],
    ids=["examples", "rate", "seed"],
)
def test_weights_of_another_run_are_not_taken(
    other: Callable[[CachedModel], Any], models: dict[str, Path], tmp_path: Path
) -> None:
    model = CachedModel(str(models["llama"]), tmp_path)
    with pytest.raises(Killed), fine_tuned(model, EXAMPLES, options(), "f") as tuned:
        first = tuned.revision
        raise Killed
    with fine_tuned(*other(model), "f") as tuned:
        assert tuned.revision != first


@pytest.mark.fault("two at once", "two evaluations that fine-tune one model", "the second is refused in one line")
def test_two_at_once_are_told_of_each_other(models: dict[str, Path], tmp_path: Path) -> None:
    model = CachedModel(str(models["llama"]), tmp_path)
    with (
        fine_tuned(model, EXAMPLES, options(), "f"),
        pytest.raises(InputError, match="another fine-tuning is at work"),
        fine_tuned(model, EXAMPLES, options(), "f"),
    ):
        pass


def lora(folder: Path) -> Any:
    return get_peft_model(load(folder), LoraConfig(target_modules=["q_proj", "v_proj"], r=2))


def k_adapter(folder: Path) -> Any:
    return find_method("k_adapter")().prepare(checkpoint.load_model(str(folder)), Phase())


@pytest.mark.parametrize(("method", "make"), [("lora", lora), ("k_adapter", k_adapter)])
def test_all_is_trained_that_a_method_had_frozen(
    method: str, make: Callable[[Path], Any], models: dict[str, Path], tmp_path: Path
) -> None:
    made = make(models["llama"])
    find_method(method)().save(made, tmp_path / method)
    with fine_tuned(CachedModel(str(tmp_path / method), tmp_path), EXAMPLES, options(), "f") as tuned:
        after = {name: p for name, p in tuned.loaded.model.named_parameters() if "k_adapter" not in name}
        assert tuned.generate([EXAMPLES[0][0]], "f", 4)[0] is not None
    before = dict(load(models["llama"]).named_parameters())
    assert set(after) == set(before)
    assert [name for name in before if torch.equal(before[name], after[name])] == []


def test_a_tokenizer_without_eos_is_refused(tmp_path: Path) -> None:
    folder = tiny_models.save("llama", tmp_path / "llama")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(folder)
    with (
        pytest.raises(InputError, match="no EOS token to end an answer with"),
        fine_tuned(CachedModel(str(folder), tmp_path), EXAMPLES, options(), "f"),
    ):
        pass
