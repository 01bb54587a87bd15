"""Finding a method by its name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, is_dataclass

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
    assert method().__class__.__doc__
    assert all(f.metadata["help"] for f in fields(method))


NEAREST = {"lorra": "lora", "k-adapter": "k_adapter", "Mix-Review": "mix_review", "recadm": "recadam"}


@pytest.mark.parametrize(("wrong", "near"), NEAREST.items())
def test_a_misspelled_method_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"no method '{wrong}' \(did you mean {near}\?\); there are initial, "):
        find_method(wrong)


@pytest.mark.parametrize("missing", ["torch", "peft", "matplotlib", "trl"])
def test_a_missing_library_is_named_with_what_to_install(missing: str) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
from temporalwiki.commands import main
sys.exit(main("train --method light_tuning --model m --data d --config c".split()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    line = f"temporalwiki train: training needs the package {missing}: pip install 'temporalwiki[train]'"
    assert done.stderr.splitlines()[-1] == line  # transformers has a line of its own about torch
    assert "Traceback" not in done.stderr
