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
  bool permanent = false;    ///< the program, the shim, the vdso: never unmapped
  bool visible = false;      ///< a file; not the vdso, nor a node whose file could not be read
  std::uint64_t listed = 0;  ///< the last walk that met it
};

struct Identity {
  std::string_view path;
  std::string_view soname;
  BuildId build_id;
  std::uintptr_t address = 0;  ///< in the object that was mapped last
};

/// Lies in zeroed memory. Room for more files than a process can have mapped (vm.max_map_count).
struct Index {
  static constexpr std::size_t kRecords = 16384;
  static constexpr std::size_t kSlots = 2 * kRecords;
  static constexpr std::size_t kIdentitySlots = 2 * kMaxIdentities;
  struct Block {
    static constexpr std::size_t kSize = 256;
    struct {
      std::uintptr_t low, high;
    } spans[kSize];  ///< of the files' addresses
    Record records[kSize];
  };

  Stack<std::size_t{256} << 10U> stack;  ///< first: its end is a page of its own

  Block* blocks[kRecords / Block::kSize];
  std::size_t count;              ///< of records, with those that were given up
  std::uint16_t by_node[kSlots];  ///< open addressing; record + 1
  ListMark end;                   ///< of the list that was read, for C libraries without _dl_find_object

  Record& record(std::size_t number) noexcept {
    return blocks[number / Block::kSize]->records[number % Block::kSize];
  }
  bool may_hold(std::size_t number, std::uintptr_t address) noexcept {
    const auto& span = blocks[number / Block::kSize]->spans[number % Block::kSize];
    return address >= span.low && address < span.high;
  }
  std::uint64_t last_load;  ///< a load's number is a multiple of kRecords and the number of its record
  std::uint64_t walks;      ///< of the whole list

  Identity identities[kMaxIdentities];
  std::uint32_t identity_count;
  std::uint16_t identity_slots[kIdentitySlots];  ///< open addressing by hash; identity
  std::uint32_t loose_files;

  FindByLinker find_by_linker;
  // Buffers that are too large for the stack of a host's thread.
  PageCache pages;
  Record fresh;
  PathText path;
  char name[4096];
};
static_assert(kMaxIdentities <= UINT16_MAX && Index::kRecords <= UINT16_MAX);

TimedLock g_lock;
std::atomic<Index*> g_index{nullptr};
std::atomic<bool> g_ignore_linkers_look_up{false};
std::atomic<bool> g_unnumbered_files{false};

/// nullptr without memory.
Index* make_index() noexcept {
  void* const memory = raw::map_memory(sizeof(Index), MAP_NORESERVE);
  if (memory == nullptr) return nullptr;
  auto* const index = static_cast<Index*>(memory);
  ::new (&index->pages) PageCache;
  index->stack.prepare();
  return index;
}

/// A thread of the parent may have been changing it during fork.
void forget(Index& index) noexcept {
  index.count = index.identity_count = index.loose_files = 0;
  index.walks = 0;
  std::memset(index.by_node, 0, sizeof index.by_node);
  std::memset(index.identity_slots, 0, sizeof index.identity_slots);
}

/// Signals are blocked while the lock is held, so a signal handler never interrupts the owner.
class Access {
 public:
  Access() noexcept {
    bool inherited = false;
    held_lock_ = g_lock.acquire(inherited);
    if (!held_lock_) return;
    index_ = g_index.load(std::memory_order_acquire);
    if (index_ == nullptr) {
      index_ = make_index();
      g_index.store(index_, std::memory_order_release);
    } else if (inherited) {
      forget(*index_);
    }
    if (index_ != nullptr && index_->find_by_linker == nullptr && !g_ignore_linkers_look_up)
      index_->find_by_linker = linkers_look_up();
  }
  ~Access() {
    if (held_lock_) g_lock.release();
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  explicit operator bool() const noexcept { return index_ != nullptr; }
  Index& operator*() const noexcept { return *index_; }
  Index* operator->() const noexcept { return index_; }
  /// Calls work() on a stack of the shim. A thread that is on one stays on it: Valgrind mistakes a change to
  /// a nearby stack for a frame.
  void run(FunctionRef<void()> work) const noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (is_on_own_stack(here))
      work();
    else
      index_->stack.call(work);
  }

 private:
  const ScopedBlockSignals held_{!t_inside};  // a thread inside the shim has blocked them
  bool held_lock_ = false;
  Index* index_ = nullptr;
};

// --- identities

std::uint64_t identity_key(std::string_view path, Bytes build_id) noexcept {
  return key_hash(build_id, key_hash(bytes_of(path)));
}

/// The slot of a file, or the empty one where it belongs.
std::uint16_t& slot_of(Index& index, std::string_view path, Bytes build_id) noexcept {
  constexpr std::size_t kSlots = Index::kIdentitySlots;
  for (std::size_t at = identity_key(path, build_id) % kSlots;; at = (at + 1) % kSlots) {
    std::uint16_t& slot = index.identity_slots[at];
    if (slot == 0) return slot;
    const Identity& known = index.identities[slot - 1];
    if (known.path == path && text_of(known.build_id.view()) == text_of(build_id)) return slot;
  }
}

/// Gives the same number to the same file (path and build id), however often it is mapped. 0 = no room.
std::uint32_t identify(Index& index, std::string_view path, const BuildId& build_id) noexcept {
  std::uint16_t& slot = slot_of(index, path, build_id.view());
  if (slot != 0) return slot;
  const std::string_view kept = copy_to_storage(path);
  if (kept.empty() || index.identity_count + 1 >= kMaxIdentities) return 0;
  index.identities[index.identity_count++] = {kept, {}, build_id, 0};
  slot = static_cast<std::uint16_t>(index.identity_count);
  return slot;
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

/// Whether the linker may have this name, or the end of it, for a path: one from the working folder is
/// shorter.
bool is_name_of(std::string_view path, std::string_view name) noexcept {
  if (name.starts_with("./")) name.remove_prefix(2);
  return path.empty() || path.ends_with(name);
}

/// Reads what a record is verified by, and the node that follows (`next`, if it has an address), with one
/// system call. False if any of it cannot be read, and if name or build id are another's: the linker may have
/// given the node and the name's memory to the next library while the record was made.
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
  const BuildId& id = record.object.build_id;
  return is_name_of(record.object.path, {reinterpret_cast<const char*>(bytes), proof.name_tail_size}) &&
         std::memcmp(bytes + proof.name_tail_size + proof.dynamic_size, id.bytes, id.size) == 0;
}

bool is_same_object(const MapNode& a, const MapNode& b) noexcept {
  return a.map.l_addr == b.map.l_addr && a.map.l_ld == b.map.l_ld && a.map.l_name == b.map.l_name;
}

/// For C libraries without _dl_find_object. A node is on the list if its predecessor links to it, because
/// removal of a node changes that link. It is read after that link once more: the next library may have got
/// the node since it was read.
bool is_linked(const MapNode& node) noexcept {
  constexpr int kTries = 8;  // predecessors are added and removed, too
  const link_map* previous = node.map.l_prev;
  for (int i = 0; i < kTries; ++i) {
    MapNode before;
    MapNode again;
    const bool linked = read_node(previous, before) && before.map.l_next == node.address;
    if (!read_node(node.address, again) || !is_same_object(again, node)) return false;
    if (linked) return true;
    if (again.map.l_prev == previous) return false;
    previous = again.map.l_prev;
  }
  return false;
}

/// Whether the record's node still describes the same object; `node` is its current content.
bool is_in_use(const Index& index, const Record& record, const MapNode& node) noexcept {
  if (!is_same_object(node, record.node)) return false;
  // Freed memory may keep its contents: the linker knows which node is in use.
  if (index.find_by_linker == nullptr) return is_linked(node);
  FoundByLinker found{};
  return index.find_by_linker(node.map.l_ld, &found) == 0 && found.map == node.address;
}

/// Whether the linker still has the object where the record says. `next`: the node that may follow; it loses
/// its address where it was not read, or does not follow.
bool is_current(const Index& index, const Record& record, MapNode* next = nullptr) noexcept {
  std::uint64_t hash = 0;
  MapNode node;
  bool read = !record.permanent && record.visible && read_proof(record, node, hash, next);
  if (next != nullptr && (!read || node.map.l_next != next->address)) next->address = nullptr;
  if (record.permanent) return true;
  if (!record.visible) return false;
  if (!read && next != nullptr) read = read_proof(record, node, hash);
  return read && hash == record.proof.hash && is_in_use(index, record, node);
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

/// Fills the record of a node after read_beginning(), up to the hash of its proof.
void read_record(Index& index, const MapNode& node, bool first, Record& record) noexcept {
  const char* const name = index.name;
  PathText& path = index.path;
  const std::string_view given(name);
  record.node = node;
  record.object.elf = read_elf(node, name, &index.pages);
  LoadedElf& elf = record.object.elf;
  const LoadedElf cached = elf.through(index.pages);
  // Not by its name, which may be empty after a library was closed.
  const bool vdso = elf.low() != 0 && elf.low() == auxiliary_value(AT_SYSINFO_EHDR);
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
  path.shrink(0);
  if (first)
    executable_path(path);
  else
    make_absolute(given, path);
  record.object.identity = identify(index, path.view(), record.object.build_id);
  char soname[256];
  if (record.object.identity == 0) {
    record.object.path = copy_to_storage(path.view());
    if (cached.soname(soname, sizeof soname)) record.object.soname = copy_to_storage(soname);
    g_unnumbered_files.store(true, std::memory_order_relaxed);
    return;
  }
  Identity& known = index.identities[record.object.identity - 1];
  if (known.soname.data() == nullptr && cached.soname(soname, sizeof soname))
    known.soname = copy_to_storage(soname);
  known.address = elf.dynamic();
  record.object.path = known.path;
  record.object.soname = known.soname;
}

/// The slot of a node's record, or the empty one where it belongs.
std::uint16_t& slot_of(Index& index, const link_map* node) noexcept {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(node) * 0x9e3779b97f4a7c15ULL;
  for (std::size_t at = (mixed >> 32U) % Index::kSlots;; at = (at + 1) % Index::kSlots) {
    std::uint16_t& slot = index.by_node[at];
    if (slot == 0 || index.record(slot - 1U).node.address == node) return slot;
  }
}

/// The record of a node, or nullptr. Not checked.
Record* record_of(Index& index, const link_map* node) noexcept {
  const std::uint16_t slot = slot_of(index, node);
  return slot == 0 ? nullptr : &index.record(slot - 1U);
}

/// Gives up the records of files that are gone.
void sweep(Index& index) noexcept {
  std::memset(index.by_node, 0, sizeof index.by_node);
  for (std::size_t i = 0; i < index.count; ++i) {
    Record& record = index.record(i);
    if (record.object.mapping_id != 0 && is_current(index, record))
      slot_of(index, record.node.address) = static_cast<std::uint16_t>(i + 1);
    else
      record = Record();
  }
}

/// Makes room for a node's record: that of the same node before, or a free one. nullptr without memory.
Record* make_room(Index& index, const link_map* node, std::uint64_t& number) noexcept {
  if (Record* const before = record_of(index, node); before != nullptr) {
    number = slot_of(index, node) - 1U;
    return before;
  }
  number = index.count;
  if (number == Index::kRecords) {
    sweep(index);
    for (number = 0; number < index.count && index.record(number).object.mapping_id != 0;) ++number;
    if (number == index.count) return nullptr;
  }
  Index::Block*& block = index.blocks[number / Index::Block::kSize];
  if (block == nullptr)
    block = static_cast<Index::Block*>(raw::map_memory(sizeof(Index::Block), MAP_NORESERVE));
  if (block == nullptr) return nullptr;
  if (number == index.count) ++index.count;
  slot_of(index, node) = static_cast<std::uint16_t>(number + 1);
  return &index.record(number);
}

/// Makes a record for a node; nullptr where its file could not be read, or where the linker has given the
/// node away meanwhile.
Record* add(Index& index, const MapNode& node, bool first) noexcept {
  if (!read_beginning(index, node)) return nullptr;
  index.fresh = Record();
  read_record(index, node, first, index.fresh);
  if (index.fresh.object.elf.high() == 0) return nullptr;
  MapNode now;
  if (!index.fresh.permanent &&
      !(index.fresh.visible && read_proof(index.fresh, now, index.fresh.proof.hash) &&
        is_in_use(index, index.fresh, now)))
    return nullptr;
  std::uint64_t number = 0;
  Record* const room = make_room(index, node.address, number);
  if (room == nullptr) return nullptr;
  Record& kept = *room;
  kept = index.fresh;
  index.last_load += Index::kRecords;
  kept.object.mapping_id = index.last_load + number;
  index.blocks[number / Index::Block::kSize]->spans[number % Index::Block::kSize] = {kept.object.elf.low(),
                                                                                     kept.object.elf.high()};
  return &kept;
}

/// The checked record of a node, made where there is none. `next`: as is_current() has it.
Record* get(Index& index, const MapNode& node, bool first, MapNode* next = nullptr) noexcept {
  Record* const known = record_of(index, node.address);
  if (known != nullptr && is_current(index, *known, next)) return known;
  if (next != nullptr) next->address = nullptr;
  return add(index, node, first);
}

/// Calls visit(record) for each object in link order; no longer than until `end`.
template <class Visit>
void walk(Index& index, const Visit& visit, std::uint64_t end = kNoEnd) noexcept {
  constexpr int kTries = 8;
  constexpr std::size_t kMaxNodes = 1U << 20U;
  const link_map* const last_at_start = last_map_at_start();
  const std::size_t count_at_start = map_count_at_start();
  ++index.walks;
  bool broken = true;
  for (int i = 0; broken && i < kTries; ++i) {
    MapNode node;
    MapNode last;
    bool at_start = true;
    if (!read_node(link_map_head(), node)) return;
    broken = false;
    for (std::size_t position = 0; node && position < kMaxNodes; ++position) {
      if (end != kNoEnd && now_nanoseconds() >= end) return;
      if (last_at_start != nullptr && position >= count_at_start) at_start = false;
      MapNode next{node.map.l_next};
      if (Record* record = get(index, node, position == 0, &next); record != nullptr) {
        record->object.at_start = at_start;
        if (record->listed != index.walks) visit(*record);  // the list may be read again from its beginning
        record->listed = index.walks;
      }
      at_start = at_start && node.address != last_at_start;
      last = node;
      if (!next) {
        next_node(node, broken);
        continue;
      }
      broken = next.map.l_prev != node.address;
      node = broken ? MapNode() : next;
    }
    if (index.find_by_linker == nullptr) index.end = broken ? ListMark() : mark_of(last);
  }
}

/// For C libraries without _dl_find_object: new libraries are at the end of the list; one of them may have
/// the node of the last.
void read_new(Index& index) noexcept {
  MapNode node;
  bool broken = !find_marked(index.end, node) || !is_linked(node);
  if (!broken) get(index, node, false);
  MapNode last = node;
  while (!broken && next_node(node, broken)) {
    get(index, node, false);
    last = node;
  }
  if (broken)
    walk(index, [](const Record&) {});
  else if (last.address != index.end.node)
    index.end = mark_of(last);
}

/// The same: the record whose file holds the address, checked; nullptr where it is not known.
Record* find_known(Index& index, std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < index.count; ++i) {
    if (!index.may_hold(i, address)) continue;
    Record& record = index.record(i);
    if (record.object.elf.contains(address) && is_current(index, record)) return &record;
  }
  return nullptr;
}

bool is_linkers(const Record& record, const FoundByLinker& found) noexcept {
  return found.map == record.node.address &&
         reinterpret_cast<std::uintptr_t>(found.map_start) == record.object.elf.low() &&
         reinterpret_cast<std::uintptr_t>(found.eh_frame) == record.object.elf.unwind_header();
}

/// Whether a record that the linker's look-up leads to is still right, for an object in use: its name and its
/// build id can be read in place. An object without one is verified in full.
bool is_same(const Record& record, const FoundByLinker& found) noexcept {
  const BuildId& id = record.object.build_id;
  return record.permanent || (id.size != 0 && record.visible && is_linkers(record, found) &&
                              is_name_of(record.object.path, found.map->l_name) &&
                              std::memcmp(reinterpret_cast<const void*>(id.address), id.bytes, id.size) == 0);
}

Record* look_up(Index& index, std::uintptr_t address, bool in_use) noexcept {
  if (index.walks == 0) walk(index, [](const Record&) {});
  if (index.find_by_linker == nullptr) {
    if (Record* const known = find_known(index, address); known != nullptr) return known;
    read_new(index);
    return find_known(index, address);
  }
  FoundByLinker found{};
  if (index.find_by_linker(reinterpret_cast<void*>(address), &found) != 0) return nullptr;
  Record* record = record_of(index, found.map);
  if (record == nullptr || !(in_use ? is_same(*record, found) : is_current(index, *record))) {
    MapNode node;
    record = read_node(found.map, node) ? get(index, node, false) : nullptr;
  }
  return record != nullptr && record->object.elf.contains(address) ? record : nullptr;
}

/// Copies what is known of the object to `out`, unless it is the vdso and that is not wanted.
template <class Out>
void find(std::uintptr_t address, bool in_use, const Out& out) noexcept {
  Index* const known = g_index.load(std::memory_order_acquire);
  FoundByLinker found{};
  if (address == 0 || (known != nullptr && known->find_by_linker != nullptr &&
                       known->find_by_linker(reinterpret_cast<void*>(address), &found) != 0))
    return;
  const Access index;
  if (!index) return;
  const Record* record = nullptr;
  index.run([&] { record = look_up(*index, address, in_use); });
  if (record != nullptr) out(*record);
}

}  // namespace

LoadedObject find_loaded_object(std::uintptr_t address) noexcept {
  LoadedObject out;
  find(address, false, [&](const Record& record) {
    if (record.visible) out = record.object;
  });
  return out;
}

LoadedObject find_object_in_use(const void* address) noexcept {
  LoadedObject out;
  find(reinterpret_cast<std::uintptr_t>(address), true, [&](const Record& record) {
    if (record.visible) out = record.object;
  });
  return out;
}

LoadedElf find_elf_in_use(std::uintptr_t address) noexcept {
  LoadedElf out;
  find(address, true, [&](const Record& record) { out = record.object.elf; });
  return out;
}

void ignore_linkers_look_up() noexcept {
  const Access index;
  g_ignore_linkers_look_up = true;
  if (index) index->find_by_linker = nullptr;
}

namespace {

std::uint64_t visit_known(bool (*visit)(void*, const LoadedObject&), void* context,
                          std::uint64_t after) noexcept {
  std::uint64_t last = after;
  for (std::size_t number = 0;; ++number) {
    LoadedObject object;
    {
      const Access index;
      if (!index || number >= index->count) return last;
      last = index->last_load + Index::kRecords - 1;
      const Record& record = index->record(number);
      if (!record.visible || record.object.mapping_id <= after) continue;
      object = record.object;
    }
    if (!visit(context, object)) return last;
  }
}

}  // namespace

std::uint64_t for_each_loaded_object(bool (*visit)(void*, const LoadedObject&), void* context,
                                     const ListPart& part) noexcept {
  if (part.known_only) return visit_known(visit, context, part.after);
  constexpr std::size_t kBytes = Index::kRecords * sizeof(std::uint64_t);
  auto* const list = static_cast<std::uint64_t*>(raw::map_memory(kBytes, MAP_NORESERVE));
  if (list == nullptr) return part.after;
  std::size_t count = 0;
  std::uint64_t last = part.after;
  if (const Access index; index) {
    const auto note = [&](const Record& record) {
      if (record.visible && record.object.mapping_id > part.after && count < Index::kRecords)
        list[count++] = record.object.mapping_id;
    };
    index.run([&] { walk(*index, note, part.end); });
    last = index->last_load + Index::kRecords - 1;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (part.end != kNoEnd && now_nanoseconds() >= part.end) break;
    LoadedObject object;
    {
      const Access index;
      if (!index) break;
      const Record& record = index->record(list[i] % Index::kRecords);
      if (record.object.mapping_id != list[i]) continue;  // gone
      object = record.object;
    }
    if (!visit(context, object)) break;
  }
  raw::unmap_memory(list, kBytes);
  return last;
}

bool has_unnumbered_files() noexcept { return g_unnumbered_files.load(std::memory_order_relaxed); }

FileInfo file_of_identity(std::uint32_t identity) noexcept {
  const Access index;
  if (!index || identity == 0 || identity > index->identity_count) return {};
  const Identity& known = index->identities[identity - 1];
  return {known.path, to_hex(known.build_id.view())};
}

LoadedObject find_object_of_identity(std::uint32_t identity) noexcept {
  const Access index;
  if (!index || identity == 0 || identity > index->identity_count) return {};
  const Record* record = nullptr;
  index.run([&] { record = look_up(*index, index->identities[identity - 1].address, false); });
  return record != nullptr && record->object.identity == identity ? record->object : LoadedObject();
}

std::uint32_t identity_of_file(std::string_view path) noexcept {
  constexpr std::uint32_t kMaxLooseFiles = kMaxIdentities / 2;
  const Access index;
  if (!index || path.empty()) return 0;
  PathText& absolute = index->path;
  make_absolute(path, absolute);
  if (index->loose_files >= kMaxLooseFiles && slot_of(*index, absolute.view(), {}) == 0) return 0;
  const std::uint32_t before = index->identity_count;
  const std::uint32_t identity = identify(*index, absolute.view(), {});
  if (index->identity_count != before) ++index->loose_files;
  return identity;
}

bool is_shim(std::uintptr_t address) noexcept {
  return address >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         address < reinterpret_cast<std::uintptr_t>(_end);
}

}  // namespace kshim::shim
