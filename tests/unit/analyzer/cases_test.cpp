// SPDX-License-Identifier: Apache-2.0
// Real cases: what the rules make of what people could tell. A right answer names a cause that the case's
// category accepts; "unknown" and a cause that is marked as doubtful are honest; a sure wrong one is a
// defect.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "analyzer/diagnose/rules.h"
#include "image_fact.h"

namespace kshim::test {
namespace {

struct CaseRow {
  const char* id;
  const char* category;
  const char* device;
  const char* driver;
  std::string_view images;
  std::string_view codes;
};
constexpr CaseRow kCases[] = {
#define KSHIM_CASE(id, category, device, driver, images, codes) {id, category, device, driver, images, codes},
#include "cases.def"
#include "tests/support/command_names.h"
#undef KSHIM_CASE
};

struct CategoryRow {
  std::string_view category;
  std::vector<Cause> accepted;
};
const std::vector<CategoryRow>& categories() {
  using enum Cause;
  static const std::vector<Cause> images = {no_image_for_arch, ptx_newer_than_device, arch_specific_image};
  static const std::vector<Cause> packages = {no_image_for_arch, ptx_newer_than_device, arch_specific_image,
                                              ptx_newer_than_driver, invalid_image};
  static const std::vector<Cause> kernels = {no_image_for_arch, ptx_newer_than_device, arch_specific_image,
                                             kernel_missing_from_image};
  static const std::vector<CategoryRow> rows = {
      {"local_build_wrong_arch", images},
      {"arch_dropped_old_gpu", images},
      {"arch_env_var_wrong", images},
      {"native_arch_release_build", images},
      {"tegra_vs_desktop", images},
      {"loader_picked_wrong_variant", images},
      {"prebuilt_packaging_gap", packages},
      {"prebuilt_too_old_for_new_gpu", packages},
      {"per_kernel_gap", kernels},
      {"mixed_gpu_host", kernels},
      {"driver_too_old_for_ptx", {ptx_newer_than_driver, driver_too_old}},
      {"jit_toolchain_too_old", {nvrtc_arch_unsupported, no_image_for_arch}},
      {"compiled_out_by_arch_guard", {compiled_out}},
      {"silent_wrong_result",
       {unchecked_failure, no_image_for_arch, ptx_newer_than_device, arch_specific_image,
        ptx_newer_than_driver}},
      {"driver_insufficient", {driver_too_old, driver_mismatch, no_device}},
      {"wrong_environment_loaded",
       {mixed_cuda_libraries, cudnn_mismatch, library_not_found, no_image_for_arch, ptx_newer_than_device,
        arch_specific_image}},
      {"dependency_library_gap",
       {mixed_cuda_libraries, cudnn_mismatch, library_not_found, no_image_for_arch, ptx_newer_than_device,
        arch_specific_image}},
      {"arch_specific_suffix", {arch_specific_image}},
      {"host_device_guard_mismatch", {kernel_missing_from_image}},
      {"false_positive_warning", {unknown}},
      {"jit_compiler_missing", {jit_compiler_missing}},
      {"driver_too_old_for_fatbin", {driver_too_old_for_image}},
      {"wrong_cached_artifact", {stale_cache_artifact}},
      {"ptx_jit_slow_or_failing", {jit_tax, invalid_image, ptx_newer_than_driver}},
      {"invalid_image_other", {}},  // not judged
  };
  return rows;
}

const CategoryRow* find_category(std::string_view name) {
  const auto& rows = categories();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const CategoryRow& row) { return row.category == name; });
  return found == rows.end() ? nullptr : &*found;
}

template <class Visit>
void each_word(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    visit(word);
  }
}

Facts facts_of(const CaseRow& row) {
  Facts out;
  out.call.stage = "launch";
  if (*row.device != '\0') out.gpu.cc = image::parse_arch(row.device)->cc;
  if (*row.driver != '\0') out.driver.cuda = *image::parse_version(row.driver);
  each_word(row.codes,
            [&](std::string_view word) { out.call.codes.push_back(std::stoi(std::string(word))); });
  each_word(row.images, [&](std::string_view word) { out.images.list.push_back(fact(word)); });
  if (!out.images.list.empty()) out.images.scope = ImageScope::file;
  return out;
}

// Above, a person acts on it.
constexpr double kSure = 0.5;

// Wrong and sure, for a reason that is known.
struct KnownWrong {
  std::string_view id;
  std::string_view why;
};
constexpr KnownWrong kKnownWrong[] = {
    {"cutile-44", "221 is also given for cuTile's own code, which that driver cannot compile"},
    {"hc-2722", "the PTX is too new for the driver; the thread calls the NVRTC that made it the cause"},
    {"triton-1323", "stale-cache-artifact is not among the causes that are judged yet"},
};
bool is_known_wrong(const CaseRow& row) {
  return std::any_of(std::begin(kKnownWrong), std::end(kKnownWrong),
                     [&](const KnownWrong& known) { return known.id == row.id; });
}

bool is_right(const CaseRow& row, const Diagnosis& got) {
  const auto& accepted = find_category(row.category)->accepted;
  return accepted.empty() || std::find(accepted.begin(), accepted.end(), got.cause) != accepted.end();
}

class Cases : public ::testing::TestWithParam<CaseRow> {};

TEST_P(Cases, AreNeverAnsweredWronglyAndSurely) {
  const CaseRow& row = GetParam();
  ASSERT_NE(find_category(row.category), nullptr) << row.category;
  const Diagnosis got = diagnosis_of(facts_of(row));
  EXPECT_TRUE(is_right(row, got) || got.match.confidence <= kSure || is_known_wrong(row))
      << row.id << " (" << row.category << ") is called " << row_of(got.cause).name << " with "
      << got.match.confidence << ": " << got.match.because;
}
INSTANTIATE_TEST_SUITE_P(Table, Cases, ::testing::ValuesIn(kCases));

// The rates of the day. They may rise; a change that lowers one has made the analyzer worse.
TEST(CasesRate, KnowsOnlyWrongAnswersThatAreGiven) {
  for (const CaseRow& row : kCases) {
    if (!is_known_wrong(row)) continue;
    const Diagnosis got = diagnosis_of(facts_of(row));
    EXPECT_FALSE(is_right(row, got)) << row.id << " is right now: take it off the list";
  }
}

TEST(CasesRate, HasNotFallen) {
  int told = 0;
  int told_right = 0;
  int code = 0;
  int code_right = 0;
  for (const CaseRow& row : kCases) {
    const Diagnosis got = diagnosis_of(facts_of(row));
    const bool right = is_right(row, got);
    (row.images.empty() ? code : told) += 1;
    (row.images.empty() ? code_right : told_right) += right ? 1 : 0;
    if (!right) {
      std::cout << row.id << " (" << row.category << "): " << row_of(got.cause).name << " "
                << got.match.confidence << "\n";
    }
  }
  std::cout << "images told: " << told_right << " of " << told << "; code alone: " << code_right << " of "
            << code << "\n";
  EXPECT_GE(told_right, 40) << "of " << told;
  EXPECT_GE(code_right, 17) << "of " << code;
}

}  // namespace
}  // namespace kshim::test
