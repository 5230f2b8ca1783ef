// SPDX-License-Identifier: Apache-2.0
#include "modules/linker.h"

#include "device/product.h"
#include "modules/ptx_check.h"

namespace kshim::sim {

Linker::Linker(const Device& on, const JitOptions& with)
    : device(on), options_(with.options, with.options + with.count), values_(with.values) {
  publish(this);
}

std::string join_ptx(const std::string& first, std::string_view next) {
  if (first.empty()) return std::string(next);
  std::string out = first;
  while (!next.empty()) {
    const std::size_t end = next.find('\n');
    const std::string_view line = next.substr(0, end);
    next = end == std::string_view::npos ? std::string_view() : next.substr(end + 1);
    const std::size_t start = line.find_first_not_of(" \t\r");
    const std::string_view words = start == std::string_view::npos ? std::string_view() : line.substr(start);
    const bool once =
        words.starts_with(".version") || words.starts_with(".target") || words.starts_with(".address_size");
    if (!once) out.append("\n").append(line);
  }
  return out;
}

CUresult Linker::add(CUjitInputType type, Bytes data) {
  // Functions of a library run in no kernel here, so that it is one is all that matters.
  if (type == CU_JIT_INPUT_LIBRARY)
    return text_of(data).starts_with("!<arch>\n") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
  if (type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
    return CUDA_ERROR_NOT_SUPPORTED;  // objects and LTO-IR need a linker
  }
  std::unique_ptr<ImageSet> images;
  CUresult result = ImageSet::from_bytes(data, false, images);
  Piece piece;
  std::string message;
  if (result == CUDA_SUCCESS) result = images->piece_for(device, piece, message);
  if (result == CUDA_SUCCESS && piece.ptx && first_bad_line(text_of(piece.bytes)) != 0)
    result = CUDA_ERROR_INVALID_PTX;
  const JitOptions options{static_cast<unsigned>(options_.size()), options_.data(), values_};
  if (result != CUDA_SUCCESS) {
    write_logs(options, message);
    return result;
  }
  if (piece.ptx) {
    const std::string_view text = text_of(piece.bytes);
    ptx_ = join_ptx(ptx_, text.substr(0, text.find('\0')));
  } else {
    cubin_.assign(piece.bytes.begin(), piece.bytes.end());
    ++cubins_;
  }
  return CUDA_SUCCESS;
}

CUresult Linker::complete(void*& out, std::size_t& size) {
  if (cubins_ + (ptx_.empty() ? 0U : 1U) != 1)
    return cubins_ == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  const JitOptions options{static_cast<unsigned>(options_.size()), options_.data(), values_};
  write_logs(options, {});
  if (cubins_ == 1) {
    out = cubin_.data();
    size = cubin_.size();
  } else {
    out = ptx_.data();
    size = ptx_.size() + 1;  // with its NUL: a program may copy it
  }
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
