"""Models whose weights are here, from a folder, the Hub or memory: their scores and answers are cached."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import discard, only_one, read_small, whole_file
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.loading import exists
from temporalwiki.eval_harness.generation import Generator, Writer
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.models.model import LIKELIHOODS, WEIGHTS, Model
from temporalwiki.eval_harness.scoring import PRECISIONS, Scorer, Text, TokenScores
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import is_encoder_decoder
from temporalwiki.methods.expansion import SPEC
from temporalwiki.methods.manifest import Parameters, TrainingManifest, read_training

_READ = ("*.safetensors", "*.bin", "*.json", "*.model", "*.txt")  # weights, configuration, tokenizer
_TRAINING = "training.json"
_NOT_HASHED = (_TRAINING, "run.json")  # they describe the training; the model does not read them
_BASE_KEY = {checkpoint.ADAPTER: "base_model_name_or_path", SPEC: "base_model"}  # file -> its key for the base model
_WRITE_VERSION = 3  # raise it if ``write`` gives other answers: cached answers of other versions are not used
_UNREAD = ("_name_or_path", "transformers_version")  # entries of a configuration that do not change a score
_FACTS_CARD = "---\nconfigs:\n- config_name: lighttuning-facts\n  data_files: facts.parquet\n---\n"

Question = TypeVar("Question", Text, str)
Answer = TypeVar("Answer", TokenScores, str)


@dataclass
class CachedModel(Model):
    """A checkpoint that scores texts and answers prompts, and caches the results.

    ``score`` and ``generate`` load the checkpoint even if all results are cached. ``write`` loads it only if an answer
    is missing from the cache.

    Several processes (``accelerate launch``) share the work: each computes a part, and all return everything.
    """

    reference: str  # folder, Hub id, .gguf file or package:NAME
    cache_folder: Path  # the folder of cached scores and answers
    precision: str = "fp32"  # of likelihoods; answers are generated in the precision of the weights
    temperature: float = 1.0  # divides the logits; see ``softened``
    start: Model | None = None  # the model that the training started from, or its results

    can = frozenset({WEIGHTS, LIKELIHOODS})

    @cached_property
    def revision(self) -> str:
        """The identity of the weights and tokenizer; see the function ``revision``."""
        return revision(self.reference)

    def check(self) -> None:
        """Raise InputError if the model is missing. This reads no more than the first score needs anyway."""
        self.revision  # noqa: B018 - looks for the model

    @cached_property
    def loaded(self) -> checkpoint.Checkpoint:
        """The model on its device, with its tokenizer; see ``_placement``.

        Raises InputError if it cannot be loaded, and UsageError if several processes would each need several GPUs.
        """
        dtype, spread = self._placement
        if spread:
            return checkpoint.load(self.reference, dtype, device_map="auto")
        found = checkpoint.load(self.reference, dtype)
        return checkpoint.Checkpoint(found.model.to(self.state.device), found.tokenizer)

    @cached_property
    def _placement(self) -> tuple[torch.dtype, bool]:
        """The type of the weights, and whether they are spread over all GPUs.

        Weights are in fp32 if these take at most half of the GPU's memory, and always on a CPU and with
        ``--precision fp32``. Others are in bf16, on one GPU if they take at most two thirds of it.
        """
        memory = _memory(self.state.device)
        if memory is None or self.precision != "bf16":
            return torch.float32, False
        parameters = checkpoint.count_parameters(self.reference)
        if 4 * parameters <= memory / 2:
            return torch.float32, False
        spread = 2 * parameters > memory * 2 / 3
        if spread and self.state.num_processes > 1:
            raise UsageError(
                f"{self.reference}: {parameters:,} parameters do not fit one GPU; start the command without "
                "accelerate launch, and one process uses all GPUs"
            )
        return torch.bfloat16, spread

    def softened(self, temperature: float) -> CachedModel:
        """Return this model with its logits divided by ``temperature``; both share the weights."""
        other = copy.copy(self)
        other.__dict__.pop("_scorer", None)
        other.temperature = temperature
        return other

    def copied(self) -> checkpoint.Checkpoint:
        """Return a second copy of model and tokenizer, which training may change."""
        return checkpoint.load(self.reference)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer, for callers that do not need the model."""
        return checkpoint.load_tokenizer(self.reference)

    def training(self) -> dict[str, Any]:
        """Return how the checkpoint was trained; see the function ``training``."""
        return training(self.reference)

    @cached_property
    def encoder_decoder(self) -> bool:
        """Whether it is an encoder-decoder model such as T5."""
        return is_encoder_decoder(self.loaded.model)

    @cached_property
    def has_bos(self) -> bool:
        """Whether it scores the first token of a text."""
        return self.encoder_decoder or self.loaded.tokenizer.bos_token_id is not None

    def score(self, texts: Sequence[Text], what: str) -> list[TokenScores | None]:
        """Return each text's scores, or None for a text that cannot be scored; see ``Scorer.score``.

        ``what`` is the name in the progress display.
        """
        cache = ScoreCache(self.cache_folder, self.revision, self._scorer.policy)
        return self._ask_once(texts, self._scorer.score, cache.scores, cache.add_scores, what, "text")

    def generate(
        self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int = 1, whole: bool = False
    ) -> list[str | None]:
        """Return each prompt's answer, or None for a prompt that is too long for the model's context.

        An answer ends with its first sentence; if ``whole``, it ends where the model or ``max_new_tokens`` ends it.
        """
        generator = Generator(self.loaded.model, self.loaded.tokenizer, max_new_tokens, beams, whole)
        cache = ScoreCache(self.cache_folder, self.revision, generator.policy)
        return self._ask_once(prompts, generator.generate, cache.answers, cache.add_answers, what, "prompt")

    def write(self, prompts: Sequence[str], what: str, max_new_tokens: int) -> list[str | None]:
        """Return the model's one-line answer to each prompt, or None for a prompt that is empty or too long.

        See ``Writer``. If the cache has all answers, the model is not loaded.
        """

        def ask(texts: Sequence[str], share: tuple[int, int], kept: Container[int]) -> Iterator[list[tuple[int, str]]]:
            if any(i not in kept for i in range(len(texts))):
                writer = Writer(self.loaded.model, self.loaded.tokenizer, max_new_tokens)
                yield from writer.generate(texts, share, kept)

        dtype, _ = self._placement
        policy = {"text": _WRITE_VERSION, "max_new_tokens": max_new_tokens, "precision": PRECISIONS[dtype]}
        cache = ScoreCache(self.cache_folder, self.revision, policy)
        return self._ask_once(prompts, ask, cache.answers, cache.add_answers, what, "prompt")

    @contextmanager
    def light_tuned(self, facts: Sequence[Mapping[str, Any]]) -> Iterator[CachedModel]:
        """Yield a copy of the model, light-tuned on ``facts`` (subject, relation, object).

        The weights of the copy are in the cache folder. They are removed at the end of the block, but not after an
        error, so that an interrupted training continues.
        """
        from temporalwiki.base.options import from_mapping
        from temporalwiki.methods.light_tuning import LightTuning
        from temporalwiki.methods.options import SEQUENCE_LENGTH, TrainOptions
        from temporalwiki.methods.train import Run, train

        rows = [{name: fact[name] for name in ("subject", "relation", "object")} for fact in facts]
        options = from_mapping(TrainOptions, {"sequence_length": SEQUENCE_LENGTH, **LightTuning.defaults}, "")
        name = checkpoint.absolute(self.reference)
        folder = self.cache_folder / "light-tuned" / fingerprint(name, self.revision, rows, options)
        main = self.state.is_main_process
        with only_one(folder, "evaluation") if main else nullcontext():
            if main and not (folder / "facts.parquet").is_file():
                with whole_file(folder / "README.md") as part:
                    part.write_text(_FACTS_CARD, "utf-8")
                with whole_file(folder / "facts.parquet") as part:
                    pq.write_table(pa.Table.from_pylist(rows), part)
            self.state.wait_for_everyone()
            output = folder / "model"
            config = "lighttuning-facts"
            train(Run("light_tuning", LightTuning(), name, str(folder), config, None, options, output, self.copied))
            self.state.wait_for_everyone()
            yield CachedModel(str(output), self.cache_folder, self.precision)
            self.state.wait_for_everyone()
            if main:
                discard(folder)

    def _ask_once(
        self,
        questions: Sequence[Question],
        ask: Callable[[Sequence[Question], tuple[int, int], Container[int]], Iterator[list[tuple[int, Answer]]]],
        read: Callable[[Sequence[Question]], dict[int, Answer]],
        add: Callable[[Iterable[tuple[Question, Answer]]], None],
        what: str,
        unit: str,
    ) -> list[Answer | None]:
        """Return the answer to each question: from the cache (``read``), else from the model (``ask``)."""
        distinct = list(dict.fromkeys(questions))
        answers = read(distinct)
        self.state.wait_for_everyone()  # all processes read the cache before one writes to it
        share = self.state.process_index, self.state.num_processes
        with self.progress(what, len(distinct), len(answers), unit) as progress:
            for batch in ask(distinct, share, answers):
                add((distinct[i], answer) for i, answer in batch)
                progress.update(min(len(batch) * self.state.num_processes, len(distinct) - progress.done))
        self.state.wait_for_everyone()
        answers = read(distinct)
        # processes on other machines may have another cache folder: this process also computes what they did
        for batch in ask(distinct, (0, 1), answers):
            add((distinct[i], answer) for i, answer in batch)
            answers |= dict(batch)
        answer_to = {question: answers.get(i) for i, question in enumerate(distinct)}
        return [answer_to[question] for question in questions]

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.loaded.model, self.loaded.tokenizer, self.precision, self.temperature)


class HeldModel(CachedModel):
    """A model of the caller's with its tokenizer. It stays on its device, and nothing changes its weights."""

    def __init__(self, held: checkpoint.Checkpoint, name: str, cache_folder: Path, precision: str) -> None:
        super().__init__(f"{checkpoint.MEMORY}{name}", cache_folder, precision)
        self._held = held
        self.borrowed = (held.model,)

    @cached_property
    def name(self) -> str:
        """Its name in result files."""
        return self.reference.removeprefix(checkpoint.MEMORY)

    @cached_property
    def loaded(self) -> checkpoint.Checkpoint:
        """The model with its tokenizer."""
        return self._held

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer."""
        return self._held.tokenizer

    @cached_property
    def revision(self) -> str:
        """A hash of weights, configuration and tokenizer; the model must not be trained while this object is used."""
        return weights_and_tokenizer(self._held)

    @cached_property
    def _placement(self) -> tuple[torch.dtype, bool]:
        return self._held.model.dtype, False

    def copied(self) -> checkpoint.Checkpoint:
        """Return a copy of model and tokenizer that training may change."""
        return copy.deepcopy(self._held)

    training = Model.training  # nothing is known


def held_model(model: Any, tokenizer: Any, cache_folder: Path, precision: str, name: str | None = None) -> HeldModel:
    """Return a model of `transformers` or peft for scoring.

    ``tokenizer`` is an object, a folder or a Hub id; if it is None, the model's ``name_or_path`` tells where it is.
    With ``precision`` "auto", weights in float32 are scored as ``--precision auto`` does, and others in their own
    precision. Raises UsageError for an object of another kind, and InputError if model and tokenizer do not belong
    together.
    """
    if not isinstance(model, PreTrainedModel | PeftModel):
        raise UsageError(f"a model is a folder, a Hub id or a model of transformers, not {type(model).__name__}")
    origin = str(getattr(model, "name_or_path", "") or "")
    if tokenizer is None:
        try:
            tokenizer = checkpoint.load_tokenizer(origin)
        except InputError:
            raise UsageError(f"a model in memory needs its tokenizer, and {origin!r} has none: tokenizer=") from None
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = checkpoint.load_tokenizer(os.fspath(tokenizer))
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise UsageError(f"a tokenizer is a folder, a Hub id or one of transformers, not {type(tokenizer).__name__}")
    held = checkpoint.Checkpoint(model, tokenizer)
    name = name or origin or type(model).__name__
    checkpoint.check_together(held, name)
    if model.dtype != torch.float32:
        weights = str(model.dtype).removeprefix("torch.")
        own = PRECISIONS.get(model.dtype, weights)
        if precision not in ("auto", own):
            raise UsageError(f"--precision {precision}: {name} has weights in {weights}; load it in float32")
        precision = own
    return HeldModel(held, name, cache_folder, precision)


def weights_and_tokenizer(held: checkpoint.Checkpoint) -> str:
    """Return a hash of all that a score depends on. Raises InputError for weights that are not in memory."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(held.model.state_dict().items()):
        if not isinstance(tensor, torch.Tensor):
            continue
        if tensor.is_meta:
            raise InputError(f"{held.model.name_or_path}: {name} is not in memory; load the model without an offload")
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    config = {key: value for key, value in held.model.config.to_dict().items() if key not in _UNREAD}
    adapters = {name: str(one.to_dict()) for name, one in getattr(held.model, "peft_config", {}).items()}
    active = list(held.model.active_adapters) if isinstance(held.model, PeftModel) else []
    backend = getattr(held.tokenizer, "backend_tokenizer", None)
    pieces = held.tokenizer.get_vocab() if backend is None else json.loads(backend.to_str())
    for state in ("padding", "truncation"):  # the tokenizer's last call set them
        pieces.pop(state, None)
    described = json.dumps([config, pieces, held.tokenizer.special_tokens_map], sort_keys=True, default=str)
    return fingerprint(digest.hexdigest(), described, adapters, active)


@contextmanager
def modes_kept(*models: Any) -> Iterator[None]:
    """After the block, put the modules of models back into training or evaluation mode, as they were before it."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _memory(device: torch.device) -> int | None:
    """Return the bytes of a GPU's memory; None for a CPU."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else None


def default_precision() -> str:
    """Return "bf16" if there is a GPU that supports it, else "fp32"."""
    return "bf16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "fp32"


def revision(reference: str, **options: Any) -> str:
    """Return the identity of a checkpoint: a hash of its files, or the commit of a model on the Hub.

    For an adapter or added layers, "+" and the revision of the base model follow. ``options`` are the options of
    ``from_pretrained`` for downloads. Raises InputError if the checkpoint is missing.
    """
    reference = checkpoint.pinned(reference, **options)
    folder = checkpoint.folder_of(reference, **options)
    base = checkpoint.base_of(folder)
    if base is None:
        path, more = checkpoint.library_arguments(reference)
        if "gguf_file" in more:
            return _hash([Path(path) / more["gguf_file"]])
    if checkpoint.is_hub_id(reference):
        own = checkpoint.commit_of(reference, **options)
    else:
        own = _hash(sorted(file for kind in _READ for file in folder.glob(kind) if file.name not in _NOT_HASHED))
    if base is None:
        return own
    return f"{own}+{revision(base, **checkpoint.base_options(reference, base, options))}"


def training(reference: str) -> dict[str, Any]:
    """Return how a checkpoint was trained, read from its ``training.json`` and the ones before it.

    - "method": the method of the last phase, or None
    - "trained_on": the configs of all phases that trained, oldest first
    - "base": the model that the first phase started from: a Hub id, package:NAME, or a file name without its path
    - "learning_rate", "seed": of the last phase that trained, or None
    - "recipe": a hash of the options of all phases, without the seed, and of how much data they read, or None
    - "parameters": {"trainable", "total"} of the last phase, or None
    - "tokens": the most tokens that all phases can have read (steps * batch size * sequence length), or None
    - "seconds": how long all phases trained whose log says it, or None
    - "trained_on_test": the test configs that a phase read; missing if no phase did

    The search ends at a checkpoint that has no readable ``training.json`` or whose folder is gone.
    """
    method: str | None = None
    parameters: Parameters | None = None
    phases: list[TrainingManifest] = []  # phases that trained, oldest first
    seen: set[Path] = set()
    base, folder = reference, Path(reference).resolve()
    while folder not in seen:
        seen.add(folder)
        try:
            manifest = read_training(folder / _TRAINING)
            folder = Path(manifest.run.model).resolve()
        except (InputError, OSError, ValueError):  # not trained by temporalwiki, or a name that is not a path
            break
        base = manifest.run.model
        method, parameters = method or manifest.run.method, parameters or manifest.parameters
        if manifest.steps:
            phases.insert(0, manifest)
    read = [
        phase.steps * phase.run.batch_size * phase.run.sequence_length
        for phase in phases
        if phase.steps and phase.run.batch_size and phase.run.sequence_length
    ]
    seconds = [
        line["seconds"] for phase in phases for line in phase.log if isinstance(line.get("seconds"), float | int)
    ]
    own = checkpoint.training_of(reference)  # also of a checkpoint on the Hub
    on_test = sorted({config for phase in (own, *phases) if phase for config in phase.trained_on_test})
    return ({"trained_on_test": on_test} if on_test else {}) | {
        "method": method,
        "trained_on": [phase.run.config for phase in phases],
        "base": _without_path(base),
        "learning_rate": phases[-1].run.learning_rate if phases else None,
        "recipe": fingerprint(*map(_recipe, phases)) if phases else None,
        "seed": phases[-1].run.seed if phases else None,
        "parameters": None if parameters is None else msgspec.structs.asdict(parameters),
        "tokens": sum(read) if phases and len(read) == len(phases) else None,
        "seconds": sum(seconds) if seconds else None,
    }


def _recipe(phase: TrainingManifest) -> dict[str, Any]:
    options = phase.content.get("run", {})
    return {name: value for name, value in options.items() if name not in ("model", "seed")} | {"data": phase.data}


def _without_path(reference: str) -> str:
    """Return a Hub id or package:NAME unchanged, and a folder or file without its path."""
    if Path(reference).is_absolute() or reference.startswith(".") or exists(reference):
        return Path(reference).resolve().name
    return reference


def _hash(files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(path.name.encode() + b"\0")
        if path.name in _BASE_KEY:  # the base model has its own hash, wherever its files are
            config = json.loads(read_small(path))
            config.pop(_BASE_KEY[path.name], None)
            if "revision" in config:  # of the base model
                config["revision"] = None
            digest.update(json.dumps(config, sort_keys=True).encode())
            continue
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
