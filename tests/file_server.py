"""A dump server on this machine, laid out as Wikimedia's, which misbehaves down to the byte when told to."""

import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from a_folder import contents

_ENDLESS = 64 << 20  # bytes after which even an endless body ends, so that every test ends


@dataclass(frozen=True)
class Fault:
    """How an answer differs from a correct one. Fields that are not given are correct."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # instead of the file's
    cut: int | None = None  # the connection ends after this many bytes of the body
    length: int | None = None  # what Content-Length claims
    chunked: bool = False  # no Content-Length
    endless: bool = False  # nothing ends the body
    ignore_range: bool = False
    range_at: int | None = None  # what Content-Range claims to begin at, and the bytes do
    total: int | None = None  # what Content-Range claims the whole to be
    delay: float = 0.0  # seconds after each 4 KB
    drip_after: int | None = None  # the rest comes a byte at a time after this many bytes, those of the head included


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Message


class FileServer:
    """Serves ``files`` (path without a leading slash -> bytes), and an index page for every folder of them."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.requests: list[Request] = []
        self.sent = 0  # bytes of bodies
        self.at_once = self.most_at_once = 0  # requests
        self._faults: list[tuple[re.Pattern[str], Fault, list[int]]] = []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def fault(self, path: str, fault: Fault, times: int = 1, method: str = "GET") -> None:
        """Do ``fault`` for the next ``times`` requests of ``method`` whose path has the regular expression in it."""
        self._faults.append((re.compile(f"^{method} .*(?:{path})"), fault, [times]))

    def asked(self, path: str) -> list[Request]:
        """Requests for file contents whose path has the regular expression in it."""
        return [request for request in self.requests if request.method == "GET" and re.search(path, request.path)]

    def next_fault(self, method: str, path: str) -> Fault:
        with self._lock:
            for pattern, fault, left in self._faults:
                if left[0] and pattern.search(f"{method} {path}"):
                    left[0] -= 1
                    return fault
        return Fault()

    def enter(self, change: int) -> None:
        with self._lock:
            self.at_once += change
            self.most_at_once = max(self.most_at_once, self.at_once)


class _Handler(BaseHTTPRequestHandler):
    owner: FileServer
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the other side has gone, between two requests
            super().handle()

    def do_GET(self) -> None:
        self._at_work = True
        self.owner.enter(1)
        try:
            self._answer()
        except OSError:
            self.close_connection = True  # the other side has gone
        finally:
            self._finish()

    do_HEAD = do_GET

    def _finish(self) -> None:
        """Count the request as answered: before its last bytes, because the client may ask again at once."""
        if self._at_work:
            self._at_work = False
            self.owner.enter(-1)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        path = self.path.lstrip("/")
        self.owner.requests.append(Request(self.command, path, self.headers))
        fault = self.owner.next_fault(self.command, path)
        data = self.owner.files.get(path) if fault.body is None else fault.body
        if data is None:
            data = self._index(path)
        if fault.status is not None or data is None:
            self._send(fault.status or 404, fault.headers, b"<h1>no</h1>", Fault(drip_after=fault.drip_after))
            return
        headers = {"Accept-Ranges": "bytes"}
        wanted = None if fault.ignore_range else re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else None
        if start is None:
            self._send(200, headers | dict(fault.headers), data, fault)
        elif start >= len(data):
            self._send(416, {"Content-Range": f"bytes */{len(data)}"}, b"", Fault())
        else:
            start = start if fault.range_at is None else fault.range_at
            total = len(data) if fault.total is None else fault.total
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{total}"
            self._send(206, headers | dict(fault.headers), data[start:], fault)

    def _index(self, path: str) -> bytes | None:
        if path and not path.endswith("/"):
            return None
        names = {name.removeprefix(path).split("/")[0] for name in self.owner.files if name.startswith(path)}
        folders = {name for name in names if any(file.startswith(f"{path}{name}/") for file in self.owner.files)}
        if not names:
            return None
        links = "".join(f'<a href="{n}{"/" if n in folders else ""}">{n}</a>  01-Nov-2021 10:12  -\r\n' for n in names)
        return f'<html><h1>Index of /{path}</h1><hr><pre><a href="../">../</a>\r\n{links}</pre></html>'.encode()

    def _send(self, status: int, headers: Mapping[str, str], data: bytes, fault: Fault) -> None:
        if fault.drip_after is not None:
            self.wfile = _Drip(self.wfile, fault.drip_after)  # type: ignore[assignment]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if fault.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(data) if fault.length is None else fault.length))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault.endless:
            self._endless(data, fault)
            return
        end = len(data) if fault.cut is None else fault.cut
        end = min(end, len(data))
        for at in range(0, end, 4096):
            time.sleep(fault.delay)
            if at + 4096 >= end:
                self._finish()
            self._write(data[at : min(at + 4096, end)], fault)
        if fault.cut is not None or (fault.length is not None and not fault.chunked):
            self.close_connection = True  # without what makes a body whole
        elif fault.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _write(self, data: bytes, fault: Fault) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if fault.chunked else data)
        self.owner.sent += len(data)

    def _endless(self, data: bytes, fault: Fault) -> None:
        sent = 0
        while sent < _ENDLESS:
            self._write(data, fault)
            sent += len(data)
        self.close_connection = True


class _Drip:
    """Writes a byte at a time, slower than any server that is at work."""

    def __init__(self, to: Any, fast: int) -> None:
        self._to, self._fast = to, fast

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to, name)

    def write(self, data: bytes) -> None:
        self._to.write(data[: self._fast])
        for byte in data[self._fast :]:
            time.sleep(0.05)
            self._to.write(bytes([byte]))
        self._fast = max(0, self._fast - len(data))


def served(dumps: Path) -> dict[str, bytes]:
    """Files of a folder of dumps with the lists that Wikimedia makes of them."""
    files = contents(dumps)
    return files | lists_of(files)


def lists_of(files: Mapping[str, bytes], **status: str) -> dict[str, bytes]:
    """``dumpstatus.json`` of every dump, all jobs done unless ``status`` has another word, and Wikidata's lists."""
    jobs: dict[str, dict[str, Any]] = {}
    sums: dict[str, str] = {}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        sha1 = hashlib.sha1(data).hexdigest()
        if folder.startswith("wikidatawiki/entities/"):
            list_path = f"{folder}/wikidata-{folder.rpartition('/')[2]}-sha1sums.txt"
            sums[list_path] = sums.get(list_path, "") + f"{sha1}  {name}\n"
            continue
        job = "articlesmultistreamdump" if "multistream" in name else "pagepropstable"
        numbered = any(re.search(r"multistream\d", other) for other in files if other.startswith(f"{folder}/"))
        if re.search(r"multistream(-index)?\.", name) and numbered:
            job = "articlesmultistreamdumprecombine"
        entry = {"size": len(data), "url": f"/{path}", "md5": hashlib.md5(data).hexdigest(), "sha1": sha1}
        of_job = jobs.setdefault(folder, {}).setdefault(job, {"updated": "2021-11-02 10:00:00", "files": {}})
        of_job["status"] = status.get(job, "done")
        of_job["files"][name] = entry
    listed = {f"{folder}/dumpstatus.json": {"version": "0.8", "jobs": of_dump} for folder, of_dump in jobs.items()}
    return {path: json.dumps(data).encode() for path, data in listed.items()} | {
        path: text.encode() for path, text in sums.items()
    }
