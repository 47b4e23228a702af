# Tests of what answers people: the admin service and the metrics, over a fixed fake node.

if(NOT TIDEMARK_DAEMON)
  return()
endif()

add_library(tidemark_fake_node STATIC "${CMAKE_CURRENT_LIST_DIR}/fake_node.cc")
target_link_libraries(tidemark_fake_node PUBLIC tidemark_flags tidemark_daemon tidemark_proto)
target_compile_definitions(tidemark_fake_node PUBLIC
                           TIDEMARK_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/tests/golden")

foreach(name admin_policy admin_server metrics)
  tidemark_test(${name}_test SOURCES "${CMAKE_CURRENT_LIST_DIR}/${name}_test.cc"
                LINK tidemark_fake_node)
endforeach()
