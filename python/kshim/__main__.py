# SPDX-License-Identifier: Apache-2.0
"""The `kshim` command, as a script of the wheel and as `python -m kshim`: becomes the program in the package, which keeps
this process' id, files and terminal."""
import os
import sys
from typing import Dict, List, NoReturn

from kshim import _places

# Options of `kshim run` whose value is the next argument. tests/python/package.py compares them with its help.
VALUE_OPTIONS = frozenset(
    ["--simulate", "--target", "--report", "--fail-on", "--status", "--timeout", "--format", "-o", "--output", "--knowledge", "--max-memory",
     "--io-timeout"])


def with_interpreter(arguments: List[str]) -> List[str]:
    """`run train.py` is run by this Python, as `python train.py` would be: a script in the working folder is seldom
    executable. Everything else stays as it is."""
    if arguments[:1] != ["run"]:
        return arguments
    at = 1
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "--":
            at += 1
            break
        at += 2 if arguments[at] in VALUE_OPTIONS else 1
    if at >= len(arguments) or not arguments[at].endswith(".py"):
        return arguments
    options = arguments[:at]
    if options[-1] != "--":
        options.append("--")
    return [*options, sys.executable, *arguments[at:]]


def environment() -> Dict[str, str]:
    """With the place of the simulator, which is a distribution of its own and may lie elsewhere."""
    out = dict(os.environ)
    folder = _places.simulator()
    if folder is not None:
        out.setdefault("KSHIM_SIMULATOR_DIR", folder)
    return out


def main() -> NoReturn:
    try:
        command = _places.command()
        arguments = with_interpreter(sys.argv[1:])
        sys.stdout.flush()
        os.execve(command, ["kshim", *arguments], environment())
    except (_places.NotInstalled, OSError) as error:
        print(f"kshim: error: {error}", file=sys.stderr)
        sys.exit(125 if sys.argv[1:2] == ["run"] else 3)


if __name__ == "__main__":
    main()
