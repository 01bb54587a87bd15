"""Exact match, F1 and precision at k as an `evaluate` module; the texts in this file become the card."""

from typing import Any

import datasets
import evaluate

from .definition import knowledge_match, read_answers
from .normalization import normalize

# `evaluate` copies only the files that this one imports: `normalize` is here because definition.py needs it.
__all__ = ["KnowledgeMatch", "normalize"]

_CITATION = """\
@inproceedings{rajpurkar2016squad,
  title={{SQuAD}: 100,000+ Questions for Machine Comprehension of Text},
  author={Rajpurkar, Pranav and Zhang, Jian and Lopyrev, Konstantin and Liang, Percy},
  booktitle={Proceedings of the 2016 Conference on Empirical Methods in Natural Language Processing},
  year={2016}
}
@inproceedings{petroni2019language,
  title={Language Models as Knowledge Bases?},
  author={Petroni, Fabio and Rockt{\\"a}schel, Tim and Riedel, Sebastian and Lewis, Patrick and Bakhtin, Anton and
          Wu, Yuxiang and Miller, Alexander},
  booktitle={Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing},
  year={2019}
}
"""
_DESCRIPTION = """\
Exact match, F1 and precision at k of short answers, in percent, for LAMA-like probes and question answering. Answers
are compared after SQuAD's normalisation (Rajpurkar et al., 2016): lower case, no punctuation, no articles (a, an,
the), single spaces. Before that, T5's `<extra_id_0>`, `<extra_id_1>` ... become spaces.
"""
_USAGE = """\
## Inputs

- `predictions`: for each question an answer, or a ranking: a list of answers with the best first;
- `references`: for each question the right answer, or a list of right answers.

Strings and lists may be mixed.

## Outputs

`{"exact_match": float, "f1": float, "precision_at_k": {k: float}}`, means over the questions, from 0 to 100.

- `exact_match`: the (first) answer is one of the right answers.
- `f1`: the F1 of the words that the (first) answer shares with the best right answer.
- `precision_at_k`: one of the first k answers is right (P@k of LAMA, Petroni et al., 2019), for k = 1, 5, 10, 50 up to
  the length of the longest ranking. P@1 is `exact_match`. The keys are ints.

An answer that normalisation leaves empty (such as the band "The The") only matches a right answer that is also empty
after normalisation, as in SQuAD 2.0.

The metric raises a `ValueError` with a one-line message for no questions, lists of different lengths, an empty ranking
or list of right answers (write `""` if the model gave no answer), and values that are not strings.

## Examples

```python
>>> knowledge_match.compute(
...     predictions=["<extra_id_0> The Beatles!", "in Paris"], references=["Beatles", ["Paris", "Lutetia"]]
... )
{'exact_match': 50.0, 'f1': 83.33333333333333, 'precision_at_k': {1: 50.0}}
>>> knowledge_match.compute(
...     predictions=[["Rome", "Milan", "Turin", "Naples", "Genoa"], "Oslo"], references=["Turin", "Oslo"]
... )
{'exact_match': 50.0, 'f1': 50.0, 'precision_at_k': {1: 50.0, 5: 100.0}}
```

## Limits

- For ASCII the numbers equal SQuAD's. In other text, all Unicode punctuation is removed (SQuAD's script
  keeps “, –, 。), and composed and decomposed letters are equal (NFC).
- Removing punctuation makes "3.5" and "35" the same answer.
- The articles are English, but "a" is also removed from Portuguese or Hungarian answers.
- Words are separated by white space. A Chinese, Japanese or Thai answer is usually one word, and its F1 is close to
  exact match.
- Exact match does not know synonyms: give all names of an answer.
"""


class KnowledgeMatch(evaluate.Metric):
    """Knowledge match: exact match, F1 and P@k of short answers."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            license="apache-2.0",
            inputs_description=_USAGE,
            features=datasets.Features(
                {side: datasets.List(datasets.Value("string")) for side in ("predictions", "references")}
            ),
            reference_urls=["https://arxiv.org/abs/1606.05250", "https://arxiv.org/abs/1909.01066"],
        )

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        """Add one question."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add questions. A string becomes a list with one entry, because a column of `datasets` has one type."""
        questions = read_answers(predictions, references)
        super().add_batch(
            predictions=[ranking for ranking, _ in questions], references=[all_ for _, all_ in questions]
        )

    def _compute(self, *, predictions: Any, references: Any) -> dict[str, Any]:
        return knowledge_match(predictions, references)
