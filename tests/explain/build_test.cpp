// SPDX-License-Identifier: Apache-2.0
// What goes wrong while CUDA code is configured, compiled and linked: named without the name of a project,
// and put right by the build's own means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/render/render.h"
#include "tests/explain/explained.h"

namespace kshim::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of_build(const std::string& log) {
  return rendered(explained(log), Format::text, {.width = 200});
}

struct BuildError {
  const char* log;
  const char* headline;  ///< a regular expression, as the next
  const char* first;     ///< of the first fix: its title and its commands
};

class BuildErrors : public ::testing::TestWithParam<BuildError> {};

TEST_P(BuildErrors, HaveTheirNameAndTheirFix) {
  const BuildError& row = GetParam();
  const std::string text = page_of_build(std::string(row.log) + "\n");
  const std::size_t fix = text.find("Do this");
  ASSERT_NE(fix, std::string::npos) << text;
  EXPECT_THAT(text.substr(0, fix), ContainsRegex(row.headline)) << row.log;
  EXPECT_THAT(text.substr(fix), ContainsRegex(row.first)) << row.log;
  EXPECT_THAT(text, Not(HasSubstr("kshim run"))) << row.log;
}

const BuildError kHost[] = {
    {"h.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!",
     "takes gcc 12 at most", "apt-get install g.*-12.*ccbin g.*-12"},
    {"/opt/miniforge3/envs/b/bin/nvcc -c a.cu\nh.h:1:2: error: #error -- unsupported GNU version! gcc "
     "versions "
     "later than 12 are not supported!",
     "takes gcc 12 at most", "conda install -c conda-forge gxx=12"},
    {"/nix/store/q-cuda_nvcc-12.2.140/bin/nvcc -c a.cu\nh.h:1:2: error: #error -- unsupported GNU version! "
     "gcc "
     "versions later than 12 are not supported!",
     "takes gcc 12 at most", "backendStdenv"},
    {"C:\\CUDA\\v12.1\\include\\crt/host_config.h(153): fatal error C1189: #error:  -- unsupported Microsoft "
     "Visual Studio version! Only the versions between 2017 and 2022 (inclusive) are supported!",
     "does not take the build's Visual Studio", "vcvars_ver=14.39"},
    {"-- The CUDA compiler identification is NVIDIA 13.0.88\nD:\\c\\host_config.h(168): fatal error C1189: "
     "#error:  -- unsupported Microsoft Visual Studio version!",
     "does not take the build's Visual Studio", "Visual Studio 17 2022"},
    {"E:\\VC\\include\\yvals_core.h(902): error: static assertion failed with \"error STL1002: Unexpected "
     "compiler version, expected CUDA 12.4 or newer.\"",
     "asks for CUDA 12.4 or newer", "CUDA 12.4 or newer, or with the MSVC toolset 14.39"},
    {"nvcc fatal   : Cannot find compiler 'cl.exe' in PATH", "no cl.exe", "x64 Native Tools.*vcvars64.bat"},
    {"nvcc fatal   : Cannot find compiler 'g++-9' in PATH", "cannot run the C.. compiler",
     "install build-essential"},
    {"/usr/include/bits/mathcalls.h(81): error: exception specification is incompatible with that of "
     "previous "
     "function \"sinpi\" (declared at line 2556 of /usr/local/cuda/include/crt/math_functions.h)",
     "glibc 2.41.*sinpi", "cuda-13.0"},
    {"Tesla P100\n/usr/include/bits/mathcalls.h(81): error: exception specification is incompatible with "
     "that of "
     "previous function \"cospif\" (declared at line 1 of m.h)",
     "glibc 2.41.*cospif", "docker run .*12.9.1-devel"},
    {"/usr/include/bits/mathcalls.h(206): error: exception specification is incompatible with that of "
     "previous "
     "function \"rsqrt\" (declared at line 1 of m.h)",
     "rsqrt", "cuda-13.2"},
    {"/usr/include/c++/11/bits/std_function.h:530:146: error: parameter packs not expanded with '...':",
     "cannot read the C.. headers of the build's gcc", "newer CUDA than the distribution's"},
    {"nvcc error   : 'ptxas' died due to signal 9 (Kill signal)", "memory ran out", "MAX_JOBS=2"},
    {"[21/77] Building CUDA object a.cu.o\n[build] FAILED: [code=137] a.cu.o", "lack of memory",
     "MAX_JOBS=2"},
};
INSTANTIATE_TEST_SUITE_P(Host, BuildErrors, ::testing::ValuesIn(kHost));

const BuildError kRemoved[] = {
    {"warp.cu(31): error: texture is not a template", "texture references", "cuda-11.8"},
    {"RTX 5090\nwarp.cu(31): error: identifier \"cudaUnbindTexture\" is undefined", "texture references",
     "port it to texture objects"},
    {"info.cu(9): error: class \"cudaDeviceProp\" has no member \"memoryClockRate\"", "uses memoryClockRate",
     "cuda-12.9"},
    {"info.cpp:4:8: error: 'struct cudaDeviceProp' has no member named 'deviceOverlap'", "uses deviceOverlap",
     "cuda-12.9"},
    {"info.cc(4): error C2039: 'clockRate': is not a member of 'cudaDeviceProp'", "uses clockRate",
     "CUDA 12.9"},
    {"um.cu(9): error: too few arguments in function call cudaMemPrefetchAsync(p, n, dev)",
     "cudaMemPrefetchAsync", "cuda-12.9"},
    {"scan.cu(7): error: namespace \"cub\" has no member \"Sum\"", "cub::Sum", "cuda-12.9"},
    {"t/config.h:78:2: error: #error The version of CUB in your include path is not compatible with this "
     "release "
     "of Thrust.",
     "its own copy of CUB", "out of the include path"},
    {"c/cpp_dialect.h:78:6: error: #error Thrust requires at least C++17. Define X to suppress this message.",
     "ask for C..17", "NVCC_APPEND_FLAGS='-std=c..17'"},
    {"CMake Error at CMakeLists.txt:9 (target_link_libraries):\n  Target \"app\" links to:\n\n    "
     "CUDA::nvToolsExt\n",
     "NVTX 2", "NVTX 3"},
    {"nvlink fatal   : Input file 'libcudadevrt.a:x.o' newer than toolkit (128 vs 115)", "older CUDA than",
     "cuda/bin.*which -a nvcc"},
    {"  Unsupported cuda toolkit version: `13.9`. Please raise a github "
     "issue.\n.cargo/registry/src/cudarc-0.1/b.rs:1",
     "cudarc is older than CUDA 13.9", "CUDARC_CUDA_VERSION"},
    {"error[E0425]: cannot find function `cuCtxGetId` in module `sys`", "Rust bindings.*cuCtxGetId",
     "cargo update -p cudarc"},
};
INSTANTIATE_TEST_SUITE_P(Removed, BuildErrors, ::testing::ValuesIn(kRemoved));

const BuildError kHeaders[] = {
    {"-- Found CUDAToolkit: /opt/t (found version \"13.1.80\")\na.cpp:3:10: fatal error: cub/cub.cuh: No "
     "such file",
     "find cub/cub.cuh.*CCCL", "CPLUS_INCLUDE_PATH=/usr/local/cuda/include/cccl"},
    {"/opt/conda/envs/w/include/cuda_fp16.h:41:10: fatal error: nv/target: No such file or directory",
     "find nv/target", "conda install -c conda-forge cuda-cccl"},
    {"b.cu:3:10: fatal error: thrust/sort.h: No such file or directory", "find thrust/sort.h",
     "find / -path '..thrust/sort.h'"},
    {"/home/u/miniconda3/envs/e/lib/python3.11/site-packages/torch/include/c10/cuda/CUDAStream.h:6:10: fatal "
     "error: "
     "cuda_runtime_api.h: No such file or directory",
     "find cuda_runtime_api.h of the CUDA toolkit", "conda install -c nvidia cuda-toolkit"},
    {"-- Found CUDAToolkit: /usr/local/cuda-12.4 (found version \"12.4.131\")\na.cpp:1:10: fatal error: "
     "cusparse.h: No "
     "such file",
     "find cusparse.h", "cuda-toolkit-12-4.*CPATH=/usr/local/cuda-12.4"},
    {"docker build -t x .\na.cpp:1:10: fatal error: cublas_v2.h: No such file or directory",
     "find cublas_v2.h", "-devel"},
    {"a.cpp(1): fatal error C1083: Cannot open include file: 'cuda_runtime.h': No such file\nC:\\src\\a.cpp",
     "find cuda_runtime.h", "CUDA_PATH"},
    {"a.cu:1:10: fatal error: cuda_fp8.h: No such file or directory", "older than cuda_fp8.h",
     "newer CUDA toolkit"},
    {"a.cpp:1:10: fatal error: cudnn.h: No such file or directory", "cudnn.h of cuDNN", "libcudnn9-dev"},
    {"a.cu:1:10: fatal error: cutlass/cutlass.h: No such file or directory", "of CUTLASS",
     "submodule update"},
    {"a.cpp:1:10: fatal error: THC/THC.h: No such file or directory", "PyTorch 1.11 removed",
     "newer release"},
    {"a.cu:1:10: fatal error: helper_cuda.h: No such file or directory", "CUDA's samples", "cuda-samples"},
    {"CMake Error at C:/c/CMakeDetermineCompilerId.cmake:9 (message):\n  No CUDA toolset found.",
     "no CUDA toolset", "MSBuildExtensions"},
};
INSTANTIATE_TEST_SUITE_P(Headers, BuildErrors, ::testing::ValuesIn(kHeaders));

const BuildError kLinks[] = {
    {"/usr/bin/ld: cannot find -lcublas", "find cublas of the CUDA toolkit",
     "LIBRARY_PATH=/usr/local/cuda/lib64"},
    {"/usr/bin/ld: cannot find -lcuda", "libcuda.so", "lib64/stubs"},
    {"File \"/opt/env/lib/python3.11/site-packages/triton/compiler.py\", line 9, in f\n/usr/bin/ld: cannot "
     "find -lcuda",
     "libcuda.so", "driver's libcuda"},
    {"/usr/bin/ld: cannot find -lnccl", "no part of the CUDA toolkit", "libnccl-dev"},
    {"LINK : fatal error LNK1181: cannot open input file 'cudart.lib'\nC:\\b\\x", "cudart.lib", "set LIB="},
    {"ld: warning: libcuda.so.1, needed by libx.so, not found (try using -rpath or -rpath-link)",
     "libcuda.so.1.*the driver", "rpath-link"},
    {"Dockerfile:4\nld: warning: libcuda.so.1, needed by libx.so, not found (try using -rpath)",
     "libcuda.so.1", "stubs"},
    {"main.o: undefined reference to `cuModuleLoad'", "cuModuleLoad is in libcuda", "-lcuda"},
    {"main.o: undefined reference to `cudaMalloc'", "cudaMalloc is in libcudart", "-lcudart"},
    {"main.o: undefined reference to `cufftExecC2C'", "cufftExecC2C is in libcufft", "-lcufft"},
    {"lib.a(x.o): undefined reference to `__cudaRegisterLinkedBinary_12_a'", "lacks the device code",
     "SEPARABLE"},
    {"ld: libcublas.so: undefined reference to `cublasLtFoo@libcublasLt.so.12'", "another libcublasLt.so.12",
     "See which copy"},
};
INSTANTIATE_TEST_SUITE_P(Links, BuildErrors, ::testing::ValuesIn(kLinks));

const BuildError kLoading[] = {
    {"RuntimeError:\n  The detected CUDA version (11.5) mismatches the version that was used to compile\n"
     "  PyTorch (12.8). Please make sure to use the same CUDA versions.",
     "nvcc is of CUDA 11.5, and this PyTorch was built with CUDA 12.8", "cuda-12.8"},
    {"torch==2.10.0+cu130\n  File \"/v/lib/python3.12/site-packages/vllm/a.py\", line 2, in <module>\n    "
     "import "
     "vllm._C\nImportError: libcudart.so.12: cannot open shared object file: No such file",
     "libcudart.so.12 is missing for vLLM", "torch==2.10.0 .*whl/cu128"},
    {"torch==2.10.0+cu128\n  File \"/v/lib/python3.12/site-packages/vllm/a.py\", line 2, in <module>\n    "
     "import "
     "vllm._C\nImportError: libcudart.so.13: cannot open shared object file: No such file",
     "libcudart.so.13 is missing for vLLM", "torch==2.10.0 .*whl/cu130"},
    {"Driver Version: 550.90.07  CUDA Version: 12.4\ntorch==2.10.0+cu126\n  File "
     "\"/v/lib/python3.12/site-packages/vllm/a.py\", line 2, in <module>\n    import vllm._C\n"
     "ImportError: libcudart.so.13: cannot open shared object file: No such file",
     "libcudart.so.13 is missing for vLLM", "a build of vllm for CUDA 12"},
    {"panicked at src/main.rs:4:\nUnable to dynamically load the \"cublas\" shared library - searched for "
     "library "
     "names: [\"cublas.dll\"]\nC:\\app\\x.exe",
     "finds no cublas library", "bin.x64"},
    {"System.Exception: [ONNXRuntimeError] : 1 : FAIL : LoadLibrary failed with error 126 \"\" when trying "
     "to load "
     "\"C:\\a\\onnxruntime_providers_cuda.dll\"\n  at Microsoft.ML.OnnxRuntime.SessionOptions.Append()",
     "ONNX Runtime", "CUDA 12 and cuDNN 9 into PATH"},
    {"julia> using CUDA\nERROR: InitError: could not load library "
     "\"C:\\Users\\u\\.julia\\artifacts\\0a\\bin\\"
     "cufft64_11.dll\"",
     "cufft64_11.dll is missing", "Pkg.update"},
    {"host os: NixOS 25.11\n./app: error while loading shared libraries: libcublas.so.12: cannot open shared "
     "object "
     "file: No such file or directory",
     "libcublas.so.12", "cudaPackages.cudatoolkit"},
    {"$ nix-shell\nImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
     "the library of NVIDIA's driver", "/run/opengl-driver/lib"},
    {"#9 12.40 ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
     "the library of NVIDIA's driver", "while an image is built"},
    {"OSError: [WinError 126] X. Error loading \"C:\\v\\torch\\lib\\caffe2_nvrtc.dll\" or one of its "
     "dependencies.",
     "needs nvcuda.dll", "Install NVIDIA's driver"},
    {"ImportError: DLL load failed while importing _ops: The specified procedure could not be found.",
     "built for another PyTorch", "force-reinstall"},
    {"[12/40] Building CUDA object k.cu.o\n[build] Killed", "killed the compiler", "MAX_JOBS=2"},
};
const BuildError kConfigure[] = {
    {"k.cu(8): error: no operator \"*\" matches these operands\n            operand types are: __half * "
     "__half",
     "half precision", "-U__CUDA_NO_HALF_OPERATORS__"},
    {"nms.cu(12): error: identifier \"THCudaCheck\" is undefined", "older PyTorch",
     "newer release of the source"},
    {"spmv.cu(4): error: identifier \"cusparseDcsrmv\" is undefined", "uses cusparseDcsrmv",
     "nvcc --version"},
    {"  By not providing \"FindCUDAToolkit.cmake\" in CMAKE_MODULE_PATH this project", "older than 3.17",
     "upgrade cmake"},
    {"  By not providing \"FindCUDA.cmake\" in CMAKE_MODULE_PATH this project", "FindCUDA", "cmake<3.27"},
    {"  Target \"app\" links to:\n\n    CUDA::curand\n\n  but the target was not found.", "has no curand",
     "CUDAToolkit_ROOT"},
    {"  Could NOT find CUDNN (missing: CUDNN_LIBRARY)", "CMake does not find cuDNN", "libcudnn9-dev"},
    {"Error: libnvrtc.so: cannot open shared object file: No such file or directory",
     "libnvrtc.so by its plain name", "find / -name 'libnvrtc.so"},
    {"Step 4/9 : RUN python3 -c 'import cv2'\nlibcublas.so.10: cannot open shared object file\nL4T R32.7",
     "libcublas.so.10 is missing", "set-as-default"},
    {"torch 2.9.1+cu130\nOSError: CUDA_HOME environment variable is not set.", "finds no CUDA toolkit",
     "cuda-toolkit-13-0 .*cuda-13.0"},
    {"/opt/miniconda3/envs/a/bin/python setup.py build\nOSError: CUDA_HOME environment variable is not set.",
     "finds no CUDA toolkit", "conda install -c nvidia cuda-toolkit"},
    {"C:\\v> pip install x\nOSError: CUDA_HOME environment variable is not set.", "finds no CUDA toolkit",
     "winget install"},
    {"#8 3.11 OSError: CUDA_HOME environment variable is not set.", "finds no CUDA toolkit", "-devel"},
    {"k.lib : error LNK2019: unresolved external symbol __cudaRegisterFatBinary referenced in f\nC:\\x",
     "CUDA runtime", "lib.x64"},
    {"ImportError: /h/miniconda3/envs/x/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by "
     "k.so)",
     "C.. library of the conda environment", "libstdcxx-ng"},
    {"ld: libk.a(a.o): relocation R_X86_64_32 against `.rodata' can not be used when making a PIE object; "
     "recompile "
     "with -fPIE",
     "without -fPIC", "Xcompiler -fPIC"},
};
INSTANTIATE_TEST_SUITE_P(Configure, BuildErrors, ::testing::ValuesIn(kConfigure));

TEST(BuildErrorsBeside, AnUnknownErrorOfTheCompilerIsDecidedByTheCompiler) {
  const std::string text = page_of_build(
      "grid.h(12): error: identifier \"parallel_run\" is undefined\n1 error detected in the compilation of "
      "\"a.cu\".\n");
  EXPECT_THAT(text, HasSubstr("the build failed"));
  EXPECT_THAT(text, HasSubstr("To decide: nvcc --version"));
}

INSTANTIATE_TEST_SUITE_P(Loading, BuildErrors, ::testing::ValuesIn(kLoading));

TEST(BuildErrorsBeside, AProgramThatIsKilledIsNoCompiler) {
  EXPECT_THAT(page_of_build("$ python train.py\nKilled\n"), HasSubstr("killed the program"));
}

TEST(BuildErrorsBeside, OfOtherCompilersAreNotCudas) {
  for (const char* log : {
           "a.cpp:1:10: fatal error: boost/any.hpp: No such file or directory",
           "main.o: undefined reference to `curl_easy_init'",
           "main.o: undefined reference to `custom_init'",
           "/usr/bin/ld: cannot find -lcurl",
           "src/list.h:9:2: error: parameter packs not expanded with '...':",
           "a.hpp(3): error: exception specification is incompatible with that of previous function \"swap\"",
           "error[E0422]: cannot find struct, variant or union type `Customer` in module `crm`",
           "x.cpp(4): error: class \"Device\" has no member \"clockRate\"",
           "a.cu(3): error: identifier \"texture_size\" is undefined",
       }) {
    const Explanation explanation = explained(std::string(log) + "\n");
    EXPECT_TRUE(explanation.findings.empty() || explanation.findings.front().confidence < 0.5) << log;
  }
}

}  // namespace
}  // namespace kshim::test
