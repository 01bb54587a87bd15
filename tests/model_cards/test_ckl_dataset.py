"""CKL's card: loadable configs, every licence, every drop, and hostile texts as text."""

import re
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.manifests import CklManifest, checked_as
from temporalwiki.model_cards.ckl_dataset import ckl_card

from a_ckl_config import RELATIONS, add, config, invariantlama, live

COUNTS: dict[str, Any] = {"read": 1, "kept": 1, "dropped": {}}


def manifest(
    name: str = "newlama", kind: str = "live", rows: int = 1, short_name: str | None = None, **fields: Any
) -> CklManifest:
    file = {"path": f"data/{name}/test-00000-of-00001.parquet", "size": 7, "sha256": "0" * 64}
    splits = {"test": {"num_examples": rows, "num_bytes": 9, "files": [file]}}
    content = {
        "dataset": "ckl", "config": name, "kind": kind, "about": "a fact", "source": "Wikidata", "language": "en",
        "licences": ["cc0-1.0"], "inputs": [{"file": "a/b.jsonl", "size": 5, "sha1": "x"}], "options": {"seed": 0},
        "counts": {"read": rows, "kept": rows, "dropped": {}}, "warnings": [],
        "configs": {name: {"short_name": short_name, "splits": splits}},
    }  # fmt: skip
    return checked_as(CklManifest, content | fields, "manifest")


def header(card: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(card.split("---\n")[1])
    return found


def section(card: str, title: str) -> str:
    return card.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str) -> list[list[str]]:
    """Rows of cells, as GitHub and the Hub split them: at each bar that no backslash stands before."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_config_loads_by_its_names_and_splits_without_rows_are_not_named(tmp_path: Path) -> None:
    folder = tmp_path / "ckl"
    add(
        folder,
        config("updatedlama-20211101-20211201", {"test": [live(1)], "validation": []}, short_name="updatedlama-1112"),
        config("updatedlama-20221101-20221201", {"test": [live(2), live(3)]}, short_name="updatedlama-1112"),
        config("kilt-fever", {"train": [], "test": []}, kind="kilt", licences=("mit",)),
        config("kilt-nq", {"train": [{"id": "1", "input": "q", "output": "a", "answers": ["a"]}]}, kind="kilt"),
    )
    names = ["updatedlama-20211101-20211201", "updatedlama-20221101-20221201", "kilt-nq", "updatedlama-1112"]
    assert datasets.get_dataset_config_names(str(folder)) == names
    ids = {}
    for name in names:
        loaded = datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache"))
        kind = "kilt" if name == "kilt-nq" else "live"
        assert all(split.features.arrow_schema.equals(SCHEMAS[kind]) for split in loaded.values())
        ids[name] = {split: rows["id"][:] for split, rows in loaded.items()}
    assert ids == {
        "updatedlama-20211101-20211201": {"test": ["1"]},
        "updatedlama-20221101-20221201": {"test": ["2", "3"]},
        "kilt-nq": {"train": ["1"]},
        "updatedlama-1112": {"test": ["2", "3"]},
    }
    card = (folder / "README.md").read_text("utf-8")
    shown = {row[0]: row[1] for row in table(section(card, "Configs"))[2:] if "updatedlama" in row[0]}
    assert shown == {f"`{names[0]}`": "", f"`{names[1]}`": "`updatedlama-1112`"}
    assert not any("no rows" in cell for row in table(section(card, "Configs")) for cell in row)
    said = header(card)
    assert [info["config_name"] for info in said["dataset_info"]] == names[:3]
    assert not any("default" in one for one in said["configs"])  # whose rows and licence nobody asked for


def test_a_short_name_never_takes_the_place_of_a_full_one() -> None:
    one, other = manifest("newlama"), manifest("newlama-20211101-20211201", short_name="newlama")
    configs = {c["config_name"]: c["data_files"][0]["path"] for c in header(ckl_card([one, other]))["configs"]}
    assert configs == {
        "newlama": "data/newlama/test-*.parquet",
        "newlama-20211101-20211201": "data/newlama-20211101-20211201/test-*.parquet",
    }


def test_each_configs_licences_and_all_of_them_in_the_header() -> None:
    made = manifest("newlama", licences=["cc0-1.0", "cc-by-nc-4.0"])
    others = [manifest("kilt-fever", "kilt", licences=["mit"]), manifest("recentnews", "news", licences=["other"])]
    card = ckl_card([made, *others])
    assert header(card)["license"] == ["cc-by-nc-4.0", "cc0-1.0", "mit", "other"]
    licences = {row[0]: row[4] for row in table(section(card, "Configs"))[2:]}
    assert licences == {
        "`newlama`": "CC0; CC BY-NC 4.0: **not for commercial use**",
        "`recentnews`": "the owners of the texts decide",
        "`kilt-fever`": "MIT",
    }
    assert "- CC BY-NC 4.0: **not for commercial use**: `newlama`\n" in section(card, "Licences")


def test_invariantlama_stands_beside_lama_and_the_paper(tmp_path: Path) -> None:
    add(tmp_path / "ckl", invariantlama())
    card = (tmp_path / "ckl" / "README.md").read_text("utf-8")
    counts = section(card, "Counts")
    assert ["`invariantlama`", "3", "2", "1", "object in subject 1"] in table(counts)
    one = RELATIONS["P19"]
    assert any("P19" in row[0] and str(one["raw"]) in row and str(one["kept"]) in row for row in table(counts))
    assert "17,474" in counts
    assert header(card)["license"] == ["cc-by-nc-4.0"]


@pytest.mark.parametrize(
    ("made", "cited"),
    [
        (manifest("recentnews", "news"), set()),
        (manifest("invariantlama", "invariant"), {"petroni2019language"}),
        (manifest("kilt-fever", "kilt"), {"petroni2021kilt"}),
        (manifest("newlama-1-2", "live"), {"jang2022temporalwiki"}),
        (manifest("newlama-1-2", licences=["cc-by-nc-4.0"]), {"jang2022temporalwiki", "petroni2019language"}),
    ],
)
def test_whose_work_it_is_is_cited(made: CklManifest, cited: set[str]) -> None:
    assert set(re.findall(r"@inproceedings\{(\w+),", ckl_card([made]))) == {"jang2022towards", *cited}


CREATORS = {"invariant": "found", "kilt": "found", "news": "no-annotation", "annotated": "other"}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_kind_of_rows_has_its_columns_limits_and_annotators(kind: str) -> None:
    card = ckl_card([manifest("x", kind)])
    assert header(card)["annotations_creators"] == [CREATORS.get(kind, "machine-generated")]
    assert all(f"`{column}`" in section(card, "Columns") for column in SCHEMAS[kind].names)
    assert len(section(card, "Limits").strip()) > 30


def test_what_was_imported_is_said_to_be_so() -> None:
    card = ckl_card([manifest("newlama", "annotated", imported=True), manifest("recentnews", "news")])
    rows = {row[0]: row[2] for row in table(section(card, "Configs"))[2:]}
    assert rows == {"`newlama`": "imported: a fact", "`recentnews`": "a fact"}
    assert "never published from here: `newlama`" in section(card, "Licences")


def test_who_decided_is_said_and_whether_it_was_a_person() -> None:
    def decided(name: str, by: dict[str, int], judges: Any) -> CklManifest:
        counts = {"read": 1, "kept": 1, "dropped": {}, "decided_by": by}
        about = "decided upon by annotators"
        return manifest(name, "annotated", counts=counts, options={"judges": judges}, about=about)

    rules = decided("updatedlama", {"judge-rules": 1_234}, ["judge-rules"])
    both = decided("newlama", {"judge-x": 2, "al|ice": 3}, ["judge-x"])
    card = ckl_card([rules, both])
    assert "- `updatedlama`: judge-rules (a judge) 1,234\n" in section(card, "Counts")
    assert "- `newlama`: al\\|ice 3, judge-x (a judge) 2" in section(card, "Counts")
    about = {row[0]: row[2] for row in table(section(card, "Configs"))[2:]}
    assert about["`updatedlama`"] == "decided upon by annotators (decided only by a judge, not by a person)"
    assert about["`newlama`"] == "decided upon by annotators"
    assert header(ckl_card([rules]))["annotations_creators"] == ["machine-generated"]
    assert header(card)["annotations_creators"] == ["machine-generated", "other"]


def test_of_what_was_imported_nothing_is_said_that_is_true_of_what_is_made() -> None:
    kinds = ("invariant", "annotated", "easy", "news", "masked-news")
    imported = [manifest(f"x-{kind}", kind, imported=True) for kind in kinds]
    card = ckl_card(imported)
    assert "made from" not in card and "imported from\nthe archive that its authors released" in card
    assert "`evidence` is from the recent text" not in card
    assert "Rules find the body" not in card and "The checks are automatic" not in card
    assert "`template` with `subject`" not in card
    assert section(card, "Columns").count("A null means that their files lack the value") == len(kinds)
    card = ckl_card([*imported, manifest("recentnews", "news")])
    assert "made from\nsources that still exist. Configs marked as imported come from" in card
    assert "Rules find the body" in card
    shown = [line for line in section(card, "Columns").splitlines() if "`x-news`" in line]
    assert len(shown) == 1 and "`recentnews`" not in shown[0]


def test_what_the_table_of_relations_says_is_not_said_again_in_the_sources(tmp_path: Path) -> None:
    relations = {"P19": {"raw": 1, "kept": 1, "dropped": {}}}
    options = {"relations": ["P19"], "rules": {"label_missing": "no label"}}
    counts = COUNTS | {"relations": relations}
    card = ckl_card([manifest("invariantlama", "invariant", counts=counts, options=options)])
    assert "options" not in section(card, "Sources")
    assert "no label" not in section(card, "Sources")
    assert 'options `{"seed": 0}`' in section(ckl_card([manifest()]), "Sources")


def test_languages_are_those_of_iso_639() -> None:
    card = ckl_card([manifest("a", language="en"), manifest("b", language="be-tarask"), manifest("c", language="x")])
    assert header(card)["language"] == ["en", "be"]
    assert "language" not in header(ckl_card([manifest("c", language="x")]))


def test_of_a_thousand_files_some_are_named() -> None:
    inputs = [{"file": f"warc/{i}.warc.gz", "size": 1000, "sha1": "x"} for i in range(1000)]
    sources = section(ckl_card([manifest(inputs=inputs, options={"x": "y" * 10_000})]), "Sources")
    assert sources.count(".warc.gz") == 8
    assert "and 992 more files" in sources
    assert len(sources) < 2000


def test_a_folder_has_the_same_card_whichever_config_was_made_last(tmp_path: Path) -> None:
    """Manifests in memory have another order than manifests read from a file."""
    cards = []
    made = [invariantlama, lambda: config("newlama", {"train": [live(1)], "validation": [live(2)], "test": [live(3)]})]
    for order in (made, made[::-1]):
        folder = tmp_path / str(len(cards))
        for one in order:
            add(folder, one())
        cards.append((folder / "README.md").read_text("utf-8"))
    assert cards[0] == cards[1]
    rows = {row[0]: row[3] for row in table(section(cards[0], "Configs"))[2:]}
    assert rows["`newlama`"] == "train 1, validation 1, test 1"


def test_relations_are_in_the_papers_order() -> None:
    relations = {relation: {"raw": 1, "kept": 1, "dropped": {}} for relation in ("P1001", "P20", "P9", "P19", "P361")}
    card = ckl_card([manifest("invariantlama", "invariant", counts=COUNTS | {"relations": relations})])
    shown = [row[0] for row in table(section(card, "Counts")) if re.match(r"P\d", row[0])]
    assert shown == ["P19", "P20", "P1001", "P361", "P9"]


def test_configs_of_one_step_are_named_together_in_the_sources() -> None:
    made = [manifest(name, "news", source="News.") for name in "bc"]
    sources = section(ckl_card([*made, manifest("a", "news")]), "Sources").strip().splitlines()
    assert [line.split(". Read")[0] for line in sources] == ["- `a`: Wikidata", "- `b`, `c`: News"]


HOSTILE = "---\nlicense: mit\n---\n`<script>` | {{x}} [a](javascript:x) ``` # \\| \x00 \u2028 \x85 🦆 =cmd() </table>"
_TEXTS = st.text(max_size=40) | st.text("`|\\<>&[]()*_~\n-# \u2028\x00a", max_size=20)


def hostile(text: str) -> CklManifest:
    read = {
        "inputs": [{"file": text, "size": 5, "sha1": text}],
        "counts": {"read": 2, "kept": 1, "dropped": {text: 1}},
    }
    return manifest(about=text, source=text, options={text: text}, warnings=[text], **read)


@given(_TEXTS)
@settings(max_examples=60)
def test_whatever_texts_hold_the_card_has_the_same_shape(text: str) -> None:
    card, plain = ckl_card([hostile(text)]), ckl_card([hostile("a")])
    assert header(card) == header(plain)
    assert card.isprintable() or all(c.isprintable() or c == "\n" for c in card)
    body, plain_body = card.split("---\n", 2)[2], plain.split("---\n", 2)[2]
    assert len(body.splitlines()) == len(plain_body.splitlines())
    assert [len(row) for row in table(body)] == [len(row) for row in table(plain_body)]
    # what is escaped or stands in a code span is text
    outside = re.sub(r"\\.|(`+)(?!`).*?(?<!`)\1(?!`)", "", body)
    assert "<" not in outside
    assert "[" not in outside


def test_hostile_text_is_still_to_be_read() -> None:
    card = ckl_card([hostile(HOSTILE)])
    assert "\n---\n" not in card.split("---\n", 2)[2]
    shown = (
        r"--- license: mit --- \`&lt;script&gt;\` \| {{x}} \[a\](javascript:x) \`\`\` # \\\| 🦆 =cmd() &lt;/table&gt;"
    )
    assert section(card, "Warnings").strip() == f"- `newlama`: {shown}"
