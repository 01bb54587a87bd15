"""What people write into a published card stays when the card is written again."""

import datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.model_cards.edits import MARKS, keep_edits, read_header, signed

BEGIN, END = MARKS.splitlines()


def card(month: int, **header: object) -> str:
    """Return our card of a month."""
    ours = {"pretty_name": "TemporalWiki", "tags": ["wikipedia"], "size": month, "license": "cc0-1.0", **header}
    return signed(f"---\n{yaml.safe_dump(ours)}---\n\n# Month {month}\n\n{MARKS}\n\n## Limits\n")


FIRST, SECOND = card(1), card(2)


def test_without_edits_the_new_card_is_ours_to_the_byte() -> None:
    for published in (None, b"", FIRST.encode(), b"# A stranger's", b"---\npretty_name: A stranger's\n---\n"):
        assert keep_edits(SECOND, published) == SECOND


# what a person does to our card -> (what the next card says in its header, what stands between its marks)
EDITS: dict[str, tuple[tuple[str, str], dict[str, object], str]] = {
    "another name": (("pretty_name: TemporalWiki", "pretty_name: A, 'b'"), {"pretty_name": "A, 'b'"}, ""),
    "one more tag": (("- wikipedia", "- wikipedia\n- news"), {"tags": ["wikipedia", "news"]}, ""),
    "a date": (("size: 1", "size: 2021-01-01"), {"size": datetime.date(2021, 1, 1)}, ""),
    "no value": (("pretty_name: TemporalWiki", "pretty_name:"), {"pretty_name": None}, ""),
    "a key that is gone": (("pretty_name: TemporalWiki\n", ""), {"pretty_name": "TemporalWiki"}, ""),
    "a licence": (("license: cc0-1.0", "license: mit"), {"license": "cc0-1.0"}, ""),
    "a picture": ((END, f"![picture](a.png)\n{END}"), {}, "![picture](a.png)\n"),
    "several lines, from Windows": ((END, f"one\r\n\r\ntwo\r\n{END}"), {}, "one\n\ntwo\n"),
    "backslashes": ((END, f"\\1 \\g<0>\n{END}"), {}, "\\1 \\g<0>\n"),
    "text outside of the marks": (("## Limits", "lost\n\n## Limits"), {}, ""),
    "marks elsewhere": (("## Limits", f"{BEGIN}\nmoved\n{END}\n## Limits"), {}, "moved\n"),
    "no marks": ((MARKS, ""), {}, ""),
    "half of the marks": ((END, "lost"), {}, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_survives_this_month_and_the_next(case: str) -> None:
    (old, new), header, yours = EDITS[case]
    assert old in FIRST
    found = FIRST.replace(old, new, 1)
    for month in (2, 3):
        found = keep_edits(card(month), found.encode())
        expected = {"pretty_name": "TemporalWiki", "tags": ["wikipedia"], "size": month, "license": "cc0-1.0"}
        assert read_header(found.encode()) == expected | header
        assert f"# Month {month}\n\n{BEGIN}\n{yours}{END}\n\n## Limits" in found
        assert keep_edits(card(month), found.encode()) == found  # a rerun changes nothing


def test_what_is_set_back_is_ours_again() -> None:
    edited = FIRST.replace("pretty_name: TemporalWiki", "pretty_name: Mine")
    kept = keep_edits(SECOND, edited.encode())
    back = kept.replace("pretty_name: Mine", "pretty_name: TemporalWiki")
    assert read_header(keep_edits(card(3, pretty_name="Better"), back.encode()).encode())["pretty_name"] == "Better"


def test_what_we_write_anew_is_no_edit() -> None:
    assert keep_edits(card(1, pretty_name="Better"), FIRST.encode()) == card(1, pretty_name="Better")


@pytest.mark.parametrize("comment", ["{", "{}}", "[1]", '{"pretty_name": 1}', "{\\}"])
@pytest.mark.parametrize("header", ["[", "&a [*a]", "!!python/object:os.x {}", "1: 2", "pretty_name: !!binary aGk="])
def test_whatever_a_card_says_the_next_is_written(comment: str, header: str) -> None:
    published = f"---\n{header}\n---\n<!-- written by temporalwiki: {comment} -->"
    assert keep_edits(SECOND, published.encode()).endswith(SECOND.partition("# Month")[2])


@given(st.text())
def test_any_text_between_the_marks_is_kept(text: str) -> None:
    published = FIRST.replace(END, f"{text}\n{END}")
    kept = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").strip()
    if END not in kept and "<!--" not in kept:
        assert f"{BEGIN}\n{kept}\n{END}" in keep_edits(SECOND, published.encode("utf-8", "replace")) or not kept
