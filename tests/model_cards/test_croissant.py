"""croissant.json: valid by MLCommons' own checker, which then reads the rows of the dataset folder through it."""

import json
from pathlib import Path
from typing import Any

import mlcroissant
import pyarrow.parquet as pq
import pytest

from temporalwiki.builders.manifests import BuiltManifest, CklManifest, read_manifests
from temporalwiki.model_cards.croissant import ckl_croissant, dataset_croissant
from temporalwiki.model_cards.template import kinds

from a_ckl_config import add, config
from a_month import add_month, article, probe

REPO = "ORG/temporalwiki"
UPDATED = "updatedlama-20211101-20211201"
MONTHS = [("20211101", "20211201"), ("20211201", "20220101")]
# what NeurIPS asks for
RAI = {"dataLimitations", "dataBiases", "personalSensitiveInformation", "dataUseCases", "dataCollection"}


@pytest.fixture
def months(tmp_path: Path) -> Path:
    for number, (prev, recent) in enumerate(MONTHS, 1):
        add_month(tmp_path, prev, recent, [article(number)], [probe(number)])
    return tmp_path


def described(content: bytes, tmp_path: Path, root: Path) -> tuple[Any, dict[str, Any]]:
    path = tmp_path / "croissant.json"
    path.write_bytes(content)
    return mlcroissant.Dataset(str(path), mapping={"repo": root}), json.loads(content)


def test_the_rows_of_each_config_are_read_through_it(months: Path, tmp_path: Path) -> None:
    manifests = [one for one in read_manifests(months) if isinstance(one, BuiltManifest)]
    dataset, metadata = described(dataset_croissant(manifests, REPO, "2022.01"), tmp_path, months)
    assert not dataset.metadata.issues.errors
    for records in metadata["recordSet"]:
        files = sorted((months / "data" / records["name"]).glob("*.parquet"))
        expected = [row for file in files for row in pq.read_table(file).to_pylist()]
        found = list(dataset.records(records["@id"]))
        assert len(found) == len(expected) > 0
        for column in ("id", "page_id"):
            if column in expected[0]:
                assert [row[f"{records['@id']}/{column}"] for row in found] == [row[column] for row in expected]
    assert {one["name"] for one in metadata["recordSet"]} >= {"probes-20211101-20211201", "diffset-20211201-20220101"}


def test_it_says_what_is_asked_of_published_data(months: Path, tmp_path: Path) -> None:
    manifests = [one for one in read_manifests(months) if isinstance(one, BuiltManifest)]
    _, metadata = described(dataset_croissant(manifests, REPO, "2022.01"), tmp_path, months)
    assert {name for name in RAI if len(metadata[f"rai:{name}"]) > 40} == RAI
    assert metadata["rai:dataCollectionTimeFrame"] == ["2021-11-01", "2022-01-01"]
    assert metadata["version"] == "2022.01"
    assert metadata["license"] == [
        "https://creativecommons.org/licenses/by-sa/4.0/",
        "https://creativecommons.org/publicdomain/zero/1.0/",
    ]
    assert kinds()["canary"] in metadata["description"]


def test_ckl_has_its_own_text_and_licences(tmp_path: Path) -> None:
    folder = tmp_path / "ckl"
    add(folder, config(UPDATED, short_name="updatedlama-1112"), config("kilt-fever", licences=("mit",)))
    manifests = [one for one in read_manifests(folder) if isinstance(one, CklManifest)]
    dataset, metadata = described(ckl_croissant(manifests, "ORG/ckl", "main"), tmp_path, folder)
    assert not dataset.metadata.issues.errors
    assert {one["name"] for one in metadata["recordSet"]} == {UPDATED, "kilt-fever"}
    assert "https://opensource.org/license/mit" in metadata["license"]
