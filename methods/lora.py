"""LoRA: low-rank adapters on query and value, a new block of ranks each phase."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import write_json
from temporalwiki.methods.architecture import is_encoder_decoder, stack, train_decoder_alone
from temporalwiki.methods.checkpoint import split
from temporalwiki.methods.method import Method, StateDict, whole

# the layers' own names for query and value, after the block's number
_QUERY_VALUE = re.compile(r"\.\d+\.(?:.*\.)?(q_proj|v_proj|SelfAttention\.q|SelfAttention\.v|attn\.c_attn)$")
_FUSED = "attn.c_attn"  # GPT-2: query, key and value in one


class PartlyTrained(nn.Linear):
    """A bias-free linear map of which only the entries under a mask are trained.

    The mask is applied in the forward pass, not to gradients, so that it holds however the weight is sharded.
    """

    def __init__(self, weight: torch.Tensor, trained: torch.Tensor) -> None:
        """Take over ``weight`` (out, in); entries where ``trained`` is false keep their value."""
        super().__init__(weight.shape[1], weight.shape[0], bias=False, device="meta")
        self.weight = nn.Parameter(weight.detach())
        self.fixed = int(trained.numel() - trained.sum())  # entries that do not count as trainable
        self.register_buffer("trained", trained.to(weight.device), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map x (..., in) to (..., out)."""
        return F.linear(x, torch.where(self.trained, self.weight, self.weight.detach()))


@dataclass(frozen=True)
class LoRA(Method):
    """Adapters of low rank on the query and value of each attention layer (Hu et al. 2022; CKL section 4).

    Decoder-only: all else is frozen. Encoder-decoder: adapters in the encoder's self-attention, encoder and shared
    embedding frozen, decoder trained. Each later phase adds adapters of the same rank and freezes the earlier ones,
    in one peft adapter whose rank grows; a checkpoint therefore always fits the original base model.

    The authors' code scales by 1 / rank (``alpha=1``); 32 is LoRA's own setting for GPT-2.
    """

    rank: int = field(default=4, metadata={"help": "of each adapter"})
    alpha: float = field(default=32.0, metadata={"help": "adapters are scaled by alpha / rank; 1 as in CKL's code"})
    dropout: float = field(default=0.0, metadata={"help": "on what the adapters read"})

    def __post_init__(self) -> None:
        """Refuse what is no adapter."""
        if self.rank < 1 or not self.alpha > 0 or not 0 <= self.dropout < 1:
            raise UsageError(f"{type(self).__name__.lower()} needs rank >= 1, alpha > 0 and 0 <= dropout < 1")

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PeftModel:
        """Add the phase's adapters; at the start they change nothing."""
        if not isinstance(model, PeftModel):
            model = self.adapted(whole(model), seed)
            hold(model, 0, 0, seed)
            return model
        check_goes_on(model, dora=False)
        self._check_same_scale(model)
        train_adapters(model)
        fused = adapters(model)[0].fan_in_fan_out
        hold(model, lora_config(model).r, 2 * self.rank if fused else self.rank, seed)
        return model

    def adapted(self, model: PreTrainedModel, seed: int, **options: Any) -> PeftModel:
        """Return the model with fresh adapters of rank ``rank``, twice that on a fused layer.

        Raises InputError for a model without query and value.
        """
        targets = [
            name
            for name, module in stack(model).module.named_modules()
            # other models than GPT-2 fuse in other ways
            if _QUERY_VALUE.search(f".{name}") and (isinstance(module, Conv1D) or not name.endswith(_FUSED))
        ]
        if not targets:
            raise InputError(
                f"{model.config.model_type}: no query and value projections of a known name; "
                "lora and dora know GPT-2, T5 and models whose layers have q_proj and v_proj"
            )
        fused = targets[0].endswith(_FUSED)
        within = next(name for name, module in model.named_modules() if module is stack(model).module)
        config = LoraConfig(
            r=self.rank * 2 if fused else self.rank,
            lora_alpha=self.alpha * 2 if fused else self.alpha,
            lora_dropout=self.dropout,
            target_modules=[f"{within}.{name}" if within else name for name in targets],
            fan_in_fan_out=fused,
            modules_to_save=train_decoder_alone(model) if is_encoder_decoder(model) else None,
            task_type="SEQ_2_SEQ_LM" if is_encoder_decoder(model) else "CAUSAL_LM",
            **options,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return get_peft_model(model, config)

    def save(self, model: PreTrainedModel | PeftModel, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write a peft adapter."""
        more = {} if state_dict is None else {"state_dict": dict(state_dict)}
        model.save_pretrained(folder, save_embedding_layers=False, **more)
        path = folder / "adapter_config.json"  # peft keeps the names in sets, whose order is another each time
        config = json.loads(path.read_text("utf-8"))
        for name, value in config.items():
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                config[name] = sorted(value)
        base, revision = split(config["base_model_name_or_path"] or "")
        if revision:
            config |= {"base_model_name_or_path": base, "revision": revision}
        write_json(path, config)

    def _check_same_scale(self, model: PeftModel) -> None:
        """One peft adapter has one scale for all of its ranks."""
        config = lora_config(model)
        if abs(config.lora_alpha / config.r - self.alpha / self.rank) > 1e-9:
            raise UsageError(
                f"the checkpoint's adapters are scaled by {config.lora_alpha / config.r:g}, this phase's would be by "
                f"{self.alpha / self.rank:g}: use alpha {config.lora_alpha / config.r * self.rank:g}"
            )


def lora_config(model: PeftModel) -> LoraConfig:
    """Return the configuration of a model's LoRA or DoRA adapter; raise InputError for other kinds of peft."""
    config = model.active_peft_config
    if not isinstance(config, LoraConfig):
        raise InputError(f"a checkpoint of another peft method ({config.peft_type}); merge it into its base first")
    return config


def check_goes_on(model: PeftModel, dora: bool) -> None:
    """Raise InputError unless ``model`` has an adapter that lora, or ``dora``, can go on with.

    The adapter that is saved belongs to the first base model, so that nothing can be merged into that in between.
    """
    config = lora_config(model)
    if config.use_dora != dora:
        there, here = ("dora", "lora") if config.use_dora else ("lora", "dora")
        raise InputError(f"a checkpoint of {there}: {here} cannot go on from it; merge it first (merge_and_unload)")
    if config.use_rslora or config.rank_pattern or config.alpha_pattern:
        raise InputError("an adapter with rslora or with ranks of its own a layer; merge it into its base model first")


def adapters(model: PeftModel) -> list[LoraLayer]:
    """Return the layers that have an adapter."""
    return [module for module in model.modules() if isinstance(module, LoraLayer)]


def hold(model: PeftModel, held: int, added: int, seed: int) -> None:
    """Append ``added`` ranks to each adapter, and let all but its first ``held`` ranks train.

    On a fused layer the ranks that train are two separate adapters in one: the first half is the query's, the second
    the value's, and the rest of their B stays zero. Twice the ranks at the same scale are the same function.
    """
    draw = torch.Generator().manual_seed(seed + held)  # each phase reads other directions
    for layer in adapters(model):
        (name,) = layer.active_adapters
        old_a, old_b = layer.lora_A[name].weight, layer.lora_B[name].weight
        more_a = torch.empty(added, old_a.shape[1])
        if added:
            nn.init.kaiming_uniform_(more_a, a=5**0.5, generator=draw)  # LoRA's own start, as peft has it
        a = torch.cat([old_a.detach(), more_a.to(old_a)])
        b = torch.cat([old_b.detach(), old_b.detach().new_zeros(old_b.shape[0], added)], dim=1)
        trained_a = torch.zeros(a.shape, dtype=torch.bool, device="cpu")
        trained_b = torch.zeros(b.shape, dtype=torch.bool, device="cpu")
        trained_a[held:] = True
        if layer.fan_in_fan_out:
            third, half = b.shape[0] // 3, held + (b.shape[1] - held) // 2
            trained_b[:third, held:half] = True
            trained_b[2 * third :, half:] = True
        else:
            trained_b[:, held:] = True
        layer.lora_A[name] = PartlyTrained(a, trained_a)
        layer.lora_B[name] = PartlyTrained(b, trained_b)
        layer.r[name] = a.shape[0]
        layer.lora_alpha[name] = layer.scaling[name] * a.shape[0]
    config = lora_config(model)
    config.lora_alpha *= (config.r + added) / config.r
    config.r += added
    config.inference_mode = False


def train_adapters(model: PeftModel) -> None:
    """Let an adapter that was loaded train again, with the parts that peft saves whole (T5's decoder)."""
    model.requires_grad_(False)
    for name, parameter in model.named_parameters():
        if ".modules_to_save." in name or ".lora_" in name:
            parameter.requires_grad_(True)
