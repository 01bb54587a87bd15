"""The Space's app: FUAR of a table of scores."""

import html
from typing import Any

import gradio as gr
from definition import TASKS, fuar

COLUMNS = ["earlier corpus", *(f"{task}, {when}" for task in TASKS for when in ("before", "after"))]
EXAMPLES = {
    "one earlier corpus": [["pretraining", 24, 18, 2, 10, 2, 6]],
    "two earlier corpora": [["pretraining", 20, 6, 1, 13, 1, 6], ["first month", 18, 16, 3, 13, 1, 6]],
    "tasks that are not defined": [["pretraining", 24, 18, None, None, 2, 6], ["first month", *[None] * 6]],
    "no gain": [["pretraining", 24, 18, 2, 2, 2, 1]],
}
TEXT = """\
FUAR is the number of points that a language model loses on old knowledge for each point that it gains by training on a
new corpus; lower is better (Jang et al., ICLR 2022, equation 1). Each row is an earlier corpus. **before** (the
`references`) is a score of the model right after that corpus, **after** (the `predictions`) a score of the newest
model. The tasks are the **invariant** knowledge of the earlier corpus, and the **updated** and **new** knowledge of
the newest corpus. Higher scores are better. An empty cell is a task that is not defined; it must be empty for both
models.
"""


def score(table: list[list[Any]]) -> tuple[str, float, float, float]:
    """Return FUAR, or "no gain", and the three sums; cells are numbers, text or empty, in the order of COLUMNS."""
    cells = [[_cell(value) for value in row[1:7]] for row in table]
    try:
        result = fuar(
            predictions=[dict(zip(TASKS, row[1::2], strict=False)) for row in cells],
            references=[dict(zip(TASKS, row[0::2], strict=False)) for row in cells],
        )
    except ValueError as error:
        advice = "Predictions are the columns 'after', references 'before'; [0] is the first row."
        raise gr.Error(f"{html.escape(str(error), quote=False)}. {advice}", print_exception=False) from None
    ratio = "no gain" if result["no_gain"] else f"{result['fuar']:.4g}"
    return ratio, result["forgotten"], result["updated"], result["acquired"]


def _cell(value: Any) -> Any:
    if value is None or not str(value).strip():
        return None
    try:
        return float(value)
    except ValueError:
        return value


demo = gr.Interface(
    score,
    gr.Dataframe(
        EXAMPLES["one earlier corpus"],
        headers=COLUMNS,
        datatype=["str", *["number"] * 6],
        type="array",
        label="scores",
        interactive=True,
    ),
    [gr.Textbox(label="FUAR"), *(gr.Number(label=name) for name in ("forgotten", "updated", "acquired"))],
    examples=[[table] for table in EXAMPLES.values()],
    example_labels=list(EXAMPLES),
    title="FUAR: forgotten / (updated + acquired)",
    description=TEXT,
    api_name="score",
    flagging_mode="never",
    analytics_enabled=False,
)

if __name__ == "__main__":
    demo.launch()
