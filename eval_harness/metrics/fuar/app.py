"""The app of a metric's Space: it computes the metric of JSON. All metrics have this file, by a link."""

import html
import json
import math
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr
from huggingface_hub.utils import HFValidationError, validate_repo_id

EXAMPLES: dict[str, dict[str, Any]] = {
    "fuar": {
        "predictions": [{"invariant": 18, "updated": 10, "new": 6}],
        "references": [{"invariant": 24, "updated": 2, "new": 2}],
    },
    "knowledge_match": {
        "predictions": ["The Beatles!", "in Paris", ["Rome", "Milan", "Turin"]],
        "references": ["Beatles", ["Paris", "Lutetia"], "Turin"],
    },
    "knowledge_perplexity": {
        "predictions": ["Algeria shares border with Mauritania", "Algeria shares border with Iceland"],
        "model": "openai-community/gpt2",
    },
}
HERE = Path(__file__).parent
NAME = next(name for name in EXAMPLES if (HERE / f"{name}.py").is_file())
# in memory, because `evaluate` leaves a file behind for every failed request
METRIC = evaluate.load(str(HERE / f"{NAME}.py"), keep_in_memory=True)
MOST = 1000  # predictions


def score(given: str) -> dict[str, Any]:
    """Return the metric of JSON, the arguments of ``compute``. Raises gr.Error for wrong input."""
    try:
        inputs = json.loads(given)
        if not isinstance(inputs, dict) or not {"predictions"} <= inputs.keys() <= {*EXAMPLES[NAME], "objects"}:
            raise ValueError(f"write an object with {' and '.join(EXAMPLES[NAME])}")
        if len(inputs["predictions"]) > MOST:
            raise ValueError(f"more than {MOST} predictions are too many for this page; use the metric in Python")
        if "model" in inputs and not _on_the_hub(inputs["model"]):
            raise ValueError(f"{inputs['model']}: this is not the id of a model on the Hub; use the metric in Python")
        found: dict[str, Any] = METRIC.compute(**inputs)
    except (ValueError, TypeError) as error:
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from None
    written = json.dumps({name: "inf" if value == math.inf else value for name, value in found.items()})
    return dict(json.loads(written))  # whose keys are text


def _on_the_hub(model: Any) -> bool:
    """Return whether a name is a Hub id: strangers must not open folders, files or packages of this machine."""
    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return isinstance(model, str) and not Path(model).exists()


demo = gr.Interface(
    score,
    gr.Textbox(json.dumps(EXAMPLES[NAME], indent=2), label="JSON: the arguments of compute", lines=12),
    gr.JSON(label=NAME),
    title=NAME,
    description="The README of this Space explains inputs and outputs.",
    api_name="score",
    flagging_mode="never",
    analytics_enabled=False,
)

if __name__ == "__main__":
    demo.launch()
