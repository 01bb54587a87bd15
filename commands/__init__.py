"""The command ``temporalwiki``: one file per subcommand, found through COMMANDS."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from temporalwiki import __version__
from temporalwiki.base.errors import InputError, UsageError, in_one_line

# subcommand -> what it does; its code is the module of that name, with add_arguments(parser, argv) and run(arguments)
COMMANDS = {
    "demo": "the whole path on a small generated world",
    "fetch": "download the dumps of an interval, with resume and checks",
    "build": "two snapshots of Wikipedia and Wikidata into a dataset folder",
    "import": "released archives of TemporalWiki and CKL into the same configs",
    "ckl": "the configs of Continual Knowledge Learning: LAMA, news, KILT, and live ones of each month",
    "train": "a continual method on a config: a checkpoint of the next month",
    "evaluate": "score a model on tasks, with intervals",
    "experiment": "methods x months: train, evaluate, show who wins",
    "leaderboard": "result files into a page, tables and figures",
    "publish": "a dataset, model, metric or leaderboard to the Hub, whole or not at all",
    "monthly": "the newest month: fetch, build, check, publish",
    "inspect": "what a dataset folder, a dump or a result file holds",
}


# What libraries tell their makers of who uses them; each reads its own at its import, in our child processes, too.
SILENT = {
    "DISABLE_SAFETENSORS_CONVERSION": "1",  # by a Space, to which the token would go
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # a request to a host that is not the Hub's, for each dataset and metric
    "RAY_USAGE_STATS_ENABLED": "0",
}


class _Parser(argparse.ArgumentParser):
    """An argument parser that answers a misspelled subcommand or option with the nearest one."""

    words: Sequence[str] = ()  # those of the command line

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        what, _, words = message.rpartition(": ")
        missing = what.endswith(" required")
        if missing:  # for an option that is misspelled, too
            given = (word.partition("=")[0] for word in self.words if word.startswith("--"))
            wrong = next((word for word in given if word not in self._option_string_actions), "")
        else:
            wrong = next((word.strip("'\"") for word in words.split() if word), "")
        choices = [choice for action in self._actions for choice in action.choices or ()]
        near = get_close_matches(wrong, [*COMMANDS, *self._option_string_actions, *choices], n=1)
        hint = f" (did you mean {near[0]}?)" if near and near[0] != wrong else ""
        if missing and hint:
            hint = f"; there is {wrong}{hint}"
        self.exit(2, f"{self.prog}: {message}{hint}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand. Exit status: 0 done, 1 failed with one line, 2 wrong usage."""
    argv = list(sys.argv[1:] if argv is None else argv)
    for name, value in SILENT.items():
        os.environ.setdefault(name, value)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # bars of libraries, which are lines without end in a log
    parser = _Parser(prog="temporalwiki", description="Benchmark data for language models that are kept up to date.")
    parser.add_argument("--version", action="version", version=f"temporalwiki {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    wanted = next((word for word in argv if not word.startswith("-")), None)
    try:
        for name, summary in COMMANDS.items():
            subparser = subparsers.add_parser(
                name,
                help=summary,
                description=summary,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                allow_abbrev=False,  # a misspelled option is said to be one
            )
            if name == wanted:  # only the module of the subcommand that runs is imported
                module = importlib.import_module(f"temporalwiki.commands.{name}")
                module.add_arguments(subparser, argv)
                subparser.add_argument("--debug", action="store_true", help="show the traceback of an error")
                subparser.set_defaults(run=module.run, parser=subparser)
                subparser.words = argv
        arguments, unknown = parser.parse_known_args(argv)
        if unknown:  # said by the subcommand's parser, which knows its options
            arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        _check_endpoint()
        arguments.run(arguments)
    except (InputError, OSError) as error:
        if "--debug" in argv:
            raise
        print(f"temporalwiki {wanted}: {in_one_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print(f"temporalwiki {wanted}: interrupted; the same command goes on from what is kept", file=sys.stderr)
        return 1
    return 0


def _check_endpoint() -> None:
    """Raise UsageError for a Hub whose address holds a password: addresses are shown, and written into caches."""
    if "@" in os.environ.get("HF_ENDPOINT", ""):
        raise UsageError("HF_ENDPOINT holds a user's name or password: take it out, and set HF_TOKEN to a token")
