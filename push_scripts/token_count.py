"""Estimate the number of tokens in the text of a month, for the card of the dataset."""

import functools
import itertools
from pathlib import Path

from huggingface_hub import HfApi

from temporalwiki.base.errors import InputError
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.parquet import read_rows
from temporalwiki.push_scripts.hub import ask

TOKENIZER = "openai-community/gpt2"  # of the model in the paper
_SAMPLE = 2_000  # articles


def token_sentence(folder: Path, manifest: BuiltManifest) -> str:
    """Return a sentence with the tokens of a month's diffset, or "" without rows, `tokenizers`, or the tokenizer.

    The files of the manifest lie in ``folder``. For a large diffset, the number is estimated from every n-th article.
    """
    name = next(name for name in manifest.configs if name.startswith("diffset-"))
    split = manifest.configs[name].splits.get("train")
    if split is None or not split.num_examples:
        return ""
    try:
        from tokenizers import Tokenizer  # part of .[train], which publishing does not need

        download = functools.partial(HfApi().hf_hub_download, TOKENIZER, "tokenizer.json")
        tokenizer = Tokenizer.from_file(ask(TOKENIZER, download, ()))
    except (ImportError, InputError):
        return ""
    files, step = [folder / file.path for file in split.files], max(1, split.num_examples // _SAMPLE)
    texts = [row["text"] for row in itertools.islice(read_rows(files, ["text"]), 0, None, step)]
    tokens = sum(len(text.ids) for text in tokenizer.encode_batch(texts, add_special_tokens=False))
    of = f"tokens of GPT-2 (`{TOKENIZER}`)"
    if step == 1:
        return f"They are {tokens:,} {of}."
    estimated = float(f"{tokens * manifest.counts.diffset.words / sum(len(text.split()) for text in texts):.2g}")
    return f"They are about {estimated:,.0f} {of}, estimated from {len(texts):,} of the articles."
