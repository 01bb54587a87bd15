"""The relations of the generated world, with Wikidata's property ids, and how a page states them."""

from __future__ import annotations

from typing import NamedTuple


class Relation(NamedTuple):
    """A property, the kinds of item that it joins, and its sentence."""

    id: str
    label: str
    subjects: str  # kinds, separated by spaces
    object: str
    sentence: str  # {S} is the subject at the start of the sentence, {o} the object
    share: float = 0.8  # of the subjects that have it in the first month


RELATIONS = (
    Relation("P27", "country of citizenship", "person", "country", "{S} holds the citizenship of {o}.", 0.9),
    Relation("P19", "place of birth", "person", "city", "Records give {o} as the place of birth.", 0.9),
    Relation("P20", "place of death", "person", "city", "{S} died in {o}.", 0.06),
    Relation("P106", "occupation", "person", "occupation", "The national register lists {o} as the occupation.", 0.9),
    Relation("P69", "educated at", "person", "university", "{S} has a degree of {o}."),
    Relation("P108", "employer", "scientist executive actor", "company", "{S} works for {o}."),
    Relation("P26", "spouse", "person", "person", "{S} is married to {o}.", 0.4),
    Relation("P551", "residence", "person", "city", "{S} lives in {o}.", 0.5),
    Relation("P1412", "languages spoken, written or signed", "person", "language", "{S} speaks {o} in public.", 0.4),
    Relation("P166", "award received", "person", "award", "{S} holds the {o}.", 0.4),
    Relation("P463", "member of", "scientist executive politician", "organization", "{S} is a fellow of the {o}."),
    Relation("P102", "member of political party", "politician", "party", "{S} belongs to the {o}.", 0.95),
    Relation("P39", "position held", "politician", "position", "{S} serves as {o}.", 0.95),
    Relation("P54", "member of sports team", "footballer", "club", "{S} plays for {o}.", 0.95),
    Relation("P184", "doctoral advisor", "scientist", "scientist", "Biographies name {o} as the thesis supervisor."),
    Relation("P286", "head coach", "club", "footballer", "The team is coached by {o}."),
    Relation("P115", "home venue", "club", "stadium", "Home matches are played at {o}."),
    Relation("P118", "league", "club", "league", "{S} competes in the {o}."),
    Relation("P488", "chairperson", "club party organization company", "executive", "The board is chaired by {o}."),
    Relation("P127", "owned by", "company stadium club", "company", "{S} is owned by {o}."),
    Relation("P159", "headquarters location", "company party organization", "city", "The head office is in {o}."),
    Relation("P169", "chief executive officer", "company", "executive", "The chief executive is {o}."),
    Relation("P112", "founded by", "company university band party", "person", "Documents show {o} as the founder."),
    Relation("P452", "industry", "company", "industry", "{S} is active in {o}."),
    Relation("P1037", "director / manager", "university stadium", "executive", "The business is run by {o}."),
    Relation("P17", "country", "city club university stadium company party", "country", "{S} lies in {o}.", 0.95),
    Relation("P131", "located in the administrative territorial entity", "city stadium", "region", "{S} is in {o}."),
    Relation("P190", "twinned administrative body", "city", "city", "{S} is twinned with {o}."),
    Relation("P6", "head of government", "city region", "politician", "The local government is led by {o}."),
    Relation("P35", "head of state", "country", "politician", "The head of state is {o}."),
    Relation("P36", "capital", "country region", "city", "The seat of government is {o}."),
    Relation("P57", "director", "film", "actor", "{S} was directed by {o}."),
    Relation("P161", "cast member", "film", "actor", "The leading part is played by {o}."),
    Relation("P162", "producer", "film", "executive", "{S} was produced by {o}."),
    Relation("P86", "composer", "film", "musician", "The score was written by {o}."),
    Relation("P136", "genre", "film band book", "genre", "The usual label of critics is {o}."),
    Relation("P50", "author", "book", "scientist", "{S} was written by {o}."),
    Relation("P123", "publisher", "book", "company", "{S} was published by {o}."),
    Relation("P527", "has part(s)", "band", "musician", "The line-up includes {o}."),
)
# Other sentences that state a fact of any relation; {r} is the relation.
WORDINGS = (
    "The almanac lists {S} under {r} with {o}.",
    "Asked about {S}, the registry gave as {r} the answer {o}.",
)
TIMES = {"P569": "date of birth", "P580": "start time", "P582": "end time"}
LABELS = {"P31": "instance of"} | TIMES | {relation.id: relation.label for relation in RELATIONS}
