"""Fixtures of the tests of experiments."""

from tiny_experiment import there, wanted, write

__all__ = ["there", "wanted", "write"]
