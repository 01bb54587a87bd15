"""The index of an older corpus: passages, search, files and reuse."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.corpus_index import LONGEST, VERSION, CorpusIndex, _passages, build_index

MAYOR = "The mayor of Easton is Anna Weber. She was elected in 1961."
RIVER = "The river Lenn flows through Easton and Weston."
MARKET = "Weston has a market on Mondays."


def records(path: Path, *texts: str, **more: str) -> Path:
    path.write_text("".join(json.dumps({"text": text, **more}) + "\n" for text in texts), "utf-8")
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> CorpusIndex:
    folder = tmp_path_factory.mktemp("articles")
    corpus = folder / "corpus.jsonl"
    lines = [
        {"text": text, "title": title, "url": f"https://past.example/{title}"} for title, text in ARTICLES.items()
    ]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return build_index([corpus], folder / "indexes")


ARTICLES = {"Easton": MAYOR, "Lenn": RIVER, "Weston": MARKET, "Émile": "Émile Zöld leased two houses. </script> [X]"}

# question, answer, the first passage, and whether it has the answer
FINDS = {
    "by the question": ("Who is the mayor of Easton?", "Bo Lind", "Easton#0", False),
    "and the answer is there": ("Who is the mayor of Easton?", "anna  WEBER", "Easton#0", True),
    "other endings": ("Who was leasing a house?", "Émile Zöld", "Émile#0", True),
    "other accents": ("What did Emile lease?", "two house", "Émile#0", True),
    "by the title": ("What is in Weston on Monday?", "market", "Weston#0", True),
    "an answer in pieces does not count": ("Who is the mayor of Easton?", "Weber Anna", "Easton#0", False),
    "quotes and operators are words": ('"mayor" NOT (title: NEAR* ^', "{Anna Weber}", "Easton#0", True),
    "an answer of signs": ("Who is the mayor of Easton?", '"*"', "Easton#0", False),
}


@pytest.mark.parametrize(("question", "answer", "first", "has_answer"), FINDS.values(), ids=FINDS)
def test_finds(index: CorpusIndex, question: str, answer: str, first: str, has_answer: bool) -> None:
    found = index.search(question, answer)
    assert (found[0].id, found[0].has_answer) == (f"https://past.example/{first}", has_answer)
    assert found[0].text == ARTICLES[found[0].title]
    scores = [passage.score for passage in found]
    assert scores == sorted(scores, reverse=True)


def test_only_english_words_lose_their_endings(tmp_path: Path) -> None:
    corpus = records(tmp_path / "c.jsonl", "Émile leased two houses.", "Nobody came.")
    english, german = (build_index([corpus], tmp_path / "x", language) for language in ("en", "de"))
    assert english.path != german.path
    assert len(english.search("leasing", "")) == 1
    assert german.search("leasing", "") == []
    assert [passage.has_answer for passage in german.search("leased", "emile")] == [True]


def test_one_more_passage_with_the_answer_is_found_behind_the_nearest(tmp_path: Path) -> None:
    nearer = [f"The mayor of Easton, the mayor of Easton said on day {n}." for n in range(20)]
    corpus = records(
        tmp_path / "c.jsonl", *nearer, "Once, Bo Lind became mayor; long after that he left " + "it all " * 40
    )
    found = build_index([corpus], tmp_path).search("Who is the mayor of Easton?", "Bo Lind", 3)
    assert [passage.has_answer for passage in found] == [False, False, False, True]
    assert found[-1].text.startswith("Once, Bo Lind")


def test_no_passage_follows_if_one_of_the_nearest_has_the_answer(tmp_path: Path) -> None:
    nearest, often = "Mayor and mayor and mayor and Bo Lind.", "Bo Lind, Bo Lind, Bo Lind, mayor."
    others = ["A town has a mayor."] * 28 + ["Trees grow."] * 299
    index = build_index([records(tmp_path / "c.jsonl", nearest, often, *others)], tmp_path)
    assert [passage.text for passage in index.search("Who is mayor?", "Bo Lind", 1)] == [nearest]


def test_what_no_passage_has_finds_nothing(index: CorpusIndex) -> None:
    assert index.search("Quo vadis, domine?", "Anna Weber") == []
    assert index.search("", "Anna Weber") == index.search("?!", "") == []


def test_the_score_is_that_of_bm25(tmp_path: Path) -> None:
    """By hand: N = 4 passages of 1, 1, 1 and 3 words; "kiwi" in one of 3 words, once; k1 = 1.2, b = 0.75."""
    texts = ["plum", "fig", "date", "kiwi plum plum"]
    (found,) = build_index([records(tmp_path / "c.jsonl", *texts)], tmp_path).search("kiwi?", "")
    # log((4 - 1 + .5) / (1 + .5)) * (1 * 2.2) / (1 + 1.2 * (.25 + .75 * 3 / 1.5))
    assert found.score == pytest.approx(0.8472979 * 2.2 / (1 + 1.2 * 1.75), abs=1e-4)


@settings(max_examples=30)
@given(st.text(max_size=60) | st.text('"()*^:{}-+ANDORTX. \0', max_size=40), st.text(max_size=30))
def test_whatever_is_asked_is_words(index: CorpusIndex, question: str, answer: str) -> None:
    for passage in index.search(question, answer):
        assert passage.title in ARTICLES


# Passages

WORDS = st.sampled_from(
    ["one", "Two", "3.", "four.", "U.S.", "six?", "“seven”", "\n", "\n\n", "e" * 30, "x" * 3000, "你好。"]
)


@settings(max_examples=60)
@given(st.lists(WORDS, max_size=900).map(" ".join))
def test_passages_are_the_whole_text_in_order_and_none_is_long(text: str) -> None:
    found = list(_passages(text))
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(0 < len(passage.split()) <= LONGEST for passage in found)


def test_a_passage_ends_with_a_sentence_near_100_words() -> None:
    sentence = "This sentence is made of exactly ten plain English words."
    found = list(_passages(" ".join([sentence] * 25)))
    assert [len(passage.split()) for passage in found] == [100, 100, 50]


@pytest.mark.parametrize(("words", "passages"), [(30, [120, 120, 60]), (45, [90, 90, 90, 90, 90])])
def test_a_passage_takes_another_sentence_while_it_has_at_most_120_words(words: int, passages: list[int]) -> None:
    sentence = f"Here {'and there ' * 30}".split()[: words - 1]
    found = list(_passages(" ".join([*sentence, "now."] * 10)))
    assert [len(passage.split()) for passage in found][: len(passages)] == passages


# Files


def parquet(path: Path, text: str) -> Path:
    target = path / "c.parquet"
    pq.write_table(pa.table({"id": [7], "text": [text], "title": ["c"], "other": [1]}), target)
    return target


def gzipped(path: Path, name: str, content: bytes) -> Path:
    (path / name).write_bytes(gzip.compress(content))
    return path / name


FORMATS: dict[str, Callable[[Path, str], Path]] = {
    "parquet": parquet,
    "jsonl": lambda path, text: records(path / "c.jsonl", text, title="c", timestamp="2019-04-25T12:57:54Z"),
    "C4": lambda path, text: gzipped(path, "c.json.gz", json.dumps({"text": text, "title": "c"}).encode() + b"\n"),
    "jsonl.gz": lambda path, text: gzipped(path, "c.jsonl.gz", json.dumps({"text": text, "title": "c"}).encode()),
}


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
def test_formats(tmp_path: Path, write: Callable[[Path, str], Path]) -> None:
    text = f'{MAYOR}\n\n{RIVER}\n🙂 "=cmd()" | </script> <extra_id_0>'
    index = build_index([write(tmp_path, text)], tmp_path / "x")
    (found,) = index.search("mayor", "=cmd()")
    assert (found.title, found.text, found.has_answer) == ("c", " ".join(text.split()), True)


def test_a_file_keeps_its_name_where_it_is_a_link(tmp_path: Path) -> None:
    """So the Hub's cache can be read, whose files have hashes for names."""
    (tmp_path / "blobs").mkdir()
    parquet(tmp_path, MAYOR).rename(tmp_path / "blobs" / "0123")
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "c.parquet").symlink_to(tmp_path / "blobs" / "0123")
    assert texts(build_index([tmp_path / "snapshot"], tmp_path / "x")) == [MAYOR]


def test_documents_without_text_are_counted(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"text": ""}\n\n{"text": null}\n{"text": " \\u0000"}\n{"text": "Anna \\u0000 Weber"}\n')
    about = build_index([corpus], tmp_path).about
    assert (about["documents"], about["dropped"], about["passages"]) == (4, {"no text": 3}, 1)


def test_a_dataset_folder_is_its_one_whole_snapshot(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    for config, text in {"diffset-20190101-20190201": RIVER, "wikipedia-20190201": MAYOR}.items():
        (tmp_path / "data" / config).mkdir(parents=True)
        pq.write_table(pa.table({"text": [text]}), tmp_path / "data" / config / "train-00000-of-00001.parquet")
    assert texts(build_index([tmp_path], tmp_path / "x")) == [MAYOR]
    (tmp_path / "data" / "wikipedia-20190201").rename(tmp_path / "data" / "unchanged-20190101-20190201")
    assert texts(build_index([tmp_path], tmp_path / "y")) == [MAYOR]


def texts(index: CorpusIndex) -> list[str]:
    """Return the passages that share a word with one of the texts."""
    return [passage.text for passage in index.search("mayor river market", "nobody")]


def bytes_in(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def folder_of(*names: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        for name in names:
            (folder / "d" / name).mkdir(parents=True)
        return folder / "d"

    return make


def without_text(folder: Path) -> Path:
    pq.write_table(pa.table({"article": ["x"]}), folder / "c.parquet")
    return folder / "c.parquet"


ERRORS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing": (lambda folder: folder / "none", "no such file or folder"),
    "another kind of file": (bytes_in("c.pdf", b"x"), r"c\.pdf: not a file of a corpus \(\.parquet, \.jsonl"),
    "no corpus in a folder": (folder_of("a"), r"d: no files of a corpus \("),
    "no text at all": (bytes_in("c.jsonl", b'{"text": " "}\n'), r"c\.jsonl: no text in this corpus"),
    "no record": (
        bytes_in("c.jsonl", b'{"text": "a"}\n["text"]\n'),
        r"c\.jsonl: line 2: .*array.*; each line must be a record with a text",
    ),
    "a record without text": (bytes_in("c.jsonl", b'{"body": "a"}\n'), r"line 1: .*missing required field `text`"),
    "cut off": (bytes_in("c.jsonl.gz", gzip.compress(b'{"text": "a"}\n')[:-9]), r"c\.jsonl\.gz: damaged or cut off"),
    "no Parquet": (bytes_in("c.parquet", b"PAR1"), r"c\.parquet: not a Parquet file"),
    "another column": (without_text, r"needs a text column named 'text'; its columns are article"),
    "two snapshots": (folder_of("manifests", "data/wikipedia-1", "data/wikipedia-2"), "give the folder of one"),
    "no snapshot": (folder_of("manifests", "data/probes-1"), r"has no config wikipedia-\* or unchanged-\*;"),
}


@pytest.mark.parametrize(("make", "says"), ERRORS.values(), ids=ERRORS)
def test_errors_name_the_place_and_leave_nothing(tmp_path: Path, make: Callable[[Path], Path], says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        build_index([make(tmp_path)], tmp_path / "x")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "x").exists() or not list((tmp_path / "x").iterdir())


# Reuse


def test_an_index_is_kept_by_the_content_of_its_files(tmp_path: Path) -> None:
    one, other = records(tmp_path / "a.jsonl", MAYOR), records(tmp_path / "b.jsonl", RIVER)
    first = build_index([one, other], tmp_path / "x")
    made = first.path.stat().st_mtime_ns
    again = build_index([other, one, other], tmp_path / "x")
    assert (again.path, again.path.stat().st_mtime_ns) == (first.path, made)
    records(one, MARKET)
    assert build_index([one, other], tmp_path / "x").path != first.path
    assert [file["file"] for file in first.about["inputs"]] == ["a.jsonl", "b.jsonl"]
    assert first.about["version"] == VERSION


def test_what_is_no_index_or_damaged_is_said(tmp_path: Path) -> None:
    for content in (b"", b"no database at all, but long enough to look like one" * 100):
        (tmp_path / "past.sqlite").write_bytes(content)
        with pytest.raises(InputError, match="not an index of a corpus"):
            CorpusIndex(tmp_path / "past.sqlite")
    corpus = records(tmp_path / "c.jsonl", *(f"The mayor of Easton said {n} words." for n in range(3000)))
    path = build_index([corpus], tmp_path).path
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    with pytest.raises(InputError, match=r"past-.*\.sqlite: not an index of a corpus, or damaged .*; remove it"):
        CorpusIndex(path).search("Who is the mayor of Easton?", "Bo Lind")
    path.write_bytes(whole[:-8192] + b"\xff" * 8192)
    with pytest.raises(InputError, match="remove it to build it again"):
        for n in range(3000):
            CorpusIndex(path).search(f"Who said {n} words?", "Bo Lind")


def test_what_a_killed_run_left_is_taken_away(tmp_path: Path) -> None:
    corpus = records(tmp_path / "c.jsonl", MAYOR)
    first = build_index([corpus], tmp_path / "x").path
    first.unlink()
    left = first.with_name(f".{first.name}.4711.part")
    left.write_bytes(b"half of it")
    assert build_index([corpus], tmp_path / "x").path == first
    assert list((tmp_path / "x").iterdir()) == [first]


def test_words_that_stand_everywhere_are_asked_for_only_where_there_are_no_others(tmp_path: Path) -> None:
    corpus = records(tmp_path / "c.jsonl", *(f"A town number {n}." for n in range(1, 31)))
    index = build_index([corpus], tmp_path)
    assert [passage.text for passage in index.search("Which town has number 7?", "")] == ["A town number 7."]
    assert len(index.search("Which town?", "", 4)) == 4


def test_of_frequent_words_the_rarest_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kiwi, fig, plum, date and pear stand in 1 to 5 of 60 passages: three count always, all within 15 postings."""
    words = ["kiwi", "fig", "plum", "date", "pear"]
    texts = [f"{word} {n}" for n, word in enumerate(w for times, w in enumerate(words, 1) for _ in range(times))]
    index = build_index([records(tmp_path / "c.jsonl", *texts, *["none"] * 45)], tmp_path)
    for postings, found in {15: 15, 14: 10, 9: 6, 1: 6}.items():
        monkeypatch.setattr("temporalwiki.builders.ckl.corpus_index._POSTINGS", postings)
        assert len(index.search("pear plum kiwi date fig", "", 99)) == found
