"""Result files: one for each model, config and task, and a Parquet file with the figures of its items."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.base.terminal import in_line
from temporalwiki.builders.after_cutoff import CUTOFF, cutoff_files
from temporalwiki.builders.parquet import read_table
from temporalwiki.eval_harness.measures import MEASURES, SUBSETS
from temporalwiki.eval_harness.result_manifest import ResultManifest, ResultScore
from temporalwiki.eval_harness.statistics import Estimate

SCHEMA = 1  # of result files
SERVER, PROVIDER = "server", "api"  # precisions of models that do not tell their own
MOST_ITEMS = 2_000_000  # of a result; the largest wiki changes a sixth of them in a month
_EXPECTED = "a result file of temporalwiki; name a folder of results, or move the file away"
# the revision of a model on the Hub, or of an adapter with its base; the revision of a folder is shorter
COMMIT = re.compile(r"[0-9a-f]{40}(?:\+[0-9a-f]+)*")
# a result file's first keys, which are sorted
_BEGINNING = re.compile(rb'\s*\{\s*"data":\s*\{\s*"config":[^,{}]*,\s*"dataset":')
_WIDTH = 120  # characters of a table
_FIRST = (*SUBSETS, "average", "changed", "unchanged")  # the order of tests; other tests follow, sorted by name


@dataclass(frozen=True)
class Outcome:
    """What a task returns."""

    scores: Mapping[str, Estimate]  # such as "unchanged/perplexity"
    items: Sequence[Mapping[str, Any]]  # one row each, with "id", "cluster" (its subject) and figures
    excluded: Mapping[str, int]  # items that were not scored, by reason


@dataclass(frozen=True)
class Result:
    """A result file, checked."""

    path: Path
    manifest: ResultManifest

    @property
    def data(self) -> dict[str, Any]:
        """The whole content of the file, as JSON values."""
        return self.manifest.content

    def items(self) -> list[dict[str, Any]]:
        """Return the figures of each item."""
        return list(read_table(self.path.with_suffix(".parquet"), MOST_ITEMS).to_pylist())


def path_of(folder: Path, inputs: Mapping[str, Any]) -> Path:
    """Return the path of a result: FOLDER/MODEL/CONFIG.TASK.KEY.json.

    The key is a hash of everything that the scores depend on; the paths of model and data are not part of it.
    """
    task, model, data = inputs["task"], inputs["model"], inputs["data"]
    others = [inputs[name]["revision"] for name in ("start", "judge") if name in inputs]
    others += [f"after {data['newer']['day']}"] if "newer" in data else []
    if "language" in data.get("source", {}):  # not English; models behind an interface are asked in it
        others.append(f"in {data['source']['language']}")
    others += [f"retrieved {fingerprint(data['retrieved'])}"] if "retrieved" in data else []
    key = fingerprint(task, model["revision"], model["precision"], data["config"], data["hash"], *others)
    name = f"{plain(Path(model['name']).resolve().name)}-{fingerprint(model['revision'])[:8]}"
    return folder / name / f"{plain(data['config'])}.{task['name']}.{key[:8]}.json"


def write_result(path: Path, inputs: Mapping[str, Any], outcome: Outcome, run: Mapping[str, Any]) -> None:
    """Write the items, then the result file: it is written last because its existence means that both are complete.

    ``run`` holds what may differ if the same is computed again, such as time and machine.
    """
    columns = dict.fromkeys(name for item in outcome.items for name in item)  # items may lack some
    with whole_file(path.with_suffix(".parquet")) as part:
        pq.write_table(pa.table({name: [item.get(name) for item in outcome.items] for name in columns}), part)
    scores = {name: asdict(estimate) for name, estimate in outcome.scores.items()}
    excluded = {reason: count for reason, count in sorted(Counter(outcome.excluded).items()) if count}
    write_json(path, {"schema": SCHEMA, **inputs, "scores": scores, "excluded": excluded, "run": run})


def read_result(path: Path) -> Result:
    """Return a result. Raises InputError for any other file, and for a result of another schema, older or newer."""
    return check_result(path, read_json(path, dict[str, Any], _EXPECTED))


def check_result(path: Path, content: dict[str, Any]) -> Result:
    """Return a result from the content of its file; raises the errors of ``read_result``."""
    if type(schema := content.get("schema")) is int and schema != SCHEMA:
        raise InputError(f"{path}: a result of schema {schema}, this version reads {SCHEMA}; update temporalwiki")
    try:
        return Result(path, msgspec.convert({**content, "content": content}, ResultManifest))
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not {_EXPECTED} ({in_one_line(error)})") from None


def is_result(path: Path) -> bool:
    """Return whether a file begins as a result file does."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return _BEGINNING.match(file.read(1024)) is not None


def result_files(path: Path) -> list[Path]:
    """Return a result file, or those in a model's folder or in a folder of such folders."""
    files = [path] if path.is_file() else sorted([*path.glob("*.json"), *path.glob("*/*.json")])
    return [file for file in files if is_result(file)]


def read_results(folder: Path) -> list[Result]:
    """Return all results in a folder, sorted by path. Raises InputError for an empty folder or a damaged file.

    A folder is not empty if it holds only results of ``temporalwiki cutoff``, which are left out.
    """
    found = [read_result(path) for path in sorted(folder.glob("*/*.json")) if path.name != CUTOFF]
    if not found and not cutoff_files(folder):
        raise InputError(f"{folder}: no results in it; `temporalwiki evaluate --output {folder}` writes them")
    return found


def table(results: Sequence[Result], most: int | None = None) -> str:
    """Return results as text: one row per test, one column per measure, and the number of items left out.

    Columns that do not fit into the width are printed below the others. Of more than ``most`` rows, the last
    line counts those that are not shown. The first row of each result comes first, as its main result, then the second
    rows, and so on.
    """
    of_result = [
        sorted({name.rpartition("/")[0] for name in result.manifest.scores}, key=place_of_test) for result in results
    ]
    places = sorted((row, i) for i, tests in enumerate(of_result) for row in range(len(tests)))
    shown = Counter(i for _, i in places[:most])
    text = [_table(result.manifest, of_result[i][: shown[i]]) for i, result in enumerate(results) if shown[i]]
    if more := len(places) - sum(shown.values()):
        text.append(f"{more:,} more row{'s' * (more > 1)}: --all shows them, --json has them as well")
    return "\n\n".join(text)


def _table(result: ResultManifest, tests: Sequence[str]) -> str:
    scores = result.scores
    measures = sorted({name.rpartition("/")[2] for name in scores}, key=place_of_measure)
    found = {test: [scores.get(f"{test}/{measure}" if test else measure) for measure in measures] for test in tests}
    signs = {name: measure.sign for name, measure in MEASURES.items() if measure.sign}
    rows = [["", *(f"{name} {signs[name]}" if name in signs else name for name in measures), "items"]]
    for test, of_test in found.items():
        items = max(score.items for score in of_test if score)
        rows.append([test, *(_shown(score) if score else "" for score in of_test), f"{items:,}"])
    lines = [in_line(f"{result.scored} of {result.model.marked(result.model.name)} on {result.data.config}")]
    rows = [[in_line(cell) for cell in row] for row in rows]
    names, *columns = ([cell.rjust(max(map(len, column))) for cell in column] for column in zip(*rows, strict=True))
    names = [name.strip().ljust(len(name)) for name in names]
    while columns:  # as many side by side as fit
        part = names
        while columns and (part is names or len(part[0]) + len(columns[0][0]) + 2 <= _WIDTH):
            part = [f"{line}  {cell}" for line, cell in zip(part, columns.pop(0), strict=True)]
        lines += [line.rstrip() for line in part]
    lines += [f"left out, {in_line(reason)}: {count:,}" for reason, count in result.excluded.items()]
    lines += map(in_line, _after(result))
    if (read := result.data.retrieved) is not None:
        all_rows = result.data.rows
        some = ", ".join(f"{n:,} of {all_rows.get(split, n):,} rows of {split}" for split, n in read.found.items())
        lines.append(in_line(f"read before the question, {read}: {some}"))
        for split, facts in read.facts.items():
            right, current = facts.get("right", 0), facts.get("current", 0)
            lines.append(in_line(f"{split}: {right:,} with the right passage, {current:,} of them current"))
    return "\n".join(lines)


def _after(result: ResultManifest) -> Iterator[str]:
    """Yield what ``--after-cutoff`` kept, and how much of it was known already."""
    after, leak = result.data.newer, result.leak
    if after is None:
        return
    of = f", the cutoff of {after.model}" if after.model else ""
    rows = ", ".join(
        f"{n:,} of {n + after.dropped.get(split, 0):,} rows of {split}" for split, n in after.kept.items()
    )
    yield f"kept, after {after.day}{of}: {rows}"
    if leak is None:
        yield "leak check: none; it needs changed facts with an old object, and a model instead of its results"
        return
    trained = result.model.method and leak.model == result.model.name
    hint = "; it was trained, so name the model that it started from with --start" if trained else ""
    yield f"leak check: {leak.model} prefers what is new in {leak.new:,} of {leak.facts:,} changed facts{hint}"


def place_of_test(test: str) -> tuple[str, int, str]:
    """Return a sort key for tests.

    Zero-shot tests come before light-tuned and then strict ones. In each group the order is that of ``_FIRST`` (all,
    stated, strict, average, changed, unchanged); other tests follow by name.
    """
    stage, _, name = test.rpartition("/")
    return stage, _FIRST.index(name) if name in _FIRST else len(_FIRST), test


def place_of_measure(measure: str) -> tuple[int, str]:
    """Return a sort key for measures, in the order of MEASURES."""
    known = list(MEASURES)
    return known.index(measure) if measure in known else len(known), measure


def _shown(score: ResultScore) -> str:
    if score.low is None or score.high is None:
        return f"{_number(score.value)} [one subject]"
    return f"{_number(score.value)} [{_number(score.low)}, {_number(score.high)}]"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def plain(name: str) -> str:
    """Return a name with at most 100 characters, all of them safe in a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name[:100]).strip(".-") or "model"
