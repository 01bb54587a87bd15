"""The pages for programs: llms.txt leads to every page of the site, and AGENTS.md names what exists."""

import re

from documents import ROOT


def test_llms_txt_leads_to_every_page_of_the_site() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text("utf-8")
    title, _, summary = text.split("\n")[:3]
    assert title == "# temporalwiki"
    assert summary.startswith("> ")
    pages = set(re.findall(r"([\w/]+)\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\]\(([\w/]+)\.html\)", text)) == (pages - {"README"}) | {"index"}


def test_agents_md_is_short_and_names_what_exists() -> None:
    text = (ROOT / "AGENTS.md").read_text("utf-8")
    assert text.count("\n") <= 60
    named = set(re.findall(r"`([a-z_]+(?:/[\w.]+)+)`", text)) - {"methods/NAME.py"}
    assert len(named) >= 8
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
