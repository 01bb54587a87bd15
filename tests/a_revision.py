"""A revision to publish, and a process that publishes it and can be killed."""

import os

from temporalwiki.push_scripts.repository_state import Content, Head, Revision
from temporalwiki.push_scripts.revision import publish

REPO = "ORG/data"
NEW_README = b"# New\n"
BIG = b"PAR1" + bytes(range(256)) * 20  # goes by LFS, as its name ends in .parquet
OLD = {"README.md": b"# Old\n", "a.parquet": BIG + b"old", "gone.txt": b"gone"}
NEW: dict[str, Content] = {"README.md": b"# New\n", "b.parquet": BIG + b"new", "c.txt": b"c"}
AFTER = {"README.md": b"# New\n", "a.parquet": BIG + b"old", "b.parquet": BIG + b"new", "c.txt": b"c"}
REVISION = Revision("2021.12: new", NEW, remove=("gone.txt",), tag="2021.12", mark="c.txt")


def plan(_head: Head) -> list[Revision]:
    return [REVISION]


def publish_it(endpoint: str, home: str) -> None:
    """Publish from a process that has imported everything before it was forked."""
    from huggingface_hub import constants

    os.environ["HF_TOKEN"] = "hf_me"
    constants.ENDPOINT, constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET = endpoint, False, True
    constants.HUGGINGFACE_CO_URL_TEMPLATE = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    constants.HF_HUB_CACHE = home
    list(publish(REPO, "dataset", plan))
