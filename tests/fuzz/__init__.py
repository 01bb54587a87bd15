"""Fuzzing: a target a file, each reading input of strangers; docs/maintaining/fuzzing.md says how to run them.

A target has ``check(data)``, which raises where a promise is broken; ``SEEDS``, tiny inputs in the real format;
``WORDS``, what is worth inserting; and perhaps ``FOUND``, inputs that broke a promise once. JSON is also mutated by
its structure. ``python -m fuzz`` runs them under atheris, and test_corpus.py without it.
"""

from pathlib import Path

from temporalwiki.base.libraries import keep_silent

keep_silent()  # as the commands do: else the Hub's client opens a connection to report its use
TARGETS = tuple(
    sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if "\ndef check(" in path.read_text("utf-8"))
)
