# CUDA sources without CMake's CUDA language: the same .cu files become host twins (any machine) and
# device code (machines with nvcc).

# tidemark_twins(TARGET SOURCES a.cu b.cu [LEAN]): compiles CUDA sources with the host C++ compiler,
# so that their kernels run as host twins on a software GPU. Linking to TARGET adds its objects to the
# program. Each source is compiled twice: plain, and traced (every load and store reported, for a race
# detector; kernels/twin_trace.h). Sanitizer builds have no traced variant, because the sanitizer's own
# instrumentation takes its place. Plain kernels use AVX2 where the machine has it. LEAN, for code that
# may not bring constructors into a program: no traced variant, no choice by processor.
function(tidemark_twins target)
  cmake_parse_arguments(ARG "LEAN" "" "SOURCES" ${ARGN})
  set_source_files_properties(${ARG_SOURCES} PROPERTIES LANGUAGE CXX)
  add_library(${target} INTERFACE)
  _tidemark_twin_objects(${target}_plain "${ARG_SOURCES}" -O3 TIDEMARK_HOST_TWIN=1)
  target_sources(${target} INTERFACE $<TARGET_OBJECTS:${target}_plain>)
  if(NOT ARG_LEAN AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_definitions(${target}_plain PRIVATE TIDEMARK_TWIN_WIDE=1)
  endif()
  if(TIDEMARK_SANITIZE OR ARG_LEAN)
    return()
  endif()
  target_compile_definitions(${target}_plain PRIVATE TIDEMARK_TWIN_HAS_TRACED=1)
  set(traced_options -O3 -fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC instruments no memset or memcpy, so loops must not become them; Clang does.
    list(APPEND traced_options --param=tsan-instrument-func-entry-exit=0
                               -fno-tree-loop-distribute-patterns)
  else()
    list(APPEND traced_options "SHELL:-mllvm -tsan-instrument-func-entry-exit=0")
  endif()
  _tidemark_twin_objects(${target}_traced "${ARG_SOURCES}" "${traced_options}"
                         "TIDEMARK_HOST_TWIN=1;TIDEMARK_TWIN_TRACED=1")
  target_sources(${target} INTERFACE $<TARGET_OBJECTS:${target}_traced>)
  target_link_libraries(${target} INTERFACE tidemark_twin_trace)
endfunction()

function(_tidemark_twin_objects target sources options definitions)
  add_library(${target} OBJECT ${sources})
  # Neither option changes a result; without them no loop with sqrtf or a comparison is vectorised.
  target_compile_options(${target} PRIVATE "SHELL:-x c++" -fno-math-errno -fno-trapping-math
                         ${options})
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_link_libraries(${target} PRIVATE tidemark_flags tidemark_cuda_headers)
endfunction()

# tidemark_nvcc_objects(VARIABLE SOURCES a.cu b.cu): compiles CUDA sources for a real GPU (PTX of the
# oldest architecture that CUDA 13 knows, so any later one too) and puts the object files into
# VARIABLE. Only where TIDEMARK_NVCC_PROGRAM is set.
function(tidemark_nvcc_objects variable)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  set(objects "")
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(GET source STEM name)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${variable}_${name}.nvcc.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${TIDEMARK_NVCC_PROGRAM}" -std=c++20 -O3 -c "${path}" -o "${object}"
              -gencode arch=compute_75,code=compute_75 -I "${CMAKE_SOURCE_DIR}"
              -Xcompiler=-fPIC -ccbin "${CMAKE_CXX_COMPILER}" -MD -MF "${object}.d" -MT "${object}"
      DEPENDS "${path}"
      DEPFILE "${object}.d"
      COMMENT "nvcc ${source}"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(${variable} "${objects}" PARENT_SCOPE)
endfunction()
