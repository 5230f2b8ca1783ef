# SPDX-License-Identifier: Apache-2.0
"""What hosts/embedded.c runs: the shim's frames beside Python's own, in this interpreter and in others below it."""
import sys

CHECK = '''
import host, json, sys

def truth(frame):
    rows = []
    while frame is not None:
        code = frame.f_code
        rows.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    return rows

def compare(what):
    for release in (False, True):
        seen, want = json.loads(host.ask(release)), truth(sys._getframe())
        seen = [[row["file"], row["line"], row["function"]] for row in seen]
        if BLIND:
            want = []
        if seen != want:
            raise SystemExit(f"{what}, GIL {'released' if release else 'held'}: shim {seen}, python {want}")

class Net:
    def forward(self, depth):
        return self.forward(depth - 1) if depth else compare(WHERE)
'''
BLIND = "--blind" in sys.argv
SUB = CHECK.replace("BLIND", str(BLIND)) + '''
import threading
Net().forward(3)
failed = []

def run():
    try:
        Net().forward(2)
    except SystemExit as why:
        failed.append(why)

worker = threading.Thread(target=run)
worker.start()
worker.join()
if failed:
    raise failed[0]
'''


def inner(how, own_gil, source):
    import host
    if host.in_new(own_gil, source.replace("WHERE", repr(how))) != 0:
        raise SystemExit(1)


exec(compile(CHECK.replace("BLIND", str(BLIND)), "check.py", "exec"))
WHERE = "the main interpreter"
Net().forward(3)  # noqa: F821  (made above)
inner("an interpreter below it", False, SUB)
compare("the main interpreter again")  # noqa: F821
deeper = "import host\nassert host.in_new(False, " + repr(SUB.replace("WHERE", repr("an interpreter below that"))) + ") == 0\n"
inner("", False, deeper)
if sys.version_info >= (3, 12):
    inner("an interpreter with a GIL of its own", True, SUB)
compare("the main interpreter at the end")  # noqa: F821
print("same")
