#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim scan --expect`: files of nvcc held to lists in all notations, by options and by [tool.kshim]; what is not as expected fails."""
import hashlib
import json
import os
import re
import shutil
import xml.etree.ElementTree
import zipfile

import e2e
import schemas

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"  # sm_80 and sm_89
ATTENTION = e2e.SAMPLES / "03_arch_specific_sm_90a" / "attention"  # sm_90a alone
HISTOGRAM = e2e.SAMPLES / "02_ptx_newer_than_gpu" / "histogram"  # PTX alone
BLUR = e2e.SAMPLES / "05_driver_api" / "kernels.fatbin"
e2e.require(e2e.KSHIM, SAXPY, SCALE, ATTENTION, HISTOGRAM, BLUR)

BOTH = "sm_80 sm_90"


class Expect(e2e.Case):
    def scan(self, *argv, status=0, **more):
        done = self.kshim("scan", "--format", "json", *argv, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def unmet(self, *argv, **more):
        """(missing, surplus) of the one file, which is not as expected."""
        scan = self.scan(*argv, status=1, **more)
        self.assertEqual({finding["cause"] for finding in scan["findings"]}, {"unmet-expectation"})
        expected = scan["objects"][0]["expected"]
        return expected["missing"], expected["surplus"]

    def refused(self, *argv, status=2, **more):
        done = self.kshim("scan", *argv, **more)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        return done.stderr

    def wheel(self, name="things-1.2-cp311-cp311-linux_x86_64.whl", **members):
        path = self.folder / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for member, file in members.items():
                out.write(file, f"things/{member}.so")
            out.writestr("things/__init__.py", "")
        return path


class Lists(Expect):
    def test_notations_of_one_list(self):
        (self.folder / "archs.txt").write_text("8.0   # A100\n9.0\n")
        for text in ("8.0 9.0", "8.0;9.0", "80-real;90-real", "sm_90, sm_80", "8.0\n90-real",
                     "-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90]",
                     "--generate-code arch=compute_80,code=\"sm_80,sm_90\"", "arch=compute_80,code=[sm_80, sm_90]",
                     "-arch=compute_80 -code=sm_80,sm_90", "@archs.txt"):
            scan = self.scan("--exactly", "--expect", text, SAXPY)
            self.assertEqual(scan["objects"][0]["expected"]["list"], "8.0 9.0", text)
        for variable in ("$CUDAARCHS", "${CUDAARCHS}"):
            self.scan("--exactly", "--expect", variable, SAXPY, env=e2e.clean_environment(CUDAARCHS="80-real;90-real"))

    def test_what_a_notation_asks_for(self):
        """torch's number is SASS, CMake's is both, and so is nvcc's -arch=sm_."""
        for text in ("80;90-real", "8.0+PTX 9.0", "sm_80 compute_80 sm_90", "-arch=sm_80 sm_90", "80-real 80-virtual 90-real"):
            self.assertEqual(self.unmet("--expect", text, SAXPY), (["compute_80"], []), text)
        self.assertEqual(self.unmet("--expect", "lto_80", SAXPY)[0], ["lto_80"])

    def test_suffix_matches_exactly(self):
        self.assertEqual(self.unmet("--expect", "9.0a", SAXPY)[0], ["sm_90a"])
        self.assertEqual(self.unmet("--expect", "9.0", ATTENTION)[0], ["sm_90"])
        self.scan("--expect", "90a-real", "--exactly", ATTENTION)
        self.assertEqual(self.unmet("--expect", "10.0f", SAXPY)[0], ["sm_100f"])

    def test_at_least_and_exactly(self):
        self.scan("--expect", "9.0", SAXPY)
        self.assertEqual(self.unmet("--exactly", "--expect", "9.0 12.0", SAXPY), (["sm_120"], ["sm_80"]))

    def test_sass_ptx_either(self):
        [arch] = [image["arch"] for image in self.scan(HISTOGRAM)["objects"][0]["images"] if image["kind"] == "ptx"]
        number = arch.removeprefix("compute_")
        self.unmet("--expect", f"sm_{number}", HISTOGRAM)
        for form in ("either", "ptx"):
            (self.folder / "form.toml").write_text(f'expect = "sm_{number}"\nform = "{form}"\n')
            self.scan("--config", "form.toml", *(["--exactly"] if form == "ptx" else []), HISTOGRAM)
        self.assertEqual(self.unmet("--sass", "--expect", arch, HISTOGRAM)[0], [f"sm_{number}"])

    def test_ptx_floor(self):
        number = int(self.scan(HISTOGRAM)["objects"][0]["images"][0]["arch"].removeprefix("compute_"))
        self.scan("--ptx-floor", f"{number // 10}.{number % 10}", HISTOGRAM)
        self.unmet("--ptx-floor", "5.0", HISTOGRAM)
        self.unmet("--ptx-floor", "9.0", SAXPY)

    def test_lists_that_nothing_can_be_held_to(self):
        for text, named in (("8.0 native", "native"), ("all", "all"), ("all-major", "all-major"), ("-arch=native", "native"), ("8.0,9.0x", "9.0x"),
                            ("9.9", "9.9"), ("80a", "80a"), ("-gencode arch=compute_80", "code="), ("-O3 8.0", "-O3"), ("-gencode arch=compute_80,code=80", "80"),
                            ("", ""), (" ; ", "names no architecture"), ("@missing.txt", "missing.txt"), ("$NOT_SET_CUDA_ARCHS", "NOT_SET")):
            if text:
                self.assertIn(named, self.refused("--expect", text, SAXPY), text)
        said = self.refused("--expect", "$SOME_TOKEN", SAXPY, env=e2e.clean_environment(SOME_TOKEN="hidden"))
        self.assertNotIn("hidden", said)
        self.assertIn("--expect, character 5:", self.refused("--expect", "8.0 native", SAXPY))
        (self.folder / "archs.txt").write_text("8.0\n9.0 nine\n")
        self.assertIn("archs.txt:2:5:", self.refused("--expect", "@archs.txt", SAXPY))

    def test_options_without_a_list(self):
        self.assertIn("--expect", self.refused("--exactly", SAXPY))
        self.assertIn("--expect", self.refused("--sass", SAXPY))


class FailsClosed(Expect):
    def test_empty_folder(self):
        (self.folder / "dist").mkdir()
        self.assertEqual(self.kshim("scan", "--expect", "8.0", "dist").returncode, 1)
        self.assertEqual(self.kshim("scan", "dist").returncode, 3)

    def test_no_device_code(self):
        shutil.copy(e2e.KSHIM, self.folder / "plain.so")
        for path in ("plain.so", self.wheel(plain=e2e.KSHIM), "."):
            self.assertEqual(self.kshim("scan", "--expect", "8.0", path).returncode, 1, path)
        done = self.kshim("scan", "--expect", "8.0", SCALE, "plain.so")  # beside one that has
        self.assertEqual(done.returncode, 1)
        self.assertIn("plain.so", done.stdout)

    def test_one_path_by_two_names(self):
        (self.folder / "link.so").symlink_to(SCALE)
        self.scan("--expect", "8.0", SCALE, "link.so")

    def test_nothing_readable(self):
        self.assertEqual(self.kshim("scan", "--expect", "8.0", "missing").returncode, 3)
        (self.folder / "text").write_text("nothing\n")
        self.assertEqual(self.kshim("scan", "--expect", "8.0", "text").returncode, 3)

    def test_part_of_a_file(self):
        (self.folder / "torn.so").write_bytes(SCALE.read_bytes()[:SCALE.stat().st_size // 2])
        self.assertEqual(self.kshim("scan", "--expect", "8.0", SCALE, "torn.so").returncode, 1)
        shutil.copy(SCALE, self.folder)
        self.assertEqual(self.kshim("scan", "--expect", "8.0", ".").returncode, 1)  # in a folder, too
        (self.folder / "torn.so").unlink()
        self.assertEqual(self.kshim("scan", "--expect", "8.0", ".").returncode, 0)

    def test_unknown_kind_of_image(self):
        data = bytearray(BLUR.read_bytes())
        built = self.scan(BLUR)["objects"][0]["images"][-1]["arch"]
        data[16] = 0x99
        (self.folder / "odd.fatbin").write_bytes(data)
        done = self.kshim("scan", "--expect", built, "odd.fatbin")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)


class Configuration(Expect):
    def write(self, text, name="kshim.toml"):
        (self.folder / name).write_text(text)

    def test_rules_for_files(self):
        wheel = self.wheel(_C=SAXPY, _fa3_C=ATTENTION, vendored=SCALE)
        self.assertEqual(self.kshim("scan", "--expect", BOTH, "--exactly", wheel).returncode, 1)
        rules = """expect = ["8.0", "9.0"]
exactly = true
[[files]]
pattern = "*_fa3_C*"
expect = "9.0a"
reason = "Hopper kernels"
[[files]]
pattern = "things/vendored.so"
skip = true
reason = "a vendor's"
"""
        self.write(rules)
        objects = {each["member"]: each["expected"] for each in self.scan(wheel)["objects"]}
        self.assertEqual(objects["things/_fa3_C.so"]["reason"], "Hopper kernels")
        self.assertEqual(objects["things/_fa3_C.so"]["source"], "kshim.toml:5")
        self.assertTrue(objects["things/vendored.so"]["skipped"])
        # A rule takes `exactly` from the whole, and says so where it does not.
        self.write(rules.replace('"9.0a"', '"9.0a 10.0a"'))
        self.assertEqual(self.kshim("scan", wheel).returncode, 1)
        self.write(rules.replace("*_fa3_C*", "*_fa4_C*"))
        done = self.kshim("scan", wheel)
        self.assertEqual(done.returncode, 1)
        self.assertIn("*_fa4_C*", done.stdout)

    def test_pyproject(self):
        self.write('[project]\nname = "things"\n\n[tool.kshim]\nexpect = "8.0 9.0"\n', "pyproject.toml")
        self.assertEqual(self.scan(SAXPY)["objects"][0]["expected"]["source"], "pyproject.toml:5")
        self.assertEqual(self.unmet(SCALE)[0], ["sm_90"])
        self.scan("--expect", "8.0", SCALE)  # an option holds over the file
        self.assertNotIn("expected", self.scan("--target", "8.0", SCALE)["objects"][0])
        self.write("[tool.other]\n", "pyproject.toml")
        self.assertNotIn("expected", self.scan(SCALE)["objects"][0])
        self.assertIn("[tool.kshim]", self.refused("--config", "pyproject.toml", SCALE))

    def test_faults_have_a_place(self):
        for text, place in (('expect = "8.0 nine"\n', "1:15"), ("exactly = 1\n", "1:11"), ('\nexpct = "8.0"\n', "2:1"), ("a = = 1\n", "1:"), ('expect = "@/etc/hostname"\n', "1:10"), ('expect = "@../x"\n', "1:10"),
                            ('expect="8.0"\n[[files]]\npattern = "x"\nexpect = "9.0"\n', "2:1"), ('[budget]\nfile = "many"\n', "2:9"),
                            ('expect="8.0"\n[[files]]\npattern = "x"\nreason = "y"\n', "2:1"), ('form = "any"\n', "1:8")):
            self.write(text)
            self.assertIn(f"kshim.toml:{place}", self.refused(SCALE), text)
        self.write('[[files]]\npattern = "x"\nexpect = "9.0"\nreason = "y"\n')
        self.assertIn("nothing for the others", self.refused(SCALE))
        self.write('expct = "8.0"\n')
        self.assertIn("`expect`", self.refused(SCALE))

    # shows: a configuration whose keys have 500,000 parts, one that names a list behind a link
    def test_hostile(self):
        deep = "a" + ".a" * 500_000
        nested = "x = " + "".join("[{a" + ".a" * 60 + " = " for _ in range(100)) + "1" + "}]" * 100
        for text in (f"{deep} = 1\n", f"[{deep}]\n", nested + "\n"):
            self.write(text)
            self.refused(SCALE)
            self.write("[tool.kshim]\n" + text, "pyproject.toml")
            self.refused("--config", "pyproject.toml", SCALE)
        (self.folder / "private").write_text("hunter2\n")
        (self.folder / "list").symlink_to(self.folder / "private")
        (self.folder / "lists").symlink_to(self.folder)
        for name in ("list", "lists/private", "../private"):
            self.write(f'expect = "@{name}"\n')
            self.assertNotIn("hunter2", self.refused(SCALE))


class Budget(Expect):
    def test_file_and_wheel(self):
        wheel = self.wheel(_C=SAXPY, _fa3_C=ATTENTION)
        self.scan("--budget", "file=20M,wheel=20M", wheel)
        for budget in ("file=10k", "wheel=1k", "10k"):
            scan = self.scan("--budget", budget, wheel, status=1)
            self.assertTrue(any(use["bytes"] > use["limit"] for use in scan["budget"]), budget)
            self.assertIn("bytes by architecture", self.kshim("scan", "--budget", budget, wheel).stdout)
        self.assertEqual(self.scan("--budget", "wheel=1k", wheel, status=1)["budget"][0]["bytes"], wheel.stat().st_size)
        with open(wheel, "rb") as stdin:
            use, = self.scan("--budget", "wheel=1k", "-", stdin=stdin, status=1)["budget"]
        self.assertEqual((use["name"], use["bytes"]), ("-", wheel.stat().st_size))
        for budget in ("many", "file=", "wheels=3M", "9.0a=3M", "-3M"):
            self.refused("--budget", budget, wheel)

    def test_sha256(self):
        scan = self.scan("--sha256", SAXPY, self.wheel(_C=SAXPY))
        self.assertEqual([row["sha256"] for row in scan["objects"]], 2 * [hashlib.sha256(SAXPY.read_bytes()).hexdigest()])
        self.assertEqual(schemas.errors(schemas.validator("scan"), scan), [])
        self.assertNotIn("sha256", self.scan(SAXPY)["objects"][0])

    def test_sizes(self):
        scan = self.scan("--sizes", SAXPY)
        built = scan["objects"][0]
        images = {image["arch"]: image for image in built["images"]}
        self.assertEqual(set(images), {"sm_80", "sm_90"})
        self.assertEqual(sum(module["stored"] for module in built["largest_modules"]), sum(image["stored"] for image in images.values()))
        self.assertTrue(all(image["code_bytes"] > 0 for image in built["kernels"][0]["images"]))
        self.assertIn("saxpy", [module["kernel"] for module in built["largest_modules"] if module["kernel"]][0])
        self.assertEqual(schemas.errors(schemas.validator("scan"), scan), [])
        text = self.kshim("scan", "--sizes", SAXPY).stdout
        for what in ("architecture", "module", "kernel"):
            self.assertIn(f"bytes by {what}", text)


class Formats(Expect):
    def test_all(self):
        shutil.copy(SAXPY, self.folder / "saxpy.so")
        argv = ("--exactly", "--expect", "8.0 12.0", "saxpy.so")
        scan = self.scan(*argv, status=1)
        self.assertEqual(schemas.errors(schemas.validator("scan"), scan), [])
        text = self.kshim("scan", *argv)
        self.assertEqual(text.returncode, 1)
        [line] = [line for line in text.stdout.splitlines() if line.startswith("error:")]
        for word in ("saxpy.so", "sm_120", "sm_90"):
            self.assertIn(word, line)
        cases = xml.etree.ElementTree.fromstring(self.kshim("scan", "--format", "junit", *argv).stdout).findall(".//testcase")
        self.assertEqual([(case.get("name"), case.find("failure") is not None) for case in cases], [("expected", True)])
        good = xml.etree.ElementTree.fromstring(self.kshim("scan", "--format", "junit", "--expect", "8.0", "saxpy.so").stdout).findall(".//testcase")
        self.assertEqual([(case.get("name"), len(case)) for case in good], [("expected", 0)])
        sarif = json.loads(self.kshim("scan", "--format", "sarif", *argv).stdout)
        self.assertEqual([result["ruleId"] for result in sarif["runs"][0]["results"]], ["unmet-expectation"])
        self.assertRegex(self.kshim("scan", "--format", "github", *argv).stdout, r"(?m)^::error .*saxpy\.so")
        self.assertIn("sm_120", self.kshim("scan", "--format", "markdown", *argv).stdout)

    def test_one_line_a_file(self):
        for number in range(30):
            shutil.copy(SCALE, self.folder / f"lib{number}.so")
        done = self.kshim("scan", "--expect", "8.0 9.0", ".")
        named = re.findall(r"^error: (lib\d+\.so) lacks sm_90$", done.stdout, re.M)
        self.assertEqual(len(set(named)), 30, done.stdout)
        done = self.kshim("scan", "--expect", "8.0", ".")
        self.assertEqual((done.returncode, done.stdout.split(":")[0]), (0, "ok"))


if __name__ == "__main__":
    e2e.main()
