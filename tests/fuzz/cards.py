"""A manifest and its card: refused in one line, or a card that loads with its texts unchanged."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import DatasetCard

from temporalwiki.base.errors import InputError
from temporalwiki.builders.dataset_folder import check_place
from temporalwiki.builders.inspection import describe
from temporalwiki.builders.manifests import BuiltManifest, CklManifest, ImportedManifest, read_manifests
from temporalwiki.model_cards.eval_yaml import eval_yaml
from temporalwiki.model_cards.folder_card import folder_card
from temporalwiki.push_scripts.count_changes import large_changes

from fuzz.files import file, folder
from fuzz.json_text import mutate as mutate


def _config(name: str, short: str | None, **rows: int) -> dict[str, Any]:
    def split(of: str, number: int) -> dict[str, Any]:
        path = f"data/{name}/{of}-00000-of-00001.parquet"
        return {"num_examples": number, "num_bytes": 9, "files": [{"path": path, "size": 7, "sha256": "0" * 64}]}

    return {name: {"short_name": short, "splits": {of: split(of, number) for of, number in rows.items()}}}


_NAME, _FACTS = "20211101-20211201", dict.fromkeys(("categorised", "sampled", "aligned", "filtered", "kept"), 1)
_BUILT = {
    "interval": {"wiki": "enwiki", "language": "en", "prev": "20211101", "recent": "20211201"}
    | {"wikidata_prev": "20211101", "wikidata_recent": "20211129"},
    "inputs": [{"file": "enwiki/20211101/a.bz2", "size": 5, "sha1": "x"}],
    "options": {
        "seed": 0,
        "unchanged_fraction": 0.001,
        "compare": "exact",
        "caps": [0.01, 0.05, 0.05],
        "include": [],
        "allow_truncated": False,
    },
    "warnings": ["no closing ]"],
    "counts": {
        "pages": {"read": 9, "unchanged": 5, "new": 3, "updated": 1, "dropped": {"too_long": 0}},
        "diffset": {"words": 7},
        "probes": {"unchanged": _FACTS, "changed": _FACTS, "deleted": _FACTS},
    },
    "configs": _config(f"diffset-{_NAME}", "diffset-1112", train=4)
    | _config(f"probes-{_NAME}", "probes-1112", unchanged=2, changed=1, deleted=0),
}
_CKL = {
    "dataset": "ckl",
    "config": "newlama",
    "kind": "live",
    "about": "a fact",
    "licences": ["cc0-1.0", "cc-by-nc-4.0"],
    "source": "Wikidata",
    "language": "en",
    "inputs": [{"file": "a/b.jsonl", "size": 5, "sha1": "x"}],
    "options": {"seed": 0, "model": "m"},
    "counts": {"read": 3, "kept": 1, "dropped": {"no | text": 2}, "decided_by": {"ann": 1}},
    "warnings": ["w"],
    "configs": _config("newlama", None, test=1),
}
SEEDS = tuple(
    json.dumps(manifest).encode()
    for manifest in (_BUILT, _CKL, _CKL | {"imported": True}, {"dataset": "ckl"}, {"interval": {}, "configs": {}}, [])
)
FOUND: tuple[bytes, ...] = (
    json.dumps(_BUILT).replace("20211129", "2021112!").encode(),  # not a date
    json.dumps(_BUILT | {"options": {"unchanged_fraction": float("nan")}}).encode(),  # not equal to itself
)
WORDS = (*b"NaN 1e400 \\ud800 \\u0085 -1 true null".split(), *(b"[" * 1200, b'{"":' * 1200, b"9" * 20, b"9" * 5000))
LONGEST = 8192
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def check(data: bytes) -> None:
    manifest = _read(data)
    if manifest is None:
        return
    before = copy.deepcopy(manifest)
    _check_card(manifest)
    assert manifest == before, "the card changed the manifest"
    if isinstance(manifest, BuiltManifest):
        assert not large_changes(manifest, manifest), "a month differs from itself"
    if text := eval_yaml([] if isinstance(manifest, CklManifest) else [manifest]):
        assert all(task["config"] in manifest.configs for task in yaml.safe_load(text)["tasks"])


def _read(data: bytes) -> BuiltManifest | ImportedManifest | CklManifest | None:
    """Return the manifest as folders and ``inspect`` read it, or None if it is refused in one line."""
    try:
        name = json.loads(data)["config"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name = None
    stem = name if name == "newlama" else _NAME
    for other in (folder() / "dataset" / "manifests").glob("*"):
        other.unlink()
    file(f"dataset/manifests/{stem}.json", data)
    try:
        check_place(folder() / "dataset")  # as a build does before all else
        [manifest] = read_manifests(folder() / "dataset")
        describe(folder() / "dataset")
    except InputError as error:
        assert str(folder()) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return None
    return manifest


def _check_card(manifest: BuiltManifest | ImportedManifest | CklManifest) -> None:
    named = {name for name, config in manifest.configs.items() if any(s.num_examples for s in config.splits.values())}
    card = folder_card([manifest])
    Path(folder() / "README.md").write_text(card, encoding="utf-8")
    assert card.startswith("---\n")
    header = yaml.safe_load(card.split("\n---\n")[0][4:])
    configs = [config["config_name"] for config in header.get("configs", ())]
    assert named <= set(configs), "a config is not in the card"
    assert len(set(configs)) == len(configs), "a config is in the card twice"
    for config in header.get("configs", ()):
        for files in config["data_files"]:
            assert files["path"].startswith("data/") and ".." not in files["path"]
    assert DatasetCard(card).data.to_dict().keys() == header.keys(), "huggingface_hub reads another header"
    text = _CODE.sub("", card.split("\n---\n", 1)[1])
    assert "<script>" not in text, "markup of a manifest is markup of the card"
