# tidemark_twins(TARGET SOURCES a.cu b.cu): compiles CUDA sources with the host C++ compiler, so that
# their kernels run as host twins on the software GPU. Each source is compiled twice: plain, and
# traced (every load and store reported, for the race detector). Sanitizer builds have no traced
# variant, because a sanitizer's own instrumentation takes its place.
function(tidemark_twins target)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(${target} OBJECT ${ARG_SOURCES})
  set_source_files_properties(${ARG_SOURCES} PROPERTIES LANGUAGE CXX)
  target_compile_options(${target} PRIVATE -x c++ -O3)
  target_compile_definitions(${target} PRIVATE TIDEMARK_HOST_TWIN=1)
  target_link_libraries(${target} PUBLIC tidemark_flags tidemark_cuda_headers)
  if(NOT TIDEMARK_SANITIZE)
    add_library(${target}_traced OBJECT ${ARG_SOURCES})
    target_compile_options(${target}_traced PRIVATE -x c++ -O2 -fsanitize=thread)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target}_traced PRIVATE --param=tsan-instrument-func-entry-exit=0)
    else()
      target_compile_options(${target}_traced PRIVATE "SHELL:-mllvm -tsan-instrument-func-entry-exit=0")
    endif()
    target_compile_definitions(${target}_traced PRIVATE TIDEMARK_HOST_TWIN=1 TIDEMARK_TWIN_TRACED=1)
    target_link_libraries(${target}_traced PUBLIC tidemark_flags tidemark_cuda_headers)
  endif()
endfunction()
