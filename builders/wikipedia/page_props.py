"""Stage page-props: read the Wikidata item of each page from the table ``page_props`` of a Wikipedia dump."""

import re
from pathlib import Path

import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.stages import Report
from temporalwiki.builders.streams import pieces

VERSION = 1
FILE = "page_items.parquet"
PAGE_ITEMS = pa.schema({"page_id": pa.int64(), "item": pa.int64()})

# Quotes inside SQL strings are escaped (\'), so this matches whole values only.
_ROW = re.compile(rb"\((\d{1,18}),'wikibase_item','Q([1-9]\d{0,17})',")
_LONGEST = 80
_END = re.compile(rb"(?:\A|\n)-- Dump completed[^\n]{0,100}\s*\Z")  # on its own line, as in no value


def run(task: str, folder: Path) -> Report:
    """Read the SQL file ``task`` and write FILE.

    Raises InputError if the file was cut off or is a dump of another table.
    """
    path = Path(task)
    rest, last, found, dump_of_table = b"", b"", 0, False
    with ParquetWriter(folder / FILE, PAGE_ITEMS) as out:
        for piece in pieces(path):
            text = rest + piece.data
            dump_of_table = dump_of_table or b"`page_props`" in text
            end = 0
            for match in _ROW.finditer(text):
                out.write({"page_id": int(match[1]), "item": int(match[2])})
                found, end = found + 1, match.end()
            rest, last = text[max(end, len(text) - _LONGEST) :], (last + piece.data)[-2 * _LONGEST :]
    if not dump_of_table:
        raise InputError(f"{path}: not a dump of the table page_props")
    if not _END.search(last):
        raise InputError(f"{path}: no '-- Dump completed' at its end: it was cut off; fetch it again")
    return {"page_items": {"rows": found}, "wrote": [out.path]}
