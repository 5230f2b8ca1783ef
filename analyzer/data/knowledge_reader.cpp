// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/knowledge_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <deque>
#include <stdexcept>

#include "analyzer/core/text.h"

namespace kshim::data {
using core::Severity;

namespace {

namespace dom = simdjson::dom;
using image::ComputeCapability;
using image::Version;

constexpr std::string_view kSchema = "kshim-knowledge/1";
constexpr std::size_t kMaxRows = 20'000;
/// Texts and tables of the image library, which rows point into. Never freed.
struct Store {
  std::deque<std::string> texts;
  std::deque<std::vector<image::ComputeCapabilityInfo>> gpus;
  std::deque<std::vector<image::FamilyRow>> families;
  std::deque<std::vector<image::PtxTargetRow>> targets;
  std::deque<std::vector<image::PtxIsaRow>> isas;
};
Store& store() {
  static Store& instance = *new Store;
  return instance;
}

/// A row of a section: every field is there, has its type, and is asked for.
class Row {
 public:
  Row(dom::element element, std::string where) : where_(std::move(where)) {
    if (element.get(object_) != simdjson::SUCCESS) fail("is not an object");
  }
  std::string_view text(std::string_view key) {
    std::string_view out;
    if (find(key).get(out) != simdjson::SUCCESS) fail(fmt::format("`{}` is not a string", key));
    return keep(out);
  }
  /// Empty where it is not there.
  std::string_view text_if_any(std::string_view key) {
    dom::element ignored;
    return object_[key].get(ignored) == simdjson::SUCCESS ? text(key) : std::string_view{};
  }
  bool flag(std::string_view key) {
    bool out = false;
    if (find(key).get(out) != simdjson::SUCCESS) fail(fmt::format("`{}` is not true or false", key));
    return out;
  }
  unsigned number(std::string_view key) {
    std::uint64_t out = 0;
    if (find(key).get(out) != simdjson::SUCCESS || out > UINT32_MAX)
      fail(fmt::format("`{}` is not a number", key));
    return static_cast<unsigned>(out);
  }
  double real(std::string_view key) {
    double out = 0;
    if (find(key).get(out) != simdjson::SUCCESS) fail(fmt::format("`{}` is not a number", key));
    return out;
  }
  bool is_null(std::string_view key) { return find(key).is_null(); }
  Version version(std::string_view key) {
    const auto out = image::parse_version(text(key));
    if (!out) fail(fmt::format("`{}` is not a version", key));
    return *out;
  }
  /// "75 80 90a"; every word must be an architecture.
  std::vector<image::Arch> archs(std::string_view key) {
    std::vector<image::Arch> out;
    for (std::string_view rest = text(key); !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      const auto arch = image::parse_arch(word);
      if (!arch) fail(fmt::format("`{}`: \"{}\" is not an architecture", key, word));
      out.push_back(*arch);
    }
    return out;
  }
  /// Releases of a project: they begin with a digit.
  std::string_view release(std::string_view key) {
    const std::string_view out = text(key);
    if (out.empty() || out.front() < '0' || out.front() > '9')
      fail(fmt::format("`{}` is not a release", key));
    return out;
  }
  /// Of a row that gives one of a few words.
  std::string_view one_of(std::string_view key, std::initializer_list<std::string_view> words) {
    const std::string_view out = text(key);
    if (!core::contains(words, out)) fail(fmt::format("`{}` is \"{}\"", key, out));
    return out;
  }
  std::vector<std::string_view> list(std::string_view key) {
    dom::array array;
    if (find(key).get(array) != simdjson::SUCCESS) fail(fmt::format("`{}` is not a list", key));
    std::vector<std::string_view> out;
    for (const dom::element each : array) {
      std::string_view word;
      if (each.get(word) != simdjson::SUCCESS) fail(fmt::format("`{}` has something that is no string", key));
      out.push_back(keep(word));
    }
    return out;
  }
  dom::object object(std::string_view key) {
    dom::object out;
    if (find(key).get(out) != simdjson::SUCCESS) fail(fmt::format("`{}` is not an object", key));
    return out;
  }
  ComputeCapability cc_of(std::string_view key, std::string_view word) const {
    const auto out = image::parse_arch(word);
    if (!out || out->suffix != image::Suffix::none)
      fail(fmt::format("`{}`: \"{}\" is not a compute capability", key, word));
    return out->cc;
  }
  /// Passes over a field, be it there or not.
  void skip(std::string_view key) { asked_.emplace_back(key); }
  void done() const {
    for (const auto field : object_)
      if (!core::contains(asked_, field.key))
        fail(fmt::format("`{}` is not a field of this table", field.key));
  }
  static std::string_view keep(std::string_view text) { return store().texts.emplace_back(text); }
  [[noreturn]] void fail(std::string_view why) const {
    throw std::runtime_error(fmt::format("{}: {}", where_, why));
  }

 private:
  dom::element find(std::string_view key) {
    asked_.emplace_back(key);
    dom::element out;
    if (object_[key].get(out) != simdjson::SUCCESS) fail(fmt::format("`{}` is missing", key));
    return out;
  }
  dom::object object_;
  std::string where_;
  std::vector<std::string> asked_;
};

/// What a file says of a GPU or a wheel: read in a file or a tool's answer, stated by NVIDIA, or by the
/// project's build.
bool is_verified(Row& row) {
  return row.one_of("basis", {"measured", "documented", "declared"}) != "declared";
}

void read(Row& row, std::string_view key, std::string_view& out) { out = row.text(key); }
void read(Row& row, std::string_view key, bool& out) { out = row.flag(key); }
void read(Row& row, std::string_view key, unsigned& out) { out = row.number(key); }
void read(Row& row, std::string_view key, int& out) { out = static_cast<int>(row.number(key)); }
void read(Row& row, std::string_view key, double& out) { out = row.real(key); }
void read(Row& row, std::string_view key, Version& out) { out = row.version(key); }
void read(Row& row, std::string_view key, ComputeCapability& out) {
  if (!row.is_null(key)) out = row.cc_of(key, row.text(key));
}
void read(Row& row, std::string_view key, std::vector<image::Arch>& out) { out = row.archs(key); }
void read(Row& row, std::string_view key, std::vector<std::string_view>& out) { out = row.list(key); }
/// Machine code first; PTX without its ISA.
void read(Row& row, std::string_view /*key*/, std::vector<image::Candidate>& out) {
  for (const image::Arch arch : row.archs("cubin")) out.push_back({image::ImageKind::cubin, arch, {}});
  for (const image::Arch arch : row.archs("ptx")) out.push_back({image::ImageKind::ptx, arch, {}});
}
void read(Row& row, std::string_view key, FirstIsas& out) {
  for (const auto isa : row.object(key)) {
    std::string_view text;
    const auto version = image::parse_version(isa.value.get(text) == simdjson::SUCCESS ? text : "");
    if (!version || !core::contains(std::array<std::string_view, 3>{"base", "a", "f"}, isa.key))
      row.fail("`first_isa` is not understood");
    out.emplace(Row::keep(isa.key), *version);
  }
}
/// The enumerator whose `name_of` the word is.
template <class E, class Name>
void read_word(Row& row, std::string_view key, E& out, Name&& name_of) {
  const std::string_view word = row.text(key);
  for (unsigned number = 0;; ++number) {
    out = static_cast<E>(number);
    const std::string_view name = name_of(out);
    if (name == word) return;
    if (name.empty()) row.fail(fmt::format("`{}` is \"{}\"", key, word));
  }
}
void read(Row& row, std::string_view key, core::Cause& out) {
  const std::string_view word = row.text(key);
  const auto known = std::find_if(core::causes().begin(), core::causes().end(),
                                  [&](const core::CauseRow& each) { return each.name == word; });
  if (known == core::causes().end()) row.fail(fmt::format("`{}` is \"{}\"", key, word));
  out = known->cause;
}
void read(Row& row, std::string_view key, core::FixKind& out) {
  read_word(row, key, out, [](core::FixKind kind) { return to_name(kind); });
}
void read(Row& row, std::string_view key, Severity& out) {
  const std::string_view word = row.one_of(key, {"info", "warning", "error"});
  out = word == "error" ? Severity::error : word == "warning" ? Severity::warning : Severity::info;
}
template <class E>
requires std::is_enum_v<E>
void read(Row& row, std::string_view key, E& out) {
  read_word(row, key, out, [rest = words_of(out)](E) mutable {  // "a, b", in the order of the enumerators
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 2));
    return word;
  });
}

/// A table that others are made of. `row`: for what is wrong with its last one.
template <class T>
void derive(const std::vector<T>&, Row&, Knowledge&, ImageTables&) {}
void derive(const std::vector<ToolkitRow>& rows, Row& row, Knowledge& to, ImageTables& images) {
  const ToolkitRow& last = rows.back();
  if (!images.isas.empty() && !(images.isas.back().cuda < last.version))
    row.fail("is not newer than the row before");
  images.isas.push_back({last.version, last.isa});
  if (!last.windows_driver.empty()) to.windows_drivers.push_back({last.driver, last.windows_driver});
  if (!last.windows_minor_driver.empty())
    to.windows_drivers.push_back({last.minor_driver, last.windows_minor_driver});
  if (last.targets.empty()) to.toolkits.pop_back();  // 12.7 was a driver's version and no toolkit
}
void derive(const std::vector<GpuRow>& rows, Row& row, Knowledge& to, ImageTables& images) {
  const GpuRow& last = rows.back();
  for (const std::string_view name : last.names) to.gpu_names.push_back({name, last.cc});
  for (const auto& [key, isa] : last.first_isa)
    images.targets.push_back({last.cc.number(),
                              key == "base" ? image::Suffix::none
                              : key == "a"  ? image::Suffix::a
                                            : image::Suffix::f,
                              isa});
  for (const std::string_view device : last.relatives)
    images.families.push_back({last.cc.number(), row.cc_of("family", device).number()});
  images.gpus.push_back(
      {last.cc, last.family.data(), last.chips.data(), last.tegra, last.first_toolkit, last.last_toolkit});
}
struct Section {
  std::string_view name;
  void (*read)(Row&, Knowledge&, ImageTables&);
  /// Moves what was read to where it is used.
  void (*take)(Knowledge& from, Knowledge& to);
};
template <auto kTable>
void take(Knowledge& from, Knowledge& to) {
  to.*kTable = std::move(from.*kTable);
  if constexpr (std::is_same_v<decltype(kTable), std::vector<ToolkitRow> Knowledge::*>)
    to.windows_drivers = std::move(from.windows_drivers);
  if constexpr (std::is_same_v<decltype(kTable), std::vector<GpuRow> Knowledge::*>)
    to.gpu_names = std::move(from.gpu_names);
}
constexpr Section kSections[] = {
#define KSHIM_FIELD(type, name) read(row, #name, out.name);
#define KSHIM_RELEASE(name) out.name = row.release(#name);
#define KSHIM_ANY(name) out.name = row.text_if_any(#name);
#define KSHIM_BASIS(name) out.name = is_verified(row);
#define KSHIM_AS(type, name, key) \
  if (!row.is_null(key)) read(row, key, out.name);
#define KSHIM_LEFT(key) row.skip(key);
#define KSHIM_TABLE(section, Row_, ...)               \
  {#section,                                          \
   [](Row& row, Knowledge& to, ImageTables& images) { \
     Row_& out = to.section.emplace_back();           \
     __VA_ARGS__                                      \
     derive(to.section, row, to, images);             \
   },                                                 \
   take<&Knowledge::section>},
#include "analyzer/data/tables.def"
};

const Section& section_of(std::string_view name) {
  return *std::ranges::find(kSections, name, &Section::name);
}

bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(),
                    [](char c, char form) { return form == '-' ? c == '-' : c >= '0' && c <= '9'; });
}

/// The rows of a section, each checked.
void read_section(const Section& section, dom::element value, const std::string& file, Knowledge& to,
                  ImageTables& images) {
  dom::array rows;
  if (value.get(rows) != simdjson::SUCCESS || rows.size() == 0 || rows.size() > kMaxRows)
    throw std::runtime_error(fmt::format("{}: `{}` is not a list of rows", file, section.name));
  std::size_t index = 0;
  for (const dom::element each : rows) {
    Row row(each, fmt::format("{}: row {} of `{}`", file, ++index, section.name));
    section.read(row, to, images);
    row.done();
  }
}

}  // namespace

struct KnowledgeText::Parsed {
  struct Table {
    std::string_view name;
    dom::element rows;
  };
  dom::parser parser;  // has the text that `tables` point into
  std::vector<Table> tables;
};

KnowledgeText::KnowledgeText(std::string_view json, std::string file, Rows rows)
    : file_(std::move(file)), parsed_(std::make_unique<Parsed>()) {
  if (json.size() > kMaxKnowledgeBytes)
    throw std::runtime_error(fmt::format("{}: is larger than 8 MiB", file_));
  dom::element document;
  if (const auto error = parsed_->parser.parse(json.data(), json.size()).get(document);
      error != simdjson::SUCCESS)
    throw std::runtime_error(fmt::format("{}: {}", file_, simdjson::error_message(error)));
  dom::object object;
  std::string_view schema;
  if (document.get(object) != simdjson::SUCCESS || object["schema"].get(schema) != simdjson::SUCCESS ||
      schema != kSchema)
    throw std::runtime_error(fmt::format("{}: is not of schema {}", file_, kSchema));
  std::string_view date;
  if (object["date"].get(date) != simdjson::SUCCESS || !is_date(date))
    throw std::runtime_error(fmt::format("{}: `date` is not a date such as 2026-11-22", file_));
  date_ = date;
  for (const auto field : object) {
    if (field.key == "schema" || field.key == "date") continue;
    const auto* section = std::ranges::find(kSections, field.key, &Section::name);
    if (section == std::end(kSections))
      throw std::runtime_error(fmt::format("{}: there is no table `{}`", file_, field.key));
    parsed_->tables.push_back({section->name, field.value});
    if (rows == Rows::now) read(section->name);
  }
}

KnowledgeText::~KnowledgeText() = default;

bool KnowledgeText::has(std::string_view table) const {
  return std::ranges::any_of(parsed_->tables, [&](const Parsed::Table& each) { return each.name == table; });
}

void KnowledgeText::read(std::string_view table) {
  for (const Parsed::Table& each : parsed_->tables)
    if (each.name == table) read_section(section_of(table), each.rows, file_, rows_, images_);
  if (table == "toolkits" && rows_.toolkits.empty())
    throw std::runtime_error(fmt::format("{}: no row of `toolkits` builds for any GPU", file_));
}

void KnowledgeText::use(std::string_view table, Knowledge& to) {
  read(table);
  section_of(table).take(rows_, to);
}

void KnowledgeText::use(Knowledge& to) {
  for (const Parsed::Table& table : parsed_->tables) section_of(table.name).take(rows_, to);
  image::CompatTables tables = image::compat_tables();
  if (has("gpus")) {
    tables.gpus = store().gpus.emplace_back(std::move(images_.gpus));
    tables.families = store().families.emplace_back(std::move(images_.families));
    tables.targets = store().targets.emplace_back(std::move(images_.targets));
  }
  if (has("toolkits")) tables.isas = store().isas.emplace_back(std::move(images_.isas));
  image::use_compat_tables(tables);
}

}  // namespace kshim::data
