"""TWiki-Probes: facts that changed between two snapshots, and facts that did not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from temporalwiki.base.options import option
from temporalwiki.eval_harness.facts import COLUMNS, UNSCORED, complete, identity, prompt_of, score_facts
from temporalwiki.eval_harness.measures import STRICT, scores
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.model import LIKELIHOODS, LOGGED, REPLIES, WEIGHTS, Model
from temporalwiki.eval_harness.questions import MEASURES as asked_measures
from temporalwiki.eval_harness.questions import question_about, read_replies
from temporalwiki.eval_harness.references import right_answers
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.retrieval import reading
from temporalwiki.eval_harness.task import Row, Rows, Task

_STAGE, _FACTS = "light-tuned", "light-tuning"
_MEASURES = ("perplexity", "perplexity_instance_mean", "object_perplexity", "bits_per_byte", "exact_match", "f1")

Item = dict[str, Any]


@dataclass(frozen=True)
class TwikiProbes(Task):
    """Perplexity, exact match and F1 of facts, zero-shot and after light-tuning (section 4.2, appendices D to F).

    A probe is the text "subject relation object". ``perplexity`` counts the whole text (for an encoder-decoder
    model: the object after ``<extra_id_0>``), ``object_perplexity`` only the object's tokens. The answer to
    "subject relation" is decoded greedily up to the end of its sentence; all right objects and their aliases are
    right answers. ``average`` is the mean of unchanged and changed, as in table 3 of the paper. The tests
    ``strict/...`` count only strict facts: stated or listed by the article, right, and, if they are changed, new.
    Light-tuning needs the config ``lighttuning-*`` of the same months and a decoder-only model.

    A model behind an interface gives no perplexities. It is asked a question about each fact, and its reply is read by
    rules (``eval_harness/replies.py``): ``new`` is the share of replies with a right answer, ``old`` with an object
    that is gone, and ``both``, ``neither`` and ``abstained`` are the shares of other replies.
    """

    version: ClassVar[int] = 4  # version 3 accepted only the object of the probe
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    query: ClassVar[tuple[str, ...]] = COLUMNS[:2]
    splits: ClassVar[tuple[str, ...]] = ("unchanged", "changed")
    needs: ClassVar[frozenset[str]] = frozenset({LIKELIHOODS, LOGGED, REPLIES})
    later: ClassVar[frozenset[str]] = frozenset({"as_of"})

    answers: bool = option(True, "generate answers for EM and F1")
    light_tuning: bool = option(True, "also score the model after light-tuning, if there are facts for it")
    max_new_tokens: int = option(20, "longest answer")
    beams: int = option(1, "1: greedy decoding")
    as_of: str = option("", "models behind an interface: ask for the answer as of this date")

    def extra_configs(self, config: str) -> Mapping[str, str]:
        """Return the config with the facts for light-tuning."""
        return {_FACTS: config.replace("probes-", "lighttuning-", 1)} if self.light_tuning else {}

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score the probes zero-shot, then with a light-tuned copy of the model."""
        excluded: Counter[str] = Counter()
        probes = {split: complete(rows.get(split, []), split, excluded) for split in self.splits}
        if REPLIES in model.can:
            items = self._ask(model, probes)
        elif LOGGED in model.can:
            items = model.logged(probes, excluded)
        else:
            items = self._measure(model, probes, "", excluded)
        if self.light_tuning and LIKELIHOODS in model.can:
            facts = _unprobed(rows, probes, excluded)
            if facts and WEIGHTS in model.can and not model.encoder_decoder:
                with model.light_tuned(facts) as tuned:
                    items += self._measure(tuned, probes, f"{_STAGE}/", excluded)
            else:
                kind = "an encoder-decoder model" if model.encoder_decoder else "a model on a server"
                why = f"{kind} is not light-tuned" if facts else "no facts to light-tune on"
                excluded[f"{_STAGE}: {why}"] = sum(map(len, probes.values()))
        tests: dict[str, list[list[Item]]] = {}
        for stage in ("", f"{_STAGE}/"):
            by_split = {split: [item for item in items if item["split"] == stage + split] for split in self.splits}
            strict = {split: [item for item in of if item.get("strict")] for split, of in by_split.items()}
            for test, groups in ((stage, by_split), (f"{STRICT}{stage}", strict)):
                tests |= {test + split: [of_split] for split, of_split in groups.items()}
                tests[f"{test}average"] = list(groups.values())
        measures = asked_measures if REPLIES in model.can else _MEASURES
        return Outcome(scores(tests, measures), items, excluded)

    def _ask(self, model: Model, probes: Mapping[str, Sequence[Row]]) -> list[Item]:
        items: list[Item] = []
        for split, rows in probes.items():
            questions = [question_about(row, self.as_of) for row in rows]
            for row, reply in zip(rows, read_replies(model, questions, rows, split), strict=True):
                strict = {} if row.get("strict") is None else {"strict": int(row["strict"])}
                items.append({**identity(row), "split": split, **strict, **reply})
        return items

    def _measure(
        self, model: Model, probes: Mapping[str, Sequence[Row]], stage: str, excluded: Counter[str]
    ) -> list[Item]:
        items: list[Item] = []
        first = reading(model)  # on a server, rows have no passages
        for split, rows in probes.items():
            test = stage + split
            prompts = [prompt_of(row) for row in rows]
            before = [first(row, prompt) for row, prompt in zip(rows, prompts, strict=True)]
            facts = [(prompt, row["object"]) for prompt, row in zip(prompts, rows, strict=True)]
            scored = score_facts(model, facts, f"{test}: perplexity", before)
            answers: Sequence[str | None] = [None] * len(rows)
            if self.answers:
                asked = [text + prompt for text, prompt in zip(before, prompts, strict=True)]
                answers = model.generate(asked, f"{test}: answers", self.max_new_tokens, self.beams)
            for row, prompt, score, answer in zip(rows, prompts, scored, answers, strict=True):
                if score is None:
                    excluded[f"{test}: {UNSCORED}"] += 1
                    continue
                item: Item = {**identity(row), "split": test, **score._asdict(), "answer": answer}
                if row.get("strict") is not None:  # older datasets do not say
                    item["strict"] = int(row["strict"])
                if answer is not None:
                    right = right_answers(row)
                    item |= {"exact_match": exact_match(answer, right), "f1": f1(answer, right)}
                    item |= {"prompt": prompt, "object": row["object"]}  # for the model's card
                elif self.answers:
                    excluded[f"{test}: no room for an answer in the context"] += 1
                items.append(item)
        return items


def _unprobed(rows: Rows, probes: Mapping[str, Sequence[Row]], excluded: Counter[str]) -> list[Row]:
    """Return the facts to light-tune on, without those whose subject is probed (appendix F)."""
    probed = {identity(row)["cluster"] for of_split in probes.values() for row in of_split}
    unprobed = []
    for split in TwikiProbes.splits:
        for fact in complete(rows.get(f"{_FACTS}/{split}", []), f"{_FACTS}/{split}", excluded):
            if identity(fact)["cluster"] in probed:
                excluded[f"{_FACTS}/{split}: about a subject that is probed"] += 1
            else:
                unprobed.append(fact)
    return unprobed
