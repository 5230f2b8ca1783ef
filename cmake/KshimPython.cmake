# SPDX-License-Identifier: Apache-2.0
# The files of the Python wheels (pyproject.toml, python/simulator/pyproject.toml) as install components of their own:
# `python` is the package kshim with the command in bin/ and the libraries in lib/, beside each other as the command looks for
# them; `python-simulator` is the package kshim_simulator. `cmake --install` leaves them out unless they are named.
#   KSHIM_PREBUILT   put these binaries into the wheel and build nothing: a build folder, an installed prefix, or a folder
#                    of the component. For binaries that were built on an old system, and for the tests.
set(KSHIM_PREBUILT "" CACHE PATH "build folder or prefix whose binaries a wheel takes, instead of building them")
set(_python_component COMPONENT python EXCLUDE_FROM_ALL)
set(_simulator_component COMPONENT python-simulator EXCLUDE_FROM_ALL)

configure_file("${CMAKE_CURRENT_LIST_DIR}/version.py.in" "${PROJECT_BINARY_DIR}/python/_version.py" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/python/_version.py" DESTINATION kshim ${_python_component})

add_custom_target(kshim_wheel)
add_custom_target(kshim_simulator_wheel)

# _kshim_prebuilt(variable name folders...): full path of a file of KSHIM_PREBUILT; its absence is an error.
function(_kshim_prebuilt out name)
  foreach(_folder IN LISTS ARGN)
    set(_candidate "${KSHIM_PREBUILT}/${_folder}/${name}")
    if(EXISTS "${_candidate}")
      set(${out} "${_candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "KSHIM_PREBUILT: no ${name} in ${KSHIM_PREBUILT} (looked into: ${ARGN})")
endfunction()

if(KSHIM_PREBUILT)
  if(KSHIM_BUILD_ANALYZER)
    _kshim_prebuilt(_command kshim analyzer bin kshim/bin)
    _kshim_prebuilt(_shim libkshim.so shim lib "${CMAKE_INSTALL_LIBDIR}" kshim/lib)
    _kshim_prebuilt(_audit libkshim-audit.so shim lib "${CMAKE_INSTALL_LIBDIR}" kshim/lib)
    _kshim_prebuilt(_injection libkshim-injection.so shim lib "${CMAKE_INSTALL_LIBDIR}" kshim/lib)
    install(PROGRAMS "${_command}" DESTINATION kshim/bin ${_python_component})
    _kshim_prebuilt(_query libkshim-query.so.1 query lib "${CMAKE_INSTALL_LIBDIR}" kshim/lib)
    install(PROGRAMS "${_shim}" "${_audit}" "${_injection}" "${_query}" DESTINATION kshim/lib ${_python_component})
  endif()
  if(KSHIM_BUILD_SIM)
    foreach(_name IN ITEMS libcuda.so.1 libnvidia-ml.so.1)
      _kshim_prebuilt(_library ${_name} sim lib/kshim/sim "${CMAKE_INSTALL_LIBDIR}/kshim/sim" kshim_simulator)
      install(PROGRAMS "${_library}" DESTINATION kshim_simulator ${_simulator_component})
    endforeach()
  endif()
  return()
endif()

if(TARGET kshim AND TARGET kshim_shim)
  install(TARGETS kshim RUNTIME DESTINATION kshim/bin ${_python_component})
  install(TARGETS kshim_shim kshim_audit kshim_injection LIBRARY DESTINATION kshim/lib ${_python_component})
  add_dependencies(kshim_wheel kshim kshim_shim kshim_audit kshim_injection)
endif()
if(TARGET kshim_query)
  # Not install(TARGETS): a wheel has no links.
  install(PROGRAMS "$<TARGET_FILE:kshim_query>" DESTINATION kshim/lib ${_python_component})
  add_dependencies(kshim_wheel kshim_query)
endif()
if(TARGET kshim_sim)
  install(TARGETS kshim_sim kshim_sim_nvml LIBRARY DESTINATION kshim_simulator ${_simulator_component})
  add_dependencies(kshim_simulator_wheel kshim_sim kshim_sim_nvml)
endif()
