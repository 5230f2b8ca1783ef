# SPDX-License-Identifier: Apache-2.0
"""hardening.py [--build-type=TYPE] [--floor=GLIBC] FILE...: what every shipped file has against attacks on memory, and what may only be in the
command: a check that ends the process must not be in files that live in other people's. With a floor the files are a release's, whose unwinder
is built for it; this machine's own archive may have such a check, and no notes."""
import pathlib
import re
import sys

from shim_file import dynamic_symbols, machine, output

CHECKS = re.compile(r"__stack_chk_(fail|guard)|__\w+_chk")
LANDING = {"x86_64": re.compile(r"endbr64"), "aarch64": re.compile(r"bti\s+j?c|paci[ab]sp|hint\s+#0x(22|24|26)")}
# The canary where a function ends: x86-64 keeps it in the thread; elsewhere it is a variable, whose value is compared with what the stack has.
CANARY = {"x86_64": re.compile(r"%fs:0x28"),
          "aarch64": re.compile(r"ldr\s+(x\d+), \[(?:sp|x29)\b.*\n.*ldr\s+(x\d+), \[\2\]\n.*cmp\s+\2, \1\n.*b\.ne")}


def everywhere(path):
    segments = output("readelf", "-W", "-l", path)
    dynamic = output("readelf", "-W", "-d", path)
    if "GNU_RELRO" not in segments:
        yield "no RELRO"
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW", dynamic):
        yield "no BIND_NOW: the table of functions stays writable"
    if re.search(r"GNU_STACK.*RWE", segments) or "GNU_STACK" not in segments:
        yield "an executable stack"
    if re.search(r"LOAD.*RWE", segments):
        yield "a segment that can be written and executed"
    if re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic):
        yield "RPATH, RUNPATH or text relocations"


def command(path, optimized):
    if not re.search(r"Type:\s+DYN", output("readelf", "-h", path)):
        yield "is not position-independent"
    _, needed = dynamic_symbols(path)
    names = {name.split("@")[0] for name in needed}
    if optimized and names.isdisjoint({"__stack_chk_fail", "__stack_chk_guard"}):  # zig links both in, without their names
        checks = CANARY[machine(path)].findall(output("objdump", "-d", "--no-show-raw-insn", path))
        if len(checks) < 100:
            yield f"no stack protector: {len(checks)} functions check a canary"
    if optimized and not any(name.endswith("_chk") for name in names):
        yield "no FORTIFY"


def guest(path, release):
    _, needed = dynamic_symbols(path)
    found = sorted(name for name in needed if CHECKS.match(name) and (release or "__stack_chk_fail" not in name))
    if found:
        yield f"has checks that end the host: {', '.join(found)}"
    checks = len(CANARY[machine(path)].findall(output("objdump", "-d", "--no-show-raw-insn", path))) if release else 0
    if checks:  # zig links the name in
        yield f"has checks that end the host: {checks} of a canary"


def control_flow(path, release):
    """The property of libkshim.so, and that what is called through a pointer begins as such a process wants it."""
    kind = machine(path)
    notes = output("readelf", "-W", "-n", path)
    if kind == "x86_64" and "SHSTK" not in notes:
        yield "no SHSTK: it takes the shadow stack from every process it is preloaded into"
    defined, _ = dynamic_symbols(path)
    listing = output("objdump", "-d", "--no-show-raw-insn", path)
    first = {int(at, 16): text for at, text in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", listing, re.MULTILINE)}
    bad = sorted(name for name, address in defined.items() if address in first and not LANDING[kind].match(first[address]))
    if bad:
        yield f"{len(bad)} exported functions do not begin with a landing pad: {', '.join(bad[:3])} ..."
    if release and "BTI" not in notes and kind == "aarch64":
        yield "no BTI"
    if release and "IBT" not in notes and kind == "x86_64":
        yield "no IBT"


def main():
    optimized = not any(argument == "--build-type=Debug" for argument in sys.argv[1:])
    release = any(re.fullmatch(r"--floor=.+", argument) for argument in sys.argv[1:])
    files = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    failed = False
    for path in files:
        name = pathlib.Path(path).name
        faults = list(everywhere(path))
        if name == "kshim":
            faults += command(path, optimized)
        elif name in ("libkshim.so", "libkshim-audit.so", "libkshim-injection.so", "libkshim-query.so.1"):
            faults += guest(path, release)
        if name == "libkshim.so":
            faults += control_flow(path, release)
        for fault in faults:
            print(f"FAILED: {name}: {fault}")
            failed = True
        if not faults:
            print(f"{name}: hardened")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
