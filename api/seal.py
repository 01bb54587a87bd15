"""``temporalwiki seal``: write down, before a month, what will draw its probes.

Example:

    temporalwiki seal temporalwiki --month 2022-01
    temporalwiki publish dataset temporalwiki ORG/temporalwiki      # sends the seal, too
    temporalwiki inspect temporalwiki                               # after the month: recomputes and compares

docs/publishing.md explains what a seal proves.
"""

import os
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg, Count
from temporalwiki.api.table import Table
from temporalwiki.base.json_files import read_json
from temporalwiki.builders.seal import Seal
from temporalwiki.builders.seal import seal as write_seal


def seal(
    data: Annotated[str | os.PathLike[str], Arg("DATASET", positional=True)],
    *,
    month: Annotated[str, Arg("YYYY-MM")],
    seed: Count | None = None,
) -> Table:
    """Write ``seals/YYYY-MM.json`` into a dataset folder. The arguments are the options of ``temporalwiki seal``.

    Args:
        data: the dataset folder. The seal of a first month can be written, but is published together with its month.
        month: the coming month, of the later snapshot.
        seed: seed of all samples; by default the newest month's.

    Raises UsageError for a wrong month, and InputError for a month that is built or has another seal.
    """
    path = write_seal(Path(data), month, seed)
    found = read_json(path, Seal, "a seal")
    said = f"{path}\nsha256 {found.sha256}: publish it before the month begins"
    return Table(path, [{"month": found.month, "sha256": found.sha256}], said)
