"""Print docs/options.md, the page of all commands and options: ``python -m temporalwiki.commands.reference``."""

import argparse
from collections.abc import Iterator

from temporalwiki.base.terminal import print_result
from temporalwiki.commands.cli import COMMANDS, parser_of, variants

_HEAD = """# Commands and options

`make options` writes this page from the functions in `api`. Each option is also a keyword argument of the function of
the same name in Python: `--max-steps 100` is `max_steps=100`. Every command also has `--help`, which shows an example,
`--json` for tables as JSON, and `--debug` for the traceback of an error.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(line for name in COMMANDS for line in _command(name))])


def _command(name: str) -> Iterator[str]:
    summary = COMMANDS[name]
    yield f"## temporalwiki {name}\n"
    yield f"{summary[0].upper()}{summary[1:]}.\n"
    tables: dict[tuple[str, ...], list[str]] = {}  # rows -> the titles of the groups that have them
    for argv in [[], *variants(name)]:
        for group in parser_of([name], [name, *argv]).commands()[name]._action_groups:
            titles = tables.setdefault(tuple(_rows(group)), [])
            if group.title not in titles and not (argv and group.title == "training"):
                titles.append(str(group.title))
    for rows, titles in tables.items():
        if rows and titles:
            if titles[0] not in ("positional arguments", "options"):
                yield f"{titles[0][0].upper()}{', '.join(titles).replace(', options of', ',')[1:]}:\n"
            yield "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])


def _rows(group: argparse._ArgumentGroup) -> Iterator[str]:
    for action in group._group_actions:
        if {"--help", "--json", "--debug"} & {*action.option_strings}:
            continue
        value = action.metavar if action.metavar is not None else ("" if action.nargs == 0 else action.dest.upper())
        if action.choices:
            value = action.metavar or f"{{{','.join(action.choices)}}}"
        if isinstance(action, argparse.BooleanOptionalAction):
            value = ""
        values = " ".join(value) if isinstance(value, tuple) else value
        flags = " ".join([*([", ".join(action.option_strings)] if action.option_strings else []), values]).strip()
        text = (action.help or "").replace("%%", "%").replace("|", "\\|")
        yield f"| `{flags}` | {text} |"


if __name__ == "__main__":
    print_result(page().removesuffix("\n"))
