"""Changed and unchanged facts in a dataset folder, and models that know some of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import tiny_models
from a_dataset import write_dataset

Fact = tuple[str, str, str]
UNCHANGED: list[Fact] = [
    ("Anna Weber", "was born in", "Easton"),
    ("Norland", "capital", "Easton"),
    ("[Zoë] Ünal", "citizen of", "Norland"),
    ("Anna Weber", "country of citizenship", "Norland"),
    ("Carl Ito", "lives in", "St. Louis"),
]
CHANGED: list[Fact] = [
    ("Norland", "head of government", "Anna Weber"),
    ("Anna Weber", "year of birth", "1961"),
    ("Easton", "{{mayor}}", "[Ito] <b>"),
    ("東京", "country", "日本"),
]
# six of a relation stand in a panel
OF_A_PANEL = {
    split: [
        (f"{begin}land", "head of state", f"{begin} {name}") for begin in ("Nor", "Sud", "Os", "Wes", "Mid", "Far")
    ]
    for split, name in (("unchanged", "Weber"), ("changed", "Ito"))
}
LIGHT_TUNING: list[Fact] = [(f"Town {i}", "is in", f"Norland {i}") for i in range(9)]


def rows(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Return facts as rows with Wikidata ids."""
    return [{"subject": s, "relation": r, "object": o, "subject_id": f"Q-{s}", "evidence": ""} for s, r, o in facts]


def write_month(folder: Path) -> Path:
    """Write the dataset folder of the facts above."""
    probes = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED), "deleted": rows(CHANGED)}
    return write_dataset(folder, {"probes-1112": probes, "lighttuning-1112": {"unchanged": rows(LIGHT_TUNING)}})


def save_taught(kind: str, folder: Path) -> Path:
    """Write a tiny model that answers most probes, some with a wrong object or with extra words."""
    tokenizer = tiny_models.tokenizer(kind)
    model = tiny_models.model(kind, len(tokenizer)).eval()  # no dropout, so that all runs learn the same
    said = [o if i % 3 else f"the {o} in Easton" for i, (_, _, o) in enumerate(UNCHANGED + CHANGED)]
    prompts = [f"{s} {r}" for s, r, _ in UNCHANGED + CHANGED]
    ends = [tokenizer.eos_token_id]
    if kind == "t5":
        starts = [tokenizer.encode(f"{prompt} <extra_id_0>") for prompt in prompts]
        wanted = [tokenizer.encode(f"<extra_id_0> {text}", add_special_tokens=False) + ends for text in said]
    else:
        bos = [tokenizer.bos_token_id]
        texts = [f"{prompt} {text}. It" for prompt, text in zip(prompts, said, strict=True)]
        starts = wanted = [bos + tokenizer.encode(text, add_special_tokens=False) + ends for text in texts]
    ids, mask = padded(starts, 0), padded([[1] * len(row) for row in starts], 0)
    trained(model, 200, 1e-2, input_ids=ids, attention_mask=mask, labels=padded(wanted, -100))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def trained(model: Any, steps: int, rate: float, **inputs: torch.Tensor) -> Any:
    """Train a model on one batch, and return it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        model(**inputs).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def teach(model: Any, tokenizer: Any, texts: list[str], steps: int, rate: float) -> Any:
    """Train a decoder-only model on texts between BOS and EOS, without dropout, and return it."""
    ends = [tokenizer.bos_token_id, tokenizer.eos_token_id]
    rows = [[ends[0], *tokenizer.encode(text, add_special_tokens=False), ends[1]] for text in texts]
    return trained(model.eval(), steps, rate, input_ids=padded(rows, 0), labels=padded(rows, -100))


def padded(lists: list[list[int]], by: int) -> torch.Tensor:
    """Return lists padded to one length."""
    longest = max(map(len, lists))
    return torch.tensor([row + [by] * (longest - len(row)) for row in lists])


@contextmanager
def forward_passes() -> Iterator[list[int]]:
    """Collect the batch size of each call of a language model."""
    passes: list[int] = []

    def note(module: torch.nn.Module, args: Any, kwargs: Any = None) -> None:
        if type(module).__name__.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration")):
            passes.append(1)

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield passes
    finally:
        handle.remove()
