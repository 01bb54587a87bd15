"""Continual-learning methods: one file each, listed in METHODS, all trained by one trainer."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean

if TYPE_CHECKING:
    from temporalwiki.methods.method import Method


class MethodEntry(NamedTuple):
    """A method: its class, its name as papers write it, and what it does in a few words."""

    of: str
    name: str
    about: str


# By the name of its module, which is imported only when the method is used, because torch takes seconds to import.
METHODS = {  # figures take their colours in this order: new methods come last
    "initial": MethodEntry("Initial", "Start model", "before any training"),
    "full": MethodEntry("Full", "Full", "trains on the whole new snapshot"),
    "diff": MethodEntry("Diff", "Diff", "trains on the changes only"),
    "recadam": MethodEntry("RecAdam", "RecAdam", "is pulled back to its start weights"),
    "mix_review": MethodEntry("MixReview", "Mix-Review", "mixes changes with old text, less each epoch"),
    "replay": MethodEntry("Replay", "Replay", "adds the same share of old text to each batch"),
    "lora": MethodEntry("LoRA", "LoRA", "trains low-rank adapters"),
    "dora": MethodEntry("DoRA", "DoRA", "trains low-rank adapters and the size of each weight"),
    "k_adapter": MethodEntry("KAdapter", "K-Adapter", "trains new layers next to the frozen model"),
    "modular": MethodEntry("Modular", "Modular", "trains a small new encoder next to the frozen one"),
    "ewc": MethodEntry("EWC", "EWC", "protects the weights that old text needs"),
    "lwf": MethodEntry("LwF", "LwF", "keeps its predictions close to the start model's"),
    "merge": MethodEntry("Merge", "Merge", "averages the trained and the start weights"),
    "light_tuning": MethodEntry("LightTuning", "Light-tuning", "learns the form of the questions only"),
    "o_lora": MethodEntry("OLoRA", "O-LoRA", "keeps new low-rank adapters orthogonal to earlier ones"),
    "osf": MethodEntry("OSF", "OSF", "trains each matrix outside its strongest directions"),
    "study": MethodEntry("Study", "Study", "reads each new sentence in several wordings"),
    "sdft": MethodEntry("SDFT", "SDFT", "learns from itself with the new text in its context"),
    "sparse": MethodEntry("Sparse", "Sparse", "trains what new text uses more than old text"),
}
# Controls: they must learn nothing of the facts, and have no rank.
CONTROLS = {
    "shuffled": MethodEntry("Shuffled", "Shuffled", "trains on the changes with their objects exchanged"),
    "unread": MethodEntry("Unread", "Unread", "trains on the changes of half of the subjects"),
    "untrained": MethodEntry("Untrained", "Untrained", "has random weights"),
}


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raise UsageError if the block imports a missing package; the extra ``extra`` installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package == "temporalwiki":
            raise
        what = {"train": "training", "eval": "evaluation", "news": "reading news", "api": "asking a model"}
        what |= {"completion": "completion"}
        raise UsageError(f"{what[extra]} needs the package {package}: pip install 'temporalwiki[{extra}]'") from None


def find_method(name: str) -> type[Method]:
    """Return the class of method ``name``; raise UsageError for an unknown name and suggest the nearest one."""
    known = METHODS | CONTROLS
    if name not in known:
        near = did_you_mean(name.lower().replace("-", "_"), known)
        raise UsageError(f"no method {name!r}{near}; there are {', '.join(known)}")
    with needs("train"):
        module = importlib.import_module(f"temporalwiki.methods.{name}")
    method: type[Method] = getattr(module, known[name].of)
    return method
