#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the reports of a fleet, to measure `kshim analyze` and kshim.fleet with. Nothing of what it makes is committed.

    make_fleet.py [--days D] [--seed S] [--times N[,N...]] PROCESSES FOLDER

FOLDER/scan.json is what `kshim scan --format json` says of the fleet's software; the reports are beside it, one folder a day. The records
are those of a real report (tests/golden/no-image-for-arch), the libraries those of knowledge/wheels.json with the architectures that were
measured there. Programs, users, GPUs, libraries and the numbers of loads are drawn in Zipf's proportions: the k-th is used 1/k as often as
the first. A process fails where one of its libraries has nothing for its GPU, by the rules of docs/compatibility.md. As in real reports, no
list of a file's images is in them. --times: so many times as many loads of each file; with 200 a report has about 1 MB, as the largest of PyTorch have. Of
several numbers each program draws one: 1,40,200 mixes reports of 5 KB, 0.2 MB and 1 MB. `package` records stand for what `kshim analyze` finds on a node that has the files.
"""
import argparse
import bisect
import hashlib
import itertools
import json
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests/golden/no-image-for-arch/report.jsonl"
GPUS = [("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA H100 80GB HBM3", "9.0"), ("Tesla V100-SXM2-32GB", "7.0"), ("NVIDIA B200", "10.0"),
        ("NVIDIA L40S", "8.9"), ("Tesla T4", "7.5"), ("NVIDIA GeForce RTX 5090", "12.0"), ("NVIDIA A10", "8.6")]
TIME = "@time"
DRIVERS = [("12.4", "550.54.15"), ("12.8", "570.86.15"), ("13.0", "580.82.07")]


class Zipf:
    """Draws a number below `count`."""
    def __init__(self, count, generator):
        self.sums = list(itertools.accumulate(1 / (rank + 1) for rank in range(count)))
        self.generator = generator

    def draw(self):
        return bisect.bisect_left(self.sums, self.generator.random() * self.sums[-1])


def libraries():
    """One library a row of wheels: its object record without an id."""
    for row in json.loads((ROOT / "knowledge/wheels.json").read_text())["wheels"]:
        cubin = [(f"sm_{arch}", None, "cubin") for arch in row.get("cubin", "").split()]
        ptx = [(f"compute_{arch}", "8.0", "ptx") for arch in row.get("ptx", "").split()]
        name = row["distribution"].replace("-", "_")
        yield {"package": (row["distribution"], f"{row['last']}+{row['variant']}"),
               "path": f"/opt/venvs/{name}-{row['last']}-{row['variant']}/lib/python3.11/site-packages/{name}/lib{name}.so",
               "build_id": hashlib.sha1(json.dumps(row).encode()).hexdigest(),
               "images": [{"kind": kind, "arch": arch, "isa": isa, "count": 40 + len(arch), "bytes": 1 << 20}
                          for arch, isa, kind in cubin + ptx]}


def number(arch):
    digits = arch.split("_")[1].rstrip("af")
    return int(digits[:-1]), int(digits[-1])


def choice(images, capability):
    """What the driver takes for a GPU: the image's name and whether it is compiled; none where nothing fits."""
    major, minor = map(int, capability.split("."))

    def fits(image):
        of = number(image["arch"])
        if image["arch"].endswith("a"):
            return of == (major, minor)
        if image["kind"] == "cubin" or image["arch"].endswith("f"):
            return of[0] == major and of[1] <= minor
        return of <= (major, minor)

    for kind in ("cubin", "ptx"):
        names = [image["arch"] for image in images if image["kind"] == kind and fits(image)]
        if names:
            return max(names, key=lambda name: (number(name), name)), kind == "ptx"
    return None


def line(row):
    return json.dumps(row, separators=(",", ":")) + "\n"


class Fleet:
    def __init__(self, options):
        self.generator = random.Random(options.seed)
        self.days = options.days
        rows = [json.loads(text) for text in SAMPLE.read_text().splitlines()]
        self.sample = {row["type"]: row for row in rows}
        self.libraries = list(libraries())
        count = max(20, min(5000, options.processes // 50))
        self.programs, self.users = Zipf(count, self.generator), Zipf(count // 4 + 5, self.generator)
        self.gpus, shelf, loads = Zipf(len(GPUS), self.generator), Zipf(len(self.libraries), self.generator), Zipf(40, self.generator)
        # By the distribution: no program has two releases of one.
        shelves = [{self.libraries[at]["package"][0]: at for at in (shelf.draw() for _ in range(1 + self.generator.randrange(6)))} for _ in range(count)]
        sizes = Zipf(len(options.times), self.generator) if len(options.times) > 1 else None
        times = [options.times[sizes.draw() if sizes else 0] for _ in shelves]
        self.shelves = [[(at, times[program] * (1 + loads.draw())) for at in sorted(held.values())] for program, held in enumerate(shelves)]
        self.bodies = {}

    def body(self, program, gpu, driver):
        """All lines between those of the process, of the device and of the end, cut where each load's time goes, whether it was compiled, and
        how many lines and failures there are."""
        key = program, gpu, driver
        if key not in self.bodies:
            rows = [{**self.sample["driver"], "cuda_version": DRIVERS[driver][0], "kernel_module": DRIVERS[driver][1], "simulated": False},
                    self.sample["library"]]
            failures, loads = 0, []
            for at, (index, turns) in enumerate(self.shelves[program]):
                library = self.libraries[index]
                images, taken = library["images"], choice(library["images"], GPUS[gpu][1])
                rows.append({**self.sample["object"], "id": at + 1, "path": library["path"], "build_id": library["build_id"]})
                rows.append({"type": "package", "object": at + 1, "name": library["package"][0], "version": library["package"][1], "manager": "pip"})
                first = len(loads) + 1
                for turn in range(turns if taken else 1):
                    loads.append(bool(taken and taken[1]))
                    rows.append({**self.sample["module"], "id": len(loads), "object": at + 1, "offset": 4096 * (turn + 1), "result": 0 if taken else 209,
                                 "selected": taken[0] if taken else None, "jit": loads[-1], "ms": TIME, "device": 0})
                if not taken:
                    failures += 1
                    rows.append({**self.sample["failure"], "id": failures, "object": at + 1, "module": first})
                    rows.append({**self.sample["gap"], "object": at + 1, "offset": 4096, "have": [image["arch"] for image in images],
                                 "need": "sm_" + GPUS[gpu][1].replace(".", "")})
            text = "".join(line({"type": row["type"], "seq": seq + 2, "t": (seq + 2) * 1000, **{key: value for key, value in row.items() if key not in ("type", "seq", "t")}})
                           for seq, row in enumerate(rows))
            self.bodies[key] = text.split(line(TIME).rstrip()), loads, len(rows) + 2, failures
        return self.bodies[key]

    def filled(self, pieces, loads):
        """A load takes a fraction of a millisecond, or tens to hundreds of them where the driver compiles."""
        out = [pieces[0]]
        for compiled, piece in zip(loads, pieces[1:]):
            out += f"{self.generator.expovariate(1 / 90) + 5 if compiled else self.generator.expovariate(4) + 0.05:.3f}", piece
        return "".join(out)

    def write(self, at, folder):
        program, user, gpu, draw = self.programs.draw(), self.users.draw(), self.gpus.draw(), self.generator.random
        day = int(draw() * self.days)
        driver = min(2, (3 * day) // self.days)
        pieces, loads, seq, failures = self.body(program, gpu, driver)
        host, pid, month = f"node{(user * 7 + gpu) % 997:03}", 1000 + at, 1 + day // 28 % 12
        date = f"{2025 + day // 336}-{month:02}-{1 + day % 28:02}"
        time = f"{date}T{int(draw() * 24):02}:{int(draw() * 60):02}:00.000Z"
        process = {**self.sample["process"], "run": None, "host": host, "pid": pid, "start": at, "time": time, "exe": f"/home/u{user}/envs/e{program}/bin/python3.11",
                   "argv": [f"/home/u{user}/envs/e{program}/bin/python3.11", f"train{program}.py"], "env": {"SLURM_JOB_ID": str(at // 4)}, "uid": str(10000 + user)}
        name, capability = GPUS[gpu]
        device = {**self.sample["device"], "ordinal": 0, "name": name, "compute_capability": capability, "uuid": f"GPU-{at:08x}-0000-0000-0000-000000000000"}
        end = {**self.sample["end"], "seq": seq, "t": seq * 1000, "time": time, "failures": failures, "modules": len(loads), "dropped": 0}
        place = folder / date
        if place not in self.made:
            place.mkdir(parents=True, exist_ok=True)
            self.made.add(place)
        with open(place / f"{host}.{pid}.jsonl", "w", encoding="utf-8") as file:
            file.write(line(process) + line({**device, "seq": 1}) + self.filled(pieces, loads) + line(end))

    def scan(self):
        return {"schema": "kshim-scan/1", "findings": [],
                "objects": [{"path": library["path"], "member": None, "build_id": library["build_id"], "fatbins": 1, "images": library["images"],
                             "package": " ".join(library["package"])} for library in self.libraries]}

    made = set()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=lambda text: [int(word) for word in text.split(",")], default=[1])
    parser.add_argument("processes", type=int)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    fleet = Fleet(options)
    options.folder.mkdir(parents=True)
    (options.folder / "scan.json").write_text(json.dumps(fleet.scan()))
    for at in range(options.processes):
        fleet.write(at, options.folder)


if __name__ == "__main__":
    main()
