"""What the Hub says about the YAML block at the top of a README.md."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

# those that our cards name, of the Hub's
_LICENSES = "apache-2.0 mit cc0-1.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-4.0 unknown other"
LICENSES = frozenset(_LICENSES.split())
SDKS = ("gradio", "streamlit", "docker", "static")
COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
REPO_ID = re.compile(r"(?:[\w.-]+/)?[\w.-]{1,96}", re.ASCII)
LANGUAGE = re.compile(r"[a-z]{2,3}|code|multilingual")


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses a key that is there twice, as the Hub's parser does."""


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for i, key in enumerate(keys):
        if key in keys[:i]:
            raise yaml.MarkedYAMLError(problem=f"duplicated mapping key ({key})", problem_mark=node.start_mark)
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def metadata(readme: str) -> dict[str, Any] | None:
    """Return the content of the YAML block, or None. Raises ValueError if it is not a mapping."""
    block = re.match(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", readme, re.DOTALL | re.MULTILINE)
    if block is None:
        return None
    try:
        data = yaml.load(block[1], Loader=_StrictLoader)
    except (yaml.YAMLError, TypeError) as error:
        raise ValueError(str(error).partition("\n")[0]) from error
    if data is not None and not isinstance(data, dict):
        raise ValueError("metadata must be a mapping of keys")
    return data or None


def check(readme: str, kind: str) -> tuple[list[str], list[str]]:
    """Errors and warnings about a README.md of a repository of this kind."""
    try:
        data = metadata(readme)
    except ValueError as error:
        return [f"Invalid YAML: {error}"], []
    if data is None:
        missing = ["Missing configuration in README"] if kind == "space" else []
        return missing, ["empty or missing yaml metadata in repo card"]
    return list(_errors(data, kind)), []


def _errors(data: dict[str, Any], kind: str) -> Iterator[str]:
    # A field for several values may hold a single one.
    for language in _several(data.get("language")):
        if not isinstance(language, str):
            yield '"language" must be a string'  # `no` is false to YAML
        elif not LANGUAGE.fullmatch(language):
            yield f'"language" with value "{language}" is not valid. It must be an ISO 639-1, 639-2 or 639-3 code'
    for license in _several(data.get("license")):
        if license not in LICENSES:
            yield f'"license" must be one of {_LICENSES}'
    several = ("tags", "size_categories", "task_categories", "task_ids", "metrics", "annotations_creators")
    for key in (*several, "pretty_name", "license_name", "license_link", "library_name", "pipeline_tag", "title"):
        for value in _several(data.get(key)) if key in several else [data.get(key, "")]:
            if not isinstance(value, str):
                yield f'"{key}" must be a string'
    for key in ("base_model", "datasets", "models"):
        for value in _several(data.get(key)):
            if not isinstance(value, str) or not REPO_ID.fullmatch(value):
                yield f'"{key}" with value "{value}" is not valid. Use an id from https://hf.co.'
    if kind == "space":
        yield from _space_errors(data)
    if kind == "dataset":
        yield from _config_errors(data)
    if kind == "model":
        yield from _index_errors(data)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _space_errors(data: dict[str, Any]) -> Iterator[str]:
    if data.get("sdk") not in SDKS:
        yield f'"sdk" must be one of {list(SDKS)}'
    for key in ("colorFrom", "colorTo"):
        if data.get(key, COLOURS[0]) not in COLOURS:
            yield f'"{key}" must be one of {list(COLOURS)}'
    if len(str(data.get("short_description", ""))) > 60:
        yield '"short_description" length must be less than or equal to 60 characters long'
    if not isinstance(data.get("pinned", False), bool):
        yield '"pinned" must be a boolean'
    if "sdk_version" in data and not isinstance(data["sdk_version"], str):
        yield '"sdk_version" must be a string'


def _config_errors(data: dict[str, Any]) -> Iterator[str]:
    configs = data.get("configs", [])
    if not isinstance(configs, list):
        yield '"configs" must be an array'
        return
    names = []
    for i, config in enumerate(configs):
        if not isinstance(config, dict) or not isinstance(config.get("config_name"), str):
            yield f'"configs[{i}].config_name" must be a string'
            continue
        names.append(config["config_name"])
        if config["config_name"] in names[:-1]:
            yield f'"configs[{i}].config_name" is there twice'
        files = config.get("data_files")
        for entry in files if isinstance(files, list) else []:
            if isinstance(entry, dict) and not {"split", "path"} <= set(entry):
                yield f'"configs[{i}].data_files" needs split and path'


def _index_errors(data: dict[str, Any]) -> Iterator[str]:
    index = data.get("model-index", [])
    if not isinstance(index, list):
        yield '"model-index" must be an array'
        return
    for i, model in enumerate(index):
        where = f"model-index[{i}]"
        if not isinstance(model, dict) or not isinstance(model.get("name"), str):
            yield f'"{where}.name" is required'
            continue
        if not isinstance(model.get("results"), list):
            yield f'"{where}.results" is required'
            continue
        for j, result in enumerate(model["results"]):
            for part, keys in (("task", ["type"]), ("dataset", ["name", "type"])):
                for key in keys:
                    if not isinstance(result.get(part), dict) or not isinstance(result[part].get(key), str):
                        yield f'"{where}.results[{j}].{part}.{key}" is required'
            metrics = result.get("metrics")
            if not isinstance(metrics, list) or not metrics:
                yield f'"{where}.results[{j}].metrics" is required'
                continue
            for k, metric in enumerate(metrics):
                if not isinstance(metric, dict) or not isinstance(metric.get("type"), str) or "value" not in metric:
                    yield f'"{where}.results[{j}].metrics[{k}]" needs type and value'
