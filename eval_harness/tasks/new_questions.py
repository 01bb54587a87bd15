"""NewQuestions: closed-book questions about new facts (CKL)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.base.options import option
from temporalwiki.eval_harness.models.model import REPLIES, WEIGHTS, Model
from temporalwiki.eval_harness.questions import MEASURES as asked_measures
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.task import Rows, Task
from temporalwiki.eval_harness.tasks.lama import ask, in_question, light_tuned, outcome, read


@dataclass(frozen=True)
class NewQuestions(Task):
    """EM and F1 of closed-book answers to questions (CKL, NewQuestions-Easy).

    The columns are ``question``, and accepted answers and ``aliases`` as in ``lama``; clusters and the end of answers
    are also as in ``lama``.

    An encoder-decoder model reads the question and ``<extra_id_0>``, because it was pretrained to fill blanks. A
    decoder-only model reads "Question: ...", a new line and "Answer:". CKL's code gives only the question, to models
    that it has tuned on 5,000 other questions. ``light_tuning`` tunes as in ``lama``, in batches of 8; without it, the
    model is asked as it is.
    """

    version: ClassVar[int] = 2  # version 1 ignored aliases
    configs: ClassVar[tuple[str, ...]] = ("newquestions",)
    columns: ClassVar[tuple[str, ...]] = ("question",)
    query: ClassVar[tuple[str, ...]] = columns
    needs: ClassVar[frozenset[str]] = frozenset({REPLIES, WEIGHTS})
    least: ClassVar[Mapping[str, int]] = {"light_tuning": 0}
    later: ClassVar[frozenset[str]] = frozenset({"light_tuning"})

    max_new_tokens: int = option(20, "longest answer")
    beams: int = option(1, "1: greedy decoding")
    light_tuning: int = option(0, "questions to light-tune on first, which are then not scored")

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Ask the questions and score the answers."""
        excluded: Counter[str] = Counter()
        questions = list(read(model, rows, in_question(model), excluded))
        measures = asked_measures if REPLIES in model.can else ("exact_match", "f1")
        with light_tuned(model, questions, self.light_tuning, 8, excluded) as (tuned, left):
            return outcome(ask(tuned, left, self.max_new_tokens, self.beams, excluded), measures, excluded)
