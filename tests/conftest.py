"""Fixtures that several tests use."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

# Read when the libraries are imported: tests load what they built, never from a network or into a user's cache.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="temporalwiki-tests-")
os.environ["HF_HUB_OFFLINE"] = "1"
atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real dumps and texts, which lie beside the project where it is developed and are no part of it."""
    if not SHARED.is_dir():
        pytest.skip("the real dumps (../shared/data) are not here")
    return SHARED
