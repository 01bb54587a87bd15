"""The dataset repository's eval.yaml, which makes it a benchmark of the Hub's Community Evals.

``inspect eval hf/ORG/temporalwiki`` also runs it. Each month has its own tasks, and so its own leaderboard.
"""

import copy
from collections.abc import Sequence
from typing import Any

import yaml

from temporalwiki.builders.manifests import Manifest

_SPLITS = ("unchanged", "changed")  # a model need not know the object of a deleted fact
_PROMPT = """\
Complete the statement with a name or a short phrase, and write nothing else.

{prompt} {relation}"""
# Only inspect-ai's own solvers and scorers are allowed here (docs/adapters.md).
_TASK: dict[str, Any] = {
    "field_spec": {"input": "subject", "target": "object", "metadata": ["relation"]},
    "solvers": [
        {"name": "prompt_template", "args": {"template": _PROMPT}},
        {"name": "generate", "args": {"temperature": 0.0}},
    ],
    "scorers": [{"name": "exact"}, {"name": "f1"}],
}


def eval_yaml(manifests: Sequence[Manifest]) -> str | None:
    """Return eval.yaml for a dataset with these intervals, oldest first, or None if no interval has a task.

    A task's name is the full name of its config with its split, such as ``probes-20211101-20211201-changed``, so
    results keep their meaning: a short name belongs to another interval after a year. A split without rows has no
    task.
    """
    tasks = [  # each in full: not all YAML readers support anchors
        {"id": f"{name}-{split}", "config": name, "split": split, **copy.deepcopy(_TASK)}
        for manifest in manifests
        for name, config in manifest.configs.items()
        if name.startswith("probes-")
        for split in _SPLITS
        if split in config.splits and config.splits[split].num_examples
    ]
    if not tasks:
        return None
    benchmark = {
        "name": "TemporalWiki probes",
        "description": "Facts of Wikidata that changed between two monthly snapshots, and facts that did not, as "
        "(subject, relation, object). Does a model know the new facts, and still know the unchanged ones?",
        "evaluation_framework": "inspect-ai",
        "tasks": tasks,
    }
    text: str = yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=120)
    return text
