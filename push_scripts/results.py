"""Offer scores on the page of a model, which may be somebody else's: a pull request with ``.eval_results``."""

import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.loading import split_revision
from temporalwiki.eval_harness.results import Result, read_results
from temporalwiki.model_cards.eval_results import PATH, eval_results
from temporalwiki.push_scripts.hub import ask
from temporalwiki.push_scripts.model import datasets_of


def publish_results(path: Path, to: str, *, tag: str | None = None, dry_run: bool = False) -> Iterator[str]:
    """Open a pull request on the model ``to`` with its scores from the folder ``path``; yield a line for each step.

    The same scores are offered once: an open pull request of this user with the same title counts. Raises UsageError
    for a tag, and InputError for a model that the Hub lacks, and for a folder without a result of this model on the
    probes of a dataset on the Hub.
    """
    if tag is not None:
        raise UsageError("--tag: a pull request has no tag")
    read = read_results(path)
    api = HfApi()
    head = ask(to, lambda: api.model_info(to))
    # a model in memory or in a folder can have the name of one on the Hub, but not its commit
    own = [result for result in read if split_revision(result.manifest.model.name)[0] == to]
    own = [result for result in own if result.manifest.model.revision == head.sha]
    if not own:
        found = sorted({f"{one.manifest.model.name} at {one.manifest.model.revision[:12]}" for one in read})
        there = ", ".join(found[:5]) or "no results"
        raise InputError(f"{path}: no results of {to} at its newest commit, {str(head.sha)[:12]}; it has {there}")
    before = b""
    if any(file.rfilename == PATH for file in head.siblings or ()):
        before = Path(ask(to, lambda: api.hf_hub_download(to, PATH, revision=head.sha))).read_bytes()
    text = eval_results(own, datasets_of(own), before)
    if text is None:
        raise InputError(f"{path}: no scores of {to} on probes-* of a dataset on the Hub, with --data ORG/NAME@TAG")
    entries = text.count("task_id:")
    if text.encode() == before:
        yield f"{to}: it has these {entries} scores"
        return
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]  # other scores are another offer
    title = f"Scores on facts that changed ({', '.join(_configs(own))}, {digest})"
    if dry_run:
        yield f"{to}: would open a pull request, {title!r}, with {PATH}:\n{text}"
        return
    name = ask(to, api.whoami)["name"]
    listed = functools.partial(api.get_repo_discussions, to, discussion_type="pull_request", discussion_status="open")
    for open_one in ask(to, lambda: list(listed(author=name))):
        if open_one.title == title:
            yield f"{to}: offered already, in {open_one.url}"
            return
    made = ask(
        to,
        lambda: api.create_commit(
            to,
            [CommitOperationAdd(PATH, text.encode())],
            commit_message=title,
            commit_description="Scores by temporalwiki. Each entry names its data at a commit, and its date.",
            parent_commit=head.sha,
            create_pr=True,
        ),
        waits=(),  # a second try could open a second pull request; run the command again instead
    )
    yield f"{to}: {entries} scores offered in {made.pr_url}"


def _configs(results: Sequence[Result]) -> list[str]:
    return sorted({result.manifest.data.config for result in results if result.manifest.scored == "twiki_probes"})
