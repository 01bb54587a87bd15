"""Which names are other spellings of one name: invented pairs of the kinds that were found in real changes."""

import pytest

from temporalwiki.builders.wikidata.respelled import is_respelled

SAME = {
    "letters of a word": ("Mohamed Siad Dualeh", "Mohamed Said Dualeh"),
    "a transliteration": ("Uyghur", "Uighur"),
    "silent and double letters": ("chillies", "chilies"),
    "y and i, k and q": ("Haytham bin Tariq", "Haitham bin Tarik"),
    "accents and marks": ("Møre-Strand", "More Strand"),
    "a plural": ("Buddhists", "Buddhist"),
    "joined words": ("sheepskins", "sheep skins"),
    "the order of words": ("Batbayar Ulziidelger", "Ulziidelger Batbayar"),
    "another language's form": ("Consensu Federal", "Federal Consensus"),
    "an initial": ("Julia D. Fisher", "Julia Davis Fisher"),
    "a middle name": ("Olaf Ek Lund", "Olaf Lund"),
    "a short form in the name": ("Norish People's Congress NPC", "Norish People's Congress"),
    "a small word": ("Party of the Future", "Future Party"),
}
OTHERS = {
    "the same name": ("Ann Weber", "Ann Weber"),
    "another person of the family": ("Serdar Berdin", "Gurban Berdin"),
    "another person with like names": ("Li Qiang", "Li Keqiang"),
    "no word is the same": ("Asif Ali Zardar", "Arif Alvi"),
    "most words only alike": ("Karlo Mendez Ruiz", "Karla Mendes Ruiz"),
    "countries": ("Austria", "Australia"),
    "countries with one more letter": ("Niger", "Nigeria"),
    "countries with one other letter": ("Iran", "Iraq"),
    "the south of it": ("Sudan", "South Sudan"),
    "Roman numerals": ("Charles II", "Charles III"),
    "a numeral more": ("Boris Lund Ek II", "Boris Lund Ek"),
    "digits": ("Airbus A320", "Airbus A321"),
    "years": ("2021 Norish season", "2022 Norish season"),
    "versions with the same digits": ("1.11.0", "11.1.0"),
    "dates with the same numbers": ("2026-04-01", "2026-01-04"),
    "a version in a name": ("Norish Linux 24.04", "Norish Linux 2.404"),
    "a kind of it": ("olive oil", "oil"),
    "a part of it": ("titanium ore", "titanium"),
    "kinds with two words": ("palm oil products", "palm oil"),
    "short forms": ("MINUSCA", "MINUSMA"),
    "another first letter": ("tomatoes", "potatoes"),
    "a word in common": ("United Sarawa Party", "United Sabah Party"),
    "nothing": ("Oslun", "Marn"),
    "no word at all": ("?", "!"),
    "letters": ("S", "H"),
    "vowel signs are letters": ("राम", "रमा"),
}


@pytest.mark.parametrize("kind", [*SAME, *OTHERS])
def test_other_spellings_of_one_name_and_names_of_two_things(kind: str) -> None:
    one, other = (SAME | OTHERS)[kind]
    assert is_respelled(one, ["Somebody Else", other]) is is_respelled(other, [one]) is (kind in SAME)
