# Tests of the execution half of the driver. Included by this folder's CMakeLists.txt.

add_library(simgpu_test_device STATIC device.cc)
target_link_libraries(simgpu_test_device PUBLIC tidemark_flags simgpu_driver GTest::gtest)

foreach(_subject order race kernel time graph copy remap)
  tidemark_test(simgpu_engine_${_subject}_test SOURCES engine_${_subject}_test.cc
                LINK simgpu_test_device LABELS simgpu)
endforeach()

tidemark_test(simgpu_twin_abi_test SOURCES twin_abi_test.cc LINK tidemark_cuda_headers LABELS simgpu)
