// SPDX-License-Identifier: Apache-2.0
// The layers between an exported stub and its implementation, generated from the type of each function: the
// result 801, the per-thread-default-stream variant, the error log, the tracing wrapper.
#pragma once
#include "base/driver_log.h"
#include "entry/entry.h"
#include "entry/trace.h"

namespace kshim::sim {

extern const char* const kSymbols[kRowCount];
/// CUDA version that brought the symbol: 11030.
int introduced(unsigned row) noexcept;
/// 801, named once under KSHIM_LOG=info.
CUresult answer_not_supported(Row row) noexcept;

/// The per-thread twins differ in one thing: stream 0 means the calling thread's own default stream.
template <class T>
T with_thread_stream(T value) noexcept {
  return value;
}
inline CUstream with_thread_stream(CUstream stream) noexcept {
  return stream != nullptr ? stream : CU_STREAM_PER_THREAD;
}

template <Row row, class Signature>
struct Thunk;

template <Row row, class... Args>
struct Thunk<row, CUresult(Args...)> {
  static CUresult missing(Args...) { return answer_not_supported(row); }

  template <auto base>
  static CUresult per_thread(Args... args) {
    return base(with_thread_stream(args)...);
  }

  template <auto call>
  static CUresult logged(Args... args) {
    const CUresult result = call(args...);
    if (result != CUDA_SUCCESS) log_failure(kSymbols[static_cast<unsigned>(row)], result);
    return result;
  }

  template <auto call>
  static CUresult traced(Args... args) {
    TraceLine line(kSymbols[static_cast<unsigned>(row)]);
    (line.argument(args), ...);
    const CUresult result = call(args...);
    line.result(result);
    if (result == CUDA_SUCCESS) (line.output(args), ...);
    line.write();
    return result;
  }
};

/// A launch configuration carries its stream inside.
template <Row row>
struct Thunk<row, CUresult(const CUlaunchConfig*, CUfunction, void**, void**)> {
  using Call = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);
  static CUresult missing(const CUlaunchConfig*, CUfunction, void**, void**) {
    return answer_not_supported(row);
  }

  template <auto base>
  static CUresult per_thread(const CUlaunchConfig* config, CUfunction function, void** parameters,
                             void** extra) {
    if (config == nullptr || config->hStream != nullptr) return base(config, function, parameters, extra);
    CUlaunchConfig own = *config;
    own.hStream = CU_STREAM_PER_THREAD;
    return base(&own, function, parameters, extra);
  }

  template <auto call>
  static CUresult logged(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    const CUresult result = call(config, function, parameters, extra);
    if (result != CUDA_SUCCESS) log_failure(kSymbols[static_cast<unsigned>(row)], result);
    return result;
  }

  template <auto call>
  static CUresult traced(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    TraceLine line(kSymbols[static_cast<unsigned>(row)]);
    if (config == nullptr) {
      line.argument(config);
    } else {
      line.argument(config->gridDimX), line.argument(config->gridDimY), line.argument(config->gridDimZ);
      line.argument(config->blockDimX), line.argument(config->blockDimY), line.argument(config->blockDimZ);
      line.argument(config->sharedMemBytes), line.argument(config->hStream), line.argument(config->numAttrs);
    }
    line.argument(function), line.argument(parameters), line.argument(extra);
    const CUresult result = call(config, function, parameters, extra);
    line.result(result);
    line.write();
    return result;
  }
};

}  // namespace kshim::sim
