"""The card of the leaderboard's Space: hostile names are data, and the text matches the results."""

from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from temporalwiki.eval_harness.leaderboard.figures import Plot
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.results import Result
from temporalwiki.model_cards.space import space_card

import a_result
from a_row import make_row

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HOSTILE = [
    "</script>", "a: b # c", "\"'{[", "x\n---\nsdk: docker", "| x |", "`x`", "\\", "../../etc", "=cmd()", "\ud800",
    "\u202e", "😀 名",
]  # fmt: skip


def result(
    config: str = "probes-1112",
    dataset: str = "ORG/temporalwiki@2021.12",
    rows_hash: str = "aa",
    model: str = "ORG/diff",
    revision: str = COMMIT,
    task: str = "twiki_probes",
    rows: int = 5,
    version: str = "0.1.0",
) -> Result:
    data = {
        "task": {"name": task, "version": 1},
        "model": {"name": model, "revision": revision},
        "data": {"config": config, "dataset": dataset, "hash": rows_hash, "rows": {"changed": rows, "unchanged": 1}},
        "run": {"temporalwiki": version},
    }
    return a_result.from_content(Path("x.json"), data)


def parts(card: str) -> tuple[dict[str, Any], str]:
    header, body = card.removeprefix("---\n").split("\n---\n", 1)
    return yaml.safe_load(header), body


def table(body: str) -> list[list[str]]:
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("title", ["Leaderboard", "- x", "yes", "--- \n---\nsdk: docker", *HOSTILE])
def test_it_is_of_a_static_space_whatever_its_title_is(title: str) -> None:
    settings, _ = parts(space_card(title, []))
    assert settings["title"] == " ".join(title.replace("\ud800", "?").split())
    assert (settings["sdk"], settings["app_file"]) == ("static", "index.html")
    assert len(settings["short_description"]) <= 60  # the Hub's limit


def test_datasets_loads_the_scores_and_not_the_pictures(tmp_path: Path) -> None:
    board = tmp_path / "board"
    (board / "figures").mkdir(parents=True)
    for name in ("a.png", "b.png"):
        (board / "figures" / name).touch()
    pq.write_table(pa.table({"measure": ["learned", "forgotten"]}), board / "results.parquet")
    (board / "README.md").write_text(space_card("Leaderboard", []), "utf-8")
    loaded = datasets.load_dataset(str(board), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["measure"][:] == ["learned", "forgotten"]


def test_what_was_evaluated() -> None:
    results = [
        result(),
        result(task="lama", rows=7),
        result(model="models/lora", revision="0123456789abcdef"),
        result(config="probes-0102", dataset="/home/alice/secret/temporalwiki", rows_hash="bb", rows=1233),
        result(config="probes-0102", dataset="./data", rows_hash="bb", version="0.2.0"),
    ]
    _, body = parts(space_card("x", results))
    assert "5 results of 2 models, by temporalwiki `0.1.0`, `0.2.0`." in body
    assert table(body) == [
        ["`probes-0102`", "`twiki_probes 1`", "`data`", "6", "`bb`", "1"],
        ["`probes-0102`", "`twiki_probes 1`", "`temporalwiki`", "1,234", "`bb`", "1"],
        ["`probes-1112`", "`lama 1`, `twiki_probes 1`", "`ORG/temporalwiki@2021.12`", "8", "`aa`", "2"],
    ]
    assert "alice" not in body


NEWEST = "20211101-20211201"


def rows(label: str, known: float, tested: str = NEWEST, month: str | None = NEWEST, **more: Any) -> list[Row]:
    """Return which new facts a model knows, and that it knows 70 % of the old ones."""
    of = {"task": "learned_and_forgotten", "test": "all", "tested": tested, "month": month, "model": label, **more}
    of |= {"config": f"probes-{tested}", "label": label}
    return [
        make_row(**of, measure=measure, value=value, low=value - 1, high=value + 1)
        for measure, value in (("new_known", known), ("old_known", 70.0))
    ]


def test_every_method_has_a_line_or_is_named() -> None:
    found = [row for i in range(7) for row in rows(f"m{i}", float(i))]
    found += rows("mine", 9.0, month=None) + rows("twice", 8.0, runs=2)
    found += rows("no more", 99.0, competes=False) + rows("shuffled", 98.0, competes=False, control=True)
    found += rows("tested", 97.0, trained_on_test=True)
    found += rows("of another month", 99.0, "20201101-20201201", "20201101-20201201")
    found += rows("|trained on another", 99.0, month="20201101-20201201")
    _, body = parts(space_card("x", [], found))
    assert body == parts(space_card("x", [], found[::-1]))[1]
    lines = table(body.partition("- `index.html`")[0])
    assert [line[:2] for line in lines[:3]] == [["`mine`", "1"], ["`twice`", "2"], ["`m6`", "1"]]
    assert lines[0][2:] == ["9.00 [8.00, 10.00]", "70.00 [69.00, 71.00]", ""]
    assert [(line[0], line[4]) for line in lines[9:]] == [
        ("`no more`", "no more than by chance"),
        ("`shuffled`", "control"),
        ("`tested`", "trained on test data"),
    ]
    assert "probes-20211101-20211201" in body
    assert "not scored on its facts: `of another month`, `∣trained on another`." in body
    assert "The newest interval" not in parts(space_card("x", [result()]))[1]


def test_the_picture_of_the_page_is_on_the_card() -> None:
    plot = Plot("`diff` | learned *most*", "caption", lambda source: None)
    _, body = parts(space_card("x", [], [], {"fuar": plot, "learned_and_forgotten": plot}))
    assert r"![\`diff\` \| learned \*most\*](./figures/learned_and_forgotten.png)" in body
    assert "figures/" not in parts(space_card("x", [], [], {"fuar": plot}))[1].replace("`figures/`", "")


def test_one_model_is_one() -> None:
    assert "1 result of 1 model, by" in parts(space_card("x", [result()]))[1]


# (dataset, model, revision) -> datasets and models in the header
LINKS: dict[str, tuple[tuple[str, str, str], tuple[list[str] | None, list[str] | None]]] = {
    "both on the Hub": (("ORG/data@2021.12", "ORG/m", COMMIT), (["ORG/data"], ["ORG/m"])),
    "a dataset without a revision may be a folder": (("ORG/data", "ORG/m", COMMIT), (None, ["ORG/m"])),
    "an adapter on the Hub": (("ORG/data@main", "ORG/lora", f"{COMMIT}+{COMMIT}"), (["ORG/data"], ["ORG/lora"])),
    "an adapter in a folder": (("ORG/data@main", "runs/lora", f"{COMMIT[:16]}+{COMMIT}"), (["ORG/data"], None)),
    "a model in a folder": (("ORG/data@main", "ORG/m", COMMIT[:16]), (["ORG/data"], None)),
    "a model without an organisation": (("data", "gpt2", COMMIT), (None, ["gpt2"])),
    "names that the Hub refuses": (("a--b/../c@x", "/home/m", COMMIT), (None, None)),
    "a dataset's name needs an organisation": (("data@x", "a/b/c", COMMIT), (None, None)),
    "an empty revision": (("ORG/data@", "a b", COMMIT), (None, None)),
}


@pytest.mark.parametrize(("names", "expected"), LINKS.values(), ids=LINKS)
def test_what_is_on_the_hub_is_linked(names: tuple[str, str, str], expected: Any) -> None:
    dataset, model, revision = names
    settings, _ = parts(space_card("x", [result(dataset=dataset, model=model, revision=revision)]))
    assert (settings.get("datasets"), settings.get("models")) == expected


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_in_their_cells(name: str) -> None:
    hostile = result(config=name, dataset=name, rows_hash=name, model=name, task=name, version=name)
    settings, body = parts(space_card(name, [hostile]))
    body.encode("utf-8")
    assert not {"datasets", "models"} & settings.keys()
    (row,) = table(body)
    assert len(row) == 6 and row[5] == "1"
    for cell in (row[0], row[1], row[2], row[4]):
        # one code span, where Markdown and HTML have no meaning, or nothing
        assert cell == "" or (cell[0] == cell[-1] == "`" and cell.count("`") == 2 and len(cell) > 2)
    assert "\n---\n" not in body and "\u202e" not in body


def test_the_order_of_results_does_not_matter() -> None:
    results = [result(task=task, config=config) for task in ("a", "b") for config in ("probes-1", "probes-2")]
    assert space_card("x", results) == space_card("x", results[::-1])
