"""The errors that a user's input can cause."""


class InputError(ValueError):
    """Input that cannot be used. The message is one line: what is wrong, where, and what to do.

    Commands print it and exit with status 1; anything else that escapes is a bug and keeps its traceback.
    """


class UsageError(InputError):
    """Arguments that make no sense, whatever the input: commands print it and exit with status 2."""
