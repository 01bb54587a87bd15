"""A language model without weights, which answers as a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Reply = Callable[[Sequence[str], str], list[str | None]]


class ScriptedModel:
    """Answers by a function of the prompts and the name of the step; by default it repeats the prompts."""

    def __init__(
        self,
        reply: Reply | None = None,
        name: str = "scripted",
        revision: str = "1",
        encoder_decoder: bool = False,
        tokens: Sequence[str] = (),
    ) -> None:
        self.identity: Mapping[str, str] = {"name": name, "revision": revision}
        self.encoder_decoder = encoder_decoder
        self.prompts: list[str] = []
        self._reply, self._tokens = reply, tokens

    def knows(self, token: str) -> bool:
        return token in self._tokens

    def answers(self, prompts: Sequence[str], what: str, max_new_tokens: int) -> list[str | None]:
        self.prompts += prompts
        return list(prompts) if self._reply is None else self._reply(prompts, what)

    def closed_book(self, questions: Sequence[str], what: str) -> list[str | None]:
        return self.answers(questions, what, 20)


def always(text: str | None) -> ScriptedModel:
    """Return a model that has one answer to all prompts."""
    return ScriptedModel(lambda prompts, what: [text for _ in prompts])
