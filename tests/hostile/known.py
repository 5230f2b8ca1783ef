# SPDX-License-Identifier: Apache-2.0
"""The list of what is known to fail (known_failures), which must only get shorter: a test that is listed is run, and reported where it fails;
where it passes, it must leave the list. A line is `TEST PATTERN | always or sometimes | what it is of`; a pattern is that of fnmatch.
KSHIM_KNOWN_FAILURES=none: as if it were empty, to try a build of somebody's."""
import fnmatch
import os
import pathlib

LIST = pathlib.Path(__file__).resolve().parent / "known_failures"
EXPECTED, FAILED, PASSED = "known failure", "FAILED", "FAILED: it passes, and is listed in tests/hostile/known_failures"


def rows():
    if os.environ.get("KSHIM_KNOWN_FAILURES") == "none" or not LIST.exists():
        return []
    lines = (line.split("#")[0].strip() for line in LIST.read_text().splitlines())
    return [tuple(part.strip() for part in line.split("|")) for line in lines if line]


class Known:
    """The lines of one script."""

    def __init__(self, script):
        self.rows = [(pattern[len(script) + 1:], how) for pattern, how, _ in rows() if pattern.startswith(script + " ")]

    def how(self, test):
        """`always`, `sometimes`, or None."""
        return next((how for pattern, how in self.rows if fnmatch.fnmatchcase(test, pattern)), None)

    def verdict(self, test, difference):
        """What to print of a test; None where it passes and should."""
        how = self.how(test)
        if difference:
            return EXPECTED if how else FAILED
        return PASSED if how == "always" else None
