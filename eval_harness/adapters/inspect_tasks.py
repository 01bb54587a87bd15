"""The tasks for inspect-ai, found through its entry point: ``inspect eval temporalwiki/twiki_probes``."""

from __future__ import annotations

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


@task
def twiki_probes(data: str = "temporalwiki", config: str = "probes-1112", splits: str = "unchanged,changed") -> Task:
    """Ask for the object of each probe with the prompt "SUBJECT RELATION", and nothing else.

    ``data`` is a dataset folder, a Hub id or ``id@revision``. The answer is the continuation up to the end of its
    sentence; its scores are ours (``metrics/knowledge_match.py``), 0 to 1, by split and averaged over the splits.
    Raises UsageError for splits that there are not.
    """
    rows = load_probes(data, config)
    wanted = splits.split(",")
    for split in wanted:
        if split not in rows:
            raise UsageError(f"splits: no {split!r}{did_you_mean(split, rows)}; there are {', '.join(rows)}")
    samples = [
        Sample(
            input=prompt(row),
            target=row["object"],
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
        version=1,
    )


@metric
def clustered_stderr() -> Metric:
    """Standard error of each split's mean, clustered by subject."""
    return grouped(stderr(cluster="subject"), "split", all=False)


def _metrics() -> list[Metric]:
    return [grouped(mean(), "split", all="groups", all_label="average"), clustered_stderr()]


@scorer(metrics={"exact_match": _metrics(), "f1": _metrics()})
def knowledge_match() -> Scorer:
    """Exact match and F1 of the continuation's first sentence, as temporalwiki's metric of that name gives them."""

    async def score(state: TaskState, target: Target) -> Score:
        said = answer(state.output.completion)
        return Score(
            value={"exact_match": exact_match(said, target.target), "f1": f1(said, target.target)}, answer=said
        )

    return score
