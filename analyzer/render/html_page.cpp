// SPDX-License-Identifier: Apache-2.0
// One page of HTML that needs nothing but itself: no picture, no font, one sheet and one script (page.css,
// page.js), and a policy that forbids all but these two by their hashes. Without scripts it is as complete.
#include <initializer_list>

#include "analyzer/render/document.h"
#include "page_assets.h"

namespace kshim::render {
using core::Tone;

namespace {

// A page that opens at once and can be sifted while one types; what is more is counted on it.
constexpr PageLimits kPage = {.rows = 2000, .columns = 1000, .findings = 300, .kernels = 20'000};
// With 100,000 rows it still opens.
constexpr PageLimits kWholePage = {
    .rows = 100'000, .columns = 1'000'000, .findings = 100'000, .kernels = 1'000'000};
constexpr std::size_t kUnfolded =
    1;  // findings that are open from the start: the others are the list of contents
constexpr std::size_t kParts = 12;  // that are linked on top
constexpr std::string_view kBodyHere = "<main id=\"main\">{body}";
constexpr std::string_view kPartsHere = "<nav aria-label=\"parts of the page\"></nav>";

/// sm_90a, compute_90, 9.0a: columns of these are many and narrow.
bool is_arch(std::string_view name) {
  return name.starts_with("sm_") || name.starts_with("compute_") || name.starts_with("lto_") ||
         (!name.empty() && name.front() >= '0' && name.front() <= '9');
}

const char* class_of(Tone tone) {
  return tone == Tone::good ? "good" : tone == Tone::error ? "bad" : tone == Tone::dim ? "dim" : nullptr;
}

/// Elements opened and closed in order, text escaped. Tags and attribute names are ours.
class HtmlWriter {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string_view>>;
  /// An attribute without a value is left out.
  void open(const char* tag, const Attributes& attributes = {}) {
    out_.append("<").append(tag);
    for (const auto& [name, value] : attributes)
      if (!value.empty())
        out_.append(" ").append(name).append("=\"").append(core::escape_markup(value)).append("\"");
    out_ += '>';
    open_.push_back(tag);
  }

  void close(unsigned elements = 1) {
    for (; elements != 0 && !open_.empty(); --elements) {
      out_.append("</").append(open_.back()).append(">");
      open_.pop_back();
    }
  }

  void text(std::string_view text) { out_ += core::escape_markup(text); }
  /// open, text, close
  void element(const char* tag, std::string_view content, const Attributes& attributes = {}) {
    open(tag, attributes);
    text(content);
    close();
  }

  std::string take() && {
    close(static_cast<unsigned>(open_.size()));
    return std::move(out_);
  }

 private:
  std::vector<const char*> open_;
  std::string out_;
};

/// A hash in hexadecimal as base64, as a policy names it.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 6) {
    const std::string_view part = hex.substr(at, 6);
    unsigned value = 0;
    std::from_chars(part.data(), part.data() + part.size(), value, 16);
    value <<= 4 * (6 - part.size());
    const std::size_t digits = part.size() / 2 + 1;
    for (std::size_t i = 0; i < 4; ++i) out += i < digits ? kDigits[value >> (18 - 6 * i) & 63U] : '=';
  }
  return out;
}

class HtmlPage final : public Document {
 public:
  HtmlPage(std::string_view title, bool unlimited, Cleaner clean)
      : Document(std::move(clean)), title_(title), unlimited_(unlimited) {}

  PageLimits limits() const override { return unlimited_ ? kWholePage : kPage; }
  bool has_links() const override { return true; }
  void close_finding() override { html_.close(2); }
  void close_details() override { html_.close(); }

  std::string take() override {
    std::string body = std::move(html_).take();
    HtmlWriter parts;
    for (std::size_t i = 0; i < std::min(parts_.size(), kParts); ++i) {
      parts.element("a", parts_[i], {{"href", fmt::format("#part-{}", i + 1)}});
      parts.text(" ");
    }
    if (const std::size_t here = body.find(kPartsHere); here != std::string::npos)
      body.insert(here + kPartsHere.find("</"), std::move(parts).take());
    // {body} stays: it is large.
    std::string page = core::expand(kPageTemplate, {{"sheet", base64_of_hex(kPageSheetHash)},
                                                    {"script", base64_of_hex(kPageScriptHash)},
                                                    {"title", core::escape_markup(title_)}});
    page.replace(page.find(kBodyHere) + kBodyHere.find('{'), kBodyHere.size() - kBodyHere.find('{'), body);
    return page;
  }

 private:
  void put_heading(unsigned level, const Line& text) override {
    constexpr std::array kTags = {"h1", "h2", "h3", "h4"};
    section_.clear();
    for (const Span& part : text) section_ += part.text;
    if (level == 1) title_ = section_;
    if (level == 2) parts_.push_back(section_);
    const std::string id = level == 2 ? fmt::format("part-{}", parts_.size()) : "";
    element(kTags.at(std::clamp(level, 1U, 4U) - 1), text, {{"id", id}});
    if (level == 1) html_.element("nav", "", {{"aria-label", "parts of the page"}});
  }

  void put_paragraph(const Line& text, unsigned /*indent*/, unsigned /*hang*/) override {
    element("p", text);
  }

  void put_list(const std::vector<Line>& items) override {
    if (items.empty()) return;
    html_.open("ul");
    for (const Line& item : items) element("li", item);
    html_.close();
  }

  void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                 const std::string& /*label*/) override {
    // What scrolls by itself is reached by the keyboard, too, and has a name.
    html_.open("div", {{"class", "scroll"}, {"role", "group"}, {"tabindex", "0"}, {"aria-label", section_}});
    html_.open("table", {{"class", head.empty() ? "facts" : "list"}});
    if (!head.empty()) {
      html_.open("thead");
      html_.open("tr");
      for (const std::string& name : head)
        html_.element("th", name, {{"scope", "col"}, {"class", is_arch(name) ? "arch" : ""}});
      html_.close(2);
    }
    html_.open("tbody");
    for (const auto& cells : rows) row(cells, head.empty());
    html_.close(3);
  }

  void put_commands(const std::vector<std::string>& commands) override {
    html_.open("div", {{"class", "commands"}});
    html_.open("pre");
    html_.element("code", core::join(commands, "\n"));
    html_.close(2);
  }

  void put_finding(std::size_t number, std::string_view kind, const std::string& title,
                   bool further) override {
    const std::string id = fmt::format("finding-{}", number);
    section_ = title;
    html_.open("section", {{"class", further ? "further" : fmt::format("finding {}", kind)},
                           {"id", id},
                           {"aria-labelledby", id + "-title"}});
    if (further) {
      html_.open("div");
      return html_.element("h2", title, {{"id", id + "-title"}});
    }
    html_.element("a", "#",
                  {{"class", "anchor"}, {"href", "#" + id}, {"aria-label", "link to this finding"}});
    html_.open("details", {{"open", number <= kUnfolded ? "open" : ""}});
    html_.open("summary");
    html_.open("h2", {{"id", id + "-title"}});
    html_.element("span", kind, {{"class", fmt::format("badge {}", kind)}});
    html_.text(" " + title);
    html_.close(2);
  }

  void put_details(const std::string& summary) override {
    html_.open("details");
    html_.element("summary", summary);
  }

  void element(const char* tag, const Line& text, const HtmlWriter::Attributes& attributes = {}) {
    html_.open(tag, attributes);
    for (const Span& part : text) {
      const bool linked = part.finding != 0 && part.finding <= limits().findings;
      const std::string target = linked ? fmt::format("#finding-{}", part.finding) : "";
      const bool inside = linked || !part.hover.empty();
      if (inside) html_.open(linked ? "a" : "span", {{"href", target}, {"title", part.hover}});
      if (part.tone == Tone::code || part.tone == Tone::strong)
        html_.element(part.tone == Tone::code ? "code" : "strong", part.text);
      else if (const char* name = class_of(part.tone); name != nullptr)
        html_.element("span", part.text, {{"class", name}});
      else
        html_.text(part.text);
      if (inside) html_.close();
    }
    html_.close();
  }

  void row(const Row& cells, bool facts) {
    html_.open("tr");
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Tone style = cells[i].empty() ? Tone::plain : cells[i].front().tone;
      if (i == 0 && (facts || style == Tone::code))
        element("th", cells[i], {{"scope", "row"}});
      else
        element("td", cells[i], {{"class", style == Tone::number ? "number" : ""}});
    }
    html_.close();
  }

  HtmlWriter html_;
  std::string section_;  ///< the last heading, which names the tables under it
  std::string title_;
  std::vector<std::string> parts_;  ///< headings of the page's parts
  bool unlimited_;
};

}  // namespace

std::unique_ptr<Document> html_page(std::string_view title, bool unlimited, Cleaner clean) {
  return std::make_unique<HtmlPage>(title, unlimited, std::move(clean));
}

}  // namespace kshim::render
