#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images of containers as docker, podman, skopeo, buildah and kaniko write them, read by `kshim scan`; and docs/site/cdi.json, which brings
the shim into containers that podman and crun run. docker needs a daemon and kaniko a container: theirs are made after their layout."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import e2e
import podman_here

SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"  # sm_80 and sm_89
SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
e2e.require(e2e.KSHIM, e2e.SHIM, SCALE, SAXPY)


# What a site gives containers: the release's, of glibc 2.17, where tools/release-build made it; else this build's, and the tests say so.
RELEASED = e2e.SOURCE / "build" / "floor" / os.uname().machine / "kshim" / "lib" / "libkshim.so"
GIVEN = RELEASED if RELEASED.exists() and "KSHIM_TEST_SHIM" not in os.environ else e2e.SHIM
TEMPLATE = json.loads((e2e.SOURCE / "docs" / "site" / "cdi.json").read_text())


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            row = tarfile.TarInfo(name)
            row.size = len(data)
            tar.addfile(row, io.BytesIO(data))
    return out.getvalue()


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Images(e2e.Case):
    """Each image has /opt/libscale.so; a second file was in the first layer and is deleted in the second."""

    def check(self, path, name=None, argv=(), **more):
        done = self.kshim("scan", "--format", "json", "--expect", "8.0 8.9", "--exactly", *argv, path, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        scan = json.loads(done.stdout)
        self.assertEqual([each["member"] for each in scan["objects"]], ["opt/libscale.so"], path)
        [image] = scan["images"]
        self.assertEqual(image["layers"], 2)
        self.assertEqual(image["platform"], "linux/amd64")
        if name:
            self.assertIn(name, image["name"])
        if path != "-":
            self.assertEqual(self.kshim("scan", "--expect", "8.0 9.0", path).returncode, 1)

    def layers(self):
        data = SCALE.read_bytes()
        return tar_of({"opt/libscale.so": data, "opt/old.so": data}), tar_of({"opt/.wh.old.so": b""})

    def config(self, layers, **config):
        return json.dumps({"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(layer) for layer in layers]}}).encode()

    def test_docker(self):
        """docker 25 and later: an OCI layout with manifest.json beside it, layers as they are."""
        layers = self.layers()
        config = self.config(layers)
        blob = {f"blobs/sha256/{digest(data)}": data for data in (*layers, config)}
        descriptor = lambda kind, data: {"mediaType": kind, "digest": "sha256:" + digest(data), "size": len(data)}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                               "config": descriptor("application/vnd.oci.image.config.v1+json", config),
                               "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer) for layer in layers]}).encode()
        index = {"schemaVersion": 2, "manifests": [{**descriptor("application/vnd.oci.image.manifest.v1+json", manifest),
                                                    "annotations": {"io.containerd.image.name": "docker.io/library/demo:1"}}]}
        docker = [{"Config": f"blobs/sha256/{digest(config)}", "RepoTags": ["demo:1"], "Layers": [f"blobs/sha256/{digest(layer)}" for layer in layers]}]
        files = {**blob, f"blobs/sha256/{digest(manifest)}": manifest, "index.json": json.dumps(index).encode(), "manifest.json": json.dumps(docker).encode(),
                 "oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
        (self.folder / "docker.tar").write_bytes(tar_of(files))
        self.check("docker.tar", "demo:1")
        for name, data in files.items():
            path = self.folder / "docker" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.check("docker", "demo:1")
        self.assertEqual(self.kshim("scan", "--budget", "wheel=9G", "docker.tar").returncode, 0)
        self.assertEqual(self.kshim("scan", "--budget", "wheel=9G", "docker").returncode, 1, "the size of a folder is not known")

    def test_docker_before_25(self):
        """A folder a layer, with links for layers that occur twice."""
        layers = self.layers()
        config = self.config(layers)
        names = [f"{digest(layer)[::-1]}/layer.tar" for layer in layers]
        manifest = [{"Config": f"{digest(config)}.json", "RepoTags": ["demo:1"], "Layers": names}]
        (self.folder / "old.tar").write_bytes(tar_of({**dict(zip(names, layers)), f"{digest(config)}.json": config, "manifest.json": json.dumps(manifest).encode()}))
        self.check("old.tar", "demo:1")

    def docker_archive(self, name, layers, **config):
        config = self.config(layers, **config)
        blobs = {f"{digest(layer)}/layer.tar": layer for layer in layers}
        manifest = [{"Config": f"{digest(config)}.json", "RepoTags": ["demo:1"], "Layers": list(blobs)}]
        (self.folder / name).write_bytes(tar_of({**blobs, f"{digest(config)}.json": config, "manifest.json": json.dumps(manifest).encode()}))
        return name

    def base(self, *layers, **config):
        [image] = json.loads(self.kshim("scan", "--format", "json", self.docker_archive("base.tar", layers, **config)).stdout)["images"]
        return image["base"]

    def test_the_base_is_named(self):
        """As a label says it, which buildah writes; else by the system in it."""
        old, new = (tar_of({"opt/libscale.so": SCALE.read_bytes(), "etc/os-release": f'NAME=x\nPRETTY_NAME="Debian {n}"\n'.encode()}) for n in (12, 13))
        self.assertEqual(self.base(old, new), "Debian 13")
        self.assertEqual(self.base(old, Labels={"org.opencontainers.image.base.name": "docker.io/nvidia/cuda:13.0"}), "docker.io/nvidia/cuda:13.0")
        self.assertIsNone(self.base(tar_of({"opt/libscale.so": SCALE.read_bytes()})))
        self.assertIn("Debian 13", self.kshim("scan", "base.tar" if self.base(new) else "").stdout)

    def test_packages_are_named(self):
        site = "usr/lib/python3.11/site-packages"
        layer = tar_of({f"{site}/things/_C.so": SCALE.read_bytes(), f"{site}/things-1.2.dist-info/METADATA": b"Name: things\nVersion: 1.2\n",
                        f"{site}/things-1.2.dist-info/RECORD": b"things/_C.so,,\n"})
        scan = json.loads(self.kshim("scan", "--format", "json", self.docker_archive("packages.tar", [layer])).stdout)
        self.assertEqual([row["package"] for row in scan["objects"]], ["things 1.2"])

    def test_what_an_image_declares(self):
        layer = tar_of({"opt/libscale.so": SCALE.read_bytes()})  # sm_80 and sm_89
        for env, status in ((["NVIDIA_REQUIRE_ARCH=arch>=8.0,arch<=8.9"], 0), (["PATH=/bin", "NVIDIA_REQUIRE_ARCH=arch>=8.0"], 1),
                            (["NVIDIA_REQUIRE_ARCH=arch>=8.0", "NVIDIA_REQUIRE_CUDA=cuda>=12.8,arch<9.0 brand=tesla,arch<9.0"], 0), (["NVIDIA_REQUIRE_ARCH="], 3), ([], 3)):
            done = self.fleet("requirements", "--verify", self.docker_archive("declares.tar", [layer], Env=env))
            self.assertEqual(done.returncode, status, (env, done.stdout + done.stderr))

    def test_kaniko(self):
        """--tar-path: a docker archive with compressed layers, the configuration called by its digest."""
        layers = self.layers()
        config = self.config(layers)
        packed = [gzip.compress(layer) for layer in layers]
        names = [f"{digest(layer)}.tar.gz" for layer in packed]
        manifest = [{"Config": f"sha256:{digest(config)}", "RepoTags": ["demo:1"], "Layers": names}]
        (self.folder / "kaniko.tar").write_bytes(tar_of({**dict(zip(names, packed)), f"sha256:{digest(config)}": config, "manifest.json": json.dumps(manifest).encode()}))
        self.check("kaniko.tar", "demo:1")

    def test_podman_skopeo_buildah(self):
        if os.getuid() != 0 or not all(shutil.which(name) for name in ("podman", "skopeo", "buildah")):
            self.skipTest("no podman, skopeo and buildah, or not root")
        own = ["--root", self.folder / "storage", "--runroot", self.folder / "run", "--storage-driver", "vfs"]

        def tool(name, *argv):
            done = self.run_program("unshare", "-m", name, *argv)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout.strip()

        (self.folder / "context").mkdir()
        for name in ("libscale.so", "old.so"):
            shutil.copy(SCALE, self.folder / "context" / name)
        (self.folder / "context" / "Dockerfile").write_text("FROM scratch\nCOPY libscale.so old.so /opt/\n")
        tool("buildah", *own, "bud", "-q", "-t", "base:1", "context")
        container = tool("buildah", *own, "from", "base:1")
        mounted = pathlib.Path(tool("buildah", *own, "mount", container))
        (mounted / "opt" / "old.so").unlink()
        tool("buildah", *own, "commit", "-q", container, "demo:1")
        for kind in ("oci-archive", "docker-archive"):
            tool("buildah", *own, "push", "-q", "demo:1", f"{kind}:buildah-{kind}.tar")
            self.check(f"buildah-{kind}.tar")
            tool("podman", *own, "save", "-q", "--format", kind, "-o", f"podman-{kind}.tar", "demo:1")
            self.check(f"podman-{kind}.tar", "demo:1")
        for kind in ("oci-dir", "docker-dir"):
            tool("podman", *own, "save", "-q", "--format", kind, "-o", f"podman-{kind}", "demo:1")
            self.check(f"podman-{kind}")
        for packing in ("gzip", "zstd"):
            tool("skopeo", "copy", "-q", "--dest-compress-format", packing, "oci-archive:podman-oci-archive.tar", f"oci:skopeo-{packing}:demo")
            self.check(f"skopeo-{packing}")
            tool("tar", "-C", f"skopeo-{packing}", "-cf", f"skopeo-{packing}.tar", ".")
            self.check(f"skopeo-{packing}.tar")
        with open(self.folder / "podman-oci-archive.tar", "rb") as archive:
            self.check("-", stdin=archive)


class Cdi(e2e.Case):
    """A container with the specification's device, which is otherwise as its image is."""

    def setUp(self):
        super().setUp()
        if why := podman_here.works(self.folder):
            self.skipTest(f"podman starts no container here: {why}")
        (self.folder / "cdi").mkdir()
        (self.folder / "reports").mkdir()
        (self.folder / "reports").chmod(0o1777)
        self.install(TEMPLATE)
        self.root = self.folder / "root"
        podman_here.add(self.root, SAXPY, "/opt/saxpy")
        podman_here.add(self.root, "/bin/sh")
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):  # a simulated driver
            podman_here.add(self.root, e2e.SIMULATOR / name, f"/usr/lib/x86_64-linux-gnu/{name}")
        (self.root / "etc").mkdir(exist_ok=True)

    def install(self, spec):
        """With this test's paths on the host, and those of the template in the container."""
        spec = json.loads(json.dumps(spec))
        edits = spec["devices"][0]["containerEdits"]
        for mount, here in zip(edits["mounts"], (GIVEN, self.folder / "reports"), strict=True):
            mount["hostPath"] = str(here)
        (self.folder / "cdi" / "kshim.json").write_text(json.dumps(spec))

    def run_in(self, *argv, options=()):
        return podman_here.run(self.folder, self.root, *argv, cdi=self.folder / "cdi", options=["--device", "kshim/shim=record", "-e", "KSHIM_SIM_DEVICES=12.0", *options])

    def reports(self):
        return sorted((self.folder / "reports").glob("*.jsonl"))

    def test_a_failure_in_a_container(self):
        e2e.not_instrumented(self)
        done = self.run_in("/opt/saxpy")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("saxpy", done.stderr)
        [report] = self.reports()
        analysis = json.loads(self.kshim("analyze", "--format", "json", "--trust-reports", report).stdout)
        self.assertEqual([finding["cause"] for finding in analysis["findings"]][:1], ["no-image-for-arch"])

    def test_a_program_without_cuda(self):
        done = self.run_in("/bin/sh", "-c", "echo fine")
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)
        self.assertEqual(self.reports(), [])

    def test_ld_preload_of_the_image(self):
        """It is replaced, also where --env sets it, unless the specification names it."""
        podman_here.add(self.root, e2e.PROGRAMS / "libe2e_second.so", "/opt/second.so")
        podman_here.add(self.root, "/bin/cat")

        def preloaded():
            done = self.run_in("/bin/cat", "/proc/self/maps", options=["-e", "LD_PRELOAD=/opt/second.so"])
            self.assertEqual(done.returncode, 0, done.stderr)
            return [name for name in ("libkshim.so", "second.so") if name in done.stdout]

        self.assertEqual(preloaded(), ["libkshim.so"])
        self.install(json.loads(json.dumps(TEMPLATE).replace("libkshim.so\", \"KSHIM_REPORT", "libkshim.so:/opt/second.so\", \"KSHIM_REPORT")))
        self.assertEqual(preloaded(), ["libkshim.so", "second.so"])

    def test_roots_of_systems(self):
        """Folders of KSHIM_ROOTS, as `debootstrap --variant=minbase --foreign SUITE FOLDER` or `tools/roots --keep` leaves them: a shell starts with the
        shim in it (a release's for an old glibc: KSHIM_TEST_SHIM)."""
        roots = [pathlib.Path(root) for root in os.environ.get("KSHIM_ROOTS", "").split(":") if root]
        if not roots:
            self.skipTest("KSHIM_ROOTS is not set")
        needs = max(int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", GIVEN.read_bytes()))
        for self.root in roots:
            with self.subTest(root=self.root.name):
                libc = next(path for path in self.root.glob("**/libc.so.6") if path.exists()).read_bytes()
                has = int(re.search(rb"stable release version 2\.(\d+)", libc)[1])
                done = self.run_in("/bin/sh", "-c", "cat /proc/self/maps; exit 7", options=["-e", "LD_PRELOAD=/opt/own.so"])
                self.assertEqual(done.returncode, 7, done.stderr)
                self.assertEqual("libkshim.so" in done.stdout, has >= needs, done.stderr)
                self.assertEqual("libkshim.so" in done.stderr, has < needs, done.stderr)  # the loader says that it goes on without it

    def test_musl(self):
        """A program of musl: its loader meets the library that it cannot load, as with any other preload, or runs it."""
        libc = pathlib.Path("/lib/ld-musl-x86_64.so.1")
        if not shutil.which("musl-gcc"):
            self.skipTest("no musl-gcc")
        source = self.folder / "hello.c"
        source.write_text('#include <stdio.h>\nint main(void) { puts("fine"); return 0; }\n')
        done = self.run_program("musl-gcc", "-o", self.folder / "hello", source)
        self.assertEqual(done.returncode, 0, done.stderr)
        root = self.folder / "musl"
        (root / "lib").mkdir(parents=True)
        shutil.copy(self.folder / "hello", root / "hello")
        shutil.copy(libc.resolve(), root / "lib" / libc.name)
        (root / "etc").mkdir()
        self.root = root
        done = self.run_in("/hello")
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)


class Root(e2e.Case):
    """A report of a container, analyzed outside of it."""

    def test_analyze(self):
        e2e.not_instrumented(self)
        root = self.folder / "root"
        (root / "real").mkdir(parents=True)
        (root / "opt").symlink_to("/real")  # absolute links are the root's own
        program = self.folder / "saxpy"
        shutil.copy(SAXPY, program)
        self.run_program(program, env=e2e.preloaded("12.0", KSHIM_REPORT=self.folder / "reports" / "%p.jsonl"))
        [report] = (self.folder / "reports").glob("*.jsonl")
        text = report.read_text().replace(str(program), "/opt/saxpy")
        report.write_text(text)
        shutil.move(program, root / "real" / "saxpy")

        def have(*argv):
            [finding] = json.loads(self.kshim("analyze", "--format", "json", *argv, report).stdout)["findings"][:1]
            return finding["have"], " ".join(finding["evidence"])

        self.assertIn("no longer there", have()[1])
        known, said = have("--root", root)
        self.assertNotIn("no longer there", said)
        self.assertEqual(known, ["sm_80", "sm_90"])
        self.assertEqual(self.kshim("analyze", "--root", self.folder / "missing", report).returncode, 2)


class Released(e2e.Case):
    def test_the_command_in_a_container(self):
        """docs/ci/container.sh: a command in a folder, an image that has a C library and nothing else."""
        if why := podman_here.works(self.folder):
            self.skipTest(f"podman starts no container here: {why}")
        root = self.folder / "root"
        podman_here.add(root, e2e.KSHIM, "/gone")
        (root / "gone").unlink()
        podman_here.add(root, "/bin/sh")
        (root / "etc").mkdir(exist_ok=True)
        kshim = self.folder / "kshim" / "bin"
        kshim.mkdir(parents=True)
        shutil.copy(e2e.KSHIM, kshim)
        shutil.copy(SCALE, self.folder)
        engine = self.folder / "engine"
        # What the machine's podman needs here stands between the script's options.
        engine.write_text(f"#!/bin/sh\nshift\nexec unshare -m sh -c '{podman_here.INSIDE}' sh {self.folder} podman --root {self.folder}/storage --runroot {self.folder}/run "
                          f"--storage-driver vfs run {' '.join(podman_here.LIMITS[2:])} --rootfs=true \"$@\"\n")
        engine.chmod(0o755)
        script = e2e.SOURCE / "docs" / "ci" / "container.sh"
        for expect, status in (("8.0", 0), ("9.0", 1)):
            done = self.run_program(script, self.folder / "kshim", root, "--expect", expect, "libscale.so", env=e2e.clean_environment(CONTAINER_ENGINE=engine))
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)


if __name__ == "__main__":
    e2e.main()
