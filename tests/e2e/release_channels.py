#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each way of getting a release, tried on what tools/release-packages and tools/release-channels left: pip, uvx and pipx, apt from the signed
repository into a new Debian, the image under podman, conda's recipe built by rattler-build; and what PyPI asks of a wheel (twine).
Minutes, network and root: KSHIM_TEST_CHANNELS=1 asks for it (tools/release does)."""
import email
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import unittest
import zipfile

import e2e
import podman_here

FLOOR = e2e.SOURCE / "build/floor"
DIST = FLOOR / platform.machine() / "dist"
CHANNELS = FLOOR / "channels"
TOOLS = FLOOR / "tried"
VERSION = re.search(r"^project\(kshim VERSION ([0-9.]+)", (e2e.SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)
PTX = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry late() { ret; }\n"
if not os.environ.get("KSHIM_TEST_CHANNELS"):
    print("skipped: takes minutes and the network (KSHIM_TEST_CHANNELS=1)")
    sys.exit(e2e.SKIPPED)


def prepare():
    subprocess.run([e2e.SOURCE / "tools/floor/install", "gpg", "mmdebstrap", "podman", "crun", "bash", "zsh"], check=True)
    wanted = e2e.SOURCE / "tools/floor/tried.txt"
    stamp = TOOLS / ".requirements"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", TOOLS], check=True)
        subprocess.run([TOOLS / "bin/pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r", wanted], check=True)
        stamp.write_text(wanted.read_text())


class Channels(e2e.Case):
    @classmethod
    def setUpClass(cls):
        prepare()

    def setUp(self):
        super().setUp()
        self.file = self.folder / "kernel.ptx"
        self.file.write_text(PTX)
        self.wheels = sorted(DIST.glob("*.whl"))
        self.assertEqual(len(self.wheels), 2, "tools/release-packages first")

    def tool(self, *argv, **changes):
        done = self.run_program(*argv, env=e2e.clean_environment(**changes), timeout=600)
        self.assertEqual(done.returncode, 0, f"{argv}\n{done.stdout}{done.stderr}")
        return done.stdout

    def check(self, *kshim, **changes):
        """The command starts, reads a file, and its simulator and shim are found."""
        self.assertIn(VERSION, self.tool(*kshim, "--version", **changes))
        [found] = json.loads(self.tool(*kshim, "scan", "--format", "json", self.file, **changes))["objects"]
        self.assertEqual([image["arch"] for image in found["images"]], ["compute_90"])
        self.tool(*kshim, "run", "--simulate", "sm_90", "--", "true", **changes)

    def test_pip(self):
        self.tool(sys.executable, "-m", "venv", self.folder / "venv")
        self.tool(self.folder / "venv/bin/pip", "install", "-q", "--no-index", "--no-deps", *self.wheels)
        self.check(self.folder / "venv/bin/kshim")

    def test_uvx(self):
        both = [word for wheel in self.wheels for word in (("--with", wheel) if "simulator" in wheel.name else ("--from", wheel))]
        self.check(TOOLS / "bin/uvx", "--offline", *both, "kshim", UV_CACHE_DIR=self.folder / "uv")

    def test_pipx(self):
        home = {"PIPX_HOME": self.folder / "pipx", "PIPX_BIN_DIR": self.folder / "bin", "PIPX_MAN_DIR": self.folder / "man"}
        [own] = [wheel for wheel in self.wheels if "simulator" not in wheel.name]
        [simulator] = [wheel for wheel in self.wheels if "simulator" in wheel.name]
        pipx = TOOLS / "bin/pipx"
        self.tool(pipx, "install", "--pip-args=--no-index --no-deps", own, **home)
        self.tool(pipx, "inject", "--pip-args=--no-index --no-deps", "kshim", simulator, **home)
        self.check(self.folder / "bin/kshim")

    def test_what_pypi_asks(self):
        self.tool(TOOLS / "bin/twine", "check", "--strict", *FLOOR.glob("*/dist/*.whl"))
        for wheel in FLOOR.glob("*/dist/*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
                metadata = email.message_from_bytes(archive.read(name))
            self.assertIn("Operating System :: POSIX :: Linux", metadata.get_all("Classifier"), wheel)
            if url := os.environ.get("KSHIM_RELEASE_URL"):
                self.assertIn(f"Source, {url.partition('/releases/')[0]}", metadata.get_all("Project-URL"), wheel)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_apt(self):
        """A signed repository, made here with a key of the test's; another key is refused."""
        home = self.folder / "gnupg"
        home.mkdir(mode=0o700)
        for name in ("one", "other"):
            self.tool("gpg", "--batch", "--passphrase", "", "--quick-gen-key", f"{name} <{name}@localhost>", "ed25519", "sign", "1d", GNUPGHOME=home)
        self.addCleanup(subprocess.run, ["gpgconf", "--kill", "all"], env={**os.environ, "GNUPGHOME": str(home)}, check=False)
        self.tool(e2e.SOURCE / "tools/release-channels", GNUPGHOME=home, KSHIM_SIGN_KEY="one@localhost")
        (self.folder / "other.gpg").write_bytes(subprocess.run(["gpg", "--batch", "--export", "other@localhost"], env={**os.environ, "GNUPGHOME": str(home)},
                                                               check=True, stdout=subprocess.PIPE).stdout)
        shutil.copytree(CHANNELS / "apt", self.folder / "apt")
        self.folder.chmod(0o755)
        def debian(key, name):
            return self.run_program("mmdebstrap", "--quiet", "--variant=apt", "--include=kshim,kshim-simulator,bash,zsh", "bookworm", self.folder / name,
                                    "deb http://deb.debian.org/debian bookworm main",
                                    f"deb [signed-by={key}] copy:{self.folder}/apt stable main", timeout=900)
        self.assertNotEqual(debian(self.folder / "other.gpg", "refused").returncode, 0)
        done = debian(self.folder / "apt/kshim.gpg", "root")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        root = self.folder / "root"
        shutil.copy(self.file, root / "kernel.ptx")
        self.file = "/kernel.ptx"
        self.check("chroot", root, "kshim")
        said = self.tool("chroot", root, "bash", "-c", ". /usr/share/bash-completion/completions/kshim; COMP_WORDS=(kshim sc); COMP_CWORD=1; _kshim; echo $COMPREPLY")
        self.assertEqual(said.strip(), "scan")
        said = self.tool("chroot", root, "zsh", "-fc", "autoload -Uz compinit; compinit -u -D; print -r -- $_comps[kshim]; autoload -X +X _kshim 2>/dev/null; "
                         "_arguments() {}; _describe() { print -rl -- ${(P)2} }; words=(kshim ''); CURRENT=2; _kshim")
        self.assertEqual(said.splitlines()[0], "_kshim")
        self.assertTrue(any(line.startswith("scan:") for line in said.splitlines()), said)

    def test_image(self):
        if why := podman_here.works(self.folder):
            self.skipTest(f"podman starts no container here: {why}")
        archive = CHANNELS / f"kshim-{VERSION}-oci-{platform.machine()}.tar"
        self.assertEqual(self.kshim("scan", archive, env=e2e.clean_environment()).returncode, 0)
        def podman(*argv):
            return podman_here.podman(self.folder, "run", "--rm", *podman_here.LIMITS, "-v", f"{self.folder}:/data:ro", f"oci-archive:{archive}", *argv)
        done = podman("--version")
        self.assertIn(VERSION, done.stdout, done.stderr)
        done = podman("scan", "--format", "json", "/data/kernel.ptx")
        self.assertEqual(len(json.loads(done.stdout)["objects"]), 1, done.stderr)
        done = podman("run", "--simulate", "sm_90", "--", "/bin/busybox", "true")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_conda(self):
        """Both packages, built from the recipe as it is but for where the archives are, then put into a prefix."""
        recipe = self.folder / "recipe.yaml"
        recipe.write_text(re.sub(r"url: .*/", f"url: file://{DIST}/", (CHANNELS / "recipe.yaml").read_text()))
        script = ("import sys, rattler_build as r\n"
                  "r.build_recipes([sys.argv[1]], output_dir=sys.argv[2], channel=[], test='skip', package_format='tar-bz2', use_sharded=False)\n")
        self.tool(TOOLS / "bin/python", "-c", script, recipe, self.folder / "out", HOME=self.folder)
        built = sorted((self.folder / "out").rglob("*.tar.bz2"))
        self.assertEqual(len(built), 2, built)
        for package in built:
            with tarfile.open(package) as archive:
                archive.extractall(self.folder / "prefix", filter="fully_trusted") if hasattr(tarfile, "fully_trusted_filter") else archive.extractall(self.folder / "prefix")
        self.check(self.folder / "prefix/bin/kshim")
        wanted = {name: (FLOOR / platform.machine() / "kshim" / name).read_bytes() for name in ("bin/kshim", "lib/libkshim.so")}
        self.assertEqual({name: (self.folder / "prefix" / name).read_bytes() for name in wanted}, wanted, "changed on the way")


if __name__ == "__main__":
    e2e.main()
