# SPDX-License-Identifier: Apache-2.0
"""The `kshim` command, which reads files and reports: its JSON is all that this package knows of them."""
import json
import os
import shutil
import subprocess
import sys
from typing import Any, Iterator, List

from kshim import _places


class Refused(ValueError):
    """A sentence, and the exit status that goes with it."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def command() -> str:
    """That of this distribution, else the one in PATH."""
    try:
        return _places.command()
    except _places.NotInstalled:
        found = shutil.which("kshim")
        if found is None:
            raise Refused("there is no `kshim` beside this package nor in PATH", 3) from None
        return found


def answer(*arguments: "str | os.PathLike[str]") -> Any:
    """The JSON that a command prints. Its errors go to stderr; statuses up to 1 are answers."""
    done = subprocess.run([command(), *map(os.fspath, arguments)], stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise Refused("", done.returncode)
    return json.loads(done.stdout)


def analyses(paths: List[str]) -> Iterator[Any]:
    """An analysis for each report."""
    with subprocess.Popen([command(), "analyze", "--format", "jsonl", *paths], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        for line in running.stdout:
            yield json.loads(line)
    if running.returncode not in (0, 1, 3):
        raise Refused("", running.returncode)


def harmless(text: str) -> str:
    """Without what steers a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def write(path: str, text: str) -> None:
    """To stdout, or to a file that is there whole or not at all."""
    if not path:
        sys.stdout.write(text)
        return
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
        raise Refused(f"--output {path}: is no file")
    beside = f"{path}.{os.getpid()}"
    with open(beside, "x", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)
