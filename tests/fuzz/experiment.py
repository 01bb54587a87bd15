"""Fuzz the recipe of an experiment: wrong keys and values give one line, and nothing in the file is executed."""

import json

import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.experiment.recipe import Experiment, read_experiment

from fuzz.files import file
from fuzz.json_text import mutate as mutate

_FILE = b"""model: gpt2
learning_rate: 1.0e-4
methods:
  lora: {rank: 4}
experiment:
  data: ORG/d@2021.12
  start: {method: full, config: wikipedia-08}
  months: ["0809", "20211101-20211201"]
  methods:
    initial: {}
    lora: {learning-rate: 1.0e-3}
    a b: {method: mix_review, past: ORG/e}
  tasks:
    twiki_probes: {}
    lama: {configs: [invariantlama]}
  limit: 5
  output: out
  engines: {slurm: {partition: p}}
"""
SEEDS = (
    _FILE,
    json.dumps(yaml.safe_load(_FILE)).encode(),  # JSON is YAML, so it can be mutated by its structure
    b"experiment:\n  data: d\n  phases: [diffset-1112]\n  methods: {full: {}}\n  tasks: {}\nmodel: m\n",
    b"experiment:\n  data: d\n  phases: [diffset-1112]\n  methods: {full: {}}\n  tasks: {}\n",
    b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    b"!!python/object/apply:os.system ['true']\n",
    b"experiment: [",
)
FOUND: tuple[bytes, ...] = (
    _FILE.replace(b"method: mix_review, ", b""),  # an unknown method, without the name of the file
    _FILE.replace(b"twiki_probes: {}", b"twiki_probs: {}"),  # an unknown task, without the name of the file
    _FILE.replace(b"learning-rate", b"1"),  # an option with a number as its name
    _FILE.replace(b"1.0e-3", b"0.0"),  # an option out of range, without the name of the file
)
WORDS = (b"!!python/object/apply:os.system ['true']", b"&a", b"*a", b"<<: *a", b"!!binary", b"!!set",
         b"? ", b"- ", b"[", b"{", b"}", b"null", b"~", b".inf", b".nan", b"0x", b"0112", b"|\n",
         b"methods:", b"months:", b"past:", b"configs:", b"--- \n", b"%YAML 1.1", b"\xc2\x85", b"../")  # fmt: skip


def check(data: bytes) -> None:
    path = file("experiment.yaml", data)
    try:
        read = read_experiment(str(path))
    except InputError as error:
        said = str(error)
        assert said.startswith(str(path)) and "\n" not in said, f"not one line with the file: {said}"
        assert len(said) < 4000 + len(data), "a message longer than what it is about"
        return
    assert isinstance(read, Experiment) and read.lines and read.model
