"""Perplexity of probes, from the likelihoods of their tokens (TemporalWiki, section 4.2 and footnote 6)."""

import math
from collections.abc import Sequence
from typing import Any


def knowledge_perplexity(nlls: Sequence[Sequence[float]], sizes: Sequence[int]) -> dict[str, Any]:
    """Return the perplexity of texts from the negative log-likelihood, in nats, of each of their tokens.

    ``sizes`` are the texts' lengths in bytes (UTF-8).

    - ``perplexity``: exp(total NLL / total tokens)
    - ``perplexity_instance_mean``: the mean over texts of exp(mean NLL of the text), as in TemporalWiki's footnote 6.
      (The authors' code takes exp of the mean of *batch* losses, which depends on the batch size.)
    - ``bits_per_byte``: total NLL / ln 2 / total bytes. It compares models with different tokenizers if both predict
      the first token of a text, or both do not.
    - ``perplexities``: exp(mean NLL) of each text
    - ``n_tokens``: the number of predicted tokens

    Sums are exact, so the order of the texts does not matter. Raises ValueError for no texts, lists of different
    lengths, a text without tokens or bytes, a likelihood that is not finite, and a perplexity too large for a float.
    """
    if not nlls or len(nlls) != len(sizes):
        raise ValueError(
            f"{len(nlls)} lists of likelihoods and {len(sizes)} sizes: both must have the same length, above 0"
        )
    perplexities = []
    for i, (nll, size) in enumerate(zip(nlls, sizes, strict=True)):
        if not len(nll) or size < 1:
            raise ValueError(
                f"text {i} has {len(nll)} tokens and {size} bytes: nothing can be predicted, leave it out"
            )
        if not all(math.isfinite(value) for value in nll):
            raise ValueError(f"text {i}: a likelihood is not finite")
        try:
            perplexities.append(math.exp(math.fsum(nll) / len(nll)))
        except OverflowError:
            raise ValueError(f"text {i}: its perplexity is too large for a float; is the model damaged?") from None
    total, tokens = math.fsum(value for nll in nlls for value in nll), sum(map(len, nlls))
    return {
        "perplexity": math.exp(total / tokens),
        "perplexity_instance_mean": math.fsum(perplexities) / len(perplexities),
        "bits_per_byte": total / math.log(2) / math.fsum(sizes),
        "perplexities": perplexities,
        "n_tokens": tokens,
    }
