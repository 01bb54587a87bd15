"""``temporalwiki train``: train a method on a config and write a checkpoint.

Example:

    temporalwiki train --method lora --model openai-community/gpt2-large --data temporalwiki --config diffset-1112
    temporalwiki train --method lora --help        # also shows the options of LoRA
    accelerate launch --num_processes 8 -m temporalwiki train --recipe temporalwiki-gpt2-large --method diff \\
        --data temporalwiki --config diffset-1112  # the same on eight GPUs

Options on the command line override the recipe.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from temporalwiki.api.arguments import Arg, Flag, Folder
from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import OTHER_NAMES, words
from temporalwiki.methods import METHODS, needs
from temporalwiki.methods.recipes import configured, names, read_recipe

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_NEEDED = "needed, here or in the recipe"
_RUN = ("method", "model", "data", "config", "past", "output")  # not options of the training itself


@dataclass(frozen=True, repr=False)
class Trained(Table):
    """A checkpoint: its folder, the loss of each logged step, and a manifest for each config.

    After training on several configs in turn, ``path`` is the folder of the last one.
    """

    manifests: Sequence[Mapping[str, Any]]


def train(
    method: Annotated[str, Arg("NAME", names=tuple(METHODS), group=_NEEDED)] | None = None,
    model: Annotated[str | os.PathLike[str] | PreTrainedModel, Arg("ID_OR_DIR", group=_NEEDED)] | None = None,
    data: Annotated[str | os.PathLike[str] | Dataset | DatasetDict, Arg("DATASET", group=_NEEDED)] | None = None,
    config: Annotated[str | Sequence[str], Arg("NAME", nargs="+", group=_NEEDED)] | None = None,
    *,
    past: Annotated[str, Arg("CONFIG")] | None = None,
    output: Folder | None = None,
    recipe: Annotated[str | os.PathLike[str], Arg("FILE", names=tuple(names()))] | None = None,
    tokenizer: str | os.PathLike[str] | PreTrainedTokenizerBase | None = None,
    resume: Flag = False,
    **options: Any,
) -> Trained:
    """Train a method on configs, and return the checkpoint. The arguments are the options of ``temporalwiki train``.

    Call it again to continue an interrupted training. A finished checkpoint is kept.

    Args:
        method: name of the method.
        model: starting checkpoint: a folder, a Hub id, a .gguf file or package:NAME. In Python, also a model in
            memory. It is first written to the folder start-HASH next to ``output``; its weights in memory do not
            change.
        data: dataset folder, Hub id or id@revision. In Python, also a dataset in memory, which is first written to the
            folder data-HASH next to ``output``.
        config: config to train on, such as diffset-1112, or several to train on in turn. In Python, the name of data
            in memory.
        past: config of past data, for methods that use it; by default it is chosen by the config.
        output: folder of the checkpoint; runs/METHOD-CONFIG by default.
        recipe: YAML file with options, or the name of one in the package. The other options override it.
        tokenizer: tokenizer of a model in memory. By default it is loaded from the model's ``name_or_path``.
        resume: continue an interrupted run; the same command does so without this option.
        options: options of the training and of the method, such as ``max_steps=100``.

    Raises UsageError for a wrong argument, and InputError for a model or data that cannot be used.
    """
    own = {"method": method, "model": model, "data": data, "config": config, "past": past, "output": output}
    values = (read_recipe(os.fspath(recipe), method) if recipe is not None else {}) | {
        name: value for name, value in (own | options).items() if value is not None
    }
    if "config" not in values and not isinstance(values.get("data"), str | os.PathLike | None):
        first = next(iter(data.values()), None) if isinstance(data, dict) else data
        values["config"] = getattr(getattr(first, "info", None), "config_name", None) or "memory"
    for name in ("method", "model", "data", "config"):
        if not values.get(name):
            raise UsageError(f"--{name} is required, on the command line or in a recipe")
    where = f"--recipe {os.fspath(recipe)}: " if recipe is not None else ""
    given = {name: value for name, value in values.items() if name not in (*_RUN, "experiment")}
    configs = words(values["config"])
    for one in given:  # an argument that has another name here
        if (near := OTHER_NAMES.get(one)) in _RUN:
            raise UsageError(f"{where}no option {one!r} (did you mean {near}?)")
    trained, train_options = configured(str(values["method"]), given, where)
    with needs("train"):
        from temporalwiki.methods import train as training  # imports torch, which takes seconds

    folder = Path(values.get("output") or f"runs/{values['method']}-{'-'.join(configs)}")
    wanted = training.Run(
        name=str(values["method"]),
        method=trained,
        model=_written_model(values["model"], tokenizer, folder),
        data=_written_data(values["data"], configs, folder),
        config=configs[0],
        past=values.get("past"),
        options=train_options,
        output=folder,
        open_model=_open_model,
    )
    manifests = training.train(wanted, configs)
    places = {one: folder / one if len(configs) > 1 else folder for one in configs}
    lines, rows = [], []
    for manifest in manifests:
        one = manifest["run"]["config"]
        loss = manifest.get("loss")
        change = f"loss {loss['first']:.4f} to {loss['last']:.4f} in {manifest['steps']} steps; " if loss else ""
        lines.append(f"{one}: {change}checkpoint in {places[one]} ({training.MANIFEST})")
        rows += [{"config": one, **entry} for entry in manifest.get("log", ())]
    return Trained(places[configs[-1]], rows, "\n".join(lines), manifests)


def _open_model(reference: str) -> Any:
    with needs("eval"):
        from temporalwiki.eval_harness.text_model import open_model
    return open_model(reference)


def _written_model(model: Any, tokenizer: Any, output: Path) -> str:
    """Return the name of a model. Write a model in memory to a folder next to ``output``, and return the folder."""
    if isinstance(model, str | os.PathLike) and tokenizer is None:
        return os.fspath(model)
    from peft import PeftModel

    from temporalwiki.api.evaluate import open_held
    from temporalwiki.base.files import whole_folder
    from temporalwiki.methods.processes import processes

    if isinstance(model, PeftModel):
        raise UsageError("--model: an adapter in memory: merge it first, model.merge_and_unload(), or name its folder")
    held = open_held(model, "auto", tokenizer)
    folder = output.resolve().with_name(f"start-{held.revision[:8]}")
    with processes().main_process_first():
        if not folder.is_dir():
            with whole_folder(folder) as part:
                held.loaded.model.save_pretrained(part)
                held.loaded.tokenizer.save_pretrained(part)
    return str(folder)


def _written_data(data: Any, configs: Sequence[str], output: Path) -> str:
    """Return the name of a dataset. Write one in memory to a folder next to ``output``, and return the folder."""
    if isinstance(data, str | os.PathLike):
        return os.fspath(data)
    from datasets import Dataset, DatasetDict

    from temporalwiki.base.files import digest, whole_folder
    from temporalwiki.base.json_files import fingerprint
    from temporalwiki.methods.processes import processes

    splits = {"train": data} if isinstance(data, Dataset) else data
    if not isinstance(splits, DatasetDict | dict) or not splits:
        raise UsageError(f"data is a folder, a Hub id, a Dataset or a DatasetDict, not {type(data).__name__}")
    with processes().main_process_first():
        new = output.resolve().with_name(f".data-{os.getpid()}")
        with whole_folder(new) as part:
            for split, rows in splits.items():
                rows.to_parquet(part / f"{split}.parquet")
            lines = [f"- config_name: {config}\n  data_files:\n" for config in configs]
            files = "".join(f"  - split: {split}\n    path: {split}.parquet\n" for split in splits)
            (part / "README.md").write_text(f"---\nconfigs:\n{''.join(line + files for line in lines)}---\n", "utf-8")
        folder = new.with_name(f"data-{fingerprint([digest(file, 'sha256') for file in sorted(new.iterdir())])[:8]}")
        if folder.is_dir():
            shutil.rmtree(new)
        else:
            new.rename(folder)
    return str(folder)
