"""HTTP requests to dump servers: few connections at once, retries, and limits on time and size.

A server that sends too slowly is treated like one that closes the connection, so no server can hold up a fetch for
ever. Wikimedia allows three connections per client and asks clients to identify themselves. If a server is busy (429,
503), the next try comes when the server says; if the connection breaks, it comes after a wait that doubles each time.
Some of this is written here because `httpx2` lacks it: `httpx2` does not retry after a status code, has no limit for a
whole request, reads the bodies of redirects without a limit, and follows redirects from https to http.
"""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

import httpx2

from temporalwiki.base.errors import UsageError
from temporalwiki.base.interrupts import POLL

CONNECTIONS = 3  # at once, which is the limit of Wikimedia
USER_AGENT = (
    f"temporalwiki/{version('temporalwiki')} (benchmark data from the dumps, once a month) httpx2/{httpx2.__version__}"
)
CONNECT_TIMEOUT = 20.0  # seconds
TIMEOUT = 60.0  # seconds without any byte, without an answer, and over which the rate is measured
LEAST_RATE = 10_000  # bytes a second
LONGEST_PAGE = 300.0  # seconds that a small text may take
BACKOFF = 1.0  # seconds before the second try; doubled before each one after
LONGEST_BACKOFF = 60.0
LONGEST_WAIT = 1800.0  # seconds that a server may ask for
LONGEST_WAITS = 4 * 3600.0  # seconds in all, for one file
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
    """The server lacks the file."""


class Broken(Exception):
    """One try failed; ``wait`` is how many seconds the server asks to wait, or None."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


class Stopped(Exception):
    """This download ends because another one failed, or because of Ctrl-C."""


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
    """Sends the requests of several threads. ``say`` is called with a line of text before each wait."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.stopped = threading.Event()
        self.silent = set[str]()  # servers that failed for good: they get one try without a wait
        self._client = httpx2.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},  # sizes and checksums are of files
            timeout=httpx2.Timeout(TIMEOUT, connect=CONNECT_TIMEOUT),
            # none is kept open, so each request has a connection of its own, which its watch may cut
            limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    @contextlib.contextmanager
    def ask(
        self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET", longest: float = math.inf
    ) -> Iterator[tuple[httpx2.Response, Iterator[bytes]]]:
        """Yield an answer with status 200, 206 or 416, and an iterator that receives its body in pieces.

        Raises Failed, or Broken if another try may help, and also does so while the block reads the body. A server
        that is too slow, or takes more than ``longest`` seconds, counts as Broken.
        """
        watch = _Watch(self.stopped, longest)
        try:
            with watch:
                request = self._client.build_request(
                    method, url, headers=headers, extensions={"trace": watch.see_connection}
                )
                response = self._follow(request)
                watch.answered()
                try:
                    _check_status(response)
                    yield response, watch.counted(response.iter_raw())
                finally:
                    response.close()
        except httpx2.UnsupportedProtocol as error:
            raise Failed(str(error)) from None
        except httpx2.TransportError as error:
            raise Broken(watch.too_slow or str(error) or type(error).__name__) from None
        if watch.too_slow:  # to some answers, a cut connection is an end
            raise Broken(watch.too_slow)

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
        """Return the text of a small page. Raises Failed, and NotThere if the server lacks the page."""
        patience = Patience(self, url, TRIES_OF_A_PAGE)
        while True:
            try:
                data = bytearray()
                with self.ask(url, longest=LONGEST_PAGE) as (_, body):
                    for chunk in body:
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
                with self.ask(url, method="HEAD", longest=LONGEST_PAGE) as (response, _):
                    length = response.headers.get("Content-Length", "")
                    if not (length.isascii() and length.isdigit()):
                        raise Failed("does not say how large the file is")
                    return int(length[:18])
            except Broken as problem:
                patience.wait(problem)


class _Watch:
    """A thread that cuts a request's connection when the request is too slow, or when all downloads are to stop.

    The library's timeout ends a read that gets nothing, but not a read that gets a byte now and then.
    """

    def __init__(self, stopped: threading.Event, longest: float) -> None:
        self.too_slow = ""  # or what to say about it
        self._stopped, self._ended = stopped, threading.Event()
        self._begun = self._since = time.monotonic()
        self._longest, self._least, self._size = longest, 1.0, 0  # any answer is fast enough within TIMEOUT
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for connected in self._sockets:
            connected.close()

    def see_connection(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep a duplicate of the socket of each new connection, because TLS detaches the original socket object."""
        if event.endswith("connect_tcp.complete"):
            self._sockets.append(info["return_value"].get_extra_info("socket").dup())

    def answered(self) -> None:
        """Measure the rate from now on."""
        self._since, self._least = time.monotonic(), LEAST_RATE * TIMEOUT

    def counted(self, body: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a body. Raises Stopped if all downloads are to stop."""
        for chunk in body:
            if self._stopped.is_set():
                raise Stopped
            self._size += len(chunk)
            yield chunk

    def _watch(self) -> None:
        while not self._ended.wait(POLL):
            now = time.monotonic()
            if now - self._begun > self._longest:
                self.too_slow = f"takes more than {self._longest:.0f} s"
            elif now - self._since > TIMEOUT:
                if self._size < self._least:
                    self.too_slow = f"gives less than {LEAST_RATE // 1000} kB a second"
                self._since, self._size = now, 0
            if self.too_slow or self._stopped.is_set():
                for connected in self._sockets:
                    with contextlib.suppress(OSError):  # it has ended by itself
                        connected.shutdown(socket.SHUT_RDWR)


class Patience:
    """Count failed tries and wait before the next one."""

    def __init__(self, connection: Connection, url: str, tries: int) -> None:
        self.connection, self.url, self.tries = connection, url, tries
        self.failed, self.waited = 0, 0.0

    def progress(self) -> None:
        """Start counting again, after progress."""
        self.failed = 0
        self.connection.silent.discard(_server(self.url))

    def wait(self, problem: Broken) -> None:
        """Wait before the next try. Raises Failed after the last one, and Stopped if all downloads are to end."""
        if self.connection.stopped.is_set():  # the watch has cut this connection
            raise Stopped
        self.failed += 1
        if self.failed >= self.tries or _server(self.url) in self.connection.silent:
            self.connection.silent.add(_server(self.url))
            raise Failed(f"{problem}; given up after {self.failed} {'tries' if self.failed > 1 else 'try'}")
        seconds = min(BACKOFF * 2 ** (self.failed - 1), LONGEST_BACKOFF) if problem.wait is None else problem.wait
        asked = "" if problem.wait is None else ", as it asks"
        if seconds > LONGEST_WAIT:
            raise Failed(f"{problem}; it asks to come back in {math.ceil(seconds / 60)} minutes: try again then")
        self.waited += seconds
        if self.waited > LONGEST_WAITS:
            raise Failed(f"{problem}; waited for more than {LONGEST_WAITS / 3600:.0f} hours in all; try again later")
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
