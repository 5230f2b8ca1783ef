# SPDX-License-Identifier: Apache-2.0
"""The lock-hostile matrix: what another thread holds forever, and what is entered meanwhile. run.py runs each cell without the shim and
with it. cell.cpp says what each name does."""

HOLDS = {  # name: what is held
    "load": "ld.so's load lock: a constructor in `dlopen` that does not return",
    "iterate": "ld.so's lock of the list of objects: a `dl_iterate_phdr` callback that does not return",
    "audit": "an auditor (`LD_AUDIT`) that does not return from `la_objopen`",
    "malloc": "malloc's only arena, and stderr's `FILE`: `malloc_stats` to a stream that blocks",
    "stderr": "stderr's `FILE`: `flockfile`",
    "environment": "the environment's lock: `setenv` stopped in the middle",
    "driver": "a call of the driver that does not return",
    "question": "the shim's own lock: the driver does not answer what the shim asks it",
    "shim": "the shim's own lock: its owner is stopped while it writes",
    "canceled": "the shim's own lock: its owner was canceled while it wrote (asynchronously), and is gone",
    "index": "the lock of the index of loaded files: its owner is stopped while it reads one",
    "gil": "Python's global interpreter lock",
}

ENTRIES = {  # group: entries
    "each exported function": ("calls",),
    "`dlsym`, `dlvsym`": ("dlsym-handle", "dlsym-default", "dlsym-next", "dlsym-other", "dlvsym"),
    "`dlclose`": ("dlclose",),
    "the process ends": ("end-return", "end-exit", "end-_exit", "end-_Exit", "end-quick_exit", "end-abort", "end-exec", "end-kill", "end-exit_group",
                         "end-handler-exit", "end-handler-_exit"),
    "a child of fork": ("fork-exit", "fork-_exit", "fork-quick_exit", "fork-abort", "fork-exec", "fork-exit_group", "fork-call", "fork-call-exit"),
    "a child of vfork, of the system call": ("vfork-_exit", "vfork-exec", "vfork-call", "clone-_exit", "clone-exit", "clone-exec", "clone-call", "clone-exit_group"),
    "another process starts": ("spawn",),
    "a thread ends, and a destructor of its storage calls CUDA": ("thread-end",),
    "a signal handler calls CUDA": ("handler-call",),
}

# Where each function is the first that the shim hears of, in a process of its own.
FRESH = ("load", "iterate", "question", "shim", "index")
STATES = ("first", "warm")

# Not in Python's process: the main thread, which would end, holds the lock.
NOT_WITH_GIL = ENTRIES["the process ends"] + ("spawn",)
