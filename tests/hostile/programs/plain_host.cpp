// SPDX-License-Identifier: Apache-2.0
// plain_host SCENARIO [WORD...]: programs that do what programs may do, with a driver that does next to
// nothing. Prints what it got, which must be the same with the shim.
#include <functional>
#include <map>

#include "plain.h"

namespace hostile {
std::vector<std::string> g_words;
}

int main(int argc, char** argv) {
  using namespace hostile;
  static const std::map<std::string, std::function<int()>> kAll = {
      {"reload", reload},
      {"plugin-again", plugin_again},
      {"plugins-come-and-go", plugins_come_and_go},
      {"default-runtime", default_runtime},
      {"own-runtimes", own_runtimes},
      {"after-close", after_close},
      {"default-look-ups", default_look_ups},
      {"come-and-go", come_and_go},
      {"stopped-in-close", stopped_in_close},
      {"two-drivers", two_drivers},
      {"local-plugin", local_plugin},
      {"null-handle", null_handle},
      {"patched", patched},
      {"libraries", libraries},
      {"paths", paths},
      {"many-files", many_files},
      {"cudnn", cudnn},
      {"damaged", damaged},
      {"inside", inside},
      {"switches", switches},
      {"coroutine", coroutine},
      {"cancel", cancel},
      {"crowd", crowd},
      {"stopped", stopped},
      {"jumps", jumps_out_of_runtime},
      {"registers", registers},
      {"registers-many", registers_many},
      {"at-fork", at_fork},
      {"many-threads", many_threads},
      {"far-apart", far_apart},
      {"forked-in-log", forked_in_log},
      {"one-buffer", one_buffer},
      {"fresh-buffers", fresh_buffers},
      {"handles", handles},
      {"many-failures", many_failures},
      {"environment", environment},
      {"pending", pending},
      {"interrupted", interrupted},
      {"stops-threads", stops_threads},
      {"ends", ends},
      {"worker", worker},
      {"main-ends", main_ends},
      {"garbage", garbage},
      {"truncated", truncated},
      {"mappings", mappings},
      {"few-mappings", few_mappings},
      {"no-descriptors", no_descriptors},
      {"tight", tight},
      {"names", names},
      {"generated", generated},
      {"edge", edge},
      {"big-file", big_file},
      {"memory", memory},
      {"barrier", barrier},
      {"while-asking", while_asking},
  };
  if (argc < 2 || !kAll.contains(argv[1])) return 2;
  g_words.assign(argv + 2, argv + argc);
  return kAll.at(argv[1])();
}
