// SPDX-License-Identifier: Apache-2.0
// The inputs of a diagnosis: one report, its index, and the files and options it is judged with.
#pragma once

#include "analyzer/diagnose/merge.h"
#include "analyzer/diagnose/options.h"
#include "analyzer/diagnose/rules.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::diagnose {

/// Kernels are read for their names; beyond this many bytes of payload the names of the rest are left out.
constexpr std::uint64_t kMaxPayload = std::uint64_t{256} << 20;

// What a file lacks for a GPU. Found by reading all of its device code, which is done once for all reports.

/// How many modules of a file lack an image, and how many have one.
struct ModuleShare {
  std::size_t lacking = 0;
  std::size_t served = 0;
};

struct FileGap {
  std::vector<ImageFact> images;     ///< of the modules that lack code, each kind once
  std::vector<std::string> kernels;  ///< of those, mangled
  image::Version toolkit;            ///< the newest that built one of them
  bool complete = true;              ///< every payload of them could be read
  ModuleShare modules;
};

class FileGaps {
 public:
  std::shared_ptr<const FileGap> find(const input::ObjectRecord& object, const device_code::ObjectFile& file,
                                      image::ComputeCapability cc, image::Version driver);

 private:
  std::map<std::tuple<const device_code::ObjectFile*, image::ComputeCapability, image::Version>,
           std::shared_ptr<const FileGap>>
      known_;
  std::size_t bytes_ = 0;
};

// The images a failure or gap is about, from the best source there is: the file itself, the report's gap, the
// report's list of the whole file.

/// Of "sm_90a", "compute_90", "lto_90". `isa`: of PTX.
std::optional<image::Candidate> candidate_of(std::string_view name, std::string_view isa = {});

struct ModuleQuestion {
  const input::ObjectRecord* object = nullptr;
  std::optional<std::uint64_t> offset;
  const input::GapRecord* gap = nullptr;
  std::string kernel;                           ///< mangled; may be empty
  const input::ModuleRecord* module = nullptr;  ///< of code that lies in no file
  const input::KeptImage* kept = nullptr;       ///< the same
};

Facts::Images find_images(const ModuleQuestion& question, input::ObjectFiles& files);

/// Kernels of the images for which nothing fits the GPU, mangled, `first` in front.
std::vector<std::string> lacking_kernels(const Facts& facts, const std::string& first);

struct Scene {
  const input::Report& report;
  const input::ReportIndex& index;
  input::ObjectFiles& files;
  const AnalysisOptions& options;
  const RunFacts& run;
  Advised& advised;
  FileGaps& file_gaps;
  bool parent_initialized = false;  ///< the process is the child of one that had initialized CUDA
};

/// What a report says of device code on a device: its records, and the facts that these are.
struct InReport {
  const input::ObjectRecord* object = nullptr;
  const input::ModuleRecord* module = nullptr;
  const input::GapRecord* gap = nullptr;
  const input::DeviceRecord* device = nullptr;
  Facts facts;
  const input::KeptImage* kept = nullptr;
  std::string cached;  ///< the file of a cache of this machine that holds the image
  std::optional<input::PackageRecord>
      caller;  ///< of a compiler's failure and a refused driver's: the Python package whose file called
};

/// The facts of device code on a device, as its images and the report have them, without any failure.
void set_facts(const Scene& scene, InReport& subject);
InReport subject_of(const Scene& scene, const input::FailureRecord& failure);
/// Images of a file on a GPU. No codes: nothing ran into it.
InReport subject_of(const Scene& scene, const input::ObjectRecord& object, image::ComputeCapability cc,
                    Facts::Images images);
/// Whether images are known, and none of them is for the GPU.
bool lacks(const Facts& facts);
/// What the module of a gap lacks for a compute capability.
InReport subject_of(const Scene& scene, const input::GapRecord& gap, image::ComputeCapability cc);

/// The compute capability of a device record, or the assumed one.
std::optional<image::ComputeCapability> cc_of(const Scene& scene, const input::DeviceRecord* device);
image::Version driver_of(const Scene& scene);
/// Whether the program came to its own end, as far as is known.
bool ended_well(const Scene& scene);

/// As the report says.
Ending ending_of(const input::Report& report);
/// As the caller saw it, else as the report says.
Ending ending_of(const input::Report& report, const RunFacts& run);
/// nullopt where nothing is known of it.
std::optional<core::Device> device_of(const Scene& scene, const input::DeviceRecord* device);
/// The report's path and the line; empty for line 0.
core::ReportLine location(const input::Report& report, std::uint32_t line);
/// Basename of the object's file, else "the image" of a loose one.
std::string object_text(const InReport& subject);

}  // namespace kshim::diagnose
