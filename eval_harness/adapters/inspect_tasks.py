"""Tasks for inspect-ai, which finds them through an entry point: ``inspect eval temporalwiki/twiki_probes``."""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, Score, Scorer, Target, grouped, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState, generate

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean
from temporalwiki.eval_harness.adapters.lm_eval.probes import load_probes, prompt
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.references import right_answers


@task
def twiki_probes(data: str = "temporalwiki", config: str = "probes-1112", splits: str = "unchanged,changed") -> Task:
    """Return the task that asks for the object of each probe with the prompt "SUBJECT RELATION".

    ``data`` is a dataset folder, a Hub id or ``id@revision``. The first sentence of the continuation is the answer. It
    is compared with all right answers (``references.py``) by ``metrics/knowledge_match.py``, and scored from 0 to 1,
    for each split and on average. Raises UsageError for a split that the config does not have.
    """
    rows = load_probes(data, config)
    wanted = splits.split(",")
    for split in wanted:
        if split not in rows:
            raise UsageError(f"splits: no {split!r}{did_you_mean(split, rows)}; there are {', '.join(rows)}")
    samples = [
        Sample(
            input=prompt(row),
            target=right_answers(row),
            id=f"{split}/{number}",
            metadata={"split": split, "subject": row["subject_id"] or row["subject"]},
        )
        for split in wanted
        for number, row in enumerate(rows[split])
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{data}/{config}"),
        solver=generate(),
        scorer=knowledge_match(),
        config=GenerateConfig(max_tokens=20),
        version=2,
    )


@metric
def clustered_stderr() -> Metric:
    """The standard error of each split's mean, clustered by subject."""
    return grouped(stderr(cluster="subject"), "split", all=False)


def _metrics() -> list[Metric]:
    return [grouped(mean(), "split", all="groups", all_label="average"), clustered_stderr()]


@scorer(metrics={"exact_match": _metrics(), "f1": _metrics()})
def knowledge_match() -> Scorer:
    """Exact match and F1 of the continuation's first sentence, as in our metric knowledge_match."""

    async def score(state: TaskState, target: Target) -> Score:
        sentence = answer(state.output.completion)
        scores = {"exact_match": exact_match(sentence, target.target), "f1": f1(sentence, target.target)}
        return Score(value=scores, answer=sentence)

    return score
