"""Pages of the generated Wikipedia, made of sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from temporalwiki.builders import dumps
from temporalwiki.builders.world.names import Text


@dataclass(eq=False)
class Block:
    """A paragraph, a bulleted list, or ``raw`` wikitext such as a heading."""

    kind: Literal["prose", "list", "raw"]
    sentences: list[Text] = field(default_factory=list)
    raw: str = ""

    def wikitext(self) -> str:
        """Return the block as the page has it."""
        if self.kind == "list":
            return "\n".join(f"* {sentence.wiki}" for sentence in self.sentences)
        return self.raw or " ".join(sentence.wiki for sentence in self.sentences)


@dataclass(eq=False)
class Page(dumps.Page):
    """A page of the generated Wikipedia: its text is written from its blocks."""

    item: str | None = None
    blocks: list[Block] = field(default_factory=list)
    tail: str = ""
    told: dict[tuple[str, str], list[Text]] = field(default_factory=dict)  # (relation, object) -> what says so

    def paragraphs(self) -> list[Block]:
        """Return its paragraphs without its lists."""
        return [block for block in self.blocks if block.kind == "prose"]

    def has(self, text: Text) -> bool:
        """Return whether the page has a sentence with the same plain text, with any markup."""
        return any(sentence.plain == text.plain for block in self.blocks for sentence in block.sentences)

    def plain(self) -> list[list[str]]:
        """Return paragraphs and lists as lists of sentences, as readers see them."""
        return [[sentence.plain for sentence in block.sentences] for block in self.blocks if block.kind != "raw"]

    def replace(self, old: Text, *new: Text) -> None:
        """Replace a sentence by any number of others. A paragraph that becomes empty is removed."""
        for block in self.blocks:
            if old in block.sentences:
                place = block.sentences.index(old)
                block.sentences[place : place + 1] = new
                if not block.sentences:
                    self.blocks.remove(block)
                break
        self.told = {fact: kept for fact, of in self.told.items() if (kept := [one for one in of if one is not old])}

    def wikitext(self, kind: str, infobox: Mapping[str, str]) -> str:
        """Return the wikitext of a page about a ``kind`` of thing."""
        if self.redirect is not None:
            return f"#REDIRECT [[{self.redirect}]]\n\n{{{{Redirect category shell|\n{{{{R from move}}}}\n}}}}"
        box = "".join(f"| {name:<12} = {value}\n" for name, value in infobox.items())
        parts = [f"{{{{Short description|{kind} of a generated world}}}}\n{{{{Infobox {kind}\n{box}}}}}\n"]
        for block in self.blocks:
            parts += [block.wikitext(), "\n" if block.raw.startswith("==") else "\n\n"]
        return "".join(parts) + self.tail


def link(title: str | None, label: str) -> Text:
    """Return a link to an article, or plain text if the label would break a link."""
    if title is None or any(c in label for c in "|[]{}<>"):
        return Text(label, label.replace("<", "&lt;").replace(">", "&gt;"))
    return Text(label, f"[[{label}]]" if title == label else f"[[{title}|{label}]]")
