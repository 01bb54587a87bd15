"""A model behind an interface, which is asked questions through inspect-ai: it gives replies, but no likelihoods."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from accelerate import PartialState

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.options import did_you_mean
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.builders.ckl.templates import find_template, one_line
from temporalwiki.eval_harness import replies
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.references import choices_of, right_answers
from temporalwiki.eval_harness.score_cache import ScoreCache
from temporalwiki.methods import needs
from temporalwiki.methods.processes import processes

PRECISION = "api"  # of a model whose precision nobody tells
MEASURES = ("exact_match", "f1", *replies.OUTCOMES, "judge_agreement")
# the providers of inspect-ai 0.3.285 that answer questions
PROVIDERS = frozenset((
    "anthropic", "azureai", "bedrock", "cloudflare", "deepseek", "fireworks", "google",
    "grok", "groq", "hf", "hf-inference-providers", "litellm-proxy", "llama-cpp-python", "meta",
    "mistral", "mockllm", "moonshot", "ollama", "openai", "openai-api", "openrouter",
    "perplexity", "sagemaker", "sambanova", "sglang", "together", "transformer_lens", "vllm",
))  # fmt: skip
# these organizations have the name of a provider, and open models on the Hub as well
_ON_HUB = re.compile(r"google/(?!gemini)[^/]+|openai/(?:gpt-oss|whisper|clip|privacy-filter)[^/]*|[^/]+/[^/]+@[^/]+")
_MOST_TOKENS = 2048  # of a reply, its reasoning included
_RETRIES = 7  # of a request: with inspect-ai's pauses, about six minutes
_AT_ONCE = 1000  # questions that wait for inspect-ai's rate limit
_ASK = (
    "{question}\nReply with the answer only, a name without an explanation. "
    'If you do not know it, reply "I don\'t know".'
)
_JUDGE = """\
Question: {question}
Right answers: {right}
Earlier answers, which are out of date: {gone}
Reply of a model: {reply}

Which answer does the reply give? "new": a right one; "old": an earlier one; "both": a right one and an earlier one; \
"neither": another one; "abstained": none, it refuses or does not know. Reply with one of these five words only."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=//)[^/@\s]+@")

Item = dict[str, Any]
Row = Mapping[str, Any]


def is_interface(reference: str) -> bool:
    """Return whether a name is that of a model behind an interface, such as "openai/gpt-5".

    A local folder or file of that name wins. ``google/NAME`` (but Gemini), ``openai/gpt-oss...`` and names
    with a revision, ``ORG/NAME@main``, are on the Hub.
    """
    provider, slash, name = reference.partition("/")
    if not slash or not name or provider not in PROVIDERS or _ON_HUB.fullmatch(reference):
        return False
    try:
        return not Path(reference).exists()
    except (OSError, ValueError):  # not a path
        return True


def check_provider(reference: str) -> None:
    """Raise UsageError for a name such as ``opnai-api/SERVICE/NAME``, which no Hub id and no folder has."""
    parts = reference.split("/")
    near = did_you_mean(parts[0], PROVIDERS)
    if len(parts) > 2 and near and parts[0] not in ("", ".", "..", "~", *PROVIDERS) and not Path(parts[0]).exists():
        raise UsageError(f"{reference}: no such folder, and no provider {parts[0]!r}{near}")


@dataclass
class InterfaceModel:
    """A model that a provider of inspect-ai serves. It has the same name, revision and description as a CachedModel.

    Replies are cached as soon as they arrive, so that no question is paid for twice.
    """

    reference: str  # PROVIDER/NAME
    cache_folder: Path
    judge: InterfaceModel | None = None  # reads the replies as well; its agreement with the rules is reported
    start: Any = None  # never: without likelihoods, models are not compared fact by fact
    precision: str = PRECISION
    costs: Counter[str] = field(default_factory=Counter)  # "requests", "input_tokens", "output_tokens" of this run

    encoder_decoder = False  # it reads questions as other models do

    @property
    def name(self) -> str:
        """Its name in result files."""
        return self.reference

    @cached_property
    def state(self) -> PartialState:
        """The processes of this run."""
        return processes()

    @cached_property
    def revision(self) -> str:
        """A hash of the name and of the address that serves it: a provider does not tell when its model changes."""
        return fingerprint(self.reference, getattr(self._model.api, "base_url", None))

    def check(self) -> None:
        """Raise UsageError or InputError if it cannot be asked: no package, no key, no such provider."""
        self.revision  # noqa: B018 - makes the client
        if self.state.num_processes > 1:
            raise UsageError(f"{self.reference}: is asked by one process; start the command without accelerate launch")
        if self.judge is not None:
            self.judge.check()

    def training(self) -> dict[str, Any]:
        """Return how it was trained: nothing is known."""
        return {"method": None, "trained_on": [], "base": None}

    def ask(self, questions: Sequence[str], what: str) -> list[str]:
        """Return the reply to each question. Raises InputError if the provider fails; earlier replies are kept."""
        policy = {"questions": 1, "max_tokens": _MOST_TOKENS, "temperature": 0}
        cache = ScoreCache(self.cache_folder, self.revision, policy, local=False)
        distinct = list(dict.fromkeys(questions))
        known = cache.answers(distinct)
        missing = [question for i, question in enumerate(distinct) if i not in known]
        if missing:
            size = sum(len(question.encode()) for question in missing)
            say(
                f"{self.reference}: {what}: {len(missing):,} requests ({len(known):,} are answered), about "
                f"{size // 4:,} tokens, and at most {_MOST_TOKENS * len(missing):,} tokens of replies"
            )
            before = Counter(self.costs)
            try:
                with Progress(what, len(distinct), "question", len(known)) as progress:
                    _finish(self._ask_all(missing, cache, progress))
            except Exception as error:  # noqa: BLE001 - each provider has errors of its own
                kept = len(cache.answers(distinct))
                raise InputError(
                    f"{self.reference}: {self._without_secrets(error)}; {kept:,} of {len(distinct):,} questions are "
                    "answered, and the same command goes on from there"
                ) from None
            finally:
                spent = self.costs - before
                say(
                    f"{self.reference}: {what}: {spent['requests']:,} requests, {spent['input_tokens']:,} tokens, "
                    f"{spent['output_tokens']:,} tokens of replies"
                )
        answers = cache.answers(distinct)
        reply_to = {question: answers[i] for i, question in enumerate(distinct)}
        return [reply_to[question] for question in questions]

    async def _ask_all(self, questions: Sequence[str], cache: ScoreCache, progress: Progress) -> None:
        async def one(question: str) -> None:
            output = await self._model.generate(question)
            self.costs["requests"] += 1
            if output.usage is not None:
                self.costs["input_tokens"] += output.usage.input_tokens
                self.costs["output_tokens"] += output.usage.output_tokens
            if output.error:
                raise InputError(output.error)
            cache.add_answers([(question, output.completion)])
            progress.update()

        for at in range(0, len(questions), _AT_ONCE):
            tasks = [asyncio.ensure_future(one(question)) for question in questions[at : at + _AT_ONCE]]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    @cached_property
    def _model(self) -> Any:
        with needs("api"):
            from inspect_ai.model import GenerateConfig, get_model
        config = GenerateConfig(max_tokens=_MOST_TOKENS, temperature=0, max_retries=_RETRIES)
        try:
            return get_model(self.reference, config=config, memoize=False)
        except Exception as error:  # noqa: BLE001 - each provider has errors of its own
            why = self._without_secrets(error)
            hint = f"; for a model on the Hub, write {self.reference}@main" if self.reference.count("/") == 1 else ""
            raise InputError(f"{self.reference}: {why}{hint}") from None

    def _without_secrets(self, error: BaseException) -> str:
        """Return an error in one short line, without any key that this process knows."""
        if (attempt := getattr(error, "last_attempt", None)) is not None:  # the last of several, as tenacity wraps it
            error = attempt.exception() or error
        # inspect-ai puts the whole request before the provider's words; openai leaves out a body that it does not know
        said = str(getattr(error, "provider_message", "") or getattr(error, "message", "") or error)
        body = getattr(error.__cause__ or error, "body", None)
        said = f"{said}: {body}" if body and " - " not in said else said
        text = in_one_line(re.sub(r"\[/?[a-z ]*\]", "", said))
        key = getattr(getattr(self.__dict__.get("_model"), "api", None), "api_key", None)
        secrets = {value for name, value in os.environ.items() if _SECRET.search(name)}
        secrets |= {str(key)} if key else set()
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) > 3:
                text = text.replace(secret, "***")
        text = _IN_URL.sub("", text)
        return f"{text[:300]}..." if len(text) > 300 else text or type(error).__name__


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Wait for a coroutine. In a notebook, which has an event loop, another thread runs it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def question_about(row: Row, as_of: str = "") -> str:
    """Return the question about the object of a fact: the relation's own, or a plain one. ``as_of`` is a date."""
    subject, relation = one_line(row["subject"]), one_line(row["relation"])
    template = find_template(str(row.get("relation_id")), relation)
    question = template.ask(subject) if template else f'Which name completes "{subject} {relation}"?'
    return f"As of {one_line(as_of)}: {question}" if as_of else question


def read_replies(model: InterfaceModel, questions: Sequence[str], rows: Sequence[Row], what: str) -> list[Item]:
    """Ask the questions, and return the reply to each, its answer, EM and F1, and its outcome by the rules.

    If the model has a judge, "judge" is the outcome by the judge, and "judge_agreement" whether it is the same.
    """
    said = model.ask([_ASK.format(question=question) for question in questions], what)
    items: list[Item] = []
    for row, reply in zip(rows, said, strict=True):
        outcome, answer = replies.read(reply, row)
        right = right_answers(row)
        shares: Item = {name: float(name == outcome) for name in replies.OUTCOMES}
        scores: Item = {"exact_match": exact_match(answer, right), "f1": f1(answer, right)}
        items.append({"reply": reply, "answer": answer, **scores, **shares})
    if model.judge is not None:
        prompts = [
            _JUDGE.format(
                question=question,
                right="; ".join(right_answers(row)),
                gone="; ".join(choices_of(row)[1]) or "none",
                reply=replies.without_reasoning(item["reply"]) or "(empty)",
            )
            for question, row, item in zip(questions, rows, items, strict=True)
        ]
        for item, verdict in zip(items, model.judge.ask(prompts, f"{what}: judge"), strict=True):
            words = re.findall(r"[a-z]+", replies.without_reasoning(verdict).lower())
            judged = next((word for word in words if word in replies.OUTCOMES), None)
            item["judge"] = judged
            item["judge_agreement"] = None if judged is None else item[judged]
    return items
