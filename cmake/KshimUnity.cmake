# SPDX-License-Identifier: Apache-2.0
# Unity builds: a third of the compile time. Several files of a target are compiled as one, so a name in an anonymous namespace
# is one name in all files of a folder. Not for the shim, whose instructions tests count. tools/tidy compiles each file by itself.
option(KSHIM_UNITY "compile several files of the command, the simulator and the unit tests as one" ON)

# kshim_unity(TARGET...)
function(kshim_unity)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ${KSHIM_UNITY} UNITY_BUILD_BATCH_SIZE 10)
endfunction()
