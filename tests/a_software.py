"""An invented repository in the shape of endoflife-date/endoflife.date."""

from collections.abc import Mapping
from pathlib import Path

from a_clone import write_clone


def product(title: str, *releases: Mapping[str, str], prose: str = "", **fields: str) -> str:
    """Return a product's file. A name of a field or cell and its value stand in it as they are."""
    lines = ["---", f"title: {title}", *(f"{key}: {value}" for key, value in fields.items()), "releases:"]
    for release in releases:
        lines += [("  - " if n == 0 else "    ") + f"{key}: {value}" for n, (key, value) in enumerate(release.items())]
    return "\n".join([*lines, "---", "", prose or f"> [{title}](https://{title}.example) does work.", ""])


def cycle(name: str, latest: str = "", since: str = "", **cells: str) -> dict[str, str]:
    """Return a release's cells."""
    row = {"releaseCycle": f'"{name}"', **cells}
    return row | ({"latest": f'"{latest}"'} if latest else {}) | ({"latestReleaseDate": since} if since else {})


def three_months(clone: Path) -> None:
    """Write a repository of sixteen products at the ends of three months of 2026; most get a version a month."""
    months = []
    for month in (5, 6, 7):
        files = {"README.md": "# Dates", "_data/x.yml": "a: 1"}
        for number in range(16):
            now = month if number % 4 else 5
            releases = [
                cycle(
                    f"{number}.{minor}",
                    f"{number}.{minor}.{now}",
                    f"2026-0{now}-1{minor}",
                    releaseDate=f"202{minor}-0{number % 9 + 1}-02",
                    eol=f"20{30 + number}-0{1 + (now == 7 and number % 4 > 1)}-0{minor}",
                )
                for minor in (5, 4)
            ]
            name = f"{'NOSW'[number % 4]}o{'lmrv'[number // 4]}ware"
            category, policy = "lang" if number % 2 else "db", f"It is kept for {number + 2} years."
            if now > 5:
                policy += f" Plan {now} began."
            prose = f"> [{name}](https://x.example) does work.\n\n{policy}"
            files[f"products/p{number}.md"] = product(name, *releases, prose=prose, category=category, tags="ox")
        months.append((f"2026-0{month}-30T22:00:00+00:00", files))
    write_clone(clone, [*months, ("2026-08-22T08:00:00+00:00", months[-1][1])])
