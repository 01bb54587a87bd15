"""Live CKL: UpdatedLAMA, NewLAMA and InvariantLAMA of each month, from Wikidata.

The rows come from the configs ``facts-*`` of dataset folders. These facts are aligned with text and passed the filters
of TemporalWiki (section 3.3); they list all right answers and all earlier ones. CKL (Jang et al. 2022, section 3.1 and
Appendix B) asks the same about facts that a crowd found in the news of one year.
"""

import contextlib
import functools
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from temporalwiki.base.errors import InputError, UsageError, first_line
from temporalwiki.base.files import only_one
from temporalwiki.builders.ckl.change import SHOWN_BY, shown_by
from temporalwiki.builders.ckl.config import CklConfig, RowCounts
from temporalwiki.builders.ckl.eligibility import distinct, other_names, reason_to_drop, right_answers, wrong_answers
from temporalwiki.builders.ckl.interval_facts import Facts, consecutive, of_interval, read_facts
from temporalwiki.builders.ckl.invariantlama import RELATIONS
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.ckl.templates import RelationTemplate, find_template, one_line, unsafe_label
from temporalwiki.builders.configs import BACKFILLED
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.sql import database, rows_of, run_script
from temporalwiki.builders.wikidata import probes

KINDS = ("updatedlama", "newlama", "invariantlama")
PER_RELATION = 1_000  # the most facts of one relation in invariantlama, as in LAMA
CANDIDATES = 100  # the most wrong answers of a row
MEMORY = 1 << 30  # bytes that DuckDB may use; it puts the rest on disk

_ABOUT = {
    "updatedlama": "a fact whose object was replaced within the interval, as a cloze and a question, with the right "
    "answers at the later and at the earlier snapshot; `backfilled`: nothing shows that it was replaced then",
    "newlama": "a fact that became true within the interval, of a subject or a relation that the earlier snapshot did "
    "not have, as a cloze and a question; `backfilled`: nothing shows that it became true then",
    "invariantlama": "a fact of one of InvariantLAMA's 28 relations that no interval changed, as cloze and question",
}
_SOURCE = (
    "Facts: Wikidata (CC0 1.0). Evidence: Wikipedia (CC BY-SA 4.0), by the authors that the page's history names. "
)
_OWN_WORDS = "Clozes and questions: worded by temporalwiki."
_LAMA_WORDS = "Clozes: templates of LAMA (Petroni et al. 2019, CC BY-NC 4.0) where it has one, else temporalwiki's."

Row = dict[str, Any]
Wording = Callable[[str, str], RelationTemplate | None]  # of a relation's id and label


def live(
    kind: str,
    folders: Sequence[Path],
    interval: str | None = None,
    templates: Mapping[str, str] | None = None,
    seed: int = 0,
    *,
    work: Path | None = None,
) -> list[CklConfig]:
    """Return the config ``updatedlama-*``, ``newlama-*`` or ``invariantlama-*`` of an interval in dataset folders.

    ``interval`` is a name such as "20211101-20211201" or "1112"; the default is the newest interval. For
    ``invariantlama`` it names the first and the last date of consecutive intervals; the default is the longest chain
    that ends with the newest one. ``templates`` are LAMA's clozes by relation id, which replace our own. Data that
    does not fit into memory goes to ``work``, or to a temporary folder. Raises UsageError for another kind, InputError
    if a folder has no facts, if their language has no templates, or if the files are damaged.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no live config {kind!r}; there are {', '.join(KINDS)}")
    all_facts = read_facts(folders)
    warnings: list[str] = []
    if kind == "invariantlama":
        chain = consecutive(all_facts, interval)
        warnings = _left_out(all_facts if interval is None else chain, chain)
    else:
        chain = [of_interval(all_facts, interval)]
    whole = Interval(chain[0].interval.wiki, chain[0].interval.prev, chain[-1].interval.recent)
    for facts in chain:
        facts.check()
    if templates and whole.language != "en":
        raise InputError(f"{folders[0]}: its labels are in {whole.language!r}, and LAMA's templates are English")
    wording = functools.partial(find_template, lama=templates, language=whole.language)
    counts = RowCounts()
    splits: dict[str, Iterator[Row]]
    if kind == "invariantlama":
        splits = {"test": _unchanged(chain, wording, seed, counts, work)}
    else:
        splits = _changed(kind, chain[0], wording, seed, counts, work)
    return [
        CklConfig(
            name=f"{kind}-{whole.name}",
            short_name=f"{kind}-{whole.short_name}",
            kind="live",
            splits=splits,
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
            language=whole.language,
            warnings=warnings,
        )
    ]


def _left_out(all_facts: list[Facts], chain: list[Facts]) -> list[str]:
    """Return warnings about intervals and facts that invariantlama could not use."""
    warnings = []
    if left := [facts.interval.name for facts in all_facts if facts not in chain]:
        warnings.append(
            f"no part of the intervals that follow one another from {chain[0].interval.prev} to "
            f"{chain[-1].interval.recent}, so left out: {', '.join(left)}"
        )
    samples = {(facts.options["unchanged_fraction"], facts.options["seed"]) for facts in chain}
    if any(fraction < 1 for fraction, _ in samples):
        how = ", ".join(f"{fraction:g} (seed {seed})" for fraction, seed in sorted(samples))
        warnings.append(
            f"only a sample of the unchanged facts was kept, {how}, and only facts in all samples can be invariant: "
            "build with --unchanged-fraction 1 for all"
        )
    return warnings


@contextlib.contextmanager
def _scratch(work: Path | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database that uses at most MEMORY bytes of memory, and a temporary folder in ``work``."""
    folder = Path(tempfile.gettempdir()) if work is None else work
    with contextlib.ExitStack() as stack:
        if work is not None:
            stack.enter_context(only_one(work / "live", "ckl"))
            for left in work.glob(".duckdb-*.part"):  # of a killed run
                shutil.rmtree(left, ignore_errors=True)
        db = stack.enter_context(database(folder, MEMORY))
        try:
            yield db
        except duckdb.ConversionException as error:  # an id of another form
            raise InputError(f"not facts: {first_line(error)}; build their month again") from None
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise InputError(
                f"{folder}: the facts need more than {MEMORY >> 20} MB of memory and the free disk space: "
                f"{first_line(error)}; free some space, or use another folder"
            ) from None


# Queries join facts by numbers and hashes, and read labels and texts only of facts that are checked or kept.
_PLACE = "file_index, file_row_number"  # identifies a row in the files of a view
_NUMBERS = (
    "CAST(subject_id[2:] AS BIGINT) AS s, CAST(relation_id[2:] AS BIGINT) AS p, CAST(object_id[2:] AS BIGINT) AS o"
)
# A subject is ambiguous if another subject of the relation has the same label.
_LABEL = r"hash(lower(nfc_normalize(trim(regexp_replace(subject, '\s+', ' ', 'g'))))) AS label"
_SHARED_LABELS = """
CREATE TEMP TABLE shared_labels AS
    SELECT p, label FROM everything SEMI JOIN candidates USING (p, label)
    GROUP BY p, label HAVING min(s) <> max(s);
"""
_CHECKED = (
    "subject", "relation", "object", "subject_id", "relation_id", "kind", "title", "current", "objects",
    "objects_before", "gone_objects", "known_before", "dead",
)  # fmt: skip
_CHANGE = (*_CHECKED, "dated", "start_time", "end_time", "gone_end", "newly_stated", "evidence")
_Place = tuple[int, int]


def _changed(
    kind: str, facts: Facts, wording: Wording, seed: int, counts: RowCounts, work: Path | None
) -> dict[str, Iterator[Row]]:
    """Return the splits of updatedlama or newlama, each by subject and relation.

    All facts are checked once, when the first split is read.
    """
    places: dict[str, list[_Place]] = {}

    def rows(split: str) -> Iterator[Row]:
        with _scratch(work) as db:
            _create_view(db, "everything", facts.files())
            _create_view(db, "asked", facts.files("changed"))
            if not places:
                places.update(_chosen(db, kind, wording, seed, counts, facts.interval))
            yield from _finished(db, places[split], wording, seed, counts, facts.interval)

    return {split: rows(split) for split in ("test", BACKFILLED)}


def _chosen(
    db: duckdb.DuckDBPyConnection, kind: str, wording: Wording, seed: int, counts: RowCounts, interval: Interval
) -> dict[str, list[_Place]]:
    """Return the places of the rows of each split, under the caps."""

    def split(row: Row) -> str:
        template = wording(row["relation_id"], row["relation"])
        return "test" if template is not None and shown_by(row, template, interval) in SHOWN_BY else BACKFILLED

    db.execute(f"CREATE TEMP TABLE candidates AS SELECT {_PLACE}, s, p, o, label FROM asked")
    db.execute(_SHARED_LABELS)
    good: dict[str, list[tuple[_Place, probes.Fact]]] = {"test": [], BACKFILLED: []}
    rows = _candidates(db, "c.s, c.p, statement_id, c.o", columns=_CHANGE)
    # for each subject and relation, facts that changed within the interval come first
    of_relations = itertools.groupby(rows, key=lambda row: (row["s"], row["p"]))
    best_first = (row for _, group in of_relations for row in sorted(group, key=lambda row: split(row) == BACKFILLED))
    for row, reason in _checked(best_first, kind, wording, counts):
        counts.read += 1
        if reason is None:
            good[split(row)].append((_place(row), probes.Fact(row["s"], row["p"], row["o"])))
        else:
            counts.drop(reason)
    places = {}
    for name, of_split in good.items():
        selection = probes.cap([fact for _, fact in of_split], seed, probes.CAPS)
        for reason, number in selection.dropped.items():
            counts.drop(reason, number)
        places[name] = [of_split[position][0] for position in selection.kept]
    return places


# Why a single unchanged fact is not invariant, or null.
_VARIES = """
    CASE WHEN NOT current THEN 'not_current'
         WHEN end_time IS NOT NULL THEN 'with_end_time'
    END
"""
# An added or removed object is a change. Hashes are used only within one database.
_OBJECTS = """
    list_sort(list_distinct(objects)) = list_sort(list_distinct(objects_before)) AS same_objects,
    hash(list_sort(list_distinct(objects))) AS all_objects
"""
_CANDIDATES = f"""
CREATE TEMP TABLE candidates AS
    SELECT {_PLACE}, s, p, o, label, all_objects,
        md5_number_lower(concat_ws(' ', $seed, 'invariantlama', subject_id, relation_id)) AS draw
    FROM asked WHERE relation_id IN (SELECT unnest($relations)) AND {_VARIES} IS NULL;
"""
_MOVED = """
CREATE TEMP TABLE moved AS
    SELECT DISTINCT s, p FROM (
        SELECT s, p FROM changed_once UNION ALL SELECT s, p FROM unchanged_once WHERE NOT same_objects
    ) SEMI JOIN candidates USING (s, p);
CREATE OR REPLACE TEMP TABLE candidates AS SELECT * FROM candidates ANTI JOIN moved USING (s, p);
"""
_STAYS = f"""
CREATE OR REPLACE TEMP TABLE candidates AS
    SELECT * FROM candidates SEMI JOIN (SELECT s, p, o, all_objects FROM earlier WHERE {_VARIES} IS NULL)
    USING (s, p, o, all_objects);
"""
# Facts of one subject and relation have the same draw, and the same turn.
_TURNS = """
CREATE OR REPLACE TEMP TABLE candidates AS
    SELECT *, dense_rank() OVER (PARTITION BY p ORDER BY draw, s) AS turn FROM candidates
"""


def _unchanged(
    chain: Sequence[Facts], wording: Wording, seed: int, counts: RowCounts, work: Path | None
) -> Iterator[Row]:
    """Yield the rows of invariantlama, by subject and relation."""
    with _scratch(work) as db:
        _create_view(db, "everything", chain[-1].files())
        _create_view(db, "asked", chain[-1].files("unchanged"))
        _create_view(db, "unchanged_once", [file for facts in chain for file in facts.files("unchanged")])
        _create_view(db, "changed_once", [file for facts in chain for file in facts.files("changed", "deleted")])
        values = {"relations": list(RELATIONS), "seed": seed}
        reasons = db.execute(
            "SELECT CASE WHEN relation_id NOT IN (SELECT unnest($relations)) THEN 'another_relation' "
            f"ELSE {_VARIES} END AS reason, count(*) FROM asked GROUP BY reason",
            {"relations": values["relations"]},
        ).fetchall()
        for reason, number in reasons:
            counts.read += number
            if reason is not None:
                counts.drop(reason, number)
        run_script(db, _CANDIDATES, values)
        _narrow(db, _MOVED, "changed_in_an_interval", counts)
        for facts in chain[:-1]:
            _create_view(db, "earlier", facts.files("unchanged"))
            _narrow(db, _STAYS, "not_unchanged_in_every_interval", counts)
        db.execute(_SHARED_LABELS)
        yield from _finished(db, _drawn(db, wording, counts), wording, seed, counts)


def _narrow(db: duckdb.DuckDBPyConnection, script: str, reason: str, counts: RowCounts) -> None:
    """Run a script that removes candidates, and count them."""
    before = _size(db)
    run_script(db, script, {})
    counts.drop(reason, before - _size(db))


def _size(db: duckdb.DuckDBPyConnection) -> int:
    [(size,)] = db.execute("SELECT count(*) FROM candidates").fetchall()
    return int(size)


def _drawn(db: duckdb.DuckDBPyConnection, wording: Wording, counts: RowCounts) -> list[_Place]:
    """Return the places of up to PER_RELATION facts of each relation, in the order of their draws.

    Larger and larger parts are read until there are enough facts: some relations have millions.
    """
    db.execute(_TURNS)
    turns = db.execute("SELECT p, max(turn) FROM candidates GROUP BY p").fetchall()
    of_relation: Counter[int] = Counter()
    kept: list[_Place] = []
    left = _size(db)
    first, last = 1, 2 * PER_RELATION
    while wanting := [p for p, turn in turns if turn >= first and of_relation[p] < PER_RELATION]:
        part = f"WHERE c.turn BETWEEN {first} AND {last} AND c.p IN ({', '.join(map(str, wanting))})"
        rows = _candidates(db, "c.p, c.turn, statement_id, c.o", part)
        for row, reason in _checked(rows, "invariantlama", wording, counts):
            if of_relation[row["p"]] == PER_RELATION:
                continue
            left -= 1
            if reason is None:
                of_relation[row["p"]] += 1
                kept.append(_place(row))
            else:
                counts.drop(reason)
        first, last = last + 1, 4 * last
    counts.drop(f"over_{PER_RELATION}_of_the_relation", left)
    return kept


def _create_view(db: duckdb.DuckDBPyConnection, view: str, files: list[Path]) -> None:
    """Create a view of facts with the numbers and hashes for joins."""
    db.execute(
        f"CREATE OR REPLACE TEMP VIEW {view} AS "
        f"SELECT *, {_PLACE}, {_NUMBERS}, {_LABEL}, {_OBJECTS} FROM {rows_of(files)}"
    )


def _candidates(
    db: duckdb.DuckDBPyConnection, order: str, where: str = "", columns: Sequence[str] = _CHECKED
) -> Iterator[Row]:
    """Yield the candidates, or some of them, in an order."""
    selected = ", ".join(f"f.{name}" for name in columns)
    places = ", ".join(f"c.{name.strip()}" for name in _PLACE.split(","))
    return _rows(
        db,
        f"SELECT {selected}, {places}, c.s, c.p, c.o, shared.label IS NOT NULL AS ambiguous "
        f"FROM candidates c JOIN asked f USING ({_PLACE}) "
        f"LEFT JOIN shared_labels shared ON shared.p = c.p AND shared.label = c.label {where} ORDER BY {order}",
    )


# Objects of the relations of the facts in "kept", drawn by hash.
_POOL = f"""
    SELECT p, object, row_number() OVER (
        PARTITION BY p ORDER BY md5_number_lower(concat_ws(' ', $seed, 'candidates', p, object)), object
    ) AS place
    FROM (SELECT DISTINCT p, object FROM everything)
    SEMI JOIN (SELECT p FROM asked JOIN kept USING ({_PLACE})) USING (p)
    QUALIFY place <= {CANDIDATES} ORDER BY p, place
"""


def _finished(
    db: duckdb.DuckDBPyConnection,
    places: Sequence[_Place],
    wording: Wording,
    seed: int,
    counts: RowCounts,
    interval: Interval | None = None,
) -> Iterator[Row]:
    """Yield the rows of the facts at some places, by subject and relation; with an interval, of changed facts."""
    file, row_number = (pa.array([place[i] for place in places], pa.int64()) for i in (0, 1))
    db.register("kept", pa.table({"file_index": file, "file_row_number": row_number}))
    pool: dict[int, list[str]] = {}
    for p, label, _ in db.execute(_POOL, {"seed": seed}).fetchall():
        if not unsafe_label(one_line(label)):
            pool.setdefault(p, []).append(one_line(label))
    for row in _rows(db, f"SELECT f.* FROM asked f JOIN kept USING ({_PLACE}) ORDER BY s, p"):
        template = wording(row["relation_id"], row["relation"])
        assert template is not None
        shown = None if interval is None else shown_by(row, template, interval)
        counts.kept += 1
        for name, key in (("kept_by_relation", row["relation_id"]), ("kept_by_change", shown)):
            if key is not None:
                by = counts.more.setdefault(name, {})
                by[key] = by.get(key, 0) + 1
        yield _row(row, pool.get(row["p"], []), template, shown)


def _place(row: Row) -> _Place:
    return row["file_index"], row["file_row_number"]


def _rows(db: duckdb.DuckDBPyConnection, query: str) -> Iterator[Row]:
    """Yield the rows of a query, with each label on one line."""
    for batch in db.sql(query).to_arrow_reader(4096):
        for row in batch.to_pylist():
            row |= {name: one_line(row[name]) for name in ("subject", "relation", "object")}
            row |= {name: [*map(one_line, row[name])] for name in ("objects", "objects_before", "gone_objects")}
            yield row


def _checked(rows: Iterable[Row], kind: str, wording: Wording, counts: RowCounts) -> Iterator[tuple[Row, str | None]]:
    """Yield the rows, each with the reason to drop it, or None.

    Rows of one subject and relation must be adjacent. They have the same cloze and answers, so only the first
    one without a reason to drop it is kept.
    """
    without_template = counts.more.setdefault("relations_without_template", {})
    asked: tuple[int, int] | None = None
    for row in rows:
        reason = reason_to_drop(row, kind, wording(row["relation_id"], row["relation"]))
        if reason == "relation_without_template":
            without_template[row["relation_id"]] = without_template.get(row["relation_id"], 0) + 1
        if reason is None:
            if (row["s"], row["p"]) == asked:
                reason = "same_subject_and_relation"
            asked = row["s"], row["p"]
        yield row, reason


def _row(row: Row, objects: Sequence[str], template: RelationTemplate, shown: str | None) -> Row:
    return {name: row[name] for name in SCHEMAS["live"].names if name in row} | {
        "shown_by": shown,
        "id": f"{row['subject_id']}-{row['relation_id']}",
        "statement": template.statement(row["subject"]),
        "question": template.ask(row["subject"]),
        "answers": right_answers(row),
        "aliases": other_names(row),
        "old_answers": distinct(row["gone_objects"]),
        "candidates": wrong_answers(row, objects)[:CANDIDATES],
        "template": template.cloze,
    }
