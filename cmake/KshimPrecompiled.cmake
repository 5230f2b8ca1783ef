# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: the standard library's headers, which take most of the time of each unit. tests/lint/includes.py makes sure
# that each file still includes what it uses. CMake's own CMAKE_DISABLE_PRECOMPILE_HEADERS turns them off.
set(KSHIM_PRECOMPILED_HEADERS
    <algorithm> <array> <charconv> <chrono> <cstddef> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional> <set> <span> <string>
    <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/core.h>)

# ccache takes part where it may trust a precompiled header, known by this text instead of by its bytes, which differ from folder to folder.
if(KSHIM_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(KSHIM_ENV env)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${KSHIM_ENV};CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_PCH_EXTSUM=1;${KSHIM_CCACHE}")
endif()

# kshim_precompile(TARGET [HEADERS...]): makes a precompiled header that other targets share by REUSE_FROM.
function(kshim_precompile target)
  target_precompile_headers(${target} PRIVATE ${KSHIM_PRECOMPILED_HEADERS} ${ARGN})
  set(versions "${fmt_VERSION}")
  if(ARGN) # a build without tests finds no GoogleTest, and makes the same objects of the command
    list(APPEND versions "${GTest_VERSION}")
  endif()
  string(SHA256 sum "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${versions} ${KSHIM_PRECOMPILED_HEADERS} ${ARGN}")
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum" "${sum}\n")
endfunction()
