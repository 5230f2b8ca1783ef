#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prolog of slurm.conf: root makes the job's folder for reports, which is its user's. A prolog that fails drains the node: this one ends with 0.
# Tried (tests/e2e/recipes.py): run by slurmctld and slurmd 22.05, one node.
spool=${KSHIM_SPOOL:-/var/spool/kshim}
mkdir -p "$spool" && install -d -m 0700 -o "$SLURM_JOB_UID" "$spool/$SLURM_JOB_ID"
exit 0
