"""Fixtures that several tests use."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real dumps and texts, which lie beside the project where it is developed and are no part of it."""
    if not SHARED.is_dir():
        pytest.skip("the real dumps (../shared/data) are not here")
    return SHARED
