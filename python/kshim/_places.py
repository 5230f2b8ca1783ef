# SPDX-License-Identifier: Apache-2.0
"""Where the parts of this distribution are. An editable install has two folders of the package: the sources, and what was
built; both are in its __path__. What a link of a virtual environment leads to is nobody's business here: no path is resolved."""
import importlib
import importlib.util
import os
from typing import List, Optional


class NotInstalled(RuntimeError):
    """A part that the wheel brings is not there."""


def _folders(package: str) -> List[str]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [os.path.abspath(folder) for folder in spec.submodule_search_locations]


def _find(package: str, part: str) -> Optional[str]:
    for folder in _folders(package):
        candidate = os.path.join(folder, part)
        if os.path.isfile(candidate):
            return candidate
    return None


def _need(part: str) -> str:
    found = _find("kshim", part)
    if found is None:
        raise NotInstalled(f"{part} is not in {', '.join(_folders('kshim'))}: this is a source folder, or a damaged "
                           "installation; pip install kshim again")
    return found


def path() -> str:
    """libkshim.so, for LD_PRELOAD."""
    return _need(os.path.join("lib", "libkshim.so"))


def query_library() -> str:
    """libkshim-query.so.1, for covers() and for programs in C."""
    return _need(os.path.join("lib", "libkshim-query.so.1"))


def command() -> str:
    """The `kshim` program, which needs no Python."""
    return _need(os.path.join("bin", "kshim"))


def simulator() -> Optional[str]:
    """Folder of the simulated driver; None where kshim[simulator] is not installed."""
    found = _find("kshim_simulator", "libcuda.so.1")
    return None if found is None else os.path.dirname(found)
