"""Result files: their paths, their content, and their tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness import results
from temporalwiki.eval_harness.results import Outcome, path_of, read_result, read_results, table, write_result
from temporalwiki.eval_harness.statistics import Estimate

from a_result import from_content
from a_stop import Killed

WHAT: dict[str, dict[str, Any]] = {
    "task": {"name": "twiki_probes", "version": 1, "options": {"beams": 1}},
    "model": {"name": "runs/lora", "revision": "abc", "precision": "fp32"},
    "data": {"dataset": "temporalwiki", "config": "probes-1112", "rows": {"changed": 2}, "hash": "def"},
}
ITEMS = [{"id": "1", "cluster": "Q1", "nll": 1.5}, {"id": "2", "cluster": "Q2", "nll": 2.5, "answer": "Easton"}]
OUTCOME = Outcome({"changed/perplexity": Estimate(12.345, 10.0, 1234.5, 2, 2)}, ITEMS, {"too long": 3, "none": 0})


def changed(part: str, name: str, value: Any) -> dict[str, dict[str, Any]]:
    return {**WHAT, part: {**WHAT[part], name: value}}


# Paths


def test_the_path_is_readable() -> None:
    path = path_of(Path("results"), WHAT)
    assert path.parent.parent == Path("results")
    assert path.parent.name.startswith("lora-")
    assert path.name.startswith("probes-1112.twiki_probes.")
    assert path.suffix == ".json"


SAME = {
    "the model, from elsewhere": ("model", "name", "./runs/../runs/lora/"),
    "a copy of the model": ("model", "name", "/elsewhere/lora"),
    "what is known of its training": ("model", "method", "lora"),
    "the data, from elsewhere": ("data", "dataset", "/elsewhere/temporalwiki"),
}


@pytest.mark.parametrize("case", SAME)
def test_where_model_and_data_are_does_not(case: str) -> None:
    assert path_of(Path("results"), changed(*SAME[case])) == path_of(Path("results"), WHAT)


HOSTILE = ["..", ".", "", "/", "../../etc", "a/../..", "a\nb", "東京", "a b", "-rf", "package:llm-x", "C:\\x"]


@pytest.mark.fault(
    "hostile titles", "models and configs whose names are paths to other folders", "their results stay in the folder"
)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(("part", "key"), [("model", "name"), ("data", "config")])
def test_a_hostile_name_stays_in_the_folder(part: str, key: str, name: str, tmp_path: Path) -> None:
    path = path_of(tmp_path, changed(part, key, name))
    assert path.resolve().parent.parent == tmp_path.resolve()
    write_result(path, WHAT, OUTCOME, {})
    assert [result.path for result in read_results(tmp_path)] == [path]


def test_models_are_named_as_people_name_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lora").mkdir()
    monkeypatch.chdir(tmp_path / "lora")
    names = {
        "openai-community/gpt2": "gpt2",
        "x/model.gguf": "model.gguf",
        "package:llm-x": "package-llm-x",
        ".": "lora",
    }
    for name, shown in names.items():
        assert path_of(Path("results"), changed("model", "name", name)).parent.name.rpartition("-")[0] == shown


# Content


def test_it_holds_what_was_found_and_how(tmp_path: Path) -> None:
    path = path_of(tmp_path, WHAT)
    write_result(path, WHAT, OUTCOME, {"seconds": 1.0})
    assert json.loads(path.read_text("utf-8")) == {
        "schema": 1,
        **WHAT,
        "scores": {
            "changed/perplexity": {
                "value": 12.345,
                "low": 10.0,
                "high": 1234.5,
                "items": 2,
                "clusters": 2,
                "relations": None,
            }
        },
        "excluded": {"too long": 3},
        "run": {"seconds": 1.0},
    }
    result = read_result(path)
    assert result.data["schema"] == results.SCHEMA
    # an item has every figure that any item has
    assert result.items() == [{**ITEMS[0], "answer": None}, ITEMS[1]]


def test_the_same_has_the_same_bytes_but_for_the_run(tmp_path: Path) -> None:
    files = []
    for run in ({"seconds": 1.0}, {"seconds": 2.0}):
        path = path_of(tmp_path / str(run["seconds"]), WHAT)
        write_result(path, dict(reversed(WHAT.items())), OUTCOME, run)
        text = json.loads(path.read_text("utf-8"))
        assert text.pop("run") == run
        files.append((json.dumps(text), path.with_suffix(".parquet").read_bytes()))
    assert files[0] == files[1]


def test_a_result_counts_when_all_of_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: Any) -> None:
        raise Killed

    path = path_of(tmp_path, WHAT)
    monkeypatch.setattr(results, "write_json", kill)
    with pytest.raises(Killed):
        write_result(path, WHAT, OUTCOME, {})
    assert not path.exists()
    assert path.with_suffix(".parquet").exists()


NO_RESULT: dict[str, bytes] = {
    "nothing": b"",
    "half of one": b'{"data": {',
    "not text": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "null": b"null",
    "another file": b'{"schema": 1, "task": {}}',
    "no schema": json.dumps({**WHAT, "scores": {}, "excluded": {}}).encode(),
}


@pytest.mark.parametrize("case", NO_RESULT)
def test_what_is_no_result_is_named(case: str, tmp_path: Path) -> None:
    path = tmp_path / "lora" / "x.json"
    path.parent.mkdir()
    path.write_bytes(NO_RESULT[case])
    for read in (read_result, lambda path: read_results(path.parent.parent)):
        with pytest.raises(InputError, match=f"{path}: not a result file"):
            read(path)


def test_a_later_schema_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(tmp_path, WHAT)
    monkeypatch.setattr(results, "SCHEMA", 2)
    write_result(path, WHAT, OUTCOME, {})
    monkeypatch.undo()
    with pytest.raises(InputError, match="schema 2, this version reads 1; update"):
        read_result(path)


def test_all_results_of_a_folder_in_order(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{tmp_path}: no results in it; .*--output {tmp_path}"):
        read_results(tmp_path)
    for config in ("probes-1112", "probes-1011"):
        what = changed("data", "config", config)
        write_result(path_of(tmp_path, what), what, OUTCOME, {})
    assert [result.data["data"]["config"] for result in read_results(tmp_path)] == ["probes-1011", "probes-1112"]


# Tables


def shown(scores: dict[str, Any], excluded: dict[str, int] | None = None) -> list[str]:
    data = {**WHAT, "scores": {name: of.__dict__ for name, of in scores.items()}, "excluded": excluded or {}}
    return table([from_content(Path("x"), json.loads(json.dumps(data, sort_keys=True)))]).splitlines()


def test_a_table() -> None:
    scores = {
        "light-tuned/changed/exact_match": Estimate(50.0, 25.25, 100.0, 1200, 900),
        "changed/perplexity": Estimate(12.345, 10.0, 1234.5, 2, 2),
        "changed/exact_match": Estimate(0.0, 0.0, 0.0, 2, 2),
        "average/exact_match": Estimate(1.0, None, None, 1, 1),
        "unchanged/exact_match": Estimate(2.0, 1.0, 3.0, 1, 1),
        "unchanged/over_unchanged": Estimate(1.0, 0.5, 1.5, 1, 1),
    }
    rows = [
        ("", "perplexity", "exact_match %", "over_unchanged", "items"),
        ("average", "", "1.00 [one subject]", "", "1"),
        ("changed", "12.35 [10.00, 1,234]", "0.00 [0.00, 0.00]", "", "2"),
        ("unchanged", "", "2.00 [1.00, 3.00]", "1.00 [0.50, 1.50]", "1"),
        ("light-tuned/changed", "", "50.00 [25.25, 100.00]", "", "1,200"),
    ]
    assert shown(scores, {"too long": 1234}) == [
        "twiki_probes of runs/lora on probes-1112",
        *(f"{test:19}  {one:>20}  {two:>21}  {three:>17}  {items:>5}" for test, one, two, three, items in rows),
        "left out, too long: 1,234",
    ]


def test_a_wide_table_goes_on_below() -> None:
    measures = [name for name in results.MEASURES if not name.startswith("proper")]
    scores = {
        f"{test}/{name}": Estimate(1.0, 0.0, 2.0, 3, 3) for test in ("changed", "unchanged") for name in measures
    }
    lines = shown(scores)
    assert max(map(len, lines)) <= 120
    heads = [line for line in lines if line.startswith(" ")]
    assert len(heads) > 1
    words = [word for word in " ".join(heads).split() if word not in ("%", "nats")]
    assert words == [*measures, "items"]
    assert [line.split()[0] for line in lines if "1.00" in line] == ["changed", "unchanged"] * len(heads)


def test_few_rows_are_the_first_ones_of_each_result_and_the_others_are_counted(tmp_path: Path) -> None:
    scores = {f"{test}/f1": Estimate(1.0, 0.5, 1.5, 3, 3) for test in ("unchanged", "strict/changed", "average")}
    for config in ("probes-1112", "probes-1011"):
        what = changed("data", "config", config)
        write_result(path_of(tmp_path, what), what, Outcome(scores, ITEMS, {}), {})
    found = read_results(tmp_path)
    expected = {1: (1, 0), 2: (1, 1), 3: (2, 1), 5: (3, 2)}  # rows of each result
    tests = ["average", "unchanged", "strict/changed"]
    for most, counts in expected.items():
        *lines, last = table(found, most).splitlines()
        assert [line.split()[0] for line in lines if "[" in line] == [t for n in counts for t in tests[:n]]
        assert sum(line.startswith("twiki_probes of") for line in lines) == sum(map(bool, counts))
        assert last.startswith(f"{6 - most} more row{'s' * (most < 5)}: --all shows them")
    assert table(found, 6) == table(found)


def test_a_score_without_a_test_and_several_results(tmp_path: Path) -> None:
    for config in ("probes-1112", "probes-1011"):
        what = changed("data", "config", config)
        found = Outcome({"accuracy": Estimate(1.0, 0.5, 1.5, 3, 3)}, ITEMS, {})
        write_result(path_of(tmp_path, what), what, found, {})
    one, other = table(read_results(tmp_path)).split("\n\n")
    assert one.splitlines()[1:] == ["         accuracy %  items", "  1.00 [0.50, 1.50]      3"]
    assert other.splitlines()[0] == "twiki_probes of runs/lora on probes-1112"


@pytest.mark.fault("hostile JSON", "a score whose square is no number in a result", "one line names the file")
@pytest.mark.parametrize("score", [(1e155, None, None), (-1e200, None, None), (5, -1e155, 6), (5, 4, 1e308)])
def test_a_score_whose_square_is_no_number_is_refused(
    score: tuple[float, float | None, float | None], tmp_path: Path
) -> None:
    path = path_of(tmp_path, WHAT)
    write_result(path, WHAT, Outcome({"changed/perplexity": Estimate(*score, 2, 2)}, ITEMS, {}), {})
    with pytest.raises(InputError, match=r"a score or an end of its interval beyond 1e\+150"):
        read_result(path)
