# SPDX-License-Identifier: Apache-2.0
"""A successful launch, and a question that is answered with "not ready", cost one indirect call and the tests around it: the machine
code of every wrapper of theirs is followed from its entry to its return, all conditional branches not taken."""
import re
import sys

from shim_file import dynamic_symbols, hook_rows, machine, output

MOST_POLL = 14          # GNU 12: 12
MOST_INSTRUCTIONS = 36  # cuLaunchKernel passes eleven arguments, five of them on the stack
MOST_BRANCHES = {"launch": 2, "poll": 3}  # is the real function known; did it succeed; is it not ready
MEASURED = {"GNU 12": 29, "Clang": 33}  # cuLaunchKernel by the development build's compiler and the release build's: bench/overhead prints them


def success_path(path, address):
    """Instructions in the order of execution, as text."""
    listing = output("objdump", "-d", "--no-show-raw-insn", f"--start-address={address:#x}", f"--stop-address={address + 512:#x}", path)
    code = {int(at, 16): text.strip() for at, text in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", listing, re.MULTILINE)}
    order = sorted(code)
    steps, at = [], address
    while at in code and len(steps) < 200:
        steps.append(code[at])
        word = code[at].split()[0]
        if word in ("ret", "retq"):
            return steps
        jump = re.match(r"jmp\s+([0-9a-f]+)", code[at])
        later = [place for place in order if place > at]
        at = int(jump.group(1), 16) if jump else (later[0] if later else -1)
    return steps + ["(no return found)"]


def faults_of(steps, most, most_branches):
    calls = [step for step in steps if step.startswith("call")]
    branches = [step for step in steps if re.match(r"j(?!mp)", step)]
    faults = []
    if steps[-1].split()[0] not in ("ret", "retq"):
        faults.append("does not return on the straight path")
    if len(steps) > most:
        faults.append(f"{len(steps)} instructions, {most} are allowed")
    if len(calls) != 1 or "*" not in calls[0]:
        faults.append(f"calls {calls}: one indirect call is allowed")
    if len(branches) > most_branches:
        faults.append(f"{len(branches)} conditional branches, {most_branches} are allowed")
    if any(re.match(r"lock |xchg|syscall|cmpxchg", step) for step in steps):
        faults.append("locks or enters the kernel")
    return faults


def main():
    path, compiler = sys.argv[1:]
    if machine(path) != "x86_64":
        print("skipped: only x86-64 code is understood here")
        return 77
    defined, _ = dynamic_symbols(path)
    wanted = [(layer, name, stage) for layer, name, stage, _ in hook_rows() if stage in MOST_BRANCHES]
    failed = False
    for layer, name, stage in wanted:
        nodes = ["@@KSHIM_1"] if layer == "driver" else ["@libcudart.so.12", "@libcudart.so.13"]
        for node in nodes:
            steps = [step for step in success_path(path, defined[name + node]) if not step.startswith("endbr64")]
            print(f"{name + node}: {len(steps)} instructions")
            own = next((count for start, count in MEASURED.items() if compiler.startswith(start)), MOST_INSTRUCTIONS)
            most = MOST_POLL if stage == "poll" else own if name == "cuLaunchKernel" else MOST_INSTRUCTIONS
            for fault in faults_of(steps, most, MOST_BRANCHES[stage]):
                print(f"FAILED: {name + node}: {fault}")
                failed = True
    if len(wanted) < 20:
        print(f"FAILED: only {len(wanted)} launch functions found in hooks.def")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
