# SPDX-License-Identifier: Apache-2.0
"""What no fix may ask for, whatever the log: held against the tables of knowledge/ and the log itself, not against the code that wrote it."""
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess

KNOWLEDGE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"]) / "knowledge"
IN_USE = pathlib.Path(os.environ.get("KSHIM_KNOWLEDGE", KNOWLEDGE))  # the program's own tables: fixed ones in a test
TABLES = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
          for name in ("gpus", "toolkits", "wheels") for folder in (IN_USE if (IN_USE / f"{name}.json").exists() else KNOWLEDGE,)}
TARGETS = {row["cuda"]: set(row["targets"].split()) for row in TABLES["toolkits"]["toolkits"]}
JETPACKS = {row["cc"]: row["last_cuda"] for row in TABLES["gpus"]["jetpacks"]}
WINDOWS = re.compile(r"\b[A-Z]:[\\/]|\.dll\b|win_amd64|\bWindows (?:10|11)\b|\bplatform: windows\b|\bwin ?1[01]\b", re.IGNORECASE)


def key(release):
    return [int(n) for n in re.findall(r"\d+", release)]


def within(release, row):
    last = key(row["last"])
    return key(row["first"]) <= key(release) and (last == [0] or key(release)[:len(last)] <= last)


def cudas(text):
    """The CUDA that each command installs or builds with."""
    found = re.findall(r"/usr/local/cuda-(\d+\.\d+)|CUDA\\v(\d+\.\d+)|(?:HERMETIC_CUDA_VERSION|cuda_version)=(\d+\.\d+)", text)
    found = [next(filter(None, row)) for row in found]
    wheels = re.findall(r"cupy-cuda(1[1-9])x|\bjax\[cuda(1[2-9])|tensorrt-cu(1\d)", text)
    return found + [f"{n[:-1]}.{n[-1]}" for n in re.findall(r"/whl/cu(\d{2,3})\b", text)] + [f"{max(row)}.0" for row in wheels]


WINDOWS_DRIVERS = {row[of]: row["windows_" + of] for row in TABLES["toolkits"]["toolkits"] for of in ("driver", "minor_driver") if row["windows_" + of]}


@functools.cache
def is_read_by_sh(command):
    """Whether sh reads all of it, and no quotes stand within quotes of the same kind."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and subprocess.run(["bash", "-n", "-c", command], stderr=subprocess.DEVNULL, check=False).returncode == 0


def driver_lines(answer, fix, windows):
    """A driver that a fix asks for: newer than the one that is there, and of its system."""
    loaded = next((match[1] for fact in answer["facts"] if (match := re.match(r"driver (\d+\.[\d.]*\d)", fact))), None)
    for number in re.findall(r"[Dd]river (?:to )?(\d{3}[\d.]*)", fix["title"] + " " + (fix["caveat"] or "")):
        number = number.rstrip(".")
        if loaded and key(loaded)[0] >= 300 and key(number) <= key(loaded):
            yield f"driver {number} where {loaded} is"
        if windows and number in WINDOWS_DRIVERS and number not in WINDOWS_DRIVERS.values():
            yield f"driver {number} of Linux for Windows"


def needless_driver(answer, fix):
    """An update of the driver, although the one that was read runs the CUDA that was read."""
    driver = next((match[1] for fact in answer["facts"] if (match := re.match(r"driver .*CUDA (\d+\.\d+)\)?$", fact))), None)
    cuda = next((match[1] for fact in answer["facts"] if (match := re.fullmatch(r"CUDA (\d+\.\d+)", fact))), None)
    if fix["kind"] == "upgrade-driver" and driver and cuda and key(cuda) <= key(driver) and answer["findings"][0]["cause"] == "driver-too-old":
        yield f"a driver update, although that of CUDA {driver} runs CUDA {cuda}"


def repeated(log, answer, text):
    """What the commands ask for although the log shows it: a release that is installed, a variable's value."""
    for name, release, variant in re.findall(r"'?([A-Za-z][\w-]*)(?:\[[^\]]*\])?==(\d[\d.]*\d)(?!\.?\*)(?:.*?/whl/(cu\d+))?", text):
        fact = next((fact for fact in answer["facts"] if re.fullmatch(rf"{re.escape(name)}(?:lib)? {re.escape(release)}(?:\+(\w+))?", fact)), None)
        there = fact and fact.rpartition("+")[2] if fact and "+" in fact else None
        if fact and (not variant or variant == there):
            yield f"{name} {release} is there"
    for name, value in re.findall(r"^(?:export |\$env:)?([A-Z][A-Z0-9_]{3,})=(\"[^\"]*\"|'[^']*'|[^\s;]+)", text, re.MULTILINE):
        value = value.strip("\"'")
        if value and re.search(rf"(?:^|[\s$]){name}=[\"']?{re.escape(value)}(?:[\"'\s;]|$)", log):
            yield f"{name} has the value {value}"


def other_cuda(answer, text):
    """Packages for a CUDA that is not the one that was read."""
    read = next((match[1] for fact in answer["facts"] if (match := re.fullmatch(r"CUDA (\d+)\.\d+", fact))), None)
    packages = re.findall(r"\bnvidia-\w[\w-]*-cu(1\d)\b", "\n".join(line for line in text.splitlines() if "install" in line and "uninstall" not in line))
    return sorted(number for number in set(packages) if read and int(read) >= 11 and number != read)


LINUX = re.compile(r"\bsudo |\bexport |\bunset |/usr/|/dev/|\bldconfig\b|\benv -u\b|\| grep\b")
ANY_SYSTEM = re.compile(r"\b[A-Z]:[\\/]|\.dll\b|\.pyd\b|\bWindows\b|win_amd64|\b[Ww]in(?:dows)?[ -]?1[01]\b|/home/|/usr/|/opt/|/mnt/|/workspace/|\.so\b|\bWSL|MSVC/|"
                        r"\b(?i:Ubuntu|Debian|Fedora|Arch Linux|RHEL|CentOS|Rocky Linux|NixOS)\b|\bapt(?:-get)? install\b")


def unpublished(text):
    """Releases of NVIDIA's packages that PyPI never had."""
    for name, release in re.findall(r"[ '\"]((?:nvidia-|cuda-)[\w-]+)(?:\[[^\]]*\])?[=~]=(\d[\d.]*\d)", text):
        first = next((row["first"] for row in TABLES["wheels"]["first_releases"] if row["package"] == name), None)
        if first and key(release) < key(first)[:release.count(".") + 1]:
            yield f"{name} {release}, and PyPI begins with {first}"


def unsaid(finding, log):
    """What the first fix takes for granted, and does not say."""
    fix = finding["fixes"][0]
    text = "\n".join(fix["commands"])
    assumed = fix.get("assumed", [])
    if assumed and finding["confidence"] > 0.8:
        yield f"sure ({finding['confidence']}) of what it assumes ({', '.join(assumed)})"
    if LINUX.search(text) and not ANY_SYSTEM.search(log) and "system" not in assumed:
        yield "a command of Linux for a log of no system"
    if not finding.get("device") and re.search(r"ARCH_LIST=|[=_](?:sm|compute)_\d", text) and "gpu" not in assumed:
        yield "an architecture for no GPU"


def broken(case, answer):
    """Each promise that a fix breaks, as a line."""
    if not answer["findings"]:
        return []
    finding = answer["findings"][0]
    log = "\n".join(case["log"])
    device = (finding.get("device") or {}).get("compute_capability")
    driver = next((match[1] for fact in answer["facts"] if (match := re.match(r"driver .*CUDA (\d+\.\d+)\)?$", fact))), None)
    refused = set(re.findall(r"Unsupported gpu architecture '(?:compute|sm)_(\d+[af]?)'", log))
    windows = bool(WINDOWS.search(log)) and not re.search(r"\bWSL|/home/|/usr/|docker", log)
    python = next(iter(re.findall(r"\bpython(?: version:? |-| )?(3\.\d+)\b", log, re.IGNORECASE)), None)
    out = []
    kinds = " ".join(fix["title"] for fix in finding["fixes"])
    if re.search(r"CUDA \d+\.\d+ or older", kinds) and any("--upgrade cupy\n" in command + "\n" for fix in finding["fixes"] for command in fix["commands"]):
        out.append(f"{case['id']}: an older CUDA and the newest CuPy: {kinds}")
    for fix in finding["fixes"]:
        commands = [command for command in fix["commands"] if not command.startswith("grep ")]
        text = "\n".join(commands)

        def say(what):
            out.append(f"{case['id']}: {what}: {fix['title']}: {text}")

        if re.search(r"\{\w*\}", re.sub(r"\$\{[^}]*\}|awk '[^']*'", "", text + fix["title"] + fix["why"] + (fix["caveat"] or ""))):
            say("a word that nobody filled in")
        named = set(re.findall(r"(?:sm|compute)_(\d+[af]?)\b", text)) | {n.replace(".", "") for n in re.findall(r"ARCH_LIST=\S*?(\d+\.\d)", text)}
        if not windows and not all(map(is_read_by_sh, fix["commands"])):
            say("a command that sh does not read")
        if windows and any(re.search(r'\w\("[^"]*"\)"', command) for command in commands):
            say("quotes within quotes")
        for line in driver_lines(answer, fix, windows):
            say(line)
        for line in needless_driver(answer, fix):
            say(line)
        for line in repeated(log, answer, text):
            say(line)
        for line in unpublished(text):
            say(line)
        for number in other_cuda(answer, text):
            say(f"a package of CUDA {number}")
        if fix is finding["fixes"][0]:
            for line in unsaid(finding, log):
                say(line)
        for cuda in cudas(text):
            if driver and key(cuda)[0] > key(driver)[0] and "driver" not in (fix["caveat"] or "") + fix["title"]:
                say(f"CUDA {cuda} for a driver of CUDA {driver}")
            if device in JETPACKS and key(cuda) > key(JETPACKS[device]):
                say(f"CUDA {cuda} on a Jetson of {device}")
            if "/usr/local" in text and cuda in TARGETS and not named <= TARGETS[cuda]:
                say(f"CUDA {cuda} has no {named - TARGETS[cuda]}")
        if not cudas(text) and named & refused and "nvcc" not in text and fix["id"] != "drop-architecture":
            say(f"names {named & refused}, which was refused")
        if re.search(r"\bpip\d? install\b.*[ '\"](?:pytorch|cuda|opencv|tiny-cuda-nn)['\"]?(?:[=<> ]|$)", text, re.MULTILINE):
            say("a name that is no package of PyPI's for this")
        if re.search(r"\bpip install\b.*--index-url \S*/whl/cu", text) and finding["cause"] == "nvrtc-arch-unsupported" and re.search(r"\bnvcc fatal", log):
            say("a wheel of PyTorch for a compiler of the build")
        variable = re.search(r"\bTORCH_CUDA_ARCH_LIST\b", log)
        if fix["id"] == "drop-architecture" and variable:
            say("a search of files for what the variable of the log holds")
        if finding["cause"] == "library-refuses" and device and key(device)[0] < 7 and fix["id"] == "of_all_refuses" and fix["kind"] == "code":
            say(f"another data type for a GPU of {device}")
        if windows and re.search(r"\bbazel build|(?<![\w$])/usr/|\bapt-get|^make ", text, re.MULTILINE):
            say("a command of Linux on Windows")
        for pin, variant in re.findall(r"torch==([\d.]+?)(?:\.\*)?(?:\+\w+)?'.*?/whl/(cu\d+)", text):
            rows = [row for row in TABLES["wheels"]["wheels"] if row["distribution"] == "torch" and row["variant"] == variant and within(pin, row)]
            if not any(row["platform"].startswith("windows" if windows else "linux") for row in rows):
                say(f"torch {pin} for {variant} is published for another system")
            pythons = [row for row in TABLES["wheels"]["pythons"] if row["distribution"] == "torch" and row["python"] == python]
            if pythons and not within(pin, pythons[0]) and "Python" not in (fix["caveat"] or ""):
                say(f"torch {pin} has no wheel for Python {python}")
    return out
