# SPDX-License-Identifier: Apache-2.0
"""kshim says which CUDA kernel in which library lacks an image for your GPU, and the command that fixes it.

    kshim.path()        libkshim.so, for LD_PRELOAD
    kshim.command()     the `kshim` command itself
    kshim.simulator()   folder of the simulated driver, None where kshim[simulator] is not installed
    kshim.covers(file)  does a file have code for this GPU, or for another one? docs/query.md
    kshim.version       "0.1.0"
"""
from typing import TYPE_CHECKING

from kshim._places import command, path, simulator
from kshim._version import version

if TYPE_CHECKING:
    from kshim._covers import Coverage, NoGpu, covers

__version__ = version
__all__ = ["Coverage", "NoGpu", "command", "covers", "path", "simulator", "version"]


def __getattr__(name: str) -> object:
    """ctypes is imported for covers() alone: pytest's plugin imports this package in every run."""
    if name in ("Coverage", "NoGpu", "covers"):
        from kshim import _covers
        return getattr(_covers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
