// SPDX-License-Identifier: Apache-2.0
// No sentence and no command of advice has a hole where a word was empty: of every cause, with each fact that
// a log, a report or a file need not name left out in turn, for each message; and of every template by
// itself.
#include <gtest/gtest.h>

#include "analyzer/advise/fixes.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::test {
namespace {

/// What an empty word leaves behind; empty: nothing.
std::string hole_in(std::string_view text) {
  using namespace std::literals;
  if (text.empty()) return {};
  if (text.front() == ' ' || text.back() == ' ') return "a blank at an end";
  for (const std::string_view trace :
       {"  "sv, " ,"sv, " ;"sv, " ()"sv, "( "sv, " )"sv, "; ;"sv, ", ,"sv, "''s"sv, "==''"sv, "compute_,"sv,
        "sm_\""sv, "=\"\""sv, "-cu'"sv, "cuda-/"sv})
    if (contains(text, trace)) return std::string(trace);
  if (text.starts_with(", ") || text.starts_with("; ") || text.ends_with(";") || text.ends_with(","))
    return "a loose mark";
  return {};
}

void expect_whole(std::string_view text, const std::string& where) {
  const std::string hole = hole_in(text);
  EXPECT_EQ(hole, "") << where << ": \"" << text << '"';
}

void expect_whole(const Advice& advice, const std::string& where) {
  for (const Fix& fix : advice.fixes) {
    const std::string of = where + ": " + std::string(fix.id);
    EXPECT_NE(fix.title, "") << of;
    expect_whole(fix.title, of);
    expect_whole(fix.why, of);
    expect_whole(fix.caveat, of);
    for (const std::string& command : fix.commands) {
      EXPECT_NE(command, "") << of;
      expect_whole(command, of);
      // An empty word that was quoted: `export X=''` is written nowhere by us.
      EXPECT_FALSE(contains(command, " ''") || command.starts_with("''")) << of << ": " << command;
    }
  }
  for (const DeadEnd& end : advice.dead_ends) {
    expect_whole(end.action, where);
    expect_whole(end.why, where);
  }
  for (const std::string& remark : advice.remarks) expect_whole(remark, where);
}

/// All that may be known.
AdviceInput complete(Cause cause, image::ComputeCapability device) {
  AdviceInput at;
  at.cause = cause;
  at.code = 209;
  at.device = device;
  at.driver = {12, 4};
  at.kernel_module = "550.54.15";
  at.toolkit = {12, 1};
  at.toolkit_how = "its cubins say so";
  at.newest_cubin = {12, 1};
  at.runtime = {12, 1};
  at.package = "libmine";
  at.package_version = "1.0";
  at.software = "libmine";
  at.manager = "pip";
  at.object = "/v/site-packages/libmine/libmine.so";
  at.origin = Origin::installed;
  at.shared_library = true;
  at.have = {{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}}};
  at.switch_names = {"CUDA_FORCE_PTX_JIT"};
  at.cache = "Triton";
  at.cache_variable = "TRITON_CACHE_DIR";
  at.cache_entry = at.removable = "/home/u/.triton/cache/abc";
  at.compiler = {"NVRTC", {device, image::Suffix::none}, {12, 1}, false, {}, "", {}, "", "", {}};
  at.extension = "myext";
  at.caller = "/v/lib/libcaller.so";
  at.program = "python train.py";
  at.arch_variable = "CMAKE_CUDA_ARCHITECTURES";
  at.build_system = "cmake";
  at.build_folder = "build";
  at.container_image = "vendor/image:1.0";
  at.python_version = "3.11";
  at.variant = "cu121";
  at.kernels = {"k"};
  at.kernel_images = {"sm_75"};
  at.taken = image::Candidate{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}};
  at.serving_device = "1";
  return at;
}

struct Gap {
  const char* name;
  void (*make)(AdviceInput&);
};
constexpr Gap kGaps[] = {
    {"nothing", [](AdviceInput&) {}},
    {"file", [](AdviceInput& at) { at.object.clear(); }},
    {"package",
     [](AdviceInput& at) {
       at.package = {};
       at.package_version.clear();
       at.software.clear();
     }},
    {"release",
     [](AdviceInput& at) {
       at.package_version.clear();
       at.variant.clear();
     }},
    {"manager", [](AdviceInput& at) { at.manager.clear(); }},
    {"file and manager",
     [](AdviceInput& at) {
       at.object.clear();
       at.manager.clear();
     }},
    {"file and package",
     [](AdviceInput& at) {
       at.object.clear();
       at.package = {};
       at.package_version.clear();
       at.software.clear();
     }},
    {"everything of the owner",
     [](AdviceInput& at) {
       at.object.clear();
       at.package = {};
       at.package_version.clear();
       at.software.clear();
       at.manager.clear();
       at.extension.clear();
       at.variant.clear();
       at.caller.clear();
     }},
    {"toolkit",
     [](AdviceInput& at) {
       at.toolkit = {};
       at.toolkit_how.clear();
       at.newest_cubin = {};
       at.variant.clear();
     }},
    {"driver",
     [](AdviceInput& at) {
       at.driver = {};
       at.kernel_module.clear();
     }},
    {"runtime", [](AdviceInput& at) { at.runtime = {}; }},
    {"images",
     [](AdviceInput& at) {
       at.have.clear();
       at.kernel_images.clear();
       at.taken.reset();
     }},
    {"kernels",
     [](AdviceInput& at) {
       at.kernels.clear();
       at.kernel_images.clear();
     }},
    {"cache",
     [](AdviceInput& at) {
       at.cache_variable.clear();
       at.cache_entry.clear();
       at.removable.clear();
     }},
    {"switches", [](AdviceInput& at) { at.switch_names.clear(); }},
    {"program", [](AdviceInput& at) { at.program.clear(); }},
    {"build",
     [](AdviceInput& at) {
       at.arch_variable.clear();
       at.build_system.clear();
       at.build_folder.clear();
       at.container_image.clear();
     }},
    {"GPU", [](AdviceInput& at) { at.device.reset(); }},
    {"compiler", [](AdviceInput& at) { at.compiler.reset(); }},
    {"all",
     [](AdviceInput& at) {
       const Cause cause = at.cause;
       at = {};
       at.cause = cause;
     }},
    {"all but the GPU",
     [](AdviceInput& at) {
       const auto device = at.device;
       const Cause cause = at.cause;
       at = {};
       at.cause = cause;
       at.device = device;
     }},
};

struct Owner {
  const char* package;
  const char* version;
  const char* manager;
  const char* object;
};
constexpr Owner kOwners[] = {
    {"libmine", "1.0", "pip", "/v/site-packages/libmine/libmine.so"},
    {"libmine", "1.0", "conda", "/c/lib/libmine.so"},
    {"nvidia-nccl-cu11", "2.16.5", "pip", "/v/nvidia/nccl/lib/libnccl.so.2"},
    {"nvidia-cublas-cu12", "12.1.3.1", "pip", "/v/nvidia/cublas/lib/libcublas.so.12"},
    {"nvidia-cudnn-cu12", "9.1.0.70", "pip", "/v/nvidia/cudnn/lib/libcudnn_ops.so.9"},
    {"tensorrt", "10.0", "pip", "/v/tensorrt_libs/libnvinfer.so.10"},
    {"torch", "2.4.1+cu121", "pip", "/v/site-packages/torch/lib/libtorch_cuda.so"},
    {"torch", "2.4.1+cu121", "conda", "/c/site-packages/torch/lib/libtorch_cuda.so"},
    {"bitsandbytes", "0.45.1", "pip", "/v/site-packages/bitsandbytes/libbitsandbytes_cuda124.so"},
    {"onnxruntime-gpu", "1.20.0", "pip",
     "/v/site-packages/onnxruntime/capi/libonnxruntime_providers_cuda.so"},
    {"flash-attn", "2.8.3", "pip", "/v/site-packages/flash_attn_2_cuda.so"},
    {"cupy-cuda12x", "13.0", "pip", "/v/site-packages/cupy/_core/core.so"},
    {"tensorflow", "2.15.0", "pip", "/v/site-packages/tensorflow/libtensorflow_cc.so.2"},
    {"triton", "3.1.0", "pip", "/v/site-packages/triton/backends/nvidia/lib/cupti/libcupti.so.12"},
    {"numba-cuda", "0.20", "pip", ""},
};

TEST(AdviceWords, AreNeverEmptyWhateverIsNotKnown) {
  std::size_t situations = 0;
  for (const CauseRow& cause : causes()) {
    for (const image::ComputeCapability device :
         {image::ComputeCapability{6, 1}, {8, 9}, {9, 0}, {11, 0}, {12, 0}}) {
      for (const Owner& owner : kOwners) {
        for (const Gap& gap : kGaps) {
          AdviceInput at = complete(cause.cause, device);
          at.package = at.software = owner.package;
          at.package_version = owner.version;
          at.manager = owner.manager;
          at.object = owner.object;
          gap.make(at);
          ++situations;
          expect_whole(advise_on(at), fmt::format("{} {} {} without {}", cause.name,
                                                  image::to_name(device).view(), owner.package, gap.name));
        }
      }
    }
  }
  EXPECT_GT(situations, 10'000U);
}

TEST(AdviceWords, AreNeverEmptyForAnyMessage) {
  for (const MessageRow& message : messages()) {
    for (const char* owner : {"", "torch", "libmine"}) {
      for (const Gap& gap : kGaps) {
        AdviceInput at = complete(message.cause, {8, 9});
        at.code = message.code;
        at.message = message.id;
        at.object.clear();
        at.package = at.software = owner;
        gap.make(at);
        at.message = message.id;
        expect_whole(advise_on(at), fmt::format("{} of \"{}\" without {}", message.id, owner, gap.name));
      }
    }
  }
}

/// The words of a template, and whether each may be empty: {word?}.
std::vector<std::pair<std::string, bool>> words_of(std::string_view text) {
  std::vector<std::pair<std::string, bool>> out;
  for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-", at + 1);
    if (end == text.npos || end == at + 1) continue;
    const bool optional = text[end] == '?' && text.substr(end + 1, 1) == "}";
    if (optional || text[end] == '}') out.emplace_back(text.substr(at + 1, end - at - 1), optional);
  }
  return out;
}

void expect_whole_template(std::string_view text, const std::string& where) {
  const auto words = words_of(text);
  for (const auto& [empty, optional] : words) {
    TemplateWords values;
    for (const auto& row : words) values.emplace_back(row.first, row.first == empty ? "" : "X");
    const std::string out = expand_filled(text, values);
    // Without a word that it needs, nothing is said.
    if (!optional) {
      EXPECT_EQ(out, "") << where << " without " << empty;
    }
    expect_whole(out, where + " without " + empty);
  }
}

TEST(AdviceWords, OfEveryTemplateAreOptionalOrNothingIsSaid) {
  std::size_t templates = 0;
  const auto check = [&](std::string_view table, std::string_view id,
                         std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) {
      ++templates;
      for (std::string_view rest = text; !rest.empty();) {  // a line is a command
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        expect_whole_template(line, fmt::format("{} {}", table, id));
      }
    }
  };
  for (const FixRow& row : fixes()) check("fixes", row.id, {row.title, row.command, row.why, row.caveat});
  for (const CauseFixRow& row : cause_fixes())
    check("cause_fixes", row.title, {row.title, row.command, row.why, row.caveat});
  for (const MessageFixRow& row : message_fixes())
    check("message_fixes", row.message, {row.title, row.command, row.why, row.caveat});
  for (const WorkaroundRow& row : workarounds())
    check("workarounds", row.package, {row.title, row.command, row.why, row.caveat});
  for (const CodeMeaningRow& row : code_meanings())
    check("code_meanings", row.title, {row.title, row.command, row.why, row.caveat});
  for (const InstallerRow& row : installers()) check("installers", row.distribution, {row.command});
  for (const RecipeRow& row : recipes()) check("recipes", row.id, {row.command});
  for (const MachineCheckRow& row : machine_checks()) check("machine_checks", row.id, {row.text, row.advice});
  EXPECT_GT(templates, 1000U);
}

}  // namespace
}  // namespace kshim::test
