#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verdicts.py LIBRARY CUDA: the verdict for a target is the same in any list of targets and on any path: a file, a wheel, with and without
the kernels' names, libkshim-query. Of the libraries of CUDA, what nvcc built for the tests, wheels where some are at hand
(KSHIM_TEST_WHEELS), and a file in which a module without kernels fits more GPUs than the only kernel."""
import json
import os
import pathlib
import random
import subprocess
import sys
import zipfile

import e2e

sys.path[:0] = [str(e2e.SOURCE / "tests" / "query"), str(e2e.SOURCE / "tests" / "golden")]
from ask import covers, use  # noqa: E402
from scan_fixture import CUBIN, PTX, cubin, entry, fatbin  # noqa: E402

LIBRARY, CUDA = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
e2e.require(e2e.KSHIM)
GPUS = json.loads((e2e.SOURCE / "knowledge" / "gpus.json").read_text())["gpus"]
CAPABILITIES = [gpu["cc"] for gpu in GPUS]
COUNTS = ("sass", "jit", "lacking", "verdict")
EMPTY = ".version 8.4\n.target sm_75\n.address_size 64\n"
MOST_FILES = 100
LARGE = 16 << 20
MOST_NAMED = 48 << 20  # bytes of a file whose kernels are named


def real_files():
    """Files with device code, by their real names: one of each build id is enough."""
    roots = [CUDA, e2e.SAMPLES, e2e.BUILD / "tests"]
    found = {path.resolve() for root in roots if root.is_dir() for path in root.rglob("*")
             if path.is_file() and "fuzz" not in path.parts  # made to be wrong
             and (".so" in path.name or path.suffix in ("", ".a", ".o", ".fatbin", ".cubin", ".ptx", ".exe"))
             and path.stat().st_size < 600 << 20}
    return sorted(found)


class Verdicts(e2e.Case):
    def scan(self, targets, *argv):
        done = self.kshim("scan", "--format", "json", "--target", ",".join(targets), *argv)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        scan = json.loads(done.stdout)
        self.findings = scan["findings"]
        return {(each["path"], each["member"]): {row["target"]: tuple(row[name] for name in COUNTS) for row in each["targets"]}
                for each in scan["objects"]}

    def compare(self, *paths):
        """Returns the verdicts of all targets in one run."""
        whole = self.scan(CAPABILITIES, *paths)
        chance = random.Random(44)
        lists = [[capability] for capability in CAPABILITIES]
        lists += [chance.sample(CAPABILITIES, chance.randint(2, 6)) for _ in range(4)]
        for targets in lists:
            # Large files take their time: a quarter of the lists each, by chance.
            asked = [path for path in paths if pathlib.Path(path).stat().st_size < LARGE or chance.random() < 0.25]
            for name, verdicts in self.scan(targets, *asked).items() if asked else ():
                for target, verdict in verdicts.items():
                    self.assertEqual(verdict, whole[name][target], (name, target, targets))
        # Names say more than modules do: of these, only what is counted is the same.
        small = [path for path in paths if pathlib.Path(path).stat().st_size < MOST_NAMED]
        for name, verdicts in self.scan(CAPABILITIES, "--kernels", *small).items() if small else ():
            for target, verdict in verdicts.items():
                self.assertEqual(verdict[:3], whole[name][target][:3], (name, target, "--kernels"))
        return whole

    def ask(self, whole):
        """The same of libkshim-query, which reads no archives."""
        if not LIBRARY.exists():
            return
        use(LIBRARY)
        for (path, member), verdicts in whole.items():
            if member is not None:
                continue
            for target, (sass, jit, lacking, _) in verdicts.items():
                answer = covers(pathlib.Path(path), capability=target.removeprefix("sm_")[:-1] + "." + target[-1])
                if answer == "unknown":
                    self.assertIn(answer.reason, ("not_linked", "archive"), (path, target))
                    continue
                self.assertEqual((answer.sass, answer.jit, answer.lacking), (sass, jit, lacking), (path, target, answer.reason))

    def test_module_without_kernels_beside_one_kernel(self):
        """An empty module for 7.5 and later: nothing of the file runs but on 9.0, whatever else is asked."""
        path = self.folder / "one.fatbin"
        path.write_bytes(fatbin(entry(CUBIN, 75, cubin(75, None)), entry(PTX, 75, EMPTY.encode() + b"\0", (8, 4))) +
                         fatbin(entry(CUBIN, 90, cubin(90, b"_Z6hopperv"))))
        (verdicts,) = self.compare(path).values()
        self.assertEqual({target for target, row in verdicts.items() if row[3] == "ok"}, {"sm_90"})
        self.assertEqual({row[3] for target, row in verdicts.items() if target != "sm_90"}, {"none"})
        self.assertEqual({sum(row[:3]) for row in verdicts.values()}, {1})
        for targets in (["8.0"], ["7.0", "8.0"]):
            self.scan(targets, path)
            self.assertEqual({finding["severity"] for finding in self.findings}, {"error"}, targets)
        with zipfile.ZipFile(self.folder / "one-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.write(path, "one/one.fatbin")
        (packed,) = self.compare(self.folder / "one-1.0-py3-none-any.whl").values()
        self.assertEqual(packed, verdicts)

    def test_only_modules_without_kernels(self):
        path = self.folder / "none.fatbin"
        path.write_bytes(fatbin(entry(CUBIN, 75, cubin(75, None))))
        (verdicts,) = self.compare(path).values()
        self.assertEqual({row for row in verdicts.values()}, {(0, 0, 0, None)})

    def test_real_files(self):
        files = real_files()
        if not files:
            self.skipTest("there is no CUDA toolkit, and nothing was built")
        with_code = list(self.scan(["8.0"], *files))
        chosen = sorted({path for path, _ in with_code})
        chosen = random.Random(44).sample(chosen, min(MOST_FILES, len(chosen)))
        print(f"{len(chosen)} files", flush=True)
        self.ask(self.compare(*chosen))

    def test_wheels(self):
        folder = os.environ.get("KSHIM_TEST_WHEELS")
        wheels = sorted(pathlib.Path(folder).glob("*.whl")) if folder else []
        if not wheels:
            self.skipTest("no wheels: KSHIM_TEST_WHEELS names no folder with some")
        for wheel in wheels:
            self.compare(wheel)


if __name__ == "__main__":
    del sys.argv[1:]
    e2e.main()
