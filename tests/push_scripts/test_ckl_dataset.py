"""Publishing CKL's dataset folder: one commit, others' configs kept, nothing that a licence or its lack forbids."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import DatasetCard

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.push_scripts.dataset import publish_dataset

from a_ckl_config import add, config, invariantlama, live
from a_folder import rewrite
from a_month import add_month, article
from loopback_hub import LoopbackHub

REPO = "ORG/ckl"
UPDATED = "updatedlama-20211101-20211201"
OUTSIDE = "data/../../secret-00000-of-00001.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ckl"


def run(folder: Path, **options: Any) -> list[str]:
    return list(publish_dataset(folder, REPO, **options))


def files(hub: LoopbackHub, revision: str = "main") -> dict[str, bytes]:
    return hub.repo("dataset", REPO).files(revision)


def header(hub: LoopbackHub) -> dict[str, Any]:
    found: dict[str, Any] = DatasetCard(files(hub)["README.md"].decode()).data.to_dict()
    return found


def test_all_configs_go_in_one_commit_and_a_rerun_does_nothing(folder: Path, hub: LoopbackHub) -> None:
    add(folder, config(UPDATED, short_name="updatedlama-1112"), config("kilt-fever", licences=("mit",)))
    run(folder)
    assert run(folder) == [f"datasets/{REPO}: up to date"]
    messages = [commit.title for commit in hub.repo("dataset", REPO).commits("main")]
    assert messages == [f"CKL: add kilt-fever, {UPDATED}", "initial commit"]
    assert set(files(hub)) - {".gitattributes"} == {
        "README.md",
        "croissant.json",
        f"data/{UPDATED}/test-00000-of-00001.parquet",
        "data/kilt-fever/test-00000-of-00001.parquet",
        f"manifests/{UPDATED}.json",
        "manifests/kilt-fever.json",
    }
    for path, content in files(hub).items():
        if path.startswith(("data/", "manifests/")):
            assert content == (folder / path).read_bytes()


def test_a_config_of_another_wiki_is_not_replaced(folder: Path, tmp_path: Path, hub: LoopbackHub) -> None:
    add(folder, config(UPDATED, options={"wiki": "enwiki"}))
    run(folder)
    before = files(hub)
    add(tmp_path / "simple", config(UPDATED, options={"wiki": "simplewiki"}))
    with pytest.raises(
        InputError, match=f"its {UPDATED} is from enwiki, but that of .* is from simplewiki; choose another"
    ):
        run(tmp_path / "simple")
    assert files(hub) == before


def test_of_many_configs_the_commit_names_the_first_and_the_last(folder: Path, hub: LoopbackHub) -> None:
    add(folder, *(config(f"newlama-2021{month}01-2022{month}01") for month in ("01", "02", "03", "04")))
    [said] = [line for line in run(folder) if ": CKL: " in line]
    assert said.endswith(": CKL: add 4 configs, newlama-20210101-20220101 to newlama-20210401-20220401")


LOAD = """
import json
import datasets, temporalwiki
datasets.disable_progress_bars()
print(json.dumps({
    "names": datasets.get_dataset_config_names("ORG/ckl"),
    "short": datasets.load_dataset("ORG/ckl", "updatedlama-1112", split="test")["subject"][:],
    "ours": temporalwiki.load_dataset("ORG/ckl", "invariantlama", revision="v1", split="test")["subject"][:],
}))
"""


def test_what_is_published_loads_with_the_real_clients(folder: Path, hub: LoopbackHub, tmp_path: Path) -> None:
    add(folder, invariantlama(), config(UPDATED, short_name="updatedlama-1112"))
    run(folder, accept_noncommercial=True, tag="v1")
    assert hub.repo("dataset", REPO).tags["v1"] == hub.repo("dataset", REPO).branches["main"]
    assert json.loads(hub.python(LOAD, tmp_path / "home").stdout) == {
        "names": ["invariantlama", UPDATED, "updatedlama-1112"],
        "short": ["Ann"],
        "ours": ["Ann", "Bo"],
    }


def test_a_config_from_another_folder_comes_beside_those_that_are_there(folder: Path, hub: LoopbackHub) -> None:
    add(folder, invariantlama())
    run(folder, accept_noncommercial=True)
    other = folder.with_name("other")
    add(other, config(UPDATED, short_name="updatedlama-1112"))
    run(other)  # nothing that is sent needs --accept-noncommercial
    assert [one["config_name"] for one in header(hub)["configs"]] == ["invariantlama", UPDATED, "updatedlama-1112"]
    assert header(hub)["license"] == ["cc-by-nc-4.0", "cc-by-sa-4.0", "cc0-1.0"]
    assert "data/invariantlama/test-00000-of-00001.parquet" in files(hub)
    card = files(hub)["README.md"].decode()
    assert "### `invariantlama` by relation" in card and 'load_dataset("ORG/ckl", ' in card


def test_a_config_with_other_rows_or_splits_takes_the_place_of_the_old(folder: Path, hub: LoopbackHub) -> None:
    add(folder, config(UPDATED), config("newlama-20211101-20211201"))
    run(folder, tag="v1")
    add(folder, config(UPDATED, {"validation": [live(1), live(2)]}))
    lines = run(folder)
    [said] = [line for line in lines if "CKL:" in line]
    assert said.endswith(f"CKL: replace {UPDATED}")
    assert f"data/{UPDATED}/validation-00000-of-00001.parquet" in files(hub)
    assert f"data/{UPDATED}/test-00000-of-00001.parquet" not in files(hub)  # the card's patterns would still find it
    assert f"data/{UPDATED}/test-00000-of-00001.parquet" in files(hub, "v1")
    assert "data/newlama-20211101-20211201/test-00000-of-00001.parquet" in files(hub)


@pytest.mark.parametrize("dry_run", [False, True])
def test_without_leave_nothing_noncommercial_is_sent_nor_what_is_beside_it(
    dry_run: bool, folder: Path, hub: LoopbackHub
) -> None:
    add(folder, invariantlama(), config(UPDATED, licences=("cc0-1.0", "cc-by-nc-4.0")), config("kilt-fever"))
    with pytest.raises(InputError, match="--accept-noncommercial") as error:
        run(folder, dry_run=dry_run)
    assert "\n" not in str(error.value)
    assert f": invariantlama, {UPDATED};" in str(error.value)
    assert hub.requests == []


@pytest.mark.parametrize("options", [{}, {"accept_noncommercial": True}, {"dry_run": True}])
def test_what_was_imported_is_never_published(options: dict[str, Any], folder: Path, hub: LoopbackHub) -> None:
    add(folder, config("newlama", imported=True), config("kilt-fever"))
    with pytest.raises(InputError, match=r"without a licence, so never published: manifests/newlama\.json$"):
        run(folder, **options)
    assert hub.requests == []


def test_an_interval_that_was_imported_is_never_published(tmp_path: Path, hub: LoopbackHub) -> None:
    folder = tmp_path / "temporalwiki"
    add_month(folder, "20211101", "20211201", [article(1)])
    add_month(folder, "20210801", "20210901", [article(2)])
    manifest = folder / "manifests" / "20210801-20210901.json"
    configs = json.loads(manifest.read_text("utf-8"))["configs"]
    count = {"read": 1, "kept": 1, "dropped": {}}
    counts = {name: dict.fromkeys(one["splits"], count) for name, one in configs.items()}
    rewrite(manifest, imported=True, counts=counts)
    with pytest.raises(InputError, match=r"never published: manifests/20210801-20210901\.json"):
        run(folder)
    assert hub.requests == []


@pytest.mark.parametrize("option", ["replace", "accept_jump"])
def test_options_of_months_are_refused_and_that_of_ckl_for_months(option: str, folder: Path, hub: LoopbackHub) -> None:
    add(folder, config(UPDATED))
    with pytest.raises(UsageError, match="are for months"):
        run(folder, tag="v1", **{option: True})
    months = folder.with_name("temporalwiki")
    add_month(months, "20211101", "20211201", [article(1)])
    with pytest.raises(UsageError, match="--accept-noncommercial is for CKL"):
        run(months, accept_noncommercial=True)
    assert hub.requests == []


def test_months_and_ckl_have_repositories_of_their_own(folder: Path, hub: LoopbackHub) -> None:
    months = folder.with_name("temporalwiki")
    add_month(months, "20211101", "20211201", [article(1)])
    add(folder, config(UPDATED))
    run(months)
    before = files(hub)
    with pytest.raises(InputError, match=r"manifests/20211101-20211201.json: not of CKL"):
        run(folder)
    assert files(hub) == before
    list(publish_dataset(folder, "ORG/other"))
    with pytest.raises(InputError, match="of CKL, but months need their own repository"):
        list(publish_dataset(months, "ORG/other"))


def test_what_the_maintainer_added_survives_and_a_short_name_moves_on(folder: Path, hub: LoopbackHub) -> None:
    add(folder, config(UPDATED, short_name="updatedlama-1112"))
    run(folder)
    card = DatasetCard(files(hub)["README.md"].decode())
    added = {"config_name": "mine", "data_files": "mine.parquet", "default": True}
    card.data["configs"].append(added)
    card.data["extra_gated_prompt"] = "Please: don't # harm"
    hub.commit("dataset", REPO, {"README.md": str(card).encode(), "mine.parquet": b"PAR1"})
    add(folder, config("updatedlama-20221101-20221201", short_name="updatedlama-1112"))
    run(folder)
    after = header(hub)
    assert after["extra_gated_prompt"] == "Please: don't # harm"
    assert after["configs"][-1] == added  # we set no default that its one would be at odds with
    names = [one["config_name"] for one in after["configs"]]
    assert names == [UPDATED, "updatedlama-20221101-20221201", "updatedlama-1112", "mine"]
    assert after["configs"][2]["data_files"][0]["path"] == "data/updatedlama-20221101-20221201/test-*.parquet"


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / "manifests" / f"{UPDATED}.json"
        manifest = json.loads(path.read_text("utf-8"))
        change(manifest)
        path.write_text(json.dumps(manifest), "utf-8")

    return spoil


def the_file(folder: Path) -> Path:
    return next(folder.glob("data/*/*.parquet"))


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "other bytes": (
        lambda folder: the_file(folder).write_bytes(b"PAR1"),
        "describes; make it again with `temporalwiki c",
    ),
    "a file is gone": (
        lambda folder: the_file(folder).unlink(),
        "test-00000-of-00001.parquet: missing; make it again",
    ),
    "no manifests": (lambda folder: shutil.rmtree(folder / "manifests"), "no manifests in it"),
    "a file elsewhere": (
        changed(lambda m: m["configs"][UPDATED]["splits"]["test"]["files"][0].update(path=OUTSIDE)),
        f"says that 'test' of {UPDATED} is in '{OUTSIDE}'",
    ),
    "another config's name": (changed(lambda m: m.update(config="kilt-fever")), "a manifest of kilt-fever that lists"),
    "no licence": (changed(lambda m: m.update(licences=[])), "`array` of length >= 1"),
    "a licence that is YAML": (changed(lambda m: m.update(licences=["mit\nx: y"])), "matching regex"),
    "an unknown kind": (changed(lambda m: m.update(kind="poem")), "rows of the kind 'poem'"),
    "a name that is a path": (changed(lambda m: m.update(config="../x")), "matching regex"),
    "a short name that is a path": (
        changed(lambda m: m["configs"][UPDATED].update(short_name="a/b")),
        "matching regex",
    ),
    "counts that do not add up": (
        changed(lambda m: m["counts"].update(read=7)),
        "1 rows, but its counts say otherwise",
    ),
    "counts of words": (changed(lambda m: m["counts"].update(kept="all")), "Expected `int`"),
    "no counts": (changed(lambda m: m.pop("counts")), "missing required field `counts`"),
    "no options": (changed(lambda m: m.update(options=None)), "Expected `object`"),
    "a relation that is Markdown": (
        changed(lambda m: m["counts"].update(relations={"|x|": {"raw": 1, "kept": 1, "dropped": {}}})),
        "matching regex",
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_folder_that_is_not_whole_is_refused_in_one_line(case: str, folder: Path, hub: LoopbackHub) -> None:
    add(folder, config(UPDATED))
    spoil, said = SPOILT[case]
    spoil(folder)
    with pytest.raises(InputError) as error:
        run(folder)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert {request.method for request in hub.requests} <= {"GET"}


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"dataset": "ckl"}', b"[" * 100_000, b"\xff"])
def test_what_others_put_among_the_manifests_is_refused_by_its_name(
    content: bytes, folder: Path, hub: LoopbackHub
) -> None:
    add(folder, config(UPDATED))
    run(folder)
    hub.commit("dataset", REPO, {"manifests/other.json": content})
    before = files(hub)
    with pytest.raises(InputError, match=r"datasets/ORG/ckl: manifests/other\.json: not ") as error:
        run(folder)
    assert "\n" not in str(error.value)
    assert files(hub) == before
