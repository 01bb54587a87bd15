"""``temporalwiki ckl``: every config, the way of annotators, and errors."""

import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import datasets
import pytest
from dump_forms import write_page_props

from temporalwiki.api import ckl
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.ckl.schemas import CONFIGS
from temporalwiki.builders.dataset_folder import problems
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world

from a_folder import contents
from a_text_model import faithful
from tiny_ckl import decide, write_kilt, write_lama, write_news

Run = Callable[..., tuple[int, str, str]]
DATES = ("20211101", "20211201", "20220101")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny sources: LAMA, KILT, news, an older corpus and a dataset folder."""
    folder = tmp_path_factory.mktemp("sources")
    write_lama(folder / "lama")
    write_kilt(folder / "kilt")
    write_news(folder / "news.jsonl")
    (folder / "past.jsonl").write_text(json.dumps({"title": "Easton", "text": "Easton is a town."}) + "\n", "utf-8")
    (folder / "many.jsonl").write_text("".join(f'{{"id": {i}, "text": "Text {i}."}}\n' for i in range(99)), "utf-8")
    snapshots = write_world(folder / "dumps", World(people=60, dates=DATES, wikidata_dates=DATES))
    write_page_props(folder / "dumps", snapshots)
    for prev, recent in pairwise(DATES):
        sources = find_sources(folder / "dumps", Interval("enwiki", prev, recent))
        build(sources, folder / "temporalwiki", folder / "work", BuildOptions(unchanged_fraction=1))
    return folder


@pytest.fixture
def run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return partial(run, "ckl")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all models by one that rewrites nothing."""
    model = faithful()
    monkeypatch.setattr("temporalwiki.api.ckl._open_model", lambda name: model)


def test_every_config_is_made_and_loads_by_its_name(sources: Path, run: Run, tmp_path: Path, models: None) -> None:
    wiki = sources / "temporalwiki"
    commands = [
        ("invariantlama", "--lama", sources / "lama"),
        ("kilt", "--kilt", sources / "kilt"),
        ("recentnews", "--news", sources / "news.jsonl", "--small-share", "0.5"),
        ("newlama-easy", "--news", sources / "news.jsonl", "--past", sources / "past.jsonl", "--small-share", "0.5"),
        ("wikipedia", "--past", sources / "many.jsonl"),
        *((kind, "--probes", wiki) for kind in ("invariantlama", "updatedlama", "newlama")),
        ("updatedlama-1112", "--probes", wiki),
        ("newlama", "--news", sources / "news.jsonl", "--past", sources / "past.jsonl", "--review", "review"),
    ]
    for command in commands:
        status, _, err = run(*command)
        assert status == 0, err
    decide(tmp_path / "review")
    status, _, err = run("updatedlama", "--review", "review")  # and newlama
    assert status == 0, err
    live = {"updatedlama-1112", "updatedlama-1201", "newlama-1201", "invariantlama-1101"}
    folder = tmp_path / "ckl"
    assert {config.short_name for m in read_manifests(folder) for config in m.configs.values()} - {None} == live
    assert all(problems(folder, manifest) == [] for manifest in read_manifests(folder))
    for name in [*CONFIGS, *live]:
        loaded = datasets.load_dataset(str(folder), name)
        assert sum(loaded.num_rows.values()) > 0, name
    columns = datasets.load_dataset(str(folder), "invariantlama")["test"].column_names
    assert columns == ["id", "relation_id", "subject", "object", "statement", "template"]
    assert datasets.load_dataset(str(folder), "recentnews")["train"].column_names == [
        "id", "url", "title", "text", "published",
    ]  # fmt: skip
    by_date = datasets.load_dataset(str(folder), "recentnews-small-p1")["train"]["published"]
    assert {moment.year for moment in by_date} == {2020}


def test_a_judge_decides_by_file(sources: Path, run: Run, tmp_path: Path, models: None) -> None:
    news, past = sources / "news.jsonl", sources / "past.jsonl"
    status, out, err = run("newlama", "--news", news, "--past", past, "--review", "review", "--judge", "rules")
    assert (status, "newlama of CKL" in out) == (0, True), err
    assert "Import tasks.json into a project of Label Studio" in out
    assert (tmp_path / "review" / "annotations" / "judge-rules.json").is_file()


def test_a_rerun_gives_the_same_bytes(sources: Path, run: Run, tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        assert run("recentnews", "--news", sources / "news.jsonl")[0] == 0
        assert run("newlama", "--probes", sources / "temporalwiki")[0] == 0
        made.append(contents(tmp_path / "ckl"))
        shutil.rmtree(tmp_path / "ckl")
        shutil.rmtree(tmp_path / "ckl.work")
    assert made[0] == made[1]


def test_help_is_of_the_config_that_is_named(run: Run) -> None:
    status, out, err = run("--help")
    assert (status, err) == (0, "")
    assert "--small-share" not in out
    status, out, err = run("--jobs", "2", "recentnews", "--help")
    assert (status, err) == (0, "")
    assert "options of recentnews:" in out
    assert "--small-share" in out


def test_a_months_folder_is_not_ckls(sources: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("the sources are read first")

    monkeypatch.setattr("temporalwiki.api.ckl.build_configs", read)
    shutil.copytree(sources / "temporalwiki", tmp_path / "temporalwiki")
    status, _, err = run("invariantlama", "--lama", sources / "lama", "--out", "temporalwiki")
    assert status == 1
    assert "holds enwiki; a folder holds one wiki, or CKL: choose another --out" in err


@pytest.mark.parametrize(
    "words",
    [
        ("newlama-easy", "--news", "NEWS", "--questions", "./nowhere"),
        ("newlama-easy", "--news", "NEWS", "--back", "./nowhere"),
        ("newlama-easy", "--news", "NEWS", "--closed-book", "./nowhere"),
        ("newlama", "--news", "NEWS", "--past", "NEWS", "--review", "review", "--judge", "./nowhere"),
        ("newlama", "--news", "NEWS", "--past", "NEWS", "--review", "review", "--answer-model", "./nowhere"),
    ],
)
def test_a_wrong_model_is_said_before_news_are_read(
    words: tuple[str, ...], sources: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ckl._open_model
    monkeypatch.setattr(ckl, "_open_model", lambda name: found(name) if name == "./nowhere" else faithful())
    status, _, err = run(*(str(sources / "news.jsonl") if word == "NEWS" else word for word in words))
    assert (status, err) == (1, "temporalwiki ckl: ./nowhere: no such folder\n")
    assert not list(tmp_path.iterdir())


def test_a_model_without_its_packages_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in sys.modules if name.startswith(("temporalwiki.methods.", "temporalwiki.eval"))]
    for name in names:  # the packages get their modules back with sys.modules
        parent, _, child = name.rpartition(".")
        monkeypatch.setattr(sys.modules[parent], child, sys.modules[name], raising=False)
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    status, _, err = run("newlama", "--review", "review", "--judge", "gpt2")
    assert status == 1
    assert "gpt2: a model needs torch, which is not installed: pip install 'temporalwiki[train]'" in err
