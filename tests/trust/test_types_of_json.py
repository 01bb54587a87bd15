"""The types that files of strangers are read into can be freed: a fault in msgspec ends the process there."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FREED = """
import importlib, sys
import msgspec

def kinds(of):
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)

for module in sys.argv[1:]:
    importlib.import_module(module)
found = [kind for kind in kinds(msgspec.Struct) if kind.__module__.startswith("temporalwiki.")]
assert len(found) > 40, len(found)
for kind in found:
    try:
        msgspec.convert({}, kind)  # msgspec makes what it knows of a type when the type is first used
    except msgspec.ValidationError:
        pass
"""


def test_all_types_are_freed_at_the_end_of_a_process() -> None:
    packages = ("base", "builders", "methods", "eval_harness", "model_cards", "push_scripts", "api")
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    using = [path for path in files if "msgspec.Struct" in path.read_text("utf-8")]
    names = [".".join(("temporalwiki", *path.relative_to(ROOT).with_suffix("").parts)) for path in using]
    ended = subprocess.run(
        [sys.executable, "-c", FREED, *(name.removesuffix(".__init__") for name in names)],
        env=os.environ | {"PYTHONMALLOC": "debug", "TQDM_DISABLE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
