#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For Slurm's Epilog, or cron on each node: exports what is new in the node's spool, then deletes what is old. Nothing that users leave in the spool
# fails it: an epilog that fails drains its node.
#   KSHIM_SPOOL     folder of all users' reports: mode 1777; reports, and folders of them  (/var/spool/kshim)
#   KSHIM_FACTS     where the tables go, shared by all nodes                              (/data/kshim/facts)
#   KSHIM_DAYS      reports are kept for so many days                                     (7)
#   KSHIM_USER_MB   and no longer than its user's are within this size; the oldest go first (256)
#   KSHIM_SETTLE    seconds without a change after which a report without its end is taken (600)
#   KSHIM_LOCK      a file in a folder that nobody else can write to                      (/run/kshim/epilog)
set -euo pipefail
spool=${KSHIM_SPOOL:-/var/spool/kshim}
facts=${KSHIM_FACTS:-/data/kshim/facts}
lock=${KSHIM_LOCK:-/run/kshim/epilog}
[ -d "$spool" ] || exit 0

# One at a time; another node's export into the same folder is no concern of this one.
[ -d "$(dirname "$lock")" ] || mkdir -m 0700 "$(dirname "$lock")"
exec 9>"$lock"
flock -n 9 || exit 0
status=0
kshim export --zstd --settle "${KSHIM_SETTLE:-600}" "$spool" -o "$facts" || status=$?
case $status in
0) ;;
3) exit 0 ;; # no report at all, or a file system that does not answer
*) echo "kshim-epilog: the export failed ($status): nothing is deleted" >&2 && exit 0 ;;
esac

# find follows no link, and -delete goes by open folders: what users put there leads nowhere. A user sets the times of files: those of the future are old.
# Each function takes a folder and conditions of find: whose reports, and how deep.
remove_older() { # minutes, folder, conditions
  local minutes=$1 && shift
  find "$@" -xdev -type f -name '*.jsonl' \( -mmin "+$minutes" -o -newermt tomorrow \) -delete
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

# What a manifest of that age names was deleted before: an export would only read it. There may be none, or another node deletes it, too.
find "$facts/manifest" -xdev -type f -name '*.json' -mmin "+$(((${KSHIM_DAYS:-7} + 1) * 1440))" -delete 2>/dev/null || true
# What exports left that were killed.
find "$facts" -xdev -type f -name '.*.unfinished' -mmin +1440 -delete 2>/dev/null || true
