"""Diff, called Vanilla in CKL: continue training on the changed articles."""

from dataclasses import dataclass

from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class Diff(Method):
    """Train all parameters on ``diffset-*`` (TemporalWiki section 4.1; Vanilla in CKL section 4)."""
