#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/renew_knowledge --by-range: what it makes of a wheel is the same as of the whole wheel, fetches less where the index has ranges,
and falls back to the whole where it has none. An index of this machine, asked by pip; the wheels are made here."""
import argparse
import contextlib
import http.server
import importlib.machinery
import importlib.util
import io
import os
import random
import re
import sys
import threading
import unittest
import unittest.mock
import zipfile

import e2e

sys.path.insert(0, str(e2e.SOURCE / "tests/golden"))
import scan_fixture  # noqa: E402

e2e.require(e2e.KSHIM)
if importlib.util.find_spec("remotezip") is None:
    print("skipped: tools/setup installs remotezip, which is not there")
    sys.exit(e2e.SKIPPED)


def tool():
    loader = importlib.machinery.SourceFileLoader("renew_knowledge", str(e2e.SOURCE / "tools/renew_knowledge"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("renew_knowledge", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def noise(seed, size):
    return random.Random(seed).randbytes(size)


def machine_code(*archs):
    return scan_fixture.fatbin(*(scan_fixture.entry(scan_fixture.CUBIN, arch, scan_fixture.cubin(arch, b"k")) for arch in archs))


# Name: (project's row, members beside the METADATA).
WHEELS = {
    "alpha": (dict(library=r"alpha/main\.fatbin", variant=""), {"alpha/main.fatbin": machine_code(80, 90), "alpha/other.bin": noise(1, 3 << 20)}),
    "beta": (dict(library=r"torch/lib/lib.*\.fatbin", variant="torch"),
             {"torch/lib/libx.fatbin": machine_code(75), "torch/version.py": b"cuda: Optional[str] = '12.6'\n", "torch/doc.bin": noise(2, 2 << 20)}),
    "gamma": (dict(library=r"gamma/\w+\.fatbin", variant="", together=True),
              {f"gamma/k{n}.fatbin": machine_code(80 if n % 2 else 90) for n in range(100)}),
}


class Index(http.server.BaseHTTPRequestHandler):
    """A simple index: /simple/NAME/ and the wheels."""
    protocol_version = "HTTP/1.1"
    wheels, ranges, sent = {}, True, 0

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        if name in Index.wheels:
            body, status = Index.wheels[name], 200
            match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")) if Index.ranges else None
            first = 0
            if match:
                first = int(match[1]) if match[1] else max(0, len(body) - int(match[2]))
                last = min(int(match[2]) if match[1] and match[2] else len(body) - 1, len(body) - 1)
                status, total, body = 206, len(body), body[first:last + 1]
            self.send_response(status)
            self.send_header("Content-Type", "application/octet-stream")
            if match:
                self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{total}")
            if Index.ranges:
                self.send_header("Accept-Ranges", "bytes")
            Index.sent += len(body)
        else:
            project = self.path.strip("/").rpartition("/")[2]
            # As PyPI: the METADATA is a file of its own, so that pip need not fetch a wheel to read it.
            links = "".join(f'<a href="/files/{each}" data-dist-info-metadata="true" data-core-metadata="true">{each}</a>\n'
                            for each in Index.wheels if each.startswith(project + "-") and each.endswith(".whl"))
            body = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
            self.send_response(200 if links else 404)
            self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words):
        pass

    def handle(self):
        with contextlib.suppress(ConnectionError):  # what reads by range hangs up
            super().handle()


class ByRange(e2e.Case):
    def setUp(self):
        super().setUp()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        e2e_index = {"PIP_INDEX_URL": f"http://127.0.0.1:{server.server_port}/simple", "PIP_FIND_LINKS": "", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        patched = unittest.mock.patch.dict(os.environ, e2e_index)
        patched.start()
        self.addCleanup(patched.stop)
        for name, (_, members) in WHEELS.items():
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as wheel:
                for member, data in members.items():
                    wheel.writestr(member, data)
                meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: nvidia-cudnn-cu12 (==9.1.0)\n"
                wheel.writestr(f"{name}-1.0.dist-info/METADATA", meta)
                wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n")
                wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
            Index.wheels[f"{name}-1.0-py3-none-any.whl"] = file.getvalue()
            Index.wheels[f"{name}-1.0-py3-none-any.whl.metadata"] = meta.encode()

    def measure(self, name, by_range, ranges=True):
        """What is kept of a wheel, and the bytes of wheels that were sent for it."""
        Index.ranges, Index.sent = ranges, 0
        options = argparse.Namespace(cache=self.folder, kshim=e2e.KSHIM, by_range=by_range)
        row = dict(WHEELS[name][0], package=name, distribution=name)
        with contextlib.redirect_stdout(io.StringIO()):
            said = TOOL.Wheel.measure(row, "1.0", TOOL.LINUX, options)
        return said, Index.sent

    def test_the_same_and_less(self):
        for name, most in (("alpha", 0.1), ("beta", 0.1)):
            with self.subTest(name):
                whole, all_of_it = self.measure(name, by_range=False)
                part, sent = self.measure(name, by_range=True)
                self.assertTrue(whole["objects"])
                self.assertEqual(part, whole)
                self.assertLess(sent, most * all_of_it)

    def test_many_members_are_one_request(self):
        whole, _ = self.measure("gamma", by_range=False)
        part, sent = self.measure("gamma", by_range=True)
        self.assertEqual(len(whole["objects"]), 100)
        self.assertEqual(part, whole)
        self.assertLess(sent, 3 * len(Index.wheels["gamma-1.0-py3-none-any.whl"]) + (1 << 17))

    def test_a_server_without_ranges(self):
        for name in WHEELS:
            with self.subTest(name):
                self.assertEqual(self.measure(name, by_range=True, ranges=False)[0], self.measure(name, by_range=False)[0])


TOOL = tool()
if __name__ == "__main__":
    e2e.main()
