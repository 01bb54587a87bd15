# ruff: noqa: E501 - one reply a line
"""What chat models reply, and what it means: replies of many styles, and their outcome by hand. All names are invented.

The table was written before the rules, and every third reply was not looked at until the rules were written.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.eval_harness.metrics.knowledge_match import exact_match
from temporalwiki.eval_harness.references import choices_of, right_answers
from temporalwiki.eval_harness.replies import OUTCOMES, outcome, read, without_reasoning


def fact(subject: str, right: str, gone: str = "", aliases: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    gone_objects = [gone] if gone else []
    return {"subject": subject, "object": right, "aliases": list(aliases), "gone_objects": gone_objects, **more}


FACTS = {
    "head": fact("Ostravia", "Mira Velden", "Jonas Harrow", ("M. Velden", "Mira Anna Velden")),
    "capital": fact("Tavora", "Port Ellis", "Marrow"),
    "team": fact("Danel Roque", "Kestrel United", "Kestrel City", objects=["Kestrel United", "Osk Rangers"]),
    "paris": fact("Lumen Works", "Pariso", "Norwick"),
    "nested": fact("Isle of Brask", "Democratic Republic of Kesh", "Republic of Kesh"),
    "owner": fact("The Daily Lantern", "U.S. Lantern Co.", "Vane & Sons", ("US Lantern",)),
    "river": fact("New Marrow", "Saint-Osk", "Marrow"),
    "stable": fact("Fenwick Brook", "Tavora"),
    "japan": fact("オルサ", "東浜", "西港"),
    "article": fact("Ida Lorn", "The Hollow Crown", "The Hollow"),
}

# style -> (fact, reply, outcome)
REPLIES: dict[str, list[tuple[str, str, str]]] = {
    "name only": [
        ("head", "Mira Velden", "new"),
        ("head", "Jonas Harrow.", "old"),
        ("head", "mira velden", "new"),
        ("head", "MIRA VELDEN", "new"),
        ("head", "M. Velden", "new"),
        ("head", "Tom Askar", "neither"),
        ("capital", " Port Ellis\n", "new"),
        ("team", "Osk Rangers", "new"),
        ("team", "Kestrel City", "old"),
        ("owner", "US Lantern", "new"),
        ("owner", "Vane and Sons", "neither"),
        ("owner", "Vane & Sons", "old"),
        ("nested", "Democratic Republic of Kesh", "new"),
        ("nested", "The Republic of Kesh", "old"),
        ("river", "Saint-Osk", "new"),
        ("river", "Saint Osk", "new"),
        ("river", "New Marrow", "neither"),
        ("stable", "Tavora", "new"),
        ("japan", "東浜", "new"),
        ("article", "Hollow Crown", "new"),
        ("article", "The Hollow", "old"),
    ],
    "part of a longer word or name": [
        ("paris", "It has a Parisoian office.", "neither"),
        ("paris", "Parisoville", "neither"),
        ("capital", "Marrowgate", "neither"),
        ("capital", "The capital is South Marrow.", "neither"),
        ("paris", "The company is in Pariso.", "new"),
        ("capital", "The Marrowine town of Ellis", "neither"),
        ("river", "New Marrow lies in Saint-Osk.", "new"),
        ("river", "The district of New Marrow is called Fennel Ward.", "neither"),
        ("team", "He plays for Kestrel.", "neither"),
        ("team", "He plays for the Kestrel City Rollers.", "neither"),
        ("nested", "Isle of Brask belongs to the Democratic Republic of Kesh.", "new"),
        ("article", "Ida Lorn wrote The Hollow Crown.", "new"),
    ],
    "full sentence": [
        ("head", "The head of government of Ostravia is Mira Velden.", "new"),
        ("head", "Mira Velden is the head of government of Ostravia.", "new"),
        ("head", "Ostravia's head of government is Jonas Harrow, who leads the Blue Party.", "old"),
        ("head", "The Prime Minister of Ostravia, Mira Velden, has led the country since 2022.", "new"),
        ("head", "Jonas Harrow has been the head of government since 2015.", "old"),
        ("head", "It's Mira Velden.", "new"),
        ("head", "That would be Mira Velden!", "new"),
        ("capital", "Tavora's capital is Port Ellis.", "new"),
        ("capital", "The capital of Tavora is Marrow, a city on the river Lind.", "old"),
        ("capital", "The capital is Lindholm.", "neither"),
        ("team", "Danel Roque currently plays for Kestrel United FC as a midfielder.", "new"),
        ("team", "Danel Roque plays for Kestrel City's first team.", "old"),
        ("paris", "Lumen Works has its headquarters in Pariso, Tavora.", "new"),
        ("owner", "The Daily Lantern is owned by U.S. Lantern Co., a holding company.", "new"),
        ("stable", "Fenwick Brook is a river in Tavora.", "new"),
        ("head", "The head of government of Ostravia was Jonas Harrow.", "old"),
        ("japan", "オルサの首都は東浜です。", "new"),
        ("japan", "答えは西港です。", "old"),
    ],
    "the answer is": [
        ("head", "The answer is Mira Velden.", "new"),
        ("head", "Answer: Jonas Harrow", "old"),
        ("head", "Answer: **Mira Velden**", "new"),
        ("head", "**Answer:** Mira Velden", "new"),
        ("head", "Final Answer: Mira Velden\n\nExplanation: Jonas Harrow is often named as well.", "new"),
        ("head", "The correct answer is: Jonas Harrow", "old"),
        ("head", "The answer to your question is Mira Velden.", "new"),
        ("head", "My answer: Mira Velden", "new"),
        ("head", "A: Jonas Harrow", "old"),
        ("head", "Jonas Harrow and Mira Velden are both politicians. Answer: Mira Velden", "new"),
        ("head", "Answer:\nMira Velden", "new"),
        ("head", "The final answer is $\\boxed{\\text{Mira Velden}}$.", "new"),
        ("head", "\\boxed{Jonas Harrow}", "old"),
        ("head", "<answer>Mira Velden</answer>", "new"),
        ("head", '{"answer": "Mira Velden"}', "new"),
        ("head", '```json\n{"question": "Who is the head?", "answer": "Jonas Harrow"}\n```', "old"),
        ("head", "Answer: Tom Askar\nNote: Jonas Harrow came before him.", "neither"),
        ("head", "Answer: unknown", "abstained"),
    ],
    "markdown": [
        ("head", "**Mira Velden**", "new"),
        ("head", "The head of government of Ostravia is **Jonas Harrow**.", "old"),
        ("head", "*Mira Velden*", "new"),
        ("head", "__Mira Velden__", "new"),
        ("head", "# Ostravia\n\nHead of government: **Mira Velden**", "new"),
        ("head", "The head is **Mira Velden**. Jonas Harrow is the leader of the opposition.", "new"),
        ("head", "`Jonas Harrow`", "old"),
        ("head", "| Country | Head of government |\n|---|---|\n| Ostravia | Mira Velden |", "new"),
        ("head", "> Mira Velden", "new"),
        ("head", "[Mira Velden](https://example.org/Jonas_Harrow)", "new"),
        ("head", "**Ostravia** has a parliament. Its head of government is Jonas Harrow.", "old"),
        ("head", "***Jonas Harrow***", "old"),
    ],
    "dates in brackets": [
        ("head", "Mira Velden (as of 2023)", "new"),
        ("head", "Jonas Harrow (as of 2021)", "old"),
        ("head", "Mira Velden (since March 2022)", "new"),
        ("head", "Mira Velden (2022–present), Jonas Harrow (2015–2022)", "new"),
        ("head", "Jonas Harrow (2015-2022)", "old"),
        ("head", "2015–2022: Jonas Harrow\n2022–present: Mira Velden", "new"),
        ("head", "As of October 2021, the head of government is Jonas Harrow.", "old"),
        ("head", "Mira Velden [1]", "new"),
        ("head", "As of my last update in 2021, it was Jonas Harrow. As of 2023 it is Mira Velden.", "new"),
        ("capital", "Port Ellis (formerly Marrow)", "new"),
        ("team", "Kestrel United (on loan from Kestrel City)", "new"),
        ("head", "Mira Velden (born 1970)", "new"),
    ],
    "what was before": [
        ("head", "It is no longer Jonas Harrow, but Mira Velden.", "new"),
        ("head", "Jonas Harrow until 2021; now Mira Velden.", "new"),
        ("head", "Formerly Jonas Harrow, now Mira Velden", "new"),
        ("head", "Mira Velden, who succeeded Jonas Harrow in 2022.", "new"),
        ("head", "Mira Velden replaced Jonas Harrow.", "new"),
        ("head", "Jonas Harrow was replaced by Mira Velden in 2022.", "new"),
        ("head", "Jonas Harrow was succeeded by Mira Velden.", "new"),
        ("head", "Mira Velden took over from Jonas Harrow.", "new"),
        ("head", "After Jonas Harrow resigned, Mira Velden became head of government.", "new"),
        ("head", "Following the resignation of Jonas Harrow, Mira Velden took office.", "new"),
        ("head", "Jonas Harrow stepped down in 2022. Mira Velden is his successor.", "new"),
        ("head", "Mira Velden. Her predecessor was Jonas Harrow.", "new"),
        ("head", "Mira Velden is the head of government. Before that, it was Jonas Harrow.", "new"),
        ("head", "The previous head of government was Jonas Harrow. The current one is Mira Velden.", "new"),
        ("head", "It used to be Jonas Harrow. Mira Velden was elected in 2022.", "new"),
        ("head", "Mira Velden defeated the incumbent Jonas Harrow in the election of 2022.", "new"),
        ("head", "Jonas Harrow, the former head, lost to Mira Velden.", "new"),
        ("head", "Mira Velden was appointed in 2022, replacing Jonas Harrow.", "new"),
        ("head", "The ex-premier Jonas Harrow was followed by Mira Velden.", "new"),
        ("head", "Jonas Harrow served from 2015 to 2022, and Mira Velden has served since.", "new"),
        ("head", "Jonas Harrow was head of government until 2021.", "old"),
        ("head", "Jonas Harrow was head of government until 2021; it is now Tom Askar.", "neither"),
        ("head", "Tom Askar, who succeeded Jonas Harrow.", "neither"),
        ("capital", "The capital moved from Marrow to Port Ellis in 2022.", "new"),
        ("capital", "Port Ellis has been the capital since 2022, when it took the place of Marrow.", "new"),
        ("team", "Danel Roque left Kestrel City in 2022 and joined Kestrel United.", "new"),
        ("team", "After three seasons at Kestrel City, he signed for Osk Rangers.", "new"),
        ("team", "He moved from Kestrel United to Kestrel City.", "old"),
        ("owner", "Vane & Sons sold the paper to U.S. Lantern Co. in 2022.", "new"),
        ("nested", "Formerly part of the Republic of Kesh, it is now in the Democratic Republic of Kesh.", "new"),
        ("head", "Mira Velden resigned in 2023, and Jonas Harrow is head of government again.", "old"),
        ("head", "Jonas Harrow is no longer in office.", "neither"),
        ("head", "Currently Jonas Harrow; Mira Velden will take office in 2023.", "old"),
        ("capital", "Marrow was the capital of Tavora before Port Ellis.", "new"),
    ],
    "negation": [
        ("head", "Not Jonas Harrow, but Mira Velden.", "new"),
        ("head", "It is not Jonas Harrow. It is Mira Velden.", "new"),
        ("head", "Jonas Harrow, not Mira Velden.", "old"),
        ("head", "Neither Mira Velden nor Jonas Harrow.", "neither"),
        ("head", "It isn't Jonas Harrow anymore.", "neither"),
        ("head", "Mira Velden, rather than Jonas Harrow.", "new"),
        ("head", "Mira Velden is not the head of government; Jonas Harrow is.", "old"),
        ("head", "Contrary to what many believe, it is not Jonas Harrow but Mira Velden.", "new"),
        ("head", "Not only Mira Velden but also Jonas Harrow.", "both"),
        ("head", "It is Mira Velden instead of Jonas Harrow.", "new"),
        ("head", "Definitely not Mira Velden.", "neither"),
        ("capital", "Unlike many people think, the capital is Port Ellis and not Marrow.", "new"),
        ("capital", "Marrow is the largest city, but it isn't the capital. The capital is Port Ellis.", "new"),
    ],
    "hedged": [
        ("head", "I believe it is Mira Velden.", "new"),
        ("head", "I'm not sure, but I think it's Jonas Harrow.", "old"),
        ("head", "Probably Mira Velden, though I am not certain.", "new"),
        ("head", "Mira Velden?", "new"),
        ("head", "I don't know for sure. My best guess is Mira Velden.", "new"),
        ("head", "As of my last update in 2021, the head of government was Jonas Harrow.", "old"),
        (
            "head",
            "I don't have access to current information. As of my knowledge cutoff in 2021, Jonas Harrow was the head "
            "of government. Please check a recent source.",
            "old",
        ),
        ("head", "It could be either Mira Velden or Jonas Harrow.", "both"),
        ("head", "I'm not sure, but I think it's Tom Askar.", "neither"),
        ("head", "As an AI I can't browse, but to my knowledge it is Mira Velden.", "new"),
        ("head", "It is most likely Jonas Harrow, but this may have changed since my last update.", "old"),
        ("head", "Hmm, maybe Mira Velden. I cannot verify that.", "new"),
        ("head", "Sure! Mira Velden is the head of government. Let me know if you need anything else!", "new"),
        ("head", "Great question! The head of government is Jonas Harrow. I hope this helps.", "old"),
    ],
    "refusal": [
        ("head", "I don't know.", "abstained"),
        ("head", "I don’t know who that is.", "abstained"),
        ("head", "I'm sorry, but I can't help with that.", "abstained"),
        ("head", "As an AI language model, I do not have real-time information.", "abstained"),
        ("head", "", "abstained"),
        ("head", "  \n", "abstained"),
        ("head", "Unknown", "abstained"),
        ("head", "N/A", "abstained"),
        ("head", "I'm not sure.", "abstained"),
        ("head", "I am unable to determine the head of government of Ostravia.", "abstained"),
        ("head", "I found no information about Ostravia in my training data.", "abstained"),
        ("head", "I'm not familiar with a country called Ostravia. Could you provide more context?", "abstained"),
        ("head", "Ostravia does not seem to be a real country.", "abstained"),
        ("head", "I cannot say whether it is Mira Velden or Jonas Harrow.", "abstained"),
        ("head", "I have no information about Mira Velden.", "abstained"),
        ("head", "I couldn't find any reliable information on this.", "abstained"),
        ("head", "My knowledge ends in 2021, so I cannot tell you who the current head of government is.", "abstained"),
        ("head", "No idea, sorry.", "abstained"),
        ("head", "I'd rather not answer this question.", "abstained"),
        ("head", "The answer is not known to me.", "abstained"),
        ("head", "I cannot provide information on political figures.", "abstained"),
        ("head", "Insufficient information.", "abstained"),
        ("head", "I don't know who leads it today; Jonas Harrow was head of government until 2021.", "abstained"),
        ("head", "Idk", "abstained"),
    ],
    "lists": [
        ("head", "1. Mira Velden\n2. Jonas Harrow", "both"),
        ("head", "- Mira Velden", "new"),
        ("head", "- Jonas Harrow\n- Tom Askar", "old"),
        ("head", "Mira Velden, Jonas Harrow", "both"),
        ("head", "Mira Velden and Jonas Harrow", "both"),
        ("team", "Kestrel United, Osk Rangers", "new"),
        ("team", "He has played for:\n* Kestrel City (2018–2021)\n* Kestrel United (2021–present)", "new"),
        ("team", "Kestrel United; Kestrel City", "both"),
        ("team", "Roque's clubs:\n1. Lind Town\n2. Norwick Rovers", "neither"),
        ("capital", "- Former capital: Marrow\n- Current capital: Port Ellis", "new"),
        ("capital", "Marrow/Port Ellis", "both"),
        ("capital", "Port Ellis (administrative) and Marrow (legislative)", "both"),
    ],
    "quotes": [
        ("head", '"Mira Velden"', "new"),
        ("head", "“Jonas Harrow”", "old"),
        ("head", "'Mira Velden'", "new"),
        ("article", "Her latest book is “The Hollow Crown”.", "new"),
        ("article", 'She is best known for "The Hollow".', "old"),
        ("head", "«Mira Velden»", "new"),
        ("owner", "It belongs to ‘Vane & Sons’.", "old"),
        ("capital", "「Port Ellis」", "new"),
    ],
    "several lines": [
        ("head", "Ostravia is a republic on the coast.\n\nIts head of government is Mira Velden.", "new"),
        ("head", "Mira Velden\n\nMira Velden has been the head of government since 2022.", "new"),
        ("head", "Question: Who is the head of government of Ostravia?\nAnswer: Jonas Harrow", "old"),
        ("head", "Country: Ostravia\nHead: Mira Velden\nParty: Green", "new"),
        ("head", "Jonas Harrow\n\n(Note: my knowledge ends in 2021.)", "old"),
        ("head", "Let me see.\nThe head of government...\nis Tom Askar.", "neither"),
        ("head", "Mira Velden\nOstravia\nHead of government", "new"),
        ("head", "Ostravia has had several heads of government.\nThe current one: Mira Velden.\nThanks!", "new"),
    ],
    "reasoning": [
        ("head", "<think>Jonas Harrow was first.</think>Mira Velden", "new"),
        ("head", "<think>\nMaybe Mira Velden?\n</think>\n\nJonas Harrow", "old"),
        ("head", "<think>It may be Mira Velden, or", "abstained"),
        ("head", "It was Jonas Harrow, then Mira Velden.</think>Mira Velden", "new"),
        ("head", "<thinking>Jonas Harrow</thinking> <answer>Mira Velden</answer>", "new"),
        ("head", "[THINK]Mira Velden or so[/THINK]Jonas Harrow", "old"),
        ("head", "◁think▷Jonas Harrow?◁/think▷Mira Velden", "new"),
        ("head", "<|channel|>analysis<|message|>Jonas Harrow?<|end|><|start|>assistant<|channel|>final<|message|>Mira Velden",
         "new"),
        ("head", "<reasoning>Mira Velden left.</reasoning>\nAnswer: Jonas Harrow", "old"),
        ("head", "<think></think>\nMira Velden", "new"),
        ("head", "<THINK>Jonas Harrow</THINK>I don't know.", "abstained"),
        ("head", "<think>a</think><think>Jonas Harrow</think>Mira Velden", "new"),
    ],
    # written after the rules
    "seen later": [
        ("head", "The current head of government of Ostravia is Prime Minister Mira Velden, in office since 2022. She succeeded Jonas Harrow, who had led the country for seven years.", "new"),
        ("head", "Ostravia's head of government is Jonas Harrow, who succeeded Mira Velden in 2019.", "old"),
        ("head", "As of my last knowledge update in September 2021, Jonas Harrow is the head of government of Ostravia. However, political positions change, so please verify this.", "old"),
        ("head", "As of early 2023, Mira Velden serves as head of government, having taken over from Jonas Harrow in 2022.", "new"),
        ("head", "The head of government of Ostravia (as of December 2021) is Mira Velden, not Jonas Harrow, as some sources still state.", "new"),
        ("head", "Jonas Harrow held the post from 2015 until December 2021, when Mira Velden was sworn in.", "new"),
        ("head", "The post is currently held by Mira Velden.", "new"),
        ("head", "The post was held by Jonas Harrow until Mira Velden won the election.", "new"),
        ("head", "Jonas Harrow's successor is Mira Velden.", "new"),
        ("head", "I do not have information about Ostravia. It might be a fictional country.", "abstained"),
        ("head", "I apologize, but I could not find any information about a head of government of Ostravia.", "abstained"),
        ("head", "I'm not aware of any changes after 2021; at that time Jonas Harrow was in office.", "old"),
        ("head", "Unfortunately, I don't have that information.", "abstained"),
        ("head", "Mira Velden (replacing Jonas Harrow, who resigned on 3 December 2021)", "new"),
        ("head", "Head of government: Jonas Harrow\nHead of state: Queen Ilse", "old"),
        ("head", "It depends on the date: Jonas Harrow before 2022, Mira Velden after.", "new"),
        ("head", "The head of government of Ostravia is King Aldo III.", "neither"),
        ("head", "Ostravia does not have a head of government.", "abstained"),
        ("head", "Mira Velden has been prime minister since Jonas Harrow's resignation.", "new"),
        ("head", "In 2021, Jonas Harrow was still head of government; Mira Velden followed him.", "new"),
        ("head", "Jonas Harrow → Mira Velden", "both"),
        ("head", "Okay, so the user asks who leads Ostravia. </think>\n\nThe answer is **Mira Velden**.", "new"),
        ("head", "Mira Velden is Ostravia's head of government. She is the first woman in that office, and was previously minister under Jonas Harrow.", "new"),
        ("head", "Please note that I am an AI. Mira Velden.", "new"),
        ("head", "There's no definitive answer, but Jonas Harrow is widely cited.", "old"),
        ("capital", "The capital of Tavora is Port Ellis, which replaced Marrow as the capital in December 2021.", "new"),
        ("capital", "Tavora has two: Port Ellis, the seat of government, and Marrow, the seat of parliament.", "both"),
        ("capital", "Marrow remains the largest city, while Port Ellis is the capital.", "both"),
        ("capital", "Port Ellis, previously known as Marrow.", "new"),
        ("capital", "Tavora City", "neither"),
        ("team", "Danel Roque transferred from Kestrel City to Kestrel United in the winter of 2021.", "new"),
        ("team", "He is under contract with Kestrel City but is playing for Kestrel United on loan.", "both"),
        ("team", "Danel Roque is a former Kestrel City player who now represents Kestrel United.", "new"),
        ("team", "Danel Roque no longer plays for Kestrel City.", "neither"),
        ("team", "He joined Kestrel United after leaving Kestrel City.", "new"),
        ("paris", "Lumen Works moved its headquarters to Pariso in 2021; they had been in Norwick.", "new"),
        ("paris", "Norwick (until 2021), Pariso (since 2021)", "new"),
        ("paris", "Headquartered in Norwick, with a branch in Pariso", "both"),
        ("owner", "Vane & Sons owned it before selling it to US Lantern.", "new"),
        ("owner", "It is owned by Vane & Sons, though the sale to U.S. Lantern Co. has been announced.", "both"),
        ("nested", "It is part of the Democratic Republic of Kesh, also known as Kesh.", "new"),
        ("stable", "Fenwick Brook flows through Brask before it reaches Tavora.", "new"),
        ("stable", "I think that Fenwick Brook is in Brask.", "neither"),
        ("japan", "以前は西港でしたが、現在は東浜です。", "both"),
    ],
}  # fmt: skip

CASES = [case for cases in REPLIES.values() for case in cases]


def test_the_table_is_large() -> None:
    assert len(CASES) >= 150
    assert len(REPLIES) >= 12
    assert {expected for _, _, expected in CASES} == set(OUTCOMES)


@pytest.mark.parametrize(("name", "reply", "expected"), CASES)
def test_outcomes_by_hand(name: str, reply: str, expected: str) -> None:
    assert outcome(reply, FACTS[name]) == expected


@pytest.mark.parametrize(
    "frame", ["{}", "{}.", "Answer: {}", "The answer is {}.", "**{}**", "{} (as of 2021)", "It is {}."]
)
@pytest.mark.parametrize("row", FACTS.values(), ids=FACTS)
def test_each_right_and_each_gone_name_counts_in_full(row: dict[str, Any], frame: str) -> None:
    for right in right_answers(row):
        found = read(frame.format(right), row)
        assert (found.outcome, exact_match(found.answer, right_answers(row))) == ("new", 1.0)
    for gone in choices_of(row)[1]:
        found = read(frame.format(gone), row)
        assert (found.outcome, exact_match(found.answer, right_answers(row))) == ("old", 0.0)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is Mira Velden.", "Mira Velden"),
        ("mira velden leads it", "Mira Velden"),  # the name as the dataset writes it
        ("Answer: Tom Askar. He leads it.", "Tom Askar"),
        ("**Tom Askar**", "Tom Askar"),
        ("<think>Mira Velden</think>Tom Askar", "Tom Askar"),
        ("Mira Velden, Jonas Harrow", "Mira Velden, Jonas Harrow"),  # both: no exact match
        ("<think>Mira", ""),
    ],
)
def test_the_answer_for_exact_match(reply: str, answer: str) -> None:
    assert read(reply, FACTS["head"]).answer == answer


def test_a_name_of_both_sides_is_right() -> None:
    row = fact("Ostravia", "Mira Velden", objects=["Mira Velden", "Jonas Harrow"], previous_objects=["Jonas Harrow"])
    assert outcome("Jonas Harrow", row) == "new"


def test_without_gone_objects_the_previous_ones_are_old() -> None:
    row = fact("Ostravia", "Mira Velden", previous_objects=["Jonas Harrow"]) | {"gone_objects": None}
    assert outcome("Jonas Harrow", row) == "old"


@given(st.text(max_size=300), st.sampled_from(list(FACTS)))
def test_any_reply_has_an_outcome(reply: str, name: str) -> None:
    assert outcome(reply, FACTS[name]) in OUTCOMES


@given(st.text(alphabet="<think/>[THINK]abc \n", max_size=60))
def test_reasoning_is_stripped_once_and_for_all(reply: str) -> None:
    once = without_reasoning(reply)
    assert without_reasoning(once) == once


@pytest.mark.parametrize("loop", ["Osk and ", "was Osk, "])
def test_a_model_that_repeats_a_name_is_read_in_little_time(loop: str) -> None:
    began = time.process_time()
    assert outcome(loop * 2000, fact("Brask", "Osk")) == "new"
    assert time.process_time() - began < 2  # each name was weighed in the whole text: 4.5 s


def test_long_replies_take_little_time() -> None:
    assert outcome("I think Jonas Harrow was not, until " * 20_000 + "Answer: Mira Velden", FACTS["head"]) == "new"
