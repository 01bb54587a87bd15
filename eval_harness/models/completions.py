"""A model behind a completions endpoint: it continues a text, and returns how likely each token of the text is.

vLLM, llama-cpp-python and other servers repeat a prompt (``echo``) with the log-probability of each token. Some of
them make mistakes. So the tokens must add up to the prompt, and a trial checks that a token has the same likelihood
when the server writes it and when it reads it.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.models.model import LIKELIHOODS
from temporalwiki.eval_harness.models.server import (
    DEADLINE,
    MOST_TOKENS,
    RETRIES,
    NoLikelihoodsError,
    ProviderModel,
    ask_each,
)
from temporalwiki.eval_harness.results import SERVER
from temporalwiki.eval_harness.scoring import Text, TokenScores, shown
from temporalwiki.methods.packing import Ints

_VERSION = 1  # raise it with a change that moves a score: cached scores of other versions are not used
_TRIAL = "Monday, Tuesday, Wednesday, Thursday, Friday,"
_NOISE = 0.25  # nats between reading and writing a token: servers compute in half precision
_ROUNDING = 1e-3  # nats that a log-probability may be above zero
_LEAST = -1e30  # the smallest log-probability: scores are kept in float32
_PART = "\ufffd"  # many servers write this for a part of a character
_TOO_LONG = re.compile(r"context (?:length|window)", re.IGNORECASE)  # as vLLM and llama-cpp-python say it
_REFUSED = frozenset((400, 404, 405, 422, 501))  # from servers without the endpoint or ``echo``


class Logprobs(msgspec.Struct):
    """The tokens of a reply. The first one has no log-probability, because nothing comes before it."""

    tokens: list[str]
    token_logprobs: list[float | None]


class _Choice(msgspec.Struct):
    text: str
    logprobs: Logprobs | None = None


_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Usage(msgspec.Struct):
    prompt_tokens: _Count
    completion_tokens: _Count


class Reply(msgspec.Struct):
    """The reply of a completions endpoint."""

    choices: list[_Choice]
    usage: _Usage


_Complete = Callable[..., Awaitable[Reply | None]]


@dataclass
class CompletionsModel(ProviderModel):
    """A model that scores and continues texts as a CachedModel does. The server tokenizes them.

    The server also decides whether the model reads BOS. If it does not tell the likelihood of the first token, this
    token does not count, as for a local model without BOS.
    """

    precision: str = SERVER
    _tried: bool = False

    can = frozenset({LIKELIHOODS})
    refusal = "{tasks} needs a model whose weights are here; {reference} can do {able}"

    def score(self, texts: Sequence[Text], what: str) -> list[TokenScores | None]:
        """Return each text's scores, or None for a text that cannot be scored.

        Such a text is longer than the context, has nothing to predict, or got a reply that does not show where the
        tokens of a character end.

        Raises NoLikelihoodsError for likelihoods that are missing or cannot be right, and InputError if the server
        fails; earlier scores are kept.
        """
        cache = ScoreCache(self.cache_folder, self.revision, {"likelihoods": _VERSION}, local=False)
        unread: list[Text] = []

        async def ask(missing: Sequence[Text], progress: Progress) -> None:
            async def one(text: Text) -> None:
                reply = await complete(text.context + text.target, 1, echo=True)
                scores = None if reply is None else self._read(text, reply)
                if scores is not None and len(scores.nll):
                    cache.add_scores([(text, scores)])
                elif scores is not None:
                    unread.append(text)

            async with self._server() as complete:
                if not self._tried:
                    await self._try(complete)
                    self._tried = True
                await ask_each(missing, one, progress)

        found = self._answers(texts, what, "text", cache.scores, ask, 1)
        if unread:
            say(
                f"{self.reference}: {what}: {len(unread):,} texts are left out, such as {shown(unread[0])}: their "
                "tokens are not shown, or cannot be predicted"
            )
        return found

    def generate(
        self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int = 1, whole: bool = False
    ) -> list[str | None]:
        """Return each prompt's answer, the first sentence unless ``whole``; None for a prompt that is too long.

        Raises UsageError for more than one beam, and InputError if the server fails; earlier answers are kept.
        """
        if beams != 1:
            raise UsageError(f"--beams {beams}: {self.reference} decodes greedily; leave it out")
        policy = {"completions": _VERSION, "max_new_tokens": max_new_tokens} | ({"whole": True} if whole else {})
        cache = ScoreCache(self.cache_folder, self.revision, policy, local=False)

        async def ask(missing: Sequence[str], progress: Progress) -> None:
            async def one(prompt: str) -> None:
                reply = await complete(prompt, max_new_tokens)
                if reply is not None:
                    said = reply.choices[0].text
                    cache.add_answers([(prompt, said if whole else answer(said))])

            async with self._server() as complete:
                await ask_each(missing, one, progress)

        return self._answers(prompts, what, "prompt", cache.answers, ask, max_new_tokens)

    def check_border(self, text: Text, scores: TokenScores, border: int) -> None:
        """Raise NoLikelihoodsError if a token of the server has text on both sides of a border."""
        try:
            check_border(text.context + text.target, scores.offsets, border)
        except ValueError as error:
            raise NoLikelihoodsError(f"{self.reference}: {error}: {shown(text)}") from None

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[_Complete]:
        """Yield a function that completes a prompt. Its connections belong to this event loop."""
        # without an address, inspect-ai starts a vLLM server, by default with the first question
        api = self._opened(**({"lazy_init": False} if self.reference.startswith("vllm-") else {})).api
        free = asyncio.Semaphore(api.max_connections())
        async with api.client.with_options(max_retries=RETRIES) as client:

            async def complete(prompt: str, max_tokens: int, echo: bool = False) -> Reply | None:
                more = {"echo": True, "logprobs": 1} if echo else {}
                name = api.service_model_name()
                try:
                    async with free, asyncio.timeout(DEADLINE * (1 + RETRIES)):
                        said = await client.completions.create(
                            model=name, prompt=prompt, max_tokens=max_tokens, temperature=0, **more
                        )
                except TimeoutError:
                    raise InputError("its server does not complete a reply in time") from None
                except Exception as error:
                    status = getattr(error, "status_code", None)
                    if status == 400 and _TOO_LONG.search(str(error)):
                        return None
                    if echo and status in _REFUSED:
                        raise NoLikelihoodsError(
                            f"{self.reference}: its server gives no likelihoods: {self._without_secrets(error)}"
                        ) from None
                    raise
                try:
                    reply = msgspec.convert(said.model_dump(), Reply)
                    reply.choices[0]
                except (msgspec.ValidationError, AttributeError, IndexError) as error:
                    raise NoLikelihoodsError(
                        f"{self.reference}: not the reply of a completions endpoint ({in_one_line(error)})"
                    ) from None
                self._pay(reply.usage.prompt_tokens, reply.usage.completion_tokens)
                return reply

            yield complete

    async def _try(self, complete: _Complete) -> None:
        """Raise NoLikelihoodsError if the server reads a token with another likelihood than it wrote it with.

        A server that is off by one place would otherwise give numbers that look right.
        """
        first = await complete(_TRIAL, 1, echo=True)
        if first is None or first.usage.completion_tokens != 1:
            raise NoLikelihoodsError(f"{self.reference}: its server does not go on from {_TRIAL!r}")
        self._read(Text("", _TRIAL), first)
        found = _logprobs(first)
        word, wrote = found.tokens[-1], found.token_logprobs[-1]
        again = await complete(_TRIAL + word, 1, echo=True)
        read = [] if again is None else self._read(Text(_TRIAL, word), again).nll.tolist()
        if wrote is None or len(read) != 1 or not abs(read[0] + wrote) <= _NOISE:
            raise NoLikelihoodsError(
                f"{self.reference}: its server wrote {word!r} with the log-probability {wrote}, but reads it with "
                f"{', '.join(f'{-nll:.3f}' for nll in read) or 'none'}; its likelihoods cannot be used"
            )

    def _read(self, text: Text, reply: Reply) -> TokenScores:
        try:
            return read_scores(text, reply)
        except ValueError as error:
            raise NoLikelihoodsError(f"{self.reference}: {error}: {shown(text)}") from None


def read_scores(text: Text, reply: Reply) -> TokenScores:
    """Return the scores of a text from the reply of a server that repeated it and wrote at most one more token.

    No token is scored if the reply does not show which tokens spell a character that is cut into several. Raises
    ValueError if the reply has no likelihoods of this text, or some that cannot be right.
    """
    found, usage = _logprobs(reply), reply.usage
    count = len(found.tokens) - usage.completion_tokens
    if count < 1 or count not in (usage.prompt_tokens, usage.prompt_tokens - 1):  # some leave out BOS
        raise ValueError(f"{count} tokens of a prompt that has {usage.prompt_tokens}")
    prompt = text.context + text.target
    tokens, values = found.tokens[:count], found.token_logprobs[:count]
    places = places_of(prompt, tokens)
    if places is None and values[0] is None:  # the first one is BOS
        tokens, values = tokens[1:], values[1:]
        places = places_of(prompt, tokens)
    if places is None and not prompt.isascii():
        return TokenScores(np.empty(0), np.empty((0, 2), dtype=np.int64))
    if places is None:
        raise ValueError("its tokens do not add up to the text")
    border = len(text.context)
    torn = border > 0 and _torn(prompt, tokens, places, border)
    if values and values[0] is None:
        places, values = places[1:], values[1:]
    nll = []
    for value in values:
        if value is None or not _LEAST <= value <= _ROUNDING:
            raise ValueError(f"a log-probability is {value}")
        nll.append(max(-value, 0.0))
    check_border(prompt, places, border)
    scored = (places[:, 1] > border) & (not torn)
    return TokenScores(np.array(nll)[scored], places[scored])


def _logprobs(reply: Reply) -> Logprobs:
    found = reply.choices[0].logprobs
    if found is None or not found.tokens:
        raise ValueError("the reply has no log-probabilities")
    if len(found.tokens) != len(found.token_logprobs):
        raise ValueError(f"{len(found.tokens)} tokens with {len(found.token_logprobs)} log-probabilities")
    return found


def places_of(prompt: str, tokens: Sequence[str]) -> Ints | None:
    """Return where each token begins and ends in a prompt, or None if the tokens do not add up to it.

    A token that is a part of a character has no text: servers write "" or U+FFFD for it. Some servers write the
    character with its last part, others never do. Characters of ASCII have no parts.
    """
    for skip in (True, False):  # the character, or its last part follows
        places: list[tuple[int, int]] = []
        end = parts = 0
        for number, token in enumerate(tokens):
            if number == 0 and not prompt.startswith(" ") and token.startswith(" "):  # SentencePiece adds it
                token = token[1:]
                if not token:
                    places.append((0, 0))
                    continue
            token = token.strip(_PART)
            if not token:
                parts += 1
                continue
            begin = end + bool(parts and skip and not prompt[end : end + 1].isascii())
            while not prompt.startswith(token, begin) and not prompt[begin : begin + 1].isascii():
                begin += 1
            if not prompt.startswith(token, begin):
                break
            places += [(end, max(begin, end + 1))] * parts + [(begin, begin + len(token))]
            end, parts = begin + len(token), 0
        else:
            rest = prompt[end:]
            if bool(rest) == bool(parts) and not any(character.isascii() for character in rest):
                places += [(end, len(prompt))] * parts
                return np.array(places, dtype=np.int64).reshape(-1, 2)
    return None


def _torn(prompt: str, tokens: Sequence[str], places: Ints, border: int) -> bool:
    """Return whether the token before a border may hold a part of the first character after it."""
    if prompt[border : border + 1].isascii():
        return False
    touching = [
        (token.strip(_PART), end) for token, (begin, end) in zip(tokens, places, strict=True) if begin <= border
    ]
    parts = any(not token and end >= border for token, end in touching)
    return parts or not any(token and end > border for token, end in touching)


def check_border(text: str, places: Ints, border: int) -> None:
    """Raise ValueError if a token has text, not only white space, on both sides of a border."""
    for begin, end in places.tolist():
        if begin < border < end and text[begin:border].strip():
            raise ValueError(f"the token {text[begin:end]!r} lies across the border of the scored text")
