# SPDX-License-Identifier: Apache-2.0
# Finds a CUDA toolkit: nvcc, cuda.h, the runtimes. CUDA is not a project language: each sample names its own
# architectures. Searched in order: -DKSHIM_CUDA_ROOT, CUDA_HOME/CUDA_PATH, nvcc on PATH, /usr/local/cuda, and the
# wheels that tools/setup fetches into build/deps.
#   KSHIM_NVCC            nvcc, or NOTFOUND
#   KSHIM_CUDA_INCLUDE    folder of cuda.h, or NOTFOUND
#   KSHIM_CUDA_LIB        folder of libcudart_static.a and libcudart.so.13
#   KSHIM_CUDA_STUBS      folder of a libcuda.so to link against: the toolkit's, or, as its wheels bring none, a link
#                         to the simulator (KSHIM_CUDA_STUBS_TARGET builds it)
set(KSHIM_CUDA_ROOT "" CACHE PATH "CUDA toolkit to use")
set(_roots ${KSHIM_CUDA_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
find_program(_nvcc_on_path nvcc NO_CACHE)
if(_nvcc_on_path)
  get_filename_component(_nvcc_real "${_nvcc_on_path}" REALPATH)
  get_filename_component(_nvcc_bin "${_nvcc_real}" DIRECTORY)
  get_filename_component(_nvcc_root "${_nvcc_bin}" DIRECTORY)
  list(APPEND _roots "${_nvcc_root}")
endif()
list(APPEND _roots /usr/local/cuda)
file(GLOB _wheel_roots "${PROJECT_SOURCE_DIR}/build/deps/venv/lib/python3*/site-packages/nvidia/cu13")
list(APPEND _roots ${_wheel_roots})
foreach(_prefix IN LISTS CMAKE_PREFIX_PATH) # where pip builds a wheel, what it has fetched for that
  list(APPEND _roots "${_prefix}/nvidia/cu13")
endforeach()

find_program(KSHIM_NVCC nvcc PATHS ${_roots} PATH_SUFFIXES bin NO_DEFAULT_PATH)
find_path(KSHIM_CUDA_INCLUDE cuda.h PATHS ${_roots} PATH_SUFFIXES include targets/x86_64-linux/include NO_DEFAULT_PATH)
find_path(KSHIM_CUDA_LIB libcudart_static.a PATHS ${_roots} PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib
          NO_DEFAULT_PATH)
find_path(KSHIM_CUDA_STUBS libcuda.so PATHS ${_roots} PATH_SUFFIXES lib64/stubs lib/stubs targets/x86_64-linux/lib/stubs
          NO_DEFAULT_PATH)
set(KSHIM_CUDA_STUBS_TARGET "")
if(NOT KSHIM_CUDA_STUBS AND KSHIM_BUILD_SIM)
  set(KSHIM_CUDA_STUBS "${PROJECT_BINARY_DIR}/sim/stubs")
  set(KSHIM_CUDA_STUBS_TARGET kshim_sim)
endif()

if(KSHIM_BUILD_SIM AND NOT KSHIM_CUDA_INCLUDE)
  message(WARNING "no cuda.h: the simulator and what needs it are left out. tools/setup fetches it.")
  set(KSHIM_BUILD_SIM OFF)
endif()
if(KSHIM_BUILD_SAMPLES AND NOT KSHIM_NVCC)
  message(STATUS "no nvcc: the samples and their tests are left out. tools/setup fetches it.")
  set(KSHIM_BUILD_SAMPLES OFF)
endif()
message(STATUS "CUDA: nvcc=${KSHIM_NVCC} include=${KSHIM_CUDA_INCLUDE} lib=${KSHIM_CUDA_LIB}")
