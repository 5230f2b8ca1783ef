#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prolog of slurm.conf: root makes the job's folder for reports and gives it to the job's user. KSHIM_SPOOL is root's, and nobody else may write to it:
# in a folder with mode 1777 a user could lay a link or a folder in the place of another's job. A prolog that fails drains the node: this one ends with 0.
# Tried (tests/e2e/recipes.py): run by slurmctld and slurmd 22.05, one node.
spool=${KSHIM_SPOOL:-/var/spool/kshim-jobs}
mkdir -p -m 0755 "$spool"
if [ -L "$spool" ] || [ -n "$(find "$spool" -maxdepth 0 \( ! -user 0 -o -perm /022 \))" ]; then
  echo "kshim: $spool is not root's alone: no reports" >&2
elif mkdir -m 0700 "$spool/$SLURM_JOB_ID"; then
  chown -h "$SLURM_JOB_UID" "$spool/$SLURM_JOB_ID"
fi
exit 0
