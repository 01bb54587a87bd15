"""SDFT: the model with a new text in its context teaches the model without it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import GenerationConfig

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import option
from temporalwiki.methods.architecture import context_length
from temporalwiki.methods.method import Batch, ExtraLoss, Method, Model, Phase, StepShare


@dataclass(frozen=True)
class SDFT(Method):
    """Self-distillation fine-tuning (Shenfeld et al. 2026, Algorithm 1), with texts in place of demonstrations.

    The student reads the first ``prompt`` tokens x of a document c, and goes on with ``length`` tokens y of its own,
    drawn at temperature 1. The teacher, the model of the phase's start, reads c before x and y. The loss is
    KL(student(. | x, y<t) || teacher(. | c, x, y<t)), averaged over all tokens t of y.

    The paper's teacher is a moving average of the student, which a checkpoint would have to hold. A teacher that is
    the student itself soon agrees with it without having learned anything. The paper's loss has no cross entropy of
    the text; ``text`` adds it.
    """

    reads_logits: ClassVar[bool] = True
    shardable: ClassVar[bool] = False
    unsupported_architecture: ClassVar[str] = "encoder-decoder"

    prompt: int = option(8, "tokens of each document that the student reads", at_least=1)
    length: int = option(32, "tokens that the student goes on with", at_least=1)
    text: float = option(0.0, "weight of the text's own loss", at_least=0)

    @property
    def text_weight(self) -> float:
        """The option ``text``."""
        return self.text

    def extra_loss(self, model: Model, examples: Callable[..., list[Batch]], phase: Phase) -> ExtraLoss:
        """Return the function for the distillation term; raise UsageError if the model reads too few tokens.

        The teacher is a frozen copy of the starting checkpoint.
        """
        longest, drawn = context_length(model.config), self.prompt + self.length
        if longest is not None and longest < drawn:
            raise UsageError(f"sdft: --prompt and --length are {drawn} tokens together, but the model reads {longest}")
        room = None if longest is None else longest - drawn
        teacher = copy.deepcopy(model).eval().requires_grad_(False)

        def distil(model: nn.Module, batch: Batch, logits: torch.Tensor, share: StepShare) -> torch.Tensor:
            texts = documents(batch, self.prompt)
            if not texts:
                return logits.sum() * 0  # with a gradient, which other processes wait for
            begin = torch.stack([text[: self.prompt] for text in texts])
            training = model.training
            model.eval()
            with torch.no_grad():
                read = self._drawn(model, begin)
                both = [torch.cat([c[:room], xy])[None] for c, xy in zip(texts, read, strict=True)]
                told = [teacher(one, use_cache=False).logits[0] for one in both]
            model.train(training)
            wanted = torch.stack([one[-1 - self.length : -1] for one in told]).float().log_softmax(-1)
            student = model(read, use_cache=False).logits[:, -1 - self.length : -1].float().log_softmax(-1)
            return (student.exp() * (student - wanted)).sum(-1).mean() * share.fraction

        return distil

    def _drawn(self, model: Any, begin: torch.Tensor) -> torch.Tensor:
        """Return the prompts [documents, prompt] with the tokens that the model draws after them."""
        how = GenerationConfig(
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            repetition_penalty=1.0,
            max_new_tokens=self.length,
            eos_token_id=-1,  # none: another text may follow the end of one, as in training
            pad_token_id=0,
        )
        drawn: torch.Tensor = model.generate(begin, attention_mask=torch.ones_like(begin), generation_config=how)
        return drawn


def documents(batch: Batch, least: int) -> list[torch.Tensor]:
    """Return the tokens of each document of a batch that has more than ``least``, without padding."""
    found = []
    for ids, positions, labels in zip(batch["input_ids"], batch["position_ids"], batch["labels"], strict=True):
        begins = [*(positions == 0).nonzero().flatten().tolist(), len(ids)]
        for begin, end in pairwise(begins):
            if end - begin > least and bool((labels[begin:end] != -100).any()):
                found.append(ids[begin:end])
    return found
