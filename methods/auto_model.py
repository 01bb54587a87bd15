"""Register K-Adapter and Modular checkpoints with the Auto classes of `transformers`.

After ``import temporalwiki.methods.auto_model`` such a checkpoint loads like any other, from a folder or the Hub::

    model = AutoModelForCausalLM.from_pretrained("ORG/k-adapter-1112")

No code from the Hub runs. Without the import, `transformers` raises an error about an unknown model type.
"""

import os
from typing import Any, ClassVar

from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedModel

from temporalwiki.base.errors import InputError
from temporalwiki.methods import checkpoint
from temporalwiki.methods.expansion import SPEC, ExpandedConfig

# options that the Auto classes pass on, but that no model's from_pretrained takes
_AUTO_CLASS_OPTIONS = ("adapter_kwargs", "code_revision", "trust_remote_code", "_from_auto", "_from_pipeline")


class _Expanded:
    """Load a base model and insert the layers of a checkpoint."""

    config_class = ExpandedConfig
    encoder_decoder: ClassVar[bool]

    @classmethod
    def from_pretrained(
        cls, name: str | os.PathLike[str], config: Any = None, revision: str | None = None, **options: Any
    ) -> PreTrainedModel:
        """Return the expanded model, an instance of its base model's class.

        ``options`` apply to the base; options of downloads apply to both. Raises InputError if ``name`` is
        not an expanded model, if another Auto class loads it, or if its base cannot be loaded.
        """
        if options.pop("output_loading_info", False):
            raise InputError(f"{name}: loading info is not available for expanded models; omit output_loading_info")
        for option in _AUTO_CLASS_OPTIONS:
            options.pop(option, None)
        if attention := getattr(config, "_attn_implementation", None):  # where the Auto class has put the option
            options["attn_implementation"] = attention
        reference = f"{name}@{revision}" if revision and checkpoint.is_hub_id(str(name)) else str(name)
        downloads = {option: options[option] for option in checkpoint.DOWNLOAD_OPTIONS if option in options}
        folder = checkpoint.folder_of(reference, **downloads)
        if not (folder / SPEC).is_file():
            raise InputError(f"{reference}: not an expanded model (no {SPEC})")
        model = checkpoint.load_model(reference, options.pop("dtype", "auto"), **options)
        if model.config.is_encoder_decoder != cls.encoder_decoder:
            auto = "AutoModelForCausalLM" if cls.encoder_decoder else "AutoModelForSeq2SeqLM"
            raise InputError(f"{reference}: its model type is {model.config.model_type}; load it with {auto}")
        return model


class ExpandedForCausalLM(_Expanded):
    """Loads decoder-only models with K-Adapter; has no instances of its own."""

    encoder_decoder = False


class ExpandedForSeq2SeqLM(_Expanded):
    """Loads encoder-decoder models with K-Adapter or Modular; has no instances of its own."""

    encoder_decoder = True


AutoModelForCausalLM.register(ExpandedConfig, ExpandedForCausalLM)
AutoModelForSeq2SeqLM.register(ExpandedConfig, ExpandedForSeq2SeqLM)
