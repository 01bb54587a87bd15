"""Study: new sentences in other words, which are never the words of a test."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.templates import LANGUAGES, templates
from temporalwiki.commands import main
from temporalwiki.eval_harness.panel_items import FORMS, wording
from temporalwiki.methods.study import _WORDS, Study, asked, useless, worded

import tiny_models
from a_dataset import write_dataset
from tiny_training import record

pytestmark = pytest.mark.usefixtures("quick")


def fact(**columns: Any) -> dict[str, Any]:
    row = {"subject": "Norland", "relation": "head of state", "object": "Ada Weber", "relation_id": "P35"}
    row |= {"subject_id": "Q1", "object_id": "Q2", "page_id": 7, "evidence": "Ada Weber took office on 3 May 2021."}
    return row | columns


def article(text: str, page: int = 7) -> dict[str, Any]:
    return {"id": page, "title": "Norland", "text": text}


class Writer:
    """A model that gives the answers of a list in turn, and keeps the prompts."""

    def __init__(self, *answers: str | None) -> None:
        self.prompts: list[str] = []
        self._answers = iter(answers)

    def answers(self, prompts: Sequence[str], what: str, max_new_tokens: int) -> list[str | None]:
        self.prompts += prompts
        return [next(self._answers) for _ in prompts]


def told(method: Study, text: str, *answers: str | None, facts: Sequence[Any] = ()) -> tuple[list[str], Any, Writer]:
    """The texts that an article becomes, the counts, and the writer."""
    writer = Writer(*answers)

    def opened(name: str) -> Any:
        return writer

    rewrite, counts = method.rewriter({"changed": list(facts)}, "en", opened)
    return rewrite(article(text)), {name: n for name, n in counts.items() if n}, writer


# The wordings


def forms(row: dict[str, Any]) -> list[str]:
    """The wordings of all tests: names, cloze, question and answer, and the cloze turned around."""
    found = []
    for form in FORMS:
        if (asks := wording(row, form)) is not None:
            answer = row["subject" if form == "reverse" else "object"]
            found.append(normalize(f"{asks.prompt} {answer}{asks.tail}"))
    return [*found, normalize(f"{row['subject']} {row['relation']}")]


@pytest.mark.parametrize("language", _WORDS["wordings"])
def test_no_fixed_wording_has_the_words_of_a_test(language: str) -> None:
    for relation in templates(language):
        for label in ("head of state", "member of", "founded by", "capital", "located in"):
            row = fact(relation_id=relation, relation=label, language=language)
            tests = forms(row)
            assert len(tests) >= 4  # a name, a cloze, a question, and the text before an object
            for one in _WORDS["wordings"][language]:
                said = f" {normalize(worded(row, one))} "
                assert not any(f" {test} " in said for test in tests), (one, relation)


def test_fixed_wordings_are_those_of_languages_with_tests_and_name_all_three_parts() -> None:
    assert set(_WORDS["wordings"]) <= set(LANGUAGES)
    for of_language in _WORDS["wordings"].values():
        assert len(set(of_language)) == len(of_language) == len(_WORDS["instructions"])
        assert all(one.count(blank) == 1 for one in of_language for blank in ("[X]", "[Y]", "[relation]"))


@pytest.mark.parametrize("relation", [*templates("en"), "P99999"])
def test_what_must_not_be_written_holds_every_form_that_is_asked(relation: str) -> None:
    row = fact(relation_id=relation)
    kept_out = asked(row, "en")
    for form in FORMS:
        if (asks := wording(row, form)) is None:
            continue
        answer = "" if form == "question" else f" {row['subject' if form == 'reverse' else 'object']}{asks.tail}"
        said = normalize(f"{asks.prompt.removeprefix('Question: ').removesuffix(' Answer:')}{answer}")
        assert said in kept_out, form


# What an article becomes


def test_each_stated_fact_stands_in_every_further_document_in_another_wording() -> None:
    text = "Ada Weber took office on 3 May 2021. It rained."
    found, counts, _ = told(Study(ways=3), text, facts=[fact(), fact(relation="leader", relation_id="P6")])
    assert found[0] == text
    assert len(found) == 4
    assert all(document.count("Ada Weber") == 2 for document in found[1:])
    assert not any("It rained" in document for document in found[1:])
    assert all(one != other for one, other in pairwise(sorted(found)))
    assert counts == {"sentences": 2, "written": 6}


@pytest.mark.parametrize(
    "columns",
    [
        {"evidence": "Ada Weber was born in Norland."},  # another sentence than the text's
        {"evidence": None},
        {"object": "Countess Ada"},  # the sentence names her otherwise
        {"page_id": 8},
    ],
)
def test_a_fact_that_the_text_does_not_state_is_not_told(columns: dict[str, Any]) -> None:
    text = "Ada Weber took office on 3 May 2021."
    assert told(Study(), text, facts=[fact(**columns)])[:2] == ([text], {})


def test_names_that_look_like_blanks_and_line_breaks_do_no_harm() -> None:
    row = fact(subject="[Y] of\n[relation]", object="[X]")
    assert worded(row, "[X]: [relation], [Y]") == "[Y] of [relation]: head of state, [X]"


def test_a_language_without_wordings_is_refused_in_one_line() -> None:
    with pytest.raises(
        UsageError, match=r"^study: no wordings in the language 'eo', only in en, de: name a --writer$"
    ):
        Study().rewriter({}, "eo")
    Study(writer="model").rewriter({}, "eo", lambda name: Writer())  # type: ignore[arg-type, return-value]


# A writer

SENTENCE = "On 3 May 2021, Ada Weber became head of state with 51 votes."
REWRITTEN = {
    "With 51 votes, Ada Weber became head of state on 3 May 2021.": "",
    "Norland chose Ada Weber with 51 votes on 3 May 2021.": "",  # the title is known
    None: "empty",
    " ": "empty",
    "On 3 May 2021 Ada Weber became head of state, with 51 votes": "a copy",
    "With 51 votes, she became head of state on 3 May 2021.": "a name or number lost",
    "With many votes, Ada Weber became head of state on 3 May 2021.": "a name or number lost",
    "With 51 votes, Ada Weber became head of state in May 2021.": "a name or number lost",
    "With 51 of 60 votes, Ada Weber became head of state on 3 May 2021.": "a name or number added",
    "With 51 votes, Ada Weber beat Boris Okafor on 3 May 2021.": "a name or number added",
    "The head of state of Norland is Ada Weber, since 3 May 2021, with 51 votes.": "a wording of the tests",
    "51 votes, 3 May 2021: Ada Weber is head of state of Norland.": "a wording of the tests",
    "Who is the head of state of Norland? Ada Weber, by 51 votes of 3 May 2021.": "a wording of the tests",
    "Norland head of state: Ada Weber (3 May 2021, 51 votes).": "a wording of the tests",
}


@pytest.mark.parametrize(("text", "why"), REWRITTEN.items())
def test_a_rewriting_keeps_names_and_numbers_and_is_no_test(text: str | None, why: str) -> None:
    assert useless(text, SENTENCE, "Norland", [SENTENCE], asked(fact(), "en")) == why


def test_what_a_writer_writes_is_counted_by_reason_and_only_the_useful_is_kept() -> None:
    good, other = "Ada Weber took office in Norland in 2021.", "In 2021, it was Ada Weber who took office."
    answers = (good, good, None, "She took office.", "It rained hard.", other, "Rain fell.", "It rained.")
    found, counts, writer = told(Study(writer="m"), "Ada Weber took office in 2021.\n\nIt rained.", *answers)
    assert found == ["Ada Weber took office in 2021.\n\nIt rained.", f"{good} It rained hard.", "Rain fell."]
    assert (counts.pop("sentences"), counts.pop("written"), counts.pop("a copy")) == (2, 3, 2)
    assert counts == dict.fromkeys(("empty", "a name or number lost", "a name or number added"), 1)
    assert len(set(writer.prompts)) == 8
    assert all("about Norland" in prompt for prompt in writer.prompts)


# The command


def read(folder: Path, method: str, rows: list[Any], facts: list[Any], *more: str) -> dict[str, Any]:
    """Train on articles and facts, and return what the record says of the data."""
    tiny_models.save("gpt2", folder / "gpt2")
    if not (folder / "data").exists():
        write_dataset(folder / "data", {"diffset-1112": rows, "facts-1112": {"changed": facts}})
    words = f"train --method {method} --config diffset-1112 --batch-size 2 --sequence-length 32 --max-steps 2"
    where = ["--model", str(folder / "gpt2"), "--data", str(folder / "data"), "--output", str(folder / method)]
    assert main([*words.split(), *where, *more]) == 0
    return dict(record(folder / method)["data"])


def test_a_run_reads_more_text_than_diff_and_records_it(tmp_path: Path) -> None:
    rows = [article("Ada Weber took office on 3 May 2021. " * 3, page) for page in (7, 8)]
    diff, study = (read(tmp_path, method, rows, [fact()])["new"] for method in ("diff", "study"))
    assert (diff["articles"], study["articles"]) == (2, 2 + 4)
    assert study["rewritten"] == {"sentences": 1, "written": 4}


def test_an_article_that_is_held_out_is_not_told_in_other_words(tmp_path: Path) -> None:
    names = ("Ada", "Boris")
    rows = [article(f"{name} took office. {name} was there. " * 3, page) for page, name in enumerate(names)]
    facts = [fact(object=name, page_id=page, evidence=f"{name} took office.") for page, name in enumerate(names)]
    data = read(tmp_path, "study", rows, facts, "--held-out", "1")
    assert (data["new"]["articles"], data["held_out"]["articles"]) == (1 + 4, 1)
    assert data["new"]["rewritten"] == {"sentences": 1, "written": 4}
