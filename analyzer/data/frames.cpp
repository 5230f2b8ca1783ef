// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/frames.h"

#include "analyzer/core/text.h"

namespace kshim::data {
using core::contains;

namespace {

// "/venv/bin/torchrun": what pip writes for a package's command has no ending and nothing but a call.
bool is_script(std::string_view file, std::string_view function, std::string_view folder) {
  const std::string_view name = core::basename_of(file);
  if (function != "<module>" || contains(name, ".") || name.size() + 1 >= file.size()) return false;
  return core::basename_of(file.substr(0, file.size() - name.size() - 1)) == folder;
}

bool is_windows_path(std::string_view file) {
  const auto letter = [](char c) { return core::is_alnum(c) && !core::is_digit(c); };
  return file.starts_with("\\\\") ||
         (file.size() > 2 && letter(file[0]) && file[1] == ':' && file[2] == '\\');
}

// As the rows write paths: C:\Python310\Lib\json\decoder.py, where the interpreter's folder is named as its
// library is elsewhere, becomes c:/lib/python310/json/decoder.py.
std::string as_rows_write(std::string_view file) {
  std::string out(file);
  for (char& c : out) c = c == '\\' ? '/' : core::to_lower(c);
  constexpr std::string_view kFolder = "/python3";
  constexpr std::string_view kLibrary = "/lib/";
  const std::size_t at = out.find(kFolder);
  if (at == std::string::npos) return out;
  const std::size_t end = out.find_first_not_of("0123456789", at + kFolder.size());
  if (end != std::string::npos && std::string_view(out).substr(end).starts_with(kLibrary))
    out = out.substr(0, at) + "/lib" + out.substr(at, end - at) + out.substr(end + kLibrary.size() - 1);
  return out;
}

template <class Rows, class Fits>
FrameOwner first(const Rows& rows, Fits&& fits) {
  for (const auto& row : rows) {
    if (fits(row)) return row.owner;
  }
  return FrameOwner::user;
}

}  // namespace

FrameOwner owner_of_python(std::string_view written, std::string_view function) {
  const std::string posix = is_windows_path(written) ? as_rows_write(written) : std::string(written);
  const std::string_view file = posix;
  return first(python_frames(), [&](const auto& row) {
    if (row.match == FrameMatch::script) return is_script(file, function, row.text);
    return row.match == FrameMatch::begins ? file.starts_with(row.text) : contains(file, row.text);
  });
}

FrameOwner owner_of_object(std::string_view path) {
  const std::string_view name = core::basename_of(path);
  return first(native_frames(), [&](const auto& row) {
    return (row.match == FrameMatch::file_begins && name.starts_with(row.text)) ||
           (row.match == FrameMatch::path_begins && path.starts_with(row.text)) ||
           (row.match == FrameMatch::path_holds && contains(path, row.text));
  });
}

bool is_system_path(std::string_view path) {
  return std::ranges::any_of(native_frames(), [&](const NativeFrameRow& row) {
    return row.match == FrameMatch::path_begins && path.starts_with(row.text);
  });
}

FrameOwner owner_of_symbol(std::string_view symbol) {
  return first(native_frames(), [&](const auto& row) {
    return (row.match == FrameMatch::symbol_begins && symbol.starts_with(row.text)) ||
           (row.match == FrameMatch::symbol_holds && contains(symbol, row.text));
  });
}

FrameOwner owner_of_source(std::string_view file) {
  return first(native_frames(), [&](const auto& row) {
    return row.match == FrameMatch::source_holds && contains(file, row.text);
  });
}

}  // namespace kshim::data
