"""Read a month of the papers' size: time and memory of streaming, filtering, `inspect` and `publish --dry-run`.

    python benchmarks/large_month.py 300000     # articles, 1.6 GB of rows; needs 3 GB for temporary files

The month has a diffset only. Its text is generated, with Zipf's frequencies of words, and written as builds write it.
Seconds are of a whole command, with Python's start; memory is the most that its process held.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from table import show

from temporalwiki.builders.configs import SCHEMAS, SPLITS
from temporalwiki.builders.dataset_folder import install, write_split
from temporalwiki.builders.manifests import checked
from temporalwiki.model_cards.folder_card import folder_card

CONFIG = "diffset-20210801-20210901"
LOAD = "import temporalwiki\nrows = temporalwiki.load_dataset('month', 'diffset-0809', split='train', streaming="
NEW = "filter(lambda row: row['kind'] == 'new')"
COMMANDS = {
    "stream 1,000 rows": ["-c", f"{LOAD}True)\nfor row in rows.take(1000): pass"],
    "stream all rows through a filter": ["-c", f"{LOAD}True)\nfor row in rows.{NEW}: pass"],
    "load all rows and filter": ["-c", f"{LOAD}False)\nrows.{NEW}"],
    "`inspect`": ["-m", "temporalwiki", "inspect", "month"],
    "`publish dataset --dry-run`": ["-m", "temporalwiki", "publish", "dataset", "month", "ORG/month", "--dry-run"],
}


def articles(number: int) -> Iterator[dict[str, object]]:
    """Yield articles of about 6,000 bytes, few of them long."""
    draw = np.random.default_rng(1)
    words = np.array(["".join(draw.choice([*"aehinorst"], 2 + i % 9)) for i in range(20_000)], dtype=object)
    often = 1 / (np.arange(len(words)) + 40)
    columns, noon = SCHEMAS["diffset"].names, 1_629_460_800_000  # noon of 2021-08-20
    for i in range(number):
        count = 1 + int(draw.lognormal(3.2, 1.1))
        lines = (" ".join(line) for line in words[draw.choice(len(words), (count, 18), p=often / often.sum())])
        page = (i, f"Place {i}", f"https://en.wikipedia.org/wiki/Place_{i}", "\n\n".join(lines))
        revision = ("updated", 2 * i + 1, 2 * i) if i % 5 else ("new", 2 * i + 1, None)
        yield dict(zip(columns, (*page, *revision, noon, count, 18 * count, 0), strict=True))


def main() -> None:
    """Make the month, run each command, and print."""
    number, rows = int(sys.argv[1]), []
    facts = dict.fromkeys(("categorised", "sampled", "aligned", "filtered", "kept"), 0)
    with tempfile.TemporaryDirectory() as place:
        split = write_split(Path(place, "staged"), CONFIG, "train", articles(number))
        pages, sizes = {"new": number // 5, "updated": number - number // 5}, {"words": split.num_bytes // 6}
        month = {
            "interval": {"wiki": "enwiki", "language": "en", "prev": CONFIG[8:16], "recent": CONFIG[17:]},
            "options": {"seed": 0, "unchanged_fraction": 0.001, "compare": "exact", "caps": None},
            "counts": {"pages": pages, "diffset": sizes, "probes": dict.fromkeys(SPLITS["probes"], facts)},
            "configs": {CONFIG: {"short_name": "diffset-0809", "splits": {"train": vars(split)}}},
            "inputs": [],
        }
        install(Path(place, "staged"), checked(month, "month"), Path(place, "month"), folder_card)
        for name, words in COMMANDS.items():
            begun = time.monotonic()
            environment = os.environ | {"HF_HOME": f"{place}/cache", "HF_HUB_OFFLINE": "1"}
            running = subprocess.Popen([sys.executable, *words], cwd=place, env=environment, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(running.pid, 0)
            assert status == 0, f"{name} failed"
            seconds = round(time.monotonic() - begun, 1), round(used.ru_utime + used.ru_stime, 1)
            rows.append((name, *seconds, round(used.ru_maxrss * 1024 / 1e6)))
    show(f"{split.num_bytes / 1e9:.2f} GB of rows", ("command", "seconds", "CPU s", "peak MB"), rows)


if __name__ == "__main__":
    main()
