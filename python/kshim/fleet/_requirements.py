# SPDX-License-Identifier: Apache-2.0
"""What files ask of a machine, in the words of those who place them on machines, and whether packages keep what they declare."""
import collections
import io
import json
import os
import pathlib
import re
import tarfile
import zipfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from .. import _files
from . import _command
from ._command import Refused, harmless

SYSTEMS = ("nvidia-require", "nfd", "wheel-variant", "conda")
MOST_BYTES = 1 << 20
Number = Tuple[int, int]
MAJOR, MINOR = "nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor"


def number(text: str) -> Number:
    """(9, 0) of 9.0; ValueError for other texts."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def named(pair: Number) -> str:
    return f"{pair[0]}.{pair[1]}"


class Served(NamedTuple):
    """The GPUs that kshim knows and that the files run on."""
    known: List[Number]
    runs: Dict[Number, bool]
    compiled: Dict[Number, bool]  # from PTX, in part or all
    newer: bool  # newer ones compile the PTX of every file
    cuda: Number  # of the oldest driver that compiles all of that PTX; (0, 0): none is needed
    runtime: Number  # the newest major version of a CUDA runtime that a file runs with
    archs: List[str]  # 90_real, 120_virtual
    unread: bool


def served_by(paths: Iterable[str]) -> Served:
    gpus = [row for row in _command.answer("scan", "--list-gpus", "--format", "json")["gpus"] if number(row["compute_capability"]) >= (5, 0)]
    scan = _command.answer("scan", "--format", "json", "--target", ",".join(row["compute_capability"] for row in gpus), *paths)
    objects = scan["objects"]
    if not objects:
        raise Refused("there is no device code in what was named", 3)
    broken = {gpu["compute_capability"] for finding in scan["findings"] if finding["severity"] == "error" for gpu in finding["gpus"]}
    x86 = all((row["format"] or "").endswith("x86-64") for row in objects)  # Jetson and Drive have no x86 processor
    known, runs, compiled, cuda = [], {}, {}, (0, 0)
    for gpu in gpus:
        if x86 and gpu["tegra"]:
            continue
        cc = number(gpu["compute_capability"])
        known.append(cc)
        verdicts = [(row, verdict) for row in objects for verdict in row["targets"] if verdict["target"] == f"sm_{cc[0]}{cc[1]}"]
        runs[cc] = any(verdict["sass"] + verdict["jit"] for _, verdict in verdicts) and gpu["compute_capability"] not in broken
        by_jit = [row for row, verdict in verdicts if verdict["jit"]]
        compiled[cc] = runs[cc] and bool(by_jit)
        if compiled[cc]:
            cuda = max([cuda, *(number(image["cuda"]) for row in by_jit for image in row["images"] if image["cuda"])])
    newer = all(any(image["kind"] == "ptx" and image["arch"][-1].isdigit() for image in row["images"])
                or not any(verdict["sass"] + verdict["jit"] + verdict["lacking"] for verdict in row["targets"]) for row in objects)
    archs = {(*arch_key(image["arch"]), image["kind"] == "ptx") for row in objects for image in row["images"] if image["kind"] in ("cubin", "ptx")}
    return Served(known, runs, compiled, newer, cuda, max((row["runtime"] or 0, 0) for row in objects),
                  [f"{digits}{suffix}_{'virtual' if ptx else 'real'}" for digits, suffix, ptx in sorted(archs)], scan["unread"])


def arch_key(arch: str) -> Tuple[int, str]:
    found = re.fullmatch(r"\w+?_(\d+)([af]?)", arch)
    assert found is not None, arch
    return int(found[1]), found[2]


def ranges(known: List[Number], runs: Dict[Number, bool], newer: bool) -> List[Tuple[Number, Optional[Number]]]:
    """Runs of GPUs that are served, from and to; no end where newer ones are served too."""
    out: List[Tuple[Number, Optional[Number]]] = []
    before = False
    for gpu in known:
        if runs[gpu]:
            out = [*out[:-1], (out[-1][0], gpu)] if before else [*out, (gpu, gpu)]
        before = runs[gpu]
    return [*out[:-1], (out[-1][0], None)] if newer and out and before else out


def constraint(served: List[Tuple[Number, Optional[Number]]], name: str, either: str, also: str = "") -> str:
    """arch>=7.5,arch<=9.0 arch>=12.0: what stands between commas has to hold, of what blanks part one."""
    return either.join(f"{name}>={named(first)}" + (f",{name}<={named(last)}" if last else "") + also for first, last in served)


def require_cuda(served: Served) -> str:
    """GPUs that find SASS take any driver that knows them and serves the runtime; the others one that compiles the PTX."""
    every = max(served.cuda, served.runtime)
    if every == (0, 0):
        return ""
    parts = []
    if served.runtime < every:
        here = {gpu: served.runs[gpu] and not served.compiled[gpu] for gpu in served.known}
        sass = constraint(ranges(served.known, here, False), "arch", " ", f",cuda>={named(served.runtime)}" if served.runtime > (0, 0) else "")
        parts = [sass] if sass else []
    return f'NVIDIA_REQUIRE_CUDA="{" ".join([*parts, f"cuda>={named(every)}"])}"\n'


def artifact(served: Served) -> str:
    """Of Node Feature Discovery; its readers take JSON, which is YAML too."""
    minors: Dict[str, List[str]] = collections.defaultdict(list)
    for gpu in served.known:
        if served.runs[gpu]:
            minors[str(gpu[0])].append(str(gpu[1]))
    rules = [{"matchFeatures": [{"feature": "local.label", "matchExpressions": {MAJOR: {"op": "In", "value": [major]}, MINOR: {"op": "In", "value": minor}}}]}
             for major, minor in minors.items()]
    return json.dumps({"version": "v1alpha1", "compatibilities": [{"description": "NVIDIA GPUs that the image has code for",
                                                                   "rules": [{"name": "nvidia gpu", "matchAny": rules}]}]}, indent=2) + "\n"


def text_of(served: Served, to: str) -> str:
    found = ranges(served.known, served.runs, served.newer)
    if to == "nvidia-require":
        return f'NVIDIA_REQUIRE_ARCH="{constraint(found, "arch", " ")}"\n{require_cuda(served)}'
    if to == "nfd":
        return artifact(served)
    if to == "conda":
        return f"__cuda_arch {constraint(found, '', '|')}\n"
    return "".join(f"nvidia :: sm_arch :: {arch}\n" for arch in served.archs)


class Declared(NamedTuple):
    """What a package, an image or the command line promises: all of `conditions` at a time."""
    to: str
    source: str
    conditions: List[str]  # >=7.5,<9.0; of a wheel variant 90_real
    drivers: List[str]  # >=12.8, on the CUDA version of the driver


OPERATORS: Dict[str, Callable[[Number, Number], bool]] = {
    ">=": lambda a, b: a >= b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b,
    "!=": lambda a, b: a != b, "=": lambda a, b: a == b, "==": lambda a, b: a == b, "": lambda a, b: a == b}


def meets(have: Number, conda: bool, text: str) -> Optional[bool]:
    """Whether a GPU (or, of conda, a version) meets conditions; those on something else are taken to be met. None: it is no such text."""
    met: Optional[bool] = None
    for choice in text.split("|") if conda else text.split():
        parts = [part for part in re.split(r"[, ]", choice) if part]
        if not parts:
            continue
        holds = True
        for part in parts:
            found = re.fullmatch(r"([^<>=!]*)([<>=!]*)(.*)", part, re.S)
            assert found is not None
            name, op, version = ("arch", found[2], found[3]) if conda and not found[1] else ("arch", "", part) if conda else (found[1], found[2], found[3])
            if name != "arch":
                if not name or not op:
                    return None
                continue
            version = version.rstrip("*.")
            if op not in OPERATORS or not re.fullmatch(r"\d+(\.\d+)?", version):
                return None
            holds = holds and OPERATORS[op](have, number(version))
        met = bool(met) or holds
    return met


def promised(gpu: Number, declared: Declared) -> bool:
    for condition in declared.conditions:
        met = meets(gpu, declared.to != "nvidia-require", condition)
        if met is None:
            raise Refused(f"{declared.source}: `{harmless(condition)}` is no condition; write {'arch' if declared.to == 'nvidia-require' else ''}>=7.5")
        if not met:
            return False
    return True


def oldest_driver(declared: Declared) -> Optional[Number]:
    """The oldest that the conditions allow, of those that kshim knows."""
    for cuda in sorted(number(text) for text in _command.answer("scan", "--list-gpus", "--format", "json")["cuda"]):
        allowed = True
        for condition in declared.drivers:
            met = meets(cuda, True, condition)
            if met is None:
                raise Refused(f"{declared.source}: `{harmless(condition)}` is no version of CUDA; write >=12.8")
            allowed = allowed and met
        if allowed:
            return cuda
    return None


def differences(served: Served, declared: Declared) -> Tuple[List[str], List[str]]:
    """What is promised and not there, and the other way round."""
    oldest = oldest_driver(declared) if declared.drivers else None
    broken = [f"{named(gpu)} with a driver for CUDA {named(oldest)} (its PTX is for {named(served.cuda)})" for gpu in served.known
              if oldest and oldest < served.cuda and served.compiled[gpu] and (declared.to == "wheel-variant" or promised(gpu, declared))]
    if not declared.conditions:
        return broken, []
    if declared.to == "wheel-variant":
        promise = sorted(set(declared.conditions))
        return broken + [arch for arch in promise if arch not in served.archs], [arch for arch in served.archs if arch not in promise]
    wanted = {gpu: promised(gpu, declared) for gpu in served.known}
    return (broken + [named(gpu) for gpu in served.known if wanted[gpu] and not served.runs[gpu]],
            [named(gpu) for gpu in served.known if served.runs[gpu] and not wanted[gpu]])


def compare(served: Served, declared: Declared) -> Tuple[str, bool]:
    broken, unused = differences(served, declared)
    what = harmless(f"{declared.source} ({', '.join([*declared.conditions, *(f'CUDA {driver}' for driver in declared.drivers)])})")
    out = "" if broken else f"ok: {what}: the files have what is declared\n"
    for word, meaning, rows in (("error", "promised and not there", broken), ("note", "there and not promised", unused)):
        if rows:
            out += f"{word}: {what}: {meaning}: {harmless(', '.join(rows))}\n"
    return out, not broken


# What was declared, and where.

def add_conda(spec: str, declared: Declared) -> None:
    """Of a dependency: `__cuda_arch >=7.5` and `__cuda >=12.8`, nothing of others."""
    found = re.match(r"(__cuda_arch|__cuda)(?![^ <>=!~]) *([^ ]+)", spec)
    if found:
        (declared.conditions if found[1] == "__cuda_arch" else declared.drivers).append(found[2])


def holds(expression: Any, have: int) -> bool:
    values, op = expression.get("value") or [], expression.get("op")
    if op in ("In", "NotIn"):
        return any(value in (str(have), have) for value in values) == (op == "In")
    if op == "Exists":
        return True
    if op in ("Gt", "Lt"):
        than = int(str(values[0])) if values and str(values[0]).isdigit() else 0
        return have > than if op == "Gt" else have < than
    raise Refused(f"--declared: {MAJOR} is compared by `{harmless(str(op))}`; write In, NotIn, Gt or Lt")


def matches(rule: Any, gpu: Number) -> bool:
    return all(holds(feature["matchExpressions"][key], have) for feature in rule.get("matchFeatures") or []
               for key, have in ((MAJOR, gpu[0]), (MINOR, gpu[1])) if key in (feature.get("matchExpressions") or {}))


def declared_by_artifact(text: str, known: List[Number]) -> Declared:
    data = loaded(text)
    if not isinstance(data, dict) or "compatibilities" not in data:
        raise Refused("--declared: is no image compatibility artifact in JSON; `yq -o json` makes one of YAML")
    allowed = [gpu for gpu in known if any(all(matches(rule, gpu) and (not rule.get("matchAny") or any(matches(each, gpu) for each in rule["matchAny"]))
                                               for rule in choice.get("rules") or []) for choice in data["compatibilities"])]
    return Declared("nfd", "--declared", ["|".join(f"=={named(gpu)}" for gpu in allowed) or "<0.0"], [])


def declared_by_text(to: str, text: str, known: List[Number]) -> Declared:
    if to == "nfd":
        return declared_by_artifact(text, known)
    out = Declared(to, "--declared", [], [])
    for line in filter(None, re.split(r"[\n,]" if to == "wheel-variant" else r"\n", text)):
        if to == "wheel-variant":
            out.conditions.extend(re.findall(r"sm_arch :: ([^ \r\"\]]*)", line)[:1])
        elif to == "conda" and "__cuda" in line:
            add_conda(line[line.index("__cuda"):], out)
        else:
            at = line.find("NVIDIA_REQUIRE_")
            out.conditions.append(re.sub(r"^[\"']|[\"']\s*$", "", line[line.index("=", at) + 1:] if at >= 0 and "=" in line[at:] else line).strip())
    if not out.conditions and not out.drivers:
        raise Refused("--declared: says nothing on GPUs")
    return out


def loaded(text: "str | bytes") -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def texts(data: Any, key: str) -> List[str]:
    rows = data.get(key) if isinstance(data, dict) else None
    return [row for row in rows if isinstance(row, str)] if isinstance(rows, list) else []


def declared_by_member(source: str, name: str, data: bytes) -> Declared:
    content = loaded(data)
    if name.endswith("variant.json"):
        out = Declared("wheel-variant", source, [], [])
        variants = content.get("variants") if isinstance(content, dict) else None
        for variant in variants.values() if isinstance(variants, dict) else ():
            nvidia = variant.get("nvidia") if isinstance(variant, dict) else None
            out.conditions.extend(texts(nvidia, "sm_arch"))
            out.drivers.extend(f">={bound}" for bound in texts(nvidia, "cuda_version_lower_bound"))
        return out
    out = Declared("conda", source, [], [])
    for key in ("depends", "constrains", "weak", "strong", "noarch", "weak_constrains", "strong_constrains"):
        for spec in texts(content, key):
            add_conda(spec, out)
    return out


def declares(name: str) -> bool:
    return name.endswith(".dist-info/variant.json") or name in ("info/index.json", "info/run_exports.json")


def in_tar(archive: tarfile.TarFile) -> Iterator[Tuple[str, bytes]]:
    for member in archive:
        name = member.name[2:] if member.name.startswith("./") else member.name
        if member.isfile() and declares(name) and member.size <= MOST_BYTES:
            file = archive.extractfile(member)
            assert file is not None
            yield name, file.read()


def members(path: str) -> Iterator[Tuple[str, bytes]]:
    """The declarations in a package: (name, contents)."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for row in archive.infolist():
                if row.filename.startswith("info-") and row.filename.endswith(".tar.zst"):  # .conda
                    try:
                        import zstandard  # type: ignore[import-not-found]
                    except ImportError:
                        raise Refused(f"{path}: a .conda package is compressed with Zstandard; pip install zstandard", 3) from None
                    with archive.open(row) as packed:
                        unpacked = zstandard.ZstdDecompressor().stream_reader(packed).read(MOST_BYTES * 64)
                    with tarfile.open(fileobj=io.BytesIO(unpacked)) as inner:
                        yield from ((f"{row.filename}!{name}", data) for name, data in in_tar(inner))
                elif declares(row.filename) and row.file_size <= MOST_BYTES:
                    yield row.filename, archive.read(row)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            yield from in_tar(archive)


def environments(path: str) -> Iterator[Tuple[str, List[str]]]:
    """(name, variables) of each image in a docker-archive, an OCI archive or an OCI layout."""
    if os.path.isdir(path):
        def read(name: str) -> bytes:
            place = pathlib.Path(path, name)
            return place.read_bytes() if place.is_file() and place.stat().st_size <= MOST_BYTES else b""
        yield from images_of(read)
    elif not zipfile.is_zipfile(path) and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            def member(name: str) -> bytes:
                for spelled in (name, f"./{name}"):
                    try:
                        row = archive.getmember(spelled)
                    except KeyError:
                        continue
                    file = archive.extractfile(row) if row.isfile() and row.size <= MOST_BYTES else None
                    return file.read() if file else b""
                return b""
            yield from images_of(member)


def images_of(read: Callable[[str], bytes]) -> Iterator[Tuple[str, List[str]]]:
    def variables(config: str) -> List[str]:
        data = loaded(read(config))
        return texts(data.get("config"), "Env") if isinstance(data, dict) else []

    docker = loaded(read("manifest.json"))
    for row in docker if isinstance(docker, list) else ():
        if isinstance(row, dict) and isinstance(row.get("Config"), str):
            yield (texts(row, "RepoTags") or [""])[0], variables(row["Config"])
    if isinstance(docker, list):
        return
    pending = [("", loaded(read("index.json")))]
    for name, data in pending:
        if not isinstance(data, dict):
            continue
        if isinstance(data.get("config"), dict) and str(data["config"].get("digest", "")).count(":") == 1:
            yield name, variables("blobs/" + data["config"]["digest"].replace(":", "/"))
        for row in data.get("manifests") or []:
            if isinstance(row, dict) and str(row.get("digest", "")).count(":") == 1 and len(pending) < 100:
                label = (row.get("annotations") or {}).get("org.opencontainers.image.ref.name", name)
                pending.append((label, loaded(read("blobs/" + row["digest"].replace(":", "/")))))


def declared_by(path: str) -> List[Declared]:
    out: List[Declared] = []
    if not os.path.isdir(path) and not os.path.isfile(path):
        raise Refused(f"{harmless(path)}: is no file", 3)
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "index.json")) and not os.path.exists(os.path.join(path, "manifest.json")):
        for name in sorted(str(each) for each in pathlib.Path(path).rglob("*") if re.search(r"\.(whl|conda|tar\.bz2)$", each.name) and each.is_file()):
            out += declared_by(name)
        return out
    try:
        for name, variables in environments(path):
            conditions = [value for key, _, value in (each.partition("=") for each in variables) if key.startswith("NVIDIA_REQUIRE_") and value]
            out.append(Declared("nvidia-require", f"{path}!{name}" if name else path, conditions, []))
        if not os.path.isdir(path):
            out += [declared_by_member(f"{path}!{name}", name, data) for name, data in members(path)]
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise Refused(f"{path}: {error}", 3) from None
    return [each for each in out if each.conditions or each.drivers]


def run(to: str, declared: Optional[str], verify: bool, paths: List[str], output: str) -> int:
    if declared is not None and not to:
        raise Refused("--declared needs --to SYSTEM: the system whose notation it is")
    if not to and not verify:
        raise Refused("--to SYSTEM is missing, or --verify")
    if declared is not None:
        served = served_by(paths)
        if declared.startswith("@"):
            try:
                declared = _files.text(declared[1:])
            except OSError as error:
                raise Refused(f"--declared {declared}: {error}") from None
        text, kept = compare(served, declared_by_text(to, declared, served.known))
        _command.write(output, text)
        return 0 if kept and not served.unread else 1
    if not verify:
        served = served_by(paths)
        if not any(served.runs.values()):  # nothing in a requirement means every GPU
            raise Refused("there is no GPU that all of these files have code for: nothing to require; kshim scan says what each file has", 1)
        _command.write(output, text_of(served, to))
        return 1 if served.unread else 0
    every, good = "", True
    for path in paths:  # each by itself: one wheel does not keep what another promises
        found = [each for each in declared_by(path) if to in ("", each.to)]
        if not found:
            raise Refused(f"--verify {harmless(path)}: declares nothing on GPUs (a wheel's variant.json, a conda package's __cuda_arch or __cuda, an "
                          "image's NVIDIA_REQUIRE_*); --to SYSTEM --declared TEXT says what is promised", 3)
        served = served_by([path])
        good = good and not served.unread
        for each in found:
            text, kept = compare(served, each)
            every += text
            good = good and kept
    _command.write(output, every)
    return 0 if good else 1
