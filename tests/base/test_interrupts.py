"""Ctrl-C comes where it harms nothing."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from temporalwiki.base.interrupts import held_interrupts


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_where_it_is_asked_for() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held_interrupts() as check:
        check()
        interrupt()
        steps.append("after")
        check()
        steps.append("too far")
    assert steps == ["after"]


def test_an_interrupt_comes_at_the_end_at_the_latest() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held_interrupts():
        interrupt()
        steps.append("whole")
    assert steps == ["whole"]
    with pytest.raises(KeyboardInterrupt):  # as before
        interrupt()
        signal.pause()


def test_an_error_comes_first() -> None:
    with pytest.raises(ValueError, match="first"), held_interrupts():
        interrupt()
        raise ValueError("first")


def test_who_ignores_interrupts_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_interrupts() as check:
            interrupt()
            check()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_is_not_interrupted() -> None:
    def work() -> str:
        with held_interrupts() as check:
            check()
            return threading.current_thread().name

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result()
