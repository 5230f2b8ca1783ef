// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/distributions.h"

#include "analyzer/core/text.h"
#include "analyzer/data/wheels.h"
#include "analyzer/owner/databases.h"

namespace kshim::owner {
using core::trim;

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeader = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxEntries = 65536;
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;

struct Clause {
  std::string op;
  std::string release;  // without .* and the part behind +
  bool prefix = false;  // ==2.7.*
};

std::vector<Clause> clauses_of(std::string_view range) {
  std::vector<Clause> out;
  for (const std::string& part : core::split(std::string(range), ",")) {
    const std::string_view text = trim(part);
    const std::size_t end = std::min(text.find_first_not_of("=<>~!"), text.size());
    if (end == 0 || end == text.size()) continue;
    Clause clause{std::string(text.substr(0, end)), std::string(trim(text.substr(end)))};
    clause.release.resize(std::min(clause.release.find('+'), clause.release.size()));
    if (clause.release.ends_with(".*")) {
      clause.prefix = true;
      clause.release.resize(clause.release.size() - 2);
    }
    if (clause.op == "~=") {  // ~=2.4.1 is >=2.4.1, ==2.4.*
      const std::size_t last = clause.release.rfind('.');
      if (last != std::string::npos) out.push_back({"==", clause.release.substr(0, last), true});
      clause.op = ">=";
    }
    out.push_back(std::move(clause));
  }
  return out;
}

bool begins_with(const std::string& release, const std::string& prefix) {
  return release == prefix || release.starts_with(prefix + ".");
}

// One clause names a release, the other one a limit.
bool is_beyond(const Clause& exact, const Clause& limit) {
  const int order = data::compare_releases(exact.release, limit.release);
  // 2.7.* may lie on both sides of 2.7.1.
  if (exact.prefix && begins_with(limit.release, exact.release))
    return limit.op == "<" && limit.release == exact.release;
  if (limit.op == "<") return order >= 0;
  if (limit.op == "<=") return order > 0;
  if (limit.op == ">") return order <= 0;
  if (limit.op == ">=") return order < 0;
  return limit.op == "!=" && !exact.prefix && order == 0;
}

bool contradict(const Clause& a, const Clause& b) {
  const bool exact_a = a.op == "==" || a.op == "===";
  const bool exact_b = b.op == "==" || b.op == "===";
  if (exact_a && exact_b)
    return !(a.release == b.release || (a.prefix && begins_with(b.release, a.release)) ||
             (b.prefix && begins_with(a.release, b.release)) ||
             (!a.prefix && !b.prefix && data::compare_releases(a.release, b.release) == 0));
  if (exact_a) return is_beyond(a, b);
  if (exact_b) return is_beyond(b, a);
  const auto below = [](const Clause& low, const Clause& high) {  // >=9.7 and <9
    const int order = data::compare_releases(low.release, high.release);
    if (low.op == ">=" && high.op == "<=") return order > 0;
    return (low.op == ">=" || low.op == ">") && (high.op == "<" || high.op == "<=") && order >= 0;
  };
  return below(a, b) || below(b, a);
}

}  // namespace

std::optional<Distribution> read_distribution(std::string_view metadata) {
  constexpr std::string_view kRequires = "Requires-Dist: ";
  constexpr std::string_view kExtra = "Provides-Extra: ";
  Distribution out;
  Package package;
  each_line(metadata, [&](std::string_view line) {
    if (line.starts_with("Name: ")) package.name = trim(line.substr(6));
    if (line.starts_with("Version: ")) out.version = trim(line.substr(9));
    if (line.starts_with(kExtra)) out.extras.emplace_back(trim(line.substr(kExtra.size())));
    if (line.starts_with(kRequires)) {
      std::string_view text = line.substr(kRequires.size());
      const std::size_t marker = text.find(';');
      const bool of_extra = marker != std::string_view::npos && core::contains(text.substr(marker), "extra ");
      text = trim(text.substr(0, marker));
      const std::size_t end = std::min(text.find_first_of(" [(=<>~!"), text.size());
      std::string_view range = text.substr(end);
      if (range.starts_with('[')) range = range.substr(std::min(range.find(']'), range.size() - 1) + 1);
      range = trim(range);
      if (range.starts_with('(') && range.ends_with(')')) range = range.substr(1, range.size() - 2);
      if (!of_extra && end != 0)
        out.demands.push_back({data::ProjectName(std::string(text.substr(0, end))), std::string(range)});
    }
    return !line.empty();
  });
  out.name = package.name;
  if (!is_package_name(out.name)) return std::nullopt;
  return out;
}

std::vector<Distribution> distributions_in(const PythonEnvironment& environment) {
  std::vector<Distribution> out;
  if (environment.site.empty()) return out;
  LookupBudget budget{.bytes = kMaxBytes, .entries = kMaxEntries};
  for (const std::string& name : names_in(environment.site, budget)) {
    if (!name.ends_with(".dist-info") || name.starts_with('~')) continue;
    const auto metadata = read_bounded(fs::path(environment.site) / name / "METADATA", kMaxHeader, budget);
    if (!metadata) continue;
    if (auto distribution = read_distribution(*metadata)) out.push_back(std::move(*distribution));
  }
  return out;
}

const Distribution* find_distribution(const std::vector<Distribution>& there, std::string_view name) {
  const data::ProjectName project{name};
  const auto found = std::ranges::find_if(
      there, [&](const Distribution& each) { return data::ProjectName(each.name) == project; });
  return found == there.end() ? nullptr : &*found;
}

bool exclude_each_other(std::string_view range, std::string_view other) {
  const std::vector<Clause> others = clauses_of(other);
  return std::ranges::any_of(clauses_of(range), [&](const Clause& a) {
    return std::ranges::any_of(others, [&](const Clause& b) { return contradict(a, b); });
  });
}

}  // namespace kshim::owner
