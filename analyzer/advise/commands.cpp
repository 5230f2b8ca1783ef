// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/commands.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::advise {
namespace {

namespace fs = std::filesystem;

template <class Unfit>
void take_out(std::vector<Fix>& fixes, std::string_view why, Unfit unfit) {
  for (Fix& fix : fixes) {
    if (std::erase_if(fix.commands, unfit) == 0) continue;
    fix.caveat += (fix.caveat.empty() ? "" : "; ") + std::string(why);
  }
}

/// Whether `path` lies below `folder`, both without links and "..".
bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() && rest != path.end();
}

/// The caches of the caller: where a variable of this process's environment says, else where it is by
/// default.
std::vector<fs::path> own_caches(const fs::path& home) {
  std::vector<fs::path> out;
  const auto add = [&](const char* variable, const fs::path& otherwise) {
    const char* value = std::getenv(variable);
    std::error_code error;
    const fs::path folder =
        fs::canonical(value != nullptr && *value == '/' ? fs::path(value) : home / otherwise, error);
    if (!error && is_below(folder, home)) out.push_back(folder);
  };
  for (const CacheRow& row : caches())
    if (!row.fallback.starts_with('/')) add(std::string(row.variable).c_str(), row.fallback);
  add("TORCH_EXTENSIONS_DIR", ".cache/torch_extensions");
  return out;
}

}  // namespace

void keep_printable(std::vector<Fix>& fixes) {
  take_out(fixes, "a command is left out: a name in it has characters that some shells obey",
           [](const std::string& command) { return command.find(kNoShellWord) != std::string::npos; });
}

namespace {
constexpr std::string_view kNamedByAnother =
    "a command is left out: the report is another user's, and the command would hold a name that it gives";
}  // namespace

void keep_free_of_paths(const Report& report, std::vector<Finding>& findings) {
  if (findings.empty()) return;
  std::vector<std::string> paths;
  const auto add = [&](std::string_view list) {
    while (!list.empty()) {
      const fs::path path(list.substr(0, list.find(':')));
      list.remove_prefix(std::min(list.size(), path.native().size() + 1));
      for (const fs::path& each : {path, path.parent_path()})
        if (each.has_parent_path() && each != each.root_path()) paths.push_back(each.string());
    }
  };
  add(report.process.exe);
  add(report.process.cwd);
  for (const std::string& argument : report.process.argv) add(argument);
  for (const auto& [name, value] : report.process.env) add(value);
  for (const ObjectRecord& row : report.objects) add(row.path);
  for (const LibraryRecord& row : report.libraries) add(row.path);
  for (const BypassRecord& row : report.bypasses) add(row.path);
  for (const PackageRecord& row : report.packages) {
    add(row.environment);
    for (const std::string& text : {row.source, row.channel})
      if (!text.empty()) paths.push_back(text);
  }
  for (const FailureRecord& failure : report.failures) {
    for (const NativeFrame& frame : failure.native) add(frame.object);
    for (const PythonFrame& frame : failure.python) add(frame.file);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (Finding& finding : findings)
    take_out(finding.fixes, kNamedByAnother, [&](const std::string& command) {
      return std::any_of(paths.begin(), paths.end(),
                         [&](const std::string& path) { return command.find(path) != std::string::npos; });
    });
}

void keep_free_of(const std::vector<std::string>& strings, std::vector<Fix>& fixes) {
  constexpr std::size_t kShortest = 2;
  std::vector<std::string> words;
  for (const std::string& text : strings) {
    const fs::path path(text);
    for (const std::string& word :
         {text, path.filename().string(), path.stem().string(), path.parent_path().string()})
      if (word.size() >= kShortest) words.push_back(word);
  }
  take_out(fixes, kNamedByAnother, [&](const std::string& command) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return command.find(word) != std::string::npos; });
  });
}

std::string removable_cache_entry(std::string_view path) {
  const char* variable = std::getenv("HOME");
  std::error_code error;
  if (variable == nullptr || *variable != '/' || !path.starts_with('/') ||
      path.find('\0') != std::string_view::npos)
    return {};
  const fs::path home = fs::canonical(variable, error);
  if (error || home == home.root_path()) return {};
  const fs::path real = fs::canonical(path, error);
  struct stat info {};
  if (error || ::lstat(real.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  const std::vector<fs::path> folders = own_caches(home);
  const bool inside = std::any_of(folders.begin(), folders.end(),
                                  [&](const fs::path& folder) { return is_below(real, folder); });
  return inside ? real.string() : std::string();
}

namespace {

struct Word {
  std::string_view written;
  bool of_conda = false;
};
// Longer ones first.
constexpr std::array<Word, 6> kWords = {{{"python -m pip install ", false},
                                         {"python -m pip uninstall ", false},
                                         {"pip install ", false},
                                         {"pip uninstall ", false},
                                         {"conda install ", true},
                                         {"conda update ", true}}};

std::string_view verb_of(std::string_view word) {
  word.remove_suffix(1);
  return word.substr(word.rfind(' ') + 1);
}

std::string written_for(const Word& word, const PythonEnvironment& python) {
  const std::string_view verb = verb_of(word.written);
  if (word.of_conda)
    return python.conda ? fmt::format("conda {} --prefix {} ", verb, shell_quote(python.prefix))
                        : std::string(word.written);
  if (!python.has_pip) return fmt::format("uv pip {} --python {} ", verb, shell_quote(python.prefix));
  return fmt::format("{} -m pip {} ", shell_quote(python.interpreter), verb);
}

}  // namespace

std::string for_interpreter(std::string_view command, const PythonEnvironment& python) {
  std::string out;
  if (!python.known()) return std::string(command);
  for (bool begins_word = true; !command.empty();) {
    const Word* found = nullptr;
    for (const Word& word : kWords) {
      if (found == nullptr && begins_word && command.starts_with(word.written)) found = &word;
    }
    if (found != nullptr) {
      const bool names_prefix = command.substr(found->written.size()).starts_with("-p ");
      out += names_prefix ? std::string(found->written) : written_for(*found, python);
      command.remove_prefix(found->written.size());
      continue;
    }
    begins_word = command.front() == ' ' || command.front() == '(';
    out += command.front();
    command.remove_prefix(1);
  }
  return out;
}

void for_interpreter(std::vector<Fix>& fixes, const PythonEnvironment& python) {
  for (Fix& fix : fixes) {
    for (std::string& command : fix.commands) command = for_interpreter(command, python);
  }
}

namespace {

// The words, with quotes taken as sh takes them and written as both shells of Windows do; none where they
// cannot be.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> out;
  std::string word;
  bool any = false;
  char quote = '\0';
  for (const char c : command) {
    if (quote != '\0') {
      if (quote == '\'' && c == '"') return {};  // no spelling that both shells read back
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

// Where NVIDIA's installer puts a toolkit there, lists with semicolons, variables as PowerShell has them. A
// program of its own to start has an & before it.
std::string with_windows_paths(std::string word, bool starts) {
  constexpr std::string_view kToolkit = "/usr/local/cuda";
  bool any = false;
  for (std::size_t at = word.find(kToolkit); at != std::string::npos; at = word.find(kToolkit, at)) {
    any = true;
    std::size_t end = at + kToolkit.size();
    std::string folder = "$env:CUDA_PATH";
    if (end < word.size() && word[end] == '-') {
      const std::size_t behind = std::min(word.find_first_not_of("0123456789.", end + 1), word.size());
      folder =
          R"(C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v)" + word.substr(end + 1, behind - end - 1);
      end = behind;
    }
    for (; end < word.size() && word[end] != ':' && word[end] != '"'; ++end)
      folder += word[end] == '/' ? '\\' : word[end];
    if (end < word.size() && word[end] == ':') word[end] = ';';
    word.replace(at, end - at, folder);
    at += folder.size();
  }
  if (!any) return word;
  std::erase(word, '"');
  if (const std::size_t path = word.find("$PATH"); path != std::string::npos) word.insert(path + 1, "env:");
  return (starts ? "& \"" : "\"") + word + '"';
}

std::string assigned(std::string_view word) {
  const std::size_t mark = word.find('=');
  std::string value = with_windows_paths(std::string(word.substr(mark + 1)), false);
  if (!value.starts_with('"')) value = '"' + value + '"';
  return "$env:" + std::string(word.substr(0, mark)) + " = " + value;
}

std::string joined(const std::vector<std::string>& words, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < words.size(); ++i) {
    if (!out.empty()) out += ' ';
    out += with_windows_paths(words[i], i == from);
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
    return word.ends_with(".sh") || word.starts_with("/proc/") || word.starts_with("/dev/") ||
           word.find("$(") != std::string::npos || word.find("LD_LIBRARY_PATH") != std::string::npos ||
           word.find("$CUDA") != std::string::npos || word.starts_with("~/");
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
    // A folder of Linux helps nobody there.
    if (!one || one->find("/usr/") != std::string::npos || one->find("/opt/") != std::string::npos) continue;
    out += (out.empty() ? "" : "; ") + *one;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

namespace {

// A program that brings its own Python installs by that one.
std::string for_own_python(std::string command, const std::string& interpreter) {
  if (interpreter.empty()) return command;
  if (command.starts_with("pip ")) return interpreter + " -m " + command;
  if (command.starts_with("python ")) return interpreter + command.substr(command.find(' '));
  return command;
}

}  // namespace

void translate(const AdviceInput& at, Advice& advice) {
  // A program of Windows runs in no container of Linux.
  if (at.message.find("docker") == std::string::npos && at.message.find("container") == std::string::npos)
    std::erase_if(advice.fixes, [](const Fix& fix) {
      return !fix.commands.empty() && fix.commands.front().starts_with("docker run");
    });
  for (Fix& fix : advice.fixes) {
    std::vector<std::string> translated;
    for (const std::string& command : fix.commands) {
      if (auto other = for_windows(command))
        translated.push_back(for_own_python(std::move(*other), at.interpreter));
    }
    fix.commands = std::move(translated);
  }
}

}  // namespace kshim::advise
