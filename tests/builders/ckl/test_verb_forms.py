"""Base forms of verbs, by hand and by the lemmas of a treebank."""

from __future__ import annotations

from pathlib import Path

import pytest

from temporalwiki.builders.ckl.verb_forms import base_form


@pytest.mark.parametrize(
    ("past", "base"),
    [
        # irregular
        *(("wrote", "write"), ("won", "win"), ("became", "become"), ("oversaw", "oversee"), ("put", "put")),
        # nothing to put back
        *(("signed", "sign"), ("opened", "open"), ("visited", "visit"), ("called", "call"), ("passed", "pass")),
        *(("resigned", "resign"), ("questioned", "question"), ("developed", "develop"), ("treated", "treat")),
        *(("focused", "focus"), ("vetoed", "veto"), ("offered", "offer"), ("installed", "install")),
        # a silent e
        *(("announced", "announce"), ("created", "create"), ("voted", "vote"), ("named", "name"), ("used", "use")),
        *(("decided", "decide"), ("invited", "invite"), ("retired", "retire"), ("pledged", "pledge")),
        *(("managed", "manage"), ("settled", "settle"), ("argued", "argue"), ("acquired", "acquire")),
        *(("agreed", "agree"), ("persuaded", "persuade"), ("evaluated", "evaluate"), ("changed", "change")),
        # a consonant that was doubled, a y
        *(("stopped", "stop"), ("planned", "plan"), ("controlled", "control"), ("committed", "commit")),
        *(("tried", "try"), ("married", "marry"), ("died", "die"), ("played", "play")),
    ],
)
def test_base_form(past: str, base: str) -> None:
    assert base_form(past) == base
    assert base_form(past.capitalize()) == base


def test_what_is_no_past_stays() -> None:
    assert base_form("music") == "music"


def test_verbs_of_a_treebank(shared_data: Path) -> None:
    """Lemmas of the dev part of EWT, without its misspellings."""
    pairs = set()
    for line in (shared_data / "ud" / "en_ewt-ud-dev.conllu").read_text("utf-8").splitlines():
        cells = line.split("\t")
        if len(cells) > 5 and cells[4] == "VBD" and cells[1].isalpha() and "Typo=Yes" not in cells[5]:
            pairs.add((cells[1].lower(), cells[2]))
    pairs -= {(form, "be") for form in ("was", "were")} | {("had", "have"), ("did", "do")}  # ask with these themselves
    wrong = {(form, lemma) for form, lemma in pairs if base_form(form) != lemma}
    assert len(pairs) > 150
    assert len(wrong) / len(pairs) < 0.03, wrong
