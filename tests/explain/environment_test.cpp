// SPDX-License-Identifier: Apache-2.0
// What fails is the machine, its container or its scheduler: the line that says why decides, and the first
// fix is of the person who can do it, in the words of what runs there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/explain/explained.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Told {
  const char* log;
  const char* headline;  ///< a part of it
  Actor who;
  const char* first;  ///< a part of the first fix, its title or a command
};

const char* const kOldBusy = "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n";

const Told kTold[] = {
    // NCCL's own line says why, and the exception above it does not.
    {"ncclSystemError: unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
     "n1:7:9 [0] misc/shmutils.cc:81 NCCL WARN Call to shm_open failed: Permission denied\n",
     "may not write", Actor::admin, "chmod 1777 /dev/shm"},
    {"$ docker run --gpus all trainer\n"
     "n1:7:9 [2] NCCL WARN Error: failed to extend /dev/shm/nccl-q1 to 9637892 bytes\n"
     "torch.distributed.DistBackendError: NCCL error, unhandled system error\n",
     "no room", Actor::you, "--shm-size"},
    {"kubectl logs trainer-0\nn1:7:9 [2] NCCL WARN Error while creating shared memory segment nccl-q1\n",
     "no room", Actor::you, "emptyDir"},
    {"n1:7:9 [2] NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-q1 (size 0)\n",
     "do not find", Actor::you, "NCCL_CUMEM_HOST_ENABLE=0"},
    {"n1:7:9 [2] NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory\n", "locked memory",
     Actor::admin, "memlock"},
    {"n1:7:9 [2] NCCL WARN socketProgress: Connection closed by remote peer n2\nncclRemoteError\n",
     "does not reach", Actor::you, "NCCL_SOCKET_IFNAME"},
    {"n1: Test CUDA failure common.cu:301 'an illegal memory access was encountered'\n",
     "do not exchange data", Actor::you, "NCCL_P2P_DISABLE=1"},
    // The driver, by its own line.
    {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
     "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n",
     "Secure Boot", Actor::you, "mokutil --import"},
    {"No devices were found\nNVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x26:0x56:1463)\n",
     "could not start", Actor::you, "dmesg"},
    {"nv-fabricmanager[77]: fabric manager interface version 570.86.10 don't match with driver version "
     "570.124.06.\nError 802: system not yet initialized\n",
     "another release", Actor::admin, "570.124.06"},
    {"NVRM: Xid (PCI:0000:17:00): 120, pid=9, GSP task exception\n", "firmware", Actor::admin, "Restart"},
    {"NVRM: Xid (PCI:0000:17:00): 95, pid=9, Uncontained ECC error\n", "memory", Actor::admin, "--gpu-reset"},
    {"NVRM: Xid (PCI:0000:17:00): 149, NETIR_LINK_EVT Fatal\n", "NVLink", Actor::admin, "nvlink"},
    // Jobs.
    {"#SBATCH --partition=gpu\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
     "driver.\n",
     "", Actor::you, "srun --gres=gpu:1"},
    {"#SBATCH --gres=gpu:2\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
     "", Actor::you, "--exclude"},
    {"#SBATCH --gres=gpu:2\nCUDA error: uncorrectable ECC error encountered\n", "", Actor::you, "--exclude"},
    {"a pod of RunPod\nCUDA error: uncorrectable ECC error encountered\n", "", Actor::you, "provider"},
    {"#PBS -l ngpus=1\nCUDA error: CUDA-capable device(s) is/are busy or unavailable\n", "busy", Actor::you,
     "another node"},
    {"|  N/A   41C    P0    61W / 300W |   900MiB / 16152MiB |     98%   E. Process |\n"
     "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n",
     "busy", Actor::you, "End the process"},
    // Containers.
    {"$ docker compose up\nError response from daemon: could not select device driver \"nvidia\" with "
     "capabilities: [[gpu]]\n",
     "Container Toolkit", Actor::you, "apt-get install -y nvidia-container-toolkit"},
    {"Fedora 42\n$ docker compose up\nError response from daemon: could not select device driver \"nvidia\" "
     "with "
     "capabilities: [[compute utility]]\n",
     "Container Toolkit", Actor::you, "dnf install -y nvidia-container-toolkit"},
    {"my machine has no NVIDIA GPU\n$ docker compose up\nError response from daemon: could not select device "
     "driver \"nvidia\" with capabilities: [[gpu]]\n",
     "", Actor::you, "compose file"},
    {"$ podman run --device nvidia.com/gpu=all app\nFailed to initialize NVML: Insufficient Permissions\n",
     "device files", Actor::you, "label=disable"},
    {"Error: failed to inject devices: failed to stat CDI host device \"/dev/dri/card2\": no such file\n", "",
     Actor::you, "cdi generate"},
    {"pyxis: [ERROR] Command not found: nvidia-container-cli, see its page\n", "container tools",
     Actor::admin, "libnvidia-container-tools"},
    {"$ srun --gpus=1 --container-image=plain python a.py\nRuntimeError: Found no NVIDIA driver on your "
     "system\n",
     "", Actor::you, "NVIDIA_VISIBLE_DEVICES=all"},
    {"kubectl get pods\nRuntimeError: Error 803: system has unsupported display driver / cuda driver "
     "combination\n",
     "", Actor::you, "kubectl set env"},
    {"CUDA_VISIBLE_DEVICES=MIG-4c60d78c-506f-5593-938d-a136eaa1fa52 serve\n"
     "ValueError: invalid literal for int() with base 10: 'MIG-4c60d78c-506f-5593-938d-a136eaa1fa52'\n",
     "UUID", Actor::you, "device=MIG-4c60d78c"},
    {"GRID A100-10C\nerror=\"cuda driver library failed to get device context 801\"\n", "", Actor::admin,
     "license"},
    // Memory.
    {"JetPack 6.1\nNvMapMemAllocInternalTagged: 1075072515 error 12\n", "", Actor::you, "free -m"},
    {"NVIDIA A100 MIG 1g.10gb\nRuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"a.cpp\":830\n", "",
     Actor::you, "need less"},
    {"WSL2\ncuda_driver.cc:802] failed to alloc 4096 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of "
     "memory\n",
     "pinned", Actor::you, "wsl --shutdown"},
    {"Traceback (most recent call last):\n  File \"/v/torch/utils/data/_utils/pin_memory.py\", line 50, in "
     "pin_memory\n    return data.pin_memory()\nRuntimeError: CUDA error: out of memory\n",
     "pinned", Actor::you, "pin_memory=False"},
    {"Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated : 7.10 GiB\n"
     "Requested : 64.00 MiB\nDevice limit : 8.00 GiB\n",
     "", Actor::you, "need less"},
    // Code 999, by what happened to the machine.
    {"it fails after a suspend\npanic: CUDA_ERROR_UNKNOWN\n", "", Actor::you, "modprobe nvidia_uvm"},
    {"C:\\b> render.exe\nDisplay driver nvlddmkm stopped responding and has recovered\nCUDA_ERROR_UNKNOWN\n",
     "", Actor::you, "TdrDelay"},
    // Asserts in kernels, by their condition.
    {"Indexing.cu:94: block: [3,0,0], thread: [1,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n",
     "index", Actor::you, "min() and max()"},
    {"Loss.cu:24: block: [0,0,0], thread: [1,0,0] Assertion `t >= 0 && t < n_classes` failed.\n", "label",
     Actor::you, "number of the model's outputs"},
    {"Loss.cu:91: block: [0,0,0], thread: [1,0,0] Assertion `input_val >= zero && input_val <= one` "
     "failed.\n",
     "between 0 and 1", Actor::you, "sigmoid"},
    {"T.cu:1: block: [0,0,0], thread: [0,0,0] Assertion `probability tensor contains either `inf`, `nan` or "
     "element < 0` failed.\n",
     "NaN", Actor::you, "bfloat16"},
    {"========= Invalid __global__ write of size 4 bytes\n=========     at scale(float *)+0x80 in k.cu:12\n",
     "compute-sanitizer", Actor::you, "next lines"},
    // Other distributions, and containers of the system.
    {"OS: Fedora Linux 42\nmodprobe: FATAL: Module nvidia not found in directory /lib/modules/6.14.0\n",
     "does not load", Actor::you, "akmods --force"},
    {"OS: Arch Linux\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "",
     Actor::you, "pacman -S linux-headers"},
    {"modprobe: ERROR: could not insert 'nvidia': No such device\n"
     "NVRM: This can occur when a driver such as: nouveau or rivafb owns the device\n",
     "nouveau", Actor::you, "blacklist nouveau"},
    {"modprobe: ERROR: could not insert 'nvidia': No such device\n", "finds no GPU", Actor::you, "dmesg"},
    {"$ lxc exec box -- nvidia-smi\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
     "driver.\n",
     "", Actor::you, "nvidia.runtime true"},
    {"nvidia-container-cli: mount error: write error: /sys/fs/cgroup/devices/docker/9a/devices.allow: "
     "operation "
     "not permitted\n",
     "cgroup", Actor::you, "no-cgroups"},
    {"Warning FailedCreatePodSandBox kubelet: no runtime for \"nvidia\" is configured\n", "runtime",
     Actor::admin, "--runtime=containerd"},
    {"error creating plugin manager: Incompatible strategy detected auto\n", "device plugin", Actor::you,
     "--set-as-default"},
    // Programs have their own switches.
    {"level=ERROR source=sched.go:1 msg=\"ollama runner has terminated: cudaMalloc failed: out of memory\"\n",
     "", Actor::you, "OLLAMA_CONTEXT_LENGTH"},
    {"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: cudaMalloc failed: out "
     "of "
     "memory\n",
     "", Actor::you, "-ngl"},
    {"RuntimeError: CUDA out of memory.\n", "", Actor::you, "another process"},
    {"  File \"D:\\ComfyUI_windows_portable\\ComfyUI\\nodes.py\", line 3, in run\n"
     "torch.OutOfMemoryError: CUDA out of memory.\n",
     "", Actor::you, "--lowvram"},
    {"  File \"/v/lib/python3.11/site-packages/vllm/d.py\", line 9, in reduce\n    ops.all_reduce(x)\n"
     "RuntimeError: CUDA error: peer access is not supported between these two devices\n",
     "each other", Actor::you, "--disable-custom-all-reduce"},
    {"./solve\nCUDA error 217: peer access is not supported between these two devices\n", "each other",
     Actor::you, "NCCL_P2P_DISABLE"},
    // Whose kernel crashed decides: a user takes another release, and an author looks for the access.
    {"C:\\a\\ollama\\ollama\\ml\\backend\\ggml\\ggml-cuda.cu:73: CUDA error\n"
     "CUDA error: an illegal memory access was encountered\n",
     "memory that is not its own", Actor::you, "newest release of ollama"},
    {"  File \"/v/lib/python3.11/site-packages/splatter/__init__.py\", line 9, in render\n    return "
     "_C.render(x)\nRuntimeError: CUDA error: misaligned address\n",
     "{owner}: a kernel used", Actor::you, "newest release of splatter"},
    {"  File \"train.py\", line 9, in <module>\n    loss.backward()\n"
     "  File \"/v/lib/python3.11/site-packages/torch/_tensor.py\", line 5, in backward\n"
     "RuntimeError: CUDA error: unspecified launch failure\n",
     "a kernel died", Actor::you, "CUDA_LAUNCH_BLOCKING"},
    {"$ nvcc -o sum sum.cu && ./sum\nsum.cu:40: CUDA error: an illegal memory access was encountered\n", "",
     Actor::you, "compute-sanitizer"},
    // Ranks, processes and servers that share GPUs.
    {"Last error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 4b000\n", "two ranks",
     Actor::you, "local rank"},
    {"MIG 3g.40gb\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 4b000\n", "two ranks",
     Actor::you, "one process"},
    {"  File \"/usr/lib/python3.11/site-packages/torch/multiprocessing/reductions.py\", line 8, in "
     "rebuild_cuda_tensor\nRuntimeError: CUDA error: invalid resource handle\n",
     "", Actor::you, "--ipc=host"},
    {"CUDA error: the remote procedural call between the MPS server and the MPS client failed\n", "MPS",
     Actor::you, "nvidia-cuda-mps-control -d"},
    {"transport.cpp:1650: neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.\n", "peermem",
     Actor::admin, "modprobe nvidia-peermem"},
    // A driver that is not there, does not compile, or was exchanged.
    {"Consult /var/lib/dkms/nvidia/570.86/build/make.log for more information.\n", "does not compile",
     Actor::you, "previous kernel"},
    {"Ubuntu 24.04\nbash: nvidia-smi: command not found\nRuntimeError: Found no NVIDIA driver on your "
     "system\n",
     "", Actor::you, "ubuntu-drivers install"},
    {"Fedora 42\nbash: nvidia-smi: command not found\nRuntimeError: Found no NVIDIA driver on your system\n",
     "", Actor::you, "akmod-nvidia"},
    {"after installing the driver\nRuntimeError: CUDA unknown error - this may be due to an incorrectly set "
     "up "
     "environment\n",
     "999", Actor::you, "Restart the machine"},
    {"kubectl logs serve-0\nRuntimeError: CUDA unknown error - this may be due to an incorrectly set up "
     "environment\n",
     "999", Actor::you, "kubectl delete pod"},
    {"Jetson Orin\nNvRmMemInitNvmap failed: error Permission denied\n", "", Actor::you, "--runtime nvidia"},
    {"my laptop has no NVIDIA GPU\nnvidia-container-cli: initialization error: WSL environment detected but "
     "no "
     "adapters were found\n",
     "", Actor::you, "on the CPU"},
    // What the kernel's log saw of it is less than what the program says.
    {"NVRM: Xid (PCI:0000:0a:00): 31, pid=4, name=python3, MMU Fault\n  File \"net.py\", line 8, in forward\n"
     "    return self.table[i]\nRuntimeError: CUDA error: an illegal memory access was encountered\n",
     "(700)", Actor::you, "CUDA_LAUNCH_BLOCKING"},
    {"RuntimeError: CUDA error: out of memory\n| N/A   30C    P0    60W / 400W |  39880MiB / 40536MiB |      "
     "0%      "
     "Default |\n",
     "", Actor::you, "other processes"},
    // What is of a host that is not the user's: another one serves today.
    {"#SBATCH --gres=gpu:1\nFailed to initialize NVML: Driver/library version mismatch\n", "", Actor::you,
     "--exclude"},
    {"a pod of RunPod\nRuntimeError: CUDA unknown error - this may be due to an incorrectly set up "
     "environment\n",
     "", Actor::you, "rented machine"},
    {"kubectl logs a-0\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n", "", Actor::you,
     "another node"},
    {"kubectl logs a-0\nexec: \"nvidia-smi\": executable file not found in $PATH\n", "", Actor::you,
     "nvidia.com/gpu"},
    {"kubectl exec a-0 -- nvidia-smi\nFailed to initialize NVML: Unknown Error\n", "", Actor::you,
     "kubectl delete pod"},
    {"$ podman run --device nvidia.com/gpu=all app\nFailed to initialize NVML: Unknown Error\n", "",
     Actor::you, "podman restart"},
    {"#SBATCH --gres=gpu:1\nn1:7:9 [2] NCCL WARN Call to ibv_create_cq failed with error Cannot allocate "
     "memory\n",
     "", Actor::admin, "memlock"},
    // A container has the driver of its host, and a host whose driver works needs none.
    {"| NVIDIA-SMI 535.183.01   Driver Version: 535.183.01   CUDA Version: 12.2 |\n$ docker run --gpus all "
     "upscale\n"
     "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 565.57\n",
     "two releases", Actor::you, "out of the image"},
    {"the driver was updated, on the host nvidia-smi works\nroot@9c0ffee1beef:/w# python a.py\n"
     "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.\n",
     "two releases", Actor::you, "docker restart"},
    {"frames-1  | nvmlInit failed: NVML_ERROR_LIB_RM_VERSION_MISMATCH\nframes-1  | bye\n", "two releases",
     Actor::you, "on the host"},
    {"kubectl logs plug-7d\nlevel=error msg=\"error calling nvml.Init: Driver/library version mismatch\"\n",
     "two releases", Actor::admin, "on the node"},
    {"$ docker run --gpus all app\nnvidia-container-cli: initialization error: nvml error: driver/library "
     "version mismatch: unknown\n",
     "the host's", Actor::you, "Restart the host"},
    {"root@5a1b2c3d4e5f:/# modprobe nvidia\nmodprobe: FATAL: Module nvidia not found in directory "
     "/lib/modules/6.8.0\n",
     "", Actor::you, "the module is the host's"},
    {"#12 [5/9] RUN apt-get install -y nvidia-driver-535\n#12 4.0 modprobe: FATAL: Module nvidia not found "
     "in "
     "directory /lib/modules/5.15.0\n",
     "", Actor::you, "out of the image"},
    {"$ docker run --gpus all tv\ncu->cuInit(0) failed -> CUDA_ERROR_NO_DEVICE: no CUDA-capable device is "
     "detected\n",
     "", Actor::you, "docker restart"},
    {"/kaggle/working/a.py\nRuntimeError: Found no NVIDIA driver on your system.\n", "", Actor::you,
     "notebook's settings"},
    {"GRID T4-8C\nNVRM: GPU 0000:02:00.0: RmInitAdapter failed! (0x25:0x40:1268)\n", "", Actor::admin,
     "vGPU release"},
    {"Hypervisor detected: KVM\nNVRM: GPU 0000:06:10.0: RmInitAdapter failed! (0x24:0x72:1568)\n", "",
     Actor::admin, "passthrough"},
    // NVML has numbers of its own.
    {"gpuwatch: NVML: can't read power of GPU #2, error code 15\n", "no longer responds", Actor::you,
     "Restart"},
    {"NVML failure 18 while querying device 0\n", "two releases", Actor::you, "Restart"},
    {"gpustat: pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded\n", "not loaded", Actor::you, "modprobe"},
    // Names of CUDA's, spelled out.
    {"Illegal address in CUDA queue copy_from_device (integrator_shade)\nBlender 4.2\n", "(700)", Actor::you,
     "overclock"},
    {"GPU 4: Critical error in main cuda loop ErrorIllegalAddress: while executing a kernel\n"
     "stratum+tcp://pool:3333\n",
     "(700)", Actor::you, "overclock"},
    {"CUDA error: Launch exceeded timeout in cuCtxSynchronize(), line 1892\nBlender\n", "longer than",
     Actor::you, "Do less"},
    {"NVRM: Xid (PCI:0000:0b:00): 109, pid=188145, name=Chaser.exe, Ch 000000be, errorString CTX SWITCH "
     "TIMEOUT\n",
     "", Actor::you, "overclock"},
    {"msg=\"nvcuda init failure: 999\"\n", "no number", Actor::you, "dmesg"},
    {"plotter: failed to create CUDA context\nNVIDIA GeForce RTX 2060\n", "context", Actor::you,
     "nvidia-smi"},
    {"worker disabled: cuda device=0 reason=outdated_driver\n", "driver", Actor::admin, "Update the driver"},
    {"OPTIX_ERROR_LAUNCH_FAILURE in optixLaunch\n", "died", Actor::you, ""},
    {"$ docker run --gpus all render\nOPTIX_ERROR_LIBRARY_NOT_FOUND in optixInit\n", "OptiX", Actor::you,
     "NVIDIA_DRIVER_CAPABILITIES=all"},
    // What the log counts decides.
    {"found 2 CUDA devices\ncudaSetDevice(3) failed: invalid device ordinal\n", "", Actor::you, "2 visible"},
    {"  MIG 2g.10gb Device 0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\nerror=101 : invalid device "
     "ordinal at a.cu:3\n",
     "", Actor::you, "CUDA_VISIBLE_DEVICES=MIG-c6d4f1ef"},
    {"gpu0: Tesla M60 compute capability 5.2\nrequired compute capability: 6.1\n", "", Actor::you,
     "older release"},
    // What every driver has, and what the machine says of itself.
    {"Failed to retrieve cuInit from libcuda.so\n", "it lacks", Actor::you, "whose libcuda"},
    {"ImportError: /w/_ops.so: undefined symbol: cuDeviceGet\n", "was built without", Actor::you, "-lcuda"},
    {"unattended-upgrades: nvidia-driver-550\nError 804: forward compatibility was attempted on non "
     "supported "
     "HW\n",
     "newer than the kernel module", Actor::admin, "Restart the machine"},
    {"WSL2, Tesla P40, TCC in the column of the driver model\nGPU access blocked by the operating system\n",
     "", Actor::you, "out of TCC"},
    {"NvRmMemInitNvmap failed with Permission denied\n", "nvmap", Actor::you, "video,render"},
    {"docker run --runtime nvidia ros\nNvRmMemInitNvmap failed with No such file or directory\n", "nvmap",
     Actor::you, "l4t image"},
    {"JetPack 5.1\nexec: \"nvidia-smi\": executable file not found in $PATH\n", "", Actor::you,
     "without nvidia-smi"},
    {"nvidia-container-cli: mount error: file creation failed: /o/merged/usr/lib/aarch64-linux-gnu/"
     "libcublas.so.10: file exists\n",
     "not for a Jetson", Actor::you, "l4t"},
    {"kernels/build.rs:9\n`nvidia-smi` failed. Ensure that you have CUDA installed: Os { code: 2, kind: "
     "NotFound }\n",
     "nvidia-smi", Actor::you, "without the CUDA feature"},
    {"03:00.0 3D controller: NVIDIA Corporation GV100GL (rev ff)\n", "on its bus", Actor::admin, "lspci"},
    {"After two days I have to restart the container.\nfrigate uses docker\ncuInit: CUDA_ERROR_NO_DEVICE\n",
     "", Actor::you, "Keep systemd"},
    {"incus exec c1 bash\nERROR: An NVIDIA kernel module 'nvidia' appears to already be loaded in your "
     "kernel.\n",
     "in use", Actor::you, "no driver in the container"},
    {"ERROR: An NVIDIA kernel module 'nvidia-drm' appears to already be loaded in your kernel.\n", "in use",
     Actor::admin, "End what uses"},
    {"cuda_dnn.cc:1] Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED\ncuda_dnn.cc:2] Memory "
     "usage: 23500000000 bytes free, 25300000000 bytes total.\n",
     "memory is free", Actor::you, "Install the cuDNN"},
    {"> library(torch)\n/r/torch/lib/liblantern.so - libcublas.so.11: cannot open shared object file\n", "",
     Actor::you, "the folder that has libcublas.so.11"},
    {"nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible\n",
     "does not wake", Actor::admin, "from sleeping"},
    {"vfio-pci 0000:0b:00.0: not ready 65535ms after FLR; giving up\n", "does not wake", Actor::admin,
     "disable_idle_d3"},
    {"NVRM: RmInitAdapter failed! (0x62:0x65:1792)\nNVRM: failed to wait for GFW_BOOT: (progress 0x3)\n",
     "own firmware", Actor::admin, "another slot"},
    {"hashcat: clGetPlatformIDs(): CL_PLATFORM_NOT_FOUND_KHR\n", "OpenCL", Actor::you, "Register"},
    {"Proton Experimental\nNVRM: Xid (PCI:0000:01:00): 13, pid=7, name=ring.exe, Graphics SM Warp\n", "",
     Actor::admin, "another release of the driver"},
    {"n2:1:2 [0] socket.cc:4 NCCL WARN Net : connecting to address  with family 7 is neither AF_INET(2) nor "
     "AF_INET6(10)\n",
     "different releases", Actor::you, "Compare NCCL"},
    {"C:\\app> run.exe\nLoaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.\n", "",
     Actor::you, "where.exe cudnn64"},
};

TEST(Environment, TheFirstFixIsOfThePersonWhoCanDoIt) {
  for (const Told& row : kTold) {
    SCOPED_TRACE(row.log);
    const Finding finding = first_of(row.log);
    ASSERT_FALSE(finding.fixes.empty());
    const Fix& first = finding.fixes.front();
    EXPECT_THAT(finding.headline, HasSubstr(row.headline));
    EXPECT_EQ(first.actor, row.who);
    EXPECT_THAT(first.title + '\n' + first_command(finding), HasSubstr(row.first));
    EXPECT_GE(finding.confidence, 0.5);
  }
}

TEST(Environment, NoStoryWithoutItsSign) {
  const auto first = [](const std::string& log) {
    const Finding finding = first_of(log);
    return finding.fixes.empty() ? std::string()
                                 : finding.fixes.front().title + '\n' + first_command(finding);
  };
  EXPECT_THAT(first(kOldBusy), Not(HasSubstr("sbatch")));
  EXPECT_THAT(first("CUDA error: uncorrectable ECC error encountered\n"), Not(HasSubstr("sbatch")));
  EXPECT_THAT(first("panic: CUDA_ERROR_UNKNOWN\n"), Not(HasSubstr("modprobe")));
  EXPECT_THAT(first("RuntimeError: CUDA error: out of memory\n"), Not(HasSubstr("pin_memory=False")));
  EXPECT_THAT(first("k.cu:5: block: [0,0,0], thread: [0,0,0] Assertion `depth < kMost` failed.\n"),
              Not(HasSubstr("index")));
  EXPECT_THAT(
      first("RuntimeError: Error 803: system has unsupported display driver / cuda driver combination\n"),
      Not(HasSubstr("kubectl")));
  // NCCL says that it has no InfiniBand on most machines, and goes on.
  EXPECT_TRUE(explained("n1:7:9 [0] NCCL INFO NET/IB : No device found.\n").findings.empty());
  // What does not say why is asked for it.
  const Explanation bare = explained("RuntimeError: NCCL error, unhandled cuda error\n");
  ASSERT_FALSE(bare.next.empty());
  EXPECT_THAT(bare.next.front().command, HasSubstr("NCCL_DEBUG"));
  // A Mac gets no wheel with CUDA.
  const Explanation mac = explained("Apple M2\nAssertionError: Torch not compiled with CUDA enabled\n");
  ASSERT_TRUE(mac.other);
  EXPECT_TRUE(mac.other->remedy.commands.empty());
  const Explanation jetson = explained("JetPack 6.2\nAssertionError: Torch not compiled with CUDA enabled\n");
  ASSERT_TRUE(jetson.other);
  EXPECT_THAT(jetson.other->remedy.commands, ::testing::Each(Not(HasSubstr("pip"))));
  // A number that is there, a GPU that is new enough and an action of NVML's that the GPU does not have.
  EXPECT_THAT(first("found 2 CUDA devices\ncudaSetDevice(1) failed: invalid device ordinal\n"),
              Not(HasSubstr("2 visible")));
  EXPECT_TRUE(explained("NVIDIA A100\nMinimum compute capability: 5.0\n").findings.empty());
  EXPECT_TRUE(explained("NVML: can't get fan speed for GPU #0, error code 3\n").findings.empty());
  EXPECT_THAT(first("$ docker ps\nFailed to initialize NVML: Driver/library version mismatch\n"),
              Not(HasSubstr("image")));
  // A sleeping network card, a full GPU and a container that never had its GPU.
  EXPECT_TRUE(
      explained("igb 0000:0b:00.0: Unable to change power state from D3hot to D0\n").findings.empty());
  EXPECT_TRUE(explained("01:00.0 3D controller: NVIDIA Corporation GP107M (rev a1)\n").findings.empty());
  EXPECT_THAT(first("cudnn handle: CUDNN_STATUS_NOT_INITIALIZED\nMemory usage: 200000000 bytes free, "
                    "25300000000 bytes total.\n"),
              HasSubstr("memory is free"));
  EXPECT_THAT(first("docker run app\nRuntimeError: No CUDA GPUs are available\n"), Not(HasSubstr("systemd")));
  EXPECT_THAT(first("libcuda.so.1: undefined symbol: cuLibraryLoadData\n"), HasSubstr("Update the driver"));
  // Another node is no answer on a machine of one's own, and a path or a heading is no cluster.
  EXPECT_THAT(first("Failed to initialize NVML: Driver/library version mismatch\n"), Not(HasSubstr("node")));
  EXPECT_THAT(first("Kernel module load error\nFailed to initialize NVML: Driver/library version mismatch\n"),
              Not(HasSubstr("sbatch")));
  EXPECT_THAT(first("$ docker run nvcr.io/nvidia/k8s/sample:1\nFailed to initialize NVML: Unknown Error\n"),
              Not(HasSubstr("kubectl")));
  // A table that shows a free GPU proves nothing of the moment of the failure.
  EXPECT_THAT(
      first("RuntimeError: CUDA error: out of memory\n| N/A   30C    P0    60W / 400W |    880MiB / 40536MiB "
            "|      0%      Default |\n"),
      Not(HasSubstr("what else limits")));
  EXPECT_THAT(
      first("$ docker run app\nnvidia-smi: command not found\nRuntimeError: Found no NVIDIA driver on your "
            "system\n"),
      Not(HasSubstr("ubuntu-drivers")));
  // What others hold is known: no program's switch comes first.
  EXPECT_THAT(
      first("INFO vLLM API server version 0.9.1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to "
            "allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of "
            "which 1.10 GiB is free. Process "
            "77 has 14.00 GiB memory in use. Including non-PyTorch memory, this process has 8.40 GiB "
            "memory in use.\n"),
      HasSubstr("other processes"));
}

// A warning of no failure is the answer where nothing failed: no answer is empty.
TEST(Environment, WhatIsNoProblemIsSaid) {
  const Explanation explanation =
      explained("NVIDIA GeForce RTX 3060\nLoading render kernels (may take a few minutes the first time)\n");
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_FALSE(is_problem(explanation.findings.front()));
  EXPECT_THAT(rendered(explanation, Format::text, {}), HasSubstr("PTX"));
}

// pip exchanges the PyTorch under a package that is for one release of it.
TEST(Environment, NoPlainUpgradeOfWhatGoesWithOnePyTorch) {
  const auto first = [](const std::string& package) {
    return first_command(
        explained("File \"/opt/env/lib/python3.11/site-packages/" + package +
                  "/ops.py\", line 9, in run\nRuntimeError: CUDA error: misaligned address\n")
            .findings.front());
  };
  EXPECT_THAT(first("xformers"), Not(HasSubstr("--upgrade")));
  EXPECT_THAT(first("bitsandbytes"), HasSubstr("--upgrade"));
}

}  // namespace
}  // namespace kshim::test
