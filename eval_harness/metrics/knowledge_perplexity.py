"""Perplexity of probes, from the likelihoods of their tokens (DESIGN: TemporalWiki section 4.2 and its footnote 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def knowledge_perplexity(nlls: Sequence[Sequence[float]], sizes: Sequence[int]) -> dict[str, Any]:
    """Return the perplexity of texts from the negative log-likelihood, in nats, of each of their tokens.

    ``sizes`` are the texts' lengths in bytes (UTF-8).

    - ``perplexity``: exp(total NLL / total tokens);
    - ``perplexity_instance_mean``: the mean over texts of exp(mean NLL of the text), as TemporalWiki's footnote 6 has
      it. (The authors' code takes exp of the mean of *batch* losses, which moves with the batch size.);
    - ``bits_per_byte``: total NLL / ln 2 / total bytes, by which models with other tokenizers can be compared, where
      both predict all of a text or both leave out its first token;
    - ``perplexities``: exp(mean NLL), a text each;
    - ``n_tokens``: the tokens that were predicted.

    Sums are exact, so the order of the texts does not matter. Raises ValueError for no texts, lengths that differ, a
    text without tokens or bytes, a likelihood that is not finite and a perplexity that no float holds.
    """
    if not nlls or len(nlls) != len(sizes):
        raise ValueError(
            f"{len(nlls)} lists of likelihoods and {len(sizes)} sizes: both must be of one length, above 0"
        )
    perplexities = []
    for i, (nll, size) in enumerate(zip(nlls, sizes, strict=True)):
        if not len(nll) or size < 1:
            raise ValueError(
                f"text {i} has {len(nll)} tokens and {size} bytes: leave it out, nothing can be predicted"
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
