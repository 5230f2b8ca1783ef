# SPDX-License-Identifier: Apache-2.0
"""What the Python clients share, as client.h for the others: one line a step, exit status 1 where one failed. A line that
fails on the failing device says "# fails" at its end, "# refused" where a compiler refuses the GPU: routes.py wants that file
and line in the failure's Python frames."""
import contextlib
import sys

failed = False


@contextlib.contextmanager
def step(name):
    global failed
    try:
        yield
        print(f"{name}: 0", flush=True)
    except Exception as error:  # whatever the package makes of the driver's error: its text is compared
        failed = True
        print(f"{name}: {type(error).__name__}: {error}", flush=True)


def end():
    sys.exit(failed)
