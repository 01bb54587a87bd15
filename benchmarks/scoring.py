"""Compare the speed of our scoring with lm-evaluation-harness and with the way of TemporalWiki's authors.

    python benchmarks/scoring.py perplexity --model DIR --probes PROBES.csv --items 1000
    python benchmarks/scoring.py panels     --model DIR --probes PROBES.csv --items 300
    python benchmarks/scoring.py answers    --model DIR --probes PROBES.csv --items 500
    python benchmarks/scoring.py store      --model DIR --probes PROBES.csv --items 1000

All run in one process on the same items, in turns; tokenizing and our trial of trees count, and the fastest of
``--rounds`` rounds is reported: in seconds of the processor, which other programs disturb least, or of the clock if
there is a GPU. ``panels`` asks for known facts: each subject of a panel with each object, as multiple choice does in
lm-evaluation-harness. ``perplexity`` also measures the floor: the time of the model's matrix products for our batches.
``store`` scores four months with and without kept scores; each month keeps most facts of the month before. The program
needs ``pip install '.[adapters]'``.
"""

import argparse
import csv
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from table import Cell, show

from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.generation import Generator
from temporalwiki.eval_harness.known import PanelFact, panels
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.scoring import Scorer, Text
from temporalwiki.methods import checkpoint

BATCHES = (16, 32, 64, 128)  # sizes to try with lm-evaluation-harness
PADDED, BATCH = 50, 32  # the authors' length and batch
NEW_TOKENS = 20


def read(path: Path, items: int, between: str = " ") -> list[tuple[str, str]]:
    """Return (subject and relation, object) of probes drawn from a CSV file; ``between`` joins the first two."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(f"{row['subject']}{between}{row['relation']}", row["object"]) for row in csv.DictReader(file)]
    chosen = np.random.default_rng(0).permutation(len(rows))[:items]
    return [rows[i] for i in chosen]


def ours(scorer: Scorer, texts: list[Text]) -> list[float]:
    """Return the scores of our scorer."""
    nll = {}
    for batch in scorer.score(texts):
        nll.update((i, float(scores.nll.sum())) for i, scores in batch)
    return [nll[i] for i in range(len(texts))]


def harness(found: checkpoint.Checkpoint, texts: list[Text], batch: int) -> list[float]:
    """Return lm-evaluation-harness's scores: loglikelihood_rolling of texts, loglikelihood after a context."""
    lm = HFLM(pretrained=found.model, tokenizer=found.tokenizer, batch_size=batch)
    if texts[0].context:
        bos = found.tokenizer.bos_token  # some tokenizers do not add it on request
        requests = [
            Instance("loglikelihood", {}, (bos + text.context, text.target), i) for i, text in enumerate(texts)
        ]
        return [-value for value, _ in lm.loglikelihood(requests, disable_tqdm=True)]
    requests = [Instance("loglikelihood_rolling", {}, (text.target,), i) for i, text in enumerate(texts)]
    return [-value for value in lm.loglikelihood_rolling(requests, disable_tqdm=True)]


def authors(found: checkpoint.Checkpoint, texts: list[Text]) -> None:
    """Score as the authors do: texts in their order, padded to one length, with the logits of every place."""
    tokenizer = found.tokenizer
    pad = tokenizer.eos_token_id
    for at in range(0, len(texts), BATCH):
        ids = [tokenizer(text.context + text.target).input_ids[:PADDED] for text in texts[at : at + BATCH]]
        rows = torch.tensor([row + [pad] * (PADDED - len(row)) for row in ids]).to(found.model.device)
        labels = rows.masked_fill(rows == pad, -100)
        with torch.inference_mode():
            found.model(input_ids=rows, attention_mask=(rows != pad).long(), labels=labels)


def floor(found: checkpoint.Checkpoint, texts: list[Text]) -> float:
    """Return the seconds of the matrix products at the width of our batches."""
    scorer = Scorer(found.model, found.tokenizer)
    tokens = {i: made for i, made in enumerate(scorer._tokens(texts)) if made is not None}
    rows = [row for batch in scorer._batches(tokens, scorer._layout(tokens)) for row in batch]
    fed = sum(len(row.ids) for row in rows)
    asked = sum(len({node for _, nodes, _ in row.asked for node in nodes}) for row in rows)
    head = found.model.get_output_embeddings()
    layers = [m for m in found.model.modules() if isinstance(m, torch.nn.Linear) and m is not head]
    x = {m.in_features: torch.randn(512, m.in_features, device=found.model.device) for m in [*layers, head]}
    with torch.inference_mode():
        body = best(lambda: [layer(x[layer.in_features]) for layer in layers], 3) / 512
        out = best(lambda: head(x[head.in_features]), 3) / 512
    return fed * body + asked * out


def seconds_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a run takes, and its result."""
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    begun = clock()
    found = run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - begun, found


def best(run: Callable[[], Any], rounds: int = 1) -> float:
    """Return the seconds of the fastest of some runs."""
    return min(seconds_of(run)[0] for _ in range(rounds))


def fastest_batch(run: Callable[[int], Any], sizes: Sequence[int]) -> int:
    """Return the size of batches with which a run is fastest."""
    return min(sizes, key=lambda size: best(lambda: run(size)))


def in_turns(ways: Mapping[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Run ways in turns; return the seconds of the fastest run of each, and its result."""
    seconds, found = dict.fromkeys(ways, float("inf")), {}
    for _ in range(rounds):
        for way, run in ways.items():
            took, found[way] = seconds_of(run)
            seconds[way] = min(took, seconds[way])
    return seconds, found


def perplexity(found: checkpoint.Checkpoint, probes: list[tuple[str, str]], rounds: int) -> None:
    """Compare the ways to score whole probes and their objects."""
    rows: list[list[Cell]] = []
    for name, texts in {
        "whole": [Text("", f"{prompt} {object_}") for prompt, object_ in probes],
        "object": [Text(prompt, f" {object_}") for prompt, object_ in probes],
    }.items():
        small = texts[: max(len(texts) // 5, 100)]
        batch = fastest_batch(lambda size, small=small: harness(found, small, size), BATCHES)
        ways: dict[str, Callable[[], Any]] = {
            "ours": lambda texts=texts: ours(Scorer(found.model, found.tokenizer), texts),
            "lm_eval": lambda texts=texts, batch=batch: harness(found, texts, batch),
        }
        if name == "whole":
            ways["authors"] = lambda texts=texts: authors(found, texts)
        seconds, numbers = in_turns(ways, rounds)
        least = min((floor(found, texts) for _ in range(rounds)), default=0.0)
        pairs = zip(numbers["ours"], numbers["lm_eval"], strict=True)
        rate = {way: round(len(texts) / took, 1) for way, took in seconds.items()}
        rows.append([
            f"probes, {name}", rate["ours"], rate["lm_eval"], rate.get("authors"),
            round(seconds["lm_eval"] / seconds["ours"], 2), round(least / seconds["ours"], 2),
            f"{max(abs(a - b) / abs(b) for a, b in pairs):.0e}",
        ])  # fmt: skip
    note = (
        f"{len(probes):,} probes, {model_size(found)}. lm-evaluation-harness has the fastest of its batches of "
        f"{', '.join(map(str, BATCHES))}; the authors' way pads to {PADDED} tokens in batches of {BATCH}. The floor "
        "is the model's matrix products for our batches. The last column is the largest relative difference of a "
        "likelihood from lm-evaluation-harness's."
    )
    columns = ("items a second", "ours", "lm-evaluation-harness", "the authors' way", "ours : lm-evaluation-harness")
    columns += ("floor : ours", "difference")
    show("Likelihoods of facts", columns, rows, note)


def known_facts(found: checkpoint.Checkpoint, probes: list[tuple[str, str]], rounds: int) -> None:
    """Compare the ways to score each subject of a panel with each object."""
    by_relation: dict[str, list[PanelFact]] = {}
    for i, (prompt, object_) in enumerate(probes):
        subject, _, relation = prompt.partition("\t")
        row = {"subject": subject, "object": object_}
        by_relation.setdefault(relation, []).append(PanelFact.of(str(i), subject, "changed", row))
    made = [
        (relation, panel.facts) for relation, of in by_relation.items() for panel in panels(of, relation, Counter())
    ]
    cells = [(f"{one.subject} {relation}", other.row["object"]) for relation, of in made for one in of for other in of]
    facts = sum(len(of) for _, of in made)
    whole = [Text("", f"{prompt} {object_}") for prompt, object_ in cells]
    single = [Text("", f"{one.subject} {relation} {one.row['object']}") for relation, of in made for one in of]
    choices = [Text(prompt, f" {object_}") for prompt, object_ in cells]
    ways: dict[str, Callable[[], Any]] = {
        "panels, ours": lambda: ours(Scorer(found.model, found.tokenizer), whole),
        "the own object only, ours": lambda: ours(Scorer(found.model, found.tokenizer), single),
    }
    for batch in BATCHES[1:]:
        ways[f"panels, lm-evaluation-harness, batches of {batch}"] = lambda batch=batch: harness(found, choices, batch)
    seconds, _ = in_turns(ways, rounds)
    first = seconds["panels, ours"]
    rows: list[list[Cell]] = [[way, round(facts / s, 1), round(s / first, 2)] for way, s in seconds.items()]
    note = f"{facts} facts in {len(made)} panels, {len(cells):,} cells, {model_size(found)}."
    show("Known facts", ("way", "facts a second", "seconds : ours"), rows, note)


def answers(found: checkpoint.Checkpoint, probes: list[tuple[str, str]], rounds: int) -> None:
    """Compare greedy answers to the same prompts."""
    prompts = [prompt for prompt, _ in probes]
    settings = {"until": [], "max_gen_toks": NEW_TOKENS, "do_sample": False}

    def mine() -> list[str]:
        said: dict[int, str] = {}
        for batch in Generator(found.model, found.tokenizer, NEW_TOKENS).generate(prompts):
            said.update(batch)
        return [said[i] for i in range(len(prompts))]

    def theirs(batch: int, of: list[str]) -> list[str]:
        lm = HFLM(pretrained=found.model, tokenizer=found.tokenizer, batch_size=batch)
        bos = found.tokenizer.bos_token
        requests = [Instance("generate_until", {}, (bos + prompt, settings), i) for i, prompt in enumerate(of)]
        return [answer(text) for text in lm.generate_until(requests, disable_tqdm=True)]

    small = prompts[: max(len(prompts) // 4, 100)]
    batch = fastest_batch(lambda size: theirs(size, small), (32, 128))
    seconds, said = in_turns({"ours": mine, "lm_eval": lambda: theirs(batch, prompts)}, rounds)
    equal = sum(a == b for a, b in zip(said["ours"], said["lm_eval"], strict=True))
    rate = {way: round(len(prompts) / took, 1) for way, took in seconds.items()}
    row: list[Cell] = [rate["ours"], rate["lm_eval"], round(seconds["lm_eval"] / seconds["ours"], 2)]
    note = (
        f"{len(prompts):,} prompts, up to {NEW_TOKENS} new tokens each, {model_size(found)}. lm-evaluation-harness "
        f"has the faster batch of 32 and 128: {batch}."
    )
    columns = ("answers a second", "ours", "lm-evaluation-harness", "ours : lm-evaluation-harness", "equal answers")
    rows = [["greedy", *row, f"{equal} of {len(prompts)}"]]
    show("Answers to questions", columns, rows, note)


def store(model: str, probes: list[tuple[str, str]], rounds: int) -> None:
    """Score four months of facts with and without kept scores; 85 % of each month are known."""
    size = len(probes) * 100 // 145  # three times 15 % new ones
    months = [probes[at : at + size] for at in (0, size * 15 // 100, size * 30 // 100, size * 45 // 100)]
    texts = [[Text("", f"{prompt} {object_}") for prompt, object_ in month] for month in months]
    with tempfile.TemporaryDirectory() as folder:
        kept = CachedModel(model, Path(folder))
        _ = kept.loaded
        with_store = [best(lambda month=month: kept.score(month, "kept")) for month in texts]
    scorer = Scorer(kept.loaded.model, kept.loaded.tokenizer)
    without = [best(lambda month=month: ours(scorer, month), rounds) for month in texts]
    rows: list[list[Cell]] = [
        [f"month {number}", round(took, 1), round(again, 1)]
        for number, (took, again) in enumerate(zip(with_store, without, strict=True), 1)
    ]
    rows.append(["all", round(sum(with_store), 1), round(sum(without), 1)])
    note = f"{size:,} facts a month, 85 % of them known from the month before; {model_size(kept.loaded)}."
    columns = ("CPU s", "with kept scores", "without")
    show("Scores that are kept", columns, rows, note)


def model_size(found: checkpoint.Checkpoint) -> str:
    """Return how large a model is, and how many threads it runs on."""
    millions = sum(weights.numel() for weights in found.model.parameters()) / 1e6
    return f"a model of {millions:.0f} million parameters on {torch.get_num_threads()} threads"


def main() -> None:
    """Run one of the comparisons and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("perplexity", "panels", "answers", "store"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--probes", type=Path, required=True, help="CSV with the columns subject, relation, object")
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    between = "\t" if arguments.what == "panels" else " "
    probes = read(arguments.probes, arguments.items, between)
    if arguments.what == "store":
        store(arguments.model, probes, arguments.rounds)
    else:
        found = checkpoint.load(arguments.model)
        found.model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        {"perplexity": perplexity, "panels": known_facts, "answers": answers}[arguments.what](
            found, probes, arguments.rounds
        )


if __name__ == "__main__":
    main()
