"""Exact match, F1 and precision at k of short answers."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from .normalization import normalize

RANKS = (1, 5, 10, 50)


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1.0 if the prediction equals a reference after normalisation, else 0.0."""
    return float(normalize(prediction) in map(normalize, _texts(references, "references")))


def f1(prediction: str, references: Sequence[str]) -> float:
    """Return the F1 (0 to 1) of the words that the prediction shares with the best reference.

    Words are separated by white space, also in scripts that do not use it. If normalisation leaves nothing of one
    answer, F1 is 1 if it leaves nothing of the other, else 0 (as in SQuAD 2.0).
    """
    words = normalize(prediction).split()
    return max(_overlap(words, normalize(reference).split()) for reference in _texts(references, "references"))


def knowledge_match(
    predictions: Iterable[str | Sequence[str]], references: Iterable[str | Sequence[str]]
) -> dict[str, Any]:
    """Return exact match, F1 and P@k over all questions, in percent.

    A prediction is an answer, or a ranking of answers with the best first. A reference is an answer or a list of
    accepted answers; the best one counts. Exact match and F1 score the first answer. `precision_at_k` (LAMA,
    Petroni et al. 2019) is the share of questions with a match among the first k answers, for k = 1, 5, 10 and 50 up
    to the length of the longest ranking. P@1 is exact match.

    Raises ValueError for no questions, lists of different lengths, an empty ranking or list of references, and values
    that are not strings.
    """
    questions = read_answers(predictions, references)
    if not questions:
        raise ValueError("no predictions: there is nothing to score")
    ranks = []
    for ranking, accepted in questions:
        wanted = set(map(normalize, accepted))
        ranks.append(next((k for k, answer in enumerate(ranking, 1) if normalize(answer) in wanted), math.inf))
    longest = max(len(ranking) for ranking, _ in questions)
    return {
        "exact_match": 100 * fmean(exact_match(ranking[0], accepted) for ranking, accepted in questions),
        "f1": 100 * fmean(f1(ranking[0], accepted) for ranking, accepted in questions),
        "precision_at_k": {k: 100 * fmean(rank <= k for rank in ranks) for k in RANKS if k <= longest},
    }


def read_answers(
    predictions: Iterable[str | Sequence[str]], references: Iterable[str | Sequence[str]]
) -> list[tuple[list[str], list[str]]]:
    """Return (ranking, accepted answers) of each question. Raises ValueError for the first wrong value."""
    rankings, accepted = _lists(predictions, "predictions"), _lists(references, "references")
    if len(rankings) != len(accepted):
        raise ValueError(
            f"{len(rankings)} predictions and {len(accepted)} references: each question needs one of each"
        )
    return list(zip(rankings, accepted, strict=True))


def _lists(values: Iterable[str | Sequence[str]], name: str) -> list[list[str]]:
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        raise ValueError(f"{name}: expected a list with one entry for each question, not {type(values).__name__}")
    return [_texts(value, f"{name}[{i}]") for i, value in enumerate(values)]


def _texts(value: str | Sequence[str], where: str) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Sequence):
        raise ValueError(f"{where}: expected a string or a list of strings, not {type(value).__name__}")
    if not value:
        raise ValueError(f"{where}: the list is empty; it needs at least one string")
    for text in value:
        if not isinstance(text, str):
            raise ValueError(f"{where}: expected a string, not {type(text).__name__}")
    return list(value)


def _overlap(words: list[str], others: list[str]) -> float:
    if not words or not others:
        return float(words == others)
    return 2 * (Counter(words) & Counter(others)).total() / (len(words) + len(others))
