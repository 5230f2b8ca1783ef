# SPDX-License-Identifier: Apache-2.0
"""The routes by which device code reaches a driver, each with the client that takes it: rows for routes.py."""
from __future__ import annotations

import dataclasses
import pathlib
import re

import e2e

SOURCE = e2e.SOURCE.resolve()
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# tools/clients makes them. Not resolved: by the link Python knows its environment.
PYTHON, TORCH, TILE = (SOURCE / f"build/deps/clients/{name}/bin/python3" for name in ("venv", "torch", "tile"))

@dataclasses.dataclass
class Route:
    name: str                 # how the code arrives
    client: str               # what takes that route: a row of the table
    argv: list                # relative paths are below the build folder
    object: str | tuple = ""  # base name of the file that holds the code, "" for code that no file holds; or all of several
    kernels: tuple = ()       # (mangled) names that must be found in failures and gaps of the failing device
    works: str = "9.0"        # a device on which everything runs
    fails: str = "8.0"        # one for which the code has no image; "" where there is none
    env: dict = dataclasses.field(default_factory=dict)
    refuses: bool = False     # the library's own check comes first: no driver call fails
    unnamed: bool = False     # the load itself fails, from memory: nobody has named a kernel yet
    needs: tuple = ()         # further files without which the row is skipped
    failures: int = 0         # how many failures there are; 0 where no number is meant
    script: pathlib.Path | None = None  # a Python client: its lines are looked for in the failures
    compiler: str = ""        # the layer that refuses in the driver's place: nvrtc, nvjitlink
    compiles: bool = False    # it wants a C compiler and Python's headers


def program(name):
    return pathlib.Path("tests/clients") / name


def python(name, client, script, arguments, object_name="", kernels=(), interpreter=PYTHON, **more):
    """A client of an environment that tools/clients makes."""
    path = PROGRAMS / f"{script}.py"
    return Route(name, client, [interpreter, "-B", str(path), *arguments], object_name, kernels, script=path, **more)


FATBIN, CUBIN, PTX = program("kernels.fatbin"), program("kernels.cubin"), program("kernels.ptx")
EAGER = {"CUDA_MODULE_LOADING": "EAGER"}
RUNTIME = ("_Z5plainPf", "_Z11cooperativePf", "_Z8extendedPf", "_Z8capturedPf", "_Z4nodePf", "_Z11entry_pointPf")


def routes(runtimes):
    """`runtimes`: {version: folder of its libcudart}, oldest first."""
    rows = [
        Route("runtime 13, static", "nvcc: <<<>>>, cooperative, Ex, graphs, entry point", [program("runtime_static")],
              "runtime_static", RUNTIME),
        Route("runtime 13, shared", "the same", [program("runtime_shared")], "runtime_shared", RUNTIME),
        Route("runtime 13, static, eager", "the same", [program("runtime_static")], "runtime_static", RUNTIME, env=EAGER),
        Route("a runtime that a library lends", "<<<>>>, names without a version", [program("lent")], "lent", ("_Z4lentPf",)),
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
        Route("NVRTC, nvJitLink, cuLink", "compiled in the process for 9.0", [program("compilers"), "90"], "", ("scale",)),
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
    rows += python_clients()
    for version, folder in runtimes.items():
        major = version.split(".")[0]
        rows.append(Route(f"runtime {version}, shared", "registered as nvcc 12 does", [program(f"old_{major}")],
                          f"old_{major}", ("scale",), env={"LD_LIBRARY_PATH": folder, "KSHIM_PATCH_TABLE": "1"}, failures=1))
    # Loaded at the first call, which hides the driver's error. At the launch runtime 11 repeats it from memory, a second failure;
    # runtime 12.9 has 400.
    for major, folder in newest(runtimes).items():
        rows.append(Route(f"runtime {major}, shared, eager", "the same", [program(f"old_{major}")], f"old_{major}", ("scale",),
                          env={"LD_LIBRARY_PATH": folder, "KSHIM_PATCH_TABLE": "1", **EAGER}, failures=2 if major == "11" else 1))
    return rows + several_runtimes(runtimes)


def python_clients():
    forced = {"NUMBA_FORCE_CUDA_CC": "9.0"}
    return [
        python("CuPy", "elementwise, RawKernel; RawModule of files", "with_cupy", [FATBIN, CUBIN, PTX],
               ("kernels.fatbin", "kernels.cubin", "kernels.ptx"), unnamed=True),
        python("CuPy", "on a GPU that NVRTC dropped", "with_cupy", [], "libnvrtc.so.13", fails="6.1", compiler="nvrtc",
               unnamed=True),
        python("Numba-CUDA", "cuda.jit; create_module_image", "with_numba", [CUBIN], "kernels.cubin", ("scale",)),
        python("Numba-CUDA", "with NUMBA_FORCE_CUDA_CC, on an older GPU", "with_numba", [], refuses=True, env=forced),
        python("Numba-CUDA", "on a GPU that nvJitLink dropped", "with_numba", [], "libnvJitLink.so.13", fails="6.1",
               compiler="nvjitlink", unnamed=True, env=forced),
        python("cuda-python", "NVRTC for 9.0, driver bindings", "with_cuda_python", ["sm_90", CUBIN], ("", "kernels.cubin"),
               ("mine",)),
        python("cuda-core", "Program, ObjectCode, launch", "with_cuda_core", ["sm_90", CUBIN], ("", "kernels.cubin"),
               ("mine", "scale")),
        python("Triton, its launcher", "triton.jit; compiled ahead for 9.0", "with_triton", ["90"], "", ("tritons",),
               compiles=True),
        python("cuTile", "a kernel of tiles, compiled by its tileiras", "with_cutile", [], interpreter=TILE, fails="7.5",
               refuses=True, env={"CUDA_TILE_CACHE_SIZE": "0"}),
        python("PyTorch", "its kernels and libraries, a graph, jiterator", "with_torch", [], "libtorch_cuda.so",
               ("vectorized_elementwise_kernel",), interpreter=TORCH, fails="6.1"),
    ]


def several_runtimes(runtimes):
    folders = newest(runtimes)
    libraries = {"11": "libold_11", "12": "libold_12", "13": "lib13_shared", "13, static": "lib13_static"}
    rows = []
    for together in (("11", "12"), ("12", "13"), ("11", "13"), ("11", "12", "13, static")):
        older = [each for each in together if not each.startswith("13")]
        if all(each in folders for each in older):
            names = tuple(libraries[each] for each in together)
            rows.append(Route(f"runtimes {', '.join(together[:-1])} and {together[-1]} in one process", f"{len(together)} libraries",
                              [program("several"), *map(program, names)], names, ("scale",), failures=len(together),
                              env={"LD_LIBRARY_PATH": ":".join(folders[each] for each in older), "KSHIM_PATCH_TABLE": "1"}))
    return rows


def newest(runtimes):
    """{major: folder}"""
    return {version.split(".")[0]: folder for version, folder in runtimes.items()}


def in_order(versions):
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def found_runtimes():
    """{version: folder of its libcudart}, as far as tools/setup has fetched them; oldest first."""
    found = {folder.parts[-4]: str(folder)
             for folder in (SOURCE / "build/deps/runtimes").glob("*/nvidia/cuda_runtime/lib")}
    return {version: found[version] for version in in_order(found)}


def wanted_runtimes():
    """The versions that tools/setup fetches, wherever that would put them."""
    text = (SOURCE / "tools/requirements-runtimes.txt").read_text(encoding="utf-8")
    return {version: "" for version in in_order(re.findall(r"^nvidia-cuda-runtime\S*==(\S+)", text, re.MULTILINE))}
