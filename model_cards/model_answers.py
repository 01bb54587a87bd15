"""What a model says about changed facts: a few of the answers that it gave when it was scored, for its card."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.markdown import escaped
from temporalwiki.eval_harness.results import Result
from temporalwiki.model_cards.template import fill

_TASK = "twiki_probes"
_SHOWN = 5
_LONGEST = 80  # characters of an answer


def answers_section(results: Sequence[Result]) -> str:
    """Return the section with the answers to a few changed facts of the newest probes, or "" without answers.

    A hash decides which facts are shown, strict ones first: nobody chose them. Raises InputError for damaged items.
    """
    found = [result for result in results if result.manifest.scored == _TASK]
    for result in sorted(found, key=lambda result: (result.manifest.data.config, result.path.name), reverse=True):
        answered = sorted(
            filter(_is_answer, _items(result)), key=lambda item: (not item.get("strict"), str(item["id"]))
        )
        rows = [
            (
                escaped(str(item["prompt"])),
                escaped(_shortened(str(item["answer"]))) or "(nothing)",
                escaped(str(item["object"])),
                "yes" if item["exact_match"] else "no",
            )
            for item in answered[:_SHOWN]
        ]
        if rows:
            return fill("model_answers", config=result.manifest.data.config, rows=rows)
    return ""


def _items(result: Result) -> list[dict[str, Any]]:
    try:
        return result.items()
    except FileNotFoundError:
        return []  # the scores are complete without it
    except (OSError, UnicodeError, pa.ArrowException):
        path = result.path.with_suffix(".parquet")
        raise InputError(f"{path}: not the items of a result; evaluate the model again") from None


def _is_answer(item: dict[str, Any]) -> bool:
    """Return whether an item is an answer to a changed fact. Older results have no prompts.

    The answers of a light-tuned copy of the model are in other splits.
    """
    named = all(item.get(name) is not None for name in ("id", "prompt", "object", "answer", "exact_match"))
    return named and item.get("split") == "changed"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
