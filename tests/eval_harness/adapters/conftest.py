"""A small month of probes, and models that know some of them."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from tokenizers import processors
from transformers import AutoTokenizer

from temporalwiki.builders.configs import SCHEMAS

import tiny_models
from a_dataset import write_dataset
from tiny_probes import teach

os.environ["XDG_DATA_HOME"] = os.environ["XDG_CACHE_HOME"] = os.environ["HF_HOME"]  # inspect-ai's traces and data

# (subject, relation, object, previous objects), and what the models are taught to say
PROBES = {
    "unchanged": [
        ("Anna Weber", "was born in", "Easton", [], " Easton. She lives there"),
        ("Norland", "capital", "Easton", [], " the Easton. It"),
        ("[Zoë] Ünal", "citizen of", "Norland", [], " Easton. No"),
    ],
    "changed": [
        ("Norland", "head of government", "Anna Weber", ["Ben Ito"], " Ben Ito. He"),
        ("Anna Weber", "born", "1961", [], " 1961."),
        ("Easton", "{{mayor}}", "[Ito]", ["Ito", "Carl"], " Carl Ito of Easton. He"),
        ("東京", "country", "日本", ["Easton"], " 日本. It"),
    ],
    "deleted": [("Norland", "head of government", "Ben Ito", [], " Ben Ito. He")],
}
EXACT_MATCH = {"unchanged": [1, 1, 0], "changed": [0, 1, 0, 1]}
F1 = {"unchanged": [1, 1, 0], "changed": [0, 1, 0.4, 1]}  # "carl ito of easton" against "ito": 2 * 1 / (4 + 1)
KINDS = ("gpt2", "llama", "llama that starts with BOS itself")


# What is also known of the changed facts above: what is right now, its other names, and what no longer is right.
RIGHT_AND_GONE: list[dict[str, Any]] = [
    {"objects": ["Anna Weber", "Ben Ito"], "aliases": [], "gone_objects": []},  # both hold the office
    {"objects": ["1961"], "aliases": ["sixty-one"], "gone_objects": ["1962"]},
    {"objects": ["[Ito]", "Easton Ito"], "aliases": ["Carl Ito of Easton"], "gone_objects": ["Dee", "Carl", "[ito]"]},
    {"objects": [], "aliases": [], "gone_objects": ["Easton"], "current": False},
]


def write_probes(folder: Path, known: list[dict[str, Any]] | None = None, **splits: list[tuple[Any, ...]]) -> Path:
    """Write a dataset folder with the config probes-1112; ``known`` has more columns of the facts of each split."""
    schema = SCHEMAS["probes"]
    rows = {
        split: [
            dict.fromkeys(schema.names)
            | {"subject": s, "relation": r, "object": o, "previous_objects": previous, "subject_id": f"Q{s}"}
            | (known[i] if known else {})
            for i, (s, r, o, previous, _) in enumerate(facts)
        ]
        for split, facts in splits.items()
    }
    tables = {split: pa.Table.from_pylist(of, schema=schema) for split, of in rows.items()}
    return write_dataset(folder, {"probes-1112": tables})


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset folder with the name that the tasks use by default."""
    return write_probes(tmp_path_factory.mktemp("adapters") / "temporalwiki", **PROBES)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models that were trained on the answers above."""
    torch.set_num_threads(1)
    folders = {}
    for kind in ("gpt2", "llama"):
        folder = folders[kind] = tmp_path_factory.mktemp(kind)
        tokenizer = tiny_models.tokenizer(kind)
        model = tiny_models.model(kind, len(tokenizer))
        taught = [f"{s} {r}{said}" for facts in PROBES.values() for s, r, _, _, said in facts]
        teach(model, tokenizer, taught, 80, 1e-2)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    folder = folders[KINDS[2]] = tmp_path_factory.mktemp("bos")
    model.save_pretrained(folder)
    tokenizer._tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )
    tokenizer.save_pretrained(folder)
    assert AutoTokenizer.from_pretrained(folder)("a").input_ids[0] == tokenizer.bos_token_id
    return folders
