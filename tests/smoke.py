"""Try an installed temporalwiki without its repository: python -I smoke.py, in an empty folder.

`make release` runs it in a new environment that holds the wheel and its dependencies, without any extra.
"""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

SECONDS = 0.1  # of processor time: the most that `import temporalwiki` may take
IMPORT = "import time; begun = time.process_time(); import temporalwiki; print(time.process_time() - begun)"


def run(*words: str) -> str:
    """Return what a command prints. Raises CalledProcessError if it fails."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Import, list, build and load. Raises AssertionError or what a step raises."""
    seconds = min(float(run(sys.executable, "-I", "-c", IMPORT)) for _ in range(5))
    assert seconds <= SECONDS, f"import temporalwiki takes {seconds:.3f} s of processor time"
    print(f"import temporalwiki: {seconds:.3f} s of processor time")

    import temporalwiki
    from temporalwiki.builders.world import World, write_world
    from temporalwiki.methods.recipes import names

    assert Path(temporalwiki.__file__).is_relative_to(sys.prefix), f"not the wheel, but {temporalwiki.__file__}"
    assert temporalwiki.__version__ == importlib.metadata.version("temporalwiki")
    command = str(Path(sys.executable).with_name("temporalwiki"))
    listed = [len(run(command, "list", what).splitlines()) - 1 for what in ("methods", "tasks")]
    assert min(*listed, len(names())) > 5, "methods, tasks or recipes are missing"
    print(f"temporalwiki list: {listed[0]} methods, {listed[1]} tasks; {len(names())} recipes")

    write_world(Path("dumps"), World(people=30))
    built = temporalwiki.build("20211101", "20211201", dumps="dumps")
    rows = len(temporalwiki.load_dataset("temporalwiki", "diffset-1112", split="train"))
    assert rows == next(row["rows"] for row in built.rows if row["short_name"] == "diffset-1112")
    print(f"temporalwiki.build: {len(built.rows)} splits, {rows} articles changed")
    run(command, "inspect", "temporalwiki")  # fails if a file does not match the manifest


if __name__ == "__main__":
    main()
