"""Choose probes among the aligned facts (the caps of section 3.3) and the light-tuning sets (Appendix F)."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

Caps = tuple[float, float, float]  # the largest shares of the probes with one subject, one relation and one object
CAPS: Caps = (0.01, 0.05, 0.05)
_CAPPED = ("subject", "relation", "object")
LIGHT_TUNING = 500  # facts a split


class Fact(NamedTuple):
    """Numbers of subject (Q), relation (P) and object (Q)."""

    s: int
    p: int
    o: int


@dataclass(frozen=True)
class Selection:
    """The positions of the kept facts, in ascending order, and how many facts each cap dropped."""

    kept: list[int]
    dropped: dict[str, int]


def shuffled(facts: Sequence[Fact], seed: int, purpose: str) -> list[int]:
    """Return the positions of ``facts`` in a random order that depends on ``seed``, ``purpose`` and the facts.

    If the same facts are given in another order, they are shuffled to the same order.
    """

    def key(position: int) -> tuple[bytes, Fact]:
        s, p, o = facts[position]
        text = f"{seed} {purpose} {s} {p} {o}"
        return hashlib.md5(text.encode(), usedforsecurity=False).digest(), facts[position]

    return sorted(range(len(facts)), key=key)


def cap(facts: Sequence[Fact], seed: int, caps: Caps | None) -> Selection:
    """Apply filter 3: each subject, relation and object is in at most its share of the kept facts, or in one fact.

    The shares refer to the result, so the filter looks for a fixed point: it takes facts in a seeded order, within
    limits computed from the size of the last result, until the result is as large as its limits assume. Without
    ``caps``, all facts are kept.
    """
    if caps is None:
        return Selection(list(range(len(facts))), {})
    order = shuffled(facts, seed, "cap")
    size = len(facts)
    while True:
        kept, dropped = _take(facts, order, size, caps)
        if len(kept) >= size:
            return Selection(sorted(kept), dropped)
        size = len(kept)


def limits(size: int, caps: Caps) -> Fact:
    """Return how often one subject, one relation and one object may occur among ``size`` probes."""
    return Fact(*(max(1, int(size * Fraction(str(share)))) for share in caps))


def _take(facts: Sequence[Fact], order: Iterable[int], size: int, caps: Caps) -> tuple[list[int], dict[str, int]]:
    allowed = limits(size, caps)
    reasons = [f"{name}_over_{100 * share:g}_percent" for name, share in zip(_CAPPED, caps, strict=True)]
    seen = [Counter[int]() for _ in allowed]
    kept: list[int] = []
    dropped: dict[str, int] = {}
    for position in order:
        fact = facts[position]
        over = [count[entity] >= most for count, entity, most in zip(seen, fact, allowed, strict=True)]
        if any(over):
            reason = reasons[over.index(True)]
            dropped[reason] = dropped.get(reason, 0) + 1
            continue
        kept.append(position)
        for count, entity in zip(seen, fact, strict=True):
            count[entity] += 1
    return kept, dropped


def light_tuning(facts: Sequence[Fact], probes: Iterable[int], avoid: Iterable[int], seed: int) -> list[int]:
    """Return the positions of up to LIGHT_TUNING facts with subjects that are not in ``avoid``.

    The facts are drawn so that each relation has the same share as among ``probes`` (positions in ``facts``), rounded
    by largest remainder. If a relation has too few facts, the others share the rest in the same way.
    """
    taken = set(avoid)
    pool: dict[int, list[int]] = {}
    for position in shuffled(facts, seed, "light-tuning"):
        if facts[position].s not in taken:
            pool.setdefault(facts[position].p, []).append(position)
    weights = Counter(facts[position].p for position in probes)
    chosen: list[int] = []
    while (wanted := LIGHT_TUNING - len(chosen)) > 0 and (open_relations := sorted(p for p in pool if pool[p])):
        shares = _largest_remainder({p: weights.get(p, 0) for p in open_relations}, wanted)
        for p, share in shares.items():
            chosen += pool[p][:share]
            pool[p] = pool[p][share:]
    return sorted(chosen)


def _largest_remainder(weights: dict[int, int], seats: int) -> dict[int, int]:
    """Divide ``seats`` in proportion to ``weights``, or evenly if all weights are 0. A key's share can be 0."""
    if not any(weights.values()):
        weights = dict.fromkeys(weights, 1)
    total = sum(weights.values())
    shares = {key: seats * weight // total for key, weight in weights.items()}
    rest = sorted(weights, key=lambda key: (-(seats * weights[key] % total), key))
    for key in rest[: seats - sum(shares.values())]:
        shares[key] += 1
    return shares
