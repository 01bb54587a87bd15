"""Make mediawiki_names.yaml: the names that MediaWiki itself knows in each language.

    python -m temporalwiki.builders.wikipedia.make_mediawiki_names MEDIAWIKI CONFIG EXTRACTION

The three folders are checkouts: of wikimedia/mediawiki, for the names of each language; of
wikimedia/operations-mediawiki-config, for the additions of each wiki; and of dbpedia/extraction-framework, for the
names that the API of each wiki gave in June 2024.
"""

import functools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from temporalwiki.builders.snapshot import LANGUAGES

HEAD = """\
# Names that MediaWiki and the Wikipedias know in their markup. make_mediawiki_names.py made this file of a mirror of
# MediaWiki 1.39, the configuration of Wikimedia's wikis of August 2026, and what their API said in June 2024. Such
# names are facts. docs/how_to/add_a_language.md explains the keys.
"""
NAMESPACES = {"files": "NS_FILE|6", "categories": "NS_CATEGORY|14"}
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_COMMENT = re.compile(rf"({_STRING})|/\*.*?\*/|(?:#|//)[^\n]*", re.DOTALL)
_ESCAPE = re.compile(r"\\u\{([0-9A-Fa-f]+)\}|\\(.)")


def strings(php: str) -> list[str]:
    """Return the strings of a piece of PHP."""
    found = re.findall(_STRING, php)
    return [_ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], text[1:-1]) for text in found]


def tidy(names: Iterable[str]) -> list[str]:
    """Return names as the table has them."""
    return sorted({name.strip(" _＿:").replace(" ", "_") for name in names} - {""})


def language(chain: list[dict[str, str]], of_wiki: str) -> dict[str, Any]:
    """Return the row of a language. ``chain`` has its own settings, then its fallbacks, and ``of_wiki`` more names."""

    def first(name: str) -> str:
        return next((text for one in chain if (text := one.get(name, "").strip()) not in ("", "null")), "")

    def pairs(name: str) -> dict[str, str]:
        return dict(strings(pair) for pair in re.findall(rf"(?:{_STRING})\s*=>\s*(?:{_STRING})", first(name)))

    def namespace(number: str) -> Iterator[str]:
        names, aliases = ([one.get(key, "") for one in chain] for key in ("namespaceNames", "namespaceAliases"))
        found = re.findall(rf"\b(?:{number})\s*=>\s*({_STRING})", "".join(names))
        found += re.findall(rf"({_STRING})\s*=>\s*(?:{number})\b", "".join([*aliases, of_wiki]))
        return (name.lower() for text in found for name in strings(text))

    def magic(name: str) -> list[str]:
        return tidy(word.lower() for one in chain for key, word in magic_words(one) if key == name)

    switches = (word for one in chain for _, word in magic_words(one) if word.startswith(("__", "＿＿")))
    marks, digits = pairs("separatorTransformTable"), pairs("digitTransformTable")
    return {name: tidy(namespace(number)) for name, number in NAMESPACES.items()} | {
        "switches": tidy(switches),
        "formatnum": magic("formatnum"),
        "raw": magic("rawsuffix"),
        "plain": magic("nocommafysuffix"),
        "marks": [" " if mark.isspace() else mark for mark in (marks.get(",", ","), marks.get(".", "."))],
        "lakh": "##,##" in first("digitGroupingPattern"),
        "least": int(first("minimumGroupingDigits") or 1),
        "digits": "".join(digits.get(digit, "") for digit in "0123456789"),
    }


def magic_words(messages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names and words of MediaWiki's "magic words", in lower case if their case does not matter."""
    magic = messages.get("magicWords", "")
    for name, sensitive, found in re.findall(rf"'(\w+)'\s*=>\s*\[\s*'?(\d)'?\s*,((?:{_STRING}|[^'\"\]])*)", magic):
        for word in strings(found):
            yield name, word if sensitive == "1" else word.lower()


def main(mediawiki: Path, config: Path, extraction: Path) -> None:
    """Write the table next to this file."""
    messages = mediawiki / "languages" / "messages"

    @functools.cache
    def read(code: str) -> dict[str, str]:
        file = messages / f"Messages{code.strip().capitalize().replace('-', '_')}.php"
        text = _COMMENT.sub(lambda match: match[1] or "", file.read_text("utf-8")) if file.is_file() else ""
        return dict(re.findall(r"^\$(\w+)\s*=(.*?);\s*$", text, re.DOTALL | re.MULTILINE))

    scala = extraction / "core/src/main/scala/org/dbpedia/extraction/wikiparser/impl/wikipedia"
    names = (scala / "Namespaces.scala").read_text("utf-8").replace("->", " => ")
    wikis = dict(re.findall(r"def (\w+)_namespaces = (.*)", names))
    settings = {name: (config / f"wmf-config/{name}.php").read_text("utf-8") for name in (
        "core-Namespaces", "InitialiseSettings", "interwiki")}  # fmt: skip
    for name, more in re.findall(r"^\t'\+?(\w+)wiki' => \[(.*?)^\t\]", settings["core-Namespaces"], re.DOTALL | re.M):
        wikis[name] = wikis.get(name, "") + more
    other_digits = settings["InitialiseSettings"].partition("'wgTranslateNumerals'")[2].partition("],")[0]
    prefixes = set(re.findall(r"'_wiki:([a-z-]+)' => '1 https?://[a-z-]+\.wikipedia", settings["interwiki"])) - {"w"}
    english = language([read("en")], "")
    languages: dict[str, dict[str, Any]] = {}
    for name in sorted(prefix.replace("-", "_") for prefix in prefixes - {"en", "simple"}):
        code = LANGUAGES.get(name, name.replace("_", "-"))
        fallbacks = [other for text in strings(read(code).get("fallback", "")) for other in text.split(",")]
        row = language([read(code), *map(read, fallbacks)], wikis.get(name, ""))
        if f"'{name}wiki' => false" in other_digits:
            row["digits"] = ""
        before = languages.setdefault(code, {})
        for key, value in row.items():
            if isinstance(value, list) and key != "marks":
                row[key] = sorted({*value, *before.get(key, ())}.difference(english[key]))
        before |= {key: value for key, value in row.items() if value and value != english[key]}
    every = [read(file.stem.removeprefix("Messages")) for file in messages.glob("Messages*.php")]
    redirects = [word for one in every for key, word in magic_words(one) if key == "redirect"]
    redirects += re.findall(r'"([#＃][^"]+)"', (scala / "Redirect.scala").read_text("utf-8"))
    lower = (word.lower().replace("i̇", "i") for word in redirects)
    table = {"redirects": tidy(lower), "editions": sorted(prefixes), "languages": {"en": english} | languages}
    text = yaml.safe_dump(table, default_flow_style=None, allow_unicode=True, sort_keys=False, width=118)
    Path(__file__).with_name("mediawiki_names.yaml").write_text(f"{HEAD}\n{text}", "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
