# SPDX-License-Identifier: Apache-2.0
"""What a row of route_table.py must show: the columns of the table."""
import os

import client_runs

COLUMNS = {"load": "load seen", "failure": "failure seen", "kernel": "kernel named", "object": "object named",
           "line": "line named", "host": "host unchanged"}
FAMILY = {98, 200, 209, 218, 221, 222, 223, 300, 500}
# At the end of the lines of a Python client that fail on the failing device: in the driver, or in a compiler.
FAILS, REFUSED = "# fails", "# refused"


def marked_lines(script, mark):
    with open(script, encoding="utf-8") as file:
        return {number for number, line in enumerate(file, 1) if line.rstrip().endswith(mark)}


def check(route, folder):
    """{column: problems}; an empty list is a yes."""
    out = {column: [] for column in COLUMNS}
    seen = {}
    for devices in filter(None, (route.works, route.fails)):
        seen[devices] = client_runs.run(route, devices, True, folder)
        bare = client_runs.run(route, devices, False, folder)
        if (bare.output, bare.status) != (seen[devices].output, seen[devices].status):
            out["host"].append(f"on {devices}: prints or ends otherwise: {bare.status} {bare.output!r}, "
                               f"with the shim {seen[devices].status} {seen[devices].output!r}")
        out["host"] += client_runs.differences(bare.trace, seen[devices].trace)
    check_good(route, seen[route.works], out)
    if route.fails:
        check_bad(route, seen[route.fails], out)
    return out


def check_good(route, good, out):
    if good.status != 0:
        out["load"].append(f"the client fails on {route.works}: {good.status} {good.output.strip()[-300:]!r}")
    if not [module for module in good.of("module") if module["result"] == 0]:
        out["load"].append("no load was seen")
    bad_launches = [failure for failure in good.of("failure") if failure["stage"] == "launch"]
    if bad_launches:
        out["failure"].append(f"a failure on {route.works}: {bad_launches[0]}")


def counts(route, layer):
    """Compilers have codes of their own, which mean something else in the driver."""
    if route.compiler:
        return layer["layer"] == route.compiler
    return layer["layer"] in ("driver", "runtime") and layer["code"] in FAMILY


def check_bad(route, bad, out):
    failures = [failure for failure in bad.of("failure") if any(counts(route, layer) for layer in failure["layers"])]
    if bad.status == 0:
        out["failure"].append(f"the client does not fail on {route.fails}")
    if route.refuses:
        if failures:
            out["failure"].append(f"a failure where the library refuses by itself: {failures[0]}")
        return
    if not failures:
        out["failure"].append(f"no failure was recorded on {route.fails}: {bad.output.strip()[-300:]!r}")
    if route.failures and len(failures) != route.failures:
        out["failure"].append(f"{len(failures)} failures instead of {route.failures}: {[each['layers'] for each in failures]}")
    known = {failure["kernel"] or "" for failure in failures} | {name for gap in bad.of("gap") for name in gap["kernels"] or []}
    missing = [kernel for kernel in route.kernels if not any(kernel in name for name in known)]
    if missing:
        out["kernel"].append(f"not named: {missing}; named: {sorted(known)[:8]}")
    if not route.kernels and not route.unnamed and not any(known):
        out["kernel"].append("no kernel is named")
    for name in [route.object] if isinstance(route.object, str) else route.object:
        check_object(name, failures, bad, out["object"])
    if route.script:
        check_lines(route.script, REFUSED if route.compiler else FAILS, failures, out["line"])


def check_object(name, failures, bad, problems):
    """`name`: the base name of the file with the code; "" for code from memory, which its content's hash stands for."""
    files = {record["id"]: record["path"] or "" for record in bad.of("object")}
    if name:
        if not any(os.path.basename(files.get(failure["object"], "")) == name for failure in failures):
            problems.append(f"no failure names {name}: {sorted({str(files.get(f['object'])) for f in failures})}")
        return
    modules = {module["id"]: module for module in bad.of("module")}
    if not any((modules.get(failure["module"]) or {}).get("content_hash") for failure in failures):
        problems.append("no failure leads to a module with a content hash")


def check_lines(script, mark, failures, problems):
    """Every failure is on a marked line, and every marked line has one."""
    marked, found = marked_lines(script, mark), set()
    for failure in failures:
        frames = [(frame["file"], frame["line"]) for frame in failure["python"] or []]
        lines = {line for file, line in frames if file == str(script) and line in marked}
        if not lines:
            problems.append(f"the frames do not lead to a line of {os.path.basename(script)} that fails: {frames}")
        found |= lines
    if found != marked:
        problems.append(f"no failure on the lines {sorted(marked - found)} of {os.path.basename(script)}")
