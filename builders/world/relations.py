"""The relations of the generated world: Wikidata's property ids and labels, and how a page states them."""

from __future__ import annotations

from dataclasses import dataclass

PEOPLE = ("footballer", "politician", "actor", "scientist", "musician", "executive")


@dataclass(frozen=True)
class Relation:
    """A property, the kinds of item it joins, and sentences for a standing and for a changed fact."""

    id: str
    label: str
    subjects: tuple[str, ...]
    object: str
    standing: str
    changed: str
    chance: float = 0.8


def _r(id: str, label: str, subjects: str, object: str, standing: str, changed: str, chance: float = 0.8) -> Relation:
    kinds = tuple(k for word in subjects.split() for k in (PEOPLE if word == "person" else (word,)))
    return Relation(id, label, kinds, object, standing, changed, chance)


# fmt: off
# {S}: the subject at the start of a sentence; {o}: the object; {when}: a month and year.
RELATIONS: tuple[Relation, ...] = (
    _r("P27", "country of citizenship", "person", "country",
       "{S} holds the citizenship of {o}.", "{S} was granted the citizenship of {o} in {when}.", 0.9),
    _r("P19", "place of birth", "person", "city",
       "{S} was born in {o}.", "Records published in {when} give {o} as the place of birth.", 0.9),
    _r("P20", "place of death", "person", "city",
       "{S} died in {o}.", "{S} died in {o} in {when}.", 0.06),
    _r("P106", "occupation", "person", "occupation",
       "{S} is listed as {o} in the national register.",
       "Since {when}, {o} is given as a further occupation.", 0.9),
    _r("P69", "educated at", "person", "university",
       "{S} studied at {o} for four years.", "{S} completed a degree at {o} in {when}.", 0.7),
    _r("P108", "employer", "scientist executive actor", "company",
       "{S} works for {o}.", "In {when}, {S} began to work for {o}.", 0.7),
    _r("P26", "spouse", "person", "person",
       "{S} is married to {o}.", "In {when}, {S} married {o}.", 0.4),
    _r("P551", "residence", "person", "city",
       "{S} lives in {o}.", "{S} moved to {o} in {when}.", 0.5),
    _r("P1412", "languages spoken, written or signed", "person", "language",
       "{S} speaks {o} in public.", "By {when}, {S} had also learned {o}.", 0.4),
    _r("P103", "native language", "person", "language",
       "The first language of the household was {o}.",
       "An interview of {when} names {o} as the first language.", 0.4),
    _r("P140", "religion or worldview", "person", "religion",
       "{S} follows {o}.", "{S} converted to {o} in {when}.", 0.25),
    _r("P166", "award received", "person", "award",
       "{S} has been awarded the {o}.", "In {when}, {S} received the {o}.", 0.4),
    _r("P463", "member of", "scientist executive politician", "organization",
       "{S} is a fellow of the {o}.", "{S} was elected to the {o} in {when}.", 0.5),
    _r("P800", "notable work", "actor scientist musician", "book",
       "{S} is best known for {o}.", "Since {when}, {S} has been known above all for {o}.", 0.5),
    _r("P102", "member of political party", "politician", "party",
       "{S} belongs to the {o}.", "{S} joined the {o} in {when}.", 0.95),
    _r("P39", "position held", "politician", "position",
       "{S} serves as {o}.", "{S} was sworn in as {o} in {when}.", 0.95),
    _r("P54", "member of sports team", "footballer", "club",
       "{S} plays for {o}.", "In {when}, {S} joined {o}.", 0.98),
    _r("P264", "record label", "musician band", "label",
       "The recordings of the period appeared on {o}.", "{S} signed to {o} in {when}.", 0.8),
    _r("P184", "doctoral advisor", "scientist", "scientist",
       "The doctoral thesis was supervised by {o}.",
       "A biography of {when} names {o} as the thesis supervisor.", 0.7),
    _r("P101", "field of work", "scientist executive", "field",
       "{S} has published on {o}.", "In {when}, {S} turned to {o}.", 0.7),
    _r("P286", "head coach", "club", "footballer",
       "The team is coached by {o}.", "{o} took over as head coach in {when}.", 0.9),
    _r("P634", "captain", "club", "footballer",
       "The captain of the side is {o}.", "{o} was named captain in {when}.", 0.8),
    _r("P115", "home venue", "club", "stadium",
       "Home matches are played at {o}.", "{S} moved its home matches to {o} in {when}.", 0.9),
    _r("P118", "league", "club", "league",
       "{S} competes in the {o}.", "{S} was promoted to the {o} in {when}.", 0.9),
    _r("P859", "sponsor", "club university", "company",
       "The main sponsor is {o}.", "A sponsorship by {o} was announced in {when}.", 0.7),
    _r("P488", "chairperson", "club party organization company", "executive",
       "The board is chaired by {o}.", "{o} was elected to chair the board in {when}.", 0.7),
    _r("P127", "owned by", "company stadium club", "company",
       "{S} is owned by {o}.", "{S} was bought by {o} in {when}.", 0.7),
    _r("P159", "headquarters location", "company party organization", "city",
       "The head office is in {o}.", "The head office moved to {o} in {when}.", 0.9),
    _r("P169", "chief executive officer", "company", "executive",
       "The chief executive is {o}.", "{o} became chief executive in {when}.", 0.9),
    _r("P749", "parent organization", "company label", "company",
       "{S} is a subsidiary of {o}.", "{S} became a subsidiary of {o} in {when}.", 0.5),
    _r("P112", "founded by", "company university band party", "person",
       "{S} was founded by {o}.", "Documents found in {when} show {o} to have been the founder.", 0.7),
    _r("P452", "industry", "company", "industry",
       "{S} is active in {o}.", "{S} expanded into {o} in {when}.", 0.7),
    _r("P1037", "director / manager", "university stadium label", "executive",
       "The day-to-day business is run by {o}.", "{o} was appointed as director in {when}.", 0.8),
    _r("P17", "country", "city club university stadium company party", "country",
       "{S} lies in {o}.", "Since {when}, {S} has been counted as part of {o}.", 0.95),
    _r("P131", "located in the administrative territorial entity", "city stadium university", "region",
       "{S} belongs to the region of {o}.", "{S} was transferred to the region of {o} in {when}.", 0.8),
    _r("P190", "twinned administrative body", "city", "city",
       "{S} is twinned with {o}.", "A twinning agreement with {o} was signed in {when}.", 0.7),
    _r("P6", "head of government", "city country", "politician",
       "The administration is led by {o}.", "{o} was elected to lead the administration in {when}.", 0.8),
    _r("P35", "head of state", "country", "politician",
       "The head of state is {o}.", "{o} was inaugurated as head of state in {when}.", 0.9),
    _r("P36", "capital", "country region", "city",
       "The capital is {o}.", "The seat of government moved to {o} in {when}.", 0.9),
    _r("P37", "official language", "country region city", "language",
       "The official language is {o}.", "In {when}, {o} was made an official language.", 0.6),
    _r("P57", "director", "film", "actor",
       "{S} was directed by {o}.", "A restored print credits {o} as the director from {when}.", 0.9),
    _r("P58", "screenwriter", "film", "actor",
       "The screenplay is by {o}.", "In {when}, the screenplay was credited to {o}.", 0.7),
    _r("P161", "cast member", "film", "actor",
       "The leading part is played by {o}.", "{o} joined the cast in {when}.", 0.9),
    _r("P162", "producer", "film album", "executive",
       "{S} was produced by {o}.", "{o} came in as producer in {when}.", 0.7),
    _r("P86", "composer", "film", "musician",
       "The score was written by {o}.", "{o} was hired to write the score in {when}.", 0.7),
    _r("P495", "country of origin", "film band", "country",
       "{S} comes from {o}.", "Catalogues from {when} on give {o} as the origin.", 0.7),
    _r("P272", "production company", "film", "company",
       "{S} was made by {o}.", "In {when}, the rights of production passed to {o}.", 0.6),
    _r("P136", "genre", "film album band book", "genre",
       "Critics describe {S} as {o}.", "From {when} on, {S} was marketed as {o}.", 0.6),
    _r("P175", "performer", "album", "band",
       "{S} was recorded by {o}.", "A new version by {o} was recorded in {when}.", 0.9),
    _r("P50", "author", "book", "scientist",
       "{S} was written by {o}.", "In {when}, {o} was revealed as the author.", 0.9),
    _r("P123", "publisher", "book", "company",
       "{S} was published by {o}.", "The rights were sold to {o} in {when}.", 0.9),
    _r("P527", "has part(s)", "band", "musician",
       "The line-up includes {o}.", "{o} joined the line-up in {when}.", 0.9),
    _r("P740", "location of formation", "band", "city",
       "{S} was formed in {o}.", "A documentary of {when} places the beginnings in {o}.", 0.7),
)
# fmt: on

BY_ID = {relation.id: relation for relation in RELATIONS}

# Properties that are not told in sentences: label and datatype.
OTHER_PROPERTIES = {
    "P31": ("instance of", "wikibase-item"),
    "P18": ("image", "commonsMedia"),
    "P143": ("imported from Wikimedia project", "wikibase-item"),
    "P248": ("stated in", "wikibase-item"),
    "P407": ("language of work or name", "wikibase-item"),
    "P569": ("date of birth", "time"),
    "P580": ("start time", "time"),
    "P582": ("end time", "time"),
    "P625": ("coordinate location", "globe-coordinate"),
    "P642": ("of", "wikibase-item"),
    "P813": ("retrieved", "time"),
    "P854": ("reference URL", "url"),
    "P856": ("official website", "url"),
    "P1082": ("population", "quantity"),
    "P1365": ("replaces", "wikibase-item"),
    "P1477": ("birth name", "monolingualtext"),
    "P1647": ("subproperty of", "wikibase-property"),
    "P2002": ("X username", "external-id"),
    "P9999": ("hologram", "wikibase-hologram"),  # a datatype that no program knows yet
}

# Small vocabularies: items without a page of their own.
VOCABULARY = {
    "occupation": "association football player|politician|actor|scientist|musician|business executive|"
    "carpenter|translator|choreographer|sailor|beekeeper|cartographer|glassblower|librarian|stage magician",
    "language": "Astrian|Belonic|Corish|Dalmarkish|Eskanian|Feroric|Galesian|Helarian",
    "religion": "Lunarism|the Order of Quiet Lamps|Tidal Faith|Hearthwalking|Skyward Path|Emberism",
    "field": "tidal mechanics|moss ecology|bell acoustics|desert hydrology|glacier dating|"
    "knot theory of cables|antique cryptography|kite aerodynamics",
    "industry": "clock making|salt trading|airship building|tea blending|rail freight|paper milling",
    "genre": "slow folk|river blues|courtroom drama|space western|chamber pop|island noir|pastoral comedy",
}

# Labels and titles that break careless programs. None begins with a character that is markup at the start
# of a line, except for the equals sign, which makes a heading only with another one at the end.
HOSTILE = {
    "band": ('"Quoted" Names', "=1+1", "- a: b", "yes: no", "🎉 Confetti 🎉", "@SUM(A1)", "NULL"),
    "book": ("../../etc/passwd", "Rook & Daughters", "{percent} %s %d", "Ночной поезд", "X:\\temp\\new", "~"),
    "film": ("What's the \"Point\", Ma'am?", "100% Cotton", "-1", "東の橋", "Ünïcödé", "true"),
    "album": ("Left | Right", "a, b; c", "--- !!python/object", "It's 'So' Quiet", "1e5", "<i>Loud</i>"),
}
