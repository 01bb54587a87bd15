"""``temporalwiki completion``: print a script with which bash or zsh completes this command.

Example:

    temporalwiki completion bash > ~/.local/share/bash-completion/completions/temporalwiki
    temporalwiki completion zsh > ~/.zfunc/_temporalwiki     # a folder in fpath, before compinit

Begin a new shell afterwards. The package that writes the script comes with: pip install 'temporalwiki[completion]'
"""

from contextlib import suppress
from typing import Annotated

from temporalwiki.api.arguments import Arg
from temporalwiki.base.errors import UsageError
from temporalwiki.base.terminal import print_result
from temporalwiki.commands.cli import COMMANDS, Parser, parser_of, variants
from temporalwiki.methods import needs

_PATHS = ("DATASET", "DIR", "DUMPS", "FILE", "ID_OR_DIR", "MODEL", "PATH", "PATHS", "RECIPE", "RESULTS")


def completion(
    shell: Annotated[str, Arg("{bash,zsh}", positional=True, choices=("bash", "zsh"))],
) -> None:
    """Print the script.

    Args:
        shell: the shell that will read the script.

    Raises UsageError if the package that writes it is not installed.
    """
    with needs("completion"):
        import shtab
    print_result(shtab.complete(_whole(shtab.FILE), shell))


def _whole(files: object) -> Parser:
    """Return the parser of all subcommands, with the options of all methods, tasks and configs."""
    parser = parser_of(COMMANDS, [])
    for name, subparser in parser.commands().items():
        for argv in variants(name):
            with suppress(UsageError):  # the options of methods and tasks need torch
                for action in parser_of([name], [name, *argv]).commands()[name]._actions:
                    if action.option_strings and not {*action.option_strings} & {*subparser._option_string_actions}:
                        subparser._add_action(action)
        for action in subparser._actions:
            if values := getattr(action, "names", None):
                action.choices = values
            elif action.metavar in _PATHS and not action.choices:
                action.complete = files  # type: ignore[attr-defined]
    return parser
