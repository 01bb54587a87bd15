"""UpdatedLAMA and NewLAMA from annotators' decisions on candidates (CKL, appendix B).

REVIEW/decisions/NAME.jsonl is the file of one annotator, a person or a judge model. REVIEW/README.md tells annotators
what to do.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint, read_json
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl import json_lines
from temporalwiki.builders.ckl.candidates import ABOUT, CANDIDATES, DECISIONS, Candidate, read_candidates, read_review
from temporalwiki.builders.ckl.config import Config, Counts, Row
from temporalwiki.builders.ckl.question_generation import occurs
from temporalwiki.builders.ckl.templates import SENTINEL

_LONGEST = 1 << 20  # bytes of a decision
_SEARCHED = 20_000  # ids that are searched for a similar one
_NAMES = {"updated": "updatedlama", "new": "newlama"}
_ABOUT = {
    "updated": "a cloze and a question about a fact that changed, decided upon by those whom the counts name",
    "new": "a cloze and a question about a fact that is new, decided upon by those whom the counts name",
}
_SOURCE = "sentences of news pages, whose texts belong to their publishers; questions and decisions as options say"


class Decision(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One annotator's decision on one candidate: a line of their file."""

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


class JudgeNote(msgspec.Struct):
    """The note that a judge writes next to its decisions."""

    judge: dict[str, str]  # name and revision of the model
    version: int
    candidates: str  # SHA-256 of the candidates
    controls: dict[str, list[int]]  # right answers and number of control questions, by kind


def configs_from_decisions(review: Path, least_annotators: int = 1) -> list[Config]:
    """Return the configs ``updatedlama`` and ``newlama`` from the decisions in ``review``.

    At least ``least_annotators`` must have decided on a candidate. More than half of them must call the question
    valid, more than half of these the answer right, and more than half of these must agree on the past: with another
    answer the fact is updated, without an answer it is new, with the same answer it is left out. The statement and
    the question that most of these annotators wrote are used, and all their answers count as right. Both configs count
    every candidate as kept or as dropped for a reason.

    Raises InputError if there are no decisions, and, with file, line and field, for an invalid one or one on an
    unknown candidate. Raises UsageError if ``least_annotators`` is below 1.
    """
    if least_annotators < 1:
        raise UsageError("least_annotators must be at least 1")
    candidates = read_review(review)
    files, notes = _files(review / DECISIONS)
    if not files:
        raise InputError(f"{review / DECISIONS}: nobody has decided yet: see {review / 'README.md'}, or use --judge")
    judges = {note.stem: _read_note(note, candidates.sha256) for note in notes}
    votes = _votes(review, files)
    options = {
        "least_annotators": least_annotators,
        "annotators": [file.stem for file in files],
        "judges": {file.stem: judges[file.stem] for file in files if file.stem in judges},
        "candidates": {
            key: msgspec.to_builtins(getattr(candidates, key)) for key in ("options", "inputs", "past", "counts")
        },
    }
    configs = []
    for wanted, name in _NAMES.items():
        counts = Counts(more=_agreement(votes))
        configs.append(
            Config(
                name=name,
                kind="annotated",
                splits={"test": _rows(review, votes, wanted, least_annotators, counts)},
                about=_ABOUT[wanted],
                licences=("other",),
                source=_SOURCE,
                inputs=[review / CANDIDATES, review / ABOUT, *files],
                options=options,
                counts=counts,
            )
        )
    return configs


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files of decisions and the notes of judges; raise InputError for any other file."""
    files: list[Path] = []
    notes: list[Path] = []
    for path in sorted(folder.iterdir() if folder.is_dir() else ()):
        if path.name.startswith("."):  # locks, and files of editors and file managers
            continue
        if not path.is_file() or path.suffix not in (".jsonl", ".json"):
            near = path.with_suffix(".jsonl").name
            raise InputError(f"{path}: not a file of decisions; did you mean {near}? If not, remove it")
        (files if path.suffix == ".jsonl" else notes).append(path)
    return files, notes


def _read_note(path: Path, candidates: str) -> dict[str, Any]:
    """Return what a judge's note says about the judge; raise InputError if it decided on other candidates."""
    note = read_json(path, JudgeNote, "the note of a judge; without it the decisions count as a person's")
    if note.candidates != candidates:
        raise InputError(f"{path}: a judge's decisions on other candidates; remove both files and run the judge again")
    return {"judge": note.judge, "version": note.version, "controls": note.controls}


def read_decisions(file: Path) -> Iterator[tuple[int, Decision]]:
    """Yield an annotator's decisions with the numbers of their lines.

    Raises InputError with file, line and field for an invalid one.
    """
    to_do = f"a decision has the fields {', '.join(Decision.__struct_fields__)}"
    for number, decision in json_lines.read(file, Decision, _LONGEST, to_do):
        if problem := _problem(decision):
            raise InputError(f"{file}: line {number}: {problem}")
        yield number, decision


def _problem(decision: Decision) -> str | None:
    """Return which field of a decision is missing or contradicts another."""
    if not decision.valid:
        return None
    if decision.answer_right is None:
        return "answer_right: must be true or false if valid is true"
    if not decision.answer_right:
        return None
    if decision.past is None:
        return 'past: must be "other", "same" or "none" if answer_right is true'
    if decision.past == "other" and not any(map(normalize, decision.old_answers)):
        return 'old_answers: needed if past is "other": what was the answer before?'
    if decision.past != "other" and decision.old_answers:
        return f'old_answers: not allowed if past is "{decision.past}": one of them is wrong'
    if decision.answers is not None and not any(map(normalize, decision.answers)):
        return "answers: empty; null takes the candidate's"
    if decision.statement is not None and decision.statement.count(SENTINEL) != 1:
        return f"statement: needs exactly one {SENTINEL}, in the place of the answer"
    if decision.statement is not None and not normalize(decision.statement.replace(SENTINEL, "")):
        return f"statement: has no words except {SENTINEL}"
    if decision.question is not None and not normalize(decision.question):
        return "question: empty; null takes the candidate's"
    if decision.question is not None and "<extra_id_" in decision.question:
        return "question: contains a sentinel, but a question has no blank"
    return None


def _votes(review: Path, files: Iterable[Path]) -> sqlite3.Connection:
    """Return a database of all decisions by candidate.

    Raises InputError for a decision on an unknown candidate, and for a second one on the same candidate.
    """
    votes = sqlite3.connect("")  # in a temporary file, which SQLite removes
    votes.execute("CREATE TABLE candidate (id TEXT PRIMARY KEY) WITHOUT ROWID")
    votes.executemany("INSERT OR IGNORE INTO candidate VALUES (?)", ((c.id,) for c in read_candidates(review)))
    votes.execute(
        "CREATE TABLE vote (id TEXT, file TEXT, line INTEGER, vote BLOB, PRIMARY KEY (id, file)) WITHOUT ROWID"
    )
    for file in files:
        for number, decision in read_decisions(file):
            where = f"{file}: line {number}"
            try:
                known = votes.execute("SELECT 1 FROM candidate WHERE id = ?", (decision.id,)).fetchone()
            except UnicodeEncodeError:
                known = None
            if not known:
                raise InputError(f"{where}: id: no candidate {decision.id[:60]!r}{_similar_id(votes, decision.id)}")
            row = (decision.id, file.name, number, msgspec.json.encode(decision))
            if not votes.execute("INSERT OR IGNORE INTO vote VALUES (?, ?, ?, ?)", row).rowcount:
                sql = "SELECT line FROM vote WHERE id = ? AND file = ?"
                (before,) = votes.execute(sql, row[:2]).fetchone()
                raise InputError(f"{where}: a second decision on {decision.id}, after line {before}; keep one of them")
    return votes


def _similar_id(votes: sqlite3.Connection, id: str) -> str:
    ids = [one for (one,) in votes.execute("SELECT id FROM candidate LIMIT ?", (_SEARCHED,))]
    near = get_close_matches(id[:60], ids, n=1)
    return f"; did you mean {near[0]}?" if near else f"; use the ids of {CANDIDATES}"


def _agreement(votes: sqlite3.Connection) -> dict[str, Any]:
    """Return the number of decisions by annotator, and how often all annotators of a candidate agree."""
    decided_by: Counter[str] = Counter()
    several = agreed = 0
    for _, group in groupby(votes.execute("SELECT id, file, vote FROM vote ORDER BY id, file"), itemgetter(0)):
        verdicts = []
        for _, file, vote in group:
            decision = msgspec.json.decode(vote, type=Decision)
            decided_by[file.removesuffix(".jsonl")] += decision.valid is not None
            if decision.valid is not None:
                verdicts.append((decision.valid, decision.valid and decision.answer_right, decision.past))
        several += len(verdicts) > 1
        agreed += len(verdicts) > 1 and len(set(verdicts)) == 1
    return {
        "decided_by": dict(sorted(decided_by.items())),
        "decided_by_several": several,
        "of_these_all_agree": agreed,
    }


def _rows(
    review: Path, votes: sqlite3.Connection, wanted: str, least_annotators: int, counts: Counts
) -> Iterator[Row]:
    seen: set[str] = set()
    for candidate in read_candidates(review):
        counts.read += 1
        found = votes.execute("SELECT vote FROM vote WHERE id = ? ORDER BY file", (candidate.id,))
        decisions = [msgspec.json.decode(vote, type=Decision) for (vote,) in found]
        row = row_from_decisions(candidate, decisions, least_annotators)
        if isinstance(row, str):
            counts.drop(row)
        elif bool(row["old_answers"]) != (wanted == "updated"):
            counts.drop("new: in newlama" if wanted == "updated" else "updated: in updatedlama")
        elif (key := fingerprint(row["statement"], row["question"])) in seen:
            counts.drop("the same statement and question as another")
        else:
            seen.add(key)
            counts.kept += 1
            yield row


def row_from_decisions(
    candidate: Candidate, decisions: Iterable[Decision], least_annotators: int = 1
) -> dict[str, Any] | str:
    """Return the row that the annotators' decisions on a candidate give, or the reason to drop it.

    Rows with old answers are updates, the others are new facts. ``configs_from_decisions`` has the rules.
    """
    voters = [decision for decision in decisions if decision.valid is not None]
    if not voters:
        return "nobody decided"
    if len(voters) < least_annotators:
        return "too few annotators"
    valid = _majority([decision.valid for decision in voters])
    if valid is not True:
        return "the annotators disagree" if valid is None else "the question is not valid"
    voters = [decision for decision in voters if decision.valid]
    right = _majority([decision.answer_right for decision in voters])
    if right is not True:
        return "the annotators disagree" if right is None else "the answer is not right"
    voters = [decision for decision in voters if decision.answer_right]
    past = _majority([decision.past for decision in voters])
    if past is None:
        return "the annotators disagree"
    if past == "same":
        return "no news: the past has the same answer"
    voters = [decision for decision in voters if decision.past == past]

    statement = _most_frequent([decision.statement or candidate.statement for decision in voters])
    question = _most_frequent([decision.question or candidate.question for decision in voters])
    answers = _distinct(decision.answers or [candidate.answer] for decision in voters)
    if statement.count(SENTINEL) != 1 or "<extra_id_" in statement.replace(SENTINEL, ""):
        return "not exactly one blank in the statement"
    if not normalize(statement.replace(SENTINEL, "")):
        return "nothing in the statement beside the blank"
    if not normalize(question) or "<extra_id_" in question:
        return "no question, or a sentinel in it"
    if any(occurs(answer, statement.replace(SENTINEL, " ")) for answer in answers):
        return "the answer stands in the statement"
    if any(occurs(answer, question) for answer in answers):
        return "the answer stands in the question"
    accepted = {normalize(answer) for answer in answers}
    old = [text for text in _distinct(decision.old_answers for decision in voters) if normalize(text) not in accepted]
    if past == "other" and not old:
        return "the old answer is the new one"
    evidence = [decision.old_evidence for decision in voters if decision.old_evidence]
    passages = {passage.id: passage.text for passage in candidate.past_evidence}
    old_evidence = _most_frequent([passages.get(text, text) for text in evidence]) if evidence else None
    return {
        "id": candidate.id,
        "statement": statement,
        "question": question,
        "answers": answers,
        "old_answers": old,
        "evidence": candidate.sentence,
        "old_evidence": old_evidence if past == "other" else None,
        "title": candidate.title,
        "url": candidate.url,
        "published": candidate.published,
    }


def _majority(votes: list[Any]) -> Any:
    """Return the vote of more than half of the voters, or None."""
    vote, times = Counter(votes).most_common(1)[0]
    return vote if 2 * times > len(votes) else None


def _most_frequent(texts: list[str]) -> str:
    """Return the most frequent text; the first one if several are equally frequent."""
    return Counter(" ".join(text.split()) for text in texts).most_common(1)[0][0]


def _distinct(lists: Iterable[list[str]]) -> list[str]:
    """Return the texts of all lists, most frequent first; texts that are equal after normalisation count as one."""
    texts = [" ".join(text.split()) for given in lists for text in given]
    times = Counter(map(normalize, texts))
    first = {key: text for text in reversed(texts) if (key := normalize(text))}
    return sorted(first.values(), key=lambda text: (-times[normalize(text)], texts.index(text)))
