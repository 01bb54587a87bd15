# mypy: disable-error-code="import-not-found,misc"
"""TWiki-Probes as custom tasks of lighteval 0.13, with the numbers of `temporalwiki evaluate` (docs/adapters.md).

    twiki_probes:{unchanged,changed}    perplexity and bits per byte of "SUBJECT RELATION OBJECT"
    twiki_objects:{unchanged,changed}   the same of " OBJECT" after "SUBJECT RELATION"
    twiki_answers:{unchanged,changed}   exact match and F1 (0 to 1) of the greedy continuation of "SUBJECT RELATION"

The file stands alone: lighteval 0.13 needs an environment of its own, which cannot hold temporalwiki. What the tasks
are about comes from the environment, as lighteval passes them no arguments: `TEMPORALWIKI_DATA` (a dataset folder, a
Hub id, or id@revision), `TEMPORALWIKI_CONFIG` (such as probes-1112) and `TEMPORALWIKI_TOKENIZER` (the model's name).

`same_tokens` is the share of probes of which lighteval scored just the tokens that temporalwiki scores, after the same
tokens. Below 1, likelihoods do not compare.
"""

from __future__ import annotations

import math
import os
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelPerplexityMetric
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.sample_preparator import PerplexityCorpusMetricInput, PerplexityPreparator, Preparator
from lighteval.metrics.utils.metric_utils import CorpusLevelMetric, SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod
from transformers import AutoTokenizer

Row = Mapping[str, Any]

LONGEST_ANSWER = 20  # tokens

_TITLES = ("St", "Mt", "Ft", "Dr", "Mr", "Mrs", "Ms", "Jr", "Sr", "No", "vs")
_STOPS = "。！？।"
_NOT_AFTER = "".join(rf"(?<!\b{title})" for title in _TITLES)
_END = re.compile(rf"\n|{_NOT_AFTER}(?<!\b[^\W\d_])\.(?=\s)|[!?](?=\s)|[{_STOPS}]")
_SENTINEL = re.compile(r"<extra_id_[0-9]+>")
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def setting(name: str, example: str) -> str:
    """Return a variable of the environment; exits with a message where it is not set."""
    if not (value := os.environ.get(name)):
        raise SystemExit(f"lighteval_tasks.py: {name} is not set; set it to {example}")
    return value


DATA = setting("TEMPORALWIKI_DATA", "a dataset folder, a Hub id, or id@revision")
CONFIG = setting("TEMPORALWIKI_CONFIG", "a config of probes, such as probes-1112")
TOKENIZER = setting("TEMPORALWIKI_TOKENIZER", "the model's name")


@cache
def tokenizer() -> Any:
    """Return the tokenizer that is named in the environment."""
    return AutoTokenizer.from_pretrained(TOKENIZER, trust_remote_code=False)


def prompt(row: Row) -> str:
    """Return what a model is asked, "SUBJECT RELATION"."""
    return f"{row['subject']} {row['relation']}"


def statement(row: Row, task: str) -> Doc:
    """Score the whole probe."""
    return continuation("", f"{prompt(row)} {row['object']}")


def object_in_context(row: Row, task: str) -> Doc:
    """Score the object."""
    return continuation(prompt(row), f" {row['object']}")


def answer(row: Row, task: str) -> Doc:
    """Generate after the prompt."""
    return Doc(query=(tokenizer().bos_token or "") + prompt(row), choices=[row["object"]], gold_index=0)


def continuation(context: str, target: str) -> Doc:
    """Score the tokens of `target` after BOS, if the tokenizer has one, and `context`, all tokenised as one text.

    lighteval tokenises query and choice apart. BOS is written into the query, so add_special_tokens must be False. An
    EOS at the end of a query is removed, and in many tokenizers that is BOS: alone, it gets one more to lose. Some
    tokenizers begin every text with a space: there the choice begins without.
    """
    read, bos, eos = tokenizer(), tokenizer().bos_token or "", tokenizer().eos_token
    text = context + target
    encoding = read(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, ends = encoding["input_ids"], [end for _, end in encoding["offset_mapping"]]
    start, before = len(context), sum(end <= len(context) for end in ends)
    if not bos and not before:  # nothing predicts the first token
        start, before = ends[0], 1
    wanted = {"context": ([read.bos_token_id] if bos else []) + ids[:before], "target": ids[before:]}
    choices = (text[start:], text[start:].lstrip())
    same = (c for c in choices if read(c, add_special_tokens=False)["input_ids"] == wanted["target"])
    query = bos + (text[:start] or eos)
    return Doc(query, [next(same, choices[0])], gold_index=0, original_query=target, specific=wanted)


def scored(tokens: Any) -> list[int]:
    """Return tokens without lighteval's padding, -1."""
    return [int(token) for token in np.asarray(tokens).ravel() if token >= 0]


class PerToken(Preparator):
    """Log-likelihood (nats) and number of tokens; lighteval's own perplexities are per word or byte."""

    def prepare(self, doc: Doc, model_response: ModelResponse, **_: Any) -> PerplexityCorpusMetricInput:
        """Return the log-likelihood of a probe and the number of its tokens that were scored."""
        (tokens,) = model_response.output_tokens
        return PerplexityCorpusMetricInput(sum(model_response.logprobs), len(scored(tokens)))


class OfInstance(SampleLevelComputation):
    """The perplexity of one text."""

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> float:
        """Return the perplexity of a probe."""
        of_text = PerToken().prepare(doc, model_response)
        return math.exp(-of_text.logprobs / of_text.weights)


class SameTokens(SampleLevelComputation):
    """Whether lighteval scored the tokens that it should."""

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> float:
        """Return 1 where the tokens that were scored are ours, else 0."""
        context, target = scored(model_response.input_tokens), scored(model_response.output_tokens[0])
        return float({"context": context, "target": target} == doc.specific)


class Match(SampleLevelComputation):
    """A score of the generated text's first sentence."""

    def __init__(self, score: Callable[[str, str], float]) -> None:
        self.score = score

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> float:
        """Return how an answer, cut as ours are, agrees with the object."""
        (text,) = model_response.final_text
        return self.score(first_sentence(text), doc.choices[0])


def first_sentence(continuation: str) -> str:
    """Return what a model says up to the end of the sentence, as temporalwiki's `eval_harness.answers` defines it."""
    text = continuation.lstrip()
    end = _END.search(text)
    return (text[: end.start()] if end else text).rstrip().rstrip(f".!?{_STOPS}").rstrip()


def normalize(text: str) -> str:
    """SQuAD's normalisation, as temporalwiki's metric knowledge_match defines it."""
    text = unicodedata.normalize("NFC", _SENTINEL.sub(" ", text)).lower()
    text = "".join(c for c in text if c not in string.punctuation and not unicodedata.category(c).startswith("P"))
    return " ".join(_ARTICLE.sub(" ", text).split())


def exact_match(prediction: str, reference: str) -> float:
    """Return 1 where both are equal after normalisation, else 0."""
    return float(normalize(prediction) == normalize(reference))


def f1(prediction: str, reference: str) -> float:
    """F1 of the words, each as often as it occurs; lighteval's own takes sets."""
    words, others = normalize(prediction).split(), normalize(reference).split()
    if not words or not others:
        return float(words == others)
    return 2 * (Counter(words) & Counter(others)).total() / (len(words) + len(others))


def over_all(name: str, preparator: Preparator, kind: str) -> CorpusLevelMetric:
    """Return a metric over all tokens of all probes."""
    return CorpusLevelMetric(name, False, SamplingMethod.LOGPROBS, preparator, CorpusLevelPerplexityMetric(kind))


def mean(
    name: str, category: SamplingMethod, of_probe: SampleLevelComputation, better: bool = True
) -> SampleLevelMetric:
    """Return a metric that is the mean over probes."""
    return SampleLevelMetric(name, better, category, of_probe, np.mean)


BITS_PER_BYTE = over_all("bits_per_byte", PerplexityPreparator("bytes"), "bits_per_byte")
SAME_TOKENS = mean("same_tokens", SamplingMethod.LOGPROBS, SameTokens())
METRICS = {
    "twiki_probes": (
        over_all("perplexity", PerToken(), "weighted_perplexity"),
        mean("perplexity_instance_mean", SamplingMethod.LOGPROBS, OfInstance(), better=False),
        BITS_PER_BYTE,
        SAME_TOKENS,
    ),
    "twiki_objects": (over_all("object_perplexity", PerToken(), "weighted_perplexity"), BITS_PER_BYTE, SAME_TOKENS),
    "twiki_answers": (
        mean("exact_match", SamplingMethod.GENERATIVE, Match(exact_match)),
        mean("f1", SamplingMethod.GENERATIVE, Match(f1)),
    ),
}
PROMPTS = {"twiki_probes": statement, "twiki_objects": object_in_context, "twiki_answers": answer}


def tasks() -> list[LightevalTaskConfig]:
    """Return the tasks on the probes that the environment names."""
    data, revision = DATA, None
    if "@" in data and not Path(data).exists():  # a folder may have an @ in its name
        data, _, revision = data.rpartition("@")
    return [
        LightevalTaskConfig(
            name=f"{name}:{split}",
            prompt_function=prompt_function,
            hf_repo=data,
            hf_subset=CONFIG,
            hf_revision=revision,
            hf_avail_splits=("unchanged", "changed"),
            evaluation_splits=(split,),
            metrics=METRICS[name],
            generation_size=LONGEST_ANSWER,
            stop_sequence=[],
            version=1,
        )
        for name, prompt_function in PROMPTS.items()
        for split in ("unchanged", "changed")
    ]


TASKS_TABLE = tasks()
