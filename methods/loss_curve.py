"""A plot of the loss and learning rate of a run."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(log: list[dict[str, Any]], title: str, path: Path) -> None:
    """Plot ``loss`` and ``learning_rate`` over ``step`` for the entries of ``log``, as a PNG."""
    steps = [line["step"] for line in log]
    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    axes = figure.subplots()
    marker = "." if len(steps) < 50 else ""
    axes.plot(steps, [line["loss"] for line in log], color="tab:blue", marker=marker, label="loss")
    if any("extra_loss" in line for line in log):
        text = [line["loss"] - line.get("extra_loss", 0) for line in log]
        axes.plot(steps, text, color="tab:blue", linestyle="--", label="loss without the method's own term")
    held_out = [(line["step"], line["held_out_loss"]) for line in log if "held_out_loss" in line]
    if held_out:
        axes.plot(*zip(*held_out, strict=True), color="tab:green", marker="o", label="loss of held-out articles")
    if len(axes.lines) > 1:
        axes.legend()
    axes.set(title=title, xlabel="step", ylabel="loss (nats a token)")
    axes.grid(alpha=0.3)
    rates = axes.twinx()
    rates.plot(steps, [line["learning_rate"] for line in log], color="tab:orange", linewidth=1, alpha=0.7)
    rates.set_ylabel("learning rate", color="tab:orange")
    rates.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    figure.savefig(path, format="png", metadata={"Software": None})
