"""Train a model with a method on one or more configs: from a starting checkpoint to a new one for each config."""

import json
import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import torch
from accelerate import PartialState
from accelerate.utils import set_seed
from transformers import PreTrainedTokenizerBase

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import make_folder, only_one, sync, sync_tree
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.base.terminal import say
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.builders.loading import config_names
from temporalwiki.builders.manifests import DataFile
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import check_causal, context_length, is_encoder_decoder, total, trainable
from temporalwiki.methods.attention import check_kernels, set_attention
from temporalwiki.methods.expansion import SPEC
from temporalwiki.methods.loss_curve import draw
from temporalwiki.methods.manifest import check_checkpoint, read_training, settings_of
from temporalwiki.methods.method import Method, Phase
from temporalwiki.methods.options import ADDED, MAY_DIFFER, TrainOptions
from temporalwiki.methods.processes import processes, sharded
from temporalwiki.methods.quantization import check_installed, quantized
from temporalwiki.methods.trainer import last_complete, make_trainer, no_space_left, undamaged
from temporalwiki.methods.training_data import check_content, configs_to_read, on_test, read_training_data

MANIFEST = checkpoint.TRAINING
_CPU = Path("/proc/cpuinfo")
_RUN = "run.json"  # identity and data of an unfinished run
_CHECKPOINTS = "checkpoints"
_MAY_CHANGE = ("README.md", "loss.png")  # users write a card, or draw another picture
_NAME_BASE = (checkpoint.ADAPTER, SPEC)


@dataclass(frozen=True)
class Run:
    """One phase: a method on a config, from a starting checkpoint."""

    name: str  # of the method
    method: Method
    model: str  # folder, Hub id, .gguf file or package:NAME
    data: str  # folder, Hub id or id@revision
    config: str
    past: str | None
    options: TrainOptions
    output: Path
    load: Callable[[], checkpoint.Checkpoint] | None = None  # loads ``model`` if it is in memory
    open_model: OpenModel = no_models  # opens a model that writes, for ``study --writer``


class _UnfinishedRun(msgspec.Struct):
    """The content of ``run.json``."""

    run: dict[str, Any]
    data: dict[str, Any] | None = None  # None until the data has been read


def train(run: Run, configs: list[str] | None = None) -> list[dict[str, Any]]:
    """Train on each of ``configs`` (default: the run's) in turn, and return a manifest per config.

    With one config, ``run.output`` is the folder of the checkpoint. With several, ``run.output`` has a folder with the
    name of each config, and the training on a config starts from the checkpoint of the config before it. Finished
    checkpoints are kept, and an interrupted training continues. Raises InputError or UsageError for input that cannot
    be used.
    """
    configs = configs or [run.config]
    if len(set(configs)) < len(configs):
        raise UsageError(
            f"a config comes twice in {' '.join(configs)}, but each checkpoint needs a folder with its config's name"
        )
    if run.method.trains:
        _check_weights(run)
    phases = []
    for config in configs:
        output = run.output / config if len(configs) > 1 else run.output
        phases.append(replace(run, config=config, output=output))
        run = replace(run, model=str(output), load=None)
    unfinished = [phase for phase in phases if not (phase.output / MANIFEST).is_file() and phase.method.trains]
    reads = _check_data(unfinished) if unfinished else {}
    return [_phase(phase, reads.get(phase.config, [])) for phase in phases]


def _check_data(phases: list[Run]) -> dict[str, list[str]]:
    """Return the configs that each phase reads, by its config; raise InputError or UsageError if it cannot read them.

    This is cheap, so it comes first: a typo costs neither the download of the model nor an earlier phase.
    """
    _check_speed_options(phases[0])
    available, reads = config_names(phases[0].data), {}
    for run in phases:
        reads[run.config] = configs_to_read(
            run.name, run.method, run.data, run.config, run.past, run.options, available
        )
        check_content(run.data, reads[run.config], run.method, run.options)
    return reads


def _check_weights(run: Run) -> None:
    """Raise UsageError if the method or the optimizer does not support weights that are sharded or in bf16."""
    if sharded() and not run.method.shardable:
        raise UsageError(f"{run.name}: needs unsharded weights, which FSDP does not give: train with DDP")
    if sharded() and run.options.optimizer == "adafactor":
        raise UsageError("FSDP cannot shard the state of adafactor: train with DDP")
    if run.options.in_bf16 and sharded():
        what = "--dtype" if run.options.quantize is None else "--quantize"
        raise UsageError(f"FSDP shards weights in fp32 and gathers them in bf16: --precision bf16, without {what}")
    if run.options.quantize is not None:
        if not run.method.adds_only:
            raise UsageError(
                f"{run.name}: needs the model's own weights, not in 4 bits: leave out --quantize, or use lora, dora, "
                "o_lora or k_adapter"
            )
        check_installed()
    if run.options.in_bf16 and type(run.method).after_step is not Method.after_step:
        raise UsageError(f"{run.name}: changes the weights after each step, which needs them in fp32, not in bf16")


def _check_speed_options(run: Run) -> None:
    """Raise UsageError for attention that this machine lacks, and for a fused loss that the method cannot use."""
    if run.options.attention is not None:
        check_kernels(run.options.attention, _precision(run.options))
    if run.options.fused_loss and run.method.reads_logits:
        raise UsageError(f"{run.name}: reads the logits, which --fused-loss does not keep")
    if run.options.fused_loss and type(run.method).own_trainer is not Method.own_trainer:
        raise UsageError(f"{run.name}: has a trainer of its own, without --fused-loss")


def _phase(run: Run, reads: list[str]) -> dict[str, Any]:
    state = processes()
    if run.options.sequence_length is None and run.method.trains:
        run = replace(run, options=replace(run.options, sequence_length=_default_length(run)))
    identity = _identity(run)
    finished = _finished(run.output, identity)
    state.wait_for_everyone()  # all processes must look before one of them writes
    if finished is not None:
        if state.is_main_process:
            _tidy(run.output)
        return finished
    if state.is_main_process:
        with only_one(run.output, "training"):
            return _train(run, reads, identity, state)
    return _train(run, reads, identity, state)


def _default_length(run: Run) -> int:
    """Return the tokens per sequence of a run that names none. A finished one needs no model for it."""
    if (run.output / MANIFEST).is_file() and (known := read_training(run.output / MANIFEST).run.sequence_length):
        return known
    config = run.load().model.config if run.load else checkpoint.read_config(run.model)
    return min(run.options.tokens, context_length(config) or run.options.tokens)


def _identity(run: Run) -> dict[str, Any]:
    """Return what identifies a run. A run with the same identity continues it."""
    options = {name: value for name, value in asdict(run.options).items() if name not in MAY_DIFFER}
    identity = {
        "method": run.name,
        "model": checkpoint.absolute(run.model),
        "data": checkpoint.absolute(run.data),
        "config": run.config,
        "past": run.past,
        **{f"{run.name}.{name}": value for name, value in asdict(run.method).items()},
        **options,
    }
    return json.loads(json.dumps(identity))  # lists for tuples, as in the file


def _finished(output: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """Return the manifest if ``output`` holds this run, finished; raise InputError if it holds something else."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; name a folder with --output")
    manifest = read_training(output / MANIFEST).content if (output / MANIFEST).is_file() else None
    if manifest is not None:
        there = manifest["run"]
    elif (output / _RUN).is_file():
        there = read_json(output / _RUN, _UnfinishedRun, "the description of a run").run
        if there != identity and last_complete(output / _CHECKPOINTS) is None:
            return None  # that run has no checkpoint yet, so nothing is lost
    elif output.is_dir() and any(not path.name.startswith(".") for path in output.iterdir()):
        raise InputError(f"{output}: is not empty and holds no run; use another --output")
    else:
        return None
    if different := sorted(key for key in {**there, **identity} if there.get(key) != identity.get(key)):
        changes = ", ".join(f"{key} {there.get(key)!r} there, {identity.get(key)!r} here" for key in different)
        raise InputError(f"{output}: holds another run ({changes}); use another --output, or remove it")
    check_checkpoint(output)
    return manifest


def _train(run: Run, reads: list[str], identity: dict[str, Any], state: PartialState) -> dict[str, Any]:
    started = time.perf_counter()
    options, method = run.options, run.method
    precision = _precision(options)
    set_seed(options.seed)
    reference = checkpoint.pinned(run.model)
    start = _start(run, reference)
    kind = "encoder-decoder" if is_encoder_decoder(start.model) else "decoder-only"
    if method.unsupported_architecture == kind:
        raise UsageError(f"{run.name} does not support {run.model}, which is {kind}")
    if options.fused_loss and is_encoder_decoder(start.model):
        raise UsageError(f"{run.model}: an encoder-decoder, and --fused-loss is for decoder-only models")
    if sharded() and is_encoder_decoder(start.model):
        raise UsageError(f"{run.name}: FSDP cannot shard T5, because of its shared embedding: train with DDP")
    if method.trains and kind == "decoder-only" and not sharded():
        check_causal(start.model, run.model)
    if options.attention is not None:
        set_attention(start.model, options.attention)
        start.model.to(state.device)  # before the training, because these kernels run on GPUs only
    inherited = _inherited(reference, on_test(reads))
    phase = _phase_of(run, reference, tuple(inherited.get("earlier_steps", ())))
    model = method.prepare(start.model, phase)
    manifest: dict[str, Any] = {
        "run": identity,
        **inherited,
        "architecture": kind,
        "parameters": {"trainable": trainable(model), "total": total(model)},
        "versions": {name: version(name) for name in ("temporalwiki", "torch", "transformers", "accelerate", "peft")},
    }
    added = ADDED * manifest["parameters"]["trainable"]  # in fp32
    if method.trains and options.most_bytes is not None and added > options.most_bytes:
        raise UsageError(
            f"{run.name}: --budget {options.budget}: it adds {added:,} bytes, more than the budget; a smaller adapter "
            "(--rank), a smaller --share or another method may fit"
        )
    if not method.trains:
        if state.is_main_process:
            _describe(run.output, {"run": identity})
        return _save(run, manifest, lambda folder: method.save(model, folder), start.tokenizer, state)
    if method.data != Method.data and not run.config.startswith(f"{method.data}-"):
        _say(state, f"note: {run.name} is defined on {method.data}-*, but this run trains on {run.config}")
    if torch.cuda.device_count() > state.num_processes == 1:
        _say(state, "using one of several GPUs; for all, run `accelerate launch -m temporalwiki train ...`")
    if manifest["parameters"]["trainable"] != manifest["parameters"]["total"]:
        _say(state, "training {trainable:,} of {total:,} parameters".format(**manifest["parameters"]))
    if state.num_processes > 1 and getattr(method, "writer", None) is not None:
        raise UsageError(f"{run.name}: --writer writes in one process only: train without `accelerate launch`")
    with state.local_main_process_first():  # the other processes then find its examples in the cache
        training_data = read_training_data(method, run.data, reads, options, model, start.tokenizer, run.open_model)
    if "one_document_a_row" in training_data.description.get("new", {}):
        model_type = start.model.config.model_type
        _say(state, f"{model_type}: documents of one row would see each other, so each row holds one document")
    if state.is_main_process:
        _describe(run.output, {"run": identity, "data": training_data.description})
    state.wait_for_everyone()
    name = f"{run.name} {run.config}"
    trainer = make_trainer(model, method, training_data, start.tokenizer, options, precision, phase, name)
    if trainer.args.max_steps < method.least_steps:
        _say(
            state,
            f"note: {run.name} starts without an effect and learns slowly: {trainer.args.max_steps} steps are few, "
            f"{method.least_steps} or more are better",
        )
    last = undamaged(phase.folder, "train", state)
    if last is not None:
        _say(state, f"{run.output}: continuing from step {last.name.split('-')[1]} of {trainer.args.max_steps}")
    trainer.train(resume_from_checkpoint=None if last is None else str(last))

    weights = trainer.accelerator.get_state_dict(trainer.model_wrapped) if sharded() else None
    model = trainer.accelerator.unwrap_model(trainer.model)
    trainer.masters.unround()
    if weights is not None:  # tied weights are listed under two names: changing one would miss the other
        tied = set(getattr(model, "all_tied_weights_keys", None) or ())
        weights = {name: weight for name, weight in weights.items() if name not in tied}
    lines = [line for line in trainer.state.log_history if "loss" in line]
    # without the library's epoch, which counts all epochs of a run as one, and without values that JSON cannot hold
    log = [{name: v for name, v in line.items() if name != "epoch" and math.isfinite(v)} for line in lines]
    manifest |= {
        "data": training_data.description,
        "sources": msgspec.to_builtins(training_data.sources),
        "steps": trainer.state.global_step,
        "precision": precision,
        "processes": state.num_processes,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "seconds": round(time.perf_counter() - started, 1),
        "loss": {"first": log[0]["loss"], "last": log[-1]["loss"]},
        "log": log,
    }

    def write(folder: Path) -> None:
        method.finish(weights or {n: p for n, p in model.named_parameters() if p.requires_grad}, phase)
        method.save(model, folder, weights)
        draw(log, f"{run.name} on {run.config}", folder / "loss.png")

    return _save(run, manifest, write, start.tokenizer, state)


def _start(run: Run, reference: str) -> checkpoint.Checkpoint:
    """Load the starting checkpoint; raise UsageError if its matrices cannot be quantized."""
    if run.load is not None:
        return run.load()
    if run.options.quantize is not None and run.method.trains:
        if (config := checkpoint.read_config(reference)).is_encoder_decoder:
            raise UsageError(f"{run.name}: trains the decoder of {config.model_type}, which cannot be in 4 bits")
        return quantized(reference)
    rounded = run.options.in_bf16 and run.method.trains
    start = checkpoint.load(reference, torch.bfloat16 if rounded else torch.float32)
    start.model.config.dtype = checkpoint.stored_dtype(reference)  # what ``Method.save`` writes
    return start


def _phase_of(run: Run, reference: str, earlier: tuple[int, ...]) -> Phase:
    """Return the phase that starts from the checkpoint ``reference``, after phases of ``earlier`` steps."""
    phases = [reference]  # the checkpoints that phases of this method started from, newest first
    while (before := checkpoint.training_of(phases[-1])) and before.run.method == run.name:
        if before.run.model in phases:
            break
        phases.append(before.run.model)
    previous = run.load or partial(checkpoint.load, reference)
    return Phase(
        seed=run.options.seed,
        folder=run.output / _CHECKPOINTS,
        index=len(phases) - 1,
        earlier=earlier,
        previous=lambda: previous().model,
        base=lambda: checkpoint.load_model(phases[-1]) if phases[1:] else previous().model,
    )


def _inherited(reference: str, on_test: list[str]) -> dict[str, Any]:
    """Return entries of a manifest that come from the starting checkpoint, without empty ones.

    - "base": the Hub id and commit that the first phase started from
    - "trained_on_test": the test configs that its training read, and this phase's, ``on_test``
    - "earlier_steps": the steps of each phase before this one
    - "earlier_sources": the configs that its training and the phases before it read, oldest first
    """
    start = checkpoint.training_of(reference)
    steps = [*start.earlier_steps, *filter(None, [start.steps])] if start else []
    base = reference if checkpoint.is_hub_id(reference) else start and start.base
    on_test = sorted({*on_test, *(start.trained_on_test if start else ())})
    earlier = msgspec.to_builtins([*start.earlier_sources, *start.sources]) if start else []
    found = {"base": base, "trained_on_test": on_test, "earlier_steps": steps, "earlier_sources": earlier}
    return {name: value for name, value in found.items() if value}


def _describe(output: Path, description: dict[str, Any]) -> None:
    """Write the description of a run that starts now; raise InputError if it continues one with other data."""
    description = json.loads(json.dumps(description))  # lists for tuples, as in the file
    earlier = read_json(output / _RUN, dict[str, Any]) if (output / _RUN).is_file() else None
    if earlier == description:
        return
    if earlier is not None and last_complete(output / _CHECKPOINTS) is not None:
        raise InputError(f"{output}: the data changed since this run started; use another --output, or remove it")
    shutil.rmtree(output / _CHECKPOINTS, ignore_errors=True)
    write_json(output / _RUN, description)


def _save(
    run: Run,
    manifest: dict[str, Any],
    write: Callable[[Path], None],
    tokenizer: PreTrainedTokenizerBase,
    state: PartialState,
) -> dict[str, Any]:
    """Write the checkpoint (by ``write``), the tokenizer and, last, the manifest to the output folder."""
    if state.is_main_process:
        part = run.output / ".part"
        shutil.rmtree(part, ignore_errors=True)
        with no_space_left(run.output):
            make_folder(part)
            write(part)
            tokenizer.save_pretrained(part)
            sync_tree(part)
            written = [path for path in sorted(part.rglob("*")) if path.is_file()]
            exempt = (*_MAY_CHANGE, *_NAME_BASE)
            files = [DataFile.of(path, part) for path in written if path.name not in exempt]
            manifest["files"] = msgspec.to_builtins(files)
            manifest["settings"] = {path.name: settings_of(path) for path in written if path.name in _NAME_BASE}
            for path in sorted(part.iterdir()):
                there = run.output / path.name
                if there.is_dir():  # a tokenizer's folder of templates, of a killed process
                    shutil.rmtree(there)
                path.replace(there)
            part.rmdir()
            if (logs := run.output / _CHECKPOINTS / "runs").is_dir():  # the library's TensorBoard logs
                shutil.copytree(logs, run.output / "tensorboard", dirs_exist_ok=True)
            sync(run.output)
            write_json(run.output / MANIFEST, manifest)
        _tidy(run.output)
    state.wait_for_everyone()
    return manifest


def _tidy(output: Path) -> None:
    """Remove the files of an unfinished run and the leftovers of killed ones."""
    (output / _RUN).unlink(missing_ok=True)
    shutil.rmtree(output / _CHECKPOINTS, ignore_errors=True)
    for part in list(output.glob(".*.part")):
        part.unlink(missing_ok=True)


def _precision(options: TrainOptions) -> str:
    wanted = options.precision
    if options.in_bf16:
        return "bf16"
    if wanted == "auto":
        fast = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else _fast_bf16()
        return "bf16" if fast else "fp32"
    if wanted == "fp16" and not torch.cuda.is_available():
        raise UsageError("fp16 needs a GPU, because gradient scaling is only available there; use bf16")
    return wanted


def _fast_bf16() -> bool:
    """Return whether the CPU has instructions for products of matrices in bf16, and oneDNN may use them."""
    flags = _CPU.read_text("utf-8", errors="replace") if _CPU.is_file() else ""
    allowed = os.environ.get("ONEDNN_MAX_CPU_ISA", "DEFAULT")
    amx = any(name in allowed for name in ("DEFAULT", "ALL", "AMX"))
    return (amx and "amx_bf16" in flags.split()) or (
        (amx or "BF16" in allowed or "FP16" in allowed) and "avx512_bf16" in flags.split()
    )


def _say(state: PartialState, text: str) -> None:
    if state.is_main_process:
        say(f"train: {text}")
