"""The YAML header of a dataset card: by it `datasets` finds the configs, and the Hub licences and languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import yaml
from huggingface_hub import DatasetCardData


def loadable(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the configs that have rows, with the splits that have rows.

    datasets 5 cannot load a config one of whose splits is empty ("corresponds to no data"): such splits stay out of
    the card, though their files are written.
    """
    with_rows = {
        name: dict(config)
        | {"splits": {split: files for split, files in config["splits"].items() if files["num_examples"]}}
        for name, config in configs.items()
    }
    return {name: config for name, config in with_rows.items() if config["splits"]}


def header(
    configs: Mapping[str, Mapping[str, Any]], kept: Mapping[str, Any], default: str | None = None, **said: Any
) -> str:
    """Return the header, with its two lines of dashes.

    A config has its ``splits`` as in a manifest, its ``schema``, and the folder below data/ where its ``files`` lie.
    ``kept`` is what the header says that is not made here, and further configs with their ``dataset_info``. ``said``
    are fields of the card.
    """
    data = DatasetCardData(
        **said,
        configs=[
            *(_config(name, config, name == default) for name, config in configs.items()),
            *(_further(config, default) for config in kept.get("configs", ())),
        ],
        dataset_info=[*(_info(name, config) for name, config in configs.items()), *kept.get("dataset_info", ())],
    )
    shown = data.to_dict()  # type: ignore[no-untyped-call]
    ours = {key: value for key, value in shown.items() if value is not None}
    # a key that is the name of a method breaks the card for whoever reads it with huggingface_hub
    more = {key: value for key, value in kept.items() if key not in ours and not hasattr(DatasetCardData, key)}
    return f"---\n{yaml.safe_dump(ours | more, sort_keys=False, width=120)}---\n"


def languages(code: str) -> list[str] | None:
    """Return what a card says of a language: the Hub takes ISO 639 alone, so that be-tarask is be."""
    found = re.match(r"([a-z]{2,3})(?:-|$)", code)
    return [found[1]] if found else None


def _further(config: Mapping[str, Any], default: str | None) -> Mapping[str, Any]:
    if default is None:
        return config
    return {key: value for key, value in config.items() if key != "default"}  # two defaults are an error


def _config(name: str, config: Mapping[str, Any], default: bool) -> dict[str, Any]:
    files = [{"split": split, "path": f"data/{config['files']}/{split}-*.parquet"} for split in config["splits"]]
    return {"config_name": name, "data_files": files} | ({"default": True} if default else {})


def _info(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    splits = [
        {"name": split, "num_bytes": files["num_bytes"], "num_examples": files["num_examples"]}
        for split, files in config["splits"].items()
    ]
    return {
        "config_name": name,
        "features": [_feature(field) for field in config["schema"]],
        "splits": splits,
        "download_size": sum(f["size"] for files in config["splits"].values() for f in files["files"]),
        "dataset_size": sum(split["num_bytes"] for split in splits),
    }


def _feature(column: pa.Field) -> dict[str, str]:
    """A column as `datasets` has it, for types whose names are Arrow's: to import it would take longer than a card."""
    if pa.types.is_list(column.type):
        return {"name": column.name, "list": str(column.type.value_type)}
    return {"name": column.name, "dtype": str(column.type)}
