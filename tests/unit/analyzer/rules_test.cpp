// SPDX-License-Identifier: Apache-2.0
// Every rule from both sides: facts that make it speak, and the nearest facts that must not.
#include "analyzer/diagnose/rules.h"

#include <gtest/gtest.h>

#include <set>

#include "image_fact.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::Version;

Facts facts(std::vector<int> codes, std::string_view cc, const std::vector<std::string_view>& images,
            Version driver = {13, 0}) {
  Facts out;
  out.call.codes = std::move(codes);
  out.call.stage = "lookup";
  out.gpu.cc = image::parse_arch(cc)->cc;
  out.driver.cuda = driver;
  for (const std::string_view name : images) out.images.list.push_back(fact(name));
  out.images.scope = images.empty() ? ImageScope::none : ImageScope::module;
  return out;
}

Facts with_switch(Facts at, bool image::JitSwitches::*field) {
  at.driver.switches.*field = true;
  return at;
}
Facts damaged(Facts at) {
  at.images.damage = "the fatbin ends before the structure it announces";
  return at;
}
Facts compressed(Facts at, image::Compression how) {
  for (ImageFact& image : at.images.list) image.compression = how;
  return at;
}
/// has: one letter an image, y or n.
Facts with_kernel(Facts at, std::string_view has) {
  for (std::size_t i = 0; i < has.size(); ++i) at.images.list[i].has_kernel = has[i] == 'y';
  return at;
}
Facts at_stage(Facts at, std::string stage, bool probing, bool went_on) {
  at.call.stage = std::move(stage);
  at.call.probing = probing;
  at.call.went_on = went_on;
  return at;
}
Facts of_collection(Facts at, std::string stage, bool by_runtime, bool went_on = true) {
  at = at_stage(std::move(at), std::move(stage), false, went_on);
  at.call.of_collection = true;
  at.call.kept_by_runtime = by_runtime;
  return at;
}
Facts asks_for_variable(Facts at, bool went_on) {
  at = at_stage(std::move(at), "lookup", false, went_on);
  at.call.for_variable = true;
  return at;
}
Facts forked(Facts at) {
  at.process.parent_initialized = true;
  return at;
}
Facts of_file(Facts at) {
  at.images.scope = ImageScope::file;
  return at;
}

Facts asked_by_name(Facts at, std::vector<std::string> alike) {
  at.call.by_name = true;
  at.images.alike = std::move(alike);
  return at;
}
Facts built_by(Facts at, Version toolkit) {
  for (ImageFact& image : at.images.list) image.toolkit = toolkit;
  return at;
}

/// version "" = unknown; known: what the library lists.
Facts compiler(std::string_view asked, std::string_view version, std::vector<std::string_view> known,
               bool by_code = false) {
  Facts out;
  out.call.stage = "other";
  out.gpu.cc = image::parse_arch("6.1")->cc;
  out.driver.cuda = {13, 0};
  CompilerFacts row;
  row.name = "NVRTC";
  row.asked = *image::parse_arch(asked);
  if (!version.empty()) row.version = *image::parse_version(version);
  row.by_code = by_code;
  for (const std::string_view arch : known) row.known.push_back(*image::parse_arch(arch));
  out.call.compiler = std::move(row);
  return out;
}

Facts cached(Facts at) {
  at.file.cache = "Triton";
  return at;
}
Facts on_launch(Facts at) {
  at.call.stage = "launch";
  return at;
}
Facts among(Facts at, std::size_t devices, bool first) {
  at.gpu.count = devices;
  at.call.first = first;
  return at;
}
Facts runtime_of(Facts at, std::string_view runtime, bool driver_found) {
  if (!runtime.empty()) at.driver.runtime = *image::parse_version(runtime);
  at.driver.found = driver_found;
  return at;
}

struct RuleCase {
  const char* what;
  Facts facts;
  Cause cause;
};

using image::JitSwitches;
const std::vector<RuleCase>& table() {
  static const std::vector<RuleCase> rows = {
      // no-image-for-arch
      {"two cubins of other majors, no PTX", facts({209}, "6.1", {"sm_75", "sm_80"}),
       Cause::no_image_for_arch},
      {"same major, higher minor", facts({209}, "8.6", {"sm_89"}), Cause::no_image_for_arch},
      {"a desktop cubin on Orin", facts({209}, "8.7", {"sm_80", "sm_86"}), Cause::no_image_for_arch},
      {"the runtime's 98 for the same", facts({98}, "7.0", {"sm_75"}), Cause::no_image_for_arch},
      {"LTO-IR alone cannot run", facts({209}, "9.0", {"lto_90"}), Cause::no_image_for_arch},
      {"B200's code on an RTX 5090", facts({209}, "12.0", {"sm_90", "sm_100"}), Cause::no_image_for_arch},
      {"no code: a gap nobody ran into", facts({}, "9.0", {"sm_80"}), Cause::no_image_for_arch},
      {"something fits: 209 is not explained", facts({209}, "8.6", {"sm_80"}), Cause::unknown},
      {"images unknown: 209 alone says it half", facts({209}, "8.6", {}), Cause::no_image_for_arch},
      // stale-cache-artifact
      {"a cache holds it, for another GPU", cached(facts({209}, "9.0", {"sm_80"})),
       Cause::stale_cache_artifact},
      {"a cache holds it, and it fits", cached(facts({200}, "9.0", {"sm_90"})), Cause::invalid_image},
      // driver-too-old, no-device
      {"a runtime 13 on a driver for 12", runtime_of(facts({35}, "9.0", {}, {12, 4}), "13.0", true),
       Cause::driver_too_old},
      {"35, and no driver anywhere", runtime_of(facts({35}, "9.0", {}, {}), "13.0", false), Cause::no_device},
      {"35, and the driver's version is not known", runtime_of(facts({35}, "9.0", {}, {}), "13.0", true),
       Cause::driver_too_old},
      // context-mismatch
      {"400 first of all, with two GPUs", among(facts({400}, "9.0", {}), 2, true), Cause::context_mismatch},
      // launch-resources
      {"1 of a launch whose image fits", on_launch(facts({1}, "9.0", {"sm_90"})), Cause::launch_resources},
      {"1 of a look-up", facts({1}, "9.0", {"sm_90"}), Cause::unknown},
      {"1 of a launch, images unknown", on_launch(facts({1}, "9.0", {})), Cause::unknown},
      // nvrtc-arch-unsupported
      {"not in the library's list", compiler("compute_61", "13.0", {"compute_75", "compute_80"}),
       Cause::nvrtc_arch_unsupported},
      {"in its list: another option was wrong", compiler("sm_80", "13.0", {"compute_75", "compute_80"}, true),
       Cause::unknown},
      {"no list: the toolkit dropped it", compiler("sm_61", "13.0", {}), Cause::nvrtc_arch_unsupported},
      {"no list: the toolkit does not know it yet", compiler("sm_120", "12.4", {}),
       Cause::nvrtc_arch_unsupported},
      {"no list: the toolkit builds for it", compiler("sm_90", "12.4", {}, true), Cause::unknown},
      {"no list, no version: the code tells", compiler("sm_61", "", {}, true), Cause::nvrtc_arch_unsupported},
      {"no list, no version, no code", compiler("sm_61", "", {}), Cause::unknown},
      {"a toolkit after the last that is known", compiler("sm_61", "19.0", {}), Cause::unknown},
      // arch-specific-image
      {"code for a newer family, with a suffix", facts({209}, "11.0", {"sm_120a"}), Cause::no_image_for_arch},
      {"sm_90a on 10.0", facts({209}, "10.0", {"sm_90a"}), Cause::arch_specific_image},
      {"and its PTX is locked too", facts({209}, "12.0", {"sm_90a", "compute_90a:8.0"}),
       Cause::arch_specific_image},
      {"the nearest below is locked", facts({209}, "10.0", {"sm_80", "sm_90a"}), Cause::arch_specific_image},
      {"the plain one beside it is no better", facts({209}, "12.0", {"sm_50", "sm_80", "sm_90", "sm_90a"}),
       Cause::no_image_for_arch},
      {"a family outside of its family", facts({209}, "12.0", {"sm_100f"}), Cause::arch_specific_image},
      {"a locked one far above says nothing", facts({209}, "7.5", {"sm_80", "sm_90a"}),
       Cause::no_image_for_arch},
      {"sm_90a on 9.0 fits", facts({209}, "9.0", {"sm_90a"}), Cause::unknown},
      {"sm_120f on 12.1 fits", facts({209}, "12.1", {"sm_120f"}), Cause::unknown},
      // ptx-newer-than-device
      {"PTX for 9.0 on 8.6", facts({209}, "8.6", {"compute_90:9.0"}), Cause::ptx_newer_than_device},
      {"loose PTX fails as a compilation", facts({218}, "6.1", {"compute_75:8.0"}),
       Cause::ptx_newer_than_device},
      {"with cubins of others beside it", facts({209}, "6.1", {"sm_75", "compute_75:9.0"}),
       Cause::ptx_newer_than_device},
      {"PTX for 8.0 on 8.6 fits", facts({209}, "8.6", {"compute_80:9.0"}), Cause::unknown},
      // ptx-newer-than-driver
      {"222 and newer PTX", facts({222}, "9.0", {"sm_80", "compute_80:9.0"}, {12, 4}),
       Cause::ptx_newer_than_driver},
      {"a driver older than code 222", facts({209}, "7.5", {"compute_70:7.1"}, {10, 2}),
       Cause::ptx_newer_than_driver},
      {"222 with nothing known", facts({222}, "9.0", {}), Cause::ptx_newer_than_driver},
      {"a cubin fits: the PTX does not matter", facts({209}, "8.6", {"sm_80", "compute_80:9.0"}, {12, 4}),
       Cause::unknown},
      {"the driver reads it", facts({209}, "9.0", {"compute_80:8.4"}, {12, 4}), Cause::unknown},
      // ptx-jit-disabled
      {"CUDA_DISABLE_PTX_JIT",
       with_switch(facts({223}, "9.0", {"sm_80", "compute_80:8.0"}), &JitSwitches::disable_ptx_jit),
       Cause::ptx_jit_disabled},
      {"CUDA_DISABLE_JIT", with_switch(facts({209}, "9.0", {"compute_80:8.0"}), &JitSwitches::disable_jit),
       Cause::ptx_jit_disabled},
      {"223 with nothing known", facts({223}, "9.0", {}), Cause::ptx_jit_disabled},
      {"forbidden, but there is no PTX anyway",
       with_switch(facts({209}, "9.0", {"sm_80"}), &JitSwitches::disable_ptx_jit), Cause::no_image_for_arch},
      {"forbidden, but a cubin fits",
       with_switch(facts({209}, "8.0", {"sm_80", "compute_80"}), &JitSwitches::disable_ptx_jit),
       Cause::unknown},
      // sass-bypassed
      {"CUDA_FORCE_PTX_JIT without PTX",
       with_switch(facts({209}, "8.6", {"sm_86"}), &JitSwitches::force_ptx_jit), Cause::sass_bypassed},
      {"CUDA_FORCE_JIT without PTX", with_switch(facts({209}, "8.6", {"sm_80"}), &JitSwitches::force_jit),
       Cause::sass_bypassed},
      {"forced, and PTX is there",
       with_switch(facts({209}, "8.6", {"sm_86", "compute_80"}), &JitSwitches::force_ptx_jit),
       Cause::unknown},
      {"forced, and the cubin would not fit either",
       with_switch(facts({209}, "7.5", {"sm_86"}), &JitSwitches::force_ptx_jit), Cause::no_image_for_arch},
      // jit-compiler-missing
      {"221 and PTX that fits", facts({221}, "9.0", {"compute_80:8.0"}), Cause::jit_compiler_missing},
      {"221 with nothing known", facts({221}, "9.0", {}), Cause::jit_compiler_missing},
      // kernel-missing-from-image
      {"500: the chosen image lacks it", with_kernel(facts({500}, "7.5", {"sm_75", "sm_86"}), "ny"),
       Cause::kernel_missing_from_image},
      {"98 for the kernel", with_kernel(facts({98}, "8.6", {"sm_80", "compute_86:9.0"}), "ny"),
       Cause::kernel_missing_from_image},
      {"500 where an image fits and was not read", facts({500}, "7.5", {"sm_75"}),
       Cause::kernel_missing_from_image},
      {"500, and no image fits: that is why", with_kernel(facts({500}, "7.5", {"sm_86"}), "y"),
       Cause::no_image_for_arch},
      {"98, and the kernel is there: somebody else's", with_kernel(facts({98}, "7.5", {"sm_75"}), "y"),
       Cause::kernel_missing_from_image},
      {"209, and the kernel is there", with_kernel(facts({209}, "7.5", {"sm_75"}), "y"), Cause::unknown},
      // invalid-image
      {"200 and our reader agrees", damaged(facts({200}, "8.6", {"sm_86"})), Cause::invalid_image},
      {"200, nothing known", facts({200}, "8.6", {}), Cause::invalid_image},
      {"300", facts({300}, "8.6", {}), Cause::invalid_image},
      {"218 though the PTX fits", facts({218}, "8.6", {"compute_80:8.0"}), Cause::invalid_image},
      {"200 for a raw cubin of another GPU", facts({200}, "9.0", {"sm_70"}), Cause::no_image_for_arch},
      {"damage, but another error", damaged(facts({2}, "8.6", {"sm_86"})), Cause::out_of_memory},
      // driver-too-old-for-image
      {"Zstandard before 12.4", compressed(facts({200}, "8.6", {"sm_86"}, {12, 2}), image::Compression::zstd),
       Cause::driver_too_old_for_image},
      {"Zstandard from 12.4 on",
       compressed(facts({200}, "8.6", {"sm_86"}, {12, 4}), image::Compression::zstd), Cause::invalid_image},
      {"LZ4 is read by all", compressed(facts({200}, "8.6", {"sm_86"}, {12, 2}), image::Compression::lz4),
       Cause::invalid_image},
      {"a cubin of a later CUDA major", built_by(facts({200}, "9.0", {"sm_90"}, {11, 8}), {13, 0}),
       Cause::driver_too_old_for_image},
      {"a later minor of the same major is read", built_by(facts({200}, "9.0", {"sm_90"}, {13, 0}), {13, 4}),
       Cause::invalid_image},
      // what a code says by itself
      {"301 is no riddle of images", facts({301}, "8.6", {}), Cause::unknown},
      {"100", facts({100}, "8.6", {}), Cause::no_device},
      {"101", facts({101}, "8.6", {}), Cause::invalid_device},
      {"35", facts({35}, "8.6", {}), Cause::driver_too_old},
      {"36", facts({36}, "8.6", {}), Cause::driver_too_old},
      {"803", facts({803}, "8.6", {}), Cause::driver_mismatch},
      {"804", facts({804}, "8.6", {}), Cause::driver_mismatch},
      {"34", facts({34}, "8.6", {}), Cause::driver_mismatch},
      {"2, whatever the images", facts({2}, "6.1", {"sm_75"}), Cause::out_of_memory},
      {"701", facts({701}, "8.6", {"sm_80"}), Cause::launch_resources},
      {"700", facts({700}, "8.6", {"sm_80"}), Cause::device_fault},
      {"719", facts({719}, "8.6", {"sm_80"}), Cause::device_fault},
      {"400 with nothing else", facts({400}, "8.6", {}), Cause::context_mismatch},
      {"1 decides nothing", facts({1}, "8.6", {"sm_75"}), Cause::unknown},
      // fork-after-init
      {"3 in a forked child", forked(facts({3}, "8.6", {})), Cause::fork_after_init},
      {"3 elsewhere", facts({3}, "8.6", {}), Cause::unknown},
      // benign-probe
      {"cuSPARSELt tries and goes on", at_stage(facts({209}, "8.6", {"sm_90a"}), "load", true, true),
       Cause::benign_probe},
      {"cuDNN linked in: a runtime before 11.7 loads all of its modules",
       of_collection(facts({209}, "7.0", {"sm_35"}), "load", true), Cause::benign_probe},
      {"and looks all of its kernels up",
       of_collection(with_kernel(facts({500}, "7.0", {"sm_70", "sm_75"}), "ny"), "lookup", true),
       Cause::benign_probe},
      {"a static runtime does not say what it kept to itself",
       of_collection(facts({209}, "7.0", {"sm_35"}), "load", false), Cause::no_image_for_arch},
      {"a launch of the file failed", of_collection(facts({209}, "7.0", {"sm_35"}), "load", true, false),
       Cause::no_image_for_arch},
      {"NCCL asks for attributes", at_stage(facts({209}, "8.6", {"sm_90"}), "query", true, true),
       Cause::benign_probe},
      {"cuBLAS asks which cluster sizes there are",
       at_stage(facts({912}, "9.0", {"sm_90"}), "query", true, true), Cause::benign_probe},
      {"cuDNN asks for an attribute that this driver does not know",
       at_stage(facts({1}, "9.0", {"sm_90a"}), "query", true, true), Cause::benign_probe},
      {"a value that a launch does not take", at_stage(facts({1}, "9.0", {"sm_90a"}), "launch", true, true),
       Cause::launch_resources},
      {"a cluster that does not fit at a launch",
       at_stage(facts({912}, "9.0", {"sm_90"}), "launch", true, true), Cause::launch_resources},
      {"the program's own question", at_stage(facts({912}, "9.0", {"sm_90"}), "query", false, true),
       Cause::launch_resources},
      {"the same, and its launch failed", at_stage(facts({209}, "8.6", {"sm_90"}), "load", true, false),
       Cause::no_image_for_arch},
      {"a launch is no probe", at_stage(facts({209}, "8.6", {"sm_90"}), "launch", true, true),
       Cause::no_image_for_arch},
      {"the program's own load", at_stage(facts({209}, "8.6", {"sm_90"}), "load", false, true),
       Cause::no_image_for_arch},
      {"libgomp asks whether a variable is there",
       asks_for_variable(facts({500}, "7.5", {"compute_30"}), true), Cause::benign_probe},
      {"a variable that the program does not do without",
       asks_for_variable(facts({500}, "7.5", {"compute_30"}), false), Cause::kernel_missing_from_image},
      {"a variable in an image for another GPU", asks_for_variable(facts({500}, "7.5", {"sm_90"}), true),
       Cause::no_image_for_arch},
      {"out of memory is no probe", at_stage(facts({2}, "8.6", {}), "load", true, true),
       Cause::out_of_memory},
  };
  return rows;
}

class Rules : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Rules, NameTheCause) {
  const RuleCase& row = table()[GetParam()];
  const Diagnosis got = diagnosis_of(row.facts);
  EXPECT_EQ(row_of(got.cause).name, row_of(row.cause).name) << row.what << ": " << got.match.because;
  EXPECT_FALSE(got.match.because.empty());
  EXPECT_GT(got.match.confidence, 0);
  EXPECT_LT(got.match.confidence, 1);
}
INSTANTIATE_TEST_SUITE_P(Table, Rules, ::testing::Range(std::size_t{0}, table().size()));

TEST(RulesTable, HasBothSidesOfEveryRule) {
  for (const RuleRow& rule : rules()) {
    bool speaks = false;
    bool silent = false;
    for (const RuleCase& row : table()) (rule.apply(row.facts) ? speaks : silent) = true;
    EXPECT_TRUE(speaks && silent) << row_of(rule.cause).name;
  }
}

TEST(Diagnose, IsSurerOfAModuleThanOfAFile) {
  const Facts module = facts({209}, "6.1", {"sm_75"});
  EXPECT_GT(diagnosis_of(module).match.confidence, diagnosis_of(of_file(module)).match.confidence);
}

TEST(Diagnose, ANameThatNoImageHasIsToldFromAnArchitectureThatLacksTheKernel) {
  const Facts lacking = with_kernel(facts({500}, "9.0", {"sm_80", "sm_90"}), "nn");
  EXPECT_EQ(diagnosis_of(lacking).match.because.find("name"), std::string::npos);
  const Diagnosis wrong = diagnosis_of(asked_by_name(lacking, {}));
  EXPECT_EQ(wrong.cause, Cause::kernel_missing_from_image);
  EXPECT_NE(wrong.match.because.find("no image of the module has a kernel of this name"), std::string::npos);
  const Diagnosis mangled = diagnosis_of(asked_by_name(lacking, {"_Z5scalePf"}));
  EXPECT_NE(mangled.match.because.find("_Z5scalePf"), std::string::npos);
  EXPECT_GT(mangled.match.confidence, wrong.match.confidence);
  const Facts elsewhere = asked_by_name(with_kernel(lacking, "yn"), {});
  EXPECT_NE(diagnosis_of(elsewhere).match.because.find("another image"), std::string::npos);
}

TEST(Diagnose, DoubtsWhatTheCodeContradicts) {
  EXPECT_LE(diagnosis_of(facts({222}, "6.1", {"sm_75"})).match.confidence, 0.9)
      << "222 is no usual answer to missing cubins";
  EXPECT_EQ(diagnosis_of(facts({222}, "6.1", {"sm_75"})).cause, Cause::ptx_newer_than_driver);
}

TEST(Diagnose, AnswersForEveryCodeThatHasARow) {
  for (int code = 1; code < 1000; ++code) {
    const Diagnosis got = diagnosis_of(facts({code}, "8.6", {}));
    if (got.cause == Cause::unknown) continue;
    EXPECT_NE(got.match.because.find(std::to_string(code)), std::string::npos) << "code " << code;
  }
}

TEST(Diagnose, ACodeHasOneRowAndSaysItsCause) {
  std::set<int> seen;
  const auto check = [&](const auto& row) {
    EXPECT_TRUE(seen.insert(row.code).second)
        << row.code << " is in `code_causes` and `code_meanings`, or twice in one";
    EXPECT_EQ(row_of(diagnosis_of(facts({row.code}, "8.6", {})).cause).name, row_of(row.cause).name)
        << row.code;
  };
  for (const CodeCauseRow& row : code_causes()) check(row);
  for (const CodeMeaningRow& row : code_meanings()) check(row);
}

TEST(Diagnose, NeverFailsWithoutADevice) {
  Facts at = facts({209}, "8.6", {"sm_75"});
  at.gpu.cc.reset();
  EXPECT_EQ(diagnosis_of(at).cause, Cause::no_image_for_arch);
  EXPECT_LE(diagnosis_of(at).match.confidence, 0.5) << "the images cannot be judged";
  EXPECT_FALSE(judge_image(at.images.list[0], at).fits);
}

}  // namespace
}  // namespace kshim::test
