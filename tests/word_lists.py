"""The word lists of the production code, which are data, for the slow reference."""

from temporalwiki.builders.wikidata import cues, support

import reference

WORDS = reference.RefWords(
    function=support._FUNCTION,
    titles=support._TITLES,
    states=support._KINDS_OF_STATE,
    generic=cues._GENERIC,
    weak=cues._WEAK,
    denying=support._WORDS_THAT_DENY,
    verbs=support._VERBS,
)
TABLE = {number: cues.table(number) for number in cues.labels()}  # phrases by property
