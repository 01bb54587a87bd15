"""Finding a method by its name."""

import subprocess
import sys
from dataclasses import is_dataclass

import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.methods import METHODS, find_method
from temporalwiki.methods.method import Method


@pytest.mark.parametrize("name", METHODS)
def test_each_method_is_a_file_with_documented_options(name: str) -> None:
    method = find_method(name)
    assert method.__module__ == f"temporalwiki.methods.{name}"
    assert issubclass(method, Method)
    assert is_dataclass(method)
    assert METHODS[name].name
    assert METHODS[name].about
    assert method().__class__.__doc__


NEAREST = {"lorra": "lora", "k-adapter": "k_adapter", "Mix-Review": "mix_review", "recadm": "recadam"}


@pytest.mark.parametrize(("wrong", "near"), NEAREST.items())
def test_a_misspelled_method_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"no method '{wrong}' \(did you mean {near}\?\); there are initial, "):
        find_method(wrong)


@pytest.mark.slow
def test_a_missing_library_is_named_with_what_to_install() -> None:
    # one process for all, because the imports take seconds: a fork then lacks each library in turn
    code = """
import os, sys
import matplotlib.figure, peft, torch, transformers
from trl import SFTConfig, SFTTrainer
from temporalwiki.commands import main
for missing in sys.argv[1:]:
    if os.fork() == 0:
        sys.modules[missing] = sys.modules[f"{missing}.figure"] = None
        os._exit(main("train --method light_tuning --model m --data d --config c".split()))
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 2
"""
    libraries = ("torch", "peft", "matplotlib", "trl")
    done = subprocess.run([sys.executable, "-c", code, *libraries], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        f"temporalwiki train: training needs the package {missing}: pip install 'temporalwiki[train]'"
        for missing in libraries
    ]
