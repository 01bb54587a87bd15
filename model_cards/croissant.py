"""Croissant metadata of a published dataset, with the fields for responsible AI (RAI).

``croissant.json`` follows Croissant 1.0 and its RAI extension (MLCommons). It describes the configs of one revision
and their columns. `mlcroissant` checks it, and reads the rows with it.
"""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from huggingface_hub import constants

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders.manifests import BuiltManifest, CklManifest
from temporalwiki.model_cards import ckl_dataset, dataset
from temporalwiki.model_cards.dataset_header import CardConfig
from temporalwiki.model_cards.template import TEMPLATES, citations, in_words, kinds

PATH = "croissant.json"

_TYPES = {pa.int32(): "sc:Integer", pa.int64(): "sc:Integer", pa.float64(): "sc:Float", pa.bool_(): "sc:Boolean"}
_LICENCES = {
    "cc-by-sa-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "cc-by-sa-3.0": "https://creativecommons.org/licenses/by-sa/3.0/",
    "cc-by-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "cc-by-nc-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "cc0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "mit": "https://opensource.org/license/mit",
    "apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
}


def dataset_croissant(months: Sequence[BuiltManifest], repo_id: str, tag: str) -> bytes:
    """Return ``croissant.json`` for these intervals, oldest first, at a tag of a repository."""
    interval = months[-1].interval
    source = f"{interval.wiki} from {in_words(interval.prev)} to {in_words(interval.recent)}"
    licences = ("cc-by-sa-4.0", "cc0-1.0")
    frame = [f"{date[:4]}-{date[4:6]}-{date[6:]}" for date in (months[0].interval.prev, interval.recent)]
    extra = {"rai:dataCollectionTimeFrame": frame}
    return _croissant("dataset", dataset.offered_configs(months), repo_id, tag, licences, source, extra)


def ckl_croissant(manifests: Sequence[CklManifest], repo_id: str, revision: str) -> bytes:
    """Return ``croissant.json`` for these configs of CKL, at a revision of a repository."""
    configs = ckl_dataset.offered_configs(manifests)
    source = ", ".join(dict.fromkeys(config.folder for config in configs.values()))
    return _croissant("ckl", configs, repo_id, revision, ckl_dataset.licences_of(manifests), source)


def _croissant(
    about: str,
    configs: Mapping[str, CardConfig],
    repo_id: str,
    revision: str,
    licences: Sequence[str],
    source: str,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> bytes:
    """Return the metadata; ``about`` is a part of templates/croissant.yaml, whose sentences name the ``source``.

    Configs with the same files, such as short names, are described once.
    """
    texts = _texts()[about]
    repository = f"{constants.ENDPOINT}/datasets/{repo_id}"
    own = {name: config for name, config in configs.items() if name == config.folder}
    metadata = {
        "@context": _texts()["context"],
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": re.sub(r"\W", "_", repo_id),
        "description": f"{texts['description'].format(source=source)} {kinds()['canary']}",
        "url": repository,
        "version": revision,
        "license": [_LICENCES.get(licence, licence) for licence in licences],
        "citeAs": citations(texts["papers"]),
        "isLiveDataset": about == "dataset",
        **{f"rai:{name}": text.format(source=source) for name, text in texts["rai"].items()},
        **extra,
        "distribution": [_repository(repository, revision), *map(_files, own.values())],
        "recordSet": [_records(about, name, config) for name, config in own.items()],
    }
    return (json.dumps(metadata, indent=2, ensure_ascii=False) + "\n").encode()


@functools.cache
def _texts() -> dict[str, Any]:
    texts: dict[str, Any] = read_yaml(TEMPLATES / "croissant.yaml")
    return texts


def _repository(repository: str, revision: str) -> dict[str, Any]:
    """Return the git repository as a file. Croissant wants a hash; the address of its issue says that git has them."""
    return {
        "@type": "cr:FileObject",
        "@id": "repo",
        "name": "repo",
        "description": "The git repository on the Hub.",
        "contentUrl": f"{repository}/tree/{revision}",
        "encodingFormat": "git+https",
        "sha256": "https://github.com/mlcommons/croissant/issues/80",
    }


def _files(config: CardConfig) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": config.folder,
        "name": config.folder,
        "containedIn": {"@id": "repo"},
        "encodingFormat": "application/x-parquet",
        "includes": f"data/{config.folder}/*.parquet",
    }


def _records(about: str, name: str, config: CardConfig) -> dict[str, Any]:
    described = kinds()["dataset"].get(name.partition("-")[0], "") if about == "dataset" else ""
    return {
        "@type": "cr:RecordSet",
        "@id": f"rows/{name}",
        "name": name,
        "description": described or f"The rows of {name}.",
        "field": [_field(name, config.folder, column) for column in config.schema],
    }


def _field(name: str, folder: str, column: pa.Field) -> dict[str, Any]:
    many = pa.types.is_list(column.type)
    of = column.type.value_type if many else column.type
    return {
        "@type": "cr:Field",
        "@id": f"rows/{name}/{column.name}",
        "name": column.name,
        "dataType": "sc:DateTime" if pa.types.is_timestamp(of) else _TYPES.get(of, "sc:Text"),
        "source": {"fileSet": {"@id": folder}, "extract": {"column": column.name}},
        **({"repeated": True} if many else {}),
    }
