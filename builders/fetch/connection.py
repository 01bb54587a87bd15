"""HTTP requests to dump servers, with few connections, retries and limits.

Wikimedia allows three connections per client and asks clients to identify themselves. If a server is busy (429, 503),
the next try comes when the server says; if it breaks off, after waits that double. `httpx2` has no retries for status
codes, reads the bodies of redirects without a limit, and follows them from https to http: so that code is here.
"""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from types import TracebackType
from typing import Self

import httpx2

from temporalwiki.base.errors import UsageError

CONNECTIONS = 3  # at once, which is the limit of Wikimedia
USER_AGENT = (
    f"temporalwiki/{version('temporalwiki')} (benchmark data from the dumps, once a month) httpx2/{httpx2.__version__}"
)
TIMEOUT = 60.0  # seconds without any byte
BACKOFF = 1.0  # seconds before the second try; doubled before each one after
LONGEST_BACKOFF = 60.0
LONGEST_WAIT = 1800.0  # seconds that a server may ask for
TRIES_OF_A_PAGE = 5
TRIES_OF_A_FILE = 10  # without progress, about four minutes
REDIRECTS = 5
LARGEST_PAGE = 16 << 20  # bytes; dumpstatus.json of the largest wiki has about 1 MB
READ = 1 << 20
_HOST = re.compile(rb"[a-z0-9._:-]+")
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class Failed(Exception):
    """A server does not give a file, and another try would not help; another mirror might."""


class NotThere(Failed):
    """The server has no such file."""


class Broken(Exception):
    """One try failed; ``wait`` is how many seconds the server asks to wait, or None."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


class Stopped(Exception):
    """This download ends because another one failed."""


def check_mirror(url: str) -> str:
    """Return the address of a mirror without a final slash. Raises UsageError for anything else."""
    with contextlib.suppress(httpx2.InvalidURL):
        parsed = httpx2.URL(url)
        if (
            parsed.scheme in ("http", "https")
            and _HOST.fullmatch(parsed.raw_host)
            and not (parsed.userinfo or parsed.query)
        ):
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
    """Requests of several threads. ``say`` gets a line for each wait."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.stopped = threading.Event()
        self.silent = set[str]()  # servers that failed for good: they get one try without a wait
        self._client = httpx2.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},  # sizes and checksums are of files
            timeout=TIMEOUT,
            limits=httpx2.Limits(max_connections=CONNECTIONS),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    @contextlib.contextmanager
    def ask(
        self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> Iterator[httpx2.Response]:
        """Yield an answer of 200, 206 or 416 before its body is read. Raises Failed or Broken, also from the block."""
        try:
            response = self._follow(self._client.build_request(method, url, headers=headers))
            try:
                _check_status(response)
                yield response
            finally:
                response.close()
        except httpx2.UnsupportedProtocol as error:
            raise Failed(str(error)) from None
        except httpx2.TransportError as error:
            raise Broken(str(error) or type(error).__name__) from None

    def _follow(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and follow its redirects without reading their bodies."""
        for _ in range(REDIRECTS + 1):
            response = self._client.send(request, stream=True)
            if response.next_request is None:
                return response
            response.close()
            before, request = request.url.scheme, response.next_request
            if request.url.scheme not in ("https", before):
                raise Failed(f"leads from {before} to {str(request.url.copy_with(userinfo=b'', query=None))!a}")
        raise Failed(f"leads on more than {REDIRECTS} times")

    def page(self, url: str) -> str:
        """Return a small text. Raises Failed or NotThere."""
        patience = Patience(self, url, TRIES_OF_A_PAGE)
        while True:
            try:
                with self.ask(url) as response:
                    data = bytearray()
                    for chunk in response.iter_raw():
                        data += chunk
                        if len(data) > LARGEST_PAGE:
                            raise Failed(f"sends more than {LARGEST_PAGE >> 20} MB instead of a small page")
                    return data.decode("utf-8", errors="replace")
            except Broken as problem:
                patience.wait(problem)

    def size(self, url: str) -> int:
        """Return the size of a file on its server. Raises Failed or NotThere."""
        patience = Patience(self, url, TRIES_OF_A_PAGE)
        while True:
            try:
                with self.ask(url, method="HEAD") as response:
                    length = response.headers.get("Content-Length", "")
                    if not (length.isascii() and length.isdigit()):
                        raise Failed("does not say how large the file is")
                    return int(length[:18])
            except Broken as problem:
                patience.wait(problem)


class Patience:
    """Count failed tries and wait before the next one."""

    def __init__(self, connection: Connection, url: str, tries: int) -> None:
        self.connection, self.url, self.tries = connection, url, tries
        self.failed = 0

    def progress(self) -> None:
        """Start counting again, after progress."""
        self.failed = 0
        self.connection.silent.discard(_server(self.url))

    def wait(self, problem: Broken) -> None:
        """Wait before the next try. Raises Failed after the last one, and Stopped if another download failed."""
        self.failed += 1
        if self.failed >= self.tries or _server(self.url) in self.connection.silent:
            self.connection.silent.add(_server(self.url))
            raise Failed(f"{problem}; given up after {self.failed} {'tries' if self.failed > 1 else 'try'}")
        seconds = min(BACKOFF * 2 ** (self.failed - 1), LONGEST_BACKOFF) if problem.wait is None else problem.wait
        asked = "" if problem.wait is None else ", as it asks"
        if seconds > LONGEST_WAIT:
            raise Failed(f"{problem}; it asks to come back in {math.ceil(seconds / 60)} minutes: try again then")
        self.connection.say(f"{self.url}: {problem}; next try in {seconds:.0f} s{asked}")
        if self.connection.stopped.wait(seconds):
            raise Stopped


def _server(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _check_status(response: httpx2.Response) -> None:
    status = response.status_code
    if status in (200, 206, 416):
        return
    said = f"answers {status}"
    if status in (404, 410):
        raise NotThere(said)
    if status in _PASSING:
        raise Broken(said, retry_after(response.headers.get("Retry-After"), datetime.datetime.now(datetime.UTC)))
    raise Failed(said)
