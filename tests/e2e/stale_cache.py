#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that a cache keeps from another GPU: found by its path, or by the hash of what came from memory."""
import json
import os
import pathlib

import e2e

CLIENTS = e2e.BUILD / "tests/clients"
DRIVER, CUBIN, PTX = CLIENTS / "driver", CLIENTS / "kernels.cubin", CLIENTS / "kernels.ptx"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", DRIVER, CUBIN, PTX)


class StaleCache(e2e.Case):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        (self.cache / "0a1b").mkdir(parents=True)

    def errors(self, file, variable="TRITON_CACHE_DIR", **more):
        env = e2e.clean_environment(HOME=self.folder, **{variable: self.cache}, **more)
        analysis, done = self.analysis("--simulate", "8.0", "--report", self.folder / "r", "--", DRIVER, "dlsym", file, env=env)
        self.assertNotEqual(done.returncode, 0)
        return [row for row in analysis["findings"] if row["severity"] == "error"]

    def loose(self, file, **more):
        """The error of code that came from memory: the file that it is found in."""
        found = [row for row in self.errors(file, **more) if row["cause"] == "stale-cache-artifact"]
        return found[0] if found else None

    def test_found_by_path_and_by_content_it_is_one_finding(self):
        kept = self.cache / "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567/scale.cubin"
        kept.parent.mkdir()
        kept.write_bytes(CUBIN.read_bytes())
        (error,) = self.errors(kept)
        self.assertEqual((error["cause"], error["object"], error["need"]), ("stale-cache-artifact", str(kept), "sm_80"))
        self.assertEqual(error["fixes"][0]["commands"], [f"rm -r {kept.parent}"])
        self.assertIn("Triton", error["fixes"][0]["title"])
        self.assertEqual(error["where"]["function"], "main")

    def test_what_was_loaded_from_elsewhere_is_found_by_its_content(self):
        kept = self.cache / "0a1b/scale.cubin"
        kept.write_bytes(CUBIN.read_bytes())
        self.assertEqual(self.loose(CUBIN)["object"], str(kept))
        kept.write_bytes(CUBIN.read_bytes()[:-1] + b"\xff")
        self.assertIsNone(self.loose(CUBIN), "another content of the same size")

    def test_programs_and_libraries_are_no_cache_entries_and_folders_of_others_are_left(self):
        program = self.cache / "0a1b/runtime_static"
        program.write_bytes((CLIENTS / "runtime_static").read_bytes())
        program.chmod(0o755)
        env = e2e.clean_environment(TRITON_CACHE_DIR=self.cache)
        analysis, _ = self.analysis("--simulate", "8.0", "--", program, env=env)
        self.assertNotIn("stale-cache-artifact", {row["cause"] for row in analysis["findings"]})
        kept = self.cache / "0a1b/scale.cubin"
        kept.write_bytes(CUBIN.read_bytes())
        (error,) = self.errors(kept)
        self.assertEqual(error["fixes"][0]["commands"], [f"rm -r {kept}"], "the folder is not named by a hash")

    def test_a_checksum_may_stand_in_front(self):
        kept = self.cache / "f00.cubin"
        kept.write_bytes(b"0123456789abcdef0123456789abcdef01234567" + CUBIN.read_bytes())
        error = self.loose(CUBIN, variable="CUPY_CACHE_DIR")
        self.assertEqual(error["object"], str(kept))
        self.assertEqual(error["fixes"][0]["commands"], [f"rm -r {kept}"], "CuPy keeps one file a kernel")

    def test_ptx_for_a_newer_gpu(self):
        kept = self.cache / "0a1b/scale.ptx"
        kept.write_bytes(PTX.read_bytes())
        self.assertEqual(self.loose(PTX)["object"], str(kept))

    def test_the_default_place_is_below_home(self):
        kept = self.folder / ".triton/cache/x/k.cubin"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(CUBIN.read_bytes())
        self.assertEqual(self.loose(CUBIN, variable="NO_CACHE_AT_ALL")["object"], str(kept))

    def test_links_are_not_followed_and_odd_files_are_not_opened(self):
        (self.cache / "0a1b/link.cubin").symlink_to(CUBIN)
        os.mkfifo(self.cache / "0a1b/pipe.cubin")
        self.assertIsNone(self.loose(CUBIN))

    def test_another_machines_report_is_not_looked_for_here(self):
        (self.cache / "0a1b/scale.cubin").write_bytes(CUBIN.read_bytes())
        self.assertIsNotNone(self.loose(CUBIN))
        (report,) = (self.folder / "r").rglob("*.jsonl")
        lines = report.read_text().splitlines()
        process = json.loads(lines[0])
        process["host"] = "elsewhere"
        lines[0] = json.dumps(process)
        moved = pathlib.Path(self.folder, "moved.jsonl")
        moved.write_text("\n".join(lines) + "\n")
        done = self.kshim("analyze", "--format", "json", moved)
        causes = {row["cause"] for row in json.loads(done.stdout)["findings"]}
        self.assertNotIn("stale-cache-artifact", causes)


if __name__ == "__main__":
    e2e.main()
