# SPDX-License-Identifier: Apache-2.0
# Options, and the interface target every target of ours links: standard, warnings, sanitizers.
option(KSHIM_BUILD_SHIM "libkshim.so, the preloaded library" ON)
option(KSHIM_BUILD_ANALYZER "the kshim command" ON)
option(KSHIM_BUILD_QUERY "libkshim-query.so, a library that says what code a file has" ON)
option(KSHIM_BUILD_SIM "the simulated driver (needs cuda.h)" ON)
option(KSHIM_BUILD_SAMPLES "the samples (need nvcc)" ON)
option(KSHIM_BUILD_TESTS "unit, abi, e2e and sample tests" ${PROJECT_IS_TOP_LEVEL})
option(KSHIM_BUILD_BENCH "benchmarks (need Google Benchmark)" OFF)
option(KSHIM_WERROR "warnings are errors" ${PROJECT_IS_TOP_LEVEL})
set(KSHIM_GLIBC_FLOOR "" CACHE STRING "oldest glibc that the files must run on, such as 2.17: set by tools/release-build, checked by abi.floor")
set(KSHIM_SANITIZE "" CACHE STRING "sanitizers, such as address,undefined; of these the injected library has undefined alone, as traps")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_library(kshim_options INTERFACE)
target_compile_features(kshim_options INTERFACE cxx_std_20)
target_compile_options(
  kshim_options
  INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wsign-conversion;-Wundef;-Wcast-align>
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Wold-style-cast;-Woverloaded-virtual>
            $<$<AND:$<BOOL:${KSHIM_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 with -O3 sees overlapping copies inside its own std::string, and overflows in its own vectors (its bugs
  # 105651, 107852, fixed in 13).
  target_compile_options(
    kshim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
                            $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-free-nonheap-object;-Wno-array-bounds;-Wno-maybe-uninitialized>)
endif()
target_include_directories(kshim_options INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
set_property(GLOBAL PROPERTY CXX_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# What the sanitizer presets instrument: everything except code that runs inside other people's processes (kshim_sanitize_guest).
add_library(kshim_sanitize INTERFACE)
if(KSHIM_SANITIZE)
  target_compile_options(kshim_sanitize INTERFACE -fsanitize=${KSHIM_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC's manual: instrumentation makes this warning report what is none (here inside libstdc++'s <regex>).
    # ThreadSanitizer does not model fences, which the same compiler warns of (-Wtsan).
    target_compile_options(kshim_sanitize INTERFACE -Wno-maybe-uninitialized -Wno-tsan)
  endif()
  target_link_options(kshim_sanitize INTERFACE -fsanitize=${KSHIM_SANITIZE})
endif()

# The shim has no sanitizer's runtime in somebody else's process; undefined behavior ends that process, which needs none.
add_library(kshim_sanitize_guest INTERFACE)
if(KSHIM_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(kshim_sanitize_guest INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=undefined;-fno-sanitize=vptr;-fsanitize-undefined-trap-on-error>)
endif()

# What a process that enforces it (CET on x86-64, BTI and PAC on aarch64) wants of each file in it: our files must not be why
# a process goes without. The linker notes the property where every object has it.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(KSHIM_CONTROL_FLOW -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  set(KSHIM_CONTROL_FLOW -mbranch-protection=standard)
endif()
set(KSHIM_READ_ONLY LINKER:-z,relro LINKER:-z,now) # link options of every file that is shipped

# The command reads what anybody may have written, and may end itself rather than go on with a stack or a container that has
# been overrun. What lives in other people's processes (shim, auditor, simulator, lib/) must not: there a check that fails
# would end the host. Their readers are bounds-checked by construction and fuzzed.
add_library(kshim_hardened INTERFACE)
if(NOT KSHIM_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug") # FORTIFY wants optimization, and sanitizers know more
  target_compile_options(
    kshim_hardened INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;${KSHIM_CONTROL_FLOW}>)
  target_compile_definitions(kshim_hardened INTERFACE _GLIBCXX_ASSERTIONS _LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_FAST)
  if(KSHIM_GLIBC_FLOOR)
    target_compile_options(kshim_hardened INTERFACE -Wno-macro-redefined) # zig has the second one as none
  endif()
endif()

find_program(KSHIM_CCACHE ccache)
if(KSHIM_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_C_COMPILER_LAUNCHER "${KSHIM_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${KSHIM_CCACHE}")
endif()

# In the dev preset the command, the simulator and the unit tests are built with -O1 and line tables alone: half the time
# of -O2 -g. The shim and what it shares keep -O2, because tests count its instructions.
macro(kshim_quick_build)
  add_compile_options("$<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANGUAGE:C,CXX>>:-O1;-g1>")
endmacro()

# The code of a unit test runs once, and GCC compiles it in two thirds of the time that -O1 takes. What it tests stays optimized
# (tests/support/inlines.cpp), and so do the tests of a sanitizer, which is slow enough.
function(kshim_not_optimized target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT KSHIM_SANITIZE)
    # FORTIFY, of kshim_hardened, warns that it does nothing; lengths that are printed have no known range.
    target_compile_options(${target} PRIVATE "$<$<CONFIG:RelWithDebInfo>:-O0;-Wno-cpp;-Wno-format-truncation>")
    if(NOT TARGET kshim_test_inlines)
      add_library(kshim_test_inlines OBJECT "${PROJECT_SOURCE_DIR}/tests/support/inlines.cpp")
      target_link_libraries(kshim_test_inlines PRIVATE kshim_options kshim_hardened)
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:kshim_test_inlines>)
    endif()
  endif()
endfunction()
