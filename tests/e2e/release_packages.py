#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release-packages: the same bytes twice, and what is in the packages, of each architecture that tools/release-build left."""
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
FLOOR = SOURCE / "build/floor"
MACHINES = {"x86_64": ("amd64", 62), "aarch64": ("arm64", 183)}  # Debian's name, e_machine
WANTED = {"kshim": {"bin/kshim", "lib/libkshim.so", "lib/libkshim-audit.so", "lib/libkshim-injection.so", "lib/libkshim-query.so.1", "include/kshim/query.h", "share/doc/kshim/LICENSES.md", "share/doc/kshim/NOTICES"},
          "kshim-simulator": {"lib/kshim/sim/libcuda.so.1", "lib/kshim/sim/libnvidia-ml.so.1", "share/doc/kshim-simulator/LICENSES.md"}}


def packages(arch, folder):
    subprocess.run([SOURCE / "tools/release-packages", "--archives", arch], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "KSHIM_DIST": str(folder)})
    return {path.name: path for path in sorted((folder / arch / "dist").iterdir())}


def members_of(archive):
    """{name below the package's folder: content} of a .tar.gz, a .deb or a wheel, and what is wrong with its members."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {name: opened.read(name) for name in opened.namelist()}, []
    data = archive.read_bytes()
    if archive.suffix == ".deb":
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        bad = [f"{member.name} belongs to {member.uid}" for member in opened if member.uid != 0]
        return {member.name.split("/", 1)[-1]: opened.extractfile(member).read() for member in opened if member.isreg()}, bad


def linked_into(package):
    """{name: SHA-256 of its source, or - } by tools/floor/sources.txt."""
    rows = [[cell.strip() for cell in line.split("|")] for line in (SOURCE / "tools/floor/sources.txt").read_text().splitlines() if not line.startswith("#")]
    component = "simulator" if package == "kshim-simulator" else "kshim"
    return {row[0]: row[2] for row in rows if component in row[4].split(", ")}


def check_document(package, members, folder):
    """The SPDX document is of these files and of these libraries."""
    name = next((name for name in members if name.endswith(f"/{package}.spdx.json")), None)
    if name is None:
        return [f"no {package}.spdx.json"]
    document = json.loads(members[name])
    bad = []
    said = {file["fileName"].removeprefix("./"): next(sum["checksumValue"] for sum in file["checksums"] if sum["algorithm"] == "SHA256")
            for file in document["files"]}
    real = {other: hashlib.sha256(content).hexdigest() for other, content in members.items() if other != name and not other.endswith(".dist-info/RECORD")}
    bad += [f"{name}: {other} is not described, or otherwise" for other in sorted(real.items() ^ said.items())]
    parts = {part["SPDXID"]: part for part in document["packages"]}
    linked = {parts[relation["relatedSpdxElement"]]["name"]: parts[relation["relatedSpdxElement"]]["checksums"][0]["checksumValue"]
              for relation in document["relationships"] if relation["relationshipType"] == "STATIC_LINK"}
    wanted = linked_into(package)
    if linked.keys() != wanted.keys() or any(sum not in ("-", linked[library]) for library, sum in wanted.items()):
        bad.append(f"{name}: {linked} is linked in, not {wanted}")
    validator = FLOOR / "venv/bin/pyspdxtools"
    if validator.exists():
        (folder / "document.spdx.json").write_bytes(members[name])
        done = subprocess.run([validator, "-i", folder / "document.spdx.json"], capture_output=True, text=True)
        bad += [f"{name}: {done.stderr}"] if done.returncode != 0 else []
    else:
        print(f"not validated: {name}: no {validator} (tools/release-packages with its wheels makes it)")
    return bad


def hardened(files, folder):
    """tests/abi's checks of what is shipped, on the very files of a package."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name.rsplit("/", 1)[-1]).write_bytes(content)
    bad = []
    for script in ("hardening.py", "floor.py"):
        done = subprocess.run([sys.executable, "-B", SOURCE / "tests/abi" / script, "--floor=2.17", *sorted(folder.iterdir())], capture_output=True, text=True)
        bad += done.stdout.splitlines() + done.stderr.splitlines() if done.returncode != 0 else []
    return bad


def check(arch, path, folder):
    debian, machine = MACHINES[arch]
    package = re.match(r"kshim(?:[-_]simulator)?", path.name).group().replace("_", "-")
    package = package if package == "kshim-simulator" else "kshim"
    members, bad = members_of(path)
    bad += check_document(package, members, folder)
    names = {name.removeprefix("usr/") for name in members}
    if path.suffix != ".whl":
        other = WANTED["kshim" if package == "kshim-simulator" else "kshim-simulator"]
        bad += [f"no {name}" for name in WANTED[package] - names] + [f"{name}, which is the other package's" for name in other & names]
    elif f"manylinux_2_17_{arch}" not in path.name:
        bad.append("no tag manylinux_2_17")
    files = {name: content for name, content in members.items() if content.startswith(b"\x7fELF")}
    bad += [f"{name} is for another machine" for name, content in files.items() if int.from_bytes(content[18:20], "little") != machine]
    if not files:
        bad.append("no program and no library")
    if arch == platform.machine():
        bad += hardened(files, folder / f"{path.name}.files")
    if path.suffix == ".deb":
        field = subprocess.run(["dpkg-deb", "--field", path, "Architecture"], check=True, capture_output=True, text=True).stdout.strip()
        bad += [f"for {field}"] if field != debian else []
    return [f"{path.name}: {line}" for line in bad]


def check_arch(arch, one, other):
    first = packages(arch, one)
    time.sleep(1.1)  # times in archives are whole seconds: another one must not show
    second = packages(arch, other)
    bad = []
    if list(first) != list(second) or len(first) != 5:
        bad.append(f"{list(first)} and {list(second)}")
    bad += [f"{name} differs" for name in first if first[name].read_bytes() != second[name].read_bytes()]
    wheels = sorted((FLOOR / arch / "dist").glob("*.whl"))
    for path in [*first.values(), *wheels]:
        if path.name != "SHA256SUMS":
            bad += check(arch, path, one)
    print(f"{arch}: the same twice: {', '.join(first)}; wheels there: {len(wheels)}")
    return bad


def main():
    built = [arch for arch in MACHINES if (FLOOR / arch / "build/analyzer/kshim").exists()]
    if not built or not shutil.which("dpkg-deb"):
        print("skipped: no release build (tools/release-build), or no dpkg-deb")
        return 77
    bad = []
    for arch in built:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            bad += check_arch(arch, pathlib.Path(one), pathlib.Path(other))
    print("\n".join(f"FAILED: {line}" for line in bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
