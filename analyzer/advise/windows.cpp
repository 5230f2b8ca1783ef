// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/windows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "analyzer/data/knowledge_file.h"

namespace kshim::explain {
namespace {

bool part_of_number(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; }

// The words, with quotes taken as sh takes them and written as both shells of Windows do.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> out;
  std::string word;
  bool any = false;
  char quote = '\0';
  for (const char c : command) {
    if (quote != '\0') {
      word += c == quote ? '"' : c;
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
      word += '"';
      any = true;
    } else if (c == ' ') {
      if (any) out.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) out.push_back(word);
  return out;
}

// NAME=value, as it stands before a program.
bool is_assignment(std::string_view word) {
  const std::size_t mark = word.find('=');
  if (mark == std::string_view::npos || mark == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(mark), [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

std::string assigned(std::string_view word) {
  const std::size_t mark = word.find('=');
  std::string value(word.substr(mark + 1));
  if (!value.starts_with('"')) value = '"' + value + '"';
  return "$env:" + std::string(word.substr(0, mark)) + " = " + value;
}

std::string joined(const std::vector<std::string>& words, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < words.size(); ++i) {
    if (!out.empty()) out += ' ';
    out += words[i];
  }
  return out;
}

std::string removed(const std::string& variable) { return "Remove-Item Env:" + variable; }

// What the shells or the programs of Linux alone have.
bool is_of_linux(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 16> kPrograms = {
      "sudo", "ls",      "ldconfig", "grep",  "cat",   "rm",   "systemctl", "modprobe",
      "find", "mokutil", "dkms",     "dmesg", "lsmod", "make", "head",      "tail"};
  if (std::find(kPrograms.begin(), kPrograms.end(), words.front()) != kPrograms.end()) return true;
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("/proc/") || word.starts_with("/dev/") || word.find("$(") != std::string::npos ||
           word.find("LD_LIBRARY_PATH") != std::string::npos || word.find("$CUDA") != std::string::npos ||
           word.starts_with("~/");
  });
}

std::optional<std::string> one_command(const std::string& command) {
  std::vector<std::string> words = words_of(command);
  if (words.empty() || is_of_linux(words)) return std::nullopt;
  std::string before;
  const auto then = [&](const std::string& part) { before += (before.empty() ? "" : "; ") + part; };
  std::size_t at = 0;
  if (words[0] == "export") {
    for (at = 1; at < words.size(); ++at) then(assigned(words[at]));
  } else if (words[0] == "unset") {
    for (at = 1; at < words.size(); ++at) then(removed(words[at]));
  } else if (words[0] == "env") {
    at = 1;
    while (at + 1 < words.size() && words[at] == "-u") {
      then(removed(words[at + 1]));
      at += 2;
    }
  }
  while (at < words.size() && is_assignment(words[at])) then(assigned(words[at++]));
  const std::string rest = joined(words, at);
  if (!rest.empty()) then(rest);
  return before;
}

// At `; ` and ` && ` outside of quotes; PowerShell 5 has no &&.
std::vector<std::string> commands_of(const std::string& line) {
  std::vector<std::string> out(1);
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && c == ';') {
      out.emplace_back();
      continue;
    } else if (quote == '\0' && line.compare(i, 2, "&&") == 0) {
      out.emplace_back();
      ++i;
      continue;
    }
    out.back() += c;
  }
  return out;
}

}  // namespace

std::optional<std::string> for_windows(const std::string& command) {
  std::string out;
  for (const std::string& part : commands_of(command)) {
    if (part.find(" | ") != std::string::npos) return std::nullopt;  // into grep, in all of them
    const auto one = one_command(part);
    if (!one) continue;
    out += (out.empty() ? "" : "; ") + *one;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::string windows_drivers(std::string text) {
  for (const analysis::WindowsDriverRow& row : analysis::knowledge().windows_drivers) {
    std::size_t at = text.find(row.of_linux);
    while (at != std::string::npos) {
      const std::size_t end = at + row.of_linux.size();
      const bool whole =
          (at == 0 || !part_of_number(text[at - 1])) &&
          (end == text.size() || !part_of_number(text[end]) || (text[end] == '.' && end + 1 == text.size()));
      if (whole) text.replace(at, row.of_linux.size(), row.of_windows);
      at = text.find(row.of_linux, at + row.of_windows.size());
    }
  }
  return text;
}

void translate(analysis::Advice& advice) {
  for (analysis::DeadEnd& end : advice.dead_ends) end.why = windows_drivers(std::move(end.why));
  for (std::string& remark : advice.remarks) remark = windows_drivers(std::move(remark));
  for (analysis::Fix& fix : advice.fixes) {
    for (std::string* text : {&fix.title, &fix.why, &fix.caveat}) *text = windows_drivers(std::move(*text));
    std::vector<std::string> translated;
    for (const std::string& command : fix.commands) {
      if (auto other = for_windows(command)) translated.push_back(std::move(*other));
    }
    fix.commands = std::move(translated);
  }
}

}  // namespace kshim::explain
