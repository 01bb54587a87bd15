"""Stage finish: write the configs of one interval from the output of the other stages, laid out as a dataset folder.

The caps and the light-tuning sets need all facts of the interval at once, so this stage is a single task.
"""

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from tqdm import tqdm

from temporalwiki.builders.configs import DATED, SCHEMAS, SPLITS, SUPPORT, names
from temporalwiki.builders.dataset_folder import write_split
from temporalwiki.builders.parquet import KeptFile, read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata import probes
from temporalwiki.builders.wikipedia.sentences import join_paragraphs

INCLUDE = ("diffset", "deletions", "unchanged", "probes", "lighttuning", "facts", "wikipedia")
ALWAYS = INCLUDE[:-1]  # not the whole snapshot by default: it needs every article cleaned


@dataclass(frozen=True)
class FinishedConfigs:
    """The configs as the manifest has them, and for each split of the probes the facts it keeps and some counts."""

    configs: dict[str, Any]
    kept: dict[str, list[probes.Fact]]
    capped: dict[str, dict[str, int]]  # how many facts each cap dropped
    grades: dict[str, dict[str, Any]]  # of all facts and of the kept ones: support, dated and strict


def finish(
    staged: Path,
    interval: Interval,
    include: tuple[str, ...],
    diffs: Path,
    aligned: Path,
    seed: int,
    caps: probes.Caps | None = probes.CAPS,
) -> FinishedConfigs:
    """Write the shards of all configs below ``staged``, from the folders of stages wiki-diff and align."""
    configs: dict[str, Any] = {}

    def write(kind: str, split: str, rows: Iterable[dict[str, Any]]) -> None:
        name, short = names(kind, interval)
        shown = tqdm(rows, desc=f"finish {name} {split}", unit="row", disable=not sys.stderr.isatty(), leave=False)
        config = configs.setdefault(name, {"short_name": short, "splits": {}})
        config["splits"][split] = asdict(write_split(staged, name, split, shown))

    for kind in ("diffset", "deletions", "unchanged", "wikipedia"):
        if kind in (*ALWAYS, *include):
            write(kind, "train", _text_rows(kind, sorted(diffs.glob(f"{kind}-*.parquet")), interval))
    files = sorted(aligned.glob("aligned-*.parquet"))
    facts: dict[str, list[probes.Fact]] = {split: [] for split in SPLITS["probes"]}
    graded: dict[str, list[_Grade]] = {split: [] for split in SPLITS["probes"]}
    grades: dict[_Grade, _Grade] = {}  # each object once: there are few different ones
    for row in read_rows(files, columns=["split", "s", "p", "o", *_Grade._fields]):
        facts[row["split"]].append(probes.Fact(row["s"], row["p"], row["o"]))
        grade = _Grade(row["support"], row["dated"], row["strict"])
        graded[row["split"]].append(grades.setdefault(grade, grade))
    selections = {split: probes.cap(of_split, seed, caps) for split, of_split in facts.items()}
    subjects = {facts[split][i].s for split, selection in selections.items() for i in selection.kept}
    for split, selection in selections.items():
        write("probes", split, _probe_rows(files, split, selection.kept))
    for split in SPLITS["lighttuning"]:
        chosen = probes.light_tuning(facts[split], selections[split].kept, subjects, seed)
        write("lighttuning", split, _probe_rows(files, split, chosen))
    for split in SPLITS["facts"]:
        write("facts", split, _fact_rows(files, split))
    finished = FinishedConfigs(configs, {}, {}, {})
    for split, selection in selections.items():
        finished.kept[split] = [facts[split][i] for i in selection.kept]
        finished.capped[split] = dict(sorted(selection.dropped.items()))
        of_probes = _count(graded[split][i] for i in selection.kept)
        finished.grades[split] = {"facts": _count(graded[split]), "probes": of_probes}
    return finished


class _Grade(NamedTuple):
    support: str
    dated: str
    strict: bool


def _count(grades: Iterable[_Grade]) -> dict[str, Any]:
    """Return how many facts have each value of each column."""
    numbers = Counter(grades)
    count: dict[str, Any] = {
        "support": dict.fromkeys(SUPPORT, 0),
        "dated": dict.fromkeys(DATED, 0),
        "strict": sum(number for grade, number in numbers.items() if grade.strict),
    }
    for grade, number in numbers.items():
        count["support"][grade.support] += number
        count["dated"][grade.dated] += number
    return count


def _text_rows(kind: str, files: list[Path], interval: Interval) -> Iterator[dict[str, Any]]:
    for row in read_rows(files, batch=256):
        out = {
            "id": row["page_id"],
            "title": row["title"],
            "url": interval.site + quote(row["title"].replace(" ", "_"), safe="/:()',!*@;~$"),
            "revision_id": row["revision_id"],
            "timestamp": row["timestamp"],
        }
        if kind in ("diffset", "deletions"):
            out["text"] = join_paragraphs(row["sentences"])
            out["kind"] = row["kind"]
            out["previous_revision_id"] = row["previous_revision_id"]
            out["paragraphs"] = len(row["sentences"])
            out |= {column: row[column] for column in ("words_new", "words_reworded")}
        else:
            out["text"] = row["text"]
        yield out


def _probe_rows(files: list[Path], split: str, positions: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the facts at ``positions`` of a split as probe rows, sorted by subject, relation and object."""
    rows = list(_rows_of(files, split, positions))
    for row in sorted(rows, key=lambda row: (row["s"], row["p"], row["o"])):
        yield _fact(row, SCHEMAS["probes"])


def _fact_rows(files: list[Path], split: str) -> Iterator[dict[str, Any]]:
    """Yield all facts of a split, before the caps, in the order of their pages."""
    return (_fact(row, SCHEMAS["facts"]) for row in _rows_of(files, split))


def _rows_of(files: list[Path], split: str, positions: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the facts of a split, or only those at ``positions`` (ascending)."""
    read = 0
    for path in files:
        with KeptFile(path) as file:
            for batch in file.iter_batches(4096, use_threads=False):
                found = batch.filter(pc.equal(batch["split"], split))
                first, read = read, read + found.num_rows
                if positions is not None:
                    wanted = positions[bisect_left(positions, first) : bisect_left(positions, read)]
                    found = found.take(pa.array([position - first for position in wanted], pa.int64()))
                yield from found.to_pylist()


def _fact(row: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    out = {name: row[name] for name in schema.names if name in row}
    return out | {"subject_id": f"Q{row['s']}", "relation_id": f"P{row['p']}", "object_id": f"Q{row['o']}"}
