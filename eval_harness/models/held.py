"""A model in memory under evaluation: an object of the caller's, which no file describes."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.scoring import PRECISIONS
from temporalwiki.methods import checkpoint

_UNREAD = ("_name_or_path", "transformers_version")  # entries of a configuration that do not change a score


class HeldModel(CachedModel):
    """A model of the caller's with its tokenizer. It stays on its device, and nothing changes its weights."""

    def __init__(self, held: checkpoint.Checkpoint, name: str, cache_folder: Path, precision: str) -> None:
        super().__init__(f"{checkpoint.MEMORY}{name}", cache_folder, precision)
        self._held = held
        self.borrowed = (held.model,)

    @cached_property
    def name(self) -> str:
        """Its name in result files."""
        return self.reference.removeprefix(checkpoint.MEMORY)

    @cached_property
    def loaded(self) -> checkpoint.Checkpoint:
        """The model with its tokenizer."""
        return self._held

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer."""
        return self._held.tokenizer

    @cached_property
    def revision(self) -> str:
        """A hash of weights, configuration and tokenizer; the model must not be trained while this object is used."""
        return weights_and_tokenizer(self._held)

    @cached_property
    def _placement(self) -> tuple[torch.dtype, bool]:
        return self._held.model.dtype, False

    def copied(self) -> checkpoint.Checkpoint:
        """Return a copy of model and tokenizer that training may change."""
        return copy.deepcopy(self._held)

    training = Model.training  # nothing is known


def held_model(model: Any, tokenizer: Any, cache_folder: Path, precision: str, name: str | None = None) -> HeldModel:
    """Return a model of `transformers` or peft for scoring.

    ``tokenizer`` is an object, a folder or a Hub id; if it is None, the model's ``name_or_path`` tells where it is.
    With ``precision`` "auto", weights in float32 are scored as ``--precision auto`` does, and others in their own
    precision. Raises UsageError for an object of another kind, and InputError if model and tokenizer do not belong
    together.
    """
    if not isinstance(model, PreTrainedModel | PeftModel):
        raise UsageError(f"a model is a folder, a Hub id or a model of transformers, not {type(model).__name__}")
    origin = str(getattr(model, "name_or_path", "") or "")
    if tokenizer is None:
        try:
            tokenizer = checkpoint.load_tokenizer(origin)
        except InputError:
            raise UsageError(f"a model in memory needs its tokenizer, and {origin!r} has none: tokenizer=") from None
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = checkpoint.load_tokenizer(os.fspath(tokenizer))
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise UsageError(f"a tokenizer is a folder, a Hub id or one of transformers, not {type(tokenizer).__name__}")
    held = checkpoint.Checkpoint(model, tokenizer)
    name = name or origin or type(model).__name__
    checkpoint.check_together(held, name)
    if model.dtype != torch.float32:
        weights = str(model.dtype).removeprefix("torch.")
        own = PRECISIONS.get(model.dtype, weights)
        if precision not in ("auto", own):
            raise UsageError(f"--precision {precision}: {name} has weights in {weights}; load it in float32")
        precision = own
    return HeldModel(held, name, cache_folder, precision)


def weights_and_tokenizer(held: checkpoint.Checkpoint) -> str:
    """Return a hash of all that a score depends on. Raises InputError for weights that are not in memory."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(held.model.state_dict().items()):
        if not isinstance(tensor, torch.Tensor):
            continue
        if tensor.is_meta:
            raise InputError(f"{held.model.name_or_path}: {name} is not in memory; load the model without an offload")
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    config = {key: value for key, value in held.model.config.to_dict().items() if key not in _UNREAD}
    adapters = {name: str(one.to_dict()) for name, one in getattr(held.model, "peft_config", {}).items()}
    active = list(held.model.active_adapters) if isinstance(held.model, PeftModel) else []
    backend = getattr(held.tokenizer, "backend_tokenizer", None)
    pieces = held.tokenizer.get_vocab() if backend is None else json.loads(backend.to_str())
    for state in ("padding", "truncation"):  # the tokenizer's last call set them
        pieces.pop(state, None)
    described = json.dumps([config, pieces, held.tokenizer.special_tokens_map], sort_keys=True, default=str)
    return fingerprint(digest.hexdigest(), described, adapters, active)


@contextmanager
def modes_kept(*models: Any) -> Iterator[None]:
    """After the block, put the modules of models back into training or evaluation mode, as they were before it."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
