"""The Space's app: perplexities of probes with a model of the Hub."""

import html
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr
from huggingface_hub.utils import HFValidationError, validate_repo_id

# in memory, because `evaluate` leaves a file behind for every failed request
METRIC = evaluate.load(str(Path(__file__).with_name("knowledge_perplexity.py")), keep_in_memory=True)
TEXT = """\
How surprised a language model is by facts, one per line: "SUBJECT RELATION OBJECT". The perplexity of all lines is
exp(total NLL / total predicted tokens), after the BOS of the model's tokenizer, if any; lower is better. Footnote 6 of
TemporalWiki (Jang et al., EMNLP 2022) describes the mean over the lines.
"""
PROBES = "Algeria shares border with Mauritania\nAlgeria shares border with Iceland"
LIMIT = 1000  # lines


def score(model: str, probes: str) -> tuple[float, float, float, int, list[list[Any]]]:
    """Return the scores of all lines, and the perplexity of each line. Raises gr.Error for wrong input."""
    lines = [line.strip() for line in probes.splitlines() if line.strip()]
    model = model.strip()
    try:
        if not model or not lines:
            raise ValueError("Name a model on the Hub, and write at least one line")
        if not _on_the_hub(model):
            raise ValueError(
                f"{model}: this is not the id of a model on the Hub; use the metric in Python for your own models"
            )
        if len(lines) > LIMIT:
            raise ValueError(f"{len(lines)} lines are too many for this page ({LIMIT}); use the metric in Python")
        found = METRIC.compute(predictions=lines, model=model)
    except ValueError as error:
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from None
    rows = [[line, round(value, 2)] for line, value in zip(lines, found["perplexities"], strict=True)]
    return found["perplexity"], found["perplexity_instance_mean"], found["bits_per_byte"], found["n_tokens"], rows


def _on_the_hub(model: str) -> bool:
    """Return whether a name is a Hub id: strangers must not open folders, files or packages of this machine."""
    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return not Path(model).exists()


demo = gr.Interface(
    score,
    [
        gr.Textbox("openai-community/gpt2", label="model", info="a decoder-only model's id on the Hub"),
        gr.Textbox(PROBES, label="probes", info="one per line", lines=6),
    ],
    [
        *(gr.Number(label=label) for label in ("perplexity", "mean over lines", "bits per byte", "tokens")),
        gr.Dataframe(headers=["probe", "perplexity"], datatype=["str", "number"], label="each line"),
    ],
    title="Perplexity of probes",
    description=TEXT,
    api_name="score",
    flagging_mode="never",
    analytics_enabled=False,
)

if __name__ == "__main__":
    demo.launch()
