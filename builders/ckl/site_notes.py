"""Lines that a news site puts into an article: notes about subscriptions, and invitations to a newsletter."""

from __future__ import annotations

import regex

_LONGEST = 320  # characters of a note; a longer paragraph is the article's

# What such lines say, by language. An article may say that somebody subscribes, but seldom tells its reader to do so.
_NOTES = {
    "en": (
        r"\bsign(ing)?[ -]up (now )?(for|to|here|today) .{0,80}\b(newsletters?|e?-?mails?|alerts?|briefings?)\b",
        r"\b(newsletters?|briefings?)\b.{0,60}\b(sign up|subscribe) (here|now|today|below)\b",
        r"^sign up( now)?\W*$|^sign up( for (our|breaking)\b|\W+ (stay|get|it)\b)",
        r"^(click here to )?subscribe( (now|today))?\W*$|^(click here to )?subscribe (to|here|for|on) .{0,60}\b"
        r"(newsletters?|channel|podcast|magazine|e-?mails?|youtube)\b",
        r"\bsubscribing to (our|the) .{0,40}\bnewsletters?\b|\berror processing your subscription\b",
        r"\b(in|into|to) your inbox\b|\bkeep an eye on your inbox\b",
        r"^(register|subscribe|sign up|log ?in|sign in)\b.{0,40}\bto (continue|keep|read|unlock|access|view)\b",
        r"^(sign|log) in (now|here)\b|\bor (sign|log) in now\b|\b(continue|keep) reading this (story|article)\b",
        r"\balready an? (subscriber|member)\b|\balready have an account\b",
        r"^(this|the) .{0,40}\b(is|are) (only|available|reserved|exclusive).{0,30}\b(subscribers|members)\b",
        r"\byou .{0,20}\b(free|complimentary) (articles?|stories) .{0,30}\b(left|remaining|this month)\b",
        r"^(start|begin) (your|a) .{0,20}\btrial\b|^unlock (this|the full|unlimited)\b",
    ),
    "de": (
        r"\bnewsletter\b.{0,240}\b(abonnieren|anmelden|anmeldung|hier entlang|eintragen|bestellen)\b",
        r"\babonnieren? sie\b|\babonniere? .{0,40}\b(newsletter|kanal)\b|\bein abonnement erforderlich\b",
        r"\bweiterlesen mit\b|\bmit .{0,20}[ -]abo (weiter)?lesen\b|^(jetzt|hier|um) .{0,60}\bweiterlesen\b",
        r"\bnur für (abonnent|plus-?mitglieder)|^(bereits|schon) (abonnent|registriert|kunde|mitglied)",
    ),
    "fr": (
        r"\bréservée?s? (aux|à nos) abonné|\bil vous reste .{0,40}\bà (lire|découvrir)\b|^déjà abonné",
        r"^(abonnez-vous|s['’]abonner|connectez-vous)\b|\b(inscrivez|abonnez)-vous à .{0,60}\b(newsletter|infolettre)",
    ),
    "es": (
        r"\b(s[oó]lo|exclusiv[oa]s?) para (suscriptores|socios)\b|\bya (eres|es) (suscriptor|socio)",
        r"^(suscr[ií]b(ete|ase)|reg[ií]strate|inicia sesi[oó]n)\b|\btu suscripci[oó]n\b",
        r"\b(suscr[ií]b|ap[uú]nt|inscr[ií]b)(ete|ase|ate|ese) .{0,40}\b(newsletter|bolet[ií]n)",
    ),
    "it": (
        r"\briservat[oai] agli abbonati\b|^(abbonati|registrati|accedi) (per|a|ora|subito)\b|\bsei già abbonato\b",
        r"\biscriv(iti|etevi) .{0,40}\bnewsletter\b",
    ),
    "pt": (
        r"\bexclusiv[oa]s? para assinantes\b|\bjá é assinante\b|^(assine|cadastre-se) (agora|já|para)\b",
        r"\b(assine|inscreva-se|subscreva) .{0,40}\bnewsletter\b",
    ),
    "nl": (
        r"\b(alleen|exclusief) voor abonnees\b|\bal abonnee\b|^word abonnee\b",
        r"\b(meld je|schrijf je) .{0,20}\b(aan|in)\b.{0,40}\bnieuwsbrief",
    ),
    "pl": (r"\btylko dla (prenumeratorów|subskrybentów)\b|^zaloguj się\b|\bmasz już (prenumeratę|konto)\b",),
}
_NOTE = regex.compile("|".join(pattern for said in _NOTES.values() for pattern in said), regex.IGNORECASE)


def without_notes(lines: list[str]) -> list[str]:
    """Return the lines of an article that are not notes of its site."""
    return [line for line in lines if len(line) > _LONGEST or not _NOTE.search(line.removeprefix("- "))]
