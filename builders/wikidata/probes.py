"""From aligned facts to probes: the caps of section 3.3 and the light-tuning sets of Appendix F."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

CAPS = {"s": 0.01, "p": 0.05, "o": 0.05}  # of what is kept: one subject, one relation, one object
LIGHT_TUNING = 500  # facts a split


class Fact(NamedTuple):
    """Numbers of subject (Q), relation (P) and object (Q)."""

    s: int
    p: int
    o: int


@dataclass(frozen=True)
class Selection:
    """Positions of the kept facts in the input, in order, and what each cap dropped."""

    kept: list[int]
    dropped: dict[str, int]


def shuffled(facts: Sequence[Fact], seed: int, purpose: str) -> list[int]:
    """Positions of ``facts`` in an order that depends on the seed and the facts, not on where they stand."""

    def key(position: int) -> tuple[bytes, Fact]:
        s, p, o = facts[position]
        text = f"{seed} {purpose} {s} {p} {o}"
        return hashlib.md5(text.encode(), usedforsecurity=False).digest(), facts[position]

    return sorted(range(len(facts)), key=key)


def cap(facts: Sequence[Fact], seed: int) -> Selection:
    """Filter 3: a subject at most 1 %, a relation and an object at most 5 % of what is kept, at least 1 each.

    The share is of the result, so this is a fixed point: facts are taken in a seeded order as long as their
    counts allow, with limits from the size of the last result, until a result fills its own limits.
    """
    order = shuffled(facts, seed, "cap")
    size = len(facts)
    while True:
        kept, dropped = _take(facts, order, size)
        if len(kept) >= size:
            return Selection(sorted(kept), dropped)
        size = len(kept)


def limits(size: int) -> dict[str, int]:
    """How often one subject, relation and object may occur among ``size`` probes."""
    return {name: max(1, size * round(share * 100) // 100) for name, share in CAPS.items()}


def _take(facts: Sequence[Fact], order: Iterable[int], size: int) -> tuple[list[int], dict[str, int]]:
    allowed = limits(size)
    seen: dict[str, Counter[int]] = {name: Counter() for name in CAPS}
    names = {"s": "subject_over_1_percent", "p": "relation_over_5_percent", "o": "object_over_5_percent"}
    kept: list[int] = []
    dropped: dict[str, int] = {}
    for position in order:
        fact = facts[position]._asdict()
        over = next((name for name in CAPS if seen[name][fact[name]] >= allowed[name]), None)
        if over is not None:
            dropped[names[over]] = dropped.get(names[over], 0) + 1
            continue
        kept.append(position)
        for name in CAPS:
            seen[name][fact[name]] += 1
    return kept, dropped


def light_tuning(facts: Sequence[Fact], probes: Iterable[int], avoid: Iterable[int], seed: int) -> list[int]:
    """Positions of up to LIGHT_TUNING facts whose subjects are none of ``avoid``, relations as in the probes.

    Each relation's share is its share of ``probes`` (positions in ``facts``), by largest remainder; what one
    relation cannot fill goes to the others in the same way.
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
    """``seats`` shared out in proportion to ``weights`` (evenly if all are 0); every call shares out at least one."""
    if not any(weights.values()):
        weights = dict.fromkeys(weights, 1)
    total = sum(weights.values())
    shares = {key: seats * weight // total for key, weight in weights.items()}
    rest = sorted(weights, key=lambda key: (-(seats * weights[key] % total), key))
    for key in rest[: seats - sum(shares.values())]:
        shares[key] += 1
    return shares
