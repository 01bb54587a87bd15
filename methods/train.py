"""Train one method on one or more months: from a checkpoint and a config to the next checkpoint."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import set_seed
from transformers import PreTrainedTokenizerBase

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.json_files import write_json
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import is_encoder_decoder, total, trainable
from temporalwiki.methods.loss_curve import draw
from temporalwiki.methods.method import Method
from temporalwiki.methods.options import MAY_DIFFER, TrainOptions
from temporalwiki.methods.processes import processes
from temporalwiki.methods.trainer import last_complete, no_space_left
from temporalwiki.methods.training_data import make_trainer, read

MANIFEST = "training.json"  # written last: a folder that has it holds a finished checkpoint
_RUN = "run.json"  # what an interrupted run was to be
_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Run:
    """One phase: a method on a config, from a starting checkpoint."""

    name: str  # the method's
    method: Method
    model: str  # folder, Hub id, .gguf file or package:NAME
    data: str  # folder, Hub id or id@revision
    config: str
    past: str | None
    options: TrainOptions
    output: Path


def train(run: Run, configs: list[str] | None = None) -> list[dict[str, Any]]:
    """Train, month after month where there are several ``configs``, and return each phase's manifest.

    The checkpoint of one config is ``run.output`` itself; several are in folders of their configs' names in it, each
    started from the one before. A phase that is finished is not done again, one that was interrupted goes on.
    Raises InputError or UsageError for input that cannot be used; see ``Run``.
    """
    configs = configs or [run.config]
    if len(set(configs)) < len(configs):
        raise UsageError(f"a config comes twice in {' '.join(configs)}: each phase has a folder of its config's name")
    manifests = []
    for config in configs:
        output = run.output / config if len(configs) > 1 else run.output
        phase = replace(run, config=config, output=output)
        manifests.append(_phase(phase))
        run = replace(run, model=str(output))
    return manifests


def _phase(run: Run) -> dict[str, Any]:
    state = processes()
    what = _identity(run)
    finished = _finished(run.output, what)
    state.wait_for_everyone()  # what one of them writes is not what another finds
    if finished is not None:
        if state.is_main_process:
            _tidy(run.output)
        return finished
    if state.is_main_process:
        with only_one(run.output, "training"):
            return _train(run, what, state)
    return _train(run, what, state)


def _identity(run: Run) -> dict[str, Any]:
    """Return what a run is: another run with the same is its continuation."""
    options = {name: value for name, value in asdict(run.options).items() if name not in MAY_DIFFER}
    return json.loads(  # as it will be read back
        json.dumps(
            {
                "method": run.name,
                "model": checkpoint.absolute(run.model),
                "data": checkpoint.absolute(run.data),
                "config": run.config,
                "past": run.past,
                **{f"{run.name}.{name}": value for name, value in asdict(run.method).items()},
                **options,
            }
        )
    )


def _finished(output: Path, what: dict[str, Any]) -> dict[str, Any] | None:
    """Return the manifest of a finished run of the same; raise InputError if ``output`` holds another."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; name a folder with --output")
    for name in (MANIFEST, _RUN):
        if not (output / name).is_file():
            continue
        try:
            manifest = json.loads((output / name).read_text("utf-8"))
            there = manifest["run"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{output / name}: not a run's description; use another --output") from None
        other = [key for key in {**there, **what} if there.get(key) != what.get(key)]
        if other and name == _RUN and last_complete(output / _CHECKPOINTS) is None:
            return None  # it got nowhere: nothing is lost
        if other:
            changes = ", ".join(f"{key} {there.get(key)!r} there, {what.get(key)!r} here" for key in sorted(other))
            raise InputError(f"{output}: holds another run ({changes}); use another --output, or remove it")
        return dict(manifest) if name == MANIFEST else None
    if output.is_dir() and any(not path.name.startswith(".") for path in output.iterdir()):
        raise InputError(f"{output}: is not empty and holds no run; use another --output")
    return None


def _train(run: Run, what: dict[str, Any], state: PartialState) -> dict[str, Any]:
    begun = time.perf_counter()
    options, method = run.options, run.method
    precision = _precision(options.precision)
    set_seed(options.seed)
    reference = checkpoint.pinned(run.model)
    start = checkpoint.load(reference)
    kind = "encoder-decoder" if is_encoder_decoder(start.model) else "decoder-only"
    if method.refuses == kind:
        raise UsageError(f"{run.name} does not fit {run.model}, which is {kind}")
    model = method.prepare(start.model, options.seed)
    manifest: dict[str, Any] = {
        "run": what,
        **_base(reference),
        "architecture": kind,
        "parameters": {"trainable": trainable(model), "total": total(model)},
        "versions": {name: version(name) for name in ("temporalwiki", "torch", "transformers", "accelerate", "peft")},
    }
    if not method.trains:
        if state.is_main_process:
            _begin(run.output, {"run": what})
        return _save(run, manifest, lambda folder: method.save(model, folder), start.tokenizer, state)
    if method.data != Method.data and not run.config.startswith(f"{method.data}-"):
        _say(state, f"{run.name} is defined on {method.data}-*, and is trained on {run.config} here")
    if torch.cuda.device_count() > state.num_processes == 1:
        _say(state, "one GPU of several is used: start it with `accelerate launch -m temporalwiki train ...` for all")
    _say(state, "{trainable:,} of {total:,} parameters are trained".format(**manifest["parameters"]))
    with state.local_main_process_first():  # the others find what it made
        material = read(run.name, method, run.data, run.config, run.past, options, model, start.tokenizer)
    folder = run.output / _CHECKPOINTS
    if state.is_main_process:
        _begin(run.output, {"run": what, "data": material.described})
    state.wait_for_everyone()
    name = f"{run.name} {run.config}"
    trainer = make_trainer(model, method, material, start.tokenizer, options, precision, folder, name)
    moved = {name: p for name, p in model.named_parameters() if p.requires_grad}
    before = {name: p.detach().cpu().clone() for name, p in moved.items()} if method.needs_start else {}
    last = last_complete(folder)
    if last is not None:
        _say(state, f"{run.output}: going on from step {last.name.split('-')[1]} of {trainer.args.max_steps}")
    trainer.train(resume_from_checkpoint=None if last is None else str(last))

    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    weights = trainer.accelerator.get_state_dict(trainer.model_wrapped) if sharded else None
    model = trainer.accelerator.unwrap_model(trainer.model)
    if weights is not None:  # tied weights come twice, and whoever changes one would miss the other
        tied = set(getattr(model, "all_tied_weights_keys", None) or ())
        weights = {name: weight for name, weight in weights.items() if name not in tied}
    lines = [line for line in trainer.state.log_history if "loss" in line]
    # the library's epoch is the share of the run, as it is given all epochs in one
    log = [{name: value for name, value in line.items() if name != "epoch"} for line in lines]
    manifest |= {
        "data": material.described,
        "steps": trainer.state.global_step,
        "precision": precision,
        "processes": state.num_processes,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "seconds": round(time.perf_counter() - begun, 1),
        "loss": {"first": log[0]["loss"], "last": log[-1]["loss"]},
        "log": log,
    }

    def write(folder: Path) -> None:
        method.finish(weights or {n: p for n, p in model.named_parameters() if p.requires_grad}, before)
        method.save(model, folder, weights)
        draw(log, f"{run.name} on {run.config}", folder / "loss.png")

    return _save(run, manifest, write, start.tokenizer, state)


def _base(reference: str) -> dict[str, str]:
    """Return what the first phase began from, "base": an id on the Hub at its commit; nothing of what was here."""
    if checkpoint.is_hub_id(reference):
        return {"base": reference}
    try:
        return {"base": str(json.loads((Path(reference) / MANIFEST).read_text("utf-8"))["base"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}  # no manifest, another program's, or of a run that was begun from a folder


def _begin(output: Path, description: dict[str, Any]) -> None:
    """Note what is begun; raise InputError where it was begun with other data."""
    described = json.loads(json.dumps(description))
    there = json.loads((output / _RUN).read_text("utf-8")) if (output / _RUN).is_file() else None
    if there == described:
        return
    if there is not None and last_complete(output / _CHECKPOINTS) is not None:
        raise InputError(f"{output}: the data changed since this run was begun; use another --output, or remove it")
    shutil.rmtree(output / _CHECKPOINTS, ignore_errors=True)
    write_json(output / _RUN, described)


def _save(
    run: Run,
    manifest: dict[str, Any],
    write: Callable[[Path], None],
    tokenizer: PreTrainedTokenizerBase,
    state: PartialState,
) -> dict[str, Any]:
    """Put what ``write`` writes into the output with the tokenizer, and the manifest last."""
    if state.is_main_process:
        part = run.output / ".part"
        shutil.rmtree(part, ignore_errors=True)
        with no_space_left(run.output):
            part.mkdir(parents=True)
            write(part)
            tokenizer.save_pretrained(part)
            for path in sorted(part.iterdir()):
                path.replace(run.output / path.name)
            part.rmdir()
            if (logs := run.output / _CHECKPOINTS / "runs").is_dir():  # where the library has TensorBoard's
                shutil.copytree(logs, run.output / "tensorboard", dirs_exist_ok=True)
            write_json(run.output / MANIFEST, manifest)
        _tidy(run.output)
    state.wait_for_everyone()
    return manifest


def _tidy(output: Path) -> None:
    """Remove what a finished run needed to go on, and what killed ones left."""
    (output / _RUN).unlink(missing_ok=True)
    shutil.rmtree(output / _CHECKPOINTS, ignore_errors=True)
    for part in list(output.glob(".*.part")):
        part.unlink(missing_ok=True)


def _precision(wanted: str) -> str:
    if wanted == "auto":
        return "bf16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "fp32"
    if wanted == "fp16" and not torch.cuda.is_available():
        raise UsageError("fp16 needs a GPU: its gradients vanish without a scaler, which is there alone; take bf16")
    return wanted


def _say(state: PartialState, text: str) -> None:
    if state.is_main_process:
        print(f"train: {text}", file=sys.stderr, flush=True)
