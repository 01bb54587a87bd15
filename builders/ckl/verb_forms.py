"""Base forms of English verbs in the past, for questions with "did": "signed" to "sign", "wrote" to "write"."""

from __future__ import annotations

import regex


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# Pairs of past and base form, for verbs that are frequent in news.
_PAIRS = (
    "arose arise bore bear bred breed became become began begin bent bend bet bet bit bite bled bleed blew blow "
    "broke break brought bring broadcast broadcast built build burst burst bought buy caught catch chose choose "
    "clung cling came come cost cost crept creep cut cut dealt deal dug dig drew draw drank drink drove drive ate "
    "eat fell fall fed feed felt feel fought fight found find fled flee flew fly forbade forbid forgot forget "
    "foresaw foresee forgave forgive froze freeze got get gave give went go grew grow heard hear hid hide hit hit "
    "held hold hung hang hurt hurt kept keep knew know laid lay led lead left leave lent lend let let lit light "
    "lost lose made make meant mean met meet misled mislead outdid outdo overcame overcome oversaw oversee "
    "overthrew overthrow overtook overtake paid pay put put quit quit ran run rang ring rebuilt rebuild rode ride "
    "rose rise said say sang sing sank sink sat sit saw see sold sell sent send set set shook shake shone shine "
    "shot shoot showed show shrank shrink shut shut slept sleep slid slide sought seek sped speed spent spend "
    "split split spoke speak spread spread sprang spring stole steal stood stand strode stride struck strike "
    "stuck stick sued sue swam swim swept sweep swore swear swung swing taught teach thought think threw throw "
    "told tell took take tore tear underwent undergo understood understand undertook undertake upheld uphold "
    "upset upset withdrew withdraw withheld withhold withstood withstand woke wake won win wore wear wove weave "
    "wrote write"
)
IRREGULAR = dict(zip(_PAIRS.split()[::2], _PAIRS.split()[1::2], strict=True))

_DOUBLED = word_set(
    "controlled patrolled cancelled travelled labelled modelled fuelled propelled expelled compelled rebelled "
    "excelled repelled dispelled signalled totalled levelled channelled counselled marshalled equalled rivalled "
    "unravelled extolled quarrelled enrolled fulfilled instilled distilled"
)
_SHORT_IE = frozenset(("died", "lied", "tied", "vied"))
# Exceptions from the rule in _SILENT_E: stems with a silent e, and stems without one.
_WITH_E = word_set(
    "creat recreat procreat invit cit unit recit excit ignit incit expedit reunit compet complet delet deplet"
    " conven interven postpon phon clon condon zon ton adher interfer persever explor restor scor ignor stor implor"
    " deplor ador guid misguid welcom overcom scal inhal exhal whal can breath bath sooth cloth ach dy ey typ"
    " telephon hon glor bor cor contraven preced reced conced ced imped interced styl scen supersed tast past hast"
    " wast chang exchang arrang rearrang challeng plung rang hing aveng reveng loung lung cring infring scaveng"
    " interchang estrang prearrang"
)
_WITHOUT_E = word_set(
    "focus bias canvas develop envelop gallop wallop gossip pilot pivot ballot debut recruit suit visit market "
    "quiz murmur combat format echo veto torpedo embargo ski taxi free order cover offer enter consider canvas "
    "cancel model travel label fuel signal total level channel counsel rival equal shovel tunnel panel parallel "
    "ransom blossom custom fathom handicap kidnap worship fellowship climax rivet harvest edit audit exit limit "
    "credit profit benefit orbit inhabit exhibit prohibit inherit deposit merit solicit elicit forfeit hit spit "
    "split knit permit submit admit emit omit commit abandon imperil tranquil pencil vomit happen open question "
    "target budget buffet trumpet carpet blanket meet greet bracket jacket rocket ticket picket interpret bomb "
    "climb plumb comb thumb numb succumb wed embed monitor honor favor author sponsor harbor labor anchor mirror "
    "error doctor tutor factor vector collar dollar pillar nectar awar"
)


def base_form(past: str) -> str:
    """Return the base form of a verb in the past; that of a regular verb is guessed from its letters."""
    word = past.lower()
    if word in IRREGULAR:
        return IRREGULAR[word]
    if not word.endswith("ed"):
        return word
    if word.endswith("ied"):
        return word[:-1] if word in _SHORT_IE else word[:-3] + "y"
    stem = word[:-2]
    if stem in _WITHOUT_E:
        return stem
    if stem in _WITH_E or stem.endswith("e"):
        return stem + "e"
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "aeiou":
        keep = (
            stem[-1] in "sfz"
            or (stem[-1] == "l" and word not in _DOUBLED)
            or stem in ("add", "egg", "odd", "err", "butt")
        )
        return stem if keep else stem[:-1]
    return stem + "e" if _SILENT_E.search(stem) else stem


_SILENT_E = regex.compile(
    r"""(?: [cvuz] | (?<![s])s
    | (?:[aeiou]|[dlr])g                      # manage, pledge, charge; not hang
    | [bcdfgkpstz]l                             # settle, handle, enable
    | (?<=[^aeiou]|^|qu)[aiouy][tkpdmb]         # state, like, hope, decide, name, describe
    | [iu]at                                    # evaluate, associate
    | (?<=[^aeiou]|qu)[iu][nrl]                 # define, hire, secure, rule
    | (?<=[^aeiou]|qu)[au]r                     # share
    | u(?<![ao]u)a?d                             # include, persuade
    )$""",
    regex.VERBOSE,
)
