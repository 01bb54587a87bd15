"""The errors that a user's input can cause."""


class InputError(ValueError):
    """Input that cannot be used. The message is one line: what is wrong, where, and what to do.

    Line breaks, which names in the input may contain, become spaces. Commands print the message and exit with status
    1; anything else that escapes is a bug and keeps its traceback.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(" ".join(str(message).splitlines()))


class UsageError(InputError):
    """A wrong argument or option, or a missing package or program. Commands print it and exit with status 2."""


def in_one_line(error: object) -> str:
    """Return the text of an error with every run of white space as one space."""
    return " ".join(str(error).split())


def first_line(error: object) -> str:
    """Return the first line of an error's text that is no heading (which ends in a colon), or the error's type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.endswith(":")), lines[0] if lines else type(error).__name__)
