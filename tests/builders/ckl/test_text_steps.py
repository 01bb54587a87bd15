"""What the steps of CKL ask of a language model, and how they read its answers."""

from datetime import UTC, datetime

import pytest

from temporalwiki.builders.ckl.text_steps import (
    Passage,
    are_answered,
    back_translate,
    decontextualize,
    occurrences,
    occurs,
    questions,
)

from a_text_model import ScriptedModel, always

PASSAGE = Passage("Anna Weber won the cup in 1961.", "1961", 26, "The cup", "It was late. Nobody was there.")


def test_prompts_of_encoder_decoders() -> None:
    model = ScriptedModel(encoder_decoder=True)
    assert questions([PASSAGE], model) == [None]  # an echo is not a question
    decontextualize([PASSAGE], model)
    assert back_translate(["One."], model, model) == ["One."]
    assert are_answered([PASSAGE], ["When?"], model) == [False]
    assert model.prompts == [
        "answer: 1961 context: Anna Weber won the cup in 1961.",
        "The cup [SEP]  [SEP] It was late. Nobody was there. [SEP] Anna Weber won the cup in 1961. [SEP] ",
        "One.",
        "One.",
        "question: When? context: Anna Weber won the cup in 1961.",
    ]


def test_answers_are_marked_if_the_model_knows_the_mark() -> None:
    for mark, before in (("<hl>", "generate question: "), ("[HL]", "")):
        model = ScriptedModel(encoder_decoder=True, tokens=[mark])
        questions([PASSAGE], model)
        assert model.prompts == [f"{before}Anna Weber won the cup in {mark} 1961 {mark}."]


def test_other_models_get_instructions() -> None:
    model = ScriptedModel()
    questions([PASSAGE], model)
    decontextualize([PASSAGE._replace(published=datetime(2023, 4, 8, tzinfo=UTC))], model)
    assert back_translate(["One."], model, model)
    are_answered([PASSAGE], ["When did she win?"], model)
    question, sentence, there, back, answer = model.prompts
    assert "Anna Weber won the cup in 1961." in question
    assert "'1961'" in question
    assert "Anna Weber won the cup in 1961." in sentence
    assert "Nobody was there." in sentence
    assert "Published: April 8, 2023" in sentence
    assert "German" in there
    assert "English" in back
    assert "Sentence: Anna Weber won the cup in 1961.\nQuestion: When did she win?" in answer


def read(text: str | None) -> list[object]:
    """Return a model's text as a question, as a rewritten sentence, and whether it answers with the answer."""
    model = always(text)
    steps = questions([PASSAGE], model), decontextualize([PASSAGE], model), are_answered([PASSAGE], ["When?"], model)
    return [found for [found] in steps]


@pytest.mark.parametrize(
    ("text", "question", "sentence", "answered"),
    [
        ("When did she win? She won in 1961.", "When did she win?", "When did she win? She won in 1961.", False),
        ("question: When did she win?", "When did she win?", "question: When did she win?", False),
        ("Anna Weber won.", None, "Anna Weber won.", False),
        ("DONE #### Anna Weber won.", None, "Anna Weber won.", False),
        ("UNNECESSARY #### Anna Weber won.", None, "Anna Weber won.", False),
        ("IMPOSSIBLE #### She won.", None, None, False),
        ("1961", None, "1961", True),
        ("the 1961!", None, "the 1961!", True),
        (" In 1961.", None, "In 1961.", False),
        ("1962", None, "1962", False),
        ("", None, None, False),
        (None, None, None, False),
    ],
)
def test_how_a_models_text_is_read(
    text: str | None, question: str | None, sentence: str | None, answered: bool
) -> None:
    assert read(text) == [question, sentence, answered]


@pytest.mark.parametrize(
    ("answer", "text", "times"),
    [
        ("AI", "the AI-powered agents", 1),
        ("US", "the U.S. army, the US navy", 2),
        ("Easton", "in EASTON's streets", 1),
        ("Anna  Weber", "said Anna Weber.", 1),
        ("Easton", "Eastonia", 0),
        ("art", "the start", 0),
        ("Weber", "web er", 0),
        ("C++", "in C++, too", 1),
        ("(a", "f (a b", 1),
        ("Ada", "Ada, ada and Adam", 2),
        ("e\u0301", "caf\u00e9 \u00e9", 1),
        ("caf", "cafe\u0301 cafe", 0),
        ("The Who", "The Who said who did", 2),
        ("", "a", 0),
    ],
)
def test_how_often_an_answer_stands_in_a_text(answer: str, text: str, times: int) -> None:
    assert occurrences(answer, text) == times
    assert occurs(answer, text) == (times > 0)
