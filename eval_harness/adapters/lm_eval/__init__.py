"""YAML tasks for ``lm_eval --include_path``, and the functions that they call."""
