"""CKL's configs: their names, and their columns by kind."""

import re
from pathlib import Path

import pyarrow as pa

from temporalwiki.base.errors import UsageError
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.options import did_you_mean

_TIME = pa.timestamp("ms", "UTC")  # Parquet has no seconds
_TEXTS = pa.list_(pa.string())

_INVARIANT = {
    "id": pa.string(),
    "relation_id": pa.string(),
    "subject": pa.string(),
    "object": pa.string(),
    "statement": pa.string(),  # with <extra_id_0> for the object
    "template": pa.string(),  # with [X] for the subject and [Y] for the object
}
# A fact of an interval as a cloze and a question; each answer is right.
_LIVE = {
    "id": pa.string(),
    "relation_id": pa.string(),
    "relation": pa.string(),
    "subject_id": pa.string(),
    "subject": pa.string(),
    "object_id": pa.string(),
    "object": pa.string(),
    "statement": pa.string(),
    "question": pa.string(),
    "answers": _TEXTS,
    "aliases": _TEXTS,  # other names of the answers
    "old_answers": _TEXTS,  # right in the earlier snapshot only; empty in newlama
    "candidates": _TEXTS,  # wrong answers, to rank together with the right ones: objects of the same relation
    "template": pa.string(),
    "kind": pa.string(),  # new_subject, new_relation, new_object or unchanged
    # What shows the change within the interval, or, in the split backfilled, why nothing does; null in invariantlama
    "shown_by": pa.string(),
    "start_time": _TIME,  # of the object, if Wikidata has it: P580 and P582
    "end_time": _TIME,
    "evidence": pa.string(),  # the sentence with the object, of the diffset or of an unchanged article
    "title": pa.string(),
    "page_id": pa.int64(),
    "page_revision_id": pa.int64(),
    "statement_id": pa.string(),
}
# A cloze and a question from a text, approved by annotators.
_ANNOTATED = {
    "id": pa.string(),
    "statement": pa.string(),
    "question": pa.string(),
    "answers": _TEXTS,
    "old_answers": _TEXTS,  # empty in newlama
    "evidence": pa.string(),
    "old_evidence": pa.string(),
    "title": pa.string(),
    "url": pa.string(),
    "published": _TIME,
}
# "evidence" is the sentence in the text
_EASY = {name: type for name, type in _ANNOTATED.items() if not name.startswith("old_")}
_NEWS = {"id": pa.string(), "url": pa.string(), "title": pa.string(), "text": pa.string(), "published": _TIME}
_MASKED = {"input": pa.string(), "output": pa.string()}  # input has masked spans, output fills them
_KILT = {"id": pa.string(), "input": pa.string(), "output": pa.string(), "answers": _TEXTS}  # models learn output

SCHEMAS: dict[str, pa.Schema] = {
    "invariant": pa.schema(_INVARIANT),
    "live": pa.schema(_LIVE),
    "annotated": pa.schema(_ANNOTATED),
    "easy": pa.schema(_EASY),
    "news": pa.schema(_NEWS),
    "masked-news": pa.schema(_NEWS | _MASKED),
    "kilt": pa.schema(_KILT),
}

NEWS = ("recentnews", "recentnews-small", "recentnews-small-p1", "recentnews-small-p2")
EASY = ("newlama-easy", "newquestions-easy", "newlama-easy-small", "newlama-easy-small-p1", "newlama-easy-small-p2")
PAST = ("wikipedia", "wikipedia-small")
LAMA = ("invariantlama", "updatedlama", "newlama")
KILT = tuple(f"kilt-{name}" for name in read_yaml(Path(__file__).with_name("kilt.yaml")))
CONFIGS = (*LAMA, *EASY, *NEWS, *PAST, *KILT)
LIVE = re.compile(rf"({'|'.join(LAMA)})-([0-9]{{4}}|[0-9]{{8}}-[0-9]{{8}})")  # updatedlama-1112


def check_name(name: str) -> None:
    """Raise UsageError unless ``name`` is one of CONFIGS, "kilt" (all of KILT), or a config with an interval."""
    if name not in (*CONFIGS, "kilt") and not LIVE.fullmatch(name):
        live = ", ".join(f"{kind}-1112" for kind in LAMA)
        raise UsageError(
            f"there is no config {name!r}{did_you_mean(name, (*CONFIGS, 'kilt'))}; there are {', '.join(CONFIGS)}, "
            f"and, with an interval, {live}"
        )
