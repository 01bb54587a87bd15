"""A published leaderboard is what `temporalwiki leaderboard` wrote, without a word on where that was."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.write import write_leaderboard
from temporalwiki.eval_harness.results import read_results
from temporalwiki.model_cards.space import space_card
from temporalwiki.push_scripts.leaderboard import leaderboard_revision, publish_leaderboard

from a_folder import contents
from a_result import facts, write_known, write_probes
from loopback_hub import LoopbackHub

FILES = {"index.html", "results.parquet", "README.md"}
SPREAD = (-0.2, -0.1, 0.0, 0.1, 0.2)


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two leaderboards, in the home of somebody whose name is nobody's business: of three models, and of one."""
    home = tmp_path_factory.mktemp("homes") / "alice"
    initial = {"name": str(home / "runs" / "initial"), "method": "initial"}
    diff = {"name": str(home / "runs" / "diff"), "method": "diff", "trained_on": ["diffset-0910"]}
    for name, models in (("both", (initial, diff)), ("one", (initial,))):
        results = home / name / "kept here"
        for level, model in enumerate(models):
            splits = {split: facts(*(2.0 + level + off for off in SPREAD)) for split in ("unchanged", "changed")}
            path = write_probes(
                results, "probes-0910", splits, revision=f"{level:016x}", **model, learning_rate=1e-4
            ).path
            data = json.loads(path.read_text("utf-8"))
            data["data"]["dataset"] = str(home / "temporalwiki")
            path.write_text(json.dumps(data), "utf-8")
        found = read_results(results)
        if name == "both":
            found.append(write_known(results, "lora", 0, 50, trained_on=["diffset-0910"]))
        list(write_leaderboard(found, results, home / name / "board", space_card))
    return home


@pytest.fixture
def board(boards: Path, tmp_path: Path) -> Path:
    """A copy of the leaderboard of three models."""
    return shutil.copytree(boards / "both" / "board", tmp_path / "board")


def writes(hub: LoopbackHub) -> list[str]:
    return [request.path for request in hub.requests if request.method not in ("GET", "HEAD")]


def published(hub: LoopbackHub) -> dict[str, bytes]:
    files = hub.repo("space", "ORG/leaderboard").files()
    return {path: content for path, content in files.items() if path not in (".gitattributes", "style.css")}


def test_the_space_holds_the_leaderboard_and_nothing_else(hub: LoopbackHub, board: Path) -> None:
    wanted = contents(board)
    assert wanted.keys() > FILES and any(path.startswith("figures/") for path in wanted)
    for name in (".env", "notes.txt", "results.json", "figures/notes.txt", "figures/mine.png", "tables/old.md"):
        (board / name).write_text("not for everyone")
    (board / "tables" / "more").mkdir()
    (board / "tables" / "more" / "x.md").write_text("not for everyone")
    lines = list(publish_leaderboard(board, "ORG/leaderboard", tag="2021.12"))
    assert "static" in lines[0]
    assert lines[-1] == f"{hub.endpoint}/spaces/ORG/leaderboard/tree/2021.12"
    found = published(hub)
    assert found.keys() == wanted.keys()
    assert {path for path in found if found[path] != wanted[path]} == {"index.html"}  # see below


def test_what_a_maintainer_writes_into_the_spaces_card_stays(hub: LoopbackHub, board: Path) -> None:
    list(publish_leaderboard(board, "ORG/leaderboard"))
    card = published(hub)["README.md"].decode()
    card = card.replace("title: ", "title: Our ").replace("<!-- /yours -->", "Ask us.\n<!-- /yours -->")
    hub.commit("space", "ORG/leaderboard", {"README.md": card.encode()})
    list(publish_leaderboard(board, "ORG/leaderboard"))
    assert published(hub)["README.md"].decode() == card


def test_nothing_says_where_it_was_made(hub: LoopbackHub, board: Path) -> None:
    assert "kept%20here" in (board / "index.html").read_text("utf-8")  # on disk, scores link to their results
    list(publish_leaderboard(board, "ORG/leaderboard"))
    found = published(hub)
    page = found["index.html"].decode()
    rows = pq.read_table(pa.BufferReader(found.pop("results.parquet"))).to_pylist()
    for text in (str(rows), *(content.decode("latin-1") for content in found.values())):
        assert "alice" not in text and "kept here" not in unquote(text)
    links = {unquote(link) for link in re.findall(r'(?:href|src|srcset)="(\./[^"]*)"', page)}
    assert {link.removeprefix("./") for link in links} <= {*found, "results.parquet"}
    assert len(links) > 4


def test_the_published_page_is_the_one_without_results(board: Path) -> None:
    """Its data are the same but for the place of the results, and its board has the same words."""

    def read(page: str) -> tuple[dict[str, object], str]:
        (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
        return json.loads(data), re.sub(r"<[^>]*>", "", page.split("<table")[1].split("</table>")[0])

    before, words = read((board / "index.html").read_text("utf-8"))
    content = leaderboard_revision(board).files["index.html"]
    assert isinstance(content, bytes)
    after, same = read(content.decode())
    assert isinstance(before["results"], str)
    assert after == before | {"results": None}
    assert same == words


def test_the_preview_image_has_an_address_that_other_sites_can_fetch(hub: LoopbackHub, board: Path) -> None:
    (image,) = re.findall(r'property="og:image" content="(.*?)"', (board / "index.html").read_text("utf-8"))
    assert (board / image).is_file()
    list(publish_leaderboard(board, "ORG/leaderboard"))
    page = published(hub)["index.html"].decode()
    address = f"{hub.endpoint}/spaces/ORG/leaderboard/resolve/main/{image.removeprefix('./')}"
    assert re.findall(r'property="og:image" content="(.*?)"', page) == [address]
    assert image.removeprefix("./") in published(hub)


def test_what_a_new_leaderboard_lacks_is_taken_away(hub: LoopbackHub, boards: Path) -> None:
    list(publish_leaderboard(boards / "both" / "board", "ORG/leaderboard"))
    before = published(hub)
    hub.commit("space", "ORG/leaderboard", {"logo.png": b"x", "figures/README.txt": b"x"})  # by a person
    list(publish_leaderboard(boards / "one" / "board", "ORG/leaderboard"))
    after = published(hub)
    one = {p.relative_to(boards / "one" / "board").as_posix() for p in (boards / "one" / "board").rglob("*.*")}
    assert before.keys() - one
    assert after.keys() == one | {"logo.png", "figures/README.txt"}


def test_damaged_scores_and_missing_figures_are_refused(board: Path) -> None:
    figure = next((board / "figures").glob("*.png"))
    figure.unlink()
    with pytest.raises(InputError, match=rf"index\.html shows figures/{figure.name}, which is missing"):
        leaderboard_revision(board)
    (board / "results.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"results\.parquet: not the rows of a leaderboard"):
        leaderboard_revision(board)


@pytest.mark.parametrize("missing", sorted(FILES))
def test_a_folder_that_is_no_leaderboard(board: Path, missing: str) -> None:
    (board / missing).unlink()
    with pytest.raises(InputError, match=rf"no {re.escape(missing)} in it; choose one that `temporalwiki leaderb"):
        leaderboard_revision(board)


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ({".gitattributes": b"", "README.md": b"", "app.py": b""}, r"it has no results\.parquet, but app\.py"),
        ({"README.md": b"", "fuar.py": b"", "definition.py": b""}, r"it has no results\.parquet, but definition\.py"),
    ],
)
def test_a_space_of_something_else_stays(hub: LoopbackHub, board: Path, there: dict[str, bytes], message: str) -> None:
    hub.commit("space", "ORG/leaderboard", there)
    with pytest.raises(InputError, match=message):
        list(publish_leaderboard(board, "ORG/leaderboard"))
    assert not writes(hub)


def test_a_space_that_a_person_made_and_left_empty_is_taken(hub: LoopbackHub, board: Path) -> None:
    # what the Hub itself puts into a new static Space
    hub.commit("space", "ORG/leaderboard", {"index.html": b"Welcome", "style.css": b"", "README.md": b"---\n---\n"})
    list(publish_leaderboard(board, "ORG/leaderboard"))
    assert published(hub).keys() == leaderboard_revision(board).files.keys()


@pytest.mark.parametrize("name", ["results.parquet", "tables", "figures"])
def test_a_link_out_of_the_folder_is_not_followed(name: str, board: Path, tmp_path: Path) -> None:
    path = board / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=rf"{name}.*: is a link out of the folder"):
        leaderboard_revision(board)
