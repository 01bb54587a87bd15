"""Schedule `temporalwiki monthly` as a Job on the Hub's own machines.

    python hub_job.py ORG/temporalwiki --bucket ORG/temporalwiki-dumps --image hf.co/spaces/ORG/temporalwiki-job

Your bucket keeps the dumps from month to month, because Wikimedia deletes Wikidata's after about 70 days. Everything
else goes to the machine's disk: enwiki needs about 200 GB (`hf jobs hardware` lists the disks of the flavors). Jobs do
not support trusted publishers, so the token in HF_TOKEN becomes a secret of the job. Use a fine-grained token that may
write only to the dataset and the bucket; a token of `hf auth login` in a browser expires. If the package index has no
temporalwiki, use an image that has it, or install it from the repository:
--install "pip install git+https://github.com/ORG/temporalwiki".
"""

from __future__ import annotations

import argparse
import os
import shlex

from huggingface_hub import Volume, create_scheduled_job

# Daily from the 5th to the 25th: some dumps are late, and a day with nothing to do costs a minute.
SCHEDULE = "17 3 5-25 * *"
MOUNTED = "/bucket"


def main(argv: list[str] | None = None) -> None:
    """Schedule the job. An existing job of the same name is not replaced."""
    parser = argparse.ArgumentParser(description="Schedule temporalwiki monthly as a Job on the Hub.")
    parser.add_argument("repo", metavar="REPO_ID", help="the dataset")
    parser.add_argument("--bucket", required=True, metavar="ORG/NAME", help="bucket for the dumps")
    parser.add_argument("--wiki", default="enwiki", help="default: %(default)s")
    parser.add_argument("--image", default="python:3.12", help="default: %(default)s")
    parser.add_argument(
        "--install",
        default="pip install --quiet temporalwiki",
        metavar="COMMAND",
        help="command that installs temporalwiki; true for an image that has it (default: %(default)s)",
    )
    parser.add_argument("--flavor", default="cpu-xl", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=8, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--timeout", default="24h", help="default: %(default)s")
    arguments = parser.parse_args(argv)
    token = os.environ.get("HF_TOKEN")
    if not token:
        parser.error("no token: set HF_TOKEN to a fine-grained one (https://huggingface.co/settings/tokens)")
    monthly = shlex.join(
        [
            *("temporalwiki", "monthly", "--wiki", arguments.wiki, "--repo", arguments.repo),
            *("--dumps", f"{MOUNTED}/dumps", "--out", "/tmp/temporalwiki", "--jobs", str(arguments.jobs)),
        ]
    )
    job = create_scheduled_job(
        image=arguments.image,
        command=["bash", "-c", f"{arguments.install} && {monthly}"],
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
