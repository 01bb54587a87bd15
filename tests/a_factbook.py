"""An invented repository in the shape of factbook/factbook.json."""

from collections.abc import Mapping
from pathlib import Path

from a_clone import Content, Json, write_clone


def country(name: str, **fields: str) -> Json:
    """Return a country's file; the keywords are fields of its government."""
    return {
        "Introduction": {"Background": {"text": f"<p>{name} was settled by fishers.</p> It left the union in 1912."}},
        "Government": {
            "Country name": {"conventional short form": {"text": name}, "conventional long form": {"text": "none"}},
            **{key.replace("_", " ").capitalize(): value for key, value in nested(fields).items()},
        },
    }


def nested(fields: Mapping[str, str]) -> Json:
    """Return fields by name; "a__b" is the field b of a."""
    found: Json = {}
    for key, text in fields.items():
        outer, _, inner = key.partition("__")
        value = {"text": text}
        if inner:
            found.setdefault(outer, {})[inner.replace("_", " ")] = value
        else:
            found[outer] = value
    return found


def two_years(clone: Path) -> None:
    """Write a repository of twelve countries at the end of 2024 and of 2025; half of the heads change."""
    names = [f"{start}{end}" for start in ("Nor", "Sud", "Ost", "Wes") for end in ("land", "mark", "ania")]
    years = []
    for year in (2024, 2025):
        files: dict[str, Content] = {"meta/categories.json": "{}", "README.md": "# A book"}
        for number, name in enumerate(names):
            head = f"Prime Minister Ann {'B' if year == 2025 and number % 2 else 'C'}ERG-{name} (since 3 May {year})"
            files[f"europe/{chr(97 + number)}x.json"] = country(
                name,
                capital__name=f"{name}stad",
                executive_branch__head_of_government=head,
                executive_branch__chief_of_state=f"King OSKAR {'I' * (number % 3 + 1)} (since 1 June 1999)",
                international_organization_participation="FAO, NATO, UPU (observer), WHO, WMO",
                national_holiday=f"Union Day, {number + 1} May (1912)",
                government_type="parliamentary republic",
            )
        years.append((f"{year}-12-30T22:00:00+00:00", files))
    write_clone(clone, years)
