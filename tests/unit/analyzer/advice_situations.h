// SPDX-License-Identifier: Apache-2.0
// The situations that advise_on() is asked about, one by one: all causes, GPUs, toolkits, origins and some
// packages, with drivers that know the GPU and drivers that do not.
#pragma once
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge.h"

namespace kshim::test::situations {

using image::Suffix;
using image::Version;

inline constexpr Cause kCauses[] = {
#define KSHIM_CAUSE(id, name, severity, traits, when, headline, title) Cause::id,
#include "analyzer/core/causes.def"
#include "tests/support/command_names.h"
#undef KSHIM_CAUSE
};
inline constexpr Origin kOrigins[] = {Origin::program,   Origin::cmake,  Origin::python_extension,
                                      Origin::installed, Origin::system, Origin::memory};
inline constexpr Version kToolkits[] = {{0, 0}, {11, 8}, {12, 9}, {13, 0}};

struct Package {
  const char* name;
  const char* version;
  const char* manager;
  const char* object;
};
inline constexpr Package kPackages[] = {
    {"", "", "", "/home/u/libmine.so"},
    {"", "", "", ""},
    {"torch", "2.9.1+cu128", "pip", "/v/site-packages/torch/lib/libtorch_cuda.so"},
    {"torch", "2.9.1", "", ""},
    {"pytorch", "2.5.1", "conda", "/c/lib/libtorch_cuda.so"},
    {"flash-attn", "2.8.3", "pip", "/v/site-packages/flash_attn_2_cuda.so"},
    {"cupy-cuda13x", "14.2.0", "pip", "/v/site-packages/cupy/_core/core.so"},
    {"libmine", "1.0", "conda", "/c/lib/libmine.so"},
    {"libmine", "1.0", "dpkg", "/usr/lib/libmine.so"},
    {"libmine", "1.0", "rpm", "/usr/lib64/libmine.so"},
    {"", "", "", "/usr/local/cuda/lib64/libcudnn_ops.so.9"},
    // What a log names, with no file at hand.
    {"torch", "2.4.0+cu121", "", ""},
    {"torch", "2.7.1+cu128", "", ""},
    {"tensorflow", "", "", ""},
    {"tensorflow", "2.15.0", "", ""},
    {"jax", "0.9.0", "", ""},
    {"triton", "3.1.0", "", ""},
    {"numba-cuda", "0.20", "", ""},
    {"paddlepaddle-gpu", "3.2.0", "", ""},
    {"ggml", "", "", ""},
    {"vllm", "0.10.0", "", ""},
};

struct Driver {
  Version cuda;
  const char* kernel_module;
};
inline constexpr Driver kDrivers[] = {
    {{0, 0}, ""},           {{11, 4}, "470.223.02"}, {{12, 4}, "550.54.15"}, {{12, 8}, ""},
    {{13, 0}, "580.82.07"}, {{13, 1}, ""},           {{13, 3}, "610.43.02"},
};

inline std::vector<image::Candidate> some_images() {
  return {{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}},
          {image::ImageKind::cubin, *image::parse_arch("sm_90a"), {}},
          {image::ImageKind::ptx, *image::parse_arch("compute_90"), {9, 0}}};
}

template <class Visit>
void each_situation(Visit&& visit) {
  std::size_t number = 0;
  for (const Cause cause : kCauses) {
    for (const GpuRow& gpu : gpus()) {
      for (const Version toolkit : kToolkits) {
        for (const Origin origin : kOrigins) {
          for (const Package& package : kPackages) {
            // Each origin beside each package, though not for each GPU.
            const auto turn = static_cast<std::size_t>(&gpu - gpus().data()) +
                              static_cast<std::size_t>(origin) +
                              static_cast<std::size_t>(&package - kPackages);
            if (turn % 3 != 0) continue;
            Facts at;
            at.cause = cause;
            at.call.code = cause == Cause::driver_too_old ? 35 : 209;
            at.gpu.cc = gpu.cc;
            at.images.toolkit = toolkit;
            at.images.toolkit_how = "so it says";
            at.file.origin = origin;
            at.file.loose = origin == Origin::memory;
            at.file.bare = at.file.loose;
            at.package.name = package.name;
            at.package.version = package.version;
            at.package.manager = package.manager;
            if (origin != Origin::memory) at.file.path = package.object;
            at.file.shared_library = true;
            at.images.list = {{.candidate = some_images().front(), .toolkit = {13, 0}}};
            // Each of them beside each cause, GPU, toolkit and package, though not in all their products.
            const Driver& driver = kDrivers[(number + number / std::size(kPackages)) % std::size(kDrivers)];
            at.driver.cuda = driver.cuda;
            at.driver.module = driver.kernel_module;
            at.images.have = at.file.path.empty() && !at.package.name.empty() && number % 2 == 0
                                 ? std::vector<image::Candidate>()
                                 : some_images();
            ++number;
            at.driver.switches.force_ptx_jit = true;
            at.file.cache = "Triton";
            at.file.cache_entry = at.file.removable = "/home/u/.triton/cache/abc";
            at.call.compiler = {origin == Origin::system ? "nvcc" : "NVRTC",
                                {gpu.cc, Suffix::none},
                                toolkit,
                                false,
                                {},
                                "",
                                {},
                                "",
                                "",
                                {}};
            at.driver.runtime = {13, 0};
            at.process.torch = at.package.name == "torch";
            visit(at, advise_on(at));
          }
        }
      }
    }
  }
}

inline std::string described(const Facts& at) {
  return std::string(row_of(at.cause).name) + " " + image::to_name(*at.gpu.cc).c_str() + " toolkit " +
         image::to_name(at.images.toolkit).c_str() + " origin " +
         std::to_string(static_cast<int>(at.file.origin)) + " " + at.package.name.shown() + " " +
         at.package.manager + " " + at.file.path;
}

}  // namespace kshim::test::situations
