"""A completions endpoint whose model is a table: in memory, as openai's client sees it, and over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

TRIAL = "Monday, Tuesday, Wednesday, Thursday, Friday,"


class Refused(Exception):
    """A status that is not 200, as openai's client raises it."""

    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(f"Error code: {status_code} - {message}")
        self.status_code = status_code


@dataclass
class Completions:
    """A model whose tokens are words with the space before them; minus a word's length / 10 is its log-probability.

    It writes " Saturday", or what ``says`` has for a prompt.
    """

    bos: str | None = None  # what its tokens begin with; "" for a BOS that is counted but not shown
    says: Mapping[str, str] = field(default_factory=dict)
    # what is wrong with it: (number of the request, reply) -> reply, or an error
    spoil: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda _, reply: reply
    prompts: list[str] = field(default_factory=list)

    def reply(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to the body of a request."""
        prompt = asked["prompt"]
        self.prompts.append(prompt)
        said = self.says.get(prompt, " Saturday")
        read = re.findall(r" ?[^ ]+| ", prompt)
        tokens = [*read, said]
        values: list[float | None] = [-len(token.strip()) / 10 for token in tokens]
        if self.bos:
            tokens, values = [self.bos, *tokens], [None, *values]
        elif self.bos is None:
            values[0] = None
        logprobs = {"tokens": tokens, "token_logprobs": values} if asked.get("logprobs") else None
        usage = {"prompt_tokens": len(read) + (self.bos is not None), "completion_tokens": 1}
        usage["total_tokens"] = sum(usage.values())
        choice = {"text": prompt + said if asked.get("echo") else said, "index": 0, "finish_reason": "length"}
        whole = {"id": "1", "object": "text_completion", "created": 1, "model": asked["model"], "usage": usage}
        return self.spoil(len(self.prompts), {**whole, "choices": [{**choice, "logprobs": logprobs}]})

    # as openai's client

    def with_options(self, max_retries: int) -> Completions:
        return self

    async def __aenter__(self) -> SimpleNamespace:
        async def create(**asked: Any) -> SimpleNamespace:
            reply = self.reply(asked)
            return SimpleNamespace(model_dump=lambda: reply)

        return SimpleNamespace(completions=SimpleNamespace(create=create))

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    def opened(self, name: str) -> SimpleNamespace:
        """Return what inspect-ai's ``get_model`` returns."""
        here = {"client": self, "base_url": f"http://{name}/v1", "api_key": "sk-planted-0123456789"}
        return SimpleNamespace(
            api=SimpleNamespace(**here, max_connections=lambda: 2, service_model_name=lambda: "model")
        )

    def serve(self) -> ThreadingHTTPServer:
        """Return a server at a free port of this machine, which the caller starts and closes."""
        completions = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    status, reply = 200, completions.reply(asked)
                except Refused as error:
                    status, reply = error.status_code, {"error": {"message": str(error)}}
                body = json.dumps(reply if self.path == "/v1/completions" else {}).encode()
                self.send_response(status if self.path == "/v1/completions" else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
