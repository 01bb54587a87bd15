"""What a dataset's card shows of the rows of its newest month: an example of each config, and what changed most."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporalwiki.base.markdown import code, escaped
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.parquet import read_rows
from temporalwiki.model_cards.template import fill

_LONGEST = 160  # characters of a text in an example
_MOST = 5  # values of a list in an example
_RELATIONS = 12  # rows of the picture
_WIDTH = 30  # characters of its longest bar


def rows_section(folder: Path, manifest: BuiltManifest) -> str:
    """Return the sections with the first row of each config and with the relations that changed most.

    The files of the manifest lie in ``folder`` and are checked already.
    """
    lines, examples = [], []
    for kind in SCHEMAS:
        for name, config in manifest.configs.items():
            split = next((split for split in ("changed", *config.splits) if _rows(manifest, name, split)), None)
            if name.startswith(f"{kind}-") and split is not None:
                row = next(read_rows([folder / file.path for file in config.splits[split].files]))
                columns = ("title", "text") if "text" in row else ("subject", "relation", "object")
                said = " · ".join(escaped(str(_short(row[column]))) for column in columns)
                lines.append([code(str(config.short_name)), split, said])
                examples.append(f"`{name}`, split `{split}`:\n\n```json\n{_shown(row)}\n```")
    changed, bars = _bars(folder, manifest)
    return fill("dataset_rows", config=changed, bars=bars, lines=lines, examples="\n\n".join(examples))


def _rows(manifest: BuiltManifest, config: str, split: str) -> int:
    found = manifest.configs[config].splits.get(split)
    return found.num_examples if found else 0


def _bars(folder: Path, manifest: BuiltManifest) -> tuple[str, list[tuple[str, int, str]]]:
    """Return a config, and a row with a bar for each of its relations that changed most; no rows without facts."""
    # the caps of the probes would make all relations look alike
    ordered = sorted(manifest.configs, key=lambda name: (not name.startswith("facts-"), name))
    kinds = ("facts-", "probes-")
    name = next((name for name in ordered if name.startswith(kinds) and _rows(manifest, name, "changed")), None)
    if name is None:
        return "", []
    files = [folder / file.path for file in manifest.configs[name].splits["changed"].files]
    counts = Counter(str(row["relation"]) for row in read_rows(files, ["relation"]))
    shown = sorted(counts.items(), key=lambda relation: (-relation[1], relation[0]))[:_RELATIONS]
    bars = [(escaped(one), count, "█" * max(1, round(_WIDTH * count / shown[0][1]))) for one, count in shown]
    if rest := len(counts) - len(shown):
        bars.append((f"{rest:,} other relations", counts.total() - sum(count for _, count in shown), ""))
    return name, bars


def _shown(row: dict[str, Any]) -> str:
    """Return a row as JSON that cannot end its block of code or look like a comment of ours."""
    text = json.dumps({key: _short(value) for key, value in row.items()}, indent=1, ensure_ascii=False, default=str)
    return "".join(_plain(text.replace("```", "'''").replace("<!--", "<!‑‑")))


def _plain(text: str) -> Iterator[str]:
    for character in text:  # other line ends and control characters
        yield character if character == "\n" or character.isprintable() else f"\\u{ord(character):04x}"


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]} ..."
    if isinstance(value, list):
        more = ["..."] if len(value) > _MOST else []
        return [_short(one) for one in value[:_MOST]] + more
    return value
