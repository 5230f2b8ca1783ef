// SPDX-License-Identifier: Apache-2.0
// The files asked about last, by identity. Bounded in number and memory. One lock for the list, one for each
// file, so that different files are read at the same time.
#pragma once
#include "query/code_file.h"

namespace kshim::query {

/// Takes a file out of the cache, or begins one, and holds its lock.
class CachedFile {
 public:
  explicit CachedFile(const Identity& identity) noexcept;
  /// Gives it back.
  ~CachedFile();
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;
  /// nullptr: there is no memory.
  CodeFile* get() const noexcept;
  /// Nobody who comes later is to get it.
  void forget() noexcept { forget_ = true; }

 private:
  struct Entry;
  struct State;
  friend struct State;
  static State* state() noexcept;
  State* state_ = nullptr;
  Entry* entry_ = nullptr;
  bool forget_ = false;
};

}  // namespace kshim::query
