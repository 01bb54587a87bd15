"""A review: candidates for UpdatedLAMA and NewLAMA, and the decisions on them, in Label Studio's JSON.

REVIEW/tasks.json     a question, its answer, the sentence, and passages of an older corpus, one candidate a task
REVIEW/labels.xml     the labelling interface, with instructions for annotators; its controls are a decision's fields
REVIEW/review.json    the manifest: options, inputs, and counts of dropped candidates by reason; written last
REVIEW/annotations/   exports of Label Studio, and the files of judges
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.json_files import read_json
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.config import RowCounts
from temporalwiki.builders.ckl.corpus_index import Past

TASKS, INTERFACE, ABOUT, ANNOTATIONS = "tasks.json", "labels.xml", "review.json", "annotations"
LABELS = Path(__file__).with_name(INTERFACE)
_CHOICES = ("valid", "answer_right", "past")
_LISTS = ("old_answers", "answers")


class ReviewManifest(msgspec.Struct):
    """The content of review.json."""

    made_by: str
    options: dict[str, Any]
    inputs: list[dict[str, Any]]
    past: dict[str, Any]
    counts: RowCounts
    format: int = 1


class Candidate(msgspec.Struct):
    """A question that annotators decide on: the data of a task."""

    id: str
    question: str
    answer: str
    statement: str  # the sentence with <extra_id_0> in the answer's place
    sentence: str
    title: str
    url: str
    published: datetime.datetime
    prediction: str | None  # the closed-book answer of a model of the past; null if none was asked
    past_evidence: list[Past]


class Decision(msgspec.Struct, omit_defaults=True):
    """One annotator's decision on one candidate."""

    id: str
    valid: bool | None  # whether the question can be understood without the page; None: undecided
    answer_right: bool | None = None  # according to the page
    past: Literal["other", "same", "none"] | None = None  # the answer that the past gave
    old_answers: list[str] = []
    old_evidence: str | None = None  # the id of a passage, or a text
    statement: str | None = None  # a corrected one, as question and answers below; None: the candidate's is good
    question: str | None = None
    answers: list[str] | None = None
    note: str | None = None


class Said(NamedTuple):
    """A decision, and who made it."""

    where: str  # file, task and annotator
    who: str  # "annotator 3", or the version of a model
    judge: bool  # a model, not a person
    candidate: Candidate
    decision: Decision


class _Value(msgspec.Struct):
    choices: list[str] = []
    text: str | list[str] = []


class _Item(msgspec.Struct):
    from_name: str
    value: _Value


class _User(msgspec.Struct):
    id: int


class _Annotation(msgspec.Struct):
    completed_by: int | _User
    result: list[_Item] = []
    was_cancelled: bool = False  # the annotator skipped the task


class _Prediction(msgspec.Struct):
    model_version: str
    result: list[_Item] = []


class _Task(msgspec.Struct):
    data: Candidate
    annotations: list[_Annotation] = []
    predictions: list[_Prediction | int] = []  # some exports have only their ids


def encoded(tasks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the parts of a file of tasks, a JSON list with one task a line."""
    before = b"[\n"
    for task in tasks:
        yield before + msgspec.json.encode(task)
        before = b",\n"
    yield b"\n]\n"


def judged(candidate: Candidate, decision: Decision, judge: str) -> dict[str, Any]:
    """Return a candidate as a task with a judge's decision as a prediction."""
    result = []
    for name, value in msgspec.to_builtins(decision).items():
        if name != "id" and value is not None:
            values = value if isinstance(value, list) else [{True: "yes", False: "no"}.get(value, value)]
            kind, key = ("choices", "choices") if name in _CHOICES else ("textarea", "text")
            result.append({"id": name, "from_name": name, "to_name": "asked", "type": kind, "value": {key: values}})
    return {"data": candidate, "predictions": [{"model_version": judge, "result": result}]}


def read_review(review: Path) -> ReviewManifest:
    """Return the manifest of a review; raise InputError if it is damaged or has no candidates."""
    if not (review / TASKS).is_file():
        raise InputError(f"{review}: not a review: it has no {TASKS}")
    return read_json(review / ABOUT, ReviewManifest, "the whole manifest of a review; make the candidates again")


def read_candidates(review: Path) -> list[Candidate]:
    """Return the candidates of a review; raise InputError if they are damaged."""
    return [task.data for task in _tasks(review / TASKS, "make the candidates again")]


def read_decisions(file: Path) -> Iterator[Said]:
    """Yield the decisions in Label Studio's export of a project, or in a judge's file.

    A task that was skipped or left incomplete is undecided. Raises InputError, with file, task and annotator, for
    controls and values that labels.xml does not have.
    """
    for number, task in enumerate(_tasks(file, "export the project of this review from Label Studio as JSON"), 1):
        said: list[tuple[str, bool, list[_Item]]] = []
        for one in task.annotations:
            person = one.completed_by if isinstance(one.completed_by, int) else one.completed_by.id
            said.append((f"annotator {person}", False, [] if one.was_cancelled else one.result))
        said += [(one.model_version, True, one.result) for one in task.predictions if not isinstance(one, int)]
        for who, judge, result in said:
            where = f"{file}: task {number}: {in_one_line(who)}"
            yield Said(where, who, judge, task.data, _decision(task.data.id, result, where))


def _tasks(file: Path, to_do: str) -> list[_Task]:
    """Return the tasks of a file; raise InputError with ``to_do`` if it is not one."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[_Task])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{file}: not tasks of a review ({in_one_line(reason)}); {to_do}") from None


def _decision(id: str, result: Sequence[_Item], where: str) -> Decision:
    content: dict[str, Any] = {"id": id, "valid": None}
    for item in result:
        name, text = item.from_name, item.value.text
        if name not in Decision.__struct_fields__[1:]:
            raise InputError(
                f"{where}: has no control {in_one_line(name)[:60]!r}; use labels.xml as the labelling interface"
            )
        values = item.value.choices or ([text] if isinstance(text, str) else text)
        if name in _LISTS:
            content[name] = values
        elif len(values) != 1:
            raise InputError(f"{where}: {name}: needs one value, not {len(values)}")
        else:
            yes_or_no = {"yes": True, "no": False} if name in ("valid", "answer_right") else {}
            content[name] = yes_or_no.get(values[0], values[0])
    try:
        decision = msgspec.convert(content, Decision)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {in_one_line(error)}") from None
    return decision if is_complete(decision) else Decision(id, valid=None, note="incomplete")


def is_complete(decision: Decision) -> bool:
    """Tell whether a decision has an answer to each question that labels.xml requires."""
    if not decision.valid or decision.answer_right is False:
        return True
    if decision.past == "other":
        return any(map(normalize, decision.old_answers))
    return decision.answer_right is not None and decision.past is not None
