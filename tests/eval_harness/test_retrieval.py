"""Retrieval: which passages are found, what a model reads, and how results with it are kept apart."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_transformers import load, nlls

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.commands import main
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.rows import rows as board_rows
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.stored import StoredScores
from temporalwiki.eval_harness.results import Result, read_results, table
from temporalwiki.eval_harness.retrieval import PASSAGES, Retriever, cut, found_right, reading, words
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks.lama import Lama
from temporalwiki.eval_harness.tasks.multiple_choice import MultipleChoice
from temporalwiki.eval_harness.tasks.new_questions import NewQuestions
from temporalwiki.eval_harness.tasks.twiki_intrinsic import TwikiIntrinsic
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes

import a_result
import tiny_models
from a_dataset import write_dataset
from tiny_probes import CHANGED, UNCHANGED, rows

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., list[Result]]
ARTICLES = [
    {"title": "Norland", "text": "Norland is a country. The head of its government is Anna Weber."},
    {"title": "Anna Weber", "text": "Anna Weber was born in 1961. She lives in Easton, the capital of Norland."},
    {"title": "Carl Ito", "text": "Carl Ito lives in St. Louis."},
    {"title": "Rain", "text": "It rains."},
    {"title": "日本", "text": "東京は日本の首都である。"},
]
EARLIER = [{"title": "Norland", "text": "The head of its government is Carl Ito."}]
FACTS = {
    "changed": [{**row, "title": "Page", "evidence": f"It says {row['object']}."} for row in rows(CHANGED)],
    "unchanged": [{**row, "title": None, "evidence": ""} for row in rows(UNCHANGED)],
}
CLOZES = [{"statement": "The head of the government of Norland is <extra_id_0>.", "answers": ["Anna Weber"]}]
QUESTIONS = [{"question": "Where does Carl Ito live?", "answers": ["St. Louis"], "evidence": "He lives in St. Louis."}]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("there")
    configs: dict[str, Any] = {
        "diffset-1112": ARTICLES,
        "diffset-1011": EARLIER,
        "diffset-0910": [{"title": "Empty", "text": ""}],
        "probes-1112": FACTS,
        "newlama-1112": CLOZES,
        "newquestions-easy": QUESTIONS,
    }
    write_dataset(folder / "data", configs)
    for kind in tiny_models.KINDS:
        tiny_models.save(kind, folder / kind)
    return folder


@pytest.fixture
def run(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that evaluates a model (default: GPT-2) on the data."""
    monkeypatch.setattr("temporalwiki.eval_harness.runner.cache_folder", lambda: tmp_path / "scores")

    def evaluated(task: Any, kind: str = "gpt2", **more: Any) -> list[Result]:
        name = re.sub(r"(?<=.)(?=[A-Z])", "_", type(task).__name__).lower()
        model = CachedModel(str(there / kind), tmp_path / "scores", "fp32")
        more = {"configs": (), **more}
        return evaluate(
            Evaluation(model.reference, str(there / "data"), {name: task}, output=tmp_path / "r", limit=None, **more),
            model,
        )

    return evaluated


# What is found


def bm25(passages: list[list[str]], question: list[str]) -> list[float]:
    """Return the scores of Lucene's BM25 (Kamphuis et al. 2020, table 1), by the book."""
    mean = sum(map(len, passages)) / len(passages)
    scores = []
    for passage in passages:
        score = 0.0
        for word in question:
            having = sum(word in other for other in passages)
            rarity = math.log(1 + (len(passages) - having + 0.5) / (having + 0.5))
            times = passage.count(word)
            score += rarity * times / (times + 1.5 * (1 - 0.75 + 0.75 * len(passage) / mean))
        scores.append(score)
    return scores


WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=9), WORDS, st.integers(1, 4))
def test_the_best_passages_are_those_of_bm25_by_the_book(texts: list[str], question: str, top_k: int) -> None:
    retriever = Retriever("data", "diffset-1112", top_k)
    retriever.__dict__["_loaded"] = {"train": [{"text": text} for text in texts]}
    [row] = retriever.with_passages([{"question": question}], ("question",), "data")
    scores = bm25([text.split() for text in texts], question.split())
    # single precision: passages with nearly equal scores may change places
    best = sorted(zip(scores, texts, strict=True), key=lambda scored: -scored[0])[:top_k]
    expected = [score for score, _ in best if score > 0]
    known = dict(zip(texts, scores, strict=True))
    assert [known[text] for text in row[PASSAGES]] == pytest.approx(expected, rel=1e-5)


def test_equal_passages_keep_their_order() -> None:
    retriever = Retriever("data", "diffset-1112", 2)
    retriever.__dict__["_loaded"] = {"train": [{"title": name, "text": "rain"} for name in "abcd"]}
    [row] = retriever.with_passages([{"question": "rain"}], ("question",), "data")
    assert row[PASSAGES] == ["a. rain", "b. rain"]


QUERIES = {
    "a fact": ("Norland", "head of government", ["Norland. Norland is", "Anna Weber. Anna"]),
    "case and form do not matter": ("NORLAND", "GOVERNMENT", ["Norland. Norland is", "Anna Weber. Anna"]),
    "a script without spaces": ("東京", "は", ["日本. 東京は"]),
    "no word in common": ("Xyz", "uvw", []),
    "no word at all": ("…", "!", []),
}


@pytest.mark.parametrize("case", QUERIES)
def test_what_is_found_for_a_question(case: str, there: Path) -> None:
    subject, relation, expected = QUERIES[case]
    retriever = Retriever(str(there / "data"), "diffset-1112", 2)
    [row] = retriever.with_passages([{"subject": subject, "relation": relation}], ("subject", "relation"), "data")
    assert [passage[: len(begin)] for passage, begin in zip(row[PASSAGES], expected, strict=True)] == expected


LONG = " ".join(f"w{i}." for i in range(250))
CUTS: dict[str, tuple[dict[str, Any], list[tuple[str, str, int]]]] = {
    "a short article": ({"title": "T", "text": "One two.\n\nThree."}, [("T. One two. Three.", "", 4)]),
    "no title": ({"text": "One two."}, [("One two.", "", 2)]),
    "no text": ({"title": "T", "text": None}, []),
    "a hundred words each": (
        {"title": "T", "text": LONG},
        [("T. w0. w1.", "w99.", 101), ("T. w100.", "w199.", 101), ("T. w200.", "w249.", 51)],
    ),
    "a script without spaces": ({"text": "東京" * 60}, [("東京東京", "東京", 100), ("東京東京", "東京", 20)]),
    "a blank of T5": ({"text": "a <extra_id_0> b"}, [("a b", "", 2)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CUTS)
def test_an_article_is_cut_into_passages(case: str) -> None:
    row, expected = CUTS[case]
    found = list(cut(row))
    assert [len(words(passage)) for passage in found] == [count for _, _, count in expected]
    for passage, (begin, end, _) in zip(found, expected, strict=True):
        assert passage.startswith(begin)
        assert passage.endswith(end)


# What is read


def test_the_best_passage_stands_next_to_the_question(there: Path, tmp_path: Path) -> None:
    before = reading(CachedModel(str(there / "gpt2"), tmp_path))
    assert before({PASSAGES: ["best", "worse"]}, "Norland capital") == "worse\n\nbest\n\n"
    assert before({PASSAGES: []}, "Norland capital") == before({}, "Norland capital") == ""


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_passages_are_cut_at_their_beginning_to_fit(kind: str, there: Path, tmp_path: Path) -> None:
    model = CachedModel(str(there / kind), tmp_path)
    passage, prompt = "The capital of Norland is Easton. " * 60, "Anna Weber was born in"
    text = reading(model)({PASSAGES: [passage.strip(), "the worst"]}, prompt)
    assert "the worst" not in text
    assert text.endswith("Norland is Easton.\n\n")
    length = 1 + len(model.tokenizer.encode(text + prompt, add_special_tokens=False))  # with BOS
    assert 256 - 64 - 12 < length <= 256 - 64  # a context of 256 tokens, 64 of them for the answer
    assert reading(model)({PASSAGES: [passage]}, passage) == ""  # the prompt is never cut


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_fact_is_scored_after_the_passages(kind: str, run: Run, there: Path) -> None:
    """Compare with plain transformers on passage, blank line and fact."""
    [result] = run(TwikiProbes(answers=False, light_tuning=False), kind, retrieve="evidence")
    [item] = [item for item in result.items() if item["relation"] == "head of government"]
    plain = load(there / kind)
    before, fact, label = "Page. It says Anna Weber.\n\n", "Norland head of government", "Anna Weber"
    expected = nlls(*plain, before + fact, label) if kind == "t5" else nlls(*plain, before, f"{fact} {label}")
    assert (item["nll"], item["tokens"]) == (pytest.approx(sum(expected), rel=1e-4), len(expected))


TASKS: dict[str, tuple[Any, str]] = {
    "twiki_probes": (TwikiProbes(answers=True, light_tuning=False), "probes-1112"),
    "lama": (Lama(candidates=0), "newlama-1112"),
    "new_questions": (NewQuestions(), "newquestions-easy"),
}


# a word of a question -> the beginning of the passage that is found
FOUND = {"government": "Norland. Norland is a country", "Carl Ito": "Carl Ito. Carl Ito lives", "1961": "Anna"}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_prompts_begin_with_what_was_found(kind: str, name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    task, config = TASKS[name]
    asked: list[str] = []

    def note(self: CachedModel, prompts: list[str], *_: Any) -> list[str]:
        asked.extend(prompts)
        return [""] * len(prompts)

    monkeypatch.setattr(CachedModel, "generate", note)
    run(task, kind, configs=(config,))
    closed = list(asked)
    asked.clear()
    [result] = run(task, kind, configs=(config,), retrieve="diffset-1112", top_k=1)
    assert result.data["data"]["retrieved"].items() >= {"source": "diffset-1112", "top_k": 1}.items()
    for prompt, without in zip(asked, closed, strict=True):
        text = next((text for word, text in FOUND.items() if word in without), None)
        assert text is None or re.fullmatch(rf"{text}.*\n\n{re.escape(without)}", prompt)
    assert any(word in without for without in closed for word in FOUND)


def test_results_with_passages_are_no_start(run: Run, tmp_path: Path) -> None:
    [result] = run(TwikiProbes(answers=False, light_tuning=False), retrieve="evidence")
    with pytest.raises(InputError, match="without --retrieve"):
        StoredScores(result.path)


# Results are kept apart


def test_each_source_has_its_own_result_which_names_it(run: Run) -> None:
    task = TwikiProbes(answers=False, light_tuning=False)
    sources: list[dict[str, Any]] = [
        {},
        {"retrieve": "evidence"},
        {"retrieve": "diffset-1112"},
        {"retrieve": "diffset-1112", "top_k": 1},
        {"retrieve": "diffset-1011"},
    ]
    found = [run(task, **source)[0] for source in sources]
    assert len({result.path for result in found}) == len(sources)
    assert [table([result]).splitlines()[0].partition(" of /")[0] for result in found] == [
        "twiki_probes",
        "twiki_probes with evidence",
        "twiki_probes with top 5 of diffset-1112",
        "twiki_probes with top 1 of diffset-1112",
        "twiki_probes with top 5 of diffset-1011",
    ]
    assert table([found[1]]).splitlines()[-2:] == [
        "read before the question, evidence: 4 of 4 rows of changed, 0 of 5 rows of unchanged",
        "changed: 4 with the right passage, 4 of them current",
    ]
    assert found[1].data["data"]["retrieved"] == {
        "source": "evidence",
        "version": 1,
        "found": {"changed": 4, "unchanged": 0},
        "facts": {"changed": {"right": 4, "current": 4}},
    }
    assert [run(task, **source)[0].path for source in sources] == [result.path for result in found]  # read, not made


def test_on_a_leaderboard_it_is_another_model_and_never_a_run_of_the_same(tmp_path: Path) -> None:
    read = {"source": "diffset-1112", "top_k": 5, "hash": "h", "version": 1}
    for seed in (0, 1):
        for where in ("closed", "open"):
            of = {
                "method": "diff",
                "trained_on": ["diffset-1112"],
                "recipe": "r",
                "seed": seed + 2 * (where == "open"),
            }
            clozes = a_result.clozes(8 if where == "open" else 2)
            a_result.write_clozes(tmp_path / where, "newlama", clozes, name=f"of {seed}", **of)
    found = read_results(tmp_path / "closed")
    found += [a_result.changed(one, "data", retrieved=read) for one in read_results(tmp_path / "open")]
    made = board_rows(found, tmp_path)
    assert {(row.label, row.task, row.value, row.runs, row.retrieved) for row in made} == {
        ("diff", "lama", 20.0, 2, ""),
        ("diff, with top 5 of diffset-1112", "lama", 80.0, 2, "top 5 of diffset-1112"),
    }
    assert [line.label for line in ModelBoard(made).lines] == ["diff", "diff, with top 5 of diffset-1112"]


def test_fuar_is_about_weights(tmp_path: Path) -> None:
    found, read = [], []
    for name, hits, of in (("base", 6, {"method": "initial"}), ("diff", 4, {"method": "diff", "trained_on": ["n"]})):
        for config in ("invariantlama", "updatedlama", "newlama"):
            more = hits if config == "invariantlama" else 10 - hits
            found.append(a_result.write_clozes(tmp_path, config, a_result.clozes(more), name=name, **of))
            perfect = a_result.write_clozes(tmp_path / "read", config, a_result.clozes(9), name=name, **of)
            read.append(a_result.changed(perfect, "data", retrieved={"source": "evidence", "version": 1}))
    [closed] = fuar_rows(found, board_rows(found, tmp_path), tmp_path)
    assert closed.value == pytest.approx(20 / 40)  # forgot 2 of 10, gained 2 of 10 twice
    assert fuar_rows([*read, *found], board_rows([*read, *found], tmp_path), tmp_path) == [closed]


def test_a_start_model_with_passages_is_not_the_start_model(tmp_path: Path) -> None:
    result = a_result.write_clozes(tmp_path, "newlama", a_result.clozes(2), name="base", method="initial")
    read = a_result.changed(result, "data", retrieved={"source": "evidence", "version": 1})
    lines = ModelBoard(board_rows([result, read], tmp_path)).lines
    assert [(line.label, line.initial) for line in lines] == [("initial", True), ("initial, with evidence", False)]


def test_the_command(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")
    words = ["evaluate", "--model", there / "gpt2", "--data", there / "data", "--output", tmp_path / "results"]
    words += ["--tasks", "twiki_probes", "--no-answers", "--no-light-tuning", "--top-k", 1]
    assert main([str(word) for word in (*words, "--retrieve", "diffset-1011")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("twiki_probes with top 1 of diffset-1011 of ")
    # all but "Easton {{mayor}}", "東京 country" and "Anna Weber was born in" have the word of, Norland or Carl
    assert "read before the question, top 1 of diffset-1011: 2 of 4 rows of changed, 4 of 5 rows of unchanged" in lines
    assert main([str(word) for word in words]) == 2
    assert "--top-k: name the config to retrieve from with --retrieve" in capsys.readouterr().err


# Wrong usage


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a config without text": (
        TwikiProbes(), {"retrieve": "probes-1112"}, "--retrieve probes-1112: it has no column 'text', only subject"
    ),
    "no such config": (TwikiProbes(), {"retrieve": "diffset-1113"}, "no config 'diffset-1113'.* mean"),
    "no evidence": (Lama(), {"retrieve": "evidence"}, "--retrieve evidence: .*newlama-1112 has no column 'evidence'"),
    "no passages": (TwikiProbes(), {"retrieve": "diffset-1112", "top_k": 0}, "--top-k must be at least 1, not 0"),
    "a task that asks nothing": (
        TwikiIntrinsic(), {"retrieve": "evidence"}, "evidence: twiki_intrinsic asks no questions that text could"
    ),
    "data in memory": (
        TwikiProbes(), {"retrieve": "diffset-1112", "rows": {"probes-1112": {}}}, "data in memory is one config"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_wrong_usage_is_one_line(case: str, run: Run) -> None:
    task, more, error = BAD[case]
    with pytest.raises(UsageError, match=error) as raised:
        run(task, **more)
    assert "\n" not in str(raised.value)


def test_stored_results_cannot_read(run: Run, there: Path, tmp_path: Path) -> None:
    [result] = run(TwikiProbes(answers=False, light_tuning=False))
    wanted = Evaluation(
        str(result.path), str(there / "data"), {"deleted": MultipleChoice()}, (), tmp_path / "r", None,
        retrieve="evidence",
    )  # fmt: skip
    with pytest.raises(UsageError, match="it needs a model whose weights are here"):
        evaluate(wanted, StoredScores(result.path))


def test_a_config_without_a_word_is_named(run: Run) -> None:
    with pytest.raises(InputError, match="data, diffset-0910: no text to retrieve from"):
        run(TwikiProbes(answers=False, light_tuning=False), retrieve="diffset-0910")


# The right passage, of the right month


MONTHLY = {
    "diffset-1011": [{"title": "Norland", "text": "The head of government of Norland is Carl Ito."}],
    "diffset-1112": [{"title": "Norland", "text": "The head of government of Norland is Anna Weber."}],
    "diffset-1201": [{"title": "Norland", "text": "The head of government of Norland is Dora Haugen."}],
}
ALL = "diffset-1011,diffset-1112,diffset-1201"


@pytest.mark.parametrize(
    ("month", "expected"),
    [
        ("1011", ["Carl Ito"]),
        ("1112", ["Anna Weber", "Carl Ito"]),
        ("1201", ["Dora Haugen", "Anna Weber", "Carl Ito"]),
        ("20211201-20220101", ["Dora Haugen", "Anna Weber", "Carl Ito"]),
        (None, ["Carl Ito", "Anna Weber", "Dora Haugen"]),  # without a month, in the order given
    ],
)
def test_several_months_answer_as_of_the_month_of_the_questions(
    month: str | None, expected: list[str], tmp_path: Path
) -> None:
    write_dataset(tmp_path / "data", MONTHLY)
    retriever = Retriever(str(tmp_path / "data"), ALL, 5, month)
    [row] = retriever.with_passages([{"question": "Who is the head of government?"}], ("question",), "here")
    assert [re.search("is ([A-Z].*)[.]", passage.partition(". ")[2])[1] for passage in row[PASSAGES]] == expected  # type: ignore[index]


def test_the_configs_of_later_months_are_no_part_of_a_results_identity(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", MONTHLY)
    identities = [
        Retriever(str(tmp_path / "data"), ALL, 5, month).identity["hash"] for month in ("1011", "1112", None)
    ]
    assert len(set(identities)) == 3
    alone = Retriever(str(tmp_path / "data"), "diffset-1011").identity["hash"]
    assert identities[0] == alone


RIGHT = {  # passages, the best first, and whether the right one is there, and current
    "the right one": (["Norland. Anna Weber leads."], (1, 1)),
    "another name of hers": (["Norland. Countess Weber leads."], (1, 1)),
    "after an outdated one": (["Norland. Carl Ito leads.", "Norland. Anna Weber leads."], (1, 0)),
    "before an outdated one": (["Norland. Anna Weber leads.", "Norland. Carl Ito leads."], (1, 1)),
    "one that names both": (["Norland. Anna Weber follows Carl Ito."], (1, 1)),
    "an outdated one of another article": (["Easton. Carl Ito leads.", "Norland. Anna Weber leads."], (1, 1)),
    "the right one of another article": (["Easton. Anna Weber leads."], (0, 0)),
    "only an outdated one": (["Norland. Carl Ito leads."], (0, 0)),
    "nothing": ([], (0, 0)),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_passage_is_right_by_its_article_and_current_by_its_rank(case: str) -> None:
    passages, (right, current) = RIGHT[case]
    row = {"title": "Norland", "object": "Anna Weber", "aliases": ["Countess Weber"], "gone_objects": ["Carl Ito"]}
    assert found_right([{**row, PASSAGES: passages}]) == {"right": right, "current": current}


def test_rows_that_are_no_facts_are_not_counted() -> None:
    assert found_right([{"question": "Who?", PASSAGES: ["Norland. Anna Weber leads."]}]) == {}
