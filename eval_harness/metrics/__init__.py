"""Metrics: NAME.py has pure functions, and the folder NAME is the `evaluate` module and the Space.

A Space contains only the files of its folder, so `NAME/definition.py` is a link to `../NAME.py`. The folders have no
`__init__.py`, and so `temporalwiki.eval_harness.metrics.NAME` is the file.
"""
