#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Composes the reports of tests/golden that no sample leaves: what a shim would write on a machine where the driver, the memory or
a library is at fault.   compose.py        Afterwards: tests/golden/update."""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD_ID = "5e1f7b0c5b1d4c0e8d4f00112233445566778899"
WHEELS = "/home/ada/venv/lib/python3.12/site-packages"


class Report:
    """The lines of one report, in order."""

    def __init__(self, program, pid=4711, ppid=4700, **env):
        self.rows, self.failures, self.modules, self.exe = [], 0, 0, program
        self.add("process", schema="kshim-report/1", shim="0.1.0 (0123456789ab)", run=None, host="node7", pid=pid, start=912345,
                 ppid=ppid, rank=None, time="2026-11-21T09:00:00.000000000Z", exe=program, argv=[program.split("/")[-1]],
                 cwd="/home/ada", env=env)

    def add(self, kind, **fields):
        self.rows.append({"type": kind, "seq": len(self.rows), "t": len(self.rows) * 1234567, **fields})
        return self

    def driver(self, cuda="13.0", module="580.82.07"):
        return self.add("driver", path="/usr/lib/x86_64-linux-gnu/libcuda.so.1", cuda_version=cuda, kernel_module=module,
                        simulated=False)

    def device(self, name="NVIDIA A100-SXM4-80GB", cc="8.0", ordinal=0):
        return self.add("device", ordinal=ordinal, name=name, compute_capability=cc,
                        uuid=f"GPU-6e1f7b0c-5b1d-4c0e-8d4f-00000000000{ordinal}", pci=f"0000:0{ordinal + 1}:00.0")

    def library(self, soname, folder, version=None):
        return self.add("library", soname=soname, path=f"{folder}/{soname}", version=version or soname.split(".so.")[1],
                        build_id=f"{sum(map(ord, folder + soname)):040x}")

    def object(self, path, *images, number=1, runtime="static", build_id=BUILD_ID):
        rows = [{"kind": "ptx" if image.startswith("compute") else "cubin", "arch": image.split(":")[0],
                 "isa": (image.split(":") + [None])[1], "count": 1, "bytes": 4096} for image in images]
        return self.add("object", id=number, path=path, build_id=build_id, runtime=runtime, fatbins=1, images=rows or None)

    def module(self, number=1, owner=1, result=0, **more):
        self.modules += 1
        fields = {"offset": 531088 if owner else None, "content_hash": None if owner else "a1b2c3d4e5f60718", "size": 8192,
                  "api": "cuLibraryLoadData", "selected": None, "jit": None, "ms": 0.02, "device": 0, **more}
        return self.add("module", id=number, object=owner, result=result, **fields)

    def failure(self, stage, *layers, **more):
        """layers: "driver cuInit 803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", innermost first."""
        self.failures += 1
        split = [layer.split() for layer in layers]
        frame = {"object": self.exe, "build_id": None, "offset": 8000, "symbol": "main"}
        fields = {"device": 0, "kernel": None, "module": None, "object": None, "tid": 4711, "native": [frame], "python": None,
                  "python_main": None, **more}
        return self.add("failure", id=self.failures, stage=stage,
                        layers=[{"layer": each[0], "api": each[1], "code": int(each[2]), "name": each[3]} for each in split], **fields)

    def end(self):
        return self.add("end", time="2026-11-21T09:00:01.000000000Z", failures=self.failures, modules=self.modules, dropped=0)


def on_gpu(program, **env):
    return Report(f"/home/ada/{program}/{program}", **env).driver().device()


def launch(report, code, names, kernel="_Z4stepPfi", **more):
    driver, runtime = names
    return report.failure("launch", f"driver cuLaunchKernel {code} {driver}", f"runtime cudaLaunchKernel {code} {runtime}",
                          kernel=kernel, module=1, object=1, **more)


def frame(path):
    return {"object": path, "build_id": None, "offset": 65536, "symbol": None}


def cases():
    """(case, what it is, reports, how `kshim analyze` ends, further keys of case.json)"""
    bare = Report("/home/ada/train/train")
    yield "driver-mismatch", "803: libcuda was updated, and the kernel module was not", [
        Report("/home/ada/train/train").library("libcuda.so.1", "/usr/lib/x86_64-linux-gnu", "580.95.05").failure(
            "init", "driver cuInit 803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", device=None).end()], 1, {}
    yield "driver-mismatch-compat", "804: cuda-compat on a GPU that it is not for", [
        Report("/home/ada/train/train", LD_LIBRARY_PATH="/usr/local/cuda/compat").library(
            "libcuda.so.1", "/usr/local/cuda/compat", "580.82.07").failure(
                "init", "driver cuInit 804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", device=None).end()], 1, {}
    yield "driver-mismatch-stub", "34: the toolkit's stub in the driver's place", [
        Report("/home/ada/train/train", LD_LIBRARY_PATH="/usr/local/cuda/lib64/stubs").library(
            "libcuda.so.1", "/usr/local/cuda/lib64/stubs").failure(
                "init", "driver cuInit 34 CUDA_ERROR_STUB_LIBRARY", device=None).end()], 1, {}
    yield "no-device", "100: the driver shows no GPU", [
        Report("/home/ada/train/train", CUDA_VISIBLE_DEVICES="").driver().failure(
            "init", "driver cuInit 100 CUDA_ERROR_NO_DEVICE", device=None).end()], 1, {}
    yield "no-device-container", "35 where no libcuda is mapped: a container without its GPU", [
        bare.library("libcudart.so.12", "/usr/local/cuda/lib64").failure(
            "init", "runtime cudaGetDeviceCount 35 cudaErrorInsufficientDriver", device=None).end()], 1, {}
    yield "driver-too-old", "35: a runtime of CUDA 13 on a driver for 12.4", [
        Report("/home/ada/train/train").driver("12.4", "550.54.15").library("libcudart.so.13", "/usr/local/cuda/lib64").library(
            "libcuda.so.1", "/usr/lib/x86_64-linux-gnu", "550.54.15").failure(
                "init", "runtime cudaGetDeviceCount 35 cudaErrorInsufficientDriver", device=None).end()], 1, {}
    yield "invalid-device", "101: device 1 of one", [
        on_gpu("train").failure("other", "driver cuDeviceGet 101 CUDA_ERROR_INVALID_DEVICE",
                                "runtime cudaSetDevice 101 cudaErrorInvalidDevice", device=None).end()], 1, {}
    parent = Report("/usr/bin/python3", pid=4700, ppid=1).driver().device().end()
    child = Report("/usr/bin/python3").failure("init", "driver cuCtxGetCurrent 3 CUDA_ERROR_NOT_INITIALIZED",
                                               "runtime cudaMalloc 3 cudaErrorInitializationError").end()
    yield "fork-after-init", "3 in the child of a process that had initialized CUDA", [parent, child], 1, {}
    yield "out-of-memory", "2", [on_gpu("train").failure("other", "driver cuMemAlloc_v2 2 CUDA_ERROR_OUT_OF_MEMORY",
                                                         "runtime cudaMalloc 2 cudaErrorMemoryAllocation").end()], 1, {}
    yield "launch-resources", "701: more registers than a block may have", [
        launch(on_gpu("train").object("/home/ada/train/train", "sm_80").module(), 701,
               ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources")).end()], 1, {}
    yield "device-fault", "700: told by a later call", [
        on_gpu("train").object("/home/ada/train/train", "sm_80").module().failure(
            "other", "driver cuStreamSynchronize 700 CUDA_ERROR_ILLEGAL_ADDRESS",
            "runtime cudaStreamSynchronize 700 cudaErrorIllegalAddress").end()], 1, {}
    yield "context-mismatch", "400: a stream of another GPU", [
        launch(on_gpu("train").device(ordinal=1).object("/home/ada/train/train", "sm_80").module(), 400,
               ("CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle")).end()], 1, {}
    yield "jit-compiler-missing", "221: PTX, and no compiler for it", [
        launch(on_gpu("train").object("/home/ada/train/train", "sm_75", "compute_75:8.0").module(result=221), 221,
               ("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "cudaErrorJitCompilerNotFound")).end()], 1, {}
    yield "driver-too-old-for-image", "200: a cubin of CUDA 13 on a driver for 12.4", [
        Report("/home/ada/train/train").driver("12.4", "550.54.15").device().module(
            owner=None, result=200, api="cuModuleLoadData", selected="sm_80", toolkit="13.0").failure(
                "load", "driver cuModuleLoadData 200 CUDA_ERROR_INVALID_IMAGE", module=1).end()], 1, {}
    yield "nvrtc-arch-unsupported", "NVRTC 13.0 was asked for a GPU that it dropped", [
        Report("/usr/bin/python3").driver().device("NVIDIA GeForce GTX 1080", "6.1").library(
            "libnvrtc.so.13", f"{WHEELS}/nvidia/cu13/lib").failure(
                "other", "nvrtc nvrtcCompileProgram 5 NVRTC_ERROR_INVALID_OPTION", asked="compute_61", compiler="13.0",
                known=["compute_75", "compute_80", "compute_90", "compute_120"],
                python=[{"file": "/home/ada/blur.py", "line": 12, "function": "blur"}]).end()], 1, {}
    yield "jit-tax", "it works, and compiles for 4.2 s first", [
        on_gpu("train").object("/home/ada/train/train", "sm_70", "compute_70:8.0").module(
            selected="compute_70", jit=True, ms=4200.0).end()], 0, {}
    yield "latent-gap", "a library has nothing for the GPU, and nobody has run into it", [
        on_gpu("train").object("/home/ada/train/libextra.so", "sm_90").add(
            "gap", object=1, offset=531088, device=0, kernels=["_Z5extraPf"], complete=True, have=["sm_90"], need="sm_80").end()], 0, {}
    probe = on_gpu("train").object("/usr/local/cuda/lib64/libcusparseLt.so.0", "sm_90", runtime="none").module(
        result=209, api="cuModuleLoadFatBinary").failure(
            "load", "driver cuModuleLoadFatBinary 209 CUDA_ERROR_NO_BINARY_FOR_GPU", module=1, object=1,
            native=[frame("/usr/local/cuda/lib64/libcusparseLt.so.0")])
    probe.add("repeat", id=1, count=2241)
    yield "benign-probe", "cuSPARSELt tries its images at start-up", [probe.end()], 0, {}
    stale = Report("/home/ada/train/train").driver().device().object("/usr/local/cuda/lib64/libnccl.so.2", "sm_90", runtime="none")
    stale.object("/home/ada/train/libstep.so", "sm_80", number=2, runtime="shared", build_id=None).failure(
        "query", "driver cuFuncGetAttribute 209 CUDA_ERROR_NO_BINARY_FOR_GPU", "runtime cudaFuncGetAttributes 209 "
        "cudaErrorNoKernelImageForDevice", kernel="_Z4ncclPf", object=1, native=[frame("/usr/local/cuda/lib64/libnccl.so.2")])
    stale.add("read", failure=1, api="cudaGetLastError", code=209, object=2, native=[frame("/home/ada/train/libstep.so")], python=None)
    yield "stale-error", "what NCCL's probing left is reported by somebody else", [stale.end()], 0, {"exit_status": 1}
    unchecked = launch(on_gpu("train").object("/home/ada/train/train", "sm_90", runtime="shared").module(result=209), 209,
                       ("CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice"))
    yield "unchecked-failure", "a launch failed, and the exit status is 0", [unchecked.end()], 1, {"exit_status": 0}
    yield "unknown", "999 tells nothing", [
        on_gpu("train").failure("other", "driver cuCtxSynchronize 999 CUDA_ERROR_UNKNOWN",
                                "runtime cudaDeviceSynchronize 999 cudaErrorUnknown").end()], 1, {}
    cublas = Report("/usr/bin/python3", LD_LIBRARY_PATH="/usr/local/cuda-12.1/lib64").driver().device()
    cublas.library("libcublas.so.12", f"{WHEELS}/nvidia/cublas/lib", "12.4.5.8")
    cublas.library("libcublasLt.so.12", "/usr/local/cuda-12.1/lib64", "12.1.3.1")
    cublas.failure("launch", "driver cuLaunchKernel 400 CUDA_ERROR_INVALID_HANDLE",
                   native=[frame("/usr/local/cuda-12.1/lib64/libcublasLt.so.12"), frame(f"{WHEELS}/nvidia/cublas/lib/libcublas.so.12")],
                   python=[{"file": "/home/ada/train.py", "line": 31, "function": "step"}])
    yield "mixed-cuda-libraries", "the wheel's cuBLAS with the cuBLASLt of a toolkit", [cublas.end()], 1, {}
    yield "mixed-cuda-libraries-side-by-side", "two runtimes, and nothing failed", [
        on_gpu("train").library("libcudart.so.11.0", "/opt/old").library("libcudart.so.12", "/usr/local/cuda/lib64").end()], 0, {}
    cudnn = Report("/usr/bin/python3", LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu:/opt/tools/lib").driver().device()
    cudnn.library("libcudnn_graph.so.9", f"{WHEELS}/nvidia/cudnn/lib", "9.10.2")
    cudnn.library("libcudnn_ops.so.9", "/usr/lib/x86_64-linux-gnu", "9.1.0")
    yield "cudnn-mismatch", "parts of cuDNN of two releases, and the program gave up", [cudnn.end()], 0, {"exit_status": 1}
    dropped = Report("/usr/bin/python3").driver("12.9", "575.57.08").device("NVIDIA GeForce GTX 1080", "6.1")
    dropped.library("libcudnn_graph.so.9", f"{WHEELS}/nvidia/cudnn/lib", "9.14.0")
    yield "cudnn-mismatch-dropped", "a cuDNN that no longer serves the GPU, and nothing failed yet", [dropped.end()], 0, {}
    yield "library-not-found", "the dynamic linker did not find a library", [], 1, {
        "exit_status": 127, "missing": ["/home/ada/train/train", "libcublas.so.12", "/home/ada/train/libstep.so", "/opt/conda/lib"]}
    refused = on_gpu("fft").library("libcufft.so.12", ".")
    refused.rows[-1].update(path="libcufft.so.12", build_id=None)
    refused.rows[2].update(name="NVIDIA H100 80GB HBM3", compute_capability="9.0")
    yield "library-refuses", "no call failed, and cuFFT has nothing for the GPU", [refused.end()], 0, {"exit_status": 1}
    cached = Report("/usr/bin/python3", TRITON_CACHE_DIR="@FOLDER@/cache").driver().device()
    cached.module(owner=None, result=209, api="cuModuleLoadData", content_hash="880330a91f84035c", size=4328, toolkit="13.0")
    cached.add("gap", object=None, offset=None, device=0, kernels=["_Z7guardedPfi"], complete=True, have=["sm_75"], need="sm_80")
    cached.failure("load", "driver cuModuleLoadData 209 CUDA_ERROR_NO_BINARY_FOR_GPU", module=1,
                   python=[{"file": "/home/ada/blur.py", "line": 12, "function": "blur"}])
    yield "stale-cache-artifact", "a cubin from memory that lies in Triton's cache", [cached.end()], 1, {"moved": True}
    out = Report("/home/ada/train/train", KSHIM_COVERAGE="1").driver().device("Tesla T4", "7.5").object(
        "kernels.fatbin", runtime="none", build_id=None)
    out.module(offset=0, selected="sm_75").add("coverage", kernel="_Z7guardedPfi", object=1, module=1, launches=12)
    out.add("coverage", kernel="_Z5plainPfi", object=1, module=1, launches=12)
    yield "compiled-out", "a kernel without code for sm_75 was launched", [out.end()], 0, {}


def main():
    for case, what, reports, status, more in cases():
        folder = os.path.join(HERE, case)
        os.makedirs(folder, exist_ok=True)
        names = ["report.jsonl"] if len(reports) == 1 else [f"report.{number}.jsonl" for number in range(len(reports))]
        for name, report in zip(names, reports):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                for row in report.rows:
                    file.write(json.dumps(row, separators=(",", ":")) + "\n")
        with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
            json.dump({"what": what, "args": names, "status": status, **more}, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
