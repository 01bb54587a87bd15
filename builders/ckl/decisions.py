"""UpdatedLAMA and NewLAMA out of what annotators decided upon candidates (CKL, appendix B).

REVIEW/decisions/NAME.jsonl is one annotator's file: people's or a judge model's. REVIEW/README.md says how to decide.
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
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl import json_lines
from temporalwiki.builders.ckl.candidates import ABOUT, CANDIDATES, DECISIONS, Candidate, read_about, read_candidates
from temporalwiki.builders.ckl.config import Config, Counts, Row
from temporalwiki.builders.ckl.question_generation import occurs
from temporalwiki.builders.ckl.templates import SENTINEL

_LONGEST = 1 << 20  # bytes of a decision
_LOOK_AT = 20_000  # ids among which one that was meant is looked for
_NAMES = {"updated": "updatedlama", "new": "newlama"}
_ABOUT = {
    "updated": "a cloze and a question about a fact that changed, decided upon by those whom the counts name",
    "new": "a cloze and a question about a fact that is new, decided upon by those whom the counts name",
}
_SOURCE = "sentences of news pages, whose texts belong to their publishers; questions and decisions as options say"


class Decision(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What one annotator decided upon one candidate: a line of their file."""

    id: str
    valid: bool | None  # the question is clear alone; null: undecided, whatever else is said
    answer_right: bool | None = None  # by the page
    past: Literal["other", "same", "none"] | None = None  # what the past answered
    old_answers: list[str] = []
    old_evidence: str | None = None  # a passage's id, or a text
    statement: str | None = None  # mended, as question and answers; null: the candidate's
    question: str | None = None
    answers: list[str] | None = None
    note: str | None = None


def decided(review: Path, least_annotators: int = 1) -> list[Config]:
    """Return ``updatedlama`` and ``newlama`` out of the decisions in ``review``.

    A candidate must have been decided upon by ``least_annotators``; then more than half of them must call the question
    valid, more than half of these the answer right, and more than half of these the past alike: another answer makes
    it updated, none new, and the same leaves it out. Statement and question are those that most of these wrote, the
    answers all that they gave. Every candidate is kept, or dropped by reason, in each of the two configs.

    Raises InputError, naming file, line and field, for a decision that is none, or upon no candidate.
    """
    if least_annotators < 1:
        raise UsageError("least_annotators must be at least 1")
    about = read_about(review)
    files, notes = _files(review / DECISIONS)
    if not files:
        raise InputError(f"{review / DECISIONS}: no decisions there: see {review / 'README.md'}, or let a model judge")
    judges = {note.stem: _judge(note, about["sha256"]) for note in notes}
    votes = _votes(review, files)
    options = {
        "least_annotators": least_annotators,
        "annotators": [file.stem for file in files],
        "judges": {file.stem: judges[file.stem] for file in files if file.stem in judges},
        "candidates": {key: about[key] for key in ("options", "inputs", "past", "counts")},
    }
    configs = []
    for wanted, name in _NAMES.items():
        counts = Counts(more=_annotators(votes))
        rows = _rows(review, votes, wanted, least_annotators, counts)
        inputs = [review / CANDIDATES, review / ABOUT, *files]
        configs.append(
            Config(
                name=name,
                kind="annotated",
                splits={"test": rows},
                about=_ABOUT[wanted],
                licences=("other",),
                source=_SOURCE,
                inputs=inputs,
                options=options,
                counts=counts,
            )
        )
    return configs


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files of decisions, and what judges say of themselves beside theirs; nothing else may be there."""
    files: list[Path] = []
    notes: list[Path] = []
    for path in sorted(folder.iterdir() if folder.is_dir() else ()):
        if path.name.startswith("."):  # of an editor, of a file manager, and our locks
            continue
        if not path.is_file() or path.suffix not in (".jsonl", ".json"):
            near = path.with_suffix(".jsonl").name
            raise InputError(f"{path}: not a file of decisions; did you mean {near}? Else take it away")
        (files if path.suffix == ".jsonl" else notes).append(path)
    return files, notes


def _judge(note: Path, candidates: str) -> dict[str, Any]:
    """Return what a judge model says of itself beside its decisions upon these candidates."""
    try:
        who = msgspec.json.decode(note.read_bytes(), type=dict[str, Any])
        upon, said = who["candidates"], {key: who[key] for key in ("judge", "version", "controls")}
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, RecursionError):
        raise InputError(
            f"{note}: not what a judge writes. Decisions are .jsonl files; without this one those beside it count as "
            "a person's"
        ) from None
    if upon != candidates:
        raise InputError(f"{note}: a judge's decisions upon other candidates than these; take them away, and judge")
    return said


def read_decisions(file: Path) -> Iterator[tuple[int, Decision]]:
    """Yield an annotator's decisions with the numbers of their lines.

    Raises InputError, naming file, line and field, for what is none.
    """
    for number, line in json_lines.lines(file, _LONGEST):
        where = f"{file}: line {number}"
        if line is None:
            raise InputError(f"{where}: longer than a decision can be; wanted is one a line")
        try:
            decision = msgspec.json.decode(line, type=Decision)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{where}: {_what(error)}") from None
        if wrong := _wrong(decision):
            raise InputError(f"{where}: {wrong}")
        yield number, decision


def _what(error: Exception) -> str:
    """Say what is wrong with a line, and which field was meant."""
    unknown = str(error).partition("unknown field `")[2].partition("`")[0]
    if not unknown:
        return f"not a decision: {error}"
    fields = Decision.__struct_fields__
    near = get_close_matches(unknown, fields, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(fields)}"
    return f"no field {unknown!r}; {hint}"


def _wrong(decision: Decision) -> str | None:
    """Say which field of a decision is missing or contradicts another."""
    if not decision.valid:
        return None
    if decision.answer_right is None:
        return "answer_right: true or false is wanted where valid is true"
    if not decision.answer_right:
        return None
    if decision.past is None:
        return 'past: "other", "same" or "none" is wanted where answer_right is true'
    if decision.past == "other" and not any(map(normalize, decision.old_answers)):
        return 'old_answers: what was the answer before? It is wanted where past is "other"'
    if decision.past != "other" and decision.old_answers:
        return f'old_answers: there are some, and past is "{decision.past}": one of them is wrong'
    if decision.answers is not None and not any(map(normalize, decision.answers)):
        return "answers: there is none; null takes the candidate's"
    if decision.statement is not None and decision.statement.count(SENTINEL) != 1:
        return f"statement: exactly one {SENTINEL} is wanted, where the answer belongs"
    if decision.statement is not None and not normalize(decision.statement.replace(SENTINEL, "")):
        return f"statement: nothing is said beside the {SENTINEL}"
    if decision.question is not None and not normalize(decision.question):
        return "question: there is none; null takes the candidate's"
    if decision.question is not None and "<extra_id_" in decision.question:
        return "question: a sentinel is in it, and a question has no blank"
    return None


def _votes(review: Path, files: Iterable[Path]) -> sqlite3.Connection:
    """Return all decisions by candidate, on disk; raise InputError for one upon no candidate, or a second one."""
    votes = sqlite3.connect("")  # SQLite's own temporary file, gone with the connection
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
                raise InputError(f"{where}: id: no candidate {decision.id[:60]!r}{_meant(votes, decision.id)}")
            row = (decision.id, file.name, number, msgspec.json.encode(decision))
            if not votes.execute("INSERT OR IGNORE INTO vote VALUES (?, ?, ?, ?)", row).rowcount:
                sql = "SELECT line FROM vote WHERE id = ? AND file = ?"
                (before,) = votes.execute(sql, row[:2]).fetchone()
                raise InputError(f"{where}: decides upon {decision.id} as line {before} does; keep one of them")
    return votes


def _meant(votes: sqlite3.Connection, id: str) -> str:
    ids = [one for (one,) in votes.execute("SELECT id FROM candidate LIMIT ?", (_LOOK_AT,))]
    near = get_close_matches(id[:60], ids, n=1)
    return f"; did you mean {near[0]}?" if near else f"; take the ids of {CANDIDATES}"


def _annotators(votes: sqlite3.Connection) -> dict[str, Any]:
    """Return how many candidates each annotator decided upon, and of how many several said all the same."""
    of: Counter[str] = Counter()
    several = agreed = 0
    for _, group in groupby(votes.execute("SELECT id, file, vote FROM vote ORDER BY id, file"), itemgetter(0)):
        said = []
        for _, file, vote in group:
            decision = msgspec.json.decode(vote, type=Decision)
            of[file.removesuffix(".jsonl")] += decision.valid is not None
            if decision.valid is not None:
                said.append((decision.valid, decision.valid and decision.answer_right, decision.past))
        several += len(said) > 1
        agreed += len(said) > 1 and len(set(said)) == 1
    return {"decided_by": dict(sorted(of.items())), "decided_by_several": several, "of_these_all_agree": agreed}


def _rows(
    review: Path, votes: sqlite3.Connection, wanted: str, least_annotators: int, counts: Counts
) -> Iterator[Row]:
    seen: set[str] = set()
    for candidate in read_candidates(review):
        counts.read += 1
        found = votes.execute("SELECT vote FROM vote WHERE id = ? ORDER BY file", (candidate.id,))
        decisions = [msgspec.json.decode(vote, type=Decision) for (vote,) in found]
        row = together(candidate, decisions, least_annotators)
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


def together(candidate: Candidate, decisions: Iterable[Decision], least_annotators: int = 1) -> dict[str, Any] | str:
    """Return the row that comes of a candidate by its annotators' decisions, or the reason why none does.

    It is an update where the row has old answers, and new otherwise. See ``decided`` for the rules.
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

    statement = _most([decision.statement or candidate.statement for decision in voters])
    question = _most([decision.question or candidate.question for decision in voters])
    answers = _all(decision.answers or [candidate.answer] for decision in voters)
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
    old = [text for text in _all(decision.old_answers for decision in voters) if normalize(text) not in accepted]
    if past == "other" and not old:
        return "the old answer is the new one"
    said = [decision.old_evidence for decision in voters if decision.old_evidence]
    passages = {passage.id: passage.text for passage in candidate.past_evidence}
    old_evidence = _most([passages.get(text, text) for text in said]) if said else None
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
    """Return what more than half of the votes say, None where there is no such thing."""
    vote, times = Counter(votes).most_common(1)[0]
    return vote if 2 * times > len(votes) else None


def _most(texts: list[str]) -> str:
    """Return the text that is there most often; of equals the first, which is by the annotators' names."""
    return Counter(" ".join(text.split()) for text in texts).most_common(1)[0][0]


def _all(lists: Iterable[list[str]]) -> list[str]:
    """Return all texts of lists, the most frequent first, one of those that normalisation makes the same."""
    texts = [" ".join(text.split()) for given in lists for text in given]
    times = Counter(map(normalize, texts))
    first = {key: text for text in reversed(texts) if (key := normalize(text))}
    return sorted(first.values(), key=lambda text: (-times[normalize(text)], texts.index(text)))
