// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/self.h"

#include <sys/auxv.h>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) return self.parent_path();
  // Without /proc: the path that execve was given, which a shell has found in PATH. Nobody has changed the
  // working directory since.
  const auto* given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // NOLINT: it is an address
  const fs::path started = given == nullptr ? fs::path() : fs::canonical(given, error);
  return error ? fs::path() : started.parent_path();
}

// KSHIM_LIBDIR is what CMAKE_INSTALL_LIBDIR was (lib, lib64, lib/x86_64-linux-gnu). The prefix may have been
// moved since, so it is looked up beside the executable and not where it was installed to.
Located find(std::initializer_list<fs::path> candidates, const char* file) {
  Located located;
  const fs::path here = own_folder();
  if (here.empty()) return located;
  for (const fs::path& candidate : candidates) {
    fs::path path = (here / candidate).lexically_normal();
    std::error_code error;
    if (fs::is_regular_file(path / file, error)) {
      located.path = std::move(path);
      return located;
    }
    located.searched.push_back(path / file);
  }
  return located;
}

Located find_beside_shim(const char* file) {
  Located located = find({"../shim", fs::path("..") / KSHIM_LIBDIR, "../lib", "../lib64", "."}, file);
  if (!located.path.empty()) located.path /= file;
  return located;
}

}  // namespace

std::string search_of(const Located& located) {
  if (located.searched.empty())
    return "where this command lies cannot be told: /proc is not mounted, nor did its caller say";
  return "looked for " +
         core::join(core::mapped(located.searched, [](const fs::path& path) { return path.string(); }), ", ");
}

Located find_shim() { return find_beside_shim("libkshim.so"); }
fs::path shim_or_refuse() {
  const Located shim = find_shim();
  if (!shim.path.empty()) return shim.path;
  throw core::UserError(fmt::format("libkshim.so is not beside this command; {}", search_of(shim)),
                        core::exit_status::kNoInput);
}
Located find_audit() { return find_beside_shim("libkshim-audit.so"); }
Located find_injection() { return find_beside_shim("libkshim-injection.so"); }

Located find_simulator() {
  // The wheels are two distributions: the folder beside ours, or where Python says that it is.
  const char* given = std::getenv("KSHIM_SIMULATOR_DIR");
  const fs::path elsewhere = given != nullptr && *given == '/' ? given : "../../kshim_simulator";
  return find({"../sim", fs::path("..") / KSHIM_LIBDIR / "kshim/sim", "../lib/kshim/sim",
               "../lib64/kshim/sim", elsewhere},
              "libcuda.so.1");
}

}  // namespace kshim::cli
