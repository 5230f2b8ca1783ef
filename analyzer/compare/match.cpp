// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/match.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "analyzer/core/text.h"

namespace kshim::diff {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' ? '-' : c;
  return out;
}

std::string whole_path(const Object& object) { return object.place + "!" + object.member; }

/// The path inside a distribution: a wheel's member, or what follows site-packages.
std::string inner_path(const Object& object) {
  if (!object.member.empty()) return distribution(analysis::basename_of(object.place)) + "!" + object.member;
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = object.place.rfind(folder);
    if (at != std::string::npos) return object.place.substr(at + folder.size());
  }
  return {};
}

std::string file_of(const Object& object) {
  return std::string(analysis::basename_of(object.member.empty() ? object.place : object.member));
}

std::string in_package(const Object& object) {
  return object.package.empty() ? std::string() : lower(object.package) + "!" + stem(file_of(object));
}

struct Key {
  const char* name;
  std::function<std::string(const Object&)> of;  ///< empty: this object has none
  bool repeated;                                 ///< objects of one key are paired in their order
};

const std::vector<Key>& keys() {
  static const std::vector<Key> kKeys = {
      {"path", whole_path, true},
      {"package", inner_path, true},
      {"path", [](const Object& object) { return object.member; }, false},
      {"package", in_package, false},
      {"name", file_of, false},
      {"name", [](const Object& object) { return stem(file_of(object)); }, false},
      {"build-id", [](const Object& object) { return object.build_id; }, false}};
  return kKeys;
}

using Places = std::unordered_map<std::string, std::vector<std::size_t>>;

Places places_of(const std::vector<Object>& objects, const std::vector<bool>& taken, const Key& key) {
  Places out;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (taken[i]) continue;
    if (std::string text = key.of(objects[i]); !text.empty()) out[std::move(text)].push_back(i);
  }
  return out;
}

}  // namespace

std::string stem(std::string_view file) {
  std::string name(file);
  const std::size_t so = name.find(".so");
  const bool library = so != std::string::npos && (so + 3 == name.size() || name[so + 3] == '.');
  const std::string end = library ? ".so" : std::string();
  if (library) name.resize(so);
  // cpython-311-x86_64-linux-gnu, abi3
  for (const std::string_view tag : {".cpython-", ".abi3", ".pypy"}) {
    const std::size_t at = name.find(tag);
    if (at != std::string::npos && at != 0) name.resize(at);
  }
  // What auditwheel adds: 8 digits of a hash.
  constexpr std::size_t kHash = 8;
  const std::size_t dash = name.rfind('-');
  if (dash != std::string::npos && dash != 0 && name.size() - dash - 1 == kHash &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dash) + 1, name.end(), is_hex))
    name.resize(dash);
  return name + end;
}

std::string distribution(std::string_view archive) {
  // PEP 427: name-version(-build)?-python-abi-platform.whl
  std::size_t end = archive.find('-');
  while (end != std::string_view::npos && (end + 1 == archive.size() || !is_digit(archive[end + 1])))
    end = archive.find('-', end + 1);
  return lower(archive.substr(0, end));
}

std::vector<Pair> match(const std::vector<Object>& a, const std::vector<Object>& b, bool named) {
  std::vector<Pair> pairs(a.size());
  std::vector<bool> taken_a(a.size());
  std::vector<bool> taken_b(b.size());
  const auto pair_up = [&](std::size_t i, std::size_t k, const char* how) {
    pairs[i] = {&a[i], &b[k], how};
    taken_a[i] = taken_b[k] = true;
  };
  if (named && a.size() == 1 && b.size() == 1)
    pair_up(0, 0, stem(file_of(a[0])) == stem(file_of(b[0])) ? "name" : "path");
  for (const Key& key : keys()) {
    const Places in_a = places_of(a, taken_a, key);
    const Places in_b = places_of(b, taken_b, key);
    for (const auto& [text, ours] : in_a) {
      const auto found = in_b.find(text);
      if (found == in_b.end()) continue;
      const auto& theirs = found->second;
      if (!key.repeated && (ours.size() != 1 || theirs.size() != 1)) continue;
      for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        pair_up(ours[i], theirs[i], key.name);
    }
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!taken_a[i]) pairs[i].a = &a[i];
  }
  for (std::size_t k = 0; k < b.size(); ++k) {
    if (!taken_b[k]) pairs.push_back({nullptr, &b[k], ""});
  }
  return pairs;
}

}  // namespace kshim::diff
