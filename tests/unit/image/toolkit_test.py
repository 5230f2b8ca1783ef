# SPDX-License-Identifier: Apache-2.0
"""The image readers and rules against tools that others wrote: what nvcc builds is listed by image_probe and compared with
nvcc's own arguments, readelf, ptxas's reports, cuobjdump where there is one, and ptxas's verdict on every pair of PTX target
and GPU. Needs no GPU and no driver.

toolkit_test.py PROBE NVCC
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = r"""
__constant__ int table[4] = {1, 2, 3, 4};
__device__ int counter;
__managed__ int both;
extern "C" __global__ void first(int* out, double scale, char c) {
  __shared__ int tile[33];
  tile[threadIdx.x] = table[threadIdx.x & 3] * c;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1] * scale + counter + both;
}
struct Large { char bytes[1000]; short tail; };
__global__ void __launch_bounds__(96) second(Large large, short* p) { *p = large.tail + large.bytes[*p]; }
__global__ void third() {}
int main() { third<<<1, 1>>>(); }
"""
KERNELS = {"first": "3/17", "_Z6second5LargePs": "2/1016", "_Z5thirdv": "0/0"}
VARIABLES = {"table": 16, "counter": 4, "both": 4}

problems = []


def check(what, got, wanted):
    if got != wanted:
        problems.append(f"{what}\n    got    {got}\n    wanted {wanted}")


def run(*command, cwd=None, stdin=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, input=stdin, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Probe:
    def __init__(self, path):
        self.path = path

    def list(self, *files):
        """[(section, fatbin's offset, kind, architecture, PTX ISA, compression, bytes)]"""
        return [tuple(line.split()) for line in run(self.path, "list", *files).splitlines()]

    def contents(self, file):
        """[(architecture, {kernel: {field: value}}, {variable: size})], one an image"""
        images = []
        for line in run(self.path, "kernels", file).splitlines():
            words = line.split()
            if words[0] == "kernel":
                images[-1][1][words[1]] = dict(word.split("=") for word in words[2:])
            elif words[0] == "variable":
                images[-1][2][words[1]] = int(words[2].split("=")[1])
            else:
                images.append((words[3], {}, {}))
        return images


def gencodes(archs, ptx=()):
    return [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs] + [
        f"-gencode=arch=compute_{arch},code=compute_{arch}" for arch in ptx]


def names(listing):
    return sorted(row[3] for row in listing)


def wanted_names(archs, ptx):
    return sorted([f"sm_{arch}" for arch in archs] + [f"compute_{arch}" for arch in ptx])


def suffixed(bases):
    """Targets with suffixes that this toolkit makes, by the rule of the CUDA Programming Guide: a from 90, f from 100."""
    return [f"{base}{suffix}" for base in bases for suffix in ("a", "f")
            if (suffix == "a" and int(base) >= 90) or (suffix == "f" and int(base) >= 100)]


def check_cubins(probe, folder, archs, resources):
    """Loose cubins and PTX beside readelf and ptxas -v."""
    for arch in archs:
        cubin = folder / f"ground.sm_{arch}.cubin"
        ptx = folder / f"ground.compute_{arch}.ptx"
        check(f"{cubin.name}: architecture", names(probe.list(cubin)), [f"sm_{arch}"])
        header = run("readelf", "-hW", cubin)
        check(f"{cubin.name}: ABI version", re.search(r"ABI Version:\s+(\d+)", header)[1], "8")
        symbols = {}
        for line in run("readelf", "-sW", cubin).splitlines():
            # Num: Value Size FUNC GLOBAL DEFAULT [<other>: 10] Ndx Name
            found = re.match(r"\s*\d+: \w+\s+(\d+) FUNC .*<other>: 10\]\s+\d+ (\S+)$", line)
            if found:
                symbols[found[2]] = int(found[1])
        [(_, kernels, variables)] = probe.contents(cubin)
        check(f"{cubin.name}: kernels and readelf's entry symbols", set(kernels), set(symbols))
        check(f"{cubin.name}: kernels", {name: each["parameters"] for name, each in kernels.items()}, KERNELS)
        check(f"{cubin.name}: variables", variables, VARIABLES)
        check(f"{cubin.name}: launch bounds", kernels["_Z6second5LargePs"]["max_threads"], "96")
        check(f"{cubin.name}: registers and shared memory, as ptxas -v reports them",
              {name: (int(each["registers"]), int(each["shared"])) for name, each in kernels.items()}, resources[arch])
        text = ptx.read_text()
        [row] = probe.list(ptx)
        check(f"{ptx.name}: target", row[3], "compute_" + re.search(r"^\.target sm_(\w+)", text, re.M)[1])
        check(f"{ptx.name}: PTX ISA", row[4], re.search(r"^\.version (\S+)", text, re.M)[1])
        [(_, kernels, variables)] = probe.contents(ptx)
        check(f"{ptx.name}: kernels", {name: each["parameters"] for name, each in kernels.items()}, KERNELS)
        check(f"{ptx.name}: variables", variables, VARIABLES)
        check(f"{ptx.name}: launch bounds", kernels["_Z6second5LargePs"]["max_threads"], "96")
        check(f"{ptx.name}: shared memory", {name: int(each["shared"]) for name, each in kernels.items()},
              {name: shared for name, (_, shared) in resources[arch].items()})


def resources_of(report):
    """{arch: {kernel: (registers, bytes of shared memory)}} from ptxas -v."""
    out = collections.defaultdict(dict)
    current = None
    for line in report.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)' for 'sm_(\w+)'", line):
            current = found[2], found[1]
        elif found := re.search(r"Used (\d+) registers(.*)", line):
            shared = re.search(r"(\d+) bytes smem", found[2])
            out[current[0]][current[1]] = (int(found[1]), int(shared[1]) if shared else 0)
    return out


def cuobjdump_names(cuobjdump, file):
    """Its lists show the suffix f or not, as it pleases (13.5: for PTX only), and leave relocatable code out."""
    out = []
    for option, ending, prefix in (("--list-elf", "cubin", "sm_"), ("--list-ptx", "ptx", "compute_")):
        done = subprocess.run([cuobjdump, option, file], text=True, capture_output=True)
        out += [prefix + found for found in re.findall(rf"sm_(\d+a?)f?\.{ending}", done.stdout)]
    return sorted(out)


def check_containers(probe, nvcc, cuobjdump, folder, source):
    """Fatbins, objects, programs: the images nvcc was asked for are the images that are listed."""
    lists = {
        "one": (["80"], []), "several": (["75", "86", "90"], ["90"]), "specific": (["90a", "100f", "120a"], []),
        "ptx_only": ([], ["75", "120f"]), "mixed": (["80", "100a"], ["80", "100f"])}
    for name, (archs, ptx) in lists.items():
        for mode, compressions in (("none", {"stored"}), ("speed", {"stored", "lz4"}), ("size", {"stored", "zstd"}),
                                   ("balance", {"stored", "zstd"})):
            if name not in ("one", "several") and mode != "size":
                continue
            fatbin = folder / f"{name}.{mode}.fatbin"
            if mode == "size":
                run(nvcc, "-fatbin", f"-compress-mode={mode}", *gencodes(archs, ptx), "-o", fatbin, source)
            else:  # nvcc's last step alone, on what its other steps have made
                run(nvcc.parent / "fatbinary", f"--create={fatbin}", "-64", f"--compress-mode={mode}",
                    *(f"--image3=kind=elf,sm={arch},file={folder / f'ground.sm_{arch}.cubin'}" for arch in archs),
                    *(f"--image3=kind=ptx,sm={arch},file={folder / f'ground.compute_{arch}.ptx'}" for arch in ptx))
            rows = probe.list(fatbin)
            what = f"{fatbin.name}"
            check(f"{what}: images", names(rows), wanted_names(archs, ptx))
            check(f"{what}: compression", {row[5] for row in rows} - compressions, set())
            for image, kernels, variables in probe.contents(fatbin):
                check(f"{what}: kernels of {image}", {k: v["parameters"] for k, v in kernels.items()}, KERNELS)
                check(f"{what}: variables of {image}", variables, VARIABLES)
            if cuobjdump:
                check(f"{what}: cuobjdump's list", cuobjdump_names(cuobjdump, fatbin),
                      sorted(re.sub("f$", "", image) for image in names(rows)))
    archs, ptx = ["80", "90a"], ["90"]
    for option, file, section, made_of in ((("-c",), "object.o", ".nv_fatbin", source), (("-dc",), "relocatable.o", "__nv_relfatbin", source),
                                           ((), "program", ".nv_fatbin", folder / "object.o"), (("-rdc=true",), "linked", None, folder / "relocatable.o")):
        path = folder / file
        run(nvcc, *option, *gencodes(archs, ptx), "-o", path, made_of)
        rows = probe.list(path)
        sections = {row[0] for row in rows}
        present = set(re.findall(r"\s(\.nv_fatbin|__nv_relfatbin)\s+PROGBITS", run("readelf", "-SW", path)))
        check(f"{file}: sections, as readelf lists them", sections, present)
        if section:
            ours = [row for row in rows if row[0] == section]
            check(f"{file}: every wanted image", set(wanted_names(archs, ptx)) - set(names(ours)), set())
            check(f"{file}: no other image", set(names(ours)) - set(wanted_names(archs, ptx)), set())
        else:  # linked: cubins are prelinked into .nv_fatbin, PTX stays in __nv_relfatbin
            check(f"{file}: cubins", {row[3] for row in rows if row[0] == ".nv_fatbin" and row[2] == "cubin"},
                  {f"sm_{arch}" for arch in archs})
            check(f"{file}: PTX", {row[3] for row in rows if row[0] == "__nv_relfatbin" and row[2] == "ptx"},
                  {f"compute_{arch}" for arch in ptx})
        if cuobjdump and section == ".nv_fatbin":
            check(f"{file}: cuobjdump's list", cuobjdump_names(cuobjdump, path), names(rows))


def check_verdicts(probe, ptxas, folder, bases, release, isa):
    """Rules P1, P2, P3, P5, C2R: is PTX for this target compiled for this GPU? ptxas is asked, every pair."""
    old = ["30", "35", "50", "52", "53", "60", "61", "62", "70", "72"]
    targets = old + bases + suffixed(bases) + ["101", "101a", "101f"]
    for target in targets:
        (folder / f"{target}.ptx").write_text(f".version {isa}\n.target sm_{target}\n.address_size 64\n.entry k() {{ ret; }}\n")

    def accepted(target, base):
        for arch in [base] + suffixed([base]):
            # A file of the pair's own, not /dev/null: a compiler run by root may delete its output when it fails.
            command = [ptxas, f"-arch=sm_{arch}", "-o", folder / f"{target}.{arch}.cubin", folder / f"{target}.ptx"]
            if subprocess.run(command, capture_output=True).returncode == 0:
                return True
        return False

    pairs = [(target, base) for target in targets for base in bases]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda pair: accepted(*pair), pairs))
    asked = "".join(f"compute_{target}@{isa} {base[:-1]}.{base[-1]} {release}\n" for target, base in pairs)
    answers = run(probe.path, "judge", stdin=asked).splitlines()
    check("answers", len(answers), len(pairs))
    for (target, base), verdict, answer in zip(pairs, verdicts, answers):
        check(f"compute_{target} on {base} ({answer})", answer.startswith("yes"), verdict)
    return len(pairs), sum(verdicts)


def main():
    probe, nvcc = Probe(sys.argv[1]), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "")
    if not nvcc.is_file() or not os.access(nvcc, os.X_OK):
        print("skipped: no nvcc")
        return 77
    release = re.search(r"release (\d+\.\d+)", run(nvcc, "--version"))[1]
    if int(release.split(".")[0]) < 13:
        print(f"skipped: CUDA {release} does not make the architectures of this test")
        return 77
    bases = re.findall(r"sm_(\d+)\b", run(nvcc, "--list-gpu-code"))
    cuobjdump = shutil.which("cuobjdump", path=os.pathsep.join([str(nvcc.parent), os.environ.get("PATH", "")]))
    if not cuobjdump:
        print("no cuobjdump: its lists are not compared")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = folder / "ground.cu"
        source.write_text(SOURCE)
        archs = bases + suffixed(bases)
        reports = {}

        def build(arch):
            run(nvcc, "-ptx", f"-arch=compute_{arch}", "-o", folder / f"ground.compute_{arch}.ptx", source)
            done = subprocess.run([nvcc.parent / "ptxas", "-v", f"-arch=sm_{arch}", "-o",
                                   folder / f"ground.sm_{arch}.cubin", folder / f"ground.compute_{arch}.ptx"],
                                  text=True, capture_output=True, check=True)
            return done.stdout + done.stderr

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for arch, report in zip(archs, pool.map(build, archs)):
                reports.update({arch: resources_of(report)[arch]})
        check_cubins(probe, folder, archs, reports)
        check_containers(probe, nvcc, cuobjdump, folder, source)
        isa = re.search(r"^\.version (\S+)", (folder / "ground.compute_75.ptx").read_text(), re.M)[1]
        pairs, accepted = check_verdicts(probe, nvcc.parent / "ptxas", folder, bases, release, isa)
        print(f"CUDA {release}: {len(archs)} architectures, {pairs} pairs of PTX target and GPU, {accepted} accepted")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
