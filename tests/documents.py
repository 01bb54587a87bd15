"""Find the commands (indented lines) and Python (fenced blocks) in README.md, docs/**.md and examples/**/README.md.

An indented line outside fences is a command; a backslash at its end continues it on the next line. Everything else,
such as output or a folder tree, is in a fence of the language `text`.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# As a newcomer reads them; what one leaves behind, the later ones find.
ORDER = (
    "README.md",
    "docs/tutorial.md",
    "docs/building.md",
    "docs/ckl.md",
    "docs/training.md",
    "docs/evaluating.md",
    "docs/adapters.md",
    "docs/experiments.md",
    "docs/publishing.md",
)
_FENCE = re.compile(r"\s*```(\w*)$")


@dataclass(frozen=True)
class Typed:
    """A command line or a block of Python, and where it stands."""

    file: str
    line: int  # 1 is the first
    text: str
    language: str  # "shell", or the language of the fence

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def documents() -> list[str]:
    """All of them, relative to the root, in the order above and the others by name."""
    paths = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")]
    found = {"README.md", *(path.relative_to(ROOT).as_posix() for path in paths)}
    return [*(name for name in ORDER if name in found), *sorted(found - set(ORDER))]


def typed(file: str) -> list[Typed]:
    """Commands and fenced blocks of a file, in order."""
    found: list[Typed] = []
    fence: tuple[int, str, list[str]] | None = None
    command: tuple[int, str] | None = None
    for number, line in enumerate((ROOT / file).read_text("utf-8").splitlines(), 1):
        mark = _FENCE.match(line)
        if fence is not None:
            if mark:
                found.append(Typed(file, fence[0], "\n".join(fence[2]), fence[1]))
                fence = None
            else:
                fence[2].append(line)
        elif mark:
            fence = (number, mark[1], [])
        elif line.startswith("    "):
            start, before = command or (number, "")
            text = f"{before} {line.strip()}".strip()
            command = (start, text[:-1].strip()) if text.endswith("\\") else None
            if command is None and not text.startswith("#"):
                found.append(Typed(file, start, text, "shell"))
    if fence is not None or command is not None:
        raise ValueError(f"{file}: a fence or a command is not ended")
    return found


def inline(file: str) -> list[str]:
    """Return the commands in sentences: text between backticks that begins with `temporalwiki`."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / file).read_text("utf-8"), flags=re.M | re.S)
    spans = (" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text))
    return [span for span in spans if span.startswith("temporalwiki ")]


def simple_commands(line: str) -> list[list[str]]:
    """Return the words of each command in a line (commands are joined by `&&`), without a comment at the end."""
    words = shlex.split(line, comments=True)
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands
