"""A Hub on this machine for tests: its HTTP protocol, spoken to the real clients, with faults on demand.

    with LoopbackHub() as hub:
        hub.add_user("me", "hf_me", orgs={"ORG": "write"})
        hub.fault("POST", r"/commit/main$", status=500, after=True)  # committed, but the answer is lost
        hub.python("...", home=tmp_path, token="hf_me")              # a process with the real clients

The clients read where the Hub is when they are imported. So either they run in a process of their own (`python`, or
any command with `environment`), or, for `huggingface_hub` alone (HfApi, what uses it, hf_hub_download with a
cache_dir), in the test's process after `online`. `datasets`, `evaluate`, `transformers` and `peft` need a process of
their own.

A request that the loopback does not know is answered with 501 and listed in `unknown`; leaving the context then fails.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, cast
from urllib.parse import parse_qs, unquote

import pytest
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .protocol import Call, NotKnown, Protocol, User
from .repository import Commit, File, HubError, Kind, Repo, goes_by_lfs

__all__ = ["Commit", "HubError", "LoopbackHub", "Repo", "Request"]


@dataclass(frozen=True)
class Request:
    """A request: the path is unquoted, without the query; status 0: the connection was cut before an answer."""

    method: str
    path: str
    status: int
    headers: Mapping[str, str]


@dataclass
class Fault:
    method: str
    path: re.Pattern[str]
    nth: int
    times: int
    status: int | None = None
    headers: Mapping[str, str] | None = None
    after: bool = False
    cut: bool = False
    do: Callable[[], object] | None = None
    seen: int = 0

    def strikes(self, method: str, path: str) -> bool:
        """Counts the requests that it is about; true for the nth one and those after it, ``times`` in all."""
        if self.method not in (method, "*") or not self.path.search(path):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class _Server(uvicorn.Server):
    """Stops at once: tests start many."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def main_loop(self) -> None:
        self.ended = asyncio.get_running_loop(), asyncio.Event()
        await self.ended[1].wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()

    def stop(self) -> None:
        if self.ended is not None:
            self.ended[0].call_soon_threadsafe(self.ended[1].set)


class LoopbackHub:
    """The Hub; a context manager. Its state is in memory and changes only under one lock.

    ``endpoint`` is its address; large files lie under another one (``cdn``), which refuses tokens.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.unknown: list[str] = []
        self.waits: list[float] = []
        self._faults: list[Fault] = []
        self._lock = threading.RLock()
        # asyncio turns Nagle's algorithm off, which costs 40 ms a request, where a socket says that it is TCP
        self._sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) for _ in range(2)]
        for sock in self._sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", 0))
        self.endpoint, self.cdn = (f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in self._sockets)
        self._protocol = Protocol(self.endpoint, self.cdn)
        self.jobs = self._protocol.jobs  # to run (their specification) or to schedule (with a "jobSpec")
        off: dict[str, Any] = {"log_config": None, "lifespan": "off", "ws": "none", "proxy_headers": False}
        config = uvicorn.Config(self._app, http="h11", interface="asgi3", timeout_graceful_shutdown=1, **off)
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._server.run, args=(self._sockets,), daemon=True)

    def __enter__(self) -> LoopbackHub:
        self._thread.start()
        while self._server.ended is None:
            if not self._thread.is_alive():
                raise RuntimeError("the loopback Hub did not start")
            time.sleep(0.005)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._thread.join()
        for sock in self._sockets:
            sock.close()
        if kind is None and self.unknown:
            raise AssertionError(f"the loopback Hub does not know these requests: {self.unknown}")

    # -- what tests set up and look at -------------------------------------------------------------------------------

    def add_user(self, name: str, token: str, *, orgs: Mapping[str, str] | None = None, role: str = "write") -> None:
        """``orgs`` maps organisations to "admin", "write" or "read"; ``role`` is the token's: "write" or "read"."""
        with self._lock:
            self._protocol.users[token] = User(name, token, dict(orgs or {}), role)

    def repo(self, kind: Kind, repo_id: str) -> Repo:
        """Return the stored repository. Raises KeyError if it does not exist."""
        with self._lock:
            return self._protocol.repos[kind, repo_id]

    def commit(
        self,
        kind: Kind,
        repo_id: str,
        files: Mapping[str, bytes],
        *,
        branch: str = "main",
        message: str = "By another person",
        remove: tuple[str, ...] = (),
        private: bool = False,
        tag: str | None = None,
    ) -> str:
        """Commit as another person would, in a repository that is made where it is new, and tag it; the commit's oid.

        Nothing is checked, cards neither.
        """
        with self._lock:
            repo = self._protocol.repos.get((kind, repo_id))
            if repo is None:
                sdk = "static" if kind == "space" else None
                repo = self._protocol.new(kind, repo_id, private=private, sdk=sdk)
            start = repo.resolve(branch if branch in repo.branches else "main")
            tree = {path: file for path, file in start.tree.items() if path not in remove}
            for path, content in files.items():
                attributes = tree[".gitattributes"].content
                file = tree[path] = File(content, goes_by_lfs(path, content[:512], len(content), attributes))
                if file.lfs:
                    repo.objects[file.sha256] = content
            repo.branches.setdefault(branch, start.oid)
            oid = repo.add(branch, tree, message).oid
            if tag is not None:
                repo.tags[tag] = oid
            return oid

    def fault(
        self,
        method: str,
        path_regex: str,
        *,
        nth: int = 1,
        times: int = 1,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        after: bool = False,
        cut: bool = False,
    ) -> None:
        """Let the nth request (and ``times`` - 1 more) of this method whose unquoted path holds ``path_regex`` fail.

        ``status``: answered instead of handling it; with ``after`` it is handled first and then answered so. ``cut``:
        the connection is closed without an answer, before (``after``: after) handling. Downloads of large files are
        GET /lfs/..., uploads PUT /upload/..., method "*" is any.
        """
        self._add(Fault(method, re.compile(path_regex), nth, times, status, headers, after, cut))

    def when(
        self,
        method: str,
        path_regex: str,
        do: Callable[[], object],
        *,
        nth: int = 1,
        times: int = 1,
        after: bool = False,
    ) -> None:
        """Run ``do`` before (after) the nth such request and ``times`` - 1 more are handled; it may ask the Hub too.

        A client that ``do`` kills has sent its request all the same: it is handled, unless a fault says ``cut``.
        """
        self._add(Fault(method, re.compile(path_regex), nth, times, after=after, do=do))

    def _add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    # -- how clients get here ----------------------------------------------------------------------------------------

    def environment(self, home: Path, token: str | None = None) -> dict[str, str]:
        """The environment of a process whose clients speak to this Hub, with their caches under ``home``."""
        ours = re.compile(r"HF_|HUGGING|TRANSFORMERS_|DATASETS_|EVALUATE_|XDG_|.*_PROXY$|PYTEST_|COV_", re.IGNORECASE)
        env = {name: value for name, value in os.environ.items() if not ours.match(name)}
        env |= {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home),
            "HOME": str(home),
            **{f"HF_HUB_DISABLE_{what}": "1" for what in ("XET", "TELEMETRY", "PROGRESS_BARS", "UPDATE_CHECK")},
            # Some count downloads with a request to another host.
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "NO_PROXY": "*",
            "PYTHONIOENCODING": "utf-8",
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        if token is not None:
            env["HF_TOKEN"] = token
        return env

    def python(
        self, code: str, home: Path, token: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run code in a process with the real clients, in the folder ``home``. Raises AssertionError with what it
        wrote where ``check`` and it failed."""
        home.mkdir(parents=True, exist_ok=True)
        words, env = [sys.executable, "-c", code], self.environment(home, token)
        done = subprocess.run(words, cwd=home, env=env, capture_output=True, encoding="utf-8")
        if check and done.returncode != 0:
            raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def online(self, patch: pytest.MonkeyPatch, token: str | None = None, home: Path | None = None) -> None:
        """Let `huggingface_hub` in this process speak to this Hub while ``patch`` lasts, its caches under ``home``.

        Its waits before a retry take no time; the seconds that it wanted to wait are in ``waits``.
        """
        from huggingface_hub import constants, file_download
        from huggingface_hub.utils import _auth, _http

        _http.close_session()
        clock = SimpleNamespace(**{**vars(time), "sleep": self.waits.append})
        for module in (_http, file_download):
            patch.setattr(module, "time", clock)
        patch.setattr(constants, "ENDPOINT", self.endpoint)
        template = self.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY"):
            patch.setattr(constants, name, name != "HF_HUB_OFFLINE")
        if home is not None:
            patch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
            patch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
        patch.setattr(_auth, "_OIDC_TOKEN_CACHE", None)
        for name in ("HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE", "HF_OIDC_ID_TOKEN"):
            patch.delenv(name, raising=False)
        if token is None:
            patch.delenv("HF_TOKEN", raising=False)
        else:
            patch.setenv("HF_TOKEN", token)

    # -- the server --------------------------------------------------------------------------------------------------

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, raw = scope["method"], scope["raw_path"].decode("ascii")
        path = unquote(raw)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._lock:
            struck = [fault for fault in self._faults if fault.strikes(method, path)]
        fault = next((fault for fault in struck if fault.do is None), None)
        before = fault is not None and not fault.after
        cut_before = before and fault is not None and fault.cut
        try:
            # Read first: the hook may kill the client.
            body = b"" if cut_before else await HTTPRequest(scope, receive).body()
        except ClientDisconnect:
            self._note(method, path, 0, headers)
            return
        await self._run([hook for hook in struck if not hook.after])
        if cut_before:
            self._note(method, path, 0, headers)
            await self._close(receive, send)
            return
        if fault is not None and before and fault.status is not None:
            response = _refusal(fault.status, fault.headers)
        else:
            parts = [unquote(part) for part in raw.strip("/").split("/")]
            query = parse_qs(scope["query_string"].decode("ascii"), keep_blank_values=True)
            cdn = scope["server"][1] == self._sockets[1].getsockname()[1]
            call = Call(method, parts, query, headers, body, cdn)
            response = await run_in_threadpool(self._answer, call, path)
            if fault is not None and fault.after and fault.status is not None:
                response = _refusal(fault.status, fault.headers)
        await self._run([hook for hook in struck if hook.after])
        if fault is not None and fault.cut and fault.after:
            self._note(method, path, 0, headers)
            await self._close(receive, send)
            return
        # Noted before it is sent: a client that has its answer finds the request here.
        self._note(method, path, response.status_code, headers)
        await response(scope, receive, send)

    async def _run(self, hooks: Sequence[Fault]) -> None:
        for hook in hooks:
            if hook.do is not None:
                try:
                    await run_in_threadpool(hook.do)
                except Exception as error:  # noqa: BLE001 - it must fail the test that made the hook
                    self.unknown.append(f"a hook on {hook.method} {hook.path.pattern} failed: {error!r}")

    def _note(self, method: str, path: str, status: int, headers: Mapping[str, str]) -> None:
        with self._lock:
            self.requests.append(Request(method, path, status, headers))

    def _answer(self, call: Call, path: str) -> Response:
        with self._lock:
            try:
                return self._protocol.answer(call)
            except HubError as error:
                headers = {"X-Error-Message": re.sub(r"[^ -~]", "?", error.message).strip()}
                if error.code is not None:
                    headers["X-Error-Code"] = error.code
                if error.commit is not None:
                    headers["X-Repo-Commit"] = error.commit
                return JSONResponse({"error": error.message, **error.body}, error.status, headers)
            except NotKnown:
                self.unknown.append(f"{call.method} {path}")
                return _refusal(501, None, f"the loopback Hub does not know {call.method} {path}")
            except Exception as error:  # noqa: BLE001 - a request that breaks the loopback must fail the test, not hang
                self.unknown.append(f"{call.method} {path}: {error!r}")
                return _refusal(501, None, f"the loopback Hub broke on {call.method} {path}: {error!r}")

    async def _close(self, receive: Receive, send: Send) -> None:
        # ASGI has no way to say this: `send` belongs to the server's object for the request, which has the connection.
        cast(Any, send).__self__.transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass


def _refusal(status: int, headers: Mapping[str, str] | None, message: str | None = None) -> Response:
    text = message or f"the loopback Hub was told to answer {status}"
    return JSONResponse({"error": text}, status, headers)
