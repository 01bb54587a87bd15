"""Options come from the functions in ``api``: their page is current, and other projects' names are answered."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pytest

import temporalwiki
from temporalwiki.api.arguments import help_texts, parameters
from temporalwiki.base.errors import UsageError
from temporalwiki.commands.cli import COMMANDS, function
from temporalwiki.commands.reference import page

Run = Callable[..., tuple[int, str, str]]
PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_of_options_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), "run make options, which writes docs/options.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_and_every_description_an_argument(name: str) -> None:
    run = function(name)
    assert all(len(one.help) > 5 for one in parameters(run))
    assert help_texts(run).keys() <= signature(run).parameters.keys()


# what users of transformers, trl and lm_eval type -> our name
OTHERS = {
    "train --lr 1e-4": "--learning-rate",
    "train --num-train-epochs 3": "--epochs",
    "train --num_train_epochs=3": "--epochs",
    "train --per_device_train_batch_size 8": "--micro-batch-size",
    "train --model_name_or_path gpt2": "--model",
    "evaluate --num_fewshot 5": "--light-tuning",
    "evaluate --model_name_or_path gpt2": "--model",
}


@pytest.mark.parametrize("typed", OTHERS)
def test_a_name_of_another_project_is_answered_with_ours(typed: str, run: Run) -> None:
    status, out, err = run(*typed.split())
    assert (status, out) == (2, "")
    assert err.endswith(f"(did you mean {OTHERS[typed]}?)\n")


def test_in_python_as_well() -> None:
    given = {"method": "diff", "model": "m", "data": "d", "config": "diffset-1112"}
    with pytest.raises(UsageError, match=r"no option 'lr' .did you mean learning_rate"):
        temporalwiki.train(**given, lr=1e-4)
    with pytest.raises(UsageError, match=r"no option 'configs' .did you mean config"):
        temporalwiki.train(**given, configs=["diffset-1112"])
    with pytest.raises(UsageError, match=r"no option 'configs' .did you mean config"):
        temporalwiki.evaluate(model="m", data="d", tasks="twiki_probes", configs=["probes-1112"])
