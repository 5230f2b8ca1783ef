#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Epilog of slurm.conf: root moves what a job left to a folder that all nodes share, and removes the folder of a job that left nothing.
# Tried (tests/e2e/recipes.py): run by slurmctld and slurmd 22.05, one node.
spool=${KSHIM_SPOOL:-/var/spool/kshim-jobs}
kept=${KSHIM_KEPT:-/shared/kshim}/$SLURM_JOB_ID
if [ -d "$spool/$SLURM_JOB_ID" ] && [ ! -L "$spool/$SLURM_JOB_ID" ] && ! rmdir "$spool/$SLURM_JOB_ID" 2>/dev/null; then
  mkdir -p "$kept" && mv "$spool/$SLURM_JOB_ID" "$kept/$(hostname -s)"
fi
exit 0
