"""InvariantLAMA: clozes about facts that do not change, selected from LAMA's T-REx (CKL, section 3.1)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.config import CklConfig, Row, RowCounts, unique_id
from temporalwiki.builders.ckl.input_files import records
from temporalwiki.builders.ckl.templates import RelationTemplate, one_line, unsafe_label

# The 28 relations whose facts do not change (CKL, section 3.1 and its appendix).
RELATIONS = (
    "P19", "P20", "P279", "P37", "P449", "P47", "P138", "P364", "P527", "P176", "P27", "P407", "P30", "P178", "P1376",
    "P131", "P1412", "P17", "P276", "P937", "P140", "P103", "P190", "P1001", "P495", "P36", "P740", "P361",
)  # fmt: skip
PAPER_ROWS = 17_474
SOURCE = "https://dl.fbaipublicfiles.com/LAMA/data.zip"  # published by LAMA's authors; users download it themselves

# Reasons to drop a row, checked in this order. CKL has two rules: the subject must not contain the answer (Poerner et
# al. 2019), and the answer must be an entity, which the paper does not define.
RULES = {
    "label_missing": "subject or object has no label",
    "label_with_sentinel": "a label holds <extra_id_N>, the mark of a blank",
    "label_with_control_character": "a label holds a NUL, a control character, or one that turns its direction",
    "object_in_subject": "the object's label is part of the subject's, in upper or lower case",
    "object_not_capitalised": "the object's label does not begin with a capital letter: it names no entity",
    "duplicate": "subject and object have the same labels as in an earlier row of the relation",
}


class _Relation(msgspec.Struct):
    relation: str
    template: str


class _Fact(msgspec.Struct):
    predicate_id: str
    uuid: str | None = None
    sub_label: str | None = None
    obj_label: str | None = None


def invariantlama(lama: Path) -> CklConfig:
    """Return the config ``invariantlama`` from LAMA's ``relations.jsonl`` and ``TREx/P*.jsonl`` in ``lama``.

    Rows are in LAMA's order, relations in the paper's. ``statement`` keeps the white space of LAMA's template, which
    CKL's models read. ``counts.more["relations"]`` has the counts by relation. Raises InputError if a file is missing,
    and, when the rows are read, if one is damaged.
    """
    templates = read_templates(lama)
    lost = [relation for relation in RELATIONS if relation not in templates]
    if lost:
        raise InputError(f"{lama / 'relations.jsonl'}: no template for {', '.join(lost)}; use LAMA's original file")
    files = {relation: lama / "TREx" / f"{relation}.jsonl" for relation in RELATIONS}
    gone = [str(file.relative_to(lama)) for file in files.values() if not file.is_file()]
    if gone:
        raise InputError(f"{lama}: no {', '.join(gone)}; InvariantLAMA needs all {len(RELATIONS)} relations")
    counts = RowCounts(more={"relations": {}})
    return CklConfig(
        name="invariantlama",
        kind="invariant",
        splits={"test": _rows(files, templates, counts)},
        about="a cloze about a fact that does not change",
        licences=("cc-by-nc-4.0",),
        source="LAMA (Petroni et al. 2019, CC BY-NC 4.0): facts of T-REx and Wikidata with LAMA's templates; "
        "CKL (Jang et al. 2022) chose the relations",
        inputs=[lama / "relations.jsonl", *files.values()],
        options={"relations": list(RELATIONS), "rules": RULES},
        counts=counts,
    )


def read_templates(lama: Path) -> dict[str, str]:
    """Return LAMA's templates by relation, ``{"P19": "[X] was born in [Y] ."}``, from ``relations.jsonl``.

    Raises InputError if the file is missing or damaged, has a relation twice, or a template without exactly one [X]
    and one [Y].
    """
    path = lama / "relations.jsonl"
    if not path.is_file():
        raise InputError(
            f"{lama}: no relations.jsonl; give the folder of LAMA's data that has it and TREx/; it is in {SOURCE}"
        )
    templates: dict[str, str] = {}
    for number, record in records(path, _Relation):
        if record.relation in templates:
            raise InputError(f"{path}: line {number}: {record.relation} for the second time; use LAMA's original file")
        if record.template.count("[X]") != 1 or record.template.count("[Y]") != 1:
            raise InputError(f"{path}: line {number}: template {record.template!r}: needs exactly one [X] and one [Y]")
        templates[record.relation] = record.template
    return templates


def table(counts: Mapping[str, Any]) -> str:
    """Return a Markdown table of LAMA's rows, kept and dropped, by relation and in all, with the paper's number.

    ``counts`` is a manifest's ``counts``, or ``RowCounts.more`` after all rows have been read.
    """
    relations: Mapping[str, Mapping[str, Any]] = counts["relations"]
    found = {reason for of in relations.values() for reason in of["dropped"]}
    reasons = [reason for reason in RULES if reason in found] + sorted(found - RULES.keys())
    names = ["relation", "in LAMA", *(reason.replace("_", " ") for reason in reasons), "kept"]
    lines = [f"| {' | '.join(names)} |", "|---|" + "---:|" * (len(names) - 1)]
    rows = [
        [of["raw"], *(of["dropped"].get(reason, 0) for reason in reasons), of["kept"]] for of in relations.values()
    ]
    sums = [sum(column) for column in zip(*rows, strict=True)]
    for name, row in zip([*relations, f"all {len(relations)}"], [*rows, sums], strict=True):
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in row)} |")
    lines.append(f"| CKL (Jang et al. 2022) |{' |' * (len(names) - 2)} {PAPER_ROWS:,} |")
    return "\n".join(lines)


def _rows(files: Mapping[str, Path], templates: Mapping[str, str], counts: RowCounts) -> Iterator[Row]:
    ids: dict[str, int] = {}
    for relation, file in files.items():
        by_reason: dict[str, int] = {}
        of: dict[str, Any] = {"raw": 0, "kept": 0, "dropped": by_reason}
        counts.more["relations"][relation] = of
        template = RelationTemplate(templates[relation], question="")
        seen: set[tuple[str, str]] = set()
        for number, fact in records(file, _Fact):
            if fact.predicate_id != relation:
                raise InputError(f"{file}: line {number}: a fact of {fact.predicate_id!r} in the file of {relation}")
            counts.read += 1
            of["raw"] += 1
            subject, object = one_line(fact.sub_label or ""), one_line(fact.obj_label or "")
            id = unique_id(one_line(fact.uuid or "") or f"{relation}-{number}", ids)
            if reason := _reason(subject, object, seen):
                counts.drop(reason)
                by_reason[reason] = by_reason.get(reason, 0) + 1
                continue
            seen.add((subject, object))
            counts.kept += 1
            of["kept"] += 1
            yield {
                "id": id,
                "relation_id": relation,
                "subject": subject,
                "object": object,
                "statement": template.statement(subject),
                "template": template.cloze,
            }


def _reason(subject: str, object: str, seen: set[tuple[str, str]]) -> str | None:
    """Return why a fact is dropped, the first key of ``RULES`` that applies; None if it is kept."""
    if not subject or not object:
        return "label_missing"
    if reason := unsafe_label(subject) or unsafe_label(object):
        return reason
    if object.casefold() in subject.casefold():
        return "object_in_subject"
    if not object[0].isupper():
        return "object_not_capitalised"
    return "duplicate" if (subject, object) in seen else None
