#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TaskProlog of slurm.conf: what it prints becomes the task's environment. The shim stands behind what a module (XALT's, a user's own)
# preloads.
# Tried (tests/e2e/recipes.py): run by slurmctld and slurmd 22.05, one node.
echo "export LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}${KSHIM_SHIM:-/opt/kshim/lib/libkshim.so}"
echo "export KSHIM_REPORT=${KSHIM_SPOOL:-/var/spool/kshim-jobs}/$SLURM_JOB_ID/%h.%r.%p.jsonl"
