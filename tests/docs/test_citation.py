"""CITATION.cff and CHANGELOG.md have this version, and CITATION.cff has the two papers as the cards do."""

import re
from pathlib import Path

import yaml

import temporalwiki

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
CARDS = (ROOT / "model_cards" / "templates" / "papers.bib").read_text("utf-8")


def test_the_newest_version_and_its_day_are_the_same_everywhere() -> None:
    """What is not released yet may stand above it, under "Unreleased"."""
    sections = (ROOT / "CHANGELOG.md").read_text("utf-8").removesuffix("\n").split("\n## ")[1:]
    version, day = next(re.findall(r"^(\d\S+) \((.+)\)$", one, re.M)[0] for one in sections if one[0].isdigit())
    assert version == temporalwiki.__version__ == CITATION["version"]
    assert day == str(CITATION["date-released"])
    assert max(one.count("\n") + 1 for one in sections) <= 80, "more than a user reads; git log has the rest"


def test_the_papers_have_the_titles_and_authors_of_the_cards() -> None:
    entries = ["".join(entry.split()).replace("{", "").replace("}", "") for entry in CARDS.split("@")]
    for paper in CITATION["references"]:
        authors = "and".join(f"{one['family-names']},{one['given-names']}" for one in paper["authors"])
        (entry,) = [entry for entry in entries if "".join(paper["title"].split()) in entry]
        assert f"author={authors}".replace(" ", "") in entry
        assert f"year={paper['year']}" in entry
