#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim scan NAME: what pip would install, fetched from an index of this test, scanned and removed."""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import e2e

MISSING = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80, sm_90
HEALTHY = e2e.SAMPLES / "08_healthy" / "transpose"


NEEDS = """Requires-Dist: nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux"
Requires-Dist: cuda-toolkit[nvrtc,cublas] (==13.0.0)
Requires-Dist: numpy (>=1.20)
Requires-Dist: nvidia-nccl-cu12 (==2.1); extra == "all"
"""


def wheel(folder, version, program, tag="py3-none-any", project="things", more=""):
    name = f"{project}-{version}"
    members = {f"{project}/kernels.so": pathlib.Path(program).read_bytes(),
               f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{more}\n".encode(),
               f"{name}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()}
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in members.items())
    members[f"{name}.dist-info/RECORD"] = (record + f"{name}.dist-info/RECORD,,\n").encode()
    with zipfile.ZipFile(folder / f"{name}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in members.items():
            archive.writestr(path, data)


class Package(e2e.Case):
    def setUp(self):
        super().setUp()
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this Python has no pip")
        self.index = self.folder / "index"
        self.index.mkdir()
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        wheel(self.index, "1.0", HEALTHY)
        wheel(self.index, "2.0", MISSING)
        wheel(self.index, "2.0", MISSING, "cp312-cp312-manylinux_2_17_aarch64")
        python = self.folder / "env" / "bin"
        python.mkdir(parents=True)
        (python / "python").symlink_to(sys.executable)
        self.env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), "TMPDIR": str(self.tmp),
                    "VIRTUAL_ENV": "", "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}

    def scan(self, *arguments):
        return self.kshim("scan", *arguments, env=self.env)

    def test_the_wheel_that_pip_would_install_is_judged_and_removed(self):
        for words, status in ((["things==2.0"], 1), (["things==1.0"], 0)):
            done = self.scan("--target", "12.0", "--format", "json", *words)
            self.assertEqual(done.returncode, status, done.stderr)
            scan = json.loads(done.stdout)
            self.assertRegex(scan["objects"][0]["path"], r"^things-\d\.0-py3-none-any\.whl$")
            self.assertEqual(scan["objects"][0]["member"], "things/kernels.so")
            self.assertEqual(os.listdir(self.tmp), [], "what was fetched is gone")

    def test_it_says_what_it_says_of_the_wheel_itself(self):
        there = self.kshim("scan", "--target", "12.0", "things-2.0-py3-none-any.whl", cwd=self.index)
        self.assertEqual(self.scan("--target", "12.0", "things==2.0").stdout, there.stdout)

    def test_companions_are_named(self):
        wheel(self.index, "3.0", HEALTHY, more=NEEDS)
        scan = json.loads(self.scan("--target", "8.0", "--format", "json", "things==3.0").stdout)
        self.assertEqual(scan["companions"], ["nvidia-cublas-cu12==12.8.4.1", "cuda-toolkit[nvrtc,cublas]==13.0.0"])
        self.assertNotIn("companions", json.loads(self.scan("--target", "8.0", "--format", "json", "things==1.0").stdout))

    def test_uv_where_there_is_no_pip(self):
        uv = shutil.which("uv")
        if uv is None:
            self.skipTest("no uv")
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "bare"], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("no venv")
        (self.folder / "uv.toml").write_text(f'[pip]\nno-index = true\nfind-links = ["{self.index}"]\n')
        self.env |= {"VIRTUAL_ENV": str(self.folder / "bare"), "UV_CONFIG_FILE": str(self.folder / "uv.toml"),
                     "PATH": f"{pathlib.Path(uv).parent}:{self.env['PATH']}"}
        done = self.scan("--target", "12.0", "--format", "json", "things==2.0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["objects"][0]["path"], "things-2.0/things/kernels.so")
        self.assertEqual(os.listdir(self.tmp), [])
        self.env["PATH"] = "/usr/bin:/bin"
        if shutil.which("uv", path=self.env["PATH"]) is None:
            self.assert_says(self.scan("--target", "12.0", "things==1.0"), 3, "uv")

    def test_for_another_python_and_platform(self):
        done = self.scan("--target", "12.0", "--format", "json", "--python", "3.12", "--platform", "manylinux_2_28_aarch64", "things==2.0")
        self.assertIn("aarch64", json.loads(done.stdout)["objects"][0]["path"])

    def test_what_cannot_be_fetched_says_so_in_one_line(self):
        for words in (["nothing-by-this-name==1"], ["things==9.9"], ["things==2.0", "--python", "2.7", "--platform", "win_amd64"]):
            done = self.scan("--target", "12.0", *words)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual(done.stderr.count("kshim: error:"), 1)
        done = self.scan("--target", "12.0", "--max-download", "10", "things==2.0")
        self.assertEqual((done.returncode, os.listdir(self.tmp)), (3, []))

    def test_misuse(self):
        self.assertEqual(self.scan("--target", "8.0", "things").returncode, 3, "a folder that is missing is no package")
        self.assert_says(self.scan("things==2.0", str(MISSING)), 2, "package", "path")
        self.assert_says(self.scan("--python", "3.12", str(MISSING)), 2, "--python")
        self.assert_says(self.scan("--max-download", "many", "things==2.0"), 2, "--max-download")

    def test_a_file_by_that_name_is_the_file(self):
        (self.folder / "things").write_bytes(MISSING.read_bytes())
        done = self.kshim("scan", "--format", "json", "--target", "8.0", "things", env=self.env, cwd=self.folder)
        self.assertEqual(json.loads(done.stdout)["objects"][0]["path"], "things")


if __name__ == "__main__":
    e2e.main()
