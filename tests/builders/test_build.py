"""Whole builds: compared with the truth of generated worlds, with the reference, and with themselves."""

import functools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dump_forms import split_dump, wikidata_as_bz2, write_page_props
from odd_world import write_odd_world
from oracle import Changes, changes

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import digest
from temporalwiki.builders.build import DROPPED_TEMPLATES, BuildOptions, build, find_sources
from temporalwiki.builders.dataset_folder import problems
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, read_manifests
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata.cues import cues_of
from temporalwiki.builders.wikidata.support import LinkText, Names, Subject, fold, support
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import sentence_diff as wiki_diff
from temporalwiki.builders.wikipedia.outline import Place, links, outline
from temporalwiki.builders.wikipedia.sentences import article_sentences, join_sentences
from temporalwiki.builders.wikipedia.titles import title_hash
from temporalwiki.builders.wikipedia.words import plain
from temporalwiki.builders.wikipedia.xml_dump import read_header
from temporalwiki.builders.world import Snapshot, World, write_world
from temporalwiki.model_cards.folder_card import folder_card

import reference
from a_folder import contents
from faults.rows import SAME_BYTES
from tiny_dumps import FOOTER, articles_file, header, item, page, revision, wikidata_file, write_bz2, write_wikidata

MONTH = Interval("enwiki", "20211101", "20211201")
ALL = BuildOptions(unchanged_fraction=1.0)


def run(
    dumps: Path, out: Path, options: BuildOptions = ALL, interval: Interval = MONTH, jobs: int = 1
) -> BuiltManifest:
    sources = find_sources(dumps, interval)
    return build(sources, out, out.with_name(f"{out.name}.work"), options, Machine(jobs=jobs), folder_card)


def rows(out: Path, config: str, split: str = "train") -> list[dict[str, Any]]:
    return list(read_rows(sorted((out / "data" / config).glob(f"{split}-*.parquet"))))


def parquet_bytes(out: Path) -> dict[str, bytes]:
    return contents(out, "*.parquet")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dumps")


@pytest.fixture(scope="module")
def snapshots(dumps: Path) -> list[Snapshot]:
    """What is true in the two months of the dumps."""
    return write_odd_world(dumps, World(people=120), hostile=False)


@pytest.fixture(scope="module")
def expected(snapshots: list[Snapshot]) -> Changes:
    """The changes that a build has to find."""
    return changes(*snapshots)


@pytest.fixture(scope="module")
def out(dumps: Path, snapshots: list[Snapshot], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "temporalwiki"
    run(dumps, out)
    return out


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dumps of a small world, for tests that build again and again."""
    dumps = tmp_path_factory.mktemp("few")
    write_odd_world(dumps, World(people=40), hostile=False)
    return dumps


@pytest.fixture(scope="module")
def built(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build makes of the small world."""
    out = tmp_path_factory.mktemp("few-built") / "temporalwiki"
    run(few, out)
    return out


def flat(paragraphs: list[list[str]]) -> list[str]:
    """Return the text of paragraphs. The items of a list are sentences here and lines in a build."""
    return [" ".join(paragraph) for paragraph in paragraphs]


def text(row: dict[str, Any]) -> list[str]:
    return [paragraph.replace("\n", " ") for paragraph in row["text"].split("\n\n")]


def test_every_sentence_of_the_diffset_is_the_worlds(out: Path, expected: Changes) -> None:
    pages = {i: page for i, page in expected.pages.items() if page.paragraphs}
    found = {row["id"]: row for row in rows(out, f"diffset-{MONTH.name}")}
    assert found.keys() == pages.keys()
    for page_id, row in found.items():
        page = pages[page_id]
        assert text(row) == flat(page.paragraphs)
        assert (row["title"], row["kind"], row["paragraphs"]) == (page.title, page.kind, len(page.paragraphs))
        assert (row["revision_id"], row["previous_revision_id"]) == (page.revision_id, page.previous_revision_id)
    assert list(found) == sorted(found)
    assert sum(expected.same.values()) > 10  # articles that only look edited
    assert expected.same.keys().isdisjoint(found)


def test_every_deleted_sentence_is_the_worlds(out: Path, expected: Changes) -> None:
    pages = {i: page for i, page in expected.pages.items() if page.deleted}
    found = {row["id"]: row for row in rows(out, f"deletions-{MONTH.name}")}
    assert found.keys() == pages.keys()
    for page_id, row in found.items():
        assert text(row) == flat(pages[page_id].deleted)
        assert (row["kind"] == "deleted") == (row["revision_id"] is None) == (pages[page_id].kind == "deleted")


def test_unchanged_text_and_diffset_make_up_the_snapshot(out: Path, snapshots: list[Snapshot]) -> None:
    articles = snapshots[1].articles
    parts: dict[int, list[str]] = {i: [] for i in articles}
    for config in ("diffset", "unchanged"):
        for row in rows(out, f"{config}-{MONTH.name}"):
            parts[row["id"]] += " ".join(text(row)).split()
    for page_id, article in articles.items():
        assert Counter(parts[page_id]) == Counter(" ".join(flat(article.paragraphs)).split())


def fact_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["subject_id"], row["relation_id"], row["object_id"]


def test_no_stated_fact_is_lost_before_the_caps(out: Path, expected: Changes) -> None:
    """Every fact that the world states in the diffset is aligned. Only filters and caps may drop it."""
    [manifest] = read_manifests(out)
    counts = manifest.content["counts"]
    assert counts["probes"]["changed"]["categorised"] == len(expected.changed)
    assert counts["probes"]["changed"]["aligned"] >= len(expected.stated)
    assert counts["probes"]["unchanged"]["categorised"] == len(expected.unchanged)
    assert counts["facts"]["deleted"] == dict(sorted(Counter(expected.deleted.values()).items()))
    assert counts["facts"]["changed"] == dict(sorted(Counter(expected.changed.values()).items()))


def test_probes_keep_to_the_filters_and_caps_and_light_tuning_has_other_subjects(out: Path) -> None:
    tuned = {row["subject_id"] for s in ("changed", "unchanged") for row in rows(out, f"lighttuning-{MONTH.name}", s)}
    for split in ("changed", "unchanged", "deleted"):
        probes = rows(out, f"probes-{MONTH.name}", split)
        reference.check_caps([fact_of(row) for row in probes])
        assert all(reference.passes_filters(row["subject"], row["object"]) for row in probes)
        assert len({fact_of(row) for row in probes}) == len(probes)
        assert tuned and tuned.isdisjoint(row["subject_id"] for row in probes)


def test_the_types_of_the_probes_subjects_and_objects_are_the_worlds(out: Path, snapshots: list[Snapshot]) -> None:
    """Every entity of the world has one class or none, so the order of its statements does not count here."""
    [manifest] = read_manifests(out)
    prev, recent = snapshots
    classes: dict[str, str] = {}
    for snapshot in (prev, recent):
        entities = {fact.subject for fact in snapshot.facts} | snapshot.labels.keys()
        for gone in entities & classes.keys():
            del classes[gone]
        classes |= {fact.subject: fact.object for fact in snapshot.facts if fact.relation == "P31"}
    labels = {**prev.labels, **recent.labels}
    for split in ("changed", "unchanged", "deleted"):
        probes = rows(out, f"probes-{MONTH.name}", split)
        for role in ("subject", "object"):
            of = [classes.get(row[f"{role}_id"]) for row in probes]
            expected = Counter("unknown" if c is None else labels.get(c, c) for c in of)
            assert manifest.content["counts"]["entity_types"][split][role] == dict(expected)
    assert len(manifest.content["counts"]["entity_types"]["changed"]["object"]) > 10


def test_the_manifest_accounts_for_every_page_and_fact(out: Path, snapshots: list[Snapshot]) -> None:
    [manifest] = read_manifests(out)
    pages, recent = manifest.content["counts"]["pages"], snapshots[1]
    assert pages["read"] == len(recent.articles)
    assert pages["read"] == sum(pages[k] for k in ("unchanged", "new", "updated")) + sum(pages["dropped"].values())
    extract = manifest.content["counts"]["extracts"]["wiki-extract recent"]["pages"]
    assert extract["read"] == len(recent.revisions)
    assert extract["read"] == (
        extract["articles"] + extract["redirects"] + extract["other_namespaces"] + sum(extract["dropped"].values())
    )
    for split, probes in manifest.content["counts"]["probes"].items():
        dropped = probes["dropped"]
        assert split == "deleted" or (dropped["filters"] and dropped["caps"]), dropped
        assert probes["sampled"] == probes["aligned"] + sum(dropped["alignment"].values())
        assert probes["aligned"] == probes["filtered"] + sum(dropped["filters"].values())
        assert probes["filtered"] == probes["kept"] + sum(dropped["caps"].values())
    assert problems(out, manifest) == []
    inputs = [f"enwiki-{date}-pages-articles-multistream.xml.bz2" for date in (MONTH.prev, MONTH.recent)]
    inputs += [f"wikidata-{date}-all.json.gz" for date in ("20211101", "20211129")]
    assert [source["file"].split("/")[-1] for source in manifest.content["inputs"]] == inputs


@pytest.mark.fault(
    "hostile titles",
    "worlds with hostile names and odd statements, whole builds",
    "the same rows as the slow reference",
)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_hostile_world_agrees_with_the_reference(tmp_path: Path, seed: int) -> None:
    """Labels break careless programs."""
    world = World(seed=seed, people=60)
    dumps, out = tmp_path / "dumps", tmp_path / "temporalwiki"
    write_page_props(dumps, write_odd_world(dumps, world))
    for date in world.dates:
        split_dump(dumps / "enwiki" / date, 3, newer_schema=True)
    wikidata_as_bz2(dumps)
    run(dumps, out, jobs=2)
    files = [sorted((dumps / "enwiki" / date).glob("*multistream?.xml*")) for date in world.dates]
    assert [len(parts) for parts in files] == [3, 3]
    prev, recent = ({k: v for f in parts for k, v in reference.read_articles(f).items()} for parts in files)
    namespaces = read_header(files[1][0]).namespaces

    @functools.cache
    def sentences(wikitext: str) -> list[list[str]]:
        return article_sentences(wikitext, "en", namespaces)

    same = functools.cache(reference.folded)
    diffset, deletions = (of(prev, recent, sentences, same) for of in (reference.diffset, reference.deletions))
    for config, expected in (("diffset", diffset), ("deletions", deletions)):
        found = {row["id"]: (row["kind"], text(row)) for row in rows(out, f"{config}-{MONTH.name}")}
        texts = {i: [" ".join(join_sentences(p).split()) for p in row.paragraphs] for i, row in expected.items()}
        assert found == {i: (row.kind, texts[i]) for i, row in expected.items()}

    wikidata = [reference.read_facts(wikidata_file(dumps, date, "bz2")) for date in world.wikidata_dates]
    categories = reference.algorithm_2(wikidata[0], wikidata[1], world.wikidata_dates[1])
    labels = {
        entity: reference.label(wikidata[0 if entity not in wikidata[1].labels else 1].labels[entity], "en")
        for entity in {**wikidata[0].labels, **wikidata[1].labels}
    }
    then = {e: reference.label(of, "en") for e, of in (wikidata[1].labels | wikidata[0].labels).items()}
    articles = [reference.articles(pages) for pages in (prev, recent)]
    changed_texts = {"changed": diffset, "deleted": deletions}
    titles = wikidata[0].sitelinks | wikidata[1].sitelinks

    def evidence(split: str, fact: reference.Fact, page_id: int) -> tuple[str, str] | None:
        """The first sentence with the best support. test_support.py tests how support is judged."""
        page = articles[split != "deleted"].get(page_id)
        texts = sentences(page.text) if split == "unchanged" and page is not None else None
        row = changed_texts.get(split, {}).get(page_id)
        texts = row.paragraphs if row is not None else texts
        if page is None or texts is None:
            return None
        subject, relation, object = (str(labels[part]) for part in fact)
        found = [LinkText.of(text, to) for text, to in links(page.text).items()]
        names = Names(object, title_hash(titles[fact[2]]) if fact[2] in titles else None, found)
        about = Subject.of(subject, page.title, others={link.text for link in found})
        cues = cues_of(int(fact[1][1:]), [relation], "en")
        places = {s: line.place for line in reversed([*outline(page.text, "en", namespaces)]) for s in line.sentences}
        best: tuple[int, str, str] | None = None
        for sentence in (s.strip() for paragraph in texts for s in paragraph):
            text = plain(sentence)
            if spans := list(names.find(text, fold(text))):
                place = places.get(sentence, Place())
                rank, word = support(int(fact[1][1:]), relation, text, spans, place, cues, about)
                if best is None or rank > best[0]:
                    best = rank, sentence, word
        return None if best is None else best[1:]

    candidates = reference.align_and_filter(
        categories,
        labels,
        reference.subject_pages(wikidata[1], recent),
        reference.deleted_subject_pages(wikidata[0], prev, recent),
        evidence,
    )
    [manifest] = read_manifests(out)
    for name in ("changed", "unchanged", "deleted"):
        expected_rows = {p.fact: (p.kind, p.page_id, p.evidence, p.support) for p in getattr(candidates, name)}
        facts, probes = (rows(out, f"{config}-{MONTH.name}", name) for config in ("facts", "probes"))
        found_facts, found_probes = (
            {fact_of(r): (r["kind"], r["page_id"], r["evidence"], r["support"]) for r in found}
            for found in (facts, probes)
        )
        assert found_facts == expected_rows
        assert found_probes.items() <= expected_rows.items()
        side = articles[name != "deleted"]
        for row in facts + probes:
            page = side[row["page_id"]]
            assert (row["title"], row["page_revision_id"]) == (page.title, page.revision_id)
            assert (row["subject"], row["relation"], row["object"]) == tuple(labels[part] for part in fact_of(row))
            if name == "changed":  # as they were called then
                had = (then.get(o) for s, p, o in wikidata[0].facts() if (s, p) == fact_of(row)[:2])
                assert row["previous_objects"] == sorted(filter(None, had))
        for row in facts:
            before = prev.get(row["page_id"])
            wikitext = before.text if before is not None and row["page_id"] in articles[0] else ""
            title = wikidata[1].sitelinks.get(row["object_id"])
            linked = any(title in to for to in links(wikitext).values())
            mentioned = linked or reference.holds(wikitext, row["object"])
            grades = (row["support"], row["current"], row["dated"], row["respelled"], row["gone_objects"], mentioned)
            assert row["strict"] == reference.is_strict(name, row["kind"], *grades), row
            stated = name == "changed" and row["support"] != "mentioned"
            assert row["newly_stated"] == (stated and not mentioned), row
        counts = manifest.content["counts"]["probes"][name]
        assert (counts["filtered"], counts["kept"]) == (len(expected_rows), len(probes))
        for graded, of_split in (("facts", facts), ("probes", probes)):
            for column in ("support", "dated"):
                found = {value: n for value, n in counts[graded][column].items() if n}
                assert found == Counter(row[column] for row in of_split)
            assert counts[graded]["strict"] == sum(row["strict"] for row in of_split)


def test_other_cuts_into_tasks_give_the_same_bytes(
    few: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiki_extract, "RANGE", 1)  # each stream is a task
    monkeypatch.setattr(wiki_diff, "RANGE", 1)
    monkeypatch.setattr("temporalwiki.builders.wikidata.extract.RANGE", 4_000)
    monkeypatch.setattr("temporalwiki.builders.wikidata.fact_diff.FACTS_A_TASK", 40)
    run(few, tmp_path / "many", jobs=1)
    assert len(list((tmp_path / "many.work").rglob("articles-*.parquet"))) > 3
    assert parquet_bytes(tmp_path / "many") == parquet_bytes(built)
    assert read_manifests(tmp_path / "many")[0].content["counts"] == read_manifests(built)[0].content["counts"]


def test_the_reports_of_a_stage_list_every_file_in_its_folder(out: Path) -> None:
    """A file that no report lists could be lost without a rerun of its task."""
    stages = [path.parent for path in out.with_name(f"{out.name}.work").rglob("stage.json")]
    assert len(stages) == 11
    for stage in stages:
        reports = [json.loads(path.read_text()) for path in (stage / "reports").iterdir()]
        found = {path.relative_to(stage).as_posix() for path in stage.glob("*.*") if path.suffix != ".json"}
        assert found == {name for report in reports for name in report["files"]}, stage


def command(dumps: Path, out: Path, *more: str) -> list[str]:
    program = "import sys; from temporalwiki.commands import main; sys.exit(main())"
    arguments = ["build", MONTH.prev, MONTH.recent, "--dumps", str(dumps), "--out", str(out)]
    return [sys.executable, "-c", program, *arguments, "--unchanged-fraction", "1", *more]


def test_the_locale_and_the_hash_seed_change_nothing(few: Path, built: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONHASHSEED": "7", "LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Asia/Seoul"}
    subprocess.run(command(few, tmp_path / "c"), env=environment, check=True, capture_output=True)
    assert parquet_bytes(tmp_path / "c") == parquet_bytes(built)


@pytest.mark.fault("kill -9", "build in two processes: at random moments", SAME_BYTES)
def test_killed_five_times_and_resumed_it_gives_the_same_bytes(few: Path, built: Path, tmp_path: Path) -> None:
    target, moments = tmp_path / "killed", random.Random(5)
    begun: set[Path] = set()  # stages
    killed = 0
    for _ in range(5):
        running = subprocess.Popen(command(few, target, "--jobs", "2"), stderr=subprocess.DEVNULL)
        while running.poll() is None and begun.issuperset(now := set(tmp_path.rglob("stage.json"))):
            time.sleep(0.01)
        begun |= now
        time.sleep(moments.uniform(0, 0.2))
        killed += running.poll() is None
        running.kill()
        running.wait()
    assert killed >= 3
    assert len(begun) >= 5
    subprocess.run(command(few, target, "--jobs", "2"), check=True, capture_output=True)
    assert parquet_bytes(target) == parquet_bytes(built)
    assert problems(target, read_manifests(target)[0]) == []


def test_the_next_month_reads_only_the_new_snapshot_keeps_the_old_and_names_what_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dates, wikidata_dates = ("20211101", "20211201", "20220101"), ("20211101", "20211129", "20220101")
    world = World(people=40, dates=dates, wikidata_dates=wikidata_dates)
    dumps, out = tmp_path / "dumps", tmp_path / "temporalwiki"
    write_world(dumps, world)
    run(dumps, out)
    damaged = next(out.glob("data/diffset-*/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"!" + damaged.read_bytes()[-8:])
    notes = tmp_path / "temporalwiki.work" / "enwiki-20211201-20220101-my-notes"
    notes.mkdir()
    before = parquet_bytes(out)
    extracts = tmp_path / "temporalwiki.work" / "extracts"

    def made() -> dict[str, int]:
        """When each extracted file was written."""
        return {str(path): path.stat().st_mtime_ns for path in extracts.rglob("*.parquet")}

    of_november = made()
    capsys.readouterr()
    run(dumps, out, interval=Interval("enwiki", "20211201", "20220101"))
    [said] = [line for line in capsys.readouterr().err.splitlines() if str(damaged) in line]
    assert said.endswith("not the file that the manifest describes; make 20211101-20211201 again")
    assert notes.is_dir()  # its name begins like that of a folder of ours
    assert of_november.items() < made().items()
    assert {path.name.rsplit("-", 1)[0] for path in extracts.iterdir()} == {
        *(f"enwiki-{date}" for date in world.dates),
        *(f"wikidata-{date}-enwiki" for date in world.wikidata_dates),
    }
    after = parquet_bytes(out)
    assert before.items() <= after.items()
    assert {manifest.age[0] for manifest in read_manifests(out)} == {"20211201", "20220101"}


def test_two_snapshots_are_cut_from_one_history(tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    grows = [
        revision("It was small.", 1, at="2021-10-05T00:00:00Z"),
        revision("It was small. It grew.", 2, 1, at="2021-11-05T00:00:00Z"),
        revision("It is gone.", 3, 2, at="2021-12-05T00:00:00Z"),
    ]
    path = dumps / "enwiki" / "20220101" / "enwiki-20220101-pages-meta-history1.xml-p1p99.bz2"
    new = page(2, "New", "It is new.", at="2021-11-09T00:00:00Z")
    write_bz2(path, header() + page(1, "Grows", revisions=grows) + new + FOOTER)
    for revision_id, date in enumerate(("20211101", "20211129"), 1):
        write_wikidata(wikidata_file(dumps, date), [item(1, lastrevid=revision_id)])
    run(dumps, tmp_path / "out")
    assert [(row["title"], row["kind"], row["text"]) for row in rows(tmp_path / "out", f"diffset-{MONTH.name}")] == [
        ("Grows", "updated", "It grew."),
        ("New", "new", "It is new."),
    ]


def test_a_cut_dump_is_read_where_that_is_allowed_and_the_manifest_says_so(tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    write_world(dumps, World(people=30))
    path = articles_file(dumps, "20211201")
    path.write_bytes(path.read_bytes()[:-200])
    manifest = run(dumps, tmp_path / "out", BuildOptions(unchanged_fraction=1.0, allow_truncated=True))
    assert manifest.content["options"]["allow_truncated"] is True
    assert any("no </mediawiki>" in warning for warning in manifest.warnings)


def test_a_kept_extract_of_a_dump_that_was_fetched_again_is_not_used(tmp_path: Path) -> None:
    dumps, out = tmp_path / "dumps", tmp_path / "out"
    write_world(dumps, World(people=30))
    run(dumps, out)
    before = parquet_bytes(out)
    write_world(dumps, World(people=30, seed=9))
    run(dumps, out)
    assert parquet_bytes(out) != before


def test_the_work_folder_is_not_the_dataset_folder(few: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be the work folder"):
        build(find_sources(few, MONTH), tmp_path / "x", tmp_path / "x")


OPTIONS = {
    "seed": BuildOptions(unchanged_fraction=1.0, seed=5),
    "fraction": BuildOptions(unchanged_fraction=0.3),
    "include": BuildOptions(unchanged_fraction=1.0, include=("wikipedia",)),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_rerun_with_another_option_uses_nothing_stale(few: Path, built: Path, tmp_path: Path, option: str) -> None:
    run(few, tmp_path / "fresh", OPTIONS[option])
    run(few, tmp_path / "again")
    assert parquet_bytes(tmp_path / "again") == parquet_bytes(built)
    run(few, tmp_path / "again", OPTIONS[option])
    assert parquet_bytes(tmp_path / "again") == parquet_bytes(tmp_path / "fresh") != parquet_bytes(built)


def test_the_real_pair(shared_data: Path, tmp_path: Path) -> None:
    sources = find_sources(shared_data / "dumps", Interval("enwiki", "20141106", "20160501"), ("20141201", "20170330"))
    out = tmp_path / "temporalwiki"
    manifest = build(sources, out, tmp_path / "work", ALL, card=folder_card)
    counts = manifest.content["counts"]
    assert counts["pages"]["read"] == 106
    assert counts["facts"]["changed"] == {"new_object": 72, "new_relation": 111, "new_subject": 1386}
    [algeria] = rows(out, "probes-20141106-20160501", "changed")
    assert (algeria["subject"], algeria["relation"], algeria["page_id"]) == ("Algeria", "shares border with", 358)
    assert any("no closing ]" in warning for warning in manifest.warnings)
    assert manifest.options.compare == "folded"
    diffset = rows(out, "diffset-20141106-20160501")
    for name in ("words_new", "words_reworded"):
        assert counts["diffset"][name] == sum(row[name] for row in diffset) > 10_000
    # words are counted by sentence: where the page has no blank between two sentences, the text has one word fewer
    assert 0 <= counts["diffset"]["words"] - sum(len(row["text"].split()) for row in diffset) < 10
    assert counts["diffset"]["words"] == counts["diffset"]["words_new"] + counts["diffset"]["words_reworded"]
    names = [(-one["times"], one["name"]) for one in counts["dropped_templates"]]
    assert 0 < len(names) <= DROPPED_TEMPLATES and names == sorted(names)
    card = (out / "README.md").read_text("utf-8")
    assert all(f"{counts['diffset'][name]:,}" in card for name in ("words", "words_new", "words_reworded"))


def test_folders_may_have_any_name(tmp_path: Path) -> None:
    """Brackets and stars are patterns to DuckDB, quotes end its strings."""
    place = tmp_path / "it's [1]* {a}?é"
    write_world(place / "dumps", World(people=30))
    manifest = run(place / "dumps", place / "new" / "temporalwiki")
    assert problems(place / "new" / "temporalwiki", manifest) == []
    assert manifest.content["counts"]["probes"]["changed"]["kept"]


STAGES = [
    *("checksums", "wiki-extract prev", "wiki-extract recent", "wikidata-extract prev", "wikidata-index"),
    *("wikidata-extract recent", "wikidata-copy recent", "wiki-diff", "wikidata-labels", "wikidata-diff"),
    *("align", "finish", "install"),
]
TOOK = {"tasks", "kept", "began", "seconds", "cpu_seconds", "longest_task_seconds", "peak_memory_mb"}


def test_the_manifest_has_the_cost_of_every_stage(dumps: Path, out: Path) -> None:
    [manifest] = read_manifests(out)
    ran = manifest.content["run"]
    assert (ran["engine"], ran["jobs"], ran["memory_mb"]) == ("local", 1, 8192)
    stages = ran["stages"]
    assert sorted(stages, key=lambda name: stages[name]["began"]) == STAGES
    sizes = {source["file"]: source["size"] for source in manifest.content["inputs"]}
    read = {
        "checksums": sum(sizes.values()),
        "wiki-extract prev": articles_file(dumps, "20211101").stat().st_size,
        "wiki-extract recent": articles_file(dumps, "20211201").stat().st_size,
        "wikidata-extract prev": wikidata_file(dumps, "20211101").stat().st_size,
        "wikidata-extract recent": wikidata_file(dumps, "20211129").stat().st_size,
    }
    for name, took in stages.items():
        assert set(took) == (TOOK | {"mb", "mb_per_cpu_second"} if name in read else TOOK)
        assert (took["kept"], took["tasks"] >= 1, took["peak_memory_mb"] > 20) == (0, True, True)
        if name in read:
            assert took["mb"] == pytest.approx(read[name] / 1e6, abs=1e-3)
    assert stages["wiki-extract recent"]["mb_per_cpu_second"] > 0


def test_stages_of_an_earlier_run_count_as_kept_and_only_the_run_differs(few: Path, tmp_path: Path) -> None:
    first = run(few, tmp_path / "out").content
    assert list(first["run"]["stages"]) == STAGES
    second = run(few, tmp_path / "out", jobs=2).content
    assert {**first, "run": None} == {**second, "run": None}
    before, after = (content["run"]["stages"] for content in (first, second))
    for name in STAGES[:-2]:
        assert (before[name]["kept"], after[name]["kept"]) == (0, after[name]["tasks"])
        of_all_tasks = TOOK - {"kept", "began", "seconds"}
        assert {key: before[name][key] for key in of_all_tasks} == {key: after[name][key] for key in of_all_tasks}
    for name in STAGES[-2:]:
        assert (after[name]["tasks"], after[name]["kept"]) == (1, 0)
    [written] = read_manifests(tmp_path / "out")
    assert written.content["run"] == second["run"]


def test_checksums_of_dumps_that_were_read_before_are_not_made_again(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(few)
    run(few, tmp_path / "out")
    extracts = tmp_path / "out.work" / "extracts"
    made = {path: path.stat().st_mtime_ns for path in extracts.rglob("*.parquet")}
    read: list[str] = []

    def noted(path: Path, algorithm: str) -> str:
        read.append(path.name)
        return digest(path, algorithm)

    monkeypatch.setattr("temporalwiki.builders.checksums.digest", noted)
    monkeypatch.chdir(tmp_path)
    run(Path("link"), tmp_path / "out", BuildOptions(seed=1))  # dumps named by another path are not extracted again
    assert read == []
    assert made == {path: path.stat().st_mtime_ns for path in extracts.rglob("*.parquet")}
    changed = wikidata_file(few, "20211129")
    os.utime(changed, (1, 1))
    manifest = run(few, tmp_path / "out")
    assert read == [changed.name]
    took = manifest.content["run"]["stages"]["checksums"]
    assert (took["tasks"], took["kept"]) == (4, 3)
