// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's own way of watching launches costs: a library for CUDA_INJECTION64_PATH that counts the
// callbacks of cuLaunchKernel and writes "callbacks N" on stderr. NVIDIA's driver loads it; the simulated one
// does not.
#include <cupti.h>

#include <cstdio>

namespace {

CUpti_SubscriberHandle g_subscriber;
unsigned long g_calls = 0;

void CUPTIAPI count(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) { ++g_calls; }

[[gnu::destructor]] void say() { std::fprintf(stderr, "callbacks %lu\n", g_calls); }

}  // namespace

extern "C" int InitializeInjection() {
  if (cuptiSubscribe(&g_subscriber, &count, nullptr) != CUPTI_SUCCESS) return 0;
  cuptiEnableCallback(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  return 1;
}
