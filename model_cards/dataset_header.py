"""The YAML header of a dataset card: `datasets` finds the configs in it, and the Hub the licences and languages."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import yaml
from huggingface_hub import DatasetCardData

from temporalwiki.builders.manifests import Split

# `datasets` reads the whole header before it loads anything, at about 60 KB a second.
_LARGEST = 98_000  # characters of `configs` and `dataset_info`


class CardConfig(NamedTuple):
    """A config as the header describes it. A config by its short name has the folder of its full name."""

    folder: str  # below data/
    schema: pa.Schema
    splits: Mapping[str, Split]


def loadable(configs: Mapping[str, CardConfig]) -> dict[str, CardConfig]:
    """Return the configs that have rows, with the splits that have rows.

    datasets 5 cannot load a config if one of its splits is empty ("corresponds to no data"). The header leaves such
    splits out, although their files exist.
    """
    with_rows = {
        name: config._replace(splits={split: rows for split, rows in config.splits.items() if rows.num_examples})
        for name, config in configs.items()
    }
    return {name: config for name, config in with_rows.items() if config.splits}


def header(
    configs: Mapping[str, CardConfig], kept: Mapping[str, Any], default: str | None = None, **fields: Any
) -> str:
    """Return the YAML header with its two lines of dashes.

    ``configs`` are sorted, oldest first. Short names, and the oldest configs of a large header, have no
    ``dataset_info``: `datasets` takes their columns from the files. ``kept`` has the settings of an earlier header
    that the maintainer added, with further configs. ``fields`` are fields of ``DatasetCardData``.
    """
    listed = [_config(name, config, name == default) for name, config in configs.items()]
    infos = _infos(configs, _LARGEST - len(_dumped(listed)))
    data = DatasetCardData(
        **fields,
        configs=[*listed, *_further_configs(kept, default is not None)],
        dataset_info=[*infos, *kept.get("dataset_info", ())] or None,
    )
    values = data.to_dict()  # type: ignore[no-untyped-call]
    ours = {key: value for key, value in values.items() if value is not None}
    # huggingface_hub cannot read a card with a key that is the name of one of its methods
    more = {key: value for key, value in kept.items() if key not in ours and not hasattr(DatasetCardData, key)}
    return f"---\n{_dumped(ours | more)}---\n"


def _dumped(values: Any) -> str:
    text: str = yaml.safe_dump(values, sort_keys=False, width=120, default_flow_style=None)  # a line a column
    return text


def languages(code: str) -> list[str] | None:
    """Return a wiki's language as the Hub names it. The Hub knows only ISO 639, so be-tarask becomes be."""
    found = re.match(r"([a-z]{2,3})(?:-|$)", code)
    return [found[1]] if found else None


def _further_configs(kept: Mapping[str, Any], has_default: bool) -> Iterable[Mapping[str, Any]]:
    for config in kept.get("configs", ()):  # two defaults are an error
        yield {key: value for key, value in config.items() if key != "default"} if has_default else config


def _config(name: str, config: CardConfig, default: bool) -> dict[str, Any]:
    files = [{"split": split, "path": f"data/{config.folder}/{split}-*.parquet"} for split in config.splits]
    return {"config_name": name, "data_files": files} | ({"default": True} if default else {})


def _infos(configs: Mapping[str, CardConfig], room: int) -> list[dict[str, Any]]:
    """Return the ``dataset_info`` of the newest configs, so many that they fit into ``room`` characters of YAML."""
    infos = []
    for name in reversed([name for name, config in configs.items() if config.folder == name]):
        infos.append(_info(name, configs[name]))
        room -= len(_dumped(infos[-1:]))
        if room < 0:
            return infos[-2::-1]
    return infos[::-1]


def _info(name: str, config: CardConfig) -> dict[str, Any]:
    splits = config.splits.values()
    return {
        "config_name": name,
        "features": [_feature(column) for column in config.schema],
        "splits": [
            {"name": split, "num_bytes": rows.num_bytes, "num_examples": rows.num_examples}
            for split, rows in config.splits.items()
        ],
        "download_size": sum(file.size for rows in splits for file in rows.files),
        "dataset_size": sum(rows.num_bytes for rows in splits),
    }


def _feature(column: pa.Field) -> dict[str, str]:
    """Return a column as `datasets` describes it. Importing `datasets` would take longer than writing the card."""
    if pa.types.is_list(column.type):
        return {"name": column.name, "list": str(column.type.value_type)}
    return {"name": column.name, "dtype": str(column.type)}
