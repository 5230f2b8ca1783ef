// SPDX-License-Identifier: Apache-2.0
#include "process/loaded_objects.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include "guest/auxiliary_vector.h"
#include "guest/clock.h"
#include "guest/program_path.h"
#include "guest/reentry_guard.h"
#include "guest/safe_memory.h"
#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/timed_lock.h"
#include "kshim/base/gnu_hash.h"
#include "kshim/base/hash.h"
#include "process/growing_array.h"
#include "process/link_map.h"
#include "process/scattered_read.h"

// Set by the static linker: where this library begins and ends in memory.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char _end[];

namespace kshim::shim {
namespace {

/// A fingerprint that is checked before a cached record is reused. `hash` covers the end of the name, the
/// build id and the beginning of the dynamic section: tables, needed libraries, soname.
struct Proof {
  static constexpr std::size_t kNameTail = 128;
  static constexpr std::size_t kDynamic = 256;
  std::uintptr_t name_tail = 0;
  std::uint32_t name_tail_size = 0;
  std::uint32_t dynamic_size = 0;
  std::uint64_t hash = 0;
};

struct Record {
  LoadedObject object;
  MapNode node;
  Proof proof;
  bool permanent = false;  ///< the program, the shim, the vdso: never unmapped
  bool visible = false;    ///< a file; not the vdso, nor a node whose file could not be read
};

/// A piece of an object in the address space. Pieces do not overlap.
struct Range {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
  std::uint32_t record = 0;
};

struct Identity {
  std::string_view path;
  std::string_view soname;
  BuildId build_id;
  std::uintptr_t address = 0;  ///< in the object that was mapped last
};

struct Index {
  Stack<std::size_t{256} << 10U> stack;  ///< first: its end is a page of its own

  GrowingArray<Record> records;
  GrowingArray<std::uint32_t> free_records;
  GrowingArray<Range> ranges;  ///< from high to low: new libraries are mapped below older ones
  std::uint64_t last_load = 0;
  bool changing = false;  ///< set during a change; a child of fork may inherit an unfinished one
  std::atomic<std::uint64_t> version = 0;  ///< odd while `changing`
  bool walked = false;                     ///< the whole list was read once

  GrowingArray<Identity> identities;
  GrowingArray<std::uint32_t> identity_slots;  ///< open addressing by hash; identity, 0 = empty
  std::uint32_t loose_files = 0;

  FindByLinker find_by_linker = nullptr;
  /// For C libraries without _dl_find_object: nodes near the end of the list, so that a walk need not start
  /// at the program.
  static constexpr std::size_t kAnchors = 8;
  const link_map* anchors[kAnchors] = {};
  std::uint32_t misses = 0;

  std::uint32_t number_of(const Record& of) noexcept { return static_cast<std::uint32_t>(&of - &records[0]); }
  bool walks_again = false;  ///< the list changed while it was read, and is read from its beginning
  bool temporary = false;    ///< of one call: knows no identities

  static constexpr std::size_t kTexts = std::size_t{1} << 20U;
  char* texts = nullptr;  ///< of a temporary index
  std::size_t texts_used = 0;
  std::string_view store(std::string_view text) noexcept {
    if (texts == nullptr || text.size() > kTexts - texts_used) return {};
    std::memcpy(texts + texts_used, text.data(), text.size());
    texts_used += text.size();
    return {texts + texts_used - text.size(), text.size()};
  }

  // Buffers that are too large for the stack of a host's thread.
  PageCache pages;
  Record record;
  PathText path;
  char name[4096];
};

TimedLock g_lock;
std::atomic<Index*> g_index{nullptr};
std::atomic<bool> g_ignore_linkers_look_up{false};
std::atomic<bool> g_unnumbered_files{false};

/// Signals are blocked while the lock is held, so a signal handler never interrupts the owner.
class Access {
 public:
  Access() noexcept : guard_(g_lock), index_(guard_ ? open() : nullptr) {}
  explicit operator bool() const noexcept { return index_ != nullptr; }
  Index& operator*() const noexcept { return *index_; }
  /// Calls work() on a stack of the shim. A thread that is on one stays on it: Valgrind mistakes a change to
  /// a nearby stack for a frame.
  template <class Work>
  void run(const Work& work) const noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (is_on_own_stack(here))
      work();
    else
      index_->stack.call([](const void* context) { (*static_cast<const Work*>(context))(); }, &work);
  }
  Index* operator->() const noexcept { return index_; }

 private:
  static Index* open() noexcept {
    Index* index = g_index.load(std::memory_order_acquire);
    if (index == nullptr) {
      void* const memory = raw::map_memory(sizeof(Index));
      if (memory == nullptr) return nullptr;
      index = ::new (memory) Index;
      index->stack.prepare();
      g_index.store(index, std::memory_order_release);
    }
    if (index->find_by_linker == nullptr && !g_ignore_linkers_look_up)
      index->find_by_linker = linkers_look_up();
    return index;
  }
  const ScopedBlockSignals held_{!t_inside};  // a thread inside the shim has blocked them
  const LockGuard guard_;
  Index* index_;
};

// --- identities

std::uint64_t identity_key(std::string_view path, Bytes build_id) noexcept {
  return key_hash(build_id, key_hash(bytes_of(path)));
}

/// The slot of a file, or the empty one where it belongs.
std::uint32_t& slot_of(Index& index, std::string_view path, Bytes build_id) noexcept {
  const std::size_t mask = index.identity_slots.size() - 1;
  for (std::size_t at = identity_key(path, build_id) & mask;; at = (at + 1) & mask) {
    std::uint32_t& slot = index.identity_slots[at];
    if (slot == 0) return slot;
    const Identity& known = index.identities[slot - 1];
    if (known.path == path && text_of(known.build_id.view()) == text_of(build_id)) return slot;
  }
}

bool make_room_for_identity(Index& index) noexcept {
  constexpr std::size_t kFirst = 1024;
  const std::size_t slots = index.identity_slots.size();
  if ((index.identities.size() + 1) * 2 <= slots) return true;
  if (!index.identity_slots.assign_zero(slots == 0 ? kFirst : slots * 2)) return false;
  for (std::size_t i = 0; i < index.identities.size(); ++i) {
    const Identity& known = index.identities[i];
    slot_of(index, known.path, known.build_id.view()) = static_cast<std::uint32_t>(i + 1);
  }
  return true;
}

/// Gives the same number to the same file (path and build id), however often it is mapped. 0 = no room.
std::uint32_t identify(Index& index, std::string_view path, const BuildId& build_id) noexcept {
  if (!make_room_for_identity(index)) return 0;
  if (const std::uint32_t known = slot_of(index, path, build_id.view()); known != 0) return known;
  const std::string_view kept = copy_to_storage(path);
  if (kept.empty() || index.identities.size() + 1 >= kMaxIdentities) return 0;
  if (!index.identities.push({kept, {}, build_id, 0})) return 0;
  const auto identity = static_cast<std::uint32_t>(index.identities.size());
  slot_of(index, kept, build_id.view()) = identity;
  return identity;
}

void make_absolute(std::string_view name, PathText& out) noexcept {
  out.shrink(0);
  if (!name.starts_with('/')) {
    char folder[1024];
    if (raw::working_folder(folder, sizeof folder)) out << folder << "/";
    if (name.starts_with("./")) name.remove_prefix(2);
  }
  out << name;
}

// --- records

std::uint64_t hash_of(const std::byte* bytes, std::size_t size) noexcept {
  return content_hash({bytes, size});
}

/// Reads what a record is verified by, and the node that follows (`next`, if it has an address), with one
/// system call. False if any of it cannot be read.
bool read_proof(const Record& record, MapNode& node, std::uint64_t& hash, MapNode* next = nullptr) noexcept {
  const Proof& proof = record.proof;
  std::byte bytes[Proof::kNameTail + Proof::kDynamic + BuildId::kMax];
  std::size_t used = 0;
  ReadPart parts[5];
  std::size_t count = 0;
  const auto add = [&](std::uintptr_t from, std::size_t size) {
    if (size == 0) return;
    parts[count++] = {from, bytes + used, size};
    used += size;
  };
  node.address = record.node.address;
  parts[count++] = {reinterpret_cast<std::uintptr_t>(node.address), &node.map, sizeof node.map};
  add(proof.name_tail, proof.name_tail_size);
  add(record.object.elf.dynamic(), proof.dynamic_size);
  add(record.object.build_id.address, record.object.build_id.size);
  if (next != nullptr && next->address != nullptr)
    parts[count++] = {reinterpret_cast<std::uintptr_t>(next->address), &next->map, sizeof next->map};
  if (!read_scattered(parts, count)) return false;
  hash = hash_of(bytes, used);
  return true;
}

/// For C libraries without _dl_find_object. A node is on the list if its predecessor links to it, because
/// removal of a node changes that link.
bool is_linked(MapNode& node) noexcept {
  constexpr int kTries = 8;  // predecessors are added and removed, too
  for (int i = 0; i < kTries; ++i) {
    MapNode before;
    MapNode again;
    if (read_node(node.map.l_prev, before) && before.map.l_next == node.address) return true;
    if (!read_node(node.address, again) || again.map.l_prev == node.map.l_prev) return false;
    node = again;
  }
  return false;
}

/// Whether the record's node still describes the same object; `node` is its current content.
bool is_in_use(const Index& index, const Record& record, MapNode& node) noexcept {
  if (node.map.l_addr != record.node.map.l_addr || node.map.l_ld != record.node.map.l_ld ||
      node.map.l_name != record.node.map.l_name)
    return false;
  // Freed memory may keep its contents: the linker knows which node is in use.
  if (index.find_by_linker == nullptr) return is_linked(node);
  FoundByLinker found{};
  return index.find_by_linker(node.map.l_ld, &found) == 0 && found.map == node.address;
}

/// Whether the linker still has the object where the record says. `node` is what its node holds now. `next`:
/// the node that may follow; it loses its address where it was not read, or does not follow.
bool is_current(const Index& index, const Record& record, MapNode& node, MapNode* next = nullptr) noexcept {
  std::uint64_t hash = 0;
  bool read = !record.permanent && record.visible && read_proof(record, node, hash, next);
  if (next != nullptr && (!read || node.map.l_next != next->address)) next->address = nullptr;
  if (record.permanent) return read_node(record.node.address, node);
  if (!record.visible) return false;
  if (!read && next != nullptr) read = read_proof(record, node, hash);
  return read && hash == record.proof.hash && is_in_use(index, record, node);
}

/// Index of the range that may contain `address`: the last one that starts at or below it.
std::size_t range_at(Index& index, std::uintptr_t address) noexcept {
  std::size_t low = 0;
  std::size_t high = index.ranges.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    Range range;
    if (!index.ranges.copy(middle, range)) return low;  // another thread removed some
    if (range.low > address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void retire(Index& index, std::uint32_t number) noexcept {
  Record& record = index.records[number];
  record.object.elf.each_segment([&](std::uintptr_t start, std::uintptr_t) {
    const std::size_t at = range_at(index, start);
    if (at < index.ranges.size() && index.ranges[at].record == number) index.ranges.erase(at);
  });
  record.visible = false;
  index.free_records.push(number);
}

void add_range(Index& index, std::uintptr_t low, std::uintptr_t high, std::uint32_t number) noexcept {
  // An older record of the same addresses is of an unloaded object.
  for (;;) {
    const std::size_t at = range_at(index, high - 1);
    if (at >= index.ranges.size() || index.ranges[at].high <= low || index.ranges[at].record == number) break;
    if (index.records[index.ranges[at].record].permanent) return;
    retire(index, index.ranges[at].record);
  }
  index.ranges.insert(range_at(index, low), {low, high, number});
}

/// Segments that follow each other are one range. Between others something else may be mapped: the kernel,
/// which loads the program and the dynamic linker, reserves nothing there.
void add_ranges(Index& index, std::uint32_t number) noexcept {
  constexpr std::uintptr_t kMaxPageBytes = 65536;
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
  const LoadedElf elf = index.records[number].object.elf;
  elf.each_segment([&](std::uintptr_t start, std::uintptr_t end) {
    if (high != 0 && start >= high && start - high <= kMaxPageBytes) {
      high = end;
      return;
    }
    if (high != 0) add_range(index, low, high, number);
    low = start;
    high = end;
  });
  if (high > low) add_range(index, low, high, number);
}

void executable_path(PathText& out) noexcept {
  char path[2048];
  if (const std::size_t size = read_program_path(path, sizeof path); size != 0) {
    out << std::string_view(path, size);
    return;
  }
  const std::string_view given = readable_text(reinterpret_cast<const char*>(auxiliary_value(AT_EXECFN)));
  if (!given.empty()) make_absolute(given, out);
}

/// Reads the name of a node to index.name, and, with the same system call, the pages where its file's headers
/// and its dynamic section begin.
bool read_beginning(Index& index, const MapNode& node) noexcept {
  constexpr std::size_t kPage = 4096;
  index.pages.clear();
  const auto name = reinterpret_cast<std::uintptr_t>(node.map.l_name);
  const auto dynamic = reinterpret_cast<std::uintptr_t>(node.map.l_ld);
  const std::size_t part = std::min(std::size_t{256}, kPage - name % kPage);
  const ReadPart headers = index.pages.part_for(node.map.l_addr);
  const ReadPart table = index.pages.part_for(dynamic);
  const ReadPart parts[] = {{name, index.name, part}, headers, table};
  if (name == 0 || headers.to == nullptr || headers.to == table.to ||
      !read_scattered(parts, std::size(parts)))
    return read_name(node, index.name, sizeof index.name);
  index.pages.mark_read(node.map.l_addr);
  index.pages.mark_read(dynamic);
  return std::memchr(index.name, 0, part) != nullptr || read_name(node, index.name, sizeof index.name);
}

/// Fills the record of a node after read_beginning(). `now`: what the node held when the rest was read.
void read_record(Index& index, const MapNode& node, bool first, Record& record, MapNode& now) noexcept {
  const char* const name = index.name;
  PathText& path = index.path;
  const std::string_view given(name);
  record.node = node;
  record.object.load = ++index.last_load;
  record.object.elf = read_elf(node, name, &index.pages);
  LoadedElf& elf = record.object.elf;
  const LoadedElf cached = elf.through(index.pages);
  const bool vdso = !first && (given.empty() || given.starts_with("linux-"));
  record.permanent = first || vdso || is_shim(elf.base());
  if (elf.high() == 0) return;
  record.visible = !vdso;
  record.object.build_id = cached.build_id();
  if (vdso) return;
  record.proof.name_tail_size = static_cast<std::uint32_t>(std::min(given.size(), Proof::kNameTail));
  record.proof.name_tail =
      reinterpret_cast<std::uintptr_t>(node.map.l_name) + given.size() - record.proof.name_tail_size;
  record.proof.dynamic_size =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(elf.dynamic_size(), Proof::kDynamic));
  if (!record.permanent && !read_proof(record, now, record.proof.hash)) record.visible = false;
  path.shrink(0);
  if (first)
    executable_path(path);
  else
    make_absolute(given, path);
  if (!index.temporary) record.object.identity = identify(index, path.view(), record.object.build_id);
  char soname[256];
  if (record.object.identity == 0) {
    const auto keep = [&index](std::string_view text) {
      return index.temporary ? index.store(text) : copy_to_storage(text);
    };
    record.object.path = keep(path.view());
    if (cached.soname(soname, sizeof soname)) record.object.soname = keep(soname);
    if (!index.temporary) g_unnumbered_files.store(true, std::memory_order_relaxed);
    return;
  }
  Identity& known = index.identities[record.object.identity - 1];
  if (known.soname.data() == nullptr && cached.soname(soname, sizeof soname))
    known.soname = copy_to_storage(soname);
  known.address = elf.dynamic();
  record.object.path = known.path;
  record.object.soname = known.soname;
}

/// The record of a node, or nullptr. Not checked.
Record* record_of(Index& index, const MapNode& node) noexcept {
  const auto dynamic = reinterpret_cast<std::uintptr_t>(node.map.l_ld);
  const std::size_t at = range_at(index, dynamic);
  if (at >= index.ranges.size() || dynamic >= index.ranges[at].high) return nullptr;
  Record& record = index.records[index.ranges[at].record];
  return record.node.address == node.address ? &record : nullptr;
}

/// Makes a record for a node; nullptr where its file could not be read, or where the linker has given the
/// node away meanwhile.
Record* add(Index& index, const MapNode& node, bool first) noexcept {
  if (!read_beginning(index, node)) return nullptr;
  Record& record = index.record;
  record = Record();
  MapNode now = node;
  read_record(index, node, first, record, now);
  if (record.object.elf.high() == 0) return nullptr;
  std::uint32_t number = 0;
  if (!index.free_records.empty()) {
    number = index.free_records.back();
    index.free_records.pop();
    std::memcpy(static_cast<void*>(&index.records[number]), &record, sizeof record);
  } else {
    number = static_cast<std::uint32_t>(index.records.size());
    if (!index.records.push(record)) return nullptr;
  }
  add_ranges(index, number);
  Record& kept = index.records[number];
  return kept.permanent || (kept.visible && is_in_use(index, kept, now)) ? &kept : nullptr;
}

/// The checked record of a node, made where there is none. `next`: as is_current() has it.
Record* get(Index& index, const MapNode& node, bool first, MapNode* next = nullptr) noexcept {
  MapNode now;
  Record* const known = record_of(index, node);
  if (known != nullptr && is_current(index, *known, now, next)) return known;
  if (next != nullptr) next->address = nullptr;
  return add(index, node, first);
}

/// Marks the index while it changes. Empties it if a change was left unfinished by a thread that a child of
/// fork does not have.
class Change {
 public:
  explicit Change(Index& index) noexcept : index_(index) {
    if (index.changing) {
      index.records.clear();
      index.free_records.clear();
      index.ranges.clear();
      index.identities.clear();
      index.identity_slots.clear();
      index.walked = false;
    }
    index.changing = true;
    index.version.fetch_or(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() {
    index_.changing = false;
    index_.version.fetch_add(1, std::memory_order_release);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Index& index_;
};

/// Calls visit(record) for each object in link order; no longer than until `end`.
template <class Visit>
void walk(Index& index, const Visit& visit, std::uint64_t end = kNoEnd) noexcept {
  constexpr int kTries = 8;
  constexpr std::size_t kMaxNodes = 1U << 20U;
  const link_map* const last_at_start = last_map_at_start();
  const std::size_t count_at_start = map_count_at_start();
  index.walked = true;
  bool broken = true;
  for (int i = 0; broken && i < kTries; ++i) {
    MapNode node;
    bool at_start = true;
    if (!read_node(link_map_head(), node)) return;
    index.walks_again = i > 0;
    broken = false;
    for (std::size_t position = 0; node && position < kMaxNodes; ++position) {
      if (end != kNoEnd && now_nanoseconds() >= end) return;
      if (last_at_start != nullptr && position >= count_at_start) at_start = false;
      MapNode next{node.map.l_next};
      if (Record* record = get(index, node, position == 0, &next); record != nullptr) {
        record->object.at_start = at_start;
        visit(*record);
      }
      at_start = at_start && node.address != last_at_start;
      index.anchors[position % Index::kAnchors] = node.address;
      if (!next) {
        next_node(node, broken);
        continue;
      }
      broken = next.map.l_prev != node.address;
      node = broken ? MapNode() : next;
    }
  }
}

/// Without the linker's own look-up: reads the end of the list, where new libraries are, back to some that
/// are known. False when it could not be found.
bool read_end(Index& index) noexcept {
  constexpr std::size_t kKnownInRow = 16;
  constexpr std::size_t kMaxNodes = 1U << 20U;
  MapNode node;
  bool found = false;
  for (const link_map* anchor : index.anchors)
    if (!found && read_node(anchor, node)) {
      const Record* record = record_of(index, node);
      MapNode now;
      found = record != nullptr && is_current(index, *record, now);
    }
  if (!found) return false;
  MapNode last = node;
  bool broken = false;
  for (std::size_t i = 0; node && i < kMaxNodes; ++i) {
    last = node;
    next_node(node, broken);
  }
  if (broken) return false;
  std::size_t known = 0;
  for (std::size_t i = 0; last && known < kKnownInRow && i < kMaxNodes; ++i) {
    if (i < Index::kAnchors) index.anchors[i] = last.address;
    MapNode now;
    const Record* record = record_of(index, last);
    if (record != nullptr && is_current(index, *record, now)) {
      ++known;
    } else {
      known = 0;
      get(index, last, last.map.l_prev == nullptr);
    }
    const link_map* const here = last.address;
    if (last.map.l_prev == nullptr) break;
    if (!read_node(last.map.l_prev, last) || last.map.l_next != here) return false;
  }
  return true;
}

/// The record whose file holds the address, checked; nullptr when the index has none.
const Record* find_record(Index& index, std::uintptr_t address) noexcept {
  if (index.changing) return nullptr;
  const std::size_t at = range_at(index, address);
  if (at >= index.ranges.size() || address >= index.ranges[at].high) return nullptr;
  const std::uint32_t number = index.ranges[at].record;
  const Record& record = index.records[number];
  MapNode node;
  if (record.permanent || is_current(index, record, node))
    return record.object.elf.contains(address) ? &record : nullptr;
  const Change change(index);
  retire(index, number);
  return nullptr;
}

const Record* look_up(Index& index, std::uintptr_t address) noexcept {
  constexpr std::uint32_t kMissesBetweenWalks = 64;
  const auto nothing = [](const Record&) {};
  if (const Record* record = find_record(index, address); record != nullptr) return record;
  if (!index.walked || index.changing) {
    const Change change(index);
    walk(index, nothing);
  } else if (index.find_by_linker != nullptr) {
    FoundByLinker found{};
    MapNode node;
    if (index.find_by_linker(reinterpret_cast<void*>(address), &found) != 0 || !read_node(found.map, node))
      return nullptr;
    const Change change(index);
    get(index, node, false);
  } else {
    const Change change(index);
    if (++index.misses % kMissesBetweenWalks == 0 || !read_end(index)) walk(index, nothing);
  }
  return find_record(index, address);
}

}  // namespace

LoadedObject find_loaded_object(std::uintptr_t address) noexcept {
  const Access index;
  if (!index || address == 0) return {};
  const Record* record = nullptr;
  index.run([&] { record = look_up(*index, address); });
  return record != nullptr && record->visible ? record->object : LoadedObject();
}

namespace {

/// A copy of the record for an address, read while another thread may change the index. False where there is
/// none, or where it was changed.
bool copy_record(Index& index, std::uintptr_t address, Record& out) noexcept {
  const std::uint64_t version = index.version.load(std::memory_order_acquire);
  if ((version & 1U) != 0) return false;
  const std::size_t at = range_at(index, address);
  Range range;
  const bool found =
      index.ranges.copy(at, range) && address < range.high && index.records.copy(range.record, out);
  std::atomic_thread_fence(std::memory_order_acquire);
  return found && index.version.load(std::memory_order_relaxed) == version;
}

/// An object as the linker's own look-up knows it. The address of a node alone is not enough: an object that
/// is loaded again, a few pages off, may get the node of the old one, and another one its place, too.
struct Mapped {
  const link_map* node = nullptr;
  std::uintptr_t low = 0;
  std::uintptr_t unwind_header = 0;
};

bool is_linkers(FindByLinker find_by_linker, const Mapped& object, std::uintptr_t address) noexcept {
  FoundByLinker found{};
  return find_by_linker(reinterpret_cast<void*>(address), &found) == 0 && found.map == object.node &&
         reinterpret_cast<std::uintptr_t>(found.map_start) == object.low &&
         reinterpret_cast<std::uintptr_t>(found.eh_frame) == object.unwind_header;
}

/// The object of the record for an address, if that record has that number: read as copy_record() reads,
/// without the copy.
Mapped find_load(Index& index, std::uintptr_t address, std::uint64_t load) noexcept {
  const std::uint64_t version = index.version.load(std::memory_order_acquire);
  Range range;
  if ((version & 1U) != 0 || !index.ranges.copy(range_at(index, address), range) || address >= range.high)
    return {};
  const Record* const record = index.records.peek(range.record);
  Mapped object;
  if (record != nullptr && record->object.load == load)
    object = {record->node.address, record->object.elf.low(), record->object.elf.unwind_header()};
  std::atomic_thread_fence(std::memory_order_acquire);
  return index.version.load(std::memory_order_relaxed) == version ? object : Mapped();
}

enum class InUse : std::uint8_t { found, nothing, unknown };

/// The record for an address that this thread is using. `unknown`: it has to be looked up under the lock.
InUse find_in_use(std::uintptr_t address, Record& out) noexcept {
  Index* const index = g_index.load(std::memory_order_acquire);
  const FindByLinker find_by_linker = index == nullptr ? nullptr : index->find_by_linker;
  if (find_by_linker == nullptr) return InUse::unknown;
  if (!copy_record(*index, address, out) || !out.object.elf.contains(address)) {
    FoundByLinker found{};
    const bool mapped = find_by_linker(reinterpret_cast<void*>(address), &found) == 0;
    return mapped ? InUse::unknown : InUse::nothing;
  }
  if (out.permanent) return InUse::found;
  // The object is in use, so its build id can be read. An object without one is verified in full.
  const BuildId& id = out.object.build_id;
  const bool same =
      id.size != 0 &&
      is_linkers(find_by_linker, {out.node.address, out.object.elf.low(), out.object.elf.unwind_header()},
                 address) &&
      std::memcmp(reinterpret_cast<const void*>(id.address), id.bytes, id.size) == 0;
  return same ? InUse::found : InUse::unknown;
}

}  // namespace

LoadedObject find_object_in_use(const void* address) noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  Record record;
  switch (find_in_use(place, record)) {
    case InUse::found:
      return record.visible ? record.object : LoadedObject();
    case InUse::nothing:
      return {};
    case InUse::unknown:
      break;
  }
  return find_loaded_object(place);
}

LoadedElf find_elf_in_use(std::uintptr_t address) noexcept {
  Record record;
  switch (find_in_use(address, record)) {
    case InUse::found:
      return record.object.elf;
    case InUse::nothing:
      return {};
    case InUse::unknown:
      break;
  }
  const Access index;
  if (!index || address == 0) return {};
  const Record* known = nullptr;
  index.run([&] { known = look_up(*index, address); });
  return known != nullptr ? known->object.elf : LoadedElf();
}

bool is_surely_loaded(std::uintptr_t address, std::uint64_t load) noexcept {
  Index* const known = g_index.load(std::memory_order_acquire);
  if (known == nullptr || load == 0 || known->find_by_linker == nullptr) return false;
  const Mapped object = find_load(*known, address, load);
  return object.node != nullptr && is_linkers(known->find_by_linker, object, address);
}

bool is_still_loaded(std::uintptr_t address, std::uint64_t load) noexcept {
  if (is_surely_loaded(address, load)) return true;
  const Access index;
  if (!index || load == 0) return false;
  bool same = false;
  index.run([&] {
    const Record* record = find_record(*index, address);
    same = record != nullptr && record->object.load == load;
  });
  return same;
}

void ignore_linkers_look_up() noexcept {
  const Access index;
  g_ignore_linkers_look_up = true;
  if (index) index->find_by_linker = nullptr;
}

namespace {

struct Visited {
  std::uint32_t number = 0;
  std::uint64_t load = 0;
};

}  // namespace

std::uint64_t for_each_loaded_object(bool (*visit)(void*, const LoadedObject&), void* context,
                                     const ListPart& part) noexcept {
  GrowingArray<Visited> list;
  const std::uint64_t after = part.after;
  std::uint64_t last = after;
  {
    const Access index;
    if (!index) return after;
    const auto visit_record = [&](const Record& record) {
      const Visited visited{index->number_of(record), record.object.load};
      bool known = !record.visible || visited.load <= after;
      for (std::size_t i = list.size(); !known && index->walks_again && i > 0; --i)
        known = list[i - 1].load == visited.load;
      if (!known) list.push(visited);
    };
    if (part.known_only) {
      for (std::size_t i = 0; i < index->records.size(); ++i) visit_record(index->records[i]);
    } else {
      index.run([&] {
        const Change change(*index);
        walk(*index, visit_record, part.end);
      });
    }
    last = index->last_load;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (part.end != kNoEnd && now_nanoseconds() >= part.end) break;
    LoadedObject object;
    {
      const Access index;
      if (!index) break;
      if (list[i].number >= index->records.size()) continue;
      const Record& record = index->records[list[i].number];
      if (record.object.load != list[i].load) continue;  // gone
      object = record.object;
    }
    if (!visit(context, object)) break;
  }
  list.release();
  return last;
}

namespace {

/// Reads the list without the shared index: no lock, and nothing is kept.
void visit_without_index(bool (*visit)(void*, const LoadedObject&), void* context) noexcept {
  void* const memory = raw::map_memory(sizeof(Index), MAP_NORESERVE);
  if (memory == nullptr) return;
  auto* const index = ::new (memory) Index;
  index->temporary = true;
  index->find_by_linker = linkers_look_up();
  index->texts = static_cast<char*>(raw::map_memory(Index::kTexts, MAP_NORESERVE));
  bool more = true;
  walk(*index, [&](const Record& record) {
    if (record.visible && more && !index->walks_again) more = visit(context, record.object);
  });
  if (index->texts != nullptr) raw::unmap_memory(index->texts, Index::kTexts);
  index->records.release();
  index->free_records.release();
  index->ranges.release();
  index->~Index();
  raw::unmap_memory(memory, sizeof(Index));
}

}  // namespace

void for_each_loaded_object_at_once(bool (*visit)(void*, const LoadedObject&), void* context) noexcept {
  struct Visit {
    bool (*visit)(void*, const LoadedObject&);
    void* context;
    bool any = false;
  };
  Visit inner{visit, context};
  for_each_loaded_object(
      [](void* of, const LoadedObject& object) {
        auto& given = *static_cast<Visit*>(of);
        given.any = true;
        return given.visit(given.context, object);
      },
      &inner);
  if (!inner.any) on_new_stack([&] { visit_without_index(visit, context); });
}

bool has_unnumbered_files() noexcept { return g_unnumbered_files.load(std::memory_order_relaxed); }

FileInfo file_of_identity(std::uint32_t identity) noexcept {
  const Access index;
  if (!index || identity == 0 || identity > index->identities.size()) return {};
  const Identity& known = index->identities[identity - 1];
  return {known.path, to_hex(known.build_id.view())};
}

LoadedObject find_object_of_identity(std::uint32_t identity) noexcept {
  const Access index;
  if (!index || identity == 0 || identity > index->identities.size()) return {};
  const Record* record = nullptr;
  index.run([&] { record = find_record(*index, index->identities[identity - 1].address); });
  return record != nullptr && record->object.identity == identity ? record->object : LoadedObject();
}

std::uint32_t identity_of_file(std::string_view path) noexcept {
  constexpr std::uint32_t kMaxLooseFiles = kMaxIdentities / 2;
  const Access index;
  if (!index || path.empty()) return 0;
  PathText& absolute = index->path;
  make_absolute(path, absolute);
  if (index->loose_files >= kMaxLooseFiles &&
      (index->identity_slots.size() == 0 || slot_of(*index, absolute.view(), {}) == 0))
    return 0;
  const std::size_t before = index->identities.size();
  const Change change(*index);
  const std::uint32_t identity = identify(*index, absolute.view(), {});
  if (index->identities.size() != before) ++index->loose_files;
  return identity;
}

bool is_shim(std::uintptr_t address) noexcept {
  return address >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         address < reinterpret_cast<std::uintptr_t>(_end);
}

}  // namespace kshim::shim
