"""OSF: train each matrix only outside the directions that matter most to it."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from peft import OSFConfig, PeftModel, get_peft_model
from peft.tuners.osf.layer import OSFLayer
from torch import nn
from transformers.pytorch_utils import Conv1D

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import option
from temporalwiki.methods.architecture import unread
from temporalwiki.methods.expansion import unwrapped
from temporalwiki.methods.method import Method, Model, Phase, StateDict


@dataclass(frozen=True)
class OSF(Method):
    """Orthogonal subspace fine-tuning (Nayak et al. 2025), with peft, of all linear layers but the output.

    A matrix W = U S V is split by its singular values. The directions of the largest ones are kept. The others are
    trained, and stay orthogonal to the kept ones. The checkpoint is a whole model, and the next phase splits it again.

    peft projects the gradients only, and Adam leaves that space. Here each step ends with a projection.
    """

    shardable: ClassVar[bool] = False

    kept: float = option(
        0.5, "share of the singular values of each matrix whose directions are kept", above=0, below=1
    )

    def prepare(self, model: Model, phase: Phase) -> PeftModel:
        """Split the matrices of all linear layers, which changes nothing at first; freeze everything else.

        Raises InputError for a model without linear layers.
        """
        model = unwrapped(model)
        for name, module in list(model.named_modules()):
            if isinstance(module, Conv1D):
                model.set_submodule(name, TurnedConv1D(module))
        others = {id(module) for part in (*unread(model), model.get_output_embeddings()) for module in part.modules()}
        names = [
            name
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear) and id(module) not in others and min(module.weight.shape) * self.kept >= 1
        ]
        if not names:
            raise InputError(f"{model.config.model_type}: osf finds no linear layers to train")
        return get_peft_model(model, OSFConfig(target_modules=names, effective_rank=self.kept))

    @torch.no_grad()
    def after_step(self, model: Model) -> None:
        """Project the trained directions onto the space orthogonal to the kept ones."""
        for layer in model.modules():
            if isinstance(layer, OSFLayer):
                (name,) = layer.active_adapters
                u, v = layer.osf_svd_params[name]["U_low"], layer.osf_svd_params[name]["V_low"].T
                u.copy_(_projected(u, layer._osf_U_low_init[name], dict(layer._osf_U_high).get(name)))
                high = dict(layer._osf_V_high).get(name)
                v.copy_(_projected(v, layer._osf_V_low_init[name].T, None if high is None else high.T))

    def save(self, model: Model, folder: Path, state_dict: StateDict | None = None) -> None:
        """Write a whole model."""
        model = unwrapped(model)
        for name, module in list(model.named_modules()):
            if isinstance(module, TurnedConv1D):
                model.set_submodule(name, module.turned_back())
        super().save(model, folder, state_dict)


class TurnedConv1D(nn.Linear):
    """A linear layer like a Conv1D of GPT-2, whose weight is transposed; peft splits only linear layers."""

    def __init__(self, conv: Conv1D) -> None:
        """Compute what ``conv`` computes."""
        super().__init__(*conv.weight.shape, device="meta")
        self.weight, self.bias = nn.Parameter(conv.weight.detach().T.contiguous()), conv.bias

    def turned_back(self) -> Conv1D:
        """Return the Conv1D that computes what this layer computes."""
        conv = Conv1D(*self.weight.shape)
        conv.weight, conv.bias = nn.Parameter(self.weight.detach().T.contiguous()), self.bias
        return conv


def _projected(x: torch.Tensor, start: torch.Tensor, kept: torch.Tensor | None) -> torch.Tensor:
    """Return the columns of ``x`` without their part along the ``kept`` columns.

    peft does not store these if the columns at the ``start`` span all the rest of the space.
    """
    return start @ (start.T @ x) if kept is None else x - kept @ (kept.T @ x)
