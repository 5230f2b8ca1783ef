// SPDX-License-Identifier: Apache-2.0
// select_image and judge against their tables, and the tables against compat_rules.def.
#include "kshim/image/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "select_case.h"

namespace kshim::image {
namespace {

using table::Chosen;
using table::Judged;
using table::kChosen;
using table::kJudged;

constexpr Rule kAllRules[] = {
#define KSHIM_RULE(id, name, text, evidence, source) Rule::name,
#include "kshim/image/compat_rules.def"
#undef KSHIM_RULE
};

const char* name_of(Rule rule) { return rule_text(rule).name; }

TEST(Judge, DecidesEveryLineOfItsTable) {
  for (const Judged& line : kJudged) {
    const Verdict verdict = judge(table::candidate_of(line.image), table::platform_of(line.platform));
    EXPECT_EQ(verdict.fits, line.fits) << line.image << " on " << line.platform;
    EXPECT_STREQ(name_of(verdict.rule), name_of(line.rule)) << line.image << " on " << line.platform;
  }
}

TEST(SelectImage, DecidesEveryLineOfItsTable) {
  for (const Chosen& line : kChosen) {
    const std::string what = std::string(line.images) + " on " + line.platform;
    const auto images = table::candidates_of(line.images);
    const Selection selection = select_image(images, table::platform_of(line.platform), line.packaging);
    EXPECT_EQ(selection.choice, line.choice) << what;
    EXPECT_EQ(selection.choice == Choice::none ? selection.error : static_cast<int>(selection.index),
              line.index_or_error)
        << what;
    EXPECT_EQ(selection.error == 0, line.choice != Choice::none) << what;
    EXPECT_STREQ(name_of(selection.rule), name_of(line.rule)) << what;
  }
}

// What compat_rules.def promises of these tables.
TEST(CompatRules, EachRowDecidesALineAndLeavesALineToAnother) {
  for (const Rule rule : kAllRules) {
    const auto decides = [rule](const auto& line) { return line.rule == rule; };
    const auto leaves = [rule](const auto& line) { return line.instead_of == rule && line.rule != rule; };
    EXPECT_TRUE(std::any_of(kJudged.begin(), kJudged.end(), decides) ||
                std::any_of(kChosen.begin(), kChosen.end(), decides))
        << rule_text(rule).id << ' ' << name_of(rule) << " decides no line";
    EXPECT_TRUE(std::any_of(kJudged.begin(), kJudged.end(), leaves) ||
                std::any_of(kChosen.begin(), kChosen.end(), leaves))
        << rule_text(rule).id << ' ' << name_of(rule) << " is not contrasted in any line";
  }
}

// Rules about a single image both let one in and keep one out; a rule with one answer only is listed here.
TEST(CompatRules, RulesAboutOneImageAnswerBothWays) {
  const std::set<Rule> only_accepts = {Rule::thor_renamed, Rule::old_ptx_stays_valid};
  const std::set<Rule> only_refuses = {
      Rule::thor_alone,           Rule::ptx_isa_gate,  Rule::compiler_missing, Rule::ptx_version_too_old,
      Rule::force_ptx_jit,        Rule::force_jit,     Rule::disable_ptx_jit,  Rule::disable_jit,
      Rule::ltoir_not_executable, Rule::tileir_version};
  std::set<Rule> accepting;
  std::set<Rule> refusing;
  for (const Judged& line : kJudged) (line.fits ? accepting : refusing).insert(line.rule);
  for (const Rule rule : kAllRules) {
    if (!accepting.contains(rule) && !refusing.contains(rule)) continue;  // about containers
    EXPECT_EQ(accepting.contains(rule), !only_refuses.contains(rule)) << name_of(rule);
    EXPECT_EQ(refusing.contains(rule), !only_accepts.contains(rule)) << name_of(rule);
  }
}

TEST(CompatRules, EachRowHasAnIdOfItsOwnAndASource) {
  const std::set<std::string> evidences = {"documented", "measured", "reported", "assumed"};
  std::set<std::string> ids;
  for (const Rule rule : kAllRules) {
    const RuleText& text = rule_text(rule);
    EXPECT_TRUE(ids.insert(text.id).second) << text.id;
    EXPECT_TRUE(evidences.contains(text.evidence)) << text.id << ": " << text.evidence;
    EXPECT_GT(std::string(text.source).size(), 20U) << text.id;
    EXPECT_TRUE(std::string(text.text).ends_with('.')) << text.id;
  }
}

TEST(SelectImage, DoesNotDependOnTheOrderOfImages) {
  for (const Chosen& line : kChosen) {
    const auto images = table::candidates_of(line.images);
    const Platform platform = table::platform_of(line.platform);
    const Selection selection = select_image(images, platform, line.packaging);
    std::vector<std::size_t> order(images.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    std::vector<Candidate> reversed;
    for (const std::size_t at : order) reversed.push_back(images[at]);
    const Selection other = select_image(reversed, platform, line.packaging);
    ASSERT_EQ(other.choice, selection.choice) << line.images << " on " << line.platform;
    EXPECT_EQ(other.error, selection.error) << line.images << " on " << line.platform;
    if (selection.choice == Choice::none) continue;
    EXPECT_EQ(reversed[other.index].arch, images[selection.index].arch) << line.images;
    EXPECT_EQ(reversed[other.index].isa, images[selection.index].isa) << line.images;
  }
}

TEST(SelectImage, ImagesThatDoNotFitChangeNoChoice) {
  const Candidate strangers[] = {table::candidate_of("sm_20"), table::candidate_of("lto_90")};
  for (const Chosen& line : kChosen) {
    if (line.choice == Choice::none) continue;
    auto images = table::candidates_of(line.images);
    images.insert(images.end(), std::begin(strangers), std::end(strangers));
    const Selection selection = select_image(images, table::platform_of(line.platform));
    EXPECT_EQ(selection.choice, line.choice) << line.images;
    EXPECT_EQ(static_cast<int>(selection.index), line.index_or_error) << line.images;
  }
}

}  // namespace
}  // namespace kshim::image
