"""Build the API reference from the installed package's docstrings: python docs/reference.py FOLDER.

Needs no network. Exits with status 1 if pdoc warns.
"""

from __future__ import annotations

import pkgutil
import sys
import warnings
from pathlib import Path

import pdoc

import temporalwiki

# Warnings that docstrings cannot mend: types that only type checkers import, modules found twice.
EXPECTED = ("Couldn't import temporalwiki.eval_harness.", "Error parsing type annotation", "The module specification ")


def main(folder: Path) -> int:
    # lazy attributes, which pdoc sees only after their first use
    vars(temporalwiki).update({name: getattr(temporalwiki, name) for name in temporalwiki.__all__})
    pdoc.render.configure(include_undocumented=False, search=False, show_source=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        # by name: pdoc skips the modules of a package with __all__
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
