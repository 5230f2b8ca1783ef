// SPDX-License-Identifier: Apache-2.0
// What packages and images say of GPUs and drivers: PEP 825 (variant.json), conda's info/index.json and
// info/run_exports.json (CEP 46), the variables of an image's configuration.
#include <fmt/format.h>

#include "analyzer/core/foreign_json.h"
#include "analyzer/input/files/container.h"
#include "analyzer/input/files/image_archive.h"
#include "analyzer/verbs/requirements.h"

namespace kshim::verbs {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVariant = ".dist-info/variant.json";
constexpr std::string_view kIndex = "info/index.json";
constexpr std::string_view kRunExports = "info/run_exports.json";  // what those who build with it depend on
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

// No Json is copied: a copy of one that is nested deeply takes all of the stack.
std::vector<std::string> texts_at(const Json& json, const char* key) {
  std::vector<std::string> out;
  for (const Json& item : list_at(json, key))
    if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

bool declares(std::string_view name) {
  return name.ends_with(kVariant) || name == kIndex || name == kRunExports;
}

Declaration read(std::string source, std::string_view name, Bytes bytes) {
  const Json json = Json::parse(kshim::text_of(bytes), nullptr, false);
  if (name.ends_with(kVariant)) {
    Declaration out{To::wheel_variant, std::move(source), {}, {}};
    const Json& variants = part_of(json, "variants");
    if (!variants.is_object()) return out;
    for (const Json& variant : variants) {
      const Json& nvidia = part_of(variant, "nvidia");
      std::ranges::move(texts_at(nvidia, "sm_arch"), std::back_inserter(out.conditions));
      for (const std::string& value : texts_at(nvidia, "cuda_version_lower_bound"))
        out.drivers.push_back(">=" + value);
    }
    return out;
  }
  Declaration out{To::conda, std::move(source), {}, {}};
  for (const char* key :
       {"depends", "constrains", "weak", "strong", "noarch", "weak_constrains", "strong_constrains"})
    for (const std::string& spec : texts_at(json, key)) add_conda_spec(spec, out);
  return out;
}

void add_images(const OpenImages& opened, const std::string& name, std::vector<Declaration>& out) {
  constexpr std::string_view kRequire = "NVIDIA_REQUIRE_";
  for (const ContainerImage& image : opened.archive.images()) {
    Declaration found{
        To::nvidia_require, image.name.empty() ? name : fmt::format("{}!{}", name, image.name), {}, {}};
    for (const std::string& variable : image.env)
      if (variable.starts_with(kRequire) && variable.find('=') + 1 < variable.size())
        found.conditions.push_back(variable.substr(variable.find('=') + 1));
    out.push_back(std::move(found));
  }
}

}  // namespace

std::vector<Declaration> declared_by(const std::filesystem::path& path) {
  std::vector<Declaration> out;
  Inputs inputs = list_inputs({path});
  for (const Input& input : inputs.files) {
    if (const auto opened = open_images(input, inputs.notes)) {
      add_images(*opened, input.shown(), out);
      continue;
    }
    const auto opened = MappedFile::open(input.path);
    const auto* file = std::get_if<MappedFile>(&opened);
    if (file == nullptr) continue;
    ContainerVisitor visitor;
    visitor.wants = [](std::string_view name, std::uint64_t size) {
      return size <= kMaxBytes && declares(name);
    };
    visitor.wants_content = [](std::string_view, Bytes) { return true; };
    visitor.visit = [&](const Member& member) {
      const std::string_view name = std::string_view(member.name).substr(member.name.rfind('!') + 1);
      if (declares(name))
        out.push_back(read(fmt::format("{}!{}", input.shown(), member.name), name, member.bytes));
    };
    visitor.damaged = [](std::string_view, std::uint64_t, const std::string&) {};  // the scan says it
    each_member(file->bytes(), input.shown(), ContainerLimits{}, visitor);
  }
  std::erase_if(out, [](const Declaration& each) { return each.conditions.empty() && each.drivers.empty(); });
  return out;
}

}  // namespace kshim::verbs
