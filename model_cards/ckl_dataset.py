"""The card of CKL's dataset folder: what each config is, whose its texts are, and what became of every row."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from temporalwiki.builders.ckl.invariantlama import RELATIONS, RULES, table
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.dataset_folder import Manifest
from temporalwiki.model_cards.citations import CKL, TEMPORALWIKI
from temporalwiki.model_cards.dataset_header import header, languages, loadable

# What the Hub calls a licence -> what people do.
_LICENCES = {
    "cc-by-nc-4.0": "CC BY-NC 4.0: **not for commercial use**",
    "cc-by-sa-4.0": "CC BY-SA 4.0",
    "cc-by-sa-3.0": "CC BY-SA 3.0",
    "cc-by-4.0": "CC BY 4.0",
    "cc0-1.0": "CC0",
    "mit": "MIT",
    "apache-2.0": "Apache 2.0",
    "other": "of the texts' owners",
    "unknown": "none is known",
}
_SPLITS = ("train", "validation", "test")
_INPUTS_SHOWN = 8  # of a config; a month of news has thousands
_OPTIONS_SHOWN = 400  # characters

_LAMA = """\
@inproceedings{petroni2019language,
  title = {Language Models as Knowledge Bases?},
  author = {Petroni, Fabio and Rockt{\\"a}schel, Tim and Riedel, Sebastian and Lewis, Patrick and Bakhtin, Anton
            and Wu, Yuxiang and Miller, Alexander},
  booktitle = {EMNLP-IJCNLP},
  year = {2019}
}
"""
_KILT = """\
@inproceedings{petroni2021kilt,
  title = {{KILT}: a Benchmark for Knowledge Intensive Language Tasks},
  author = {Petroni, Fabio and Piktus, Aleksandra and Fan, Angela and Lewis, Patrick and Yazdani, Majid
            and De Cao, Nicola and Thorne, James and Jernite, Yacine and Karpukhin, Vladimir and Maillard, Jean
            and Plachouras, Vassilis and Rockt{\\"a}schel, Tim and Riedel, Sebastian},
  booktitle = {NAACL-HLT},
  year = {2021}
}
"""
# Of a kind of rows: its columns that others do not have or have otherwise, and what it cannot do.
_COLUMNS = {
    "invariant": "`statement` is `template` with `subject` in the place of `[X]` and `<extra_id_0>` in that of `[Y]`, "
    "where `object` belongs",
    "live": "`answers` are all that is right at the later dump's date, `old_answers` (none in `newlama` and "
    "`invariantlama`) what was right at the earlier one's and is not any more; `evidence` is the sentence of the "
    "article that holds `object`",
    "annotated": "`answers` and `old_answers` as was decided by those whom Counts names; `evidence` is of the recent "
    "text, `old_evidence` of the corpus of the past",
    "easy": "`statement` and `question` are made by rules or models out of `evidence`, a sentence of a recent text",
    "news": "`text` is the article's body, `published` its time in UTC",
    "masked-news": "`input` is a piece of a text with salient spans masked, `output` what was masked",
    "kilt": "`output` is what is learnt, `answers` all that is right; both are empty where KILT keeps them back",
}
_IMPORTED_COLUMNS = "What each holds is as its authors released it; what is null is not in their files"
_LIMITS = {
    "invariant": "Relations are time-invariant by CKL's choice; single facts of them change all the same. LAMA's "
    "facts and their labels are of 2017, and some have more right answers than the one that is listed.",
    "live": "A fact is as old as Wikidata's edit, which may be long after the world changed or long before an article "
    "said so. Templates are filled in as they are, and some clozes read oddly.",
    "annotated": "Annotators err, and a judge that is a model or a rule does so more often; Counts says who decided.",
    "easy": "Nobody has read these rows: the checks are automatic.",
    "news": "Bodies are found by rules, so that some lack a sentence and some hold what is no part of the article.",
    "masked-news": "Bodies are found by rules, so that some lack a sentence and some hold what is no part of the "
    "article.",
    "kilt": "KILT's knowledge source is Wikipedia of August 2019.",
}
_IMPORTED_LIMITS = (
    "What was imported is as its authors made it: their paper says how, and what was not said is not known."
)


def ckl_card(manifests: list[Manifest], repo_id: str | None = None, kept: Mapping[str, Any] | None = None) -> str:
    """Text of the card for a CKL folder that holds these configs: YAML header and Markdown.

    On the Hub ``repo_id`` names the repository, and ``kept`` is what else the header says: settings that are not made
    here, and further configs with their ``dataset_info``.
    """
    kinds = list(SCHEMAS)
    manifests = sorted(
        map(_in_order, manifests), key=lambda manifest: (kinds.index(manifest["kind"]), manifest["config"])
    )
    configs: dict[str, dict[str, Any]] = {}
    for manifest in manifests:
        files = manifest["configs"][manifest["config"]]
        configs[manifest["config"]] = {"files": manifest["config"], "schema": SCHEMAS[manifest["kind"]], **files}
    short_names = {}
    for config in configs.values():  # by name, so that the newest interval with the same months takes it
        if config["short_name"] not in (None, *configs):
            short_names[config["short_name"]] = config
    offered = loadable(configs | short_names)
    found = {code: None for manifest in manifests for code in languages(manifest["language"]) or ()}
    front = header(
        offered,
        kept or {},
        language=list(found) or None,
        license=_licences(manifests),
        pretty_name="CKL",
        task_categories=["fill-mask", "question-answering", "text-generation"],
        tags=["temporalwiki", "continual-learning", "knowledge"],
        annotations_creators=sorted(set(map(_annotated_by, manifests))),
    )
    return f"{front}\n{_text(manifests, offered, repo_id)}"


def _annotated_by(manifest: Manifest) -> str:
    """In the Hub's words, of which none is for people of whom no more is known."""
    match manifest["kind"]:
        case "invariant" | "kilt":
            return "found"
        case "news":
            return "no-annotation"
        case "annotated":
            return "machine-generated" if _by_judges_alone(manifest) else "other"
        case _:
            return "machine-generated"


def _by_judges_alone(manifest: Manifest) -> bool:
    decided = manifest["counts"].get("decided_by", {})
    return bool(decided) and all(_is_judge(manifest, name) for name in decided)


def _is_judge(manifest: Manifest, name: str) -> bool:
    judges = manifest["options"].get("judges")
    return isinstance(judges, dict) and name in judges


def _in_order(manifest: Manifest) -> Manifest:
    """A manifest whose splits and relations are in their order, however it was stored."""
    name, counts = manifest["config"], manifest["counts"]
    config = manifest["configs"][name]
    splits = dict(sorted(config["splits"].items(), key=lambda of: ((*_SPLITS, of[0]).index(of[0]), of[0])))
    if "relations" in counts:
        relations = counts["relations"].items()
        counts = counts | {
            "relations": dict(sorted(relations, key=lambda of: ((*RELATIONS, of[0]).index(of[0]), of[0])))
        }
    return manifest | {"counts": counts, "configs": {name: config | {"splits": splits}}}


def _licences(manifests: Sequence[Manifest]) -> list[str]:
    """All of them, what restricts most first."""
    found = {licence for manifest in manifests for licence in manifest["licences"]}
    return sorted(found, key=lambda licence: ("-nc" not in licence, licence))


def _text(manifests: list[Manifest], offered: Mapping[str, Any], repo_id: str | None) -> str:
    made = [manifest for manifest in manifests if not manifest.get("imported")]
    imported = [manifest for manifest in manifests if manifest.get("imported")]
    of_kinds = [(_columns(kind), _of_kind(made, kind)) for kind in _kinds(made)]
    of_kinds += [(_columns(kind, True), _of_kind(imported, kind)) for kind in _kinds(imported)]
    limits = [*(_LIMITS[kind] for kind in _kinds(made)), *([_IMPORTED_LIMITS] if imported else [])]
    sections = [
        _beginning(offered, repo_id or "ckl", made, imported),
        "## Configs\n\n" + _configs(manifests, offered),
        "## Columns\n\n" + "\n".join(f"- {names}: {columns}" for columns, names in of_kinds),
        "## Counts\n\n" + _counts(manifests),
        *_deciders(manifests),
        *(_relations(manifest) for manifest in manifests if "relations" in manifest["counts"]),
        "## Sources\n\n" + _sources(manifests),
        *_warnings(manifests),
        "## Limits\n\n" + "\n".join(dict.fromkeys(f"- {limit}" for limit in limits)),
        "## Licences\n\n" + _whose(manifests),
        "## Citation\n\n```bibtex\n" + "\n".join(_citations(manifests)) + "```",
    ]
    return "\n\n".join(sections) + "\n"


def _kinds(manifests: Sequence[Manifest]) -> list[str]:
    return list(dict.fromkeys(manifest["kind"] for manifest in manifests))


def _beginning(offered: Mapping[str, Any], path: str, made: Sequence[Manifest], imported: Sequence[Manifest]) -> str:
    if not imported:
        origin = "made anew from\nsources that still exist."
    elif made:
        origin = (
            "made anew from\nsources that still exist. What is marked so was imported from the archive that its "
            "authors released."
        )
    else:
        origin = "imported from\nthe archive that its authors released."
    name = next(iter(offered), None)
    rows = f'load_dataset("{path}", "{name}", split="{next(iter(offered[name]["splits"]))}")' if name else ""
    example = f"```python\nfrom datasets import load_dataset\n\nrows = {rows}\n```\n\n" if name else ""
    return f"""# CKL: what a language model should keep, update and learn

Knowledge that stays true, knowledge that was updated, and knowledge that is new, as cloze and question; and the recent
text to learn it from. These are the kinds of data of Continual Knowledge Learning (CKL, ICLR 2022), {origin}

{example}`temporalwiki.load_dataset` takes the same arguments. A short name such as `updatedlama-1112` means the newest
interval with those months; the full name never changes."""


def _configs(manifests: Sequence[Manifest], offered: Mapping[str, Any]) -> str:
    lines = ["| config | short name | one row is | splits | licence |", "|---|---|---|---|---|"]
    for manifest in manifests:
        config = manifest["configs"][manifest["config"]]
        splits = ", ".join(
            f"{split} {files['num_examples']:,}" for split, files in config["splits"].items() if files["num_examples"]
        )
        short_name = config["short_name"]
        its_own = offered.get(short_name, {}).get("files") == manifest["config"]
        short = f"`{short_name}`" if its_own else ""
        marked = "imported: " if manifest.get("imported") else ""
        licences = "; ".join(_LICENCES.get(licence, licence) for licence in manifest["licences"])
        judged = " (by a judge alone, and no person)" if _by_judges_alone(manifest) else ""
        about = marked + _plain(manifest["about"]) + judged
        lines.append(f"| `{manifest['config']}` | {short} | {about} | {splits or 'no rows'} | {licences} |")
    return "\n".join(lines)


def _of_kind(manifests: Sequence[Manifest], kind: str) -> str:
    return ", ".join(f"`{manifest['config']}`" for manifest in manifests if manifest["kind"] == kind)


def _columns(kind: str, imported: bool = False) -> str:
    names = ", ".join(f"`{name}`" for name in SCHEMAS[kind].names)
    return f"{names}. {_IMPORTED_COLUMNS if imported else _COLUMNS[kind]}."


def _counts(manifests: Sequence[Manifest]) -> str:
    lines = ["| config | rows read | kept | dropped | by reason |", "|---|---:|---:|---:|---|"]
    for manifest in manifests:
        counts = manifest["counts"]
        reasons = "; ".join(f"{_in_words(reason)} {number:,}" for reason, number in counts["dropped"].items())
        dropped = sum(counts["dropped"].values())
        lines.append(f"| `{manifest['config']}` | {counts['read']:,} | {counts['kept']:,} | {dropped:,} | {reasons} |")
    return "\n".join(lines)


def _deciders(manifests: Sequence[Manifest]) -> list[str]:
    """Who decided upon candidates, and upon how many; nothing where nobody did."""
    lines = []
    for manifest in manifests:
        if decided := manifest["counts"].get("decided_by"):
            who = ", ".join(
                f"{_plain(name)}{' (a judge)' if _is_judge(manifest, name) else ''} {number:,}"
                for name, number in sorted(decided.items())
            )
            lines.append(f"- `{manifest['config']}`: {who}")
    return ["Candidates that each annotator decided upon:\n\n" + "\n".join(lines)] if lines else []


def _relations(manifest: Manifest) -> str:
    counts = manifest["counts"]
    rules = "\n".join(f"- {_in_words(reason)}: {_plain(rule)}" for reason, rule in RULES.items())
    return f"""### `{manifest["config"]}` by relation

{table(counts)}

A row is left out by the first of these that holds. CKL does not say how it tells an entity, so the numbers differ:

{rules}"""


def _sources(manifests: Sequence[Manifest]) -> str:
    """What each config is made of; those of one step are named together."""
    configs: dict[str, list[str]] = {}
    for manifest in manifests:
        configs.setdefault(_made_of(manifest), []).append(f"`{manifest['config']}`")
    return "\n".join(f"- {', '.join(names)}: {made_of}" for made_of, names in configs.items())


def _made_of(manifest: Manifest) -> str:
    inputs = [f"{_code(one['file'])} ({one['size']:,} bytes)" for one in manifest["inputs"]]
    more = len(inputs) - _INPUTS_SHOWN
    files = ", ".join(inputs[:_INPUTS_SHOWN]) + (f" and {more:,} more files" if more > 0 else "")
    # relations and rules have a table of their own
    shown = {} if "relations" in manifest["counts"] else manifest["options"]
    options = json.dumps(shown, sort_keys=True, ensure_ascii=False)
    cut = " ... (all in the manifest)" if len(options) > _OPTIONS_SHOWN else ""
    said = f"; options {_code(options[:_OPTIONS_SHOWN] + cut)}" if shown else ""
    return f"{_plain(manifest['source']).removesuffix('.')}. Read: {files or 'no files'}{said}"


def _warnings(manifests: Sequence[Manifest]) -> list[str]:
    """What was warned of; nothing where there was nothing."""
    found = [
        f"- `{manifest['config']}`: {_plain(warning.removeprefix(manifest['config'] + ': '))}"
        for manifest in manifests
        for warning in manifest["warnings"]
    ]
    return ["## Warnings\n\n" + "\n".join(found)] if found else []


def _whose(manifests: Sequence[Manifest]) -> str:
    lines = []
    for licence in _licences(manifests):
        of = ", ".join(f"`{manifest['config']}`" for manifest in manifests if licence in manifest["licences"])
        lines.append(f"- {_LICENCES.get(licence, licence)}: {of}")
    imported = [f"`{manifest['config']}`" for manifest in manifests if manifest.get("imported")]
    if imported:
        lines.append(
            "- Imported from an archive that was released without a licence, and never published from here: "
            + ", ".join(imported)
        )
    return (
        "Each config has its own; where it names several, parts of its rows are of each, and all are to be kept.\n\n"
        + "\n".join(lines)
        + "\n\nThe SHA-1 of every file that was read, all options and all counts stand in `manifests/`."
    )


def _citations(manifests: Sequence[Manifest]) -> Iterator[str]:
    yield CKL
    if any(manifest["kind"] == "invariant" or "cc-by-nc-4.0" in manifest["licences"] for manifest in manifests):
        yield _LAMA
    if any(manifest["kind"] == "kilt" for manifest in manifests):
        yield _KILT
    if any(manifest["kind"] == "live" for manifest in manifests):
        yield TEMPORALWIKI


def _in_words(reason: str) -> str:
    return _plain(reason.replace("_", " "))


def _plain(text: str) -> str:
    """Text from elsewhere, in one line and without a meaning in Markdown or HTML."""
    return html.escape(re.sub(r"([\\`*_\[\]|~])", r"\\\1", _one_line(text)), quote=False)


def _code(text: str) -> str:
    """Text from elsewhere as a code span, which is read neither as Markdown nor as HTML."""
    line = _one_line(text).strip("`")
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence}{line or ' '}{fence}"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
