"""Schedule `temporalwiki monthly` as a Job on the Hub's own machines.

    python push_scripts/schedule/hub_job.py ORG/temporalwiki --bucket ORG/temporalwiki-dumps \
        --release 'temporalwiki==VERSION --hash=sha256:...'

Your bucket keeps the dumps from month to month, because Wikimedia deletes Wikidata's after about 70 days. Everything
else goes to the machine's disk: enwiki needs about 200 GB (`hf jobs hardware` lists the disks of the flavors). Jobs do
not support trusted publishers, so the token in HF_TOKEN becomes a secret of the job. Use a fine-grained token that may
write only to the dataset and the bucket; a token of `hf auth login` in a browser expires.

The job installs the files whose hashes `--release` and requirements/base.txt name, in a process without the token. The
package index shows the hash of a release. If it has no temporalwiki, use an image that has it: `--image
hf.co/spaces/ORG/temporalwiki-job --install true`.

A run ends with `monthly --status`, and so fails if a person must look at the dataset. `hf jobs ps --status ERROR`
lists failed runs, and `hf jobs logs ID` shows why.
"""

import argparse
import os
import re
import shlex
from pathlib import Path

from huggingface_hub import Volume, create_scheduled_job

# Daily from the 5th to the 25th: some dumps are late, and a day with nothing to do costs a minute.
SCHEDULE = "17 3 5-25 * *"
MOUNTED = "/bucket"
REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "base.txt"
# Only wheels, whose installation runs no code. ``env`` keeps the token from pip.
INSTALL = "env --unset=HF_TOKEN pip install --quiet --require-hashes --no-deps --only-binary :all: -r"


def main(argv: list[str] | None = None) -> None:
    """Schedule the job. An existing job of the same name is not replaced."""
    parser = argparse.ArgumentParser(description="Schedule temporalwiki monthly as a Job on the Hub.")
    parser.add_argument("repo", metavar="REPO_ID", help="the dataset")
    parser.add_argument("--bucket", required=True, metavar="ORG/NAME", help="bucket for the dumps")
    parser.add_argument("--wiki", default="enwiki", help="default: %(default)s")
    parser.add_argument("--image", default="python:3.11", help="default: %(default)s")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--release", metavar="LINE", help="such as 'temporalwiki==VERSION --hash=sha256:...'")
    what.add_argument("--install", metavar="COMMAND", help="another way to install it; true for an image that has it")
    parser.add_argument("--flavor", default="cpu-xl", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=8, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--timeout", default="24h", help="default: %(default)s")
    arguments = parser.parse_args(argv)
    install = arguments.install
    if arguments.release is not None:
        if not re.fullmatch(r"temporalwiki==[\w.]+( --hash=sha256:[0-9a-f]{64})+", arguments.release):
            parser.error("--release: write the exact version and its hash: temporalwiki==VERSION --hash=sha256:...")
        install = f"{INSTALL} <(echo {shlex.quote(REQUIREMENTS.read_text('utf-8') + arguments.release)})"
    token = os.environ.get("HF_TOKEN")
    if not token:
        parser.error("no token: set HF_TOKEN to a fine-grained one (https://huggingface.co/settings/tokens)")
    command = ["temporalwiki", "monthly", "--wiki", arguments.wiki, "--repo", arguments.repo]
    folders = ["--dumps", f"{MOUNTED}/dumps", "--out", "/tmp/temporalwiki", "--jobs", str(arguments.jobs)]
    monthly, status = shlex.join([*command, *folders]), shlex.join([*command, "--status"])
    job = create_scheduled_job(
        image=arguments.image,
        command=["bash", "-c", f"{install} && {monthly} && {status}"],
        schedule=SCHEDULE,
        concurrency=False,  # never two runs at once
        flavor=arguments.flavor,
        timeout=arguments.timeout,
        secrets={"HF_TOKEN": token},
        volumes=[Volume(type="bucket", source=arguments.bucket, mount_path=MOUNTED)],
        name=f"temporalwiki-monthly-{arguments.wiki}",
        namespace=arguments.repo.split("/")[0],
    )
    print(f"scheduled as {job.id}: {SCHEDULE} (UTC); try it now with: hf jobs scheduled trigger {job.id}")


if __name__ == "__main__":
    main()
