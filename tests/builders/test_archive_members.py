"""Released files, loose or in a zip, and the rows of CSV files in them: which are read, and which refused where."""

import csv
import io
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders import archive_members
from temporalwiki.builders.archive_members import Member, members, read_csv

READ = {
    "as pandas writes it, with a column for the index": (b",a,b\n0,x,y\n", [{"a": "x", "b": "y"}]),
    "in another order and case, with more columns": (b"B, A ,c\ny,x,z\n", [{"a": "x", "b": "y"}]),
    "a byte order mark and Windows' lines": (b"\xef\xbb\xbfa,b\r\nx,y\r\n", [{"a": "x", "b": "y"}]),
    "no line end at the end": (b"a,b\nx,y", [{"a": "x", "b": "y"}]),
    "empty lines": (b"a,b\n\nx,y\n\n", [{"a": "x", "b": "y"}]),
    "quotes, commas and lines in a cell": (b'a,b\n"x, ""y""\n\r\nz",\n', [{"a": 'x, "y"\n\r\nz', "b": ""}]),
    "words that pandas takes for none": (b"a,b\nNA,\nnan,null\n", [{"a": "NA", "b": ""}, {"a": "nan", "b": "null"}]),
    "white space, which is the file's": (b"a,b\n x ,\ty\n", [{"a": " x ", "b": "\ty"}]),
    "formulas and markup": (b"a,b\n=cmd(),</script>\n", [{"a": "=cmd()", "b": "</script>"}]),
    "other scripts": ("a,b\nСофия,🙂\n".encode(), [{"a": "София", "b": "🙂"}]),
    "a header alone": (b"a,b\n", []),
}  # fmt: skip


@pytest.mark.fault("hostile CSV", "formulas, markup, line breaks in cells, other scripts", "they come back unchanged")
@pytest.mark.parametrize(("data", "rows"), READ.values(), ids=READ)
def test_what_is_read(data: Any, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    warnings: list[str] = []
    assert rows_of(written(tmp_path, data), warnings) == rows
    cut = ["file.csv: its last line has no end: was the file cut off?"]
    assert warnings == ([] if data.endswith(b"\n") else cut)


REFUSED = {
    "nothing": (b"", "the column a is missing"),
    "an empty line first": (b"\na,b\n", "the column a is missing"),
    "another header": (b"a,c\nx,y\n", "the column b is missing or there twice; the file has the columns a, c"),
    "a column twice": (b"a,b,B\nx,y,z\n", "the column b is missing or there twice"),
    "too few cells": (b"a,b\nx,y\n\nz\n", "line 4: 1 cells, but 2 columns"),
    "too many cells": (b"a,b\nx,y,z\n", "line 2: 3 cells, but 2 columns"),
    "cut off within quotes": (b'a,b\nx,y\n"z\n,', "line 3: unexpected end of data; is it CSV"),
    "text after a quote": (b'a,b\n"x"y,z\n', "line 2: ',' expected after '\"'"),
    "a carriage return alone": (b"a,b\nx,y\rz,w\n", "line 2: new-line character seen in unquoted field"),
    "a NUL byte": (b'a,b\nx,"y\n\0"\n', "line 2: a NUL byte"),
    "Latin-1": ("a,b\nx,y\nx,é\n".encode("latin-1"), "line 3: 'utf-8' codec can't decode byte 0xe9 in position 2"),
    "UTF-16": ("a,b\nx,y\n".encode("utf-16"), "line 1: a NUL byte"),
    "a zip by another name": (b"PK\x03\x04\x14\xff,", "line 1: 'utf-8' codec"),
}


@pytest.mark.fault(
    "hostile CSV", "cut quotes, NUL, other encodings, too few and too many cells", "refused with file and line"
)
@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_where(data: Any, said: str, tmp_path: Path) -> None:
    member = written(tmp_path, data)
    with pytest.raises(InputError) as refusal:
        rows_of(member)
    assert str(refusal.value).startswith(f"{member.path}: {said}")


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.lists(st.tuples(cells, cells), max_size=8), st.booleans())
def test_whatever_a_writer_wrote_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], windows: bool
) -> None:
    text = io.StringIO(newline="")
    # a writer of lines that end with \n leaves \r without quotes, which nobody can tell from a line's end
    form: Any = {"lineterminator": "\r\n"} if windows else {"lineterminator": "\n", "quoting": csv.QUOTE_ALL}
    csv.writer(text, **form).writerows([("a", "b"), *rows])
    path = tmp_path_factory.getbasetemp() / "round.csv"
    path.write_bytes(text.getvalue().encode())
    assert [(row["a"], row["b"]) for row in rows_of(Member(path))] == rows


def test_articles_of_megabytes_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("text\n")
        for number in range(12):
            file.write(f'"{number}{"word " * 400_000}"\n')
    tracemalloc.start()
    lengths = [len(row["text"]) for row in read_csv(Member(path), ("text",))][1:]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lengths == [2_000_001] * 10 + [2_000_002] * 2
    assert peak < path.stat().st_size * 0.75  # a few copies of one of twelve articles


@pytest.mark.fault(
    "too little memory", "import: a quote in a CSV file is never closed", "one line names the line where it opens"
)
def test_a_quote_that_is_never_closed_ends_before_memory_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_members, "LONGEST_CELL", 1000)
    monkeypatch.setattr(archive_members, "LONGEST_ROW", 4000)
    endless = written(tmp_path, b'a,b\nx,y\nz,"' + b"text\n" * 10_000)
    with pytest.raises(InputError, match=r"line 3: field larger than field limit \(1000\); .* with all quotes closed"):
        rows_of(endless)
    one_line = written(tmp_path, b"a,b\nx,y\n" + b"0123456789," * 10_000)
    with pytest.raises(InputError, match=r"line 3: a row of more than 4,000 bytes"):
        rows_of(one_line)
    many_cells = written(tmp_path, b"a,b\n" + b'"x\n",' * 10_000)
    with pytest.raises(InputError, match=r"line \d+: a row of more than"):
        rows_of(many_cells)


def test_members_are_found_in_folders_and_zips_in_order(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "z.csv").touch()
    (tmp_path / "b" / "a.csv").touch()
    packed(tmp_path / "b" / "m.ZIP", {"data/y.csv": b"", "data/": b"", "..\\..\\w.csv": b"", "../../x.csv": b""})
    found = list(members([tmp_path / "b"]))
    assert [member.name for member in found] == ["a.csv", "z.csv", "x.csv", "w.csv", "y.csv"]
    assert found[4].where == f"{tmp_path / 'b' / 'm.ZIP'}: data/y.csv"
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        list(members([tmp_path / "nowhere"]))


@pytest.mark.fault("hostile archive", "pipes and shadow files among archives", "ignored")
def test_pipes_and_shadows_are_passed_by(tmp_path: Path) -> None:
    place = tmp_path / "in"
    (place / "__MACOSX").mkdir(parents=True)
    (place / "__MACOSX" / "a.csv").touch()
    (place / "a.csv").touch()
    (place / "b.csv").symlink_to(place / "a.csv")
    (place / "nowhere.csv").symlink_to(place / "gone")
    os.mkfifo(place / "pipe.csv")
    os.mkfifo(place / "pipe.zip")
    packed(place / "x.zip", {"data/x.csv": b"", "__MACOSX/data/x.csv": b"", "data/__MACOSX": b""})
    assert [member.name for member in members([place])] == ["a.csv", "b.csv", "__MACOSX", "x.csv"]
    with pytest.raises(InputError, match=r"pipe\.csv: not a file or folder"):
        list(members([place / "pipe.csv"]))


@pytest.mark.fault("hostile archive", "a link out of the folder that is imported", "refused in one line")
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.csv").touch()
    (tmp_path / "in" / "a.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(InputError, match=r"in/a\.csv: is a link out of the folder; replace it by what it points to"):
        list(members([tmp_path / "in"]))
    assert [member.name for member in members([tmp_path / "in" / "a.csv"])] == ["a.csv"]  # as the user says


@pytest.mark.fault("hostile archive", "a zip with paths to other folders", "these files are not unpacked")
def test_nothing_of_a_zip_is_unpacked(tmp_path: Path) -> None:
    place = tmp_path / "in" / "side"
    place.mkdir(parents=True)
    packed(place / "x.zip", {"../../evil.csv": b"a,b\n1,2\n", "/tmp/evil.csv": b"", "good.csv": b"a,b\n3,4\n"})
    for member in members([place]):
        if member.name == "evil.csv" and member.inside == "../../evil.csv":
            assert rows_of(member) == [{"a": "1", "b": "2"}]
    assert [*tmp_path.rglob("*")] == [tmp_path / "in", place, place / "x.zip"]


@pytest.mark.fault("bomb", "a zip bomb is imported", "refused before it is opened")
def test_a_bomb_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    bomb = packed(tmp_path / "bomb.zip", {"text.csv": b"text\n" + b"a" * (65 << 20)})
    [member] = members([bomb])
    said = r"bomb\.zip: text\.csv: \d\d,\d{3} bytes would be 68,157,445 bytes unpacked: refused"
    with pytest.raises(InputError, match=said):
        list(read_csv(member, ("text",)))


@pytest.mark.fault("bomb", "a zip bomb that declares a wrong size", "no more is unpacked than it declares")
def test_a_bomb_that_lies_about_its_size_gives_no_more_than_it_says(tmp_path: Path) -> None:
    path = packed(tmp_path / "lies.zip", {"text.csv": b"text\n" + b"a,\n" * 100_000})
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, central + 24, 10)  # the unpacked size
    path.write_bytes(data)
    [member] = members([path])
    with pytest.raises(InputError, match=r"lies\.zip: .*(unpacked|line 2)"):
        list(read_csv(member, ("text",)))


@pytest.mark.fault("hostile archive", "damaged zips", "refused in one line")
def test_damaged_zips(tmp_path: Path) -> None:
    text = b"text\n" + b"".join(b"%d\n" % (number * 7919 % 100_003) for number in range(30_000))
    path = packed(tmp_path / "x.zip", {"x.csv": text})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"x\.zip: cannot be unpacked"):
        list(members([path]))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    path.write_bytes(damaged)
    [member] = members([path])
    with pytest.raises(InputError, match=r"x\.zip: "):
        list(read_csv(member, ("text",)))
    secret = bytearray(whole)
    secret[6] |= 1  # both headers say that it is encrypted
    secret[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(secret)
    with pytest.raises(InputError, match=r"x\.zip: cannot be unpacked .*password.*import unpacked"):
        list(read_csv(Member(path, "x.csv"), ("text",)))


def test_a_name_twice_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("x.csv", "a")
        file.writestr("x.csv", "b")
    with pytest.raises(InputError, match=r"x\.zip: two files have the same name"):
        list(members([tmp_path / "x.zip"]))


def rows_of(member: Member, warnings: list[str] | None = None) -> list[dict[str, str]]:
    _, *rows = read_csv(member, ("a", "b"), (), warnings)
    return rows


def written(folder: Path, data: bytes) -> Member:
    path = folder / "file.csv"
    path.write_bytes(data)
    return Member(path)


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return path
