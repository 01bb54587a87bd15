"""InvariantLAMA: the kept facts of LAMA's 28 relations, and a reason for each dropped one."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.config import CklConfig, write
from temporalwiki.builders.ckl.invariantlama import (
    PAPER_ROWS,
    RELATIONS,
    RULES,
    _reason,
    invariantlama,
    read_templates,
    table,
)
from temporalwiki.builders.parquet import read_rows
from temporalwiki.model_cards.folder_card import folder_card

BLANK = "<extra_id_0>"
# subject, object, and the reason to drop the fact of P36, whose template is "[X] | [Y] ."
CASES: list[tuple[str | None, str | None, str | None]] = [
    ("France", "Paris", None),
    ("Pariser Becken", "Paris", "object_in_subject"),
    ("paris region", "PARIS", "object_in_subject"),
    ("STRASSE", "Straße", "object_in_subject"),
    ("Rome", "Rome, Italy", None),  # the reverse overlap is allowed
    ("water", "oxygen", "object_not_capitalised"),
    ("Podcast", "iTunes", "object_not_capitalised"),
    ("Battle", "1066", "object_not_capitalised"),
    ("water", "Oxygen", None),
    ("Norway", "Österbotten", None),
    ("France", "Paris", "duplicate"),
    ("  France ", "Paris\n", "duplicate"),
    ("France", "Lyon", None),  # another answer to the same cloze
    ("", "Paris", "label_missing"),
    ("France", " \t", "label_missing"),
    (None, "Paris", "label_missing"),
    ("France", None, "label_missing"),
    ("a <extra_id_0> b", "Paris", "label_with_sentinel"),
    ("France", "Paris<extra_id_99>", "label_with_sentinel"),
    ("<extra_id_x>", "Paris", None),
    ("[Y]", "Paris", None),
    ("[X] [Y]", "Paris", None),
    ('</script>"=cmd()|\\1{0}', "Paris", None),
    ("../../etc", "Paris", None),
    ("Zoë 🎉", "Paris", None),
    ("Zoë\0", "Paris", "label_with_control_character"),
    ("France", "Pa\u202eris", "label_with_control_character"),
    ("Fr\u2068ance", "Paris", "label_with_control_character"),
    ("New\u2028Jersey", "Tren\u2029ton", None),
    ("New Jersey", "Tren ton", "duplicate"),
    ("New\n  York", "Paris", None),
]


def lama(folder: Path, facts: Mapping[str, Iterable[Mapping[str, Any]]] | None = None, **templates: str) -> Path:
    """Write LAMA with a template and a file for each relation; only files of ``facts`` have lines."""
    (folder / "TREx").mkdir(parents=True)
    lines = [
        {"relation": relation, "template": templates.get(relation, "[X] | [Y] ."), "label": "", "type": "N-1"}
        for relation in (*RELATIONS, "P413")
    ]
    (folder / "relations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for relation in RELATIONS:
        rows = [{"predicate_id": relation} | dict(row) for row in (facts or {}).get(relation, [])]
        (folder / "TREx" / f"{relation}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def fact(subject: str | None, object: str | None, **fields: Any) -> dict[str, Any]:
    return {"sub_label": subject, "obj_label": object, **fields}


def read(config: CklConfig) -> list[dict[str, Any]]:
    assert list(config.splits) == ["test"]
    return [dict(row) for row in config.splits["test"]]


def test_each_fact_is_kept_or_dropped_by_a_rule(tmp_path: Path) -> None:
    facts = [fact(subject, object, uuid=f"u{i}", evidences=[{}]) for i, (subject, object, _) in enumerate(CASES)]
    config = invariantlama(lama(tmp_path / "lama", {"P36": facts}))
    rows = read(config)
    seen: set[tuple[str, str]] = set()
    for subject, object, why in CASES:
        labels = " ".join((subject or "").split()), " ".join((object or "").split())
        assert _reason(*labels, seen) == why
        seen |= set() if why else {labels}
    assert [row["id"] for row in rows] == [f"u{i}" for i, (_, _, why) in enumerate(CASES) if why is None]
    dropped = dict(Counter(why for _, _, why in CASES if why))
    assert dropped.keys() == RULES.keys()
    assert config.counts.dropped == dropped
    assert (config.counts.read, config.counts.kept) == (len(CASES), len(rows))
    assert config.counts.more["relations"] == {
        relation: {"raw": len(CASES), "kept": len(rows), "dropped": dropped}
        if relation == "P36"
        else {"raw": 0, "kept": 0, "dropped": {}}
        for relation in RELATIONS
    }
    for row in rows:
        subject, object, _ = CASES[int(row["id"][1:])]
        subject = " ".join((subject or "").split())
        assert row == {
            "id": row["id"],
            "relation_id": "P36",
            "subject": subject,
            "object": " ".join((object or "").split()),
            "statement": f"{subject} | {BLANK} .",
            "template": "[X] | [Y] .",
        }


def test_a_template_is_filled_in_as_it_stands(tmp_path: Path) -> None:
    facts = {"P190": [fact("Oslo [Y]", "Bergen", uuid="a")], "P19": [fact("Ann", "Oslo", uuid="b")]}
    templates = {"P190": "[Y]  and [X] are twin cities .", "P19": "[X] was born in [Y] ."}
    rows = read(invariantlama(lama(tmp_path / "lama", facts, **templates)))
    assert [(row["id"], row["statement"], row["template"]) for row in rows] == [
        ("b", f"Ann was born in {BLANK} .", "[X] was born in [Y] ."),  # relations in the paper's order
        ("a", f"{BLANK}  and Oslo [Y] are twin cities .", "[Y]  and [X] are twin cities ."),
    ]


def test_ids_are_lamas_and_unique(tmp_path: Path) -> None:
    facts = {
        "P19": [
            fact("A", "Oslo", uuid="u"),
            fact("B", "Oslo", uuid="u"),
            fact("C", "Oslo"),
            fact("D", "Oslo", uuid=""),
            *(fact(f"E{i}", "Oslo", uuid="u") for i in range(2)),
        ],
        "P20": [fact("A", "Oslo", uuid="u"), fact("B", "Oslo", uuid="u-2"), fact("C", "Oslo", uuid=None)],
    }
    rows = read(invariantlama(lama(tmp_path / "lama", facts)))
    assert [row["id"] for row in rows] == ["u", "u-2", "P19-3", "P19-4", "u-3", "u-4", "u-5", "u-2-2", "P20-3"]


def test_the_same_fact_of_two_relations_is_two_rows(tmp_path: Path) -> None:
    facts = {relation: [fact("Oslo", "Norway")] * 2 for relation in ("P17", "P131")}
    config = invariantlama(lama(tmp_path / "lama", facts))
    assert [row["relation_id"] for row in read(config)] == ["P131", "P17"]
    assert config.counts.dropped == {"duplicate": 2}


LABELS = st.one_of(
    st.none(), st.text(max_size=8), st.sampled_from(["Ann", "ANNA", "anna", "<extra_id_3>", "[Y]", " "])
)


@given(pairs=st.lists(st.tuples(st.sampled_from(["P19", "P361"]), LABELS, LABELS)))
def test_rows_hold_what_the_rules_say(
    pairs: list[tuple[str, str | None, str | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts = {of: [fact(s, o) for relation, s, o in pairs if relation == of] for of in ("P19", "P361")}
    config = invariantlama(lama(tmp_path_factory.mktemp("any") / "lama", facts))
    rows = read(config)
    counts = config.counts
    assert counts.read == len(pairs) == counts.kept + sum(counts.dropped.values())
    assert len({row["id"] for row in rows}) == len(rows) == counts.kept
    assert len({(row["relation_id"], row["subject"], row["object"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["statement"].count(BLANK) == 1
        assert row["statement"] == f"{row['subject']} | {BLANK} ."
        assert row["object"][0].isupper()
        assert row["object"].casefold() not in row["subject"].casefold()


P19 = '{"relation": "P19", "template": "[X] in [Y]"}\n'
P36 = '{"predicate_id": "P36", "sub_label": "A", "obj_label": "B"}\n'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("relations.jsonl", None, r"no relations\.jsonl; give the folder"),
        ("relations.jsonl", P19, r"relations\.jsonl: no template for P20, P279"),
        ("relations.jsonl", P19 + "\n" + P19, r"relations\.jsonl: line 3: P19 for the second time"),
        ("relations.jsonl", P19.replace("[X]", ""), r"line 1: template .* exactly one \[X\] and one \[Y\]"),
        ("relations.jsonl", P19.replace("[X]", "[Y]"), r"line 1: template .* exactly one"),
        ("relations.jsonl", '{"relation": "P19"}\n', r"relations\.jsonl: line 1: .*`template`"),
        ("TREx/P740.jsonl", None, r"no TREx/P740\.jsonl; .* all 28 relations"),
        ("TREx/P36.jsonl", "{\n", r"P36\.jsonl: line 1: "),
        ("TREx/P36.jsonl", P36.replace("predicate_id", "id"), r"P36\.jsonl: line 1: .*`predicate_id`"),
        ("TREx/P36.jsonl", P36.replace("P36", "P20"), r"P36\.jsonl: line 1: a fact of 'P20' in the file of P36"),
        ("TREx/P36.jsonl", P36.replace('"B"', '["B"]'), r"P36\.jsonl: line 1: .*`\$\.obj_label`"),
    ],
)
def test_what_is_not_lama_is_said(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    folder = lama(tmp_path / "lama")
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=said):
        read(invariantlama(folder))


def test_templates_by_relation(tmp_path: Path) -> None:
    templates = read_templates(lama(tmp_path / "lama", P19="[X] was born in [Y] ."))
    assert templates.keys() == {*RELATIONS, "P413"}
    assert (templates["P19"], templates["P413"]) == ("[X] was born in [Y] .", "[X] | [Y] .")


def test_a_table_of_what_became_of_lamas_rows() -> None:
    relations = {
        "P19": {"raw": 1200, "kept": 1197, "dropped": {"duplicate": 1, "object_in_subject": 2}},
        "P20": {"raw": 3, "kept": 3, "dropped": {}},
    }
    assert table({"read": 1203, "relations": relations}).splitlines() == [
        "| relation | in LAMA | object in subject | duplicate | kept |",
        "|---|---:|---:|---:|---:|",
        "| P19 | 1,200 | 2 | 1 | 1,197 |",
        "| P20 | 3 | 0 | 0 | 3 |",
        "| all 2 | 1,203 | 2 | 1 | 1,200 |",
        "| CKL (Jang et al. 2022) | | | | 17,474 |",
    ]


def test_it_is_written_with_its_licence_and_its_counts(tmp_path: Path) -> None:
    facts = {"P19": [fact("Ann", "Oslo"), fact("Oslo man", "Oslo")]}
    config = invariantlama(lama(tmp_path / "lama", facts))
    manifest = write(config, tmp_path / "ckl", folder_card)
    assert manifest.licences == ["cc-by-nc-4.0"]
    assert manifest.content["counts"]["relations"]["P19"] == {"raw": 2, "kept": 1, "dropped": {"object_in_subject": 1}}
    assert {file["file"] for file in manifest.content["inputs"]} == {
        "relations.jsonl",
        *(f"{relation}.jsonl" for relation in RELATIONS),
    }
    [row] = read_rows([*(tmp_path / "ckl" / "data" / "invariantlama").glob("test-*.parquet")])
    assert row["statement"] == f"Ann | {BLANK} ."
    assert table(manifest.content["counts"]) in (tmp_path / "ckl" / "README.md").read_text()


def test_lama_as_it_was_published(shared_data: Path) -> None:
    """Numbers of DESIGN, section 7: raw, after the overlap rule, after that for capitals; four rows come twice."""
    config = invariantlama(shared_data / "lama")
    rows = read(config)
    lost = Counter(config.counts.dropped)
    raw = config.counts.read
    overlap, capitals = lost["object_in_subject"], lost["object_not_capitalised"]
    assert (raw, raw - overlap, raw - overlap - capitals) == (24_052, 20_065, 18_577)
    assert lost - Counter(object_in_subject=overlap, object_not_capitalised=capitals) == Counter(duplicate=4)
    assert len(rows) == 18_573 > PAPER_ROWS
    assert set(RELATIONS) == {row["relation_id"] for row in rows}
    assert len(RELATIONS) == 28
    for relation, of in config.counts.more["relations"].items():  # an independent count: the lines of the files
        with (shared_data / "lama" / "TREx" / f"{relation}.jsonl").open("rb") as file:
            assert of["raw"] == sum(1 for _ in file) == of["kept"] + sum(of["dropped"].values())
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(len(re.findall("<extra_id_", row["statement"])) == 1 for row in rows)
    born = next(row for row in rows if row["subject"] == "Anthony Barber" and row["relation_id"] == "P19")
    assert (born["object"], born["statement"]) == ("Doncaster", f"Anthony Barber was born in {BLANK} .")
