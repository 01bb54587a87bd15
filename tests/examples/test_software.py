"""The converter of endoflife.date, on invented products: pages and claims by hand, and files that cannot be read."""

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki import load_dataset
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.model_cards.folder_card import folder_card

from a_clone import write_clone
from a_folder import contents
from a_software import cycle, product, three_months
from documents import ROOT

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "examples" / "software" / "convert.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("software_convert", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


convert = load()
PROSE = """\
> [Norish](https://norish.example/) is a **language**
> for `ships`.

See [the policy][1]{:target="_blank"}, and:

- _fast_ ships
- slow ships, which
  wait

## Old versions

| a | b |
| - | - |

```
code

more
```
{% include table.html %}
[1]: https://norish.example/policy
3.10 &lt; 3.9 <b>is</b> wrong.[^1]
"""
NORISH = product(
    "Norish",
    cycle("4", "4.0.0-rc1", releaseDate="2026-12-01", eol="false"),
    cycle("3.10", "3.10", "2026-07-14", releaseDate="2025-10-07", eol="2030-10-31", eoas="true"),
    cycle("3.9", "3.9.20", "2026-07-14", releaseDate="2024-10-07", support="2026-02-30", eol="2029-10-31"),
    category="lang",
    tags="ox elk",
    releaseLabel="\"__RELEASE_CYCLE__ '__CODENAME__'\"",
    prose=PROSE,
).replace('releaseCycle: "3.9"', 'releaseCycle: "3.9"\n    codename: Ash')
CLAIMS = {
    ("Norish", "category", "programming language", None),
    ("Norish", "tag", "ox", None),
    ("Norish", "tag", "elk", None),
    ("Norish", "newest release", "3.10", "2025-10-07"),
    ("Norish", "latest version", "3.10", "2026-07-14"),
    ("Norish 4", "category", "programming language", None),
    ("Norish 4", "latest version", "4.0.0-rc1", None),
    ("Norish 4", "first release", "2026-12-01", "2026-12-01"),
    ("Norish 3.10", "category", "programming language", None),
    ("Norish 3.10", "latest version", "3.10", "2026-07-14"),
    ("Norish 3.10", "first release", "2025-10-07", "2025-10-07"),
    ("Norish 3.10", "end of life", "2030-10-31", None),
    ("Norish 3.9 'Ash'", "category", "programming language", None),
    ("Norish 3.9 'Ash'", "latest version", "3.9.20", "2026-07-14"),
    ("Norish 3.9 'Ash'", "first release", "2024-10-07", "2024-10-07"),
    ("Norish 3.9 'Ash'", "end of life", "2029-10-31", None),
}


def read(tmp_path: Path, files: Mapping[str, str]) -> object:
    write_clone(tmp_path / "clone", [("2026-07-30T22:00:00+00:00", files)])
    return convert.read_snapshot(tmp_path / "clone", "20260801")


def test_a_product_and_its_releases_become_pages_and_claims(tmp_path: Path) -> None:
    found = read(tmp_path, {"products/norish.md": NORISH})
    assert found.problems == [], found.problems
    labels = {id: item.labels["en"] for id, item in (found.items | found.values).items()}
    claims = {
        (labels[item.id], convert.LABELS[one.relation], labels[one.object], one.start)
        for item in found.items.values()
        for one in item.statements
    }
    assert claims == CLAIMS
    assert dict(found.empty) == {
        "end of life: yes or no instead of a date": 1,
        "end of active support: yes or no instead of a date": 1,
        "end of active support: not a date": 1,
    }
    text = {page.title: page.text for page in found.pages}
    assert text["Norish"].startswith("Norish is a language for ships.\n\n")
    assert text["Norish"].endswith(
        "\n\nSee the policy, and:\n\n* fast ships\n* slow ships, which wait\n\n== Old versions ==\n\n"
        "3.10 &lt; 3.9 is wrong."
    )
    assert text["Norish 3.10"].startswith("This page is about Norish 3.10, a release of Norish.\n\n")
    for title, relation, label, _ in CLAIMS:
        if relation != "category" or title == "Norish":  # a release's page leaves the category to the product's
            more = f" ({day})" if (day := SINCE.get((title, relation))) else ""
            forms = [
                f"The {relation} of {title} is {label}{more}.",
                f"{relation.capitalize()} of {title}: {label}{more}.",
                f"For {title}, the {relation} is {label}{more}.",
            ]
            assert sum(text[title].count(form) for form in forms) == 1, (title, relation)
    [day] = [item for item in found.values.values() if item.labels["en"] == "2030-10-31"]
    assert day.aliases == {"en": ["31 October 2030"]}


SINCE = {
    ("Norish", "newest release"): "2025-10-07",
    ("Norish", "latest version"): "2026-07-14",
    ("Norish 3.10", "latest version"): "2026-07-14",
    ("Norish 3.9 'Ash'", "latest version"): "2026-07-14",
}


@pytest.mark.parametrize(
    ("name", "label", "title"),
    [
        ("Norish", "3.1", "Norish 3.1"),
        ("Apple iPhone", "iPhone 17", "Apple iPhone 17"),
        ("Google Pixel", "Pixel", "Google Pixel"),
        ("Visual Studio", "Visual Studio 2026 - 18.7", "Visual Studio 2026 - 18.7"),
        ("Go", "Google", "Go Google"),
    ],
)
def test_the_title_of_a_release(name: str, label: str, title: str) -> None:
    assert convert.titled(name, label) == title


ALIAS = "a: &a [x]\nb: &b [*a, *a]\nreleases: [{<<: *b}]"
# what is wrong with a repository -> its files, and words of the converter's line
BROKEN = {
    "no front matter": ("# Ox", "no front matter"),
    "not YAML": ("---\ntitle: [\n---\n", "products/ox.md: while parsing"),
    "not a map": ("---\n- a\n---\n", "no list of releases"),
    "no releases": ("---\ntitle: Ox\n---\n", "no list of releases"),
    "an alias, which could be a bomb": (f"---\ntitle: Ox\n{ALIAS}\n---\n", "it has an alias"),
    "a list in a list, too deep for a stack": (f"---\ntitle: {'[' * 200_000}\n---\n", "too deep"),
    "code": ("---\ntitle: !!python/object/apply:os.system [id]\nreleases: []\n---\n", "no title, or that of another"),
    "no title": (product("", cycle("1")), "no title, or that of another"),
    "the title of another": (product("norish", cycle("1")), "no title, or that of another"),
    "not text": ("---\ntitle: Ox\n\udcff\n---\n", "codec can't decode"),
    "too large": (product("Ox", cycle("1"), prose="x" * (1 << 20)), "larger than 1 MB"),
    "a release without a name": (product("Ox", {"latest": "1"}, cycle("2")), "release 1: no releaseCycle"),
    "a release that is text": ("---\ntitle: Ox\nreleases: [a, {releaseCycle: 2}]\n---\n", "release 1: no rel"),
    "two releases with one name": (product("Ox", cycle("1"), cycle("1")), "1: another release has its name"),
    "the same in other words": (product("Ox", cycle("1", releaseLabel="a"), cycle("1")), "1: another release has"),
}  # fmt: skip


@pytest.mark.fault(
    "hostile YAML",
    "examples/software: front matter that is broken, deep, an alias bomb, code, or without what a product needs",
    "it is named, and the rest is converted",
)
@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_and_the_rest_is_converted(case: str, tmp_path: Path) -> None:
    text, said = BROKEN[case]
    found = read(tmp_path, {"products/norish.md": NORISH, "products/ox.md": text})
    assert [said in problem and problem.startswith("products/ox.md: ") for problem in found.problems] == [True]
    assert "Norish 3.10" in {page.title for page in found.pages}


def test_a_release_without_dates_is_counted(tmp_path: Path) -> None:
    """Each release of the source has a first day and an end of life, if only "false"."""
    found = read(tmp_path, {"products/ox.md": product("Ox", cycle("2"), cycle("1", releaseDate="", eol="false"))})
    assert found.problems == []
    assert dict(found.empty) == {
        "no latest version": 2,
        "first release: no such cell": 2,
        "end of life: no such cell": 1,
        "end of life: yes or no instead of a date": 1,
    }


def test_only_products_are_read(tmp_path: Path) -> None:
    strange = ("products/a/b.md", "products/.md", "products/a.MD", "x/products/a.md", "products.md", "products/-a.md")
    found = read(
        tmp_path, {"products/norish.md": NORISH, "link:products/a.md": "../x"} | dict.fromkeys(strange, NORISH)
    )
    assert found.products == {"norish"}
    assert found.problems == ["products/a.md: a link, or larger than 1 MB"]


def run(*words: object) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_deleted_products_empty_cells_and_wrong_dates_are_said(tmp_path: Path) -> None:
    files = {"products/norish.md": NORISH, "products/ox.md": product("Ox", cycle("1", eol="false"))}
    commits = [("2026-06-30T22:00:00+00:00", files), ("2026-07-30T22:00:00+00:00", {"products/norish.md": NORISH})]
    write_clone(tmp_path / "clone", [*commits, ("2026-08-30T22:00:00+00:00", {"README.md": "# Empty"})])
    status, said = run(tmp_path / "clone", tmp_path / "dumps", "20260801", "20260701")
    assert status == 0, said
    assert re.search(r"20260701: commit [0-9a-f]{12} of 2026-06-30: 2 products, 6 pages, \d+ items; 0 gone \[\]", said)
    assert re.search(
        r"20260801: commit [0-9a-f]{12} of 2026-07-30: 1 products, 4 pages, \d+ items; 1 gone \['ox'\]", said
    )
    assert (
        "20260701: cells without a fact: 1 end of active support: not a date; 1 end of active support: yes or" in said
    )
    assert "2 end of life: yes or no instead of a date; 1 first release: no such cell; 1 no latest version" in said
    for words, what, line in (
        (("20260901",), 1, "of 2026-08-30 has no product in products"),
        (("20260101",), 1, "its first commit is of 2026-06-30"),
        (("2026-07-01",), 2, "is not a date"),
    ):
        status, said = run(tmp_path / "clone", tmp_path / "dumps", *words)
        assert (status, said.count("\n")) == (what, 1) and line in said


def test_a_date_has_the_same_bytes_with_any_later_one(tmp_path: Path) -> None:
    """`monthly` writes a month's dumps again for the next month."""
    three_months(tmp_path / "clone")
    run(tmp_path / "clone", tmp_path / "one", "20260701", "20260801")
    run(tmp_path / "clone", tmp_path / "other", "20260801", "20260821")
    one, other = contents(tmp_path / "one"), contents(tmp_path / "other")
    same = {path for path in one if "20260801" in path}
    assert len(same) == 3
    assert {path: one[path] for path in same} == {path: other[path] for path in same}


def test_each_fact_of_a_table_is_stated_and_a_new_version_replaces_the_old_one(tmp_path: Path) -> None:
    three_months(tmp_path / "clone")
    dates = ("20260701", "20260801")
    assert run(tmp_path / "clone", tmp_path / "dumps", *dates)[0] == 0
    for pair in pairwise(dates):
        options = BuildOptions(unchanged_fraction=1.0, caps=None)
        sources = find_sources(tmp_path / "dumps", Interval("enwiki", *pair))
        build(sources, tmp_path / "data", tmp_path / "work", options, Machine(jobs=1), folder_card)
    facts = [dict(fact) for fact in load_dataset(str(tmp_path / "data"), "probes-0708", split="changed")]
    assert {fact["support"] for fact in facts} == {"stated"}
    assert all(fact["strict"] for fact in facts)
    versions = {f["subject"]: (f["object"], f["gone_objects"]) for f in facts if f["relation"] == "latest version"}
    # 12 of 16 products have newer versions, each in two releases
    assert len(versions) == 12 * 3
    assert versions["Oolware"] == ("1.5.7", ["1.5.6"])
    assert versions["Oolware 1.4"] == ("1.4.7", ["1.4.6"])
    ends = {f["subject"]: (f["object"], f["gone_objects"]) for f in facts if f["relation"] == "end of life"}
    assert ends["Solware 2.5"] == ("2032-02-05", ["2032-01-05"]) and len(ends) == 8 * 2
    words = [SCRIPT.with_name("sample.py"), tmp_path / "data", f"probes-{'-'.join(dates)}", tmp_path / "sample"]
    subprocess.run([sys.executable, *words], check=True)
    sample = load_dataset(str(tmp_path / "sample"), f"probes-{'-'.join(dates)}")
    assert Counter(fact["relation"] for fact in sample["changed"]) == {"latest version": 20, "end of life": 16}
    assert Counter(fact["relation"] for fact in sample["unchanged"]) == {"latest version": 10, "end of life": 10}


@given(st.text(alphabet="[](){}<>*_`|#>-~!:^%& \n1.aB", max_size=80))
def test_any_markdown_becomes_wikitext_without_markup(text: str) -> None:
    found = convert.prose(text)
    lines = [line for line in found.split("\n") if not re.fullmatch("== .* ==", line)]
    assert not set("[]{}|<>~") & set("".join(lines)), found
    assert all(line[:2] == "* " or line[:1] not in set("*#:;=") for line in lines), found


def test_the_recipes_are_experiments() -> None:
    pytest.importorskip("torch", reason="torch, which experiments need, is not installed")
    from temporalwiki.eval_harness.experiment.recipe import read_experiment

    for name, methods in (("reduced", ["initial", "diff"]), ("learn", ["initial", "diff", "shuffled", "study"])):
        found = read_experiment(str(SCRIPT.with_name(f"{name}.yaml")))
        assert list(dict.fromkeys(line.label for line in found.lines if not line.added)) == methods
