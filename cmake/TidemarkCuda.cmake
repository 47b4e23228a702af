# Finds the CUDA 13 headers (required) and nvcc (optional): CUDA_HOME, PATH, the usual places, and
# the PyPI wheels that `./dev build` unpacks into .cache/cuda when a machine has no toolkit.
#
# Sets: TIDEMARK_CUDA_INCLUDE, TIDEMARK_NVCC_PROGRAM (empty without nvcc), and the interface target
# tidemark_cuda_headers.

set(_cuda_roots "")
if(DEFINED ENV{CUDA_HOME})
  list(APPEND _cuda_roots "$ENV{CUDA_HOME}")
endif()
find_program(_nvcc_on_path nvcc)
if(_nvcc_on_path)
  get_filename_component(_nvcc_real "${_nvcc_on_path}" REALPATH)
  get_filename_component(_nvcc_bin "${_nvcc_real}" DIRECTORY)
  get_filename_component(_nvcc_root "${_nvcc_bin}" DIRECTORY)
  list(APPEND _cuda_roots "${_nvcc_root}")
endif()
list(APPEND _cuda_roots /usr/local/cuda /usr/local/cuda-13.0 /opt/cuda
     "${CMAKE_SOURCE_DIR}/.cache/cuda/nvidia/cu13")

find_path(TIDEMARK_CUDA_INCLUDE cuda.h HINTS ${_cuda_roots} PATH_SUFFIXES include NO_DEFAULT_PATH)
if(NOT TIDEMARK_CUDA_INCLUDE)
  string(REPLACE ";" ", " _looked "${_cuda_roots}")
  message(FATAL_ERROR "No CUDA headers: cuda.h was not found under any of ${_looked}. "
          "Set CUDA_HOME to a CUDA 13 toolkit, or run ./dev build, which fetches the headers from PyPI.")
endif()
file(STRINGS "${TIDEMARK_CUDA_INCLUDE}/cuda.h" _cuda_version REGEX "^#define CUDA_VERSION ")
string(REGEX MATCH "[0-9]+" TIDEMARK_CUDA_VERSION "${_cuda_version}")
if(TIDEMARK_CUDA_VERSION LESS 13000)
  message(FATAL_ERROR "The CUDA headers in ${TIDEMARK_CUDA_INCLUDE} are version "
          "${TIDEMARK_CUDA_VERSION}; 13000 or newer is needed. Set CUDA_HOME to a CUDA 13 toolkit.")
endif()

set(TIDEMARK_NVCC_PROGRAM "")
if(TIDEMARK_NVCC)
  find_program(_nvcc nvcc HINTS ${_cuda_roots} PATH_SUFFIXES bin)
  if(_nvcc)
    set(TIDEMARK_NVCC_PROGRAM "${_nvcc}")
  endif()
endif()
if(TIDEMARK_NVCC_PROGRAM)
  message(STATUS "CUDA headers ${TIDEMARK_CUDA_VERSION} in ${TIDEMARK_CUDA_INCLUDE}, nvcc: ${TIDEMARK_NVCC_PROGRAM}")
else()
  message(STATUS "CUDA headers ${TIDEMARK_CUDA_VERSION} in ${TIDEMARK_CUDA_INCLUDE}; no nvcc: "
          "only host twins of the kernels are built")
endif()

# SYSTEM: the vendor's headers are not held to our warnings.
add_library(tidemark_cuda_headers INTERFACE)
target_include_directories(tidemark_cuda_headers SYSTEM INTERFACE "${TIDEMARK_CUDA_INCLUDE}")
