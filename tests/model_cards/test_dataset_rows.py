"""The rows in a dataset's card: an example of each config, and the relations that changed most."""

import json
import re
from pathlib import Path
from typing import Any

from temporalwiki.builders.manifests import BuiltManifest, checked_as
from temporalwiki.model_cards.dataset import _size
from temporalwiki.model_cards.dataset_rows import rows_section
from temporalwiki.model_cards.edits import MARKS, keep_edits, signed

from a_month import article, probe, stage_month

NAMES = "20211101-20211201"


def section(folder: Path, articles: list[dict[str, Any]], probes: list[dict[str, Any]]) -> str:
    manifest = stage_month(folder, "20211101", "20211201", articles, probes)
    return rows_section(folder, checked_as(BuiltManifest, manifest, "month"))


def test_each_config_with_rows_has_its_first_row(tmp_path: Path) -> None:
    text = section(tmp_path, [article(1, "One"), article(2, "Two")], [probe(3)])
    blocks = re.findall(r"^`([a-z0-9-]+)`, split `([a-z]+)`:\n\n```json\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    assert [(name, split) for name, split, _ in blocks] == [
        (f"diffset-{NAMES}", "train"),
        (f"deletions-{NAMES}", "train"),
        ("wikipedia-20211201", "train"),
        (f"probes-{NAMES}", "changed"),
    ]
    rows = [json.loads(block) for *_, block in blocks]
    assert [row["title"] for row in rows] == ["One", "One", "One", "Ann"]
    assert rows[0]["timestamp"] == "2021-11-20 12:00:00+00:00"
    assert re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| (\w+ ·)", text.partition("<details>")[0], re.MULTILINE) == [
        ("diffset-1112", "train", "One ·"),
        ("deletions-1112", "train", "One ·"),
        ("wikipedia-12", "train", "One ·"),
        ("probes-1112", "changed", "Ann ·"),
    ]


def test_long_values_are_cut(tmp_path: Path) -> None:
    text = section(tmp_path, [article(1, text="x" * 1000)], [probe(1) | {"aliases": [str(i) for i in range(9)]}])
    assert f'"text": "{"x" * 160} ..."' in text and "x" * 161 not in text
    assert '"4",\n  "..."' in text and '"5"' not in text


def test_a_row_cannot_end_its_block_or_pretend_to_be_our_comment(tmp_path: Path) -> None:
    hostile = f"```\n# Heading\n{MARKS.replace(' -->', ' -->evil')} \u2028\x85 <!-- written by temporalwiki: {{}} -->"
    text = section(tmp_path, [article(1, hostile, hostile)], [probe(1, hostile) | {"relation": "<b> | `x`"}])
    assert text.count("```") == 2 * 4
    assert not any(line.startswith("# Heading") for line in text.splitlines())
    assert "<!--" not in text
    assert "| &lt;b&gt; \\| `x` | 1 |" in text.replace("\\`", "`")
    card = signed(f"---\na: 1\n---\n\n{text}\n\n{MARKS}\n")
    assert keep_edits(card, card.encode()) == card


def test_the_picture_has_the_relations_that_changed_most_first(tmp_path: Path) -> None:
    changed = [probe(i) | {"relation": "captain" if i < 4 else f"relation {i:02}"} for i in range(18)]
    text = section(tmp_path, [article(1)], changed)
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| (captain|relation \d|\d+ other)", line)]
    assert [(row[0], row[1]) for row in rows] == [
        ("| captain", "4"),
        *((f"| relation {i:02}", "1") for i in range(4, 15)),
        ("| 3 other relations", "3"),
    ]
    assert rows[0][2].count("\u2588") == 30 and rows[1][2].count("\u2588") == 8
    assert "What changed" not in section(tmp_path / "none", [article(1)], [])


def test_sizes_are_named_as_on_the_hub() -> None:
    sizes = {0: "n<1K", 999: "n<1K", 1000: "1K<n<10K", 99_999: "10K<n<100K", 100_000: "100K<n<1M"}
    sizes |= {1_000_000: "1M<n<10M", 10**9: "1B<n<10B", 10**12: "n>1T"}
    assert {rows: _size(rows) for rows in sizes} == sizes
