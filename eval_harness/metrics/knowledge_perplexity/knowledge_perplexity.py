"""Perplexity of probes as an `evaluate` module, which scores texts as `temporalwiki evaluate` does."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import datasets
import evaluate
import torch

import temporalwiki.eval_harness.metrics.knowledge_perplexity as definition
import temporalwiki.eval_harness.models.local as local
import temporalwiki.eval_harness.scoring as scoring
import temporalwiki.methods.checkpoint as checkpoint


class KnowledgePerplexity(evaluate.Metric):
    """Perplexity of probes: how surprised a language model is by facts."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="How surprised a language model is by facts; lower is better. See README.md.",
            citation="",
            license="apache-2.0",
            inputs_description="Texts, and a model: a folder, a Hub id, a .gguf file, package:NAME, or a loaded one.",
            features=datasets.Features({"predictions": datasets.Value("string")}),
            reference_urls=["https://arxiv.org/abs/2204.14211"],
        )

    def add(self, *, prediction: Any = None) -> None:
        """Add one text."""
        self.add_batch(predictions=[prediction])

    def add_batch(self, *, predictions: Any = None) -> None:
        """Add texts. They are checked here because `evaluate` reads numbers as texts, and a string as letters."""
        super().add_batch(predictions=_strings(predictions, "predictions"))

    def _compute(
        self,
        *,
        predictions: Any,
        model: Any,
        tokenizer: Any = None,
        objects: Any = None,
        precision: str = "fp32",
        batch_size: int | None = None,
        device: str | None = None,
    ) -> dict[str, Any]:
        if not len(predictions):
            raise ValueError("no predictions: there is nothing to score")
        if precision not in ("fp32", "bf16"):
            raise ValueError(f"precision must be fp32 or bf16, not {precision!r}")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise ValueError(f"batch_size must be a whole number from 1, not {batch_size!r}")
        targets = list(predictions) if objects is None else _objects(predictions, objects)
        model, tokenizer = _loaded(model, tokenizer, device)
        with local.modes_kept(model):  # scoring switches all modules to evaluation mode
            scorer = scoring.Scorer(model, tokenizer, precision)
            if objects is None:
                if scorer.encoder_decoder:
                    raise ValueError("an encoder-decoder model needs objects=[...], the last words of each prediction")
                texts = [scoring.Text("", text) for text in predictions]
            else:
                space = "" if scorer.encoder_decoder else " "
                pairs = zip(predictions, targets, strict=True)
                texts = [scoring.Text(text[: -len(end) - 1], space + end) for text, end in pairs]
            nlls: dict[int, Any] = {}
            size = batch_size or len(texts)
            for at in range(0, len(texts), size):
                for batch in scorer.score(texts[at : at + size]):
                    nlls.update((at + i, scores.nll) for i, scores in batch)
        for i, text in enumerate(predictions):
            if i not in nlls:
                raise ValueError(
                    f"predictions[{i}] {text[:80]!r} cannot be scored: it is longer than the model's context, or has "
                    "no token to predict; leave it out"
                )
        sizes = [len(text.encode()) for text in targets]
        return definition.knowledge_perplexity([nlls[i] for i in range(len(texts))], sizes)


def _strings(values: Any, name: str) -> list[str]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise ValueError(f"{name}: expected a list of strings, not {type(values).__name__}")
    texts = list(values)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name}[{i}]: expected a string, not {type(text).__name__}")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValueError(f"{name}[{i}]: {text[:80]!r} is not valid Unicode (it has a lone surrogate)")
    return texts


def _objects(predictions: list[str], objects: Any) -> list[str]:
    ends = _strings(objects, "objects")
    if len(ends) != len(predictions):
        raise ValueError(f"{len(predictions)} predictions and {len(ends)} objects: each text needs one of each")
    for i, (text, end) in enumerate(zip(predictions, ends, strict=True)):
        if not end or not text.endswith(f" {end}"):
            raise ValueError(
                f"predictions[{i}] {text[-80:]!r} does not end with a space and objects[{i}] {end[:80]!r}"
            )
    return ends


def _loaded(model: Any, tokenizer: Any, device: str | None) -> tuple[Any, Any]:
    """Return the model on its device, and its tokenizer."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device {device!r}: {str(error).splitlines()[0]}") from None
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        tokenizer = checkpoint.load_tokenizer(name) if tokenizer is None else tokenizer
        return checkpoint.load_model(name).to(device or ("cuda" if torch.cuda.is_available() else "cpu")), tokenizer
    if not (hasattr(model, "can_generate") and model.can_generate()):
        raise ValueError(f"model: expected the name of a language model or a loaded one, not {type(model).__name__}")
    if tokenizer is None:
        raise ValueError("a loaded model needs its tokenizer: compute(..., model=model, tokenizer=tokenizer)")
    return model.to(device) if device else model, tokenizer
