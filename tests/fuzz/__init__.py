"""Fuzzing: a target a file, each of which reads what strangers write; docs/fuzzing.md says how to run them.

A target has ``check(data)``, which raises where a promise is broken; ``SEEDS``, tiny inputs in the real format;
``FOUND``, inputs that broke a promise once; and ``WORDS``, what is worth inserting. A target of JSON is mutated by its
structure, too. ``python -m fuzz`` runs them under atheris, and test_corpus.py without it.
"""

TARGETS = (
    "archives",
    "cards",
    "ckl_lines",
    "compressed",
    "experiment",
    "extracts",
    "model_card",
    "news_files",
    "news_page",
    "page_props",
    "result_items",
    "results",
    "sentence_diff",
    "server_answers",
    "wikidata_dump",
    "wikidata_json",
    "wikitext",
    "xml_dump",
    "xml_ranges",
)
