#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` copies works from where it was copied to, and its two components are apart."""
import pathlib
import re
import shutil
import subprocess
import tempfile

import e2e

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", SAXPY)


def install(prefix, component):
    subprocess.run(["cmake", "--install", e2e.BUILD, "--prefix", prefix, "--component", component], check=True,
                   stdout=subprocess.DEVNULL)


class Installed(e2e.Case):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="kshim-prefix-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        install(cls.prefix, "kshim")
        cls.without_simulator = sorted(str(path.relative_to(cls.prefix)) for path in cls.prefix.rglob("*"))
        install(cls.prefix, "simulator")
        cls.library = next(cls.prefix.rglob("libkshim.so"))

    def installed(self, *argv, **environment):
        return self.run_program(self.prefix / "bin" / "kshim", *argv, env=e2e.clean_environment(**environment))

    def test_components(self):
        self.assertIn("bin/kshim", self.without_simulator)
        names = {pathlib.Path(path).name for path in self.without_simulator}
        for name in ("libkshim.so", "LICENSE", "README.md", "how-it-works.md", "kshimConfig.cmake", "KshimAttach.cmake"):
            self.assertIn(name, names)
        self.assertNotIn("libcuda.so.1", names)
        simulator = next(self.prefix.rglob("libcuda.so.1"))
        self.assertEqual(simulator.parent, self.library.parent / "kshim" / "sim")

    def test_the_links_between_the_pages_lead_somewhere(self):
        docs = next(self.prefix.rglob("how-it-works.md")).parent.parent
        pages = list(docs.rglob("*.md"))
        self.assertGreater(len(pages), 20)
        for page in pages:
            for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", re.sub(r"(?s)```.*?```", "", page.read_text())):
                if not re.match(r"https?:|mailto:", link):
                    self.assertTrue((page.parent / link).exists(), f"{page.relative_to(docs)}: {link}")

    def test_packages_say_whose_they_are(self):
        self.assertIn('CPACK_PACKAGE_VENDOR "the kshim project"', (e2e.BUILD / "CPackConfig.cmake").read_text())

    def test_man_pages(self):
        commands = set(re.findall(r"^  (\w+) {2,}", self.installed("help").stdout.partition("Commands:")[2].partition("Examples")[0], re.M))
        pages = {path.name: path for path in (self.prefix / "share" / "man").rglob("*.[17]")}
        self.assertEqual(set(pages), {f"kshim-{name}.1" for name in commands - {"help"}} | {"kshim.1", "libkshim.7"})
        for name in commands - {"help"}:
            page = pages[f"kshim-{name}.1"].read_text().replace("\\-", "-")
            for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", self.installed("help", name).stdout, re.M):
                self.assertIn(option, page, name)
        variables = re.findall(r"^\| `(KSHIM_\w+)`", (e2e.SOURCE / "docs" / "environment.md").read_text(), re.M)
        self.assertTrue(variables)
        for name in variables:
            self.assertIn(name, pages["libkshim.7"].read_text())
        if shutil.which("groff"):
            for page in pages.values():
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), page)

    def test_pkg_config(self):
        moved = self.folder / "elsewhere"
        shutil.copytree(self.prefix, moved, symlinks=True)
        folder = next(moved.rglob("kshim.pc")).parent
        for name, file in (("preload", "libkshim.so"), ("simulator", "sim")):
            done = self.run_program("pkg-config", f"--variable={name}", "kshim", env=e2e.clean_environment(PKG_CONFIG_PATH=folder))
            found = pathlib.Path(done.stdout.strip())
            self.assertEqual((found.name, found.exists(), moved in found.resolve().parents), (file, True, True), done.stdout + done.stderr)

    def test_path(self):
        done = self.installed("path")
        self.assertEqual(pathlib.Path(done.stdout.rstrip("\n")).resolve(), self.library.resolve())

    def test_run(self):
        done = self.installed("run", "--simulate", "sm_120", "--", SAXPY)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sm_120", done.stderr)

    def test_a_moved_prefix(self):
        moved = self.folder / "moved"
        shutil.copytree(self.prefix, moved, symlinks=True)
        done = self.run_program(moved / "bin" / "kshim", "run", "--simulate", "sm_120", "--", SAXPY)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sm_120", done.stderr)

    def test_a_prefix_that_the_loader_cannot_take(self):
        moved = self.folder / "with blank"
        shutil.copytree(self.prefix, moved, symlinks=True)
        done = self.run_program(moved / "bin" / "kshim", "run", "--", "true")
        self.assert_says(done, 125, "with blank", "move kshim")

    def test_the_bare_name(self):
        """LD_PRELOAD=libkshim.so, literally: found as any library is, here through LD_LIBRARY_PATH."""
        simulator = self.library.parent / "kshim" / "sim"
        env = e2e.clean_environment(LD_PRELOAD="libkshim.so", LD_LIBRARY_PATH=f"{self.library.parent}:{simulator}",
                                    KSHIM_SIM_DEVICES="12.0")
        done = self.run_program(SAXPY, env=env)
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1))
        self.assertIn("saxpy", done.stderr)
        reports = self.reports()
        self.assertEqual(len(reports), 1, done.stderr)
        done = self.installed("analyze", "kshim-report")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("sm_120", done.stdout)

    def test_without_the_simulator(self):
        bare = self.folder / "bare"
        install(bare, "kshim")
        done = self.run_program(bare / "bin" / "kshim", "run", "--simulate", "sm_120", "--", SAXPY)
        self.assert_says(done, 125, "simulator", "libcuda.so.1")


if __name__ == "__main__":
    e2e.main()
