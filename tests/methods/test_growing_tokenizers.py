"""A tokenizer whose steps multiply a text is refused before one of them runs; those in use are not."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors

from temporalwiki.base.errors import InputError
from temporalwiki.methods import checkpoint
from temporalwiki.methods.growing_tokenizers import TokenizerSteps

import tiny_models


def described(step: Any) -> Any:
    return json.loads(step.__getstate__())


def charsmap(*texts: str) -> dict[str, Any]:
    """Return a step with a map of SentencePiece without a tree, whose letters become these texts."""
    packed = bytes(4) + b"".join(text.encode() + b"\0" for text in texts)
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(packed).decode()}


def sequence(name: str, *steps: Any) -> dict[str, Any]:
    return {"type": "Sequence", name: list(steps)}


A_MEGABYTE = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * (1 << 20)}
THOUSAND = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
NOTHING = described(normalizers.Replace(Regex(""), "b"))  # "aa" becomes "baba"
BYTES = described(pre_tokenizers.ByteLevel())  # it gives two letters for "\u00e9", then four for these two

# part -> its step, whose growth is too large
BOMBS: dict[str, tuple[str, Any]] = {
    "a letter that becomes a megabyte": ("normalizer", A_MEGABYTE),
    "a letter that becomes a thousand, three times": ("normalizer", sequence("normalizers", *[THOUSAND] * 3)),
    "the same, nested": ("normalizer", sequence("normalizers", sequence("normalizers", THOUSAND), THOUSAND)),
    "letters between all letters, nine times": ("normalizer", sequence("normalizers", *[NOTHING] * 9)),
    "a beginning of a megabyte": ("normalizer", {"type": "Prepend", "prepend": "a" * (1 << 20)}),
    "a letter in SentencePiece's map": ("normalizer", charsmap("b", "a" * 1000)),
    "two such maps": ("normalizer", sequence("normalizers", charsmap("a" * 18), charsmap("a" * 18))),
    "bytes of bytes": ("pre_tokenizer", sequence("pretokenizers", *[BYTES] * 30)),
    "a text many times": ("post_processor", described(processors.TemplateProcessing(single=["$A"] * 300))),
    "an answer": ("decoder", sequence("decoders", *[THOUSAND] * 3)),
}

# steps of tokenizers in use
UNDERSCORE, BLANKS = "\u2581", Regex(" {2,}")
PRAYER = "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647"  # what becomes of one letter
LLAMA = [normalizers.Prepend(UNDERSCORE), normalizers.Replace(" ", UNDERSCORE)]
ALBERT = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
MISTRAL = [decoders.Replace(UNDERSCORE, " "), decoders.ByteFallback(), decoders.Fuse()]
ALBERTS = (*map(described, ALBERT), charsmap(PRAYER), described(normalizers.Replace(BLANKS, " ")))
USED: dict[str, tuple[str, Any]] = {
    "Llama": ("normalizer", described(normalizers.Sequence(LLAMA))),
    "ALBERT": ("normalizer", sequence("normalizers", *ALBERTS)),
    "GPT-2": ("pre_tokenizer", BYTES),
    "Mistral": ("decoder", described(decoders.Sequence(MISTRAL))),
    "BERT": ("post_processor", described(processors.TemplateProcessing(single="$A"))),
    "nothing": ("normalizer", None),
    "what the library refuses": ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "?"}),
}


@pytest.mark.fault("bomb", "a tokenizer whose steps multiply a text", "refused in one line before a text is read")
@pytest.mark.parametrize("case", BOMBS)
def test_a_tokenizer_that_multiplies_a_text_is_refused(case: str, tmp_path: Path) -> None:
    part, step = BOMBS[case]
    folder = tiny_models.save("llama", tmp_path)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {part: step}), "utf-8")
    with pytest.raises(InputError, match=r"tokenizer\.json: its \w+ may make a text more than 256 times as long"):
        checkpoint.load_tokenizer(str(folder))


@pytest.mark.parametrize("case", USED)
def test_tokenizers_in_use_are_not(case: str) -> None:
    part, step = USED[case]
    TokenizerSteps(**{part: step}).check("x")


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_tokenizer_that_was_made_of_other_files_is_checked_as_well(kind: str) -> None:
    backend = tiny_models.tokenizer(kind).backend_tokenizer
    TokenizerSteps.of(backend).check("x")
    backend.normalizer = normalizers.Sequence([normalizers.Replace("a", "a" * 1000)] * 3)
    with pytest.raises(InputError, match="x: its Replace may"):
        TokenizerSteps.of(backend).check("x")
