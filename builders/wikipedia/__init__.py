"""TWiki-Diffsets: pages, plain text and the sentence diff of two Wikipedia snapshots (TemporalWiki, section 3.1)."""
