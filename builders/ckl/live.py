"""Live CKL: what an interval updated, what it brought, and what many intervals left as it was, asked for each month.

The rows come from the configs ``facts-*`` of dataset folders: facts that were aligned with text and passed the
filters of TemporalWiki, section 3.3, with what else is right and what was right before. CKL (Jang et al. 2022,
section 3.1 and Appendix B) asks the same of facts that a crowd found in the news of one year.
"""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from temporalwiki.builders.ckl.config import Config, Counts
from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.ckl.templates import BLANK, Template, template
from temporalwiki.builders.dataset_folder import (
    SPLITS,
    check_manifest,
    is_ckl,
    manifest_path,
    names,
    read_manifests,
)
from temporalwiki.builders.errors import InputError, UsageError
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.streams import digest
from temporalwiki.builders.wikidata import probes
from temporalwiki.builders.wikidata.align import filtered, says
from temporalwiki.builders.wikidata.diff import database, rows_of, run_script
from temporalwiki.eval_harness.metrics.knowledge_match import normalize

KINDS = ("updatedlama", "newlama", "invariantlama")
A_RELATION = 1_000  # facts of one relation in invariantlama, as in LAMA
MEMORY = 1 << 30  # bytes that DuckDB may take; what is more goes to disk

_ABOUT = {
    "updatedlama": "a fact whose object was replaced within the interval, as a cloze and a question, with what is "
    "right at the later snapshot and what was right at the earlier one",
    "newlama": "a fact of a subject or a relation that the earlier snapshot did not have, as a cloze and a question",
    "invariantlama": "a fact of one of InvariantLAMA's 28 relations that no interval changed, as cloze and question",
}
_SOURCE = (
    "Facts: Wikidata (CC0 1.0). Evidence: Wikipedia (CC BY-SA 4.0), by the authors that the page's history names. "
)
_OWN_WORDS = "Clozes and questions: worded by temporalwiki."
_LAMA_WORDS = "Clozes: templates of LAMA (Petroni et al. 2019, CC BY-NC 4.0) where it has one, else temporalwiki's."

Row = dict[str, Any]


def live(
    kind: str,
    folders: Sequence[Path],
    interval: str | None = None,
    templates: Mapping[str, str] | None = None,
    seed: int = 0,
) -> list[Config]:
    """Return the config ``updatedlama-*``, ``newlama-*`` or ``invariantlama-*`` of an interval in dataset folders.

    ``interval`` is its name, "20211101-20211201", or "1112"; the newest unless it is given. Of ``invariantlama`` it is
    the first and the last date of intervals that follow one another; unless it is given, as many as there are before
    the newest. ``templates`` are LAMA's by relation id, which then word the clozes in place of our own. Raises
    UsageError for another kind, InputError where a folder has no such facts, or they are not in English.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no live config {kind!r}; there are {', '.join(KINDS)}")
    all_facts = _read(folders)
    warnings: list[str] = []
    if kind == "invariantlama":
        chain = _chain(all_facts, interval)
        warnings = _left_out(all_facts if interval is None else chain, chain)
    else:
        chain = [_one(all_facts, interval)]
    whole = Interval(chain[0].interval.wiki, chain[0].interval.prev, chain[-1].interval.recent)
    for facts in chain:
        facts.check()
    counts = Counts()
    if kind == "invariantlama":
        rows = _unchanged(chain, templates, seed, counts)
    else:
        rows = _changed(kind, chain[0], templates, seed, counts)
    return [
        Config(
            name=f"{kind}-{whole.name}",
            short_name=f"{kind}-{whole.short_name}",
            kind="live",
            splits={"test": rows},
            about=_ABOUT[kind],
            licences=("cc0-1.0", "cc-by-sa-4.0", *(["cc-by-nc-4.0"] if templates else [])),
            source=_SOURCE + (_LAMA_WORDS if templates else _OWN_WORDS),
            inputs=[file for facts in chain for file in facts.files()],
            options={
                "wiki": whole.wiki,
                "intervals": [facts.interval.name for facts in chain],
                "seed": seed,
                "templates": "LAMA's" if templates else "own",
            },
            counts=counts,
            warnings=warnings,
        )
    ]


@dataclass(frozen=True)
class _Facts:
    """The config ``facts-*`` of one interval."""

    folder: Path
    interval: Interval
    splits: dict[str, Any]  # of the manifest
    options: dict[str, Any]  # of its build

    def files(self, *splits: str) -> list[Path]:
        """Return the files of some splits, of all where none is named."""
        return [
            self.folder / file["path"] for split in splits or SPLITS["facts"] for file in self.splits[split]["files"]
        ]

    def check(self) -> None:
        """Raise InputError unless the files are those that the manifest describes."""
        for split in self.splits.values():
            for file in split["files"]:
                path = self.folder / file["path"]
                if not path.is_file() or digest(path, "sha256") != file["sha256"]:
                    raise InputError(f"{path}: not the file that its manifest describes; build its month again")


def _read(folders: Sequence[Path]) -> list[_Facts]:
    """Return all intervals with facts, oldest first. Raises InputError where they do not go together."""
    found: dict[tuple[str, str], _Facts] = {}
    for folder in dict.fromkeys(folders):
        of_folder = []
        for manifest in read_manifests(folder):
            if is_ckl(manifest) or not any(str(name).startswith("facts-") for name in manifest["configs"]):
                continue
            check_manifest(manifest, str(folder / manifest_path(manifest)))
            of = manifest["interval"]
            interval = Interval(of["wiki"], of["prev"], of["recent"])
            splits = manifest["configs"][names("facts", interval)[0]]["splits"]
            of_folder.append(_Facts(folder, interval, splits, manifest["options"]))
        if not of_folder:
            what = "has no config facts-*" if (folder / "manifests").is_dir() else "not a dataset folder"
            raise InputError(f"{folder}: {what}; build its months with `temporalwiki build`")
        for facts in of_folder:
            _check_same_wiki(facts, next(iter(found.values()), facts))
            twice = found.setdefault((facts.interval.recent, facts.interval.prev), facts)
            if twice is not facts:
                raise InputError(f"{folder}: has {facts.interval.name}, as {twice.folder} has; name one of them")
    return [found[key] for key in sorted(found)]


def _check_same_wiki(facts: _Facts, first: _Facts) -> None:
    if facts.interval.language != "en":
        raise InputError(
            f"{facts.folder}: {facts.interval.wiki} has labels in {facts.interval.language!r}; clozes and questions "
            "are worded in English only"
        )
    if facts.interval.wiki != first.interval.wiki:
        raise InputError(
            f"{facts.folder} is of {facts.interval.wiki}, {first.folder} of {first.interval.wiki}; one wiki at a time"
        )


def _one(all_facts: list[_Facts], interval: str | None) -> _Facts:
    for facts in reversed(all_facts):
        if interval in (None, facts.interval.name, facts.interval.short_name):
            return facts
    raise _no_interval(str(interval), all_facts)


def _chain(all_facts: list[_Facts], interval: str | None) -> list[_Facts]:
    """Return intervals that follow one another without a gap."""
    for last in reversed(all_facts):
        chain = [last]
        while True:
            whole = Interval(last.interval.wiki, chain[0].interval.prev, last.interval.recent)
            if interval in (whole.name, whole.short_name):
                return chain
            # of several that end there the latest to begin: sorted as they are, the last one
            before = [facts for facts in all_facts if facts.interval.recent == chain[0].interval.prev]
            if not before:
                break
            chain.insert(0, before[-1])
        if interval is None:
            return chain
    raise _no_interval(str(interval), all_facts)


def _left_out(all_facts: list[_Facts], chain: list[_Facts]) -> list[str]:
    """Say what could make invariantlama larger, or surer."""
    warnings = []
    if left := [facts.interval.name for facts in all_facts if facts not in chain]:
        warnings.append(
            f"not followed without a gap up to {chain[-1].interval.recent}, so left out: {', '.join(left)}"
        )
    samples = {(facts.options["unchanged_fraction"], facts.options["seed"]) for facts in chain}
    if any(fraction < 1 for fraction, _ in samples):
        how = ", ".join(f"{fraction:g} (seed {seed})" for fraction, seed in sorted(samples))
        warnings.append(
            f"of facts that an interval left as they were a sample was kept, {how}, and only what is in all samples "
            "can be invariant: build with --unchanged-fraction 1 for all"
        )
    return warnings


def _no_interval(interval: str, all_facts: list[_Facts]) -> InputError:
    known = ", ".join(facts.interval.name for facts in all_facts)
    return InputError(f"{all_facts[0].folder}: no interval {interval!r}; there are facts of {known}")


# A subject counts as ambiguous where another one of its relation has the same label.
_SAME_LABEL = "lower(nfc_normalize(trim(subject)))"
_SHARED_LABELS = f"""
CREATE TEMP TABLE shared_labels AS
    SELECT relation_id, {_SAME_LABEL} AS label FROM everything
    GROUP BY ALL HAVING count(DISTINCT subject_id) > 1
"""
_NUMBERS = (
    "CAST(subject_id[2:] AS BIGINT) AS s, CAST(relation_id[2:] AS BIGINT) AS p, CAST(object_id[2:] AS BIGINT) AS o"
)
_AMBIGUOUS = f"(f.relation_id, {_SAME_LABEL}) IN (SELECT (relation_id, label) FROM shared_labels) AS ambiguous"


def _changed(
    kind: str, facts: _Facts, templates: Mapping[str, str] | None, seed: int, counts: Counts
) -> Iterator[Row]:
    """Yield the rows of updatedlama or newlama, by subject and relation."""
    with tempfile.TemporaryDirectory() as place, database(Path(place), MEMORY) as db:
        _see(db, "everything", facts.files())
        _see(db, "changed", facts.files("changed"))
        db.execute(_SHARED_LABELS)
        db.execute(f"CREATE TEMP TABLE asked AS SELECT f.*, {_NUMBERS}, {_AMBIGUOUS} FROM changed f")
        query = "SELECT * FROM asked ORDER BY s, p, statement_id, o"
        good: list[int] = []
        of_good: list[probes.Fact] = []
        for position, (row, reason) in enumerate(_judged(_rows(db, query), kind, templates, counts)):
            counts.read += 1
            if reason is None:
                good.append(position)
                of_good.append(probes.Fact(row["s"], row["p"], row["o"]))
            else:
                counts.drop(reason)
        selection = probes.cap(of_good, seed)
        counts.dropped |= selection.dropped
        chosen = {good[i] for i in selection.kept}
        for position, row in enumerate(_rows(db, query)):
            if position in chosen:
                yield _made(row, templates, counts)


_STABLE = f"""
CREATE TEMP TABLE moved AS
    SELECT DISTINCT subject_id, relation_id FROM (
        SELECT subject_id, relation_id FROM changed_once UNION ALL
        SELECT subject_id, relation_id FROM unchanged_once WHERE len(gone_objects) > 0
    );
CREATE TEMP TABLE stable AS
    SELECT subject_id, relation_id, object_id FROM unchanged_once
    WHERE current AND end_time IS NULL GROUP BY ALL
    HAVING count(*) = $intervals AND count(DISTINCT objects) = 1; -- an object more or less is a change
-- What keeps an unchanged fact of the last interval from being invariant; null for nothing.
CREATE TEMP TABLE asked AS
    SELECT f.*, {_NUMBERS}, {_AMBIGUOUS},
        CASE WHEN NOT list_contains($relations, relation_id) THEN 'another_relation'
             WHEN NOT current THEN 'not_current'
             WHEN end_time IS NOT NULL THEN 'with_end_time'
             WHEN (subject_id, relation_id) IN (SELECT (subject_id, relation_id) FROM moved)
                 THEN 'changed_in_an_interval'
             WHEN (subject_id, relation_id, object_id) NOT IN (SELECT (subject_id, relation_id, object_id) FROM stable)
                 THEN 'not_unchanged_in_every_interval'
        END AS varies,
        md5(concat_ws(' ', $seed, 'invariantlama', subject_id, relation_id)) AS draw
    FROM unchanged f;
"""


def _unchanged(
    chain: Sequence[_Facts], templates: Mapping[str, str] | None, seed: int, counts: Counts
) -> Iterator[Row]:
    """Yield the rows of invariantlama, by subject and relation."""
    with tempfile.TemporaryDirectory() as place, database(Path(place), MEMORY) as db:
        _see(db, "everything", chain[-1].files())
        _see(db, "unchanged", chain[-1].files("unchanged"))
        _see(db, "unchanged_once", [file for facts in chain for file in facts.files("unchanged")])
        _see(db, "changed_once", [file for facts in chain for file in facts.files("changed", "deleted")])
        db.execute(_SHARED_LABELS)
        run_script(db, _STABLE, {"relations": list(RELATIONS), "intervals": len(chain), "seed": seed})
        for reason, dropped in db.execute("SELECT varies, count(*) FROM asked GROUP BY varies").fetchall():
            if reason is not None:
                counts.read += dropped
                counts.dropped[reason] = dropped
        query = "SELECT * FROM asked WHERE varies IS NULL ORDER BY p, draw, s, statement_id, o"
        kept: list[Row] = []
        of_relation: Counter[int] = Counter()

        def with_room() -> Iterator[Row]:
            for row in _rows(db, query):
                counts.read += 1
                if of_relation[row["p"]] < A_RELATION:
                    yield row
                else:
                    counts.drop(f"over_{A_RELATION}_of_the_relation")

        for row, reason in _judged(with_room(), "invariantlama", templates, counts):
            if reason is None:
                of_relation[row["p"]] += 1
                kept.append(row)
            else:
                counts.drop(reason)
        for row in sorted(kept, key=lambda row: (row["s"], row["p"])):
            yield _made(row, templates, counts)


def _see(db: duckdb.DuckDBPyConnection, view: str, files: list[Path]) -> None:
    db.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {rows_of(files, 'facts')}")


def _rows(db: duckdb.DuckDBPyConnection, query: str) -> Iterator[Row]:
    for batch in db.sql(query).to_arrow_reader(4096):
        yield from batch.to_pylist()


def _judged(
    rows: Iterable[Row], kind: str, templates: Mapping[str, str] | None, counts: Counts
) -> Iterator[tuple[Row, str | None]]:
    """Yield the rows, each with the reason why it is left out; a subject's of one relation come together.

    Of those the first that can be asked stands for all: they have the same cloze and the same answers.
    """
    without_template = counts.more.setdefault("relations_without_template", {})
    asked: tuple[int, int] | None = None
    for row in rows:
        how = template(row["relation_id"], row["relation"], templates)
        reason = (_not_new(row, kind) or _not_updated(row, how)) if kind == "updatedlama" else _not_new(row, kind)
        if reason is None and how is None:
            reason = "relation_without_template"
            without_template[row["relation_id"]] = without_template.get(row["relation_id"], 0) + 1
        if reason is None and how is not None:
            reason = cannot_be_asked(row, how)
        if reason is None:
            if (row["s"], row["p"]) == asked:
                reason = "same_subject_and_relation"
            asked = row["s"], row["p"]
        yield row, reason


_KINDS_OF_FACTS = {
    "updatedlama": ("new_object",),
    "newlama": ("new_subject", "new_relation"),
    "invariantlama": ("unchanged",),
}


def _not_new(row: Row, kind: str) -> str | None:
    if row["kind"] not in _KINDS_OF_FACTS[kind]:
        return f"kind_{row['kind']}"
    return None if row["current"] else "not_current"


def _not_updated(row: Row, how: Template | None) -> str | None:
    """Why a new object is no update of the world."""
    if not row["gone_objects"]:
        return "addition_to_what_still_holds"
    if how is not None and how.lasting:
        return "correction_of_what_does_not_change"
    for old in row["gone_objects"]:
        for new in _answers(row):
            a, b = normalize(old), normalize(new)
            if a == b or says(a, b) or says(b, a):
                return "old_and_new_answer_overlap"
    return None


_NUMBER = re.compile(r"[QPL]?[\d\s.,:;/+()−–—-]*\d[\d\s.,:;/+()−–—-]*")
_SENTINEL = re.compile(r"<extra_id_\d+>")


def cannot_be_asked(row: Row, how: Template) -> str | None:
    """Return why a fact makes no cloze that is sound; None if it does.

    What the filters of section 3.3 ask of a fact's own object is asked of all that is right, and that was.
    """
    subject = row["subject"]
    answers = [*_answers(row), *row["gone_objects"]]
    for label in (subject, *answers):
        if _SENTINEL.search(label):
            return "label_with_sentinel"
        if any(unicodedata.category(character) == "Cc" for character in label):
            return "label_with_control_character"
        if _NUMBER.fullmatch(label):
            return "label_is_a_number_or_an_id"
    if not all(map(normalize, answers)):
        return "answer_without_words"
    if row["ambiguous"]:
        return "another_subject_of_this_label"
    if any(filtered(subject, answer) == "subject_and_object_overlap" for answer in answers):
        return "answer_and_subject_overlap"
    said = how.statement(subject).replace(BLANK, " "), how.ask(subject)
    return "answer_in_the_wording" if any(says(text, answer) for text in said for answer in answers) else None


def _answers(row: Row) -> list[str]:
    """What is right, the fact's own object first."""
    return _distinct([row["object"], *row["objects"]])


def _distinct(labels: Iterable[str]) -> list[str]:
    """Labels, but once what an exact match takes for the same."""
    found: dict[str, str] = {}
    for label in labels:
        found.setdefault(normalize(label), label)
    return list(found.values())


def _made(row: Row, templates: Mapping[str, str] | None, counts: Counts) -> Row:
    how = template(row["relation_id"], row["relation"], templates)
    assert how is not None
    counts.kept += 1
    by_relation = counts.more.setdefault("kept_by_relation", {})
    by_relation[row["relation_id"]] = by_relation.get(row["relation_id"], 0) + 1
    made = {name: row[name] for name in SCHEMAS["live"].names if name in row}
    return made | {
        "id": f"{row['subject_id']}-{row['relation_id']}",
        "statement": how.statement(row["subject"]),
        "question": how.ask(row["subject"]),
        "answers": _answers(row),
        "old_answers": _distinct(row["gone_objects"]),
        "template": how.cloze,
    }
