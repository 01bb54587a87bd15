"""Files that the Hub loses or changes: publish, monthly and --status notice them, and `--mend` puts them back."""

import datetime
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import OTHER
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.month_source import DumpServer
from temporalwiki.push_scripts.monthly import MonthlyJob, monthly
from temporalwiki.push_scripts.status import status as state

import a_ckl_config
from a_month import add_month, article
from file_server import FileServer, lists_of
from loopback_hub import LoopbackHub

REPO, CKL = "ORG/temporalwiki", "ORG/ckl"
DIFFSET = "data/diffset-20211001-20211101/train-00000-of-00001.parquet"
SHARD = DIFFSET.replace("-00000-", "-00001-")
MANIFEST = "manifests/20211001-20211101.json"
NEWLAMA = "newlama-20211001-20211101"
CLOZES = f"data/{NEWLAMA}/test-00000-of-00001.parquet"


@pytest.fixture
def folder(tmp_path: Path, hub: LoopbackHub) -> Path:
    """Return the folder of a published month."""
    folder = tmp_path / "temporalwiki"
    add_month(folder, "20211001", "20211101", [article(1)])
    list(publish_dataset(folder, REPO))
    return folder


def turned(hub: LoopbackHub, **more: bytes) -> str:
    """Turn the bytes of a file around, which keeps its size, and write ``more`` files."""
    return hub.commit("dataset", REPO, {**more, DIFFSET: hub.repo("dataset", REPO).files()[DIFFSET][::-1]})


# what another person does to the repository, by the path that must be named, with what is wrong there
Damage = tuple[Callable[[LoopbackHub], object], str, str]
DAMAGE: dict[str, Damage] = {
    "removed": (lambda hub: hub.commit("dataset", REPO, {}, remove=(DIFFSET,)), DIFFSET, "missing"),
    "cut": (lambda hub: hub.commit("dataset", REPO, {DIFFSET: b"PAR1"}), DIFFSET, OTHER),
    "changed, of the same size": (turned, DIFFSET, OTHER),
    "changed, of the same size, and no LFS": (lambda hub: turned(hub, **{".gitattributes": b""}), DIFFSET, OTHER),
    "one more shard": (lambda hub: hub.commit("dataset", REPO, {SHARD: b"PAR1"}), SHARD, "no manifest lists it"),
    "the card": (lambda hub: hub.commit("dataset", REPO, {}, remove=("README.md",)), "README.md", "missing"),
    "a manifest": (lambda hub: hub.commit("dataset", REPO, {}, remove=(MANIFEST,)), DIFFSET, "no manifest lists it"),
}  # fmt: skip


def job(url: str, folder: Path, **more: Any) -> MonthlyJob:
    places = {"dumps": folder.parent / "dumps", "out": folder, "work": folder.parent / "work"}
    return MonthlyJob("enwiki", REPO, **places, machine=Machine(1, 1 << 30, "local"), source=DumpServer(url), **more)


@pytest.fixture
def url() -> Any:
    """Serve a month that is older than the published one, so that the job has nothing to build."""
    files = {f"enwiki/{day}/enwiki-{day}-pages-articles-multistream.xml.bz2": b"x" for day in ("20210801", "20210901")}
    with FileServer(files | lists_of(files)) as server:
        yield server.url


@pytest.mark.fault(
    "damage on the Hub",
    "a data file, the card or a manifest is removed, changed or added",
    "publish, monthly and --status name it; --mend makes a commit with the bytes of the tag",
)
@pytest.mark.parametrize("case", DAMAGE)
def test_damage_on_the_hub_is_named_and_mended(case: str, folder: Path, hub: LoopbackHub, url: str) -> None:
    damage, path, what = DAMAGE[case]
    before, tags = hub.repo("dataset", REPO).files(), dict(hub.repo("dataset", REPO).tags)
    damage(hub)
    if case == "a manifest":  # the next month must not bury it
        add_month(folder, "20211101", "20211201", [article(2)])
    main = hub.repo("dataset", REPO).branches["main"]
    day = datetime.date(2021, 11, 9)
    for lines in (publish_dataset(folder, REPO), monthly(job(url, folder)), state(job(url, folder), day)):
        with pytest.raises(InputError) as said:
            list(lines)
        assert f"{path}: {what}" in str(said.value)
        assert f"`temporalwiki publish dataset {folder} {REPO} --mend` puts back" in str(said.value)
    assert hub.repo("dataset", REPO).branches["main"] == main
    list(publish_dataset(folder, REPO, mend=True, dry_run=True))
    assert hub.repo("dataset", REPO).branches["main"] == main
    list(publish_dataset(folder, REPO, mend=True))
    repo = hub.repo("dataset", REPO)
    after = repo.files()
    if case == "a manifest":
        assert after.keys() > before.keys() and sorted(repo.tags) == ["2021.11", "2021.12"]
        before = {path: data for path, data in before.items() if path.startswith(("data/", "manifests/"))}
    before.pop(".gitattributes", None)
    assert {path: after[path] for path in before} == before
    assert tags.items() <= repo.tags.items()
    list(monthly(job(url, folder)))
    list(state(job(url, folder), day))


def test_a_file_that_the_folder_lacks_comes_from_the_tag_by_the_command_that_is_named(
    folder: Path, hub: LoopbackHub
) -> None:
    hub.commit("dataset", REPO, {}, remove=(DIFFSET,))
    for file in folder.rglob("*.parquet"):
        file.unlink()
    command = (
        rf"`hf download {REPO} --repo-type dataset --revision 2021\.11 --include 'data/\*20211101/\*' --local-dir"
    )
    with pytest.raises(InputError, match=rf"{folder}: {DIFFSET}: missing; {command}"):
        list(publish_dataset(folder, REPO, mend=True))
    at = hub.repo("dataset", REPO).files("2021.11")
    for path in at:
        if fnmatch(path, "data/*20211101/*"):
            (folder / path).write_bytes(at[path])
    list(publish_dataset(folder, REPO, mend=True))
    assert hub.repo("dataset", REPO).files() == at


@pytest.mark.fault(
    "damage on the Hub",
    "a file of CKL is removed or changed",
    "monthly and --status name it; publish puts back what the folder has",
)
@pytest.mark.parametrize("here", [True, False])
def test_damage_of_ckl_is_named_and_mended(
    here: bool, folder: Path, hub: LoopbackHub, url: str, tmp_path: Path
) -> None:
    ckl = tmp_path / "temporalwiki.ckl"
    one = ckl if here else tmp_path / "other"
    a_ckl_config.add(one, a_ckl_config.config(NEWLAMA, options={"wiki": "enwiki"}))
    list(publish_dataset(one, CKL))
    before = hub.repo("dataset", CKL).files()
    hub.commit("dataset", CKL, {CLOZES: b"PAR1"})
    with pytest.raises(InputError, match=f"datasets/{CKL}: damaged on the Hub: {CLOZES}: not the file"):
        list(state(job(url, folder, ckl=CKL), datetime.date(2021, 11, 9)))
    if here:
        list(publish_dataset(ckl, CKL))
        assert hub.repo("dataset", CKL).files() == before
        return
    a_ckl_config.add(ckl, a_ckl_config.config("newlama-20211101-20211201", options={"wiki": "enwiki"}))
    with pytest.raises(InputError, match=f"damaged on the Hub: {CLOZES}: not the file .* lacks these files"):
        list(publish_dataset(ckl, CKL))
    assert "manifests/newlama-20211101-20211201.json" in hub.repo("dataset", CKL).files()


@pytest.mark.fault(
    "odd paths and streams",
    "publish: a manifest or a seal is a link out of the folder",
    "refused in one line; nothing is sent",
)
@pytest.mark.parametrize("path", [MANIFEST, "seals/2021-12.json"])
def test_a_manifest_or_a_seal_that_is_a_link_is_not_published(path: str, folder: Path, hub: LoopbackHub) -> None:
    outside = folder.parent / "outside.json"
    file = folder / path
    outside.write_bytes((folder / MANIFEST).read_bytes())
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(outside)
    hub.requests.clear()
    with pytest.raises(InputError, match=f"{path}: is a link out of the folder"):
        list(publish_dataset(folder, REPO))
    assert {request.method for request in hub.requests} <= {"GET", "HEAD"}
