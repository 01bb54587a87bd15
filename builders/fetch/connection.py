"""HTTP requests to dump servers: retries, and limits on time and size.

A server that sends too slowly is treated like one that closes the connection, so no server can hold up a fetch for
ever. Wikimedia asks clients to identify themselves. If a server is busy (429, 503), the next try comes when the server
says; if the connection breaks, it comes after a wait that doubles each time. Redirects are followed here because
`httpx2` reads their bodies without a limit and follows them from https to http.
"""

import asyncio
import contextlib
import datetime
import email.utils
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from importlib.metadata import version
from typing import Any, Self, TypeVar

import httpx2

from temporalwiki.base.errors import UsageError

T = TypeVar("T")

_WHY = "benchmark data from the dumps, once a month"
USER_AGENT = f"temporalwiki/{version('temporalwiki')} ({_WHY}) httpx2/{httpx2.__version__}"
CONNECT_TIMEOUT = 20.0  # seconds
TIMEOUT = 60.0  # seconds for an answer, and then for each LEAST_RATE * TIMEOUT bytes
LEAST_RATE = 10_000  # bytes a second
BACKOFF = 1.0  # seconds before the second try; doubled before each one after
LONGEST_BACKOFF = 60.0
LONGEST_WAIT = 1800.0  # seconds that a server may ask for
LONGEST_WAITS = 4 * 3600.0  # seconds in all, for one file
TRIES_OF_A_PAGE = 5
REDIRECTS = 5
LARGEST_PAGE = 16 << 20  # bytes; dumpstatus.json of the largest wiki has about 1 MB
_HOST = re.compile(rb"[a-z0-9._:-]+")
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class Failed(Exception):
    """A server does not give a file, and another try would not help; another mirror might."""


class NotThere(Failed):
    """The server lacks the file."""


class Broken(Exception):
    """One try failed; ``wait`` is how many seconds the server asks to wait, or None."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


def check_mirror(url: str) -> str:
    """Return the address of a mirror without a final slash. Raises UsageError for anything else."""
    with contextlib.suppress(httpx2.InvalidURL):
        parsed = httpx2.URL(url)
        plain = not (parsed.userinfo or parsed.query)
        if parsed.scheme in ("http", "https") and _HOST.fullmatch(parsed.raw_host) and plain:
            return str(parsed.copy_with(fragment=None)).rstrip("/")
    shown = re.sub(r"^.*@|\?.*$", "***", url, flags=re.DOTALL)  # keep passwords and keys out of logs
    raise UsageError(f"{shown!a} is not a mirror: write its address, for example https://dumps.wikimedia.org")


def retry_after(header: str | None, now: datetime.datetime) -> float | None:
    """Return the seconds to wait from a Retry-After header, a number or an HTTP date; None for anything else."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    with contextlib.suppress(ValueError, OverflowError):
        at = email.utils.parsedate_to_datetime(text)
        at = at.replace(tzinfo=datetime.UTC) if at.tzinfo is None else at
        return max(0.0, (at - now).total_seconds())
    return None


class Connection:
    """Sends requests. ``say`` is called with a line of text before each wait."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.silent = set[str]()  # servers that failed for good: they get one try without a wait
        self._runner = asyncio.Runner()
        self._client = httpx2.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},  # sizes and checksums are of files
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that sends requests to its end. Ctrl-C ends it at once."""
        return self._runner.run(work)

    @contextlib.asynccontextmanager
    async def ask(
        self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> AsyncIterator[tuple[httpx2.Response, AsyncIterator[bytes]]]:
        """Yield an answer with status 200, 206 or 416, and an iterator that receives its body in pieces.

        Raises Failed, or Broken if another try may help or the server is too slow, also in the middle of the body.
        """
        try:
            async with asyncio.timeout(TIMEOUT) as limit:
                response = await self._follow(self._client.build_request(method, url, headers=headers))
                try:
                    _check_status(response)
                    yield response, _in_time(response.aiter_raw(), limit)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise Broken(f"gives less than {LEAST_RATE // 1000} kB a second") from None
        except httpx2.UnsupportedProtocol as error:
            raise Failed(str(error)) from None
        except httpx2.TransportError as error:
            raise Broken(str(error) or type(error).__name__) from None

    async def _follow(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and follow its redirects without reading their bodies."""
        for _ in range(REDIRECTS + 1):
            response = await self._client.send(request, stream=True)
            if response.next_request is None:
                return response
            await response.aclose()
            before, request = request.url.scheme, response.next_request
            if request.url.scheme not in ("https", before):
                raise Failed(f"leads from {before} to {str(request.url.copy_with(userinfo=b'', query=None))!a}")
        raise Failed(f"leads on more than {REDIRECTS} times")

    def page(self, url: str) -> str:
        """Return the text of a small page. Raises Failed, and NotThere if the server lacks the page."""

        async def read() -> str:
            data = bytearray()
            async with self.ask(url) as (_, body):
                async for chunk in body:
                    data += chunk
                    if len(data) > LARGEST_PAGE:
                        raise Failed(f"sends more than {LARGEST_PAGE >> 20} MB instead of a small page")
            return data.decode("utf-8", errors="replace")

        return self.run(self._tried(url, read))

    def size(self, url: str) -> int:
        """Return the size of a file on its server. Raises Failed or NotThere."""

        async def read() -> int:
            async with self.ask(url, method="HEAD") as (response, _):
                length = response.headers.get("Content-Length", "")
                if not (length.isascii() and length.isdigit()):
                    raise Failed("does not say how large the file is")
                return int(length[:18])

        return self.run(self._tried(url, read))

    async def _tried(self, url: str, read: Callable[[], Awaitable[T]]) -> T:
        patience = Patience(self, url, TRIES_OF_A_PAGE)
        while True:
            try:
                return await read()
            except Broken as problem:
                await patience.wait(problem)


async def _in_time(body: AsyncIterator[bytes], limit: asyncio.Timeout) -> AsyncIterator[bytes]:
    """Yield the pieces of a body. Each LEAST_RATE * TIMEOUT bytes put the limit off."""
    clock, received = asyncio.get_running_loop().time, 0
    limit.reschedule(clock() + TIMEOUT)
    async for chunk in body:
        received += len(chunk)
        if received >= LEAST_RATE * TIMEOUT:
            limit.reschedule(clock() + TIMEOUT)
            received = 0
        yield chunk


class Patience:
    """Counts failed tries and waits before the next one."""

    def __init__(self, connection: Connection, url: str, tries: int) -> None:
        self.connection, self.url, self.tries = connection, url, tries
        self.server = "/".join(url.split("/")[:3])
        self.failed, self.waited = 0, 0.0

    def progress(self) -> None:
        """Start counting again, after progress."""
        self.failed = 0
        self.connection.silent.discard(self.server)

    async def wait(self, problem: Broken) -> None:
        """Wait before the next try. Raises Failed after the last one."""
        self.failed += 1
        if self.failed >= self.tries or self.server in self.connection.silent:
            self.connection.silent.add(self.server)
            raise Failed(f"{problem}; given up after {self.failed} {'tries' if self.failed > 1 else 'try'}")
        seconds = min(BACKOFF * 2 ** (self.failed - 1), LONGEST_BACKOFF) if problem.wait is None else problem.wait
        if seconds > LONGEST_WAIT:
            raise Failed(f"{problem}; it asks to come back in {math.ceil(seconds / 60)} minutes: try again then")
        self.waited += seconds
        if self.waited > LONGEST_WAITS:
            raise Failed(f"{problem}; waited for more than {LONGEST_WAITS / 3600:.0f} hours in all; try again later")
        asked = "" if problem.wait is None else ", as it asks"
        self.connection.say(f"{self.url}: {problem}; next try in {seconds:.0f} s{asked}")
        await asyncio.sleep(seconds)


def _check_status(response: httpx2.Response) -> None:
    status = response.status_code
    if status in _PASSING:
        after = response.headers.get("Retry-After")
        raise Broken(f"answers {status}", retry_after(after, datetime.datetime.now(datetime.UTC)))
    if status not in (200, 206, 416):
        raise (NotThere if status in (404, 410) else Failed)(f"answers {status}")
