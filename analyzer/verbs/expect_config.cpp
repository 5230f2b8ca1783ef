// SPDX-License-Identifier: Apache-2.0
// [tool.kshim] and kshim.toml.
#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "analyzer/core/text.h"
#include "analyzer/verbs/expect.h"

namespace kshim::verbs {
using core::sanitize;

namespace {

constexpr std::size_t kMaxConfigLength = 1U << 20;

class Config {
 public:
  explicit Config(std::string path) : path_(std::move(path)) {}

  Expectation read(const toml::table& table) {
    out_.all.source =
        fmt::format("{}:{}", path_, std::max(1U, static_cast<unsigned>(table.source().begin.line)));
    each(table, {"expect", "exactly", "form", "ptx-floor", "budget", "files"},
         [&](std::string_view key, const toml::node& value) {
           if (key == "budget") return read_budget(value);
           if (key == "files") return read_rules(value);
           read_key(key, value, out_.all);
         });
    for (Rule& rule : out_.files) {
      if (!rule.exactly) rule.exactly = out_.all.exactly;
      if (!rule.form) rule.form = out_.all.form;
    }
    return std::move(out_);
  }

  template <class Visit>
  void each(const toml::table& table, std::initializer_list<std::string_view> keys, Visit&& visit) {
    for (const auto& [key, value] : table) {
      if (!core::contains(keys, key.str())) {
        const std::string near = core::nearest(key.str(), {keys.begin(), keys.end()});
        refuse(at(key.source()), fmt::format("`{}` is no key of kshim's; {}", sanitize(key.str()),
                                             near.empty() ? fmt::format("there are {}", fmt::join(keys, ", "))
                                                          : fmt::format("did you mean `{}`?", near)));
      }
      visit(key.str(), value);
    }
  }

 private:
  TextOrigin at(const toml::source_region& region, unsigned skip = 0) const {
    return {path_, static_cast<unsigned>(region.begin.line),
            static_cast<unsigned>(region.begin.column) + skip};
  }
  TextOrigin at(const toml::node& node, unsigned skip = 0) const { return at(node.source(), skip); }

  std::string text_of(std::string_view key, const toml::node& value) const {
    const auto text = value.value_exact<std::string>();
    if (!text) refuse(at(value), fmt::format("`{}` is a text: write it in quotes", key));
    return *text;
  }
  bool flag_of(std::string_view key, const toml::node& value) const {
    const auto flag = value.value_exact<bool>();
    if (!flag) refuse(at(value), fmt::format("`{}` is true or false", key));
    return *flag;
  }

  ArchList list_of(std::string_view key, const toml::node& value) const {
    const toml::array* array = value.as_array();
    if (array == nullptr && text_of(key, value).starts_with('@')) {
      const std::filesystem::path file = text_of(key, value).substr(1);
      // A message shows what of the list it could not read.
      std::filesystem::path part;
      std::error_code error;
      for (const auto& name : file) {
        part /= name;
        if (file.is_absolute() || name == ".." || std::filesystem::is_symlink(part, error))
          refuse(at(value), "a list that a configuration names lies in its folder or below, behind no link");
      }
    }
    if (array == nullptr) return parse_arch_list(text_of(key, value), at(value, 1));
    ArchList out;
    for (const toml::node& item : *array) {
      const ArchList more = list_of(key, item);
      out.insert(out.end(), more.begin(), more.end());
    }
    if (out.empty()) refuse(at(value), "names no architecture");
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void read_key(std::string_view key, const toml::node& value, Rule& rule) const {
    if (key == "expect") {
      rule.list = list_of(key, value);
      rule.source = fmt::format("{}:{}", path_, static_cast<unsigned>(value.source().begin.line));
    } else if (key == "exactly") {
      rule.exactly = flag_of(key, value);
    } else if (key == "ptx-floor") {
      rule.ptx_floor = parse_gpu(text_of(key, value), at(value, 1));
    } else {
      const std::string text = text_of(key, value);
      rule.form = text == "sass" ? Form::sass : text == "ptx" ? Form::ptx : Form::either;
      if (text != "sass" && text != "ptx" && text != "either")
        refuse(at(value), "form is \"sass\", \"ptx\" or \"either\"");
    }
  }

  void read_rules(const toml::node& value) {
    const toml::array* rules = value.as_array();
    if (rules == nullptr)
      refuse(at(value),
             "files are written as [[tool.kshim.files]] (in kshim.toml [[files]]), each with a pattern");
    for (const toml::node& node : *rules) {
      const toml::table* table = node.as_table();
      if (table == nullptr) refuse(at(node), "each of files is a table with a pattern");
      Rule rule;
      rule.source = fmt::format("{}:{}", path_, static_cast<unsigned>(node.source().begin.line));
      each(*table, {"pattern", "expect", "exactly", "form", "ptx-floor", "reason", "skip"},
           [&](std::string_view key, const toml::node& entry) {
             if (key == "pattern")
               rule.pattern = text_of(key, entry);
             else if (key == "reason")
               rule.reason = text_of(key, entry);
             else if (key == "skip")
               rule.skip = flag_of(key, entry);
             else
               read_key(key, entry, rule);
           });
      if (rule.pattern.empty()) refuse(at(node), "the rule has no pattern; write pattern = \"*_fa3_C*\"");
      if (rule.reason.empty())
        refuse(at(node), fmt::format("the rule of `{}` has no reason: say why these files differ",
                                     sanitize(rule.pattern)));
      if (rule.skip != (rule.list.empty() && !rule.ptx_floor))
        refuse(at(node),
               fmt::format("the rule of `{}` has either expect, or skip = true", sanitize(rule.pattern)));
      out_.files.push_back(std::move(rule));
    }
  }

  void read_budget(const toml::node& value) {
    const toml::table* table = value.as_table();
    if (table == nullptr) {
      out_.budget = parse_budget(text_of("budget", value), at(value, 1));
      return;
    }
    for (const auto& [key, size] : *table)
      out_.budget.push_back(parse_limit(key.str(), text_of(key.str(), size), at(size, 1)));
  }

  std::string path_;
  Expectation out_;
};

/// toml++ limits how deep values are nested, but not how many parts a key has, and each part is a table in a
/// table. Counts the dots of each line outside of quotes.
bool has_deep_keys(std::string_view text) {
  constexpr unsigned kMaxDots = 64;
  unsigned dots = 0;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') {
      dots = 0;
      quote = 0;
    } else if (quote != 0) {
      if (c == '\\' && quote == '"') ++at;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (c == '.' && ++dots > kMaxDots) {
      return true;
    }
  }
  return false;
}

toml::table parse(const std::string& path) {
  const auto text = files::read_whole(path, kMaxConfigLength);
  if (!text) refuse({path}, "cannot be read, or is longer than 1 MiB");
  if (has_deep_keys(*text)) refuse({path}, "has a line with more than 64 dots outside of quotes");
  toml::parse_result result = toml::parse(*text, path);
  if (!result)
    refuse({path, static_cast<unsigned>(result.error().source().begin.line),
            static_cast<unsigned>(result.error().source().begin.column)},
           fmt::format("this is no TOML: {}", sanitize(result.error().description())));
  return std::move(result).table();
}

bool is_pyproject(const std::string& path) { return core::basename_of(path) == "pyproject.toml"; }

}  // namespace

Expectation read_config(const std::string& path) {
  const toml::table file = parse(path);
  if (!is_pyproject(path)) return Config(path).read(file);
  const toml::node_view<const toml::node> section = file["tool"]["kshim"];
  if (!section) refuse({path}, "has no [tool.kshim]; write [tool.kshim] and expect = \"8.0 9.0+PTX\"");
  const toml::table* table = section.as_table();
  if (table == nullptr) refuse({path}, "tool.kshim is no table");
  return Config(path).read(*table);
}

std::string find_config() {
  if (files::open_to_read("kshim.toml")) return "kshim.toml";
  if (!files::open_to_read("pyproject.toml")) return {};
  // What another tool's faulty file says is that tool's concern.
  const auto text = files::read_whole("pyproject.toml", kMaxConfigLength);
  if (!text || text->find("tool.kshim") == std::string::npos) return {};
  return parse("pyproject.toml")["tool"]["kshim"] ? "pyproject.toml" : "";
}

Limit parse_limit(std::string_view of, std::string_view size, const TextOrigin& origin) {
  const auto bytes = core::parse_size(size);
  if (!bytes || *bytes == 0)
    refuse(origin, fmt::format("`{}` is no size; write 50M, 1.5G or 300MiB", sanitize(size)));
  if (of != "file" && of != "wheel")
    refuse(origin, fmt::format("`{}` has no budget; file and wheel have", sanitize(of)));
  return {.of = of == "wheel" ? Limit::Of::wheel : Limit::Of::file, .bytes = *bytes};
}

std::vector<Limit> parse_budget(std::string_view text, const TextOrigin& origin) {
  std::vector<Limit> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const std::size_t equals = item.find('=');
    TextOrigin at = origin;
    at.column += static_cast<unsigned>(begin);
    out.push_back(equals == std::string_view::npos
                      ? parse_limit("file", item, at)
                      : parse_limit(item.substr(0, equals), item.substr(equals + 1), at));
    begin = end + 1;
  }
  return out;
}

}  // namespace kshim::verbs
