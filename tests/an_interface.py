"""The client of a model behind an interface that answers as a function says; tests without inspect-ai skip."""

from collections.abc import Callable
from typing import Any

import pytest


def client(say: Callable[[str], Any], name: str = "mockllm/model") -> Any:
    """Return a client whose model says ``say(prompt)``: a text, or an output of inspect-ai."""
    models = pytest.importorskip("inspect_ai.model", reason="the extra adapters has inspect-ai")

    def outputs(messages: Any, *_: Any) -> Any:
        said = say(messages[-1].text)
        return reply(said) if isinstance(said, str) else said

    config = models.GenerateConfig(max_retries=0)
    return models.get_model(name, custom_outputs=outputs, memoize=False, config=config)


def reply(text: str) -> Any:
    """Return an output with its usage, without which inspect-ai would count tokens with a file from the network."""
    models = pytest.importorskip("inspect_ai.model", reason="the extra adapters has inspect-ai")
    output = models.ModelOutput.from_content("mockllm", text)
    output.usage = models.ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
    return output
