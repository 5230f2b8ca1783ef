#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For Slurm's Epilog, or cron on each node: writes what `kshim analyze` says of new reports in the node's spool to a file of the shared folder, then deletes
# what is old. Nothing that users leave in the spool fails it: an epilog that fails drains its node. The host that has the lake runs, from cron:
#   python -m kshim.fleet ingest /data/kshim/facts /data/kshim/lake
#   KSHIM_SPOOL     folder of all users' reports: mode 1777; reports, and folders of them  (/var/spool/kshim)
#   KSHIM_FACTS     where the lines go, shared by all nodes                               (/data/kshim/facts)
#   KSHIM_DAYS      reports are kept for so many days, and lines for twice as many        (7)
#   KSHIM_USER_MB   and no longer than its user's are within this size; the oldest go first (256)
#   KSHIM_SETTLE    seconds without a change after which a report is taken                (600)
#   KSHIM_LOCK      a file in a folder that nobody else can write to                      (/run/kshim/epilog)
set -euo pipefail
spool=${KSHIM_SPOOL:-/var/spool/kshim}
facts=${KSHIM_FACTS:-/data/kshim/facts}
lock=${KSHIM_LOCK:-/run/kshim/epilog}
[ -d "$spool" ] || exit 0

# One at a time; another node's file is another one.
[ -d "$(dirname "$lock")" ] || mkdir -m 0700 "$(dirname "$lock")"
exec 9>"$lock"
flock -n 9 || exit 0
# By the time of the last change that the file system keeps, which no user sets. After a boot all are taken again: their rows have the same keys.
since=$(cat "$lock.since" 2>/dev/null || echo 0)
now=$(date +%s.%N)
until=$((${now%.*} - ${KSHIM_SETTLE:-600})).${now#*.}
lines=$facts/.$(uname -n).$now.unfinished
status=0
{
  mkdir -p "$facts" && find "$spool" -xdev -type f -name '*.jsonl' -newerct "@$since" ! -newerct "@$until" -print0 | sort -z |
    xargs -0 -r sh -c 'kshim analyze --format jsonl --full "$@"; status=$?; [ "$status" -le 1 ] || [ "$status" -eq 3 ]' kshim | gzip >"$lines"
} || status=$?
if [ "$status" -ne 0 ]; then
  rm -f "$lines"
  echo "kshim-epilog: the new reports could not be taken ($status): nothing is deleted" >&2
  exit 0
fi
if [ "$(gzip -cd "$lines" | head -c 1 | wc -c)" -eq 0 ]; then
  rm -f "$lines"
else
  mv "$lines" "$facts/$(uname -n).$now.analyses.jsonl.gz"
fi
echo "$until" >"$lock.since"

# find follows no link, and -delete goes by open folders: what users put there leads nowhere. A user sets the times of files: those of the future are old.
# Each function takes a folder and conditions of find: whose reports, and how deep.
remove_older() { # minutes, folder, conditions; what was not taken stays
  local minutes=$1 && shift
  find "$@" -xdev -type f -name '*.jsonl' ! -newerct "@$until" \( -mmin "+$minutes" -o -newermt tomorrow \) -delete
}
megabytes() { # as the disk has them
  find "$@" -xdev -type f -name '*.jsonl' -printf '%b\n' | awk '{ blocks += $1 } END { print int(blocks / 2048) }'
}
rotate() {
  remove_older "$((${KSHIM_DAYS:-7} * 1440))" "$@"
  for minutes in 7200 5760 4320 2880 1440 720 360 180 120 60 30 10; do
    [ "$(megabytes "$@")" -ge "${KSHIM_USER_MB:-256}" ] || break
    remove_older "$minutes" "$@"
  done
}
{
  for folder in "$spool"/*; do
    [ -d "$folder" ] && [ ! -L "$folder" ] && rotate "$folder"
  done
  # What lies in the spool itself: each user's apart.
  find "$spool" -maxdepth 1 -type f -name '*.jsonl' -printf '%U\n' | sort -u | while read -r user; do
    rotate "$spool" -maxdepth 1 -uid "$user"
  done
} || echo "kshim-epilog: not all that is old could be deleted" >&2

# Lines that the lake has long since, and what was left by one that was killed.
find "$facts" -xdev -type f -name '*.analyses.jsonl.gz' -mmin "+$((${KSHIM_DAYS:-7} * 2880))" -delete 2>/dev/null || true
find "$facts" -xdev -type f -name '.*.unfinished' -mmin +1440 -delete 2>/dev/null || true
