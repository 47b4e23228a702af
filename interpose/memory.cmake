# The memory side of the preloaded library: what stands behind interpose/manager.h. Linked into the
# library itself and into its unit tests, with the same restrictions in both.
tidemark_library(tidemark_memory SOURCES ahead.cc backing.cc biased_mutex.cc chunk_supply.cc device_memory.cc early_copies.cc figures.cc foreseen.cc function_info.cc futex.cc
                 gate.cc hints.cc host_memory.cc ipc.cc manager.cc mover.cc plan_follower.cc pointer_tables.cc
                 process_memory.cc residency.cc session.cc stream_book.cc
                 LINK tidemark_shim_base tidemark_shim_flags tidemark_core tidemark_kernels)
