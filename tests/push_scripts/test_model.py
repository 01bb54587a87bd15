"""Publishing checkpoints: others load what every method wrote, and nothing else is sent."""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
TOKEN = "hf_writer"
CARD = b"---\nlicense: mit\n---\n"
NUMBERS = itertools.count()  # of repositories
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
    files = {kind: {"README.md": CARD, **contents(shared / kind)} for kind in ("gpt2", "t5")}
    return {kind: hub.commit("model", f"org/{kind}", of) for kind, of in files.items()}


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


def answers(model: object) -> torch.Tensor:
    """What a model says about a text, given the model or its name."""
    return logits(checkpoint.load_model(str(model)) if isinstance(model, str | Path) else model, [[5, 6, 7, 8]])


def assert_close(one: torch.Tensor, other: torch.Tensor, name: str = "") -> None:
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, msg=lambda said: f"{name}: {said}")


def kind_of(method: str) -> str:
    return "adapter" if method in OF_PEFT else "expansion" if method in EXPANDED else "model"


def test_every_methods_checkpoint_loads_from_the_hub_by_others(
    hub: LoopbackHub, published: dict[tuple[str, str], str], trained: Trained, tmp_path: Path
) -> None:
    heads = {"gpt2": "CausalLM", "t5": "Seq2SeqLM"}
    cases = [
        {"name": f"{kind} {method}", "repo": repo, "kind": kind_of(method), "of": heads[kind]}
        for (kind, method), repo in published.items()
    ]
    done = hub.python(PROGRAM.format(cases=json.dumps(cases)), tmp_path / "home")
    cards = [hub.repo("model", repo).files()["README.md"].decode() for repo in published.values()]
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
        assert_close(torch.tensor(values), here, name)


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


@dataclass
class Place:
    """A repository that no other test has used, and checkpoints to publish there."""

    hub: LoopbackHub
    repo: str
    trained: Trained
    folder: Path

    def copied(self, kind: str, method: str) -> Path:
        """Return a copy of a checkpoint, to change: of an older version, which listed no checksums."""
        folder = shutil.copytree(self.trained(kind, method), self.folder / f"{kind}-{method}")
        rewrite(folder / "training.json", files=[], settings={})
        return folder

    def publish(self, folder: Path, **options: Any) -> list[str]:
        return list(publish_model(folder, self.repo, **options))

    def refuses(self, said: str, folder: Path, **options: Any) -> None:
        """Check that it is refused in one line, before anything is sent."""
        with pytest.raises(InputError, match=said) as raised:
            self.publish(folder, **options)
        assert "\n" not in str(raised.value)
        assert ("model", self.repo) not in self.hub._protocol.repos

    def move(self, base: str) -> str:
        """Give a base on the Hub other weights, and return the commit."""
        weights = (self.trained("gpt2", "diff") / "model.safetensors").read_bytes()
        return self.hub.commit("model", base, {"model.safetensors": weights})

    def files(self, repo: str = "") -> dict[str, bytes]:
        files = self.hub.repo("model", repo or self.repo).files()
        return {name: of for name, of in files.items() if name != ".gitattributes"}

    def card(self) -> str:
        return self.files()["README.md"].decode()


@pytest.fixture
def to(hub: LoopbackHub, trained: Trained, tmp_path: Path) -> Place:
    return Place(hub, f"org/other-{next(NUMBERS)}", trained, tmp_path)


def test_what_else_lies_in_the_folder_stays_there(to: Place) -> None:
    folder = to.copied("gpt2", "lora")
    for name in ("training_args.bin", "optimizer.pt", "notes.txt", ".env", "run.sh", "modeling.py", "README.md"):
        (folder / name).write_bytes(b"secret")
    (folder / "tensorboard").mkdir()
    (folder / "tensorboard" / "events").write_bytes(b"secret")
    (folder / "other.safetensors").write_bytes(b"secret")
    to.publish(folder, base="org/gpt2")
    assert all(b"secret" not in content for content in to.files().values())
    assert set(to.files()) == set(to.files("org/gpt2-lora"))


def test_no_published_file_sends_a_loader_for_code(to: Place) -> None:
    folder = to.copied("gpt2", "diff")
    for name in ("config.json", "tokenizer_config.json"):
        rewrite(folder / name, auto_map={"AutoModelForCausalLM": "x--y.Z"}, name_or_path="/home/ann/model")
    to.publish(folder)
    for name in ("config.json", "tokenizer_config.json"):
        assert not {"auto_map", "name_or_path"} & set(json.loads(to.files()[name]))


def test_a_model_in_several_files_goes_with_all_of_them(to: Place) -> None:
    folder = to.copied("gpt2", "diff")
    model = checkpoint.load_model(str(folder))
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="100KB")
    parts = {path.name for path in folder.glob("*.safetensors")}
    assert len(parts) > 1
    to.publish(folder)
    assert parts | {"model.safetensors.index.json"} <= set(to.files())
    assert torch.equal(answers(to.repo), answers(model))


@pytest.mark.parametrize("name", ["</script>", "a\n---\nb: c", "\x00\x85", "| a | `b` |", "../../etc", "#" * 5000])
def test_hostile_names_in_the_record_are_names(name: str, to: Place) -> None:
    folder = to.copied("gpt2", "diff")
    run = json.loads((folder / "training.json").read_text())["run"]
    rewrite(folder / "training.json", run=run | {"method": name, "config": name, "data": name}, device=name)
    to.publish(folder)
    files = to.files()
    assert set(files) == set(to.files("org/gpt2-diff"))
    card = ModelCard(files["README.md"].decode())
    assert card.data.tags == ["temporalwiki", "continual-learning", "knowledge", "other"]
    assert "</script>" not in card.text
    assert json.loads(files["training.json"])["device"] == name


@pytest.mark.parametrize(("kind", "method"), [("gpt2", "lora"), ("gpt2", "k_adapter"), ("t5", "modular")])
def test_an_adapter_or_layers_that_are_not_whole_are_not_sent(kind: str, method: str, to: Place) -> None:
    folder = to.copied(kind, method)
    [weights] = folder.glob("*.safetensors")
    tensors = load_file(weights)
    name = max(tensors)
    del tensors[name]
    save_file(tensors, weights, metadata={"format": "pt"})
    to.refuses(re.escape(name.removesuffix(".weight")), folder, base=f"org/{kind}")


def test_what_people_write_into_the_card_stays(to: Place) -> None:
    to.publish(to.trained("gpt2", "diff"))
    card = to.card().replace("<!-- /yours -->", "Made by us.\n<!-- /yours -->")
    to.hub.commit("model", to.repo, {"README.md": card.encode()})
    to.publish(to.trained("gpt2", "initial"))
    after = to.card()
    assert "| method | initial |" in after and "Made by us.\n<!-- /yours -->" in after


def test_a_dry_run_sends_nothing(to: Place) -> None:
    lines = to.publish(to.trained("gpt2", "lora"), base="org/gpt2", tag="2021.12", dry_run=True)
    assert ("model", to.repo) not in to.hub._protocol.repos
    named = {line.split()[1] for line in lines if line.startswith("  + ")}
    assert named == set(to.files("org/gpt2-lora"))


def test_what_another_checkpoint_left_goes(to: Place) -> None:
    to.hub.commit("model", to.repo, {"pytorch_model.bin": b"x", "LICENSE": b"mine", "docs/model.bin": b"mine"})
    to.publish(to.trained("gpt2", "diff"))
    assert {"model.safetensors", "config.json", "LICENSE", "docs/model.bin"} <= set(to.files())
    to.publish(to.trained("gpt2", "lora"), base="org/gpt2")
    assert set(to.files()) == {*to.files("org/gpt2-lora"), "LICENSE", "docs/model.bin"}


# The base


def test_a_later_phase_holds_the_earlier_ones(to: Place, tmp_path: Path) -> None:
    second = to.trained("gpt2", "lora", to.trained("gpt2", "lora"))
    to.publish(second, base="org/gpt2")
    for name, content in to.files().items():
        (tmp_path / name).write_bytes(content)
    assert_close(answers(AutoPeftModelForCausalLM.from_pretrained(tmp_path)), answers(second))
    assert "new, new" in to.card()


@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_base_that_moves_on_changes_nothing(method: str, to: Place, shared: Path) -> None:
    base = f"{to.repo}-base"
    first = to.hub.commit("model", base, contents(shared / "gpt2"))
    to.publish(to.trained("gpt2", method), base=base)
    before = to.files()
    to.move(base)
    expected = answers(to.trained("gpt2", method))
    assert_close(answers(to.repo), expected)
    with pytest.raises(InputError, match="it has other weights"):  # the base has changed since the training
        to.publish(to.trained("gpt2", method), base=base)
    assert to.publish(to.trained("gpt2", method), base=f"{base}@{first}") == [f"{to.repo}: up to date"]
    to.hub.commit("model", base, contents(shared / "gpt2"))
    assert to.publish(to.trained("gpt2", method), base=base) == [f"{to.repo}: up to date"]
    assert to.files() == before


def test_what_was_trained_from_the_hub_needs_no_base_named(to: Place, bases: dict[str, str]) -> None:
    folder = to.trained("gpt2", "dora", f"org/gpt2@{bases['gpt2']}")
    to.publish(folder)
    config = json.loads(to.files()["adapter_config.json"])
    assert (config["base_model_name_or_path"], config["revision"]) == ("org/gpt2", bases["gpt2"])
    with pytest.raises(UsageError, match=f"--base org/t5: but .* was made from org/gpt2@{bases['gpt2']}"):
        to.publish(folder, base="org/t5")


@pytest.mark.parametrize("pinned", [True, False], ids=["named at its commit", "named by its id"])
@pytest.mark.parametrize("method", ["lora", "k_adapter", "diff"])
def test_the_base_is_that_which_was_trained_on_and_no_later_one(
    method: str, pinned: bool, to: Place, shared: Path
) -> None:
    base = f"{to.repo}-base"
    commit = to.hub.commit("model", base, {"README.md": CARD, **contents(shared / "gpt2")})
    folder = to.trained("gpt2", method, f"{base}@{commit}" if pinned else base)
    record = json.loads((folder / "training.json").read_text())
    assert (record["run"]["model"], record["base"]) == (f"{base}@{commit}" if pinned else base, f"{base}@{commit}")
    expected = answers(folder)
    later = to.move(base)
    to.hub.commit("model", base, {"README.md": b"---\nlicense: apache-2.0\n---\n"})
    assert_close(answers(folder), expected)
    to.publish(folder, base=base)
    assert ModelCard(to.card()).data.license == "mit"
    assert f"{base} at commit {commit}" in to.card()
    assert_close(answers(to.repo), expected)
    assert to.publish(folder) == [f"{to.repo}: up to date"]
    with pytest.raises(UsageError, match=f"is commit {later}, but .* was made from {base}@{commit}"):
        to.publish(folder, base=f"{base}@{later}")


def test_a_later_phase_still_knows_the_first_ones_base(to: Place, shared: Path) -> None:
    base = f"{to.repo}-base"
    commit = to.hub.commit("model", base, contents(shared / "gpt2"))
    second = to.trained("gpt2", "diff", to.trained("gpt2", "diff", base))
    to.move(base)
    to.publish(second)
    assert f"{base} at commit {commit}" in to.card()
    assert json.loads(to.files()["training.json"])["base"] == f"{base}@{commit}"


def test_a_rerun_is_none_of_the_bases_later_commits(to: Place, shared: Path) -> None:
    base = f"{to.repo}-base"
    to.hub.commit("model", base, {"README.md": CARD, **contents(shared / "gpt2")})
    to.publish(to.trained("gpt2", "diff"), base=base, tag="2021.12")
    to.hub.commit("model", base, {"README.md": b"---\nlicense: apache-2.0\n---\n", "notes.txt": b"a typo mended"})
    assert to.publish(to.trained("gpt2", "diff"), base=base, tag="2021.12") == [f"{to.repo}: up to date"]


@pytest.mark.parametrize(("changes", "same"), [({"n_head": 2}, False), ({"dtype": "bfloat16"}, True)])
@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_base_is_configured_as_the_one_on_this_machine(
    method: str, changes: dict[str, Any], same: bool, to: Place, shared: Path
) -> None:
    files = contents(shared / "gpt2")
    config = json.loads(files["config.json"]) | changes | {"_name_or_path": "x", "transformers_version": "5.0"}
    to.hub.commit("model", f"{to.repo}-base", {**files, "config.json": json.dumps(config).encode()})
    if same:
        to.publish(to.trained("gpt2", method), base=f"{to.repo}-base")
        return
    to.refuses(r"another model than .*gpt2: n_head is 2, not 4", to.trained("gpt2", method), base=f"{to.repo}-base")


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


def test_a_base_that_was_a_gguf_file_has_the_sizes_of_the_one_that_is_named(to: Place, tmp_path: Path) -> None:
    files = contents(tiny_models.save("llama", tmp_path / "llama"))
    config = json.loads(files["config.json"]) | {"vocab_size": 400}
    to.hub.commit("model", f"{to.repo}-base", {**files, "config.json": json.dumps(config).encode()})
    folder = to.trained("llama", "lora", tmp_path / "llama")
    rewrite(folder / "adapter_config.json", base_model_name_or_path=str(tmp_path / "model.gguf"))
    write_gguf(tmp_path / "model.gguf", layers=2)
    with pytest.raises(InputError, match=r"another model than .*model\.gguf: num_hidden_layers is 4, not 2"):
        to.publish(folder, base=f"{to.repo}-base")
    write_gguf(tmp_path / "model.gguf", layers=4)
    to.publish(folder, base=f"{to.repo}-base")
    assert "quantized copy" in to.card()


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


def test_its_own_scores_are_in_its_card_and_in_the_hubs_results(to: Place, results: Path, tmp_path: Path) -> None:
    add_month(tmp_path / "month", "20211101", "20211201", [article(1)], [probe(1)])
    list(publish_dataset(tmp_path / "month", "org/temporalwiki"))
    commit = to.hub.repo("dataset", "org/temporalwiki").tags["2021.12"]
    to.hub.commit("dataset", "org/temporalwiki", {"README.md": b"later"})
    lines = to.publish(to.trained("gpt2", "diff"), results=results)
    assert lines[0].startswith("left out: 1 of 3 results are of other checkpoints (other-")
    entries = yaml.safe_load(to.files()[".eval_results/temporalwiki.yaml"])
    full = "probes-20211101-20211201"
    assert [(entry["dataset"], entry["value"]) for entry in entries] == [
        ({"id": "org/temporalwiki", "task_id": f"{full}-changed", "revision": commit}, 10.0),
        ({"id": "org/temporalwiki", "task_id": f"{full}-unchanged", "revision": commit}, 30.0),
    ]
    said = to.card()
    assert "| probes-1112 | twiki_probes 1 | unchanged | exact_match | 30.00 [25.00, 35.00] | 10 | higher |" in said
    assert "| probes-1011 | twiki_probes 1 | changed | exact_match | 10.00 [5.00, 15.00] | 10 | higher |" in said
    assert "invariantlama" not in said


# Its data


MONTH = {"config": "diffset-20211101-20211201", "manifest_sha256": "a" * 64}


@pytest.fixture
def month(to: Place, tmp_path: Path) -> str:
    """A dataset on the Hub with one month, under a name that no other test has used."""
    add_month(tmp_path / "month", "20211101", "20211201", [article(1)])
    list(publish_dataset(tmp_path / "month", f"{to.repo}-data"))
    return f"{to.repo}-data"


def trained_on(folder: Path, *sources: dict[str, Any], **more: Any) -> Path:
    rewrite(folder / "training.json", sources=list(sources), **more)
    return folder


def hash_of(tmp_path: Path) -> str:
    [manifest] = read_manifests(tmp_path / "month")
    return manifest.sha256


def test_data_of_a_folder_are_found_on_the_hub_by_their_hash(
    to: Place, month: str, results: Path, tmp_path: Path
) -> None:
    source = MONTH | {"manifest_sha256": hash_of(tmp_path)}
    folder = trained_on(to.copied("gpt2", "diff"), source, earlier_sources=[MONTH | {"repository": "org/before"}])
    for path in results.glob("diff-*/probes-1112.*.json"):
        content = json.loads(path.read_text())
        content["data"] |= {"dataset": "/gone", "source": source | {"config": "probes-20211101-20211201"}}
        path.write_text(json.dumps(content))
    to.publish(folder, dataset=f"{month}@2021.12", results=results)
    files, commit = to.files(), to.hub.repo("dataset", month).tags["2021.12"]
    assert ModelCard(files["README.md"].decode()).data.datasets == sorted(["org/before", month])
    assert json.loads(files["training.json"])["sources"] == [
        source | {"repository": month, "commit": commit, "tag": "2021.12"}
    ]
    assert f"| data of the last phase | {month}@2021.12 |" in files["README.md"].decode()
    entries = yaml.safe_load(files[".eval_results/temporalwiki.yaml"])
    assert {entry["dataset"]["id"] for entry in entries} == {month}
    with pytest.raises(InputError, match="it has scores of these weights"):
        to.publish(folder, dataset=f"{month}@2021.12")


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
def test_other_data_are_refused(case: str, to: Place, month: str, tmp_path: Path) -> None:
    given, sources, message = OTHER_DATA[case]
    folder = trained_on(to.copied("gpt2", "diff"), *sources)
    expected = message.format(month=month, sha256=hash_of(tmp_path), folder=folder)
    to.refuses(re.escape(expected), folder, dataset=given.format(month=month))


def test_a_result_on_other_data_of_the_same_name_is_refused(
    to: Place, month: str, results: Path, tmp_path: Path
) -> None:
    folder = trained_on(to.copied("gpt2", "diff"), MONTH | {"manifest_sha256": hash_of(tmp_path)})
    [path] = results.glob("diff-*/probes-1112.*.json")
    content = json.loads(path.read_text())
    content["data"] |= {"dataset": "/gone", "source": MONTH | {"config": "probes-20211101-20211201"}}
    path.write_text(json.dumps(content))
    to.refuses(f"{hash_of(tmp_path)} there, but {'a' * 64} in .*probes-1112", folder, dataset=month, results=results)


def test_a_dataset_that_was_deleted_since_holds_no_model_up(to: Place) -> None:
    gone = MONTH | {"repository": f"{to.repo}-gone", "commit": "c" * 40, "tag": "2021.12"}
    to.publish(trained_on(to.copied("gpt2", "diff"), gone))
    assert ModelCard(to.card()).data.datasets == [f"{to.repo}-gone"]


@pytest.mark.parametrize("method", ["diff", "lora"])
def test_scores_of_the_very_same_weights_are_not_taken_away(method: str, to: Place, results: Path) -> None:
    to.publish(to.trained("gpt2", method), base="org/gpt2")
    to.hub.commit("model", to.repo, {".eval_results/temporalwiki.yaml": b"[]", ".eval_results/hle.yaml": b"[]"})
    with pytest.raises(
        InputError, match=f"{to.repo}: it has scores of these weights; name their folder with --results"
    ):
        to.publish(to.trained("gpt2", method), base="org/gpt2")
    assert ".eval_results/temporalwiki.yaml" in to.files()
    to.publish(to.trained("gpt2", "initial"))  # other weights
    assert [name for name in to.files() if name.startswith(".eval")] == [".eval_results/hle.yaml"]


def test_a_language_is_named_as_the_hub_names_it(to: Place) -> None:
    to.hub.commit("dataset", f"{to.repo}-data", {"README.md": b"---\nlanguage: [be-tarask, be]\n---\n"})
    folder = to.copied("gpt2", "diff")
    run = json.loads((folder / "training.json").read_text())["run"]
    rewrite(folder / "training.json", run=run | {"data": f"{to.repo}-data"})
    to.publish(folder)
    assert ModelCard(to.card()).data.language == ["be"]


def test_vocabularies_of_other_names_are_sent(to: Place) -> None:
    folder = to.copied("gpt2", "diff")
    names = {"sentencepiece.model", "spm.model", "tokenizer.model"}
    for name in names:
        (folder / name).write_bytes(b"x")
    to.publish(folder)
    assert names < to.files().keys()


def test_a_tokenizer_of_bytes_needs_no_vocabulary(to: Place) -> None:
    folder = to.copied("gpt2", "diff")
    (folder / "tokenizer.json").unlink()
    rewrite(folder / "tokenizer_config.json", tokenizer_class="ByT5Tokenizer")
    assert to.publish(folder)[-1].startswith(f"{to.hub.endpoint}/{to.repo}/tree/")


def test_the_name_of_data_that_no_folder_can_have_is_one_clear_error(to: Place, results: Path) -> None:
    for path in results.glob("*/*.json"):
        content = json.loads(path.read_text())
        content["data"]["dataset"] = f"{'x' * 300}/y"
        path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="cannot look for this file") as raised:
        to.publish(to.trained("gpt2", "diff"), results=results)
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


REFUSED: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "weights that are not finite": (
        "diff",
        not_finite,
        r"model\.safetensors: transformer\.h\.1\.mlp\.c_fc\.weight has",
    ),
    "no folder": ("diff", shutil.rmtree, "no such folder"),
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
    "weights from elsewhere": ("diff", outside, "index.json names weights that are not a safetensors file in its"),
    "an adapter whose base is here alone": ("lora", lambda folder: None, "is only on this machine.* with --base"),
    "layers whose base is here alone": ("k_adapter", lambda folder: None, "is only on this machine.* with --base"),
}


@pytest.mark.fault(
    "hostile model folder", "publish: NaN weights, cut or foreign files", "nothing is sent; one line names the file"
)
@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what: str, to: Place) -> None:
    method, damage, message = REFUSED[what]
    folder = to.copied("gpt2", method)
    damage(folder)
    to.refuses(message, folder, base="org/gpt2" if "cut off" in what and method != "diff" else None)


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
def test_another_base_is_refused(method: str, base: str, message: str, to: Place) -> None:
    to.hub.commit("model", "org/empty", {"README.md": b"nothing"})
    to.refuses(message, to.trained("gpt2", method), base=base)


def test_a_base_whose_index_leads_out_of_its_folder_is_refused_unread(to: Place, shared: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(shared / "gpt2", base)
    folder = to.trained("gpt2", "lora", base)
    outside(base)
    (tmp_path / "model.safetensors").write_bytes(contents(base)["model.safetensors"])  # what the index names
    to.refuses(r"index\.json names weights that are not a safetensors file in its folder", folder, base="org/gpt2")
