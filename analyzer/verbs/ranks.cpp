// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostHosts = 4;
constexpr std::size_t kMostRanges = 8;

std::set<unsigned> ranks_of(const std::vector<Member>& members) {
  std::set<unsigned> out;
  for (const Member& member : members) {
    if (member.rank) out.insert(*member.rank);
  }
  return out;
}

std::set<std::string_view> hosts_of(const std::vector<Member>& members) {
  std::set<std::string_view> out;
  for (const Member& member : members) out.insert(member.host);
  return out;
}

bool all_ranked(const std::vector<Member>& members) {
  return std::all_of(members.begin(), members.end(), [](const Member& member) { return member.rank; });
}

/// A launcher (torchrun) has no rank of its own: where it does not matter, ranks are told all the same.
bool tells_ranks(const std::vector<Member>& some, const std::vector<Member>& all) {
  return all_ranked(some) && ranks_of(all).size() > 1;
}

std::string on_hosts(const std::set<std::string_view>& hosts) {
  if (hosts.size() > kMostHosts) return fmt::format("on {} hosts", grouped_number(hosts.size()));
  return "on " + enumerate({hosts.begin(), hosts.end()});
}

// Hosts in the order of the numbers on them.
std::vector<std::pair<std::string_view, std::vector<std::uint64_t>>> by_host(
    const std::vector<Member>& members, bool ranks) {
  std::map<std::string_view, std::set<std::uint64_t>> hosts;
  for (const Member& member : members) hosts[member.host].insert(ranks ? *member.rank : member.pid);
  std::vector<std::pair<std::string_view, std::vector<std::uint64_t>>> out;
  for (const auto& [host, numbers] : hosts)
    out.emplace_back(host, std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
  if (ranks)
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second.front() < b.second.front(); });
  return out;
}

}  // namespace

std::string grouped_number(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string ranges_text(std::vector<std::uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> ranges;
  std::size_t told = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (ranges.size() == kMostRanges) break;
    // Two neighbours are two numbers, not a range.
    if (last == i + 1) last = i;
    ranges.push_back(last == i ? std::to_string(numbers[i])
                               : fmt::format("{}-{}", numbers[i], numbers[last]));
    told += last - i + 1;
    i = last + 1;
  }
  std::string out = join(ranges, ", ");
  if (told < numbers.size()) out += fmt::format(" and {} more", grouped_number(numbers.size() - told));
  return out;
}

std::string members_text(const std::vector<Member>& some, const std::vector<Member>& all) {
  if (some.empty()) return {};
  const bool ranks = tells_ranks(some, all);
  const std::size_t of = ranks ? ranks_of(all).size() : all.size();
  const std::size_t count = ranks ? ranks_of(some).size() : some.size();
  const char* noun = ranks ? "rank" : "process";
  const char* nouns = ranks ? "ranks" : "processes";
  if (of == 1) return fmt::format("process {} {}", some.front().pid, on_hosts(hosts_of(some)));
  if (count == of) {
    const std::string_view all_of = of == 2 ? "both" : "all";
    return of == 2 ? fmt::format("{} {} {}", all_of, nouns, on_hosts(hosts_of(some)))
                   : fmt::format("{} {} {} {}", all_of, grouped_number(of), nouns, on_hosts(hosts_of(some)));
  }
  const std::string share = fmt::format(" ({} of {})", grouped_number(count), grouped_number(of));
  if (count == 1) {
    return fmt::format("{} {} only, {}{}", noun, ranks ? *some.front().rank : some.front().pid,
                       on_hosts(hosts_of(some)), share);
  }
  std::vector<std::string> parts;
  std::size_t hosts_left = 0;
  std::size_t left = 0;
  for (const auto& [host, numbers] : by_host(some, ranks)) {
    if (parts.size() == kMostHosts) {
      ++hosts_left;
      left += numbers.size();
      continue;
    }
    parts.push_back(fmt::format("{} on {}", ranges_text(numbers), host));
  }
  std::string out = fmt::format("{} {}", nouns, join(parts, ", "));
  if (hosts_left != 0)
    out += fmt::format(" and {} on {}", grouped_number(left), counted(hosts_left, "more host"));
  return out + share;
}

}  // namespace kshim::analysis
