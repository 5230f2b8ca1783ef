// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/share.h"

#include "analyzer/core/text.h"
#include "kshim/report/redact.h"

namespace kshim::render {
namespace {

constexpr std::size_t kDeepest = 300;        // bytes of a path before /home
constexpr std::size_t kMaxHostLength = 255;  // HOST_NAME_MAX and more

/// What a path is made of when it stands in a sentence or a command.
bool is_path(char c) { return !core::contains(" \t\n'\"`=:;,()<>|&!", c); }
bool is_word(char c) { return core::is_alnum(c) || c == '_' || c == '-'; }

/// Where the path begins that `slash` is part of; `slash` itself behind an option (-I/home/ada); npos for
/// anything but an absolute path.
std::size_t path_begin(std::string_view text, std::size_t slash) {
  std::size_t run = slash;
  while (run > 0 && is_path(text[run - 1])) {
    // No folder that holds homes lies this deep; a text of nothing but slashes must not be read again and
    // again.
    if (slash - run == kDeepest) return std::string_view::npos;
    --run;
  }
  if (run == slash) return slash;
  const std::size_t first = text.find('/', run);
  // A server's name stands between, as in https://example.org/home/ada; file:///home/ada has none.
  if (run == first && text.substr(run, 2) == "//") return slash == run + 2 ? slash : std::string_view::npos;
  return run == first || text[run] == '-' || text[run] == '@' ? first : std::string_view::npos;
}

/// Whether a home may lie in this folder: "" for /home/ada, "/mnt" for /mnt/home/ada.
bool holds_homes(std::string_view before, bool users) {
  if (before.empty()) return true;
  if (users && before.size() == 6 && before.starts_with("/mnt/")) return true;
  return before.find('/', 1) == std::string_view::npos;
}

struct HomeRange {
  std::size_t begin, end;
};

/// Where the part of a path ends that goes on at `at`.
std::size_t name_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '/' && is_path(text[at])) ++at;
  return at;
}

/// The home folder whose path has its first slash, or that of "/home/", at `at`.
std::optional<HomeRange> home_at(std::string_view text, std::size_t at, std::string_view home) {
  const std::string_view rest = text.substr(at);
  for (const std::string_view whole : {home, std::string_view("/root")}) {
    const std::size_t end = at + whole.size();
    if (whole.size() > 1 && rest.starts_with(whole) && name_end(text, end) == end &&
        path_begin(text, at) == at)
      return HomeRange{at, end};
  }
  for (const std::string_view parent : {std::string_view("/home/"), std::string_view("/Users/")}) {
    if (!rest.starts_with(parent)) continue;
    const std::size_t begin = path_begin(text, at);
    const std::size_t end = name_end(text, at + parent.size());
    if (begin == std::string_view::npos || end == at + parent.size()) continue;
    if (holds_homes(text.substr(begin, at - begin), parent == "/Users/")) return HomeRange{begin, end};
  }
  return std::nullopt;
}

/// Behind the UUID (8-4-4-4-12 hexadecimal digits) that begins at `at`; 0 where none does.
std::size_t uuid_end(std::string_view text, std::size_t at) {
  for (const std::size_t digits : {8U, 4U, 4U, 4U, 12U}) {
    if (digits != 8 && (at >= text.size() || text[at++] != '-')) return 0;
    if (text.size() - at < digits || !std::ranges::all_of(text.substr(at, digits), core::is_hex)) return 0;
    at += digits;
  }
  return at < text.size() && core::is_hex(text[at]) ? 0 : at;
}

template <class Replace>
std::string replace_homes(std::string_view text, std::string_view home, Replace&& replace) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find('/'); at != std::string_view::npos; at = text.find('/', at)) {
    const auto found = home_at(text, at, home);
    if (!found || found->begin < done) {
      ++at;
      continue;
    }
    out += text.substr(done, found->begin - done);
    replace(out);
    done = at = found->end;
  }
  return out += text.substr(done);
}

}  // namespace

Shortener::Shortener(std::vector<std::string> hosts, std::string home) : home_(std::move(home)) {
  while (home_.size() > 1 && home_.back() == '/') home_.pop_back();
  std::vector<std::string> known;
  for (std::string& host : hosts) {
    // A name of one or two letters is in every sentence.
    const bool usable = host.size() > 2 && host != "localhost";
    if (usable && !core::contains(known, host)) known.push_back(std::move(host));
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::string shown = known.size() == 1 ? "host" : fmt::format("host{}", i + 1);
    hosts_.emplace(known[i], shown);
    // What a report's name has of node7.example.org.
    if (std::string first = known[i].substr(0, known[i].find('.')); first.size() > 2)
      hosts_.emplace(std::move(first), shown);
  }
}

Shortener Shortener::for_user(std::vector<std::string> hosts) {
  const char* home = std::getenv("HOME");
  return {std::move(hosts), home == nullptr ? "" : home};
}

std::string Shortener::text(std::string_view text) const {
  return shorten_rest(replace_homes(text, home_, [](std::string& out) { out += '~'; }));
}

std::string Shortener::command(std::string_view command) const {
  return shorten_rest(replace_homes(command, home_, [](std::string& out) {
    const bool quoted = std::ranges::count(out, '\'') % 2 == 1;
    const bool opened = quoted && out.back() == '\'';
    if (opened) out.pop_back();
    out += opened ? "\"$HOME\"'" : quoted ? "'\"$HOME\"'" : "$HOME";
  }));
}

std::map<std::string, std::string, std::less<>>::const_iterator Shortener::host_in(
    std::string_view text) const {
  std::size_t end = 0;
  while (end < text.size() && end < kMaxHostLength && (is_word(text[end]) || text[end] == '.')) ++end;
  // node7.example.org.17.jsonl: every dot may be the name's end.
  for (; end != 0 && end != std::string_view::npos; end = text.substr(0, end).rfind('.')) {
    if (const auto found = hosts_.find(text.substr(0, end)); found != hosts_.end()) return found;
  }
  return hosts_.end();
}

std::string Shortener::shorten_rest(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool may_be_uuid = core::is_hex(text[at]) && (begins || text[at - 1] == '-');
    if (const std::size_t end = may_be_uuid ? uuid_end(text, at) : 0; end != 0) {
      out += text.substr(at, 8);
      at = end;
    } else if (const auto host = begins && !hosts_.empty() ? host_in(text.substr(at)) : hosts_.end();
               host != hosts_.end()) {
      out += host->second;
      at += host->first.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::vector<std::string> program_and_script(const std::vector<std::string>& arguments) {
  report::ArgumentRedactor redactor(report::ArgumentDetail::names);
  std::vector<std::string> out;
  std::vector<char> text(4096);
  for (const std::string& argument : arguments) {
    const std::size_t size = redactor.next(argument, text).size;
    const report::ArgumentPart part = redactor.part();
    if (part == report::ArgumentPart::program || part == report::ArgumentPart::script)
      out.emplace_back(text.data(), size);
  }
  return out;
}

}  // namespace kshim::render
