"""Released archives: a CSV file and its answers, loose or in a zip: each row is kept or counted, or all refused."""

import csv
import io
import json
import zipfile
import zlib
from collections.abc import Sequence

from temporalwiki.base.errors import InputError
from temporalwiki.builders.archive_members import members, read_csv
from temporalwiki.builders.archives import CKL_FILES, read_answers, read_clozes, read_facts, recognise
from temporalwiki.builders.ckl.config import RowCounts

from fuzz.files import file, folder

_CSV = 'unique_id,statement,new_answer,question,old_answer\n1,"A, <extra_id_0>.",b,"q?",c\n2,"x\ny <extra_id_0>",d,,\n'
_ANSWERS = {"1": [{"old": ["c"], "new": ["b", 1]}], "9": ["x", 2.5]}
_FACTS = "subject,relation,object\nAnn,plays for,Roma\nAnn,plays for,Roma\n,plays for,Roma\n"
_NAMES = ("updatedLAMA.csv", "updatedlama_val_answers.json", "0801-0901_changed.csv", "0801-0901_unchanged.csv")
_BETWEEN = b"\x00\x00"


def _zip(names: Sequence[str] = _NAMES) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in zip(names, (_CSV, json.dumps(_ANSWERS), _FACTS, _FACTS), strict=False):
            out.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


# loose files one after another, or a zip
SEEDS = (
    _BETWEEN.join([_CSV.encode(), json.dumps(_ANSWERS).encode(), _FACTS.encode(), _FACTS.encode()]),
    _zip(),
    _zip([f"folder/{name}" for name in _NAMES]),
    b"\xef\xbb\xbf" + _CSV.replace("\n", "\r\n").encode(),
    _CSV.encode() + _BETWEEN + b'{"1": ["\\ud800"]}',
)
FOUND: tuple[bytes, ...] = (
    _zip([""]),  # a file without a name
    b"PK" + _zip()[60:],  # the list of files points before the first byte
    _zip(["é"]).replace("é".encode(), b"\xff\xff"),  # a name that is not UTF-8, as the zip says it is
)
WORDS = (b'"', b'""', b",", b"\n", b"\r\n", b"\r", _BETWEEN, b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"../",
         b"<extra_id_0>", b'{"old":[', b'"new":[', b"=1+1", b"\xef\xbb\xbf", b"\xff", b"1e400", b"9" * 5000,
         b"unique_id")  # fmt: skip


def check(data: bytes) -> None:
    for old in folder().glob("archive/*"):
        old.unlink()
    if data.startswith(b"PK"):
        paths = [file("archive/released.zip", data)]
    else:
        paths = [file(f"archive/{name}", part) for name, part in zip(_NAMES, data.split(_BETWEEN), strict=False)]
    try:
        for member in members(paths):
            assert "/" not in member.name, "a name with a path"
        found, _ = recognise(paths)
        for name in found.keys() & set(_NAMES[2:]):
            counts, warnings = RowCounts(), list[str]()
            _account(len(list(read_facts(found[name], "changed", counts, warnings))), counts, warnings)
        if _NAMES[0] in found:
            answers = found.get(_NAMES[1])
            accepted = read_answers(answers) if answers else {}
            counts, warnings = RowCounts(), list[str]()
            kept = list(read_clozes(found[_NAMES[0]], "updatedlama", accepted, counts, warnings))
            _account(len(kept), counts, warnings)
            assert len({row["id"] for row in kept}) == len(kept), "an id twice"
            assert all(row["answers"] and all(row["answers"]) for row in kept), "a row without an answer"
    except InputError as error:
        assert str(folder()) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return
    if not data.startswith(b"PK") and zlib.crc32(data) % 4 == 0:
        _compare(data)


def _account(kept: int, counts: RowCounts, warnings: list[str]) -> None:
    assert counts.kept == kept and counts.read == kept + sum(counts.dropped.values()), "a row is lost"
    assert all("\n" not in warning for warning in warnings)


def _compare(data: bytes) -> None:
    """Against the standard library's reader of CSV: as many rows of the first file."""
    text = data.split(_BETWEEN)[0].decode().removeprefix("\ufeff")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    found, _ = recognise([folder() / "archive" / _NAMES[0]])
    read = list(read_csv(found[_NAMES[0]], CKL_FILES["updatedlama"].columns))  # with the header
    assert len(read) == len(rows), "another number of rows"
