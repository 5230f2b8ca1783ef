// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/alike.h"

#include <fmt/format.h>

#include <bit>
#include <random>

#include "analyzer/core/text.h"
#include "analyzer/data/wheels.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::input {
using core::contains;

namespace {

constexpr std::size_t kMaxValueLength = 64;

void put(std::string& out, std::string_view text) {
  out += text;
  out += '\0';
}

std::string program_of(const ProcessRecord& process) {
  std::string out;
  put(out, process.exe);
  put(out, process.cwd);
  for (const std::string& argument : process.argv) put(out, argument);
  return out;
}

/// Of the process record what neither tells processes apart (`run`, `host`, `pid`, `start`, `ppid`, `uid`,
/// `time`, `job`, the number of a rank) nor programs; of the program what it is judged by: whether it is
/// Python, and which, and whether the records name it, or files of its environment.
void put(std::string& out, const Report& report, std::string_view lines) {
  static constexpr std::string_view kNumbers[] = {"SLURM_JOB_ID", "SLURM_PROCID", "RANK",
                                                  "LOCAL_RANK",   "PMI_RANK",     "OMPI_COMM_WORLD_RANK"};
  const ProcessRecord& process = report.process;
  for (const bool is :
       {report.foreign, report.linked, process.hidden, process.rank.has_value(), is_of_this_machine(report)})
    out += is ? '1' : '0';
  put(out, process.shim);
  for (const auto& [name, value] : process.env) {
    put(out, name);
    if (std::find(std::begin(kNumbers), std::end(kNumbers), name) == std::end(kNumbers)) put(out, value);
  }
  out += core::basename_of(process.exe).starts_with("python") ? '1' : '0';
  put(out, data::python_of_path(process.exe));
  const std::string_view started = process.argv.empty() ? std::string_view() : process.argv.front();
  const bool plain = started.starts_with('/') && !contains(started, "//") && !contains(started, "/.");
  if (!plain && contains(started, '/')) put(out, program_of(process));
  const std::size_t name = plain ? started.rfind('/') : 0;
  const std::size_t folder = name == 0 ? 0 : started.rfind('/', name - 1);
  for (const std::string_view path : {std::string_view(process.exe), started.substr(0, folder)})
    put(out, contains(lines, path) ? path : std::string_view());
  out += '\n';
}

/// Copies a line but for some of its values, which it hands out.
class Cutter {
 public:
  Cutter(std::string_view line, std::string& out) : line_(line), out_(out) {}
  /// The value that begins at `begin`: a number, or a text between quotes; empty where it is no plain one.
  std::string_view cut(std::size_t begin) {
    if (begin >= line_.size()) return {};
    std::size_t end = begin;
    if (line_[begin] == '"') {
      end = line_.find_first_of("\"\\", ++begin);
      if (end == std::string_view::npos || line_[end] == '\\' ||
          !is_printable(line_.substr(begin, end - begin)))
        return {};
    } else {
      while (end < line_.size() && ((line_[end] >= '0' && line_[end] <= '9') || line_[end] == '.')) ++end;
      if (end == line_.size() || (line_[end] != ',' && line_[end] != '}')) return {};
    }
    const std::string_view value = line_.substr(begin, end - begin);
    if (value.empty() || value.size() > kMaxValueLength) return {};
    out_.append(line_, at_, begin - at_);
    at_ = end;
    return value;
  }
  /// Of the first such key, with its quotes, comma and colon. It may lie in another value: the same one in
  /// all reports whose text is the same.
  std::string_view cut(std::string_view key) { return cut(after(line_.find(key, at_), key)); }
  /// Of one of the last keys of the line.
  std::size_t find_back(std::string_view key) const {
    std::size_t at = line_.size();
    for (unsigned comma = 0; comma < 8 && at != 0; ++comma) {
      const void* const found = ::memrchr(line_.data(), ',', at);
      if (found == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const char*>(found) - line_.data());
      if (line_.substr(at).starts_with(key)) return after(at, key);
    }
    return std::string_view::npos;
  }
  void finish() { out_.append(line_, at_).push_back('\n'); }

 private:
  static bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  }
  static std::size_t after(std::size_t at, std::string_view key) {
    return at == std::string_view::npos ? at : at + key.size();
  }
  std::string_view line_;
  std::string& out_;
  std::size_t at_ = 0;
};

/// False where the value of a key that is there is neither a plain text nor null.
bool cut_text(Cutter& cutter, std::string_view line, std::string_view key, std::string& out) {
  out = cutter.cut(key);
  const std::size_t at = line.find(key);
  return !out.empty() || at == std::string_view::npos || line.substr(at + key.size()).starts_with("null");
}

/// Digits with or without a fraction, below a million: no time that is ignored with a note.
bool parse_ms(std::string_view text, double& out) {
  constexpr std::size_t kMaxDigits = 6;
  const std::size_t digits = std::min(text.find('.'), text.size());
  if (digits == 0 || digits > kMaxDigits || (digits > 1 && text.front() == '0')) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && text.back() != '.';
}

/// Where the value of `t` begins in a line as a shim writes it: behind `type`, which is `type`, and `seq`.
std::size_t place_of_t(std::string_view line, std::string_view& type) {
  constexpr std::string_view kType = "{\"type\":\"";
  constexpr std::string_view kSeq = "\",\"seq\":";
  constexpr std::string_view kT = ",\"t\":";
  if (!line.starts_with(kType)) return std::string_view::npos;
  std::size_t at = std::min(line.find('"', kType.size()), line.size());
  type = line.substr(kType.size(), at - kType.size());
  if (!line.substr(at).starts_with(kSeq)) return std::string_view::npos;
  at += kSeq.size();
  while (at < line.size() && line[at] >= '0' && line[at] <= '9') ++at;
  return line.substr(at).starts_with(kT) ? at + kT.size() : std::string_view::npos;
}

/// Milliseconds of compilation by object, as jit_taxes() adds them up.
using Compiled = std::map<std::uint64_t, double>;
bool add_to(Compiled& compiled, std::string_view module, double ms) {
  constexpr std::string_view kObject = ",\"object\":";
  // Those that are named are summed up by folder there.
  if (contains(module, "\"cuModuleLoad\"") || contains(module, "\"cuLibraryLoadFromFile\"")) return false;
  const std::size_t at = module.find(kObject);
  if (at == std::string_view::npos) return false;
  std::string_view value = module.substr(at + kObject.size());
  const auto object = core::take_number<std::uint64_t>(value);
  if (object ? !value.starts_with(',') : !value.starts_with("null,")) return false;
  compiled[object.value_or(0)] += ms;
  return true;
}

/// What of the times of compilation decides: which took longest, and whether all are worth a warning.
void put(std::string& out, const Compiled& compiled) {
  std::vector<std::pair<std::uint64_t, double>> rows(compiled.begin(), compiled.end());
  std::ranges::stable_sort(rows, std::greater(), &std::pair<std::uint64_t, double>::second);
  double total = 0;
  for (const auto& [object, ms] : rows) {
    fmt::format_to(std::back_inserter(out), "{} ", object);
    total += ms;
  }
  out += total > kNoticeableJit ? '1' : '0';
}

/// SipHash-1-3 of Aumasson and Bernstein, with 128 bits of result.
class SipHash {
 public:
  explicit SipHash(const Alike::Key& key)
      : state_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d ^ 0xee, key[0] ^ 0x6c7967656e657261,
               key[1] ^ 0x7465646279746573} {}
  Alike::Key of(std::string_view text) {
    std::uint64_t word = 0;
    std::uint64_t last = std::uint64_t{text.size()} << 56U;
    for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
      std::memcpy(&word, text.data(), sizeof word);
      take(word);
    }
    for (std::size_t at = 0; at < text.size(); ++at)
      last |= std::uint64_t{static_cast<unsigned char>(text[at])} << (8 * at);
    take(last);
    return {finish(0xee, 2), finish(0xdd, 1)};
  }

 private:
  void round() {
    auto& [a, b, c, d] = state_;
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
  }
  void take(std::uint64_t word) {
    state_[3] ^= word;
    round();
    state_[0] ^= word;
  }
  std::uint64_t finish(std::uint64_t mark, std::size_t where) {
    state_[where] ^= mark;
    for (unsigned turn = 0; turn < 3; ++turn) round();
    return state_[0] ^ state_[1] ^ state_[2] ^ state_[3];
  }
  std::array<std::uint64_t, 4> state_;
};

bool is_whole(std::string_view text) {
  return !text.empty() && (text == "0" || text.front() != '0') && !contains(text, '.') && text.size() < 19;
}

}  // namespace

Alike alike_of(const Report& report, std::string_view lines) {
  Alike out;
  Compiled compiled;
  thread_local std::string text;
  text.clear();
  put(text, report, lines);
  text.reserve(text.size() + lines.size());
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (line.size() == lines.size()) return {};  // torn
    lines.remove_prefix(line.size() + 1);
    Cutter cutter(line, text);
    std::string_view type;
    if (!is_whole(cutter.cut(place_of_t(line, type)))) return {};
    if (type == "compiler") return {};  // it names other processes
    const bool flat = type == "module" || type == "device" || type == "end";
    if (flat && line.find('{', 1) != std::string_view::npos) return {};
    if (type == "module") {
      constexpr std::string_view kMs = ",\"ms\":";
      const std::size_t jit = cutter.find_back(",\"jit\":");
      if (jit == std::string_view::npos) return {};
      const std::size_t ms = std::min(line.find(',', jit), line.size());
      if (!line.substr(ms).starts_with(kMs) || !parse_ms(cutter.cut(ms + kMs.size()), out.ms.emplace_back()))
        return {};
      if (line.substr(jit).starts_with("true") && contains(line, ",\"result\":0,") &&
          !add_to(compiled, line, out.ms.back()))
        return {};
    } else if (type == "device") {
      Alike::Gpu& gpu = out.gpus.emplace_back();
      if (!cut_text(cutter, line, ",\"uuid\":", gpu[0]) || !cut_text(cutter, line, ",\"pci\":", gpu[1]))
        return {};
    } else if (type == "failure") {
      if (!is_whole(cutter.cut(",\"tid\":"))) return {};
    } else if (type == "end") {
      cutter.cut(",\"time\":");
    }
    cutter.finish();
  }
  put(text, compiled);
  // A command may name one of several GPUs.
  if (out.gpus.size() > 1)
    for (const auto& gpu : out.gpus) put(text, gpu.front());
  static const Alike::Key kSecret = [] {
    std::random_device random;
    Alike::Key key{};
    for (std::uint64_t& half : key) half = std::uint64_t{random()} << 32U | random();
    return key;
  }();
  out.key = SipHash(kSecret).of(text);
  out.key_with_program = SipHash(*out.key).of(program_of(report.process));
  return out;
}

bool has_places(const Report& report, const Alike& alike) {
  return report.modules.size() == alike.ms.size() && report.devices.size() == alike.gpus.size();
}

}  // namespace kshim::input
