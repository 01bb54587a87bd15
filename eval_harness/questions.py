"""Ask a model questions about facts, and read its replies."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.builders.ckl.templates import asking, fill, find_template, one_line
from temporalwiki.eval_harness import replies
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.references import choices_of, language_of, right_answers

MEASURES = ("exact_match", "f1", *replies.OUTCOMES, "judge_agreement")
_JUDGE = """\
Question: {question}
Right answers: {right}
Earlier answers, which are out of date: {gone}
Reply of a model: {reply}

Which answer does the reply give? "new": a right one; "old": an earlier one; "both": a right one and an earlier one; \
"neither": another one; "abstained": none, it refuses or does not know. Reply with one of these five words only."""

Item = dict[str, Any]
Row = Mapping[str, Any]


def question_about(row: Row, as_of: str = "") -> str:
    """Return the question about the object of a fact: the relation's own, or a plain one. ``as_of`` is a date.

    The question is in the row's "language" (``language_of``), or else in English.
    """
    subject, relation, language = one_line(row["subject"]), one_line(row["relation"]), language_of(row)
    template = find_template(str(row.get("relation_id")), relation, language=language)
    words = asking(language)
    question = template.ask(subject) if template else fill(words.question, {"[X]": subject, "[relation]": relation})
    return fill(words.dated, {"[date]": one_line(as_of), "[question]": question}) if as_of else question


def read_replies(model: Model, questions: Sequence[str], rows: Sequence[Row], what: str) -> list[Item]:
    """Ask the questions, and return the reply to each, its answer, EM and F1, and its outcome by the rules.

    If the model has a judge, "judge" is the outcome by the judge, and "judge_agreement" whether it is the same.
    """
    said = model.ask([_prompt(question, row) for question, row in zip(questions, rows, strict=True)], what)
    items: list[Item] = []
    for row, reply in zip(rows, said, strict=True):
        outcome, answer = replies.read(reply, row)
        right = right_answers(row)
        shares: Item = {name: float(name == outcome) for name in replies.OUTCOMES}
        scores: Item = {"exact_match": exact_match(answer, right), "f1": f1(answer, right)}
        items.append({"reply": reply, "answer": answer, **scores, **shares})
    if model.judge is not None:
        prompts = [
            _JUDGE.format(
                question=question,
                right="; ".join(right_answers(row)),
                gone="; ".join(choices_of(row)[1]) or "none",
                reply=replies.without_reasoning(item["reply"]) or "(empty)",
            )
            for question, row, item in zip(questions, rows, items, strict=True)
        ]
        for item, verdict in zip(items, model.judge.ask(prompts, f"{what}: judge"), strict=True):
            words = re.findall(r"[a-z]+", replies.without_reasoning(verdict).lower())
            judged = next((word for word in words if word in replies.OUTCOMES), None)
            item["judge"] = judged
            item["judge_agreement"] = None if judged is None else item[judged]
    return items


def _prompt(question: str, row: Row) -> str:
    words = asking(language_of(row))
    return fill(words.prompt, {"[question]": question, "[unknown]": words.unknown})
