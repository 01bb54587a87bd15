"""Publishing checkpoints: others load what every method wrote, and nothing else is sent."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from peft import AutoPeftModelForCausalLM
from safetensors.torch import load_file, save_file

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.eval_harness.models.local import revision
from temporalwiki.methods import METHODS, checkpoint, find_method
from temporalwiki.methods.lora import LoRA
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.model import publish_model

import a_result
import tiny_models
import tiny_training
from a_folder import contents, rewrite
from a_month import add_month, article, probe
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.usefixtures("quick", "online", "bases")

Trained = Callable[..., Path]
Copied = Callable[[str, str], Path]
TOKEN = "hf_writer"
OF_PEFT = tuple(name for name in METHODS if issubclass(find_method(name), LoRA))
EXPANDED = ("k_adapter", "modular")
CASES = [
    *(("gpt2", method) for method in METHODS if find_method(method).unsupported_architecture != "decoder-only"),
    *(("t5", method) for method in ("diff", *OF_PEFT, *EXPANDED)),
]
# Somebody who has not seen this project, with a cache of their own. Expanded models come last, as they need it.
PROGRAM = """
import json, sys
import torch, transformers, peft
torch.set_num_threads(1)
cases = json.loads({cases!r})
def run(case, load):
    model, tokenizer = load(case), transformers.AutoTokenizer.from_pretrained(case["repo"])
    ids = torch.tensor([tokenizer.encode("The capital of Norland is")])
    more = {{"decoder_input_ids": ids[:, :4]}} if model.config.is_encoder_decoder else {{}}
    with torch.no_grad():
        logits = model.eval()(input_ids=ids, **more).logits
    print(json.dumps([case["name"], ids.tolist(), logits.tolist()]))
def auto(case):
    return getattr(transformers, "AutoModelFor" + case["of"]).from_pretrained(case["repo"])
def auto_peft(case):
    return getattr(peft, "AutoPeftModelFor" + case["of"]).from_pretrained(case["repo"])
expanded = [case for case in cases if case["kind"] == "expansion"]
for case in cases:
    if case["kind"] == "model":
        run(case, auto)
    elif case["kind"] == "adapter":
        run(case, auto_peft)
        run({{**case, "name": case["name"] + " by transformers"}}, auto)
assert "temporalwiki" not in sys.modules
for case in expanded:
    try:
        auto(case)
    except ValueError as error:
        assert "temporalwiki_expansion" in str(error) and "does not recognize" in str(error), error
    else:
        raise AssertionError(case)
import temporalwiki.methods.auto_model
for case in expanded:
    run(case, auto)
"""


@pytest.fixture(scope="module")
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as hub:
        hub.add_user("ann", TOKEN, orgs={"org": "write"})
        yield hub


@pytest.fixture(scope="module")
def online(hub: LoopbackHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """This process speaks to the loopback Hub."""
    with pytest.MonkeyPatch.context() as patch:
        hub.online(patch, TOKEN, tmp_path_factory.mktemp("home"))
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each kind, and data: articles, new and past, and facts."""
    return tiny_training.write(tmp_path_factory.mktemp("shared"), "gpt2", "t5")


@pytest.fixture(scope="module")
def trained(shared: Path) -> Trained:
    """Trains a method on a kind of model, once; returns the output."""

    def train(kind: str, method: str, model: str | Path | None = None) -> Path:
        output = shared / f"{kind}-{method}{'' if model is None else '-on-' + fingerprint(str(model))}"
        if not (output / "training.json").exists():
            tiny_training.train(shared, method, model or shared / kind, output, "--max-steps", 1)
        return output

    return train


@pytest.fixture(scope="module")
def bases(hub: LoopbackHub, shared: Path) -> dict[str, str]:
    """The commits of the models on the Hub that all was trained from."""
    card = b"---\nlicense: mit\n---\n"
    return {
        kind: hub.commit("model", f"org/{kind}", {"README.md": card, **contents(shared / kind)})
        for kind in ("gpt2", "t5")
    }


@pytest.fixture(scope="module")
def published(hub: LoopbackHub, online: None, bases: dict[str, str], trained: Trained) -> dict[tuple[str, str], str]:
    """The repository of each checkpoint."""
    found = {}
    for kind, method in CASES:
        found[kind, method] = f"org/{kind}-{method}"
        list(publish_model(trained(kind, method), found[kind, method], base=f"org/{kind}", tag="2021.12"))
    return found


def logits(model: Any, ids: list[list[int]]) -> torch.Tensor:
    given = torch.tensor(ids)
    more = {"decoder_input_ids": given[:, :4]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model.eval()(input_ids=given, **more).logits


def kind_of(method: str) -> str:
    return "adapter" if method in OF_PEFT else "expansion" if method in EXPANDED else "model"


def test_every_methods_checkpoint_loads_from_the_hub_by_others(
    hub: LoopbackHub, published: dict[tuple[str, str], str], trained: Trained, tmp_path: Path
) -> None:
    cases = [
        {
            "name": f"{kind} {method}",
            "repo": repo,
            "kind": kind_of(method),
            "of": "Seq2SeqLM" if kind == "t5" else "CausalLM",
        }
        for (kind, method), repo in published.items()
    ]
    done = hub.python(PROGRAM.format(cases=json.dumps(cases)), tmp_path / "home")
    cards = [files_of(hub, repo)["README.md"].decode() for repo in published.values()]
    code = [re.findall(r"```python\n(.*?)```", card, re.DOTALL) for card in cards]
    assert all(len(blocks) == 1 for blocks in code)
    hub.python("\n".join(block for [block] in code), tmp_path / "home")  # as a reader types it
    there = {name: (ids, values) for name, ids, values in map(json.loads, done.stdout.splitlines())}
    expected = {f"{kind} {method}": trained(kind, method) for kind, method in CASES}
    adapters = {f"{name} by transformers": of for name, of in expected.items() if name.split()[1] in OF_PEFT}
    assert there.keys() == {**expected, **adapters}.keys()
    for name, folder in {**expected, **adapters}.items():
        ids, values = there[name]
        here = logits(checkpoint.load_model(str(folder)), ids)
        torch.testing.assert_close(
            torch.tensor(values), here, rtol=1e-4, atol=1e-4, msg=lambda said, name=name: f"{name}: {said}"
        )


# What is sent


def test_a_repository_holds_the_checkpoint_and_nothing_else(
    hub: LoopbackHub, published: dict[tuple[str, str], str]
) -> None:
    for (_, method), repo in published.items():
        names = set(hub.repo("model", repo).files()) - {".gitattributes"}
        model = {
            "model": {"config.json", "generation_config.json", "model.safetensors"},
            "adapter": {"adapter_config.json", "adapter_model.safetensors"},
            "expansion": {"config.json", "expansion.json", "expansion.safetensors"},
        }[kind_of(method)]
        about = {"README.md", "training.json", "tokenizer.json", "tokenizer_config.json"}
        assert names == model | about | (set() if method == "initial" else {"loss.png"}), repo


def test_nothing_says_where_it_was_made(hub: LoopbackHub, published: dict[tuple[str, str], str], shared: Path) -> None:
    for repo in published.values():
        for name, content in hub.repo("model", repo).files().items():
            assert str(shared.parent).encode() not in content, (repo, name)


def test_the_record_names_what_was_read_without_its_path(
    hub: LoopbackHub, published: dict[tuple[str, str], str]
) -> None:
    files = hub.repo("model", published["t5", "modular"]).files()
    run = json.loads(files["training.json"])["run"]
    assert (run["model"], run["data"], run["modular.small"]) == ("t5", "data", "t5")
    assert json.loads(files["expansion.json"])["phases"][0]["small"] == "t5"


def test_adapters_and_layers_name_their_base_at_its_commit(
    hub: LoopbackHub, published: dict[tuple[str, str], str], bases: dict[str, str]
) -> None:
    for (kind, method), repo in published.items():
        files = hub.repo("model", repo).files()
        card = ModelCard(files["README.md"].decode()).data
        assert (card.base_model, card.license) == (f"org/{kind}", "mit")
        if method in OF_PEFT:
            config = json.loads(files["adapter_config.json"])
            assert (config["base_model_name_or_path"], config["revision"]) == (f"org/{kind}", bases[kind])
        if method in EXPANDED:
            assert json.loads(files["expansion.json"])["base_model"] == f"org/{kind}@{bases[kind]}"


@pytest.fixture
def repo(_names: Iterator[str] = map("org/other-{}".format, itertools.count())) -> str:  # noqa: B008 - one for all
    """A name that no other test has used."""
    return next(_names)


@pytest.fixture
def copied(trained: Trained, tmp_path: Path) -> Copied:
    """A copy of a checkpoint, to change: of an older version, which listed no checksums."""

    def copy(kind: str, method: str) -> Path:
        folder = shutil.copytree(trained(kind, method), tmp_path / f"{kind}-{method}")
        rewrite(folder / "training.json", files=[], settings={})
        return folder

    return copy


def files_of(hub: LoopbackHub, repo: str) -> dict[str, bytes]:
    return {name: of for name, of in hub.repo("model", repo).files().items() if name != ".gitattributes"}


def is_there(hub: LoopbackHub, repo: str) -> bool:
    try:
        return bool(hub.repo("model", repo))
    except KeyError:
        return False


def test_what_else_lies_in_the_folder_stays_there(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    folder = copied("gpt2", "lora")
    for name in ("training_args.bin", "optimizer.pt", "notes.txt", ".env", "run.sh", "modeling.py", "README.md"):
        (folder / name).write_bytes(b"secret")
    (folder / "tensorboard").mkdir()
    (folder / "tensorboard" / "events").write_bytes(b"secret")
    (folder / "other.safetensors").write_bytes(b"secret")
    list(publish_model(folder, repo, base="org/gpt2"))
    assert all(b"secret" not in content for content in files_of(hub, repo).values())
    assert set(files_of(hub, repo)) == set(files_of(hub, "org/gpt2-lora"))


def test_no_published_file_sends_a_loader_for_code(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    folder = copied("gpt2", "diff")
    for name in ("config.json", "tokenizer_config.json"):
        rewrite(folder / name, auto_map={"AutoModelForCausalLM": "x--y.Z"}, name_or_path="/home/ann/model")
    list(publish_model(folder, repo))
    for name in ("config.json", "tokenizer_config.json"):
        assert not {"auto_map", "name_or_path"} & set(json.loads(files_of(hub, repo)[name]))


def test_a_model_in_several_files_goes_with_all_of_them(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    folder = copied("gpt2", "diff")
    model = checkpoint.load_model(str(folder))
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="100KB")
    parts = {path.name for path in folder.glob("*.safetensors")}
    assert len(parts) > 1
    list(publish_model(folder, repo))
    assert parts | {"model.safetensors.index.json"} <= set(files_of(hub, repo))
    ids = [[5, 6, 7]]
    assert torch.equal(logits(checkpoint.load_model(repo), ids), logits(model, ids))


@pytest.mark.parametrize("name", ["</script>", "a\n---\nb: c", "\x00\x85", "| a | `b` |", "../../etc", "#" * 5000])
def test_hostile_names_in_the_record_are_names(name: str, hub: LoopbackHub, copied: Copied, repo: str) -> None:
    folder = copied("gpt2", "diff")
    run = json.loads((folder / "training.json").read_text())["run"]
    rewrite(folder / "training.json", run=run | {"method": name, "config": name, "data": name}, device=name)
    list(publish_model(folder, repo))
    files = files_of(hub, repo)
    assert set(files) == set(files_of(hub, "org/gpt2-diff"))
    card = ModelCard(files["README.md"].decode())
    assert card.data.tags == ["temporalwiki", "continual-learning", "knowledge", "other"]
    assert "</script>" not in card.text
    assert json.loads(files["training.json"])["device"] == name


@pytest.mark.parametrize(("kind", "method"), [("gpt2", "lora"), ("gpt2", "k_adapter"), ("t5", "modular")])
def test_an_adapter_or_layers_that_are_not_whole_are_not_sent(
    kind: str, method: str, hub: LoopbackHub, copied: Copied, repo: str
) -> None:
    folder = copied(kind, method)
    [weights] = folder.glob("*.safetensors")
    tensors = load_file(weights)
    name = max(tensors)
    del tensors[name]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(InputError, match=re.escape(name.removesuffix(".weight"))):
        list(publish_model(folder, repo, base=f"org/{kind}"))
    assert not is_there(hub, repo)


def test_what_people_write_into_the_card_stays(hub: LoopbackHub, trained: Trained, repo: str) -> None:
    list(publish_model(trained("gpt2", "diff"), repo))
    card = files_of(hub, repo)["README.md"].decode().replace("<!-- /yours -->", "Made by us.\n<!-- /yours -->")
    hub.commit("model", repo, {"README.md": card.encode()})
    list(publish_model(trained("gpt2", "initial"), repo))
    after = files_of(hub, repo)["README.md"].decode()
    assert "| method | initial |" in after and "Made by us.\n<!-- /yours -->" in after


def test_a_dry_run_sends_nothing(hub: LoopbackHub, trained: Trained, repo: str) -> None:
    lines = list(publish_model(trained("gpt2", "lora"), repo, base="org/gpt2", tag="2021.12", dry_run=True))
    assert not is_there(hub, repo)
    named = {line.split()[1] for line in lines if line.startswith("  + ")}
    assert named == set(files_of(hub, "org/gpt2-lora"))


def test_what_another_checkpoint_left_goes(hub: LoopbackHub, trained: Trained, repo: str) -> None:
    hub.commit("model", repo, {"pytorch_model.bin": b"x", "LICENSE": b"mine", "docs/model.bin": b"mine"})
    list(publish_model(trained("gpt2", "diff"), repo))
    assert {"model.safetensors", "config.json", "LICENSE", "docs/model.bin"} <= set(files_of(hub, repo))
    list(publish_model(trained("gpt2", "lora"), repo, base="org/gpt2"))
    assert set(files_of(hub, repo)) == {*files_of(hub, "org/gpt2-lora"), "LICENSE", "docs/model.bin"}


# The base


def test_a_later_phase_holds_the_earlier_ones(hub: LoopbackHub, trained: Trained, tmp_path: Path, repo: str) -> None:
    second = trained("gpt2", "lora", trained("gpt2", "lora"))
    list(publish_model(second, repo, base="org/gpt2"))
    for name, content in files_of(hub, repo).items():
        (tmp_path / name).write_bytes(content)
    ids = [[5, 6, 7, 8]]
    model = AutoPeftModelForCausalLM.from_pretrained(tmp_path)
    expected = logits(checkpoint.load_model(str(second)), ids)
    torch.testing.assert_close(logits(model, ids), expected, rtol=1e-4, atol=1e-4)
    assert "new, new" in files_of(hub, repo)["README.md"].decode()


@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_base_that_moves_on_changes_nothing(
    method: str, hub: LoopbackHub, trained: Trained, shared: Path, repo: str
) -> None:
    base = f"{repo}-base"
    first = hub.commit("model", base, contents(shared / "gpt2"))
    list(publish_model(trained("gpt2", method), repo, base=base))
    before = files_of(hub, repo)
    hub.commit("model", base, {"model.safetensors": contents(trained("gpt2", "diff"))["model.safetensors"]})
    ids = [[5, 6, 7, 8]]
    expected = logits(checkpoint.load_model(str(trained("gpt2", method))), ids)
    torch.testing.assert_close(logits(checkpoint.load_model(repo), ids), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="it has other weights"):  # the base has changed since the training
        list(publish_model(trained("gpt2", method), repo, base=base))
    assert list(publish_model(trained("gpt2", method), repo, base=f"{base}@{first}")) == [f"{repo}: up to date"]
    hub.commit("model", base, {"model.safetensors": contents(shared / "gpt2")["model.safetensors"]})
    assert list(publish_model(trained("gpt2", method), repo, base=base)) == [f"{repo}: up to date"]
    assert files_of(hub, repo) == before


def test_what_was_trained_from_the_hub_needs_no_base_named(
    hub: LoopbackHub, bases: dict[str, str], trained: Trained, repo: str
) -> None:
    folder = trained("gpt2", "dora", f"org/gpt2@{bases['gpt2']}")
    list(publish_model(folder, repo))
    config = json.loads(files_of(hub, repo)["adapter_config.json"])
    assert (config["base_model_name_or_path"], config["revision"]) == ("org/gpt2", bases["gpt2"])
    with pytest.raises(UsageError, match=f"--base org/t5: but .* was made from org/gpt2@{bases['gpt2']}"):
        list(publish_model(folder, repo, base="org/t5"))


def moved(hub: LoopbackHub, base: str, trained: Trained) -> str:
    """The commit of a base that now has other weights."""
    return hub.commit("model", base, {"model.safetensors": contents(trained("gpt2", "diff"))["model.safetensors"]})


@pytest.mark.parametrize("pinned", [True, False], ids=["named at its commit", "named by its id"])
@pytest.mark.parametrize("method", ["lora", "k_adapter", "diff"])
def test_the_base_is_that_which_was_trained_on_and_no_later_one(
    method: str, pinned: bool, hub: LoopbackHub, trained: Trained, shared: Path, repo: str
) -> None:
    base = f"{repo}-base"
    card = {"README.md": b"---\nlicense: mit\n---\n"}
    commit = hub.commit("model", base, {**card, **contents(shared / "gpt2")})
    folder = trained("gpt2", method, f"{base}@{commit}" if pinned else base)
    record = json.loads((folder / "training.json").read_text())
    assert (record["run"]["model"], record["base"]) == (f"{base}@{commit}" if pinned else base, f"{base}@{commit}")
    ids = [[5, 6, 7, 8]]
    expected = logits(checkpoint.load_model(str(folder)), ids)
    later = moved(hub, base, trained)
    hub.commit("model", base, {"README.md": b"---\nlicense: apache-2.0\n---\n"})
    torch.testing.assert_close(logits(checkpoint.load_model(str(folder)), ids), expected, rtol=1e-4, atol=1e-4)
    list(publish_model(folder, repo, base=base))
    assert ModelCard(files_of(hub, repo)["README.md"].decode()).data.license == "mit"
    assert f"{base} at commit {commit}" in files_of(hub, repo)["README.md"].decode()
    torch.testing.assert_close(logits(checkpoint.load_model(repo), ids), expected, rtol=1e-4, atol=1e-4)
    assert list(publish_model(folder, repo)) == [f"{repo}: up to date"]
    with pytest.raises(UsageError, match=f"is commit {later}, but .* was made from {base}@{commit}"):
        list(publish_model(folder, repo, base=f"{base}@{later}"))


def test_a_later_phase_still_knows_the_first_ones_base(
    hub: LoopbackHub, trained: Trained, shared: Path, repo: str
) -> None:
    base = f"{repo}-base"
    commit = hub.commit("model", base, contents(shared / "gpt2"))
    second = trained("gpt2", "diff", trained("gpt2", "diff", base))
    moved(hub, base, trained)
    list(publish_model(second, repo))
    assert f"{base} at commit {commit}" in files_of(hub, repo)["README.md"].decode()
    assert json.loads(files_of(hub, repo)["training.json"])["base"] == f"{base}@{commit}"


def test_a_rerun_is_none_of_the_bases_later_commits(
    hub: LoopbackHub, trained: Trained, shared: Path, repo: str
) -> None:
    base = f"{repo}-base"
    hub.commit("model", base, {"README.md": b"---\nlicense: mit\n---\n", **contents(shared / "gpt2")})
    list(publish_model(trained("gpt2", "diff"), repo, base=base, tag="2021.12"))
    hub.commit("model", base, {"README.md": b"---\nlicense: apache-2.0\n---\n", "notes.txt": b"a typo mended"})
    lines = list(publish_model(trained("gpt2", "diff"), repo, base=base, tag="2021.12"))
    assert lines == [f"{repo}: up to date"]


@pytest.mark.parametrize(("changes", "same"), [({"n_head": 2}, False), ({"dtype": "bfloat16"}, True)])
@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_base_is_configured_as_the_one_on_this_machine(
    method: str, changes: dict[str, Any], same: bool, hub: LoopbackHub, trained: Trained, shared: Path, repo: str
) -> None:
    files = contents(shared / "gpt2")
    config = json.loads(files["config.json"]) | changes | {"_name_or_path": "x", "transformers_version": "5.0"}
    hub.commit("model", f"{repo}-base", {**files, "config.json": json.dumps(config).encode()})
    if same:
        list(publish_model(trained("gpt2", method), repo, base=f"{repo}-base"))
        return
    with pytest.raises(InputError, match=r"another model than .*gpt2: n_head is 2, not 4"):
        list(publish_model(trained("gpt2", method), repo, base=f"{repo}-base"))
    assert not is_there(hub, repo)


def write_gguf(path: Path, layers: int) -> None:
    """A GGUF file's header, which is where its configuration stands."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    sizes = {"context_length": 256, "embedding_length": 32, "block_count": layers, "feed_forward_length": 64}
    for name, value in (sizes | {"head_count": 4, "head_count_kv": 2, "vocab_size": 400}).items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_base_that_was_a_gguf_file_has_the_sizes_of_the_one_that_is_named(
    hub: LoopbackHub, trained: Trained, tmp_path: Path, repo: str
) -> None:
    files = contents(tiny_models.save("llama", tmp_path / "llama"))
    config = json.loads(files["config.json"]) | {"vocab_size": 400}
    hub.commit("model", f"{repo}-base", {**files, "config.json": json.dumps(config).encode()})
    folder = trained("llama", "lora", tmp_path / "llama")
    rewrite(folder / "adapter_config.json", base_model_name_or_path=str(tmp_path / "model.gguf"))
    write_gguf(tmp_path / "model.gguf", layers=2)
    with pytest.raises(InputError, match=r"another model than .*model\.gguf: num_hidden_layers is 4, not 2"):
        list(publish_model(folder, repo, base=f"{repo}-base"))
    write_gguf(tmp_path / "model.gguf", layers=4)
    list(publish_model(folder, repo, base=f"{repo}-base"))
    assert "quantized copy" in files_of(hub, repo)["README.md"].decode()


# Its scores


@pytest.fixture
def results(trained: Trained, tmp_path: Path) -> Path:
    """Results of gpt2's diff on a dataset that is on the Hub, on one that is not, and one of another model."""
    its = {"name": "diff", "revision": revision(str(trained("gpt2", "diff"))), "method": "diff"}
    for data, config in (("org/temporalwiki@2021.12", "probes-1112"), ("data", "probes-1011")):
        made = a_result.write_probes(tmp_path / "results", config, {"unchanged": hits(3), "changed": hits(1)}, **its)
        content = json.loads(made.path.read_text())
        content["data"]["dataset"] = data
        for split, value in (("unchanged", 30.0), ("changed", 10.0)):
            of = {"value": value, "low": value - 5, "high": value + 5, "items": 10, "clusters": 9}
            content["scores"] |= {f"{split}/exact_match": of, f"{split}/f1": {**of, "value": value + 1}}
        made.path.write_text(json.dumps(content))
    a_result.write_clozes(tmp_path / "results", "invariantlama-1112", a_result.clozes(3), name="other")
    return tmp_path / "results"


def hits(count: int) -> list[dict[str, Any]]:
    return [dict(item) for item in a_result.facts(*[float(i < count) + 1 for i in range(10)])]


def test_its_own_scores_are_in_its_card_and_in_the_hubs_results(
    hub: LoopbackHub, trained: Trained, results: Path, tmp_path: Path, repo: str
) -> None:
    add_month(tmp_path / "month", "20211101", "20211201", [article(1)], [probe(1)])
    list(publish_dataset(tmp_path / "month", "org/temporalwiki"))
    commit = hub.repo("dataset", "org/temporalwiki").tags["2021.12"]
    hub.commit("dataset", "org/temporalwiki", {"README.md": b"later"})
    lines = list(publish_model(trained("gpt2", "diff"), repo, results=results))
    assert lines[0].startswith("left out: 1 of 3 results are of other checkpoints (other-")
    entries = yaml.safe_load(files_of(hub, repo)[".eval_results/temporalwiki.yaml"])
    full = "probes-20211101-20211201"
    assert [(entry["dataset"], entry["value"]) for entry in entries] == [
        ({"id": "org/temporalwiki", "task_id": f"{full}-changed", "revision": commit}, 10.0),
        ({"id": "org/temporalwiki", "task_id": f"{full}-unchanged", "revision": commit}, 30.0),
    ]
    said = files_of(hub, repo)["README.md"].decode()
    assert "| probes-1112 | twiki_probes 1 | unchanged | exact_match | 30.00 [25.00, 35.00] | 10 | higher |" in said
    assert "| probes-1011 | twiki_probes 1 | changed | exact_match | 10.00 [5.00, 15.00] | 10 | higher |" in said
    assert "invariantlama" not in said


# Its data


MONTH = {"config": "diffset-20211101-20211201", "manifest_sha256": "a" * 64}


@pytest.fixture
def month(hub: LoopbackHub, tmp_path: Path, repo: str) -> str:
    """A dataset on the Hub with one month, under a name that no other test has used."""
    add_month(tmp_path / "month", "20211101", "20211201", [article(1)])
    list(publish_dataset(tmp_path / "month", f"{repo}-data"))
    return f"{repo}-data"


def trained_on(folder: Path, *sources: dict[str, Any], **more: Any) -> Path:
    rewrite(folder / "training.json", sources=list(sources), **more)
    return folder


def hash_of(tmp_path: Path) -> str:
    [manifest] = read_manifests(tmp_path / "month")
    return manifest.sha256


def test_data_of_a_folder_are_found_on_the_hub_by_their_hash(
    hub: LoopbackHub, copied: Copied, month: str, results: Path, tmp_path: Path, repo: str
) -> None:
    source = MONTH | {"manifest_sha256": hash_of(tmp_path)}
    folder = trained_on(copied("gpt2", "diff"), source, earlier_sources=[MONTH | {"repository": "org/before"}])
    for path in results.glob("diff-*/probes-1112.*.json"):
        content = json.loads(path.read_text())
        content["data"] |= {"dataset": "/gone", "source": source | {"config": "probes-20211101-20211201"}}
        path.write_text(json.dumps(content))
    list(publish_model(folder, repo, dataset=f"{month}@2021.12", results=results))
    files, commit = files_of(hub, repo), hub.repo("dataset", month).tags["2021.12"]
    assert ModelCard(files["README.md"].decode()).data.datasets == sorted(["org/before", month])
    assert json.loads(files["training.json"])["sources"] == [
        source | {"repository": month, "commit": commit, "tag": "2021.12"}
    ]
    assert f"| data of the last phase | {month}@2021.12 |" in files["README.md"].decode()
    entries = yaml.safe_load(files[".eval_results/temporalwiki.yaml"])
    assert {entry["dataset"]["id"] for entry in entries} == {month}
    with pytest.raises(InputError, match="it has scores of these weights"):
        list(publish_model(folder, repo, dataset=f"{month}@2021.12"))


OTHER_DATA: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "another month of the same name": (
        "{month}@2021.12",
        [MONTH],
        f"--dataset {{month}}@2021.12: the manifest of {MONTH['config']} has the SHA-256 {{sha256}} there, but "
        f"{'a' * 64} in {{folder}}; name the dataset",
    ),
    "a month that it lacks": (
        "{month}@2021.12", [MONTH | {"config": "diffset-20211201-20220101"}], "has no diffset-20211201-20220101, which"
    ),
    "a record without hashes": ("{month}", [{"config": MONTH["config"]}], "does not say which manifest"),
    "a record without data": ("{month}", [], "training.json names no data to compare with --dataset; train again"),
    "a tag that is not there": ("{month}@2099.01", [MONTH], "{month}@2099.01: the Hub has no such dataset"),
    "a repository that is not there": ("org/nowhere", [MONTH], "org/nowhere: the Hub has no such dataset"),
    "a folder": ("./temporalwiki", [MONTH], "./temporalwiki: not a dataset on the Hub; write its id and tag"),
    "no organisation": ("temporalwiki", [MONTH], "temporalwiki: not a dataset on the Hub; write its id and tag"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_DATA)
def test_other_data_are_refused(
    case: str, hub: LoopbackHub, copied: Copied, month: str, tmp_path: Path, repo: str
) -> None:
    given, sources, message = OTHER_DATA[case]
    folder = trained_on(copied("gpt2", "diff"), *sources)
    expected = message.format(month=month, sha256=hash_of(tmp_path), folder=folder)
    with pytest.raises(InputError, match=re.escape(expected)):
        list(publish_model(folder, repo, dataset=given.format(month=month)))
    assert not is_there(hub, repo)


def test_a_result_on_other_data_of_the_same_name_is_refused(
    hub: LoopbackHub, copied: Copied, month: str, results: Path, tmp_path: Path, repo: str
) -> None:
    folder = trained_on(copied("gpt2", "diff"), MONTH | {"manifest_sha256": hash_of(tmp_path)})
    [path] = results.glob("diff-*/probes-1112.*.json")
    content = json.loads(path.read_text())
    content["data"] |= {"dataset": "/gone", "source": MONTH | {"config": "probes-20211101-20211201"}}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"{hash_of(tmp_path)} there, but {'a' * 64} in .*probes-1112"):
        list(publish_model(folder, repo, dataset=month, results=results))
    assert not is_there(hub, repo)


def test_a_dataset_that_was_deleted_since_holds_no_model_up(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    gone = MONTH | {"repository": f"{repo}-gone", "commit": "c" * 40, "tag": "2021.12"}
    list(publish_model(trained_on(copied("gpt2", "diff"), gone), repo))
    assert ModelCard(files_of(hub, repo)["README.md"].decode()).data.datasets == [f"{repo}-gone"]


@pytest.mark.parametrize("method", ["diff", "lora"])
def test_scores_of_the_very_same_weights_are_not_taken_away(
    method: str, hub: LoopbackHub, trained: Trained, results: Path, repo: str
) -> None:
    list(publish_model(trained("gpt2", method), repo, base="org/gpt2"))
    hub.commit("model", repo, {".eval_results/temporalwiki.yaml": b"[]", ".eval_results/hle.yaml": b"[]"})
    with pytest.raises(InputError, match=f"{repo}: it has scores of these weights; name their folder with --results"):
        list(publish_model(trained("gpt2", method), repo, base="org/gpt2"))
    assert ".eval_results/temporalwiki.yaml" in files_of(hub, repo)
    list(publish_model(trained("gpt2", "initial"), repo))  # other weights
    assert [name for name in files_of(hub, repo) if name.startswith(".eval")] == [".eval_results/hle.yaml"]


def test_a_language_is_named_as_the_hub_names_it(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    hub.commit("dataset", f"{repo}-data", {"README.md": b"---\nlanguage: [be-tarask, be]\n---\n"})
    folder = copied("gpt2", "diff")
    run = json.loads((folder / "training.json").read_text())["run"]
    rewrite(folder / "training.json", run=run | {"data": f"{repo}-data"})
    list(publish_model(folder, repo))
    assert ModelCard(files_of(hub, repo)["README.md"].decode()).data.language == ["be"]


def test_vocabularies_of_other_names_are_sent(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    folder = copied("gpt2", "diff")
    names = {"sentencepiece.model", "spm.model", "tokenizer.model"}
    for name in names:
        (folder / name).write_bytes(b"x")
    list(publish_model(folder, repo))
    assert names < files_of(hub, repo).keys()


def test_a_tokenizer_of_bytes_needs_no_vocabulary(hub: LoopbackHub, copied: Copied, repo: str) -> None:
    folder = copied("gpt2", "diff")
    (folder / "tokenizer.json").unlink()
    rewrite(folder / "tokenizer_config.json", tokenizer_class="ByT5Tokenizer")
    list(publish_model(folder, repo))
    assert is_there(hub, repo)


def test_the_name_of_data_that_no_folder_can_have_is_one_clear_error(
    trained: Trained, results: Path, repo: str
) -> None:
    for path in results.glob("*/*.json"):
        content = json.loads(path.read_text())
        content["data"]["dataset"] = f"{'x' * 300}/y"
        path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="cannot look for this file") as raised:
        list(publish_model(trained("gpt2", "diff"), repo, results=results))
    assert "\n" not in str(raised.value)


# What is refused, before anything is sent


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-20])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def elsewhere(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder.parent / "tokenizer.json")
    (folder / "tokenizer.json").symlink_to(folder.parent / "tokenizer.json")


def several(folder: Path) -> None:
    (folder / "0910").mkdir()
    (folder / "training.json").rename(folder / "0910" / "training.json")


def outside(folder: Path) -> None:
    index = {"weight_map": {"lm_head.weight": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def not_finite(folder: Path) -> None:
    """One number is none, and the record says so: somebody sends on what diverged."""
    weights = load_file(folder / "model.safetensors")
    weights["transformer.h.1.mlp.c_fc.weight"][3, 4] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    record = json.loads((folder / "training.json").read_text("utf-8"))
    files = [file for file in record["files"] if file["path"] != "model.safetensors"]
    rewrite(folder / "training.json", files=files)


REFUSED: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "weights that are not finite": (
        "diff",
        not_finite,
        r"model\.safetensors: transformer\.h\.1\.mlp\.c_fc\.weight has",
    ),
    "no folder": ("diff", lambda folder: shutil.rmtree(folder), "no such folder"),
    "an unfinished run": ("diff", remove("training.json"), "so it is not a finished run of `temporalwiki train`"),
    "several phases": ("diff", several, "it has several checkpoints; publish one of them, such as .*0910"),
    "no weights": ("diff", remove("model.safetensors"), "no file named model.safetensors"),
    "weights that are pickles": ("diff", pickled, "pytorch_model.bin may run code when it is read"),
    "weights that are cut off": (
        "diff",
        cut("model.safetensors"),
        "cannot load a language model: .* not fully covered",
    ),
    "an adapter that is cut off": ("lora", cut("adapter_model.safetensors"), "not fully covered"),
    "layers that are cut off": ("k_adapter", cut("expansion.safetensors"), "not fully covered"),
    "no configuration": ("diff", remove("config.json"), "the folder holds no checkpoint .no config.json"),
    "a damaged configuration": ("diff", cut("config.json"), "config.json"),
    "a damaged tokenizer": ("diff", cut("tokenizer.json"), "tokenizer.json: not a tokenizer .*; copy the files"),
    "no vocabulary": ("diff", remove("tokenizer.json"), "cannot load a tokenizer: .*; copy the files"),
    "no tokenizer": ("lora", remove("tokenizer_config.json"), "no tokenizer: tokenizer_config.json is missing"),
    "a damaged record": ("diff", cut("training.json"), "training.json: not the record of a training run"),
    "a damaged adapter": ("lora", cut("adapter_config.json"), "adapter_config.json: not the configur"),
    "a damaged description": ("k_adapter", cut("expansion.json"), "not the description of an expanded model"),
    "a file from elsewhere": ("diff", elsewhere, "tokenizer.json: it is a link"),
    "weights from elsewhere": (
        "diff",
        outside,
        "index.json names weights that are not a safetensors file in its folder",
    ),
    "an adapter whose base is here alone": ("lora", lambda folder: None, "is only on this machine.* with --base"),
    "layers whose base is here alone": ("k_adapter", lambda folder: None, "is only on this machine.* with --base"),
}


@pytest.mark.fault(
    "hostile model folder", "publish: NaN weights, cut or foreign files", "nothing is sent; one line names the file"
)
@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what: str, hub: LoopbackHub, copied: Copied, repo: str) -> None:
    method, damage, message = REFUSED[what]
    folder = copied("gpt2", method)
    damage(folder)
    with pytest.raises(InputError, match=message) as raised:
        list(publish_model(folder, repo, base="org/gpt2" if "cut off" in what and method != "diff" else None))
    assert "\n" not in str(raised.value)
    assert not is_there(hub, repo)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("org/t5", "--base org/t5: it has other weights in model.safetensors than"),
        ("org/empty", "--base org/empty: it lacks model.safetensors"),
        ("org/nowhere", "org/nowhere: the Hub has no such model"),
        ("org/gpt2@9999.99", "org/gpt2@9999.99: the Hub has no such model"),
        ("./gpt2", "not a model on the Hub"),
        ("a b", "the Hub refuses the name"),
    ],
)
@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_another_base_is_refused(
    method: str, base: str, message: str, hub: LoopbackHub, trained: Trained, repo: str
) -> None:
    hub.commit("model", "org/empty", {"README.md": b"nothing"})
    with pytest.raises(InputError, match=message) as raised:
        list(publish_model(trained("gpt2", method), repo, base=base))
    assert "\n" not in str(raised.value)
    assert not is_there(hub, repo)


def test_a_base_whose_index_leads_out_of_its_folder_is_refused_unread(
    hub: LoopbackHub, shared: Path, trained: Trained, tmp_path: Path, repo: str
) -> None:
    base = tmp_path / "base"
    shutil.copytree(shared / "gpt2", base)
    folder = trained("gpt2", "lora", base)
    outside(base)
    (tmp_path / "model.safetensors").write_bytes(contents(base)["model.safetensors"])  # what the index names
    with pytest.raises(InputError, match=r"index\.json names weights that are not a safetensors file in its folder"):
        list(publish_model(folder, repo, base="org/gpt2"))
    assert not is_there(hub, repo)
