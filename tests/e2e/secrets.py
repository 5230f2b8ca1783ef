#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program full of marked secrets fails under the shim: neither its report nor what kshim makes of it has one of them."""
import hmac
import json
import os
import random
import shutil
import string
import sys

import e2e
import trust

e2e.require(e2e.SHIM, e2e.KSHIM, e2e.SIMULATOR / "libcuda.so.1")

# The secrets are given by names of files, so that the script's own text, which no report has, does not matter.
PROGRAM = """
import ctypes, pathlib, sys
cuda = ctypes.CDLL("libcuda.so.1")
heap = [bytearray(pathlib.Path("heap").read_bytes()) for _ in range(100)]

def load(image):
    local = pathlib.Path("local").read_text()
    stack = (ctypes.c_char * 64)(*pathlib.Path("stack").read_bytes())
    module = ctypes.c_void_p()
    result = cuda.cuModuleLoadData(ctypes.byref(module), image)
    return result, local, stack

assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
result, local, stack = load(pathlib.Path("image.ptx").read_bytes() + b"\\0")
assert result == 218 or result == 209, result
"""
PTX = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry late() { ret; }\n"


def secret(kind):
    generator = random.Random(kind)
    return "".join(generator.choice(string.ascii_letters + string.digits) for _ in range(32))


class Secrets(e2e.Case):
    def failing_program(self, home=None, **changes):
        named = {name: secret(name) for name in ("option", "equals", "env", "unlisted", "url", "cwd", "heap", "stack", "local")}
        plain = {name: secret(name) for name in ("positional", "glued", "value")}
        folder = (home or self.folder) / ("hf_" + named["cwd"])
        folder.mkdir(parents=True)
        for name in ("heap", "stack", "local"):
            (folder / name).write_text(named[name])
        (folder / "image.ptx").write_text(PTX)
        (folder / "train.py").write_text(PROGRAM)
        changes = {"KSHIM_REPORT": self.folder / "reports" / "%p.jsonl", **changes}
        env = e2e.preloaded("7.5", HF_TOKEN=named["unlisted"], NVCC_APPEND_FLAGS="-DAPI_KEY=" + named["env"],
                            CUDA_LOG_FILE="/var/log/x?token=" + named["url"], **changes)
        done = self.run_program(sys.executable, "train.py", "--hf-token", named["option"], "--password=" + named["equals"],
                                "--lr", plain["value"], plain["positional"], "-p" + plain["glued"], "--device", "cuda:0",
                                env=env, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        (report,) = changes["KSHIM_REPORT"].parent.glob("*.jsonl")
        return report, done.stderr, named, plain

    def assert_none(self, text, secrets):
        for name, value in secrets.items():
            at = text.find(value)
            self.assertEqual(at, -1, f"the {name} secret is in clear: {text[max(at - 80, 0):at + 40]}")

    # shows: secrets: in argument values, environment, heap, stack, Python locals of a program that fails
    def test_nothing_by_default(self):
        report, said, named, plain = self.failing_program()
        text = report.read_text()
        self.assert_none(text + said, {**named, **plain})
        process, *_ = records = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(process["argv"][1:], ["train.py", "--hf-token", "…", "--password=…", "--lr", "…", "…", "-p…",
                                               "--device", "cuda:0"])
        self.assertEqual(process["cwd"], str(self.folder / "…"))
        failure, *_ = e2e.of_type(records, "failure")
        self.assertEqual([frame["function"] for frame in failure["python"]], ["load", "<module>"])
        for kind in e2e.FORMATS:
            done = self.kshim("analyze", "--format", kind, report)
            self.assert_none(done.stdout + done.stderr, {**named, **plain})
        shown = json.loads(self.kshim("analyze", "--format", "json", report).stdout)["processes"][0]["argv"]
        self.assertEqual(shown[1:], ["train.py"])

    # shows: secrets: in a log that is explained
    def test_of_a_log(self):
        log = self.folder / "train.log"
        hidden = secret("log")
        log.write_text(f'  File "/home/u/token={hidden}/train.py", line 12, in <module>\n'
                       "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation. "
                       f"password={hidden}\nRuntimeError: CUDA error: no kernel image is available for execution on the device --api-key {hidden}\n")
        for kind in ("text", "json"):
            done = self.kshim("explain", "--format", kind, "--log", log)
            self.assertIn("no-image-for-arch" if kind == "json" else "sm_120", done.stdout, done.stderr)
            self.assert_none(done.stdout + done.stderr, {"log": hidden})

    # shows: secrets: in the log of the driver's compiler, which quotes the source
    def test_of_the_compilers_log(self):
        hidden = secret("jit")
        # The simulated compiler quotes nothing: the program writes the log itself, and gives the driver another buffer, behind the
        # options that the shim reads.
        (self.folder / "log").write_text(f"ptxas application ptx input, line 3; error: // password={hidden}\n--api-key {hidden} " + "x" * 8000 + "THE END")
        (self.folder / "host.py").write_text("""
import ctypes, pathlib
cu = ctypes.CDLL("libcuda.so.1")
context, out = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
log, other = ctypes.create_string_buffer(pathlib.Path("log").read_bytes()), ctypes.create_string_buffer(4096)
options = [(5, ctypes.addressof(log)), (6, len(log))] + [(12, 0)] * 62 + [(5, ctypes.addressof(other)), (6, 4096)]
names, values = (ctypes.c_int * len(options))(*[name for name, _ in options]), (ctypes.c_void_p * len(options))(*[value for _, value in options])
ptx = b".version 9.9\\n.target sm_75\\n.address_size 64\\n.visible .entry k() { ret; }\\n\\0"
assert cu.cuModuleLoadDataEx(ctypes.byref(out), ptx, len(options), names, values) == 222
""")
        report = self.folder / "r.jsonl"
        done = self.run_program(sys.executable, "host.py", env=e2e.preloaded("7.5", KSHIM_REPORT=report), cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = report.read_text()
        self.assert_none(text + done.stderr, {"jit": hidden})
        failure, = e2e.of_type([json.loads(line) for line in text.splitlines()], "failure")
        self.assertTrue(failure["jit_log"].startswith("ptxas application ptx input, line 3; error: // password=…"), failure["jit_log"])
        self.assertLess(len(failure["jit_log"]), 4200)
        self.assertNotIn("THE END", text)
        for kind in e2e.FORMATS:
            done = self.kshim("analyze", "--format", kind, report)
            self.assert_none(done.stdout + done.stderr, {"jit": hidden})

    # shows: secrets: in a report that another program has written, or an older shim
    def test_of_a_report_that_nobody_has_redacted(self):
        hidden = secret("report")
        text = trust.report(f"/srv/token={hidden}/libx.so", {"name": "x", "version": f"password={hidden}", "manager": "pip"},
                            exe=f"/opt/password={hidden}/python3").replace("train.py", f"--hf-token={hidden}").replace("_Z6kernelPf", f"k(password={hidden})")
        report = self.folder / "r.jsonl"
        report.write_text(text)
        self.assertGreater(text.count(hidden), 5)
        for kind in e2e.FORMATS:
            done = self.kshim("analyze", "--full", "--format", kind, report)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assert_none(done.stdout + done.stderr, {"report": hidden})

    def test_folders_of_experiments(self):
        """A sample in folders whose names look as if they announced secrets: the same diagnosis, and no path is cut."""
        sample = e2e.SAMPLES / "04_kernel_absent_from_one_image" / "convert"
        if not sample.exists():
            self.skipTest(f"{sample} was not built")

        def finding(name):
            folder = self.folder / name
            folder.mkdir(parents=True)
            shutil.copy(sample, folder)
            report = folder / "reports" / "r.jsonl"
            env = e2e.preloaded("7.5", KSHIM_REPORT=report)
            self.run_program("./convert", env=env, cwd=folder)
            texts = [self.kshim("analyze", "--full", "--format", kind, report).stdout for kind in ("text", "markdown", "html")]
            analysis = json.loads(self.kshim("analyze", "--format", "json", report).stdout)
            for text in (*texts, json.dumps(analysis, ensure_ascii=False)):
                self.assertIn(name, text)
            self.assertNotIn("…", texts[0] + report.read_text() + json.dumps([row["fixes"] for row in analysis["findings"]], ensure_ascii=False))
            (error,) = [row for row in analysis["findings"] if row["severity"] == "error"]
            return (error["cause"], error["kernels"], error["have"], error["need"], [(fix["id"], len(fix["commands"])) for fix in error["fixes"]],
                    len(error["evidence"]))

        plain = finding("plain")
        self.assertEqual(plain[0], "kernel-missing-from-image")
        for name in ("token_dim=64", "pass=2,seed=3", "lr=0.1,model.key_dim=64/x", "hf_quantizationconfig", "r8_runs", "tskey-experiments-2026",
                     "query_key_norm=true,seed=1", "sig=tanh/auth=none", "outputs/cls_token=mean,+data.key=q_proj"):
            with self.subTest(name=name):
                self.assertEqual(finding(name), plain)

    def private_report(self, value):
        """Of a program of alice's, in her home folder, in her scratch folder's library path."""
        home = self.folder / "nfs" / "home" / "alice"
        report, said, _, _ = self.failing_program(KSHIM_PRIVATE=value, HOME=home, USER="alice", LOGNAME="alice",
                                                  PYTHONPATH=f"/scratch/alice/lib:{home}/lib:/home/bob/lib",
                                                  KSHIM_REPORT=home / "reports" / "%p.jsonl", home=home)
        return report, said

    # shows: secrets: KSHIM_PRIVATE: a user's name, home, arguments, working directory
    def test_private(self):
        report, _ = self.private_report("1")
        text = report.read_text()
        for word in ("alice", "bob", "train.py --", "--device", "cuda:0"):
            self.assertNotIn(word, text)
        process, *_ = records = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([process[name] for name in ("hidden", "argv", "cwd", "uid")], [True, None, None, None])
        self.assertTrue(process["env"]["PYTHONPATH"] == "/scratch/…/lib:~/lib:~/lib", process["env"])
        failure, *_ = e2e.of_type(records, "failure")
        self.assertTrue(failure["python"][0]["file"].startswith("~/"), failure["python"])
        # Its owner reads it with the paths as they are.
        home = str(self.folder / "nfs/home/alice")
        own = json.loads(self.kshim("analyze", "--format", "json", report, env=e2e.clean_environment(HOME=home)).stdout)
        self.assertIn(home + "/", json.dumps(own["findings"][0]["where"]))
        # What is made to be kept or shared has it not.
        kept = self.kshim("analyze", "--format", "jsonl", "--full", report, env=e2e.clean_environment(HOME=home)).stdout
        self.assertIn("~/", kept)
        # The name of the report's own file is the reader's business.
        self.assertNotIn("alice", kept.replace(str(report), "").replace(str(report.parent), ""))
        for kind in ("markdown", "html"):
            shared = self.kshim("analyze", "--format", kind, report, env=e2e.clean_environment(HOME=home)).stdout
            self.assertNotIn(home, shared)

    def test_private_with_a_key(self):
        key = self.folder / "key"
        key.write_text("0123456789abcdef, the key of this site\n")
        report, said = self.private_report(str(key))
        text = report.read_text()
        process = json.loads(text.splitlines()[0])
        self.assertEqual(process["uid"], hmac.new(key.read_bytes().strip(), str(os.geteuid()).encode(), "sha256").hexdigest())
        self.assertNotIn("key of this site", text + said)

    def test_private_with_what_is_no_key(self):
        short, pipe = self.folder / "short", self.folder / "pipe"
        short.write_text("short")
        os.mkfifo(pipe)
        for key in (short, pipe, self.folder / "missing", self.folder, "/dev/zero", "yes"):
            with self.subTest(key=str(key)):
                report, said = self.private_report(str(key))
                process = json.loads(report.read_text().splitlines()[0])
                self.assertEqual([process[name] for name in ("hidden", "argv", "cwd", "uid")], [True, None, None, None])
                self.assertEqual(said.count("KSHIM_PRIVATE"), 1, said)
                shutil.rmtree(self.folder / "nfs")

    def test_all_arguments_but_known_secrets(self):
        report, said, named, plain = self.failing_program(KSHIM_ARGV="full")
        text = report.read_text()
        self.assert_none(text + said, named)
        argv = json.loads(text.splitlines()[0])["argv"]
        self.assertIn(plain["positional"], argv)
        self.assertIn("--password=…", argv)

    def test_no_arguments(self):
        report, said, named, plain = self.failing_program(KSHIM_ARGV="off")
        self.assert_none(report.read_text() + said, {**named, **plain})
        self.assertIsNone(json.loads(report.read_text().splitlines()[0])["argv"])


if __name__ == "__main__":
    e2e.main()
