"""KILT: can a model with updated knowledge still learn knowledge-intensive tasks?"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from transformers import PreTrainedTokenizerBase

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import option
from temporalwiki.eval_harness.fine_tuning import fine_tuned
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.task import Row, Rows, Task, check_columns
from temporalwiki.methods.architecture import context_length
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import Encoder

_MEASURES = ("accuracy", "exact_match", "f1", "rouge_l")
_START, _END = "[START_ENT]", "[END_ENT]"  # around the mention to link
_ASK = "\nAnswer:"  # follows the input of a decoder-only model
_WITHOUT_TRAIN = ("wned", "cweb")
_LINKING = "aidayago2"
_FREE_TEXT = ("eli5", "wow")  # answers of several sentences
# ids of mentions of one document, "UUID_DOCUMENT:2", or of turns of one dialogue, "UUID_2"
_PART = re.compile(r"[0-9a-f-]{36}_(?P<document>.+):\d+|(?P<dialogue>[0-9a-f-]{36})_\d+")


class _Recipe(NamedTuple):
    """Hyperparameters of a data set; all but ``max_new_tokens`` were published by CKL, for four GPUs."""

    epochs: int
    batch_size: int
    learning_rate: float  # for T5
    max_new_tokens: int = 20


_RECIPES = {
    "fever": _Recipe(5, 512, 1e-4),
    "aidayago2": _Recipe(20, 16, 1e-4),
    "trex": _Recipe(9, 768, 1e-3),
    "structured_zeroshot": _Recipe(30, 512, 1e-4),
    "nq": _Recipe(45, 768, 1e-3),
    "hotpotqa": _Recipe(12, 512, 1e-4),
    "triviaqa_support_only": _Recipe(50, 512, 1e-3),
    "eli5": _Recipe(6, 48, 1e-3, 350),
    "wow": _Recipe(8, 96, 1e-4, 40),
}
_OTHERWISE = _Recipe(10, 128, 1e-4)

Item = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A row with an input and an answer."""

    id: str
    cluster: str  # the document, dialogue or subject, else the input itself
    text: str
    answers: list[str]  # each of them is right


@dataclass(frozen=True)
class Kilt(Task):
    """The eleven KILT data sets: fine-tune on the train split, score the validation split (CKL, appendix).

    The configs are ``kilt-NAME``, with KILT's name of the data set. The columns are ``id``, ``input``, and either
    ``answers``, a list of texts, or KILT's ``output``, a list whose entries may have an ``answer``. A model learns the
    first answer; in scoring, the best one counts. WnWi (``wned``) and WnCw (``cweb``) have no train split: as in CKL,
    the model that was trained on AIDA CoNLL-YAGO (``aidayago2``) is scored. Scores are named ``fine-tuned/...``, or
    ``zero-shot/...`` without a train split.

    The scores follow KILT's downstream evaluation (Petroni et al. 2021). KILT uses ``accuracy`` (equality with
    an answer, without normalisation) for FEVER, AY2, WnWi, WnCw, T-REx and zsRE; ``exact_match`` for NQ, HotpotQA and
    TriviaQA; ``rouge_l`` for ELI5; and ``f1`` for WoW. ``rouge_l`` is the F-measure of the package ``rouge_score``
    without stemming; KILT uses another package, which does not lower-case the words.

    All parameters are trained: T5 as in CKL, with Adafactor and a constant rate; other models with AdamW, 5e-5, a
    warm-up over the first tenth and a linear decay. A decoder-only model reads "INPUT\\nAnswer:". A fine-tuned model
    decides where its answer ends. A zero-shot answer ends with its sentence, except in ELI5 and WoW. An input longer
    than ``input_length`` tokens or the context is cut to the part around its mention, or to its end. An answer in the
    train split is cut to its first ``max_new_tokens``. Cut inputs and answers are counted.
    """

    version: ClassVar[int] = 2  # version 1 ended zero-shot answers after "1." and not after "World War I."
    configs: ClassVar[tuple[str, ...]] = ("kilt-",)
    columns: ClassVar[tuple[str, ...]] = ("id", "input")
    splits: ClassVar[tuple[str, ...]] = ("validation",)

    epochs: int | None = option(None, "passes over the train split (default: as in CKL, 5 to 50)")
    batch_size: int | None = option(None, "examples per optimizer step (default: as in CKL, 16 to 768)")
    learning_rate: float | None = option(None, "highest rate (default: T5 as in CKL, 1e-4 or 1e-3; others 5e-5)")
    input_length: int = option(768, "most tokens of an input")
    max_new_tokens: int | None = option(None, "longest answer (default: 350 for eli5, 40 for wow, else 20)")
    beams: int = option(1, "1: greedy decoding")

    def extra_configs(self, config: str) -> Mapping[str, str]:
        """Return the config with the train split, which ``--limit`` does not shorten."""
        name = config.removeprefix("kilt-")
        trained_on = _LINKING if name in _WITHOUT_TRAIN else name
        return {trained_on: f"kilt-{trained_on}"}

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Fine-tune a copy of the model if there is a train split, and score its answers."""
        trained_on = next((key.rpartition("/")[0] for key in rows if "/" in key), "")
        recipe = _RECIPES.get(trained_on, _OTHERWISE)
        longest = self.max_new_tokens or recipe.max_new_tokens
        excluded: Counter[str] = Counter()
        asked = _questions(rows["validation"], "validation", excluded)
        train = _questions(rows.get(f"{trained_on}/train", []), "train", excluded)
        prompts = self._prompts(model, asked, longest, "validation", excluded)
        if asked and train:
            gap = "" if model.encoder_decoder else " "
            answers = [question.answers[0] for question in train]
            short = _cut(answers, "", lambda text: 0, longest, model.tokenizer)
            excluded[f"train: the rest of an answer over {longest} tokens"] = _differ(answers, short)
            learn = self._prompts(model, train, longest, "train", excluded)
            examples = [(prompt, gap + answer) for prompt, answer in zip(learn, short, strict=True)]
            with fine_tuned(model, examples, self._options(model, recipe), f"fine-tuning on {trained_on}") as tuned:
                replies = tuned.generate(prompts, "fine-tuned: answers", longest, self.beams, whole=True)
        else:
            whole = trained_on in _FREE_TEXT
            replies = model.generate(prompts, "zero-shot: answers", longest, self.beams, whole)
        items = list(_score(asked, replies, excluded))
        return Outcome(scores({"fine-tuned" if train else "zero-shot": [items]}, _MEASURES), items, excluded)

    def _options(self, model: Model, recipe: _Recipe) -> TrainOptions:
        chosen: dict[str, Any] = {
            "epochs": self.epochs or recipe.epochs,
            "batch_size": self.batch_size or recipe.batch_size,
        }
        if model.encoder_decoder:
            chosen |= {"optimizer": "adafactor", "schedule": "constant", "warmup_ratio": 0.0}
            return TrainOptions(**chosen, learning_rate=self.learning_rate or recipe.learning_rate)
        return TrainOptions(**chosen, schedule="linear", learning_rate=self.learning_rate or 5e-5)

    def _prompts(
        self, model: Model, questions: Sequence[Question], longest: int, split: str, excluded: Counter[str]
    ) -> list[str]:
        """Return the prompts of questions; inputs that are too long are cut."""
        end = "" if model.encoder_decoder else _ASK
        context = context_length(model.loaded.model.config)
        most = min(self.input_length, context - longest - 1) if context else self.input_length  # 1 for BOS
        whole = [question.text for question in questions]
        short = _cut(whole, end, _place, most, model.tokenizer)
        excluded[f"{split}: the rest of an input over {most} tokens"] = _differ(whole, short)
        return [text + end for text in short]


def _score(questions: Sequence[Question], replies: Sequence[str | None], excluded: Counter[str]) -> Iterator[Item]:
    rouge = RougeScorer(["rougeL"])
    for question, answer in zip(questions, replies, strict=True):
        if answer is None:
            excluded["validation: no room for an answer in the context"] += 1
            continue
        yield {
            "id": question.id,
            "cluster": question.cluster,
            "answer": answer,
            "accuracy": float(answer in question.answers),
            "exact_match": exact_match(answer, question.answers),
            "f1": f1(answer, question.answers),
            "rouge_l": float(rouge.score_multi(question.answers, answer)["rougeL"].fmeasure),
        }


def _questions(rows: Sequence[Row], split: str, excluded: Counter[str]) -> list[Question]:
    """Return the rows that have an input and an answer; ``excluded`` counts the others."""
    found = []
    if rows and "output" not in rows[0]:
        check_columns(rows, ("answers",), split)
    for row in rows:
        text = (row["input"] or "").strip()
        answers = [answer.strip() for answer in _answers(row) if answer and answer.strip()]
        if not text:
            excluded[f"{split}: no input"] += 1
        elif not answers:
            excluded[f"{split}: no answer"] += 1
        else:
            part = _PART.fullmatch(str(row["id"]))
            subject = text.partition(" [SEP] ")[0]  # in slot filling, the subject
            cluster = str(part["document"] or part["dialogue"]) if part else subject
            found.append(Question(str(row["id"]), cluster, text, answers))
    return found


def _answers(row: Row) -> list[str | None]:
    if "answers" in row:
        return list(row["answers"] or [])
    return [one.get("answer") if isinstance(one, Mapping) else one for one in row["output"] or []]


def _place(text: str) -> int:
    """Return the position of the most important part of an input: the middle of its mention, or its end."""
    begin = text.find(_START)
    return len(text) if begin < 0 else (begin + max(text.find(_END), begin)) // 2


def _cut(
    texts: Sequence[str], end: str, place: Callable[[str], int], most: int, tokenizer: PreTrainedTokenizerBase
) -> list[str]:
    """Cut texts to ``most`` tokens including ``end``; a longer text keeps the part around ``place(text)``."""
    encoder = Encoder(tokenizer)

    def tokens(text: str) -> int:
        [ids] = encoder.ids([text + end])
        return len(ids)

    cut = []
    for text in texts:
        short = text
        if (over := tokens(text) - most) > 0:
            [(_, offsets)] = encoder.with_offsets([text])
            middle = int(np.searchsorted(offsets[:, 1], place(text)))
            size = len(offsets)
            while over > 0:  # a part of a text may have more tokens than it had within the text
                size -= over
                if size < 1:
                    raise UsageError(
                        f"no part of an input fits into {most} tokens; raise --input-length or lower --max-new-tokens"
                    )
                first = min(max(middle - size // 2, 0), len(offsets) - size)
                short = text[offsets[first, 0] : offsets[first + size - 1, 1]].strip()
                over = tokens(short) - most
        cut.append(short)
    return cut


def _differ(whole: Sequence[str], short: Sequence[str]) -> int:
    return sum(one != other for one, other in zip(whole, short, strict=True))
