"""Hostile YAML in recipes, and in the cards of repositories."""

from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.loading import check_card
from temporalwiki.methods.recipes import read_recipe
from temporalwiki.push_scripts.dataset_repository import maintainers_settings

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
TAGS = [
    "!!python/object/apply:os.system ['touch here']",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!python/object/new:type {args: [a, [], {}]}",
    "!custom x",
]
HOSTILE: dict[str, str] = {
    **{f"a tag: {tag}": f"learning_rate: {tag}\n" for tag in TAGS},
    "a billion laughs": LAUGHS + "learning_rate: *a11\n",
    "a billion laughs as a key": LAUGHS + "? *a11\n: 1\n",
    "what contains itself": "learning_rate: &a [*a]\n",
    "nested 100,000 times": "[" * 100_000,
    "nested maps": "{a: " * 10_000,
    "no YAML": "a: b: c: [",
    "a list": "- a\n",
    "a text": "a\n",
    "nothing": "",
    "two documents": "a: 1\n---\na: 2\n",
    "NUL": "a: \0\n",
    "tabs": "a:\n\t- b\n",
    "keys that are numbers": "1: 2\n",
    "merged keys": "a: &a {b: 1}\nc: {<<: *a}\n",
}


@pytest.mark.fault(
    "hostile YAML",
    "a recipe with Python tags, a billion laughs or deep nesting",
    "refused in one line, nothing is run",
)
@pytest.mark.parametrize("case", HOSTILE)
def test_recipes(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(HOSTILE[case])
    with pytest.raises(InputError, match=r"recipe\.yaml: ") as caught:
        read_recipe(str(recipe), None)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


# The cases that are valid YAML, and the settings that a card keeps of them.
HARMLESS: dict[str, dict[str, object]] = {
    "two documents": {"a": 1},  # the second one is the card's text
    "keys that are numbers": {"1": 2},
    "merged keys": {"a": {"b": 1}, "c": {"b": 1}},
}


@pytest.mark.fault(
    "hostile YAML", "the card of a repository or folder has such a header", "the header is ignored; nothing is run"
)
@pytest.mark.parametrize("case", HOSTILE)
def test_cards(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    card = f"---\n{HOSTILE[case]}---\n"
    (tmp_path / "README.md").write_text(card)
    kept = maintainers_settings(card.encode(), lambda _name: False)
    assert kept == (HARMLESS[case] | {"configs": [], "dataset_info": []} if case in HARMLESS else {})
    check_card(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_a_billion_laughs_in_the_configs_of_a_card(tmp_path: Path) -> None:
    card = f"---\n{LAUGHS}configs:\n- config_name: a\n  data_files: *a11\n---\n"
    (tmp_path / "README.md").write_text(card)
    check_card(tmp_path)
    assert maintainers_settings(card.encode(), lambda _name: False) == {}


def test_an_alias_in_a_card_is_kept() -> None:
    kept = maintainers_settings(b"---\ntags: &a [x]\nmore: *a\n---\n", lambda _name: False)
    assert kept == {"tags": ["x"], "more": ["x"], "configs": [], "dataset_info": []}
