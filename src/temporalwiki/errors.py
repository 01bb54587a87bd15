"""The errors that every function of temporalwiki raises for input that cannot be used."""

from temporalwiki.base.errors import InputError, UsageError

__all__ = ["InputError", "UsageError"]
