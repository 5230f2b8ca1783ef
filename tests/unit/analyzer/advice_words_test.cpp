// SPDX-License-Identifier: Apache-2.0
// No sentence and no command of advice has a hole where a word was empty: of every cause, with each fact that
// a log, a report or a file need not name left out in turn, for each message; and of every template by
// itself.
#include <gtest/gtest.h>

#include "analyzer/advise/fixes.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/data/knowledge_file.h"
#include "tests/support/command_names.h"

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
Facts complete(Cause cause, image::ComputeCapability device) {
  Facts at;
  at.cause = cause;
  at.call.code = 209;
  at.gpu.cc = device;
  at.driver.cuda = {12, 4};
  at.driver.module = "550.54.15";
  at.images.toolkit = {12, 1};
  at.images.toolkit_how = "its cubins say so";
  at.images.list = {
      {.candidate = {image::ImageKind::cubin, *image::parse_arch("sm_75"), {}}, .toolkit = {12, 1}}};
  at.driver.runtime = {12, 1};
  at.package.name = "libmine";
  at.package.version = "1.0";
  at.package.software = "libmine";
  at.package.manager = "pip";
  at.file.path = "/v/site-packages/libmine/libmine.so";
  at.file.origin = Origin::installed;
  at.file.shared_library = true;
  at.images.have = {{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}}};
  at.driver.switches.force_ptx_jit = true;
  at.file.cache = "Triton";
  at.file.cache_entry = at.file.removable = "/home/u/.triton/cache/abc";
  at.call.compiler = {"NVRTC", {device, image::Suffix::none}, {12, 1}, false, {}, "", {}, "", "", {}};
  at.call.extension = "myext";
  at.call.caller = "/v/lib/libcaller.so";
  at.process.program = "python train.py";
  at.package.arch_variable = "CMAKE_CUDA_ARCHITECTURES";
  at.package.build_system = "cmake";
  at.file.build_folder = "build";
  at.process.container_image = "vendor/image:1.0";
  at.process.python_version = "3.11";
  at.package.variant = "cu121";
  at.images.kernels = {"k"};
  at.images.holders = {"sm_75"};
  at.images.taken = image::Candidate{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}};
  at.gpu.serving = "1";
  return at;
}

struct Gap {
  const char* name;
  void (*make)(Facts&);
};
constexpr Gap kGaps[] = {
    {"nothing", [](Facts&) {}},
    {"file", [](Facts& at) { at.file.path.clear(); }},
    {"package",
     [](Facts& at) {
       at.package.name = {};
       at.package.version.clear();
       at.package.software.clear();
     }},
    {"release",
     [](Facts& at) {
       at.package.version.clear();
       at.package.variant.clear();
     }},
    {"manager", [](Facts& at) { at.package.manager.clear(); }},
    {"file and manager",
     [](Facts& at) {
       at.file.path.clear();
       at.package.manager.clear();
     }},
    {"file and package",
     [](Facts& at) {
       at.file.path.clear();
       at.package.name = {};
       at.package.version.clear();
       at.package.software.clear();
     }},
    {"everything of the owner",
     [](Facts& at) {
       at.file.path.clear();
       at.package.name = {};
       at.package.version.clear();
       at.package.software.clear();
       at.package.manager.clear();
       at.call.extension.clear();
       at.package.variant.clear();
       at.call.caller.clear();
     }},
    {"toolkit",
     [](Facts& at) {
       at.images.toolkit = {};
       at.images.toolkit_how.clear();
       at.images.list.clear();
       at.package.variant.clear();
     }},
    {"driver",
     [](Facts& at) {
       at.driver.cuda = {};
       at.driver.module.clear();
     }},
    {"runtime", [](Facts& at) { at.driver.runtime = {}; }},
    {"images",
     [](Facts& at) {
       at.images.have.clear();
       at.images.holders.clear();
       at.images.taken.reset();
     }},
    {"kernels",
     [](Facts& at) {
       at.images.kernels.clear();
       at.images.holders.clear();
     }},
    {"cache",
     [](Facts& at) {
       at.file.cache_entry.clear();
       at.file.removable.clear();
     }},
    {"switches", [](Facts& at) { at.driver.switches = {}; }},
    {"program", [](Facts& at) { at.process.program.clear(); }},
    {"build",
     [](Facts& at) {
       at.package.arch_variable.clear();
       at.package.build_system.clear();
       at.file.build_folder.clear();
       at.process.container_image.clear();
     }},
    {"GPU", [](Facts& at) { at.gpu.cc.reset(); }},
    {"compiler", [](Facts& at) { at.call.compiler.reset(); }},
    {"all",
     [](Facts& at) {
       const Cause cause = at.cause;
       at = {};
       at.cause = cause;
     }},
    {"all but the GPU",
     [](Facts& at) {
       const auto device = at.gpu.cc;
       const Cause cause = at.cause;
       at = {};
       at.cause = cause;
       at.gpu.cc = device;
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
          Facts at = complete(cause.cause, device);
          at.package.name = at.package.software = owner.package;
          at.package.version = owner.version;
          at.package.manager = owner.manager;
          at.file.path = owner.object;
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
        Facts at = complete(message.cause, {8, 9});
        at.call.code = message.code;
        at.call.message = message.id;
        at.file.path.clear();
        at.package.name = at.package.software = owner;
        gap.make(at);
        at.call.message = message.id;
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
