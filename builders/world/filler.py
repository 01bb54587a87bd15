"""Load: pages and items made fast from pools, of which any one can be asked what a month did to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from temporalwiki.builders.world.filler_items import FillerItems
from temporalwiki.builders.world.names import Names

if TYPE_CHECKING:
    from temporalwiki.builders.world import World

FIRST_PAGE = 10_000_000
FIRST_ITEM = 50_000_000
_POOL = 20_000
_STRIDE = 14  # paragraphs between the texts of neighbouring pages: none repeats within a bz2 stream


@dataclass(frozen=True)
class FillerTruth:
    """Answers about the filler: pages ``FIRST_PAGE + k`` for k below ``pages``, items likewise.

    Month m (snapshot number, from 1) changes a page as most edits of a month do, little: a sentence and a number
    of the infobox are replaced, and every third page gets a paragraph with its first change. An item has one
    fact replaced.
    """

    seed: int
    pages: int
    items: int
    share: float

    def changed_pages(self, month: int) -> list[int]:
        """All pages that a month changed."""
        return [FIRST_PAGE + k for k in range(self.pages) if self._hit(k, month)]

    def changed_items(self, month: int) -> list[int]:
        """Numbers of all items that a month changed."""
        return [FIRST_ITEM + k for k in range(self.items) if self._hit(k, month)]

    def last_change(self, number: int, month: int) -> int:
        """The month of the newest change up to a month, 0 if none: number is counted from the first."""
        return next((m for m in range(month, 0, -1) if self._hit(number, m)), 0)

    def sentence(self, page_id: int, month: int) -> str:
        """The sentence of a page that changes; it is the page's newest in the month that changed it."""
        changed = self.last_change(page_id - FIRST_PAGE, month)
        return f"Survey {page_id} counted {page_id * 7 % 9973} items in its edition {changed}."

    def object(self, number: int, month: int) -> str:
        """The item that an item's P54 names; it is a new one in the month that changed it."""
        changed = self.last_change(number - FIRST_ITEM, month)
        return f"Q{FIRST_ITEM + (number * 31 + 7919 * changed + 1) % max(1, self.items)}"

    def label(self, number: int) -> str:
        """The English label of an item."""
        return f"Filler {number - FIRST_ITEM}"

    def _hit(self, k: int, month: int) -> bool:
        # 7919 has no factor in common with 10,000: the hits are spread evenly, whatever the month.
        return (k * 7919 + month * 3571 + self.seed * 17) % 10_000 < self.share * 10_000


class Filler:
    """Makes the pages and items of one world's filler."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.truth = FillerTruth(world.seed, world.filler_pages, world.filler_items, world.filler_changed)

    @cached_property
    def _pool(self) -> list[str]:
        """Paragraphs of six sentences, about as dense in markup as real articles; only made when asked for.

        Words are invented and their frequencies are Zipf's, so that the text packs about as well as prose does.
        """
        rng = Random(f"filler {self.world.seed}")
        names = Names(rng)
        words = [(names.place_name() + names.surname()[-4:]).lower()[: rng.randint(2, 11)] for _ in range(20_000)]
        weights = list(itertools.accumulate(1 / (rank + 40) for rank in range(len(words))))
        made = []
        for number in range(_POOL):
            chosen = rng.choices(words, cum_weights=weights, k=rng.randint(8, 26))
            for place in range(rng.randrange(1, 14), len(chosen), 14):
                word = chosen[place]
                chosen[place] = rng.choice((f"[[{word}]]", f"[[{word.title()} {number}|{word}]]"))
            if number % 9 == 4:
                chosen[-1] = rng.choice((f"{{{{nowrap|{number} km}}}}", f"{{{{convert|{number}|km|mi}}}}", "''vide''"))
            text = " ".join(chosen)
            text = text[0].upper() + text[1:] + "."
            if rng.random() < 0.35:
                about = "|".join(
                    f"{key}={rng.choice(words)} {rng.choice(words)} {rng.choice(words)}"
                    for key in ("title", "last", "work")
                )
                url = f"https://{rng.choice(words)}.example/{rng.randrange(10**9)}"
                date = f"{rng.randint(1, 28)} May {rng.randint(1990, 2021)}"
                text += f"<ref>{{{{cite web|url={url}|{about}|date={date}|pages={rng.randrange(999)}}}}}</ref>"
            made.append(text)
        return [" ".join(made[i : i + 6]) for i in range(0, _POOL, 6)]

    def texts(self, month: int) -> Iterator[tuple[int, str, int]]:
        """Page id, wikitext, and the month of its newest change, by page id."""
        if not self.world.filler_pages:
            return
        pool, truth = self._pool, self.truth
        for k in range(self.world.filler_pages):
            start, page_id = k * _STRIDE % (len(pool) - _STRIDE), FIRST_PAGE + k
            size = 1 + k * 17 % (_STRIDE - 1)
            changed = truth.last_change(k, month)
            body = "\n\n".join(pool[start : start + size + (changed > 0 and k % 3 == 0)])
            opening = f"'''Place {k}''' is a place. {truth.sentence(page_id, month)}"
            text = (
                f"{{{{Infobox settlement\n| name = Place {k}\n| image = Place {k}.jpg\n"
                f"| country = [[Land {k % 97}]]\n| population = {k % 9999 + changed}\n"
                f"| area = {{{{convert|{k % 89}|km2|sqmi}}}}\n| leader = [[Mayor {k}]]\n}}}}\n"
                f"{opening}\n\n"
                f"== History ==\n{body}\n\n== References ==\n{{{{Reflist}}}}\n\n[[Category:Places]]"
            )
            yield page_id, text, changed

    def items(self, month: int) -> Iterator[str]:
        """Entities as lines of JSON: a label, one fact (P54) that may change, and statements that never do."""
        maker = FillerItems(self.world.seed, self.world.filler_items, FIRST_ITEM)
        for k in range(self.world.filler_items):
            number = FIRST_ITEM + k
            changed = self.truth.last_change(k, month)
            yield maker.line(
                k, n=number, k=k, label=self.truth.label(number), o=self.truth.object(number, month)[1:],
                c=f"{number:08X}-0000-4000-9000-{changed:012X}", page=number + 200,
                rev=1_600_000_000 + changed * 100_000_000 + k, day=self.world.wikidata_dates[changed],
            )  # fmt: skip
