"""Fixtures of the tests of experiments."""

from __future__ import annotations

from tiny_experiment import there, wanted, write

__all__ = ["there", "wanted", "write"]
