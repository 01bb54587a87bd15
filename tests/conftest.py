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
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from loopback_hub import LoopbackHub

# The libraries read these when they are imported. Tests never use a network or a user's cache.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="temporalwiki-tests-")
os.environ["HF_HUB_OFFLINE"] = "1"
# Tests run in parallel; threads of several tests that wait for each other take twice as long on the same cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The same precision on every machine: where oneDNN must not compute in bf16, `train` computes in fp32.
os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_VNNI"
atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

# The background jobs of a shell ignore Ctrl-C, but tests interrupt the commands that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test is timed: a busy machine must not fail one.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

pytest_plugins = ["faults.table"]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case of bytes after its argument: gzip's bytes contain the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True, scope="session")
def no_power_cuts() -> Iterator[None]:
    """Skip fsync, which takes longer than many tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real dumps and texts, which developers have next to the project."""
    if not SHARED.is_dir():
        pytest.skip("the real dumps (../shared/data) are missing")
    return SHARED


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Train with one thread, so that sums are the same everywhere, without a plot and without garbage collections.

    A plot or a full collection takes longer than a run of a tiny model.
    """
    import torch

    from temporalwiki.methods import train

    torch.set_num_threads(1)
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "draw", lambda log, title, path: path.write_bytes(b"\x89PNG"))
        patch.setattr(gc, "collect", lambda *_: 0)
        yield
    gc.unfreeze()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """Start a loopback Hub. This process publishes to it as "me", with write access to ORG, and never waits."""
    from temporalwiki.push_scripts import hub as client

    from loopback_hub import LoopbackHub

    with LoopbackHub() as server:
        server.add_user("me", "hf_me", orgs={"ORG": "write", "READERS": "read"})
        server.online(monkeypatch, token="hf_me", home=tmp_path / "huggingface")
        monkeypatch.setattr(client.time, "sleep", lambda _seconds: None)
        yield server
