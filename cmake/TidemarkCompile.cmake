# Compiler settings of the whole tree, and the two target helpers that every folder uses.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

find_package(Threads REQUIRED)

add_library(tidemark_flags INTERFACE)
target_compile_options(tidemark_flags INTERFACE -Wall -Wextra -Werror -fno-strict-aliasing
                       -ffp-contract=off)
target_include_directories(tidemark_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_link_libraries(tidemark_flags INTERFACE Threads::Threads)
target_compile_definitions(tidemark_flags INTERFACE TIDEMARK_VERSION="${PROJECT_VERSION}")

if(TIDEMARK_SANITIZE)
  target_compile_options(tidemark_flags INTERFACE -fsanitize=${TIDEMARK_SANITIZE}
                         -fno-omit-frame-pointer)
  target_link_options(tidemark_flags INTERFACE -fsanitize=${TIDEMARK_SANITIZE})
  if(TIDEMARK_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The fences of the sequence locks order pages shared with another process, which it does not watch.
    target_compile_options(tidemark_flags INTERFACE -Wno-tsan)
  endif()
endif()

# For what C programs call, and the tests of it: they may pass any number where the API takes an enum, and
# are answered with an error. The compiler takes such a number for what it is (no -fstrict-enums).
add_library(tidemark_open_enums INTERFACE)
if(TIDEMARK_SANITIZE MATCHES "undefined")
  target_compile_options(tidemark_open_enums INTERFACE -fno-sanitize=enum)
endif()

# tidemark_library(NAME SOURCES... [LINK LIBS...]): a static library of one layer.
function(tidemark_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC tidemark_flags ${ARG_LINK})
endfunction()
