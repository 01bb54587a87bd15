"""Near duplicates: the first text is kept, and similar ones below the threshold are kept."""

import random
from pathlib import Path

from temporalwiki.builders.ckl.near_duplicates import near_duplicates

WORDS = [f"word{number}" for number in range(3000)]


def similarity(one: list[str], other: list[str]) -> float:
    """Return the Jaccard similarity of the sets of word 5-grams."""
    grams = [{tuple(words[at : at + 5]) for at in range(len(words) - 4)} for words in (one, other)]
    return len(grams[0] & grams[1]) / len(grams[0] | grams[1])


def changed(words: list[str], places: int, draw: random.Random) -> list[str]:
    """Return the words with some of them replaced, far from each other."""
    copy = list(words)
    for place in range(places):
        copy[place * len(words) // places + 5] = draw.choice(WORDS) + "x"
    return copy


def test_texts_well_above_the_threshold_are_found_and_those_well_below_are_not(tmp_path: Path) -> None:
    draw = random.Random(5)
    found: dict[int, list[bool]] = {places: [] for places in (1, 2, 12, 20)}
    expected = {1: (0.95, 1.0), 2: (0.92, 1.0), 12: (0.5, 0.72), 20: (0.3, 0.6)}
    with near_duplicates(tmp_path) as articles:
        for number in range(200):
            words = draw.choices(WORDS, k=300)
            assert articles.seen(f"{number}", " ".join(words)) is None
            for places, (least, most) in expected.items():
                other = changed(words, places, draw)
                assert least <= similarity(words, other) <= most
                found[places].append(articles.seen(f"{number} {places}", " ".join(other)) == "near duplicate")
    assert sum(found[1]) == 200
    assert sum(found[2]) >= 196
    assert not any(found[12] + found[20])


def test_what_is_the_same(tmp_path: Path) -> None:
    text = " ".join(WORDS[:30])
    with near_duplicates(tmp_path) as articles:
        assert articles.seen("a", text) is None
        assert articles.seen("a", "another text") == "same address"
        assert articles.seen("b", "  " + text.upper().replace(" ", ",\n") + "!") == "same text"
        assert articles.seen("b", text + " and one word more") == "near duplicate"
        assert articles.seen("b", "another text") is None  # duplicates are not remembered
        assert articles.seen("c", "another text") == "same text"
        # few words, no words, other scripts
        for url, words in (("d", "one"), ("e", ""), ("f", "один два"), ("g", "两 个"), ("h", "one two")):
            assert articles.seen(url, words) is None
    assert list(tmp_path.iterdir()) == []


def test_it_is_the_first_that_is_kept(tmp_path: Path) -> None:
    """In a chain of texts whose ends differ, each is compared with the kept ones."""
    chain = [WORDS[:200]]
    for link in range(1, 12):
        words = list(chain[-1])
        words[link * 16] = "other"
        chain.append(words)
    with near_duplicates(tmp_path) as articles:
        kept = [number for number, words in enumerate(chain) if articles.seen(str(number), " ".join(words)) is None]
    assert kept[0] == 0
    assert 1 < len(kept) < 6
    for one in kept:
        assert all(similarity(chain[one], chain[other]) < 0.88 for other in kept if other != one)


def test_a_killed_run_leaves_nothing_that_matters(tmp_path: Path) -> None:
    (tmp_path / "near-duplicates.sqlite").write_bytes(b"half a database")
    with near_duplicates(tmp_path) as articles:
        assert articles.seen("a", "text") is None
