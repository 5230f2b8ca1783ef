// SPDX-License-Identifier: Apache-2.0
#include "analyzer/reader/record_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace kshim::analysis {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// A hostile report may hold millions of frames; no real stack does.
constexpr std::size_t kMostElements = 65536;

std::string text(object from, std::string_view key) {
  std::string_view value;
  return from[key].get(value) == SUCCESS ? std::string(value) : std::string();
}

std::optional<std::uint64_t> number(object from, std::string_view key) {
  std::uint64_t value = 0;
  if (from[key].get(value) != SUCCESS) return std::nullopt;
  return value;
}

std::optional<unsigned> small(object from, std::string_view key) {
  const auto value = number(from, key);
  if (!value || *value > std::numeric_limits<unsigned>::max()) return std::nullopt;
  return static_cast<unsigned>(*value);
}

int code(object from, std::string_view key) {
  std::int64_t value = 0;
  if (from[key].get(value) != SUCCESS) return 0;
  return value >= 0 && value <= std::numeric_limits<int>::max() ? static_cast<int>(value) : 0;
}

std::optional<bool> truth(object from, std::string_view key) {
  bool value = false;
  if (from[key].get(value) != SUCCESS) return std::nullopt;
  return value;
}

double decimal(object from, std::string_view key) {
  double value = 0;
  return from[key].get(value) == SUCCESS && value >= 0 ? value : 0;
}

template <class Visit>
bool each(object from, std::string_view key, Visit&& visit) {
  array values;
  if (from[key].get(values) != SUCCESS) return false;
  std::size_t left = kMostElements;
  for (const element value : values) {
    if (left-- == 0) break;
    visit(value);
  }
  return true;
}

template <class Visit>
bool each_object(object from, std::string_view key, Visit&& visit) {
  return each(from, key, [&](element value) {
    object inner;
    if (value.get(inner) == SUCCESS) visit(inner);
  });
}

std::vector<std::string> texts(object from, std::string_view key) {
  std::vector<std::string> out;
  each(from, key, [&](element value) {
    std::string_view item;
    if (value.get(item) == SUCCESS) out.emplace_back(item);
  });
  return out;
}

std::vector<PythonFrame> python_frames(object from, std::string_view key) {
  std::vector<PythonFrame> out;
  each_object(from, key, [&](object frame) {
    out.push_back({text(frame, "file"), small(frame, "line").value_or(0), text(frame, "function")});
  });
  return out;
}

std::vector<NativeFrame> native_frames(object from, std::string_view key) {
  std::vector<NativeFrame> out;
  each_object(from, key, [&](object frame) {
    out.push_back({text(frame, "object"), text(frame, "build_id"), number(frame, "offset").value_or(0),
                   text(frame, "symbol")});
  });
  return out;
}

std::string process(object from, Report& report, std::uint32_t line) {
  if (report.process.line != 0) return "a second `process` record, ignored";
  ProcessRecord& out = report.process;
  out.line = line;
  out.shim = text(from, "shim");
  out.run = text(from, "run");
  out.host = text(from, "host");
  out.time = text(from, "time");
  out.exe = text(from, "exe");
  out.cwd = text(from, "cwd");
  out.pid = number(from, "pid").value_or(0);
  out.start = number(from, "start").value_or(0);
  out.ppid = number(from, "ppid").value_or(0);
  out.rank = small(from, "rank");
  out.argv = texts(from, "argv");
  object env;
  if (from["env"].get(env) == SUCCESS) {
    for (const auto field : env) {
      std::string_view value;
      if (field.value.get(value) == SUCCESS) out.env.emplace(std::string(field.key), std::string(value));
    }
  }
  return {};
}

std::string driver(object from, Report& report, std::uint32_t line) {
  DriverRecord out;
  out.line = line;
  out.path = text(from, "path");
  out.cuda_version = text(from, "cuda_version");
  out.kernel_module = text(from, "kernel_module");
  out.simulated = truth(from, "simulated").value_or(false);
  report.driver = std::move(out);
  return {};
}

std::string device(object from, Report& report, std::uint32_t line) {
  const auto ordinal = small(from, "ordinal");
  if (!ordinal) return "`device` without `ordinal`, ignored";
  DeviceRecord out;
  out.line = line;
  out.ordinal = *ordinal;
  out.name = text(from, "name");
  out.compute_capability = text(from, "compute_capability");
  out.uuid = text(from, "uuid");
  out.pci = text(from, "pci");
  report.devices.push_back(std::move(out));
  return {};
}

std::string object_record(object from, Report& report, std::uint32_t line) {
  const auto id = number(from, "id");
  if (!id) return "`object` without `id`, ignored";
  ObjectRecord out;
  out.line = line;
  out.id = *id;
  out.path = text(from, "path");
  out.build_id = text(from, "build_id");
  out.runtime = text(from, "runtime");
  out.fatbins = number(from, "fatbins");
  std::vector<ImageEntry> images;
  if (each_object(from, "images", [&](object image) {
        images.push_back({text(image, "kind"), text(image, "arch"), text(image, "isa"),
                          number(image, "count").value_or(1), number(image, "bytes").value_or(0)});
      })) {
    out.images = std::move(images);
  }
  report.objects.push_back(std::move(out));
  return {};
}

std::string module(object from, Report& report, std::uint32_t line) {
  const auto id = number(from, "id");
  if (!id) return "`module` without `id`, ignored";
  ModuleRecord out;
  out.line = line;
  out.id = *id;
  out.object = number(from, "object");
  out.offset = number(from, "offset");
  out.size = number(from, "size");
  out.device = small(from, "device");
  out.content_hash = text(from, "content_hash");
  out.api = text(from, "api");
  out.selected = text(from, "selected");
  out.toolkit = text(from, "toolkit");
  out.result = code(from, "result");
  out.jit = truth(from, "jit");
  out.ms = decimal(from, "ms");
  report.modules.push_back(std::move(out));
  return {};
}

std::string failure(object from, Report& report, std::uint32_t line) {
  const auto id = number(from, "id");
  if (!id) return "`failure` without `id`, ignored";
  FailureRecord out;
  out.line = line;
  out.id = *id;
  out.stage = text(from, "stage");
  out.kernel = text(from, "kernel");
  out.device = small(from, "device");
  out.module = number(from, "module");
  out.object = number(from, "object");
  each_object(from, "layers", [&](object layer) {
    out.layers.push_back(
        {text(layer, "layer"), text(layer, "api"), code(layer, "code"), text(layer, "name")});
  });
  out.native = native_frames(from, "native");
  out.python = python_frames(from, "python");
  out.python_main = python_frames(from, "python_main");
  out.asked = text(from, "asked");
  out.compiler = text(from, "compiler");
  out.known = texts(from, "known");
  report.failure_by_id.insert_or_assign(out.id, report.failures.size());
  report.failures.push_back(std::move(out));
  return {};
}

std::string repeat(object from, Report& report, std::uint32_t) {
  const auto id = number(from, "id");
  const auto count = number(from, "count");
  if (!id || !count) return "`repeat` without `id` and `count`, ignored";
  const auto at = report.failure_by_id.find(*id);
  if (at == report.failure_by_id.end()) return "`repeat` of a failure that is not there, ignored";
  std::uint64_t& known = report.failures[at->second].count;
  known = std::max(known, *count);
  return {};
}

std::string read(object from, Report& report, std::uint32_t line) {
  const auto id = number(from, "failure");
  if (!id) return "`read` without `failure`, ignored";
  ReadRecord out;
  out.line = line;
  out.failure = *id;
  out.api = text(from, "api");
  out.code = code(from, "code");
  out.object = number(from, "object");
  out.native = native_frames(from, "native");
  out.python = python_frames(from, "python");
  report.reads.push_back(std::move(out));
  return {};
}

std::string gap(object from, Report& report, std::uint32_t line) {
  GapRecord out;
  out.line = line;
  out.object = number(from, "object");
  out.offset = number(from, "offset");
  out.device = small(from, "device");
  out.kernels = texts(from, "kernels");
  out.have = texts(from, "have");
  out.complete = truth(from, "complete").value_or(false);
  out.need = text(from, "need");
  report.gaps.push_back(std::move(out));
  return {};
}

std::string library(object from, Report& report, std::uint32_t line) {
  LibraryRecord out;
  out.line = line;
  out.soname = text(from, "soname");
  out.build_id = text(from, "build_id");
  out.path = text(from, "path");
  out.version = text(from, "version");
  report.libraries.push_back(std::move(out));
  return {};
}

std::string bypass(object from, Report& report, std::uint32_t line) {
  BypassRecord out;
  out.line = line;
  out.path = text(from, "path");
  out.how = text(from, "how");
  out.names = texts(from, "names");
  report.bypasses.push_back(std::move(out));
  return {};
}

std::string package(object from, Report& report, std::uint32_t line) {
  const auto id = number(from, "object");
  if (!id) return "`package` without `object`, ignored";
  PackageRecord out;
  out.line = line;
  out.object = *id;
  out.name = text(from, "name");
  out.version = text(from, "version");
  out.manager = text(from, "manager");
  out.build = text(from, "build");
  out.channel = text(from, "channel");
  out.environment = text(from, "environment");
  report.packages.push_back(std::move(out));
  return {};
}

std::string coverage(object from, Report& report, std::uint32_t line) {
  CoverageRecord out;
  out.line = line;
  out.kernel = text(from, "kernel");
  if (out.kernel.empty()) return "`coverage` without `kernel`, ignored";
  out.object = number(from, "object");
  out.module = number(from, "module");
  out.launches = number(from, "launches").value_or(1);
  const std::string key = fmt::format("{} {} {}", out.object.value_or(0), out.module.value_or(0), out.kernel);
  const auto [at, first] = report.coverage_by_key.try_emplace(key, report.coverage.size());
  if (first) {
    report.coverage.push_back(std::move(out));
  } else {
    std::uint64_t& known = report.coverage[at->second].launches;
    known = std::max(known, out.launches);  // the last line has the sum
  }
  return {};
}

std::string end(object from, Report& report, std::uint32_t line) {
  EndRecord out;
  out.line = line;
  out.failures = number(from, "failures").value_or(0);
  out.modules = number(from, "modules").value_or(0);
  out.dropped = number(from, "dropped").value_or(0);
  report.end = out;
  return {};
}

struct Parser {
  std::string_view type;
  std::string (*parse)(object, Report&, std::uint32_t);
};
constexpr std::array kParsers = {
    Parser{"process", process},      Parser{"driver", driver}, Parser{"device", device},
    Parser{"object", object_record}, Parser{"module", module}, Parser{"failure", failure},
    Parser{"repeat", repeat},        Parser{"read", read},     Parser{"gap", gap},
    Parser{"library", library},      Parser{"bypass", bypass}, Parser{"package", package},
    Parser{"coverage", coverage},    Parser{"end", end},
};

}  // namespace

std::string parse_record(object from, std::uint32_t line, Report& report) {
  std::string_view type;
  if (from["type"].get(type) != SUCCESS) return "no `type`, ignored";
  for (const Parser& parser : kParsers) {
    if (parser.type == type) return parser.parse(from, report, line);
  }
  return {};
}

}  // namespace kshim::analysis
