"""Clozes and questions from recent sentences: rows, drops by reason, and the draw."""

import json
import random
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.config import CklConfig
from temporalwiki.builders.ckl.easy import EasyOptions, easy
from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news, recentnews
from temporalwiki.builders.ckl.text_model import READER, WRITER, OpenModel
from temporalwiki.eval_harness import text_model
from temporalwiki.eval_harness.text_model import open_model

import tiny_models
from a_text_model import ScriptedModel, always, faithful
from tiny_ckl import gold_articles, write_news

FRIDAY = datetime(2023, 4, 28, 17, 40, tzinfo=UTC)


def page(text: str, url: str = "https://example.org/a", published: datetime | None = FRIDAY) -> dict[str, Any]:
    return {"id": url, "url": url, "title": "The bridge", "text": text, "published": published}


def both(
    *pages: dict[str, Any], open_model: OpenModel | None = None, **options: Any
) -> tuple[CklConfig, CklConfig, list[Any], list[Any]]:
    model = faithful()
    opened = open_model or (lambda name: model)
    clozes, *_, questions = easy(pages, EasyOptions(**{"per_page": 100, **options}), open_model=opened)
    return clozes, questions, list(clozes.splits["test"]), list(questions.splits["test"])


def accounted(config: CklConfig, rows: list[Any]) -> bool:
    counts = config.counts
    return counts.kept == len(rows) and counts.read == counts.kept + sum(counts.dropped.values())


def test_rows_of_a_page() -> None:
    text = "It rained. She opened it on Monday."
    model = faithful(
        decontextualisation="Anna Weber opened the new bridge of the town on Monday.",
        translation="Anna Weber hat am Montag die neue Brücke der Stadt eröffnet.",
        back_translation="Anna Weber opened the new bridge of the city on Monday.",
        questions="On which day did Anna Weber open the new bridge?",
        round_trip="Monday.",
    )
    named: list[str] = []

    def open_model(name: str) -> ScriptedModel:
        named.append(name)
        return model

    page_of_weber = page(text) | {"title": "Anna Weber and the bridge"}
    clozes, questions, rows, asked = both(page_of_weber, open_model=open_model, least_words=5)
    assert accounted(clozes, rows)
    assert accounted(questions, asked)
    assert asked == rows
    assert rows == [
        {
            "id": rows[0]["id"],
            "statement": "Anna Weber opened the new bridge of the city on <extra_id_0>.",
            "question": "On which day did Anna Weber open the new bridge?",
            "answers": ["Monday"],
            "evidence": "She opened it on Monday.",
            "title": "Anna Weber and the bridge",
            "url": "https://example.org/a",
            "published": FRIDAY,
        }
    ]
    assert set(named) == {WRITER, READER}
    assert clozes.options["reader"] == {"name": "faithful", "revision": "1"}
    # the sentence is next to the instructions: a small model rewrites the text if it comes after them
    before, told, sentence = model.prompts[0].partition("\n\nRewrite the sentence below")
    assert told
    assert "It rained." in before
    assert "\nSentence: She opened it on Monday.\nRewritten:" in sentence


ONCE = "no name or date that stands once, as a word of its own"
MARKS = "holds an address, a mark-up or control character, or an ellipsis"


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Norland won.", "too short"),
        (f"Norland won {'very ' * 60}often.", "too long"),
        (f"Norland won the {'x' * 2000} cup in that old town.", "too long"),
        ("Mayor Weber said “the bridge of Easton is open” again.", "holds a quotation"),
        ('Mayor Weber said "the bridge of Easton is open" again.', "holds a quotation"),
        ("The bridge of Easton was opened at last", "does not end with a full stop"),
        ("see the bridge of Easton that was opened at last.", "does not begin with a capital letter"),
        ("Mayor Weber opened the new bridge of Easton on Sept.", "ends with an abbreviation: cut in its middle"),
        ("Mayor Weber opened at last: bridge, road and tower.", "is a list or a caption by its marks"),
        ("Mayor Weber (right opened the new bridge of Easton.", "is a list or a caption by its marks"),
        ("Nobody at all has opened the new bridge there.", "no name or date"),
        ("Easton has the only bridge that is called Easton.", ONCE),
        ("They said Easton-based people have opened the bridge.", ONCE),
        ("Mayor Weber wrote to https://example.org about the bridge.", MARKS),
        ("Mayor Weber opened <extra_id_0> and the bridge of Easton.", MARKS),
        ("Mayor Weber opened the bridge of Easton\x00 last of all.", MARKS),
    ],
)
def test_dropped(sentence: str, reason: str) -> None:
    clozes, questions, rows, asked = both(page(sentence))
    assert (rows, asked) == ([], [])
    assert clozes.counts.dropped == questions.counts.dropped == {reason: 1}
    assert clozes.counts.read == 1


PLAIN = "Mayor Anna Weber opened a new bridge in Easton."


ALONE, BACK = "decontextualisation", "back_translation"
OTHERS = "names or numbers after decontextualisation that the text does not have"
TWICE = "Easton and Mayor Anna Weber opened Easton and Mayor Anna Weber."
NOT_ANSWERED = "the reader does not answer the question with the answer"
USELESS: list[tuple[dict[str, str | None], str]] = [
    ({ALONE: None}, "cannot stand alone"),
    ({ALONE: "Someone opened a new bridge in that old town."}, "the answer was lost in decontextualisation"),
    ({ALONE: TWICE}, "the answer stands more than once after decontextualisation"),
    ({ALONE: "Mayor Anna Weber is known in all of Easton."}, "another sentence after decontextualisation"),
    ({ALONE: "Mayor Anna Weber of Westland opened a new bridge in Easton."}, OTHERS),
    ({ALONE: "Mayor Anna Weber opened 3 new bridges in Easton there."}, OTHERS),
    ({"translation": None}, "not translated"),
    ({BACK: None}, "not translated"),
    ({BACK: "Someone opened a new bridge in that old town."}, "the answer was lost in back-translation"),
    ({BACK: "Mayor Anna Weber opened a bridge. It is in Easton."}, "is more than one sentence after back-translation"),
    ({BACK: "The new Mayor Anna Weber opened Easton, Westland."}, "other names or numbers after back-translation"),
    ({BACK: "Mayor Anna Weber, Easton."}, "too short after back-translation"),
    ({"questions": None}, "no question"),
    ({"questions": "Who opened it."}, "no question"),
    ({"questions": "Did mayor anna weber or Easton open a bridge?"}, "the question holds the answer"),
    ({"questions": "Who | opened <b>it</b>?"}, "the question holds an address, a mark-up or control character"),
    ({"round_trip": "the bridge"}, NOT_ANSWERED),
    ({"round_trip": None}, NOT_ANSWERED),
]


@pytest.mark.parametrize(("said", "reason"), USELESS, ids=lambda case: str(case))
def test_useless_answers_of_models(said: dict[str, str | None], reason: str) -> None:
    model = faithful(**said)
    clozes, questions, rows, asked = both(page(PLAIN), open_model=lambda name: model)
    assert (rows, asked) == ([], [])
    assert clozes.counts.dropped == questions.counts.dropped == {reason: 1}


def test_the_reader_is_another_model_than_the_writer() -> None:
    """The writer would answer its own question wrongly; only the reader is asked."""
    writer, reader = faithful(questions="Who?", round_trip="nobody"), always("Easton")
    models = {WRITER: writer, READER: reader}
    _, _, rows, _ = both(page("In Easton a new bridge was opened at last."), open_model=models.__getitem__)
    assert [row["answers"] for row in rows] == [["Easton"]]
    assert len(reader.prompts) == 1


@pytest.mark.parametrize(("said", "number"), [("the EASTON", 0), ("Weston", 1), (None, 1)])
def test_what_the_model_under_test_knows_is_left_out(said: str | None, number: int) -> None:
    tested, model = always(said), faithful()
    clozes, _, rows, _ = both(
        page("In Easton a new bridge was opened at last."),
        open_model=lambda name: tested if name == "tested" else model,
        closed_book="tested",
    )
    assert len(rows) == number
    assert clozes.counts.dropped == ({} if number else {"the model under test knows the answer": 1})
    assert clozes.options["closed_book"] == {"name": "scripted", "revision": "1"}
    assert tested.prompts == ["In what a new bridge was opened at last?"]


@pytest.mark.parametrize(
    ("past", "number"),
    [
        (PLAIN, 0),
        ("It rained. MAYOR Anna Weber opened a new bridge, in Easton. It snowed.", 0),
        ("Mayor Anna Weber opened an old bridge in Easton.", 1),
        ("Nothing of the kind.", 1),
    ],
)
def test_sentences_of_the_past_are_left_out(tmp_path: Path, past: str, number: int) -> None:
    (tmp_path / "old.jsonl").write_text(json.dumps({"text": past}), "utf-8")
    model = faithful()
    clozes, *_, questions = easy(
        [page(PLAIN)], EasyOptions(), (), lambda name: model, [tmp_path / "old.jsonl"], tmp_path / "work"
    )
    rows, asked = list(clozes.splits["test"]), list(questions.splits["test"])
    assert len(rows) == len(asked) == number
    assert clozes.counts.dropped == ({} if number else {"a sentence of the past": 1})
    assert clozes.options["past"]["documents"] == 1


def test_news_in_another_language() -> None:
    """From German, models translate to English and back; in all steps the prompt asks them to keep the language."""
    model = faithful()
    text = "Gestern hat Anna Weber nach langem Streit dort endlich geredet."
    clozes, _, rows, _ = both(page(text), open_model=lambda name: model, language="de")
    assert clozes.language == "de"
    assert [row["answers"] for row in rows] == [["Anna Weber"]]
    there, back, asked = (next(prompt for prompt in model.prompts if words in prompt) for words in (
        "Translate this sentence to English.", "Translate this sentence to the language with the ISO 639-1 code 'de'.",
        "Write one question",
    ))  # fmt: skip
    assert text in there and text in back
    assert "be in its language" in asked


def test_a_page_twice_and_one_without_a_date() -> None:
    clozes, _, rows, _ = both(page(PLAIN), page(PLAIN), page(f"{PLAIN} {PLAIN}", published=None))
    assert len(rows) == 1
    assert clozes.counts.dropped == {"the same cloze as another sentence's": 1, "page without a date": 2}


CITIES = [f"{a}{b}" for a in ("Nor", "Wes", "Eas", "Sou", "Mid") for b in ("ton", "land", "ford", "wick", "bury")]


def pages(number: int) -> list[dict[str, Any]]:
    draw = random.Random(0)
    made = []
    for i in range(number):
        towns = draw.sample(CITIES, 4)
        text = " ".join(f"Senator Anna Weber opened bridge {i} of {n} in {town}." for n, town in enumerate(towns))
        made.append(page(text, f"https://example.org/{i}", FRIDAY.replace(day=1 + i % 28)))
    return made


def test_caps() -> None:
    """The order of the pages does not matter, and another seed draws others."""
    options = {"per_page": 2, "sentences": 25}
    clozes, _, rows, _ = both(*pages(30), **options)
    assert len(rows) == 25
    assert clozes.counts.dropped == {"more of its page than wanted": 60, "not drawn: more sentences than wanted": 35}
    by_page = [row["url"] for row in rows]
    assert max(map(by_page.count, by_page)) <= 2
    assert [(row["published"], row["url"]) for row in rows] == sorted((row["published"], row["url"]) for row in rows)
    shuffled = pages(30)
    random.Random(1).shuffle(shuffled)
    assert both(*shuffled, **options)[2] == rows != both(*pages(30), **options, seed=1)[2]


def test_either_config_may_be_read_first_or_alone() -> None:
    _, _, clozes, asked = both(*pages(3))
    model = faithful()
    *_, questions = easy(pages(3), EasyOptions(per_page=100), open_model=lambda name: model)
    assert list(questions.splits["test"]) == asked
    assert accounted(questions, asked)
    assert len(clozes) >= len(asked) > 0


def test_the_small_sets_are_of_the_pages_of_the_small_news(tmp_path: Path) -> None:
    write_news(tmp_path / "news.jsonl")
    work, model = tmp_path / "work", faithful()
    news = recentnews([tmp_path / "news.jsonl"], NewsOptions(small_share=0.3), work)
    pages = {one.name.removeprefix("recentnews"): [row["url"] for row in one.splits["train"]] for one in news}
    rows = find_news([tmp_path / "news.jsonl"], NewsOptions(), work).rows()
    made = easy(rows, EasyOptions(small_share=0.3), open_model=lambda name: model)
    found = {}
    for config in made:
        of_config = list(config.splits["test"])
        assert accounted(config, of_config)
        found[config.name.partition("easy")[2]] = [row["url"] for row in of_config]
    assert 0 < len(found["-small"]) < len(found[""])
    for part in ("-small", "-small-p1", "-small-p2"):
        assert set(found[part]) == set(found[""]) & set(pages[part])
    assert sorted(found["-small-p1"] + found["-small-p2"]) == sorted(found["-small"])


def test_models_that_know_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real models with random weights: useless answers are dropped and counted; options name the models."""
    monkeypatch.setattr(text_model, "cache_folder", lambda: tmp_path / "scores")
    t5 = str(tiny_models.save_talking("t5", tmp_path / "t5"))
    gpt2 = str(tiny_models.save("gpt2", tmp_path / "gpt2"))
    steps = {"decontextualization": t5, "there": gpt2, "back": t5, "questions": gpt2, "reader": t5}
    clozes, _, rows, _ = both(*pages(2), open_model=open_model, closed_book=gpt2, **steps)
    assert accounted(clozes, rows)
    assert rows == []
    assert clozes.options["questions"]["name"] == "gpt2"
    assert tmp_path.name not in str(clozes.options)


def test_names_by_a_spacy_pipeline(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "FAC", "pattern": "bridge"}])
    pipeline.to_disk(tmp_path / "bridges")
    clozes, _, rows, _ = both(page("Mayor Anna Weber opened a new bridge in Easton."), spans=str(tmp_path / "bridges"))
    assert [row["answers"] for row in rows] == [["bridge"]]
    assert clozes.options["spans"]["name"] == "spacy"
    assert clozes.options["spans"]["revision"].startswith("spacy ")


def test_options_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="least_words 9, most_words 8"):
        EasyOptions(least_words=9, most_words=8)
    with pytest.raises(UsageError, match="at least 1"):
        EasyOptions(per_page=0)
    with pytest.raises(UsageError, match="to use a model, pass open_model="):
        easy([], EasyOptions())
    with pytest.raises(InputError, match="no-pipeline"):
        easy([], EasyOptions(spans="no-pipeline"))


TEXT = (
    "Anna Weber Easton Norland The the a bridge won opened was said in on of He Monday 1961 2021 U.S. AT&T Sept. , ; "
    "( ) “ ” ' </script> <extra_id_0> [Y] | =cmd() ../ --- 東京 é 😀 . . . ? !"
)
PARTS = [*TEXT.split(), "\n", "\x00", "\ud800"]


@given(st.lists(st.one_of(st.lists(st.sampled_from(PARTS)).map(" ".join), st.text()), max_size=3))
def test_any_text(texts: list[str]) -> None:
    made = [page(text, f"https://example.org/{i}") for i, text in enumerate(texts)]
    clozes, questions, rows, asked = both(*made, least_words=1)
    assert accounted(clozes, rows)
    assert accounted(questions, asked)
    of = {one["url"]: one["text"] for one in made}
    for row in rows:
        answer = row["answers"][0]
        assert row["statement"].count("<extra_id_0>") == 1
        assert not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", row["statement"].replace("<extra_id_0>", " "))
        assert row["evidence"] in of[row["url"]]
        assert answer in row["evidence"]
        assert answer not in row["question"]


def test_real_pages(shared_data: Path) -> None:
    """8 pages with 458 sentences: models that rewrite nothing keep three sentences of each page."""
    of_clozes, of_questions, rows, asked = both(
        *(
            page(gold["text"], f"{gold['site']}/{n}", gold["published"])
            for n, gold in enumerate(gold_articles(shared_data / "news" / "pages"))
        ),
        per_page=3,
    )
    assert accounted(of_clozes, rows)
    assert accounted(of_questions, asked)
    assert of_clozes.counts.read > 400
    assert len(rows) == len(asked) >= 20
