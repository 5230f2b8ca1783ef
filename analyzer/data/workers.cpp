// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/workers.h"

namespace kshim::analysis {
namespace {

constexpr WorkerRow kWorkers[] = {
#define KSHIM_WORKER(word, of, source_ids) {word, of, source_ids},
#include "analyzer/data/workers.def"
#undef KSHIM_WORKER
};

}  // namespace

std::span<const WorkerRow> workers() { return kWorkers; }

}  // namespace kshim::analysis
