"""The leaderboard's Space: the folder that ``temporalwiki leaderboard`` writes, as the Hub shows it.

It is a static Space, whose page is the leaderboard's; app.py is the same as a Gradio app.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.results import Result
from temporalwiki.model_cards.space import space_card

_APP = Path(__file__).with_name("app.py")
_REQUIREMENTS = "pandas>=2.3\npyarrow>=22.0\n"  # gradio is there by the card's sdk_version


def write_space(out: Path, results: Sequence[Result], *, title: str) -> None:
    """Write README.md (the Space's card), app.py and requirements.txt into the leaderboard's folder."""
    texts = {
        "README.md": space_card(title, results),
        "app.py": _APP.read_text("utf-8"),
        "requirements.txt": _REQUIREMENTS,
    }
    for name, text in texts.items():
        with whole_file(out / name) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
