"""Stage finish: which of the aligned facts are in which rows, wherever files and batches end."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from temporalwiki.builders.configs import DATED, SUPPORT
from temporalwiki.builders.finish import finish
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata import probes
from temporalwiki.builders.wikidata.align import ALIGNED

SPLITS = ("unchanged", "changed", "deleted")


def test_every_fact_is_in_its_splits_rows(tmp_path: Path) -> None:
    drawn = random.Random(0)
    facts = []
    for n in range(13_000):  # a tenth of them of P1; the caps keep a twentieth
        fact = drawn.choice(SPLITS), drawn.randint(1, 999), max(1, drawn.randint(-100, 899)), drawn.randint(1, 999)
        facts.append((*fact, f"{n}", drawn.choice(SUPPORT), drawn.choice(DATED), drawn.random() < 0.5))
    columns = ("split", "s", "p", "o", "evidence", "support", "dated", "strict")
    for number, (first, end) in enumerate(((0, 4), (4, 4), (4, 12_950), (12_950, 13_000))):
        with ParquetWriter(tmp_path / "aligned" / f"aligned-{number:05d}.parquet", ALIGNED, rows=5000) as out:
            for row in facts[first:end]:
                out.write(dict(zip(columns, row, strict=True)))
    interval = Interval("enwiki", "20211101", "20211201")
    finished = finish(tmp_path / "staged", interval, (), tmp_path / "no diffs", tmp_path / "aligned", seed=0)

    def written(config: str, split: str) -> list[tuple[Any, ...]]:
        files = (tmp_path / "staged").rglob(f"{config}-{interval.name}/{split}-*.parquet")
        columns = ["subject_id", "relation_id", "object_id", "evidence"]
        return [tuple(row[name] for name in columns) for file in files for row in pq.read_table(file).to_pylist()]

    def as_row(fact: tuple[Any, ...]) -> tuple[Any, ...]:
        _, s, p, o, evidence, *_ = fact
        return f"Q{s}", f"P{p}", f"Q{o}", evidence

    for split in SPLITS:
        of_split = [fact for fact in facts if fact[0] == split]
        numbers = [probes.Fact(*fact[1:4]) for fact in of_split]
        chosen = probes.cap(numbers, 0, probes.CAPS).kept
        assert written("facts", split) == [as_row(fact) for fact in of_split]
        in_order = sorted((of_split[position] for position in chosen), key=lambda fact: fact[1:4])
        assert written("probes", split) == [as_row(fact) for fact in in_order]
        assert finished.kept[split] == [numbers[position] for position in chosen]
        assert len(of_split) > len(chosen) > 4096 / 2
        for name, counted in (("facts", of_split), ("probes", [of_split[position] for position in chosen])):
            grades = finished.grades[split][name]
            for column, values in (("support", SUPPORT), ("dated", DATED)):
                found = Counter(value for *_, support, dated, _ in counted for value in (support, dated))
                assert grades[column] == {value: found[value] for value in values}
            assert grades["strict"] == sum(strict for *_, strict in counted)


def test_without_caps_all_facts_are_probes(tmp_path: Path) -> None:
    with ParquetWriter(tmp_path / "aligned" / "aligned-00000.parquet", ALIGNED) as out:
        for number in range(30):
            row = {"split": "changed", "s": 1, "p": 1, "o": number, "evidence": "E."}
            out.write(row | {"support": "list", "dated": "within", "strict": True})
    interval = Interval("enwiki", "20211101", "20211201")
    for caps, kept in ((None, 30), (probes.CAPS, 1), ((0.5, 1.0, 1.0), 1), ((1.0, 1.0, 0.1), 30)):
        staged = tmp_path / str(caps)
        finished = finish(staged, interval, (), tmp_path / "no diffs", tmp_path / "aligned", seed=0, caps=caps)
        assert len(finished.kept["changed"]) == kept
        assert finished.grades["changed"]["probes"]["strict"] == kept
