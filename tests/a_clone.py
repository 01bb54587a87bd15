"""A bare git repository with the commits of a table."""

import datetime
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Content = str | Json  # the text of a file, or its JSON
Commits = Sequence[tuple[str, Mapping[str, Content]]]


def write_clone(clone: Path, commits: Commits, side: Commits = ()) -> None:
    """Write a bare repository: each commit has a moment, such as 2021-12-30T22:00:00+00:00, and all of its files.

    A path that begins with ``link:`` is a symbolic link. ``side`` is a branch of the first commit; the last commit
    merges it.
    """
    stream = bytearray()
    branches = [("main", commits[:1]), ("side", side), ("main", commits[1:])]
    for branch, of in branches:
        for number, (moment, files) in enumerate(of):
            at = datetime.datetime.fromisoformat(moment)
            stream += f"commit refs/heads/{branch}\ncommitter A <a@a.example> {at.timestamp():.0f} {at:%z}\n".encode()
            stream += b"data 0\n"
            if branch == "side" and number == 0:
                stream += b"from refs/heads/main\n"
            if side and of is branches[-1][1] and number == len(of) - 1:
                stream += b"merge refs/heads/side\n"
            stream += b"deleteall\n"
            for path, content in files.items():
                data = (content if isinstance(content, str) else json.dumps(content)).encode("utf-8", "surrogatepass")
                mode, name = ("120000", path[5:]) if path.startswith("link:") else ("100644", path)
                stream += f"M {mode} inline {name}\ndata {len(data)}\n".encode() + data + b"\n"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", clone], check=True)
    subprocess.run(["git", "-C", clone, "fast-import", "--quiet"], input=bytes(stream), check=True)
