"""Small dumps in the real formats, for tests to write: every test makes its own input."""

import bz2
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{wiki}</dbname>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <generator>MediaWiki 1.38.0-wmf.7</generator>
    <case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
      <namespace key="6" case="first-letter">File</namespace>
      <namespace key="10" case="first-letter">Template</namespace>
      <namespace key="14" case="first-letter">Category</namespace>
    </namespaces>
  </siteinfo>
"""
FOOTER = "</mediawiki>\n"


def header(version: str = "0.11", wiki: str = "enwiki") -> str:
    return HEADER.format(version=version, wiki=wiki)


def revision(text: str, revision_id: int = 1, parent: int | None = None, at: str = "2021-10-01T00:00:00Z") -> str:
    parent_tag = f"\n      <parentid>{parent}</parentid>" if parent else ""
    return f"""    <revision>
      <id>{revision_id}</id>{parent_tag}
      <timestamp>{at}</timestamp>
      <contributor><username>A</username><id>1</id></contributor>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text bytes="{len(text.encode())}" xml:space="preserve">{escape(text)}</text>
    </revision>
"""


def page(
    page_id: int,
    title: str,
    text: str = "",
    *,
    ns: int | None = 0,
    redirect: bool = False,
    revisions: Iterable[str] | None = None,
    **revision_options: Any,
) -> str:
    """A <page> with one revision of ``text``, or with the given revisions."""
    ns_tag = "" if ns is None else f"\n    <ns>{ns}</ns>"
    redirect_tag = '\n    <redirect title="X" />' if redirect else ""
    body = "".join(revisions) if revisions is not None else revision(text, **revision_options)
    return f"""  <page>
    <title>{escape(title)}</title>{ns_tag}
    <id>{page_id}</id>{redirect_tag}
{body}  </page>
"""


def write_bz2(path: Path, *streams: str) -> Path:
    """A bz2 file with one compressed stream for each text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(bz2.compress(text.encode()) for text in streams))
    return path


def multistream(path: Path, pages: Sequence[str], per_stream: int = 2, **of_header: str) -> Path:
    """A multistream dump: the header, ``per_stream`` pages a stream, the closing tag."""
    groups = ["".join(pages[i : i + per_stream]) for i in range(0, len(pages), per_stream)]
    return write_bz2(path, header(**of_header), *groups, FOOTER)


def articles_file(dumps: Path, date: str, wiki: str = "enwiki") -> Path:
    return dumps / wiki / date / f"{wiki}-{date}-pages-articles-multistream.xml.bz2"


def wikidata_file(dumps: Path, date: str, suffix: str = "gz") -> Path:
    return dumps / "wikidatawiki" / "entities" / date / f"wikidata-{date}-all.json.{suffix}"


def value(item: str | int) -> dict[str, Any]:
    """A snak whose value is an item."""
    number = int(str(item).removeprefix("Q"))
    entity = {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}
    return {
        "snaktype": "value",
        "datavalue": {"value": entity, "type": "wikibase-entityid"},
        "datatype": "wikibase-item",
    }


def time(day: str, precision: int = 11) -> dict[str, Any]:
    return {"snaktype": "value", "datavalue": {"value": {"time": day, "precision": precision}, "type": "time"}}


def statement(snak: dict[str, Any], rank: str = "normal", id: str = "", **qualifiers: list[Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"mainsnak": snak, "type": "statement", "id": id, "rank": rank}
    return out | ({"qualifiers": qualifiers} if qualifiers else {})


def item(
    number: int,
    claims: Mapping[str, list[dict[str, Any]]] | None = None,
    label: str | None = None,
    title: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    labels = {"en": {"language": "en", "value": label}} if label else []
    sitelinks = {"enwiki": {"site": "enwiki", "title": title, "badges": []}} if title else []
    entity = {"type": "item", "id": f"Q{number}", "labels": labels, "claims": claims or [], "sitelinks": sitelinks}
    return entity | more


def property_(number: int, label: str) -> dict[str, Any]:
    labels = {"en": {"language": "en", "value": label}}
    return {"type": "property", "id": f"P{number}", "datatype": "wikibase-item", "labels": labels, "claims": []}


def write_wikidata(path: Path, entities: Sequence[dict[str, Any]], per_member: int = 2, close: bool = True) -> Path:
    """A Wikidata JSON dump of several gzip members (or bz2 streams), as Wikimedia writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(entity, separators=(",", ":")) for entity in entities]
    text = [line + ("," if i < len(lines) - 1 else "") + "\n" for i, line in enumerate(lines)]
    groups = ["".join(text[i : i + per_member]) for i in range(0, len(text), per_member)]
    compress = gzip.compress if path.suffix == ".gz" else bz2.compress
    path.write_bytes(b"".join(compress(part.encode()) for part in ["[\n", *groups, *(["]\n"] if close else [])]))
    return path
