"""KILT's datasets as rows for training and scoring."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl import kilt as module
from temporalwiki.builders.ckl.config import CklConfig, write
from temporalwiki.builders.ckl.kilt import NAMES, kilt
from temporalwiki.builders.parquet import read_rows
from temporalwiki.model_cards.folder_card import folder_card

QUESTION: dict[str, Any] = {"id": "1", "input": "who?", "output": [{"answer": "Ann"}]}
TRIVIA = "triviaqa_support_only"


def lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def nq(folder: Path, **splits: Sequence[Mapping[str, Any]]) -> Path:
    for split, part in (("train", "train"), ("validation", "dev"), ("test", "test_without_answers")):
        lines(folder / f"nq-{part}-kilt.jsonl", splits.get(split, []))
    return folder


def trivia(folder: Path, ids: Sequence[str], questions: Mapping[str, str]) -> Path:
    """TriviaQA as KILT has it, and its own archive."""
    with_answers = [{"id": id, "output": [{"answer": "Ann"}]} for id in ids]
    for part, records in (("train_id", with_answers), ("dev_id", []), ("test_id_without_answers", [{"id": "t"}])):
        lines(folder / TRIVIA / f"triviaqa-{part}-kilt.jsonl", records)
    data = [{"QuestionId": id, "Question": text, "Answer": {"Value": "x"}} for id, text in questions.items()]
    for part, of in (("train", data), ("dev", []), ("test-without-answers", [{"QuestionId": "t", "Question": "so?"}])):
        path = folder / "triviaqa-rc" / "qa" / f"wikipedia-{part}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"Data": of, "Domain": "Wikipedia", "Version": 1.0}))
    return folder


def read(config: CklConfig) -> dict[str, list[dict[str, Any]]]:
    return {split: [dict(row) for row in rows] for split, rows in config.splits.items()}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([{"answer": "Ann"}], ["Ann"]),
        ([{"answer": "Ann", "provenance": [{"title": "x"}], "meta": {"score": 3}}], ["Ann"]),
        ([{"provenance": []}, {"answer": "Bo"}, {"answer": "Ann"}, {"answer": "Bo"}], ["Bo", "Ann"]),
        ([{"answer": " Ann\n"}, {"answer": "Ann"}, {"answer": "ann"}], ["Ann", "ann"]),
        ([{"answer": ""}, {"answer": None}, {"answer": "  "}, {"answer": "Ann"}], ["Ann"]),
        ([{"answer": '"=cmd()|</script>\0🎉'}], ['"=cmd()|</script>\0🎉']),
        ([{"answer": " "}, {"provenance": []}], None),
        ([], None),
        (None, None),
    ],
)
def test_the_first_answer_is_learnt_and_all_are_right(output: Any, expected: list[str] | None, tmp_path: Path) -> None:
    row = {"id": "1", "input": "who?", "output": output}
    [config] = kilt(nq(tmp_path, train=[row], validation=[row], test=[row]), "nq")
    split = [{"id": "1", "input": "who?", "output": expected[0], "answers": expected}] if expected else []
    asked: list[dict[str, Any]] = [{"id": "1", "input": "who?", "output": None, "answers": []}]
    # KILT keeps the answers of test secret
    assert read(config) == {"train": split, "validation": split, "test": asked}
    assert config.counts.dropped == ({} if expected else {"answer_missing": 2})


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_without_input_there_is_no_row(text: str | None, tmp_path: Path) -> None:
    [config] = kilt(nq(tmp_path, train=[QUESTION, QUESTION | {"input": text}], test=[{"id": "2"}]), "nq")
    assert [len(rows) for rows in read(config).values()] == [1, 0, 0]
    assert (config.counts.read, config.counts.kept, config.counts.dropped) == (3, 1, {"input_missing": 2})
    assert config.counts.more["splits"]["train"] == {"read": 2, "kept": 1}


@given(rows=st.lists(st.tuples(st.text(), st.text(), st.lists(st.none() | st.text(max_size=3)))))
def test_every_row_is_accounted_for(
    rows: list[tuple[str, str, list[str | None]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = [{"id": i, "input": text, "output": [{"answer": a} for a in output]} for i, text, output in rows]
    [config] = kilt(nq(tmp_path_factory.mktemp("any"), train=records), "nq")
    found = read(config)["train"]
    assert config.counts.read == len(rows) == len(found) + sum(config.counts.dropped.values())
    usable = [(i, text) for i, text, output in rows if text.strip() and any(a and a.strip() for a in output)]
    assert [(row["id"], row["input"]) for row in found] == [(i, text.strip()) for i, text in usable]
    for row in found:
        assert row["output"] == row["answers"][0]
        assert len(set(row["answers"])) == len(row["answers"])


def test_files_lie_in_one_folder_or_in_one_a_data_set(tmp_path: Path) -> None:
    nq(tmp_path)
    for part in ("dev", "test_without_answers"):
        lines(tmp_path / "wned" / f"wned-{part}-kilt.jsonl", [QUESTION])
    found = {config.name: list(read(config)) for config in kilt(tmp_path)}
    assert found == {"kilt-wned": ["validation", "test"], "kilt-nq": ["train", "validation", "test"]}
    assert [config.name for config in kilt(tmp_path, "wned")] == ["kilt-wned"]
    assert [config.name for config in kilt(tmp_path, "kilt-nq")] == ["kilt-nq"]


def test_sizes_other_than_kilts_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._SETS["nq"], "rows", (2, 0, 0))
    for n, warned in ((1, ["nq-train-kilt.jsonl has 1 rows; KILT released 2"]), (2, [])):
        [config] = kilt(nq(tmp_path / str(n), train=[QUESTION] * n), "nq")
        read(config)
        assert config.warnings == warned


def test_triviaqas_questions_are_in_its_own_archive(tmp_path: Path) -> None:
    folder = trivia(tmp_path, ["a", "b", "c"], {"c": "where? ", "a": "who 🎉?", "z": "other?", "b": " "})
    [config] = kilt(folder)
    rows = read(config)
    assert [(row["id"], row["input"]) for row in rows["train"]] == [("a", "who 🎉?"), ("c", "where?")]
    assert [(row["id"], row["input"], row["output"]) for row in rows["test"]] == [("t", "so?", None)]
    assert config.counts.dropped == {"question_not_in_triviaqa": 1}
    assert [file.name for file in config.inputs if file.suffix == ".json"] == [
        "wikipedia-train.json",
        "wikipedia-dev.json",
        "wikipedia-test-without-answers.json",
    ]


def test_triviaqa_with_its_questions_needs_no_archive(tmp_path: Path) -> None:
    for part in ("train_id", "dev_id", "test_id_without_answers", "train", "dev", "test_without_answers"):
        lines(tmp_path / f"triviaqa-{part}-kilt.jsonl", [] if "id" in part else [QUESTION])
    [config] = kilt(tmp_path, TRIVIA)
    assert [len(rows) for rows in read(config).values()] == [1, 1, 1]


def test_triviaqa_without_questions_says_what_to_do(tmp_path: Path) -> None:
    (trivia(tmp_path, ["a"], {}) / "triviaqa-rc" / "qa" / "wikipedia-dev.json").unlink()
    for name in (None, TRIVIA):
        with pytest.raises(InputError, match=r"dev_id-kilt\.jsonl: has no questions, .* unpack qa/ of TriviaQA's"):
            kilt(tmp_path, name)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"Data": [{"QuestionId": 1}]}', b'{"Data": "\xff"}', b"[" * 99_999]
)
def test_what_is_not_triviaqas_archive_is_said(data: bytes, tmp_path: Path) -> None:
    (trivia(tmp_path, ["a"], {}) / "triviaqa-rc" / "qa" / "wikipedia-train.json").write_bytes(data)
    [config] = kilt(tmp_path)
    with pytest.raises(InputError, match=r"wikipedia-train\.json: not a file of TriviaQA's archive: ."):
        read(config)


def test_what_is_not_kilt_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no dataset 'hotpot' \(did you mean hotpotqa\?\); it has fever, "):
        kilt(tmp_path, "hotpot")
    with pytest.raises(InputError, match=r"has none of KILT's files"):
        kilt(tmp_path)
    nq(tmp_path).joinpath("nq-dev-kilt.jsonl").unlink()
    for name in (None, "nq"):
        with pytest.raises(InputError, match=r"kilt-nq has no file for validation: .* nq-dev-kilt\.jsonl"):
            kilt(tmp_path, name)
    nq(tmp_path).joinpath("nq-train-kilt.jsonl").write_text('{"id": "1"}\n{"id": "2", "output": ["Ann"]}\n')
    [config] = kilt(tmp_path)
    with pytest.raises(InputError, match=r"nq-train-kilt\.jsonl: line 2: .*`\$\.output\[0\]`"):
        read(config)


@pytest.mark.parametrize("name", [name for name in NAMES if name != TRIVIA])
def test_kilt_as_it_was_published(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Compare with the files, read in another way, and with the sizes on the Hub."""
    folder = shared_data / "kilt"
    [config] = kilt(folder, name)
    manifest = write(config, tmp_path / "ckl", folder_card)
    released = json.loads((folder / "dataset_infos.json").read_text("utf-8"))[name]["splits"]
    splits = manifest.content["configs"][f"kilt-{name}"]["splits"]
    assert splits.keys() == released.keys()
    assert manifest.warnings == [
        f"{name}-{part}-kilt.jsonl has 5 rows; KILT released {released[split]['num_examples']:,}"
        for split, part in (("train", "train"), ("validation", "dev"), ("test", "test_without_answers"))
        if split in released
    ]
    for split in splits:
        part = {"train": "-train", "validation": "-dev", "test": "-test"}[split]
        [source] = [file for file in (folder / name).iterdir() if part in file.name]
        expected = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
        rows = list(read_rows([*(tmp_path / "ckl" / "data" / f"kilt-{name}").glob(f"{split}-*.parquet")]))
        assert [row["id"] for row in rows] == [line["id"] for line in expected]
        for row, line in zip(rows, expected, strict=True):
            answers = [one["answer"].strip() for one in line.get("output", []) if one.get("answer")]
            assert row["input"] == line["input"].strip()
            assert row["output"] == (answers[0] if answers else None)
            assert row["answers"] == list(dict.fromkeys(answers))
