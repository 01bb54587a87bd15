"""Tables are written, and files of older tables are removed."""

from __future__ import annotations

from pathlib import Path

from temporalwiki.eval_harness.leaderboard.tables import write_tables

from a_row import make_row


def test_tables_that_can_be_made_are_written_and_others_removed(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "tables"
    cloze = make_row(
        task="lama", kind="newlama", config="newlama", tested=None, measure="exact_match", higher_is_better=True
    )
    made = write_tables([cloze], folder)
    assert list(made) == ["ckl_table_2"]
    assert sorted(path.name for path in folder.iterdir()) == ["ckl_table_2.csv", "ckl_table_2.md"]
    (folder / "mine.txt").touch()
    made = write_tables([make_row(label='a, "b" é\n😀')], folder)
    assert list(made) == ["temporalwiki_table_3"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "mine.txt",
        "temporalwiki_table_3.csv",
        "temporalwiki_table_3.md",
    ]
    content = (folder / "temporalwiki_table_3.csv").read_bytes()
    assert '"a, ""b"" é 😀"'.encode() in content
    assert b"\r" not in content
    assert write_tables([], tmp_path / "nothing") == {}
    assert not (tmp_path / "nothing").exists()
