"""Options come from files and command lines: each value is of its type and in its range, or is refused by name."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import from_mapping
from temporalwiki.methods import METHODS, find_method, train
from temporalwiki.methods.diff import Diff
from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.merge import Merge
from temporalwiki.methods.method import Method
from temporalwiki.methods.modular import Modular
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.recadam import RecAdam
from temporalwiki.methods.recipes import configured, names, read_recipe
from temporalwiki.methods.trainer import example_order

# -- from plain values -------------------------------------------------------------------------------------------

# option, value, what it becomes
GOOD: dict[str, tuple[type, str, Any, Any]] = {
    "whole number": (TrainOptions, "batch_size", 60, 60),
    "whole number as text": (TrainOptions, "batch_size", "60", 60),
    "whole number as YAML may have it": (TrainOptions, "batch_size", 60.0, 60),
    "number": (TrainOptions, "learning_rate", 0.5, 0.5),
    "number without a point, which YAML reads as text": (TrainOptions, "learning_rate", "1e-4", 0.0001),
    "whole number for a number": (TrainOptions, "learning_rate", 1, 1.0),
    "nought": (TrainOptions, "warmup_ratio", "0", 0.0),
    "dash for underscore": (TrainOptions, "learning-rate", "0.5", 0.5),
    "true": (TrainOptions, "gradient_checkpointing", True, True),
    "text": (TrainOptions, "schedule", "cosine", "cosine"),
    "nothing where nothing may be": (TrainOptions, "max_steps", None, None),
    "something where nothing may be": (TrainOptions, "max_steps", "5", 5),
    "list": (TrainOptions, "report_to", ["trackio", "tensorboard"], ("trackio", "tensorboard")),
    "list with commas": (TrainOptions, "report_to", "trackio,tensorboard", ("trackio", "tensorboard")),
    "empty list": (TrainOptions, "report_to", "", ()),
    "list of one": (TrainOptions, "report_to", "wandb", ("wandb",)),
    "list of numbers": (KAdapter, "layers", "1,3", (1, 3)),
    "no list of numbers": (KAdapter, "layers", None, None),
    "text or nothing": (Modular, "small", "google-t5/t5-small", "google-t5/t5-small"),
    "a method's number": (LoRA, "alpha", 1, 1.0),
    "largest seed": (TrainOptions, "seed", 2**32 - 1, 2**32 - 1),
}


@pytest.mark.parametrize(("of", "name", "value", "expected"), GOOD.values(), ids=GOOD)
def test_a_value_becomes_what_the_option_is(of: Any, name: str, value: Any, expected: Any) -> None:
    made = getattr(from_mapping(of, {name: value}, "here: "), name.replace("-", "_"))
    assert made == expected
    assert type(made) is type(expected)


# option, value, message
BAD: dict[str, tuple[type, dict[str, Any], str]] = {
    "unknown": (TrainOptions, {"frobnicate": 1}, r"^here: no option 'frobnicate'; there are batch_size, "),
    "misspelt": (TrainOptions, {"learnin_rate": 1}, r"^here: no option 'learnin_rate' \(did you mean learning_rate\?"),
    "misspelt, with a dash": (TrainOptions, {"batch-sise": 1}, r"'batch-sise' \(did you mean batch_size\?\)"),
    "another method's": (LoRA, {"gamma": 1}, r"^here: no option 'gamma'.*; there are rank, alpha, dropout, target$"),
    "a class variable": (LoRA, {"needs_past": True}, r"^here: no option 'needs_past'"),
    "part of a whole": (TrainOptions, {"batch_size": 1.5}, r"^here: batch_size must be a whole number, not 1\.5$"),
    "part of a whole as text": (TrainOptions, {"batch_size": "1.5"}, r"must be a whole number, not '1\.5'$"),
    "truth for a number": (TrainOptions, {"batch_size": True}, r"must be a whole number, not True$"),
    "nothing for a number": (TrainOptions, {"batch_size": None}, r"must be a whole number, not None$"),
    "words for a number": (TrainOptions, {"learning_rate": "fast"}, r"learning_rate must be a number, not 'fast'$"),
    "no number": (TrainOptions, {"learning_rate": "nan"}, r"must be a number, not 'nan'$"),
    "no number of YAML's": (TrainOptions, {"learning_rate": float("nan")}, r"must be a number, not nan$"),
    "endless": (TrainOptions, {"learning_rate": float("inf")}, r"must be a number, not inf$"),
    "endless as text": (TrainOptions, {"batch_size": "1e999"}, r"must be a whole number, not '1e999'$"),
    "longer than any float": (TrainOptions, {"seed": 10**400}, r"^here: seed must be a whole number, not 1000"),
    "list for a number": (TrainOptions, {"batch_size": [1]}, r"must be a whole number, not \[1\]$"),
    "text for truth": (TrainOptions, {"gradient_checkpointing": "yes"}, r"must be true or false, not 'yes'$"),
    "number for truth": (TrainOptions, {"gradient_checkpointing": 1}, r"must be true or false, not 1$"),
    "number for text": (TrainOptions, {"schedule": 3}, r"^here: schedule must be text, not 3$"),
    "number for a list": (TrainOptions, {"report_to": 3}, r"^here: report_to must be a list, not 3$"),
    "number in a list of text": (TrainOptions, {"report_to": ["wandb", 3]}, r"must be text, not 3$"),
    "words in a list of numbers": (KAdapter, {"layers": "1,x"}, r"^here: layers must be a whole number, not 'x'$"),
    "no such schedule": (TrainOptions, {"schedule": "cosin"}, r"^no schedule 'cosin' \(did you mean cosine\?\)"),
    "an empty choice": (TrainOptions, {"schedule": ""}, r"^no schedule ''; there are "),
    "no such optimizer": (TrainOptions, {"optimizer": "adam"}, r"^no optimizer 'adam' \(did you mean adamw\?\)"),
    "no such tracker": (TrainOptions, {"report_to": "trakio"}, r"^no tracker 'trakio'"),
    "no such precision": (TrainOptions, {"precision": "float7"}, r"^no precision 'float7'"),
    **{
        f"{name} 0": (TrainOptions, {name: 0}, f"^{name} must be at least 1, not 0$")
        for name in ("batch_size", "micro_batch_size", "epochs", "save_steps", "logging_steps", "max_steps")
    },
    "nothing to predict": (TrainOptions, {"sequence_length": 1}, r"^sequence_length must be at least 2, not 1$"),
    "no learning": (TrainOptions, {"learning_rate": 0}, r"^learning_rate must be above 0, not 0\.0$"),
    "warm-up to the end": (TrainOptions, {"warmup_ratio": 1}, r"^warmup_ratio must be at least 0 and below 1, not 1"),
    "all masked": (TrainOptions, {"mask_rate": 1}, r"^mask_rate must be above 0 and below 1"),
    "negative decay": (TrainOptions, {"weight_decay": -1}, r"^weight_decay must be at least 0"),
    "negative seed": (TrainOptions, {"seed": -1}, r"^seed must be at least 0 and below 4294967296, not -1$"),
    "seed too large": (TrainOptions, {"seed": 2**32}, r"^seed must be at least 0 and below 4294967296"),
    "a method's own": (RecAdam, {"gamma": -1}, r"^recadam: gamma must be at least 0, not -1\.0$"),
    "a method's choice": (Merge, {"how": "tie"}, r"^merge: no how 'tie' \(did you mean ties\?\); there are average"),
}


@pytest.mark.parametrize(("of", "values", "message"), BAD.values(), ids=BAD)
def test_a_bad_value_is_refused_with_its_name(of: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_mapping(of, values, "here: ")


# method -> its options, each with values that it refuses
NAN = float("nan")
OUT_OF_RANGE: dict[str, dict[str, tuple[float, ...]]] = {
    "recadam": {"gamma": (-1.0, NAN), "k": (0.0, -0.5)},
    "mix_review": {"ratio": (0.0, -1.0), "decay": (0.0, 1.1)},
    "replay": {"share": (0.0, 1.0, -0.1, 1.5, NAN)},
    "lora": {"rank": (0,), "alpha": (0.0, -1.0), "dropout": (1.0, -0.1)},
    "dora": {"rank": (0,)},
    "o_lora": {"weight": (-1.0, NAN), "rank": (0,)},
    "k_adapter": {"k": (0,), "scale": (0.0, float("inf"), NAN)},
    "modular": {"scale": (0.0, -1.0, float("inf"), NAN)},
    "ewc": {"penalty": (-1.0,), "fisher_examples": (0,)},
    "lwf": {"weight": (-1.0,), "temperature": (0.0, -2.0)},
    "osf": {"kept": (0.0, 1.0, -0.1, NAN)},
    "merge": {"weight": (0.0, -0.5, 1.5, NAN), "density": (0.0, 1.0), "rank": (-1,)},
}


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, own in OUT_OF_RANGE.items() for option in own])
def test_a_method_refuses_what_its_option_does_not_allow(name: str, option: str) -> None:
    for bad in OUT_OF_RANGE[name][option]:
        with pytest.raises(UsageError, match=f"^{name}: {option} must be (at least|above) .*, not {bad}$"):
            find_method(name)(**{option: bad})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@example("quantize", "")
@given(st.sampled_from([f.name for f in fields(TrainOptions)]), ANYTHING)
def test_whatever_a_recipe_says_it_is_read_or_refused(name: str, value: Any) -> None:
    try:
        options = from_mapping(TrainOptions, {name: value}, "here: ")
    except UsageError as error:
        assert {"report_to": "tracker"}.get(name, name) in str(error) or name in str(error)
    else:
        assert from_mapping(TrainOptions, asdict(options), "again") == options


CLASSES = {name: find_method(name) for name in METHODS} | {"train": TrainOptions}


@pytest.mark.parametrize("of", CLASSES.values(), ids=CLASSES)
def test_defaults_pass_their_own_check(of: Any) -> None:
    assert from_mapping(of, {}, "here: ") == from_mapping(of, asdict(of()), "here: ") == of()
    for f in fields(of):
        assert f.metadata["help"], f.name


# -- budgets -----------------------------------------------------------------------------------------------------

# batches of 8 sequences of 64 tokens: 512 tokens a step
STEPS = {"tokens=512": 1, "tokens=1023": 1, "tokens=61440": 120}


@pytest.mark.parametrize(("budget", "steps"), STEPS.items())
def test_a_budget_of_tokens_is_a_number_of_whole_steps(budget: str, steps: int) -> None:
    options = TrainOptions(batch_size=8, sequence_length=64, budget=budget)
    assert (options.steps, options.most_bytes) == (steps, None)
    assert TrainOptions(batch_size=4, sequence_length=64, budget=budget).steps >= 2 * steps
    order = example_order(Diff(), options, 10, 0)
    assert len(order) * 64 <= int(budget.partition("=")[2])
    assert len(order) == steps * 8


def test_without_a_budget_the_steps_are_those_of_the_option() -> None:
    assert (TrainOptions().steps, TrainOptions(max_steps=7).steps) == (None, 7)
    assert TrainOptions(max_steps=7, budget="bytes=9").steps == 7
    assert TrainOptions(budget="bytes=9").most_bytes == 9


@pytest.mark.parametrize(
    "budget", ["", "tokens", "tokens=", "tokens=0", "tokens=-1", "tokens=1e6", "tokens=1,000", "steps=3", "bytes= 3"]
)
def test_a_budget_that_cannot_be_read_is_refused(budget: str) -> None:
    with pytest.raises(UsageError, match=rf"^--budget {budget}: write tokens=N or bytes=N, with a whole number N$"):
        TrainOptions(budget=budget)


def test_a_budget_of_less_than_a_step_and_one_next_to_a_number_of_steps_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^--budget tokens=511: a step alone reads 512 tokens; lower the batch size$"
    ):
        TrainOptions(batch_size=8, sequence_length=64, budget="tokens=511").steps  # noqa: B018
    with pytest.raises(UsageError, match=r"leave out --max-steps$"):
        TrainOptions(budget="tokens=512", max_steps=1)


# -- recipes -----------------------------------------------------------------------------------------------------

OF_THE_COMMAND = ("method", "model", "data", "config", "past", "output", "experiment")


def as_trained(recipe: str, name: str) -> tuple[Method, TrainOptions]:
    """What ``temporalwiki train --recipe R --method M`` trains with."""
    given = {key: value for key, value in read_recipe(recipe, name).items() if key not in OF_THE_COMMAND}
    return configured(name, given, recipe)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("recipe", names())
def test_every_recipe_fits_every_method(recipe: str, method: str) -> None:
    as_trained(recipe, method)
    assert isinstance(read_recipe(recipe, method)["model"], str)


# the training of each paper: DESIGN.md, section 12
OF_TRAINING = ("batch_size", "sequence_length", "epochs", "learning_rate", "schedule", "optimizer", "warmup_ratio")
TRAINING: dict[str, dict[str, Any]] = {
    name: dict(zip(OF_TRAINING, values, strict=False))
    for name, values in {
        "temporalwiki-gpt2-large": (64, 512, 1, 1e-4, "one_cycle", "adamw"),
        "ckl-gpt2-large": (60, 350, 8, 1e-4, "linear_to_half", "adamw", 0.1),
        "ckl-t5-large": (60, 350, 4, 1e-3, "linear_to_half", "adafactor", 0.1),
    }.items()
}
TRAINING["ckl-t5-large-small"] = TRAINING["ckl-t5-large"] | {"epochs": 8}
TRAINING["ckl-t5-large-kilt"] = TRAINING["ckl-t5-large"]
CONTINUAL = [name for name in METHODS if name not in ("initial", "light_tuning")]
RECADAM = {"gamma": 5000, "t0": 250, "k": 0.5}
LORA = {"rank": 4, "alpha": 32, "dropout": 0}
K_ADAPTER = {"k": 2, "scale": 0.1, "gate": False}
OWN: dict[tuple[str, str], dict[str, Any]] = {
    (recipe, method): options
    for recipe in TRAINING
    for method, options in (("recadam", RECADAM), ("lora", LORA), ("k_adapter", K_ADAPTER))
} | {
    ("temporalwiki-gpt2-large", "mix_review"): {"ratio": 2},
    ("temporalwiki-gpt2-large", "k_adapter"): {**K_ADAPTER, "once": True},
    ("ckl-gpt2-large", "mix_review"): {"ratio": 4, "decay": 0.7},
    ("ckl-t5-large", "mix_review"): {"ratio": 4, "decay": 0.7},
    **{
        (f"ckl-t5-large{of}", "modular"): {"scale": 0.05, "small": "google-t5/t5-small"}
        for of in ("", "-kilt", "-small")
    },
    ("ticlm-gpt2-large", "replay"): {"share": 0.5},
    ("smollm2-135m", "mix_review"): {"ratio": 1},
}


@pytest.mark.parametrize("method", CONTINUAL)
@pytest.mark.parametrize(("recipe", "expected"), TRAINING.items(), ids=TRAINING)
def test_every_method_is_trained_as_the_paper_says(recipe: str, expected: dict[str, Any], method: str) -> None:
    _, options = as_trained(recipe, method)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(("recipe", "method"), OWN, ids=" ".join)
def test_a_method_has_the_papers_constants(recipe: str, method: str) -> None:
    expected = OWN[recipe, method]
    made = asdict(as_trained(recipe, method)[0])
    assert {name: made[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("recipe", "rate"), [(None, 1e-5), ("temporalwiki-gpt2-large", 1e-5), ("ckl-gpt2-large", 1e-3)]
)
def test_light_tuning_is_one_epoch_of_small_batches(recipe: str | None, rate: float) -> None:
    """With the recipe that the model was trained with, too: TemporalWiki tunes at 1e-5, CKL at 1e-3."""
    if recipe is None:
        options = from_mapping(TrainOptions, find_method("light_tuning").defaults, "here: ")
    else:
        _, options = as_trained(recipe, "light_tuning")
    assert (options.epochs, options.batch_size, options.learning_rate) == (1, 32, rate)


def write(folder: Path, text: str | bytes) -> str:
    path = folder / "recipe.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_methods_own_options_come_over_the_common_ones(tmp_path: Path) -> None:
    own = "methods:\n  lora: {learning-rate: 1e-3, rank: 2}\n  merge: {}\n"
    recipe = write(tmp_path, f"learning-rate: 1e-4\nbatch_size: 8\n{own}")
    common = {"learning_rate": "1e-4", "batch_size": 8}  # YAML 1.1 has no such number; from_mapping has
    assert read_recipe(recipe, "lora") == {"learning_rate": "1e-3", "batch_size": 8, "rank": 2}
    assert read_recipe(recipe, "merge") == read_recipe(recipe, "diff") == read_recipe(recipe, None) == common
    method, options = as_trained(recipe, "lora")
    assert (method, options) == (LoRA(rank=2), TrainOptions(learning_rate=1e-3, batch_size=8))


def test_a_recipe_may_name_the_method(tmp_path: Path) -> None:
    recipe = write(tmp_path, "method: lora\nmethods:\n  lora: {rank: 2}\n  dora: {rank: 3}\n")
    assert read_recipe(recipe, None) == {"method": "lora", "rank": 2}
    assert read_recipe(recipe, "dora") == {"method": "lora", "rank": 3}


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "no YAML": ("a: [", "cannot be read"),
    "no text": (b"\xff\xfe\x00", "cannot be read"),
    "nested without end": ("[" * 5000, "cannot be read|is a mapping"),
    "empty": ("", "a recipe is a mapping of options"),
    "list": ("- a\n- b\n", "a recipe is a mapping of options"),
    "numbers for names": ("1: 2\n", "a recipe is a mapping of options"),
    "methods as a list": ("methods: [lora]\n", "methods must map names of methods"),
    "a method's options as text": ("methods: {lora: fast}\n", "methods must map names of methods"),
    "unknown method": ("methods: {lorra: {}}\n", r"no method 'lorra' \(did you mean lora\?\)"),
    "code": ("!!python/object/apply:os.system ['true']\n", "cannot be read"),
    "several methods": ("method: [lora, dora]\nmethods: {lora: {rank: 2}}\n", "method"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_recipe_is_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read_recipe(write(tmp_path, text), None)


CPUS = [  # flags of the processor, what oneDNN may use, and the precision
    ("avx2 amx_tile amx_bf16", None, "bf16"),
    ("avx2 amx_tile amx_bf16", "AVX512_CORE_AMX", "bf16"),
    ("avx2 amx_tile amx_bf16", "AVX512_CORE_BF16", "fp32"),
    ("avx512_bf16 amx_bf16", "AVX512_CORE_BF16", "bf16"),
    ("avx512_bf16 amx_bf16", "AVX512_CORE_VNNI", "fp32"),
    ("avx512_bf16", None, "bf16"),
    ("avx512_bf16", "AVX512_CORE_FP16", "bf16"),
    ("avx512_bf16", "AVX2", "fp32"),
    ("avx2 avx512_vnni", None, "fp32"),
    (None, None, "fp32"),
]


@pytest.mark.parametrize(("flags", "isa", "expected"), CPUS)
def test_the_precision_of_a_cpu_is_bf16_if_it_has_instructions_for_it(
    flags: str | None, isa: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(train, "_CPU", tmp_path / "cpuinfo")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
    if isa:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", isa)
    if flags:
        (tmp_path / "cpuinfo").write_text(f"flags : {flags}\n")
    assert train._precision(TrainOptions()) == expected
    assert train._precision(TrainOptions(precision="fp32")) == "fp32"
