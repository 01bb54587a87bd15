"""A model that answers prompts with text: what question generation, decontextualisation and back-translation ask.

Encoder-decoder models (T5, Marian ...) read a prompt and write; others go on where it ends, in their chat template
where they have one. Greedy, in fp32, prompts of one length at a time: what is said depends on model and prompt alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from tqdm import tqdm

from temporalwiki.base.errors import InputError

RULES = "rules"  # in a model's place: what each step does without one
VERSION = 2  # of what is asked and kept
_AT_ONCE = 32
_MARK = "the message stands here"  # in a chat template


class TextModel:
    """A language model by folder, Hub id (``id@revision``), ``.gguf`` file or ``package:NAME``; loaded when asked.

    Needs torch and transformers (``pip install temporalwiki[train]``). Answers are kept in the cache beside those of
    the evaluation, so that what was interrupted goes on, and what was asked before is not asked again. No code of the
    model's own is run.
    """

    def __init__(self, reference: str, max_new_tokens: int = 96, store: Path | None = None) -> None:
        """Raise InputError where there is no such model. ``store``: a folder for kept answers, else the cache."""
        try:  # here and not above: the base install has no torch
            self._checkpoint: Any = importlib.import_module("temporalwiki.methods.checkpoint")
            kept: Any = importlib.import_module("temporalwiki.eval_harness.score_cache")
            evaluated: Any = importlib.import_module("temporalwiki.eval_harness.cached_model")
        except ModuleNotFoundError as error:
            raise InputError(
                f"{reference}: a model needs {error.name}, which is not installed: pip install 'temporalwiki[train]', "
                f"or take {RULES}"
            ) from None
        self.reference = self._checkpoint.pinned(reference)
        self.max_new_tokens = max_new_tokens
        self.revision: str = evaluated.revision(self.reference)
        policy = {"text": VERSION, "max_new_tokens": max_new_tokens, "precision": "fp32"}
        self._store = kept.ScoreCache(kept.cache_folder() if store is None else store, self.revision, policy)
        named = Path(reference).name if self._checkpoint.exists(reference) else reference
        self.identity = {"name": named, "revision": self.revision}

    @property
    def loaded(self) -> Any:
        """The model on the fastest device here, with its tokenizer."""
        return _loaded(self.reference, self.revision)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer alone."""
        return self._checkpoint.load_tokenizer(self.reference)

    @cached_property
    def encoder_decoder(self) -> bool:
        """Whether it reads a prompt and writes, and is not to be instructed."""
        return bool(self.loaded.model.config.is_encoder_decoder)

    def knows(self, token: str) -> bool:
        """Tell whether ``token`` is a token of its own, which a model was trained on."""
        return token in self.tokenizer.get_vocab()

    def answers(self, prompts: Sequence[str], what: str) -> list[str | None]:
        """Return each prompt's answer on one line; None where the prompt is too long or empty, or nothing is said.

        ``what`` heads the progress.
        """
        distinct = list(dict.fromkeys(prompts))
        said = self._store.answers(distinct)
        asked = [i for i in range(len(distinct)) if i not in said]
        if asked:
            read = {i: self._read(distinct[i]) for i in asked}
            longest = self._longest
            fits = [i for i in asked if read[i] and (longest is None or len(read[i]) <= longest)]
            order = sorted(fits, key=lambda i: (len(read[i]), read[i]))
            with tqdm(total=len(order), desc=what, unit="prompt", disable=None) as bar:
                for _, group in groupby(order, key=lambda i: len(read[i])):
                    same = list(group)
                    for batch in (same[at : at + _AT_ONCE] for at in range(0, len(same), _AT_ONCE)):
                        texts = self._continue([read[i] for i in batch])
                        self._store.add_answers((distinct[i], text) for i, text in zip(batch, texts, strict=True))
                        said |= dict(zip(batch, texts, strict=True))
                        bar.update(len(batch))
        of = {prompt: " ".join(said.get(i, "").split()) or None for i, prompt in enumerate(distinct)}
        return [of[prompt] for prompt in prompts]

    def _read(self, prompt: str) -> list[int]:
        tokenizer = self.loaded.tokenizer
        if not self.encoder_decoder and tokenizer.chat_template:
            chat = [{"role": "user", "content": _MARK}]
            text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
            around = [tokenizer(part, add_special_tokens=False)["input_ids"] for part in text.split(_MARK)]
            if len(around) != 2:
                raise InputError(f"{self.reference}: its chat template does not hold a message once")
            # a stranger's "<|im_end|>" is spelled, not obeyed
            [said] = self._encoder.ids([prompt])
            return [*around[0], *said.tolist(), *around[1]]
        ids = list(tokenizer(prompt)["input_ids"])
        return ids if ids or tokenizer.bos_token_id is None else [tokenizer.bos_token_id]

    @cached_property
    def _encoder(self) -> Any:
        packing: Any = importlib.import_module("temporalwiki.methods.packing")
        return packing.Encoder(self.loaded.tokenizer)

    @property
    def _longest(self) -> int | None:
        """Most tokens of a prompt; None where the model does not say."""
        config = self.loaded.model.config
        places = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
        if places is None or (self.encoder_decoder and config.model_type in ("t5", "mt5", "umt5")):  # relative
            return None
        return int(places) - (0 if self.encoder_decoder else self.max_new_tokens)

    def _continue(self, rows: list[list[int]]) -> list[str]:
        """Return what follows prompts of one length."""
        import torch
        from transformers import GenerationConfig

        model, tokenizer = self.loaded.model, self.loaded.tokenizer
        own = model.generation_config
        ends = own.eos_token_id if own and own.eos_token_id is not None else tokenizer.eos_token_id
        pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        start = getattr(own, "decoder_start_token_id", None)
        if start is None:
            start = getattr(model.config, "decoder_start_token_id", None)
        settings = GenerationConfig(
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            num_beams=1,
            eos_token_id=ends,
            pad_token_id=pad,
            decoder_start_token_id=start,
            bad_words_ids=getattr(own, "bad_words_ids", None),  # Marian's padding, which it may not say
            forced_bos_token_id=getattr(own, "forced_bos_token_id", None),
        )
        ids = torch.tensor(rows, device=model.device)
        with torch.inference_mode():
            own, model.generation_config = model.generation_config, GenerationConfig()  # it would add to ours
            try:
                out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=settings)
            finally:
                model.generation_config = own
        new = out if self.encoder_decoder else out[:, ids.shape[1] :]
        return list(tokenizer.batch_decode(new, skip_special_tokens=True))


@lru_cache(maxsize=1)  # steps ask one model after another, and some of them in batches
def _loaded(reference: str, revision: str) -> Any:
    import torch

    checkpoint: Any = importlib.import_module("temporalwiki.methods.checkpoint")
    found = checkpoint.load(reference)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return checkpoint.Checkpoint(found.model.to(device).eval(), found.tokenizer)


def identity(reference: str) -> dict[str, str]:
    """Return what a config's options say of a model: its name, and its commit or a hash of its files.

    Raises InputError where there is no such model.
    """
    return {"name": RULES, "revision": str(VERSION)} if reference == RULES else TextModel(reference).identity
