# SPDX-License-Identifier: Apache-2.0
"""Containers and their images without a registry: roots of this machine's own files, run by podman and crun."""
import os
import pathlib
import re
import shutil
import subprocess

# Machines with version 1 of control groups beside version 2 (and containers of CI) keep crun from starting anything: the commands
# run where only version 2 is mounted. `$1` is the folder of CDI specifications.
INSIDE = ("mount --make-rprivate / && { umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; } 2>/dev/null; "
          "mkdir -p /etc/cdi && mount --bind \"$1\" /etc/cdi && shift && exec \"$@\"")
LIMITS = ["--network", "none", "--cgroups=disabled", "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:1000"]


def add(root, file, at=None):
    """The program with the libraries that it is linked to."""
    file = pathlib.Path(file)
    done = subprocess.run(["ldd", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for source, place in [(file, at or file), *((name, name) for name in re.findall(r"/[^ ]+", done.stdout))]:
        target = root / str(place).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(source, target)


def podman(folder, *argv, cdi=None, env=None, timeout=100):
    """podman with storage of its own below `folder`."""
    cdi = cdi or folder
    own = ["--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "vfs"]
    argv = ["unshare", "-m", "sh", "-c", INSIDE, "sh", cdi, "podman", *own, *argv]
    return subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                          env=env, cwd=folder)


def run(folder, root, *argv, options=(), **more):
    return podman(folder, "run", "--rm", *LIMITS, *options, "--rootfs", root, *argv, **more)


def works(folder):
    """Why no container starts here; empty where one does."""
    if os.getuid() != 0 or not all(shutil.which(name) for name in ("podman", "crun", "unshare")):
        return "no podman, or not root"
    root = folder / "trial"
    add(root, "/bin/true")
    done = run(folder, root, "/bin/true")
    return "" if done.returncode == 0 else done.stderr.strip()[-300:] or "podman fails"
