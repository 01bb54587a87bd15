"""An invented Wikipedia and Wikidata over several months, in the dumps' own formats.

``temporalwiki demo`` goes from these dumps to a leaderboard. The same settings always give the same bytes.
"""

from temporalwiki.builders.world.items import Fact
from temporalwiki.builders.world.story import Article, Snapshot, Story, World, write_month, write_world

__all__ = ["Article", "Fact", "Snapshot", "Story", "World", "write_month", "write_world"]
