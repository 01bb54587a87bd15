"""Write a sample of a month's facts: python examples/software/sample.py DATASET CONFIG OUT

It has up to 20 changed and 10 unchanged strict facts of each relation that has at least 16 changed ones. Facts of one
relation are asked together in panels, so whole panels of each relation cost far less than ``limit``.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import yaml

from temporalwiki import load_dataset

MOST = {"changed": 20, "unchanged": 10}
FEWEST = 16

dataset, config, out = sys.argv[1:]
splits = load_dataset(dataset, config)
enough = Counter(fact["relation"] for fact in splits["changed"] if fact["strict"])
files = []
for split, most in MOST.items():
    seen: Counter[str] = Counter()
    kept = []
    for number, fact in enumerate(splits[split].shuffle(seed=0)):
        relation = fact["relation"]
        if fact["strict"] and enough[relation] >= FEWEST and seen[relation] < most:
            seen[relation] += 1
            kept.append(number)
    path = Path(out, "data", config, f"{split}-00000-of-00001.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    splits[split].shuffle(seed=0).select(kept).to_parquet(path)
    files.append({"split": split, "path": f"data/{config}/{split}-*.parquet"})
    print(split, dict(seen))
Path(out, "README.md").write_text(
    f"---\n{yaml.safe_dump({'configs': [{'config_name': config, 'data_files': files}]})}---\n"
)
