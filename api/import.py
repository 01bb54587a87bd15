"""``temporalwiki import``: convert the released archives of TemporalWiki and CKL to a dataset folder.

Example:

    temporalwiki import TWiki_Probes.zip TWiki_Diffsets.zip     # into ./temporalwiki
    temporalwiki import ckl_data                                # a folder of unpacked files, into ./ckl

Files of TemporalWiki: 0801-0901_changed.csv, 0801-0901_unchanged.csv, wikipedia_0809_gpt2.csv, and the same for the
next three months.
Files of CKL: invariantLAMA.csv, updatedLAMA.csv, newLAMA.csv, newLAMA_easy.csv, newLAMA_easy_small.csv and its two
parts, each with the JSON file of its answers; recent_news_full.csv, recent_news_small.csv and its two parts;
wikipedia_pretrain_full.csv and wikipedia_pretrain_small.csv; trex_5000.csv and newLAMA_easy_5000.csv.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg, Folder
from temporalwiki.api.table import Table, tell
from temporalwiki.builders.archives import import_archives
from temporalwiki.model_cards.folder_card import folder_card


def import_(
    paths: Annotated[Sequence[str | os.PathLike[str]], Arg("PATHS", positional=True, nargs="+")],
    *,
    out: Folder | None = None,
) -> Table:
    """Import released files, and return a line for each split.

    Args:
        paths: zips, csv files, and folders of them.
        out: the dataset folder; temporalwiki by default, and ckl for the files of CKL.
    """
    rows = []
    for line in import_archives([Path(path) for path in paths], None if out is None else Path(out), folder_card):
        tell(line)
        rows.append({"line": line})
    return Table(Path(out or ""), rows, "\n".join(row["line"] for row in rows))
