"""Perplexity of probes as an `evaluate` module, which scores texts as `temporalwiki evaluate` does.

The texts in this file become the card.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import datasets
import evaluate
import torch

import temporalwiki.eval_harness.metrics.knowledge_perplexity as definition
import temporalwiki.eval_harness.scoring as scoring
import temporalwiki.methods.checkpoint as checkpoint

_CITATION = """\
@inproceedings{jang2022temporalwiki,
  title={TemporalWiki: A Lifelong Benchmark for Training and Evaluating Ever-Evolving Language Models},
  author={Jang, Joel and Ye, Seonghyeon and Lee, Changho and Yang, Sohee and Shin, Joongbo and Han, Janghoon and
          Kim, Gyeonghun and Seo, Minjoon},
  booktitle={Proceedings of the 2022 Conference on Empirical Methods in Natural Language Processing},
  year={2022}
}
"""
_DESCRIPTION = """\
How surprised a language model is by facts such as "Algeria shares border with Mauritania". *TemporalWiki* (Jang et
al., EMNLP 2022, section 4.2) measures with it what a model knows. Lower is better. The numbers do not depend on batch
size, padding side or the order of the texts.
"""
_USAGE = """\
## Inputs

- `predictions`: the texts, a list of strings, such as the probe "SUBJECT RELATION OBJECT";
- `model`: a folder, a Hub id, a `.gguf` file, `package:NAME` (a GGUF file in a Python package), the folder of a peft
  adapter, or a loaded model of transformers;
- `tokenizer`: the tokenizer of a loaded model;
- `objects`: the object at the end of each prediction, to score only the objects. An encoder-decoder model (T5) needs
  them: it reads the rest of the prediction and `<extra_id_0>`, and scores the object after `<extra_id_0>`. A
  decoder-only model always reads the whole prediction;
- `precision`: `fp32` (default) or `bf16`;
- `batch_size`: chosen automatically by default;
- `device`: by default the GPU if there is one. A loaded model stays on its device.

If the tokenizer has a BOS token, it is put in front of the text, so that the first token is predicted as well. Nothing
else is added to the text. Special tokens within a text are read as plain text.

## Outputs

| key | |
|---|---|
| `perplexity` | exp(total NLL / total predicted tokens) |
| `perplexity_instance_mean` | the mean over texts of exp(mean NLL of the text): the paper's footnote 6 |
| `bits_per_byte` | total NLL in bits / UTF-8 bytes of the texts, or of the objects if only these are scored |
| `perplexities` | exp(mean NLL) of each text |
| `n_tokens` | number of predicted tokens |

The metric raises a `ValueError` with a one-line message for anything but a list of strings, an empty list, a text that
is longer than the model's context or has no token to predict, a prediction that does not end with a space and its
object, a model or tokenizer that cannot be loaded, and likelihoods that are not finite. It cuts no text, and no number
is NaN.

## Examples

```python
>>> probes = ["Algeria shares border with Mauritania", "Algeria shares border with Iceland"]
>>> result = knowledge_perplexity.compute(predictions=probes, model="openai-community/gpt2")
>>> list(result)
['perplexity', 'perplexity_instance_mean', 'bits_per_byte', 'perplexities', 'n_tokens']
```

T5 scores the object:

```python
>>> result = knowledge_perplexity.compute(
...     predictions=probes, objects=["Mauritania", "Iceland"], model="google-t5/t5-small"
... )
>>> len(result["perplexities"])
2
```

## Limits

Perplexities of models with different tokenizers cannot be compared. Use `bits_per_byte`, if both tokenizers have a
BOS: without BOS, the bits of the first token are missing but its bytes count, so the number is too low. The authors'
code takes exp of the mean of *batch* losses over padded texts, which depends on batch size and padding. These numbers
do not, except for the rounding of fp32 or bf16.
"""


class KnowledgePerplexity(evaluate.Metric):
    """Perplexity of probes: how surprised a language model is by facts."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            license="apache-2.0",
            inputs_description=_USAGE,
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
        modes = [(part, part.training) for part in model.modules()]  # scoring switches all modules to evaluation mode
        try:
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
        finally:
            for part, training in modes:
                part.training = training
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
