"""The picture of a run."""

from pathlib import Path

from temporalwiki.methods.loss_curve import draw


def test_a_log_becomes_a_png_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    log = [{"step": step, "loss": 3 - step / 10, "learning_rate": step * 1e-5} for step in range(1, 6)]
    for name in ("a.png", "b.png"):
        draw(log, "diff on diffset-1112", tmp_path / name)
    first, second = (tmp_path / name for name in ("a.png", "b.png"))
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() == second.read_bytes()
    log[-1]["held_out_loss"] = 2.9
    draw(log, "diff on diffset-1112", tmp_path / "held out.png")
    assert (tmp_path / "held out.png").read_bytes() != first.read_bytes()
    draw(log[:3], "diff on diffset-1112", tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes() != first.read_bytes()
