"""Reference likelihoods and answers from plain transformers: one text in one call, without padding and batches."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

BLANK = "<extra_id_0>"


def load(folder: Path) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a folder; that of T5 is called t5."""
    auto = AutoModelForSeq2SeqLM if folder.name == "t5" else AutoModelForCausalLM
    return auto.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def spelled(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text; what looks like a special token is text."""
    return list(tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids)


def prompt_ids(model: Any, tokenizer: Any, prompt: str) -> list[int]:
    """Return what the model reads: BOS and the prompt; for T5, the prompt with one sentinel, by default at its end."""
    if model.config.is_encoder_decoder:
        before, _, after = prompt.partition(BLANK)
        blank = tokenizer.convert_tokens_to_ids(BLANK)
        return [*spelled(tokenizer, before.strip()), blank, *spelled(tokenizer, after.strip()), 1]
    bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    return bos + spelled(tokenizer, prompt)


@torch.no_grad()
def nlls(model: Any, tokenizer: Any, context: str, target: str) -> list[float]:
    """Return the NLLs of the tokens that overlap the target; without BOS, the first token is left out."""
    if model.config.is_encoder_decoder:
        read, wanted = torch.tensor([prompt_ids(model, tokenizer, context)]), spelled(tokenizer, target)
        fed = torch.tensor([[0, tokenizer.convert_tokens_to_ids(BLANK), *wanted]])
        logits = model(input_ids=read, decoder_input_ids=fed).logits[0, 1:].log_softmax(-1)
        return [-logits[place, token].item() for place, token in enumerate(wanted)]
    whole = context + target
    ids = prompt_ids(model, tokenizer, whole)
    encoded = tokenizer(whole, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)
    first = len(ids) - len(encoded.input_ids)
    logits = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    places = [first + i for i, (_, end) in enumerate(encoded.offset_mapping) if end > len(context)]
    return [-logits[place - 1, ids[place]].item() for place in places if place]


def fact(model: Any, tokenizer: Any, prompt: str, label: str) -> tuple[float, int, float, int, int]:
    """Return NLL and tokens of a fact and of its object, and the fact's bytes; T5 only predicts the object."""
    of_object = nlls(model, tokenizer, prompt, f" {label}")
    text = label if model.config.is_encoder_decoder else f"{prompt} {label}"
    nll = of_object if model.config.is_encoder_decoder else nlls(model, tokenizer, "", text)
    return sum(nll), len(nll), sum(of_object), len(of_object), len(text.encode())


def continuation(model: Any, tokenizer: Any, prompt: str, new: int, beams: int = 1, ends: tuple[int, ...] = ()) -> str:
    """Return what transformers' own decoding adds to a prompt, up to EOS, for T5 the next sentinel, or ``ends``."""
    ids = prompt_ids(model, tokenizer, prompt)
    stops = [*ends, tokenizer.eos_token_id]
    skipped = len(ids)
    settings: dict[str, Any] = {"max_new_tokens": new, "num_beams": beams, "do_sample": False, "pad_token_id": 0}
    if model.config.is_encoder_decoder:
        skipped = 2
        first, second = tokenizer.convert_tokens_to_ids([BLANK, "<extra_id_1>"])
        stops.append(second)
        settings["decoder_input_ids"] = torch.tensor([[0, first]])
    read = torch.tensor([ids])
    out = model.generate(read, attention_mask=torch.ones_like(read), eos_token_id=stops, **settings)
    said: list[int] = out[0, skipped:].tolist()
    while said and said[-1] in (*stops, 0):
        said.pop()
    return str(tokenizer.decode(said, skip_special_tokens=True))
