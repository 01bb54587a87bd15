"""Full: continue training on the whole new snapshot."""

from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.methods.method import Method


@dataclass(frozen=True)
class Full(Method):
    """Train all parameters on ``wikipedia-*``: every article, changed or not (TemporalWiki section 4.1)."""

    data: ClassVar[str] = "wikipedia"
