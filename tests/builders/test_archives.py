"""Released archives: what is recognised, what becomes of each row, and what is refused before anything is written."""

import csv
import functools
import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest

import temporalwiki
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders import archives, dataset_folder
from temporalwiki.builders.ckl.schemas import SCHEMAS as CKL_SCHEMAS
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.builders.dataset_folder import problems
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.parquet import read_rows
from temporalwiki.model_cards.folder_card import folder_card

from a_folder import contents
from a_month import add_month, article

FACTS = ("subject", "relation", "object")
CHANGED, UNCHANGED = "0801-0901_changed.csv", "0801-0901_unchanged.csv"
DIFFSET, NEXT_DIFFSET = "wikipedia_0809_gpt2.csv", "wikipedia_0910_gpt2.csv"
NEWS = "recent_news_small.csv"
UPDATED_ANSWERS = "updatedlama_val_answers.json"
import_archives = functools.partial(archives.import_archives, card=folder_card)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_probes_become_the_config_of_their_months(here: Path) -> None:
    write(here / "probes" / CHANGED, FACTS, [["Ann", "member of", "Roma"], ["NA", "color", "=white()"]])
    write(here / "probes" / UNCHANGED, FACTS, [["Bob", "born in", "Rome"]])
    said = list(import_archives([here / "probes"]))
    assert [line.split(": ", 1)[1] for line in said] == [
        "probes-20210801-20210901 (in short probes-0809), split unchanged: 1 of 1 rows",
        "probes-20210801-20210901 (in short probes-0809), split changed: 2 of 2 rows",
    ]
    nothing = dict.fromkeys(SCHEMAS["probes"].names)
    for name in ("probes-0809", "probes-20210801-20210901"):
        loaded = datasets.load_dataset("temporalwiki", name, cache_dir=str(here / "cache"))
        assert list(loaded["changed"]) == [
            nothing | {"subject": "Ann", "relation": "member of", "object": "Roma", "previous_objects": []},
            nothing | {"subject": "NA", "relation": "color", "object": "=white()", "previous_objects": []},
        ]
        fact = {"subject": "Bob", "relation": "born in", "object": "Rome", "kind": "unchanged", "previous_objects": []}
        assert list(loaded["unchanged"]) == [nothing | fact]
    ours = temporalwiki.load_dataset("probes-0809", cache_dir=str(here / "cache"))
    assert {split: len(rows) for split, rows in ours.items()} == {"changed": 2, "unchanged": 1}
    [manifest] = read_manifests(here / "temporalwiki")
    assert manifest.imported is True
    assert problems(here / "temporalwiki", manifest) == []


def test_a_diffset_becomes_texts_and_nothing_else(here: Path) -> None:
    long = "x" * 3_000_000
    rows = [["0", 'A "b"\n\nc </script>'], ["1", " \n"], ["2", long], ["3", long]]
    write(here / DIFFSET, ("", "text"), rows)
    [said] = import_archives([here / DIFFSET])
    assert said.endswith("20210901 (in short diffset-0809), split train: 3 of 4 rows, dropped 1: no text")
    loaded = list(datasets.load_dataset("temporalwiki", "diffset-0809", split="train", cache_dir=str(here / "cache")))
    assert [row.pop("text") for row in loaded] == ['A "b"\n\nc </script>', long, long]
    assert loaded == [dict.fromkeys(name for name in SCHEMAS["diffset"].names if name != "text")] * 3


def test_the_real_probes_are_all_there(here: Path, shared_data: Path) -> None:
    source = shared_data / "twiki_probes_0809"
    list(import_archives([source]))
    for split, number in (("changed", 1776), ("unchanged", 6935)):  # the paper's Table 2
        path = here / "temporalwiki" / "data" / "probes-20210801-20210901" / f"{split}-00000-of-00001.parquet"
        rows = [tuple(row[column] for column in FACTS) for row in read_rows([path])]
        with (source / f"0801-0901_{split}.csv").open(encoding="utf-8", newline="") as file:
            assert rows == [tuple(row) for row in csv.reader(file)][1:]
        assert len(rows) == number


def test_facts_that_are_kept_and_dropped(here: Path) -> None:
    fact = ["a", "b", "c"]
    write(here / CHANGED, FACTS, [fact, ["a", "b", " c"], fact, ["", "b", "c"], ["a", " ", "c"], ["a", "b", "\n"]])
    write(here / UNCHANGED, FACTS, [fact, ["d", "e", "f"]])
    said = list(import_archives([here / CHANGED, here / UNCHANGED]))
    assert said[1].endswith(
        "split changed: 2 of 6 rows, dropped 1: no object, dropped 1: no relation, dropped 1: no subject, "
        "dropped 1: the same row again"
    )


def test_no_trace_is_left_of_a_failed_import(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_probes(here / "in")
    list(import_archives([here / "in"]))
    before = contents(here / "temporalwiki")
    (here / "in" / CHANGED).write_bytes(b'subject,relation,object\na,b,c\n"open\n')
    with pytest.raises(InputError, match=r"line 3: unexpected end of data"):
        list(import_archives([here / "in"]))
    write(here / "in" / CHANGED, FACTS, [["other", "b", "c"]])
    monkeypatch.setattr(dataset_folder, "_put", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(import_archives([here / "in"]))
    assert contents(here / "temporalwiki") == before
    assert sorted(path.name for path in here.iterdir()) == ["in", "temporalwiki"]


def test_a_zip_with_hostile_names_gives_the_same_data_and_no_other_file(here: Path) -> None:
    write_probes(here / "in")
    with zipfile.ZipFile(here / "x.zip", "w") as file:
        for name in (CHANGED, UNCHANGED):
            file.write(here / "in" / name, f"../../--- `x`\n| a |/{name}")
        file.writestr("a\x1b[31m.txt", "")
    around = sorted(here.parent.iterdir())
    said = list(import_archives([here / "x.zip"], here / "packed"))
    assert all(line.isprintable() for line in said)
    assert sorted(here.parent.iterdir()) == around
    list(import_archives([here / "in"], here / "loose"))
    loose, packed = ({k: v for k, v in contents(here / f).items() if "data/" in k} for f in ("loose", "packed"))
    assert loose == packed
    assert "--- `x`" not in (here / "packed" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("subject,relation,object\na,b,c\n", f"{CHANGED}: 1 rows, the released file has 1,776: was it cut off"),
        ("subject,relation,object\na,b,c\na,b,Rom", f"{CHANGED}: its last line has no end: was the file cut off?"),
    ],
)
def test_what_may_be_cut_off_is_warned_of(
    text: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here / "in" / UNCHANGED, FACTS, [[str(i), "b", "c"] for i in range(6935)])
    (here / "in" / CHANGED).write_text(text, "utf-8")
    list(import_archives([here / "in"]))
    warned = capsys.readouterr().err
    assert f"warning: probes-20210801-20210901: {said}" in warned
    assert UNCHANGED not in warned  # as many as were released
    [manifest] = read_manifests(here / "temporalwiki")
    assert any(said in warning for warning in manifest.warnings)


def test_what_was_built_is_not_overwritten(here: Path) -> None:
    add_month(here / "temporalwiki", "20210801", "20210901", [article(1)])
    add_month(here / "temporalwiki", "20211101", "20211201", [article(2)])
    before = contents(here / "temporalwiki")
    source = write_probes(here / "in")
    with pytest.raises(InputError, match=r"20210801-20210901 was made by `temporalwiki build`"):
        list(import_archives([source]))
    assert contents(here / "temporalwiki") == before


def test_what_is_imported_of_an_interval_adds_up_in_any_order(here: Path) -> None:
    write_probes(here / "a")
    write(here / "b" / DIFFSET, ("text",), [["t"]])
    write(here / "c" / NEXT_DIFFSET, ("text",), [["u"]])
    folders = [here / "a", here / "b", here / "c"]
    list(import_archives(folders, here / "at once"))
    wanted = contents(here / "at once")
    data = ("probes-20210801-20210901/changed", "probes-20210801-20210901/unchanged")
    data += ("diffset-20210801-20210901/train", "diffset-20210901-20211001/train")
    of_months = {f"manifests/{month}.json" for month in ("20210801-20210901", "20210901-20211001")}
    assert set(wanted) == {"README.md"} | of_months | {f"data/{name}-00000-of-00001.parquet" for name in data}
    for out, order in {"forward": folders, "backward": folders[::-1], "twice": [*folders, *folders]}.items():
        for folder in order:
            list(import_archives([folder], here / out))
        assert contents(here / out) == wanted


def test_what_was_imported_before_must_be_whole(here: Path) -> None:
    write_probes(here / "a")
    diffset = write(here / "b" / DIFFSET, ("text",), [["t"]])
    list(import_archives([here / "a"]))
    damaged = here / "temporalwiki" / "data" / "probes-20210801-20210901" / "changed-00000-of-00001.parquet"
    damaged.unlink()
    with pytest.raises(InputError, match=f"{damaged.name}: .*; import the files of probes-20210801-20210901 together"):
        list(import_archives([diffset]))
    list(import_archives([here / "a", diffset]))
    [manifest] = read_manifests(here / "temporalwiki")
    assert problems(here / "temporalwiki", manifest) == []


NEWS_SPANS = ("original", "input", "output")
EASY = ("unique_id", "statement", "question", "answer")
B_SPAN = "<extra_id_0> b <extra_id_1>"
BERN_SPAN = "<extra_id_0> Bern <extra_id_1>"
BERN_SPANS = f"{BERN_SPAN} Switzerland <extra_id_2>"
IT, WAS, WHAT = "It is <extra_id_0>.", "It was <extra_id_0>.", "What is it?"
ROME, BERN = "Rome is the capital of <extra_id_0> .", "Bern is the capital of <extra_id_0> ."
RED, BLUE = ["0", IT, WHAT, "red"], ["5", "A <extra_id_0>.", "", "b"]
CKL: dict[str, list[Any]] = {
    "invariantLAMA.csv": [
        ("id", "input", "output"),
        ["7", ROME, "Italy"],
        ["7", "Oslo is the capital of <extra_id_0> .", " Norway "],
        ["8", "Nothing here .", "x"],
        ["9", "", "y"],
        ["10", "A <extra_id_0>", " "],
        ["7", ROME, "Italy"],
    ],
    "updatedLAMA.csv": [
        ("unique_id", "statement", "new_answer", "question", "notes"),
        ["0", "<extra_id_0> leads.", "Ann", "Who leads?", "-"],
        ["1", "The coach is <extra_id_0>.", "Cy; the younger", "", "-"],
    ],
    "newLAMA.csv": [("Unique_ID", "Statement", "Answer"), ["0", "X won <extra_id_0>.", "gold"]],
    "newLAMA_easy.csv": [EASY, [*RED[:3], "red; scarlet;red;"], ["1", WAS, "", "blue"], ["2", "", "Why?", "because"]],
    "recent_news_full.csv": [NEWS_SPANS, ["a b c", "a <extra_id_0> c", B_SPAN], ["", "", ""], ["d", "", ""]],
    "recent_news_small.csv": [("original",), ["a b c"]],
    "recent_news_small1.csv": [("original",), ["a"]],
    "recent_news_small2.csv": [("original",), ["b"]],
    "newLAMA_easy_small.csv": [EASY, RED, BLUE],
    "newLAMA_easy_small_split1.csv": [EASY, RED],
    "newLAMA_easy_small_split2.csv": [EASY, BLUE],
    "trex_5000.csv": [("id", "input", "output"), ["1", BERN, "Switzerland"]],
    "newLAMA_easy_5000.csv": [EASY, ["9", "", "Who won?", "Ann;Ann B"]],
    "wikipedia_pretrain_full.csv": [
        ("input", "output"),
        ["<extra_id_0> lies in <extra_id_1>.", BERN_SPANS],
        ["no span", ""],
        ["", ""],
    ],
    "wikipedia_pretrain_small.csv": [NEWS_SPANS, ["Bern  lies.", "<extra_id_0> lies.", BERN_SPAN]],
}


def row(id: int | str, statement: str | None = None, answers: str | list[str] = "", **more: Any) -> dict[str, Any]:
    """A row of a config; ``answers`` in one string have semicolons between them."""
    given = {"statement": statement, "answers": answers.split(";") if isinstance(answers, str) else answers}
    return {"id": str(id)} | {name: value for name, value in given.items() if value not in (None, [""])} | more


# What each config is to hold, by hand from the rows above; all else is null.
TEST: dict[str, list[dict[str, Any]]] = {
    "invariantlama": [
        row(7, ROME, object="Italy"),
        row("7-2", "Oslo is the capital of <extra_id_0> .", object="Norway"),
        row(8, "Nothing here .", object="x"),
    ],
    "updatedlama": [
        row(0, "<extra_id_0> leads.", "Ann;Ann B", question="Who leads?", old_answers=["Bo"]),
        row(1, "The coach is <extra_id_0>.", answers=["Cy; the younger"], old_answers=[]),
    ],
    "newlama": [row(0, "X won <extra_id_0>.", "gold", old_answers=[])],
    "newlama-easy": [row(0, IT, "red;scarlet", question=WHAT), row(1, WAS, "blue")],
    "newquestions-easy": [row(0, IT, "red;scarlet", question=WHAT), row(2, None, "because", question="Why?")],
    "newlama-easy-small": [row(0, IT, "red", question=WHAT), row(5, "A <extra_id_0>.", "b")],
    "newlama-easy-small-p1": [row(0, IT, "red", question=WHAT)],
    "newlama-easy-small-p2": [row(5, "A <extra_id_0>.", "b")],
}
TRAIN: dict[str, list[dict[str, Any]]] = {
    "recentnews": [
        row(1, text="a b c", input="a <extra_id_0> c", output=B_SPAN),
        row(3, text="d", input="", output=""),
    ],
    "recentnews-small": [row(1, text="a b c")],
    "recentnews-small-p1": [row(1, text="a")],
    "recentnews-small-p2": [row(1, text="b")],
    "lighttuning-invariantlama": [row(1, BERN, object="Switzerland")],
    "lighttuning-newquestions-easy": [row(9, None, "Ann;Ann B", question="Who won?")],
    "wikipedia": [
        row(1, text="Bern lies in Switzerland.", input="<extra_id_0> lies in <extra_id_1>.", output=BERN_SPANS),
        row(2, text="no span", input="no span", output=""),
    ],
    "wikipedia-small": [row(1, text="Bern  lies.", input="<extra_id_0> lies.", output=BERN_SPAN)],
}
WANTED = {config: (split, rows) for split, of in (("test", TEST), ("train", TRAIN)) for config, rows in of.items()}


def test_ckl_files_become_configs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (header, *rows) in CKL.items():
        write(here / "data" / "lama" / name, header, rows)
    answers = {"0": [{"old": ["Bo", " Bo "], "new": ["Ann", "Ann B"]}], "99": [{"old": [], "new": ["?"]}]}
    (here / "data" / UPDATED_ANSWERS).write_text(json.dumps(answers), "utf-8")
    (here / "data" / "nq_val_answers.json").write_text("{}", "utf-8")
    said = list(import_archives([here / "data"]))
    assert said[-1] == "not imported, unknown: nq_val_answers.json"
    assert len(said) == len(WANTED) + 1
    for config, (split, rows) in WANTED.items():
        loaded = datasets.load_dataset("ckl", config, cache_dir=str(here / "cache"))
        assert list(loaded) == [split]
        nothing = dict.fromkeys(loaded[split].column_names)
        assert list(loaded[split]) == [nothing | row for row in rows], config
    kinds = {manifest.config: manifest.kind for manifest in read_manifests(here / "ckl")}
    assert (kinds["recentnews"], kinds["recentnews-small"]) == ("masked-news", "news")
    assert set(kinds.values()) <= set(CKL_SCHEMAS)
    counts = {manifest.config: manifest.content["counts"] for manifest in read_manifests(here / "ckl")}
    dropped = {"no output": 1, "no input": 1, "the same row again": 1}
    assert counts["invariantlama"] == {"read": 6, "kept": 3, "dropped": dropped}
    warned = capsys.readouterr().err
    said = f"updatedlama: 1 rows have no answers in {UPDATED_ANSWERS}, so the answers in updatedLAMA.csv count"
    assert said in warned
    assert "invariantlama: 1 rows have not exactly one <extra_id_0>, so they cannot be asked" in warned
    assert "newlama: no recentlama_h_val_answers.json: all answers are from newLAMA.csv" in warned


def test_what_ckl_made_is_not_overwritten_but_what_was_imported_is(here: Path) -> None:
    source = write(here / "newLAMA.csv", ("unique_id", "statement", "answer"), [["0", "X won <extra_id_0>.", "gold"]])
    list(import_archives([source]))
    before = contents(here / "ckl")
    list(import_archives([source]))
    assert contents(here / "ckl") == before
    path = here / "ckl" / "manifests" / "newlama.json"
    path.write_text(path.read_text("utf-8").replace('"imported": true', '"imported": false'), "utf-8")
    with pytest.raises(InputError, match=r"already has newlama, built by `temporalwiki ckl`"):
        list(import_archives([source]))


@pytest.mark.parametrize(
    ("text", "said"),
    {
        "[": "not a file with answers by id",
        '["a"]': "not a file with answers by id: Expected `object`",
        '{"0": "a"}': "not a file with answers by id",
        '{"0": [{"old": "a"}]}': "not a file with answers by id",
        '{"0": ' + "[" * 100_000 + "]" * 100_000 + "}": "not a file with answers by id",
    }.items(),
)
def test_answers_that_are_none(here: Path, text: str, said: str) -> None:
    write(here / "a" / "updatedLAMA.csv", ("unique_id", "statement", "new_answer"), [["0", "<extra_id_0>", "a"]])
    (here / "a" / UPDATED_ANSWERS).write_text(text, "utf-8")
    with pytest.raises(InputError, match=f"{UPDATED_ANSWERS}: {said}"):
        list(import_archives([here / "a"]))
    assert not (here / "ckl").exists()


def test_both_kinds_need_two_folders(here: Path) -> None:
    write_probes(here / "a")
    write(here / "a" / "newLAMA.csv", ("unique_id", "statement", "answer"), [["0", "<extra_id_0>", "a"]])
    with pytest.raises(UsageError, match="need two dataset folders"):
        list(import_archives([here / "a"], here / "out"))
    assert not (here / "out").exists()
    assert len(list(import_archives([here / "a"]))) == 3
    assert (here / "temporalwiki").is_dir() and (here / "ckl").is_dir()


REFUSED = {
    "nothing of it": ({"notes.txt": "a"}, ["."], "archive; `temporalwiki import --help` names the files"),
    "an empty folder": ({}, ["."], "no CSV file of a released archive"),
    "a misspelled name": ({"recent_newssmall.csv": "a"}, ["recent_newssmall.csv"], "mean recent_news_small.csv?"),
    "not a file": (
        {"updatedLLAMA.csv": "a", NEWS: "original\na\n"},
        ["updatedLLAMA.csv", NEWS],
        "updatedLLAMA.csv: no file of a released archive (did you mean updatedLAMA.csv?)",
    ),
    "a split is missing": (
        {CHANGED: "subject,relation,object\na,b,c\n"},
        ["."],
        f"{CHANGED}: {UNCHANGED} is missing; probes are imported with both splits",
    ),
    "two that differ": ({f"a/{NEWS}": "original\na\n", f"b/{NEWS}": "original\nb\n"}, ["."], f"two different {NEWS}"),
    "another header": (
        {NEWS: "original\na\n", "newLAMA.csv": "unique_id,statement,target\n"},
        ["."],
        "newLAMA.csv: the column answer is missing or there twice; the file has the columns unique_id, st",
    ),
    "no rows": ({NEWS: "original\n"}, ["."], f"{NEWS}: no rows to import of 0"),
    "only rows without text": ({NEWS: 'original\n" "\n'}, ["."], "no rows to import of 1"),
    "answers alone": ({UPDATED_ANSWERS: "{}"}, ["."], "no CSV file of a released archive"),
    "no such file": ({}, ["nowhere.zip"], "nowhere.zip: no such file or folder"),
}


@pytest.mark.parametrize(("files", "paths", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(files: dict[str, Any], paths: list[Any], said: str, here: Path) -> None:
    for name, text in files.items():
        (here / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "in" / name).write_text(text, "utf-8")
    (here / "in").mkdir(exist_ok=True)
    with pytest.raises(InputError) as refusal:
        list(import_archives([here / "in" / path for path in paths], here / "out"))
    assert said in str(refusal.value)
    assert [path.name for path in here.iterdir()] == ["in"]


def test_copies_of_a_file_are_one(here: Path) -> None:
    write(here / "a" / NEWS, ("original",), [["t"]])
    shutil.copytree(here / "a", here / "b")
    with zipfile.ZipFile(here / "b" / "x.zip", "w") as file:
        file.write(here / "a" / NEWS, f"data/{NEWS}")
    found, others = archives.recognise([here / "a", here / "b", here / "a" / NEWS])
    assert (list(found), others) == ([NEWS], [])


def test_a_folder_that_is_something_else(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "thesis.tex").touch()
    with pytest.raises(InputError, match="not a dataset folder"):
        list(import_archives([write(here / NEWS, ("original",), [["t"]])], here / "out"))
    assert [path.name for path in (here / "out").iterdir()] == ["thesis.tex"]


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_probes(folder: Path) -> Path:
    write(folder / CHANGED, FACTS, [["a", "b", "c"]])
    return write(folder / UNCHANGED, FACTS, [["d", "e", "f"]]).parent
