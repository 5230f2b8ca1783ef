// SPDX-License-Identifier: Apache-2.0
#include "modules/code.h"

#include <algorithm>

#include "base/settings.h"
#include "modules/ptx_check.h"
#include "modules/ptx_initial.h"
#include "modules/tile_kernels.h"

namespace kshim::sim {
namespace {

constexpr std::uint8_t kCuda13Abi = 8;
constexpr image::Version kFirstAbi8Driver{13, 0};

std::string line_message(std::size_t line) {
  return "ptxas application ptx input, line " + std::to_string(line) + "; fatal   : Parsing error";
}

}  // namespace

std::size_t KernelCode::parameter_bytes() const noexcept {
  std::size_t end = 0;
  for (const image::ParameterInfo& each : parameters) {
    if (std::size_t{each.offset} + each.size > end) end = std::size_t{each.offset} + each.size;
  }
  return end;
}

CUresult Code::open(std::vector<Piece> pieces, image::ComputeCapability device,
                    std::shared_ptr<const Code>& out, std::string& message) {
  auto code = std::make_shared<Code>();
  code->device_ = device;
  for (Piece& piece : pieces) code->pieces_.push_back({std::move(piece), {}, {}, {}});
  for (Opened& opened : code->pieces_) {
    const CUresult result = opened.piece.tile  ? code->add_tile(opened)
                            : opened.piece.ptx ? code->add_ptx(opened, message)
                                               : code->add_cubin(opened, message);
    if (result != CUDA_SUCCESS) return result;
  }
  out = std::move(code);
  return CUDA_SUCCESS;
}

void Code::add_name(std::string_view name, const Opened& from) {
  // Parts that are linked may each have an instance of a template; the first is as good as the others.
  if (places_.emplace(name, static_cast<std::size_t>(&from - pieces_.data())).second) names_.push_back(name);
}

CUresult Code::add_cubin(Opened& opened, std::string& message) {
  const auto cubin = image::CubinReader::open(opened.piece.bytes);
  if (!cubin) return CUDA_ERROR_INVALID_IMAGE;
  if (cubin->elf().abi_version() >= kCuda13Abi && settings().driver < kFirstAbi8Driver) {
    message = "the cubin has ELF ABI version 8, which drivers before CUDA 13.0 do not read";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  opened.cubin = *cubin;
  for (std::uint64_t cursor = 0;;) {
    const auto kernel = cubin->next_name(cursor);
    if (!kernel) {
      if (kernel.error().code != Errc::not_found) return CUDA_ERROR_INVALID_IMAGE;
      break;
    }
    add_name(kernel->name, opened);
  }
  const auto globals = cubin->each_global([this](const image::GlobalInfo& global) {
    globals_.push_back(global);
    return true;
  });
  return globals ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult Code::add_ptx(Opened& opened, std::string& message) {
  const auto text = image::PtxReader::open(opened.piece.bytes);
  if (!text) return CUDA_ERROR_INVALID_PTX;
  if (const std::size_t line = first_bad_line(text_of(opened.piece.bytes)); line != 0) {
    message = line_message(line);
    return CUDA_ERROR_INVALID_PTX;
  }
  opened.text = *text;
  for (std::uint64_t cursor = 0;;) {
    const auto kernel = text->next_kernel(cursor);
    if (!kernel) {
      if (kernel.error().code != Errc::not_found) return CUDA_ERROR_INVALID_PTX;
      break;
    }
    opened.in_text.emplace(kernel->name, *kernel);
    add_name(kernel->name, opened);
  }
  for (std::uint64_t cursor = 0;;) {
    const auto global = text->next_global(cursor);
    if (!global) {
      if (global.error().code != Errc::not_found) return CUDA_ERROR_INVALID_PTX;
      return CUDA_SUCCESS;
    }
    globals_.push_back(*global);
    initial_.push_back(initial_contents(text_of(opened.piece.bytes), *global));
    globals_.back().initial = initial_.back();
  }
}

// Its kernels have no parameters here: what they take stands in types that nobody asks the simulator for.
CUresult Code::add_tile(Opened& opened) {
  std::vector<std::string_view> names;
  if (!tile_kernels(opened.piece.bytes, names)) return CUDA_ERROR_INVALID_IMAGE;
  for (const std::string_view name : names) add_name(name, opened);
  return CUDA_SUCCESS;
}

std::unique_ptr<KernelCode> Code::read(std::string_view name, const Opened& from) const {
  auto kernel = std::make_unique<KernelCode>();
  const image::ComputeCapability target = from.piece.arch.cc;
  kernel->ptx_version = static_cast<int>(target.number());
  if (from.piece.tile) {
    kernel->info.name = name;
    kernel->binary_version = static_cast<int>(device_.number());
  } else if (from.piece.ptx) {
    const auto found = from.in_text.find(name);
    if (found == from.in_text.end()) return nullptr;
    kernel->info = found->second;
    kernel->info.constant_bytes = 0;
    for (const image::GlobalInfo& global : globals_) {
      if (global.constant) kernel->info.constant_bytes += static_cast<std::uint32_t>(global.size);
    }
    kernel->binary_version = static_cast<int>(device_.number());
  } else {
    const auto found = from.cubin.find_kernel(name);
    if (!found) return nullptr;
    kernel->info = *found;
    kernel->binary_version = static_cast<int>(target.number());
  }
  for (std::uint32_t ordinal = 0; ordinal < kernel->info.parameter_count; ++ordinal) {
    const auto parameter =
        from.piece.ptx ? from.text.parameter(name, ordinal) : from.cubin.parameter(name, ordinal);
    if (!parameter) break;
    kernel->parameters.push_back(*parameter);
  }
  return kernel;
}

const KernelCode* Code::kernel(std::string_view name) const {
  const auto place = places_.find(name);
  if (place == places_.end()) return nullptr;
  const std::lock_guard guard(lock_);
  std::unique_ptr<KernelCode>& slot = kernels_[place->first];
  if (slot == nullptr) slot = read(place->first, pieces_[place->second]);
  return slot.get();
}

bool Code::has_text(std::string_view name) const noexcept {
  return !name.empty() && std::ranges::any_of(pieces_, [&](const Opened& each) {
    const std::string_view text(reinterpret_cast<const char*>(each.piece.bytes.data()),
                                each.piece.bytes.size());
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if (end < text.size() && (text[end] == '\0' || text[end] == ';')) return true;
    }
    return false;
  });
}

}  // namespace kshim::sim
