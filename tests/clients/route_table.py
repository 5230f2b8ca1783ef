# SPDX-License-Identifier: Apache-2.0
"""The routes by which device code reaches a driver, each with the client that takes it: rows for routes.py."""
import dataclasses
import pathlib


@dataclasses.dataclass
class Route:
    name: str                 # how the code arrives
    client: str               # what takes that route: a row of the table
    argv: list                # relative names are programs of tests/clients in the build folder
    object: str = ""          # base name of the file that holds the code; "" for code that no file holds
    kernels: tuple = ()       # (mangled) names that must be found in failures and gaps of the failing device
    works: str = "9.0"        # a device on which everything runs
    fails: str = "8.0"        # one for which the code has no image; "" where there is none
    env: dict = dataclasses.field(default_factory=dict)
    refuses: bool = False     # the library's own check comes first: no driver call fails
    unnamed: bool = False     # the load itself fails, from memory: nobody has named a kernel yet
    needs: tuple = ()         # further files without which the row is skipped


def program(name):
    return pathlib.Path("tests/clients") / name


FATBIN, CUBIN, PTX = program("kernels.fatbin"), program("kernels.cubin"), program("kernels.ptx")
RUNTIME = ("_Z5plainPf", "_Z11cooperativePf", "_Z8extendedPf", "_Z8capturedPf", "_Z4nodePf", "_Z11entry_pointPf")


def routes(runtimes):
    """`runtimes`: {version: folder of its libcudart}, as far as tools/setup has fetched them."""
    rows = [
        Route("runtime 13, static", "nvcc: <<<>>>, cooperative, Ex, graphs, entry point", [program("runtime_static")],
              "runtime_static", RUNTIME),
        Route("runtime 13, shared", "the same", [program("runtime_shared")], "runtime_shared", RUNTIME),
        Route("per-thread default stream", "the same, --default-stream per-thread", [program("per_thread_stream")],
              "per_thread_stream", RUNTIME),
        Route("-rdc=true", "nvcc, two files", [program("relocatable")], "relocatable", ("_Z11relocatablePf",)),
        Route("cudaLibraryLoadData, FromFile", "a fatbin of its own", [program("library"), FATBIN], "", ("scale", "shift")),
        Route("driver by DT_NEEDED", "cuModuleLoadData, cuModuleLoad, cuLibraryLoadFromFile",
              [program("driver_needed"), "needed", FATBIN], "", ("scale",)),
        Route("dlopen and dlsym", "the same", [program("driver"), "dlsym", FATBIN], "", ("scale",)),
        Route("dlopen and dlvsym", "the same", [program("driver"), "dlvsym", FATBIN], "", ("scale",)),
        Route("cuGetProcAddress", "the same", [program("driver"), "getproc", FATBIN], "", ("scale",)),
        Route("cubin from memory and file", "the same", [program("driver"), "dlsym", CUBIN], "", ("scale",)),
        Route("PTX from memory and file", "the same", [program("driver"), "dlsym", PTX], "", ("scale",)),
        Route("NVRTC, nvJitLink, cuLink", "compiled in the process for 9.0", [program("compilers"), "90"], "", unnamed=True),
        Route("own static runtime", "cuBLAS, cuBLASLt: a GEMM", [program("cublas")], "libcublasLt.so.13", fails="11.0"),
        Route("own static runtime", "cuBLAS on a GPU it dropped", [program("cublas")], fails="6.1", refuses=True),
        Route("own static runtimes", "cuDNN: a convolution", [program("cudnn")], "libcudnn_engines_precompiled.so.9",
              fails="6.1"),
        Route("driver API from a library", "cuFFT", [program("cufft")], "libcufft.so.12", fails="6.1", refuses=True),
        Route("own static runtime", "cuRAND", [program("curand")], "libcurand.so.10", ("generate_seed_pseudo",), fails="6.1"),
        Route("own static runtime", "cuSPARSE: SpMV", [program("cusparse")], "libcusparse.so.12", ("empty_kernel",),
              fails="6.1"),
        Route("own static runtimes", "cuSOLVER: potrf", [program("cusolver")], "libcublasLt.so.13", fails="11.0"),
        Route("own static runtime", "NCCL: two ranks", [program("nccl")], "libnccl.so.2", works="9.0;9.0", fails="6.1;6.1"),
    ]
    for version, folder in sorted(runtimes.items(), key=lambda row: [int(part) for part in row[0].split(".")]):
        major = version.split(".")[0]
        rows.append(Route(f"runtime {version}, shared", "registered as nvcc 12 does", [program(f"old_{major}")],
                          f"old_{major}", ("scale",), env={"LD_LIBRARY_PATH": folder}))
    newest = {major: next((folder for version, folder in reversed(sorted(runtimes.items())) if version.startswith(major)), None)
              for major in ("11", "12")}
    if all(newest.values()):
        rows.append(Route("runtimes 11 and 12 in one process", "two libraries", [program("several"), program("libold_11"),
                          program("libold_12")], "libold_12", ("scale",), env={"LD_LIBRARY_PATH": ":".join(newest.values())}))
    return rows
