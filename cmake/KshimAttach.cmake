# SPDX-License-Identifier: Apache-2.0
#[[
kshim_attach(TEST name...
             [SIMULATE arch...]            # simulated GPUs instead of the machine's own: sm_86 9.0
             [DRIVER X.Y]                  # CUDA version of the simulated driver
             [TARGET arch...]              # also check for images for these
             [FAIL_ON error|warning|none]  # default: error
             [REPORT folder])              # default: kshim-report/NAME in the current build folder, where NAME is no
                                           # identifier with a hash: kshim-report/gpu_saxpy-70d241a82948

Makes existing CTest tests run under libkshim.so and adds two tests to each: NAME.kshim.clean before it removes the
reports of an earlier run, NAME.kshim behind it reads the new ones and fails when they hold findings that severe. They are
fixtures of NAME, so `ctest -R NAME` brings them along. NAME itself keeps its command, its output and its result.
]]
function(kshim_attach)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "DRIVER;FAIL_ON;REPORT" "TEST;SIMULATE;TARGET")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kshim_attach: `${arg_UNPARSED_ARGUMENTS}` is no argument of it; it takes TEST, SIMULATE, DRIVER, "
                        "TARGET, FAIL_ON and REPORT")
  endif()
  if(NOT arg_TEST)
    message(FATAL_ERROR "kshim_attach: say which tests: kshim_attach(TEST name ...)")
  endif()
  if(NOT arg_FAIL_ON)
    set(arg_FAIL_ON error)
  elseif(NOT arg_FAIL_ON MATCHES "^(error|warning|none)$")
    message(FATAL_ERROR "kshim_attach: FAIL_ON ${arg_FAIL_ON}: must be error, warning or none")
  endif()
  get_property(command GLOBAL PROPERTY KSHIM_COMMAND)
  get_property(library GLOBAL PROPERTY KSHIM_LIBRARY)
  get_property(simulator GLOBAL PROPERTY KSHIM_SIMULATOR_DIR)
  get_property(check GLOBAL PROPERTY KSHIM_CHECK_SCRIPT)
  _kshim_architectures(devices SIMULATE "${arg_SIMULATE}")
  _kshim_architectures(targets TARGET "${arg_TARGET}")
  if(devices AND NOT simulator)
    message(FATAL_ERROR "kshim_attach: SIMULATE needs kshim's simulator, which is not installed; install its component "
                        "`simulator`")
  endif()

  foreach(test IN LISTS arg_TEST)
    if(NOT TEST "${test}")
      message(FATAL_ERROR "kshim_attach: there is no test `${test}` in this folder. Call it behind add_test(), in the same "
                          "CMakeLists.txt; tests that gtest_discover_tests() finds after the build cannot be attached.")
    endif()
  endforeach()
  foreach(test IN LISTS arg_TEST)
    _kshim_folder_name(folder "${test}")
    set(report "${CMAKE_CURRENT_BINARY_DIR}/kshim-report/${folder}")
    if(arg_REPORT)
      get_filename_component(report "${arg_REPORT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
      list(LENGTH arg_TEST count)
      if(count GREATER 1)
        string(APPEND report "/${folder}")
      endif()
    endif()
    # The reports of each are removed before its test: with one folder for two, a failing test would pass.
    get_property(taken GLOBAL PROPERTY KSHIM_REPORT_FOLDERS)
    if("${report}" IN_LIST taken)
      message(FATAL_ERROR "kshim_attach: ${report} is the folder of another test's reports; give each its own REPORT")
    endif()
    set_property(GLOBAL APPEND PROPERTY KSHIM_REPORT_FOLDERS "${report}")
    string(REPLACE "%" "%%" pattern "${report}/%h.%p.jsonl") # `%` means something in KSHIM_REPORT
    string(REPLACE "%%h.%%p" "%h.%p" pattern "${pattern}")
    set(environment "LD_PRELOAD=path_list_prepend:${library}" "KSHIM_REPORT=set:${pattern}")
    if(devices)
      # The list of devices is separated by semicolons, as is this property.
      string(REPLACE ";" "\\;" devices_value "${devices}")
      list(APPEND environment "LD_LIBRARY_PATH=path_list_prepend:${simulator}" "KSHIM_SIM_DEVICES=set:${devices_value}")
    endif()
    if(arg_DRIVER)
      list(APPEND environment "KSHIM_SIM_DRIVER=set:${arg_DRIVER}")
    endif()
    if(targets)
      string(REPLACE ";" "\\;" targets_value "${targets}")
      list(APPEND environment "KSHIM_TARGET=set:${targets_value}")
    endif()
    list(JOIN arg_TARGET "," target_argument)
    set_property(TEST "${test}" APPEND PROPERTY ENVIRONMENT_MODIFICATION "${environment}")
    set_property(TEST "${test}" APPEND PROPERTY FIXTURES_REQUIRED "kshim ${test}")

    add_test(NAME "${test}.kshim.clean" COMMAND "${CMAKE_COMMAND}" "-DREPORT=${report}" -DCLEAN=ON -P "${check}")
    set_tests_properties("${test}.kshim.clean" PROPERTIES FIXTURES_SETUP "kshim ${test}")
    add_test(NAME "${test}.kshim" COMMAND "${CMAKE_COMMAND}" "-DKSHIM=${command}" "-DREPORT=${report}"
                                          "-DFAIL_ON=${arg_FAIL_ON}" "-DTARGET=${target_argument}" -P "${check}")
    set_tests_properties("${test}.kshim" PROPERTIES FIXTURES_CLEANUP "kshim ${test}")
  endforeach()
endfunction()

# One folder a test: gpu.saxpy and gpu-saxpy are the same identifier. A name that is one has no `-` in it, so it cannot be
# another's with a hash. Longer ones than a file may have (255 bytes) are cut.
function(_kshim_folder_name out test)
  string(MAKE_C_IDENTIFIER "${test}" folder)
  string(SUBSTRING "${folder}" 0 200 folder)
  if(NOT folder STREQUAL test)
    string(SHA256 hash "${test}")
    string(SUBSTRING "${hash}" 0 12 hash)
    string(APPEND folder "-${hash}")
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# sm_86, compute_86, 86, 8.6 and sm_90a: the compute capabilities 8.6 and 9.0.
function(_kshim_architectures out keyword architectures)
  set(capabilities "")
  foreach(architecture IN LISTS architectures)
    if(NOT architecture MATCHES "^(sm_|compute_)?([0-9]+)[.]?([0-9])[af]?$")
      message(FATAL_ERROR "kshim_attach: ${keyword} ${architecture}: not an architecture; give one such as sm_86 or 8.6")
    endif()
    list(APPEND capabilities "${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
  endforeach()
  set(${out} "${capabilities}" PARENT_SCOPE)
endfunction()
