# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_facts found, as Markdown: answers to the open questions, the architectures, and what differs from the simulator."""
import re

# Product facts of one card, not behavior: size, clocks, buses, names, memory.
INCIDENTAL = {"device.name"} | {f"attribute.{number}" for number in (13, 14, 16, 33, 34, 35, 36, 37, 38, 39, 50, 81, 82, 97, 106, 107)}
# Answers that say where a driver keeps things, not what it does.
PLACES = re.compile(r"^table\.")
FAMILY = {98, 200, 209, 218, 221, 222, 223, 300, 500}
IMAGE = re.compile(r"^module\.(.+)\.load$")


def first_failure(client):
    """The first call of a family of errors: (name, result), or None."""
    return next(((name, result) for name, result, _ in client["calls"] if result in FAMILY and not name.startswith(("cuGetProcAddress", "cuGetExportTable"))),
                None)


def folded(calls):
    """A row of the same calls as one: [name, result, count]."""
    out = []
    for name, result in calls:
        if out and out[-1][:2] == [name, result]:
            out[-1][2] += 1
        else:
            out.append([name, result, 1])
    return out


def differences(found):
    """[where, what, real, simulated]; empty without a simulator."""
    real, simulated = found["real"], found.get("simulator")
    if simulated is None:
        return []
    out = []

    def compare(where, ours, theirs, skip=lambda name: False):
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name) and not skip(name):
                out.append([where, name, ours.get(name), theirs.get(name)])

    compare("questions", {name: value.split(" | ")[0] for name, value in real["questions"].items()},
            {name: value.split(" | ")[0] for name, value in simulated["questions"].items()}, PLACES.match)
    for switches, rows in real["facts"].items():
        compare(f"driver_facts, {switches}", rows, simulated["facts"].get(switches, {}), INCIDENTAL.__contains__)
    for name, client in real["clients"].items():
        other = simulated["clients"].get(name, {"status": None, "output": [], "calls": []})
        if (client["status"], client["output"]) != (other["status"], other["output"]):
            out.append([name, "what it prints", first_difference(client["output"], other["output"]),
                        first_difference(other["output"], client["output"])])
        ours, theirs = client["calls"], other["calls"]
        at = next((index for index, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
        if ours != theirs:
            out.append([name, f"call {at}", called(ours, at), called(theirs, at)])
    return out


def first_differences(found):
    """The same for what is asked first. Times are no difference."""
    ours, theirs = ({row[0]: row[1:] for row in found.get(name, [])} for name in ("first", "first_simulated"))
    return [["first", name, " | ".join(answer), " | ".join(theirs[name])] for name, answer in ours.items()
            if name in theirs and theirs[name] != answer and " s, status " not in answer[0]]


def first_difference(lines, others):
    return next((line for index, line in enumerate(lines) if index >= len(others) or line != others[index]), "nothing more")


def called(calls, at):
    return " ".join(str(part) for part in calls[at]) if at < len(calls) else "nothing more"


def rows(found):
    """[question, answer, evidence]"""
    real = found["real"]
    questions, facts, clients = real["questions"], real["facts"], real["clients"]
    out = []
    addresses = {name[8:]: value.split(" | ") for name, value in questions.items() if name.startswith("address.")}
    same = [name for name, value in addresses.items() if value[0] == "same"]
    out.append(["Does cuGetProcAddress give the addresses that dlsym gives, for every function that the shim stands in for?",
                f"{len(same)} of {len(addresses)}", "; ".join(f"{name}: {value[0]}, {value[1]}" for name, value in addresses.items() if value[0] != "same") or
                "all the same, per-thread variants included"])
    for name, client in clients.items():
        if "foreign" in name:
            failure = first_failure(client)
            out.append([f"Which call reports the missing image? {name}", f"{failure[0]}: {failure[1]}" if failure else "none",
                        next((line for line in client["output"] if re.search(r": [1-9]\d*$", line)), "the program saw nothing")])
        if "foreign" in name and "static runtime" in name:
            steps = [line for line in client["output"] if re.search(r": [1-9]\d*$", line)]
            out.append([f"What does each way of launching say without an image? {name}", f"{len(steps)} steps fail", "; ".join(steps)])
    for name, value in questions.items():
        if name.startswith("table."):
            out.append([f"The driver's table {name[6:]}", *value.split(" | ", 1)])
    lookups = sorted({name for client in clients.values() for name in client["driver_lookups"]})
    out.append(["Does libcuda look functions up by dlsym itself?", "yes" if lookups else "no", ", ".join(lookups[:12]) or "none of cu... seen"])
    no_ptx = facts.get("no PTX", {})
    for name in ("module.ptx75.fatbin.load", "library.ptx75.fatbin.load", "library.ptx75.fatbin.get_kernel", "library.ptx75.fatbin.launch",
                 "module.sm_75.ptx.load"):
        out.append([f"CUDA_DISABLE_PTX_JIT=1: {name}", no_ptx.get(name, "not asked"), "driver_facts"])
    normal = facts["default"]
    for label in ("several_that_fit.fatbin", "all.fatbin"):
        if f"module.{label}.first.attribute.6" in normal:
            out.append([f"Which of the images in {label} is taken?", f"sm_{normal[f'module.{label}.first.attribute.6']}",
                        "CU_FUNC_ATTRIBUTE_BINARY_VERSION"])
    for name in ("module.damaged.magic.load", "module.damaged.entry_kind.load", "module.damaged.text.load", "module.ptx.syntax_error.load",
                 "module.ptx.newer_isa.load", "module.ptx.target_130.load", "module.all.fatbin.launch.block_1025", "module.all.fatbin.launch.grid_0",
                 "module.all.fatbin.launch.shared_1m"):
        if name in normal:
            out.append([name, normal[name], "driver_facts"])
    for step in ("load", "get_kernel", "get_module", "get_global", "launch"):
        label = "cubin100.fatbin" if found["device"]["major"] != 10 else "cubin75.fatbin"
        value = normal.get(f"library.{label}.{step}")
        if value is not None:
            out.append([f"cuLibrary with a fatbin that has no fit: {step}", value, label])
    return out


def cell(text):
    return str(text).replace("|", "/").replace("\n", " ")


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(map(cell, line)) + " |" for line in lines]


def markdown(found):
    device = found["device"]
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", "# What a driver answered", "",
             f"{device['name']}, compute capability {device['major']}.{device['minor']}, driver for CUDA {device['version'] // 1000}."
             f"{device['version'] % 1000 // 10}; {found['toolkit']}; {found['machine']}; {found.get('seconds', 0)} s.", ""]
    if found["simulated"]:
        lines += ["**This is the simulator and no GPU: it tells of the command, nothing of a driver.**", ""]
    lines += ["## Asked first", ""] + table(["question", "answer", "evidence"], found["first"]) + [""]
    lines += ["## What differs from the simulator", ""]
    if "first_simulated" not in found and "simulator" not in found:
        lines.append("There was none to compare with: run the command again where one is built, with --build.")
    elif not found["differences"]:
        lines.append("Nothing.")
    else:
        lines += table(["where", "what", "real", "simulated"], found["differences"])
    lines.append("")
    lines += ["## Questions", ""] + (table(["question", "answer", "evidence"], rows(found)) if found["real"]["questions"] else ["Not asked yet."]) + [""]
    loads = {match.group(1): value for name, value in found["real"]["facts"]["default"].items() if (match := IMAGE.match(name))}
    lines += ["## Images on this device", ""]
    lines += table(["image", "cuModuleLoadData"], sorted(loads.items())) + [""]
    if found["problems"]:
        lines += ["", "## Not built", ""] + [f"- {cell(problem)}" for problem in found["problems"]]
    return "\n".join(lines) + "\n"
