"""Log-likelihoods of texts: the only module that reads the probabilities of a model.

Many probes share a prefix, at least BOS. A row of a batch therefore holds the prefix tree of several texts: each token
attends only to its ancestors, and its position is its depth in the tree. In longer rows, fewer prefixes are computed
twice, but attention costs more. The scorer estimates the cost of several lengths of rows, and of one text a row, and
takes the cheapest. The output layer is computed only where a token is scored.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from temporalwiki.base.errors import InputError
from temporalwiki.methods.architecture import check_causal, context_length, is_encoder_decoder
from temporalwiki.methods.packing import Encoder, Ints

VERSION = 1  # raise it with a change that moves a score: cached scores of other versions are not used
SENTINEL = "<extra_id_0>"  # where an encoder-decoder model writes its answer

_ROWS = (64, 128, 256, 512)  # the sizes to choose from: the most tokens of a row that holds a tree
_BATCH = 512  # tokens of a batch, enough for fast matrix products
_ATTENTION = 1800  # in rows of so many tokens, attention costs as much as all else (135M parameters, one core)
_LOGITS = 1 << 29  # the most logits at once on a GPU (2 GB)

Floats = np.ndarray[Any, np.dtype[np.float64]]
# type of weights -> its name as a precision
PRECISIONS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


@dataclass(frozen=True)
class Text:
    """A target to score, and the context before it.

    A decoder-only model reads BOS (if its tokenizer has one) and context + target as one text. An encoder-decoder
    model reads the context, where ``<extra_id_0>`` stands for the answer (it is appended if missing), and scores
    the target after ``<extra_id_0>``.
    """

    context: str
    target: str


@dataclass(frozen=True, eq=False)
class TokenScores:
    """The negative log-likelihoods and positions of the tokens that overlap a target."""

    nll: Floats  # [tokens], nats
    offsets: Ints  # [tokens, 2], in characters of context + target, or of the target for encoder-decoder models


@dataclass(frozen=True, eq=False)
class _Tokens:
    """A tokenised text; the ``ids`` from index ``first`` on are scored."""

    ids: list[int]
    first: int
    offsets: Ints  # of the scored tokens
    source: tuple[int, ...] = ()  # an encoder's input


@dataclass(frozen=True, eq=False)
class _Row:
    """A prefix tree of texts. Its nodes are tokens, and each parent comes before its children."""

    source: tuple[int, ...]  # an encoder's input
    ids: list[int]
    depth: list[int]
    parent: list[int]  # -1: none
    asked: list[tuple[int, list[int], list[int]]]  # (text, nodes that predict its scored tokens, these tokens)

    def __len__(self) -> int:
        return len(self.source) + len(self.ids)

    @property
    def branches(self) -> bool:
        """Whether two of its texts differ somewhere; otherwise it is one text, and the others are beginnings of it."""
        return self.parent != list(range(-1, len(self.ids) - 1))


class Scorer:
    """Scores texts with one model. Except for rounding, a score does not depend on the other texts of its batch."""

    def __init__(
        self, model: Any, tokenizer: PreTrainedTokenizerBase, precision: str = "fp32", temperature: float = 1.0
    ) -> None:
        """Switch the model to evaluation mode. Matrix products have the ``precision`` "fp32" or "bf16".

        Logits are divided by ``temperature``.
        """
        self.temperature = temperature
        self.model, self.tokenizer, self.precision = plain(model.eval()), tokenizer, precision
        self.encoder_decoder = is_encoder_decoder(self.model)
        self._is_tried = self.encoder_decoder
        self._encoder = Encoder(tokenizer)
        self._longest = context_length(self.model.config)
        # a row with a tree must fit in the model's table of positions
        trees = () if self.encoder_decoder else _ROWS
        self._layouts = (0, *(most for most in trees if most <= (self._longest or most)))  # 0: one text a row
        self._reads: dict[int, bool] = {0: True}  # layout -> whether the model reads it
        self._batch = _BATCH
        if self.model.device.type != "cpu":
            vocabulary = self.model.get_output_embeddings().weight.shape[0]
            self._batch *= max(1, min(16, _LOGITS // (_BATCH * vocabulary)))

    @property
    def policy(self) -> dict[str, Any]:
        """All that scores depend on, except the model and the text."""
        start = SENTINEL if self.encoder_decoder else self.tokenizer.bos_token
        soft = {} if self.temperature == 1 else {"temperature": self.temperature}
        return {"scoring": VERSION, "starts_with": start, "precision": self.precision, **soft}

    def score(
        self, texts: Sequence[Text], share: tuple[int, int] = (0, 1), kept: Container[int] = ()
    ) -> Iterator[list[tuple[int, TokenScores]]]:
        """Yield a list of (index of the text, its scores) for each batch, in no particular order.

        Args:
            texts: the texts. A text that is longer than the model's context, or that has no token to predict (such as
                a single token without BOS), is left out.
            share: (i, n) scores only every n-th batch, from batch i on (counted from 0).
            kept: indexes of texts to skip. The batches of the other texts stay the same, so that a continued run
                gives the same bits.

        Raises InputError if a score is not a finite number, and for a model that sees later tokens.
        """
        tokens = {i: made for i, made in enumerate(self._tokens(texts)) if made is not None}
        if all(i in kept for i in tokens):
            return
        if not self._is_tried:
            check_causal(self.model, str(self.model.name_or_path or "the model"))
            self._is_tried = True
        layout = self._layout(tokens)
        left = [some for batch in self._batches(tokens, layout) for some in self._left(batch, tokens, kept, layout)]
        bf16 = torch.autocast(self.model.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16")
        for batch in left[share[0] :: share[1]]:
            with bf16:
                scored = halving(self.model, batch, self._read)
            for i, nll in scored:
                if not np.isfinite(nll).all():
                    raise InputError(
                        f"{self.model.name_or_path}: no finite probability for {shown(texts[i])}; "
                        "its weights may be damaged, or need another precision"
                    )
            yield [(i, TokenScores(nll, tokens[i].offsets)) for i, nll in scored]

    def _tokens(self, texts: Sequence[Text]) -> Iterator[_Tokens | None]:
        if self.encoder_decoder:
            yield from self._sources_and_targets(texts)
            return
        bos = [] if self.tokenizer.bos_token_id is None else [self.tokenizer.bos_token_id]
        encoded = self._encoder.with_offsets([text.context + text.target for text in texts])
        for text, (ids, offsets) in zip(texts, encoded, strict=True):
            first = int(np.searchsorted(offsets[:, 1], len(text.context), side="right"))
            if not bos:
                first = max(first, 1)
            fits = self._longest is None or len(bos) + len(ids) - 1 <= self._longest
            yield _Tokens(bos + ids.tolist(), len(bos) + first, offsets[first:]) if fits and first < len(ids) else None

    def _sources_and_targets(self, texts: Sequence[Text]) -> Iterator[_Tokens | None]:
        start = decoder_start(self.model, self.tokenizer)
        sources = encoder_inputs([text.context for text in texts], self.tokenizer, self._encoder)
        targets = self._encoder.with_offsets([text.target for text in texts])
        for source, (ids, offsets) in zip(sources, targets, strict=True):
            yield _Tokens([*start, *ids.tolist()], len(start), offsets, tuple(source)) if len(ids) else None

    def _layout(self, tokens: dict[int, _Tokens]) -> int:
        """Return the cheapest layout that the model reads: the most tokens of a tree, or 0 for one text a row."""
        by_cost = sorted(self._layouts, key=lambda most: _cost(self._batches(tokens, most), most))
        return next(most for most in by_cost if self._can_read(most))

    def _batches(self, tokens: dict[int, _Tokens], most: int) -> list[list[_Row]]:
        """Arrange texts in rows of the layout ``most`` (see ``_layout``), and batch rows of similar length."""
        rows = sorted(_rows(tokens, most), key=lambda row: (len(row.source), len(row.ids)))
        # separately, because our mask has no sliding window, which a single long text may need
        kinds = [[row for row in rows if row.branches is branches] for branches in (True, False)]
        return [batch for kind in kinds for batch in grouped(kind, len, self._batch)]

    def _left(
        self, batch: list[_Row], tokens: dict[int, _Tokens], kept: Container[int], most: int
    ) -> list[list[_Row]]:
        """Return the batch; if ``kept`` has some of its texts, return new batches of the others."""
        there = [i for row in batch for i, _, _ in row.asked]
        left = {i: tokens[i] for i in there if i not in kept}
        return [batch] if len(left) == len(there) else self._batches(left, most)

    def _can_read(self, most: int) -> bool:
        """Whether the model reads trees of ``most`` tokens: some models ignore the attention mask or the positions.

        A trial scores two texts of random tokens that share their beginning, in a tree and separately. The tree fills
        a row, so that a sliding window shows.
        """
        if most not in self._reads:
            half, few = most // 2, most // 8
            vocabulary = self.model.get_input_embeddings().weight.shape[0]
            ids = np.random.default_rng(0).integers(vocabulary, size=most).tolist()
            texts = (ids[:-few], ids[:half] + ids[-few:])
            tokens = {i: _Tokens(text, half, np.empty((0, 2))) for i, text in enumerate(texts)}
            tolerance = 1e-4 if self.model.dtype == torch.float32 else 3e-2
            try:
                together, alone = (
                    dict(halving(self.model, _rows(tokens, layout), self._read)) for layout in (most, 0)
                )
                self._reads[most] = all(np.abs(together[i] - alone[i]).mean() < tolerance for i in tokens)
            except (RuntimeError, ValueError, TypeError, LookupError, AttributeError):
                self._reads[most] = False
        return self._reads[most]

    def _read(self, rows: list[_Row]) -> list[tuple[int, Floats]]:
        device = self.model.device
        longest = max(len(row.ids) for row in rows)
        asked = [
            (text, [r * longest + node for node in nodes], wanted)
            for r, row in enumerate(rows)
            for text, nodes, wanted in row.asked
        ]
        places, node = np.unique(np.concatenate([at for _, at, _ in asked]), return_inverse=True)
        with _output_at(self.model, torch.from_numpy(places).to(device)):
            on_device = {name: tensor.to(device) for name, tensor in self._inputs(rows, longest).items()}
            logits = self.model(**on_device, use_cache=False).logits[0].float() / self.temperature
        wanted = torch.tensor([token for _, _, tokens in asked for token in tokens], device=device)
        nodes = torch.from_numpy(node).to(device)
        nll = -logits.log_softmax(-1)[nodes, wanted].double().cpu().numpy()
        ends = np.cumsum([0, *(len(tokens) for _, _, tokens in asked)])
        return [(i, nll[begin:end]) for (i, _, _), (begin, end) in zip(asked, pairwise(ends), strict=True)]

    def _inputs(self, rows: list[_Row], longest: int) -> dict[str, torch.Tensor]:
        ids = _pad([row.ids for row in rows])
        if rows[0].branches:
            hidden = torch.from_numpy(~_seen(rows, longest)).to(self.model.dtype)
            mask = hidden * torch.finfo(hidden.dtype).min
            return {"input_ids": ids, "position_ids": _pad([row.depth for row in rows]), "attention_mask": mask}
        read = [row.source or row.ids for row in rows]
        inputs = {"input_ids": _pad(read), "attention_mask": _pad([[1] * len(one) for one in read])}
        return inputs | ({"decoder_input_ids": ids} if self.encoder_decoder else {})


def plain(model: Any) -> PreTrainedModel:
    """Return a model without peft's wrapper; adapters inside the layers stay active.

    Raises InputError for an adapter outside the layers (prompt tuning).
    """
    if not isinstance(model, PeftModel):
        return model
    if model.active_peft_config.is_prompt_learning:
        kind = model.active_peft_config.peft_type.value
        raise InputError(f"{model.name_or_path}: {kind} adds tokens to the text; use an adapter inside the layers")
    return model.get_base_model()


def halving(model: Any, rows: list[Any], read: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Return what ``read`` finds in a batch; halve it if memory runs out. Raises InputError for a single row."""
    try:
        with torch.inference_mode():
            return read(rows)
    except torch.OutOfMemoryError:
        if len(rows) == 1:
            raise InputError(f"{model.name_or_path}: no memory left on {model.device}") from None
    half = len(rows) // 2
    return halving(model, rows[:half], read) + halving(model, rows[half:], read)


def grouped(items: Sequence[Any], size: Callable[[Any], int], most: int) -> list[list[Any]]:
    """Cut items that are sorted by size into batches of at most ``most`` tokens, padding included."""
    batches: list[list[Any]] = []
    largest = 0
    for item in items:
        largest = max(largest, size(item))
        if batches and (len(batches[-1]) + 1) * largest <= most:
            batches[-1].append(item)
        else:
            batches.append([item])
            largest = size(item)
    return batches


def sentinel_of(tokenizer: PreTrainedTokenizerBase, number: int = 0) -> int:
    """Return the id of ``<extra_id_NUMBER>``. Raises InputError if the tokenizer has no such token."""
    token = tokenizer.convert_tokens_to_ids(f"<extra_id_{number}>")
    if token in (None, tokenizer.unk_token_id):
        raise InputError(f"{tokenizer.name_or_path}: the tokenizer has no {SENTINEL} to mark the answer with")
    return int(token)


def encoder_inputs(
    contexts: Sequence[str], tokenizer: PreTrainedTokenizerBase, encoder: Encoder
) -> Iterator[list[int]]:
    """Yield the encoder's input ids: each context with its ``<extra_id_0>``, which is appended if missing."""
    parts = [context.partition(SENTINEL) for context in contexts]
    before = encoder.ids([before.strip() for before, _, _ in parts])
    after = encoder.ids([after.strip() for _, _, after in parts])
    sentinel = sentinel_of(tokenizer)
    for left, right in zip(before, after, strict=True):
        yield [*left.tolist(), sentinel, *right.tolist(), tokenizer.eos_token_id]


def decoder_start(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the ids that precede the answer of an encoder-decoder model."""
    return [model.config.decoder_start_token_id, sentinel_of(tokenizer)]


@contextmanager
def _output_at(model: Any, places: torch.Tensor) -> Iterator[None]:
    """Make the model compute logits only at ``places``, counted over all rows: logits are [1, places, vocabulary].

    The hook changes the input of the output layer, so that the model still scales or caps its logits.
    """

    def select(module: Any, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (args[0].flatten(0, 1)[places][None], *args[1:])

    hook = model.get_output_embeddings().register_forward_pre_hook(select)
    try:
        yield
    finally:
        hook.remove()


def _rows(tokens: dict[int, _Tokens], most: int) -> list[_Row]:
    """Arrange texts in prefix trees of at most ``most`` tokens; a longer text gets its own row."""
    rows: list[_Row] = []
    path: list[int] = []  # the nodes of the previous text
    before: list[int] = []
    for i in sorted(tokens, key=lambda i: (tokens[i].ids, tokens[i].first)):
        text = tokens[i]
        fed = text.ids[:-1]  # the last token predicts nothing that is scored
        shared = next(
            (d for d, (a, b) in enumerate(zip(before, fed, strict=False)) if a != b), min(len(before), len(fed))
        )
        if not rows or len(rows[-1].ids) + len(fed) - shared > most:
            rows.append(_Row(text.source, [], [], [], []))
            path, shared = [], 0
        row = rows[-1]
        path = path[:shared]
        for depth in range(shared, len(fed)):
            row.parent.append(path[-1] if path else -1)
            path.append(len(row.ids))
            row.ids.append(fed[depth])
            row.depth.append(depth)
        row.asked.append((i, path[text.first - 1 :], text.ids[text.first :]))
        before = fed
    return rows


def _cost(batches: list[list[_Row]], most: int) -> float:
    """Return how long a layout takes, in tokens; trees need a trial, which reads a tree and two texts."""
    shapes = [(len(batch), max(map(len, batch))) for batch in batches]
    return 3 * most + sum(rows * longest * (1 + longest / _ATTENTION) for rows, longest in shapes)


def _seen(rows: Sequence[_Row], longest: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the attention mask [rows, 1, longest, longest]: a node attends to its ancestors and itself.

    Padding attends to itself, because attention to nothing gives NaN.
    """
    seen = np.tile(np.eye(longest, dtype=bool), (len(rows), 1, 1, 1))
    for r, row in enumerate(rows):
        for i, parent in enumerate(row.parent):
            if parent >= 0:
                seen[r, 0, i] |= seen[r, 0, parent]
    return seen


def _pad(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows])


def shown(text: Text) -> str:
    """Return a text for a message, with at most 80 characters."""
    whole = text.context + text.target
    return repr(whole if len(whole) <= 80 else whole[:77] + "...")
