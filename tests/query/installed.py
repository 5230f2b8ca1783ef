#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The install component `query`: a program of somebody else is built with pkg-config and with CMake, and asks."""
import os
import pathlib
import shutil
import subprocess

import e2e

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
GUARD = e2e.SOURCE / "samples" / "09_guard" / "guard.c"
e2e.require(e2e.KSHIM, e2e.SHIM, SAXPY, e2e.BUILD / "query" / "libkshim-query.so.1")

PROGRAM = """
#include <kshim/query.h>
#include <stdio.h>
int main(int argc, char** argv) {
  struct kshim_question question = {.size = sizeof question, .path = argv[argc - 1], .major = 8, .minor = 6};
  struct kshim_answer answer = {.size = sizeof answer};
  kshim_query(&question, &answer);
  printf("%d %s %s\\n", answer.code, answer.reason, answer.image);
  return kshim_query_version() != KSHIM_QUERY_VERSION;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(asks LANGUAGES C)
find_package(kshim 0.1 REQUIRED COMPONENTS query)
add_executable(asks asks.c)
target_link_libraries(asks PRIVATE kshim::query)
"""


class Installed(e2e.Case):
    def install(self, *components):
        prefix = self.folder / "prefix"
        for component in components:
            subprocess.run(["cmake", "--install", e2e.BUILD, "--prefix", prefix, "--component", component], check=True, stdout=subprocess.DEVNULL)
        (self.folder / "asks.c").write_text(PROGRAM)
        (self.folder / "CMakeLists.txt").write_text(PROJECT)
        return prefix

    def asks(self, program, **environment):
        done = self.run_program(program, SAXPY, env=e2e.clean_environment(**environment))
        self.assertEqual((done.returncode, done.stdout), (0, "1 same_major sm_80\n"), done.stderr)

    def test_pkg_config(self):
        prefix = self.install("query")
        files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
        self.assertEqual({pathlib.Path(name).name for name in files},
                         {"libkshim-query.so", "libkshim-query.so.1", "query.h", "kshim-query.pc"})
        moved = self.folder / "elsewhere"
        shutil.move(prefix, moved)
        env = e2e.clean_environment(PKG_CONFIG_PATH=next(moved.rglob("kshim-query.pc")).parent)
        flags = self.run_program("pkg-config", "--cflags", "--libs", "kshim-query", env=env).stdout.split()
        for source, program in ((self.folder / "asks.c", "asks"), (GUARD, "guard")):
            done = self.run_program("cc", "-std=c99", "-Wall", "-Werror", "-o", program, source, *flags, "-ldl")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.asks(self.folder / "asks", LD_LIBRARY_PATH=next(moved.rglob("libkshim-query.so.1")).parent)

    def test_cmake(self):
        prefix = self.install("query", "kshim")
        for name, where in (("installed", f"-DCMAKE_PREFIX_PATH={prefix}"), ("tree", f"-Dkshim_DIR={e2e.BUILD / 'cmake'}")):
            build = self.folder / name
            done = self.run_program("cmake", "-S", self.folder, "-B", build, where, env={**e2e.clean_environment(), "CMAKE_GENERATOR": os.environ["CMAKE_GENERATOR"]})
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.run_program("cmake", "--build", build)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.asks(build / "asks")

    def test_without_it(self):
        prefix = self.install("kshim")
        done = self.run_program("cmake", "-S", self.folder, "-B", self.folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("install kshim's component `query`", " ".join(done.stderr.split()))


if __name__ == "__main__":
    e2e.main()
