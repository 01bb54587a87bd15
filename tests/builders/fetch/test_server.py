"""What a server lists: taken where it is sound, refused with one line where it is not."""

import datetime
import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.fetch.connection import Connection, Failed, NotThere, retry_after
from temporalwiki.builders.fetch.server import Server, _dates, consecutive_firsts

NOW = datetime.datetime(2021, 12, 1, 12, 0, tzinfo=datetime.UTC)
SHA1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
STEM = "enwiki-20211101-pages-articles-multistream"


class Pages(Connection):
    """Instead of a connection: pages by their addresses."""

    def __init__(self, pages: Mapping[str, str], sizes: Mapping[str, int] | None = None) -> None:
        self.pages, self.sizes, self.said = pages, sizes or {}, list[str]()
        self.say = self.said.append

    def page(self, url: str) -> str:
        if url not in self.pages:
            raise NotThere("answers 404")
        return self.pages[url]

    def size(self, url: str) -> int:
        return self.sizes[url]


def status(files: Mapping[str, Any], job: str = "done") -> dict[str, Any]:
    return {"version": "0.8", "jobs": {"articlesmultistreamdump": {"status": job, "updated": "", "files": files}}}


def listed(data: Any, dates: str = "20211001 20211101") -> Server:
    text = data if isinstance(data, str) else json.dumps(data)
    index = "".join(f'<a href="{date}/">{date}/</a>' for date in dates.split())
    return Server(Pages({"m/enwiki/20211101/dumpstatus.json": text, "m/enwiki/": index}), ["m"])


def articles(data: Any) -> list[str]:
    return [file.name for file in listed(data).articles("enwiki", "20211101", Path("nowhere"))]


GOOD = {"size": 5, "sha1": SHA1, "url": "https://evil.example/x", "md5": "x"}
TAKEN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "one file": ({f"{STEM}.xml.bz2": GOOD, f"{STEM}-index.txt.bz2": GOOD}, [f"{STEM}.xml.bz2"]),
    "parts in page order": (
        {f"{STEM}10.xml-p21p30.bz2": GOOD, f"{STEM}2.xml-p8p20.bz2": GOOD, f"{STEM}1.xml-p1p7.bz2": GOOD},
        [f"{STEM}1.xml-p1p7.bz2", f"{STEM}2.xml-p8p20.bz2", f"{STEM}10.xml-p21p30.bz2"],
    ),
    "parts rather than one": ({f"{STEM}.xml.bz2": GOOD, f"{STEM}1.xml-p1p7.bz2": GOOD}, [f"{STEM}1.xml-p1p7.bz2"]),
    "names of other files": (
        {
            f"{STEM}.xml.bz2": GOOD,
            f"../{STEM}1.xml-p1p7.bz2": GOOD,
            f"/etc/{STEM}1.xml-p1p7.bz2": GOOD,
            f"{STEM}1.xml-p1p7.bz2\n": GOOD,
            f"{STEM}1.xml-p1p7.bz2/../../x": GOOD,
            f"{STEM}1.xml-p１p7.bz2": GOOD,
            "enwiki-20211201-pages-articles-multistream1.xml-p1p7.bz2": GOOD,
            "frwiki-20211101-pages-articles-multistream.xml.bz2": GOOD,
            "</script>": GOOD,
        },
        [f"{STEM}.xml.bz2"],
    ),
}


@pytest.mark.fault(
    "hostile titles", "a server lists files whose names are paths to other folders", "none of them is fetched"
)
@pytest.mark.parametrize(("files", "names"), TAKEN.values(), ids=TAKEN)
def test_which_files_are_taken(files: dict[str, Any], names: list[str]) -> None:
    assert articles(status(files)) == names


WHOLE = f"{STEM}.xml.bz2"
REFUSED: dict[str, tuple[Any, str]] = {
    "in progress": (status({}, "in-progress"), "streamdump is in-progress .*try later, or fetch 20211001$"),
    "waiting": (status({}, "waiting"), "articlesmultistreamdump is waiting"),
    "not a status": (status({}, "\x1b[2Jdone\n"), re.escape(r"is '\x1b[2Jdone\n' by")),
    "no such job": ({"jobs": {}}, "articlesmultistreamdump is not there"),
    "no files": (status({}), f"lists neither {WHOLE} nor numbered parts"),
    "a missing part": (status({f"{STEM}1.xml-p1p7.bz2": GOOD, f"{STEM}3.xml-p9p9.bz2": GOOD}), "does not list page"),
    "no first part": (status({f"{STEM}2.xml-p9p9.bz2": GOOD}), "does not list page 1 in exactly one part"),
    "same pages": (status({f"{STEM}1.xml-p1p7.bz2": GOOD, f"{STEM}2.xml-p3p9.bz2": GOOD}), "does not list page"),
    "no SHA-1": (status({WHOLE: {"size": 5}}), f"no size and SHA-1 of {WHOLE}; try later"),
    "no size": (status({WHOLE: {"sha1": SHA1}}), "no size and SHA-1"),
    "a negative size": (status({WHOLE: {**GOOD, "size": -1}}), "no size and SHA-1"),
    "a huge size": (status({WHOLE: {**GOOD, "size": 1 << 60}}), "no size and SHA-1"),
    "a true size": (status({WHOLE: {**GOOD, "size": True}}), "no size and SHA-1"),
    "a fraction": (status({WHOLE: {**GOOD, "size": 5.5}}), "no size and SHA-1"),
    "not a SHA-1": (status({WHOLE: {**GOOD, "sha1": "../../x"}}), "'../../x'"),
    "not an entry": (status({WHOLE: "x"}), "no size and SHA-1"),
    "no JSON": ("<html>", "is not the status of a dump"),
    "cut JSON": ('{"jobs": {', "is not the status of a dump"),
    "deep JSON": ("[" * 100_000, "is not the status of a dump"),
    "a list": ([], "is not the status of a dump"),
    "not jobs": ({"jobs": []}, "is not the status of a dump"),
    "not files": ({"jobs": {"articlesmultistreamdump": {"status": "done", "files": [1]}}}, "lists neither"),
}


@pytest.mark.fault(
    "hostile JSON", "a server's dumpstatus.json of every wrong shape", "refused in one line that names the dump"
)
@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(data: Any, said: Any) -> None:
    with pytest.raises(InputError, match=said) as caught:
        articles(data)
    assert "enwiki 20211101: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_date_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(InputError, match=r"enwiki 20210101: no such dump .*there are 20211001, 20211101"):
        listed("{}").articles("enwiki", "20210101", Path("nowhere"))
    with pytest.raises(InputError, match=r"frwiki: .*404"):
        listed("{}").articles("frwiki", "20210101", Path("nowhere"))


def test_addresses_in_a_list_are_never_followed() -> None:
    (file,) = listed(status({WHOLE: GOOD})).articles("enwiki", "20211101", Path("nowhere"))
    assert file.places == (file.path,) == (f"enwiki/20211101/{WHOLE}",)


SUMS = {
    "gz before bz2": ("{d}-all.json.bz2 {d}-all.json.gz", "20211101", "gz"),
    "bz2 alone": ("{d}-all.json.bz2", "20211101", "bz2"),
    "other dumps only": ("{d}-lexemes.json.gz {d}-truthy-BETA.nt.gz", "20211025", "gz"),
    "no line yet": ("", "20211025", "gz"),
    "a name with a path": ("../{d}-all.json.gz x/{d}-all.json.gz", "20211025", "gz"),
    "another date": ("wikidata-20211031-all.json.gz", "20211025", "gz"),
}


def sums(names: str, date: str) -> str:
    return "".join(f"{SHA1}  {name.format(d=f'wikidata-{date}')}\n" for name in names.split())


@pytest.mark.parametrize(("names", "date", "suffix"), SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("place", ["wikidatawiki/entities", "other/wikibase/wikidatawiki"])
def test_which_wikidata_dump_is_taken(names: str, date: str, suffix: str, place: str) -> None:
    index = '<a href="../">..</a> <a href="20211025/">x</a> <a href="20211101/">x</a> <a href="20211108/">x</a>'
    pages = {f"m/{place}/": index} | {
        f"m/{place}/{day}/wikidata-{day}-sha1sums.txt": sums(of_day, day)
        for day, of_day in {"20211025": "{d}-all.json.gz", "20211101": names, "20211108": "{d}-all.json.gz"}.items()
    }
    sizes = {f"m/{p}/{date}/wikidata-{date}-all.json.{suffix}": 7 for p in ("wikidatawiki/entities", place)}
    connection = Pages(pages, sizes)
    (file,) = Server(connection, ["m"]).wikidata("20211103", exact=False)
    assert file.path == f"wikidatawiki/entities/{date}/wikidata-{date}-all.json.{suffix}"
    assert (file.size, file.sha1) == (7, SHA1)
    assert bool(connection.said) == (date == "20211025")  # said where a newer one is passed over


def test_no_wikidata_dump() -> None:
    server = Server(Pages({"m/wikidatawiki/entities/": '<a href="20211108/">'}), ["m"])
    with pytest.raises(InputError, match=r"no finished JSON dump at or before 20211103 .*newest dates are 20211108"):
        server.wikidata("20211103", exact=False)
    with pytest.raises(InputError, match=r"wikidata: .*404.*404"):
        Server(Pages({}), ["m"]).wikidata("20211103", exact=False)


LEADS = {
    "https://a/x": ["https://b/y", "https://b/z"],
    "http://a/x": ["https://b/y"],
    "https://a/w": ["http://b/y"],
    "https://a/v": ["https://b/y", "http://a/v"],
    "http://a/u": ["ftp://b/y"],
}


@pytest.mark.parametrize("url", LEADS)
def test_a_redirect_never_leaves_https(url: str) -> None:
    chain = [url, *LEADS[url]]
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        following = dict(pairwise(chain)).get(str(request.url))
        if following:
            return httpx2.Response(302, headers={"Location": following})
        return httpx2.Response(200, stream=httpx2.ByteStream(b"hi"))

    with Connection(print) as connection:
        connection._client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        if chain[-1].startswith("https:"):
            assert connection.page(url) == "hi"
            assert asked == chain
        else:
            with pytest.raises(Failed, match=f"leads from https? to '{chain[-1]}'"):
                connection.page(url)
            assert asked == chain[:-1]


INDEXES = {
    '<a href="20211101/">20211101/</a>': ["20211101"],
    "<a href='20211101'>x</a><A HREF=20211001/ >": ["20211001", "20211101"],
    '<a href="/enwiki/20211101/">': ["20211101"],
    '<a href="https://x/enwiki/20211101/?C=M">': [],
    '<a href="20211301/"><a href="00000000/"><a href="2021110/"><a href="202111010/">': [],
    '20211101 <a href="latest/">20211101</a>': [],
    '<a href="20211101/"><a href="20211101/">': ["20211101"],
    '<a href="２０２１1101/">': [],
}


@pytest.mark.parametrize("index", INDEXES)
def test_dates_of_an_index(index: str) -> None:
    assert _dates(index) == INDEXES[index]


PAIRS = {
    "": [],
    "20211101": [],
    "20211101 20211201": [("20211101", "20211201")],
    "20211201 20220101 20220201": [("20220101", "20220201"), ("20211201", "20220101")],
    "20211101 20211120 20220101": [],
    "20210101 20220201": [],
}


@pytest.mark.parametrize("dates", PAIRS)
def test_firsts_of_months_in_a_row(dates: str) -> None:
    assert consecutive_firsts(dates.split()) == PAIRS[dates]


AFTER = {
    None: None,
    "": None,
    "soon": None,
    "-5": None,
    "1.5": None,
    "²": None,
    "0": 0,
    "120": 120,
    " 7 ": 7,
    "Wed, 01 Dec 2021 12:00:30 GMT": 30,
    "Wed, 01 Dec 2021 11:00:00 GMT": 0,
    "Wednesday, 01-Dec-21 12:00:30 GMT": 30,
    "Wed, 01 Dec 2021 12:00:30 -0000": 30,
    "Wed, 01 Dec 99999 12:00:30 GMT": None,
}


@pytest.mark.parametrize("header", AFTER)
def test_retry_after(header: str | None) -> None:
    assert retry_after(header, NOW) == AFTER[header]


@given(header=st.text())
def test_retry_after_of_anything(header: str) -> None:
    seconds = retry_after(header, NOW)
    assert seconds is None or seconds >= 0
