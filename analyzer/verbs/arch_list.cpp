// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "analyzer/verbs/expect.h"
#include "kshim/image/compute_capability.h"

namespace kshim::verbs {
namespace {

using image::Arch;
using image::ImageKind;
using image::Suffix;

constexpr std::size_t kMaxFileLength = 64U << 10;

std::string ticked(std::string_view text) { return fmt::format("`{}`", core::sanitize(text)); }

/// Cuts `tail` off the end.
bool take_end(std::string_view& text, std::string_view tail) {
  if (!text.ends_with(tail)) return false;
  text.remove_suffix(tail.size());
  return true;
}

class Parser {
 public:
  Parser(std::string_view text, const TextOrigin& origin) : text_(text), origin_(origin) {}

  ArchList list() && {
    for (next_word(); !word_.empty(); next_word()) take(word_);
    if (!code_) out_.insert(shorthand_.begin(), shorthand_.end());
    if (out_.empty())
      refuse(origin_, "names no architecture; give one such as 9.0, 90-real, sm_90 or compute_90");
    return {out_.begin(), out_.end()};
  }
  Arch one() && {
    next_word();
    const Arch arch = parse(word_);
    next_word();
    if (!word_.empty()) refuse(here(word_), "more than one architecture stands here");
    return arch;
  }

 private:
  TextOrigin here(std::string_view part) const {
    TextOrigin at = origin_;
    for (const char c : text_.substr(0, static_cast<std::size_t>(part.data() - text_.data()))) {
      ++at.column;
      if (c == '\n' && at.line != 0) ++at.line, at.column = 1;
    }
    return at;
  }

  // What blanks, `;` and, but in nvcc's options, commas set apart.
  void next_word() {
    constexpr std::string_view kBlank = " \t\r\n;,";
    at_ = std::min(text_.find_first_not_of(kBlank, at_), text_.size());
    const bool option = text_.substr(at_).starts_with('-') || text_.substr(at_).starts_with("arch=") ||
                        text_.substr(at_).starts_with("code=");
    std::size_t end = std::min(text_.find_first_of(option ? kBlank.substr(0, 5) : kBlank, at_), text_.size());
    // Blanks inside of code=[sm_80, compute_80]
    const std::size_t open = text_.substr(at_, end - at_).find('[');
    if (option && open != std::string_view::npos)
      end = std::min(text_.find(']', at_ + open), text_.size() - 1) + 1;
    word_ = text_.substr(at_, end - at_);
    at_ = end;
  }

  // The value of an option, behind `=` or in the next word; nullopt for another option.
  std::optional<std::string_view> value_of(std::string_view word, std::string_view name) {
    if (!word.starts_with(name)) return std::nullopt;
    word.remove_prefix(name.size());
    if (word.starts_with('=')) return word.substr(1);
    if (!word.empty()) return std::nullopt;
    const std::string_view option = word_;
    next_word();
    if (word_.empty() || word_.starts_with('-'))
      refuse(here(option), fmt::format("{} has no value", ticked(option)));
    return word_;
  }

  void take(std::string_view word) {
    if (!word.starts_with('-') && !word.starts_with("arch=") && !word.starts_with("code="))
      return take_item(word);
    for (const std::string_view name : {"-gencode", "--generate-code"})
      if (const auto value = value_of(word, name)) return take_gencode(*value);
    for (const std::string_view name : {"-arch", "--gpu-architecture"})
      if (const auto value = value_of(word, name)) return take_shorthand(*value);
    for (const std::string_view name : {"-code", "--gpu-code"})
      if (const auto value = value_of(word, name)) return take_code(*value);
    if (word.starts_with("arch=") || word.starts_with("code=")) return take_gencode(word);
    refuse(here(word),
           fmt::format("{} is no option of nvcc's that names architectures; -gencode, -arch and -code are",
                       ticked(word)));
  }

  // What -arch makes where no -code says otherwise: of sm_90 both, of compute_90 PTX.
  void take_shorthand(std::string_view value) {
    const Arch arch = parse(value);
    shorthand_.insert({ImageKind::ptx, arch});
    if (!value.starts_with("compute_")) shorthand_.insert({ImageKind::cubin, arch});
  }

  void take_gencode(std::string_view value) {
    const std::size_t at = value.find("code=");
    if (at == std::string_view::npos)
      refuse(here(value), fmt::format("{} says no code=; write arch=compute_80,code=sm_80", ticked(value)));
    take_code(value.substr(at + 5));
  }

  void take_code(std::string_view value) {
    code_ = true;
    while (!value.empty()) {
      const std::size_t begin = value.find_first_not_of("[]\"'\\, ");
      if (begin == std::string_view::npos) return;
      value.remove_prefix(begin);
      const std::string_view name = value.substr(0, value.find_first_of("[]\"'\\, "));
      value.remove_prefix(name.size());
      if (!name.starts_with("sm_") && !name.starts_with("compute_") && !name.starts_with("lto_"))
        refuse(here(name),
               fmt::format("{} is no code= of nvcc's; write sm_80, compute_80 or lto_80", ticked(name)));
      take_item(name);
    }
  }

  void take_item(const std::string_view item) {
    std::string_view rest = item;
    if (take_end(rest, "-real")) return add(ImageKind::cubin, parse(rest, item));
    if (take_end(rest, "-virtual")) return add(ImageKind::ptx, parse(rest, item));
    if (take_end(rest, "+PTX") || take_end(rest, "+ptx")) return add_both(parse(rest, item));
    const Arch arch = parse(item);
    if (item.starts_with("compute_")) return add(ImageKind::ptx, arch);
    if (item.starts_with("lto_")) return add(ImageKind::ltoir, arch);
    if (item.starts_with("sm") || core::contains(item, '.')) return add(ImageKind::cubin, arch);
    add_both(arch);
  }

  Arch parse(std::string_view text) { return parse(text, text); }
  Arch parse(std::string_view text, std::string_view item) {
    for (const std::string_view word : {"all", "all-major", "native", "common", "off"})
      if (core::to_lower(item) == word)
        refuse(here(item), fmt::format("{} is another list with each compiler and machine: a file cannot be "
                                       "held to it; name the architectures",
                                       ticked(item)));
    const auto arch = image::parse_arch(text);
    if (!arch)
      refuse(here(item), fmt::format("{} is no architecture; write 9.0a, 12.0+PTX, 90a-real, 121-virtual, "
                                     "sm_90a, compute_120 or -gencode "
                                     "arch=compute_90a,code=sm_90a",
                                     ticked(item)));
    if (image::find_compute_capability(arch->cc) == nullptr)
      refuse(here(item),
             fmt::format("{}: kshim knows no GPU of {} (`kshim scan --list-gpus`; newer tables: --knowledge)",
                         ticked(item), image::to_name(arch->cc).view()));
    const unsigned first = arch->suffix == Suffix::f ? 100 : 90;
    if (arch->suffix != Suffix::none && arch->cc.number() < first)
      refuse(here(item),
             fmt::format("{}: there is no such target; the suffix {} begins with {}", ticked(item),
                         arch->suffix == Suffix::f ? 'f' : 'a', first == 100 ? "10.0" : "9.0"));
    return *arch;
  }

  void add(ImageKind kind, Arch arch) { out_.insert({kind, arch}); }
  void add_both(Arch arch) { add(ImageKind::cubin, arch), add(ImageKind::ptx, arch); }

  std::string_view text_;
  TextOrigin origin_;
  std::size_t at_ = 0;
  std::string_view word_;
  std::set<Entry> out_;
  std::set<Entry> shorthand_;
  bool code_ = false;  ///< something said code=
};

std::string content_of(const std::string& path, const TextOrigin& origin) {
  std::string text = files::read_whole(path, kMaxFileLength).value_or("");
  if (text.empty())
    refuse(origin, fmt::format("{} is empty, longer than 64 KiB, or cannot be read", ticked(path)));
  for (std::size_t at = 0; (at = text.find('#', at)) != std::string::npos;)
    for (; at < text.size() && text[at] != '\n'; ++at) text[at] = ' ';
  return text;
}

}  // namespace

std::string TextOrigin::text() const {
  return line != 0     ? fmt::format("{}:{}:{}", name, line, column)
         : column == 1 ? name
                       : fmt::format("{}, character {}", name, column);
}

void refuse(const TextOrigin& at, std::string_view what) {
  throw core::UserError(fmt::format("{}: {}", at.text(), what));
}

ArchList parse_arch_list(std::string_view text, const TextOrigin& origin) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  if (text.substr(begin).starts_with('@')) {
    const std::string path(text.substr(begin + 1));
    const std::string content = content_of(path, origin);
    return Parser(content, {path, 1, 1}).list();
  }
  if (text.substr(begin).starts_with('$')) {
    std::string name(text.substr(begin + 1));
    std::erase_if(name, [](char c) { return c == '{' || c == '}'; });
    // A message shows what it could not read: no variable that may hold a secret is one.
    if (!core::contains(name, "CUDA") || !core::contains(name, "ARCH"))
      refuse(origin,
             fmt::format("{}: only variables with CUDA and ARCH in their names are read, such as $CUDAARCHS",
                         ticked(name)));
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0')
      refuse(origin, fmt::format("the variable {} is not set", ticked(name)));
    return Parser(value, {"$" + name}).list();
  }
  return Parser(text, origin).list();
}

image::ComputeCapability parse_gpu(std::string_view text, const TextOrigin& origin) {
  return Parser(text, origin).one().cc;
}

std::string name_of(const Entry& entry) { return name(entry.kind, entry.arch); }

std::vector<std::string> names_of(const ArchList& list) {
  std::vector<std::string> out;
  // Cubins first, as everywhere.
  for (const bool cubins : {true, false})
    for (const Entry& entry : list)
      if ((entry.kind == ImageKind::cubin) == cubins) out.push_back(name_of(entry));
  return out;
}

std::string to_text(const ArchList& list) {
  const auto has = [&](ImageKind kind, Arch arch) {
    return std::ranges::binary_search(list, Entry{kind, arch});
  };
  const bool torch = std::ranges::all_of(list, [&](const Entry& entry) {
    return entry.kind == ImageKind::cubin ||
           (entry.kind == ImageKind::ptx && has(ImageKind::cubin, entry.arch));
  });
  if (!torch) return core::join(names_of(list), " ");
  std::string out;
  for (const Entry& entry : list) {
    if (entry.kind != ImageKind::cubin) continue;
    constexpr std::string_view kSuffixes[] = {"", "a", "f"};
    out += fmt::format("{}{}{}{}", out.empty() ? "" : " ", name(entry.arch.cc),
                       kSuffixes[static_cast<std::size_t>(entry.arch.suffix)],
                       has(ImageKind::ptx, entry.arch) ? "+PTX" : "");
  }
  return out;
}

}  // namespace kshim::verbs
