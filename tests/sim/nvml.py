# SPDX-License-Identifier: Apache-2.0
"""libnvidia-ml.so.1 of the simulator in whole processes: what each variable changes, names that are exported, versions, and,
where this Python has it, NVIDIA's own nvidia-ml-py (module pynvml), unmodified."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

CHILD = "--in-child"
# What PyTorch stops without (c10/cuda/driver_api.h).
PYTORCH = {"nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetNvLinkRemoteDeviceType",
           "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetComputeRunningProcesses", "nvmlSystemGetCudaDriverVersion_v2"}


def in_child():
    """Everything about every device, from both libraries."""
    nvml, cuda = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1")
    text, number = ctypes.create_string_buffer(96), ctypes.c_uint()

    def texted(call, *arguments):
        result = call(*arguments)
        return text.value.decode() if result == 0 else result

    out = {"init": nvml.nvmlInit_v2(), "cuInit": cuda.cuInit(0)}
    out["count"] = (nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)), number.value)
    count = number.value
    out["driver"] = texted(nvml.nvmlSystemGetDriverVersion, text, 80)
    out["nvml"] = texted(nvml.nvmlSystemGetNVMLVersion, text, 80)
    out["cuda"] = (nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)), number.value)
    out["devices"], out["by_cuda"] = [], []
    handle = ctypes.c_void_p()
    for index in range(count):
        assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
        memory = (ctypes.c_uint64 * 3)()
        assert nvml.nvmlDeviceGetMemoryInfo(handle, memory) == 0
        out["devices"].append([texted(nvml.nvmlDeviceGetName, handle, text, 96), texted(nvml.nvmlDeviceGetUUID, handle, text, 96),
                               memory[0]])
    visible = ctypes.c_int()
    out["visible"] = (cuda.cuDeviceGetCount(ctypes.byref(visible)), visible.value)
    for ordinal in range(visible.value):
        assert cuda.cuDeviceGetPCIBusId(text, 96, ordinal) == 0
        assert nvml.nvmlDeviceGetHandleByPciBusId_v2(text, ctypes.byref(handle)) == 0
        name, size = texted(cuda.cuDeviceGetName, text, 96, ordinal), ctypes.c_size_t()
        assert cuda.cuDeviceTotalMem_v2(ctypes.byref(size), ordinal) == 0
        same = name == texted(nvml.nvmlDeviceGetName, handle, text, 96)
        out["by_cuda"].append([name, texted(nvml.nvmlDeviceGetUUID, handle, text, 96) if same else None, size.value])
    assert nvml.nvmlShutdown() == 0
    out["pynvml"] = with_pynvml()
    print(json.dumps(out))


def with_pynvml():
    """The same through NVIDIA's Python module; None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    pynvml.nvmlInit()
    out = {"driver": pynvml.nvmlSystemGetDriverVersion(), "nvml": pynvml.nvmlSystemGetNVMLVersion(),
           "cuda": pynvml.nvmlSystemGetCudaDriverVersion_v2(), "devices": []}
    for index in range(pynvml.nvmlDeviceGetCount()):
        device = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = pynvml.nvmlDeviceGetUUID(device)
        memory = pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
        assert pynvml.nvmlDeviceGetMemoryInfo(device).total == memory.total == memory.free
        pci = pynvml.nvmlDeviceGetPciInfo(device)
        for again in (pynvml.nvmlDeviceGetHandleByUUID(uuid), pynvml.nvmlDeviceGetHandleByPciBusId(pci.busId)):
            assert pynvml.nvmlDeviceGetIndex(again) == index
        assert pynvml.nvmlDeviceGetMinorNumber(device) == index and pci.bus == index + 1
        assert pynvml.nvmlDeviceGetP2PStatus(device, device, 0) == pynvml.NVML_P2P_STATUS_OK
        for call in (pynvml.nvmlDeviceGetUtilizationRates, pynvml.nvmlDeviceGetComputeRunningProcesses,
                     pynvml.nvmlDeviceGetPowerUsage):
            try:
                raise SystemExit(f"{call.__name__} returned {call(device)}")
            except pynvml.NVMLError_NotSupported:
                pass
        try:
            raise SystemExit(f"a function that is not there returned {pynvml.nvmlDeviceGetBoardId(device)}")
        except pynvml.NVMLError_FunctionNotFound:
            pass
        try:
            name = pynvml.nvmlDeviceGetName(device)
        except pynvml.NVMLError_InsufficientSize as error:
            name = error.value
        out["devices"].append([name, uuid, memory.total])
    try:
        raise SystemExit(f"a device too many: {pynvml.nvmlDeviceGetHandleByIndex(len(out['devices']))}")
    except pynvml.NVMLError_InvalidArgument:
        pass
    pynvml.nvmlShutdown()
    try:
        raise SystemExit(f"after the shutdown: {pynvml.nvmlDeviceGetCount()}")
    except pynvml.NVMLError_Uninitialized as error:
        assert str(error) == "Uninitialized"
    return out


class Test:
    def __init__(self, build, source):
        self.simulator, self.source, self.wrong = build / "sim", source, 0
        self.without_pynvml = False

    def check(self, label, found, wanted):
        if found != wanted:
            print(f"{label}: expected {wanted}, got {found}")
            self.wrong += 1

    def run(self, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KSHIM_", "CUDA_"))}
        environment.update(variables, LD_LIBRARY_PATH=str(self.simulator))
        done = subprocess.run([sys.executable, "-B", __file__, CHILD], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{variables}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        out = json.loads(done.stdout)
        if out["pynvml"] is None:
            self.without_pynvml = True
        else:
            wanted = {"driver": out["driver"], "nvml": out["nvml"], "cuda": out["cuda"][1], "devices": out["devices"]}
            self.check(f"pynvml {variables}", out["pynvml"], wanted)
        return out, done.stderr

    def devices(self):
        found, errors = self.run()
        self.check("no device", (found["init"], found["count"], found["devices"], errors), (0, [0, 0], [], ""))
        found, _ = self.run(KSHIM_SIM_DEVICES="7.5:2080;sm_90a:Best GPU", KSHIM_SIM_MEMORY="1G")
        self.check("names", [row[0] for row in found["devices"]],
                   ["NVIDIA GeForce RTX 2080 Ti (simulated)", "Best GPU (simulated)"])
        self.check("memory", [row[2] for row in found["devices"]], [1 << 30] * 2)
        self.check("as the driver", found["by_cuda"], found["devices"])
        # NVML shows what is there, CUDA what is visible.
        found, _ = self.run(KSHIM_SIM_DEVICES="6.1;7.5;9.0", CUDA_VISIBLE_DEVICES="2,0")
        self.check("visible", (found["count"], found["visible"]), ([0, 3], [0, 2]))
        self.check("in another order", found["by_cuda"], [found["devices"][2], found["devices"][0]])
        found, errors = self.run(KSHIM_SIM_DEVICES="8.6;7.9")
        self.check("an unknown architecture", (found["count"], "7.9" in errors), ([0, 0], True))
        found, _ = self.run(KSHIM_SIM_DEVICES="8.6:" + "x" * 100)
        self.check("a name beyond what NVML's callers have room for", found["devices"][0][0], 7)

    def versions(self):
        for driver, wanted in {"12.4": "550.54.14", "11.8": "520.61.05", "12.7": "560.28.03", "8.0": "367.48"}.items():
            found, _ = self.run(KSHIM_SIM_DRIVER=driver)
            major, minor = driver.split(".")
            self.check(driver, (found["driver"], found["nvml"], found["cuda"]),
                       (wanted, f"{major}.{wanted}", [0, int(major) * 1000 + int(minor) * 10]))

    def exports(self):
        """NVML's names, all of the two lists, and no other; a static C++ library."""
        if shutil.which("readelf") is None:
            print("no readelf: exports are not looked at")
            return
        library = self.simulator / "libnvidia-ml.so.1"
        names = set()
        for line in readelf("--dyn-syms", library).splitlines():
            fields = line.split()
            if len(fields) == 8 and fields[6] != "UND" and fields[4] in ("GLOBAL", "WEAK"):
                names.add(fields[7])
        wanted = {"nvmlErrorString"}
        for name in ("functions", "not_simulated"):
            text = (self.source / f"sim/nvml/{name}.def").read_text(encoding="utf-8")
            wanted |= set(re.findall(r"\nKSHIM_NVML(?:_NOT_SIMULATED)?\((\w+)", text))
        self.check("exports", sorted(names), sorted(wanted))
        self.check("what PyTorch wants", sorted(PYTORCH - names), [])
        dynamic = readelf("--dynamic", library)
        self.check("soname", re.findall(r"soname: \[(.*)\]", dynamic), ["libnvidia-ml.so.1"])
        needed = re.findall(r"Shared library: \[(.*)\]", dynamic)
        if not any("san." in name for name in needed):  # sanitizers need the shared one
            libc = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "ld-linux")
            self.check("needed", [name for name in needed if not name.startswith(libc)], [])


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, str(library)], stdout=subprocess.PIPE, universal_newlines=True,
                          check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def main():
    test = Test(pathlib.Path(os.environ["KSHIM_BUILD_DIR"]), pathlib.Path(os.environ["KSHIM_SOURCE_DIR"]))
    test.devices()
    test.versions()
    test.exports()
    if test.without_pynvml:
        print("this Python has no nvidia-ml-py: not tried with it")
    return 1 if test.wrong else 0


if __name__ == "__main__":
    sys.exit(in_child() if sys.argv[1:] == [CHILD] else main())
