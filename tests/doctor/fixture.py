# SPDX-License-Identifier: Apache-2.0
"""A folder that looks like the root of a machine, for `kshim doctor --root`. Libraries are copies of a small real one."""
import json
import pathlib
import struct
import sys

import e2e
import schemas

LIBRARY = e2e.PROGRAMS / "libe2e_third.so"
TRIPLET = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
ELF_LIBC6 = {"x86_64": 0x0303, "aarch64": 0x0A03}
MACHINE = __import__("platform").machine()
e2e.require(e2e.KSHIM, LIBRARY)


def schema_check(document):
    jsonschema = schemas.jsonschema_or_skip()
    jsonschema.Draft202012Validator(schemas.strict(schemas.ours()["doctor"])).validate(document)


class MachineCase(e2e.Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.root.mkdir()
        self.cached = []

    def put(self, path, content="", mode=0o644):
        there = self.root / path.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            there.write_bytes(content)
        else:
            there.write_text(content)
        there.chmod(mode)
        return path

    def library(self, path, *links):
        """A library there, and links to it beside it; what a soname of it is goes into the linker's cache with cache()."""
        self.put(path, LIBRARY.read_bytes(), 0o755)
        for link in links:
            there = self.root / link.lstrip("/")
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(pathlib.Path(path).name if pathlib.Path(link).parent == pathlib.Path(path).parent else path)
        return path

    def cache(self, *paths, flags=ELF_LIBC6[MACHINE]):
        """/etc/ld.so.cache as ldconfig writes it, sonames being the files' names."""
        self.cached += [(str(path), flags) for path in paths]
        strings, entries = b"", b""
        start = 48 + 24 * len(self.cached)
        for path, flag in self.cached:
            name = start + len(strings)
            strings += pathlib.Path(path).name.encode() + b"\0"
            value = start + len(strings)
            strings += path.encode() + b"\0"
            entries += struct.pack("<iIIIQ", flag, name, value, 0, 0)
        self.put("/etc/ld.so.cache", struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(self.cached), len(strings), 2, 0) +
                 entries + strings)

    def driver(self, version="580.82.07", library="580.82.07"):
        """A machine with one GPU, its kernel module and its library."""
        self.put("/proc/driver/nvidia/version",
                 f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Aug 27 17:04:00 UTC 2025\nGCC version: 12\n")
        self.put("/proc/driver/nvidia/gpus/0000:65:00.0/information",
                 "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 80\nGPU UUID: \t GPU-11111111-2222-3333-4444-555555555555\n")
        self.put("/sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de\n")
        self.put("/sys/bus/pci/devices/0000:65:00.0/class", "0x030200\n")
        for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
            self.put(f"/dev/{node}")
        folder = f"/usr/lib/{TRIPLET[MACHINE]}"
        self.library(f"{folder}/libcuda.so.{library}", f"{folder}/libcuda.so.1")
        self.cache(f"{folder}/libcuda.so.1")

    def doctor(self, *argv, status=0, **env):
        variables = [f"--env={name}={value}" for name, value in {"PATH": "/usr/bin:/bin", **env}.items()]
        done = self.kshim("doctor", "--format", "json", "--root", self.root, *variables, *argv,
                          env=e2e.clean_environment(CUDA_HOME="/of/the/host"))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        schema_check(found)
        return found

    def ids(self, found, *severities):
        return sorted({check["id"] for check in found["findings"] if check["severity"] in (severities or ("error", "warning"))})

    def text_of(self, found, name):
        texts = [check["text"] for check in found["findings"] if check["id"] == name]
        self.assertTrue(texts, f"no {name}: {found['findings']}")
        return texts[0]


def main():
    sys.dont_write_bytecode = True
    e2e.main()
