// SPDX-License-Identifier: Apache-2.0
// Layout: packaging.python.org, "Recording the Direct URL Origin of installed distributions" and "Direct URL
// Data Structure".
#include "analyzer/owner/direct_url.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "analyzer/owner/bounded.h"

namespace kshim::packages {
namespace {

constexpr std::string_view kFile = "file://";
constexpr std::string_view kControls[] = {"git", "hg", "svn", "bzr"};
constexpr std::string_view kSchemes[] = {"https://", "http://", "ssh://", "git://"};

using simdjson::dom::element;

std::string text_of(element of, std::string_view key) {
  std::string_view text;
  return of[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

// "%20" is a blank; nullopt where a percent sign has no two digits behind it.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* const digits = text.data() + i + 1;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

// Of file:///src/x and file://localhost/src/x.
std::string folder_of_url(std::string_view url) {
  if (!url.starts_with(kFile)) return {};
  url.remove_prefix(kFile.size());
  if (url.starts_with("localhost/")) url.remove_prefix(std::string_view("localhost").size());
  const auto path = unescaped(url);
  return path ? folder_of_source(*path) : std::string();
}

bool only_has(std::string_view text, std::string_view marks) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || marks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string address_of_repository(std::string_view url) {
  if (url.starts_with(kFile) && only_has(url, "-._~/+:") && !folder_of_url(url).empty())
    return std::string(url);
  const auto* scheme = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                    [&](std::string_view each) { return url.starts_with(each); });
  if (scheme == std::end(kSchemes) || !only_has(url, "-._~:/@%+")) return {};
  std::string_view rest = url.substr(scheme->size());
  std::string_view host = rest.substr(0, rest.find('/'));
  rest.remove_prefix(host.size());
  const std::size_t user = host.rfind('@');
  // The user of ssh://git@host is no secret, and without it nobody gets in.
  const bool keep = *scheme == "ssh://" && user != std::string_view::npos && host.find(':') > user;
  if (user != std::string_view::npos && !keep) host.remove_prefix(user + 1);
  if (host.empty() || rest.size() < 2) return {};
  return std::string(*scheme) + std::string(host) + std::string(rest);
}

std::string repository(element root, element control) {
  const std::string kind = text_of(control, "vcs");
  const std::string address = address_of_repository(text_of(root, "url"));
  const std::string commit = text_of(control, "commit_id");
  const std::string folder = text_of(root, "subdirectory");
  const bool known = std::find(std::begin(kControls), std::end(kControls), kind) != std::end(kControls);
  if (!known || address.empty() || commit.empty() || !only_has(commit, "-._:@") || !only_has(folder, "-._/"))
    return {};
  return kind + "+" + address + "@" + commit + (folder.empty() ? "" : "#subdirectory=" + folder);
}

}  // namespace

std::string source_of_direct_url(std::string_view json) {
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return {};
  element info;
  if (root["vcs_info"].get(info) == simdjson::SUCCESS) return repository(root, info);
  if (root["dir_info"].get(info) != simdjson::SUCCESS) return {};
  std::string folder = folder_of_url(text_of(root, "url"));
  if (const std::string below = text_of(root, "subdirectory"); !below.empty() && !folder.empty())
    folder = normal_path(folder + "/" + below);
  if (folder.empty()) return {};
  bool editable = false;
  if (info["editable"].get(editable) != simdjson::SUCCESS) editable = false;
  return (editable ? std::string(kEditable) : std::string()) + folder;
}

bool is_source(std::string_view text) {
  if (!folder_of_source(text).empty()) return true;
  const std::size_t plus = text.find('+');
  const std::size_t commit = text.rfind('@');
  if (plus == std::string_view::npos || commit == std::string_view::npos || commit < plus) return false;
  const std::string_view kind = text.substr(0, plus);
  const std::string_view address = text.substr(plus + 1, commit - plus - 1);
  return std::find(std::begin(kControls), std::end(kControls), kind) != std::end(kControls) &&
         address_of_repository(address) == address && only_has(text.substr(commit + 1), "-._:/#=");
}

std::string folder_of_source(std::string_view source) {
  if (source.starts_with(kEditable)) source.remove_prefix(kEditable.size());
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (!source.starts_with('/') || std::any_of(source.begin(), source.end(), control)) return {};
  std::string out = normal_path(source);
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

}  // namespace kshim::packages
