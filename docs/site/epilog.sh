#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For Slurm's Epilog, or cron on each node: exports what is new in the node's spool, then deletes what is old.
#   KSHIM_SPOOL     folder of all users' reports: mode 1777, one folder a user in it      (/var/spool/kshim)
#   KSHIM_FACTS     where the tables go, shared by all nodes                              (/data/kshim/facts)
#   KSHIM_DAYS      reports are kept for so many days                                     (7)
#   KSHIM_SPOOL_MB  and no longer than the spool is within this size; the oldest go first (1024)
#   KSHIM_SETTLE    seconds without a change after which a report without its end is taken (600)
set -euo pipefail
spool=${KSHIM_SPOOL:-/var/spool/kshim}
facts=${KSHIM_FACTS:-/data/kshim/facts}
[ -d "$spool" ] || exit 0

# One at a time; another node's export into the same folder is no concern of this one. 3: no report at all.
exec 9>"${KSHIM_LOCK:-/run/lock/kshim-epilog}"
flock -n 9 || exit 0
status=0
kshim export --zstd --settle "${KSHIM_SETTLE:-600}" "$spool" -o "$facts" || status=$?
[ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"  # nothing is deleted that was not exported

# find follows no link, and -delete goes by open folders: what users put there leads nowhere.
find "$spool" -xdev -mindepth 2 -type f -name '*.jsonl' -mmin "+$((${KSHIM_DAYS:-7} * 1440))" -delete
excess=$(($(du -sx --apparent-size -B1 "$spool" | cut -f1) - ${KSHIM_SPOOL_MB:-1024} * 1048576))
if [ "$excess" -gt 0 ]; then
  find "$spool" -xdev -mindepth 2 -type f -name '*.jsonl' -mmin +10 -printf '%T@\t%s\t%P\0' | sort -zn |
    while [ "$excess" -gt 0 ] && IFS=$'\t' read -r -d '' _ size name; do
      rm -f -- "$spool/$name"
      excess=$((excess - size))
    done
fi
