"""The configs of an interval: their names, columns and splits."""

import pyarrow as pa

from temporalwiki.builders.snapshot import Interval

_TIME = pa.timestamp("ms", "UTC")  # Parquet has no seconds
_LABELS = pa.list_(pa.string())
_DIFFSET = {
    "id": pa.int64(),
    "title": pa.string(),
    "url": pa.string(),
    "text": pa.string(),
    "kind": pa.string(),
    "revision_id": pa.int64(),
    "previous_revision_id": pa.int64(),
    "timestamp": _TIME,
    "paragraphs": pa.int32(),
    "words_new": pa.int32(),
    "words_reworded": pa.int32(),
}
_WIKIPEDIA = {name: _DIFFSET[name] for name in ("id", "title", "url", "text", "revision_id", "timestamp")}
_PROBES = {
    "subject": pa.string(),
    "relation": pa.string(),
    "object": pa.string(),
    "subject_id": pa.string(),
    "relation_id": pa.string(),
    "object_id": pa.string(),
    "kind": pa.string(),
    "previous_objects": _LABELS,
    "statement_id": pa.string(),
    "page_id": pa.int64(),
    "page_revision_id": pa.int64(),
    "title": pa.string(),
    "evidence": pa.string(),
    "support": pa.string(),
    "objects": _LABELS,
    "aliases": _LABELS,
    "gone_objects": _LABELS,
    "start_time": _TIME,
    "end_time": _TIME,
    "current": pa.bool_(),
    "dated": pa.string(),
    "respelled": pa.bool_(),
    "strict": pa.bool_(),
}
# What only `temporalwiki ckl` asks for.
_FACTS = {
    **_PROBES,
    "objects_before": _LABELS,
    "known_before": pa.bool_(),
    "dead": pa.bool_(),
    "gone_end": _TIME,
    "newly_stated": pa.bool_(),
}

SUPPORT = ("stated", "list", "mentioned")
DELETED = ("replaced", "ended", "removed")  # the kinds of facts that are no longer true
DATED = ("within", "before", "over", "undated")

SCHEMAS: dict[str, pa.Schema] = {
    "diffset": pa.schema(_DIFFSET),
    "deletions": pa.schema(_DIFFSET),
    "unchanged": pa.schema(_WIKIPEDIA),
    "wikipedia": pa.schema(_WIKIPEDIA),
    "probes": pa.schema(_PROBES),
    "lighttuning": pa.schema(_PROBES),
    "facts": pa.schema(_FACTS),
}
SPLITS: dict[str, tuple[str, ...]] = {
    "diffset": ("train",),
    "deletions": ("train",),
    "unchanged": ("train",),
    "wikipedia": ("train",),
    "probes": ("unchanged", "changed", "deleted"),
    "lighttuning": ("unchanged", "changed"),
    "facts": ("unchanged", "changed", "deleted"),
}


# The split of live CKL for facts that may have changed before the interval; no model is scored on it.
BACKFILLED = "backfilled"

# What models are scored on: the beginnings of the configs' names, CKL's included.
TEST_DATA = ("probes-", "facts-", "invariantlama", "updatedlama", "newlama", "newquestions", "general")


def names(kind: str, interval: Interval) -> tuple[str, str]:
    """Return the full and the short name of a config."""
    if kind == "wikipedia":  # of a snapshot, not of an interval
        return f"wikipedia-{interval.recent}", f"wikipedia-{interval.recent[4:6]}"
    return f"{kind}-{interval.name}", f"{kind}-{interval.short_name}"
