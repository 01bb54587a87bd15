"""Generate answers to prompts: up to the end of a sentence, or until the model ends them."""

import inspect
import re
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from itertools import groupby, takewhile
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig, PreTrainedTokenizerBase
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.answers import answer, ended
from temporalwiki.eval_harness.scoring import (
    PRECISIONS,
    SENTINEL,
    decoder_start,
    encoder_inputs,
    grouped,
    halving,
    plain,
    sentinel_of,
)
from temporalwiki.methods.architecture import context_length, is_encoder_decoder
from temporalwiki.methods.packing import Encoder, padding

VERSION = 3  # raise it with a change that moves an answer: cached answers of other versions are not used
_MESSAGE = "the message stands here"  # marks its place in a chat template
_ANNOUNCEMENT = re.compile(r"\A\s*[^\n]*:[^\S\n]*\n")
_TOKENS = {"cpu": 1 << 13, "cuda": 1 << 17}  # prompt and answer tokens per batch; larger batches are not faster


class Generator:
    """Answers prompts with one model in the precision of its weights.

    In a lower precision than fp32, answers depend a little on their batch.
    """

    def __init__(
        self, model: Any, tokenizer: PreTrainedTokenizerBase, max_new_tokens: int, beams: int = 1, whole: bool = False
    ) -> None:
        """Prepare the model. With 1 beam decoding is greedy; if ``whole``, answers may have several sentences."""
        self.model, self.tokenizer = plain(model.eval()), tokenizer
        self.max_new_tokens, self.beams, self.whole = max_new_tokens, beams, whole
        self.encoder_decoder = is_encoder_decoder(self.model)
        self._encoder = Encoder(tokenizer)

    @property
    def policy(self) -> dict[str, Any]:
        """All that answers depend on, except the model and the prompt."""
        start = SENTINEL if self.encoder_decoder else self.tokenizer.bos_token
        new = {"max_new_tokens": self.max_new_tokens, "beams": self.beams, "whole": self.whole}
        precision = PRECISIONS.get(self.model.dtype, str(self.model.dtype))
        return {"generation": VERSION, "starts_with": start, "precision": precision, **new}

    def generate(
        self, prompts: Sequence[str], share: tuple[int, int] = (0, 1), kept: Container[int] = ()
    ) -> Iterator[list[tuple[int, str]]]:
        """Yield a list of (index of the prompt, its answer) for each batch, in no particular order.

        An encoder-decoder model fills the prompt's ``<extra_id_0>``, which is appended if missing. With ``share``
        (i, n), only every n-th batch is answered, from batch i on (counted from 0). ``kept`` has the indexes of
        prompts to skip. A prompt that is too long for the model's context is left out.
        """
        read = list(self._read(prompts))
        longest = context_length(self.model.config)
        room = 0 if self.encoder_decoder else self.max_new_tokens  # in the context that holds the prompt
        fits = [i for i, ids in enumerate(read) if ids and (longest is None or len(ids) + room <= longest)]
        order = sorted((i for i in fits if i not in kept), key=lambda i: (len(read[i]), read[i]))
        most = _TOKENS.get(self.model.device.type, 1 << 15)
        for batch in grouped(order, lambda i: len(read[i]) + self.max_new_tokens, most)[share[0] :: share[1]]:
            decode = self._greedy if self._simple else self._library
            continued = halving(self.model, [read[i] for i in batch], decode)  # rows are sorted by length
            yield [(i, self._cut(text)) for i, text in zip(batch, continued, strict=True)]

    def _read(self, prompts: Sequence[str]) -> Iterator[list[int]]:
        if self.encoder_decoder:
            yield from encoder_inputs(prompts, self.tokenizer, self._encoder)
            return
        bos = [] if self.tokenizer.bos_token_id is None else [self.tokenizer.bos_token_id]
        for prompt, ids in zip(prompts, self._encoder.ids(prompts), strict=True):
            if not bos and not len(ids):
                raise InputError(f"{prompt!r}: nothing to read, and the tokenizer has no BOS")
            yield bos + ids.tolist()

    def _cut(self, text: str) -> str:
        """Return the answer in a generated text."""
        return text.strip() if self.whole else answer(text)

    def _ended(self, text: str) -> bool:
        """Return whether more text would not change the answer."""
        return not self.whole and ended(text)

    @cached_property
    def _ends(self) -> list[int]:
        """The tokens that end an answer."""
        config = self.model.generation_config
        configured = config.eos_token_id if config else None
        found = [self.tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])]
        ends = {token for token in found if isinstance(token, int)}  # a configuration may name anything
        if self.encoder_decoder:
            ends.add(sentinel_of(self.tokenizer, 1))  # it follows the answer
        return sorted(ends)

    @cached_property
    def _start(self) -> list[int]:
        """The tokens that the answer of an encoder-decoder model begins with."""
        return decoder_start(self.model, self.tokenizer)

    @cached_property
    def _constraints(self) -> dict[str, Any]:
        """Settings of the model that forbid or force tokens; they are not used in evaluation."""
        return {}

    @property
    def _simple(self) -> bool:
        """Whether ``_greedy`` works: no beams, no constraints, a cache of keys and values, and padding."""
        takes = inspect.signature(type(self.model).forward).parameters
        if self.beams > 1 or self._constraints or "past_key_values" not in takes:
            return False
        if self.encoder_decoder:
            return True
        layers = DynamicCache(config=self.model.config).layers  # Falcon-H1 has both kinds in each
        recurrent = any(isinstance(layer, LinearAttentionCacheLayerMixin) for layer in layers)
        return {"position_ids", "logits_to_keep"} <= takes.keys() and not recurrent

    def _greedy(self, rows: list[list[int]]) -> list[str]:
        """Decode token by token; unlike in ``generate`` of transformers, finished rows leave the batch."""
        device = self.model.device
        longest = len(rows[-1])
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
        encoded, cache = None, DynamicCache(config=self.model.config)
        if self.encoder_decoder:
            encoded = self.model.get_encoder()(input_ids=ids, attention_mask=mask)
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            ids = torch.tensor([self._start] * len(rows), device=device)
        ends = torch.tensor(self._ends, dtype=torch.long, device=device)
        said: list[list[int]] = [[] for _ in rows]
        live = list(range(len(rows)))
        for _ in range(self.max_new_tokens):
            if encoded is None:
                places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                inputs = {"input_ids": ids, "position_ids": places, "logits_to_keep": 1}
            else:
                inputs = {"decoder_input_ids": ids, "encoder_outputs": encoded}
            logits = self.model(**inputs, attention_mask=mask, past_key_values=cache, use_cache=True).logits[:, -1]
            new = self._finite(logits).argmax(-1)
            over = torch.isin(new, ends).tolist()
            for row, token, end in zip(live, new.tolist(), over, strict=True):
                if not end:
                    said[row].append(token)
            if not self.whole:
                texts = self._decode([said[row] for row in live])
                over = [end or self._ended(text) for end, text in zip(over, texts, strict=True)]
            keep = [n for n, end in enumerate(over) if not end]
            if not keep:
                break
            ids = new[:, None]
            if encoded is None:
                mask = torch.cat([mask, mask.new_ones(len(live), 1)], 1)
            if len(keep) < len(live):
                chosen = torch.tensor(keep, device=device)
                ids, mask, live = ids[chosen], mask[chosen], [live[n] for n in keep]
                if encoded is not None:
                    encoded.last_hidden_state = encoded.last_hidden_state[chosen]
                cache.batch_select_indices(chosen)
        return self._decode(said)

    def _library(self, rows: list[list[int]]) -> list[str]:
        """Decode with ``generate`` of transformers, without padding, which not every model supports."""
        start = self._start if self.encoder_decoder else None
        settings = GenerationConfig(
            max_new_tokens=self.max_new_tokens,
            num_beams=self.beams,
            eos_token_id=self._ends or None,
            pad_token_id=padding(self.tokenizer, self.model),
            decoder_start_token_id=start and start[0],
            **self._constraints,
        )
        own = self.model.generation_config
        self.model.generation_config = GenerationConfig()  # its settings would be added to ours
        texts = []
        try:
            for _, group in groupby(rows, len):
                ids = torch.tensor(list(group), device=self.model.device)
                more = {"decoder_input_ids": torch.tensor([start] * len(ids), device=ids.device)} if start else {}
                out = self.model.generate(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    generation_config=settings,
                    logits_processor=[lambda _, logits: self._finite(logits)],
                    **more,
                )
                new = out[:, len(start or ids[0]) :].tolist()
                texts += self._decode([list(takewhile(lambda token: token not in self._ends, row)) for row in new])
        finally:
            self.model.generation_config = own
        return texts

    def _finite(self, logits: torch.Tensor) -> torch.Tensor:
        if not logits.amax(-1).isfinite().all():
            raise InputError(f"{self.model.name_or_path}: no finite logits; its weights may be damaged")
        return logits

    def _decode(self, rows: Any) -> list[str]:
        return list(self.tokenizer.batch_decode(rows, skip_special_tokens=True))


class Writer(Generator):
    """Continues prompts as the model was trained to: a chat model answers a message, others continue the plain text.

    Encoder-decoder models (T5, Marian ...) read the prompt unchanged, without ``<extra_id_0>``. An answer is one line,
    because small models do not stop after it but repeat themselves. If the first line ends with a colon ("Here is the
    sentence:"), the next one is the answer.
    """

    def _cut(self, text: str) -> str:
        return _ANNOUNCEMENT.sub("", text).strip().partition("\n")[0].rstrip()

    def _ended(self, text: str) -> bool:
        return "\n" in _ANNOUNCEMENT.sub("", text).lstrip()

    def _read(self, prompts: Sequence[str]) -> Iterator[list[int]]:
        if self.encoder_decoder or not self.tokenizer.chat_template:
            bos = [] if self.tokenizer.bos_token_id is None else [self.tokenizer.bos_token_id]
            for prompt in prompts:
                yield list(self.tokenizer(prompt)["input_ids"]) or bos
            return
        chat = [{"role": "user", "content": _MESSAGE}]
        text = str(self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
        around = [self.tokenizer(part, add_special_tokens=False)["input_ids"] for part in text.split(_MESSAGE)]
        if len(around) != 2:
            raise InputError(f"{self.tokenizer.name_or_path}: its chat template does not contain the message once")
        # the encoder knows no special tokens: a "<|im_end|>" in the prompt is text and does not end the message
        for ids in self._encoder.ids(prompts):
            yield [*around[0], *ids.tolist(), *around[1]]

    @cached_property
    def _ends(self) -> list[int]:
        configured = getattr(self.model.generation_config, "eos_token_id", None)
        ends = self.tokenizer.eos_token_id if configured is None else configured
        return [] if ends is None else sorted(ends if isinstance(ends, list) else [ends])

    @cached_property
    def _start(self) -> list[int]:
        own = getattr(self.model.generation_config, "decoder_start_token_id", None)
        return [self.model.config.decoder_start_token_id if own is None else own]

    @cached_property
    def _constraints(self) -> dict[str, Any]:
        # Marian may not write its padding; mBART must begin with the language
        own = self.model.generation_config
        found = {name: getattr(own, name, None) for name in ("bad_words_ids", "forced_bos_token_id")}
        return {name: value for name, value in found.items() if value is not None}
