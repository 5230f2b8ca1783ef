// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/gpu_names.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"
#include "kshim/image/compute_capability.h"

namespace kshim::data {
namespace {

// "M4" and "P4" have other meanings, so they count as GPUs only after "NVIDIA", "Tesla" or "GPU".
constexpr std::size_t kShort = 3;

std::string folded(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    if (letter != ' ' && letter != '-') out += core::to_lower(letter);
  }
  return out;
}

const std::vector<GpuName>& all_names() {
  static const std::vector<GpuName> kNames = [] {
    std::vector<GpuName> out;
    for (const GpuNameRow& row : gpu_names()) out.push_back({std::string(row.name), row.cc});
    for (const OldGpuRow& row : old_gpus()) out.push_back({std::string(row.name), row.cc});
    // Newest first: a Thor's chip has two numbers, and the newer is that of CUDA 13.
    const auto gpus = image::compat_tables().gpus;
    for (auto gpu = gpus.rbegin(); gpu != gpus.rend(); ++gpu)
      for (const std::string& chip : core::split(gpu->chips, " "))
        if (!chip.empty()) out.push_back({chip, gpu->cc, true});
    std::ranges::stable_sort(
        out, [](const GpuName& a, const GpuName& b) { return a.name.size() > b.name.size(); });
    return out;
  }();
  return kNames;
}

std::string quoted(const std::string& name) {
  std::string out;
  for (const char letter : name) {
    if (letter != ' ' && !core::is_alnum(letter)) out += '\\';
    if (letter == ' ')
      out += "[ -]?";
    else
      out += letter;
  }
  return out;
}

// What tells GPUs apart: "NVIDIA GeForce RTX 5090" is rtx 5090, "RTX5090" and "H100-PCIE" are two words each.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out;
  std::string word;
  const auto end = [&] {
    if (!word.empty() && word != "nvidia" && word != "geforce" && word != "tesla" && word != "gpu")
      out.push_back(word);
    word.clear();
  };
  for (const char each : name) {
    const auto letter = static_cast<unsigned char>(each);
    if (std::isalnum(letter) == 0) {
      end();
      continue;
    }
    // RTX5090 and GTX1080, but not H100 and T4.
    if (std::isdigit(letter) != 0 && word.size() > 2 &&
        std::ranges::all_of(word, [](unsigned char c) { return std::isalpha(c) != 0; }))
      end();
    word += core::to_lower(each);
  }
  end();
  return out;
}

}  // namespace

std::string gpu_name_pattern() {
  std::string plain;
  std::string prefixed;
  std::string chips;
  std::string common = "T4|L4";  // of these and of three letters, "on a K80" is enough
  for (const GpuName& gpu : all_names()) {
    const bool is_short = gpu.name.size() <= kShort && !core::contains(gpu.name, ' ');
    std::string& to = gpu.chip ? chips : is_short ? prefixed : plain;
    if (!to.empty()) to += '|';
    to += quoted(gpu.name);
    if (is_short && gpu.name.size() == kShort) common += '|' + gpu.name;
  }
  // gpu-p40-02 and p100-node3 are names of machines, h200:221 is a process on one.
  const std::string end =
      R"()s?(?:[^\w.:-]|:(?:\D|$)|-(?:SXM|PCI|FHHL|DGX|NVL|MAXQ|\d{1,2}[QCAB]\b|\d+G)|\.?$|\.\s))";
  return R"((?:(?:^|[^\w.-]|(?:NVIDIA|Tesla|GeForce)-)()" + plain + end +
         R"()|(?:(?:(?:NVIDIA|Tesla|GPU[ :=\d]*|Colab|\b\d ?x)[ -]|\xe7\x89\xb9\xe6\x96\xaf\xe6\x8b\x89 ?)()" +
         prefixed + end + R"()|(?:\(|\b(?:on|with|using|have|got|my) (?:(?:an?|the|my|one|two|\d) )?)()" +
         common + end + R"(|\b()" + common + R"()(?:[ -]\d{1,2} ?G(?:i?B)?\b| (?:GPUs?|cards?)\b))" +
         R"(|(?:^|[^\w.-])()" + chips + R"()(?:GL)?[BM]?(?:[^\w.-]|\.?$))";
}

std::vector<GpuName> gpus_named_in(std::string_view text) {
  static const RE2 kPattern = [] {
    RE2::Options options;
    options.set_case_sensitive(false);
    options.set_encoding(RE2::Options::EncodingLatin1);
    return RE2(gpu_name_pattern(), options);
  }();
  static const std::unordered_map<std::string, const GpuName*> kByName = [] {
    std::unordered_map<std::string, const GpuName*> names;
    for (const GpuName& gpu : all_names()) names.emplace(folded(gpu.name), &gpu);
    return names;
  }();
  std::vector<GpuName> out;
  re2::StringPiece rest(text.data(), text.size());
  std::string plain;
  std::string prefixed;
  std::string in_words;
  std::string before_gpu;
  std::string chip;
  constexpr std::size_t kMax = 16;
  while (out.size() < kMax &&
         RE2::FindAndConsume(&rest, kPattern, &plain, &prefixed, &in_words, &before_gpu, &chip)) {
    // The letter behind a name is part of its match, and may be the one before the next.
    if (!rest.empty() && rest.data() != text.data()) rest = {rest.data() - 1, rest.size() + 1};
    const auto row = kByName.find(folded(plain + prefixed + in_words + before_gpu + chip));
    if (row != kByName.end()) out.push_back(*row->second);
  }
  std::stable_partition(out.begin(), out.end(), [](const GpuName& gpu) { return !gpu.chip; });
  return out;
}

bool NamedGpus::ambiguous() const {
  return std::ranges::any_of(found, [&](const GpuName& gpu) { return gpu.cc != found.front().cc; });
}

NamedGpus gpus_called(std::string_view name) {
  NamedGpus out;
  const std::vector<std::string> wanted = words_of(name);
  if (wanted.empty()) return out;
  const std::string key = core::join(wanted, " ");
  for (const GpuName& gpu : all_names())
    if (core::join(words_of(gpu.name), " ") == key && find_gpu(gpu.cc) != nullptr) out.found.push_back(gpu);
  if (!out.found.empty()) return out;
  for (const GpuName& gpu : all_names()) {
    const std::vector<std::string> words = words_of(gpu.name);
    const bool all =
        std::ranges::all_of(wanted, [&](const std::string& word) { return core::contains(words, word); });
    if (all && find_gpu(gpu.cc) != nullptr) out.found.push_back(gpu);
  }
  std::ranges::stable_sort(out.found, {}, &GpuName::cc);
  if (!out.found.empty()) return out;
  std::vector<std::pair<std::size_t, std::string>> near;
  const std::size_t limit = std::max<std::size_t>(1, key.size() / 4);
  for (const GpuName& gpu : all_names()) {
    const std::size_t far = core::edit_distance(key, core::join(words_of(gpu.name), " "), limit);
    if (far <= limit) near.emplace_back(far, gpu.name);
  }
  std::ranges::stable_sort(near, {}, [](const auto& each) { return each.first; });
  constexpr std::size_t kMax = 3;
  for (std::size_t i = 0; i < std::min(kMax, near.size()); ++i) out.similar.push_back(near[i].second);
  return out;
}

GpuChoice choose_gpu(std::string_view text) {
  constexpr std::string_view kWhere = "`kshim scan --list-gpus` lists them";
  const auto arch = image::parse_arch(text);
  if (arch && image::find_compute_capability(arch->cc) != nullptr) return {arch->cc, {}};
  NamedGpus named = gpus_called(text);
  const std::string typed = core::sanitize(text);
  if (named.found.empty()) {
    const auto whole = image::parse_arch(typed + ".0");  // 12, where 12.0 is meant
    if (whole && image::find_compute_capability(whole->cc) != nullptr) named.similar = {name(whole->cc)};
    throw UnknownGpu(
        named.similar.empty()
            ? fmt::format(
                  "`{}` is neither an architecture such as sm_86 or 8.6 (kshim knows those from {} to {}) "
                  "nor the name of a GPU; {}",
                  typed, name(gpus().front().cc), name(gpus().back().cc), kWhere)
            : fmt::format("there is no GPU `{}`; did you mean {}? {}", typed, fmt::join(named.similar, ", "),
                          kWhere));
  }
  if (named.ambiguous()) {
    std::string list;
    constexpr std::size_t kMax = 8;
    for (std::size_t i = 0; i < std::min(kMax, named.found.size()); ++i)
      list += fmt::format("{}{} ({})", i == 0 ? "" : ", ", named.found[i].name, name(named.found[i].cc));
    throw UnknownGpu(fmt::format("`{}` can be {}{}", typed, list, named.found.size() > kMax ? " ..." : ""));
  }
  return {named.found.front().cc, named.found.front().name};
}

}  // namespace kshim::data
