// SPDX-License-Identifier: Apache-2.0
// Lists of ranks and process ids on hosts, as short as they can be said.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kshim::analysis {

/// "0-7, 12": ascending, each once.
std::string ranges_text(std::vector<std::uint64_t> numbers);
/// "1,024".
std::string grouped_number(std::uint64_t number);

struct Member {
  std::string_view host;
  std::optional<unsigned> rank;
  std::uint64_t pid = 0;
};
/// Which of the members of one run, of which there are `all`: "ranks 0-7 on node01, 8-15 on node02 (16 of
/// 32)", "all 8 ranks on node01", "rank 3 only, on node02 (1 of 8)"; by process ids where one of `some` has
/// no rank or all have the same.
std::string members_text(const std::vector<Member>& some, const std::vector<Member>& all);

}  // namespace kshim::analysis
