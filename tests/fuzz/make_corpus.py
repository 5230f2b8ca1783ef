# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py BUILD OUT [--nvcc NVCC]: seed corpora OUT/{fatbin,elf,ptx,select,device_code,archive,container} for long fuzzing runs.

What write_seeds composes, and, where there is an nvcc, small real files: fatbins, cubins and PTX of one source for several
architectures and compression modes, and a relocatable host object.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = r"""
__constant__ int table[4] = {1, 2, 3, 4};
__device__ int counter;
__managed__ int both;
__device__ __noinline__ int helper(int x) { return x * counter; }
extern "C" __global__ void first(int* out, double scale) {
  __shared__ int tile[32];
  tile[threadIdx.x] = helper(table[threadIdx.x & 3]);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x] * scale + both;
}
__global__ void __launch_bounds__(256) second(char c, long long* p) { *p = c; }
"""
ARCHS = ("75", "90a", "100f", "120")
MODES = ("none", "speed", "size")


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def real_files(nvcc, out):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "seed.cu")
        source.write_text(SOURCE)
        for arch in ARCHS:
            code = f"arch=compute_{arch},code=sm_{arch}"
            run(nvcc, "-cubin", "-gencode", code, "-o", out / "elf" / f"nvcc_{arch}", source)
            run(nvcc, "-ptx", f"-arch=compute_{arch}", "-o", out / "ptx" / f"nvcc_{arch}", source)
        for mode in MODES:
            codes = [f"-gencode=arch=compute_{arch},code=[sm_{arch},compute_{arch}]" for arch in ARCHS[:2]]
            run(nvcc, "-fatbin", f"-compress-mode={mode}", *codes, "-o", out / "fatbin" / f"nvcc_{mode}", source)
        run(nvcc, "-dc", "-arch=sm_80", "-o", out / "elf" / "nvcc_object", source)
        shutil.copy(out / "elf" / "nvcc_object", out / "device_code")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--nvcc", default=shutil.which("nvcc"))
    arguments = parser.parse_args()
    writer = arguments.build / "tests" / "fuzz" / "write_seeds"
    if not writer.exists():
        sys.exit(f"{writer}: not built: cmake --preset fuzz && cmake --build --preset fuzz")
    run(writer, arguments.out)
    if arguments.nvcc:
        real_files(arguments.nvcc, arguments.out)
    else:
        print("no nvcc: only composed files", file=sys.stderr)
    for folder in sorted(path for path in arguments.out.iterdir() if path.is_dir()):
        files = list(folder.iterdir())
        print(f"{folder}: {len(files)} files, {sum(file.stat().st_size for file in files)} bytes")


if __name__ == "__main__":
    main()
