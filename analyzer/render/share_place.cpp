// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/share_place.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "analyzer/core/text.h"

namespace kshim::analysis {

FilePlace place_of(const Finding& finding, const SourceRoot& root) {
  const auto has_line = [](const Place& place) { return !place.file.empty() && place.line != 0; };
  const auto in_checkout = [&](const Place& place) {
    return has_line(place) && root.name(place.file).inside;
  };
  auto own = std::find_if(finding.where.begin(), finding.where.end(), in_checkout);
  if (own == finding.where.end()) own = std::find_if(finding.where.begin(), finding.where.end(), has_line);
  if (own != finding.where.end()) return {own->file, own->line, {}};
  if (!finding.object.empty()) return {finding.object, 0, {}};
  const auto proof = std::find_if(finding.evidence.begin(), finding.evidence.end(),
                                  [](const Evidence& evidence) { return !evidence.at.empty(); });
  return proof == finding.evidence.end()
             ? FilePlace{}
             : FilePlace{proof->at.file, static_cast<unsigned>(proof->at.line), {}};
}

std::vector<PlacedFinding> placed(const std::vector<Finding>& findings, const SourceRoot& root,
                                  const std::string& otherwise) {
  std::vector<PlacedFinding> out;
  out.reserve(findings.size());
  for (const Finding& finding : findings) {
    out.push_back({finding, place_of(finding, root)});
    if (out.back().place.file.empty()) out.back().place.file = otherwise;
  }
  return out;
}

std::string harmless_lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (at != 0) out += '\n';
    out += harmless(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string clipped(std::string text, std::size_t bytes) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= bytes || bytes < kMore.size()) return text;
  std::size_t end = bytes - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text.append(kMore);
}

namespace {

namespace fs = std::filesystem;

std::string without_last_slash(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

bool has_dots(std::string_view path) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part == "." || part == "..") return true;
    path.remove_prefix(part.size() == path.size() ? part.size() : part.size() + 1);
  }
  return false;
}

// Lexically: a file of a report may be on another machine.
std::string absolute(std::string_view path, const std::string& working) {
  std::string whole = path.starts_with('/') ? std::string(path) : working + '/' + std::string(path);
  return has_dots(whole) ? fs::path(whole).lexically_normal().string() : whole;
}

std::string getenv_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

SourceRoot::SourceRoot(std::string root, std::vector<std::string> names, std::string working)
    : root_(without_last_slash(std::move(root))), working_(without_last_slash(std::move(working))) {
  if (!root_.starts_with('/')) root_.clear();
  if (root_.empty()) return;
  names_.push_back(root_);
  for (std::string& name : names) {
    name = without_last_slash(std::move(name));
    if (name.starts_with('/')) names_.push_back(std::move(name));
  }
}

SourceRoot SourceRoot::of_process() {
  std::error_code error;
  const std::string working = fs::current_path(error).string();
  std::vector<std::string> names;
  std::string root = getenv_text("GITHUB_WORKSPACE");
  if (root.starts_with('/')) {
    names.push_back(fs::weakly_canonical(root, error).string());
  } else {
    root = working;
    // What the shell calls it.
    const std::string logical = getenv_text("PWD");
    if (logical.starts_with('/') && fs::equivalent(logical, working, error) && !error)
      names.push_back(logical);
  }
  return {std::move(root), std::move(names), working};
}

SourceRoot::Named SourceRoot::name(std::string_view path) const {
  if (path.empty() || (!path.starts_with('/') && working_.empty())) return {std::string(path), false};
  std::string whole = absolute(path, working_);
  for (const std::string& root : names_) {
    if (whole.size() <= root.size() + 1 || !whole.starts_with(root) || whole[root.size()] != '/') continue;
    const std::size_t begin = whole.find_first_not_of('/', root.size());
    if (begin != std::string::npos) return {whole.substr(begin), true};
  }
  return {std::move(whole), false};
}

}  // namespace kshim::analysis
