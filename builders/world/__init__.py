"""An invented Wikipedia and Wikidata over several months, in the dumps' own formats.

``temporalwiki demo`` goes from these dumps to a leaderboard. The same settings always give the same bytes.
"""

from temporalwiki.builders.world.items import WorldFact
from temporalwiki.builders.world.story import Snapshot, Story, World, WorldArticle, write_story, write_world

__all__ = ["Snapshot", "Story", "World", "WorldArticle", "WorldFact", "write_story", "write_world"]
