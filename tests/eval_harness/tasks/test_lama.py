"""LAMA and NewQuestions: prompts, scores, ranks of candidates, light-tuning, and excluded rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_transformers import continuation, load, nlls

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.metrics.knowledge_match import knowledge_match
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import LIKELIHOODS, WEIGHTS, Model
from temporalwiki.eval_harness.result_manifest import ResultManifest
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.scoring import Text, TokenScores
from temporalwiki.eval_harness.tasks import lama
from temporalwiki.eval_harness.tasks.lama import Lama
from temporalwiki.eval_harness.tasks.new_questions import NewQuestions
from temporalwiki.methods.options import TrainOptions

import tiny_models
from a_dataset import write_dataset

BLANK = "<extra_id_0>"


@dataclass
class Canned(Model):
    """A model with given answers and scores; other candidates have an NLL of 100."""

    can = frozenset({LIKELIHOODS, WEIGHTS})

    said: dict[str, str | None] = field(default_factory=dict)
    nll: dict[str, list[float] | None] = field(default_factory=dict)  # NLL of a candidate, per token
    encoder_decoder: bool = False
    prompts: list[str] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    otherwise: str = ""  # the answer to other prompts

    def generate(self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int) -> list[str | None]:
        self.prompts += prompts
        return [self.said.get(prompt, self.otherwise) for prompt in prompts]

    def score(self, texts: Sequence[Text], what: str) -> list[TokenScores | None]:
        self.texts += texts
        found = [self.nll.get(text.target.strip(), [100.0]) for text in texts]
        return [None if nll is None else TokenScores(np.array(nll), np.zeros((len(nll), 2), int)) for nll in found]


def run(model: Canned, rows: list[dict[str, Any]], **options: Any) -> Outcome:
    return Lama(**options).run(model, {"test": rows})  # type: ignore[arg-type]


def left_out(found: Outcome | ResultManifest) -> dict[str, int]:
    """Return the counts of clozes that are not asked; those that stand in no panel have their own tests."""
    return {why: count for why, count in found.excluded.items() if ": known: " not in why}


def values(found: Outcome) -> dict[str, float]:
    return {name.removeprefix("test/"): score.value for name, score in found.scores.items()}


# statement -> the prompt of a decoder-only model, and the target if the answer is "Easton"
PROMPTS = {
    f"Anna Weber was born in {BLANK} .": ("Anna Weber was born in", " Easton"),
    f"  The river\tof {BLANK}, so long.": ("The river\tof", " Easton"),
    f'He won the "{BLANK}" prize': ('He won the "', "Easton"),
    f"St. {BLANK}-on-Sea is a town": ("St.", " Easton"),
    f"東京は{BLANK}の首都": ("東京は", "Easton"),
    f"{{subject}} %s {{0}} [X] lives in {BLANK}": ("{subject} %s {0} [X] lives in", " Easton"),
    f"<extra_id_1> (band) is from {BLANK} .": ("<extra_id_1> (band) is from", " Easton"),
    f"<|endoftext|> is from {BLANK} .": ("<|endoftext|> is from", " Easton"),
}
NOT_ASKED = {
    f"{BLANK} is the capital of Norland .": "no word before the blank",
    f"The {BLANK} won .": "no word before the blank",
    f"“{BLANK}” was sung": "no word before the blank",
    f"{BLANK} (band) is from {BLANK} .": f"not exactly one {BLANK}",
    "There is no blank .": f"not exactly one {BLANK}",
    "It has another <extra_id_1> .": f"not exactly one {BLANK}",
    "": f"not exactly one {BLANK}",
    None: f"not exactly one {BLANK}",
}


@pytest.mark.parametrize("statement", PROMPTS)
def test_a_decoder_only_model_reads_up_to_the_blank(statement: str) -> None:
    model = Canned()
    rows = [{"statement": statement, "object": town, "relation_id": "P19"} for town in ("Easton", "Weston")]
    run(model, [rows[0], {**rows[1], "statement": f"x {BLANK}"}])
    prompt, target = PROMPTS[statement]
    assert model.prompts == [prompt, "x"]
    assert [text for text in model.texts if text.context == prompt] == [
        Text(prompt, target),
        Text(prompt, target.replace("Easton", "Weston")),
    ]


@pytest.mark.parametrize("statement", NOT_ASKED)
def test_a_statement_that_cannot_be_asked_is_counted(statement: str | None) -> None:
    rows = [{"statement": statement, "object": "Easton"}, {"statement": f"x {BLANK}", "object": "y"}]
    found = run(Canned(), rows, candidates=0)
    assert left_out(found) == {f"test: {NOT_ASKED[statement]}": 1}
    assert [item["cluster"] for item in found.items] == [found.items[0]["id"]]


@pytest.mark.parametrize("statement", [*PROMPTS, f"{BLANK} is the capital of Norland .", f"The {BLANK} won ."])
def test_an_encoder_decoder_model_reads_the_whole_statement(statement: str) -> None:
    model = Canned(encoder_decoder=True)
    run(model, [{"statement": statement, "object": town, "relation_id": "P19"} for town in ("Easton", "Weston")])
    assert model.prompts == [statement] * 2
    assert set(model.texts) == {Text(statement, "Easton"), Text(statement, "Weston")}


def test_an_encoder_decoder_model_needs_a_word_around_the_blank() -> None:
    rows = [{"statement": text, "object": "y"} for text in (f" {BLANK} .", f"x {BLANK}")]
    found = run(Canned(encoder_decoder=True), rows, candidates=0)
    assert left_out(found) == {"test: no word around the blank": 1}


# subject, question, right answers, the question as it is asked, EM and F1 of "the anna weber"
QUESTIONS: list[tuple[str, str, Any, str, float | None, float | None]] = [
    ("Norland", "Who leads Norland?", ["Bob", "Anna Weber"], "Who leads Norland?", 1, 1),
    # one word of two in "Weber": 2 * 1 / (2 + 1)
    ("Norland", "  Who\tled\n\nNorland ", "Weber", "Who led Norland", 0, 2 / 3),
    ("Easton", "Who is {0} %s {question}?\nAnswer: Bob", ["Bob"], "Who is {0} %s {question}? Answer: Bob", 0, 0),
    ("Easton", "東京はどこですか。", ["Bob"], "東京はどこですか。", 0, 0),
    ("Easton", "Who is <extra_id_1> </s>?", ["Bob"], "Who is <extra_id_1> </s>?", 0, 0),
    ("Easton", "Is this too long?", ["Bob"], "Is this too long?", None, None),
]
NO_QUESTIONS = [("Who?", []), ("Who?", None), (" \n", ["Bob"]), (None, ["Bob"]), (f"Who is {BLANK}?", ["Bob"])]


@pytest.mark.parametrize("task", [NewQuestions(), Lama(question=True, candidates=0)], ids=["questions", "clozes"])
@pytest.mark.parametrize(
    ("encoder_decoder", "prompt", "where"),
    [(False, "Question: {}\nAnswer:", "before"), (True, f"{{}} {BLANK}", "around")],
)
def test_how_questions_are_put_and_scored(encoder_decoder: bool, prompt: str, where: str, task: Any) -> None:
    rows = [{"id": "1", "subject": of, "question": text, "answers": right} for of, text, right, *_ in QUESTIONS]
    rows += [{"id": "2", "subject": "Weston", "question": text, "answers": right} for text, right in NO_QUESTIONS]
    prompts = [prompt.replace("{}", asked, 1) for *_, asked, _, _ in QUESTIONS]
    model = Canned({prompts[-1]: None}, encoder_decoder=encoder_decoder, otherwise="the anna weber")
    found = task.run(model, {"test": [row | {"statement": f"{BLANK} leads\tNorland ."} for row in rows]})
    assert model.prompts == prompts
    items = [(item["exact_match"], item["f1"]) for item in found.items]
    assert items == [(match, overlap and pytest.approx(overlap)) for *_, match, overlap in QUESTIONS]
    assert len({item["id"] for item in found.items}) == 6
    assert {name: (score.value, score.items, score.clusters) for name, score in found.scores.items()} == {
        "test/exact_match": (20, 5, 2),
        "test/f1": (pytest.approx(100 * (1 + 2 / 3) / 5), 5, 2),
    }
    assert found.excluded == {
        "test: no room for an answer in the context": 1,
        "test: no answer to compare with": 2,
        f"test: no word {where} the blank": 2,
        f"test: not exactly one {BLANK}": 1,
    }


def test_rows_without_questions_are_refused() -> None:
    with pytest.raises(InputError, match=r"^test: no column 'question' \(did you mean questions\?\); there are "):
        run(Canned(), [{"statement": f"x {BLANK}", "questions": "x?", "object": "y"}], question=True)


# columns of a row, the model's answer, EM and F1 (None: not asked)
ANSWERS: dict[str, tuple[dict[str, Any], str, tuple[float, float] | None]] = {
    "object": ({"object": "Easton"}, "the Easton.", (1, 1)),
    "a list": ({"answers": ["Easton", "New Easton"]}, "new easton", (1, 1)),
    # one word of "Easton" in the two said: precision 1/2, recall 1
    "the best of a list": ({"answers": ["Weston", "Easton"]}, "Easton Norland", (0, 2 / 3)),
    "text in answers": ({"answers": "Easton"}, "Easton", (1, 1)),
    "object and answers": ({"object": "Easton", "answers": ["E."]}, "e", (1, 1)),
    "answer": ({"answer": "Easton"}, "Weston", (0, 0)),
    "a number": ({"object": 1961}, "1961", (1, 1)),
    "nought": ({"object": 0}, "0", (1, 1)),
    "in a list with nothing": ({"answers": ["", None, " . ", "Easton"]}, "", (0, 0)),
    "sentinels around it": ({"object": "<extra_id_0> Easton <extra_id_1>"}, "Easton", (1, 1)),
    "nothing": ({"object": None}, "", None),
    "an empty list": ({"answers": []}, "", None),
    "an article alone": ({"object": "The"}, "", None),
    "an alias": ({"answers": ["Easton"], "aliases": ["East Town", None]}, "the east town", (1, 1)),
    "no alias": ({"answers": ["Easton"], "aliases": ["East Town"]}, "Town", (0, 2 / 3)),
    "only aliases": ({"answers": [], "aliases": ["East Town"]}, "", None),
}


@pytest.mark.parametrize(("columns", "said", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_what_is_right(columns: dict[str, Any], said: str, expected: tuple[float, float] | None) -> None:
    found = run(Canned({"x": said}), [{"statement": f"x {BLANK} .", **columns}], candidates=0)
    if expected is None:
        assert (list(found.items), left_out(found)) == ([], {"test: no answer to compare with": 1})
    else:
        (item,) = found.items
        assert (item["exact_match"], item["f1"]) == pytest.approx(expected)
        assert values(found) == pytest.approx({"exact_match": 100 * expected[0], "f1": 100 * expected[1]})


def test_rows_without_answers_are_refused() -> None:
    with pytest.raises(InputError, match=r"^test: no column 'answers' \(did you mean answer_s\?\); there are "):
        run(Canned(), [{"statement": f"x {BLANK}", "answer_s": ["y"]}])


def test_the_old_answers_of_what_was_updated() -> None:
    rows = [
        {"statement": f"{n} {BLANK}", "answers": new, "old_answers": old}
        for n, (new, old) in enumerate(
            [
                (["Ann"], ["Bob", "Robert"]),
                (["Ann"], ["Bob"]),
                (["Ann"], ["Bob"]),
                (["Ann"], []),
                (["Ann"], None),
                (["Ann", "Bob"], ["bob"]),  # the old answer is also right now, so the model may not remember the past
                (["Ann"], ["the Ann", "Bob"]),
            ]
        )
    ]
    rows.append({"statement": f"7 {BLANK}", "answers": ["Ann"], "aliases": ["Bob"], "old_answers": ["bob"]})
    said = {"0": "robert", "1": "Ann", "2": None, "3": "Bob", "4": "Bob", "5": "Bob", "6": "Ann", "7": "Cid"}
    found = run(Canned(said), rows, candidates=0)
    assert [item["old_exact_match"] for item in found.items] == [1, 0, None, None, None, None, 0, None]
    assert found.scores["test/old_exact_match"].value == pytest.approx(100 / 3)
    assert found.scores["test/exact_match"].value == pytest.approx(100 * 3 / 7)
    assert found.scores["test/exact_match"].items == 7
    assert left_out(found) == {"test: no room for an answer in the context": 1}


def cloze(answers: str | list[str], relation: str | None = "P19", **columns: Any) -> dict[str, Any]:
    return {"statement": f"x {BLANK} .", "answers": answers, "relation_id": relation, **columns}


def ranks(found: Outcome) -> list[list[float | None]]:
    return [[item[f"precision_at_{k}"] for k in (1, 5, 10)] for item in found.items]


def test_candidates_are_ranked_by_their_total_likelihood() -> None:
    # five of -1 each are less likely than one of -4: it is not the mean of the tokens that counts
    nll = {"long": [1.0] * 5, "short": [4.0], "far": [9.0]}
    found = run(Canned(nll=nll), [cloze("long"), cloze("short"), cloze("far")])
    assert ranks(found) == [[0, 1, 1], [1, 1, 1], [0, 1, 1]]
    assert values(found) == pytest.approx(
        {"exact_match": 0, "f1": 0, "precision_at_1": 100 / 3, "precision_at_5": 100, "precision_at_10": 100}
    )


def test_any_accepted_answer_counts_and_no_other_spelling_competes_with_it() -> None:
    nll = {"Norland": [1.0], "the Norland": [0.5], "Nord": [2.0], "Sud": [1.5], "Far": [9.0]}
    rows = [cloze(["Far", "Norland"]), cloze("the Norland"), cloze(["Nord"]), cloze("Sud")]
    found = run(Canned(nll=nll), rows)
    # Far, Norland, Nord, Sud; the Norland, Far, Nord, Sud; Nord and Sud with the first answers of all rows
    assert [item["candidates"] for item in found.items] == [4, 4, 4, 4]
    assert [rank[0] for rank in ranks(found)] == [1, 1, 0, 0]


def test_what_another_row_has_for_the_same_subject_and_relation_is_no_wrong_candidate() -> None:
    """Petroni et al. 2019, section 4.3: other valid objects are removed from the candidates."""
    nll = {"the Norland": [1.0], "Nord": [2.0], "Sud": [3.0], "Far": [4.0]}
    rows = [cloze("Nord", subject="x"), cloze("the Norland", subject="x"), cloze("Sud", subject="y")]
    rows += [cloze("Nord", subject="y", subject_id="Q1"), cloze("Far", "P20", subject="x"), cloze("Sud", "P20")]
    found = run(Canned(nll=nll), rows)
    # Nord, Sud; the Norland, Sud; Sud, Nord, the Norland; Nord, Sud, the Norland, of another y; Far, Sud; Sud, Far
    assert [item["candidates"] for item in found.items] == [2, 2, 3, 3, 2, 2]
    assert [rank[0] for rank in ranks(found)] == [1, 1, 0, 0, 0, 1]


def test_a_row_brings_its_own_candidates() -> None:
    """Live configs have one cloze of most relations: without the column there would be nothing to rank."""
    nll = {"Ann": [2.0], "Bob": [1.0], "Cid": [3.0], "Dee": [0.5], "Eve": [0.1]}
    own = ["the Bob", "Bob", "Ann", "Cid", "!", None, "Dee", "Eve"]
    rows = [
        cloze("Ann", None, candidates=["Bob", "Cid"]),
        cloze(["Ann", "Eve"], "P6", aliases=["dee"], candidates=own),  # Dee and Eve are right: no wrong candidates
        cloze("Cid", "P6", candidates=[]),
    ]
    model = Canned(nll=nll)
    found = run(model, rows)
    assert [text.target.strip() for text in model.texts] == [
        *("Ann", "Bob", "Cid"),
        *("Ann", "Eve", "Bob", "Cid"),
        *("Cid", "Ann"),  # the other row's
    ]
    assert [rank[0] for rank in ranks(found)] == [0, 1, 0]
    two = Canned(nll=nll)
    run(two, rows[:1], candidates=2)
    assert [text.target.strip() for text in two.texts] == ["Ann", "Bob"]


def test_aliases_are_neither_candidates_nor_wrong() -> None:
    """The shortest of many names would win by its length, and wrong candidates have one name each."""
    nll = {"United States": [9.0], "US": [0.1], "Canada": [5.0], "Norland": [10.0]}
    rows = [cloze("United States", aliases=["US", "America"], subject="x"), cloze("US", subject="y")]
    rows += [cloze("Canada", subject="z"), cloze("Norland", subject="n")]
    model = Canned(nll=nll)
    found = run(model, rows)
    asked = [text.target.strip() for text in model.texts]
    assert sorted(asked[:3]) == ["Canada", "Norland", "United States"]
    assert [item["candidates"] for item in found.items] == [3, 4, 4, 4]
    assert [rank[0] for rank in ranks(found)] == [0, 1, 0, 0]


NO_RANKING: dict[str, tuple[dict[str, Any], str]] = {
    "no column relation_id": ({"statement": f"x {BLANK}", "object": "Easton"}, "no candidates"),
    "no relation": (cloze("Easton", None), "no candidates"),
    "an empty relation": (cloze("Easton", ""), "no candidates"),
    "the only object": (cloze("Easton", "P36"), "no candidates"),
    "no wrong object": (cloze(["easton", "Other"], "P20"), "no candidates"),
    "a candidate that is too long": (cloze("Easton", "P20"), "no room for all candidates in the context"),
}


@pytest.mark.parametrize(("row", "reason"), NO_RANKING.values(), ids=NO_RANKING)
def test_clozes_without_a_ranking_are_counted(row: dict[str, Any], reason: str) -> None:
    rows = [cloze("Weston"), cloze("Norton"), cloze("other", "P20"), row]
    model = Canned({"x": "Easton"}, {"other": None})
    found = run(model, rows)
    assert ranks(found)[-1] == [None] * 3
    assert found.items[-1]["candidates"] is None
    assert found.items[-1]["exact_match"] == 1
    assert left_out(found)[f"test: P@k: {reason}"] >= 1
    assert found.scores["test/precision_at_1"].items == 2
    assert found.scores["test/exact_match"].items == 4


def test_without_candidates_there_is_no_ranking() -> None:
    model = Canned()
    found = run(model, [cloze("Weston"), cloze("Norton")], candidates=0)
    assert set(values(found)) == {"exact_match", "f1"}
    assert (model.texts, left_out(found)) == ([], {})


def test_candidates_are_drawn_from_the_whole_config_and_always_hold_the_answers() -> None:
    towns = [f"town {n}" for n in range(40)]
    rows = [cloze(towns[:3])] + [cloze(town) for town in towns] + [cloze(f"star {n}", "P376") for n in range(9)]

    def drawn(rows: list[dict[str, Any]], most: int) -> dict[str, set[str]]:
        model = Canned()
        asked = [{**row, "statement": f"{row['answers']} {BLANK}"} for row in rows]
        half = len(rows) // 2
        Lama(candidates=most).run(model, {"a": asked[:half], "b": asked[half:]})  # type: ignore[arg-type]
        candidates = [text for text in model.texts if text.context]  # the others are cells of panels
        found: dict[str, set[str]] = {}
        for text in candidates:
            found.setdefault(text.context, set()).add(text.target.strip())
        assert sum(map(len, found.values())) == len(candidates)
        return found

    ten = drawn(rows, 10)
    assert all(ten[str(row["answers"])] >= set(np.atleast_1d(row["answers"])) for row in rows)
    assert {len(ten[town]) for town in towns} == {10}
    assert {len(of) for of in ten.values()} == {9, 10}  # there are nine stars
    assert all(of <= set(towns) for prompt, of in ten.items() if "town" in prompt)
    common = set.intersection(*(ten[town] for town in towns))
    assert len(common) == 9  # the same draw for all, but for the answer itself
    assert common != set(towns[:9])
    assert drawn(rows[::-1], 10) == ten
    twenty = drawn(rows, 20)
    assert all(ten[prompt] <= twenty[prompt] for prompt in ten)
    assert {len(of) for of in drawn(rows, 100).values()} == {9, 40}


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abcdefghijklmn"), min_size=1, max_size=3), st.sampled_from("PQ")),
        min_size=1,
        max_size=20,
    ),
    st.lists(st.integers(0, 5), min_size=14, max_size=14),
)
def test_precision_is_that_of_the_metric_on_the_ranking(rows: list[Any], nll: list[int]) -> None:
    likely = {f"town {letter}": [float(value)] for letter, value in zip("abcdefghijklmn", nll, strict=True)}
    clozes = [cloze([f"town {letter}" for letter in answers], relation) for answers, relation in rows]
    found = run(Canned(nll=likely), clozes)
    rankings, accepted = [], []
    for row in clozes:
        objects = {other["answers"][0] for other in clozes if other["relation_id"] == row["relation_id"]}
        if objects > objects & set(row["answers"]):
            rankings.append(sorted(objects | set(row["answers"]), key=lambda town: (likely[town], town)))
            accepted.append(row["answers"])
    assert len([item for item in found.items if item["candidates"]]) == len(rankings)
    if rankings:
        # a ranking of two is padded with what is wrong, so that the metric gives all k
        padded = [ranking + [f"none {n}" for n in range(10 - len(ranking))] for ranking in rankings]
        expected = knowledge_match(padded, accepted)["precision_at_k"]
        assert {k: values(found)[f"precision_at_{k}"] for k in (1, 5, 10)} == pytest.approx(
            {k: expected[k] for k in (1, 5, 10)}
        )


def test_every_item_has_a_name_of_its_own_and_the_cluster_of_its_subject() -> None:
    rows = [
        {"id": "a", "subject": "Anna", "subject_id": "Q1"},
        {"id": "a", "subject": "Anna", "subject_id": None},
        {"id": 7, "subject": None, "subject_id": None},
        {"id": None, "subject": "", "subject_id": "Q1"},
        {"id": None, "subject": "", "subject_id": "Q1"},
        {"id": "a", "subject": "Anna", "subject_id": ""},
    ]
    asked = [{**row, "statement": f"x {BLANK}", "object": "y"} for row in rows]
    found = run(Canned(), asked, candidates=0)
    ids = [item["id"] for item in found.items]
    assert (len(set(ids)), ids[0], ids[2]) == (6, "a", "7")
    assert [item["cluster"] for item in found.items] == ["Q1", "Anna", "7", "Q1", "Q1", "Anna"]
    # the id of a row does not depend on excluded rows before it
    asked[0]["object"] = None
    assert [item["id"] for item in run(Canned(), asked, candidates=0).items] == ids[1:]


def test_each_split_is_a_test() -> None:
    rows = {split: [{"statement": f"{split} {BLANK}", "object": "y"}] for split in ("valid", "test")}
    found = Lama().run(Canned({"test": "y"}), rows)  # type: ignore[arg-type]
    assert {name: score.value for name, score in found.scores.items() if "exact" in name} == {
        "valid/exact_match": 0,
        "test/exact_match": 100,
    }


@pytest.mark.parametrize("wrong", [{"max_new_tokens": 0}, {"beams": 0}, {"light_tuning": -1}, {"candidates": -1}])
def test_options_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    for task in (Lama, NewQuestions)[: 1 if "candidates" in wrong else 2]:
        with pytest.raises(UsageError, match=next(iter(wrong))):
            task(**wrong)


# ---- real models, against transformers, one text at a time


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    towns = ("Easton", "Weston", "Norton", "Sutton")
    easy = [{"statement": f"Anna {i} was born in {BLANK} .", "object": town} for i, town in enumerate(towns)]
    updated = [{"statement": row["statement"], "answers": [row["object"]], "old_answers": ["Old"]} for row in easy]
    configs = {"invariantlama": [row | {"relation_id": "P19"} for row in easy], "updatedlama-1112": updated}
    configs |= {"newlama": easy, "newlama-easy": easy}
    splits = {name: {"test": rows} for name, rows in configs.items()}
    splits["updatedlama-1112"]["backfilled"] = updated  # which is not scored
    return write_dataset(tmp_path_factory.mktemp("ckl"), splits)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("models")
    return lambda kind: folder / kind if (folder / kind).is_dir() else tiny_models.save_talking(kind, folder / kind)


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_all_configs_load_and_are_scored_as_transformers_scores_them(
    kind: str, models: Callable[[str], Path], dataset: Path, tmp_path: Path
) -> None:
    model, task = CachedModel(str(models(kind)), tmp_path / "scores"), Lama(max_new_tokens=6)
    configs = ("invariantlama", "updatedlama-1112", "newlama", "newlama-easy")
    results = evaluate(Evaluation(model.reference, str(dataset), {"lama": task}, configs, tmp_path / "out", 3), model)
    assert [result.data["data"]["config"] for result in results] == list(configs)
    plain = {"test/exact_match", "test/f1"}
    ranked = {f"test/precision_at_{k}" for k in (1, 5, 10)}
    names = [set(result.data["scores"]) for result in results]
    assert names == [plain | ranked, plain | {"test/old_exact_match"}, plain, plain]
    assert [left_out(result.manifest) for result in results] == [{}, *[{"test: P@k: no candidates": 3}] * 3]
    loaded = load(models(kind))
    for i, item in enumerate(results[0].items()):
        statement = f"Anna {i} was born in {BLANK} ." if kind == "t5" else f"Anna {i} was born in"
        assert item["answer"] == answer(continuation(*loaded, statement, 6))
        likely = sorted(
            ("Easton", "Weston", "Norton", "Sutton"), key=lambda town: sum(nlls(*loaded, statement, f" {town}"))
        )
        assert item["precision_at_1"] == (likely[0] == ("Easton", "Weston", "Norton")[i])


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_questions_are_scored_as_transformers_answers(
    kind: str, models: Callable[[str], Path], tmp_path: Path
) -> None:
    asked = ["Who leads Norland?", "Where was Anna Weber born?", "Wer ist Łukasz ☃?"]
    rows = [{"id": str(n), "question": text, "answers": [text]} for n, text in enumerate([*asked, "so " * 400])]
    data = write_dataset(tmp_path / "ckl", {"newquestions-easy": {"test": rows}})
    model, task = CachedModel(str(models(kind)), tmp_path / "scores"), NewQuestions(max_new_tokens=6)
    (result,) = evaluate(
        Evaluation(model.reference, str(data), {"new_questions": task}, (), tmp_path / "out", None), model
    )
    assert result.data["data"]["config"] == "newquestions-easy"
    assert set(result.data["scores"]) == {"test/exact_match", "test/f1"}
    items, plain = result.items(), load(models(kind))
    prompts = [text if kind == "t5" else f"Question: {text}\nAnswer:" for text in asked]
    assert [item["answer"] for item in items[:3]] == [answer(continuation(*plain, text, 6)) for text in prompts]
    assert all(item["answer"] for item in items[:3])
    if kind == "t5":
        assert result.data["excluded"] == {}
    else:
        assert items[3]["answer"] is None
        assert result.data["excluded"] == {"test: no room for an answer in the context": 1}


@pytest.mark.parametrize(
    ("task", "config", "row", "said"),
    [
        (Lama(), "newlama", {"statment": f"x {BLANK}"}, r"no column 'statement' \(did you mean statment\?\)"),
        (
            NewQuestions(),
            "newquestions-easy",
            {"questions": "x?"},
            r"no column 'question' \(did you mean questions\?\)",
        ),
    ],
)
def test_a_config_without_the_column_is_refused(
    task: Any, config: str, row: dict[str, str], said: str, models: Callable[[str], Path], tmp_path: Path
) -> None:
    data = write_dataset(tmp_path / "ckl", {config: {"test": [row | {"object": "y"}]}})
    model = CachedModel(str(models("gpt2")), tmp_path / "scores")
    wanted = Evaluation(model.reference, str(data), {"task": task}, (), tmp_path / "out", None)
    with pytest.raises(InputError, match=f"{config}, test: {said}"):
        evaluate(wanted, model)


# Light-tuning

PAIRS = [
    {"id": f"{name} {i}", "subject": name, "question": f"{name} {i}?", "statement": f"{name} {i} is {BLANK}.",
     "answers": ["Bob", "Anna"]}
    for name in ("A", "B", "C", "D") for i in range(2)
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "more", "batch"), [(NewQuestions, {}, 8), (Lama, {"candidates": 0}, 32)], ids=["questions", "clozes"]
)
def test_questions_to_light_tune_on_are_not_scored(
    kind: Any, more: dict[str, int], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tunings: list[tuple[list[tuple[str, str]], TrainOptions]] = []

    @contextmanager
    def tuned(_: Model, examples: list[tuple[str, str]], options: TrainOptions, what: str) -> Iterator[Canned]:
        tunings.append((examples, options))
        yield Canned(otherwise="Bob")

    monkeypatch.setattr(lama, "fine_tuned", tuned)
    task = kind(light_tuning=3, **more)
    assert task.recorded_options()["light_tuning"] == 3
    assert "light_tuning" not in kind().recorded_options()  # such results keep their names
    found, _ = (task.run(Canned(), {"test": rows}) for rows in (PAIRS, PAIRS[::-1]))
    (learned, options), (again, _) = tunings
    assert (options.learning_rate, options.batch_size, options.epochs) == (1e-3, batch, 1)
    assert (options.schedule, options.warmup_ratio) == ("constant", 0)
    assert len(learned) == 3 and sorted(learned) == sorted(again)  # in any order of rows
    assert {answer for _, answer in learned} == {" Bob"}  # the first one
    subjects = {prompt.removeprefix("Question: ")[0] for prompt, _ in learned}
    scored = {item["cluster"] for item in found.items}
    assert len(subjects) == len(scored) == 2 and not subjects & scored
    assert {item["answer"] for item in found.items} == {"Bob"}
    assert set(found.scores) == {"light-tuned/test/exact_match", "light-tuned/test/f1"}
    assert found.excluded["about a subject of light-tuning"] == 4
    with pytest.raises(UsageError, match="light_tuning: 7 of 8 clozes leave none to score; name a lower number"):
        kind(light_tuning=7, **more).run(Canned(), {"test": PAIRS})


@pytest.mark.parametrize("kind", tiny_models.KINDS)
@pytest.mark.usefixtures("quick")
def test_a_light_tuned_copy_learns_the_answers(kind: str, models: Callable[[str], Path], tmp_path: Path) -> None:
    """The same answer to all questions: the copy gives it, and the model itself has not changed."""
    model = CachedModel(str(models(kind)), tmp_path / "scores")
    rows = [{"id": str(i), "subject": str(i), "question": f"Who {i}?", "answers": ["Easton"]} for i in range(1300)]
    before = model.generate(["Who"], "before", 5)
    assert not str(before[0]).startswith("E")
    found = NewQuestions(light_tuning=1280, max_new_tokens=12).run(model, {"test": rows})
    assert len(found.items) == 20
    assert sum(item["answer"].startswith("Easton") for item in found.items) > 15  # T5 has not learned to end there
    assert model.generate(["Who"], "after", 5) == before


# Known clozes: panels


class Lookup(Canned):
    """A model that knows some statements by heart, and finds all others equally likely."""

    right: frozenset[str] = frozenset()
    limit = 10**6  # a longer text is longer than the context

    def score(self, texts: Sequence[Text], what: str) -> list[TokenScores | None]:
        """Give each text two tokens: the first 40 characters, and the rest, which has the answer."""
        self.texts += texts
        found: list[TokenScores | None] = []
        for text in texts:
            whole = text.context + text.target
            ends = [len(text.context), min(40, len(whole)), len(whole)]
            known = whole.replace(f"{BLANK}. | ", "") in self.right
            nll = np.array([3.0, 0.5 if known else 4.0])
            if text.context:  # an encoder-decoder model scores the object alone
                ends, nll = [len(text.context), len(whole)], nll[1:]
            found.append(TokenScores(nll, np.array(list(pairwise(ends)))))
        return found


TOWNS = ("Aston", "Bern", "Coria", "Delft", "Emden", "Fano", "Gent", "Hull", "Ulm", "York")


def births(count: int, relation: str | None = "P19") -> list[dict[str, Any]]:
    """Return clozes whose blank begins after 40 characters, and has a word after it."""
    return [
        {
            "id": f"c{i}",
            "statement": f"The parish register says that person {i} is from {BLANK} indeed.",
            "object": town,
            "relation_id": relation,
            "subject": f"person {i}",
        }
        for i, town in enumerate(TOWNS[:count])
    ]


@pytest.mark.parametrize("shares", [(0,), (0, 3, 7), range(10)])
def test_a_cloze_is_known_if_its_subject_prefers_its_answer(shares: Sequence[int]) -> None:
    rows = births(10)
    model = Lookup()
    model.right = frozenset(rows[i]["statement"].replace(BLANK, rows[i]["object"]) for i in shares)
    found = run(model, rows, candidates=0)  # type: ignore[arg-type]
    assert [item["id"] for item in found.items if item["known"]] == [f"c{i}" for i in shares]
    assert values(found)["known"] == 10 * len(shares)
    assert values(found)["chance"] == pytest.approx(10)
    assert all(text.target.endswith(" indeed.") for text in model.texts)  # to the end of the statement


UNKNOWN: dict[str, tuple[list[dict[str, Any]], dict[str, int]]] = {
    "five of a relation": (births(5), {"test: known: in a panel of fewer than 6 facts of the relation": 5}),
    "no relation": (births(7, None), {"test: known: no relation_id": 7}),
    "no space before the blank": (
        [row | {"statement": row["statement"].replace(f" {BLANK}", f"-{BLANK}")} for row in births(7)],
        {"test: known: no wording as statement": 7},
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_clozes_that_stand_in_no_panel_are_counted(case: str) -> None:
    rows, excluded = UNKNOWN[case]
    found = run(Lookup(), rows, candidates=0)  # type: ignore[arg-type]
    assert "known" not in values(found)
    assert found.excluded == excluded


def test_panels_of_clozes_are_made_before_a_limit() -> None:
    rows = births(10)
    model = Lookup()
    model.right = frozenset({rows[0]["statement"].replace(BLANK, rows[0]["object"])})
    whole = run(model, rows, candidates=0)  # type: ignore[arg-type]
    limited = run(model, [row | {"scored": i < 3} for i, row in enumerate(rows)], candidates=0)  # type: ignore[arg-type]
    assert [item["id"] for item in limited.items] == ["c0", "c1", "c2"]
    assert [item["panel"] for item in limited.items] == [item["panel"] for item in whole.items[:3]]
    assert [item["known"] for item in limited.items] == [1, 0, 0]
