"""Build the API reference from the docstrings of what is installed: python docs/reference.py FOLDER.

Nothing is asked of a network. Ends with status 1 where pdoc warns of anything.
"""

from __future__ import annotations

import pkgutil
import sys
import warnings
from pathlib import Path

import pdoc

import temporalwiki

# What is no fault of a docstring: types imported for type checkers alone, modules named twice.
EXPECTED = ("Couldn't import temporalwiki.eval_harness.", "Error parsing type annotation", "The module specification ")


def main(folder: Path) -> int:
    vars(temporalwiki)["load_dataset"] = temporalwiki.load_dataset  # made when it is asked for, so that pdoc sees it
    pdoc.render.configure(include_undocumented=False, search=False, show_source=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        # each by name: of a package with __all__ pdoc takes no modules by itself
        found = (module.name for module in pkgutil.walk_packages(temporalwiki.__path__, "temporalwiki."))
        names = [name for name in found if "._" not in name]
        pdoc.pdoc("temporalwiki", *names, output_directory=folder)
    wrong = [
        str(one.message)
        for one in said
        if Path(one.filename).parent == Path(pdoc.__file__).parent and not str(one.message).startswith(EXPECTED)
    ]
    print(*wrong, f"{folder / 'index.html'}", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
