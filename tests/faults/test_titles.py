"""Hostile titles and labels: one build, whose folder is loaded again."""

from pathlib import Path

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


@pytest.mark.fault(
    "hostile titles",
    "titles and labels that are paths, YAML, formulas, markup, emoji, from dump to load_dataset",
    "they come back unchanged; no file has such a name; the card is the same as with plain names",
)
def test_titles_and_labels(tmp_path: Path) -> None:
    dumps, out = tmp_path / "dumps", tmp_path / "temporalwiki"
    lands = [item(900, label="Norland"), item(901, label="Sudland"), property_(17, "country | = [X]")]
    for date, land, text in (("20211101", 900, "It lies in Norland."), ("20211201", 901, "{} lies in Sudland.")):
        pages, items = [], []
        for i, title in enumerate(TITLES, 100):
            said = f"<nowiki>{text.replace('{}', title)}</nowiki>"
            pages.append(page(i, title, said, revision_id=1000 * i + land))
            items.append(item(i, {"P17": [statement(value(land), id=f"Q{i}$1")]}, title, title))
        multistream(articles_file(dumps, date), pages)
        write_wikidata(wikidata_file(dumps, date), items + lands)
    sources = find_sources(dumps, Interval("enwiki", "20211101", "20211201"))
    manifest = build(sources, out, tmp_path / "work", BuildOptions(), Machine(jobs=1), folder_card)
    diffset, facts = (
        list(datasets.load_dataset(str(out), config, split=split, cache_dir=str(tmp_path / "cache")))
        for config, split in (("diffset-1112", "train"), ("facts-1112", "changed"))
    )
    assert [row["title"] for row in diffset] == TITLES
    assert all(row["url"].startswith("https://en.wikipedia.org/wiki/") for row in diffset)
    assert all(row["url"].isascii() and not set(row["url"]) & set(' "<>`\\') for row in diffset)
    assert {row["subject"] for row in facts} == set(TITLES)
    assert {row["relation"] for row in facts} == {"country | = [X]"}
    assert problems(out, manifest) == []
    names = {path.name for path in tmp_path.rglob("*")}
    assert not [name for name in names if not name.isascii() or set(name) & set(" '\"`|=<>$*\\")]
    card = (out / "README.md").read_text("utf-8")
    header = yaml.safe_load(card.split("---\n")[1])
    assert {config["config_name"] for config in header["configs"]} >= {"diffset-1112", "probes-1112"}
    assert "DROP TABLE" not in card
