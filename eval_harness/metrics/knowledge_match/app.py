"""The Space's app: exact match, F1 and P@k of a table of answers."""

import html
import sys
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

# The files of this folder import each other as modules of one package, which `evaluate` makes.
METRIC = evaluate.load(str(Path(__file__).with_name("knowledge_match.py")), keep_in_memory=True)
MODULE = sys.modules[type(METRIC).__module__]
COLUMNS = ["prediction", "reference"]
EXAMPLES = {
    "answers": [["The Beatles!", "Beatles"], ["in Paris", "Paris"], ["<extra_id_0> 1990", "1991 | 1990"]],
    "rankings": [["Rome | Milan | Turin", "Turin"], ["Oslo", "Oslo"], ["a | b | c | d | e", "Vienna"]],
    "other scripts": [["„Straße“", "straße"], ["東京。", "東京"], ["東京都", "東京"]],
}
TEXT = """\
Each row is a question, with the answer of a model and the right answer. ` | ` separates the answers of a ranking, best
first, and alternative right answers. Answers are compared after SQuAD's normalisation: in lower case, without
punctuation, the articles a, an and the, extra white space, and T5's `<extra_id_0>`.
"""


def score(table: list[list[Any]]) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return (measure, percent) rows, and (normalised first answer, exact match, F1) of each question."""
    rows = [[*row, "", ""][:2] for row in table if any(row)]
    questions = [[str(cell or "").split("|") for cell in row] for row in rows]
    try:
        result = MODULE.knowledge_match([answers for answers, _ in questions], [wanted for _, wanted in questions])
    except ValueError as error:
        raise gr.Error(html.escape(str(error), quote=False), print_exception=False) from None
    measures = {"exact match": result["exact_match"], "F1": result["f1"]}
    measures |= {f"P@{k}": percent for k, percent in result["precision_at_k"].items()}
    return (
        [[name, round(percent, 2)] for name, percent in measures.items()],
        [_question(answers[0], wanted) for answers, wanted in questions],
    )


def _question(answer: str, wanted: list[str]) -> list[Any]:
    result = MODULE.knowledge_match([answer], [wanted])
    return [MODULE.normalize(answer), result["exact_match"] / 100, round(result["f1"] / 100, 4)]


demo = gr.Interface(
    score,
    gr.Dataframe(EXAMPLES["answers"], headers=COLUMNS, type="array", label="answers", interactive=True),
    [
        gr.Dataframe(headers=["measure", "percent"], label="all questions"),
        gr.Dataframe(headers=["first answer as compared", "exact match", "F1"], label="each question"),
    ],
    examples=[[table] for table in EXAMPLES.values()],
    example_labels=list(EXAMPLES),
    title="Knowledge match: exact match, F1 and P@k of short answers",
    description=TEXT,
    api_name="score",
    flagging_mode="never",
    analytics_enabled=False,
)

if __name__ == "__main__":
    demo.launch()
