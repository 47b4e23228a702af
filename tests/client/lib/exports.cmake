# The C library exports its own functions under one version, needs libc alone, and has its soname.

set(expected tm_active tm_done_with tm_mark_phase tm_mark_step tm_pin tm_register tm_snapshot_buffers
    tm_snapshot_devices tm_status_text tm_unpin tm_version tm_will_use)

execute_process(COMMAND nm -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+@@TIDEMARK_1" found "${symbols}")
list(TRANSFORM found REPLACE "@@TIDEMARK_1" "")
list(SORT found)
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "${LIBRARY} exports ${found}, and not ${expected}")
endif()
execute_process(COMMAND readelf -dW "${LIBRARY}" OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(NOT dynamic MATCHES "SONAME[^\n]*\\[libtidemark\\.so\\.1\\]")
  message(FATAL_ERROR "the soname is not libtidemark.so.1:\n${dynamic}")
endif()
string(REGEX MATCHALL "NEEDED[^\n]*" needed "${dynamic}")
foreach(line ${needed})
  if(NOT line MATCHES "libc\\.so|ld-linux|asan|ubsan|tsan|libm\\.|libgcc|libstdc")
    message(FATAL_ERROR "an unexpected library: ${line}")
  endif()
endforeach()
