"""The leaderboard's Space: the folder that ``temporalwiki leaderboard`` writes, as the Hub shows it.

It is a static Space, whose page is the leaderboard's. Three lines of its card make it a Gradio Space instead, which
runs app.py.
"""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import SpaceCardData

from temporalwiki.builders.engine import whole_file

_APP = Path(__file__).with_name("app.py")
_GRADIO = "6.31.0"
_REQUIREMENTS = "pandas>=2.3\npyarrow>=22.0\n"  # gradio is there by the card's sdk_version


def write_space(out: Path, *, title: str) -> None:
    """Write README.md (the Space's card), app.py and requirements.txt into the leaderboard's folder."""
    texts = {
        "README.md": space_card(title),
        "app.py": _APP.read_text("utf-8"),
        "requirements.txt": _REQUIREMENTS,
    }
    for name, text in texts.items():
        with whole_file(out / name) as part:
            part.write_bytes(text.encode("utf-8", "replace"))


def space_card(title: str) -> str:
    """Return the text of the Space's card: its settings and what is in the folder."""
    settings = SpaceCardData(
        title=" ".join(title.encode("utf-8", "replace").decode().split()),
        sdk="static",
        app_file="index.html",
        pinned=False,
        license="apache-2.0",
        short_description="Language models that are kept up to date, compared",
        tags=["leaderboard", "temporalwiki", "continual-learning", "knowledge"],
    )
    return f"""---
{settings.to_yaml()}
---

# Leaderboard

Scores of language models on what Wikipedia and Wikidata say now and said before, month by month, each with a 95 %
interval, and ranks that say which differences are more than chance. Made by `temporalwiki leaderboard`.

- `index.html`: the leaderboard. It opens from disk, too, and asks nothing of any network.
- `results.parquet`: all scores, one a row.
- `tables/`: tables as Markdown and CSV. `figures/`: figures as PNG and SVG.
- `app.py`, `requirements.txt`: the same as a Gradio app. To run that instead, write `sdk: gradio`,
  `sdk_version: {_GRADIO}` and `app_file: app.py` above.
"""
