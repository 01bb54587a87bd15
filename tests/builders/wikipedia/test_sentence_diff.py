"""Algorithm 1: by hand, against the slow reference, and as a stage over two dumps."""

import functools
import random
import shutil
from hashlib import md5, sha1
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from temporalwiki.builders.parquet import ParquetWriter, read_rows
from temporalwiki.builders.snapshot import Dump, wikipedia_dump
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikipedia import extract, sentence_diff
from temporalwiki.builders.wikipedia.novelty import folded_key
from temporalwiki.builders.wikipedia.sentence_diff import Articles, ArticleVersions, new_sentences
from temporalwiki.builders.wikipedia.sentences import article_sentences, sentence_key, split_sentences

import reference
from a_folder import contents
from a_stage import run_tasks
from tiny_dumps import FOOTER, articles_file, header, multistream, page, write_bz2

BEFORE = [["A one.", "A two."], ["B one.", "B two."]]
CASES = {
    "nothing changed": (BEFORE, []),
    "a new paragraph comes whole": ([*BEFORE, ["C one.", "C two."]], [["C one.", "C two."]]),
    "a new sentence in a known paragraph": ([["A one.", "A new.", "A two."], BEFORE[1]], [["A new."]]),
    "a moved sentence": ([["B one.", "A one."], ["A two.", "B two."]], []),
    "swapped paragraphs": ([BEFORE[1], BEFORE[0]], []),
    "an edit in the first and last paragraph": ([["A 1.", "A two."], ["B one.", "B 2."]], [["A 1."], ["B 2."]]),
    "a full rewrite": ([["X.", "Y."], ["Z."]], [["X.", "Y."], ["Z."]]),
    "the rest of a list item stays on a line of its own": (
        [["First.", "\nB one.", "Second.", "\nB two.", "\nThird."]],
        [["First.", "\nSecond.", "\nThird."]],
    ),
    "the first new sentence within an item": ([["A one.", "\nA two.", "New of it."]], [["New of it."]]),
    "a blank or a line around a known sentence stays": (
        [["N.", "A one.", "\x1fM."], ["N.", "\nA one.", "\x1fM."]],
        [["N.", "M."], ["N.", "\nM."]],
    ),
    "no blank around it": ([["北。", "\x1fA one.", "\x1f南。"]], [["北。", "\x1f南。"]]),
    "the first new sentence has no mark": ([["A one.", "\x1fN."], ["A two.", "\nM."]], [["N."], ["M."]]),
    "a known sentence that is glued now": ([["A one.", "\x1fB one."]], []),
    "other white space": ([["A  one.", "\nA two."], ["B\u00a0one.", "B two."]], []),
    "another Unicode form": ([["Caf\u0065\u0301."]], [["Caf\u0065\u0301."]]),
    "another case is another sentence": ([["a one."]], [["a one."]]),
    "all deleted": ([], []),
    "a deletion": ([["A one."]], []),
    "said twice is new twice": ([["N.", "N."], ["N."]], [["N.", "N."], ["N."]]),
}


@pytest.mark.parametrize("case", CASES)
def test_algorithm_1(case: str) -> None:
    recent, expected = CASES[case]
    assert new_sentences(BEFORE, recent) == expected


SENTENCES = st.sampled_from(
    ["a.", "b.", "c.", "d.", " a. ", "\nb.", "\nf.", "\x1fa.", "\x1fg.", "e\u0301.", "\u00e9."]
)
ARTICLE = st.lists(st.lists(SENTENCES, min_size=1, max_size=4), max_size=5)


def folded(paragraphs: list[list[str]]) -> list[list[str]]:
    return [[sentence_key(sentence) for sentence in paragraph] for paragraph in paragraphs]


@given(ARTICLE, ARTICLE)
def test_it_agrees_with_the_reference_both_ways(prev: list[list[str]], recent: list[list[str]]) -> None:
    """All but the line breaks of lists, which the reference does not know."""
    assert folded(new_sentences(prev, recent)) == folded(reference.diff_article(prev, recent))
    assert folded(new_sentences(recent, prev)) == folded(reference.deleted_sentences(prev, recent))


OTHER_TYPOGRAPHY = {
    "in a paragraph that changed": (["A one. The U.S. won."], ["A one. The US won."], [], 0, 3),
    "in another paragraph": (["A one.", "It – was."], ["A one. It — was. New."], [["New."]], 1, 3),
    "of a paragraph in both": (["It was 10 km."], ["It was 10 km.", "It was 10km."], [], 0, 3),
    "a sentence that moved is not counted": (["A one.", "B two."], ["B two. A one."], [], 0, 0),
    "and a sentence in both forms": (["It is. It is!"], ["It is. It is?"], [], 0, 2),
    "a number": (["It is 1.5 m."], ["It is 15 m."], [["It is 15 m."]], 4, 0),
}


@pytest.mark.parametrize("case", OTHER_TYPOGRAPHY)
def test_other_typography_is_new_only_in_the_exact_comparison(case: str) -> None:
    prev, recent, expected, words, of_other_typography = OTHER_TYPOGRAPHY[case]
    folded = ArticleVersions(prev, recent, "en", "folded")
    assert folded.added() == expected
    assert folded.words_of_other_typography(expected) == of_other_typography
    exact = ArticleVersions(prev, recent, "en", "exact")
    added = [sentence for paragraph in exact.added() for sentence in paragraph]
    assert sum(len(sentence.split()) for sentence in added) == words + of_other_typography
    assert exact.words_of_other_typography(exact.added()) == 0


WON = "In 2019 he won it."
REWORDED = {
    "one word of a sentence": (["He was a tall man."], ["He was a small man."], 5, 5),
    "another sentence": (["He was a tall man."], ["Nobody knows why 3."], 0, 0),
    "alike to a sentence that stays, in a paragraph of both": ([WON, "Old."], [WON, "In 2020 he won it. Old."], 5, 0),
    "alike to a sentence that stays, in a paragraph that changed": ([WON], [f"{WON} In 2020 he won it."], 5, 0),
    "a new line of a list": (["a\nThe first one."], ["a\nThe first ones."], 3, 3),
    "no article before": ([], ["He was a tall man."], 0, 0),
}


@pytest.mark.parametrize("case", REWORDED)
def test_sentences_that_are_alike_are_reworded(case: str) -> None:
    prev, recent, reworded, reworded_before = REWORDED[case]
    versions = ArticleVersions(prev, recent, "en", "folded")
    assert versions.reworded(versions.added(), versions.removed()) == (reworded, reworded_before)


@given(ARTICLE, ARTICLE)
def test_what_is_new_and_what_is_not_make_up_the_article(prev: list[list[str]], recent: list[list[str]]) -> None:
    fresh = new_sentences(prev, recent)
    rest = new_sentences(fresh, recent)
    assert sorted(s for p in folded(fresh + rest) for s in p) == sorted(s for p in folded(recent) for s in p)
    assert new_sentences(recent, recent) == []


PARTS = ["He is.", "He is!", "He was.", "1.5 m", "15 m", "A b", "c.", "(D.)", "é f.", "So.²", "² So", 'said "']
PARTS += ["is) etc. He", "好。你 b"]
WORDS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4)
TEXTS = st.lists(st.builds(str.join, st.sampled_from([" ", "\n"]), WORDS), max_size=6)


@settings(max_examples=300)
@given(TEXTS, TEXTS)
def test_paragraphs_of_both_versions_need_not_be_split(prev: list[str], recent: list[str]) -> None:
    before, after = ([split_sentences(text, "en") for text in texts] for texts in (prev, recent))
    versions = ArticleVersions(prev, recent, "en", "exact")
    assert versions.added() == new_sentences(before, after)
    assert versions.removed() == new_sentences(after, before)


@settings(max_examples=200)
@given(TEXTS, TEXTS)
def test_words_and_comparisons_agree_with_the_reference(prev: list[str], recent: list[str]) -> None:
    before, after = ([split_sentences(text, "en") for text in texts] for texts in (prev, recent))
    for compare, same in (("folded", reference.folded), ("exact", reference.comparable)):
        versions = ArticleVersions(prev, recent, "en", compare)
        added, removed = versions.added(), versions.removed()
        assert folded(added) == folded(reference.diff_article(before, after, same))
        assert folded(removed) == folded(reference.deleted_sentences(before, after, same))
        expected = tuple(reference.words_new_and_reworded(*sides)[1] for sides in ((added, before), (removed, after)))
        assert versions.reworded(added, removed) == expected


def test_a_paragraph_that_did_not_change_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sentence_diff, "split_sentences", lambda text, _: asked.append(text) or [text])
    versions = ArticleVersions(["Same.", "Old.", "Same, too."], ["Same.", "New.", "Same, too."], "en", "exact")
    assert (versions.added(), versions.removed()) == ([["New."]], [["Old."]])
    assert asked == ["Old.", "New."]


def extracted(folder: Path, path: Path) -> Path:
    """Run stage wiki-extract over one file."""
    run_tasks(extract.run, extract.plan(Dump("x", (path,)), "enwiki", False), folder)
    return folder


def run_both(
    tmp_path: Path, prev: list[str], recent: list[str], per_stream: int = 2, **options: object
) -> tuple[dict[str, dict[int, dict[str, object]]], Report]:
    """Extract and diff two dumps; rows by table and page id, and the report."""
    folders = [
        extracted(tmp_path / f"extract-{date}", multistream(articles_file(tmp_path, date), pages, per_stream))
        for date, pages in (("20211101", prev), ("20211201", recent))
    ]
    settings_ = {"seed": 0, "unchanged_pages": 10_000, "whole": True} | options
    tasks = sentence_diff.plan(*folders, "en", {}, **settings_)  # type: ignore[arg-type]
    reports = run_tasks(sentence_diff.run, tasks, tmp_path / "diff")
    tables = {
        table: {row["page_id"]: row for row in read_rows(sorted((tmp_path / "diff").glob(f"{table}-*.parquet")))}
        for table in ("diffset", "deletions", "unchanged", "wikipedia")
    }
    assert len(reports) == 1
    return tables, reports[0]


@pytest.mark.fault(
    "pages that move and vanish",
    "a page is moved, undeleted, merged into another, deleted, or turned into a redirect or back",
    "each is correctly new, updated, unchanged or deleted; nothing is lost",
)
def test_every_article_is_accounted_for_by_kind_and_reason(tmp_path: Path) -> None:
    prev = [
        page(1, "Same", "Old text stays.", revision_id=11),
        page(2, "Null edit", "Old text stays.", revision_id=12),
        page(3, "Markup", "Old text '''stays'''.", revision_id=13),
        page(4, "Updated", "Old text stays. It is short.", revision_id=14),
        page(5, "Was a redirect", "#REDIRECT [[X]]", redirect=True, revision_id=15),
        page(6, "Draft:Moved", "Text.", ns=118, revision_id=16),
        page(7, "Shrinks", "Old text stays. It was longer.", revision_id=17),
        page(8, "Gone", "It was here. It went away.", revision_id=18),
        page(9, "Becomes a redirect", "It was an article.", revision_id=19),
        page(12, "Same revision", "Old text stays.", revision_id=31),
        page(20, "Largest", "Old text stays.", revision_id=30),
    ]
    recent = [
        page(1, "Same", "Old text stays.", revision_id=11),
        page(2, "Null edit", "Old text stays.", revision_id=112),
        page(3, "Markup", "Old text ''stays''.", revision_id=113),
        page(4, "Has moved", "Old text stays! It is {{very}} long.", revision_id=114, at="2021-11-20T10:00:00Z"),
        page(5, "Was a redirect", "An article now.", revision_id=115, parent=15),
        page(6, "Moved", "Text.", revision_id=116, parent=16),
        page(7, "Shrinks", "Old text stays.", revision_id=117),
        page(11, "Undeleted", "It is back.", revision_id=118, parent=17),
        page(9, "Becomes a redirect", "#REDIRECT [[X]]", redirect=True, revision_id=119),
        page(10, "Created with a low id", "Text of it.", revision_id=120),
        page(12, "Same revision", "Other text, which counts for nothing.", revision_id=31),
        page(20, "Largest", "Old text stays.", revision_id=30),
        page(21, "New", r"A new article. It {{was}} {{very}} old. <math>\x</math>", revision_id=121, parent=99),
        page(22, "No prose", "{{Infobox|a=b}}", revision_id=122),
        page(23, "Too deep", "{{" * 5_000 + "x" + "}}" * 5_000, revision_id=123),
    ]
    tables, report = run_both(tmp_path, prev, recent)
    kinds = {i: (row["kind"], row["previous_revision_id"]) for i, row in tables["diffset"].items()}
    updated = {4: 14, 5: 15, 6: 16, 11: None}
    assert kinds == {i: ("updated", before) for i, before in updated.items()} | dict.fromkeys((10, 21), ("new", None))
    assert tables["diffset"][4]["sentences"] == [["It is long."]]
    assert (tables["diffset"][4]["title"], tables["diffset"][4]["revision_id"]) == ("Has moved", 114)
    assert str(tables["diffset"][4]["timestamp"]) == "2021-11-20 10:00:00+00:00"
    gone = {i: (row["kind"], row["revision_id"], row["sentences"]) for i, row in tables["deletions"].items()}
    assert gone == {
        4: ("updated", 114, [["It is short."]]),
        7: ("updated", 117, [["It was longer."]]),
        8: ("deleted", None, [["It was here.", "It went away."]]),
        9: ("deleted", None, [["It was an article."]]),
    }
    pages = report["pages"]
    assert [pages[k] for k in ("read", "unchanged", "new", "updated")] == [14, 6, 2, 4]
    same = {"same_revision": 3, "same_wikitext": 1, "same_sentences": 1, "only_deletions": 1}
    assert pages["unchanged_because"] == same
    before = {"article_before": 1, "no_article_before": 2, "missing_in_prev": 1, "title_before": 0}
    assert pages["updated_because"] == before
    assert pages["dropped"] == {"no_prose": 1, "nested_too_deep": 1}
    words = {i: (row["words_new"], row["words_reworded"]) for i, row in tables["diffset"].items()}
    assert words == {4: (0, 3), 5: (3, 0), 6: (1, 0), 11: (3, 0), 10: (3, 0), 21: (5, 0)}
    words = {i: (row["words_new"], row["words_reworded"]) for i, row in tables["deletions"].items()}
    assert words == {4: (0, 3), 7: (3, 0), 8: (6, 0), 9: (4, 0)}
    words = {"words": 18, "words_new": 15, "words_reworded": 3, "words_of_other_typography": 3}
    assert report["diffset"] == {"paragraphs": 6, "sentences": 7, "sentences_without_formula": 1} | words
    assert report["templates"] == {"very": 2, "was": 1}
    assert report["prev_pages"] == {"prev_articles": 9, "in_both": 7, "deleted": 2, "dropped": {}}


def test_the_most_frequent_names_come_first() -> None:
    counts = {"b": 2, "a": 2, "c": 3, "d": 1}
    assert sentence_diff.most_frequent(counts, 3) == [("c", 3), ("a", 2), ("b", 2)]


def content_export(dumps: Path, date: str, pages: list[str], first_ids: list[int]) -> None:
    """The same pages as Wikimedia's content export has them: more fields, and one bz2 stream for each part."""
    iso = f"{date[:4]}-{date[4:6]}-{date[6:]}"
    folder = dumps / "other" / "mediawiki_content_current" / "enwiki" / iso / "xml" / "bzip2"
    ends = [*first_ids[1:], 100]
    ids = [int(body.partition("<id>")[2].partition("<")[0]) for body in pages]
    for first, end in zip(first_ids, ends, strict=True):
        part = [body for body, page_id in zip(pages, ids, strict=True) if first <= page_id < end]
        text = "".join(part).replace("<model>", "<origin>1</origin>\n      <model>")
        text = text.replace('" xml:space', '" sha1="0a" xml:space')
        text = text.replace("</text>", "</text>\n      <sha1>0a</sha1>")
        write_bz2(folder / f"enwiki-{iso}-p{first}p{end - 1}.xml.bz2", header("0.11") + text + FOOTER)


def test_both_sources_of_wikitext_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "RANGE", 300)
    prev = [
        *(page(i, f"T{i}", f"Text of {i}. It stays.", revision_id=i) for i in range(1, 20)),
        page(20, "Talk:A", "It is a talk page.", ns=1, revision_id=20),
        page(21, "Draft:B", "A draft.", ns=118, revision_id=21),
        page(22, "Goes", "#REDIRECT [[T1]]", redirect=True, revision_id=22),
    ]
    recent = [
        *(page(i, f"T{i}", f'Text of {i}. It is "new" & <b>bold</b>.', revision_id=100 + i) for i in range(1, 8)),
        *prev[7:20],
        page(21, "B", "A draft. It is an article now.", revision_id=121, parent=21),
        page(23, "Goes", "It was deleted and written again.", revision_id=123),
        page(24, "New", "It is new.", revision_id=124),
    ]
    made: list[dict[str, bytes]] = []
    for source in ("articles", "export"):
        dumps, folders = tmp_path / source / "dumps", [tmp_path / source / date for date in ("20211101", "20211201")]
        for folder, pages in zip(folders, (prev, recent), strict=True):
            date = folder.name
            if source == "articles":
                multistream(articles_file(dumps, date), pages, 3, version="0.10")
            else:
                content_export(dumps, date, pages, [1, 8, 15])
            dump = wikipedia_dump(dumps, "enwiki", date)
            tasks = extract.plan(dump, "enwiki", False)
            assert len(tasks) == (3 if source == "export" else len(tasks)) > 1
            run_tasks(extract.run, tasks, folder)
        diff_tasks = sentence_diff.plan(folders[0], folders[1], "en", {}, 0, 5, True)
        run_tasks(sentence_diff.run, diff_tasks, tmp_path / source / "diff")
        made.append(contents(tmp_path / source / "diff", "*.parquet"))
    assert made[0] == made[1]
    rows = read_rows([tmp_path / "export" / "diff" / "diffset-00000.parquet"])
    kinds = {row["page_id"]: (row["kind"], row["previous_revision_id"]) for row in rows}
    assert kinds == {i: ("updated", i) for i in (*range(1, 8), 21)} | {23: ("updated", None), 24: ("new", None)}


REDIRECT, T = page(5, "T", "#REDIRECT [[X]]", redirect=True), page(9, "T", "Text.")
LATER = page(9, "T", "Text.", revision_id=4)
OLD_TITLES = {
    "a new id and title": ([page(5, "Old", "Old text.")], page(9, "New", "Text."), ("new", None)),
    "another page's old title": ([page(5, "T", "Old text.")], T, ("updated", None)),
    "a redirect's old title": ([REDIRECT], page(9, "T", "Text.", parent=8), ("updated", None)),
    "a title of another namespace": ([page(5, "T", "Old text.", ns=1)], T, ("new", None)),
    "another title in another case": ([page(5, "t", "Old text.")], T, ("new", None)),
    "an old id and title": ([page(5, "T", "Old."), page(9, "U", "Other.", revision_id=3)], LATER, ("updated", 3)),
    "a draft before": ([REDIRECT, page(9, "Draft:T", "Text.", ns=118, revision_id=3)], LATER, ("updated", 3)),
    "missing in prev": ([page(50, "Old", "Old text.")], page(9, "T", "Text.", parent=2), ("updated", None)),
    "a low id without a parent": ([page(50, "Old", "Old text.")], T, ("new", None)),
    "a parent, but a high id": ([page(5, "Old", "Old text.")], page(9, "T", "Text.", parent=2), ("new", None)),
}


@pytest.mark.parametrize("case", OLD_TITLES)
def test_an_article_is_new_only_with_a_new_id_and_title(tmp_path: Path, case: str) -> None:
    prev, recent, expected = OLD_TITLES[case]
    tables, report = run_both(tmp_path, prev, [recent])
    row = tables["diffset"][9]
    assert (row["kind"], row["previous_revision_id"]) == expected
    assert row["sentences"] == [["Text."]]
    assert sum(report["pages"]["updated_because"].values()) == report["pages"]["updated"]


def test_whole_and_unchanged_text_are_written_where_wanted(tmp_path: Path) -> None:
    prev = [page(1, "Same", "Old text.", revision_id=1), page(2, "Grows", "Old text.", revision_id=2)]
    recent = [page(1, "Same", "Old text.", revision_id=1), page(2, "Grows", "Old text. New text.", revision_id=3)]
    tables, _ = run_both(tmp_path, prev, recent)
    assert {i: row["text"] for i, row in tables["wikipedia"].items()} == {1: "Old text.", 2: "Old text. New text."}
    assert {i: row["text"] for i, row in tables["unchanged"].items()} == {1: "Old text.", 2: "Old text."}
    tables, _ = run_both(tmp_path / "none", prev, recent, whole=False, unchanged_pages=0)
    assert tables["wikipedia"] == tables["unchanged"] == {}


def test_a_dump_out_of_order_or_with_a_page_twice_gives_each_page_once(tmp_path: Path) -> None:
    recent = [
        page(9, "Nine", "Nine is new.", revision_id=9),
        page(3, "Three", "Three is older.", revision_id=3),
        page(3, "Three", "Three is newest.", revision_id=4),
        page(1, "One", "One is new.", revision_id=1),
    ]
    tables, report = run_both(tmp_path, [page(2, "Two", "Two.", revision_id=2)], recent)
    found = {i: row["sentences"] for i, row in tables["diffset"].items()}
    assert found == {1: [["One is new."]], 3: [["Three is newest."]], 9: [["Nine is new."]]}
    assert report["pages"]["duplicates"] == 1


FILES = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12).map(sorted), min_size=1, max_size=4)


@settings(max_examples=40)
@given(FILES, st.integers(1, 4), st.randoms(use_true_random=False))
@example([[1, 2], [3, 4], [5]], 2, random.Random(1))
@example([[3, 4], [5], [1, 2]], 1, random.Random(1))
@example([[1, 9], [2, 5], [6, 7]], 4, random.Random(1))
@example([[1, 5], [2, 6], [3, 7], [8]], 1, random.Random(1))
@example([[1], [1, 1], [2]], 1, random.Random(1))
def test_articles_come_by_page_id_once_each(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], rows: int, chance: random.Random
) -> None:
    """For any files and row groups, and in any order of access."""
    folder = tmp_path_factory.mktemp("articles")
    revisions = iter(chance.sample(range(1000), sum(map(len, files))))
    newest: dict[int, int] = {}
    for number, ids in enumerate(files):
        with ParquetWriter(folder / f"articles-{number}.parquet", extract.ARTICLES, rows=rows) as out:
            for page_id, revision in sorted((page_id, next(revisions)) for page_id in ids):
                text = f"Page {page_id}, {revision}.".encode()
                row = {"page_id": page_id, "revision_id": revision, "title": f"T{revision}", "size": len(text)}
                out.write(row | {"sha1": sha1(text).digest(), "packed": extract.pack(text)})
                newest[page_id] = max(newest.get(page_id, 0), revision)
    for first, end in ((0, 100), (2, 6), (20, 41), (50, 60)):
        wanted = [(page_id, newest[page_id]) for page_id in sorted(newest) if first <= page_id < end]
        articles = Articles(folder, first, end)
        assert list(zip(articles.page_ids, articles.revision_ids, strict=True)) == wanted
        assert articles.duplicates == sum(first <= page_id < end for ids in files for page_id in ids) - len(wanted)
        texts = [(page_id, f"T{revision}", f"Page {page_id}, {revision}.") for page_id, revision in wanted]
        assert [(a.page_id, a["title"], a.wikitext) for a in Articles(folder, first, end)] == texts
        for page_id in range(45):
            article = articles.find(page_id)
            there = (page_id, newest.get(page_id))
            assert (article and (article.page_id, article.revision_id)) == (there if there in wanted else None)
        for at in chance.sample(range(len(wanted)), len(wanted)):
            assert (articles[at].page_id, articles[at]["title"], articles[at].wikitext) == texts[at]
            assert articles.sha1s[at].tobytes() == sha1(texts[at][2].encode()).digest()
    shutil.rmtree(folder)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.floats(0, 1))
@example(7, 1 - 2**-53)
def test_a_seeded_sample_has_its_share_and_depends_on_the_thing_alone(seed: int, share: float) -> None:
    chosen = sentence_diff.sampled(share, seed, "page", range(400)).tolist()
    hashes = [md5(f"{seed} page {number}".encode()).digest()[:8] for number in range(400)]
    assert chosen == [int.from_bytes(number, "little") < share * 2**64 for number in hashes]
    assert abs(sum(chosen) / 400 - share) < 0.2
    assert sentence_diff.sampled(share, seed, "page", [7]).tolist() == [chosen[7]]
    assert not sentence_diff.sampled(0.0, seed, "page", range(50)).any()
    assert sentence_diff.sampled(1.0, seed, "page", range(50)).all()
    assert len(sentence_diff.sampled(share, seed, "page", [])) == 0


def test_the_real_pair_agrees_with_the_reference(shared_data: Path, tmp_path: Path) -> None:
    paths = {
        date: shared_data / f"dumps/enwiki/{date}/enwiki-{date}-pages-articles-multistream.xml.bz2"
        for date in ("20141106", "20160501")
    }
    folders = [extracted(tmp_path / date, path) for date, path in paths.items()]
    run_tasks(sentence_diff.run, sentence_diff.plan(*folders, "en", {}, 0, 10_000, False), tmp_path / "diff")
    prev, recent = (reference.read_articles(path) for path in paths.values())

    @functools.cache
    def split(wikitext: str) -> list[list[str]]:
        return article_sentences(wikitext, "en", {})

    same = functools.cache(folded_key)  # agrees with the slow reference.folded, as test_novelty.py shows
    for table, expected in (
        ("diffset", reference.diffset(prev, recent, split, same)),
        ("deletions", reference.deletions(prev, recent, split, same)),
    ):
        found = {row["page_id"]: row for row in read_rows(sorted((tmp_path / "diff").glob(f"{table}-*.parquet")))}
        assert found.keys() == expected.keys()
        for page_id, want in expected.items():
            row = found[page_id]
            names = ("kind", "revision_id", "previous_revision_id")
            assert [row[name] for name in names] == [getattr(want, name) for name in names]
            assert folded(row["sentences"]) == folded(want.paragraphs)
            if page_id % 30 == 0:
                words = reference.words_new_and_reworded(want.paragraphs, want.other)
                assert (row["words_new"], row["words_reworded"]) == words
