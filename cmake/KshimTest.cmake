# SPDX-License-Identifier: Apache-2.0
# kshim_unit_test(NAME SOURCES... LIBS...): a GoogleTest binary, label unit, one ctest entry per test case.
# kshim_script_test(NAME SCRIPT [LABEL e2e] [ARGS...]): a Python script under tests/, exit 77 = skipped (and says why).
# The target unit_tests builds what the tests of the labels unit and golden run.

# The sanitizer presets instrument the simulator, which programs that know nothing of it then load late.
set(KSHIM_LATE_ASAN "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0")

if(BUILD_TESTING AND KSHIM_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  # The interpreter that tools/setup made has the pinned test packages (jsonschema); else whatever is there.
  if(EXISTS "${PROJECT_SOURCE_DIR}/build/deps/venv/bin/python3")
    set(Python3_EXECUTABLE "${PROJECT_SOURCE_DIR}/build/deps/venv/bin/python3")
  endif()
endif()
find_package(Python3 3.9 COMPONENTS Interpreter REQUIRED)
add_custom_target(unit_tests)

# The tables of tests/knowledge/, which no new release changes, in place of the built-in ones (what is not there is of knowledge/):
# object files come before archives.
# unit_knowledge alone looks at the real ones.
function(kshim_unit_test name)
  cmake_parse_arguments(arg "PRECOMPILED" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  kshim_unity(${name})
  kshim_not_optimized(${name})
  if(arg_PRECOMPILED) # for tests of the command in a folder with kshim_quick_build()
    if(NOT TARGET kshim_test_headers)
      if(NOT EXISTS "${PROJECT_BINARY_DIR}/tests/headers.cpp") # a new time would compile the headers again
        file(WRITE "${PROJECT_BINARY_DIR}/tests/headers.cpp" "")
      endif()
      add_library(kshim_test_headers OBJECT "${PROJECT_BINARY_DIR}/tests/headers.cpp")
      target_link_libraries(kshim_test_headers PRIVATE kshim::core GTest::gmock GTest::gtest_main)
      kshim_not_optimized(kshim_test_headers)
      kshim_precompile(kshim_test_headers <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    target_precompile_headers(${name} REUSE_FROM kshim_test_headers)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # Out of a precompiled header, GCC 12 reports what it otherwise keeps to itself of libstdc++'s own headers.
      target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
  endif()
  if(NOT name STREQUAL "unit_knowledge" AND KSHIM_BUILD_ANALYZER)
    if(NOT TARGET kshim_test_tables)
      file(GLOB tables CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/knowledge/*.json" "${PROJECT_SOURCE_DIR}/knowledge/*.json")
      configure_file("${PROJECT_SOURCE_DIR}/analyzer/data/embedded.S" "${PROJECT_BINARY_DIR}/tests/test_tables.S" COPYONLY)
      add_library(kshim_test_tables OBJECT "${PROJECT_BINARY_DIR}/tests/test_tables.S")
      target_include_directories(kshim_test_tables PRIVATE "${PROJECT_SOURCE_DIR}/tests/knowledge" "${PROJECT_SOURCE_DIR}/knowledge")
      set_source_files_properties("${PROJECT_BINARY_DIR}/tests/test_tables.S" PROPERTIES OBJECT_DEPENDS "${tables}")
    endif()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:kshim_test_tables>)
  endif()
  target_link_libraries(${name} PRIVATE kshim_options kshim_sanitize ${arg_LIBS} GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support" "${PROJECT_SOURCE_DIR}")
  add_dependencies(unit_tests ${name})
  # Without TZ, glibc's mktime (libarchive calls it for each member of a zip) sets up its zone again each time, under a lock
  # of its own that ThreadSanitizer does not see and takes for none.
  gtest_discover_tests(${name} TEST_PREFIX "unit." NO_PRETTY_VALUES PROPERTIES LABELS unit ENVIRONMENT TZ=UTC DISCOVERY_TIMEOUT 60)
endfunction()

function(kshim_script_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "LABEL;TIMEOUT" "ARGS") # LABEL may be a list: "e2e;clients"
  if(NOT arg_LABEL)
    set(arg_LABEL e2e)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${arg_ARGS})
  set_tests_properties(
    ${name}
    PROPERTIES LABELS "${arg_LABEL}"
               SKIP_RETURN_CODE 77
               TIMEOUT ${arg_TIMEOUT}
               ENVIRONMENT "KSHIM_KNOWLEDGE=${PROJECT_SOURCE_DIR}/tests/knowledge;KSHIM_BUILD_DIR=${PROJECT_BINARY_DIR};KSHIM_SOURCE_DIR=${PROJECT_SOURCE_DIR};PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support")
  set_tests_properties(${name} PROPERTIES COST ${arg_TIMEOUT}) # scripts first, the long ones before the others: then the many short tests
  if(arg_LABEL MATCHES "unit|golden")
    string(REGEX MATCHALL "[^:<>]+>" _targets "${arg_ARGS}")
    string(REPLACE ">" "" _targets "${_targets}")
    if(_targets)
      add_dependencies(unit_tests ${_targets})
    endif()
  endif()
  if(KSHIM_SANITIZE MATCHES "address")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "KSHIM_SANITIZED=${KSHIM_SANITIZE}" "${KSHIM_LATE_ASAN}")
  endif()
endfunction()
