"""Merge saves an average of the trained weights and the phase's starting weights."""

import copy
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import UsageError
from temporalwiki.commands import main
from temporalwiki.methods import checkpoint
from temporalwiki.methods.merge import Merge
from temporalwiki.methods.method import Phase

import tiny_models
import tiny_training
from tiny_training import weights


def test_weights_weigh_the_same_unless_told_otherwise() -> None:
    start, trained = torch.tensor([0.0, 4.0, -1.0]), torch.tensor([2.0, -4.0, -1.0])
    assert Merge().merged(start, trained).tolist() == [1.0, 0.0, -1.0]
    assert start.tolist() == [0.0, 4.0, -1.0]


def test_what_was_not_trained_is_left_alone() -> None:
    model = tiny_models.model("llama", 40)
    trained = {name: p.detach() + 1 for name, p in model.named_parameters()} | {"buffer": torch.tensor([7.0])}
    Merge().finish(trained, Phase(previous=lambda: model))
    assert trained.pop("buffer").tolist() == [7.0]
    for name, p in model.named_parameters():
        torch.testing.assert_close(trained[name], p + 0.5, msg=name)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_whole_model_is_averaged_with_shared_weights_once(kind: str) -> None:
    """Twice would be three quarters of the way back."""
    model = tiny_models.model(kind, 40)
    start = copy.deepcopy(model)
    before = dict(start.named_parameters())
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1.0)
    trained = dict(model.named_parameters())
    Merge().finish(trained, Phase(previous=lambda: start))
    for name, p in model.named_parameters():
        assert trained[name] is p  # in place
        assert p.requires_grad
        torch.testing.assert_close(p, before[name] + 0.5, msg=name)


@given(
    st.floats(0.01, 1),
    st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=8),
)
def test_it_lies_between_the_two(weight: float, pairs: list[tuple[float, float]]) -> None:
    start, trained = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    average = Merge(weight=weight).merged(start, trained)
    expected = [(1 - weight) * a + weight * b for a, b in pairs]
    assert average.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def ties(updates: list[list[float]], factors: tuple[float, float], density: float) -> list[float]:
    """Merge updates as section 4 of the paper says: trim, elect signs, average the entries that agree."""
    keep = int(density * len(updates[0]))
    trimmed = []
    for update in updates:
        largest = sorted(range(len(update)), key=lambda i: -abs(update[i]))[:keep]
        trimmed.append([value if i in largest else 0.0 for i, value in enumerate(update)])
    merged = []
    for values in zip(*trimmed, strict=True):
        sign = 1 if sum(values) >= 0 else -1
        agree = [factor * value for factor, value in zip(factors, values, strict=True) if value * sign > 0]
        merged.append(sum(agree) / len(agree) if agree else 0.0)
    return merged


def test_ties_by_hand() -> None:
    base = torch.tensor([10.0, 10.0, 10.0, 10.0])
    start = torch.tensor([14.0, 7.0, 10.5, 10.0])  # updates: 4, -3, 0.5, 0
    trained = torch.tensor([12.0, 15.0, 9.9, 10.0])  # updates: 2, 5, -0.1, 0
    assert Merge(how="ties", density=0.5).merged(start, trained, base).tolist() == [
        13.0,
        15.0,
        10.0,
        10.0,
    ]  # they agree; the larger one wins; both are trimmed


VALUES = st.lists(st.integers(-999, 999).filter(bool).map(float), min_size=10, max_size=10, unique_by=abs)


@given(VALUES, VALUES, st.sampled_from([0.1, 0.25, 0.5, 0.8]), st.sampled_from([0.25, 0.5, 1.0]))
def test_ties_is_that_of_the_paper(first: list[float], second: list[float], density: float, weight: float) -> None:
    start, trained = torch.tensor(first) + 7, torch.tensor(second) + 7
    merged = Merge(how="ties", density=density, weight=weight).merged(start, trained, torch.full((10,), 7.0))
    expected = [7 + value for value in ties([first, second], (2 - 2 * weight, 2 * weight), density)]
    assert merged.tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.usefixtures("quick")
def test_months_are_merged_onto_the_model_before_all_of_them(tmp_path: Path) -> None:
    """``diff`` with the same seed has the weights before the merge."""
    start: Path = tiny_training.write(tmp_path, "gpt2") / "gpt2"
    tiny_training.train(tmp_path, "diff", start, tmp_path / "start")
    base = before = weights(tmp_path / "start")
    start = tmp_path / "start"
    for month in ("1011", "1112"):
        tiny_training.train(tmp_path, "diff", start, tmp_path / f"diff {month}")
        tiny_training.train(tmp_path, "merge", start, tmp_path / month, "--how", "ties", "--density", 0.25)
        after, merged = weights(tmp_path / f"diff {month}"), weights(tmp_path / month)
        for name in ("transformer.ln_f.bias", "transformer.h.2.attn.c_proj.bias"):
            updates = [(one[name] - base[name]).tolist() for one in (before, after)]
            expected = base[name] + torch.tensor(ties(updates, (1.0, 1.0), 0.25))
            torch.testing.assert_close(merged[name], expected)
            assert not torch.equal(merged[name], before[name])
        start, before = tmp_path / month, merged


@pytest.mark.usefixtures("quick")
def test_a_base_that_is_gone_or_another_one_is_noticed_before_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start: Path = tiny_training.write(tmp_path, "gpt2", "llama") / "gpt2"
    tiny_training.train(tmp_path, "merge", start, tmp_path / "1011")
    (tmp_path / "1011" / "training.json").rename(tmp_path / "kept")
    words = ("train", "--method", "merge", "--how", "ties", "--data", tmp_path / "data", "--config", "new")
    words += ("--model", tmp_path / "1011", "--output", tmp_path / "1112", "--max-steps", 1)
    for other, said in (
        ("nowhere", "cannot load a model"),
        (str(tmp_path / "llama"), "has no transformer.wte.weight"),
    ):
        manifest = json.loads((tmp_path / "kept").read_text())
        manifest["run"]["model"] = other
        (tmp_path / "1011" / "training.json").write_text(json.dumps(manifest))
        assert main([str(word) for word in words]) == 1
        assert said in capsys.readouterr().err.splitlines()[-1]
        assert not (tmp_path / "1112" / "checkpoints").exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["average", "ties"])
def test_an_adapter_is_trained_further_and_merged(how: str, tmp_path: Path) -> None:
    first: Path = tiny_training.write(tmp_path, "llama") / "llama"
    words = ("--rank", 2, "--how", how, "--density", 0.5)
    tiny_training.train(tmp_path, "merge", first, tmp_path / "1011", *words)
    tiny_training.train(tmp_path, "merge", tmp_path / "1011", tmp_path / "1112", *words)
    tiny_training.train(tmp_path, "merge", tmp_path / "1011", tmp_path / "new", *words[:2], "--weight", 1)
    before, merged, trained = (weights(tmp_path / name) for name in ("1011", "1112", "new"))
    assert before.keys() == merged.keys()
    assert {min(weight.shape) for weight in merged.values()} == {2}  # no more ranks than in the first month
    for name, weight in merged.items():
        if how == "average":
            torch.testing.assert_close(weight, (before[name] + trained[name]) / 2)
        else:
            updates = [before[name].flatten().tolist(), trained[name].flatten().tolist()]
            torch.testing.assert_close(weight.flatten(), torch.tensor(ties(updates, (1.0, 1.0), 0.5)))
    assert checkpoint.load(str(tmp_path / "1112")).model.active_peft_config.r == 2


def test_what_cannot_be_merged_is_refused() -> None:
    with pytest.raises(UsageError, match="use rank 0"):
        Merge(rank=2).prepare(tiny_models.model("t5", 40), Phase())
