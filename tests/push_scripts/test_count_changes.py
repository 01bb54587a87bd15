"""Large changes of counts: not between the paper's months, but after a builder's fault; small counts may vary."""

import copy
import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.manifests import BuiltManifest, BuiltWith, Dates, read_intervals
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world
from temporalwiki.push_scripts.count_changes import large_changes

Manifest = dict[str, Any]

# TemporalWiki's table 1 and table 2: articles and tokens of the diffsets, probes kept
PAPER = {
    "20210801-20210901": (306_400, 347_290_000, 6_935, 1_776),
    "20210901-20211001": (299_200, 347_960_000, 7_340, 1_982),
    "20211001-20211101": (301_100, 346_450_000, 7_313, 1_358),
    "20211101-20211201": (328_900, 376_090_000, 7_293, 1_951),
}


def month(
    interval: str = "20210801-20210901",
    articles: int = 306_400,
    words: int = 347_290_000,
    unchanged: int = 6_935,
    changed: int = 1_776,
) -> Manifest:
    """Return a manifest with the paper's numbers, and numbers of the same size for the other counts."""
    prev, recent = interval.split("-")
    dates = {"prev": prev, "recent": recent, "wikidata_prev": prev, "wikidata_recent": recent}
    options = {"seed": 0, "unchanged_fraction": 0.001, "compare": "exact", "caps": [0.01, 0.05, 0.05], "include": []}
    extracted = {"pages": {"read": 54_000_000, "articles": 6_300_000, "redirects": 9_900_000}}
    entities = {"entities": {"items": 94_000_000, "properties": 9_000}, "statements": {"facts": 700_000_000}}
    return {
        "interval": {"wiki": "enwiki", **dates},
        "options": options | {"allow_truncated": False},
        "configs": {},
        "counts": {
            "extracts": {
                "wiki-extract prev": copy.deepcopy(extracted),
                "wiki-extract recent": extracted,
                "wikidata-extract prev": copy.deepcopy(entities),
                "wikidata-extract recent": entities,
            },
            "diffset": {"articles": articles, "words": words, "sentences": words // 20},
            "pages": {"new": articles // 20, "updated": articles - articles // 20, "dropped": {"too long": 40}},
            "prev_pages": {"deleted": 9_000},
            "facts": {
                "unchanged": 690_000_000,
                "changed": {"new_subject": 3_000_000, "new_relation": 900_000, "new_object": 400_000},
                "deleted": {"ended": 2_000, "removed": 300_000, "replaced": 70_000},
            },
            "probes": {
                split: {"sampled": 40 * kept, "aligned": 2 * kept, "kept": kept}
                for split, kept in (("unchanged", unchanged), ("changed", changed), ("deleted", 400))
            },
        },
    }


def changes(now: Manifest, before: Manifest) -> list[str]:
    return large_changes(*(_typed(json.loads(json.dumps(content))) for content in (now, before)))


def _typed(content: Manifest) -> BuiltManifest:
    names = ("wiki", "prev", "recent", "wikidata_prev", "wikidata_recent")
    dates = Dates(**{name: content["interval"].get(name, "") for name in names})
    unused: Any = None
    options = BuiltWith(0, 0.001, "exact", None)
    return BuiltManifest(interval=dates, configs={}, inputs=[], options=options, counts=unused, content=content)


def place(manifest: Manifest, path: str) -> tuple[dict[str, Any], str]:
    at = manifest["counts"]
    *folders, last = path.split("/")
    for folder in folders:
        at = at[folder]
    return at, last


def multiply(manifest: Manifest, path: str, factor: float) -> None:
    at, last = place(manifest, path)
    found = at[last]
    at[last] = {key: int(n * factor) for key, n in found.items()} if isinstance(found, dict) else int(found * factor)


def put(manifest: Manifest, path: str, count: int) -> None:
    at, last = place(manifest, path)
    at[last] = {"one": count} if isinstance(at[last], dict) else count


def said(manifest: Manifest, before: Manifest) -> list[str]:
    """Return the names of the counts in the lines."""
    return [line.split(":")[0] for line in changes(manifest, before)]


@pytest.mark.parametrize(("now", "then"), list(itertools.permutations(PAPER, 2)))
def test_no_month_of_the_paper_jumps_against_another(now: str, then: str) -> None:
    assert changes(month(now, *PAPER[now]), month(then, *PAPER[then])) == []


@pytest.mark.parametrize("interval", PAPER)
@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("diffset/articles", "articles in the diffset"),
        ("diffset/words", "words in the diffset"),
        ("probes/unchanged/kept", "probes kept, unchanged"),
        ("probes/changed/kept", "probes kept, changed"),
    ],
)
def test_half_or_double_of_a_month_of_the_paper_is_a_jump(interval: str, factor: float, path: str, what: str) -> None:
    manifest = month(interval, *PAPER[interval])
    multiply(manifest, path, factor)
    assert said(manifest, month(interval, *PAPER[interval])) == [what]


# a fault -> the count that it changes, the factor, and the count that is reported
FAULTS: dict[str, tuple[str, float, str]] = {
    "part of a dump not read": ("extracts/wiki-extract prev/pages/read", 0.85, "pages read in the earlier dump"),
    "articles taken for redirects": ("extracts/wiki-extract recent/pages/articles", 0.8, "articles in the later dump"),
    "members of Wikidata not read": (
        "extracts/wikidata-extract recent/entities/items", 0.7, "items in the later Wikidata dump",
    ),
    "statements not read": (
        "extracts/wikidata-extract recent/statements/facts", 0.5, "facts in the later Wikidata dump",
    ),
    "every page looks new": ("pages/new", 18.0, "new articles"),
    "the parser gives up": ("pages/dropped", 30.0, "articles dropped"),
    "pages not found again": ("prev_pages/deleted", 40.0, "articles deleted"),
    "facts not found again": ("facts/changed", 100.0, "facts categorised as changed"),
    "facts of before lost": ("facts/deleted", 0.1, "facts categorised as deleted"),
    "no deleted fact is kept": ("probes/deleted/kept", 0.0, "probes kept, deleted"),
    "no texts to align with": ("probes/unchanged/aligned", 0.1, "share of unchanged facts that are aligned"),
    "any text aligns": ("probes/changed/aligned", 19.0, "share of changed facts that are aligned"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_said(fault: str) -> None:
    path, factor, what = FAULTS[fault]
    manifest = month()
    multiply(manifest, path, factor)
    assert said(manifest, month()) == [what]


@pytest.mark.parametrize(
    ("interval", "path", "factor", "line"),
    [
        (
            "20210901-20211002", "diffset/articles", 1_024 / 306_400,
            "articles in the diffset: 1,024 now, 306,400 in 20210801-20210901 (-99.7 %)",
        ),
        (  # 306,400 * 4 / 61 days = 20,092; 306,400 / 31 = 9,884
            "20210901-20211101", "diffset/articles", 4,
            "articles in the diffset: 1,225,600 now, 306,400 in 20210801-20210901 "
            "(+103.3 % a day, 61 days against 31)",
        ),
        (  # 355 of 71,040, of 3,552 before
            "20210801-20210901", "probes/changed/aligned", 0.1,
            "share of changed facts that are aligned: 0.50% now, 5.00% in 20210801-20210901 (-90.0 %)",
        ),
    ],
)  # fmt: skip
def test_a_line_names_both_counts_the_month_and_the_change(interval: str, path: str, factor: float, line: str) -> None:
    manifest = month(interval)
    multiply(manifest, path, factor)
    assert changes(manifest, month()) == [line]


HAPPENED = ("diffset/articles", "diffset/words", "pages/new", "pages/updated", "prev_pages/deleted", "facts/changed",
            "facts/deleted", "probes/changed/kept", "probes/deleted/kept", "pages/dropped", "probes/changed/sampled",
            "probes/changed/aligned", "probes/deleted/sampled", "probes/deleted/aligned")  # fmt: skip

# days of the interval, how many times as much happened as in 31 days, and whether it is a jump
LONGER = [
    ("20210901-20211001", 1.0, False),
    ("20210901-20211101", 2.0, False),  # two months: everything twice
    ("20210901-20211101", 1.4, False),  # what changed in both months counts once
    ("20210901-20211101", 1.0, False),
    ("20210901-20211101", 0.6, True),  # two months with less than one of them
    ("20210901-20211101", 4.0, True),
    ("20210901-20210908", 7 / 31, False),  # a week
    ("20210901-20210908", 0.45, False),  # even a week counts some changes only once
    ("20210901-20210908", 1.0, True),
    ("20210901-20210908", 0.1, True),
    ("20210901-20220901", 12.0, False),
    ("20210901-20220901", 5.0, False),
    ("20210901-20220901", 1.0, True),
]


@pytest.mark.parametrize(("interval", "factor", "jumped"), LONGER)
def test_what_happened_is_compared_per_day(interval: str, factor: float, jumped: bool) -> None:
    manifest = month(interval)
    for path in HAPPENED:
        multiply(manifest, path, factor)
    lines = changes(manifest, month())
    assert ("articles in the diffset" in {line.split(":")[0] for line in lines}) == jumped, lines
    assert bool(lines) == jumped, lines


def test_facts_are_compared_by_the_days_of_wikidata() -> None:
    """Wikidata's dumps are weekly: four or five weeks lie between two months."""
    manifest, before = month("20210901-20211001"), month("20210801-20210901")
    before["interval"] |= {"wikidata_prev": "20210802", "wikidata_recent": "20210830"}  # 28 days
    manifest["interval"] |= {"wikidata_prev": "20210830", "wikidata_recent": "20211004"}  # 35 days
    multiply(manifest, "facts/changed", 1.9)  # 1.52 a day
    assert changes(manifest, before) == []
    assert changes(before, manifest) == []
    before["interval"] |= {"wikidata_prev": "20210726"}  # also 35 days
    assert changes(manifest, before) == [
        "facts categorised as changed: 8,170,000 now, 4,300,000 in 20210801-20210901 (+90.0 %)"
    ]


def test_facts_go_on_from_where_they_ended() -> None:
    """A week between two Wikidata dumps that no month covers, or that two do, is a fault."""
    manifest, before = month("20210901-20211001"), month("20210801-20210901")
    before["interval"] |= {"wikidata_prev": "20210802", "wikidata_recent": "20210823"}
    manifest["interval"] |= {"wikidata_prev": "20210830", "wikidata_recent": "20210927"}
    assert changes(manifest, before)[0] == (
        "Wikidata: starts with the dump of 20210830 now, but ended with that of 20210823 in 20210801-20210901"
    )
    manifest["interval"]["wikidata_prev"] = "20210823"
    assert changes(manifest, before) == []
    later = month("20211001-20211101")  # a month between: it goes on from nothing that is known
    later["interval"] |= {"wikidata_prev": "20210927", "wikidata_recent": "20211025"}
    assert changes(later, before) == []


def test_words_of_few_articles_have_their_play() -> None:
    manifest, before = month(), month()
    for of, articles, words in ((manifest, 8, 7_020), (before, 12, 22_705)):  # one long article more
        of["counts"]["diffset"] |= {"articles": articles, "words": words}
    assert changes(manifest, before) == changes(before, manifest) == []
    before["counts"]["diffset"]["words"] = 227_050
    assert said(manifest, before) == ["words in the diffset"]


def test_snapshots_grow_with_the_months_between_them() -> None:
    grown = "extracts/wiki-extract recent/pages/articles"
    for interval, factor, jumped in (
        ("20210901-20211001", 1.08, False),
        ("20210901-20211001", 1.15, True),
        ("20211201-20220101", 1.15, False),  # four months later
        ("20211201-20220101", 1.6, True),
        ("20211201-20220101", 0.6, True),
    ):
        manifest = month(interval)
        multiply(manifest, grown, factor)
        assert (said(manifest, month()) == ["articles in the later dump"]) == jumped, (interval, factor)
        assert bool(changes(manifest, month())) == jumped


# few things may well be some more or fewer: now, before, whether it is a jump (of 31 days each)
SMALL = [
    (0, 0, False),
    (3, 0, False),
    (10, 1, False),
    (100, 50, False),
    (100, 10, True),
    (0, 100, True),
    (300, 100, True),
    (1000, 500, True),
    (1000, 700, False),
]


@pytest.mark.parametrize(("now", "then", "jumped"), SMALL)
def test_small_counts_have_the_play_of_chance(now: int, then: int, jumped: bool) -> None:
    manifest, before = month(), month()
    put(manifest, "probes/deleted/kept", now)
    put(before, "probes/deleted/kept", then)
    assert bool(changes(manifest, before)) == bool(changes(before, manifest)) == jumped


def test_another_wiki_and_other_options_are_named() -> None:
    manifest = month()
    manifest["interval"]["wiki"] = "simplewiki"
    manifest["options"] |= {"unchanged_fraction": 0.2, "include": ["wikipedia"], "allow_truncated": True}
    assert changes(manifest, month()) == [
        "wiki: simplewiki now, enwiki in 20210801-20210901",
        "option include: ['wikipedia'] now, [] in 20210801-20210901",
        "option unchanged_fraction: 0.2 now, 0.001 in 20210801-20210901",
        "option allow_truncated: True now, False in 20210801-20210901",
    ]
    manifest["interval"]["wiki"] = "enwiki"
    manifest["options"] = month()["options"] | {"include": (), "new_option": 3}  # it changes no count
    assert changes(manifest, month()) == []


def test_counts_that_are_none_are_zero() -> None:
    before = month()
    for path, value in (
        ("diffset/articles", "306400"), ("diffset/words", None), ("pages/new", -5), ("facts/changed", [1]),
        ("probes/changed/kept", 1776.0), ("prev_pages", 7),
    ):  # fmt: skip
        at, last = place(before, path)
        at[last] = value
    assert said(month(), before) == [
        "articles in the diffset", "words in the diffset", "new articles", "articles deleted",
        "facts categorised as changed", "probes kept, changed",
    ]  # fmt: skip


# Properties

COUNTS = st.one_of(st.integers(0, 40), st.integers(0, 10**9))
DATES = st.dates().map(lambda day: day.strftime("%Y%m%d")).filter(lambda day: len(day) == 8)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    prev, recent = sorted(draw(st.lists(DATES, min_size=2, max_size=2, unique=True)))
    manifest = month(f"{prev}-{recent}")

    def fill(at: Any) -> Any:
        return {key: fill(value) for key, value in at.items()} if isinstance(at, dict) else draw(COUNTS)

    return manifest | {"counts": fill(manifest["counts"])}


@given(manifests())
def test_equal_manifests_never_jump(manifest: Manifest) -> None:
    assert changes(manifest, manifest) == []


@given(manifests(), manifests())
def test_a_jump_is_one_in_both_directions(one: Manifest, other: Manifest) -> None:
    assert said(one, other) == said(other, one)


@given(st.sampled_from([*HAPPENED[:9], "probes/unchanged/kept", "extracts/wiki-extract prev/pages/read"]),
       st.integers(300, 10**9), st.booleans())  # fmt: skip
def test_ten_times_as_much_of_a_large_count_always_jumps(path: str, count: int, more: bool) -> None:
    few, many = month(), month()
    if path == "diffset/words":
        count *= 1_000
    put(few, path, count)
    put(many, path, 10 * count)
    assert len(changes(many, few) if more else changes(few, many)) == 1


@given(st.sampled_from(HAPPENED[:9]), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
def test_what_is_nearer_never_jumps_alone(path: str, first: int, then: int, step: int) -> None:
    """If a count is no jump, then no count between it and that of before is one."""
    near, far, before = month(), month(), month()
    between = then + (first - then) // (step + 1) if first >= then else then - (then - first) // (step + 1)
    for manifest, value in ((near, between), (far, first), (before, then)):
        put(manifest, path, value)
    assert len(changes(near, before)) <= len(changes(far, before))


# Real manifests

DATES_OF_WORLD = ("20210801", "20210901", "20211001", "20211101")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """Three months of a small world, as the builder counts them."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder / "dumps", World(people=120, dates=DATES_OF_WORLD, wikidata_dates=DATES_OF_WORLD))
    for prev, recent in itertools.pairwise(DATES_OF_WORLD):
        sources = find_sources(folder / "dumps", Interval("enwiki", prev, recent))
        build(sources, folder / "out", folder / "work", BuildOptions(unchanged_fraction=1.0))
    return [manifest.content for manifest in read_intervals(folder / "out")]


def test_the_months_of_a_world_do_not_jump(built: Sequence[Manifest]) -> None:
    for now, then in itertools.permutations(built, 2):
        assert changes(now, then) == []


def test_every_count_is_where_the_builder_writes_it(built: Sequence[Manifest]) -> None:
    """Every compared count exists in a manifest of the builder."""
    counts = [f"wiki-extract {side}/pages/{count}" for side in ("prev", "recent") for count in ("read", "articles")]
    counts += [
        f"wikidata-extract {side}/{of}" for side in ("prev", "recent") for of in ("entities/items", "statements/facts")
    ]
    paths = [*HAPPENED[:9], "probes/unchanged/kept", "facts/unchanged", *(f"extracts/{count}" for count in counts)]
    for path in paths:
        at, last = place(built[0], path)
        assert isinstance(at[last], int) or all(isinstance(n, int) for n in at[last].values()), path
        at, last = place(month(), path)
        assert last in at
