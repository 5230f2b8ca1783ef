#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kshim doctor says of programs: whether the shim gets into them, and what they are linked to."""
import os
import shutil
import subprocess

import e2e
import fixture

SILENT = e2e.PROGRAMS / "e2e_silent"
GUEST = e2e.PROGRAMS / "e2e_guest"
e2e.require(SILENT, GUEST)
COMPILER = shutil.which("cc") or shutil.which("gcc")
MUSL = b"/lib/ld-musl-x86_64.so.1\0"


class Programs(fixture.MachineCase):
    def compile(self, output, source, *flags):
        if COMPILER is None:
            self.skipTest("no C compiler")
        there = self.root / output.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([COMPILER, "-x", "c", "-", "-x", "none", "-o", there, *[str(flag) for flag in flags]], input=source, text=True, check=True)
        return output

    def here(self, program, status=0):
        """Of a program of this machine."""
        done = self.kshim("doctor", "--format", "json", program)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = fixture.json.loads(done.stdout)
        fixture.schema_check(found)
        return found

    def test_dynamic(self):
        found = self.here(GUEST)
        self.assertEqual((found["program"]["found"], found["program"]["blind"], found["program"]["missing"]), (True, None, []))

    def test_static(self):
        found = self.here(SILENT)
        self.assertIn("statically linked", found["program"]["blind"])
        self.assertIn("blind", self.ids(found, "warning"))

    def test_a_static_program_at_any_address(self):
        path = self.compile("/p", "int main(void) { return 0; }", "-static-pie", "-fPIE")
        self.assertIn("statically linked", self.doctor(path)["program"]["blind"])

    def test_a_library_is_not_a_static_program(self):
        found = self.here(fixture.LIBRARY)
        self.assertEqual((found["program"]["library"], found["program"]["blind"]), (True, None))

    def test_setuid(self):
        self.put("/opt/p", GUEST.read_bytes(), 0o755)
        path = self.root / "opt/p"
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
            path.chmod(0o4755)
        else:
            self.skipTest("only root can give a file away")
        self.assertIn("setuid", self.doctor("/opt/p", status=1)["program"]["blind"])

    def test_musl(self):
        image = GUEST.read_bytes()
        at = image.find(b"/lib64/ld-linux-x86-64.so.2\0")
        if at < 0:
            self.skipTest("not x86-64")
        self.put("/p", image[:at] + MUSL + image[at + len(MUSL):], 0o755)
        self.assertIn("musl", self.doctor("/p", status=1)["program"]["blind"])

    def test_32_bit(self):
        self.put("/p", b"\x7fELF\x01\x01\x01" + bytes(100), 0o755)
        self.assertIn("word size", self.doctor("/p")["program"]["blind"])

    def test_a_chain_of_scripts(self):
        self.put("/usr/bin/env", GUEST.read_bytes(), 0o755)
        self.put("/usr/bin/python3", SILENT.read_bytes(), 0o755)
        self.put("/opt/inner", "#!/usr/bin/env python3\n", 0o755)
        self.put("/opt/outer", "#! /opt/inner\n", 0o755)
        found = self.doctor("/opt/outer")
        self.assertEqual(found["program"]["scripts"], ["/opt/outer", "/opt/inner"])
        self.assertEqual(found["program"]["path"], "/usr/bin/python3")
        self.assertIn("statically linked", found["program"]["blind"])

    def test_scripts_that_name_each_other(self):
        self.put("/a", "#!/b\n", 0o755)
        self.put("/b", "#!/a\n", 0o755)
        self.assertEqual(self.ids(self.doctor("/a", status=1), "error"), ["program-missing"])

    def test_linked_libraries_and_why_each(self):
        """RUNPATH, RPATH, LD_LIBRARY_PATH and $ORIGIN, as ld.so takes them."""
        libraries = self.root / "app/lib"
        libraries.mkdir(parents=True)
        for name in ("libcudart.so.12", "libcudart.so.13", "libcublas.so.12"):
            self.compile(f"/app/lib/{name}", f"int f_{name[3:-3].replace('.', '_')};", "-shared", "-nostdlib", f"-Wl,-soname,{name}")
        everything = [libraries / name for name in ("libcudart.so.12", "libcudart.so.13", "libcublas.so.12")]
        keep = "-Wl,--no-as-needed"
        self.compile("/app/bin/runpath", "int main(void) { return 0; }", keep, *everything, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib",
                     "-nostdlib", "-Wl,-e,main")
        found = self.doctor("/app/bin/runpath")
        self.assertEqual({library["name"] for library in found["program"]["libraries"]},
                         {"libcudart.so.12", "libcudart.so.13", "libcublas.so.12"})
        self.assertEqual({library["how"] for library in found["program"]["libraries"]}, {"RUNPATH of /app/bin/runpath"})
        self.assertEqual(self.ids(found), ["mixed-cuda-libraries"])
        self.compile("/other/libcublas.so.12", "int other;", "-shared", "-nostdlib", "-Wl,-soname,libcublas.so.12")
        found = self.doctor("/app/bin/runpath", LD_LIBRARY_PATH="/other")
        self.assertIn("/other/libcublas.so.12", [library["path"] for library in found["program"]["libraries"]])
        self.compile("/app/bin/rpath", "int main(void) { return 0; }", keep, everything[2], "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib",
                     "-nostdlib", "-Wl,-e,main")
        found = self.doctor("/app/bin/rpath", LD_LIBRARY_PATH="/other")
        self.assertEqual([library["how"] for library in found["program"]["libraries"]], ["RPATH of /app/bin/rpath"])

    def test_missing_libraries(self):
        self.compile("/libgone.so.1", "int g;", "-shared", "-nostdlib", "-Wl,-soname,libgone.so.1")
        self.compile("/p", "int main(void) { return 0; }", "-Wl,--no-as-needed", self.root / "libgone.so.1", "-nostdlib", "-Wl,-e,main")
        (self.root / "libgone.so.1").unlink()
        found = self.doctor("/p", status=1)
        self.assertEqual(self.ids(found, "error"), ["library-not-found"])
        self.assertIn("libgone.so.1, for /p", self.text_of(found, "library-not-found"))

    def test_what_is_no_program(self):
        self.put("/text", "hello\n")
        self.assertEqual(self.ids(self.doctor("/text", status=1), "error"), ["program-unknown"])
        self.assertEqual(self.ids(self.doctor("/gone", status=1), "error"), ["program-missing"])
        self.assertEqual(self.ids(self.doctor("no-such-program", status=1), "error"), ["program-missing"])

    def test_damaged_files(self):
        image = bytearray(GUEST.read_bytes())
        for at in range(16, 0x300, 7):
            image[at] ^= 0xFF
            self.put("/p", bytes(image), 0o755)
            done = self.kshim("doctor", "--root", self.root, "/p")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            image[at] ^= 0xFF


if __name__ == "__main__":
    fixture.main()
