# ruff: noqa: E501 - one case a line
"""Models behind a completions endpoint: the numbers of their replies, the replies that are refused, and resuming."""

import gzip
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.cutoff.changes import Change, evidence
from temporalwiki.eval_harness.models import completions
from temporalwiki.eval_harness.models import server as provider
from temporalwiki.eval_harness.models.completions import CompletionsModel, Reply, read_scores
from temporalwiki.eval_harness.models.server import NoLikelihoodsError
from temporalwiki.eval_harness.models.stored import open_scores
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.eval_harness.tasks import TASKS, find_task

import tiny_models
from a_completions_server import TRIAL, Completions, Refused
from a_dataset import write_dataset

NAME = "openai-api-completions/local/model"
KEY = "sk-planted-0123456789"


def reply(tokens: list[str], values: list[float | None], prompt: int, written: int = 1) -> Reply:
    return msgspec.convert(
        {
            "choices": [{"text": "", "logprobs": {"tokens": tokens, "token_logprobs": values}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": written},
        },
        Reply,
    )


# The text, the reply (the last token is written, not read), and the NLL and place of each scored token
READ: dict[str, tuple[Text, Reply, list[float], list[tuple[int, int]]]] = {
    "without BOS, the first token is not predicted": (
        Text("", "Kesh is Osk"), reply(["Kesh", " is", " Osk", "."], [None, -1, -2, -9], 3), [1, 2], [(4, 7), (7, 11)]
    ),
    "a BOS that is shown predicts it": (
        Text("", "Kesh is"), reply(["<s>", "Kesh", " is", "."], [None, -3, -1, -9], 3), [3, 1], [(0, 4), (4, 7)]
    ),
    "a BOS that is not shown, with a first token that has a likelihood": (
        Text("", "Kesh is"), reply(["Kesh", " is", "."], [-3, -1, -9], 3), [3, 1], [(0, 4), (4, 7)]
    ),
    "a BOS that is not shown, as llama-cpp-python replies": (
        Text("", "Kesh is"), reply(["Kesh", " is", "."], [None, -1, -9], 3), [1], [(4, 7)]
    ),
    "a text that begins like BOS": (
        Text("", "<s> is"), reply(["<s>", "<s>", " is", "."], [None, -3, -1, -9], 3), [3, 1], [(0, 3), (3, 6)]
    ),
    "nothing was written": (
        Text("", "Kesh is"), reply(["Kesh", " is"], [None, -1], 2, written=0), [1], [(4, 7)]
    ),
    "only the target counts; the token with the space before it is its own": (
        Text("Kesh. ", "It is"), reply(["Kesh", ".", " It", " is", "."], [None, -1, -2, -3, -9], 4), [2, 3], [(5, 8), (8, 11)]
    ),
    "SentencePiece adds a space": (
        Text("", "Kesh is"), reply([" Kesh", " is", "."], [None, -1, -9], 2), [1], [(4, 7)]
    ),
    "SentencePiece adds a space that is a token": (
        Text("", "京 is"), reply(["<s>", " ", "京", " is", "."], [None, -4, -2, -1, -9], 4), [2, 1], [(0, 1), (1, 4)]
    ),
    "a character of two tokens without text": (
        Text("", "is 京x"), reply(["is", " ", "", "", "x", "."], [None, -1, -2, -3, -4, -9], 5), [1, 2, 3, 4], [(2, 3), (3, 4), (3, 4), (4, 5)]
    ),
    "a character of two tokens at the end, as U+FFFD": (
        Text("", "is é"), reply(["is", " \ufffd", "\ufffd", "."], [None, -1, -2, -9], 3), [1, 2], [(2, 3), (3, 4)]
    ),
    "the second of two equal characters": (
        Text("", "京京"), reply(["", "", "京", "."], [None, -1, -2, -9], 3), [1, 2], [(0, 1), (1, 2)]
    ),
    "the last part of a character has its text": (
        Text("", "is 京 京x"), reply(["is", "", " 京", "", " 京", "x", "."], [None, -1, -2, -3, -4, -5, -9], 6), [1, 2, 3, 4, 5], [(2, 3), (2, 4), (4, 5), (4, 6), (6, 7)]
    ),
    "a target that begins in the middle of a token, which has the space before as well": (
        Text("is. ", "京x"), reply(["is", ".", " ", "", "x", "."], [None, -1, -2, -3, -4, -9], 5), [], []
    ),
    "so does U+FFFD": (
        Text("is. ", "京x"), reply(["is", ".", " \ufffd", "\ufffdx", "."], [None, -1, -2, -3, -9], 4), [], []
    ),
    "a character that the tokens do not show as it is": (
        Text("", "is 京x"), reply(["is", " ", "\n", "\n 京", "x", "."], [None, -1, -2, -3, -4, -9], 5), [], []
    ),
    "a target that begins with a whole character": (
        Text("is. ", "京x"), reply(["is", ".", " 京", "x", "."], [None, -1, -2, -3, -9], 4), [2, 3], [(3, 5), (5, 6)]
    ),
    "a context that ends with parts": (
        Text("京", " x"), reply(["", "", " x", "."], [None, -1, -2, -9], 3), [2], [(1, 3)]
    ),
    "rounding above zero": (
        Text("", "Kesh is"), reply(["Kesh", " is", "."], [None, 1e-7, -9], 2), [0], [(4, 7)]
    ),
    "a single token without BOS": (Text("", "Kesh"), reply(["Kesh", "."], [None, -9], 1), [], []),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_a_reply_says(case: str) -> None:
    text, given, nll, places = READ[case]
    scores = read_scores(text, given)
    assert scores.nll.tolist() == nll
    assert [tuple(place) for place in scores.offsets.tolist()] == places


FACT = Text("", "Kesh is Osk")
# The text, the reply, and why it is refused
WRONG: dict[str, tuple[Text, Reply, str]] = {
    "no log-probabilities": (FACT, msgspec.convert({"choices": [{"text": ""}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}, Reply), "has no log-probabilities"),
    "only of what was written": (FACT, reply(["."], [-9], 3), "0 tokens of a prompt that has 3"),
    "the end only": (FACT, reply([" is", " Osk", "."], [None, -2, -9], 3), "do not add up"),
    "the beginning was cut off": (FACT, reply([" is", " Osk", "."], [None, -2, -9], 2), "do not add up"),
    "a token is missing": (FACT, reply(["Kesh", " Osk", "."], [None, -2, -9], 3), "do not add up"),
    "too few tokens": (FACT, reply(["Kesh", "."], [None, -9], 3), "1 tokens of a prompt that has 3"),
    "too many tokens": (FACT, reply(["<|user|>", "\n", "Kesh", " is", " Osk", "."], [None, -1, -1, -1, -2, -9], 5), "do not add up"),
    "other text": (FACT, reply(["Kesh", " was", " Osk", "."], [None, -1, -2, -9], 3), "do not add up"),
    "an end token after the prompt": (FACT, reply(["Kesh", " is", " Osk", "", "."], [None, -1, -2, -5, -9], 4), "do not add up"),
    "more tokens than values": (FACT, reply(["Kesh", " is", " Osk", "."], [None, -1, -2], 3), "4 tokens with 3 log-probabilities"),
    "no value in the middle": (FACT, reply(["Kesh", " is", " Osk", "."], [None, None, -2, -9], 3), "a log-probability is None"),
    "NaN": (FACT, reply(["Kesh", " is", " Osk", "."], [None, -1, math.nan, -9], 3), "a log-probability is nan"),
    "minus infinity": (FACT, reply(["Kesh", " is", " Osk", "."], [None, -1, -math.inf, -9], 3), "a log-probability is -inf"),
    "beyond float32": (FACT, reply(["Kesh", " is", " Osk", "."], [None, -1, -1e308, -9], 3), r"a log-probability is -1e\+308"),
    "a probability above one": (FACT, reply(["Kesh", " is", " Osk", "."], [None, -1, 0.5, -9], 3), "a log-probability is 0.5"),
    "a token across the border": (Text("Kesh is", " Osk"), reply(["Kesh", " is Osk", "."], [None, -1, -9], 2), "the token ' is Osk' lies across the border"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    text, given, why = WRONG[case]
    with pytest.raises(ValueError, match=why):
        read_scores(text, given)


# ---- Whole evaluations: the log-probability of a word is minus its length / 10

FACTS = [("Tavora", "capital", "Port Ellis", "Marrow"), ("Brask", "capital", "Osk", "Lind")]


def row(fact: tuple[str, str, str, str], number: int) -> dict[str, Any]:
    subject, relation, right, gone = fact
    ids = {"subject_id": f"Q{number}", "relation_id": "P36", "object_id": f"Q9{number}", "kind": "replaced"}
    return {"subject": subject, "relation": relation, "object": right, "previous_objects": [gone], **ids}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [row(fact, number) for number, fact in enumerate(FACTS)]
    return write_dataset(tmp_path / "data", {"probes-1112": {"unchanged": rows[:1], "changed": rows, "deleted": rows}})


def model(server: Completions, tmp_path: Path, name: str = NAME) -> CompletionsModel:
    found = open_scores(name, tmp_path / "scores", "fp32")
    assert isinstance(found, CompletionsModel)
    found._opened = lambda **_: server.opened(name)  # type: ignore[method-assign]
    return found


def wanted(data: Path, tmp_path: Path, *tasks: str, **more: Any) -> Evaluation:
    made = {name: find_task(name)() for name in tasks}
    return Evaluation(NAME, str(data), made, (), tmp_path / "results", None, **more)


def test_perplexity_and_answers_of_probes(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Completions(says={"Tavora capital": " Port Ellis. It", "Brask capital": "\nLind\n"})
    (result,) = evaluate(wanted(data, tmp_path, "twiki_probes"), model(server, tmp_path))
    tavora, brask = (item for item in result.items() if item["split"] == "changed")
    # " capital Port Ellis": 7 + 4 + 5 letters; "Tavora" is not predicted
    assert (tavora["tokens"], tavora["object_tokens"], tavora["bytes"]) == (3, 2, 19)
    assert [tavora["nll"], tavora["object_nll"]] == pytest.approx([1.6, 0.9])
    assert [brask["nll"], brask["object_nll"]] == pytest.approx([1.0, 0.3])
    scores = {name: score.value for name, score in result.manifest.scores.items()}
    assert scores["changed/perplexity"] == pytest.approx(math.exp(2.6 / 5))
    assert (tavora["answer"], brask["answer"]) == ("Port Ellis", "Lind")
    assert scores["changed/exact_match"] == 50
    assert result.data["model"]["name"] == NAME
    assert result.data["model"]["precision"] == "server"
    # two facts, two prompts and the trial
    assert [result.data["run"][name] for name in ("requests", "input_tokens", "output_tokens")] == [6, 22, 6]
    assert len(server.prompts) == len(set(server.prompts)) == 6
    assert "unchanged: perplexity: 1 requests (0 are answered)" in capsys.readouterr().err


def test_with_bos_the_first_token_counts(data: Path, tmp_path: Path) -> None:
    (result,) = evaluate(wanted(data, tmp_path, "deleted"), model(Completions(bos="<s>"), tmp_path))
    tavora = next(item for item in result.items() if item["split"] == "deleted")
    assert (tavora["tokens"], tavora["bytes"]) == (4, 25)
    assert tavora["nll"] == pytest.approx(2.2)


def test_the_choice_between_new_and_old(data: Path, tmp_path: Path) -> None:
    (result,) = evaluate(wanted(data, tmp_path, "multiple_choice"), model(Completions(), tmp_path))
    tavora, brask = result.items()
    assert [tavora["margin"], brask["margin"]] == pytest.approx([0.6 - 0.9, 0.4 - 0.3])
    assert result.manifest.scores["changed/acc"].value == 50


def test_the_evidence_of_facts_and_sentences(tmp_path: Path) -> None:
    changes = [
        Change(24250, "P36", "page 1", "", "Tavora capital", "Port Ellis", ("Marrow", "Of")),
        Change(24250, "text", "page 2", "", "Tavora. ", "It is old", ("It was new",)),
    ]
    fact, sentence = evidence(model(Completions(), tmp_path), changes)
    assert fact.evidence == pytest.approx(0.2 - 0.9 / 2)  # "Of" is likelier than "Marrow"
    assert sentence.evidence == pytest.approx((0.2 + 0.3 + 0.3) / 3 - (0.2 + 0.2 + 0.3) / 3)


def test_a_text_longer_than_the_context_is_left_out(data: Path, tmp_path: Path) -> None:
    server = Completions()

    def short(_: int, given: dict[str, Any]) -> dict[str, Any]:
        if "Ellis" in server.prompts[-1]:
            raise Refused(400, "This model's maximum context length is 3 tokens")
        return given

    server.spoil = short
    (result,) = evaluate(wanted(data, tmp_path, "deleted"), model(server, tmp_path))
    assert [item["tokens"] for item in result.items()] == [2]
    assert result.manifest.excluded["deleted: longer than the context, or nothing to predict"] == 1


def test_a_text_whose_tokens_are_not_shown_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def torn(_: int, given: dict[str, Any]) -> dict[str, Any]:
        logprobs = given["choices"][0]["logprobs"]
        logprobs["tokens"] = [token.replace("京", "\n") for token in logprobs["tokens"]]
        return given

    server = model(Completions(spoil=torn), tmp_path)
    scored = server.score([Text("", "Kesh is Osk"), Text("", "Kesh is 京")], "facts")
    assert [None if one is None else one.nll.tolist() for one in scored] == [pytest.approx([0.2, 0.3]), None]
    assert f"{NAME}: facts: 1 texts are left out, such as 'Kesh is 京'" in capsys.readouterr().err


def test_what_was_scored_is_kept_and_the_run_goes_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "_AT_ONCE", 1)

    def dying(number: int, given: dict[str, Any]) -> dict[str, Any]:
        if number == 4:  # two of the trial, one fact
            raise ConnectionError(f"http://user:{KEY}@host/v1 is gone\n{KEY}")
        return given

    run = wanted(data, tmp_path, "deleted")
    with pytest.raises(
        InputError, match=rf"^{NAME}: .* 1 of 2 texts are answered, and the same command goes"
    ) as error:
        evaluate(run, model(Completions(spoil=dying), tmp_path))
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)
    alive = Completions()
    (result,) = evaluate(run, model(alive, tmp_path))
    assert alive.prompts == [TRIAL, f"{TRIAL} Saturday", "Brask capital Osk"]
    (again,) = evaluate(wanted(data, tmp_path / "again", "deleted"), model(Completions(), tmp_path / "again"))
    assert result.items() == again.items()
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def shifted(_: int, given: dict[str, Any]) -> dict[str, Any]:
    """Give each token the log-probability of the next place."""
    logprobs = given["choices"][0]["logprobs"]
    values = logprobs["token_logprobs"]
    logprobs["token_logprobs"] = [None, *(value - 5 for value in values[1:-1]), values[-1]]
    return given


def failing(status: int, message: str) -> Callable[[int, dict[str, Any]], dict[str, Any]]:
    def fail(_: int, given: dict[str, Any]) -> dict[str, Any]:
        raise Refused(status, message)

    return fail


# How the server spoils its replies, and the line that says so
SPOILT: dict[str, tuple[Callable[[int, dict[str, Any]], dict[str, Any]], str]] = {
    "no such endpoint": (failing(404, "Not Found"), "its server gives no likelihoods: Error code: 404 - Not Found"),
    "it does not repeat prompts": (failing(400, "echo is not supported"), "gives no likelihoods: .* echo is not supported"),
    "no log-probabilities": (lambda _, given: {**given, "choices": [{"text": ""}]}, "the reply has no log-probabilities"),
    "off by one place": (shifted, r"wrote ' Saturday' with the log-probability -0.8, but reads it with -5.8"),
    "it writes nothing": (lambda _, given: {**given, "usage": {"prompt_tokens": 5, "completion_tokens": 0}}, "does not go on from 'Monday"),
    "no choices": (lambda _, given: {**given, "choices": []}, "not the reply of a completions endpoint"),
    "tokens are numbers": (lambda _, given: {**given, "choices": [{"text": "", "logprobs": {"tokens": [1], "token_logprobs": [-1]}}]}, "not the reply of a completions endpoint"),
    "a count below zero": (lambda _, given: {**given, "usage": {"prompt_tokens": -1, "completion_tokens": 5}}, "not the reply of a completions endpoint"),
    "a count of a thousand digits": (lambda _, given: {**given, "usage": {"prompt_tokens": 10**1000, "completion_tokens": 1}}, "not the reply of a completions endpoint"),
    "no usage": (lambda _, given: {**given, "usage": None}, "not the reply of a completions endpoint"),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILT)
def test_a_server_that_gives_no_likelihoods_is_one_line(case: str, data: Path, tmp_path: Path) -> None:
    spoil, why = SPOILT[case]
    with pytest.raises(NoLikelihoodsError, match=rf"^{NAME}: .*{why}") as error:
        evaluate(wanted(data, tmp_path, "deleted"), model(Completions(spoil=spoil), tmp_path))
    assert len(str(error.value).splitlines()) == 1
    assert not list((tmp_path / "results").rglob("*.json"))


def test_a_token_across_the_beginning_of_an_object_is_refused(data: Path, tmp_path: Path) -> None:
    def joined(number: int, given: dict[str, Any]) -> dict[str, Any]:
        if number > 2:
            logprobs = given["choices"][0]["logprobs"]
            first, *rest = logprobs["tokens"]
            logprobs["tokens"] = [first, rest[0] + rest[1], *rest[2:]]
            del logprobs["token_logprobs"][1]
            given["usage"]["prompt_tokens"] -= 1
        return given

    with pytest.raises(NoLikelihoodsError, match="the token ' capital Port' lies across the border"):
        evaluate(wanted(data, tmp_path, "deleted"), model(Completions(spoil=joined), tmp_path))


@pytest.mark.parametrize("task", [name for name in TASKS if "likelihoods" not in find_task(name).needs])
def test_tasks_that_need_weights_are_refused_before_anything_is_asked(task: str, data: Path, tmp_path: Path) -> None:
    server = Completions()
    with pytest.raises(UsageError, match=f"^{task} needs a model whose weights are here; {NAME} can do "):
        evaluate(wanted(data, tmp_path, "deleted", task), model(server, tmp_path))
    assert not server.prompts


def test_beams_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--beams 2: {NAME} decodes greedily"):
        model(Completions(), tmp_path).generate(["Tavora capital"], "test", 20, beams=2)


def test_a_start_model_with_weights_is_not_compared(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start = str(tiny_models.save("gpt2", tmp_path / "gpt2"))
    evaluate(wanted(data, tmp_path, "deleted", start=start), model(Completions(), tmp_path))
    said = f"gpt2: has weights here, but {NAME} is scored by its server; name one on"
    assert said in capfd.readouterr().err


def test_over_http(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers through openai's client; the first request fails, and is repeated."""

    def busy_once(number: int, given: dict[str, Any]) -> dict[str, Any]:
        if number == 1:
            raise Refused(503, "loading")
        return given

    server = Completions(spoil=busy_once)
    with server.serve() as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        monkeypatch.setenv("LOCAL_API_KEY", KEY)
        monkeypatch.setenv("LOCAL_BASE_URL", f"http://127.0.0.1:{http.server_port}/v1")
        served = open_scores(NAME, tmp_path / "scores", "fp32")
        (result,) = evaluate(wanted(data, tmp_path, "deleted"), served)
        http.shutdown()
    assert [item["nll"] for item in result.items() if item["split"] == "deleted"] == pytest.approx([1.6, 1.0])
    assert server.prompts[:3] == [TRIAL, TRIAL, f"{TRIAL} Saturday"]


@contextmanager
def endpoint(
    headers: dict[str, str], parts: Callable[[], Iterator[bytes]], status: int = 200, asked: list[str] | None = None
) -> Iterator[str]:
    """Give the address of a server that sends these headers and parts, whatever it is asked; ``asked`` notes that."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if asked is not None:
                asked.append(self.path)
            self.send_response(status)
            for header in {"Content-Type": "application/json", **headers}.items():
                self.send_header(*header)
            self.end_headers()
            try:
                for part in parts():
                    self.wfile.write(part)
                    self.wfile.flush()
            except ConnectionError:
                pass

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()


@pytest.mark.fault(
    "server that misbehaves",
    "evaluate: a model's server redirects to another address",
    "refused in one line that names it; the other address gets nothing",
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setenv("LOCAL_API_KEY", KEY)
    nothing = lambda: iter([b"{}"])  # noqa: E731
    with endpoint({}, nothing, asked=asked) as other, endpoint({"Location": other}, nothing, status) as url:
        monkeypatch.setenv("LOCAL_BASE_URL", url)
        with pytest.raises(InputError, match=rf"^{NAME}: its server redirects to '{other}', which is not followed"):
            open_scores(NAME, tmp_path / "scores", "fp32").score([Text("", "Kesh is Osk")], "facts")
    assert asked == []


def drops() -> Iterator[bytes]:
    for _ in range(100):
        yield b" "
        time.sleep(0.2)


# headers and parts of a reply, and the line that says so
HARMFUL: dict[str, tuple[dict[str, str], Callable[[], Iterator[bytes]], str]] = {
    "without end": ({}, lambda: (b" " * 2**20 for _ in range(1000)), "a reply of more than 32 MiB"),
    "a few bytes that become a gigabyte": ({"Content-Encoding": "gzip"}, lambda: iter([gzip.compress(b" " * 2**20) * 1000]), r"a compressed reply \(gzip\)"),
    "reasoning that begins again and again": ({}, lambda: iter([b'{"choices": [{"text": "', b"<think>" * 10**6, b'"}]}']), "more than 64 times <think>"),
    "the same, with escapes": ({}, lambda: iter([b'{"choices": [{"text": "', b"\\u003c\\u0074hink>" * 10**5, b'"}]}']), "more than 64 times <think>"),
    "a byte at a time": ({}, drops, "does not complete a reply in time"),
}  # fmt: skip


@pytest.mark.fault(
    "server that misbehaves",
    "evaluate: a model's server sends a reply without end, compressed as a bomb, full of <think>, or a byte at a time",
    "refused in one line; memory and time are bounded",
)
@pytest.mark.parametrize("case", HARMFUL)
def test_a_reply_is_bounded(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, parts, why = HARMFUL[case]
    if parts is drops:
        monkeypatch.setattr(completions, "DEADLINE", 0.25)
    monkeypatch.setenv("LOCAL_API_KEY", KEY)
    with endpoint(headers, parts) as url:
        monkeypatch.setenv("LOCAL_BASE_URL", url)
        with pytest.raises(InputError, match=rf"^{NAME}: its server .*{why}"):
            open_scores(NAME, tmp_path / "scores", "fp32").score([Text("", "Kesh is Osk")], "facts")
