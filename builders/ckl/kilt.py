"""KILT's eleven datasets, on which CKL fine-tunes its models (CKL, section 5 and table 8; Petroni et al. 2021)."""

import mmap
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.ckl.config import CklConfig, Row, RowCounts
from temporalwiki.builders.ckl.input_files import records


class _DataSet(msgspec.Struct):
    """An entry of kilt.yaml."""

    about: str
    owner: str
    licences: tuple[str, ...]
    rows: tuple[int, ...]


_PREFIX = "kilt-"
_TRIVIA = "triviaqa_support_only"
_SETS = msgspec.convert(read_yaml(Path(__file__).with_name("kilt.yaml")), dict[str, _DataSet])
NAMES = tuple(_SETS)

_PARTS = {"train": "train", "validation": "dev", "test": "test_without_answers"}  # of file names
_TRIVIA_ARCHIVE = "triviaqa-rc"


class _Output(msgspec.Struct):
    answer: str | None = None  # some entries have only a provenance


class _Line(msgspec.Struct):
    id: str | int
    input: str | None = None
    output: list[_Output] | None = None


class _Question(msgspec.Struct, rename={"id": "QuestionId", "text": "Question"}):
    id: str
    text: str


class _Questions(msgspec.Struct, rename={"data": "Data"}):
    data: list[_Question]


def kilt(folder: Path, name: str | None = None) -> list[CklConfig]:
    """Return the configs ``kilt-*`` of KILT's JSONL files in ``folder`` or ``folder/NAME``.

    ``name`` is KILT's own name of a dataset, one of ``NAMES``; None stands for all datasets with files in ``folder``.
    The splits are train (not in ``wned`` and ``cweb``), validation and test. ``answers`` has all answers that KILT
    accepts, without duplicates, in its order; a model learns ``output``, the first one. Both are empty in test, whose
    answers KILT does not publish. Rows without input, and rows of train and validation without answer, are dropped.

    KILT's files of TriviaQA have only ids. If KILT's script has not added the questions, they are read from TriviaQA's
    own archive, unpacked to ``folder/triviaqa-rc``.

    Raises UsageError for another name, InputError if a split has no file or no questions, and, when the rows are
    read, if a file is damaged.
    """
    if name is not None:
        name = name.removeprefix(_PREFIX)
        if name not in _SETS:
            raise UsageError(f"KILT has no dataset {name!r}{did_you_mean(name, NAMES)}; it has {', '.join(NAMES)}")
        return [_config(folder, name)]
    found = [name for name in NAMES if any(_file(folder, name, split) for split in _splits(name))]
    if not found:
        raise InputError(f"{folder}: has none of KILT's files, such as nq-dev-kilt.jsonl or nq/nq-dev-kilt.jsonl")
    return [_config(folder, name) for name in found]


def _config(folder: Path, name: str) -> CklConfig:
    counts, warnings, data_set = RowCounts(more={"splits": {}}), list[str](), _SETS[name]
    splits, inputs = {}, []
    for split, size in zip(_splits(name), data_set.rows, strict=True):
        file, questions = _read_from(folder, name, split)
        inputs += [file] if questions is None else [file, questions]
        splits[split] = _rows(split, file, questions, size, counts, warnings)
    return CklConfig(
        name=_PREFIX + name,
        kind="kilt",
        splits=splits,
        about=data_set.about,
        licences=data_set.licences,
        source=f"{data_set.owner}; as KILT (Petroni et al. 2021, MIT) has it",
        inputs=inputs,
        options={},
        counts=counts,
        warnings=warnings,
    )


def _splits(name: str) -> list[str]:
    return list(_PARTS)[-len(_SETS[name].rows) :]


def _read_from(folder: Path, name: str, split: str) -> tuple[Path, Path | None]:
    """Return the file of a split, and TriviaQA's file of questions if KILT's has only ids."""
    file = _file(folder, name, split)
    if file is None:
        raise InputError(
            f"{folder}: {_PREFIX}{name} has no file for {split}: neither this folder nor {name}/ has KILT's "
            f"{_file_names(name, split)[-1]}"
        )
    if name != _TRIVIA or file.name != _file_names(name, split)[-1]:
        return file, None
    questions = folder / _TRIVIA_ARCHIVE / "qa" / f"wikipedia-{_PARTS[split].replace('_', '-')}.json"
    if not questions.is_file():
        raise InputError(
            f"{file}: has no questions, and {questions} does not exist; unpack qa/ of TriviaQA's own "
            f"{_TRIVIA_ARCHIVE}.tar.gz into {folder / _TRIVIA_ARCHIVE}, or name another dataset ({_PREFIX}nq)"
        )
    return file, questions


def _file(folder: Path, name: str, split: str) -> Path | None:
    """Return the file of a split, or None; for TriviaQA, the file with questions if there is one."""
    places = [place / file for file in _file_names(name, split) for place in (folder / name, folder)]
    return next((place for place in places if place.is_file()), None)


def _file_names(name: str, split: str) -> list[str]:
    part = _PARTS[split]
    if name != _TRIVIA:
        return [f"{name}-{part}-kilt.jsonl"]
    # KILT released only the ids of TriviaQA ("train_id"); its script adds the questions
    with_ids = re.sub("^[a-z]+", r"\g<0>_id", part)
    return [f"triviaqa-{part}-kilt.jsonl", f"triviaqa-{with_ids}-kilt.jsonl"]


def _rows(
    split: str, file: Path, of_trivia: Path | None, size: int, counts: RowCounts, warnings: list[str]
) -> Iterator[Row]:
    questions = _trivia_questions(of_trivia) if of_trivia else {}
    of_split = counts.more["splits"][split] = {"read": 0, "kept": 0}
    for _, line in records(file, _Line):
        counts.read += 1
        of_split["read"] += 1
        id = str(line.id)
        text = (line.input or questions.get(id) or "").strip()
        given = [one.answer.strip() for one in line.output or [] if one.answer]
        answers = [] if split == "test" else [answer for answer in dict.fromkeys(given) if answer]
        if not text:
            counts.drop("question_not_in_triviaqa" if of_trivia else "input_missing")
        elif split != "test" and not answers:
            counts.drop("answer_missing")
        else:
            counts.kept += 1
            of_split["kept"] += 1
            yield {"id": id, "input": text, "output": answers[0] if answers else None, "answers": answers}
    if of_split["read"] != size:
        warnings.append(f"{file.name} has {of_split['read']:,} rows; KILT released {size:,}")


def _trivia_questions(path: Path) -> Mapping[str, str]:
    """Return the questions of a file of TriviaQA by id; mapping the file keeps the rest of it out of memory."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            read = msgspec.json.decode(data, type=_Questions)
    except (ValueError, RecursionError) as error:  # an empty file, no JSON, no Unicode
        what = str(error) or type(error).__name__
        raise InputError(f"{path}: not a file of TriviaQA's archive: {what}") from None
    return {question.id: question.text for question in read.data}
