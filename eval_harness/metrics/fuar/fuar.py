"""FUAR as an `evaluate` module. definition.py computes it; the texts in this file become the card."""

from typing import Any

import datasets
import evaluate

from .definition import TASKS, fuar, read_scores

_CITATION = """\
@inproceedings{jang2022towards,
  title={Towards Continual Knowledge Learning of Language Models},
  author={Jang, Joel and Ye, Seonghyeon and Yang, Sohee and Shin, Joongbo and Han, Janghoon and Kim, Gyeonghun and
          Choi, Stanley Jungkyu and Seo, Minjoon},
  booktitle={International Conference on Learning Representations},
  year={2022}
}
"""
_DESCRIPTION = """\
FUAR, the Forgotten / (Updated + Acquired) Ratio, is the number of points that a language model loses on old knowledge
for each point that it gains when it is trained on a new corpus. It is equation 1 of *Towards Continual Knowledge
Learning of Language Models* (Jang et al., ICLR 2022). Lower is better: at 0 nothing is forgotten, at 1 the model loses
as much as it gains.

A model is trained on the corpora D_0 .. D_n, one after the other. LM_i is the model right after D_i, and
gap(T, a, b) = score of LM_a on T − score of LM_b on T. The sums are over the earlier corpora i = 0 .. n−1 whose
invariant task is defined:

    forgotten = Σ max(0, gap(invariant_i, i, n))
    updated   = Σ max(0, gap(updated_n, n, i))
    acquired  = Σ max(0, gap(new_n, n, i))
    fuar      = forgotten / (updated + acquired)
"""
_USAGE = """\
## Inputs

One row for each earlier corpus D_i, each a dict with exactly the keys `invariant`, `updated`, `new`:

- `predictions[i]`: the scores of LM_n, the newest model;
- `references[i]`: the scores of LM_i on the same three tasks: knowledge of D_i that must not be forgotten, knowledge
  that D_n updates, and knowledge that D_n adds.

A score is any finite number; higher must be better (for a perplexity, give its negative). `None` stands for a task
that is not defined ("n.d." in the paper), in both rows of the corpus. A row without an invariant task does not count.
An updated or new task that is not defined adds 0.

## Outputs

`{"fuar": float, "no_gain": bool, "forgotten": float, "updated": float, "acquired": float}`. The last three are the
sums, in the unit of the scores. If nothing was gained, `fuar` is `inf` and `no_gain` is `True`, even if nothing was
forgotten. `fuar` is never NaN. The metric raises a `ValueError` with a one-line message for

- rows with missing or unknown keys, and scores that are not finite;
- rows that do not match: different lengths, or `None` on only one side;
- rows without a defined FUAR: no row has an invariant task, or no such row has an updated or new task.

## Examples

Six points forgotten, eight and four gained:

```python
>>> fuar.compute(
...     predictions=[{"invariant": 18, "updated": 10, "new": 6}],
...     references=[{"invariant": 24, "updated": 2, "new": 2}],
... )
{'fuar': 0.5, 'no_gain': False, 'forgotten': 6.0, 'updated': 8.0, 'acquired': 4.0}
```

Two earlier corpora; the second has no invariant task, and nothing is updated:

```python
>>> fuar.compute(
...     predictions=[{"invariant": 18, "updated": None, "new": 6}, {"invariant": None, "updated": None, "new": 6}],
...     references=[{"invariant": 24, "updated": None, "new": 2}, {"invariant": None, "updated": None, "new": 5}],
... )
{'fuar': 1.5, 'no_gain': False, 'forgotten': 6.0, 'updated': 0.0, 'acquired': 4.0}
```

No gain:

```python
>>> fuar.compute(
...     predictions=[{"invariant": 18, "updated": 2, "new": 1}],
...     references=[{"invariant": 24, "updated": 2, "new": 2}],
... )
{'fuar': inf, 'no_gain': True, 'forgotten': 6.0, 'updated': 0.0, 'acquired': 0.0}
```

## Limits

- FUAR is a ratio: if a model gained very little, it is huge, and rounding of the scores changes it a lot. Report the
  scores as well.
- A point on one task counts as much as a point on another, even if their sizes and scales differ.
- Gains and losses do not cancel: a lower score on a new task counts as 0, and so does a higher score on an invariant
  task.
- JSON has no `inf`; write `no_gain` instead.
"""


class Fuar(evaluate.Metric):
    """FUAR: what a model forgot for each point that it gained."""

    def _info(self) -> evaluate.MetricInfo:
        row = {task: datasets.Value("float64") for task in TASKS}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            license="apache-2.0",
            inputs_description=_USAGE,
            features=datasets.Features({"predictions": row, "references": row}),
            reference_urls=["https://arxiv.org/abs/2110.03215"],
        )

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        """Add the rows of one earlier corpus."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add rows. They are checked here because `evaluate` reads a missing key as None and drops an unknown one."""
        pairs = read_scores(predictions, references)
        super().add_batch(predictions=[after for after, _ in pairs], references=[before for _, before in pairs])

    def _compute(self, *, predictions: Any, references: Any) -> dict[str, float]:
        return fuar(predictions, references)
