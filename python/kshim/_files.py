# SPDX-License-Identifier: Apache-2.0
"""The one way by which this package opens a file to read it: tests may have left anything beside the reports. What has the name
is looked at before it is opened, so that no device is used and no FIFO waited for; only regular files are read."""
import io
import os
import stat
from typing import BinaryIO, Iterator

LONGEST_LINE = 64 << 20


def open_to_read(path: str) -> BinaryIO:
    """OSError for what is no regular file."""
    entry = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(entry).st_mode):
            raise OSError(f"{path}: is not a regular file")
        found = os.fstat(entry)
    finally:
        os.close(entry)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    now = os.fstat(fd)
    if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
        os.close(fd)
        raise OSError(f"{path}: has changed")
    return io.open(fd, "rb")


def lines(path: str) -> Iterator[bytes]:
    """The lines of a file, none longer than LONGEST_LINE: a longer one comes in pieces."""
    with open_to_read(path) as file:
        while True:
            line = file.readline(LONGEST_LINE)
            if not line:
                return
            yield line


def text(path: str) -> str:
    with open_to_read(path) as file:
        return file.read().decode("utf-8", "replace")
