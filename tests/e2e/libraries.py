#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA libraries that do not belong into one process, and those that are not there: real files, real mappings. And where a
toolkit and cuDNN are there, a real cuBLAS beside the cuBLASLt of another place."""
import os
import pathlib
import shutil

import e2e

PARTS, PROGRAM, NEEDS = e2e.PROGRAMS / "parts", e2e.PROGRAMS / "loads_parts", e2e.PROGRAMS / "needs_part"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", PROGRAM, NEEDS, PARTS / "two/libcudnn_ops.so.9")


class Libraries(e2e.Case):
    def run_with(self, *libraries, status=0, env=None):
        analysis, _ = self.analysis("--simulate", "9.0", "--", PROGRAM.resolve(), status, *(PARTS.resolve() / name for name in libraries),
                                    env=e2e.clean_environment(**(env or {})), status=status)
        return analysis["findings"]

    def test_parts_of_one_place_are_silent(self):
        self.assertEqual(self.run_with("one/libcudnn_graph.so.9", "one/libcudnn_ops.so.9", "one/libcublas.so.12",
                                       "one/libcublasLt.so.12", status=1), [])

    def test_cudnn_of_two_releases(self):
        names = ("one/libcudnn_graph.so.9", "two/libcudnn_ops.so.9")
        (found,) = self.run_with(*names)
        self.assertEqual((found["cause"], found["severity"]), ("cudnn-mismatch", "warning"))
        self.assertGreater(found["confidence"], 0.8)
        self.assertIn("libcudnn_graph.so.9 9.10.2", found["evidence"][0])
        self.assertIn("libcudnn_ops.so.9 9.1.0", found["evidence"][0])
        (found,) = self.run_with(*names, status=1, env={"LD_LIBRARY_PATH": f"/nowhere:{PARTS.resolve()}/two"})
        self.assertEqual((found["cause"], found["severity"]), ("cudnn-mismatch", "warning"))  # an exit status accuses nobody
        self.assertEqual(found["fixes"][0]["commands"], ["export LD_LIBRARY_PATH=/nowhere"])

    def test_the_report_holds_the_release(self):
        self.run_with("one/libcudnn_graph.so.9", "two/libcudnn_ops.so.9")
        (records,) = self.reports()
        self.assertEqual({row["soname"]: row["version"] for row in e2e.of_type(records, "library") if "cudnn" in row["soname"]},
                         {"libcudnn_graph.so.9": "9.10.2", "libcudnn_ops.so.9": "9.1.0"})

    def test_a_cublas_with_anothers_cublaslt(self):
        (found,) = self.run_with("one/libcublas.so.12", "two/libcublasLt.so.12")
        self.assertEqual((found["cause"], found["severity"]), ("mixed-cuda-libraries", "warning"))

    def test_a_library_that_is_not_there(self):
        there = self.folder / "conda/lib"
        there.mkdir(parents=True)
        for folder in (None, there):
            if folder:
                shutil.copy(PARTS / "one/libcublas.so.12", folder)
            env = e2e.clean_environment(CONDA_PREFIX=self.folder / "conda")
            analysis, done = self.analysis("--", NEEDS.resolve(), env=env, status=127)
            self.assertIn("error while loading shared libraries: libcublas.so.12", done.stderr)
            (found,) = analysis["findings"]
            self.assertEqual((analysis["verdict"], found["cause"], found["severity"]), ("failure", "library-not-found", "error"))
            self.assertEqual(found["object"], "libcublas.so.12")
            self.assertIn(str(NEEDS.resolve()), found["evidence"][0])
            commands = [command for fix in found["fixes"] for command in fix["commands"]]
            self.assertEqual(any(str(there) in command for command in commands), bool(folder), commands)

    def test_a_program_of_its_own_127(self):
        analysis, _ = self.analysis("--", "sh", "-c", "exit 127", status=127)
        self.assertEqual(analysis["findings"], [])

    def test_a_real_cublas_beside_another_places_cublaslt(self):
        client, toolkit = e2e.BUILD / "tests/clients/cublas", pathlib.Path(os.environ.get("KSHIM_CUDA_LIB", "/usr/local/cuda/lib64"))
        if not client.exists() or not (toolkit / "libcublasLt.so.13").exists():
            self.skipTest("no cuBLAS client")
        other = self.folder / "other"
        other.mkdir()
        os.symlink((toolkit / "libcublasLt.so.13").resolve(), other / "libcublasLt.so.13")
        analysis, _ = self.analysis("--simulate", "9.0", "--", client.resolve(), env=e2e.clean_environment(LD_LIBRARY_PATH=other))
        self.assertNotIn("mixed-cuda-libraries", [row["cause"] for row in analysis["findings"]],
                         "a link to the very file is the very file")


if __name__ == "__main__":
    e2e.main()
