# SPDX-License-Identifier: Apache-2.0
# Toolchain of release builds (tools/release-build): the compilers that tools/floor/compilers made, which need no symbol newer
# than KSHIM_GLIBC_FLOOR, and the static libraries that tools/floor/deps built; nothing of the machine's own.
#   KSHIM_FLOOR_ARCH    x86_64 or aarch64
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KSHIM_FLOOR_ARCH)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${KSHIM_FLOOR_ARCH}")
get_filename_component(_floor "${CMAKE_CURRENT_LIST_DIR}/../build/floor/${KSHIM_FLOOR_ARCH}" ABSOLUTE)
set(CMAKE_C_COMPILER "${_floor}/bin/cc")
set(CMAKE_CXX_COMPILER "${_floor}/bin/c++")
set(CMAKE_ASM_COMPILER "${_floor}/bin/cc")
set(CMAKE_AR "${_floor}/bin/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${_floor}/bin/ranlib" CACHE FILEPATH "")
foreach(_language IN ITEMS C CXX)
  set(CMAKE_${_language}_COMPILER_AR "${CMAKE_AR}" CACHE FILEPATH "")
  set(CMAKE_${_language}_COMPILER_RANLIB "${CMAKE_RANLIB}" CACHE FILEPATH "")
endforeach()
set(CMAKE_C_STANDARD_LIBRARIES_INIT "${_floor}/lib/libc.so.6") # before libpthread: see tools/floor/compilers
# zig would keep frame pointers: three instructions more in each launch.
set(CMAKE_C_FLAGS_INIT "-fomit-frame-pointer")
set(CMAKE_CXX_FLAGS_INIT "-fomit-frame-pointer")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-pie -Wl,-z,now -Wl,-z,relro -Wl,--gc-sections -s")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s")

set(CMAKE_FIND_ROOT_PATH "${_floor}/prefix")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_PREFIX_PATH "/") # below the root path
set(ENV{PKG_CONFIG_LIBDIR} "${_floor}/prefix/lib/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "")
set(KSHIM_UNWIND_LIBRARY "${_floor}/prefix/unwind/lib/libunwind.a" CACHE FILEPATH "LLVM's libunwind.a, position-independent")
set(KSHIM_DEMANGLE_LIBRARY "${_floor}/prefix/lib/libkshim_demangle.a" CACHE FILEPATH "what has libstdc++'s demangler that can be stopped")
