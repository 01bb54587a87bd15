"""JSON of strangers: every field replaced by something unexpected, and bytes that are not JSON at all."""

import importlib
import zlib
from collections.abc import Callable

import pytest

from fuzz.json_text import every_mutation

TEXT = "refused in one line, or shown as text"
# target of tests/fuzz, which says what the readers promise -> the row of the table of faults, and one in how many
FIELDS = {
    "results": ("inspect, leaderboard: each field of a result has a wrong type or value", TEXT, 2),
    "cutoffs": ("leaderboard, evaluate --after-cutoff: each field of a cutoff has a wrong type or value", TEXT, 1),
    "cards": (
        "each field of a dataset folder's manifest has a wrong type or value",
        "refused in one line before anything is built into it, or shown as text",
        2,
    ),
    "model_card": (
        "each field of a checkpoint's training.json has a wrong type or value",
        "the correct fields are used, and the result can be read again",
        4,
    ),
}


@pytest.mark.parametrize(
    ("target", "one_in"),
    [
        pytest.param(target, one_in, marks=pytest.mark.fault("hostile JSON", done, happens), id=target)
        for target, (done, happens, one_in) in FIELDS.items()
    ],
)
def test_each_field(target: str, one_in: int, record_property: Callable[[str, object], None]) -> None:
    module = importlib.import_module(f"fuzz.{target}")
    chosen = [
        data for data in every_mutation(max(module.SEEDS, key=len)) if zlib.crc32(data) % one_in == 0 or len(data) < 99
    ]
    for data in chosen:
        try:
            module.check(data)
        except Exception as error:
            error.add_note(f"in fuzz/{target}.py, with {data[:4000]!r}")
            raise
    record_property("cases", len(chosen))
