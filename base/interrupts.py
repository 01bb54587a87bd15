"""Hold Ctrl-C back until it can do no harm."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

POLL = 0.2  # seconds; a wait for threads looks for an interrupt this often


@contextlib.contextmanager
def held_interrupts() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back in a block that shares locks with threads. Yield a function to call at safe moments.

    The function raises KeyboardInterrupt if Ctrl-C was pressed in the block, and so does the end of the block.
    Without this, KeyboardInterrupt may come just after the main thread has taken a lock and before it can release the
    lock, as in ``threading.Condition.__enter__``: the other threads then wait forever. And if Ctrl-C is pressed
    just before a wait without a timeout, Python notices it only after the wait.
    """
    came: list[int] = []

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()  # no other thread is interrupted
    before = signal.getsignal(signal.SIGINT)
    if not in_main or not callable(before):  # a background job ignores the signal
        yield check
        return
    signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
    check()
