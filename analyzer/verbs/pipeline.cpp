// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/pipeline.h"

namespace kshim::verbs {

const advise::ForeignNames& Source::foreign() const {
  static const advise::ForeignNames none;
  return none;
}

void conclude(Source& source) {
  // Read the input, and judge each report, file or log by itself. A finding has its cause, its evidence and
  // the facts that its fixes depend on.
  source.judge();

  // Make one finding of those that are about the same thing, and drop those that another one answers.
  source.join();

  // Put the most severe and most certain first. The next passes depend on the order: where fixes contradict
  // each other, those of the first finding stay.
  source.sort();

  // From here on no pass adds, merges, removes or moves a finding.

  // Make the fixes of each finding from its facts alone.
  advise_on(source.findings(), source.foreign(), source.given());

  // Take away fixes that the first fix of an earlier finding makes needless, and advice that contradicts it.
  advise::settle(source.findings());

  // Find the shortest list of architectures for each file that lacks code for several GPUs.
  source.plan();
}

}  // namespace kshim::verbs
