# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` copies: components kshim (command, shim, package files, documents), simulator and query (the library,
# its header and its pkg-config file), and
# kshim_attach() for the samples of this tree, as find_package(kshim) gives it to others.
include(CMakePackageConfigHelpers)

set(KSHIM_INSTALL_SIMDIR "${CMAKE_INSTALL_LIBDIR}/kshim/sim")
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kshim")

if(TARGET kshim)
  install(TARGETS kshim RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT kshim)
endif()
if(TARGET kshim_shim)
  # Into the library folder itself and not below it, so that the bare name in LD_PRELOAD=libkshim.so is found.
  install(TARGETS kshim_shim kshim_audit kshim_injection LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT kshim)
endif()
if(TARGET kshim_sim)
  install(TARGETS kshim_sim kshim_sim_nvml LIBRARY DESTINATION "${KSHIM_INSTALL_SIMDIR}" COMPONENT simulator)
  install(FILES "${CMAKE_BINARY_DIR}/sim/libcuda.so" DESTINATION "${KSHIM_INSTALL_SIMDIR}" COMPONENT simulator)
endif()
if(TARGET kshim_query)
  install(TARGETS kshim_query LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT query)
  install(FILES "${PROJECT_SOURCE_DIR}/include/kshim/query.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/kshim" COMPONENT query)
endif()

if(TARGET kshim)
  foreach(_row IN ITEMS "bash;bash-completion/completions;kshim" "zsh;zsh/site-functions;_kshim" "fish;fish/vendor_completions.d;kshim.fish")
    list(GET _row 0 _shell)
    list(GET _row 1 _folder)
    list(GET _row 2 _name)
    install(FILES "${PROJECT_BINARY_DIR}/analyzer/completion/kshim.${_shell}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${_folder}" RENAME "${_name}" COMPONENT kshim)
  endforeach()
endif()

# As in the source tree, so that the links between the pages lead somewhere: a page names what is not installed, and has no
# link to it.
foreach(file IN ITEMS LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md)
  install(FILES "${PROJECT_SOURCE_DIR}/${file}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT kshim)
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/samples" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        COMPONENT kshim)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/kshim/fleet/sql" DESTINATION "${CMAKE_INSTALL_DATADIR}/kshim" COMPONENT kshim)
install(FILES "${PROJECT_SOURCE_DIR}/shim/valgrind.supp" DESTINATION "${CMAKE_INSTALL_DATADIR}/kshim" COMPONENT kshim)
install(FILES "${PROJECT_SOURCE_DIR}/python/guard/kshim_guard.py" DESTINATION "${CMAKE_INSTALL_DOCDIR}/python/guard" COMPONENT kshim)
install(FILES "${PROJECT_SOURCE_DIR}/shim/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}/shim" COMPONENT kshim)
install(FILES "${PROJECT_SOURCE_DIR}/knowledge/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}/knowledge" COMPONENT kshim)

set(_package_files "${CMAKE_CURRENT_LIST_DIR}/KshimAttach.cmake" "${CMAKE_CURRENT_LIST_DIR}/KshimCheckReports.cmake")
set(_bin_dir "${CMAKE_INSTALL_BINDIR}")
set(_lib_dir "${CMAKE_INSTALL_LIBDIR}")
set(_sim_dir "${KSHIM_INSTALL_SIMDIR}")
set(_query_dir "${CMAKE_INSTALL_LIBDIR}")
set(_include_dir "${CMAKE_INSTALL_INCLUDEDIR}")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/kshimConfig.cmake.in" "${PROJECT_BINARY_DIR}/cmake/installed/kshimConfig.cmake"
  INSTALL_DESTINATION "${_package_dir}" PATH_VARS _bin_dir _lib_dir _sim_dir _query_dir _include_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/kshimConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/cmake/installed/kshimConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/kshimConfigVersion.cmake"
        ${_package_files}
  DESTINATION "${_package_dir}" COMPONENT kshim)

# Relative to where the file lies: an installed tree may be moved.
string(REGEX REPLACE "[^/]+" ".." _pc_prefix "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file("${CMAKE_CURRENT_LIST_DIR}/kshim.pc.in" "${PROJECT_BINARY_DIR}/cmake/installed/kshim.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cmake/installed/kshim.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT kshim)

if(TARGET kshim_query)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/kshim-query.pc.in" "${PROJECT_BINARY_DIR}/cmake/installed/kshim-query.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/cmake/installed/kshim-query.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT query)
endif()

set(_man "${PROJECT_BINARY_DIR}/man")
add_custom_command(
  OUTPUT "${_man}/kshim.1"
  COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/tools/man_pages" "${_man}" --version "${PROJECT_VERSION}"
  DEPENDS "${PROJECT_SOURCE_DIR}/tools/man_pages" "${PROJECT_SOURCE_DIR}/docs/cli.md" "${PROJECT_SOURCE_DIR}/docs/environment.md"
  VERBATIM)
add_custom_target(kshim_man ALL DEPENDS "${_man}/kshim.1")
install(DIRECTORY "${_man}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT kshim FILES_MATCHING PATTERN "*.1")
install(DIRECTORY "${_man}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man7" COMPONENT kshim FILES_MATCHING PATTERN "*.7")

# The same for this build tree: -Dkshim_DIR=BUILD/cmake.
set(_bin_dir analyzer)
set(_lib_dir shim)
set(_sim_dir sim)
set(_query_dir query)
set(_include_dir "${PROJECT_SOURCE_DIR}/include")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/kshimConfig.cmake.in" "${PROJECT_BINARY_DIR}/cmake/kshimConfig.cmake"
  INSTALL_PREFIX "${PROJECT_BINARY_DIR}" INSTALL_DESTINATION cmake PATH_VARS _bin_dir _lib_dir _sim_dir _query_dir _include_dir)
foreach(_file IN LISTS _package_files)
  configure_file("${_file}" "${PROJECT_BINARY_DIR}/cmake" COPYONLY)
endforeach()

set_property(GLOBAL PROPERTY KSHIM_COMMAND "$<TARGET_FILE:kshim>")
set_property(GLOBAL PROPERTY KSHIM_LIBRARY "${PROJECT_BINARY_DIR}/shim/libkshim.so")
set_property(GLOBAL PROPERTY KSHIM_CHECK_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/KshimCheckReports.cmake")
if(TARGET kshim_sim)
  set_property(GLOBAL PROPERTY KSHIM_SIMULATOR_DIR "${PROJECT_BINARY_DIR}/sim")
endif()
include(KshimAttach)

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_COMPONENTS_ALL kshim simulator query)
  set(CPACK_PACKAGE_VENDOR "the kshim project") # else "Humanity"
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
  set(CPACK_VERBATIM_VARIABLES ON)
  include(CPack)
endif()
