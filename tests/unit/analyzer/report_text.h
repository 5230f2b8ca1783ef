// SPDX-License-Identifier: Apache-2.0
// Writes reports for tests, a line at a time, as text: so that a test can also write what no shim would.
#pragma once
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kshim::test {

/// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kshim-analyzer-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::string json_text(std::string_view text) { return fmt::format("\"{}\"", text); }
inline std::string list_of(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + json_text(item);
  return "[" + out + "]";
}

class ReportText {
 public:
  /// Adds `{"type":TYPE,"seq":N,"t":N,FIELDS}`.
  ReportText& record(std::string_view type, std::string_view fields) {
    text_ += fmt::format("{{\"type\":\"{}\",\"seq\":{},\"t\":{}{}{}}}\n", type, count_, count_ * 10,
                         fields.empty() ? "" : ",", fields);
    ++count_;
    return *this;
  }
  ReportText& raw(std::string_view line) {
    text_ += line;
    ++count_;
    return *this;
  }
  ReportText& process(std::string_view env = "", unsigned pid = 17, unsigned ppid = 1,
                      std::string_view exe = "/home/u/train", std::string_view host = "box") {
    return record(
        "process",
        fmt::format(R"("schema":"kshim-report/1","shim":"0.1.0","run":null,"host":"{}","pid":{},"start":5,)"
                    R"("ppid":{},"rank":null,"time":"2026-11-21T08:00:00Z","exe":"{}","argv":["{}"],)"
                    R"("cwd":"/home/u","env":{{{}}})",
                    host, pid, ppid, exe, exe, env));
  }
  ReportText& driver(std::string_view cuda = "13.0", std::string_view module = "580.82.07") {
    return record(
        "driver",
        fmt::format(
            R"("path":"/lib/libcuda.so.1","cuda_version":"{}","kernel_module":"{}","simulated":false)", cuda,
            module));
  }
  ReportText& device(unsigned ordinal, std::string_view cc, std::string_view name = "GPU",
                     std::string_view uuid = "") {
    return record("device",
                  fmt::format(R"("ordinal":{},"name":"{}","compute_capability":"{}","uuid":{},"pci":null)",
                              ordinal, name, cc, uuid.empty() ? "null" : json_text(uuid)));
  }
  /// images: "sm_75", "compute_120:9.0", one of each; empty: null.
  ReportText& object(unsigned id, std::string_view path, const std::vector<std::string>& images,
                     unsigned fatbins = 1) {
    std::string rows;
    for (const std::string& image : images) {
      const std::size_t colon = image.find(':');
      const std::string arch = image.substr(0, colon);
      const char* kind = arch.starts_with("sm_") ? "cubin" : arch.starts_with("lto_") ? "ltoir" : "ptx";
      rows += fmt::format(R"({}{{"kind":"{}","arch":"{}","isa":{},"count":1,"bytes":100}})",
                          rows.empty() ? "" : ",", kind, arch,
                          colon == std::string::npos ? "null" : json_text(image.substr(colon + 1)));
    }
    return record(
        "object",
        fmt::format(R"("id":{},"path":"{}","build_id":"ab12","runtime":"static","fatbins":{},"images":{})",
                    id, path, fatbins, images.empty() ? "null" : "[" + rows + "]"));
  }
  ReportText& module(unsigned id, std::string_view object, int result = 0, std::string_view jit = "null",
                     double ms = 1.5) {
    ++modules_;
    return record(
        "module",
        fmt::format(R"("id":{},"object":{},"offset":4096,"content_hash":null,"size":100,)"
                    R"("api":"cuLibraryLoadData","result":{},"selected":null,"jit":{},"ms":{},"device":0)",
                    id, object, result, jit, ms));
  }
  /// refs: further fields, such as `"module":1,"object":1`.
  ReportText& failure(unsigned id, std::string_view stage, int code, std::string_view kernel,
                      std::string_view refs, std::string_view api = "cuLibraryGetKernel",
                      unsigned device = 0) {
    return record(
        "failure",
        fmt::format(
            R"("id":{},"stage":"{}","layers":[{{"layer":"driver","api":"{}","code":{},"name":null}}],)"
            R"("device":{},"kernel":{},"tid":17{}{})",
            id, stage, api, code, device, kernel.empty() ? "null" : json_text(kernel),
            refs.empty() ? "" : ",", refs));
  }
  ReportText& end(unsigned failures = 1) {
    return record("end",
                  fmt::format(R"("time":"2026-11-21T08:00:01Z","failures":{},"modules":{},"dropped":0)",
                              failures, modules_));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  unsigned count_ = 0;
  unsigned modules_ = 0;
};

}  // namespace kshim::test
