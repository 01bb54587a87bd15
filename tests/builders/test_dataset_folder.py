"""The dataset folder: shards, months side by side, cards, and what a kill leaves behind."""

import contextlib
import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

import temporalwiki
from temporalwiki.base.errors import InputError
from temporalwiki.builders import dataset_folder
from temporalwiki.builders.dataset_folder import (
    check_place,
    finish_install,
    install,
    problems,
    warn_of_damage,
    write_split,
)
from temporalwiki.builders.manifests import Manifest, checked, read_manifests
from temporalwiki.builders.parquet import read_rows

from a_folder import contents
from a_month import add_month, article, probe, stage_month
from a_stop import Killed, Stop

MONTH = "20211101-20211201"
TIME = "timestamp[ms, tz=UTC]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "temporalwiki"


def load(name: str, cache: Path, **options: Any) -> Any:
    return datasets.load_dataset("temporalwiki", name, cache_dir=str(cache), **options)


def test_months_stand_side_by_side_under_long_and_short_names(folder: Path, tmp_path: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1), article(2)])
    add_month(folder, "20211201", "20220101", [article(3)])
    for name, ids in {
        "diffset-20211101-20211201": [1, 2],
        "diffset-1112": [1, 2],
        "diffset-20211201-20220101": [3],
        "diffset-1201": [3],
    }.items():
        assert load(name, tmp_path / "cache", split="train")["id"][:] == ids
        assert [row["id"] for row in load(name, tmp_path / "cache", split="train", streaming=True)] == ids
    default = datasets.load_dataset("temporalwiki", cache_dir=str(tmp_path / "cache"))
    assert default["train"]["id"][:] == [3]


def test_a_short_name_means_the_newest_interval_with_those_months(folder: Path, tmp_path: Path) -> None:
    add_month(folder, "20221101", "20221201", [article(9)])
    add_month(folder, "20211101", "20211201", [article(1)])  # added later, but older
    assert load("diffset-1112", tmp_path / "cache", split="train")["id"][:] == [9]


def test_columns_have_the_types_of_the_contract(folder: Path, tmp_path: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    diffset = load("diffset-1112", tmp_path / "cache", split="train")
    types = dict.fromkeys(("id", "revision_id", "previous_revision_id"), "int64") | {"timestamp": TIME}
    types |= dict.fromkeys(("title", "url", "text", "kind"), "string")
    types |= dict.fromkeys(("paragraphs", "words_new", "words_reworded"), "int32")
    assert {name: str(feature.dtype) for name, feature in diffset.features.items()} == types
    assert diffset[0] == article(1)
    probes = load("probes-1112", tmp_path / "cache")
    assert list(probes["changed"].features) == [
        "subject", "relation", "object", "subject_id", "relation_id", "object_id", "kind", "previous_objects",
        "statement_id", "page_id", "page_revision_id", "title", "evidence", "support", "objects", "aliases",
        "gone_objects", "start_time", "end_time", "current", "dated", "respelled", "strict",
    ]  # fmt: skip
    types = {name: str(probes["changed"].features[name].dtype) for name in ("start_time", "end_time", "strict")}
    assert types == {"start_time": TIME, "end_time": TIME, "strict": "bool"}
    assert probes["changed"][0] == probe(1)


def test_a_split_without_rows_is_empty_in_our_loader_and_absent_in_datasets(folder: Path, tmp_path: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    cache = tmp_path / "cache"
    assert set(load("probes-1112", cache)) == {"changed", "unchanged"}
    ours = temporalwiki.load_dataset("probes-1112", cache_dir=str(cache))
    assert {name: len(split) for name, split in ours.items()} == {"changed": 1, "unchanged": 1, "deleted": 0}
    assert ours["deleted"].features == ours["changed"].features
    assert len(temporalwiki.load_dataset("probes-1112", split="deleted", cache_dir=str(cache))) == 0
    assert len(temporalwiki.load_dataset("temporalwiki", "probes-1112", split="changed", cache_dir=str(cache))) == 1
    assert (folder / "data/probes-20211101-20211201/deleted-00000-of-00001.parquet").is_file()
    add_month(folder, "20211101", "20211201", [article(1)], probes=[])
    names = datasets.get_dataset_config_names("temporalwiki")
    assert [name for name in names if name.startswith(("diffset", "probes"))] == [f"diffset-{MONTH}", "diffset-1112"]
    ours = temporalwiki.load_dataset("probes-1112")
    assert {name: len(split) for name, split in ours.items()} == {"unchanged": 0, "changed": 0, "deleted": 0}


def test_the_card_is_yaml_with_one_default_and_every_config_described_once(folder: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    add_month(folder, "20211201", "20220101", [article(3)])
    _, header, body = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    card = yaml.safe_load(header)
    names = [config["config_name"] for config in card["configs"]]
    assert len(names) == len(set(names)) == 16
    assert [c["config_name"] for c in card["configs"] if c.get("default")] == ["diffset-20211201-20220101"]
    long = [one for one in names if len(one.split("-")[-1]) > 4]
    assert [info["config_name"] for info in card["dataset_info"]] == long
    assert card["license"] == ["cc-by-sa-4.0", "cc0-1.0"]
    assert card["language"] == ["en"]
    assert "| 20211101 to 20211201 |" in body
    assert r"- 20211201 to 20220101: no closing \]" in body


def test_equal_rows_give_equal_bytes_and_shards_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_folder, "SHARD_ROWS", 4)
    rows = [article(i) for i in range(10)]
    made = [write_split(tmp_path / name, "diffset-1-2", "train", iter(rows)) for name in ("a", "b")]
    assert made[0] == made[1]
    assert [Path(file["path"]).name for file in made[0].files] == [f"train-0000{i}-of-00003.parquet" for i in range(3)]
    paths = [tmp_path / "a" / file["path"] for file in made[0].files]
    assert [len(list(read_rows([path]))) for path in paths] == [4, 4, 2]
    assert list(read_rows(paths)) == rows
    assert sorted(p.name for p in paths[0].parent.iterdir()) == sorted(p.name for p in paths)


def test_a_month_built_again_replaces_its_files_only(folder: Path) -> None:
    first = add_month(folder, "20211101", "20211201", [article(1)])
    add_month(folder, "20211201", "20220101", [article(3)])
    again = add_month(folder, "20211101", "20211201", [article(1), article(2)])
    manifests = read_manifests(folder)
    assert manifests[0].configs.keys() == again["configs"].keys()
    assert len(manifests) == 2
    assert all(problems(folder, manifest) == [] for manifest in manifests)
    changed = [problem.split("/")[1] for problem in problems(folder, checked(first, "first"))]
    assert changed == ["deletions-20211101-20211201", "wikipedia-20211201", "diffset-20211101-20211201"]


def test_the_same_interval_with_other_wikidata_dumps_is_the_same_interval(folder: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1)], wikidata="20211129")
    add_month(folder, "20211101", "20211201", [article(1)], [probe(1), probe(2)], wikidata="20211125")
    [manifest] = read_manifests(folder)
    assert manifest.content["interval"]["wikidata_recent"] == "20211125"
    assert problems(folder, manifest) == []
    assert (folder / "README.md").read_text("utf-8").count("| 20211101 to 20211201 |") == 1


def test_intervals_that_share_a_snapshot_agree_on_it(folder: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    add_month(folder, "20211001", "20211201", [article(1), article(2)])
    manifests = read_manifests(folder)
    assert [problems(folder, manifest) for manifest in manifests] == [[], []]
    shared = [manifest.content["configs"]["wikipedia-20211201"] for manifest in manifests]
    assert shared[0] == shared[1]
    assert shared[0]["splits"]["train"]["num_examples"] == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_order_in_which_months_are_added_does_not_matter(folder: Path, order: tuple[int, int]) -> None:
    months = [("20211101", "20211201", [article(1)]), ("20211201", "20220101", [article(3), article(4)])]
    for i in order:
        add_month(folder, *months[i])
    card = yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])
    assert [c["config_name"] for c in card["configs"] if c.get("default")] == ["diffset-20211201-20220101"]
    first = [f"diffset-{MONTH}", f"deletions-{MONTH}", "wikipedia-20211201"]
    assert [c["config_name"] for c in card["configs"]][:3] == first


def few_words(manifests: Sequence[Manifest]) -> str:
    """Return a card that takes no time to make."""
    return ", ".join(manifest.name for manifest in manifests)


@pytest.mark.parametrize("full", [False, True], ids=["killed", "disk full"])
def test_stopped_at_any_step_a_month_is_whole_or_not_there_and_a_rerun_finishes(
    folder: Path, tmp_path: Path, full: bool
) -> None:
    staged = {rows: tmp_path / f"staged-{rows}" for rows in (1, 2)}
    first = stage_month(staged[1], "20211201", "20220101", [article(3)], [probe(1)])
    again = stage_month(staged[2], "20211201", "20220101", [article(3), article(4)], [probe(1)])
    for manifest in (first, again):
        manifest["configs"] = {name: of for name, of in manifest["configs"].items() if not name.startswith("probes-")}
    del again["configs"]["deletions-20211201-20220101"]
    replacing = checked(again, "again")
    add_month(folder, "20211101", "20211201", [article(1)])
    install(staged[1], checked(first, "first"), folder, few_words)
    wanted, before = tmp_path / "wanted", tmp_path / "before"
    for copy in (wanted, before):
        shutil.copytree(folder, copy)
    install(staged[2], replacing, wanted, few_words)
    found = set()
    for nth in itertools.count(1):
        stopped = tmp_path / str(nth)
        shutil.copytree(before, stopped)
        stop = Stop(nth, full)
        with stop, contextlib.suppress(Killed, OSError, InputError):
            install(staged[2], replacing, stopped, few_words)
        # a manifest is true whenever it is there
        assert all(problems(stopped, m) == [] for m in read_manifests(stopped))
        finish_install(stopped)
        assert contents(stopped) in (contents(before), contents(wanted)), nth
        found.add(contents(stopped) == contents(wanted))
        install(staged[2], replacing, stopped, few_words)
        assert contents(stopped) == contents(wanted)
        shutil.rmtree(stopped)
        if not stop.reached:
            break
    assert found == {False, True}


def test_a_new_folder_is_there_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    manifest = stage_month(tmp_path / "staged", "20211101", "20211201", [article(1)], [probe(1)])
    for nth in itertools.count(1):
        stop = Stop(nth)
        with stop, contextlib.suppress(Killed):
            install(tmp_path / "staged", checked(manifest, "m"), folder, few_words)
        if not stop.reached:
            break
        assert not folder.exists() or [problems(folder, m) for m in read_manifests(folder)] == [[]]
        shutil.rmtree(folder, ignore_errors=True)
    assert nth > 9
    assert [problems(folder, m) for m in read_manifests(folder)] == [[]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["staged", "temporalwiki"]


@pytest.mark.parametrize("place", ["data", "manifests", ".ready", "README.md", "data/diffset-20211101-20211201"])
def test_an_install_follows_no_link(folder: Path, tmp_path: Path, place: str) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    victim = tmp_path / "victim"
    if (folder / place).exists():
        (folder / place).rename(victim)
    else:
        (victim / "data").mkdir(parents=True)
        (victim / "plan.json").write_text('{"ends": []}')
    (folder / place).symlink_to(victim)
    before = contents(victim) if victim.is_dir() else victim.read_bytes()
    with pytest.raises(InputError, match=rf"{place}: is a link; replace it by what it points to"):
        add_month(folder, "20211201", "20220101", [article(3)])
    assert (contents(victim) if victim.is_dir() else victim.read_bytes()) == before


@pytest.mark.fault("hostile JSON", "the plan of an install, with or without its data", "refused in one line")
@pytest.mark.parametrize("plan", ["", "[]", "{}", '{"ends": ["../victim"]}', '{"ends": 1}', '{"ends": []}'])
def test_a_damaged_plan_of_an_install_is_named(folder: Path, plan: str) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    (folder / ".ready").mkdir()
    (folder / ".ready" / "plan.json").write_text(plan)
    with pytest.raises(
        InputError, match=r"\.ready/plan\.json: (not the plan of an|its data are missing).*; remove .*"
    ):
        finish_install(folder)
    assert read_manifests(folder) != []


def test_what_is_no_dataset_folder_is_left_alone(tmp_path: Path) -> None:
    check_place(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    check_place(tmp_path / "empty")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("x")
    with pytest.raises(InputError, match="not a dataset folder"):
        check_place(tmp_path / "thesis")
    (tmp_path / "cluster" / "manifests").mkdir(parents=True)
    (tmp_path / "cluster" / "manifests" / "service.yaml").touch()  # as other programs have it
    with pytest.raises(InputError, match="not a dataset folder"):
        check_place(tmp_path / "cluster")
    with pytest.raises(InputError, match="not a dataset folder"):
        check_place(tmp_path / "thesis" / "chapter1.tex")


def test_a_folder_is_of_one_wiki(folder: Path) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    staged = folder.parent / "other"
    manifest = stage_month(staged, "20211201", "20220101", [article(3)], [probe(1)])
    manifest["interval"]["wiki"] = "kowiki"
    check_place(folder, "enwiki")
    for owner in ("kowiki", "CKL"):  # before all work
        with pytest.raises(InputError, match="holds enwiki"):
            check_place(folder, owner)
    with pytest.raises(InputError, match="holds enwiki"):
        install(staged, checked(manifest, "m"), folder)


def test_damaged_files_of_other_months_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for prev, recent in (("20211101", "20211201"), ("20211201", "20220101")):
        add_month(folder, prev, recent, [article(1)])
        next(folder.glob(f"data/diffset-{prev}-{recent}/*")).unlink()
    path = next(folder.glob("data/deletions-20211101-*"))
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    warn_of_damage(folder, "20211201-20220101")
    said = capsys.readouterr().err.splitlines()
    assert [line.split(".parquet: ")[1] for line in said] == [
        f"is a link out of the folder; make {MONTH} again",
        f"missing; make {MONTH} again",
    ]
