"""General: what a model can do that no month is about, from a dataset of your own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from temporalwiki.base.options import option
from temporalwiki.eval_harness.facts import UNSCORED, score_facts
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.eval_harness.task import Row, Rows, Task, check_columns
from temporalwiki.eval_harness.tasks.twiki_intrinsic import windows

_MEASURES = ("acc", "acc_norm", "chance", "perplexity", "bits_per_byte")
_WINDOW = 256  # tokens of a text that are scored


@dataclass(frozen=True)
class General(Task):
    """Questions with choices, and text of another domain, so that a method that breaks a model is seen. (Ours.)

    A split with the columns ``question``, ``choices`` and ``answer`` (the number of the right choice, from 0) gives
    ``acc``, the percentage of questions whose right choice is likelier than all others, ``acc_norm``, the same per
    byte, and ``chance``. A split with the column ``text`` gives ``perplexity`` and ``bits_per_byte`` of the first 256
    tokens of each text.
    """

    configs: ClassVar[tuple[str, ...]] = ("general",)

    items: int = option(200, "items of each split, the first ones")

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score all splits. Raises InputError for a split that has neither questions nor text."""
        excluded: Counter[str] = Counter()
        tests: dict[str, list[list[dict[str, Any]]]] = {}
        for split, of_split in rows.items():
            first = list(of_split[: self.items])
            check_columns(first, ("text",) if "question" not in first[0] else ("choices", "answer"), f"split {split}")
            score = self._questions if "question" in first[0] else self._texts
            tests[split] = [score(model, first, split, excluded)]
        return Outcome(scores(tests, _MEASURES), [item for (items,) in tests.values() for item in items], excluded)

    def _questions(
        self, model: Model, rows: Sequence[Row], split: str, excluded: Counter[str]
    ) -> list[dict[str, Any]]:
        asked = [(i, row) for i, row in enumerate(rows) if _is_question(row)]
        excluded[f"{split}: no question with two choices and the number of the right one"] += len(rows) - len(asked)
        pairs = [(row["question"].strip(), choice.strip()) for _, row in asked for choice in row["choices"]]
        found = iter(score_facts(model, pairs, f"{split}: choices"))
        items = []
        for i, row in asked:
            each = [next(found) for _ in row["choices"]]
            likelihoods = [-one.object_nll for one in each if one is not None]
            if len(likelihoods) < len(each):
                excluded[f"{split}: a choice is {UNSCORED}"] += 1
                continue
            norm = [value / len(choice.encode()) for value, choice in zip(likelihoods, row["choices"], strict=True)]
            items.append(
                {
                    "id": f"{split}/{i}",
                    "cluster": f"{split}/{i}",
                    "split": split,
                    "acc": float(_wins(likelihoods, row["answer"])),
                    "acc_norm": float(_wins(norm, row["answer"])),
                    "chance": 1 / len(each),
                }
            )
        return items

    def _texts(self, model: Model, rows: Sequence[Row], split: str, excluded: Counter[str]) -> list[dict[str, Any]]:
        written = [
            (i, row["text"]) for i, row in enumerate(rows) if isinstance(row["text"], str) and row["text"].strip()
        ]
        excluded[f"{split}: no text"] += len(rows) - len(written)
        texts = list(windows((text for _, text in written), model.loaded.tokenizer, _WINDOW))
        items = []
        found = model.score([Text("", text) for text in texts], f"{split}: perplexity")
        for (i, _), text, one in zip(written, texts, found, strict=True):
            if one is None:
                excluded[f"{split}: {UNSCORED}"] += 1
                continue
            size = len(text[int(one.offsets[0, 0]) :].encode())
            figures = {"nll": float(one.nll.sum()), "tokens": len(one.nll), "bytes": size}
            items.append({"id": f"{split}/{i}", "cluster": f"{split}/{i}", "split": split, **figures})
        return items


def _is_question(row: Row) -> bool:
    question, choices, answer = row["question"], row["choices"], row["answer"]
    return (
        isinstance(question, str)
        and bool(question.strip())
        and isinstance(choices, list)
        and len(choices) > 1
        and all(isinstance(choice, str) and choice.strip() for choice in choices)
        and isinstance(answer, int)
        and 0 <= answer < len(choices)
    )


def _wins(values: Sequence[float], right: int) -> bool:
    """Return whether the right value is the highest one; a tie does not count."""
    return all(values[right] > value for at, value in enumerate(values) if at != right)
