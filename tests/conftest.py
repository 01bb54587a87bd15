"""Fixtures that several tests use."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from loopback_hub import LoopbackHub

# Read when the libraries are imported: tests load what they built, never from a network or into a user's cache.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="temporalwiki-tests-")
os.environ["HF_HUB_OFFLINE"] = "1"
atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

# A shell's background jobs ignore Ctrl-C, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["faults.table"]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case's bytes after their argument: gzip writes the time into them, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True, scope="session")
def no_power_cuts() -> Iterator[None]:
    """Files are not forced to the disk, which takes longer than much of what is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real dumps and texts, which lie beside the project where it is developed and are no part of it."""
    if not SHARED.is_dir():
        pytest.skip("the real dumps (../shared/data) are not here")
    return SHARED


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Training runs with one thread, so that sums are the same everywhere; no picture, and no search for garbage.

    Both take longer than a run of a tiny model.
    """
    import torch

    from temporalwiki.methods import train

    torch.set_num_threads(1)
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "draw", lambda log, title, path: path.write_bytes(b"\x89PNG"))
        yield
    gc.unfreeze()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """The loopback Hub, to which this process publishes as "me", who may write to ORG. Nobody waits for it."""
    from temporalwiki.push_scripts import hub as client

    from loopback_hub import LoopbackHub

    with LoopbackHub() as server:
        server.add_user("me", "hf_me", orgs={"ORG": "write", "READERS": "read"})
        server.online(monkeypatch, token="hf_me", home=tmp_path / "huggingface")
        monkeypatch.setattr(client.time, "sleep", lambda _seconds: None)
        yield server
