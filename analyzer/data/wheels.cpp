// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/wheels.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::data {
namespace {

using image::ComputeCapability;

constexpr std::string_view kOpen = "0";

// The next number of a release; what is not a number ends it, but for ".post3", which counts as one more
// place.
std::optional<unsigned> next_number(std::string_view& rest) {
  if (rest.starts_with('.')) rest.remove_prefix(1);
  if (rest.starts_with("post")) rest.remove_prefix(4);
  return core::take_number<unsigned>(rest);
}

// Compares as many places as both have, or all where `prefix` is not asked for.
int compare(std::string_view a, std::string_view b, bool prefix) {
  if (a == b) return 0;
  while (true) {
    const auto x = next_number(a);
    const auto y = next_number(b);
    if (!y && (prefix || !x)) return 0;
    if (x.value_or(0) != y.value_or(0)) return x.value_or(0) < y.value_or(0) ? -1 : 1;
  }
}

// cu128 and cuda12 for 12; 0 for what names no CUDA version.
unsigned major_of(std::string_view variant) {
  if (!variant.starts_with("cu")) return 0;
  variant.remove_prefix(variant.starts_with("cuda") ? 4 : 2);
  return core::first_number<unsigned>(variant.substr(0, 2)).value_or(0);
}

// "cuda12" holds for every 12.x.
bool same_variant(std::string_view row, std::string_view asked) {
  if (row == asked) return true;
  const bool coarse = row.starts_with("cuda") || asked.starts_with("cuda");
  return coarse && major_of(row) != 0 && major_of(row) == major_of(asked);
}

// Of "jax-cuda12-plugin" that is "cuda12", of "faiss-gpu-cu12" "cu12"; empty where no word names a CUDA.
std::string cuda_word(std::string_view package) {
  while (!package.empty()) {
    const std::string_view word = package.substr(0, package.find('-'));
    if (major_of(word) != 0) return std::string(word);
    package.remove_prefix(std::min(package.size(), word.size() + 1));
  }
  return {};
}

bool serves_newer(const WheelRow* a, const WheelRow* b) {
  const bool a_open = a->last == kOpen;
  const bool b_open = b->last == kOpen;
  if (a_open != b_open) return a_open;
  const int last = a_open ? 0 : compare_releases(a->last, b->last);
  if (last != 0) return last > 0;
  return compare_releases(a->first, b->first) > 0;
}

bool knows(const LibrarySupportRow& row, std::string_view library) {
  return normal_name(row.library) == normal_name(library);
}

bool reaches(const LibrarySupportRow& row, ComputeCapability cc) {
  return row.min <= cc && (row.max.major == 0 || cc <= row.max);
}

// What makers put behind a project's name: "-gpu", "-cu12", "-cuda12x", "-cuda12-plugin". Any other word
// makes it another project.
bool is_variant(std::string_view rest) {
  if (rest.empty() || rest == "-gpu") return true;
  if (!rest.starts_with("-cu")) return false;
  rest.remove_prefix(rest.starts_with("-cuda") ? 5 : 3);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  rest.remove_prefix(digits);
  return digits >= 2 && digits <= 3 && (rest.empty() || rest == "x" || rest == "-plugin" || rest == "-pjrt");
}

/// Of the rows that serve the GPU the first (-1) or last (1) one.
const LibrarySupportRow* outermost(std::string_view library, ComputeCapability cc, int side) {
  const LibrarySupportRow* found = nullptr;
  for (const LibrarySupportRow& row : library_support()) {
    if (knows(row, library) && reaches(row, cc) &&
        (found == nullptr || side * compare_releases(row.first, found->first) > 0))
      found = &row;
  }
  return found;
}

bool is_of(const CompanionRow& companion, const WheelRow& row) {
  return companion.distribution == row.distribution && companion.variant == row.variant &&
         companion.platform == row.platform;
}

// Too new is refused as well: the cuDNN of PyTorch 1.5 has no code for GPUs that its PTX would be compiled
// for.
bool refuses(const CompanionRow& companion, ComputeCapability cc) {
  return library_supports(companion.library, companion.release, cc).value_or(Support::yes) != Support::yes;
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

std::string normal_name(std::string_view package) {
  std::string out;
  for (const char c : package) {
    const bool joint = c == '-' || c == '_' || c == '.';
    if (joint && out.ends_with('-')) continue;
    out += joint ? '-' : core::to_lower(c);
  }
  return out;
}

int compare_releases(std::string_view a, std::string_view b) { return compare(a, b, false); }

bool is_within(std::string_view release, std::string_view first, std::string_view last) {
  if (release.empty() || !core::is_digit(release.front())) return false;
  return compare(release, first, false) >= 0 && (last == kOpen || compare(release, last, true) <= 0);
}

WheelName wheel_name(std::string_view package, std::string_view version, std::string_view variant) {
  WheelName out;
  const std::string name = normal_name(package);
  const std::size_t local = version.find('+');
  out.version = version.substr(0, local);
  out.variant = variant;
  if (out.variant.empty() && local != std::string_view::npos) out.variant = version.substr(local + 1);
  if (out.variant.empty()) out.variant = cuda_word(name);
  // The longest name of a project that the package begins with, so that faiss-gpu-cuvs is not faiss-gpu.
  for (const WheelRow& row : wheels()) {
    if (row.distribution.size() <= out.distribution.size() || !name.starts_with(row.distribution) ||
        (name.size() != row.distribution.size() && name[row.distribution.size()] != '-'))
      continue;
    // torch-scatter is not of torch, and neither is torch-quickfps-cu130.
    if (is_variant(std::string_view(name).substr(row.distribution.size())))
      out.distribution = row.distribution;
  }
  if (out.distribution.empty()) {
    for (const ProjectNameRow& row : project_names()) {
      if (is_variant_of(name, row.name)) out.distribution = row.distribution;
    }
  }
  return out;
}

bool is_variant_of(std::string_view package, std::string_view project) {
  const std::string name = normal_name(package);
  const std::string own = normal_name(project);
  return !own.empty() && name.starts_with(own) && is_variant(std::string_view(name).substr(own.size()));
}

namespace {

std::string_view project_of(std::string_view package) {
  const std::string name = normal_name(package);
  std::string_view found;
  const auto look = [&found](std::string_view from, const auto& rows, auto project) {
    for (const auto& row : rows)
      if (found.empty() && is_variant_of(from, row.*project)) found = row.*project;
  };
  look(name, wheels(), &WheelRow::distribution);
  look(name, project_names(), &ProjectNameRow::name);
  look(name, builds(), &BuildRow::distribution);
  look(name, installers(), &InstallerRow::distribution);
  look(name, without_source(), &WithoutSourceRow::package);
  for (const std::string_view start : {"nvidia-cuda-", "nvidia-"})
    if (name.starts_with(start))
      look(std::string_view(name).substr(start.size()), vendor_libraries(), &VendorLibraryRow::prefix);
  return found;
}

}  // namespace

std::string_view known_project(std::string_view package) {
  constexpr std::size_t kMost = 4096;
  thread_local std::unordered_map<std::string, std::string_view> answers;
  if (const auto known = answers.find(std::string(package)); known != answers.end()) return known->second;
  if (answers.size() == kMost) answers.clear();
  return answers.emplace(package, project_of(package)).first->second;
}

std::string_view default_variant(const WheelName& name, std::string_view platform) {
  const auto* row = first_row(wheel_defaults(), [&](const WheelDefaultRow& each) {
    return each.distribution == name.distribution && each.platform == platform &&
           is_within(name.version, each.first, each.last);
  });
  return row == nullptr ? std::string_view() : row->variant;
}

const WheelRow* find_wheel(std::string_view distribution, std::string_view version, std::string_view variant,
                           std::string_view platform) {
  WheelName name = wheel_name(distribution, version, variant);
  // That of the very release, where one was looked into (xformers 0.0.33 is for another CUDA than its
  // .post1).
  if (name.variant.empty() && !name.version.empty()) {
    const auto names_it = [&](const WheelRow& row) {
      return row.distribution == name.distribution && row.platform == platform &&
             has_word(row.wheels, name.version);
    };
    const WheelRow* const only = first_row(wheels(), names_it);
    if (only != nullptr && only == last_row(wheels(), names_it)) return only;
  }
  if (name.variant.empty()) name.variant = default_variant(name, platform);
  const WheelRow* found = nullptr;
  for (const WheelRow& row : wheels()) {
    if (row.distribution != name.distribution || row.platform != platform) continue;
    if (!is_within(name.version, row.first, row.last)) continue;
    if (row.variant == name.variant) return &row;
    if (!row.variant.empty() && !same_variant(row.variant, name.variant)) continue;
    if (found != nullptr) return nullptr;  // cuda12, where cu126 and cu128 differ
    found = &row;
  }
  return found;
}

Basis basis_of(const WheelRow& row, std::string_view release) {
  if (row.basis != Basis::measured && row.basis != Basis::interpolated) return row.basis;
  if (row.wheels.empty()) return row.basis;
  std::string_view rest = row.wheels;
  while (!rest.empty()) {
    const std::string_view each = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), each.size() + 1));
    if (compare(each, release, true) == 0) return Basis::measured;
  }
  return Basis::interpolated;
}

image::Choice serves(const WheelRow& row, ComputeCapability cc) {
  return image::select_image(row.images, {cc, {}, {}}).choice;
}

std::vector<const WheelRow*> wheels_serving(std::string_view distribution, ComputeCapability cc,
                                            std::string_view platform) {
  const WheelName name = wheel_name(distribution);
  std::vector<const WheelRow*> out;
  for (const WheelRow& row : wheels()) {
    if (row.distribution == name.distribution && row.platform == platform &&
        serves(row, cc) != image::Choice::none)
      out.push_back(&row);
  }
  std::ranges::stable_sort(out, serves_newer);
  return out;
}

bool knows_wheels_of(std::string_view distribution, std::string_view platform) {
  const WheelName name = wheel_name(distribution);
  return std::ranges::any_of(wheels(), [&](const WheelRow& row) {
    return row.distribution == name.distribution && row.platform == platform;
  });
}

const LibrarySupportRow* find_library_support(std::string_view library, std::string_view version) {
  return first_row(library_support(), [&](const LibrarySupportRow& row) {
    return knows(row, library) &&
           (version.empty() ? row.last == kOpen : is_within(version, row.first, row.last));
  });
}

std::optional<Support> library_supports(std::string_view library, std::string_view version,
                                        ComputeCapability cc) {
  const LibrarySupportRow* row = find_library_support(library, version);
  if (row == nullptr) return std::nullopt;
  if (reaches(*row, cc)) return Support::yes;
  return cc < row->min ? Support::too_old_gpu : Support::too_new_gpu;
}

const LibrarySupportRow* first_library_for(std::string_view library, ComputeCapability cc) {
  return outermost(library, cc, -1);
}
const LibrarySupportRow* last_library_for(std::string_view library, ComputeCapability cc) {
  return outermost(library, cc, 1);
}

const CompanionRow* refusing_companion(const WheelRow& row, std::string_view release, ComputeCapability cc) {
  return first_row(companions(), [&](const CompanionRow& each) {
    return is_of(each, row) && is_within(release, each.first, each.last) && refuses(each, cc);
  });
}

std::string_view last_with_companions(const WheelRow& row, ComputeCapability cc) {
  bool refused = false;
  std::string_view out;
  for (const CompanionRow& each : companions()) {
    if (!is_of(each, row) || compare_releases(each.last, row.first) < 0 ||
        compare_releases(each.first, row.last) > 0)
      continue;
    if (refuses(each, cc)) {
      refused = true;
      continue;
    }
    const std::string_view last = compare_releases(each.last, row.last) < 0 ? each.last : row.last;
    if (out.empty() || compare_releases(last, out) > 0) out = last;
  }
  return refused ? out : row.last;
}

const LibraryWheelRow* find_library_wheel(std::string_view file, unsigned cuda) {
  constexpr std::string_view kSo = ".so.";
  file = core::basename_of(file);
  const std::size_t so = file.find(kSo);
  if (so == std::string_view::npos) return nullptr;
  const std::string stem = core::to_lower(file.substr(0, so));
  std::string_view number = file.substr(so + kSo.size());
  number = number.substr(0, number.find('.'));
  constexpr unsigned kUsual = 12;
  const LibraryWheelRow* best = nullptr;
  const auto rank = [&](const LibraryWheelRow& row) {
    return std::tuple(row.stem.size(), static_cast<unsigned>(row.cuda) == cuda,
                      static_cast<unsigned>(row.cuda) == kUsual);
  };
  for (const LibraryWheelRow& row : library_wheels())
    if (stem.starts_with(core::to_lower(row.stem)) && row.number == number &&
        (best == nullptr || rank(row) > rank(*best)))
      best = &row;
  return best;
}

const PythonRow* find_python(std::string_view distribution, std::string_view python) {
  return first_row(pythons(), [&](const PythonRow& row) {
    return row.distribution == distribution && row.python == python;
  });
}

bool comes_by_pip(std::string_view package) {
  const auto* row = first_row(software(), [&](const SoftwareRow& each) { return each.package == package; });
  const std::string distribution = wheel_name(package).distribution;
  return row == nullptr || !row->pip.empty() || knows_wheels_of(distribution) ||
         find_installer(distribution, "pip") != nullptr || find_build(distribution, "") != nullptr;
}

bool comes_from_index(std::string_view package) {
  const std::string distribution = wheel_name(package).distribution;
  const auto* row = first_row(software(), [&](const SoftwareRow& each) {
    return !each.pip.empty() && (each.package == package || each.pip == package);
  });
  return row != nullptr || find_installer(distribution, "pip") != nullptr;
}

bool is_on_pypi(std::string_view package, std::string_view release) {
  if (release.ends_with(".*")) release.remove_suffix(2);
  const FirstReleaseRow* row =
      first_row(first_releases(), [&](const FirstReleaseRow& each) { return each.package == package; });
  if (row == nullptr) return true;
  // 11.8 stands for all of its patch releases.
  std::string_view first = row->first;
  const auto parts = [](std::string_view text) { return std::ranges::count(text, '.'); };
  while (parts(first) > parts(release)) first.remove_suffix(first.size() - first.rfind('.'));
  return compare_releases(release, first) >= 0;
}

std::string_view oldest_python(std::string_view distribution, std::string_view release) {
  std::string_view out;
  for (const PythonRow& row : pythons()) {
    if (row.distribution != distribution || !is_within(release, row.first, row.last)) continue;
    if (out.empty() || compare_releases(row.python, out) < 0) out = row.python;
  }
  return out;
}

std::string_view newest_python(std::string_view distribution, std::string_view release) {
  std::string_view out;
  for (const PythonRow& row : pythons()) {
    if (row.distribution != distribution || !is_within(release, row.first, row.last)) continue;
    if (out.empty() || compare_releases(row.python, out) > 0) out = row.python;
  }
  return out;
}

std::string python_of_path(std::string_view path) {
  constexpr std::string_view kWord = "/python3.";
  constexpr std::size_t kMaxDigits = 2;
  for (std::size_t at = path.rfind(kWord); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : path.rfind(kWord, at - 1)) {
    const std::string_view rest = path.substr(at + kWord.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool ends = digits == rest.size() || rest[digits] == '/';
    if (ends && digits != 0 && digits <= kMaxDigits) return "3." + std::string(rest.substr(0, digits));
  }
  return {};
}

bool is_plain(std::string_view release) {
  return !release.empty() && core::is_digit(release.front()) &&
         release.find_first_not_of("0123456789.post") == std::string_view::npos;
}

bool release_serves(const WheelName& wheel, image::ComputeCapability device, std::string_view platform,
                    const CompanionRow** refusing) {
  bool known = false;
  bool has = false;
  const CompanionRow* refused = nullptr;
  for (const WheelRow& row : wheels()) {
    if (row.distribution != wheel.distribution || row.platform != platform ||
        !is_within(wheel.version, row.first, row.last))
      continue;
    known = true;
    if (serves(row, device) == image::Choice::none) continue;
    const CompanionRow* const each = refusing_companion(row, wheel.version, device);
    if (each == nullptr) return true;
    refused = each;
    has = true;
  }
  if (refusing != nullptr) *refusing = refused;
  return has || !known;
}

bool is_without_code(std::string_view package, std::string_view release, image::ComputeCapability device,
                     std::string_view platform) {
  const WheelName wheel = wheel_name(package, release);
  return find_installer(wheel.distribution, "pip") != nullptr && is_plain(wheel.version) &&
         !release_serves(wheel, device, platform);
}

}  // namespace kshim::data
