# SPDX-License-Identifier: Apache-2.0
"""cuBLAS and cuDNN, unmodified, make and destroy their handles on the simulated driver.  cublas.py FOLDER-OF-LIBCUBLAS"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys

CUBLAS, CUDNN = "libcublas.so.13", "libcudnn.so.9"
ARCH_MISMATCH = 8  # CUBLAS_STATUS_ARCH_MISMATCH


def handle(library, create, destroy):
    """What create and destroy return; None where this machine has no such library."""
    try:
        loaded = ctypes.CDLL(library)
    except OSError:
        return None
    made = ctypes.c_void_p()
    created = getattr(loaded, create)(ctypes.byref(made))
    return created, getattr(loaded, destroy)(made) if created == 0 else None


def main():
    folder = pathlib.Path(sys.argv[1])
    if not (folder / CUBLAS).exists():
        print(f"skipped: no {CUBLAS} in {folder}")
        return 77
    wrong = 0
    simulator = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "sim"
    # Else the sanitizer comes with the simulator, behind cuDNN, and is handed back what it never gave.
    needed = subprocess.run(["ldd", simulator / "libcuda.so.1"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    sanitizer = " ".join(re.findall(r"=> (/\S*/lib[at]san\S*)", needed))
    # cuBLAS 13 refuses what is older than 7.5 by itself.
    wanted = {"6.1": ARCH_MISMATCH, "7.5": 0, "8.6": 0, "9.0": 0, "10.0": 0, "12.0": 0}
    for cc, result in wanted.items():
        environment = {**os.environ, "KSHIM_SIM_DEVICES": cc, "LD_LIBRARY_PATH": f"{simulator}:{folder}", "LD_PRELOAD": sanitizer}
        done = subprocess.run([sys.executable, "-B", __file__, "--in-child"], env=environment, stdout=subprocess.PIPE,
                              universal_newlines=True, check=False)
        cublas, cudnn = (done.stdout.splitlines() + ["", ""])[:2]
        good = cublas == str((result, None if result else 0)) and cudnn in ("None", "(0, 0)")
        if done.returncode != 0 or not good:
            print(f"{cc}: exit status {done.returncode}, cuBLAS {cublas}, cuDNN {cudnn}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--in-child":
        print(handle(CUBLAS, "cublasCreate_v2", "cublasDestroy_v2"))
        print(handle(CUDNN, "cudnnCreate", "cudnnDestroy"))
    else:
        sys.exit(main())
