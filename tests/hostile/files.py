#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the report goes: full and read-only disks, a changed root, other users, and names that somebody laid in the way."""
import ctypes
import errno
import json
import os
import pathlib
import platform
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

import e2e
import hostile
from hostile import BOTH, NO_IMAGE

NOBODY = 65534


class Places(hostile.Case):
    """What lies where the report is to be."""

    def run_once(self, report):
        return self.same(*self.scenario("once"), variables={"KSHIM_REPORT": str(report)})

    def made(self, folder, name="r.1.jsonl"):
        info = os.lstat(folder / name)
        self.assertTrue(stat.S_ISREG(info.st_mode))
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_nlink), (0o600, 1))
        self.assertEqual(self.codes(hostile.report_check.load(folder / name, complete=True)), BOTH)

    def test_a_symbolic_link(self):
        """a symbolic link where the report is to be, to a file, to nothing, to itself | nothing; what it leads to is not touched | all of it, under the next number"""
        precious = self.folder / "precious"
        for number, target in enumerate((precious, self.folder / "nothing", "r.jsonl", "/dev/null")):
            with self.subTest(target):
                precious.write_text("mine")
                folder = self.folder / str(number)
                folder.mkdir()
                (folder / "r.jsonl").symlink_to(target)
                self.run_once(folder / "r.jsonl")
                self.made(folder)
                self.assertTrue((folder / "r.jsonl").is_symlink())
                self.assertEqual(precious.read_text(), "mine")
                self.assertFalse((self.folder / "nothing").exists())

    def test_a_hard_link(self):
        """another name of somebody's file | nothing; the file is not touched | all of it, under the next number"""
        (self.folder / "precious").write_text("mine")
        os.link(self.folder / "precious", self.folder / "r.jsonl")
        self.run_once(self.folder / "r.jsonl")
        self.made(self.folder)
        self.assertEqual((self.folder / "precious").read_text(), "mine")

    def test_a_device(self):
        """KSHIM_REPORT=/dev/null, and other devices | nothing; no file is made among the devices | none for /dev/null; else all of it, in TMPDIR, and stderr says so"""
        before = sorted(os.listdir("/dev"))
        for name in ("null", "full", "stderr"):
            with self.subTest(name):
                folder = self.folder / name
                folder.mkdir()
                done = self.same(*self.scenario("once"), variables={"KSHIM_REPORT": f"/dev/{name}", "TMPDIR": folder})
                self.assertEqual([self.codes(records) for records in self.found(folder)], [] if name == "null" else [BOTH])
                self.assertEqual("/dev/" in done.stderr, name != "null", done.stderr)
                self.assertEqual(sorted(os.listdir("/dev")), before)

    def test_no_name(self):
        """a pattern that ends in `.` or `..` | nothing; stderr says that it is not understood | all of it, where it is without one"""
        for name in (".", "..", "below/."):
            with self.subTest(name):
                done = self.same(*self.scenario("once"), variables={"KSHIM_REPORT": name})
                self.assertIn("KSHIM_REPORT", done.stderr)
                self.assertEqual(self.codes(self.found()[-1]), BOTH)
                self.assertEqual([path.name for path in (self.folder / "shim").iterdir()], ["kshim-report"])

    def test_no_umask(self):
        """a host without a umask, as daemons have it | nothing | all of it, in a folder that nobody else can write to"""
        self.same("sh", "-c", 'umask 0; exec "$0" "$@"', *self.scenario("once"))
        self.assertEqual(stat.S_IMODE(os.lstat(self.folder / "shim/kshim-report").st_mode), 0o755)
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_a_umask_that_closes_folders(self):
        """a host whose umask takes rights from the owner (0177, 0777), without root's right to ignore that | nothing | all of it, in a folder that its owner can open"""
        drop = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
        for umask in (0o177, 0o777):
            for name in ("", "new/%p.jsonl"):
                with self.subTest(umask=oct(umask), name=name):
                    folder = self.folder / f"{umask:o}{name[:3]}"
                    folder.mkdir()
                    self.same(*drop, *self.scenario("once"), umask=umask, cwd=folder, variables={"KSHIM_REPORT": name} if name else {})
                    self.assertEqual([self.codes(records) for records in self.found(folder)], [BOTH])

    def test_a_fifo(self):
        """a FIFO, which nobody reads | it neither waits nor gets SIGPIPE | all of it, under the next number"""
        os.mkfifo(self.folder / "r.jsonl")
        self.run_once(self.folder / "r.jsonl")
        self.made(self.folder)

    def test_a_fifo_in_the_place_of_the_report(self):
        """the report is replaced by a FIFO while its descriptor is closed | it does not wait | what was written before; the rest is counted"""
        self.same(*self.scenario("replaced"))
        self.assertEqual(self.codes(hostile.report_check.load(self.folder / "shim/before.jsonl")), BOTH)

    def test_a_folder(self):
        """a folder of that name | nothing | all of it, under the next number"""
        (self.folder / "r.jsonl").mkdir()
        self.run_once(self.folder / "r.jsonl")
        self.made(self.folder)

    def test_a_linked_folder_of_somebody_else(self):
        """in a folder that all may write to, a link named kshim-report that somebody else laid | nothing; the link is not followed | all of it, in kshim-report-UID beside it, a folder of the caller's own"""
        self.need_root()
        self.trap(NOBODY, 0o1777)
        self.assertEqual(list((self.folder / "target").iterdir()), [])
        own, = (self.folder / "shim").glob("kshim-report-*/*.jsonl")
        self.assertEqual(self.codes(hostile.report_check.load(own, complete=True)), BOTH)

    def test_a_linked_folder_of_ones_own(self):
        """a link named kshim-report that is one's own (or root's) | nothing | all of it, where the link leads"""
        self.trap(os.geteuid(), 0o755)
        report, = (self.folder / "target").glob("*.jsonl")
        self.assertEqual(self.codes(hostile.report_check.load(report, complete=True)), BOTH)

    def trap(self, owner, mode):
        for name in ("bare", "shim"):
            folder = self.folder / name
            folder.mkdir()
            folder.chmod(mode)
        (self.folder / "target").mkdir()
        (self.folder / "tmp").mkdir()
        link = self.folder / "shim" / "kshim-report"
        link.symlink_to(self.folder / "target")
        os.chown(link, owner, owner, follow_symlinks=False)
        self.same(*self.scenario("once"), variables={"TMPDIR": str(self.folder / "tmp")})

    def test_a_folder_of_somebody_else(self):
        """another user's folder; that user may read and remove what is in it | nothing | all of it; the file is readable by its owner alone (0600)"""
        self.need_root()
        folder = self.folder / "theirs"
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        folder.chmod(0o777)
        self.run_once(folder / "r.jsonl")
        self.made(folder, "r.jsonl")

    def starts(self, folder, env):
        """How often a server is started, four times at most, that is started again where a file in its folder has changed."""
        folder.mkdir()
        for count in range(1, 5):
            before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
            self.assertEqual(self.run_program(*self.scenario("once"), env=env, cwd=folder).returncode, 3)
            if before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}:
                return count
        return 4

    def test_a_server_that_starts_again(self):
        """a server that is started again when a file in its folder changes (`uvicorn --reload`) | each start is a change, and the server starts again forever; with KSHIM_REPORT elsewhere, nothing | all of it, from each start"""
        env = e2e.simulated("9.0")
        preloaded = env | {"LD_PRELOAD": str(e2e.SHIM)}
        elsewhere = preloaded | {"KSHIM_REPORT": str(self.folder / "reports" / "%p.jsonl")}
        starts = [self.starts(self.folder / name, env) for name, env in (("bare", env), ("shim", preloaded), ("elsewhere", elsewhere))]
        self.assertEqual(starts, [1, 4, 1])
        self.assertEqual([self.codes(records) for records in self.found()], [BOTH] * 4)

    def test_a_folder_with_many_files(self):
        """a folder that may have KSHIM_MAX_FILES files | each process reads the names in it when it makes its report; one that is too small for so many is not read | all of it"""
        folder = self.folder / "reports"
        folder.mkdir()
        for number in range(200):
            (folder / f"{number:0200}").touch()
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_NONBLOCK)
        self.assertGreaterEqual(libc.inotify_add_watch(watch, str(folder).encode(), 0x1), 0)  # IN_ACCESS
        self.addCleanup(os.close, watch)
        for most, reads in ((250, True), (65536, False)):
            with self.subTest(most):
                self.same(*self.scenario("once"), variables={"KSHIM_REPORT": folder / f"{most}.jsonl", "KSHIM_MAX_FILES": most})
                self.assertEqual(bool(select.select([watch], [], [], 0)[0]), reads)
                self.assertEqual(self.codes(hostile.report_check.load(folder / f"{most}.jsonl", complete=True)), BOTH)
                os.read(watch, 1 << 16)  # that was a read, too

    def test_a_working_directory_that_is_gone(self):
        """started in a directory that was removed | nothing | all of it, in TMPDIR"""
        gone = self.folder / "gone"
        script = f'cd "{gone}" && rmdir "{gone}" && exec "$0" "$@"'
        texts = []
        for start in (self.bare, self.shimmed):
            gone.mkdir()
            done = start("sh", "-c", script, *self.scenario("once"), variables={"TMPDIR": str(self.folder)})
            texts.append((done.returncode, done.stdout, hostile.without_ours(done.stderr)))
        self.assertEqual(texts[0], texts[1])
        report, = self.folder.glob("kshim-report-*/*.jsonl")
        self.assertEqual(self.codes(hostile.report_check.load(report, complete=True)), BOTH)


class Disks(hostile.Case):
    """Small file systems of our own; they end with the namespace that `unshare` makes."""

    def inside(self, commands, *argv, **more):
        """The program after shell commands in a mount namespace of its own, without the shim and with it."""
        self.need_root()
        try:
            subprocess.run(["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no mount namespaces here")
        # `mount` and the shell are not to be watched, only the program.
        script = ('preload=$LD_PRELOAD; unset LD_PRELOAD; mount -t tmpfs -o size=$0 none "$DISK" && ' + commands +
                  ' && { [ -z "$preload" ] || export LD_PRELOAD="$preload"; "$@"; end=$?; unset LD_PRELOAD; cp "$DISK"/*.jsonl "$KEPT" 2>/dev/null; exit $end; }')
        disk, kept = self.folder / "disk", self.folder / "kept"
        for folder in (disk, kept):
            folder.mkdir(exist_ok=True)
        variables = {"DISK": str(disk), "KEPT": str(kept), "KSHIM_REPORT": str(disk / "r.jsonl"), **more.pop("variables", {})}
        return self.same("unshare", "--mount", "sh", "-c", script, "128k", *argv, variables=variables, **more)

    def test_full(self):
        """a disk that is full (a small tmpfs) | nothing | what fits, in whole lines; the rest is counted, in `end` where that fits"""
        done = self.inside('dd if=/dev/zero of="$DISK/big" bs=1k count=112 2>/dev/null', *self.scenario("until-full"))
        text = (self.folder / "kept" / "r.jsonl").read_text()
        records = [json.loads(line) for line in text.splitlines()]
        self.assertIn("wrong: 0", done.stdout)
        self.assertEqual((text[-1], records[0]["type"]), ("\n", "process"))
        self.assertTrue(0 < len(self.codes(records)) < 60, self.codes(records))

    def test_a_disk_that_has_room_again(self):
        """the disk of the report is full when an image fails for the first time, and has room when it fails again | nothing | the failure, from the second time on; `end` counts what was dropped"""
        code = ("import ctypes, os\ndriver = ctypes.CDLL('libcuda.so.1')\ndriver.cuInit(0)\nctypes.c_int.in_dll(driver, 'plain_driver').value = 209\n"
                "out = ctypes.c_void_p()\nfail = lambda: print(driver.cuModuleLoadData(ctypes.byref(out), b'.version 8.0\\n.target sm_90\\n'))\n"
                "driver.cuModuleGetFunction(ctypes.byref(out), ctypes.c_void_p(64), b'fills')\n"
                "path = os.environ['DISK'] + '/filler'\nfile = os.open(path, os.O_CREAT | os.O_WRONLY)\n"
                "for size in (4096, 1):\n    try:\n        while True: os.write(file, bytes(size))\n    except OSError: pass\n"
                "for i in range(900): driver.cuModuleGetFunction(ctypes.byref(out), ctypes.c_void_p(64), b'fills')\n"  # the report's last page
                "fail()\nos.close(file)\nos.unlink(path)\nfail()\nfail()\n")
        self.inside("true", sys.executable, "-c", code, variables={"LD_LIBRARY_PATH": str(hostile.PLAIN), "KSHIM_REPEATS": "each"})
        records = hostile.report_check.load(self.folder / "kept" / "r.jsonl", complete=True)
        failures = e2e.of_type(records, "failure")
        image, = (failure for failure in failures if failure["stage"] == "load")
        self.assertIn(image["module"], [module["id"] for module in e2e.of_type(records, "module")])
        self.assertLessEqual({repeat["id"] for repeat in e2e.of_type(records, "repeat")}, {failure["id"] for failure in failures})
        self.assertGreater(records[-1]["dropped"], 0)

    def test_a_disk_that_is_to_be_unmounted(self):
        """a program unmounts the file system in which it started, after a failure | the file system is busy: the report is open | all of it"""
        self.need_root()
        code = ("import ctypes, os\ndriver = ctypes.CDLL('libcuda.so.1')\ndriver.cuInit(0)\nhere = os.getcwd()\nos.chdir('/')\n"
                "print(ctypes.CDLL(None, use_errno=True).umount(here.encode()), ctypes.get_errno())\n")
        script = 'mkdir disk && mount -t tmpfs none disk && cd disk && exec "$0" -c "$1"'
        found = [start("unshare", "--mount", "sh", "-c", script, sys.executable, code, variables={"LD_LIBRARY_PATH": hostile.PLAIN})
                 for start in (self.bare, self.shimmed)]
        if not found[0].stdout:
            self.skipTest(f"no mount namespaces here: {found[0].stderr}")
        self.assertEqual([done.stdout for done in found], ["0 0\n", f"-1 {errno.EBUSY}\n"])

    def test_a_file_system_over_the_start_folder(self):
        """a program mounts a file system over the folder in which it started, maybe one that it serves itself (FUSE) | nothing; stderr says where it is written instead | all of it, in TMPDIR"""
        self.need_root()
        code = ("import ctypes, os, subprocess\nhere = os.getcwd()\nos.chdir('/')\n"
                "if subprocess.run(['mount', '-t', 'tmpfs', 'none', here], env={}).returncode: os._exit(77)\n"
                "driver = ctypes.CDLL('libcuda.so.1')\ndriver.cuInit(0)\nprint(os.listdir(here))\n")
        done = self.shimmed("unshare", "--mount", sys.executable, "-c", code, variables={"LD_LIBRARY_PATH": hostile.PLAIN, "TMPDIR": str(self.folder)})
        if done.returncode in (1, 77):
            self.skipTest(f"no mount namespaces here: {done.stderr}")
        self.assertEqual(done.stdout, "[]\n")
        self.assertEqual(len(list(self.folder.glob("kshim-report-*/*.jsonl"))), 1, done.stderr)

    def test_a_lock_on_an_image(self):
        """a program holds a record lock (`lockf`) on a file of device code, and the driver does not accept what is in it | the lock is lost: the shim has opened the file, and closed it | the load"""
        image = self.folder / "image.cubin"
        image.write_bytes(b"no image at all")
        bare, shimmed = self.effect(
            f"import ctypes, fcntl, os\nfile = open({str(image)!r}, 'r+b')\nfcntl.lockf(file, fcntl.LOCK_EX)\n"
            "driver = ctypes.CDLL('libcuda.so.1')\ndriver.cuInit(0)\nctypes.c_int.in_dll(driver, 'plain_driver').value = 209\n"
            f"print(driver.cuModuleLoad(ctypes.byref(ctypes.c_void_p()), {os.fsencode(image)!r}), flush=True)\n"
            "child = os.fork()\nif child == 0:\n"
            "    try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError: os._exit(1)\n    os._exit(0)\n"
            "print('locked' if os.waitpid(child, 0)[1] else 'free')\n")
        self.assertEqual((bare, shimmed), (["209", "locked"], ["209", "free"]))

    def test_full_from_the_start(self):
        """a disk without any room | nothing; stderr has the failure | an empty file"""
        done = self.inside('{ dd if=/dev/zero of="$DISK/big" bs=1k 2>/dev/null; :; }', *self.scenario("once"))
        self.assertIn("CUDA_ERROR_NO_BINARY_FOR_GPU", done.stderr)
        self.assertEqual((self.folder / "kept" / "r.jsonl").read_bytes(), b"")

    def test_read_only(self):
        """a disk that cannot be written | nothing; stderr says where it is written instead | all of it, in TMPDIR"""
        done = self.inside('mount -o remount,ro "$DISK"', *self.scenario("once"), variables={"TMPDIR": str(self.folder)})
        self.assertIn("the file system is read-only; writing to", done.stderr)
        report, = self.folder.glob("kshim-report-*/*.jsonl")
        self.assertEqual(self.codes(hostile.report_check.load(report, complete=True)), BOTH)

    def test_read_only_everywhere(self):
        """nothing that can be written at all | nothing; stderr says so, and has the failure | none"""
        done = self.inside('mount -o remount,ro "$DISK"', *self.scenario("once"), variables={"TMPDIR": str(self.folder / "disk")})
        self.assertIn("nothing is recorded", done.stderr)
        self.assertIn("CUDA_ERROR_NO_BINARY_FOR_GPU", done.stderr)
        self.assertEqual(list((self.folder / "kept").iterdir()), [])


class Roots(hostile.Case):
    def root(self):
        """A root with nothing in it but what the driver needs: no /proc, no /dev, no /tmp."""
        self.need_root()
        root = self.folder / "root"
        root.mkdir()
        return root

    def test_chroot(self):
        """chroot into a folder without /proc, /dev and /tmp, before the driver starts | nothing | all of it: the folders of the report's path are made inside"""
        root = self.root()
        for number, start in enumerate((self.bare, self.shimmed)):
            done = start(*self.scenario("chroot", root))
            if number == 0:
                first = done
        self.assertEqual((done.returncode, done.stdout), (first.returncode, first.stdout))
        self.assertIn("0 0 500 209", done.stdout)
        report, = root.rglob("*.jsonl")
        self.assertEqual(self.codes(hostile.report_check.load(report, complete=True)), BOTH)
        self.assertIsNone(hostile.report_check.load(report)[0]["exe"])

    def test_another_user(self):
        """root at the start, somebody without rights later, all descriptors closed in between | nothing | what was written before; the rest is counted where it cannot be opened again"""
        self.need_root()
        done = self.same(*self.scenario("other-user"))
        self.assertEqual(done.stdout.splitlines()[-1], "209")
        records = self.found(complete=False)[0]
        self.assertEqual(self.codes(records), BOTH)

    def test_setuid(self):
        """a program with raised rights (setuid) that somebody else starts with LD_PRELOAD | nothing: ld.so ignores the path | none"""
        self.need_root()
        if shutil.which("setpriv") is None:
            raise unittest.SkipTest("no setpriv")
        folder = self.folder / "bin"
        folder.mkdir()
        for path in (self.folder, folder):
            path.chmod(0o755)
        program = folder / "borrowed"
        shutil.copy(hostile.HERE / "static_host", program)
        shutil.copy(shutil.which("true"), folder / "true")
        for path in (program, folder / "true"):
            path.chmod(0o4755)
        for path in (program, folder / "true"):
            self.same("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", path)
        self.assertEqual(self.found(), [])

    def test_setuid_where_the_preload_is_obeyed(self):
        """the same, and the shim lies in a system folder with a set-user-id bit, so that ld.so does load it | nothing | none: the shim stays still where AT_SECURE is set"""
        self.need_root()
        folder = pathlib.Path("/usr/lib") / f"{platform.machine()}-linux-gnu"
        for name in ("upper", "work", "theirs"):
            (self.folder / name).mkdir()
        for path in (self.folder, self.folder / "upper"):
            path.chmod(0o755)
        (self.folder / "theirs").chmod(0o777)
        for source, name, mode in ((e2e.SHIM, "libkshim.so", 0o4755), (e2e.SIMULATOR / "libcuda.so.1", "libcuda.so.1", 0o755)):
            shutil.copy(source, self.folder / "upper" / name)
            (self.folder / "upper" / name).chmod(mode)
        for source, name in ((hostile.HOST, "borrowed"), (hostile.GOOD, "good"), (hostile.BAD, "bad")):
            shutil.copy(source, self.folder / name)
            (self.folder / name).chmod(0o4755 if name == "borrowed" else 0o644)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("the folder is mounted nosuid")
        script = ('mount -t tmpfs none "$0/scratch" && mkdir "$0/scratch/u" "$0/scratch/w" && cp -p "$0"/upper/* "$0/scratch/u" && mount -t overlay o '
                  f'-o "lowerdir={folder},upperdir=$0/scratch/u,workdir=$0/scratch/w" {folder} && cd "$0/theirs" && '
                  'LD_PRELOAD=libkshim.so exec setpriv --reuid="$1" --regid="$1" --clear-groups ../borrowed ../good ../bad once')
        env = e2e.clean_environment(KSHIM_SIM_DEVICES="9.0", KSHIM_REPORT="r.jsonl")
        done = {user: self.run_program("unshare", "--mount", "sh", "-c", script, self.folder, user, env=env) for user in (0, NOBODY)}
        if "0 0 500 209" not in done[0].stdout or not (self.folder / "theirs" / "r.jsonl").exists():
            self.skipTest(f"no overlay here: {done[0].stderr}")  # or the preload is not obeyed even without raised rights
        self.assertEqual((done[NOBODY].returncode, done[NOBODY].stdout, done[NOBODY].stderr), (3, done[0].stdout, ""))
        self.assertEqual(sorted(path.name for path in (self.folder / "theirs").iterdir()), ["r.jsonl"])


if __name__ == "__main__":
    e2e.main()
