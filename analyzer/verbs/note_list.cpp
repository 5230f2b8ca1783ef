// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/note_list.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostNotes = 50;
constexpr std::size_t kLongestNote = 1024;

}  // namespace

void NoteList::add(std::string place, std::string text) {
  text.resize(std::min(text.size(), kLongestNote));
  const auto known =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.text == text; });
  if (known != rows_.end()) {
    ++known->more;
  } else if (rows_.size() < kMostNotes) {
    rows_.push_back({std::move(place), std::move(text), 0});
  } else {
    ++others_;
  }
}

void NoteList::take(std::vector<std::string>& out) {
  for (Row& row : rows_) {
    std::string note = row.place + ": " + row.text;
    if (row.more != 0) note += fmt::format(" (and so of {})", counted(row.more, "more file"));
    out.push_back(std::move(note));
  }
  if (others_ != 0) out.push_back(fmt::format("{} more notes were left out", others_));
  rows_.clear();
}

}  // namespace kshim::analysis
