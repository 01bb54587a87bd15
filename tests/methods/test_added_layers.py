"""K-Adapter and Modular add layers to a model that trains, copies, saves and loads like any other."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from torch import nn

from temporalwiki.base.errors import InputError
from temporalwiki.methods import k_adapter, modular
from temporalwiki.methods.architecture import stack, trainable
from temporalwiki.methods.expansion import SPEC, WEIGHTS
from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.method import Method, Phase
from temporalwiki.methods.modular import Modular

from tiny_expansions import batch, close, fresh, gpt2, ids, llama, logits, same_weights, spec_with, spread, t5, train

MODELS: dict[str, Callable[..., Any]] = {"gpt2": gpt2, "llama": llama, "t5": t5, "modular": t5}


@pytest.fixture(params=MODELS)
def kind(request: pytest.FixtureRequest) -> str:
    """K-Adapter on each model, and Modular on T5."""
    return str(request.param)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("small")
    t5(d_model=16, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def method(kind: str, small: str) -> Callable[..., Method]:
    """Makes the method with a scale that shows."""

    def make(**options: Any) -> Method:
        return Modular(small=small, scale=1.0) if kind == "modular" else KAdapter(**{"scale": 2.0, **options})

    return make


@pytest.fixture
def model(kind: str, method: Callable[..., Method]) -> Any:
    """A model with new layers whose weights are large."""
    made = method().prepare(MODELS[kind](), Phase(seed=5)).eval()
    spread(new_layers(made))
    return made


def new_layers(model: Any) -> Any:
    return model.k_adapter if hasattr(model, "k_adapter") else model.encoder.modular


def parts(model: Any) -> Any:
    """The modules of the phases, each with its own scale."""
    return model.k_adapter.phases if hasattr(model, "k_adapter") else model.encoder.modular


def attach(kind: str, model: Any, folder: Path | str) -> Any:
    return (modular if kind == "modular" else k_adapter).attach(model, folder)


@pytest.mark.parametrize("beams", [1, 3])
def test_generating_is_the_same_with_and_without_a_cache(kind: str, model: Any, beams: int) -> None:
    heard: list[int] = []
    (first,) = parts(model)
    layer = first.stack if kind == "modular" else first.layers[0]
    layer.register_forward_pre_hook(lambda _, args: heard.append(args[0].shape[1] if args else 0))
    settings = {"max_new_tokens": 6, "min_new_tokens": 6, "num_beams": beams, "do_sample": False}
    with_cache, without = (
        model.generate(ids(), **settings, use_cache=use, return_dict_in_generate=True, output_scores=True)
        for use in (True, False)
    )
    assert with_cache.sequences.tolist() == without.sequences.tolist()
    for one, other in zip(with_cache.scores, without.scores, strict=True):
        close(one, other)
    if MODELS[kind] is t5:
        assert len(heard) == 2  # the encoder runs once for a batch
    else:
        assert heard == [9, *[1] * 5, *range(9, 15)]


@pytest.mark.parametrize("kind", ["t5", "modular"], indirect=True)
def test_padding_does_not_leak_in_t5(model: Any) -> None:
    short, labels = ids(1, 5), ids(1, 4, seed=8)
    padded = torch.cat([short, torch.zeros(1, 4, dtype=torch.long)], dim=1)
    with torch.no_grad():
        alone = model(short, labels=labels).logits
        batched = model(padded, attention_mask=(padded != 0).long(), labels=labels).logits
    close(batched, alone)


def test_a_deep_copy_is_a_model_of_its_own(model: Any) -> None:
    before = logits(model)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in new_layers(model).parameters():
            parameter.zero_()
    close(logits(twin), before)
    assert not torch.equal(logits(model), before)


def test_it_runs_in_bf16_and_under_autocast(kind: str, method: Callable[..., Method]) -> None:
    model = method(scale=0.1).prepare(MODELS[kind](), Phase(seed=5)).eval()
    train(model)  # K-Adapter starts without an effect
    full = logits(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = model(**batch(model), use_cache=False)
        mixed.loss.backward()
    assert all(p.grad is not None for p in new_layers(model).parameters())
    halved = model.to(torch.bfloat16)
    assert {p.dtype for p in halved.parameters()} == {torch.bfloat16}
    for other in (mixed.logits, logits(halved)):
        assert (other.float() - full).abs().max() < 0.1 * full.abs().max()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(
    kind: str, method: Callable[..., Method], reentrant: bool
) -> None:
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0} if kind == "gpt2" else {"dropout_rate": 0.0}
    model = method().prepare(MODELS[kind](**({} if kind == "llama" else dropout)), Phase(seed=5))
    spread(new_layers(model))
    model.train()
    gradients = []
    for checkpointed in (False, True):
        if checkpointed:
            model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": reentrant})
        model.zero_grad()
        model(**batch(model)).loss.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() != set()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6)


def test_nothing_is_computed_backwards_through_a_frozen_model(model: Any) -> None:
    model.train().enable_input_require_grads()  # what gradient checkpointing does
    passed: list[int] = []
    stack(model).layers[1].register_full_backward_hook(lambda *_: passed.append(1))
    model(**batch(model), use_cache=False).loss.backward()
    assert passed == []
    model.requires_grad_(True)  # light-tuning trains everything
    model(**batch(model), use_cache=False).loss.backward()
    assert passed == [1]


def test_a_second_phase_adds_to_the_first(kind: str, method: Callable[..., Method]) -> None:
    model = method(scale=0.5).prepare(MODELS[kind](), Phase())
    train(model.train(), steps=15)
    model = method(scale=0.25, k=1).prepare(model, Phase(seed=1))
    train(model.train(), steps=15)
    run = model.eval().get_encoder() if MODELS[kind] is t5 else model.eval().base_model
    out = []
    for scales in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.25), (0.5, 0.25)):
        parts(model)[0].scale, parts(model)[1].scale = scales
        with torch.no_grad():
            out.append(run(ids()).last_hidden_state)
    base, first, second, both = out
    assert min((first - base).abs().max(), (second - base).abs().max()) > 0.05  # both phases add something
    close(both - base, (first - base) + (second - base))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_model_comes_back_on_a_fresh_base(
    kind: str, method: Callable[..., Method], dtype: torch.dtype, tmp_path: Path
) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    MODELS[kind]().save_pretrained(base)
    model = fresh(base, dtype)
    for phase, options in enumerate(({"gate": True}, {"k": 1, "scale": 0.5})):
        made = method(**options)
        model = made.prepare(model, Phase(seed=phase))
        train(model.train(), steps=2)
        made.save(model, out)
        assert sorted(path.name for path in out.iterdir()) == ["config.json", SPEC, WEIGHTS]
        again = attach(kind, fresh(base, dtype), out)
        assert same_weights(again, model)
        close(logits(again), logits(model.eval()))
        assert {p.dtype for p in again.parameters()} == {dtype}
        assert trainable(again) == 0
        model = attach(kind, fresh(base, dtype), str(out))
    assert json.loads((out / SPEC).read_text())["base_model"] == str(base)
    if MODELS[kind] is not t5:
        assert (out / WEIGHTS).stat().st_size < (base / "model.safetensors").stat().st_size


def lora(model: Any, target: str) -> Any:
    config = LoraConfig(target_modules=[target], init_lora_weights=False, fan_in_fan_out=target == "c_attn")
    return get_peft_model(model, config)


def unfrozen(model: nn.Module) -> Any:
    train(model.requires_grad_(True))
    return model


def test_what_an_adapter_or_light_tuning_changed_is_saved(
    kind: str, method: Callable[..., Method], tmp_path: Path
) -> None:
    MODELS[kind]().save_pretrained(tmp_path / "base")
    target = {"gpt2": "c_attn", "llama": "q_proj"}.get(kind, "q")
    merged = method().prepare(lora(fresh(tmp_path / "base"), target), Phase())
    tuned = unfrozen(method().prepare(fresh(tmp_path / "base"), Phase()))
    for name, model in {"merged": merged, "tuned": tuned}.items():
        method().save(model, tmp_path / name)
        again = attach(kind, fresh(tmp_path / "base"), tmp_path / name)
        assert same_weights(again, model)
        close(logits(again), logits(model.eval()))


# Damaged checkpoints


Damage = Callable[[Path], Any]


def phase_with(**changes: Any) -> Damage:
    """Return a function that changes the phase of a K-Adapter."""
    return spec_with(phases=[{"k": 2, "layers": [1, 3], "scale": 0.1, "gate": False, **changes}])


def encoder_with(**changes: Any) -> Damage:
    """Return a function that changes the small encoder, or the scale, of Modular."""

    def damage(folder: Path) -> None:
        spec = json.loads((folder / SPEC).read_text())
        phase = spec["phases"][0]
        (phase if "scale" in changes else phase["encoder"]).update(changes)
        (folder / SPEC).write_text(json.dumps(spec))

    return damage


def tensors_with(change: Callable[[dict[str, torch.Tensor]], Any]) -> Damage:
    def damage(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        change(weights)
        save_file(weights, folder / WEIGHTS)

    return damage


NORM = "k_adapter.phases.0.norm.weight"
DAMAGES: dict[str, list[tuple[Damage, str]]] = {
    "gpt2": [
        (lambda folder: (folder / SPEC).unlink(), "not the description of an expanded model"),
        (lambda folder: (folder / SPEC).write_text("{"), "not the description of an expanded model"),
        (lambda folder: (folder / SPEC).write_text("[" * 100_000), "not the description of an expanded model"),
        (lambda folder: (folder / SPEC).write_text("[]"), "Expected `object`"),
        (spec_with(more=1), "unknown field `more`"),
        (spec_with(method=1), r"at `\$\.method`"),
        (spec_with(method="lora"), "Invalid enum value 'lora'"),  # which has nothing to attach
        (spec_with(layers="4"), r"Expected `int`, .* at `\$\.layers`"),
        (spec_with(phases=[]), r"length >= 1 - at `\$\.phases`"),
        (spec_with(phases=["x"]), r"Expected `object`, .* at `\$\.phases\[0\]`"),
        (spec_with(changed="x"), r"Expected `array`, .* at `\$\.changed`"),
        (spec_with(method="modular"), "a checkpoint of modular, not of k_adapter"),
        (spec_with(model_type="llama"), "a checkpoint of another model: llama with 4 layers"),
        (spec_with(layers=6), "a checkpoint of another model: gpt2 with 6 layers"),
        (spec_with(changed=["transformer.x"]), "a checkpoint of another model: this one has no transformer.x"),
        (spec_with(changed=["transformer.wpe.weight"]), "transformer.wpe.weight is missing"),
        (spec_with(phases=[{"k": 2}]), "options of a phase are wrong: .*missing required field `layers`"),
        (phase_with(k=True), r"options of a phase are wrong: .* at `\$\.k`"),
        (phase_with(layers=[1, "3"]), r"at `\$\.layers\[1\]`"),
        (phase_with(layers=[1, 10**9]), "use 1 to 3"),
        (phase_with(scale="0.1"), r"at `\$\.scale`"),
        (phase_with(scale=0), "scale must be above 0"),
        (phase_with(scale=float("inf")), "not the description of an expanded model"),
        (phase_with(k=3, layers=[1, 2, 3]), "is missing"),
        (lambda folder: (folder / WEIGHTS).unlink(), "not a file of tensors"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"x" * 100), "not a file of tensors"),
        (tensors_with(lambda t: t.pop(NORM)), f"{NORM} is missing"),
        (tensors_with(lambda t: t.update(x=torch.ones(1))), "x fits no parameter"),
        (tensors_with(lambda t: t.update({NORM: torch.ones(31)})), r"another model: .* is \[31\], not \[32\]"),
    ],
    "modular": [
        (spec_with(method="k_adapter"), "a checkpoint of k_adapter, not of modular"),
        (spec_with(phases=[{"scale": 1.0}]), "missing required field `small`"),
        (spec_with(phases=[{"small": 1, "scale": 1.0, "encoder": {}}]), r"at `\$\.small`"),
        (encoder_with(scale="1"), r"at `\$\.scale`"),
        (encoder_with(scale=0), "scale must be above 0"),
        (spec_with(phases=[{"small": None, "scale": 1, "encoder": {}}]), r"missing .* at `\$\.encoder`"),
        (encoder_with(more=1), "unknown field `more`"),
        (encoder_with(num_layers=10**9), r"Expected `int` <= 1000 - at `\$\.encoder\.num_layers`"),
        (encoder_with(d_model=True), r"at `\$\.encoder\.d_model`"),
        (encoder_with(d_model=24), "a checkpoint of another model: encoder.modular"),
        (encoder_with(num_layers=3), "is missing"),
        (encoder_with(num_layers=1), "fits no parameter"),
        (encoder_with(dropout_rate="x"), r"at `\$\.encoder\.dropout_rate`"),
        (encoder_with(dropout_rate=2), "cannot build this small encoder"),
        (encoder_with(feed_forward_proj=1), r"at `\$\.encoder\.feed_forward_proj`"),
        (encoder_with(feed_forward_proj="evil"), "feed_forward_proj of a small encoder"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "damage", "message"),
    [(kind, *case) for kind, of in DAMAGES.items() for case in of],
    indirect=["kind"],
)
def test_a_damaged_checkpoint_is_named_and_changes_nothing(
    kind: str, method: Callable[..., Method], damage: Damage, message: str, tmp_path: Path
) -> None:
    method().save(method().prepare(MODELS[kind](), Phase()), tmp_path)
    damage(tmp_path)
    base = MODELS[kind]()
    with pytest.raises(InputError, match=message) as caught:
        attach(kind, base, tmp_path)
    assert "\n" not in str(caught.value)
    assert same_weights(base, MODELS[kind]())
    close(logits(base), logits(MODELS[kind]()))


OTHERS: dict[str, list[tuple[Callable[[], Any], str]]] = {
    "gpt2": [
        (lambda: gpt2(n_layer=6), "another model: gpt2 with 4 layers"),
        (lambda: gpt2(n_embd=64), "another model: k_adapter.* is"),
        (llama, "another model: gpt2 with 4 layers .*, not llama with 4"),
        (lambda: KAdapter().prepare(gpt2(), Phase()), "already has an adapter or new layers"),
    ],
    "modular": [
        (lambda: t5(d_model=48), "a checkpoint of another model"),
        (lambda: t5(vocab_size=70), "a checkpoint of another model"),
        (lambda: t5(num_decoder_layers=2), "a checkpoint of another model"),
        (lambda: KAdapter().prepare(t5(), Phase()), "already has an adapter or new layers"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "other", "message"),
    [(kind, *case) for kind, of in OTHERS.items() for case in of],
    indirect=["kind"],
)
def test_a_checkpoint_fits_its_own_model_only(
    kind: str, method: Callable[..., Method], other: Callable[[], Any], message: str, tmp_path: Path
) -> None:
    method().save(method().prepare(MODELS[kind](), Phase()), tmp_path)
    with pytest.raises(InputError, match=message):
        attach(kind, other(), tmp_path)


@pytest.mark.parametrize(("first", "second"), [(KAdapter, Modular), (Modular, KAdapter), (KAdapter, Method)])
def test_the_layers_of_another_method_stay_that_methods(first: type[Method], second: type[Method]) -> None:
    with torch.device("meta"):
        model = t5()
    with pytest.raises(InputError, match=r"a checkpoint of (k_adapter|modular)"):
        second().prepare(first().prepare(model, Phase()), Phase())
