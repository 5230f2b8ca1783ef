# SPDX-License-Identifier: Apache-2.0
# kshim::unwind: LLVM's libunwind as a static archive (apt: libunwind-N-dev; tools/setup unpacks it into build/deps where
# another package is in its way). Not nongnu's: that one is not position-independent. Link it with
# -Wl,--exclude-libs,ALL, so that the host never meets our _Unwind_*.
include_guard(GLOBAL)
file(GLOB kshim_unwind_candidates /usr/lib/llvm-*/lib/libunwind.a
     "${CMAKE_CURRENT_LIST_DIR}/../build/deps/libunwind/usr/lib/llvm-*/lib/libunwind.a")
list(SORT kshim_unwind_candidates COMPARE NATURAL ORDER DESCENDING)
set(kshim_unwind_found "")
if(kshim_unwind_candidates)
  list(GET kshim_unwind_candidates 0 kshim_unwind_found)
endif()
if("${KSHIM_UNWIND_LIBRARY}" STREQUAL "") # of a configuration before tools/setup
  unset(KSHIM_UNWIND_LIBRARY CACHE)
endif()
set(KSHIM_UNWIND_LIBRARY "${kshim_unwind_found}" CACHE FILEPATH "LLVM's libunwind.a")
if(NOT EXISTS "${KSHIM_UNWIND_LIBRARY}")
  message(FATAL_ERROR "LLVM's libunwind.a was not found: run tools/setup, or install libunwind-N-dev of LLVM, or set KSHIM_UNWIND_LIBRARY")
endif()
get_filename_component(kshim_unwind_root "${KSHIM_UNWIND_LIBRARY}" DIRECTORY)
add_library(kshim_unwind STATIC IMPORTED GLOBAL)
add_library(kshim::unwind ALIAS kshim_unwind)
set_target_properties(kshim_unwind PROPERTIES IMPORTED_LOCATION "${KSHIM_UNWIND_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${kshim_unwind_root}/../include")
