"""TWiki-Probes: facts, their categories and their alignment with text (TemporalWiki, sections 3.2 and 3.3)."""
