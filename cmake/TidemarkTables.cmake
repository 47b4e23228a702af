# Tables made from the installed CUDA headers by a program of this build, tidemark_tables (tables/):
# a compiler and CMake are all that it takes.
#
# Sets TIDEMARK_CUDA_API: the list of driver functions that the other tables start from.

file(GLOB _table_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/tables/*.cc")
list(FILTER _table_sources EXCLUDE REGEX "/main\\.cc$")
add_library(tidemark_table_maker STATIC ${_table_sources})
target_compile_options(tidemark_table_maker PUBLIC -Wall -Wextra -Werror)
target_include_directories(tidemark_table_maker PUBLIC "${CMAKE_SOURCE_DIR}")
add_executable(tidemark_tables "${CMAKE_SOURCE_DIR}/cmake/tables/main.cc")
target_link_libraries(tidemark_tables PRIVATE tidemark_table_maker)

set(_tables_out "${CMAKE_BINARY_DIR}/tables")
file(MAKE_DIRECTORY "${_tables_out}")

# _preprocess(OUTPUT SOURCE OPTIONS...): the text of cmake/tables/SOURCE as the compiler sees it.
function(_preprocess output source)
  set(path "${CMAKE_SOURCE_DIR}/cmake/tables/${source}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_C_COMPILER}" -E -P -x c -I "${TIDEMARK_CUDA_INCLUDE}" ${ARGN} "${path}"
            -o "${output}"
    DEPENDS "${path}" "${TIDEMARK_CUDA_INCLUDE}/cuda.h"
    VERBATIM)
endfunction()

# cuda.h renames by macro (cuMemAlloc -> cuMemAlloc_v2, ..._ptsz), so it is asked three times: default
# stream legacy, default stream per thread, and with the switch that keeps superseded versions visible.
_preprocess("${_tables_out}/driver_legacy.i" driver_headers.c)
_preprocess("${_tables_out}/driver_per_thread.i" driver_headers.c
            -DCUDA_API_PER_THREAD_DEFAULT_STREAM)
_preprocess("${_tables_out}/driver_superseded.i" driver_headers.c -D__CUDA_API_VERSION_INTERNAL)
_preprocess("${_tables_out}/runtime.i" runtime_headers.c)

# tidemark_tables(COMMAND FOLDER OUTPUTS a b INPUTS c d [DEPENDS e]): runs the table maker, which writes
# the files OUTPUTS into FOLDER. DEPENDS: what is read beyond the inputs.
function(tidemark_tables command folder)
  cmake_parse_arguments(ARG "" "" "OUTPUTS;INPUTS;DEPENDS" ${ARGN})
  file(MAKE_DIRECTORY "${folder}")
  list(TRANSFORM ARG_OUTPUTS PREPEND "${folder}/")
  add_custom_command(
    OUTPUT ${ARG_OUTPUTS}
    COMMAND tidemark_tables ${command} "${folder}" ${ARG_INPUTS}
    DEPENDS tidemark_tables ${ARG_INPUTS} ${ARG_DEPENDS}
    COMMENT "Tables for ${folder}"
    VERBATIM)
endfunction()

tidemark_tables(api "${_tables_out}" OUTPUTS cuda_api.txt
  INPUTS "${_tables_out}/driver_legacy.i" "${_tables_out}/driver_per_thread.i"
         "${_tables_out}/driver_superseded.i")
set(TIDEMARK_CUDA_API "${_tables_out}/cuda_api.txt")
# Custom commands are known only to their own folder; others wait for these targets.
add_custom_target(tidemark_cuda_api DEPENDS "${TIDEMARK_CUDA_API}" "${_tables_out}/runtime.i")
set(TIDEMARK_RUNTIME_TEXT "${_tables_out}/runtime.i")
