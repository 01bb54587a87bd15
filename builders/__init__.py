"""Builders: Wikipedia and Wikidata dumps in, a dataset folder that ``datasets`` loads out."""
