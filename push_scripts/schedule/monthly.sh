#!/usr/bin/env bash
# Run the monthly job from cron. It prints nothing if all is well. Else it prints what a person must see, which cron mails:
# the end of a failed job's log, the warnings of a job that succeeded, the faults that `--status` finds, and an earlier
# run that has not ended: a first month takes more than a day, later ones do not.
# Put it in the folder with .venv, dumps and the dataset, and give it the options of the job (see crontab).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

mkdir -p logs
exec 9>>logs/.lock
if ! flock --nonblock 9; then
  echo "The run of $(tail --lines=1 logs/.lock) is still at work, so none was started. The end of its log, and --status:"
  tail --quiet --lines=3 "$(find logs -name '*.log' | sort | tail --lines=1)" || true
  .venv/bin/temporalwiki monthly "$@" --status 2>&1 || true
  exit 1
fi
date --utc +'%Y-%m-%d %H:%M UTC' >logs/.lock

log=logs/$(date --utc +%Y-%m-%d).log
touch "$log"
before=$(wc --bytes <"$log")
status=0
{ .venv/bin/temporalwiki monthly "$@" >>"$log" 2>&1; } 2>/dev/null || status=$? # the shell says by itself if it is killed
if [ "$status" -ne 0 ]; then
  [ "$status" -lt 128 ] || killed=" (killed by signal $((status - 128)))"
  echo "temporalwiki monthly failed${killed:-}; the same command goes on from there. The end of $PWD/$log:"
  tail --bytes=+$((before + 1)) "$log" | grep --invert-match '^  [-+~=] ' | tail --lines=20 || true # without lists of files
  exit 1
fi
tail --bytes=+$((before + 1)) "$log" | grep '^warning:' || true
if ! state=$(.venv/bin/temporalwiki monthly "$@" --status 2>&1); then
  echo "temporalwiki monthly went well, but the dataset needs attention:"
  echo "$state"
  exit 1
fi
