"""OSF keeps the strongest directions of each matrix, found here with numpy's own decomposition."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from temporalwiki.methods.method import Method, Phase
from temporalwiki.methods.osf import OSF

import tiny_models
import tiny_training

pytestmark = pytest.mark.usefixtures("quick")
# the part of the names of all linear layers but the output
LINEAR = {
    "gpt2": (".c_attn.", ".c_proj.", ".c_fc."),
    "llama": ("_proj.",),
    "t5": (".SelfAttention.", "DenseReluDense"),
}
LINEAR["t5"] += (".EncDecAttention.",)


def weights(folder: Path) -> dict[str, np.ndarray]:
    """Return the weights of a whole model."""
    return {name: weight.double().numpy() for name, weight in load_file(folder / "model.safetensors").items()}


def is_linear(name: str, kind: str) -> bool:
    return name.endswith(".weight") and any(part in name for part in LINEAR[kind]) and "relative" not in name


def strayed(before: np.ndarray, after: np.ndarray, kept: float) -> float:
    """Return how much of a change lies along kept directions, as a share of the change."""
    u, _, v = np.linalg.svd(before, full_matrices=False)
    rank = int(kept * min(before.shape))
    change = after - before
    along = max(np.abs(u[:, :rank].T @ change).max(), np.abs(change @ v[:rank].T).max())
    return float(along / np.abs(change).max())


@pytest.mark.parametrize("kind", tiny_models.KINDS)
@pytest.mark.parametrize("kept", [0.25, 0.5])
def test_nothing_changes_along_the_directions_that_are_kept(kind: str, kept: float, tmp_path: Path) -> None:
    start: Path = tiny_training.write(tmp_path, kind) / kind
    for month in ("1011", "1112"):  # the second one splits what the first one wrote
        words = ("--kept", kept, "--max-steps", 8, "--weight-decay", 0.1)
        tiny_training.train(tmp_path, "osf", start, tmp_path / month, *words)
        before, after = weights(start), weights(tmp_path / month)
        assert before.keys() == after.keys()
        moved = [name for name in before if not np.array_equal(before[name], after[name])]
        assert moved == [name for name in before if is_linear(name, kind)]
        for name in moved:
            assert np.abs(after[name] - before[name]).max() > 1e-3, name
            # where two singular values are nearly equal, fp32 finds other directions than numpy's fp64
            assert strayed(before[name], after[name], kept) < 3e-3, name
        start = tmp_path / month


def test_adam_alone_leaves_the_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OSF, "after_step", Method.after_step)
    start: Path = tiny_training.write(tmp_path, "llama") / "llama"
    tiny_training.train(tmp_path, "osf", start, tmp_path / "out", "--max-steps", 8)
    before, after = weights(start), weights(tmp_path / "out")
    assert max(strayed(before[name], after[name], 0.5) for name in before if is_linear(name, "llama")) > 0.1


def test_only_the_split_matrices_are_trained() -> None:
    model = OSF(kept=0.5).prepare(tiny_models.model("gpt2", 40), Phase())
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert len(trained) == 3 * 4 * model.config.n_layer
    assert all(".osf_svd_params." in name for name in trained)
