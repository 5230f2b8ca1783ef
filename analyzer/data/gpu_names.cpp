// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/gpu_names.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>

#include "analyzer/data/knowledge_file.h"

namespace kshim::explain {
namespace {

// "M4" and "P4" are words of other trades: they count behind NVIDIA, Tesla or GPU only.
constexpr std::size_t kShort = 3;

std::string folded(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    if (letter != ' ' && letter != '-')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return out;
}

const std::vector<GpuName>& all_names() {
  static const std::vector<GpuName> kNames = [] {
    std::vector<GpuName> out;
    for (const analysis::GpuNameRow& row : analysis::knowledge().gpu_names)
      out.push_back({std::string(row.name), row.cc});
    std::stable_sort(out.begin(), out.end(),
                     [](const GpuName& a, const GpuName& b) { return a.name.size() > b.name.size(); });
    return out;
  }();
  return kNames;
}

std::string quoted(const std::string& name) {
  std::string out;
  for (const char letter : name) {
    if (letter == ' ') {
      out += "[ -]?";
    } else if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      out += letter;
    } else {
      out += '\\';
      out += letter;
    }
  }
  return out;
}

}  // namespace

std::string gpu_name_pattern() {
  std::string plain;
  std::string prefixed;
  for (const GpuName& gpu : all_names()) {
    std::string& to = gpu.name.size() <= kShort && gpu.name.find(' ') == std::string::npos ? prefixed : plain;
    if (!to.empty()) to += '|';
    to += quoted(gpu.name);
  }
  return R"((?:(?:^|[^\w.])()" + plain + R"()(?:[^\w.]|\.?$|\.\s))|(?:(?:NVIDIA|Tesla|GPU[ :=\d]*)[ -]()" +
         prefixed + R"()(?:[^\w.]|\.?$)))";
}

std::vector<GpuName> gpus_named_in(std::string_view text) {
  static const RE2 kPattern = [] {
    RE2::Options options;
    options.set_case_sensitive(false);
    options.set_encoding(RE2::Options::EncodingLatin1);
    return RE2(gpu_name_pattern(), options);
  }();
  std::vector<GpuName> out;
  re2::StringPiece rest(text.data(), text.size());
  std::string plain;
  std::string prefixed;
  constexpr std::size_t kMost = 16;
  while (out.size() < kMost && RE2::FindAndConsume(&rest, kPattern, &plain, &prefixed)) {
    // The letter behind a name is part of its match, and may be the one before the next.
    if (!rest.empty() && rest.data() != text.data()) rest = {rest.data() - 1, rest.size() + 1};
    const std::string key = folded(plain.empty() ? prefixed : plain);
    const auto row = std::find_if(all_names().begin(), all_names().end(),
                                  [&](const GpuName& gpu) { return folded(gpu.name) == key; });
    if (row != all_names().end()) out.push_back(*row);
  }
  return out;
}

}  // namespace kshim::explain
