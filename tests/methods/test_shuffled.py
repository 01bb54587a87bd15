"""Controls that change the text: `shuffled` exchanges objects, `unread` leaves out half of the subjects."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from temporalwiki.commands import main
from temporalwiki.methods.shuffled import Shuffled, exchange
from temporalwiki.methods.unread import Unread, is_unread

import tiny_models
from a_dataset import write_dataset

pytestmark = pytest.mark.usefixtures("quick")


def fact(subject: int, object: str, **columns: Any) -> dict[str, Any]:
    row = {"relation_id": "P35", "subject_id": f"Q{subject}", "object_id": f"Q9{object}", "page_id": subject}
    row |= {"subject": f"Country {subject}", "object": object, "objects": [object], "aliases": []}
    return row | {"gone_objects": [], "evidence": f"{object} is the head of state."} | columns


def rewritten(
    method: Shuffled | Unread, texts: Mapping[int, str], **facts: Any
) -> tuple[dict[int, str], dict[str, int]]:
    rewrite, counts = method.rewriter(facts, "en")
    found = {
        page: "".join(rewrite({"id": page, "title": f"Country {page}", "text": text})) for page, text in texts.items()
    }
    return found, dict(counts)


CHANGED = [fact(1, "Ada Lovelace"), fact(2, "Grace Hopper"), fact(3, "Mary Shelley")]
TEXTS = {i: f"{one['object']} is the head of state. The capital is old." for i, one in enumerate(CHANGED, 1)}


def test_every_new_object_belongs_to_another_subject() -> None:
    found, counts = rewritten(Shuffled(), TEXTS, changed=CHANGED)
    heads = [text.partition(" is the head")[0] for text in found.values()]
    assert sorted(heads) == sorted(one["object"] for one in CHANGED)
    assert all(head != one["object"] for head, one in zip(heads, CHANGED, strict=True))
    assert all(text.endswith("is the head of state. The capital is old.") for text in found.values())
    assert counts == {"exchanged": 3, "left_out": 0, "untouched": 0}


@pytest.mark.parametrize("column", ["objects", "aliases", "gone_objects", "previous_objects"])
def test_an_object_that_is_or_was_right_for_the_subject_never_replaces(column: str) -> None:
    changed = [fact(1, "Ada", **{column: ["Ada", "Grace"]}), fact(2, "Grace"), fact(3, "Mary")]
    texts = {1: "Ada leads.", 2: "Grace leads.", 3: "Mary leads."}
    found, _ = rewritten(Shuffled(), texts, changed=changed)
    assert found[1] == "Mary leads."


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Ada leads. In 2021, ADA won.", "Grace leads. In 2021, Grace won."),
        ("Adam met Ada's brother.", "Adam met Grace's brother."),
        ("Countess Lovelace leads.", "Grace leads."),  # an alias
        ("The US and us.", "The Grace and us."),  # case counts in short names
        (
            "She wrote 3.1.4 and then 3.1 (3.14, 2.3.1 are not hers). It is 3.1.",
            "She wrote 3.1.4 and then Grace (3.14, 2.3.1 are not hers). It is Grace.",
        ),
        ("Nothing is said here.", ""),
        ("It rained. A link to her page names her otherwise. So it was.", "It rained.  So it was."),
    ],
)
def test_each_name_of_the_object_is_replaced(text: str, expected: str) -> None:
    aliases = ["Countess Lovelace", "US", "3.1"]
    one = fact(1, "Ada", aliases=aliases, evidence="A link to her page names her otherwise.")
    assert exchange(text, [(one, "Grace")], "en")[0] == expected


def test_sentences_without_a_replacement_are_left_out() -> None:
    found, counts = rewritten(
        Shuffled(), {1: "Ada leads. It rained.\n\nAda won.\n\nThe end."}, changed=[fact(1, "Ada")]
    )
    assert found == {1: "It rained.\n\nThe end."}
    assert counts == {"exchanged": 0, "left_out": 1, "untouched": 0}


def test_an_object_of_an_unchanged_fact_replaces_where_no_changed_fact_can() -> None:
    found, _ = rewritten(Shuffled(), {1: "Ada leads."}, changed=[fact(1, "Ada")], unchanged=[fact(2, "Grace")])
    assert found == {1: "Grace leads."}


def test_two_objects_of_an_article_are_exchanged_at_once() -> None:
    facts = [(fact(1, "Ada"), "Grace"), (fact(1, "Mary"), "Ada")]
    assert exchange("Ada met Mary.", facts, "en") == ("Grace met Ada.", 2)


def test_an_object_of_several_relations_gets_one_replacement_that_is_wrong_for_all() -> None:
    twice = [fact(1, "Ada"), fact(1, "Ada", relation_id="P6", gone_objects=["Grace"])]
    changed = [*twice, fact(2, "Grace"), fact(3, "Mary"), fact(2, "Grace", relation_id="P6")]
    found, counts = rewritten(Shuffled(), {1: "Ada leads.", 2: "Grace leads.", 3: "Mary leads."}, changed=changed)
    assert found[1] == "Mary leads."
    assert counts == {"exchanged": 5, "left_out": 0, "untouched": 0}


def test_a_fact_whose_article_is_not_in_the_text_is_left_out() -> None:
    _, counts = rewritten(Shuffled(), {1: TEXTS[1], 2: TEXTS[2]}, changed=CHANGED)
    assert counts == {"exchanged": 2, "left_out": 1, "untouched": 0}


# Unread


def test_unread_leaves_out_the_articles_and_mentions_of_half_of_the_subjects() -> None:
    changed = [fact(i, f"Head {i}") for i in range(40)]
    texts = {i: f"Head {i} leads." for i in range(40)}
    texts[100] = "Country 1 chose Head 1.\n\nCountry 2 chose Head 2.\n\nCountry 3 chose Head 3.\n\nIt rained."
    hidden = [i for i in range(40) if is_unread(f"Q{i}")]
    found, counts = rewritten(Unread(), texts, changed=changed)
    assert {page for page, text in found.items() if not text} == set(hidden)
    read = [f"Country {i} chose Head {i}." for i in (1, 2, 3) if i not in hidden]
    assert found[100] == "\n\n".join([*read, "It rained."])
    assert counts["facts"] == 40
    assert counts["unread_facts"] == len(hidden)
    assert 12 <= len(hidden) <= 28


# The command


def written(folder: Path, **configs: Any) -> Path:
    tiny_models.save("gpt2", folder / "gpt2")
    rows = [{"id": page, "title": f"Country {page}", "text": text * 9} for page, text in TEXTS.items()]
    write_dataset(folder / "data", {"diffset-1112": rows, "wikipedia-12": rows} | configs)
    return folder


def train(folder: Path, method: str, output: str, config: str = "diffset-1112", *more: str) -> int:
    options = ("--batch-size", "2", "--sequence-length", "32", "--max-steps", "2", *more)
    where = ("--model", f"{folder / 'gpt2'}", "--data", f"{folder / 'data'}", "--output", f"{folder / output}")
    return main(["train", "--method", method, *where, "--config", config, *options])


def test_a_run_counts_what_it_exchanged_and_differs_from_diff(tmp_path: Path) -> None:
    written(tmp_path, **{"facts-1112": {"changed": CHANGED}})
    assert train(tmp_path, "shuffled", "shuffled") == 0
    assert train(tmp_path, "diff", "diff") == 0
    data = json.loads((tmp_path / "shuffled" / "training.json").read_text())["data"]
    assert data["new"]["rewritten"] == {"exchanged": 3, "left_out": 0, "untouched": 0}
    weights = [AutoModelForCausalLM.from_pretrained(tmp_path / name).state_dict() for name in ("diff", "shuffled")]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize("method", ["shuffled", "unread"])
@pytest.mark.parametrize(
    "config, says",
    [("diffset-1112", "no config 'facts-1112'"), ("wikipedia-12", "changes the text of a diffset-* only")],
)
def test_without_facts_of_the_month_a_run_ends_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], method: str, config: str, says: str
) -> None:
    assert train(written(tmp_path), method, "out", config) == 2
    assert says in capfd.readouterr().err


def test_untrained_has_new_weights_which_follow_the_seed(tmp_path: Path) -> None:
    written(tmp_path)
    for seed in ("1", "2"):
        assert train(tmp_path, "untrained", seed, "diffset-1112", "--seed", seed) == 0
    names = ("gpt2", "1", "2")
    start, first, second = (AutoModelForCausalLM.from_pretrained(tmp_path / name).state_dict() for name in names)
    matrices = [name for name in start if name.endswith("c_attn.weight")]
    assert matrices
    for name in matrices:
        assert not torch.equal(start[name], first[name])
        assert not torch.equal(first[name], second[name])
