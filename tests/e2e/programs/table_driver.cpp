// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 with one export table, in whichever shape TABLE names: what the shim may meet and must not
// touch, and what it may. Its functions tell which words reached them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Word = std::uintptr_t;
Word g_seen[6];

// More than 32 bits, which no CUresult has: an answer passes through as it is. The low half is success.
constexpr Word kAnswer = Word{0x5a} << 40;

Word remember(Word a, Word b, Word c, Word d, Word e, Word f, Word out) {
  const Word words[] = {a, b, c, d, e, f};
  std::memcpy(g_seen, words, sizeof words);
  if (c == 0) return kAnswer + 209;
  *reinterpret_cast<Word*>(out) = 0xabc0;
  return kAnswer;
}
Word slot_1(Word a, Word b, Word c, Word d, Word e, Word f) { return remember(a, b, c, d, e, f, a); }
Word slot_6(Word a, Word b, Word c, Word d, Word e, Word f) { return remember(a, b, c, d, e, f, a); }
Word slot_8(Word a, Word b, Word c, Word d, Word e, Word f) { return remember(a, b, c, d, e, f, b); }
Word other() { return 801; }

struct Table {
  Word size;
  void* slots[12];
};
#define SLOT(function) reinterpret_cast<void*>(&(function))
#define SLOTS(six)                                                                                    \
  {                                                                                                   \
    SLOT(slot_1), SLOT(other), SLOT(other), SLOT(other), SLOT(other), six, SLOT(other), SLOT(slot_8), \
        SLOT(other), SLOT(other), SLOT(other), SLOT(other)                                            \
  }
// As a driver's: behind PT_GNU_RELRO.
const Table g_good = {sizeof(Table), SLOTS(SLOT(slot_6))};
const Table g_small = {8 * sizeof(Word), SLOTS(SLOT(slot_6))};
const Table g_huge = {std::size_t{1} << 40, SLOTS(SLOT(slot_6))};
const Table g_outside = {sizeof(Table), SLOTS(SLOT(std::abort))};
const Table g_data = {sizeof(Table), SLOTS(g_seen)};
Table g_writable = {sizeof(Table), SLOTS(SLOT(slot_6))};
// The first slot on one page, the others on the next.
struct alignas(4096) Crossing {
  char before[4096 - 2 * sizeof(Word)];
  Table table;
};
const Crossing g_crossing = {{}, {sizeof(Table), SLOTS(SLOT(slot_6))}};
alignas(8) char g_odd[sizeof(Table) + 8];

const void* g_other;

const void* table_named(const char* name) {
  if (name == nullptr || std::strcmp(name, "good") == 0) return &g_good;
  if (std::strcmp(name, "small") == 0) return &g_small;
  if (std::strcmp(name, "huge") == 0) return &g_huge;
  if (std::strcmp(name, "outside") == 0) return &g_outside;
  if (std::strcmp(name, "data") == 0) return &g_data;
  if (std::strcmp(name, "writable") == 0) return &g_writable;
  if (std::strcmp(name, "crossing") == 0) return &g_crossing.table;
  if (std::strcmp(name, "odd") == 0) return std::memcpy(g_odd + 1, &g_good, sizeof g_good);
  if (std::strcmp(name, "nothing") == 0) return nullptr;
  if (std::strcmp(name, "unmapped") == 0) return reinterpret_cast<const void*>(Word{8});
  if (std::strcmp(name, "heap") == 0) return std::memcpy(std::malloc(sizeof g_good), &g_good, sizeof g_good);
  return std::strcmp(name, "other") == 0 ? g_other : nullptr;
}

}  // namespace

EXPORT int cuGetExportTable(const void** out, const void*) {
  *out = table_named(std::getenv("TABLE"));
  return 0;
}
EXPORT int cuLibraryLoadData() { return 801; }
EXPORT const Word* table_driver_seen() { return g_seen; }
EXPORT const void* table_driver_good() { return &g_good; }
EXPORT void table_driver_use(const void* table) { g_other = table; }
