#!/usr/bin/env bash
# Run the monthly job from cron. It prints nothing if all is well. Else it prints what a person must see, which cron mails:
# the end of a failed job's log, the warnings of a job that succeeded, and the faults that `--status` finds.
# Put it in the folder with .venv, dumps and the dataset, and give it the options of the job (see crontab).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

mkdir -p logs
exec 9>logs/.lock
flock --nonblock 9 || exit 0 # yesterday's run is still working

log=logs/$(date --utc +%Y-%m-%d).log
touch "$log"
before=$(wc --bytes <"$log")
if ! .venv/bin/temporalwiki monthly "$@" >>"$log" 2>&1; then
  echo "temporalwiki monthly failed; the same command goes on from there. The end of $PWD/$log:"
  tail --lines=20 "$log"
  exit 1
fi
tail --bytes=+$((before + 1)) "$log" | grep '^warning:' || true
if ! state=$(.venv/bin/temporalwiki monthly "$@" --status 2>&1); then
  echo "temporalwiki monthly went well, but the dataset needs attention:"
  echo "$state"
  exit 1
fi
