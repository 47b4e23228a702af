# Tests of the memory side (interpose/memory.cmake) over the software GPU, without the preloaded library.
set(_path "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:simgpu_driver>")
set(_simgpu "directory=${CMAKE_CURRENT_BINARY_DIR}/simgpu_memory_test")
tidemark_test(interpose_device_memory_test SOURCES device_memory_test.cc
              LINK tidemark_memory LABELS interpose
              ENVIRONMENT "${_path}" "SIMGPU=memory=64MiB,${_simgpu}.1")
tidemark_test(interpose_device_memory_adversarial_test SOURCES device_memory_test.cc
              LINK tidemark_memory LABELS interpose
              # The faults one by one are run in the other order only: they take their time.
              ENVIRONMENT "${_path}" "GTEST_FILTER=-*AnyDriverCall*"
                          "SIMGPU=memory=64MiB,order=adversarial,seed=3,race=1,${_simgpu}.2")
tidemark_test(interpose_ahead_test SOURCES ahead_test.cc LINK tidemark_memory LABELS interpose
              ENVIRONMENT "${_path}" "SIMGPU=memory=128MiB,${_simgpu}.4")
tidemark_test(interpose_foreseen_test SOURCES foreseen_test.cc LINK tidemark_memory LABELS interpose
              ENVIRONMENT "${_path}" "SIMGPU=memory=128MiB,order=adversarial,seed=5,race=1,${_simgpu}.5")
tidemark_test(interpose_in_flight_test SOURCES in_flight_test.cc LINK tidemark_memory LABELS interpose
              ENVIRONMENT "${_path}" "SIMGPU=memory=128MiB,order=adversarial,seed=5,race=1,${_simgpu}.6")
foreach(_test interpose_device_memory_test interpose_device_memory_adversarial_test interpose_in_flight_test
              interpose_ahead_test interpose_foreseen_test)
  add_dependencies(${_test} simgpu_driver)
endforeach()
tidemark_test(interpose_session_test SOURCES session_test.cc LINK tidemark_memory LABELS interpose
              ENVIRONMENT "${_path}" "SIMGPU=memory=64MiB,${_simgpu}.3")
add_dependencies(interpose_session_test simgpu_driver)
tidemark_test(interpose_plan_follower_test SOURCES plan_follower_test.cc LINK tidemark_memory
              LABELS interpose)
# A file of the hooks, alone.
tidemark_test(interpose_runtime_chain_test
              SOURCES runtime_chain_test.cc "${PROJECT_SOURCE_DIR}/interpose/runtime_chain.cc"
              LINK ${CMAKE_DL_LIBS} LABELS interpose)
tidemark_test(interpose_biased_mutex_test SOURCES biased_mutex_test.cc LINK tidemark_memory LABELS interpose)
