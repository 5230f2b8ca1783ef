// SPDX-License-Identifier: Apache-2.0
#include "report_mutator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "kshim/report/schema.h"

namespace kshim::fuzz {
namespace {

using Json = nlohmann::ordered_json;

/// A line: a record, or bytes that are none.
struct Line {
  Json record;
  std::string bytes;  ///< where `record` is null
};

std::vector<Line> lines_of(std::string_view report) {
  std::vector<Line> out;
  while (!report.empty()) {
    const std::size_t end = std::min(report.find('\n'), report.size());
    const std::string_view text = report.substr(0, end);
    Json record = Json::parse(text, nullptr, false);
    if (record.is_object()) {
      out.push_back({std::move(record), {}});
    } else {
      out.push_back({nullptr, std::string(text)});
    }
    report.remove_prefix(std::min(end + 1, report.size()));
  }
  return out;
}

class Mutator {
 public:
  Mutator(std::vector<Line> lines, std::mt19937& random) : lines_(std::move(lines)), random_(random) {}

  void mutate() {
    const std::size_t what = below(16);
    if (lines_.empty() || what == 0) return insert();
    switch (what) {
      case 1:
        return duplicate();
      case 2:
        return erase();
      case 3:
        return swap();
      case 4:
        return break_line();
      case 5:
        return add_key_twice();
      default:
        return change_value();
    }
  }

  std::string text(std::size_t most) const {
    std::string out;
    for (const Line& line : lines_) {
      std::string one = line.record.is_null()
                            ? line.bytes
                            : line.record.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (out.size() + one.size() + 1 > most) break;
      out += one;
      out += '\n';
    }
    if (!out.empty() && torn_) out.resize(out.size() - 1 - below_const(out.size()));
    return out;
  }

 private:
  std::size_t below(std::size_t end) {
    return end == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  std::size_t below_const(std::size_t end) const { return torn_at_ % end; }
  Line& any() { return lines_[below(lines_.size())]; }

  std::string evil_text() {
    static const std::array<std::string, 20> kTexts = {
        "",
        "sm_75",
        "compute_90",
        "sm_90a",
        "9.0",
        "12.9",
        "0.0",
        "99999.99999",
        "libcudart.so.11.0",
        "/usr/lib/libcublasLt.so.12",
        "<script>kshim(1)</script>",
        "\"><img src=x onerror=kshim>",
        "\x1b[2J\x1b]0;x\x07",
        "\u202eevil\u2066",
        "a\n::kshim::b\r\n::kshim",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        "_ZN1aIXadL_ZN1bIXadL_Z1cEEEE",
        "kshim-report/2",
        "../../../../etc",
        "%s%n{}{0}{:>99999999}",
    };
    const std::size_t which = below(kTexts.size() + 2);
    if (which < kTexts.size()) return kTexts[which];
    return std::string(which == kTexts.size() ? 300 : 70'000, which % 2 == 0 ? 'x' : '\\');
  }

  Json evil_value() {
    switch (below(12)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return std::uint64_t{0};
      case 3:
        return -1;
      case 4:
        return std::uint64_t{1} << below(64);
      case 5:
        return ~std::uint64_t{0} >> below(64);
      case 6:
        return 1e308;
      case 7:
        return Json::array();
      case 8:
        return Json::object();
      case 9:
        return std::uint64_t{below(8)};
      default:
        return evil_text();
    }
  }

  // Somewhere in a record: a field, an element of a list, a field of an element.
  Json* place(Json& record, std::string& key) {
    Json* at = &record;
    for (int depth = 0; depth < 4 && (at->is_object() || at->is_array()) && !at->empty(); ++depth) {
      auto next = at->begin();
      std::advance(next, static_cast<std::ptrdiff_t>(below(at->size())));
      if (at->is_object()) key = next.key();
      at = &*next;
      if (below(3) == 0) break;
    }
    return at;
  }

  void change_value() {
    Line& line = any();
    if (line.record.is_null()) return;
    std::string key;
    Json* at = place(line.record, key);
    if (at == &line.record) return;
    Line& other = any();
    if (below(3) == 0 && other.record.is_object() && other.record.contains(key)) {
      *at = Json(other.record[key]);  // what another record has there: contradictions, references
    } else if (at->is_array() && below(2) == 0) {
      const std::size_t times = below(4) == 0 ? 200 : 2;
      const Json item = at->empty() ? evil_value() : Json((*at)[below(at->size())]);
      for (std::size_t i = 0; i < times; ++i) at->push_back(item);
    } else if (at->is_number_unsigned() && below(2) == 0) {
      *at = at->get<std::uint64_t>() + below(5) - 2;
    } else if (at->is_string() && below(3) == 0) {
      *at = at->get<std::string>() + evil_text();
    } else {
      *at = evil_value();
    }
  }

  // A record of any type, with some of its fields.
  void insert() {
    const auto& type = report::kRecords[below(std::size(report::kRecords))];
    Json record = {{"type", type.type}, {"seq", below(16)}, {"t", below(1000)}};
    for (const report::FieldRow& field : report::kFields) {
      if (field.record == type.type && below(3) != 0) record[std::string(field.field)] = fitting(field.kind);
    }
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size() + 1)),
                  {std::move(record), {}});
  }

  Json fitting(std::string_view kind) {
    if (below(8) == 0) return evil_value();
    if (kind == "string" || kind == "text") return evil_text();
    if (kind == "uint") return below(6);
    if (kind == "number") return 0.5 * static_cast<double>(below(5000));
    if (kind == "bool") return below(2) == 0;
    if (kind == "strings" || kind == "texts") return Json::array({evil_text(), evil_text()});
    if (kind == "env") return Json{{"CUDA_FORCE_PTX_JIT", "1"}, {"KSHIM_TARGET", evil_text()}};
    if (kind == "images")
      return Json::array({{{"kind", "cubin"},
                           {"arch", evil_text()},
                           {"isa", nullptr},
                           {"count", below(9)},
                           {"bytes", below(9)}}});
    if (kind == "layers") {
      static constexpr std::array kCodes = {2, 3, 35, 98, 100, 101, 200, 209, 218, 222, 223, 700, 719, 803};
      return Json::array({{{"layer", below(2) == 0 ? "driver" : "runtime"},
                           {"api", "cuLaunchKernel"},
                           {"code", kCodes[below(kCodes.size())]},
                           {"name", evil_text()}}});
    }
    if (kind == "frames")
      return Json::array({{{"object", evil_text()}, {"offset", below(9)}, {"symbol", evil_text()}}});
    return Json::array({{{"file", evil_text()}, {"line", below(99)}, {"function", evil_text()}}});
  }

  void duplicate() {
    const Line copy = any();
    const std::size_t times = below(8) == 0 ? 64 : 1;
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size() + 1)), times, copy);
  }
  void erase() { lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size()))); }
  void swap() { std::swap(any(), any()); }
  void break_line() {
    if (below(2) == 0) {
      torn_ = true;
      torn_at_ = below(4096);
      return;
    }
    Line& line = any();
    if (!line.record.is_null()) line.bytes = line.record.dump(-1, ' ', false, Json::error_handler_t::replace);
    line.record = nullptr;
    if (line.bytes.empty()) line.bytes = "{}";
    const std::size_t at = below(line.bytes.size());
    static constexpr std::string_view kBytes("\0\xff\"\\{}[],:-", 11);
    line.bytes[at] = kBytes[below(kBytes.size())];
  }
  void add_key_twice() {
    Line& line = any();
    if (line.record.is_null() || line.record.empty()) return;
    std::string key;
    place(line.record, key);
    line.bytes = line.record.dump(-1, ' ', false, Json::error_handler_t::replace);
    line.bytes.pop_back();
    line.bytes +=
        ",\"" + key + "\":" + evil_value().dump(-1, ' ', false, Json::error_handler_t::replace) + "}";
    line.record = nullptr;
  }

  std::vector<Line> lines_;
  std::mt19937& random_;
  bool torn_ = false;
  std::size_t torn_at_ = 0;
};

}  // namespace

std::string mutate_report(std::string_view report, std::size_t most, std::mt19937& random) {
  Mutator mutator(lines_of(report), random);
  const std::size_t times = std::uniform_int_distribution<std::size_t>(1, 6)(random);
  for (std::size_t i = 0; i < times; ++i) mutator.mutate();
  return mutator.text(most);
}

}  // namespace kshim::fuzz
