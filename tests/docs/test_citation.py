"""CITATION.cff cites this version, and the two papers as the cards do."""

from __future__ import annotations

from pathlib import Path

import yaml

import temporalwiki

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
CARDS = (ROOT / "model_cards" / "templates" / "papers.bib").read_text("utf-8")


def test_the_version_is_the_packages() -> None:
    assert CITATION["version"] == temporalwiki.__version__
    assert f"## {temporalwiki.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_papers_have_the_titles_and_authors_of_the_cards() -> None:
    entries = ["".join(entry.split()).replace("{", "").replace("}", "") for entry in CARDS.split("@")]
    for paper in CITATION["references"]:
        authors = "and".join(f"{one['family-names']},{one['given-names']}" for one in paper["authors"])
        (entry,) = [entry for entry in entries if "".join(paper["title"].split()) in entry]
        assert f"author={authors}".replace(" ", "") in entry
        assert f"year={paper['year']}" in entry
