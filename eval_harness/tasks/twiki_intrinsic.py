"""TemporalWiki's intrinsic evaluation: perplexity of proper nouns in changed text and in unchanged text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.options import option
from temporalwiki.builders.ckl.salient_spans import Span
from temporalwiki.eval_harness.facts import UNSCORED
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.proper_nouns import ProperNouns, overlap
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.scoring import Text, TokenScores
from temporalwiki.eval_harness.task import Rows, Task
from temporalwiki.methods.architecture import context_length
from temporalwiki.methods.packing import Encoder, Tokenizer, article, batches

_MEASURES = ("proper_noun_perplexity", "proper_noun_bits_per_byte", "perplexity", "bits_per_byte")
_TAGGED_AT_ONCE = 64  # windows between two writes to the cache


@dataclass(frozen=True)
class TwikiIntrinsic(Task):
    """Perplexity of the tokens of proper nouns, NNP and NNPS, in windows of articles (section 4.1, figure 2).

    An article is formatted as in training, "title. text". Its window is its first ``window`` tokens in the model's own
    tokenizer, including BOS if there is one: of 512 tokens, 511 are predicted with or without BOS. A shorter article
    is one window. Models with the same tokenizer read the same text. To compare models with different tokenizers, use
    ``proper_noun_bits_per_byte``: the bits of the tokens of proper nouns, divided by the nouns' bytes in UTF-8.

    ``perplexity`` and ``bits_per_byte`` count all tokens. Figure 2 of the paper shows a model's perplexity
    relative to Initial (``leaderboard/figures/relative_perplexity.py``). The task reads only decoder-only models, as
    the paper does.
    """

    configs: ClassVar[tuple[str, ...]] = ("diffset-", "unchanged-")
    columns: ClassVar[tuple[str, ...]] = ("id", "title", "text")
    least: ClassVar[Mapping[str, int]] = {"window": 2}  # a token is predicted from earlier ones

    window: int = option(512, "most tokens of a window")
    windows: int = option(10_000, "most windows, one an article")
    tagger: str = option("en_core_web_sm", "spaCy pipeline that finds proper nouns, by name or folder")

    @property
    def max_rows(self) -> int:
        """The number of windows."""
        return self.windows

    def recorded_options(self) -> dict[str, Any]:
        """Return the options; the tagger is recorded by name and a hash of its files, not by its path."""
        return {**asdict(self), "tagger": f"{Path(self.tagger).name}, {self._nouns.key}"}

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score the windows. Raises UsageError for an encoder-decoder model or a context shorter than a window."""
        if model.encoder_decoder:
            raise UsageError("twiki_intrinsic measures the perplexity of running text; name a decoder-only model")
        longest = context_length(model.loaded.model.config)
        if longest is not None and self.window > longest:
            raise UsageError(f"--window {self.window} is too long: the model reads {longest} tokens")
        excluded: Counter[str] = Counter()
        tests = {}
        for split, articles in rows.items():
            written = [row for row in articles if (row["text"] or "").strip()]
            excluded[f"{split}: no text"] += len(articles) - len(written)
            articles_as_read = (article(row["title"], row["text"]) for row in written)
            texts = list(windows(articles_as_read, model.loaded.tokenizer, self.window))
            found = self._proper_nouns(model, texts, f"twiki_intrinsic, split {split}: proper nouns")
            scored = model.score([Text("", text) for text in texts], f"twiki_intrinsic, split {split}: perplexity")
            items = []
            for row, text, score, spans in zip(written, texts, scored, found, strict=True):
                if score is None:
                    excluded[f"{split}: {UNSCORED}"] += 1
                    continue
                items.append({"id": row["id"], "cluster": row["id"], "split": split, **_figures(text, score, spans)})
                if not items[-1]["proper_noun_tokens"]:
                    excluded[f"{split}: no proper noun, so only in the scores of all tokens"] += 1
            tests[split] = [items]
        return Outcome(scores(tests, _MEASURES), [item for (items,) in tests.values() for item in items], excluded)

    @cached_property
    def _nouns(self) -> ProperNouns:
        try:
            return ProperNouns(self.tagger)
        except InputError as error:
            raise InputError(f"--tagger {error}") from None

    def _proper_nouns(self, model: Model, texts: Sequence[str], what: str) -> list[list[Span]]:
        """Return the spans of proper nouns in each text. Processes share the work; the cache serves all models."""
        cache = ScoreCache(model.cache_folder, self._nouns.key, {"twiki_intrinsic": self.version})
        distinct = list(dict.fromkeys(texts))
        cached = cache.spans(distinct)
        missing = [text for i, text in enumerate(distinct) if i not in cached]
        model.state.wait_for_everyone()  # all processes read the cache before one writes to it
        share = missing[model.state.process_index :: model.state.num_processes]
        with model.progress(what, len(distinct), len(cached), "text") as progress:
            for at in range(0, len(share), _TAGGED_AT_ONCE):
                part = share[at : at + _TAGGED_AT_ONCE]
                cache.add_spans(zip(part, self._nouns(part), strict=True))
                progress.update(min(len(part) * model.state.num_processes, len(distinct) - progress.done))
        model.state.wait_for_everyone()
        return list(cache.spans(texts).values())


def windows(texts: Iterable[str], tokenizer: Tokenizer, size: int) -> Iterator[str]:
    """Yield the beginning of each text that fits into ``size`` tokens, including BOS if the tokenizer has one.

    A window never ends within a character, even if the character has several tokens.
    """
    encoder, room = Encoder(tokenizer), size - (tokenizer.bos_token_id is not None)
    for batch in batches(texts):
        for text, (_, offsets) in zip(batch, encoder.with_offsets(batch), strict=True):
            yield text if len(offsets) <= room else text[: min(offsets[room - 1, 1], offsets[room, 0])]


def _figures(text: str, score: TokenScores, spans: Sequence[Span]) -> dict[str, Any]:
    """Return NLL in nats, tokens and bytes of all predicted text, and of its proper nouns."""
    first = int(score.offsets[0, 0])  # without BOS the first token is not predicted
    spans = [(max(start, first), end) for start, end in spans if end > first]
    named = overlap(score.offsets, spans)
    return {
        "nll": float(score.nll.sum()),
        "tokens": len(score.nll),
        "bytes": len(text[first:].encode()),
        "proper_noun_nll": float(score.nll[named].sum()) if named.any() else None,
        "proper_noun_tokens": int(named.sum()),
        "proper_noun_bytes": sum(len(text[start:end].encode()) for start, end in spans),
    }
