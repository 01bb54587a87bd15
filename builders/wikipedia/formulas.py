r"""Formulas in TeX as plain text: ``E = mc^2`` -> E = mc², ``\alpha \le \frac{a}{b}`` -> α ≤ a/b."""

import re
from collections.abc import Iterator
from pathlib import Path

from temporalwiki.base.json_files import read_yaml

LONGEST = 400  # characters; a longer formula is not shown
DEEPEST = 20  # groups in groups

_TOKEN = re.compile(r"\\(?:[A-Za-z]+\*?|.)|[{}^_&]|[^\\{}^_&]", re.DOTALL)
_RAISED = str.maketrans("0123456789+-−()ni'", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿⁱ′")
_LOWERED = str.maketrans("0123456789+-−()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₎")
_ONE = re.compile(r"[\w.′]+[⁰¹²³⁴-⁹]*\Z")
_NEEDLESS = re.compile(r"(?<=[(\[]) | (?=[)\]⁰¹²³⁴-⁹⁻^_,])")
_CHARGE = re.compile(r"\^(\d*[+-])")


_WORDS = read_yaml(Path(__file__).with_name("formula_words.yaml"))
_LETTERS: dict[str, str] = _WORDS["letters"]
_SIGNS: dict[str, str] = _WORDS["signs"]
_NAMES = frozenset(_WORDS["names"])
_PLAIN = frozenset(_WORDS["plain"])
_SPACES = frozenset([",", ";", ":", " ", ">", "quad", "qquad", "\n", "thinspace"])
_FRACTIONS = frozenset(["frac", "tfrac", "dfrac"])


def plain_formula(tex: str, chemical: bool = False) -> str | None:
    """Return a TeX formula as plain text, or None if that is impossible; a ``chemical`` one is in mhchem's form."""
    if len(tex) > LONGEST:
        return None
    if chemical:
        tex = _CHARGE.sub(r"^{\1}", tex).replace("<=>", " ⇌ ").replace("->", " → ")
    try:
        text = _group(_TOKEN.finditer(tex), "", 0)
    except (_Unreadable, StopIteration):
        return None
    return _NEEDLESS.sub("", " ".join(text.split()))


class _Unreadable(Exception):
    """A formula that plain text cannot show."""


def _group(tokens: Iterator[re.Match[str]], end: str, depth: int) -> str:
    """Return the text up to the token ``end``."""
    if depth > DEEPEST:
        raise _Unreadable
    shown = ""
    for match in tokens:
        token = match[0]
        if token == end:
            return shown
        shown += _shown(token, tokens, depth)
    if end:
        raise _Unreadable
    return shown


def _shown(token: str, tokens: Iterator[re.Match[str]], depth: int) -> str:
    if token == "{":
        return _group(tokens, "}", depth + 1)
    if token in "^_":
        return _script(_argument(tokens, depth), raised=token == "^")
    if token[0] != "\\":
        if token in "}&":
            raise _Unreadable
        return " " if token == "~" else token
    command = token[1:]
    if command in _LETTERS:
        return _LETTERS[command]
    if command in _SIGNS:
        return f" {_SIGNS[command]} "
    if command in _NAMES:
        return f" {command} "
    if command in _SPACES:
        return " "
    if command in _FRACTIONS:
        above, below = _argument(tokens, depth), _argument(tokens, depth)
        return f"{_as_one(above)}/{_as_one(below)}"
    if command == "sqrt":
        return f"√{_as_one(_argument(tokens, depth))}"
    if command in _PLAIN or command == "!":
        return ""
    raise _Unreadable


def _argument(tokens: Iterator[re.Match[str]], depth: int) -> str:
    token = next(tokens)[0]
    while token.isspace():
        token = next(tokens)[0]
    if token == "[" or depth > DEEPEST:  # an optional argument: the third root
        raise _Unreadable
    return _shown(token, tokens, depth + 1).strip()


def _script(text: str, raised: bool) -> str:
    translated = text.translate(_RAISED if raised else _LOWERED)
    if text and not any(character in text for character in translated):
        return translated
    if not raised and text.isalpha():
        return f"_{text}"
    return f"{'^' if raised else '_'}{_as_one(text)}"


def _as_one(text: str) -> str:
    """Return a term that can stand before or after a slash."""
    return text if _ONE.match(text) else f"({text})"
