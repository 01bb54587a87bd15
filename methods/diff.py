"""Diff, which CKL calls Vanilla: go on training on what changed."""

from __future__ import annotations

from dataclasses import dataclass

from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class Diff(Method):
    """All parameters on ``diffset-*`` (TemporalWiki section 4.1; Vanilla in CKL section 4)."""
