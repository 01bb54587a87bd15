"""The answers in a model's card: those that were scored, chosen by a hash."""

from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.results import Result
from temporalwiki.model_cards.model_answers import answers_section

import a_result


def item(id: str, answer: str | None = "Roma", **more: Any) -> dict[str, Any]:
    prompt = {"prompt": f"Ann {id} plays for", "object": "Roma", "exact_match": float(answer == "Roma"), "strict": 1}
    return {"id": id, "cluster": id, "nll": 1.0, "tokens": 1, "answer": answer, **prompt, **more}


def result(folder: Path, changed: list[dict[str, Any]], config: str = "probes-1112") -> Result:
    return a_result.write_probes(folder, config, {"unchanged": [item("u")], "changed": changed})


def rows(section: str) -> list[str]:
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_first_five_by_id_are_shown_right_or_wrong(tmp_path: Path) -> None:
    items = [item(id, "Lazio" if id == "b" else "Roma") for id in "gfedcba"]
    section = answers_section([result(tmp_path, items)])
    assert "`probes-1112`" in section
    assert rows(section) == [
        "| Ann a plays for | Roma | Roma | yes |",
        "| Ann b plays for | Lazio | Roma | no |",
        *(f"| Ann {id} plays for | Roma | Roma | yes |" for id in "cde"),
    ]


def test_strict_facts_come_first(tmp_path: Path) -> None:
    section = answers_section([result(tmp_path, [item("a", strict=0), item("b")])])
    assert [row[:6] for row in rows(section)] == ["| Ann ", "| Ann "]
    assert rows(section)[0].startswith("| Ann b ")


def test_an_answer_without_a_word(tmp_path: Path) -> None:
    section = answers_section([result(tmp_path, [item("a", "")])])
    assert rows(section) == ["| Ann a plays for | (nothing) | Roma | no |"]


def test_the_newest_probes_are_shown(tmp_path: Path) -> None:
    results = [
        result(tmp_path, [item(month[0])], f"probes-{month}") for month in ("20211201-20220101", "20211101-20211201")
    ]
    assert "`probes-20211201-20220101`" in answers_section(results)


def test_hostile_and_long_texts_stay_in_their_cell(tmp_path: Path) -> None:
    section = answers_section([result(tmp_path, [item("a", "x|<script>\n# " + "y" * 99)])])
    assert rows(section) == [f"| Ann a plays for | x\\|&lt;script&gt; # {'y' * 67} ... | Roma | no |"]


OLD = {"prompt": None, "object": None}


@pytest.mark.parametrize(
    "changed", [[item("a", None)], [item("a", **OLD)], [{"id": "a", "cluster": "a", "nll": 1.0, "tokens": 1}]]
)
def test_without_answers_or_prompts_there_is_no_section(changed: list[dict[str, Any]], tmp_path: Path) -> None:
    assert answers_section([result(tmp_path, changed)]) == ""


def test_items_that_are_missing_are_no_fault_and_damaged_ones_are(tmp_path: Path) -> None:
    written = result(tmp_path, [item("a")])
    items = written.path.with_suffix(".parquet")
    items.write_bytes(items.read_bytes()[:-9])
    with pytest.raises(InputError, match=f"^{items}: not the items of a result; evaluate the model again$"):
        answers_section([written])
    items.unlink()
    assert answers_section([written]) == ""
    assert answers_section([]) == ""
