# SPDX-License-Identifier: Apache-2.0
"""The one way by which this package opens a file to read it: tests may have left anything beside the reports. What has the name
is looked at before it is opened, so that no device is used and no FIFO waited for; only regular files are read, up to a limit."""
import errno
import io
import os
import stat
from typing import BinaryIO, Iterator

LONGEST_LINE = 4 << 20  # the shim's longest has 512 KiB
MOST_BYTES = 1 << 30  # of one file; reports end at KSHIM_MAX_BYTES, 64 MiB if nobody says otherwise


def open_to_read(path: str) -> BinaryIO:
    """OSError for anything but a regular file."""
    entry = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.fstat(entry)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            fd = os.open(f"/proc/self/fd/{entry}", flags)  # this very file, whatever has its name by now
        except FileNotFoundError:  # no /proc
            fd = os.open(path, flags)
        if not os.path.samestat(os.fstat(fd), found):
            os.close(fd)
            raise OSError(errno.ESTALE, "has changed", path)
    finally:
        os.close(entry)
    return io.open(fd, "rb")


def _only_hole_left(file: BinaryIO, status: os.stat_result) -> bool:
    if status.st_blocks * 512 >= status.st_size:
        return False
    at = file.tell()
    try:
        os.lseek(file.fileno(), at, os.SEEK_DATA)
    except OSError as error:
        return error.errno == errno.ENXIO
    finally:
        file.seek(at)
    return False


def lines(path: str) -> Iterator[bytes]:
    """The lines of a file, none longer than LONGEST_LINE: a longer one comes in pieces. A hole at its end is not read."""
    with open_to_read(path) as file:
        status = os.fstat(file.fileno())
        left = MOST_BYTES
        while left > 0:
            line = file.readline(min(LONGEST_LINE, left))
            if not line or (line[:1] == b"\0" and _only_hole_left(file, status)):
                return
            left -= len(line)
            yield line


def text(path: str) -> str:
    with open_to_read(path) as file:
        return file.read(LONGEST_LINE).decode("utf-8", "replace")
