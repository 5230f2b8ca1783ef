// SPDX-License-Identifier: Apache-2.0
// What prebuilt packages have code for, and which GPUs the releases of NVIDIA's libraries serve. A look-up,
// for where no file is at hand: what was read in a file wins.
#pragma once

#include "analyzer/data/tables.h"

namespace kshim::data {

inline constexpr std::string_view kLinux = "linux x86_64";

/// "Flash_Attn" and "flash-attn" are one package (PEP 503).
std::string normal_name(std::string_view package);

/// The name of a package: shown and put into commands as it is written, compared as PEP 503 says.
class ProjectName {
 public:
  ProjectName() = default;
  ProjectName(std::string written) : written_(std::move(written)), normal_(normal_name(written_)) {}
  ProjectName(std::string_view written) : ProjectName(std::string(written)) {}
  ProjectName(const char* written) : ProjectName(std::string(written)) {}
  bool empty() const { return written_.empty(); }
  const std::string& shown() const { return written_; }
  /// For look-ups, and for what a name begins or ends with.
  const std::string& normal() const { return normal_; }
  /// NVIDIA's own wheels: nvidia-cublas, nvidia_nccl_cu12.
  bool is_nvidias() const { return normal_.starts_with("nvidia-"); }
  bool operator==(const ProjectName& other) const { return normal_ == other.normal_; }

 private:
  std::string written_;
  std::string normal_;
};
/// Compares releases as people number them: 2.9 < 2.10, 2.9.0 = 2.9, 0.0.28.post3 > 0.0.28, 2.15.0rc1
/// = 2.15.0; what follows a + does not count.
int compare_releases(std::string_view a, std::string_view b);
/// 2.10.1 is within 2.9 to 2.10; `last` "0" is open. False for a text that does not begin with a digit.
bool is_within(std::string_view release, std::string_view first, std::string_view last);

/// What a package on disk is of: cupy-cuda12x of cupy, jax_cuda12_plugin of jax, torch 2.9.1+cu126 of torch.
struct WheelName {
  std::string distribution;
  std::string variant;
  std::string version;  ///< without what follows a +
};
WheelName wheel_name(std::string_view package, std::string_view version = {}, std::string_view variant = {});

/// The project itself and its builds (cupy_cuda12x, onnxruntime-gpu), not a project with a longer name
/// (torch_scatter, vllm_flash_attn, onnxruntime-genai).
bool is_variant_of(std::string_view package, std::string_view project);

/// The variant that PyPI has of a release; empty where that is not known.
std::string_view default_variant(const WheelName& name, std::string_view platform = kLinux);

/// nullptr where nothing is known. `distribution` may be the name of a package (cupy-cuda12x), `version` may
/// bring the variant along (2.9.1+cu126); without a variant it is the one that PyPI has. cu128 is a cuda12,
/// where a project makes no finer difference.
const WheelRow* find_wheel(std::string_view distribution, std::string_view version,
                           std::string_view variant = {}, std::string_view platform = kLinux);
/// How that is known of one release of the row: `interpolated` where nobody looked into its file, but into
/// those of other releases of the row. "2.7" stands for any of its patch releases.
Basis basis_of(const WheelRow& row, std::string_view release);
/// How the row serves the GPU, by the rules that hold for files.
image::Choice serves(const WheelRow& row, image::ComputeCapability cc);
/// All that serve it, newest first: machine code and PTX alike.
std::vector<const WheelRow*> wheels_serving(std::string_view distribution, image::ComputeCapability cc,
                                            std::string_view platform = kLinux);
/// Whether any row knows the project, for any GPU.
bool knows_wheels_of(std::string_view distribution, std::string_view platform = kLinux);

/// Whether pip has the package under this name, as far as the tables know it: PyPI has other projects of the
/// names of programs (Blender, darknet, RELION). True for a name that no table has.
bool comes_by_pip(std::string_view package);
/// Whether a table knows that an index of pip's has it under this name.
bool comes_from_index(std::string_view package);
/// Whether PyPI has what a requirement of pip names: false for 10.0.* of a package that begins with 11.8.0,
/// true for a package that the table does not have.
bool is_on_pypi(std::string_view package, std::string_view release);

enum class Support : unsigned char { yes, too_old_gpu, too_new_gpu };
/// nullopt where the table does not know the library or the release. Case does not count, nor do - and _.
std::optional<Support> library_supports(std::string_view library, std::string_view version,
                                        image::ComputeCapability cc);
/// The row of a release, of the newest where none is named; nullptr where the table does not know it.
const LibrarySupportRow* find_library_support(std::string_view library, std::string_view version);
/// The rows with the first and the last release that serve the GPU; nullptr where none does.
const LibrarySupportRow* first_library_for(std::string_view library, image::ComputeCapability cc);
const LibrarySupportRow* last_library_for(std::string_view library, image::ComputeCapability cc);

/// The package of pip's that has a library, by the name of its file: libcublasLt.so.12, libcudnn.so.8.
/// `cuda`: the major version of what loads it, where the name alone does not decide; 0: not known. nullptr
/// where none is known.
const LibraryWheelRow* find_library_wheel(std::string_view file, unsigned cuda);

// What a build brings along, which has to serve the GPU, too: wheels.json.

/// What a release of the row brings along and does not serve the GPU; nullptr where all does, or nothing is
/// known.
const CompanionRow* refusing_companion(const WheelRow& row, std::string_view release,
                                       image::ComputeCapability cc);
/// The newest release of the row whose companions serve the GPU; empty where none does.
std::string_view last_with_companions(const WheelRow& row, image::ComputeCapability cc);

// Which releases of a package have a wheel for which Python.

/// nullptr where the table knows nothing of that project with that Python.
const PythonRow* find_python(std::string_view distribution, std::string_view python);
/// The oldest Python that the release has a wheel for; empty where that is not known.
std::string_view oldest_python(std::string_view distribution, std::string_view release);
/// And the newest.
std::string_view newest_python(std::string_view distribution, std::string_view release);
/// "3.10" of /usr/bin/python3.10 and of .../lib/python3.10/site-packages/...; empty where the path does not
/// tell.
std::string python_of_path(std::string_view path);

/// A release that comes from a report or a log may be any text.
bool is_plain(std::string_view release);
/// Whether any build of the release that is there has code for the GPU, or nothing is known of it.
/// `refusing`: what all of those that have it bring along and does not serve the GPU.
bool release_serves(const WheelName& wheel, image::ComputeCapability device, std::string_view platform,
                    const CompanionRow** refusing = nullptr);
/// Whether a release of a package that pip installs is known, and none of its builds has code for the GPU.
bool is_without_code(std::string_view package, std::string_view release, image::ComputeCapability device,
                     std::string_view platform);

}  // namespace kshim::data
