"""The model under evaluation: what tasks ask, answered from the store where it was answered before."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from accelerate import PartialState
from tqdm import tqdm

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import discard, only_one, whole_file
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.generation import Generator, Writer
from temporalwiki.eval_harness.score_cache import Store
from temporalwiki.eval_harness.scoring import Scorer, Scores, Text
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import is_encoder_decoder
from temporalwiki.methods.expansion import SPEC, read_expansion
from temporalwiki.methods.processes import processes

_READ = ("*.safetensors", "*.bin", "*.json", "*.model", "*.txt")  # weights, configuration, tokenizer
_TRAINING = "training.json"
_OF_TRAINING = (_TRAINING, "run.json")  # say how long it took, and are not read by the model
_OF_BASE = {checkpoint.ADAPTER: "base_model_name_or_path", SPEC: "base_model"}  # where they say what their base is
_WRITING = 2  # the version of what ``write`` keeps
_LINE_EVERY = 60.0  # seconds between lines where there is no terminal
# of facts, under a name that light-tuning is defined on
_CARD = "---\nconfigs:\n- config_name: lighttuning-facts\n  data_files: facts.parquet\n---\n"

Asked = TypeVar("Asked", Text, str)
Said = TypeVar("Said", Scores, str)


@dataclass
class CachedModel:
    """A checkpoint that is asked for likelihoods and answers; loaded when it is first asked something new.

    Several processes (``accelerate launch``) share the work: each scores its part and all have the whole.
    """

    reference: str  # folder, Hub id, .gguf file or package:NAME
    store: Path  # the folder of kept scores
    precision: str = "fp32"  # of likelihoods; answers are always generated in fp32

    @cached_property
    def state(self) -> PartialState:
        """The processes that share the work."""
        return processes()

    @cached_property
    def revision(self) -> str:
        """What tells this model's weights and tokenizer from all others."""
        return revision(self.reference)

    @cached_property
    def loaded(self) -> checkpoint.Checkpoint:
        """The model on its device, with its tokenizer. Raises InputError where none can be loaded."""
        found = checkpoint.load(self.reference, torch.float32)
        known, tokens = found.model.get_input_embeddings().weight.shape[0], found.tokenizer.vocab_size
        if tokens > known:
            raise InputError(
                f"{self.reference}: the tokenizer has {tokens:,} tokens, the model {known:,}: they are not of one kind"
            )
        return checkpoint.Checkpoint(found.model.to(self.state.device), found.tokenizer)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer alone."""
        return checkpoint.load_tokenizer(self.reference)

    @cached_property
    def encoder_decoder(self) -> bool:
        """Whether it is T5 or its like."""
        return is_encoder_decoder(self.loaded.model)

    def score(self, texts: Sequence[Text], what: str) -> list[Scores | None]:
        """Return each text's scores, None where it cannot be scored; ``what`` heads the progress.

        See ``Scorer.score`` for what cannot be scored and what is raised.
        """
        store = Store(self.store, self.revision, self._scorer.policy)
        return self._once(texts, self._scorer.score, store.scores, store.keep_scores, what, "text")

    def generate(
        self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int = 1, whole: bool = False
    ) -> list[str | None]:
        """Return each prompt's answer, None where it is too long for the model's context.

        It goes up to the sentence's end, or if ``whole`` as far as the model has something to say.
        """
        generator = Generator(self.loaded.model, self.loaded.tokenizer, max_new_tokens, beams, whole)
        store = Store(self.store, self.revision, generator.policy)
        return self._once(prompts, generator.generate, store.answers, store.keep_answers, what, "prompt")

    def write(self, prompts: Sequence[str], what: str, max_new_tokens: int) -> list[str | None]:
        """Return what the model writes to each prompt, None where the prompt is empty or too long; see ``Writer``.

        If all answers are kept, the model is not loaded.
        """

        def ask(texts: Sequence[str], share: tuple[int, int], kept: Container[int]) -> Iterator[list[tuple[int, str]]]:
            if any(i not in kept for i in range(len(texts))):
                writer = Writer(self.loaded.model, self.loaded.tokenizer, max_new_tokens)
                yield from writer.generate(texts, share, kept)

        policy = {"text": _WRITING, "max_new_tokens": max_new_tokens, "precision": "fp32"}
        store = Store(self.store, self.revision, policy)
        return self._once(prompts, ask, store.answers, store.keep_answers, what, "prompt")

    @contextmanager
    def light_tuned(self, facts: Sequence[Mapping[str, Any]]) -> Iterator[CachedModel]:
        """Give a copy of the model that is light-tuned on ``facts`` (subject, relation, object), until the block ends.

        Its weights lie beside the kept scores and are removed when the block ends well; what is interrupted goes on.
        """
        from temporalwiki.base.options import from_mapping
        from temporalwiki.methods.light_tuning import LightTuning
        from temporalwiki.methods.options import TrainOptions
        from temporalwiki.methods.train import Run, train

        rows = [{name: fact[name] for name in ("subject", "relation", "object")} for fact in facts]
        options = from_mapping(TrainOptions, LightTuning.defaults, "")
        name = checkpoint.absolute(self.reference)
        folder = self.store / "light-tuned" / fingerprint(name, self.revision, rows, options)
        main = self.state.is_main_process
        with only_one(folder, "evaluation") if main else nullcontext():
            if main and not (folder / "facts.parquet").is_file():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "README.md").write_text(_CARD, "utf-8")
                with whole_file(folder / "facts.parquet") as part:
                    pq.write_table(pa.Table.from_pylist(rows), part)
            self.state.wait_for_everyone()
            output = folder / "model"
            train(Run("light_tuning", LightTuning(), name, str(folder), "lighttuning-facts", None, options, output))
            self.state.wait_for_everyone()
            yield CachedModel(str(output), self.store, self.precision)
            self.state.wait_for_everyone()
            if main:
                discard(folder)

    def _once(
        self,
        asked: Sequence[Asked],
        ask: Callable[[Sequence[Asked], tuple[int, int], Container[int]], Iterator[list[tuple[int, Said]]]],
        kept: Callable[[Sequence[Asked]], dict[int, Said]],
        keep: Callable[[Iterable[tuple[Asked, Said]]], None],
        what: str,
        unit: str,
    ) -> list[Said | None]:
        """Ask what is not kept, each process its share, and return what is known of each then."""
        distinct = list(dict.fromkeys(asked))
        found = kept(distinct)
        self.state.wait_for_everyone()  # each has looked before anybody writes
        share = self.state.process_index, self.state.num_processes
        with self.progress(what, len(distinct), len(found), unit) as watch:
            for batch in watch(ask(distinct, share, found)):
                keep((distinct[i], said) for i, said in batch)
        self.state.wait_for_everyone()
        found = kept(distinct)
        for batch in ask(distinct, (0, 1), found):  # what others keep elsewhere, or saw kept when they looked
            keep((distinct[i], said) for i, said in batch)
            found |= dict(batch)
        of = {one: found.get(i) for i, one in enumerate(distinct)}
        return [of[one] for one in asked]

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.loaded.model, self.loaded.tokenizer, self.precision)

    @contextmanager
    def progress(self, what: str, total: int, kept: int, unit: str) -> Iterator[Any]:
        """Show how far the first process is: a bar on a terminal, plain lines elsewhere."""
        begun = said = time.perf_counter()
        quiet = not self.state.is_main_process
        bar = tqdm(desc=what, total=total, initial=kept, unit=unit, disable=quiet or not sys.stderr.isatty())

        def watch(batches: Iterable[list[Any]]) -> Iterator[list[Any]]:
            nonlocal said
            done = 0
            for batch in batches:
                yield batch
                done += len(batch) * self.state.num_processes
                bar.update(min(len(batch) * self.state.num_processes, total - bar.n))
                now = time.perf_counter()
                if bar.disable and not quiet and now - said > _LINE_EVERY:
                    said = now
                    left = (now - begun) * max(total - kept - done, 0) / done
                    print(f"{what}: {kept + done} of {total}, {left:.0f} s left", file=sys.stderr)

        with bar:
            yield watch
        if bar.disable and not quiet:
            took = time.perf_counter() - begun
            print(f"{what}: {total:,} {unit}s, {kept:,} kept from before, {took:.1f} s", file=sys.stderr)


def default_precision() -> str:
    """Return bf16 where there is a GPU that has it, else fp32."""
    return "bf16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "fp32"


def revision(reference: str) -> str:
    """Return what identifies a checkpoint: a hash of its files, or the commit of a model on the Hub.

    That of an adapter or of added layers covers its base. Raises InputError where there is nothing to be found.
    """
    reference = checkpoint.pinned(reference)
    folder = checkpoint.folder_of(reference)
    base = None
    if (folder / SPEC).is_file():
        base = read_expansion(folder).base_model
    elif (folder / checkpoint.ADAPTER).is_file():
        base = checkpoint.base_of_adapter(folder)
    else:
        path, more = checkpoint.where(reference)
        if "gguf_file" in more:
            return _hash([Path(path) / more["gguf_file"]])
    if checkpoint.is_hub_id(reference):
        own = checkpoint.commit(reference)
        return own if base is None else f"{own}+{revision(base)}"
    own = _hash(sorted(file for kind in _READ for file in folder.glob(kind) if file.name not in _OF_TRAINING))
    return own if base is None else f"{own}+{revision(base)}"


def training(reference: str) -> dict[str, Any]:
    """Return how a checkpoint came about, as far as the manifests of ``temporalwiki train`` tell.

    - "method": that of the last phase, None where there is none
    - "trained_on": configs, oldest first
    - "base": what the first phase began from: a Hub id, package:NAME, or the name of a folder or file without its path
    - "learning_rate": of the last phase that trained, None where none did
    - "parameters": {"trainable", "total"} of the last phase
    - "tokens": what all phases read, at most: steps * chunks * tokens a chunk, the last of which may be shorter; None
      where no phase trained

    Read from its folder and from those that it was trained from, as long as these are where they were. A phase that
    trains nothing counts as none, but for its method and parameters.
    """
    method: str | None = None
    parameters: dict[str, int] | None = None
    phases: list[Mapping[str, Any]] = []  # that trained, oldest first
    seen: set[Path] = set()
    base, folder = reference, Path(reference).resolve()
    while folder not in seen:
        seen.add(folder)
        try:
            manifest = json.loads((folder / _TRAINING).read_text("utf-8"))
            json.dumps(manifest, ensure_ascii=False).encode()  # half of a character cannot be written
            name, config, before = (str(manifest["run"][key]) for key in ("method", "config", "model"))
            folder = Path(before).resolve()
        except (OSError, ValueError, KeyError, TypeError, RecursionError):  # none, or another program's
            break
        base = before
        method, parameters = method or name, parameters or _counts(manifest.get("parameters"))
        if steps := manifest.get("steps"):
            phases.insert(0, {**manifest["run"], "config": config, "steps": steps})
    sizes: list[list[Any]] = [
        [phase.get(key) for key in ("steps", "batch_size", "sequence_length")] for phase in phases
    ]
    known = bool(sizes) and all(_is_count(number) for size in sizes for number in size)
    rate = phases[-1].get("learning_rate") if phases else None
    return {
        "method": method,
        "trained_on": [phase["config"] for phase in phases],
        "base": _without_path(base),
        "learning_rate": rate if isinstance(rate, float) and math.isfinite(rate) else None,
        "parameters": parameters,
        "tokens": sum(math.prod(size) for size in sizes) if known else None,
    }


def _counts(said: Any) -> dict[str, int] | None:
    return said if isinstance(said, dict) and all(map(_is_count, said.values())) else None


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 40


def _without_path(reference: str) -> str:
    """Return a Hub id or package:NAME as it is, and the name alone of a folder or file."""
    if Path(reference).is_absolute() or reference.startswith(".") or checkpoint.exists(reference):
        return Path(reference).resolve().name
    return reference


def _hash(files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(path.name.encode() + b"\0")
        if path.name in _OF_BASE:  # its base is hashed itself, and may lie elsewhere
            config = json.loads(path.read_text("utf-8"))
            config.pop(_OF_BASE[path.name], None)
            if "revision" in config:  # the base's
                config["revision"] = None
            digest.update(json.dumps(config, sort_keys=True).encode())
            continue
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
