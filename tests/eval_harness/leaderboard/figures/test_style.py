"""Looks that differ without colour, constant colours for methods, unchanged labels, and the same bytes."""

from itertools import combinations
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backend_bases import DrawEvent
from matplotlib.figure import Figure
from matplotlib.image import imread

from temporalwiki.eval_harness.leaderboard.figures.style import (
    BLACK,
    COLOURS,
    WIDTH,
    Look,
    fitting,
    legend,
    looks,
    save,
    shortened,
    sign,
    style,
    styled,
)
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard, ModelLine
from temporalwiki.methods import METHODS

from a_row import make_row


def lines(*named: tuple[str, str | None]) -> list[ModelLine]:
    rows = [
        make_row(label=label, method=method, month=None if method == "initial" else "0910") for label, method in named
    ]
    return ModelBoard(rows).lines


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_all_methods_are_told_apart_without_colour() -> None:
    found = looks(lines(*((method, method) for method in METHODS)))
    for (one, a), (other, b) in combinations(found.items(), 2):
        assert a.marker != b.marker, (one, other)
        assert (a.colour, a.dash) != (b.colour, b.dash), (one, other)


def test_a_method_has_the_colour_and_the_marker_of_the_figures_on_the_page() -> None:
    """matplotlib's square, triangle and circle reach from -0.5 to 0.5; the page's signs from -1 to 1."""
    assert sign(Look("#123456", "s", "-", hollow=False)) == {
        "path": "M-1 1L1 1L1 -1L-1 -1Z",  # downwards, as in an SVG
        "fill": "#123456",
        "stroke": "#123456",
    }
    assert sign(Look("#123456", "^", "-", hollow=True)) == {
        "path": "M0 -1L-1 1L1 1Z",
        "fill": "none",
        "stroke": "#123456",
    }
    assert sign(Look(BLACK, "o", "-", hollow=False))["fill"] == "currentColor"  # black in the light, white in the dark
    paths = {sign(look)["path"] for look in looks(lines(*((method, method) for method in METHODS))).values()}
    assert len(paths) == len(METHODS)


def test_the_methods_of_the_papers_have_colours_of_their_own() -> None:
    for paper in (
        ("initial", "full", "diff", "recadam", "mix_review", "lora", "k_adapter"),
        ("initial", "diff", "recadam", "mix_review", "lora", "k_adapter", "modular"),
    ):
        found = looks(lines(*((method, method) for method in paper)))
        assert len({look.colour for look in found.values()}) == len(paper)
        assert found["initial"].colour == "#000000"


def test_a_method_looks_the_same_whoever_is_beside_it() -> None:
    alone = looks(lines(("lora", "lora")))["lora"]
    beside = looks(lines(("initial", "initial"), ("full", "full"), ("lora", "lora"), ("x", None)))["lora"]
    assert alone == beside


def test_further_lines_of_a_method_share_its_colour_and_have_a_mark_of_their_own() -> None:
    found = looks(lines(("a", "lora"), ("b", "lora"), ("c", "lora"), ("d", None), ("e", None), ("lwf", "lwf")))
    assert found["a"].colour == found["b"].colour == found["c"].colour
    assert [found[label].hollow for label in ("a", "lwf", "b", "c", "d", "e")] == [False, False, *[True] * 4]
    assert len({(look.marker, look.hollow) for look in found.values()}) == len(found)


def test_colours_are_seen_on_white_but_for_yellow() -> None:
    contrast = {colour: 1.05 / (luminance(colour) + 0.05) for colour in COLOURS}
    assert [colour for colour in COLOURS if contrast[colour] < 2] == ["#F0E442"]


@given(st.lists(st.text(max_size=60), unique=True, max_size=8), st.integers(8, 30))
def test_labels_stay_short_distinct_and_on_one_line(labels: list[str], longest: int) -> None:
    found = shortened(labels, longest)
    assert list(found) == labels
    assert len(set(found.values())) == len(labels)
    assert all(0 < len(text) <= longest and len(text.splitlines()) == 1 for text in found.values())


def test_a_long_label_keeps_its_beginning_and_its_end() -> None:
    found = shortened(["owner/a-model-with-a-name-1112", "short"], 20)
    assert list(found.values()) == ["owner/a-model…e-1112", "short"]


def test_labels_fit_into_a_width() -> None:
    labels = ["W" * 50, "i" * 50]
    assert [len(text) for text in fitting(labels, 10.0, 9).values()] == [30, 30]
    narrow = fitting(labels, 1.5, 9).values()  # a W is about as wide as its size: 12 have room
    assert {len(text) for text in narrow} <= {11, 12, 13}
    assert {len(text) for text in fitting(labels, 0.1, 9).values()} == {8}


def draw(text: str) -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, text)
    return figure


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_what_a_matplotlibrc_says_changes_nothing(ending: str, tmp_path: Path) -> None:
    save(styled(draw)("x"), tmp_path / f"one.{ending}")
    with matplotlib.rc_context(
        {"font.size": 30, "savefig.dpi": 50, "svg.hashsalt": "other", "figure.facecolor": "red"}
    ):
        save(styled(draw)("x"), tmp_path / f"two.{ending}")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_dollars_are_no_formula() -> None:
    with style():
        (text,) = draw("$x^2$ and \\$").texts
        assert text.get_text() == "$x^2$ and \\$"
        assert not text.get_parse_math()


def test_svg_has_no_text_that_another_font_could_change_and_no_date(tmp_path: Path) -> None:
    save(styled(draw)("</script>"), tmp_path / "a.svg")
    content = (tmp_path / "a.svg").read_text("utf-8")
    assert "<text" not in content
    assert "</script>" not in content
    assert "<dc:date>" not in content


def test_a_very_high_figure_is_still_a_picture(tmp_path: Path) -> None:
    save(Figure(figsize=(1, 400)), tmp_path / "a.png")  # 80,000 pixels at the usual number an inch
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_an_svg_follows_the_theme_and_has_no_background(tmp_path: Path) -> None:
    """In the dark, each colour of paper and ink that a figure uses has another one; others stay."""
    with style():
        figure = draw("x")
        figure.subplots().plot([0, 1], color="black", markerfacecolor="white", marker="o")
        figure.axes[0].grid(visible=True)
    save(figure, tmp_path / "a.svg")
    content = (tmp_path / "a.svg").read_text("utf-8")
    begin = content.index("@media (prefers-color-scheme: dark)")
    dark = content[begin : content.index("}</style>", begin)]
    drawn = content.replace(dark, "")
    for colour in ("fill: #ffffff", "stroke: #000000", "stroke: #d0d0d0"):
        assert f'[style*="{colour}"]' in dark and colour in drawn
    background = content[content.index('id="patch_1"') :]
    assert "fill: none" in background[: background.index("</g>")]


def test_a_png_has_its_title_above_the_figure(tmp_path: Path) -> None:
    for name, title in (("plain", ""), ("titled", "A finding in words. " * 5)):
        save(styled(draw)("x"), tmp_path / f"{name}.png", title)
    heights = [imread(tmp_path / f"{name}.png").shape[0] for name in ("plain", "titled")]
    assert heights[1] > heights[0] + 100


def test_the_title_of_a_png_does_not_cover_the_legend(tmp_path: Path) -> None:
    with style():
        figure = Figure(figsize=(WIDTH, 2), layout="constrained")
        legend(figure, ["a"], figure.subplots().plot([0, 1]))
    covered: list[bool] = []

    def note(event: DrawEvent) -> None:
        boxes = [part.get_window_extent(event.renderer) for part in (*figure.texts, *figure.legends)]
        covered.append(len(boxes) == 2 and boxes[0].overlaps(boxes[1]))

    figure.canvas.mpl_connect("draw_event", note)
    save(figure, tmp_path / "a.png", "A finding that is said in words. " * 5)
    assert covered
    assert not covered[-1]
