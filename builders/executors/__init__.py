"""Where the tasks of a stage run: one module an engine, found through ``engine.ENGINES``."""
