"""Nothing that a stranger wrote is run: no such call stands in the source, and no hostile folder gets its way."""

import ast
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch
import yaml
from peft import LoraConfig, get_peft_model

import temporalwiki
from temporalwiki.commands import main
from temporalwiki.methods import modular
from temporalwiki.methods.checkpoint import load
from temporalwiki.methods.method import Phase

import tiny_models
from a_folder import rewrite
from file_server import FileServer
from tiny_probes import write_month

ROOT = Path(temporalwiki.__file__).parents[2]
FOLDERS = (
    "base",
    "builders",
    "methods",
    "eval_harness",
    "model_cards",
    "push_scripts",
    "api",
    "commands",
    "benchmarks",
)

# The source. Calls in NEVER are forbidden; each exception in FINE gives the reason why it is safe.

NEVER = {
    "eval", "exec", "compile", "__import__", "breakpoint",
    "os.system", "os.popen", "os.execv", "os.execve", "os.execvp", "os.spawnv", "subprocess.getoutput",
    "subprocess.getstatusoutput", "tempfile.mktemp", "torch.load", "torch.hub.load", "joblib.load", "pd.read_pickle",
    "pandas.read_pickle", "yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "pickle.load",
    "pickle.loads", "marshal.load", "marshal.loads", "shelve.open", "dill.load", "dill.loads", "cloudpickle.loads",
    "runpy.run_path", "runpy.run_module", "ET.parse", "ET.fromstring", "ET.iterparse", "ElementTree.parse",
    "xml.dom.minidom.parse", "etree.parse", "etree.fromstring", "ET.XMLParser", "expat.ParserCreate",
    "importlib.util.spec_from_file_location", "importlib.util.module_from_spec", "evaluate.load",
}  # fmt: skip
FINE = {
    ("builders/wikipedia/xml_dump.py", "expat.ParserCreate"): "the guarded reader: a document type ends it",
    ("model_cards/metric.py", "evaluate.load"): "the folder that its owner publishes as a program",
    ("eval_harness/metrics/fuar/app.py", "evaluate.load"): "the file beside it",
    ("eval_harness/metrics/knowledge_perplexity/app.py", "evaluate.load"): "the same file",
    ("eval_harness/metrics/knowledge_match/app.py", "evaluate.load"): "the same file",
}
_PROGRAMS = {f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output")}


@cache
def sources() -> dict[str, ast.AST]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` as written. Expressions other than names are left out: ``f().c`` is ``.c``."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def given(call: ast.Call, name: str) -> object:
    """Return the constant value of an argument, its expression if it is not constant, or None if it is not given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value.value if isinstance(keyword.value, ast.Constant) else ast.unparse(keyword.value)
    return None


def faults(tree: ast.AST) -> Iterator[str]:
    """Calls that run what a file holds, or a shell."""
    for name, call in calls(tree):
        if name in NEVER:
            yield name
        if name in _PROGRAMS and given(call, "shell") is not None:
            yield f"{name}(shell)"
        if name.endswith(("np.load", "numpy.load")) and given(call, "allow_pickle") not in (None, False):
            yield f"{name}(allow_pickle)"
        if name.startswith("subprocess.") and call.args and isinstance(call.args[0], ast.Constant | ast.JoinedStr):
            yield f"{name}(text)"  # words are a list, so that nothing in them is taken for more words
        if given(call, "trust_remote_code") not in (None, False):
            yield f"{name}(trust_remote_code)"
        if given(call, "weights_only") not in (None, True):
            yield f"{name}(weights_only)"


def test_no_source_runs_what_it_reads() -> None:
    found = {(path, name) for path, tree in sources().items() for name in faults(tree)}
    assert found == FINE.keys()


def test_models_are_read_by_from_pretrained_without_code() -> None:
    """That their weights are safetensors is tested below, on hostile folders, and by ``fuzz/model_folders.py``."""
    autos = [
        (path, name, call)
        for path, tree in sources().items()
        for of, call in calls(tree)
        for name in [dotted(call.args[0]) if of == "functools.partial" else of]
        if name.endswith(".from_pretrained") and not name.startswith("Peft") and not path.startswith("benchmarks/")
    ]
    assert len(autos) == 4
    assert any(name == "auto.from_pretrained" for _, name, _ in autos)
    for path, _, call in autos:
        assert given(call, "trust_remote_code") is False, (path, ast.unparse(call))


def test_the_spaces_tell_nobody_of_their_users() -> None:
    apps = [call for tree in sources().values() for name, call in calls(tree) if name == "gr.Interface"]
    assert len(apps) == 3
    assert [given(call, "analytics_enabled") for call in apps] == [False] * 3


BAD_SOURCE = {
    "subprocess.run(x, shell=True)": "subprocess.run(shell)",
    "subprocess.run(f'rm {x}')": "subprocess.run(text)",
    "np.load(x, allow_pickle=True)": "np.load(allow_pickle)",
    "AutoModel.from_pretrained(x, trust_remote_code=y)": "AutoModel.from_pretrained(trust_remote_code)",
}


@pytest.mark.parametrize("source", BAD_SOURCE)
def test_such_source_would_be_found(source: str) -> None:
    assert list(faults(ast.parse(source))) == [BAD_SOURCE[source]]


# Hostile folders. Each would write the file `owned` where the test runs.


class Owned:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


CODE = "import pathlib\npathlib.Path('owned').touch()\nclass Model: ...\nclass Config: ...\nclass Tokenizer: ...\n"


def weights_are_pickles(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"x": Owned(Path("owned").absolute())}, folder / "pytorch_model.bin")


def pickles_renamed(folder: Path, name: str) -> None:
    weights_are_pickles(folder)
    (folder / "pytorch_model.bin").rename(folder / name)


def weights_are_pickles_in_parts(folder: Path, index: str = "pytorch_model.bin.index.json") -> None:
    pickles_renamed(folder, "part.bin")
    (folder / index).write_text('{"metadata": {}, "weight_map": {"transformer.wte.weight": "part.bin"}}')


def pickles_with_the_name_of_safetensors(folder: Path) -> None:
    pickles_renamed(folder, "model.safetensors")


def configuration_names_pickles(folder: Path) -> None:
    pickles_renamed(folder, "adapter_model.bin")
    rewrite(folder / "config.json", transformers_weights="adapter_model.bin")


def index_names_pickles(folder: Path) -> None:
    weights_are_pickles_in_parts(folder, "model.safetensors.index.json")


def index_names_another_folder(folder: Path) -> None:
    (folder.with_name("other")).mkdir()
    (folder / "model.safetensors").rename(folder.with_name("other") / "x.safetensors")
    named = '{"metadata": {}, "weight_map": {"transformer.wte.weight": "../other/x.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(named)


def code_of_a_model(folder: Path) -> None:
    (folder / "code.py").write_text(CODE)
    of = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    rewrite(folder / "config.json", auto_map=of, model_type="own")


def code_of_a_tokenizer(folder: Path) -> None:
    (folder / "code.py").write_text(CODE)
    of = {"AutoTokenizer": ["code.Tokenizer", "code.Tokenizer"]}
    rewrite(folder / "tokenizer_config.json", auto_map=of, tokenizer_class="Tokenizer")
    (folder / "tokenizer.json").unlink()


def code_of_the_hub(folder: Path) -> None:
    rewrite(folder / "config.json", attn_implementation="evil/kernel")


def an_adapter(folder: Path) -> None:
    adapted = get_peft_model(
        load(str(folder)).model, LoraConfig(r=2, target_modules=["c_attn"], task_type="CAUSAL_LM")
    )
    base = folder.rename(folder.with_name("base"))
    adapted.save_pretrained(folder)
    rewrite(folder / "adapter_config.json", base_model_name_or_path=str(base))


def an_adapter_of_pickles(folder: Path) -> None:
    an_adapter(folder)
    (folder / "adapter_model.safetensors").unlink()
    torch.save({"x": Owned(Path("owned").absolute())}, folder / "adapter_model.bin")


def an_adapter_with_a_tokenizer_of_its_own(folder: Path) -> None:
    an_adapter(folder)
    shutil.copytree(folder.with_name("base"), folder / "other")
    code_of_a_tokenizer(folder / "other")
    more = {"prompt_tuning_init": "TEXT", "prompt_tuning_init_text": "x", "num_virtual_tokens": 1}
    trusting = {"tokenizer_name_or_path": str(folder / "other"), "tokenizer_kwargs": {"trust_remote_code": True}}
    rewrite(folder / "adapter_config.json", peft_type="PROMPT_TUNING", **more, **trusting)


def an_adapter_that_imports(folder: Path) -> None:
    an_adapter(folder)
    Path("owning.py").write_text(CODE)
    rewrite(folder / "adapter_config.json", megatron_config={"x": 1}, megatron_core="owning")


# function that makes a model folder hostile -> the error
HOSTILE: dict[Callable[[Path], None], str] = {
    weights_are_pickles: "pytorch_model.bin may run code when it is read",
    weights_are_pickles_in_parts: "part.bin may run code when it is read",
    pickles_with_the_name_of_safetensors: "cannot load a language model",
    configuration_names_pickles: "names weights that are not a safetensors file in its folder, 'adapter_model.bin'",
    index_names_pickles: "names weights that are not a safetensors file in its folder, 'part.bin'",
    index_names_another_folder: "names weights that are not a safetensors file in its folder, '../other/x.safe",
    code_of_a_model: "cannot load a language model",
    code_of_a_tokenizer: "cannot load a tokenizer",
    code_of_the_hub: "config.json names code on the Hub, 'evil/kernel'",
    an_adapter_of_pickles: "adapter_model.bin may run code when it is read",
    an_adapter_with_a_tokenizer_of_its_own: "a checkpoint of another peft method ('PROMPT_TUNING')",
    an_adapter_that_imports: "megatron_config names a module to import",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for kind in ("gpt2", "t5"):
        tiny_models.save(kind, folder / kind)
    write_month(folder / "facts")
    return folder


@pytest.fixture
def here(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a dataset and ``model``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as where Python is started with -m
    shutil.copytree(models / "gpt2", tmp_path / "model")
    (tmp_path / "facts").symlink_to(models / "facts")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text('{"text": "Easton."}\n' * 9)
    (tmp_path / "data" / "README.md").write_text("---\nconfigs:\n- config_name: c\n  data_files: train.jsonl\n---\n")
    return tmp_path


TRAIN = ("train", "--method", "diff", "--data", "data", "--config", "c", "--model", "model", "--max-steps", "1")
EVALUATE = ("evaluate", "--data", "facts", "--tasks", "twiki_probes", "--model", "model", "--limit", "1")


@pytest.mark.fault(
    "hostile model folder",
    "train, evaluate: pickles, code, or names of either in a model, a tokenizer or an adapter",
    "refused in one line; nothing is run",
)
@pytest.mark.parametrize("command", [TRAIN, EVALUATE], ids=["train", "evaluate"])
@pytest.mark.parametrize("harm", HOSTILE, ids=lambda harm: harm.__name__)
def test_a_hostile_model_is_refused(
    harm: Callable[[Path], None], command: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harm(here / "model")
    assert main(command) == 1
    err = capsys.readouterr().err
    assert HOSTILE[harm] in err
    assert not (here / "owned").exists()


@pytest.mark.fault(
    "hostile model folder", "a tokenizer whose pattern takes for ever on a text", "the library gives up: one line"
)
def test_a_pattern_of_a_tokenizer_ends(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endless = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    rewrite(here / "model" / "tokenizer.json", pre_tokenizer=endless)
    (here / "data" / "train.jsonl").write_text(f'{{"text": "{"a" * 50}"}}\n' * 9)
    assert main(TRAIN) == 1
    assert "temporalwiki train: a library gave up: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("harm", [weights_are_pickles, code_of_a_model], ids=lambda harm: harm.__name__)
def test_a_hostile_small_t5_is_refused(harm: Callable[[Path], None], models: Path, here: Path) -> None:
    shutil.copytree(models / "t5", here / "t5")
    model = load(str(models / "t5")).model
    harm(here / "t5")
    with pytest.raises(temporalwiki.base.errors.InputError, match=r"cannot load a (T5|language model)"):
        modular.Modular(small=str(here / "t5")).prepare(model, Phase())
    assert not (here / "owned").exists()


def test_a_pickle_would_have_got_its_way(here: Path) -> None:
    weights_are_pickles(here / "model")
    torch.load(here / "model" / "pytorch_model.bin", weights_only=False)
    assert (here / "owned").exists()


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system ['touch owned']", "!!python/name:os.system"])
def test_yaml_makes_nothing_but_data(text: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "recipe.yaml").write_text(f"learning_rate: {text}")
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load((here / "recipe.yaml").read_text())
    assert main([*TRAIN, "--recipe", "recipe.yaml"]) in (1, 2)
    assert main(["experiment", "recipe.yaml"]) in (1, 2)
    assert "recipe.yaml" in capsys.readouterr().err
    assert not (here / "owned").exists()


# Datasets: a card is data of the folder, and names nothing outside it


@pytest.mark.fault(
    "hostile YAML",
    "train: a dataset's card names files in other folders or a URL",
    "refused; nothing is read or requested",
)
def test_a_dataset_whose_card_names_something_elsewhere_is_refused_unread(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "outside.jsonl").write_text('{"text": "private"}\n')
    with FileServer({"x.jsonl": b'{"text": "x"}\n'}) as server:
        url = f"{server.url}/x.jsonl"
        for place in (url, f"zip://x.jsonl::{url}", str(here / "outside.jsonl"), "../outside.jsonl", "a/../../o*"):
            for name, begin, end in (("README.md", "---\n", "---\n"), (".huggingface.yaml", "", "")):
                config = {"config_name": "c", "data_files": [{"split": "train", "path": ["train.jsonl", place]}]}
                (here / "data" / "README.md").write_text("# Data\n")
                (here / "data" / name).write_text(f"{begin}{yaml.safe_dump({'configs': [config]})}{end}")
                assert main(TRAIN) == 1
                assert "names data outside its folder" in capsys.readouterr().err
                (here / "data" / name).unlink()
        assert server.requests == []


def test_a_dataset_of_pickles_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"x": Owned(here / "owned")}, here / "data" / "train.pkl")
    (here / "data" / "README.md").write_text("---\nconfigs:\n- config_name: c\n  data_files: train.pkl\n---\n")
    assert main(TRAIN) == 1
    assert "data: no manifests in it, so it is no dataset folder" in capsys.readouterr().err
    assert not (here / "owned").exists()
