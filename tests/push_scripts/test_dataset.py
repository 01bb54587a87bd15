"""Publishing a dataset folder: a commit and a tag for each month, which always loads the same data."""

import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import DatasetCard, snapshot_download

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.seal import seal
from temporalwiki.model_cards.template import kinds
from temporalwiki.push_scripts import dataset
from temporalwiki.push_scripts.dataset import publish_dataset

from a_folder import rewrite
from a_month import add_month, article, probe
from loopback_hub import LoopbackHub

REPO = "ORG/temporalwiki"
MONTHS = [("20211101", "20211201"), ("20211201", "20220101"), ("20220101", "20220201")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "temporalwiki"


def month(folder: Path, number: int, **options: Any) -> None:
    """Add a month whose one article has its number."""
    prev, recent = MONTHS[number]
    add_month(folder, prev, recent, [article(number + 1)], [probe(number + 1)], **options)


def run(folder: Path, repo_id: str = REPO, **options: Any) -> list[str]:
    return list(publish_dataset(folder, repo_id, **options))


def refused(folder: Path, said: str, repo_id: str = REPO, kind: type[InputError] = InputError, **options: Any) -> None:
    """Check that it is refused in one line."""
    with pytest.raises(InputError, match=said) as error:
        run(folder, repo_id, **options)
    assert "\n" not in str(error.value)
    assert type(error.value) is kind


def files(hub: LoopbackHub, revision: str = "main") -> dict[str, bytes]:
    return hub.repo("dataset", REPO).files(revision)


def header(hub: LoopbackHub, revision: str = "main") -> dict[str, Any]:
    found: dict[str, Any] = DatasetCard(files(hub, revision)["README.md"].decode()).data.to_dict()
    return found


def assert_consistent(hub: LoopbackHub) -> None:
    """At every commit of main, the manifests' files are there, and the card's configs have files."""
    repo = hub.repo("dataset", REPO)
    for commit in repo.commits("main"):
        there = repo.files(commit.oid)
        for path in [path for path in there if path.startswith("manifests/")]:
            manifest = json.loads(there[path])
            listed = [f for c in manifest["configs"].values() for s in c["splits"].values() for f in s["files"]]
            assert {file["path"] for file in listed} <= set(there)
            assert all(len(there[file["path"]]) == file["size"] for file in listed)
        if "README.md" in there:
            folders = {path.rpartition("/")[0] for path in there}
            for config in DatasetCard(there["README.md"].decode()).data.to_dict()["configs"]:
                assert {one["path"].rpartition("/")[0] for one in config["data_files"]} <= folders


def test_each_revision_has_its_croissant_file_and_the_canary(folder: Path, hub: LoopbackHub) -> None:
    for number, tag in enumerate(("2021.12", "2022.01")):
        month(folder, number)
        run(folder)
        there = files(hub, tag)
        metadata = json.loads(there["croissant.json"])
        assert metadata["version"] == tag
        described = {one["name"] for one in metadata["recordSet"]}
        offered = {config["config_name"] for config in header(hub, tag)["configs"]}
        assert described == {name for name in offered if re.search(r"-\d{8}", name)}
        assert kinds()["canary"] in metadata["description"]
        assert kinds()["canary"].split()[-1] in there["README.md"].decode()


def test_a_seal_is_sent_alone_or_with_a_month_and_never_changes(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    run(folder)
    seal(folder, "2022-01")
    assert any("Seal 2022-01" in line for line in run(folder))
    sent = (folder / "seals" / "2022-01.json").read_bytes()
    assert files(hub)["seals/2022-01.json"] == sent
    assert run(folder) == [f"datasets/{REPO}: up to date"]
    month(folder, 1)
    seal(folder, "2022-02")
    run(folder)
    assert {"seals/2022-01.json", "seals/2022-02.json"} <= files(hub, "2022.01").keys()
    assert_consistent(hub)
    (folder / "seals" / "2022-02.json").unlink()
    seal(folder, "2022-02", seed=5)
    refused(folder, r"has another seals/2022-02\.json, and a published seal never changes")


KEYS = """
from temporalwiki.methods.training_data import content_key
for data in ("ORG/temporalwiki@2021.12", "ORG/temporalwiki"):
    print(content_key(data, "diffset-1112"))
print(content_key("ORG/temporalwiki", "diffset-1201"))
"""


def test_a_later_month_leaves_the_key_of_an_earlier_ones_content(
    folder: Path, hub: LoopbackHub, tmp_path: Path
) -> None:
    """So no training is repeated because a month was published."""
    month(folder, 0)
    month(folder, 1)
    run(folder)
    old, still, other = hub.python(KEYS, tmp_path / "home").stdout.split()
    assert old == still != other


LOAD = """
import json, warnings
import datasets, temporalwiki
datasets.disable_progress_bars()
def ids(name, revision=None):
    return datasets.load_dataset("ORG/temporalwiki", name, revision=revision, split="train")["id"][:]
def names(revision):
    return datasets.get_dataset_config_names("ORG/temporalwiki", revision=revision)
print(json.dumps({
    "by tag": [ids("diffset-1112", "2021.12"), ids("diffset-1201", "2022.01"), ids("diffset-0102", "2022.02")],
    "old short names": [ids("diffset-1112"), ids("diffset-1112", "2022.02"), ids("diffset-1201", "2022.02")],
    "long name": ids("diffset-20211101-20211201"),
    "default": [ids(None, "2021.12"), ids(None, "2022.01"), ids(None)],
    "names": [len(names(tag)) for tag in ("2021.12", "2022.01", "2022.02")],
    "probes": sorted(datasets.load_dataset("ORG/temporalwiki", "probes-1112", revision="2021.12")),
    "streamed": [row["id"] for row in datasets.load_dataset(
        "ORG/temporalwiki", "diffset-1201", revision="2022.01", split="train", streaming=True)],
    "ours": temporalwiki.load_dataset("ORG/temporalwiki", "diffset-1112", revision="2021.12", split="train")["id"][:],
}))
"""


def test_every_tag_loads_its_own_month_with_the_real_clients(folder: Path, hub: LoopbackHub, tmp_path: Path) -> None:
    for number in range(3):
        month(folder, number)
        run(folder)
    done = hub.python(LOAD, tmp_path / "home")
    assert json.loads(done.stdout) == {
        "by tag": [[1], [2], [3]],
        "old short names": [[1], [1], [2]],
        "long name": [1],
        "default": [[1], [2], [3]],
        "names": [8, 16, 24],  # deletions, diffset, wikipedia and probes, each under a long name and a short one
        "probes": ["changed", "unchanged"],
        "streamed": [2],
        "ours": [1],
    }
    assert_consistent(hub)


def test_an_earlier_month_can_come_later_and_takes_neither_default_nor_newer_names(
    folder: Path, hub: LoopbackHub
) -> None:
    add_month(folder, "20211101", "20211201", [article(7)])
    run(folder)
    older = folder.with_name("older")
    add_month(older, "20201101", "20201201", [article(5)])
    run(older)
    configs = {c["config_name"]: c for c in header(hub)["configs"]}
    assert [name for name, c in configs.items() if c.get("default")] == ["diffset-20211101-20211201"]
    assert configs["diffset-1112"]["data_files"][0]["path"].startswith("data/diffset-20211101-20211201/")
    assert configs["diffset-20201101-20201201"]["data_files"][0]["path"].startswith("data/diffset-20201101-")
    assert set(hub.repo("dataset", REPO).tags) == {"2021.12", "2020.12"}


def test_the_card_names_the_repository_and_each_months_revision(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    month(folder, 1)
    run(folder)
    card = files(hub)["README.md"].decode()
    assert 'load_dataset("ORG/temporalwiki", "diffset-1201", revision="2022.01")' in card
    assert "| 20211101 to 20211201, revision `2021.12` |" in card
    assert 'load_dataset("temporalwiki"' not in card
    assert "`2021.12`" not in (folder / "README.md").read_text("utf-8")


def test_how_long_a_build_took_is_not_published(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    rewrite(folder / "manifests" / "20211101-20211201.json", run={"jobs": 7})
    run(folder)
    manifest = json.loads(files(hub)["manifests/20211101-20211201.json"])
    assert "run" not in manifest
    assert manifest["tag"] == "2021.12"


def test_a_month_that_was_built_anew_with_the_same_bytes_is_there_already(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    run(folder)
    shutil.rmtree(folder)
    month(folder, 0)
    assert run(folder) == [f"datasets/{REPO}: up to date"]


def test_what_the_maintainer_added_to_the_card_survives(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    run(folder)
    card = DatasetCard(files(hub)["README.md"].decode())
    added = {"config_name": "mine", "data_files": "mine.parquet", "default": True}
    card.data["configs"].append(added)
    card.data["dataset_info"].append({"config_name": "mine", "features": [{"name": "x", "dtype": "int64"}]})
    card.data["extra_gated_prompt"] = "Please: don't # harm"
    card.data["license"] = ["mit"]
    more = {"task_ids": ["language-modeling"], "train-eval-index": [{"config": "x"}], "viewer": False}
    text = str(card).replace("---\n", "---\n" + yaml.safe_dump(more), 1)
    hub.commit("dataset", REPO, {"README.md": text.encode(), "mine.parquet": b"PAR1"})
    month(folder, 1)
    run(folder)
    after = header(hub)
    assert after["extra_gated_prompt"] == "Please: don't # harm"
    assert after["license"] == ["cc-by-sa-4.0", "cc0-1.0"]  # our settings are written again
    assert {"config_name": "mine", "data_files": "mine.parquet"} in after["configs"]  # there is one default
    assert sum("default" in config for config in after["configs"]) == 1
    assert [info["config_name"] for info in after["dataset_info"]].count("mine") == 1
    assert files(hub)["mine.parquet"] == b"PAR1"
    found = yaml.safe_load(files(hub)["README.md"].decode().split("---\n")[1])
    assert {key: found.get(key) for key in more} == more


def test_a_section_and_changed_settings_of_the_maintainer_survive_the_next_month(
    folder: Path, hub: LoopbackHub
) -> None:
    month(folder, 0)
    run(folder)
    text = files(hub)["README.md"].decode().replace("pretty_name: TemporalWiki", "pretty_name: Our Wiki")
    text = text.replace("<!-- /yours -->", "![relations](relations.png)\n<!-- /yours -->")
    hub.commit("dataset", REPO, {"README.md": text.encode()})
    for number in (1, 2):
        month(folder, number)
        run(folder)
        assert header(hub)["pretty_name"] == "Our Wiki"
        body = files(hub)["README.md"].decode()
        assert body.count("![relations](relations.png)\n<!-- /yours -->") == 1


ODD_KEYS = ["1: x", "to_yaml: x", "_to_dict: x", "__class__: x", "null: z", "? [a]\n: b", "configs: 3", "[]"]
ODD_VALUES = ["2021-13-45", "2021-01-01", "&a [*a]", "!!set {a}", "!!binary aGk=", "[", "!!python/object:os.x {}"]


@pytest.mark.parametrize("line", [*ODD_KEYS, *(f"x: {value}" for value in ODD_VALUES)])
def test_whatever_stands_in_the_published_card_the_next_month_is_published(
    line: str, folder: Path, hub: LoopbackHub
) -> None:
    month(folder, 0)
    run(folder)
    text = files(hub)["README.md"].decode().replace("---\n", f"---\n{line}\n", 1)
    hub.commit("dataset", REPO, {"README.md": text.encode()})
    month(folder, 1)
    run(folder)
    assert {c["config_name"] for c in header(hub)["configs"]} >= {"diffset-1112", "diffset-1201"}


def test_a_card_of_a_header_alone_keeps_its_settings(folder: Path, hub: LoopbackHub) -> None:
    hub.commit("dataset", REPO, {"README.md": b"---\nextra_gated_prompt: hello\n---"})
    month(folder, 0)
    run(folder)
    assert header(hub)["extra_gated_prompt"] == "hello"


HOSTILE = "---\nlicense: mit\n---\n`<script>` {{x}} | \"quoted\" 'it' #: & * ! % @ \u2028 \x85 🦆 =cmd()"


@pytest.mark.fault("hostile titles", "names in a manifest that is published", "the card is valid YAML and one table")
def test_a_card_with_hostile_names_is_valid_yaml_and_one_table(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    path = folder / "manifests" / "20211101-20211201.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["warnings"] = [HOSTILE]
    manifest["inputs"][0]["file"] = HOSTILE
    manifest["interval"]["language"] = HOSTILE
    path.write_text(json.dumps(manifest), "utf-8")
    run(folder)
    text = files(hub)["README.md"].decode()
    front, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert yaml.safe_load(front)["language"] == ["en"]  # from the name of the wiki
    assert yaml.safe_load(front)["license"] == ["cc-by-sa-4.0", "cc0-1.0"]
    assert "\n---\n" not in body
    assert "- 20211101 to 20211201: --- license: mit --- \\`&lt;script&gt;\\` {{x}}" in body
    assert "- `--- license: mit --- '<script>' {{x}} ∣ " in body  # a code span is not read as HTML


def test_eval_yaml_has_the_tasks_of_all_months(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    month(folder, 1)
    run(folder)
    configs = {task["config"] for task in yaml.safe_load(files(hub)["eval.yaml"])["tasks"]}
    assert len(configs) == 2
    assert len(yaml.safe_load(files(hub, "2021.12")["eval.yaml"])["tasks"]) == 2


def test_of_several_intervals_that_end_in_a_month_each_has_its_tag(folder: Path, hub: LoopbackHub) -> None:
    add_month(folder, "20211101", "20211201", [article(1)])
    add_month(folder, "20211201", "20211220", [article(2)])
    add_month(folder, "20211210", "20211220", [article(2)])
    run(folder)
    assert set(hub.repo("dataset", REPO).tags) == {"2021.12", "2021.12.20", "20211210-20211220"}
    assert run(folder) == [f"datasets/{REPO}: up to date"]


def test_a_tag_of_ones_own(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    run(folder, tag="v1")
    assert set(hub.repo("dataset", REPO).tags) == {"v1"}
    assert run(folder) == [f"datasets/{REPO}: up to date"]  # its tag is remembered
    refused(folder, "is published already, as v1, not as v2", tag="v2")


def test_a_tag_of_ones_own_for_a_month_before_the_newest(folder: Path, hub: LoopbackHub) -> None:
    for number, tag in ((1, None), (0, "first")):
        month(folder, number)
        run(folder, tag=tag)
    assert set(hub.repo("dataset", REPO).tags) == {"2022.01", "first"}


def test_a_tag_that_a_killed_publisher_did_not_make_is_made_by_the_next(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    hub.fault("POST", "/tag/", status=403)
    refused(folder, "not allowed")
    commit = hub.repo("dataset", REPO).branches["main"]
    other = folder.with_name("other")
    month(other, 1)
    run(other)
    assert hub.repo("dataset", REPO).tags["2021.12"] == commit


def assert_both_months(hub: LoopbackHub) -> None:
    """The first two months are there, each under its tag, and no branch is left over."""
    names = [f"manifests/{prev}-{recent}.json" for prev, recent in MONTHS[:2]]
    assert {path for path in files(hub) if "manifests" in path} == set(names)
    assert {c["config_name"] for c in header(hub)["configs"]} >= {"diffset-1112", "diffset-1201"}
    assert set(hub.repo("dataset", REPO).branches) == {"main"}
    assert set(hub.repo("dataset", REPO).tags) == {"2021.12", "2022.01"}
    assert names[0] in files(hub, "2021.12") and names[1] in files(hub, "2022.01")
    assert_consistent(hub)


@pytest.mark.fault("two at once", "two publishers of two months", "both months are published")
def test_of_two_publishers_at_once_both_months_are_there(folder: Path, hub: LoopbackHub) -> None:
    other = folder.with_name("other")
    month(folder, 0)
    month(other, 1)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, (folder, other)))
    assert_both_months(hub)


@pytest.mark.parametrize("nth", range(1, 30, 3))
def test_a_second_publisher_at_any_moment_of_the_first(nth: int, folder: Path, hub: LoopbackHub) -> None:
    """The other month is published whole while a request of the first waits."""
    other = folder.with_name("other")
    month(folder, 0)
    month(other, 1)
    hub.when("*", "", lambda: run(other), nth=nth)  # type: ignore[arg-type, return-value]
    run(folder)
    hub._faults.clear()
    run(other)
    assert_both_months(hub)


def _a_file(folder: Path) -> Path:
    return next(folder.glob("data/diffset-*/*.parquet"))


def _escape(folder: Path) -> None:
    path = folder / "manifests" / "20211101-20211201.json"
    (folder.parent / "secret").write_text("secret")
    path.write_text(path.read_text("utf-8").replace("data/diffset-20211101-20211201/train-0", "data/../../secret-0"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: _a_file(folder).write_bytes(b"PAR1"), "train-00000-of-00001.parquet: not the file .*build"),
        (lambda folder: _a_file(folder).unlink(), "train-00000-of-00001.parquet: missing; .*build"),
        (_escape, "json: .*it says that 'train' of diffset-20211101-20211201 is in 'data/../../secret"),
        (lambda folder: shutil.rmtree(folder / "manifests"), "no manifests in it, so it is no dataset folder"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(spoil: Any, said: str, folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    spoil(folder)
    refused(folder, said)
    assert {request.method for request in hub.requests} <= {"GET"}


FULL = "diffset-20211101-20211201"
SHAPES: dict[str, Any] = {
    "no splits": lambda m: m["configs"][FULL].pop("splits"),
    "splits as a list": lambda m: m["configs"][FULL].update(splits=[]),
    "no files": lambda m: m["configs"][FULL]["splits"]["train"].pop("files"),
    "no counts": lambda m: m.pop("counts"),
    "no short name": lambda m: m["configs"][FULL].pop("short_name"),
    "no diffset": lambda m: m["configs"].pop(FULL),
    "a config of no kind": lambda m: m["configs"].update(evil={"short_name": "x", "splits": {}}),
    "a config of another interval": lambda m: m["configs"].update({"diffset-20211201-20220101": m["configs"][FULL]}),
    "a short name of another config": lambda m: m["configs"][FULL].update(short_name="probes-1112"),
    "a short name that is a long one": lambda m: m["configs"][FULL].update(short_name="diffset-20211201-20220101"),
    "a date as a number": lambda m: m["interval"].update(recent=20211201),
    "a date with dashes": lambda m: m["interval"].update(prev="2021-11-01"),
    "a date that is a path": lambda m: m["interval"].update(prev="../../x"),
    "no wiki": lambda m: m["interval"].pop("wiki"),
    "a wiki as a list": lambda m: m["interval"].update(wiki=["enwiki"]),
    "a split of no kind": lambda m: m["configs"][FULL]["splits"].update(
        evil={"num_examples": 1, "num_bytes": 1, "files": []}
    ),
    "a size as text": lambda m: m["configs"][FULL]["splits"]["train"]["files"][0].update(size="x"),
    "no hash": lambda m: m["configs"][FULL]["splits"]["train"]["files"][0].pop("sha256"),
    "warnings that are numbers": lambda m: m.update(warnings=[3]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_manifest_of_another_shape_is_refused_here_and_on_the_hub(
    shape: str, folder: Path, hub: LoopbackHub
) -> None:
    month(folder, 0)
    path = folder / "manifests" / "20211101-20211201.json"
    manifest = json.loads(path.read_text("utf-8"))
    SHAPES[shape](manifest)
    theirs = json.dumps(manifest | {"tag": "2021.12"}).encode()
    hub.commit("dataset", "ORG/theirs", {"manifests/20211101-20211201.json": theirs})
    month(folder.with_name("other"), 1)
    refused(folder.with_name("other"), r"^datasets/ORG/theirs: manifests/20211101-20211201\.json: ", "ORG/theirs")
    path.write_text(json.dumps(manifest), "utf-8")
    refused(folder, r"manifests/.*json: ")
    assert {request.method for request in hub.requests} <= {"GET", "HEAD"}


@pytest.mark.parametrize("tag", [None, 3, ["2021.12"], {}])
def test_a_manifest_on_the_hub_names_its_tag(tag: Any, folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    manifest = json.loads((folder / "manifests" / "20211101-20211201.json").read_text("utf-8")) | {"tag": tag}
    hub.commit("dataset", REPO, {"manifests/20211101-20211201.json": json.dumps(manifest).encode()})
    refused(folder, r"it has no tag|`\$\.tag`")


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_out_of_the_folder_is_not_followed(linked: str, folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    file = next(folder.glob("data/diffset-*/*.parquet"))
    path = file if linked == "file" else file.parent
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    refused(folder, r"parquet: is a link out of the folder; publish a copy without links")
    assert {request.method for request in hub.requests} <= {"GET"}


def test_a_mended_month_takes_the_place_of_a_wrong_one_in_one_commit(
    folder: Path, hub: LoopbackHub, tmp_path: Path
) -> None:
    month(folder, 0)
    month(folder, 1)
    run(folder)
    mended = folder.with_name("mended")
    add_month(mended, *MONTHS[0], [article(99)])
    refused(mended, "use --replace and another --tag")
    refused(mended, "--replace needs --tag", kind=UsageError, replace=True)
    refused(mended, r"the tag 2021\.12 exists already", replace=True, tag="2021.12")
    run(mended, replace=True, tag="2021.12.1")
    loaded = f"""
import datasets
for name, revision in (("1112", "2021.12"), ("1112", "2021.12.1"), ("1112", None), ("1201", None)):
    print(datasets.load_dataset("{REPO}", f"diffset-{{name}}", revision=revision, split="train")["id"][:])
"""
    assert hub.python(loaded, tmp_path / "home").stdout.split("\n")[:4] == ["[1]", "[99]", "[99]", "[2]"]
    assert_consistent(hub)
    assert run(mended, replace=True, tag="2021.12.1") == [f"datasets/{REPO}: up to date"]
    tags = set(hub.repo("dataset", REPO).tags)
    assert tags == {"2021.12", "2022.01", "2021.12.1"}
    month(folder, 2)  # where the wrong month lies still
    refused(folder, "with other bytes")
    run(folder, interval="20220101-20220201")
    assert set(hub.repo("dataset", REPO).tags) == {*tags, "2022.02"}


def test_stale_shards_of_a_month_go_with_its_manifest(folder: Path, hub: LoopbackHub) -> None:
    """The card's pattern would take them for data."""
    stale = f"data/{FULL}/train-00001-of-00002.parquet"
    hub.commit("dataset", REPO, {stale: b"PAR1"})
    month(folder, 0)
    run(folder)
    assert stale not in files(hub)


def instead(folder: Path, prev: str, recent: str, i: int = 99, **options: Any) -> None:
    """Make the folder anew, with another month."""
    shutil.rmtree(folder)
    add_month(folder, prev, recent, [article(i)], **options)


# what comes after the first month was published, the options, and the error
REFUSED: dict[str, tuple[Callable[[Path, LoopbackHub], object], dict[str, Any], str]] = {
    "other bytes": (
        lambda folder, _: instead(folder, *MONTHS[0]), {},
        r"\w+-20211101-20211201 is published already \(tag 2021\.12\) with other bytes",
    ),
    "a whole text of another interval": (
        lambda folder, _: instead(folder, "20211001", "20211201"), {},
        r"wikipedia-20211201 is published already \(tag 2021\.12\) with other bytes",
    ),
    "another wiki": (
        lambda folder, _: instead(folder, *MONTHS[1], wiki="kowiki"), {},
        "a repository has one wiki, not enwiki and kowiki",
    ),
    "the tag of another": (
        lambda folder, _: add_month(folder, "20211202", "20211220", [article(4)]), {"tag": "2021.12"},
        r"the tag 2021\.12 belongs to 20211101-20211201; choose another one with --tag",
    ),
    "two with a tag": (
        lambda folder, _: [month(folder, 1), month(folder, 2)], {"tag": "v2", "kind": UsageError},
        "there are 2 intervals to publish .*20211201-20220101, 20220101-20220201",
    ),
    "a broken manifest on the Hub": (
        lambda _, hub: hub.commit("dataset", REPO, {"manifests/20210101-20210201.json": b"[]"}), {},
        "manifests/20210101-20210201.json: not a manifest of temporalwiki",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_must_not_be_published_is_refused_before_anything_is_sent(
    case: str, folder: Path, hub: LoopbackHub
) -> None:
    month(folder, 0)
    run(folder)
    prepare, options, said = REFUSED[case]
    prepare(folder, hub)
    before = hub.repo("dataset", REPO).branches["main"]
    hub.requests.clear()
    refused(folder, said, **options)
    assert {request.method for request in hub.requests} <= {"GET", "HEAD"}
    assert hub.repo("dataset", REPO).branches == {"main": before}


def test_counts_are_compared_with_those_of_the_month_before(
    folder: Path, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: set[tuple[str, str]] = set()
    monkeypatch.setattr(dataset, "large_changes", lambda now, before: compared.add((now.name, before.name)))
    for number in range(3):
        month(folder, number)
    run(folder)
    first, second, third = (f"{prev}-{recent}" for prev, recent in MONTHS)
    assert compared == {(second, first), (third, second)}


def test_a_jump_of_a_later_month_stops_the_earlier_ones_until_it_is_accepted(
    folder: Path, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        month(folder, number)
    monkeypatch.setattr(dataset, "large_changes", lambda one, _: ["x"] * (one.interval.recent == "20220201"))
    refused(folder, "counts jump: x; .*--accept-jump")
    assert not hub._protocol.repos
    run(folder, accept_jump=True)
    assert set(hub.repo("dataset", REPO).tags) == {"2021.12", "2022.01", "2022.02"}


def test_a_dry_run_says_what_is_then_done(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    month(folder, 1)
    said = run(folder, dry_run=True)
    assert not hub._protocol.repos
    assert {request.method for request in hub.requests} <= {"GET", "HEAD"}
    done = run(folder)
    assert [line for line in said if "dry run" not in line] == [line for line in done if "://" not in line]
    assert len(read_manifests(folder)) == 2


@pytest.mark.parametrize("deleted", [False, True])
def test_a_damaged_copy_of_a_published_month_is_noticed(deleted: bool, folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    run(folder)
    month(folder, 1)
    file = folder / "data" / "diffset-20211101-20211201" / "train-00000-of-00001.parquet"
    content = file.read_bytes()
    if deleted:
        file.unlink()
    else:
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    problem = "missing" if deleted else "not the file that the manifest describes"
    command = f"hf download {REPO} --repo-type dataset --revision 2021.12 --include 'data/*20211201/*' --local-dir"
    refused(folder, re.escape(f"{folder}: data/{FULL}/{file.name}: {problem}; `{command} {folder}` fetches"))
    assert "2022.01" not in hub.repo("dataset", REPO).tags
    patterns = "data/*20211201/*"  # as the command says
    snapshot_download(REPO, repo_type="dataset", revision="2021.12", allow_patterns=patterns, local_dir=folder)
    assert file.read_bytes() == content
    run(folder)
    assert "2022.01" in hub.repo("dataset", REPO).tags


def test_a_published_month_whose_files_are_deleted_is_no_fault(folder: Path, hub: LoopbackHub) -> None:
    month(folder, 0)
    run(folder)
    month(folder, 1)
    for config in (folder / "data").glob("*20211201"):
        shutil.rmtree(config)
    run(folder)
    assert "2022.01" in hub.repo("dataset", REPO).tags
