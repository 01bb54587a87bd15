"""LoRA: low-rank adapters on query and value, with new ranks in each phase."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from peft.utils.other import AuxiliaryTrainingWrapper
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from temporalwiki.base.errors import InputError, UsageError, first_line
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.base.options import did_you_mean, option
from temporalwiki.builders.loading import split_revision
from temporalwiki.methods.architecture import is_encoder_decoder, seeded, text_module, train_only_decoder
from temporalwiki.methods.expansion import unwrapped
from temporalwiki.methods.method import Method, Model, Phase, StateDict

# names of the query and value projections, after the number of their block
_QUERY_VALUE = re.compile(r"\.\d+\.(?:.*\.)?(q_proj|v_proj|SelfAttention\.q|SelfAttention\.v|attn\.c_attn)$")
_FUSED = "attn.c_attn"  # GPT-2 has query, key and value in one projection
_ALL = "all-linear"
_Linear = nn.Linear | Conv1D


class PartlyTrained(nn.Linear):
    """A linear layer without bias that trains only the entries of its weight under a mask.

    The forward pass applies the mask, so that it works with sharded weights; a mask on gradients would not.
    """

    def __init__(self, weight: torch.Tensor, trained: torch.Tensor) -> None:
        """Use ``weight`` (out, in). Entries where ``trained`` is False keep their value."""
        super().__init__(weight.shape[1], weight.shape[0], bias=False, device="meta")
        self.weight = nn.Parameter(weight.detach())
        self.fixed = int(trained.numel() - trained.sum())  # number of entries that never change
        self.register_buffer("trained", trained.to(weight.device), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map x (..., in) to (..., out)."""
        return F.linear(x, torch.where(self.trained, self.weight, self.weight.detach()))


@dataclass(frozen=True)
class LoRA(Method):
    """Adapters of low rank on the query and value of each attention layer (Hu et al. 2022; CKL section 4).

    In a decoder-only model everything else is frozen. In an encoder-decoder the adapters are in the encoder's
    self-attention, the encoder and the shared embedding are frozen, and the decoder is trained. Each later phase adds
    adapters of the same rank and freezes the earlier ones. All phases form one peft adapter whose rank grows, so that
    a checkpoint always fits the original base model.

    CKL's code scales by 1 / rank (``alpha=1``); the default of 32 is LoRA's own setting for GPT-2.
    """

    adds_only: ClassVar[bool] = True

    rank: int = option(4, "rank of the adapters of one phase", at_least=1)
    alpha: float = option(32.0, "adapters are scaled by alpha / rank; CKL's code uses 1", above=0)
    dropout: float = option(0.0, "dropout on the adapters' input", at_least=0, below=1)
    target: tuple[str, ...] | None = option(None, f"layers to adapt: names, or {_ALL} (default: query and value)")

    def prepare(self, model: Model, phase: Phase) -> PeftModel:
        """Add the phase's adapters, which change nothing at first."""
        if not isinstance(model, PeftModel):
            model = self.adapted(unwrapped(model), phase.seed)
            extend_adapters(model, 0, 0, phase.seed)
            return model
        check_can_continue(model, dora=False)
        self._check_target(model)
        self._check_scale(model)
        train_adapters(model)
        ranks = 2 * self.rank if is_fused(model) else self.rank
        extend_adapters(model, lora_config(model).r, ranks, phase.seed)
        return model

    def adapted(self, model: PreTrainedModel, seed: int, **options: Any) -> PeftModel:
        """Return the model with new adapters of rank ``rank``, or twice that on a fused projection.

        Raises InputError for a model without known query and value projections, and UsageError for an unknown target
        or one that peft refuses.
        """
        linear = {name: part for name, part in text_module(model).named_modules() if isinstance(part, _Linear)}
        if self.target is not None:
            targets = self._named(linear)
        else:
            # a c_attn that is not GPT-2's Conv1D is fused in another way
            found = [name for name in linear if _QUERY_VALUE.search(f".{name}")]
            targets = [name for name in found if isinstance(linear[name], Conv1D) or not name.endswith(_FUSED)]
        if not targets:
            raise InputError(
                f"{model.config.model_type}: no query and value projections of a known name, as GPT-2, T5 and models "
                f"with q_proj and v_proj have; name others with --target: {', '.join(_kinds(linear))}"
            )
        fused = all(name.endswith(_FUSED) and isinstance(linear[name], Conv1D) for name in targets)
        within = next(name for name, module in model.named_modules() if module is text_module(model))
        config = LoraConfig(
            r=self.rank * 2 if fused else self.rank,
            lora_alpha=self.alpha * 2 if fused else self.alpha,
            lora_dropout=self.dropout,
            target_modules=[f"{within}.{name}" if within else name for name in targets],
            fan_in_fan_out=isinstance(linear[targets[0]], Conv1D),
            modules_to_save=train_only_decoder(model) if is_encoder_decoder(model) else None,
            task_type="SEQ_2_SEQ_LM" if is_encoder_decoder(model) else "CAUSAL_LM",
            **options,
        )
        try:
            with seeded(seed):
                return get_peft_model(model, config)
        except ValueError as error:  # such as the layers of Mamba that bypass their modules
            raise UsageError(f"--target: {first_line(error)}") from None

    def save(self, model: Model, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write a peft adapter."""
        more = {} if state_dict is None else {"state_dict": dict(state_dict)}
        # those in ``modules_to_save`` are saved anyway
        wrapped = isinstance(model.get_input_embeddings(), AuxiliaryTrainingWrapper)
        own = not wrapped and getattr(model, "own_embeddings", False)
        model.save_pretrained(folder, save_embedding_layers=own, **more)
        path = folder / "adapter_config.json"  # peft stores names as sets: sort them, so that runs write equal files
        config = read_json(path, dict[str, Any])
        for name, value in config.items():
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                config[name] = sorted(value)
        base, revision = split_revision(config["base_model_name_or_path"] or "")
        if revision:
            config |= {"base_model_name_or_path": base, "revision": revision}
        write_json(path, config)

    def _named(self, names: Iterable[str]) -> list[str]:
        """Keep the ``names`` of layers that match ``target``; raise UsageError if a target matches no layer."""
        wanted, known = self.target or (), _kinds(names)
        if wanted == (_ALL,):
            return list(names)
        if unknown := [name for name in wanted if name not in known]:
            near = did_you_mean(unknown[0], known)
            raise UsageError(f"--target: no linear layer {unknown[0]!r}{near}; there are {', '.join(known)}")
        return [name for name in names if name.rpartition(".")[2] in wanted]

    def _check_target(self, model: PeftModel) -> None:
        """Raise UsageError if ``target`` does not match exactly the layers that have adapters."""
        if self.target is None:
            return
        parts = dict(text_module(model.get_base_model()).named_modules())
        there = [name for name, part in parts.items() if isinstance(part, LoraLayer)]
        inside = tuple(f"{name}." for name in there)
        rest = [name for name, part in parts.items() if isinstance(part, _Linear) and not name.startswith(inside)]
        if sorted(self._named([*there, *rest])) != sorted(there):
            raise UsageError(
                f"--target: the checkpoint adapts {', '.join(_kinds(there))}; a later phase adapts the same"
            )

    def _check_scale(self, model: PeftModel) -> None:
        """Raise UsageError if this phase's scale differs: a peft adapter has a single scale for all its ranks."""
        config = lora_config(model)
        if abs(config.lora_alpha / config.r - self.alpha / self.rank) > 1e-9:
            raise UsageError(
                f"the checkpoint scales its adapters by {config.lora_alpha / config.r:g}, this phase by "
                f"{self.alpha / self.rank:g}: use alpha {config.lora_alpha / config.r * self.rank:g}"
            )


def _kinds(names: Iterable[str]) -> list[str]:
    """Return the last parts of the names of layers, without repetitions."""
    return list(dict.fromkeys(name.rpartition(".")[2] for name in names))


def is_fused(model: PeftModel) -> bool:
    """Return whether only GPT-2's projection of query, key and value has adapters: then its key is not adapted."""
    names = [name for name, part in model.named_modules() if isinstance(part, LoraLayer)]
    return bool(lora_config(model).fan_in_fan_out) and all(name.endswith(_FUSED) for name in names)


def lora_config(model: PeftModel) -> LoraConfig:
    """Return the configuration of a model's LoRA or DoRA adapter; raise InputError for another kind of adapter."""
    config = model.active_peft_config
    if not isinstance(config, LoraConfig):
        raise InputError(f"a checkpoint of another peft method ({config.peft_type}); merge it into its base first")
    return config


def check_can_continue(model: PeftModel, dora: bool) -> None:
    """Raise InputError unless LoRA (or DoRA, if ``dora``) can train the model's adapter further.

    An adapter of another kind is not merged for the user: a saved adapter belongs to the original base model, but the
    new adapter would need the merged one.
    """
    config = lora_config(model)
    if config.use_dora != dora:
        there, here = ("dora", "lora") if config.use_dora else ("lora", "dora")
        raise InputError(f"a checkpoint of {there}: {here} cannot continue it; merge it first (merge_and_unload)")
    if config.use_rslora or config.rank_pattern or config.alpha_pattern:
        raise InputError("an adapter with rslora or different ranks per layer; merge it into its base model first")


def adapters(model: PeftModel) -> list[LoraLayer]:
    """Return the layers that have an adapter."""
    return [module for module in model.modules() if isinstance(module, LoraLayer)]


def extend_adapters(model: PeftModel, frozen_ranks: int, new_ranks: int, seed: int) -> None:
    """Append ``new_ranks`` to each adapter and freeze its first ``frozen_ranks``; the others are trainable.

    An adapter adds B A to a weight. If the weight is the fused projection of query, key and value, the first half of
    the trainable ranks is for the query and the second half for the value; all other new entries of B stay zero. So
    twice the ranks at the same scale compute the same function as two separate adapters.
    """
    fused = is_fused(model)
    draw = torch.Generator().manual_seed(seed + frozen_ranks)  # each phase starts from different directions
    for layer in adapters(model):
        (name,) = layer.active_adapters
        old_a, old_b = layer.lora_A[name].weight, layer.lora_B[name].weight
        more_a = torch.empty(new_ranks, old_a.shape[1])
        if new_ranks:
            nn.init.kaiming_uniform_(more_a, a=5**0.5, generator=draw)  # LoRA's initialisation, as in peft
        a = torch.cat([old_a.detach(), more_a.to(old_a)])
        b = torch.cat([old_b.detach(), old_b.detach().new_zeros(old_b.shape[0], new_ranks)], dim=1)
        trained_a = torch.zeros(a.shape, dtype=torch.bool, device="cpu")
        trained_b = torch.zeros(b.shape, dtype=torch.bool, device="cpu")
        trained_a[frozen_ranks:] = True
        if fused:
            third, half = b.shape[0] // 3, frozen_ranks + (b.shape[1] - frozen_ranks) // 2
            trained_b[:third, frozen_ranks:half] = True
            trained_b[2 * third :, half:] = True
        else:
            trained_b[:, frozen_ranks:] = True
        layer.lora_A[name] = PartlyTrained(a, trained_a)
        layer.lora_B[name] = PartlyTrained(b, trained_b)
        layer.r[name] = a.shape[0]
        layer.lora_alpha[name] = layer.scaling[name] * a.shape[0]
    config = lora_config(model)
    config.lora_alpha *= (config.r + new_ranks) / config.r
    config.r += new_ranks
    config.inference_mode = False


def train_adapters(model: PeftModel) -> None:
    """Make a loaded adapter trainable again, and the modules that peft saves with it (T5's decoder)."""
    model.requires_grad_(False)
    for name, parameter in model.named_parameters():
        if ".modules_to_save." in name or ".lora_" in name:
            parameter.requires_grad_(True)
