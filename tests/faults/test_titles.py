"""Hostile titles and labels, pages that move and ranks that flip: one build, whose folder is loaded again."""

from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.dataset_folder import problems
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.model_cards.folder_card import folder_card

from tiny_dumps import (
    articles_file,
    item,
    multistream,
    page,
    property_,
    statement,
    value,
    wikidata_file,
    write_wikidata,
)

INTERVAL = Interval("enwiki", "20211101", "20211201")
TITLES = [
    "Talk: not a namespace",
    "../../etc/passwd",
    "C:\\x",
    "🙂 👩‍👩‍👧",
    "\"double\" 'single' `back`",
    "\u202eright to left\u202c",
    "=cmd|'/c calc'!A1",
    "+1",
    "@a",
    "- a: &b *c !d",
    "{{x}} [[y]] <script>alert(1)</script>",
    "a | b",
    "---",
    "# no comment",
    "null",
    "yes",
    "1e3",
    "a\u2028b",
    "%s %d {0} ${x}",
    "'; DROP TABLE facts; --",
    "<extra_id_0>",
    "a" * 255,
]
# page id: title and text before and after; None if the page does not exist
MOVED: dict[int, tuple[tuple[str, str] | None, tuple[str, str] | None]] = {
    1: (("Old name", "It is a town."), ("New name", "It is a town. It was renamed.")),  # moved
    2: (None, ("Came back", "It is back.")),  # undeleted: a history, and an id below prev's largest
    3: (("Merged", "It was apart."), ("#REDIRECT", "")),  # merged into page 4, a redirect now
    4: (("Merged into", "It is whole."), ("Merged into", "It is whole. It was apart.")),
    5: (("#REDIRECT", ""), ("No redirect", "It is an article now.")),
    6: (("Gone", "It was deleted."), None),
    7: (("Same", "It stays."), ("Same", "It stays.")),
}
FIRST = 100  # page and item of the first hostile title


def pages(recent: bool) -> list[str]:
    found = []
    for page_id, sides in MOVED.items():
        side = sides[recent]
        if side is None:
            continue
        title, text = side
        redirect, changed = title == "#REDIRECT", sides[0] != sides[1]
        name = f"Redirect {page_id}" if redirect else title
        text = "#REDIRECT [[Merged into]]" if redirect else text
        revision_id = 1000 + page_id + 100 * (recent and changed)
        more = {"parent": 5} if recent and changed else {}
        found.append(page(page_id, name, text, redirect=redirect, revision_id=revision_id, **more))
    for i, title in enumerate(TITLES, FIRST):
        said = f"{title} lies in Sudland." if recent else "It lies in Norland."
        found.append(page(i, title, f"<nowiki>{said}</nowiki>", revision_id=2 * i + recent))
    return found


def entities(recent: bool) -> list[dict[str, Any]]:
    north, south = value(900), value(901)
    found = []
    for i, title in enumerate(TITLES, FIRST):  # from one snapshot to the other the ranks flip
        ranks = ("normal", "preferred") if recent else ("preferred", "normal")
        both = [statement(north, ranks[0], f"Q{i}$n"), statement(south, ranks[1], f"Q{i}$s")]
        found.append(item(i, {"P17": both}, title, title))
    return [*found, item(900, label="Norland"), item(901, label="Sudland"), property_(17, "country | = [X]")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    dumps = tmp_path_factory.mktemp("titles") / "dumps"
    for date, recent in (("20211101", False), ("20211201", True)):
        multistream(articles_file(dumps, date), pages(recent))
        write_wikidata(wikidata_file(dumps, date), entities(recent))
    out, options = dumps.with_name("temporalwiki"), BuildOptions(include=("deletions",), unchanged_fraction=1.0)
    return build(
        find_sources(dumps, INTERVAL), out, dumps.with_name("work"), options, Machine(jobs=1), folder_card
    ), out


def load(out: Path, name: str, split: str) -> list[dict[str, Any]]:
    cache = str(out.with_name("cache"))
    return list(datasets.load_dataset(str(out), name, split=split, cache_dir=cache))


def articles(out: Path, name: str) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in load(out, name, "train")}


@pytest.mark.fault(
    "hostile titles",
    "titles and labels that are paths, YAML, formulas, markup, emoji, from dump to load_dataset",
    "they come back unchanged; no file has such a name; the card is the same as with plain names",
)
def test_titles_and_labels(built: tuple[dict[str, Any], Path]) -> None:
    manifest, out = built
    diffset = articles(out, "diffset-1112")
    assert [diffset[i]["title"] for i, _ in enumerate(TITLES, FIRST)] == TITLES
    assert all(row["url"].startswith("https://en.wikipedia.org/wiki/") for row in diffset.values())
    assert all(row["url"].isascii() and not set(row["url"]) & set(' "<>`\\') for row in diffset.values())
    facts = load(out, "facts-1112", "changed")
    assert {row["subject"] for row in facts} >= set(TITLES)
    assert {row["relation"] for row in facts} == {"country | = [X]"}
    assert problems(out, manifest) == []
    names = {path.name for path in out.parent.rglob("*")}
    assert not [name for name in names if not name.isascii() or set(name) & set(" '\"`|=<>$*\\")]
    card = (out / "README.md").read_text("utf-8")
    header = yaml.safe_load(card.split("---\n")[1])
    assert {config["config_name"] for config in header["configs"]} >= {"diffset-1112", "probes-1112"}
    assert "DROP TABLE" not in card


@pytest.mark.fault(
    "pages that move and vanish",
    "a page is moved, undeleted, merged into another, deleted, or turned into a redirect or back",
    "each is correctly new, updated, unchanged or deleted; nothing is lost",
)
def test_pages(built: tuple[dict[str, Any], Path]) -> None:
    manifest, out = built
    diffset, deletions = articles(out, "diffset-1112"), articles(out, "deletions-1112")
    assert {i: (row["kind"], row["title"], row["text"]) for i, row in diffset.items() if i < FIRST} == {
        1: ("updated", "New name", "It was renamed."),
        2: ("updated", "Came back", "It is back."),
        4: ("updated", "Merged into", "It was apart."),
        5: ("updated", "No redirect", "It is an article now."),
    }
    assert {i: (row["kind"], row["text"], row["revision_id"]) for i, row in deletions.items() if i < FIRST} == {
        3: ("deleted", "It was apart.", None),
        6: ("deleted", "It was deleted.", None),
    }
    pages = manifest.content["counts"]["pages"]
    assert pages["read"] == 5 + len(TITLES)
    assert pages["read"] == pages["unchanged"] + pages["new"] + pages["updated"] + sum(pages["dropped"].values())
    assert pages["updated_because"]["missing_in_prev"] == 1
    assert pages["unchanged_because"]["same_revision"] == 1


@pytest.mark.fault(
    "ranks that flip",
    "the preferred one of two statements changes",
    "the new best fact is changed, with the earlier object; the earlier fact is deleted",
)
def test_ranks(built: tuple[dict[str, Any], Path]) -> None:
    _, out = built
    changed, deleted = load(out, "facts-1112", "changed"), load(out, "facts-1112", "deleted")
    assert {(row["object"], *row["previous_objects"], row["kind"]) for row in changed} == {
        ("Sudland", "Norland", "new_object")
    }
    assert {(row["object"], row["kind"]) for row in deleted} == {("Norland", "replaced")}
    assert len(changed) > len(TITLES) - 4
