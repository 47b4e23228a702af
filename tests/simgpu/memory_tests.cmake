# Tests of the memory half of the driver. Included by this folder's CMakeLists.txt.

foreach(_subject node memory_rules vmm_model)
  tidemark_test(simgpu_${_subject}_test SOURCES ${_subject}_test.cc LINK simgpu_test_device
                LABELS simgpu)
endforeach()
