"""UpdatedLAMA and NewLAMA from annotators' decisions on candidates (CKL, appendix B).

REVIEW/annotations/ has exports of Label Studio, and the files of judges.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.config import CklConfig, Row, RowCounts
from temporalwiki.builders.ckl.eligibility import distinct
from temporalwiki.builders.ckl.review import (
    ABOUT,
    ANNOTATIONS,
    TASKS,
    Candidate,
    Decision,
    read_candidates,
    read_decisions,
    read_review,
)
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_steps import occurs

_SHOWN = ("question", "answer", "statement")  # what a decision is about
_NAMES = {"updated": "updatedlama", "new": "newlama"}
_ABOUT = "a cloze and a question about a fact that {}, decided by the annotators in the counts"
_SOURCE = "sentences of news pages, whose texts belong to their publishers; questions and decisions as options say"

_Votes = Mapping[str, Mapping[str, Decision]]  # by candidate and annotator


def configs_from_decisions(review: Path, least_annotators: int = 1) -> list[CklConfig]:
    """Return the configs ``updatedlama`` and ``newlama`` from the decisions in ``review``.

    At least ``least_annotators`` must have decided on a candidate. More than half of them must call the question
    valid, more than half of these the answer right, and more than half of these must agree on the past: with another
    answer the fact is updated, without an answer it is new, with the same answer it is left out. The statement and
    the question that most of these annotators wrote are used, and all their answers count as right. Both configs count
    every candidate as kept or as dropped for a reason. All decisions are in memory.

    Raises InputError if nobody decided, and, with file, task and annotator, for an invalid one or one on an
    unknown candidate. Raises UsageError if ``least_annotators`` is below 1.
    """
    if least_annotators < 1:
        raise UsageError("least_annotators must be at least 1")
    manifest = read_review(review)
    candidates = {candidate.id: candidate for candidate in read_candidates(review)}
    files = _files(review / ANNOTATIONS)
    if not files:
        raise InputError(
            f"{review / ANNOTATIONS}: nobody has decided yet; put Label Studio's export here, as JSON, or use --judge"
        )
    votes, judges = _decisions(candidates, files)
    options = {
        "least_annotators": least_annotators,
        "annotators": sorted({who for of_candidate in votes.values() for who in of_candidate}),
        "judges": sorted(judges),
        "candidates": {key: getattr(manifest, key) for key in ("options", "inputs", "past")}
        | {"counts": manifest.counts.as_json()},
    }
    configs = []
    for wanted, name in _NAMES.items():
        counts = RowCounts(more=_agreement(votes))
        configs.append(
            CklConfig(
                name=name,
                kind="annotated",
                splits={"test": _rows(candidates.values(), votes, wanted, least_annotators, counts)},
                about=_ABOUT.format("changed" if wanted == "updated" else "is new"),
                licences=("other",),
                source=_SOURCE,
                inputs=[review / TASKS, review / ABOUT, *files],
                options=options,
                counts=counts,
                language=str(manifest.options.get("language", "en")),
            )
        )
    return configs


def _files(folder: Path) -> list[Path]:
    """Return the files of decisions; raise InputError for any other file."""
    visible = (path for path in folder.glob("*") if not path.name.startswith("."))  # locks, files of editors
    files = sorted(visible)
    for path in files:
        if not path.is_file() or path.suffix != ".json":
            raise InputError(f"{path}: not an export of Label Studio as JSON (.json); remove it")
    return files


def _decisions(known: Mapping[str, Candidate], files: Iterable[Path]) -> tuple[_Votes, set[str]]:
    """Return all decisions, and the names of the judges.

    An export contains the decisions of earlier ones, so a decision counts once. Raises InputError for a decision on an
    unknown or changed candidate, and for two decisions of an annotator on a candidate.
    """
    votes: dict[str, dict[str, Decision]] = {}
    judges = set()
    for file in files:
        for said in read_decisions(file):
            id = said.candidate.id
            if id not in known:
                raise InputError(f"{said.where}: no candidate {id[:60]!r}")
            if any(getattr(said.candidate, key) != getattr(known[id], key) for key in _SHOWN):
                raise InputError(f"{said.where}: the task is not as in {TASKS}; import that into a new project")
            of_candidate = votes.setdefault(id, {})
            if of_candidate.setdefault(said.who, said.decision) != said.decision:
                raise InputError(
                    f"{said.where}: a second decision on {id}, which differs from the first; keep one of them"
                )
            if said.judge:
                judges.add(said.who)
    return votes, judges


def _agreement(votes: _Votes) -> dict[str, Any]:
    """Return the number of decisions by annotator, and how often all annotators of a candidate agree."""
    decided_by: Counter[str] = Counter()
    several = agreed = 0
    for of_candidate in votes.values():
        decided = {who: decision for who, decision in of_candidate.items() if decision.valid is not None}
        decided_by.update(decided.keys())
        verdicts = {(one.valid, one.valid and one.answer_right, one.past) for one in decided.values()}
        several += len(decided) > 1
        agreed += len(decided) > 1 and len(verdicts) == 1
    return {
        "decided_by": dict(sorted(decided_by.items())),
        "decided_by_several": several,
        "of_these_all_agree": agreed,
    }


def _rows(
    candidates: Iterable[Candidate], votes: _Votes, wanted: str, least_annotators: int, counts: RowCounts
) -> Iterator[Row]:
    seen: set[str] = set()
    for candidate in candidates:
        counts.read += 1
        by_name = sorted(votes.get(candidate.id, {}).items())
        row = row_from_decisions(candidate, [decision for _, decision in by_name], least_annotators)
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
    for field, reason in (("valid", "the question is not valid"), ("answer_right", "the answer is not right")):
        vote = _majority([getattr(decision, field) for decision in voters])
        if not vote:
            return "the annotators disagree" if vote is None else reason
        voters = [decision for decision in voters if getattr(decision, field)]
    past = _majority([decision.past for decision in voters])
    if past is None:
        return "the annotators disagree"
    if past == "same":
        return "no news: the past has the same answer"
    voters = [decision for decision in voters if decision.past == past]

    statement = _most_frequent([decision.statement or candidate.statement for decision in voters])
    question = _most_frequent([decision.question or candidate.question for decision in voters])
    answers = _distinct(decision.answers or [candidate.answer] for decision in voters) or [candidate.answer]
    if statement.count(SENTINEL) != 1 or "<extra_id_" in statement.replace(SENTINEL, ""):
        return "not exactly one blank in the statement"
    if not normalize(statement.replace(SENTINEL, "")):
        return "nothing in the statement except the blank"
    if not normalize(question) or "<extra_id_" in question:
        return "no question, or a sentinel in it"
    if any(occurs(answer, statement.replace(SENTINEL, " ")) for answer in answers):
        return "the answer stands in the statement"
    if any(occurs(answer, question) for answer in answers):
        return "the answer stands in the question"
    accepted = {normalize(answer) for answer in answers}
    old = _distinct(decision.old_answers for decision in voters) if past == "other" else []
    old = [text for text in old if normalize(text) not in accepted]
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
    texts = [" ".join(text.split()) for given in lists for text in given if normalize(text)]
    times = Counter(map(normalize, texts))
    return sorted(distinct(texts), key=lambda text: -times[normalize(text)])
