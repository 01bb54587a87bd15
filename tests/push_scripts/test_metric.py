"""Published metrics load with `evaluate.load("ORG/NAME")`, from Spaces that hold what their folders hold."""

import json
import math
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.model_cards.metric import metric_card
from temporalwiki.push_scripts.metric import metric_revision, publish_metric

from loopback_hub import LoopbackHub

METRICS = Path(__file__).resolve().parents[2] / "eval_harness" / "metrics"
FUAR = METRICS / "fuar"
# Run in a process that cannot import temporalwiki or unneeded packages.
ALONE = """\
import json, sys
sys.modules |= {"temporalwiki": None, "transformers": None}
import evaluate
del sys.modules["transformers"]
"""
CALLS = """\
for path, revision, inputs in json.loads(%r):
    print(json.dumps(evaluate.load(path, revision=revision).compute(**inputs)))
"""


def load(hub: LoopbackHub, home: Path, calls: list[tuple[str, str | None, Any]], imports: str = ALONE) -> list[Any]:
    """What metrics compute in a process with the real clients."""
    done = hub.python(imports + CALLS % json.dumps(calls), home)
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(invariant: Any, updated: Any, new: Any) -> dict[str, Any]:
    return {"invariant": invariant, "updated": updated, "new": new}


def writes(hub: LoopbackHub) -> list[str]:
    return [request.path for request in hub.requests if request.method not in ("GET", "HEAD")]


def test_what_needs_nothing_of_temporalwiki_loads_without_it(hub: LoopbackHub, tmp_path: Path) -> None:
    list(publish_metric(FUAR, "ORG/fuar", tag="first"))
    list(publish_metric(METRICS / "knowledge_match", "ORG/knowledge_match"))
    assert hub.repo("space", "ORG/fuar").tags.keys() == {"first"}
    hub.commit("space", "ORG/fuar", {"definition.py": b"TASKS, fuar, read_scores = (), None, None\n"})
    six_for_twelve = {"predictions": [row(18, 10, 6)], "references": [row(24, 2, 2)]}
    no_gain = {"predictions": [row(18, 2, None)], "references": [row(24, 2, None)]}
    matched = {"predictions": ["The x", ["y", "Z"]], "references": [["X"], "z"]}
    found = load(
        hub,
        tmp_path / "home",
        [
            ("ORG/fuar", "first", six_for_twelve),  # the tag keeps its files after main has changed
            ("ORG/fuar", "first", no_gain),
            ("ORG/knowledge_match", None, matched),
        ],
    )
    # `evaluate` asks for its own version first
    asked = [(r.path, r.status) for r in hub.requests if r.path.endswith("knowledge_match.py") and r.method == "HEAD"]
    place = "/spaces/ORG/knowledge_match/resolve/{}/knowledge_match.py"
    assert asked == [(place.format(f"v{version('evaluate')}"), 404), (place.format("main"), 200)]
    assert found == [
        {"fuar": 0.5, "no_gain": False, "forgotten": 6, "updated": 8, "acquired": 4},
        {"fuar": math.inf, "no_gain": True, "forgotten": 6, "updated": 0, "acquired": 0},
        {"exact_match": 50, "f1": 50, "precision_at_k": {"1": 50}},
    ]


def test_perplexity_of_probes_loads_where_temporalwiki_is(hub: LoopbackHub, tmp_path: Path) -> None:
    import torch

    import tiny_models

    tokenizer = tiny_models.tokenizer("gpt2")
    model = tiny_models.model("gpt2", len(tokenizer))
    with torch.no_grad():  # all tokens are as likely as each other: the perplexity of any text is their number
        model.transformer.wte.weight.zero_()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    list(publish_metric(METRICS / "knowledge_perplexity", "ORG/knowledge_perplexity"))
    inputs = {"predictions": ["Norland is Easton", "Anna"], "model": str(tmp_path / "model")}
    (found,) = load(
        hub, tmp_path / "home", [("ORG/knowledge_perplexity", None, inputs)], "import json\nimport evaluate\n"
    )
    of_each = [pytest.approx(len(tokenizer), rel=1e-5)] * 2
    assert [found["perplexity"], found["perplexity_instance_mean"]] == of_each
    assert found["perplexities"] == of_each
    bits = math.log2(len(tokenizer)) * found["n_tokens"] / len("Norland is EastonAnna")
    assert found["bits_per_byte"] == pytest.approx(bits, rel=1e-5)


def test_the_space_holds_the_folders_files_and_no_links(hub: LoopbackHub, tmp_path: Path) -> None:
    folder = shutil.copytree(FUAR, tmp_path / "fuar", symlinks=False)
    (folder / "definition.py").unlink()
    shutil.copy(METRICS / "fuar.py", tmp_path / "elsewhere.py")
    (folder / "definition.py").symlink_to("../elsewhere.py")
    for name in (".env", ".hidden.py", "notes.txt"):
        (folder / name).write_text("not for everyone")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "fuar.py").write_text("")
    lines = list(publish_metric(folder, "ORG/fuar"))
    assert "gradio" in lines[0]
    assert lines[-1].startswith(f"{hub.endpoint}/spaces/ORG/fuar/tree/")
    files = hub.repo("space", "ORG/fuar").files()
    assert files.keys() - {".gitattributes"} == {"README.md", "app.py", "definition.py", "fuar.py", "requirements.txt"}
    assert files["definition.py"] == (METRICS / "fuar.py").read_bytes()
    assert files["README.md"] == metric_card(folder, "ORG/fuar").encode()
    assert b'evaluate.load("ORG/fuar")' in files["README.md"]


def test_a_rerun_sends_nothing_and_a_module_that_is_gone_goes(hub: LoopbackHub) -> None:
    list(publish_metric(FUAR, "ORG/fuar"))
    before = hub.repo("space", "ORG/fuar").branches
    sent = len(writes(hub))
    assert "up to date" in list(publish_metric(FUAR, "ORG/fuar"))[-1]
    assert hub.repo("space", "ORG/fuar").branches == before
    assert not [path for path in writes(hub)[sent:] if "commit" in path]
    hub.commit("space", "ORG/fuar", {"tests.py": b"", "notes/a.py": b"", "logo.png": b"x"})
    list(publish_metric(FUAR, "ORG/fuar"))
    files = hub.repo("space", "ORG/fuar").files()
    assert "tests.py" not in files
    assert {"notes/a.py", "logo.png"} < files.keys()  # a person put them there


REFUSED = {
    "another name": ("ORG/temporalwiki-fuar", None, UsageError, "call the repository ORG/fuar"),
    "another case": ("ORG/FUAR", None, UsageError, "call the repository ORG/fuar"),
    "no organisation": ("fuar", None, UsageError, "call the repository ORG/fuar"),
    "a version": ("ORG/fuar", "1.0.0", UsageError, "the tag 1.0.0: evaluate takes it for one of its versions"),
    "a version of evaluate": ("ORG/fuar", "v0.4.6", UsageError, "the tag v0.4.6: evaluate takes it for one of"),
    "a day": ("ORG/fuar", "2021.12.01", UsageError, "choose another, such as 2021.12"),
    "a name that the Hub refuses": ("OR G/fuar", None, UsageError, "the Hub refuses the name"),
    "no right to write": ("READERS/fuar", None, InputError, "spaces/READERS/fuar: "),
}


@pytest.mark.parametrize(("repo_id", "tag", "error", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_evaluate_could_not_load_is_refused(
    hub: LoopbackHub, repo_id: str, tag: str | None, error: type[Exception], message: str, dry_run: bool
) -> None:
    with pytest.raises(error, match=message):
        list(publish_metric(FUAR, repo_id, tag=tag, dry_run=dry_run))
    assert not writes(hub)


def test_the_name_is_checked_before_the_code_runs(tmp_path: Path) -> None:
    folder = tmp_path / "size"
    folder.mkdir()
    (folder / "size.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(UsageError, match="call the repository ORG/size"):
        metric_revision(folder, "ORG/length")


@pytest.mark.parametrize("missing", ["fuar.py", "app.py", "requirements.txt", "definition.py"])
def test_a_folder_without_a_file_is_refused(hub: LoopbackHub, tmp_path: Path, missing: str) -> None:
    with pytest.raises(InputError, match="no such folder"):
        metric_revision(tmp_path / "fuar", "ORG/fuar")
    folder = shutil.copytree(FUAR, tmp_path / "fuar")
    (folder / missing).unlink()
    with pytest.raises(InputError, match=missing.replace(".", r"\.")):
        list(publish_metric(folder, "ORG/fuar"))
    assert not hub.requests


@pytest.mark.parametrize("name", ["secret.py", "requirements.txt"])
def test_a_link_to_a_file_of_another_kind_is_not_followed(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FUAR, tmp_path / "fuar"))
    (tmp_path / "token").write_text("hf_secret")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "token")
    with pytest.raises(InputError, match=rf"{name}: is a link to a file of another kind"):
        metric_revision(folder, "ORG/fuar")
