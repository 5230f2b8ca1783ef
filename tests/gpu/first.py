# SPDX-License-Identifier: Apache-2.0
"""What decides most, asked first and within a minute or two: the driver's words and their order in CUDA_LOG_FILE, whether processes may
share that file, what a library of CUDA_INJECTION64_PATH may call, at which call an image that is missing is found out, what a
thread's first stream-ordered allocation logs, MIG, what kshim costs, and the samples."""
import json
import pathlib
import re
import subprocess
import sys
import time

# Through ctypes, in a process of its own each: words[1:] are what to do.
CALLS = r'''
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
out, device, context = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
def begin():
    cuda.cuInit(0); cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device); cuda.cuCtxSetCurrent(context)
def data(path): return open(path, "rb").read() + b"\0"
def module(path): return cuda.cuModuleLoadData(ctypes.byref(out), data(path))
def library(load, path):
    kernel, function, made = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    said = [("load", load(made, path))]
    if said[0][1] == 0:
        said.append(("kernel", cuda.cuLibraryGetKernel(ctypes.byref(kernel), made, b"first")))
        said.append(("module", cuda.cuLibraryGetModule(ctypes.byref(function), made)))
        if said[1][1] == 0:
            said.append(("function", cuda.cuKernelGetFunction(ctypes.byref(function), kernel)))
            said.append(("launch", cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)))
    return " ".join(f"{name}={code}" for name, code in said)
what = sys.argv[1]
if what != "no-context": begin()
if what == "module": print(module(sys.argv[2]))
elif what == "no-context": cuda.cuInit(0); print(module(sys.argv[2]))
elif what == "many":
    for _ in range(int(sys.argv[3])): module(sys.argv[2])
elif what == "library":
    bytes_of = data(sys.argv[2])
    print(library(lambda made, path: cuda.cuLibraryLoadData(ctypes.byref(made), bytes_of, None, None, 0, None, None, 0), sys.argv[2]))
elif what == "library-file":
    print(library(lambda made, path: cuda.cuLibraryLoadFromFile(ctypes.byref(made), path.encode(), None, None, 0, None, None, 0), sys.argv[2]))
elif what == "uuid":
    one, two = (ctypes.c_ubyte * 16)(), (ctypes.c_ubyte * 16)()
    codes = cuda.cuDeviceGetUuid(one, device), cuda.cuDeviceGetUuid_v2(two, device)
    print(codes, "the same" if bytes(one) == bytes(two) else "different", "MIG" if len(sys.argv) > 2 else "")
'''

INJECTED = r'''
#include <dlfcn.h>
#include <stdio.h>
static void heard(void* data, int level, char* text, size_t size) { (void)data; (void)level; printf("heard %.*s\n", (int)size, text); fflush(stdout); }
static int call(void* cuda, const char* name) { void* f = dlsym(cuda, name); return f != NULL; }
int InitializeInjection(void) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  printf("called, libcuda %s\n", cuda != NULL ? "loaded" : "not loaded");
  if (cuda == NULL) return 1;
  int version = 0, count = -1;
  int (*get)(int*) = (int (*)(int*))dlsym(cuda, "cuDriverGetVersion");
  printf("cuDriverGetVersion %d\n", get(&version));
  int (*devices)(int*) = (int (*)(int*))dlsym(cuda, "cuDeviceGetCount");
  printf("cuDeviceGetCount %d\n", devices(&count));
  void* handle = NULL;
  if (call(cuda, "cuLogsRegisterCallback")) {
    int (*listen)(void*, void*, void**) = (int (*)(void*, void*, void**))dlsym(cuda, "cuLogsRegisterCallback");
    printf("cuLogsRegisterCallback %d\n", listen((void*)heard, NULL, &handle));
  }
  fflush(stdout);
  return 1;
}
'''

FIRST_ALLOCATION = r'''
#include <cstdio>
#include <thread>
int main() {
  cudaFree(nullptr);
  std::thread([] {
    void* memory = nullptr;
    std::printf("cudaMallocAsync %d\n", static_cast<int>(cudaMallocAsync(&memory, 64, nullptr)));
  }).join();
}
'''

SAMPLES = {"01_missing_architecture": "saxpy", "02_ptx_newer_than_gpu": "histogram", "03_arch_specific_sm_90a": "attention",
           "04_kernel_absent_from_one_image": "convert", "05_driver_api": "blur", "06_dlopen_library": "host"}
LOG_HEAD = re.compile(r"^\[[0-9:.]+\]\[([0-9]+)\]")


class First:
    def __init__(self, driver, root, nvcc, work, build, device):
        self.driver, self.root, self.nvcc, self.work, self.build = driver, root, nvcc, work, build
        self.device = f"{device['major']}{device['minor']}"
        self.rows = []  # [question, answer, evidence]

    def add(self, question, answer, evidence=""):
        self.rows.append([question, str(answer), str(evidence)])

    def ask(self, *words, log=True, **changes):
        """What the calls print, and the lines of the driver's log without their times."""
        file = self.work / "driver.log"
        file.unlink(missing_ok=True)
        done = self.driver.run([sys.executable, "-c", CALLS, *words], timeout=60, **({"CUDA_LOG_FILE": str(file)} if log else {}), **changes)
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return done.stdout.decode(errors="replace").strip(), [LOG_HEAD.sub("", line) for line in lines]

    def make(self, name, argv, text=None):
        """A file that a compiler makes; None where it does not."""
        output = self.work / name
        if text is not None:
            (self.work / argv[-1]).write_text(text)
        done = subprocess.run([str(word) for word in (*argv[:-1], "-o", output, self.work / argv[-1] if text is not None else argv[-1])],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=self.work)
        if done.returncode != 0:
            self.add(f"{name} could not be built", done.returncode, done.stdout.decode(errors="replace").strip().splitlines()[-1:])
        return output if done.returncode == 0 else None

    def write(self, name, text):
        (self.work / name).write_text(text)
        return self.work / name

    def images(self):
        other = "75" if self.device != "75" else "90"
        self.foreign = self.make("first_foreign.fatbin", [self.nvcc, "-fatbin", "-gencode", f"arch=compute_{other},code=sm_{other}",
                                                          self.root / "tests/gpu/kernels.cu"])
        ptx = "\n.target sm_75\n.address_size 64\n.visible .entry first()\n{\n  ret;\n}\n"
        self.newer = self.write("newer.ptx", f".version 99.0{ptx}")
        self.broken = self.write("broken.ptx", f".version 7.0{ptx}".replace("}", ""))
        self.nothing = self.write("nothing.bin", "these bytes are no image\n")

    def words(self):
        for code, path in (("209", self.foreign), ("222", self.newer), ("218", self.broken), ("200 or 300", self.nothing)):
            if path is not None:
                said, lines = self.ask("module", path)
                self.add(f"CUDA_LOG_FILE: what stands there after cuModuleLoadData, {code} expected", said, " / ".join(lines) or "nothing")
        said, lines = self.ask("no-context", self.nothing)
        self.add("CUDA_LOG_FILE: a load without a context", said, " / ".join(lines) or "nothing")
        said, lines = self.ask("module", self.nothing, log=False)
        self.add("cuModuleLoadData without CUDA_LOG_FILE", said)

    def shared_file(self):
        file = self.work / "shared.log"
        file.unlink(missing_ok=True)
        environment = {**self.driver.environment, "CUDA_LOG_FILE": str(file)}
        both = [subprocess.Popen([sys.executable, "-c", CALLS, "many", str(self.newer), "200"], env=environment) for _ in range(2)]
        for each in both:
            each.wait(timeout=60)
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        threads = {match[1] for match in map(LOG_HEAD.match, lines) if match}
        self.add("CUDA_LOG_FILE of two processes at once, 200 failures each", f"{len(lines)} lines of {len(threads)} threads",
                 f"{sum(LOG_HEAD.match(line) is None for line in lines)} lines without a head")

    def libraries(self):
        for mode in ("LAZY", "EAGER"):
            for what, path in (("a fatbin without an image for the GPU", self.foreign), ("a file that is no image", self.nothing)):
                for call in ("library", "library-file"):
                    if path is not None:
                        said, lines = self.ask(call, path, CUDA_MODULE_LOADING=mode)
                        self.add(f"cuLibrary, {mode.lower()}, {'from a file' if call == 'library-file' else 'from memory'}: {what}", said, " / ".join(lines))

    def injection(self):
        library = self.make("injected.so", ["cc", "-shared", "-fPIC", "injected.c"], INJECTED)
        if library is None:
            return
        done = self.driver.run([sys.executable, "-c", CALLS, "module", self.nothing], timeout=60, CUDA_INJECTION64_PATH=str(library))
        self.add("CUDA_INJECTION64_PATH: what InitializeInjection may call", "not called" if b"called" not in done.stdout else "called",
                 " / ".join(done.stdout.decode(errors="replace").splitlines()))

    def allocation(self):
        program = self.make("first_allocation", [self.nvcc, "-cudart", "shared", "-Xlinker", f"-rpath={self.libraries_folder()}", "first_allocation.cu"],
                            FIRST_ALLOCATION)
        if program is None:
            return
        file = self.work / "driver.log"
        file.unlink(missing_ok=True)
        done = self.driver.run([program], timeout=60, CUDA_LOG_FILE=str(file))
        lines = [LOG_HEAD.sub("", line) for line in file.read_text(errors="replace").splitlines()] if file.exists() else []
        self.add("A thread's first cudaMallocAsync", done.stdout.decode(errors="replace").strip(), " / ".join(lines) or "nothing in the log")

    def libraries_folder(self):
        toolkit = self.nvcc.parent.parent
        return next((toolkit / name for name in ("lib64", "lib", "targets/x86_64-linux/lib") if (toolkit / name / "libcudart_static.a").exists()),
                    toolkit / "lib64")

    def uuid(self):
        said, _ = self.ask("uuid", log=False)
        self.add("cuDeviceGetUuid and cuDeviceGetUuid_v2", said)
        try:
            done = self.driver.run(["nvidia-smi", "-L"], timeout=30)
        except FileNotFoundError:
            return
        # Forms, not numbers.
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "...", done.stdout.decode(errors="replace").strip())
        self.add("nvidia-smi -L", "MIG" if "MIG" in text else "no MIG", text)

    def with_kshim(self):
        """Costs and samples, with the shim and the command of a build."""
        shim, kshim = (self.build / part for part in ("shim/libkshim.so", "analyzer/kshim")) if self.build else (None, None)
        if shim is None or not shim.exists() or not kshim.exists():
            self.add("kshim on this machine", "not there: --build names a folder with the shim and the command")
            return
        fits = ["-gencode", f"arch=compute_{self.device},code=sm_{self.device}"]
        loop = self.make("launch_loop", [self.nvcc, "-O2", "-std=c++17", *fits, self.root / "bench/launch_loop.cu"])
        fails = self.make("fail_loop", [self.nvcc, "-O2", "-std=c++17", "-gencode", "arch=compute_75,code=sm_75", self.root / "bench/fail_loop.cu"]) \
            if self.device != "75" else None
        for name, program, *words in (("launches", loop), ("a first failure", fails, "first", "1"), ("20,000 failures", fails, "again", "20000")):
            if program is None:
                continue
            for which, changes in (("without the shim", {}), ("with it", {"LD_PRELOAD": str(shim), "KSHIM_REPORT": str(self.work / "cost.%p.jsonl"), "KSHIM_LOG": "off"})):
                begin = time.monotonic()
                done = self.driver.run([program, *words], timeout=60, **changes)
                self.add(f"{name}, {which}", f"{time.monotonic() - begin:.2f} s, status {done.returncode}", done.stdout.decode(errors="replace").strip())
        for name, program in SAMPLES.items():
            folder, said = self.build / "samples" / name, self.work / "sample.json"
            if not (folder / program).exists():
                self.add(f"kshim run of samples/{name}", "not there")
                continue
            command = ["env", "-C", folder, kshim, "run", "--format", "json", "-o", said, "--report", self.work / "sample", "--", f"./{program}"]
            done = self.driver.run(command, timeout=60, LD_LIBRARY_PATH=":".join(filter(None, (str(self.build / "lib"), self.driver.environment.get("LD_LIBRARY_PATH")))))
            found = json.loads(said.read_text()) if said.exists() else {}
            said.unlink(missing_ok=True)
            self.add(f"kshim run of samples/{name}", found.get("verdict", f"status {done.returncode}"),
                     "; ".join(f"{row['cause']} {row.get('code')}" for row in found.get("findings", [])) or done.stdout.decode(errors="replace")[-200:])

    def steps(self, kshim):
        asked = [self.images, self.words, self.libraries, self.shared_file, self.injection, self.allocation, self.uuid]
        return [*asked, self.with_kshim] if kshim else asked


def ask(driver, root, nvcc, work, build, device, written, kshim=True):
    """[question, answer, evidence]; `written(rows)` after each step, so that a run that is cut short has brought something."""
    first = First(driver, root, nvcc, work, build, device)
    for step in first.steps(kshim):
        begin = time.monotonic()
        try:
            step()
        except (OSError, subprocess.TimeoutExpired, ValueError) as problem:
            first.add(f"{step.__name__} ended early", type(problem).__name__, problem)
        print(f"  first: {step.__name__} {time.monotonic() - begin:.1f} s", flush=True)
        written(first.rows)
    return first.rows
