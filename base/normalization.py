"""SQuAD's normalisation of answers: the one place where it is defined."""

import re
import string
import unicodedata

# Characters that stand for an apostrophe or a hyphen, and those that nobody sees: joiners, directions, selectors.
APOSTROPHES = "’‘ʻʼʽʾʿˈˊˋ‛′´`՚׳＇"
HYPHENS = "‐‑−֊﹣－"
INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+")
# Forms of letters that Unicode has for other encodings: of full and half width, ligatures, at the end of a word.
_FORMS = re.compile("[\ufb00-\ufdfb\ufe70-\ufefc\uff01-\uffdc]+")
_REMOVED = frozenset(APOSTROPHES + HYPHENS)
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SENTINEL = re.compile(r"<extra_id_[0-9]+>")
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalize(text: str) -> str:
    """Return text in lower case, without punctuation and English articles, its words separated by single spaces.

    This is SQuAD's normalisation (Rajpurkar et al. 2016), after T5's `<extra_id_N>` have become spaces. For ASCII text
    the result is identical. In other text, Unicode's punctuation is removed as well (SQuAD keeps it), with all
    apostrophes, minus signs and invisible characters. Composed and decomposed letters are equal, and so are the forms
    of a letter: of full width, in a ligature, at the end of a word, "ß" and "ss", "İ" and "i".
    """
    text = _SENTINEL.sub(" ", text)
    if not text.isascii():
        text = _FORMS.sub(lambda form: unicodedata.normalize("NFKC", form[0]), INVISIBLE.sub("", text))
        text = unicodedata.normalize("NFC", text).casefold().replace("i\u0307", "i")
        text = "".join(c for c in text if c not in _REMOVED and unicodedata.category(c)[0] != "P")
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())
