// SPDX-License-Identifier: Apache-2.0
#include "report/job.h"

namespace kshim::shim {
namespace {

/// Names of the variables; all of them are in environment.def. Kubernetes has none of its own: these are what
/// docs/environment.md asks a pod to take from the downward API.
struct Scheduler {
  std::string_view name, id, account, queue;
};
constexpr Scheduler kSchedulers[] = {
    {"slurm", "SLURM_JOB_ID", "SLURM_JOB_ACCOUNT", "SLURM_JOB_PARTITION"},
    {"pbs", "PBS_JOBID", "PBS_ACCOUNT", "PBS_QUEUE"},
    {"lsf", "LSB_JOBID", "LSB_PROJECT_NAME", "LSB_QUEUE"},
    {"kubernetes", "POD_NAME", "POD_NAMESPACE", "POD_PRIORITY_CLASS"},
};

}  // namespace

JobRows::JobRows(const EnvironmentCopy& environment) noexcept {
  for (const Scheduler& scheduler : kSchedulers) {
    if (environment.find(scheduler.id).empty()) continue;
    rows[count++] = {"scheduler", scheduler.name};
    rows[count++] = {"id", environment.find(scheduler.id)};
    if (const auto account = environment.find(scheduler.account); !account.empty())
      rows[count++] = {"account", account};
    if (const auto queue = environment.find(scheduler.queue); !queue.empty())
      rows[count++] = {"queue", queue};
    return;
  }
}

}  // namespace kshim::shim
