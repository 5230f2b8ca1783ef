#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim scan` lists the same device code of a file however it is packed: named, in a folder, in a wheel, in a folder in an archive.
And what it cannot read it names, and calls nothing of it ok."""
import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import pickle
import random
import shutil
import struct
import subprocess
import tarfile
import zipfile
import zlib

import e2e

NVCC = pathlib.Path(os.environ.get("KSHIM_NVCC", "/nowhere")) / "nvcc"
SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
e2e.require(e2e.KSHIM, SCALE, NVCC)

KERNEL = 'extern "C" __global__ void twice(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n'
# Bytes in which no stream or image begins, and which are no text.
NOISE = bytes(random.Random(7).choices([0, 1, 2, 3, 0x11, 0x90, 0xC4, 0xE0], k=30_000))


def build(folder):
    """A cubin, a fatbin and PTX."""
    source = folder / "twice.cu"
    source.write_text(KERNEL)
    out = {}
    for name, argv in {"cubin": ["-cubin", "-arch=sm_80"], "ptx": ["-ptx", "-arch=compute_90"],
                       "fatbin": ["-fatbin", "-gencode", "arch=compute_75,code=sm_75", "-gencode", "arch=compute_86,code=[sm_86,compute_86]"]}.items():
        path = folder / f"twice.{name}"
        subprocess.run([NVCC, *argv, "-o", path, source], check=True, capture_output=True)
        out[name] = path.read_bytes()
    return out


def zip_of(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def tar_of(files, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, data in files.items():
            row = tarfile.TarInfo(name)
            row.size = len(data)
            tar.addfile(row, io.BytesIO(data))
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def docker_of(files):
    """As `docker save` writes it."""
    layer = tar_of(files)
    config = json.dumps({"os": "linux", "architecture": "amd64"}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    folder = hashlib.sha256(layer).hexdigest()
    return tar_of({f"{folder}/layer.tar": layer, name: config,
                   "manifest.json": json.dumps([{"Config": name, "RepoTags": ["some:1"], "Layers": [f"{folder}/layer.tar"]}]).encode()})


def oci_of(files):
    """An image layout with a compressed layer."""
    blobs = {}

    def blob(data):
        name = hashlib.sha256(data).hexdigest()
        blobs["blobs/sha256/" + name] = data
        return "sha256:" + name

    layer = gzip.compress(tar_of(files))
    config = blob(json.dumps({"os": "linux", "architecture": "amd64"}).encode())
    manifest = {"config": {"digest": config}, "layers": [{"digest": blob(layer), "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"}]}
    index = {"manifests": [{"digest": blob(json.dumps(manifest).encode())}]}
    return tar_of({"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode(), **blobs})


ARCHIVES = {
    "some.zip": zip_of,
    "some-1.0-py3-none-any.whl": zip_of,
    "stored.pt2": lambda files: zip_of({"model/data/" + name: data for name, data in files.items()}, zipfile.ZIP_STORED),
    "some.egg": zip_of,
    "some.tar": tar_of,
    "some.tar.gz": lambda files: tar_of(files, "w:gz"),
    "some.tar.xz": lambda files: tar_of(files, "w:xz"),
    "some-1.0-0.tar.bz2": lambda files: tar_of({"info/index.json": b'{"name": "some", "version": "1.0", "build": "0"}', **files}, "w:bz2"),
    "no-ending": lambda files: tar_of(files, "w:gz"),
    "docker.tar": docker_of,
    "docker.tar.gz": lambda files: gzip.compress(docker_of(files)),
    "oci.tar": oci_of,
}
if shutil.which("zstd"):
    ARCHIVES["some.tar.zst"] = lambda files: zstd(tar_of(files))


def npy(code):
    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(code)
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + code


def files_of(code, own):
    """Each kind of file with the images that are in it."""
    cubin, fatbin, ptx = code["cubin"], code["fatbin"], code["ptx"]
    one, two, text = ["sm_80"], ["compute_86", "sm_75", "sm_86"], ["compute_90"]
    program = SCALE.read_bytes()
    out = {
        "twice.cubin": (cubin, one),
        "twice.fatbin": (fatbin, two),
        "twice.ptx": (ptx, text),
        "libscale.so": (program, own),
        "cache/3f2a.cubin": (hashlib.sha1(cubin).hexdigest().encode() + cubin, one),  # CuPy's
        "ComputeCache/ab": (b"\x05\x00\x00\x00" + NOISE[:300] + cubin + NOISE[:20], one),  # the driver's
        "kernel.pkl": (pickle.dumps(("twice", cubin, {"a": fatbin}), protocol=4), one + two),
        "kernel.nbc": (pickle.dumps(("twice", ptx.decode()), protocol=4), text),
        "weights.npz": (zip_of({"code.npy": npy(cubin)}), one),
        "model.pt": (zip_of({"model/data.pkl": cubin, "model/version": b"3\n"}, zipfile.ZIP_STORED), one),
        "model.engine": (b"ftrt" + NOISE + fatbin + NOISE + cubin + NOISE, one + two),
        "context.onnx": (b"\x08\x07\x12\x04abcd" + NOISE + cubin, one),
        "libscale.so.gz": (gzip.compress(program), own),
        "libscale.so.xz": (lzma.compress(program), own),
        "twice.cubin.bz2": (bz2.compress(cubin), one),
        "marked.ptx": (b"\xef\xbb\xbf" + ptx, text),
        "native.jar": (zip_of({"META-INF/MANIFEST.MF": b"a: b\n", "a/B.class": b"\xca\xfe\xba\xbe\0\0\0\x3d" + NOISE, "linux/libscale.so": program}), own),
        "weights.pt2": (zip_of({"m/data/aotinductor/model/x.cubin": cubin, "m/data/weights/w": NOISE, "m/version": b"2"}, zipfile.ZIP_STORED), one),
        "commented.txt": (b"// " + b"-" * 500 + b"\n" + ptx, text),
    }
    if shutil.which("zstd"):
        out["cache/jit_g-2c3d-cache"] = (zstd(NOISE + fatbin), two)
        out["libscale.so.zst"] = (zstd(program), own)
    return out


class Inputs(e2e.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = e2e.Case()
        case.setUp()
        cls.code = build(case.folder)
        case.doCleanups()

    def scan(self, *argv, status=0):
        done = self.kshim("scan", "--format", "json", *argv)
        self.assertEqual(done.returncode, status, done.stdout[-3000:] + done.stderr)
        return json.loads(done.stdout)

    def images(self, *argv, status=0):
        """Their architectures, and the files that they are in."""
        scan = self.scan(*argv, status=status)
        return sorted(image["arch"] for each in scan["objects"] for image in each["images"] for _ in range(image["count"]))

    def put(self, name, data, folder=None):
        path = (folder or self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def test_each_kind_of_file_in_each_nesting(self):
        """A file by itself, in a folder, in a wheel, and in a folder in an archive in a folder."""
        for name, (data, expected) in files_of(self.code, self.images(SCALE)).items():
            nestings = {
                "named": self.put("named/" + name, data),
                "folder": self.put("folder/" + name.replace("/", "_") + "/sub/" + name, data).parents[1],
                "wheel": self.put("wheel/some-1-py3-none-any.whl", zip_of({"pkg/" + name: data})),
                "archive": self.put("archive/x/some.tar.xz", tar_of({"a/b/" + name: data}, "w:xz")).parent,
                "deep": self.put("deep/x/outer.zip", zip_of({"in/some.tar.gz": tar_of({"wheels/a-1-py3-none-any.whl": zip_of({name: data})}, "w:gz")})).parent,
            }
            for nesting, path in nestings.items():
                with self.subTest(file=name, nesting=nesting):
                    self.assertEqual(self.images(path), sorted(expected))

    def test_what_names_tell(self):
        """Members that are called a source, a class or a number of PyTorch's are passed over, and so are manual pages in a folder."""
        for name in ("a/b.class", "a/b.py", "m/data/17", "a/b.ko.xz"):
            data = {"m/version": b"3\n", name: lzma.compress(self.code["cubin"]) if name.endswith("xz") else self.code["cubin"]}
            path = self.put(name.replace("/", "_") + "/some.jar", zip_of(data))
            self.assertEqual((self.images(path), self.images(path.parent)), ([], []), name)
            path = self.put(name.replace("/", "_") + ".d/" + name.rsplit("/")[-1], data[name])
            self.assertEqual(self.images(path), ["sm_80"], name)
        manual = self.put("man/man1/a.1.gz", gzip.compress(self.code["cubin"]))
        self.assertEqual((self.images(manual), self.images(manual.parent)), (["sm_80"], []))

    def test_a_named_file_is_always_searched(self):
        """Whatever its first bytes say: of a folder, pictures and the like are passed over, and databases are not read."""
        path = self.put("some/logo.png", b"\x89PNG\r\n\x1a\n" + NOISE + self.code["cubin"])
        self.assertEqual((self.images(path), self.images(path.parent)), (["sm_80"], []))
        path = self.put("other/blocks.h5", b"\x89HDF\r\n\x1a\n" + NOISE + self.code["cubin"])
        self.assertEqual(self.images(path), ["sm_80"])
        self.assertIn("HDF5 file", self.kshim("scan", path.parent).stderr)

    def test_each_archive_in_each_nesting(self):
        files = {"opt/libscale.so": SCALE.read_bytes(), "opt/cache/3f2a.cubin": b"0" * 40 + self.code["cubin"], "opt/twice.ptx": self.code["ptx"]}
        expected = sorted(["compute_90", "sm_80", *self.images(SCALE)])
        for name, make in ARCHIVES.items():
            data = make(files)
            nestings = {
                "named": self.put("named/" + name, data),
                "folder": self.put(f"folder/{name}.d/" + name, data).parent,
                "wheel": self.put("wheel/outer-1-py3-none-any.whl", zip_of({"pkg/" + name: data})),
                "archive": self.put("archive/x/outer.tar.gz", tar_of({"a/b/" + name: data}, "w:gz")).parent,
            }
            for nesting, path in nestings.items():
                with self.subTest(archive=name, nesting=nesting):
                    self.assertEqual(self.images(path), expected)

    def test_whiteouts_count_in_a_folder(self):
        """An image that is found in a folder is put together as a named one is."""
        lower, upper = tar_of({"opt/gone.cubin": self.code["cubin"], "opt/kept.ptx": self.code["ptx"]}), tar_of({"opt/.wh.gone.cubin": b""})
        names = [f"{hashlib.sha256(layer).hexdigest()}/layer.tar" for layer in (lower, upper)]
        image = tar_of({names[0]: lower, names[1]: upper, "manifest.json": json.dumps([{"Config": "", "RepoTags": ["some:1"], "Layers": names}]).encode()})
        path = self.put("some/image.tar", image)
        for argv in (path, path.parent):
            self.assertEqual(self.images(argv), ["compute_90"])

    def test_package_of_a_conda_package(self):
        data = ARCHIVES["some-1.0-0.tar.bz2"]({"lib/libscale.so": SCALE.read_bytes()})
        for path in (self.put("renamed.tar.bz2", data), self.put("outer.zip", zip_of({"a/renamed.tar.bz2": data}))):
            [each] = self.scan(path)["objects"]
            self.assertEqual(each["package_info"]["name"], "some", path)
            self.assertEqual(each["package"], "some 1.0")

    def test_what_is_not_read_is_named(self):
        """Never green: exit status 3 where nothing was read, 1 where something was and nothing is known of the rest."""
        program = pathlib.Path("/bin/true").read_bytes()
        for name, data, kind in (("model.engine", os.urandom(20_000), ".engine file"), ("some.bc", b"BC\xc0\xde" + NOISE, "LLVM bitcode"),
                                 ("state.db", b"SQLite format 3\0" + NOISE, "SQLite database"), ("blob", NOISE[:100], "file without an ending"),
                                 ("cache.pkl", zlib.compress(NOISE + self.code["cubin"]), ".pkl file"),
                                 ("installer.run", b"#!/bin/sh\n" + b"# nothing\n" * 120_000 + tar_of({"a/libscale.so": program}, "w:gz"), ".run file")):
            folder = self.folder / (name + ".d")
            path = self.put("sub/" + name, data, folder)
            self.put("README.md", b"# Read me\n", folder)
            self.put("logo.png", b"\x89PNG\r\n\x1a\n" + NOISE, folder)
            for argv in ((path,), (folder,), ("--expect", "8.0", folder), (self.put(name + ".zip", zip_of({name: data, "a.py": b"pass\n"})),)):
                with self.subTest(name=name, argv=argv):
                    done = self.kshim("scan", *argv)
                    self.assertEqual(done.returncode, 3, done.stdout)
                    self.assertNotIn("no device code", done.stdout)
                    self.assertIn(kind, done.stderr)
            shutil.copy("/bin/true", folder)  # read, and nothing in it
            scan = self.scan(folder, status=1)
            self.assertEqual([(each["path"], each["member"], each["kind"], each["bytes"]) for each in scan["unread_files"]], [(str(path), None, kind, len(data))])
            done = self.kshim("scan", folder)
            self.assertIn("incomplete", done.stdout)
            shutil.copy(SCALE, folder)  # judged; the rest is named
            for argv, status in ((("--target", "8.0"), 0), (("--target", "8.0", "--fail-on", "warning"), 1), (("--expect", "8.0 8.9"), 1)):
                done = self.kshim("scan", *argv, folder)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertNotIn("ok:", done.stdout)
                self.assertIn(kind, done.stdout + done.stderr)
            for form in ("junit", "sarif", "github", "markdown", "html"):
                self.assertIn(kind, self.kshim("scan", "--format", form, "--target", "8.0", folder).stdout, form)
            config = self.put("config/kshim.toml", f'expect = "8.0 8.9"\n[[files]]\npattern = "{name}"\nskip = true\nreason = "no code"\n'.encode())
            self.assertEqual(self.kshim("scan", "--config", config, folder).returncode, 0)

    def test_what_cannot_hold_device_code_is_no_gap(self):
        """By content: text, pictures, fonts, bytecode, what git keeps."""
        folder = self.folder / "plain"
        for name, data in {"a.py": b"print(1)\n", "notes.txt": "Grüße\n".encode("latin-1"), "wide.txt": "text".encode("utf-16"), "a.svg": b"<svg/>", "empty": b"",
                           "logo.png": b"\x89PNG\r\n\x1a\n" + NOISE, "a.jpg": b"\xff\xd8\xff\xe0" + NOISE, "a.woff2": b"wOF2" + NOISE,
                           "a.pyc": bytes.fromhex("a70d0d0a") + NOISE, "objects/0a": zlib.compress(b"blob 30000\0" + NOISE, 1),
                           "w.safetensors": struct.pack("<Q", 20) + b'{"a":{"dtype":"F32"}' + NOISE}.items():
            self.put(name, data, folder)
        scan = self.scan(folder)
        self.assertEqual((scan["objects"], scan["unread_files"], scan["notes"]), ([], [], []))
        self.assertIn("no device code", self.kshim("scan", folder).stdout)
        wheel = self.put("some-1-py3-none-any.whl", zip_of({path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}))
        self.assertEqual(self.scan(wheel)["unread_files"], [])


if __name__ == "__main__":
    e2e.main()
