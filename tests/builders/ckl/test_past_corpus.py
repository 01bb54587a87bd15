"""The corpus that Mix-Review mixes in: documents, and a tenth of them."""

import json
import tracemalloc
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.past_corpus import past_corpus


def corpus(path: Path, *lines: dict[str, str | int | None]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_a_document_is_a_row(tmp_path: Path) -> None:
    web = {"url": "https://past.example/a", "title": "A", "text": " One.\n\nTwo. "}
    file = corpus(tmp_path / "c.jsonl", web, {"id": 7, "text": "Three."}, {"text": ""}, {"id": 7, "text": "Four."})
    config, _ = past_corpus([file])
    assert list(config.splits["train"]) == [
        {"id": web["url"], "url": web["url"], "title": "A", "text": "One.\n\nTwo.", "published": None},
        {"id": "7", "url": None, "title": None, "text": "Three.", "published": None},
        {"id": "7", "url": None, "title": None, "text": "Four.", "published": None},
    ]
    assert (config.counts.read, config.counts.kept, config.counts.dropped) == (4, 3, {"no text": 1})


def test_the_small_corpus_is_a_tenth_by_the_seed(tmp_path: Path) -> None:
    file = corpus(tmp_path / "c.jsonl", *({"id": i, "text": f"Text {i}."} for i in range(2000)))
    drawn = []
    for seed in (0, 0, 1):
        _, small = past_corpus([file], seed)
        drawn.append([row["id"] for row in small.splits["train"]])
        assert small.counts.dropped == {"not drawn": 2000 - len(drawn[-1])}
    assert drawn[0] == drawn[1] != drawn[2]
    assert 150 < len(drawn[0]) < 250  # 200 expected; 3.7 standard deviations


def test_a_damaged_file_and_one_without_text_are_refused(tmp_path: Path) -> None:
    file = corpus(tmp_path / "c.jsonl", {"id": 1, "text": "One."}, {"body": "x"})
    with pytest.raises(InputError, match=r"line 2: .*missing required field `text`"):
        list(past_corpus([file])[0].splits["train"])
    with pytest.raises(InputError, match=r"no text in this corpus \(1 documents\)"):
        list(past_corpus([corpus(tmp_path / "d.jsonl", {"text": " "})])[0].splits["train"])


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    with (tmp_path / "c.jsonl").open("w") as file:
        file.writelines(f'{{"url": "https://past.example/{i:0200}", "text": "One."}}\n' for i in range(20_000))
    rows = past_corpus([tmp_path / "c.jsonl"])[0].splits["train"]
    tracemalloc.start()
    try:
        assert sum(1 for _ in rows) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # the addresses have 5 MB
    finally:
        tracemalloc.stop()
