"""A model behind an interface, which is asked questions through inspect-ai: it gives replies, but no likelihoods."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.progress import Progress
from temporalwiki.builders.ckl.templates import asking, fill, find_template, one_line
from temporalwiki.eval_harness import replies
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.models.model import REPLIES, Model
from temporalwiki.eval_harness.models.provider import COMPLETIONS, DEADLINE, RETRIES, ProviderModel, ask_each
from temporalwiki.eval_harness.references import choices_of, language_of, right_answers
from temporalwiki.methods import needs

PRECISION = "api"  # the precision in results, because a provider does not tell its own
MEASURES = ("exact_match", "f1", *replies.OUTCOMES, "judge_agreement")
_MOST_TOKENS = 2048  # the most tokens of a reply, its reasoning included
_JUDGE = """\
Question: {question}
Right answers: {right}
Earlier answers, which are out of date: {gone}
Reply of a model: {reply}

Which answer does the reply give? "new": a right one; "old": an earlier one; "both": a right one and an earlier one; \
"neither": another one; "abstained": none, it refuses or does not know. Reply with one of these five words only."""

Item = dict[str, Any]
Row = Mapping[str, Any]


@dataclass
class InterfaceModel(ProviderModel):
    """A model that answers questions."""

    judge: Model | None = None  # reads the replies as well; its agreement with the rules is reported
    precision: str = PRECISION

    can = frozenset({REPLIES})
    refusal = "{reference} gives no likelihoods, which {tasks} needs; it can do {able}{hint}"

    @property
    def hint(self) -> str:
        """The name under which the same server gives likelihoods, if it does."""
        provider, _, name = self.reference.partition("/")
        twin = next((completions for completions, asked in COMPLETIONS.items() if asked == provider), None)
        return f"; if its server completes texts, name it {twin}/{name}" if twin else ""

    def check(self) -> None:
        """Raise UsageError or InputError if it or its judge cannot be asked: no package, no key, no such provider."""
        super().check()
        if self.judge is not None:
            self.judge.check()

    def ask(self, questions: Sequence[str], what: str) -> list[str]:
        """Return the reply to each question. Raises InputError if the provider fails; earlier replies are kept."""
        policy = {"questions": 1, "max_tokens": _MOST_TOKENS, "temperature": 0}
        cache = ScoreCache(self.cache_folder, self.revision, policy, local=False)

        async def one(question: str) -> None:
            output = await self._model.generate(question)
            usage = output.usage
            self._pay(usage.input_tokens if usage else 0, usage.output_tokens if usage else 0)
            if output.error or not output.choices:
                raise InputError(output.error or "a reply without choices")
            cache.add_answers([(question, output.completion)])

        def ask(missing: Sequence[str], progress: Progress) -> Coroutine[Any, Any, None]:
            return ask_each(missing, one, progress)

        return self._answers(questions, what, "question", cache.answers, ask, _MOST_TOKENS)

    @cached_property
    def _model(self) -> Any:
        with needs("api"):
            from inspect_ai.model import GenerateConfig
        return self._opened(
            config=GenerateConfig(
                max_tokens=_MOST_TOKENS, temperature=0, max_retries=RETRIES, attempt_timeout=DEADLINE
            )
        )


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
