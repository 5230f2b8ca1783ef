#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim scan` on what nvcc built: files, archives, wheels, folders and Python environments. What it foretells of a sample is what
the simulated driver then does with it."""
import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import zipfile

import e2e

e2e.require(e2e.KSHIM, e2e.SAMPLES / "01_missing_architecture" / "saxpy", e2e.SAMPLES / "06_dlopen_library" / "libscale.so")
SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"  # sm_80 alone
CONVERT = e2e.SAMPLES / "04_kernel_absent_from_one_image" / "convert"
ATTENTION = e2e.SAMPLES / "03_arch_specific_sm_90a" / "attention"  # sm_90a alone
HISTOGRAM = e2e.SAMPLES / "02_ptx_newer_than_gpu" / "histogram"
BLUR = e2e.SAMPLES / "05_driver_api" / "kernels.fatbin"


class Scan(e2e.Case):
    def scan(self, *argv, status=0):
        done = self.kshim("scan", "--format", "json", *argv)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def archs(self, scan, index=0):
        return {image["arch"] for image in scan["objects"][index]["images"]}

    def test_program(self):
        scan = self.scan(SAXPY)
        self.assertEqual(scan["schema"], "kshim-scan/1")
        self.assertEqual(len(scan["objects"]), 1)
        self.assertEqual(self.archs(scan), {"sm_80", "sm_90"})
        built = scan["objects"][0]
        self.assertEqual(built["path"], str(SAXPY))
        self.assertIsNone(built["member"])
        note = subprocess.run(["readelf", "-n", SAXPY], capture_output=True, text=True, check=True).stdout
        self.assertEqual(built["build_id"], re.search(r"Build ID: (\w+)", note)[1])
        self.assertEqual(scan["findings"], [])

    def test_target(self):
        found = self.scan("--target", "sm_120", SAXPY, status=1)["findings"]
        self.assertEqual([finding["cause"] for finding in found], ["no-image-for-arch"])
        self.assertEqual(found[0]["need"], "sm_120")
        self.assertIn("code=sm_120", found[0]["fixes"][0]["commands"][0])
        self.assertEqual(self.scan("--target", "8.6,sm_90", SAXPY)["findings"], [])

    def test_driver(self):
        ptx = self.scan(HISTOGRAM)["objects"][0]["images"]
        newest = next(image["arch"] for image in ptx if image["kind"] == "ptx").replace("compute_", "sm_")
        self.assertEqual(self.scan("--target", newest, HISTOGRAM)["findings"], [])

    def test_driver_older_than_the_runtime(self):
        """What is foretold of a driver of another major version is what the simulated one does, whatever the kernels are for."""
        newest = int(re.search(r"cuda>=(\d+)", self.fleet("requirements", "--to", "nvidia-require", SAXPY).stdout)[1])
        for driver, status in ((f"{newest - 1}.0", 1), (f"{newest}.0", 0)):
            scan = self.scan("--target", "sm_80", "--driver", driver, SAXPY, status=status)
            self.assertEqual([finding["cause"] for finding in scan["findings"]], ["driver-too-old"] * status)
            verdict = scan["objects"][0]["targets"][0]
            self.assertEqual(verdict["sass"] == 0, bool(status), verdict)
            analysis, _ = self.analysis("--simulate", f"sm_80,driver={driver}", "--", SAXPY)
            self.assertEqual(analysis["verdict"] == "ok", status == 0, analysis)
            self.assertEqual([finding["cause"] for finding in analysis["findings"]], ["driver-too-old"] * status)
        fixes = self.scan("--target", "sm_80,sm_120", "--driver", f"{newest - 1}.0", SAXPY, status=1)["findings"]
        self.assertNotIn("is fine", json.dumps(fixes))

    def test_driver_that_does_not_know_the_gpu(self):
        """Nothing runs there, by PTX neither; and the first answer is the driver that knows the GPU."""
        scan = self.scan("--target", "sm_120", "--driver", "12.4", HISTOGRAM, status=1)
        verdict = scan["objects"][0]["targets"][0]
        self.assertEqual((verdict["sass"], verdict["jit"]), (0, 0))
        self.assertTrue(verdict["lacking"])
        self.assertNotIn("ptx-newer-than-driver", [finding["cause"] for finding in scan["findings"]])

    def test_kernels(self):
        scan = self.scan("--kernels", SAXPY)
        names = {kernel["demangled"]: kernel["archs"] for kernel in scan["objects"][0]["kernels"]}
        self.assertEqual(names, {"saxpy(int, float, float const*, float*)": ["sm_80", "sm_90"]})

    def test_kernel_that_one_image_lacks(self):
        """All architectures are in the file, and the kernel is in one of them only."""
        scan = self.scan(CONVERT)
        archs = sorted(self.archs(scan))
        kernels = self.scan("--kernels", CONVERT)["objects"][0]["kernels"]
        missing = [(kernel, arch) for kernel in kernels for arch in archs if arch not in kernel["archs"]]
        self.assertTrue(missing)
        kernel, arch = missing[0]
        found = self.scan("--kernels", "--target", arch, CONVERT)["findings"]
        self.assertIn(kernel["demangled"], found[0]["kernels"])
        self.assertEqual(self.kshim("scan", "--kernels", "--fail-on", "warning", "--target", arch, CONVERT).returncode, 1)

    def test_next_to_nothing_runs(self):
        """A few modules of many have code for the GPU, as NVIDIA's static libraries have: no less an error than none."""
        parts = []
        for built in (SCALE, SAXPY):
            parts.append(self.folder / f"{built.name}.fatbins")
            subprocess.run(["objcopy", "-O", "binary", "--only-section=.nv_fatbin", "--set-section-flags", ".nv_fatbin=alloc", built, parts[-1]], check=True)
        lacking, served = (part.read_bytes() for part in parts)
        for times, severity in ((10, "warning"), (60, "error")):
            bundle, made = self.folder / f"{times}.fatbins", self.folder / f"{times}.o"
            bundle.write_bytes(lacking * times + served)
            subprocess.run(["objcopy", "-I", "binary", "-O", "elf64-x86-64", "--rename-section", ".data=.nv_fatbin", bundle, made], check=True)
            with self.subTest(times):
                found = self.scan("--target", "9.0", made, status=int(severity == "error"))["findings"]
                self.assertEqual([(finding["cause"], finding["severity"]) for finding in found], [("latent-gap", severity)])

    def test_fatbin(self):
        self.assertEqual(self.scan(BLUR)["objects"][0]["format"], "fatbin")

    def test_archive(self):
        archive = self.folder / "libthings.a"
        subprocess.run(["ar", "rcs", archive, SCALE, SAXPY], check=True)
        scan = self.scan(archive)
        self.assertEqual([each["member"] for each in scan["objects"]], ["libscale.so", "saxpy"])
        self.assertEqual(self.archs(scan, 1), {"sm_80", "sm_90"})

    def test_wheel(self):
        wheel = self.folder / "things-1.2-cp311-cp311-linux_x86_64.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
            out.write(SCALE, "things/libscale.so")
            out.writestr("things/__init__.py", "import this\n")
            out.writestr("things-1.2.dist-info/METADATA", "Name: things\nVersion: 1.2\n")
        scan = self.scan("--target", "7.5", wheel, status=1)
        self.assertEqual(scan["objects"][0]["member"], "things/libscale.so")
        self.assertEqual(scan["findings"][0]["package"], "things 1.2 (pip)")
        self.assertEqual(sorted(os.listdir(self.folder)), [wheel.name], "unpacked to disk")

    def test_python_environment(self):
        packages = self.folder / "venv" / "lib" / "python3.11" / "site-packages"
        for name, version, built in (("alpha", "1.0", SAXPY), ("beta", "2.0", SCALE)):
            (packages / name).mkdir(parents=True)
            shutil.copy(built, packages / name / "_C.so")
            info = packages / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n")
            (info / "RECORD").write_text(f"{name}/_C.so,sha256=x,1\n{name}-{version}.dist-info/METADATA,,\n")
        scan = self.scan(self.folder / "venv")
        self.assertEqual([each["package"] for each in scan["objects"]], ["alpha 1.0", "beta 2.0"])

    def test_the_files_of_another_root(self):
        """PATH is of that root, and so are the packages; without PATH it is all of it."""
        packages = self.folder / "image/opt/venv/lib/python3.11/site-packages"
        info = packages / "alpha-1.0.dist-info"
        info.mkdir(parents=True)
        (packages / "alpha").mkdir()
        shutil.copy(SAXPY, packages / "alpha/_C.so")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n\n")
        (info / "RECORD").write_text("alpha/_C.so,sha256=x,1\n")
        for paths in (("/opt/venv",), ("opt/venv/lib",), ()):
            with self.subTest(paths):
                scan = self.scan("--root", self.folder / "image", *paths)
                self.assertEqual([(each["package"], each["path"]) for each in scan["objects"]], [("alpha 1.0", str(packages / "alpha/_C.so"))])
        self.assertEqual(self.kshim("scan", "--root", self.folder / "image", "/opt/other", ).returncode, 3)
        self.assertEqual(self.kshim("scan", "--root", self.folder / "absent").returncode, 2)

    def test_the_package_that_somebody_asked_for_comes_first(self):
        """pip marks it (REQUESTED); of others the one with most device code."""
        packages = self.folder / "lib" / "python3.11" / "site-packages"
        for name, files in (("alpha", 2), ("beta", 1), ("gamma", 3)):
            info = packages / f"{name}-1.0.dist-info"
            info.mkdir(parents=True)
            (packages / name).mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\n")
            (info / "RECORD").write_text("".join(f"{name}/_{n}.so,,\n" for n in range(files)))
            for n in range(files):
                shutil.copy(SAXPY, packages / name / f"_{n}.so")

        def order():
            found = [finding["package"].split()[0] for finding in self.scan("--target", "sm_120", self.folder, status=1)["findings"]]
            return sorted(set(found), key=found.index)

        self.assertEqual(order(), ["gamma", "alpha", "beta"])
        (packages / "beta-1.0.dist-info" / "REQUESTED").write_text("")
        self.assertEqual(order(), ["beta", "gamma", "alpha"])

    def test_one_line_a_file(self):
        """Whatever the number of GPUs that it lacks code for."""
        shutil.copy(SAXPY, self.folder / "saxpy.so")
        done = self.kshim("scan", "--target", "7.5,10.0,12.0", "saxpy.so", SCALE)
        lines = [line for line in done.stdout.splitlines() if line.startswith("error:") and "saxpy" in line]
        for need in ("sm_75", "sm_100", "sm_120"):
            self.assertIn(need, lines[0])
        self.assertEqual(len(lines), 1, done.stdout)

    def test_names_are_whole(self):
        """In a pipe and in a log; on a terminal as far as it is wide."""
        name = "a_library_with_a_name_that_says_what_it_is_for_as_those_of_python_extensions_do.cpython-311-x86_64-linux-gnu.so"
        shutil.copy(SAXPY, self.folder / name)
        shutil.copy(SAXPY, self.folder / "other.so")
        self.assertIn(name, self.kshim("scan", "--target", "7.5,8.0,8.6,8.9,9.0,10.0,12.0", self.folder).stdout)

    def test_the_table_takes_the_width_of_the_terminal(self):
        """A name is cut where the terminal is narrow, and whole where it has room; no row is wider than the terminal."""
        name = "vllm_flash_attn_of_some_length_with_an_extension_module.cpython-311-x86_64-linux-gnu.so"
        for each in (name, "other.so"):
            shutil.copy(SAXPY, self.folder / each)

        def rows(columns):
            pid, terminal = pty.fork()
            if pid == 0:
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
                os.chdir(self.folder)
                os.execve(e2e.KSHIM, ["kshim", "scan", "--target", "8.0,9.0", "."], {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TERM": "vt100"})
            out = b""
            with contextlib.suppress(OSError):  # Linux says EIO at the end
                while part := os.read(terminal, 65536):
                    out += part
            os.close(terminal)
            os.waitpid(pid, 0)
            return [row for row in out.decode().replace("\r", "\n").split("\n") if row.rstrip().endswith("ok    ok")]

        for columns, whole in ((80, False), (160, True)):
            shown = rows(columns)
            self.assertEqual(len(shown), 2, shown)
            self.assertLessEqual(max(map(len, shown)), columns)
            self.assertEqual(any(name in row for row in shown), whole, shown)

    def test_files_for_one_family_stand_apart(self):
        shutil.copy(ATTENTION, self.folder / "a_first.so")
        shutil.copy(SAXPY, self.folder / "z_last.so")
        lines = self.kshim("scan", self.folder).stdout.splitlines()
        at = {name: next(n for n, line in enumerate(lines) if line.startswith(name)) for name in ("z_last.so", "a_first.so")}
        self.assertLess(at["z_last.so"], at["a_first.so"])
        self.assertEqual(at["a_first.so"] - at["z_last.so"], 2)

    def test_links_and_copies(self):
        shutil.copy(SCALE, self.folder / "libscale.so.1.0")
        (self.folder / "libscale.so").symlink_to("libscale.so.1.0")
        os.link(self.folder / "libscale.so.1.0", self.folder / "hard.so")
        (self.folder / "loop").symlink_to(".")
        (self.folder / "nowhere.so").symlink_to("missing")
        scan = self.scan(self.folder)
        self.assertEqual(len(scan["objects"]), 1)
        self.assertEqual(scan["totals"]["duplicates"], 2)

    def test_damage_hides_nothing(self):
        whole = SCALE.read_bytes()
        shutil.copy(SAXPY, self.folder / "saxpy")
        (self.folder / "torn.so").write_bytes(whole[:len(whole) // 2])
        with zipfile.ZipFile(self.folder / "a.whl", "w", zipfile.ZIP_DEFLATED) as out:
            out.write(SCALE, "libscale.so")
        data = bytearray((self.folder / "a.whl").read_bytes())
        data[len(data) // 3] ^= 0xff
        (self.folder / "a.whl").write_bytes(data)
        done = self.kshim("scan", "--format", "json", self.folder)
        scan = json.loads(done.stdout)
        self.assertIn(str(self.folder / "saxpy"), [each["path"] for each in scan["objects"]])
        self.assertTrue(any("a.whl!libscale.so" in note for note in scan["notes"]), scan["notes"])

    def test_nothing_readable(self):
        text = self.folder / "notes.txt"
        text.write_text("nothing of interest\n")
        self.assert_says(self.kshim("scan", text), 3, "notes.txt", "neither a file that can hold device code")
        self.assert_says(self.kshim("scan", self.folder / "missing"), 3, "missing")
        done = self.kshim("scan", self.folder)
        self.assertEqual((done.returncode, done.stdout.split(":")[0]), (0, "no device code"), done.stderr)

    def test_damage_without_device_code_is_a_note(self):
        cut = self.folder / "program"
        cut.write_bytes(e2e.KSHIM.read_bytes()[:5000])
        shutil.copy(SAXPY, self.folder)
        scan = self.scan(self.folder)
        self.assertEqual((len(scan["objects"]), scan["findings"], len(scan["notes"])), (1, [], 1), scan)
        self.assertIn("program", scan["notes"][0])

    def test_what_was_not_read_is_never_ok(self):
        target = ("--target", "9.0")
        done = self.kshim("scan", *target, SAXPY, self.folder / "misspelt")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("incomplete", done.stdout)
        self.assertNotIn("ok:", done.stdout)
        whole = self.folder / "some.whl"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.write(SAXPY, "some/_C.so")
            wheel.writestr("some/data.bin", os.urandom(200_000))
        cut = self.folder / "dist" / "cut.whl"
        cut.parent.mkdir()
        cut.write_bytes(whole.read_bytes()[:-100_000])
        for argv, status in (((cut,), 1), ((cut.parent,), 0), (("--fail-on", "warning", cut.parent), 1)):
            done = self.kshim("scan", *target, *argv)
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertIn("incomplete", done.stdout)
        log = json.loads(self.kshim("scan", "--format", "sarif", *target, cut).stdout)
        self.assertFalse(log["runs"][0]["invocations"][0]["executionSuccessful"])
        self.assertIn("cut.whl", self.kshim("scan", "--format", "junit", *target, cut).stdout)
        self.assertIn("incomplete", self.kshim("scan", "--format", "markdown", *target, cut).stdout)

    def test_misuse(self):
        self.assert_says(self.kshim("scan", "--target", "sm_9000", SAXPY), 2, "--target")
        self.assert_says(self.kshim("scan", "--format", "word", SAXPY), 2, "--format")

    def test_formats(self):
        words = {"html": "<html", "sarif": '"2.1.0"', "junit": "<testsuites", "github": "::error"}
        for name in e2e.FORMATS:
            done = self.kshim("scan", "--format", name, "--target", "sm_120", SAXPY)
            self.assertEqual(done.returncode, 1, name + done.stderr)
            self.assertIn(words.get(name, "sm_120"), done.stdout, name)

    def test_foretells_what_the_driver_does(self):
        """Every sample on every GPU: findings of severity error if, and only if, the simulated driver refuses it."""
        programs = {SAXPY: SAXPY, HISTOGRAM: HISTOGRAM, e2e.SAMPLES / "07_two_gpus" / "reduce": None,
                    e2e.SAMPLES / "03_arch_specific_sm_90a" / "attention": None}
        compared = {0: 0, 1: 0}
        for program in programs:
            for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "sm_121"):
                foretold = self.kshim("scan", "--target", arch, program).returncode
                analysis, done = self.analysis("--simulate", arch, "--", program)
                self.assertEqual(foretold, 0 if analysis["verdict"] == "ok" else 1, f"{program} on {arch}: {done.stderr}")
                compared[foretold] += 1
        self.assertTrue(all(compared.values()), compared)


if __name__ == "__main__":
    e2e.main()
