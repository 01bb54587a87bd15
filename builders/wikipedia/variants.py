"""The variants of a language, such as simplified and traditional Chinese: which one a wiki's text and labels take.

On some wikis, a page has a text for several variants: -{zh-hans:信息; zh-hant:資訊}-. ``convert`` writes one of them
by the rules of MediaWiki's LanguageConverter. It leaves other text as it is, unless the page has a rule for it.
"""

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

from temporalwiki.base.json_files import read_yaml

_DEPTH = 10  # rules are nested no deeper, as in MediaWiki
_MOST_RULES, _LONGEST_WORD, _GROWTH = 200, 30, 4  # bounds of the rules for a whole page
# A "-{{" opens a template, but "-{{{" opens a rule with a template in it, and "{{...}}-" does not end a rule.
_TOKENS = re.compile(r"(-\{(?!\{(?!\{))|(?:(?<!\})|(?<=\}\}))\}-)")
_FLAGS = re.compile(r"([\w\s;-]*+)\|")
_WORD = re.compile(r"(?![A-Za-z]{1,3}\Z)[^\[\]{}|<>='*#:;_&\n]+\Z")


class Variant(NamedTuple):
    """The variant to write, and what MediaWiki knows of the variants of its language."""

    code: str
    fallbacks: tuple[str, ...]
    of_language: tuple[str, ...]  # all of them; the first one is the language's default
    separator: re.Pattern[str]  # between the rules for two variants


@functools.cache
def _tables() -> dict[str, Any]:
    return read_yaml(Path(__file__).with_name("variants.yaml"))  # type: ignore[no-any-return]


@functools.cache
def variant_of(code: str) -> Variant | None:
    """Return the variant with a code, or the default one of a language. None: MediaWiki converts no such language."""
    for language, fallbacks in _tables()["converters"].items():
        if code == language or code in fallbacks:
            code = code if code in fallbacks else next(iter(fallbacks))
            codes = "|".join([*fallbacks, *_tables()["codes"]])
            separator = re.compile(rf"(?<!&nbsp);\s*+(?=(?:[^;]*?=>\s*+)?(?:{codes})\s*+:|\Z)", re.IGNORECASE)
            return Variant(code, tuple(fallbacks[code]), tuple(fallbacks), separator)
    return None


def label_variants(language: str) -> tuple[str, ...]:
    """Return other codes whose labels serve a language, best first."""
    variant = variant_of(language)
    return (*variant.fallbacks, *variant.of_language) if variant else tuple(_tables()["labels"].get(language, ()))


def convert(text: str, variant: Variant) -> str:
    """Return wikitext in one variant, without the marks of the converter. It takes time proportional to the text."""
    first, *rest = _TOKENS.split(text)
    page = _RulesOfPage(variant)
    open_rules = [[first]]
    for token, after in zip(rest[::2], rest[1::2], strict=True):
        if token == "-{" and len(open_rules) <= _DEPTH:
            open_rules.append([after])
        elif token == "}-" and len(open_rules) > 1:
            rule = "".join(open_rules.pop())
            open_rules[-1] += [page.shown(rule), after]
            if len(open_rules) == 1 and page.words:
                open_rules[0][-1] = page.pattern.sub(lambda match: page.words[match[0]], after)
        else:
            open_rules[-1] += [token, after]
    return "-{".join("".join(pieces) for pieces in open_rules)


class _RulesOfPage:
    """A page in one variant, with what its rules stated so far for the rest of its text."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._stated = 0  # rules
        self.words: dict[str, str] = {}  # of other variants, with the words of this one
        self.pattern = re.compile("")  # the words, the longest first

    def shown(self, rule: str) -> str:
        """Return what a reader sees of a rule, given without its braces, and keep what it states for the page."""
        found = _FLAGS.match(rule)
        flags = {flag.strip() for flag in found[1].split(";")} if found else set[str]()
        text = rule[found.end() :] if found else rule
        code, names = self._variant.code, _tables()["names"]
        if "R" in flags or (not flags & {"-", "H"} and flags.intersection(self._variant.of_language)):
            return text
        if "N" in flags:
            return str(names.get(text.strip(), text.strip()))
        both, one_way, every = self._read(text)
        # If no rule is for the variant, MediaWiki shows an error; we show the first text.
        shown = [both[each] for each in (code, *self._variant.fallbacks) if each in both]
        if flags & {"-", "H", "A"} and self._stated < _MOST_RULES:
            self._state(dict.fromkeys(both.values(), shown[0]) if shown else {}, one_way, "-" in flags)
        if "-" in flags or ("H" in flags and "D" not in flags) or flags & {"A", "D", "T"} == {"T"}:
            return ""
        if "D" in flags and every:
            return "".join(f"{names.get(each, each)}：{to}；" for each, to in both.items())
        return [*shown, *one_way.values(), *every, text][0]

    def _read(self, text: str) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Return the texts by variant, the words that only this variant replaces, and all texts.

        All are empty if one of the rules is for no variant of the language.
        """
        both, one_way, every = dict[str, str](), dict[str, str](), list[str]()
        for rule in self._variant.separator.split(text.replace("=&gt;", "=>")):
            target, colon, to = map(str.strip, rule.partition(":"))
            source, arrow, code = map(str.strip, target.partition("=>"))
            code = (code if arrow else source).lower()
            code = _tables()["codes"].get(code, code)
            if colon and code not in self._variant.of_language:
                return {}, {}, []
            if colon and arrow and source:
                one_way |= {source: to} if code == self._variant.code else {}
            elif colon and to:
                both[code] = to
            every += [to] if to else []
        return both, one_way, every

    def _state(self, both: dict[str, str], one_way: dict[str, str], remove: bool) -> None:
        """Keep what a rule states for the rest of the page: how the variant writes a word of another one."""
        code = self._variant.code
        if code not in _tables()["as_written"]:
            self._stated += 1
            for word, to in (one_way if code in _tables()["one_way"] else both | one_way).items():
                self.words.pop(word, None)
                if not remove and _WORD.match(word) and len(word) <= _LONGEST_WORD and len(to) <= _GROWTH * len(word):
                    self.words[word] = to
            self.pattern = re.compile("|".join(map(re.escape, sorted(self.words, key=len, reverse=True))))
