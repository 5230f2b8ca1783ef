# SPDX-License-Identifier: Apache-2.0
# <kshim/version.h>: the version from project(), the git hash when there is one (a tarball has none).
find_package(Git QUIET)
set(KSHIM_GIT_HASH "")
if(GIT_FOUND)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" rev-parse --short=7 HEAD
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE KSHIM_GIT_HASH
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/version.h.in" "${PROJECT_BINARY_DIR}/include/kshim/version.h" @ONLY)
