"""A model's folder from a stranger: its configuration, the index of its weights, its adapter or added layers.

The folder is read as train, evaluate and publish read it, up to the weights.
"""

import contextlib
import io
import json
import logging
import shutil
import socket
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import save
from transformers.utils import logging as library_logging

from temporalwiki.base.errors import InputError
from temporalwiki.methods import checkpoint
from temporalwiki.push_scripts.model import _shards

from fuzz.files import folder
from fuzz.json_text import mutate as mutate

_CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 8, "n_positions": 4, "n_embd": 4}
_CONFIG |= {"n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
_T5 = {"model_type": "t5", "d_model": 4, "d_kv": 2, "d_ff": 4, "num_layers": 1, "num_heads": 2, "vocab_size": 8}
_INDEX = {"metadata": {"total_size": 8}, "weight_map": {"wte.weight": "model-00001-of-00001.safetensors"}}
_ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "../base", "r": 4, "target_modules": ["c_attn"]}
_ADAPTER |= {"task_type": "CAUSAL_LM", "revision": None, "lora_alpha": 8}
_EXPANSION = {"method": "k_adapter", "base_model": "../base", "model_type": "gpt2", "layers": 1, "phases": [{}]}
_EXPANSION |= {"changed": []}
SEEDS = tuple(
    json.dumps(one).encode()
    for one in (
        {"config": _CONFIG, "index": _INDEX},
        {"config": _T5},
        {"config": _CONFIG | {"_attn_implementation": "ORG/kernel"}, "index": _INDEX},
        {"config": _CONFIG | {"auto_map": {"AutoConfig": "code.Config"}, "transformers_weights": "x.bin"}},
        {"config": _CONFIG, "index": _INDEX | {"weight_map": {"wte.weight": "../other/x.safetensors"}}},
        {"config": _CONFIG, "index": {"weight_map": {"wte.weight": "pytorch_model.bin"}}},
        {"adapter": _ADAPTER},
        {"adapter": _ADAPTER | {"base_model_name_or_path": "ORG/gpt2", "revision": "main"}},
        {"adapter": _ADAPTER | {"megatron_config": {"x": 1}}},
        {"expansion": _EXPANSION},
        {"expansion": _EXPANSION | {"base_model": "ORG/gpt2@main"}},
        {"config": {"model_type": "temporalwiki_expansion"}},
    )
)
FOUND = (
    json.dumps({"adapter": _ADAPTER | {"base_model_name_or_path": "a\nb"}}).encode(),
    b'{"adapter":{"revision":"/etc/passwd"}}',
)
WORDS = (b'"config":', b'"index":', b'"adapter":', b'"expansion":', b'"auto_map":', b'"_attn_implementation":', b"/",
         b'"quantization_config":', b'"weight_map":', b'"text_config":', b"1e7", b"9" * 20, b'"dtype":',
         b'"sub_configs":', b'"gguf"', b"\\u001b[2J", b"..", b'"trust_remote_code":', b'"kernel_config":')  # fmt: skip
LONGEST = 4096
_FILES = {"config": "config.json", "index": "model.safetensors.index.json", "adapter": checkpoint.ADAPTER}
_FILES |= {"expansion": checkpoint.SPEC}
_SHARD = save({"wte.weight": np.zeros((8, 4), np.float32)})


class _Reached(BaseException):
    """The library would read the weights now; no handler of errors takes it."""


class _Broken(BaseException):
    """A promise is broken within a call; no handler of errors takes it."""


def check(data: bytes) -> None:
    try:
        given = json.loads(data)
        texts = {name: json.dumps(given[name]) for name in _FILES if name in given}
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    models = folder() / "models"
    shutil.rmtree(models, ignore_errors=True)
    place = models / "given"
    for at, name, content in (
        *((place, _FILES[name], text.encode()) for name, text in texts.items()),
        *((place, name, _SHARD) for name in ("model-00001-of-00001.safetensors", checkpoint.ADAPTER_WEIGHTS)),
        *((at, "x.safetensors", _SHARD) for at in (models / "other", models / "base")),
        (models / "base", "config.json", json.dumps(_CONFIG).encode()),
    ):
        at.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(content)
    said = io.StringIO()
    with (
        contextlib.chdir(place),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
        mock.patch.object(checkpoint.AutoModelForCausalLM, "from_pretrained", _read),
        mock.patch.object(checkpoint.AutoModelForSeq2SeqLM, "from_pretrained", _read),
        mock.patch.object(socket.socket, "connect", _connect),
        mock.patch.object(socket, "getaddrinfo", _connect),
    ):
        for ask in (checkpoint.load_model, _parts):
            try:
                ask(str(place))
            except InputError as error:
                assert "\n" not in str(error) and len(str(error)) < 2000 + len(data), f"not one line: {str(error)!a}"
            except _Reached:
                pass
            except _Broken as broken:
                raise AssertionError(*broken.args) from None
    assert "\x1b" not in said.getvalue(), "control characters reach the terminal"


def _read(path: str, *, config: Any = None, **options: Any) -> Any:
    """Check what the library would read, where it would begin."""
    if options["trust_remote_code"] is not False or not options.get("use_safetensors"):
        raise _Broken("code or pickles would be read")
    index = Path(path) / _FILES["index"]
    if index.is_file():
        for name in json.loads(index.read_text("utf-8"))["weight_map"].values():
            whole = (Path(path) / name).resolve()
            if whole.parent != Path(path).resolve() or whole.suffix != ".safetensors":
                raise _Broken(f"{name} would be read")
    raise _Reached


def _parts(place: str) -> None:
    """Find the base or the files of weights as publish does, which loads a whole model before."""
    if (Path(place) / checkpoint.ADAPTER).is_file():
        checkpoint.base_of_adapter(Path(place))
        return
    with contextlib.suppress(_Reached):
        checkpoint.load_model(place)
    for name in _shards(Path(place)):
        assert "/" not in name


def _connect(*_: Any, **__: Any) -> None:
    raise _Broken("what lies here opens a connection")


library_logging.set_verbosity_error()  # as the commands do
logging.captureWarnings(True)
