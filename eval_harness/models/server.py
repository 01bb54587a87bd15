"""Models that a provider of inspect-ai serves: their names, client, costs, errors and cache."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.options import did_you_mean
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.models.model import REPLIES, Model
from temporalwiki.eval_harness.results import PROVIDER
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.methods import needs

# a provider that completes texts and gives likelihoods -> the provider that asks the same server questions
COMPLETIONS = {"openai-api-completions": "openai-api", "vllm-completions": "vllm"}
# the providers of inspect-ai 0.3.285
PROVIDERS = frozenset((
    "anthropic", "azureai", "bedrock", "cloudflare", "deepseek", "fireworks", "google",
    "grok", "groq", "hf", "hf-inference-providers", "litellm-proxy", "llama-cpp-python", "meta",
    "mistral", "mockllm", "moonshot", "ollama", "openai", "openai-api", "openrouter",
    "perplexity", "sagemaker", "sambanova", "sglang", "together", "transformer_lens", "vllm",
    *COMPLETIONS,
))  # fmt: skip
RETRIES = 7  # repetitions of a failed request: with inspect-ai's pauses, about six minutes
MOST_TOKENS = 2**40  # the largest count of tokens that a server may report
DEADLINE = 600  # seconds until a reply is whole: a server that sends a byte a second must not hold a run for ever

# these organizations have the name of a provider, and open models on the Hub as well
_ON_HUB = re.compile(r"google/(?!gemini)[^/]+|openai/(?:gpt-oss|whisper|clip|privacy-filter)[^/]*|[^/]+/[^/]+@[^/]+")
_REPLY_TOKENS = 2048  # the most tokens of a reply, its reasoning included
_AT_ONCE = 1000  # requests that wait for the rate limit
_LARGEST = 1 << 25  # bytes of a reply
_MOST_REASONINGS = 64  # in a reply
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=//)[^/@\s]+@")


class NoLikelihoodsError(InputError):
    """A server gives no likelihoods of a text, or some that cannot be right; the same request would fail again."""


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
    """Raise UsageError for a name such as ``opnai-api/SERVICE/NAME``, which is neither a Hub id nor a folder."""
    parts = reference.split("/")
    near = did_you_mean(parts[0], PROVIDERS)
    if len(parts) > 2 and near and parts[0] not in ("", ".", "..", "~", *PROVIDERS) and not Path(parts[0]).exists():
        raise UsageError(f"{reference}: no such folder, and no provider {parts[0]!r}{near}")


@dataclass
class ProviderModel(Model):
    """A model that a provider of inspect-ai serves. It has the same name, revision and description as a CachedModel.

    Replies are cached as soon as they arrive, so that nothing is paid for twice.
    """

    reference: str  # PROVIDER/NAME
    cache_folder: Path
    start: Model | None = None  # the model that it started from
    costs: Counter[str] = field(default_factory=Counter)  # "requests", "input_tokens", "output_tokens" of this run

    @cached_property
    def revision(self) -> str:
        """A hash of the name and of the address that serves it: a provider does not tell when its model changes."""
        return fingerprint(self.reference, getattr(self._model.api, "base_url", None))

    def check(self) -> None:
        """Raise UsageError or InputError if it cannot be asked: no package, no key, no such provider."""
        self.revision  # noqa: B018 - makes the client
        if self.state.num_processes > 1:
            raise UsageError(f"{self.reference}: is asked by one process; start the command without accelerate launch")

    def _answers(
        self,
        questions: Sequence[Any],
        what: str,
        unit: str,
        cached: Callable[[Sequence[Any]], Mapping[int, Any]],
        ask: Callable[[Sequence[Any], Progress], Coroutine[Any, Any, None]],
        longest: int,
    ) -> list[Any]:
        """Return the answer to each question from the cache, where ``ask`` puts missing ones.

        An answer that ``ask`` does not cache is None. ``longest`` is the most tokens of a reply. Raises InputError if
        the provider fails; earlier answers are kept.
        """
        distinct = list(dict.fromkeys(questions))
        known = cached(distinct)
        missing = [question for i, question in enumerate(distinct) if i not in known]
        if missing:
            size = sum(len(_text(question).encode("utf-8", "surrogatepass")) for question in missing)
            say(
                f"{self.reference}: {what}: {len(missing):,} requests ({len(known):,} are answered), about "
                f"{size // 4:,} tokens, and at most {longest * len(missing):,} tokens of replies"
            )
            before = Counter(self.costs)
            try:
                with Progress(what, len(distinct), unit, len(known)) as progress:
                    _finish(ask(missing, progress))
            except NoLikelihoodsError:
                raise
            except Exception as error:  # noqa: BLE001 - each provider has errors of its own
                kept = len(cached(distinct))
                raise InputError(
                    f"{self.reference}: {self._without_secrets(error)}; {kept:,} of {len(distinct):,} {unit}s are "
                    "answered, and the same command goes on from there"
                ) from None
            finally:
                spent = self.costs - before
                say(
                    f"{self.reference}: {what}: {spent['requests']:,} requests, {spent['input_tokens']:,} tokens, "
                    f"{spent['output_tokens']:,} tokens of replies"
                )
            known = cached(distinct)
        answer_to = {question: known.get(i) for i, question in enumerate(distinct)}
        return [answer_to[question] for question in questions]

    def _pay(self, input_tokens: int, output_tokens: int) -> None:
        self.costs["requests"] += 1
        for name, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
            self.costs[name] += tokens if 0 <= tokens <= MOST_TOKENS else 0

    @cached_property
    def _model(self) -> Any:
        return self._opened()

    def _opened(self, **options: Any) -> Any:
        """Return a new client of inspect-ai. Raises InputError for an unknown provider, a missing package or key."""
        with needs("api"):
            from inspect_ai.model import get_model
        try:
            opened = get_model(self.reference, memoize=False, **options)
        except Exception as error:  # noqa: BLE001 - each provider has errors of its own
            why = self._without_secrets(error)
            hint = f"; for a model on the Hub, write {self.reference}@main" if self.reference.count("/") == 1 else ""
            raise InputError(f"{self.reference}: {why}{hint}") from None
        if not re.fullmatch(r"[!-~]*", str(getattr(opened.api, "api_key", None) or "")):
            raise InputError(f"{self.reference}: its key has a line break, a blank or another letter that no key has")
        client = getattr(opened.api, "http_client", None)  # only providers whose address a user can choose have it
        if isinstance(client, httpx2.AsyncClient):
            client.headers["Accept-Encoding"] = "identity"
            client.event_hooks = {**client.event_hooks, "response": [*client.event_hooks["response"], _bound]}
        return opened

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
        # in one line, and as Python shows texts and bytes
        shown = [(in_one_line(one), ascii(one)[1:-1], str(os.fsencode(one))[2:-1]) for one in secrets]
        secrets.update(*shown)
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) > 3:
                text = text.replace(secret, "***")
        text = _IN_URL.sub("", text)
        return f"{text[:300]}..." if len(text) > 300 else text or type(error).__name__


@dataclass
class InterfaceModel(ProviderModel):
    """A model that answers questions."""

    judge: Model | None = None  # reads the replies as well; its agreement with the rules is reported
    precision: str = PROVIDER

    can = frozenset({REPLIES})
    refusal = "{reference} gives no likelihoods, which {tasks} needs; it can do {able}{hint}"

    @property
    def hint(self) -> str:
        """The name under which the same server gives likelihoods, if it does."""
        provider, _, name = self.reference.partition("/")
        twin = next((completions for completions, asked in COMPLETIONS.items() if asked == provider), None)
        return f"; if its server completes texts, name it {twin}/{name}" if twin else ""

    def check(self) -> None:
        """Raise UsageError or InputError if it or its judge cannot be asked: no package, no key, no such provider."""
        super().check()
        if self.judge is not None:
            self.judge.check()

    def ask(self, questions: Sequence[str], what: str) -> list[str]:
        """Return the reply to each question. Raises InputError if the provider fails; earlier replies are kept."""
        policy = {"questions": 1, "max_tokens": _REPLY_TOKENS, "temperature": 0}
        cache = ScoreCache(self.cache_folder, self.revision, policy, local=False)

        async def one(question: str) -> None:
            output = await self._model.generate(question)
            usage = output.usage
            self._pay(usage.input_tokens if usage else 0, usage.output_tokens if usage else 0)
            if output.error or not output.choices:
                raise InputError(output.error or "a reply without choices")
            cache.add_answers([(question, output.completion)])

        def ask(missing: Sequence[str], progress: Progress) -> Coroutine[Any, Any, None]:
            return ask_each(missing, one, progress)

        return self._answers(questions, what, "question", cache.answers, ask, _REPLY_TOKENS)

    @cached_property
    def _model(self) -> Any:
        with needs("api"):
            from inspect_ai.model import GenerateConfig
        return self._opened(
            config=GenerateConfig(
                max_tokens=_REPLY_TOKENS, temperature=0, max_retries=RETRIES, attempt_timeout=DEADLINE
            )
        )


async def ask_each(
    questions: Sequence[Any], one: Callable[[Any], Coroutine[Any, Any, None]], progress: Progress
) -> None:
    """Ask all questions at once; after an error, cancel the rest."""

    async def counted(question: Any) -> None:
        await one(question)
        progress.update()

    for at in range(0, len(questions), _AT_ONCE):
        tasks = [asyncio.ensure_future(counted(question)) for question in questions[at : at + _AT_ONCE]]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _Bounded(httpx2.AsyncByteStream):
    """The body of a reply. Raises InputError if it is longer than _LARGEST."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._body:
            size += len(part)
            if size > _LARGEST:
                raise InputError(f"its server sends a reply of more than {_LARGEST >> 20} MiB")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound(reply: httpx2.Response) -> None:
    """Bound the size of a reply, and read it.

    Raises InputError if it is compressed, because a few bytes could become gigabytes, if it leads to another address,
    which would get the questions, or if it opens its reasoning again and again: inspect-ai would take minutes.
    """
    if reply.has_redirect_location:
        to = _IN_URL.sub("", in_one_line(reply.headers["location"])[:200])
        raise InputError(f"its server redirects to {to!a}, which is not followed; name that address if you trust it")
    if (coding := reply.headers.get("content-encoding", "identity")) != "identity":
        raise InputError(f"its server sends a compressed reply ({coding}), which was not asked for")
    reply.stream = _Bounded(reply.stream)
    content = await reply.aread()
    with suppress(msgspec.MsgspecError, RecursionError):  # the client says what is wrong
        content = msgspec.json.encode(msgspec.json.decode(content))  # without escapes
    if content.count(b"<think") > _MOST_REASONINGS:
        raise InputError(f"its server sends a reply with more than {_MOST_REASONINGS} times <think>")


def _text(question: str | Text) -> str:
    return question if isinstance(question, str) else question.context + question.target


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Wait for a coroutine. In a notebook, which has an event loop, another thread runs it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()
