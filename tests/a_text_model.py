"""A language model without weights, which answers as a test says."""

import ast
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


def faithful(asks: Callable[[str], bool] = lambda answer: True, **said: str | None) -> ScriptedModel:
    """Return a model that rewrites nothing, asks about the answers that it is to ask about, and knows them itself.

    A question is the sentence with "what" for the answer.

    ``said`` has other answers for all prompts of a step, by its name with "_" for " " and "-".
    """
    known: dict[str, str] = {}

    def reply(prompt: str, what: str) -> str | None:
        step = what.replace(" ", "_").replace("-", "_")
        if step in said:
            return said[step]
        if step == "decontextualisation":
            return prompt.partition("\nSentence: ")[2].removesuffix("\nRewritten:")
        if step in ("translation", "back_translation"):
            return prompt.partition("\nSentence: ")[2].removesuffix("\nTranslation:")
        if step == "questions":
            wanted = prompt.rpartition(" according to the sentence")[0].rpartition("answered by ")[2]
            answer = ast.literal_eval(wanted)
            sentence = prompt.rpartition("\nSentence: ")[2].removesuffix("\nQuestion:")
            question = sentence.replace(answer, "what").rstrip(".").partition("?")[0].strip() + "?"
            known[question] = answer
            return question if asks(answer) else None
        if step == "round_trip":
            return known[prompt.rpartition("\nQuestion: ")[2].removesuffix("\nAnswer:")]
        return None

    return ScriptedModel(lambda prompts, what: [reply(prompt, what) for prompt in prompts], "faithful")
