# SPDX-License-Identifier: Apache-2.0
"""A case as its user could have pasted it: what was printed, which GPU, driver and toolkit, and what a look into the file shows.

Only what can be observed is used: the error, its code, GPU, compute capability, driver, toolkit, platform, software and version,
the architectures that were read from the file, and the title where nothing was printed. What somebody found out afterwards (root
cause, category, fix, wrong advice, what users lacked) is never shown to the command."""
import re

OBSERVED = ("title", "error_text", "error_code", "gpu", "compute_capability", "driver", "cuda_toolkit", "platform", "software",
            "software_version", "faulty_binary", "binary_archs")

SAYS_NOTHING = ("n/a", "none", "no error", "(would be")


def numbers(text):
    return re.findall(r"\d+\.\d+", text or "")


def capabilities(case):
    """Of "5.3 / 6.2", "8.0 -> 7.0" (built on -> runs on), "!= 9.0" (any other)."""
    text = case.get("compute_capability") or ""
    if "->" in text:
        text = text.split("->")[-1]
    if "!=" in text:
        return []
    return numbers(text)


def architectures(case):
    """sm_ and compute_ words, and lists of plain numbers, of what was read from the file."""
    text = case.get("binary_archs") or ""
    # "One: ...; two: ..." are several files, of which the first failed.
    parts = text.split(";")
    if len(parts) > 1 and all(":" in part for part in parts):
        text = parts[0]
    if re.search(r"\b(?:above|below|up to|starts with|preset|selected|fine|unknown)\b|\d\+:", text):
        return []
    text = re.sub(r"\b(?:not|no|without|lacks|missing|not include) (?:sm_)?\d[\d.]*", " ", text)
    outside = re.sub(r"\([^)]*\)", " ", text)
    text = outside if re.search(r"compute_\d|sm_?\d", outside) else text
    text = re.sub(r"\bPTX (\d{1,2})\.(\d)\b", r"compute_\1\2", text)
    found = []
    for kind, first, more in re.findall(r"\b(sm_?|compute_)(\d{2,3}[af]?)((?:[ ,/]+\d{2,3}[af]?\b)*)", text):
        for number in [first, *re.findall(r"\d{2,3}[af]?", more)]:
            found.append(("compute_" if kind == "compute_" else "sm_", number))
    if not found:
        dotted = re.findall(r"(?<![\d.])(\d{1,2}\.\d)(?![\d.])", outside)
        plain = re.findall(r"(?<![\w.])(\d{2,3})(?![\w.])", outside)
        found = [("sm_", number.replace(".", "")) for number in dotted] or [("sm_", number) for number in plain]
    if re.search(r"\+ ?PTX|and PTX", text) and found and not any(kind == "compute_" for kind, _ in found):
        found.append(("compute_", found[-1][1]))
    return list(dict.fromkeys(found))


def file_name(case):
    text = case.get("faulty_binary") or ""
    if match := re.search(r"[\w./*-]+\.(?:so|dll|pyd)\b[\w.]*", text):
        return match.group(0)
    match = re.search(r"\blib[a-z]\w+", text)
    return match.group(0) + ".so" if match else None


def log_of(case):
    """The lines of a report as an issue has them."""
    lines = []
    software = " ".join(str(case.get(key) or "") for key in ("software", "software_version")).strip()
    if software:
        lines.append(f"Software: {software}")
    if case.get("platform"):
        lines.append(f"Platform: {case['platform']}")
    capability = capabilities(case)
    gpu = case.get("gpu") or ""
    if capability:
        for number in capability:
            lines.append(f"GPU: {gpu}, compute capability {number}" if len(capability) == 1 else f"compute capability {number}")
    elif gpu:
        lines.append(f"GPU: {gpu}")
    driver = case.get("driver") or ""
    if match := re.search(r"\b(\d{3}(?:\.\d{1,3}){1,2}|\d{3}$)", driver):
        lines.append(f"Driver Version: {match.group(1)}")
    if match := re.search(r"(?<![\d.])(\d{1,2}\.\d)(?![\d.])", driver):
        lines.append(f"CUDA Driver Version: {match.group(1)}")
    if match := re.search(r"(\d{1,2}\.\d)", case.get("cuda_toolkit") or ""):
        lines.append(f"CUDA toolkit {match.group(1)}")
    archs = architectures(case)
    if archs:
        lines.append(f"{file_name(case) or 'program.so'}:")
        for kind, number in archs:
            if kind == "sm_":
                lines.append(f"ELF file    1: x.1.sm_{number}.cubin")
            else:
                lines.append(f"PTX file    1: x.1.sm_{number}.ptx")
    error = case.get("error_text") or ""
    if not error or error.lower().startswith(SAYS_NOTHING):
        lines.append(case.get("title") or "")
    lines.append(error)
    code = case.get("error_code")
    if isinstance(code, int):
        lines.append(f"CUDA error {code}")
    return "\n".join(lines) + "\n"
