// SPDX-License-Identifier: Apache-2.0
// cuda_errors.def against the toolkit's own headers, in both directions.
#include "kshim/base/cuda_error.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace kshim {
namespace {

TEST(CudaError, FindsByNumber) {
  ASSERT_NE(find_cuda_error(209), nullptr);
  EXPECT_STREQ(find_cuda_error(209)->driver_name, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_STREQ(find_cuda_error(209)->runtime_name, "cudaErrorNoKernelImageForDevice");
  EXPECT_EQ(find_cuda_error(35)->driver_name, nullptr);
  EXPECT_EQ(find_cuda_error(12345), nullptr);
  EXPECT_EQ(find_cuda_error(-1), nullptr);
}

TEST(CudaError, RowsAscendAndHaveNames) {
  constexpr int kCodes[] = {
#define KSHIM_CUDA_ERROR(code, driver, runtime, text, traits) code,
#include "kshim/base/cuda_errors.def"
#undef KSHIM_CUDA_ERROR
  };
  int last = -1;
  for (const int code : kCodes) {
    EXPECT_GT(code, last);
    last = code;
    const CudaError* error = find_cuda_error(code);
    ASSERT_NE(error, nullptr) << code;
    EXPECT_TRUE(error->driver_name != nullptr || error->runtime_name != nullptr) << code;
    EXPECT_STRNE(error->message, "") << code;
  }
}

#ifdef KSHIM_TEST_CUDA_INCLUDE

std::string read_header(const std::string& name) {
  std::ifstream file(std::string(KSHIM_TEST_CUDA_INCLUDE) + "/" + name);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// The rows were taken from 13.0; another toolkit may lack some and have others, but none renames a number.
bool is_toolkit_of_the_rows() {
  return read_header("cuda.h").find("#define CUDA_VERSION 13000") != std::string::npos;
}

/// `NAME = 209,` inside the enumeration between `open` and `close`.
std::map<int, std::string> read_enumeration(const std::string& header, const std::string& open,
                                            const std::string& close, const std::string& prefix) {
  std::string text = read_header(header);
  const std::size_t from = text.find(open);
  const std::size_t to = text.find(close, from);
  EXPECT_NE(from, std::string::npos) << header;
  EXPECT_NE(to, std::string::npos) << header;
  text = text.substr(from, to - from);
  std::map<int, std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);  // `NAME = 209,`
    std::string name, equals;
    int code = 0;
    if (words >> name >> equals >> code && name.starts_with(prefix) && equals == "=") out.emplace(code, name);
  }
  out.erase(10000);  // cudaErrorApiFailureBase is an offset of CUDA 4, not an error
  return out;
}

void compare(const std::map<int, std::string>& header, const char* CudaError::*name) {
  ASSERT_GT(header.size(), 80U);
  const bool complete = is_toolkit_of_the_rows();
  for (const auto& [code, expected] : header) {
    const CudaError* error = find_cuda_error(code);
    if (complete) {
      ASSERT_NE(error, nullptr) << "the header has " << expected << " = " << code
                                << ", cuda_errors.def has no such row";
      ASSERT_NE(error->*name, nullptr) << expected;
    }
    if (error != nullptr && error->*name != nullptr) {
      EXPECT_EQ(error->*name, expected) << code;
    }
  }
  for (int code = 0; complete && code < 20000; ++code) {
    const CudaError* error = find_cuda_error(code);
    if (error == nullptr || error->*name == nullptr) continue;
    EXPECT_TRUE(header.contains(code)) << error->*name << " = " << code << " is in no header";
  }
}

TEST(CudaError, DriverNamesAreThoseOfCudaH) {
  compare(read_enumeration("cuda.h", "typedef enum cudaError_enum {", "} CUresult;", "CUDA_"),
          &CudaError::driver_name);
}

TEST(CudaError, RuntimeNamesAreThoseOfDriverTypesH) {
  compare(read_enumeration("driver_types.h", "cudaError\n{", "\n};", "cuda"), &CudaError::runtime_name);
}

#endif

}  // namespace
}  // namespace kshim
