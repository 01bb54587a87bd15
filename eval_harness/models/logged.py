"""A model that is known only by a log of another harness: of inspect-ai, or the samples of lm_eval."""

import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import digest
from temporalwiki.base.json_files import fingerprint, read_json
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.facts import identity, prompt_of
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.model import LOGGED, Model
from temporalwiki.eval_harness.references import right_answers
from temporalwiki.eval_harness.scoring import PRECISIONS
from temporalwiki.eval_harness.task import NothingToScoreError, Row
from temporalwiki.methods import needs

UNKNOWN = "unknown"  # the precision in results, if a log does not tell it
_MOST_BYTES = 2 << 30  # the largest log, unpacked
_MOST_NATS = 1e30  # of a text
_ROUNDING = 1e-3  # nats that a log-likelihood may be above zero
_NOISE = 0.25  # nats by which a text may seem likelier than its beginning: models compute in half precision
_GREEDY = {"until": [], "max_gen_toks": 20, "do_sample": False, "temperature": 0}  # settings of our task of lm_eval
_TEMPLATE = "{{ bos_token }}{{ messages[0].content }}"  # the bare prompt; see docs/adapters.md
_BARE = "run the task with its own solver, once, and without messages of your own"
_PRECISIONS = {str(dtype): name for dtype, name in PRECISIONS.items()}
_ANSWERS, _PROBES, _OBJECTS = "twiki_answers", "twiki_probes", "twiki_objects"  # the tasks of lm_eval

Item = dict[str, Any]


_Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class _Doc(msgspec.Struct):
    """A probe, with the numbers of tokens that our tasks for lm_eval add."""

    subject: str
    relation: str
    object: str
    tokens: _Tokens | None = None
    object_tokens: _Tokens | None = None


class _Sample(msgspec.Struct):
    """A line of lm_eval's samples. A response is a continuation, or a log-likelihood in nats and another field.

    The arguments are what the model was asked: a context, and its continuation or the settings of a generation.
    """

    doc: _Doc
    resps: list[tuple[str | tuple[float, Any]]]
    arguments: dict[str, dict[str, Any]]


class _Config(msgspec.Struct, frozen=True):
    model_dtype: str | None = None


class _Run(msgspec.Struct):
    """The file of results that lm_eval writes with its samples."""

    model_name: str = ""
    config: _Config = _Config()


class _InspectMessage(msgspec.Struct):
    role: str
    content: Any = None


class _InspectOutput(msgspec.Struct):
    completion: str = ""
    choices: list[Any] = []


class _InspectSample(msgspec.Struct):
    """A sample of inspect-ai."""

    input: Any
    messages: list[_InspectMessage]
    output: _InspectOutput
    metadata: dict[str, Any] | None = None
    epoch: int = 1
    error: Any = None


class _Generating(msgspec.Struct):
    """Settings of inspect-ai for a generation."""

    system_message: str | None = None


class _InspectPlan(msgspec.Struct):
    config: _Generating = msgspec.field(default_factory=_Generating)


class _InspectRun(msgspec.Struct):
    """What was run."""

    task: str
    model: str
    model_args: dict[str, Any] = {}
    model_generate_config: _Generating = msgspec.field(default_factory=_Generating)


class _InspectLog(msgspec.Struct):
    """A log of inspect-ai. One with the suffix .eval is a zip whose header.json has no samples."""

    eval: _InspectRun
    status: str
    plan: _InspectPlan = msgspec.field(default_factory=_InspectPlan)
    samples: list[_InspectSample] = []


class _OtherPromptError(ValueError):
    """The model read something else than the prompt of the probe, or did not answer greedily."""


class LoggedModel(Model):
    """A model that is known by a log: it has answers and likelihoods for the probes in it, and for no other text."""

    can = frozenset({LOGGED})
    refusal = "{tasks}: {reference} is a log, which {able} can read"

    def __init__(self, path: Path) -> None:
        """Read a log. Raises InputError if it is damaged, too large, or holds none of our tasks."""
        self.reference = str(path)
        self.name, self.precision = path.name, UNKNOWN
        self._answers: dict[tuple[str, str], str] = {}  # split, prompt -> continuation
        self._likelihoods: dict[tuple[str, str, str], dict[str, float]] = {}  # split, prompt, object -> figures
        files = _samples(path) if path.is_dir() else {"": path}
        if sum(file.stat().st_size for file in files.values()) > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 30} GB; log fewer samples at once")
        self.revision = fingerprint(*(digest(file, "sha256") for file in files.values()))
        if path.is_dir():
            self._read_samples(path, files)
        else:
            self._read_inspect_log(path)
        if not self._answers and not self._likelihoods:
            tasks = ", ".join((_ANSWERS, _PROBES, _OBJECTS))
            raise InputError(f"{path}: no samples of our tasks ({tasks}; inspect-ai: temporalwiki/{_PROBES})")

    def logged(self, probes: Mapping[str, Sequence[Row]], excluded: Counter[str]) -> list[Item]:
        """Return an item for each probe in the log, as ``twiki_probes`` does; ``excluded`` counts the other probes.

        Raises NothingToScoreError if the log lacks all of them.
        """
        found: list[Item] = []
        for split, rows in probes.items():
            for row in rows:
                prompt = prompt_of(row)
                said = self._answers.get((split, prompt))
                figures = self._likelihoods.get((split, prompt, row["object"]), {})
                if said is None and not figures:
                    excluded[f"{split}: not in the log"] += 1
                    continue
                item: Item = {**identity(row), "split": split, **figures}
                if row.get("strict") is not None:
                    item["strict"] = int(row["strict"])
                if said is not None:
                    right = right_answers(row)
                    cut = answer(said)
                    item |= {"answer": cut, "exact_match": exact_match(cut, right), "f1": f1(cut, right)}
                found.append(item)
        if not found:
            raise NothingToScoreError(f"{self.reference}: none of these probes is in it; was it made with other data?")
        return found

    def _read_samples(self, folder: Path, files: Mapping[str, Path]) -> None:
        runs = sorted(folder.glob("results_*.json"))
        if runs:
            run = read_json(runs[-1], _Run, "results of lm_eval")
            name = Path(run.model_name)
            self.name = (name.name if name.is_absolute() else run.model_name) or self.name
            self.precision = _PRECISIONS.get(run.config.model_dtype or "", UNKNOWN)
        decode = msgspec.json.Decoder(_Sample, strict=False).decode  # lm_eval writes numbers as text
        for what, path in files.items():
            task, _, split = what.rpartition("_")
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        self._add(task, split, decode(line))
                    except _OtherPromptError as error:
                        raise InputError(
                            f"{path}, line {number}: {error}; run lm_eval without few-shot examples, system "
                            "instruction, chat template and --gen_kwargs"
                        ) from None
                    except (msgspec.DecodeError, ValueError, IndexError) as error:
                        raise InputError(
                            f"{path}, line {number}: not a sample of {what} ({in_one_line(error)}); run lm_eval with "
                            "--log_samples again"
                        ) from None

    def _add(self, task: str, split: str, sample: _Sample) -> None:
        doc = sample.doc
        prompt, responses = f"{doc.subject} {doc.relation}", [response for (response,) in sample.resps]
        whole = f"{prompt} {doc.object}"
        asked = [(of.get("arg_0"), of.get("arg_1")) for _, of in sorted(sample.arguments.items())]
        if task == _ANSWERS:
            (said,) = responses
            if not isinstance(said, str):
                raise ValueError("an answer is a text")
            ((read, settings),) = asked
            if not isinstance(settings, dict) or any(_GREEDY.get(key) != value for key, value in settings.items()):
                raise _OtherPromptError(f"the answer was written with {str(settings)[:200]!a}")
            _check_prompt(read, prompt)
            self._answers[split, prompt] = said
            return
        for (before, scored), text in zip(asked, (whole,) if task == _PROBES else (whole, prompt), strict=True):
            _check_prompt(before, "")
            _check_prompt(scored, text)
        nll = [-response[0] for response in responses if not isinstance(response, str)]
        if len(nll) != len(asked) or not all(abs(one) < _MOST_NATS for one in nll):
            raise ValueError("log-likelihoods are finite numbers")
        if min(nll) < -_ROUNDING or (task == _OBJECTS and nll[0] - nll[1] < -_NOISE):
            raise ValueError("a log-likelihood is above zero")
        figures: dict[str, float] = {"nll": nll[0], "bytes": len(whole.encode())}
        if doc.tokens and doc.object_tokens:
            figures["tokens"] = doc.tokens
            if task == _OBJECTS:
                figures |= {"object_nll": nll[0] - nll[1], "object_tokens": doc.object_tokens}
        self._likelihoods.setdefault((split, prompt, doc.object), {}).update(figures)

    def _read_inspect_log(self, path: Path) -> None:
        try:
            if path.suffix != ".eval":
                log = read_json(path, _InspectLog, "a log of inspect-ai", _MOST_BYTES)
                self._read_run(path, log)
                for sample in log.samples:
                    self._read_sample(path, sample)
                return
            with needs("api"):
                import inspect_ai.log  # noqa: F401 - lets zipfile unpack zstd
            with zipfile.ZipFile(path) as packed:
                members = packed.infolist()
                if sum(member.file_size for member in members) > _MOST_BYTES:
                    raise InputError(f"{path}: larger than {_MOST_BYTES >> 30} GB unpacked; log fewer samples at once")
                names = {member.filename for member in members}
                if "header.json" not in names:
                    raise InputError(f"{path}: its run has not ended; run `inspect eval-retry {path}`")
                self._read_run(path, msgspec.json.decode(_unpacked(packed, "header.json"), type=_InspectLog))
                for name in sorted(name for name in names if name.startswith("samples/")):
                    self._read_sample(path, msgspec.json.decode(_unpacked(packed, name), type=_InspectSample))
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - of the zip, its compression, JSON
            raise InputError(f"{path}: not a log of inspect-ai ({in_one_line(error)})") from None

    def _read_run(self, path: Path, log: _InspectLog) -> None:
        run = log.eval
        if run.task.rpartition("/")[2] != _PROBES:
            raise InputError(f"{path}: of the task {in_one_line(run.task)}; only temporalwiki/{_PROBES} can be read")
        if log.status != "success":
            raise InputError(f"{path}: its run ended with {log.status[:80]!a}; run `inspect eval-retry {path}`")
        template = run.model_args.get("chat_template")
        read = run.model_generate_config.system_message or log.plan.config.system_message
        read = template if template not in (None, _TEMPLATE) else read
        if read is not None:
            raise InputError(f"{path}: the model read {str(read)[:200]!a} around each prompt; {_BARE}")
        self.name = run.model
        if run.model.startswith("hf/") and template is None:  # it reads "user: PROMPT", or its own template
            self.name += " (chat)"

    def _read_sample(self, path: Path, sample: _InspectSample) -> None:
        split, roles = (sample.metadata or {}).get("split"), [message.role for message in sample.messages]
        if sample.error is not None:
            raise InputError(f"{path}: a sample ended with an error; run `inspect eval-retry {path}`")
        if not isinstance(split, str) or not isinstance(sample.input, str) or not sample.output.choices:
            return
        if roles != ["user", "assistant"] or sample.messages[0].content != sample.input or sample.epoch != 1:
            raise InputError(
                f"{path}: the model read more than {sample.input[:80]!a}, or answered it more than once; {_BARE}"
            )
        self._answers[split, sample.input] = sample.output.completion


def _unpacked(packed: zipfile.ZipFile, name: str) -> bytes:
    """Return a member of a zip, up to the size that it declares; small reads unpack little beyond it."""
    with packed.open(name) as member:
        return b"".join(iter(lambda: member.read(1 << 12), b""))


def _check_prompt(read: Any, prompt: str) -> None:
    """Raise _OtherPromptError unless the model read the bare prompt."""
    if read != prompt:
        raise _OtherPromptError(f"the model read {str(read)[:200]!a}, not {prompt[:200]!a}")


def is_log(path: Path) -> bool:
    """Return whether a path leads to a log of inspect-ai or to samples of lm_eval."""
    if path.suffix == ".eval" or (path.suffix == ".json" and _begins_as_inspect_log(path)):
        return path.is_file()
    return path.is_dir() and bool(_samples(path))


def _begins_as_inspect_log(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return b'"eval"' in start and b'"version"' in start


def _samples(folder: Path) -> dict[str, Path]:
    """Return the newest file of samples for each of our tasks and splits, by task and split."""
    files: dict[str, Path] = {}
    for task in (_ANSWERS, _PROBES, _OBJECTS):
        for split in ("unchanged", "changed"):
            found = sorted(folder.glob(f"samples_{task}_{split}_*.jsonl"))
            files |= {f"{task}_{split}": path for path in found[-1:] if path.is_file()}
    return files
