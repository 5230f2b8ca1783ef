#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--max-memory: what is made to take memory costs that file its verdict, and the command goes on; a program of `kshim run` is not limited."""
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import tarfile
import time
import zipfile

import e2e
import trust

e2e.require(e2e.KSHIM)
MB = 1 << 20
ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)


class Memory(e2e.Case):
    def peak(self, *words, **more):
        """Bytes of its own that it had at most (about: looked at every few milliseconds), of all, its exit status, what it said."""
        with open(self.folder / "said", "w+b") as said:
            process = subprocess.Popen([e2e.KSHIM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                                       env=e2e.clean_environment(TMPDIR=self.folder), cwd=self.folder, **more)
            own = everything = 0
            while process.poll() is None:
                try:
                    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                except OSError:
                    break
                found = {name: int(value) << 10 for name, value in re.findall(r"^(RssAnon|VmHWM):\s+(\d+)", text, re.MULTILINE)}
                own, everything = max(own, found.get("RssAnon", 0)), max(everything, found.get("VmHWM", 0))
                time.sleep(0.005)
            process.wait(timeout=100)
            said.seek(0)
            return own, everything, process.returncode, said.read().decode(errors="replace")

    def hostile(self):
        """Small files that want much memory, each for what reads it."""
        def wheel(name, members, size):
            with zipfile.ZipFile(self.folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for number in range(members):
                    with archive.open(f"pkg/lib{number}.so", "w", force_zip64=True) as member:
                        member.write(ELF)
                        for _ in range(size // MB):
                            member.write(bytes(MB))
            return self.folder / name
        yield "scan", wheel("one.whl", 1, 300 * MB)
        yield "scan", "--kernels", "-j", "8", wheel("many.whl", 6, 90 * MB)
        inner = io.BytesIO()
        with tarfile.open(fileobj=inner, mode="w:xz", preset=0) as tar:
            info = tarfile.TarInfo("lib.so")
            info.size = 120 * MB
            tar.addfile(info, io.BytesIO(ELF + bytes(info.size)))
        nested = self.folder / "nested.whl"
        with zipfile.ZipFile(nested, "w") as archive:
            for number in range(3):
                archive.writestr(f"{number}.tar.xz", inner.getvalue())
        yield "scan", "-j", "8", nested
        head = trust.report("/x/lib.so").splitlines()[0]
        wide = self.folder / "wide.jsonl"
        with open(wide, "w") as out:
            print(head, file=out)
            for number in range(300_000):
                print(json.dumps({"type": "coverage", "seq": number + 1, "t": 0, "kernel": f"k{number}" + "x" * 200, "object": number, "launches": 1}),
                      file=out)
        yield "analyze", wide
        long = self.folder / "long.jsonl"
        with open(long, "w") as out:
            print(head, file=out)
            print('{"type":"gap","kernels":[' + ",".join(['"k"'] * 4_000_000) + "]}", file=out)
        yield "analyze", long
        yield "diff", wide, long
        log = self.folder / "long.log"
        log.write_bytes(b"error: " + b"x" * (100 * MB))
        yield "explain", "--log", log

    # shows: --max-memory: wheels, archives in them, reports and logs that are made to take memory
    def test_it_is_kept(self):
        e2e.not_instrumented(self)
        for words in self.hostile():
            for limit in (64, 512):
                with self.subTest(words[-1], limit=limit):
                    own, _, status, said = self.peak(words[0], "--max-memory", f"{limit}M", *words[1:])
                    self.assertIn(status, (0, 1, 3), said)
                    self.assertLess(own, (limit + 8) * MB, said)
                    self.assertNotIn("internal error", said)

    # shows: --max-memory: a wheel of many small files, whose pages add up
    def test_pages_of_small_members_go(self):
        e2e.not_instrumented(self)
        path = self.folder / "small.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(5_000):
                archive.writestr(f"{number}.cubin", ELF + os.urandom(32 << 10))
        _, everything, status, said = self.peak("scan", "-j", "4", path)
        self.assertIn(status, (0, 1), said)
        self.assertLess(everything, path.stat().st_size * 3 // 4)

    def test_what_is_no_size(self):
        for word in ("", "x", "1", "63M", "-1", "64MM", "99999999999G", "1e9"):
            done = self.kshim("scan", "--max-memory", word or " ", ".")
            self.assert_says(done, 2, "--max-memory")

    def test_a_program_is_not_limited(self):
        before = subprocess.run(["sh", "-c", "ulimit -d"], capture_output=True, text=True, check=True).stdout
        done = self.kshim("run", "--max-memory", "64M", "--", "sh", "-c", "ulimit -d")
        self.assertEqual((done.returncode, done.stdout), (0, before), done.stderr)


if __name__ == "__main__":
    e2e.main()
