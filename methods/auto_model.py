"""K-Adapter and Modular in the library's own Auto classes; no code comes from the Hub.

After ``import temporalwiki.methods.auto_model`` a folder or a repository of such a checkpoint loads as any other::

    model = AutoModelForCausalLM.from_pretrained("ORG/k-adapter-1112")

Without the import ``transformers`` says that it does not know the model type, and loads nothing.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedModel

from temporalwiki.base.errors import InputError
from temporalwiki.methods import checkpoint
from temporalwiki.methods.expansion import SPEC, ExpandedConfig

_OF_AUTO = ("adapter_kwargs", "code_revision", "trust_remote_code", "_from_auto", "_from_pipeline")


class _Expanded:
    """Loads the base model and builds the layers in."""

    config_class = ExpandedConfig
    encoder_decoder: ClassVar[bool]

    @classmethod
    def from_pretrained(
        cls, name: str | os.PathLike[str], config: Any = None, revision: str | None = None, **options: Any
    ) -> PreTrainedModel:
        """Return the expanded model: an instance of its base's class.

        ``options`` as ``dtype`` or ``device_map`` are used for the base, those of downloads for both. Raises
        InputError where there is no expanded model or one of another kind, or its base cannot be loaded.
        """
        if options.pop("output_loading_info", False):
            raise InputError(f"{name}: of an expanded model there is no loading info: leave output_loading_info out")
        for option in _OF_AUTO:
            options.pop(option, None)
        if attention := getattr(config, "_attn_implementation", None):  # the library has put it there
            options["attn_implementation"] = attention
        reference = f"{name}@{revision}" if revision and checkpoint.is_hub_id(str(name)) else str(name)
        downloads = {option: options[option] for option in checkpoint.DOWNLOAD if option in options}
        folder = checkpoint.folder_of(reference, **downloads)
        if not (folder / SPEC).is_file():
            raise InputError(f"{reference}: no layers of an expanded model are there (no {SPEC})")
        model = checkpoint.load_expanded(folder, options.pop("dtype", "auto"), **options)
        if model.config.is_encoder_decoder != cls.encoder_decoder:
            auto = "AutoModelForCausalLM" if cls.encoder_decoder else "AutoModelForSeq2SeqLM"
            raise InputError(f"{reference}: a {model.config.model_type}, which {auto} loads")
        return model


class ExpandedForCausalLM(_Expanded):
    """A decoder-only model with K-Adapter."""

    encoder_decoder = False


class ExpandedForSeq2SeqLM(_Expanded):
    """An encoder-decoder model with K-Adapter or Modular."""

    encoder_decoder = True


AutoModelForCausalLM.register(ExpandedConfig, ExpandedForCausalLM)
AutoModelForSeq2SeqLM.register(ExpandedConfig, ExpandedForSeq2SeqLM)
