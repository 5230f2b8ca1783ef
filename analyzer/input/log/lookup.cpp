// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/lookup.h"

#include <re2/re2.h>

#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::input {
namespace {

constexpr int kLastCode = 1000;

std::string folded(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    if (letter != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return out;
}

// "a  b / c" as "a b c".
std::string words_alone(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (core::is_alnum(letter))
      out += core::to_lower(letter);
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// "CUDA_ERROR_ILLEGAL_ADDRESS" and "cudaErrorIllegalAddress" as "illegal address".
std::string spelled_out(std::string_view name) {
  for (const std::string_view mark : {"CUDA_ERROR_", "cudaError", "ERROR_"})
    if (name.starts_with(mark)) name.remove_prefix(mark.size());
  std::string out;
  for (const char letter : name) {
    const bool begins =
        !out.empty() && core::to_lower(letter) != letter && core::to_lower(out.back()) == out.back();
    if (begins && name.find('_') == std::string_view::npos) out += ' ';
    out += letter;
  }
  return words_alone(out);
}

/// Calls visit(error) for every error of CUDA's.
template <class Visit>
void each_error(Visit&& visit) {
  for (int code = 0; code < kLastCode; ++code)
    if (const CudaError* error = find_cuda_error(code)) visit(*error);
}

/// Calls visit(error, name) for each name that a header has, "success" left out.
template <class Visit>
void each_name(Visit&& visit) {
  each_error([&](const CudaError& error) {
    for (const char* name : {error.driver_name, error.runtime_name})
      if (name != nullptr && error.code != 0) visit(error, name);
  });
}

using Messages = std::vector<std::pair<std::string, int>>;

// Of the errors with this trait. Longest texts first: an alternation takes the first that fits.
Messages messages_with(unsigned trait) {
  Messages out;
  each_error([&](const CudaError& error) {
    if (error.code == 0 || (error.traits & trait) != trait) return;
    std::string text = folded(error.message);
    while (!text.empty() && text.back() == '.') text.pop_back();
    out.emplace_back(std::move(text), error.code);
  });
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return out;
}

// Those that are about CUDA wherever they stand.
const Messages& messages() {
  static const Messages kMessages = messages_with(code_trait::says_cuda);
  return kMessages;
}

std::string pattern_of(const Messages& texts) {
  std::string out;
  for (const auto& [text, code] : texts) {
    if (!out.empty()) out += '|';
    bool gap = false;
    for (const char letter : text) {
      if (!core::is_alnum(letter)) {
        gap = true;
        continue;
      }
      if (std::exchange(gap, false)) out += R"([\W_]{1,5})";
      out += letter;
    }
  }
  return out;
}

struct Near {
  std::string name;
  int code = 0;
  std::size_t distance = 0;
};

std::vector<Near> near_names(std::string_view name) {
  constexpr std::size_t kMaxLength = 80;
  const std::string key = folded(name.substr(0, kMaxLength));
  const std::size_t limit = key.size() / 4;
  std::vector<Near> out;
  each_name([&](const CudaError& error, const char* known) {
    const std::size_t far = core::edit_distance(key, folded(known), limit);
    if (far <= limit) out.push_back({known, error.code, far});
  });
  std::stable_sort(out.begin(), out.end(),
                   [](const Near& a, const Near& b) { return a.distance < b.distance; });
  return out;
}

// Long enough that nobody writes it by chance, and of one error only.
NamedError find_by_beginning(std::string_view key) {
  constexpr std::size_t kShortest = 14;
  NamedError out;
  bool several = false;
  each_name([&](const CudaError& error, const char* known) {
    if (key.size() < kShortest || !folded(known).starts_with(key)) return;
    several = several || (out.error != nullptr && out.error != &error);
    if (out.error == nullptr) out = {&error, known, true};
  });
  return several ? NamedError() : out;
}

std::string header_name(const CudaError& error) {
  return error.runtime_name != nullptr ? error.runtime_name : error.driver_name;
}

}  // namespace

const OldCode* find_old_code(int number) {
  for (const OldCode& row : data::old_codes())
    if (row.old == number) return &row;
  return nullptr;
}

// "error code 209", "#209", "CUDA failure 46": a number, and words that only say that it is one of an error.
std::optional<int> bare_number(std::string_view text) {
  static const RE2 kBare(
      R"([\s#("'\[:]*(?:(?:cuda|driver|runtime|api|the|got|an?|with)\W+)*(?:(?:error|err|errno|failure|status|result|return(?:ed)?|code|number|no\.?)\W*)*#?\s*\(?(\d{1,3}|0x[0-9a-f]{1,3})\W*)",
      [] {
        RE2::Options options;
        options.set_case_sensitive(false);
        options.set_encoding(RE2::Options::EncodingLatin1);
        return options;
      }());
  std::string number;
  constexpr std::size_t kMaxLength = 60;
  if (text.size() > kMaxLength || !RE2::FullMatch({text.data(), text.size()}, kBare, &number))
    return std::nullopt;
  return parse_number(number);
}

std::optional<int> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

NamedError find_by_name(std::string_view name) {
  const std::string key = folded(name);
  const auto is = [&](const char* known) { return known != nullptr && name == known; };
  for (int code = 0; code < kLastCode; ++code) {
    const CudaError* error = find_cuda_error(code);
    if (error == nullptr) continue;
    for (const char* known : {error->driver_name, error->runtime_name}) {
      if (known != nullptr && folded(known) == key)
        return {error, is(error->driver_name) || is(error->runtime_name) ? "" : known, false};
    }
  }
  for (const data::ErrorNameRow& other : data::error_names()) {
    if (folded(other.name) != key) continue;
    const CudaError* error = find_cuda_error(other.code);
    return {error, header_name(*error), false};
  }
  // The beginning of one error's name, and of no other's: CUDA_ERROR_NO_BINARY.
  if (const NamedError begun = find_by_beginning(key); begun.error != nullptr) return begun;
  const bool like_one = key.starts_with("cuda") || key.starts_with("error");
  const std::vector<Near> near = like_one ? near_names(name) : std::vector<Near>();
  // Two names at the same distance would be a toss of a coin.
  const bool clear = !near.empty() && near.front().distance <= 4 &&
                     std::all_of(near.begin() + 1, near.end(), [&](const Near& other) {
                       return other.code == near.front().code || other.distance > near.front().distance;
                     });
  if (!clear) return {};
  return {find_cuda_error(near.front().code), near.front().name, true};
}

// Words alone: programs print other blanks, and leave punctuation out.
std::string message_pattern() { return pattern_of(messages()); }

std::string every_message_pattern() { return pattern_of(messages_with(0)); }

const CudaError* find_by_message(std::string_view text) {
  const std::string key = words_alone(text);
  for (const auto& [message, code] : messages())
    if (key.find(words_alone(message)) != std::string::npos) return find_cuda_error(code);
  return nullptr;
}

const CudaError* find_whole_message(std::string_view text) {
  const std::string key = words_alone(text);
  const CudaError* best = nullptr;
  std::size_t longest = 0;
  const auto take = [&](const CudaError& error, const std::string& message) {
    if (error.code == 0 || message.size() <= longest || !key.starts_with(message)) return;
    best = &error;
    longest = message.size();
  };
  each_error([&](const CudaError& error) { take(error, words_alone(error.message)); });
  // "Illegal address", "Invalid value": the name of an error, spelled out. One word alone says too little.
  const auto take_name = [&](const CudaError& error, std::string_view name) {
    const std::string words = spelled_out(name);
    const bool whole = key.size() == words.size() || (key.starts_with(words) && key[words.size()] == ' ');
    if (whole && words.find(' ') != std::string::npos) take(error, words);
  };
  each_name(take_name);
  for (const data::ErrorNameRow& other : data::error_names())
    take_name(*find_cuda_error(other.code), other.name);
  return best;
}

std::vector<std::string> nearest_names(std::string_view name, std::size_t most) {
  std::vector<std::string> out;
  for (const Near& near : near_names(name)) {
    if (out.size() >= most) break;
    if (std::find(out.begin(), out.end(), near.name) == out.end()) out.push_back(near.name);
  }
  return out;
}

}  // namespace kshim::input
