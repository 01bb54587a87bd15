"""A model that is known only by a log of another harness: of inspect-ai, or the samples of lm_eval."""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import digest
from temporalwiki.base.json_files import fingerprint, read_json
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.facts import identity, prompt_of
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.model import LOGGED, Model
from temporalwiki.eval_harness.references import right_answers
from temporalwiki.eval_harness.scoring import PRECISIONS
from temporalwiki.eval_harness.task import NothingToScoreError, Row
from temporalwiki.methods import needs

UNKNOWN = "unknown"  # the precision in results, if a log does not tell it
_MOST_BYTES = 2 << 30  # the largest log, unpacked
_PRECISIONS = {str(dtype): name for dtype, name in PRECISIONS.items()}
_ANSWERS, _PROBES, _OBJECTS = "twiki_answers", "twiki_probes", "twiki_objects"  # the tasks of lm_eval

Item = dict[str, Any]


class _Doc(msgspec.Struct):
    """A probe, with the numbers of tokens that our tasks for lm_eval add."""

    subject: str
    relation: str
    object: str
    tokens: int | None = None
    object_tokens: int | None = None


class _Sample(msgspec.Struct):
    """A line of lm_eval's samples. A response is a continuation, or a log-likelihood in nats and another field."""

    doc: _Doc
    resps: list[tuple[str | tuple[float, Any]]]


class _Config(msgspec.Struct, frozen=True):
    model_dtype: str | None = None


class _Run(msgspec.Struct):
    """The file of results that lm_eval writes with its samples."""

    model_name: str = ""
    config: _Config = _Config()


class LoggedModel(Model):
    """A model that is known by a log: it has answers and likelihoods for the probes in it, and for no other text."""

    can = frozenset({LOGGED})
    refusal = "{tasks}: {reference} is a log, which {able} can read"

    def __init__(self, path: Path) -> None:
        """Read a log. Raises InputError if it is damaged, too large, or holds none of our tasks."""
        self.reference = str(path)
        self.name, self.precision = path.name, UNKNOWN
        self._answers: dict[tuple[str, str], str] = {}  # split, prompt -> continuation
        self._likelihoods: dict[tuple[str, str, str], dict[str, float]] = {}  # split, prompt, object -> figures
        files = _samples(path) if path.is_dir() else {"": path}
        if sum(file.stat().st_size for file in files.values()) > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 30} GB; log fewer samples at once")
        self.revision = fingerprint(*(digest(file, "sha256") for file in files.values()))
        if path.is_dir():
            self._read_samples(path, files)
        else:
            self._read_inspect_log(path)
        if not self._answers and not self._likelihoods:
            tasks = ", ".join((_ANSWERS, _PROBES, _OBJECTS))
            raise InputError(f"{path}: no samples of our tasks ({tasks}; inspect-ai: temporalwiki/{_PROBES})")

    def logged(self, probes: Mapping[str, Sequence[Row]], excluded: Counter[str]) -> list[Item]:
        """Return an item for each probe in the log, as ``twiki_probes`` does; ``excluded`` counts the other probes.

        Raises NothingToScoreError if the log lacks all of them.
        """
        found: list[Item] = []
        for split, rows in probes.items():
            for row in rows:
                prompt = prompt_of(row)
                said = self._answers.get((split, prompt))
                figures = self._likelihoods.get((split, prompt, row["object"]), {})
                if said is None and not figures:
                    excluded[f"{split}: not in the log"] += 1
                    continue
                item: Item = {**identity(row), "split": split, **figures}
                if row.get("strict") is not None:
                    item["strict"] = int(row["strict"])
                if said is not None:
                    right = right_answers(row)
                    cut = answer(said)
                    item |= {"answer": cut, "exact_match": exact_match(cut, right), "f1": f1(cut, right)}
                found.append(item)
        if not found:
            raise NothingToScoreError(f"{self.reference}: none of these probes is in it; was it made with other data?")
        return found

    def _read_samples(self, folder: Path, files: Mapping[str, Path]) -> None:
        runs = sorted(folder.glob("results_*.json"))
        if runs:
            run = read_json(runs[-1], _Run, "results of lm_eval")
            name = Path(run.model_name)
            self.name = (name.name if name.is_absolute() else run.model_name) or self.name
            self.precision = _PRECISIONS.get(run.config.model_dtype or "", UNKNOWN)
        decode = msgspec.json.Decoder(_Sample, strict=False).decode  # lm_eval writes numbers as text
        for what, path in files.items():
            task, _, split = what.rpartition("_")
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        self._add(task, split, decode(line))
                    except (msgspec.DecodeError, ValueError, IndexError) as error:
                        raise InputError(
                            f"{path}, line {number}: not a sample of {what} ({in_one_line(error)}); run lm_eval with "
                            "--log_samples again"
                        ) from None

    def _add(self, task: str, split: str, sample: _Sample) -> None:
        doc = sample.doc
        prompt, responses = f"{doc.subject} {doc.relation}", [response for (response,) in sample.resps]
        if task == _ANSWERS:
            (said,) = responses
            if not isinstance(said, str):
                raise ValueError("an answer is a text")
            self._answers[split, prompt] = said
            return
        nll = [-response[0] for response in responses if not isinstance(response, str)]
        if len(nll) != (1 if task == _PROBES else 2) or not all(map(math.isfinite, nll)):
            raise ValueError("log-likelihoods are finite numbers")
        figures: dict[str, float] = {"nll": nll[0], "bytes": len(f"{prompt} {doc.object}".encode())}
        if doc.tokens and doc.object_tokens:
            figures["tokens"] = doc.tokens
            if task == _OBJECTS:
                figures |= {"object_nll": nll[0] - nll[1], "object_tokens": doc.object_tokens}
        self._likelihoods.setdefault((split, prompt, doc.object), {}).update(figures)

    def _read_inspect_log(self, path: Path) -> None:
        with needs("api"):
            from inspect_ai.log import read_eval_log

        kind: Literal["eval", "json"] = "eval" if path.suffix == ".eval" else "json"
        try:
            if kind == "eval":
                with zipfile.ZipFile(path) as packed:
                    size = sum(member.file_size for member in packed.infolist())
                if size > _MOST_BYTES:
                    raise InputError(f"{path}: larger than {_MOST_BYTES >> 30} GB unpacked; log fewer samples at once")
            log = read_eval_log(path, format=kind)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - of the zip, of JSON, of pydantic
            raise InputError(f"{path}: not a log of inspect-ai ({in_one_line(error)})") from None
        if log.eval.task.rpartition("/")[2] != _PROBES:
            raise InputError(
                f"{path}: of the task {in_one_line(log.eval.task)}; only temporalwiki/{_PROBES} can be read"
            )
        self.name = log.eval.model
        for sample in log.samples or []:
            split = (sample.metadata or {}).get("split")
            if isinstance(split, str) and isinstance(sample.input, str) and sample.output.choices:
                self._answers.setdefault((split, sample.input), sample.output.completion)


def is_log(path: Path) -> bool:
    """Return whether a path leads to a log of inspect-ai or to samples of lm_eval."""
    if path.suffix == ".eval" or (path.suffix == ".json" and _begins_as_inspect_log(path)):
        return path.is_file()
    return path.is_dir() and bool(_samples(path))


def _begins_as_inspect_log(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return b'"eval"' in start and b'"version"' in start


def _samples(folder: Path) -> dict[str, Path]:
    """Return the newest file of samples for each of our tasks and splits, by task and split."""
    files: dict[str, Path] = {}
    for task in (_ANSWERS, _PROBES, _OBJECTS):
        for split in ("unchanged", "changed"):
            found = sorted(folder.glob(f"samples_{task}_{split}_*.jsonl"))
            files |= {f"{task}_{split}": path for path in found[-1:] if path.is_file()}
    return files
