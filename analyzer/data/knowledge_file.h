// SPDX-License-Identifier: Apache-2.0
// The tables of knowledge/*.json: those that were built in, or newer ones from a file.
#pragma once

#include "analyzer/data/knowledge.h"

namespace kshim::data {

/// One name of a GPU: "RTX 5090".
struct GpuNameRow {
  std::string_view name;
  image::ComputeCapability cc;
};
/// How Windows counts a Linux driver; alone its branch from CUDA 13 on.
struct WindowsDriverRow {
  std::string_view of_linux;
  std::string_view of_windows;
};

struct Knowledge {
  std::vector<WindowsDriverRow> windows_drivers;
  std::vector<GpuNameRow> gpu_names;
#define KSHIM_TABLE(section, Row, ...) std::vector<Row> section;
#include "analyzer/data/tables.def"
};
/// A built-in table is read when it is first asked for, by any thread.
std::span<const WindowsDriverRow> windows_drivers();
std::span<const GpuNameRow> gpu_names();
const std::string& knowledge_date();                ///< of the newest table in use
const std::vector<std::string>& knowledge_files();  ///< that replaced built-in tables

/// The project of the tables that the package is, or is a variant of: cupy-cuda12x of cupy, onnxruntime-gpu
/// of onnxruntime. Empty for a name that only looks like one: it may be a stranger's on PyPI.
std::string_view known_project(std::string_view package);
bool is_without_source(std::string_view package);
/// The newest release that the rows of wheels.json know; empty where there is none, or one goes on with all
/// newer ones.
std::string_view newest_known(std::string_view distribution, std::string_view platform = kLinux);

/// Reads `text` (kshim-knowledge/1) in place of the tables that it has. Throws std::runtime_error that names
/// what is wrong; nothing has changed then. Before the first thread: image::select_image judges by the new
/// tables, too.
void replace_knowledge(std::string_view text, const std::string& file);

/// What the command does at start. `named`: --knowledge or $KSHIM_KNOWLEDGE, a file or a folder; it always
/// counts, and throws std::runtime_error where it cannot be read. Without it: files of $XDG_DATA_HOME/kshim
/// and /usr/share/kshim that are newer than the built-in tables and that only root or the user can write; one
/// that cannot be read is passed over, and returned as a warning. A setuid program takes the built-in tables.
std::vector<std::string> load_knowledge(const std::string& named);

}  // namespace kshim::data
