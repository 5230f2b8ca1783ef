// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "analyzer/compare/diff.h"
#include "analyzer/core/text.h"

namespace kshim::diff {
namespace {

/// The object of a finding, as a word that both sides have for it.
class Objects {
 public:
  explicit Objects(const std::vector<Pair>& pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].a != nullptr) a_.try_emplace(pairs[i].a->name, i);
      if (pairs[i].b != nullptr) b_.try_emplace(pairs[i].b->name, i);
    }
  }
  std::optional<std::size_t> pair(const Finding& finding, bool before) const {
    const auto& names = before ? a_ : b_;
    const auto found = names.find(finding.object);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  }
  std::string word(const Finding& finding, bool before) const {
    if (const auto number = pair(finding, before)) return fmt::format("#{}", *number);
    const std::size_t mark = finding.object.rfind('!');
    return stem(
        analysis::basename_of(mark == std::string::npos ? finding.object : finding.object.substr(mark + 1)));
  }

 private:
  std::unordered_map<std::string, std::size_t> a_;
  std::unordered_map<std::string, std::size_t> b_;
};

bool counts(const Finding& finding, const Options& options) {
  if (options.targets.empty() || finding.need.empty()) return true;
  const auto need = image::parse_arch(finding.need);
  return !need || std::any_of(options.targets.begin(), options.targets.end(),
                              [&](image::Arch target) { return target.cc == need->cc; });
}

/// Of a scan: what images say of a target is compared as images.
bool is_about_target(const Finding& finding, const Diff& diff) {
  return diff.a.kind == SideKind::scan && !diff.targets.empty() && !finding.need.empty();
}

class Findings {
 public:
  Findings(const Options& options, Diff& diff) : options_(options), diff_(diff), objects_(diff.pairs) {}

  void run() {
    std::vector<const Finding*> before = wanted(diff_.a.findings);
    std::vector<const Finding*> after = wanted(diff_.b.findings);
    // The same cause first; what is left and about the same trouble has another one now.
    pair_up(before, after, [this](const Finding& finding, bool old) {
      return finding.cause + '\n' + objects_.word(finding, old) + '\n' + finding.need + '\n' +
             (finding.code ? std::to_string(*finding.code) : "");
    });
    pair_up(before, after, [this](const Finding& finding, bool old) {
      return finding.object.empty() ? std::string() : objects_.word(finding, old) + '\n' + finding.need;
    });
    for (const Finding* finding : before) {
      diff_.mended.push_back(*finding);
      if (finding->severity > analysis::Severity::info)
        add(counts(*finding, options_) ? Effect::gained : Effect::changed, *finding, true, finding->text);
    }
    for (const Finding* finding : after) {
      diff_.broken.push_back(*finding);
      if (finding->severity > analysis::Severity::info)
        add(counts(*finding, options_) ? Effect::lost : Effect::changed, *finding, false, finding->text);
    }
  }

 private:
  std::vector<const Finding*> wanted(const std::vector<Finding>& findings) const {
    std::vector<const Finding*> out;
    for (const Finding& finding : findings) {
      if (!is_about_target(finding, diff_)) out.push_back(&finding);
    }
    return out;
  }

  template <class Key>
  void pair_up(std::vector<const Finding*>& before, std::vector<const Finding*>& after, Key key) {
    std::unordered_multimap<std::string, const Finding*> theirs;
    for (auto it = after.rbegin(); it != after.rend(); ++it) {
      if (std::string text = key(**it, false); !text.empty()) theirs.emplace(std::move(text), *it);
    }
    std::vector<const Finding*> left;
    std::unordered_set<const Finding*> used;
    for (const Finding* finding : before) {
      const std::string text = key(*finding, true);
      const auto found = text.empty() ? theirs.end() : theirs.find(text);
      if (found == theirs.end()) {
        left.push_back(finding);
        continue;
      }
      used.insert(found->second);
      both(*finding, *found->second);
      theirs.erase(found);
    }
    before = std::move(left);
    std::erase_if(after, [&](const Finding* finding) { return used.contains(finding); });
  }

  void both(const Finding& a, const Finding& b) {
    if (a.cause == b.cause && a.severity == b.severity) {
      diff_.stayed.push_back(b);
      return;
    }
    diff_.other.push_back({a, b});
    Effect effect = b.severity > a.severity   ? Effect::lost
                    : b.severity < a.severity ? Effect::gained
                                              : Effect::changed;
    if (!counts(b, options_)) effect = Effect::changed;
    Change& change =
        add(effect, b, false, fmt::format("{} (was {}: {})", b.text, to_name(a.severity), a.cause));
    change.before = a.cause;
    change.after = b.cause;
  }

  Change& add(Effect effect, const Finding& finding, bool before, std::string text) {
    diff_.changes.push_back({.effect = effect,
                             .what = "finding",
                             .pair = objects_.pair(finding, before),
                             .arch = finding.need,
                             .text = std::move(text),
                             .before = before ? finding.cause : "",
                             .after = before ? "" : finding.cause});
    return diff_.changes.back();
  }

  const Options& options_;
  Diff& diff_;
  Objects objects_;
};

}  // namespace

void compare_findings(const Options& options, Diff& diff) { Findings(options, diff).run(); }

}  // namespace kshim::diff
