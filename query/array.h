// SPDX-License-Identifier: Apache-2.0
// A growing array on malloc: this library has no C++ runtime below it, so no std::vector.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace kshim::query {

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  ~Array() { std::free(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  /// False: there is no memory, and the array is as before.
  bool push(const T& value) noexcept {
    if (size_ == capacity_ && !grow()) return false;
    data_[size_++] = value;
    return true;
  }
  void clear() noexcept { size_ = 0; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t bytes() const noexcept { return capacity_ * sizeof(T); }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t index) noexcept { return data_[index]; }
  const T& operator[](std::size_t index) const noexcept { return data_[index]; }
  T& back() noexcept { return data_[size_ - 1]; }

 private:
  bool grow() noexcept {
    const std::size_t wanted = capacity_ == 0 ? 16 : capacity_ * 2;
    if (wanted > SIZE_MAX / sizeof(T)) return false;
    void* more = std::realloc(data_, wanted * sizeof(T));
    if (more == nullptr) return false;
    data_ = static_cast<T*>(more);
    capacity_ = wanted;
    return true;
  }
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace kshim::query
