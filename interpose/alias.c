/* A second library to preload, with nothing in it but its SONAME, libcuda.so, and its dependency,
 * libcuda.so.1, which is the preloaded library. Programs that open the driver by its development
 * name (Numba) then reach it too: dlsym on a handle searches the handle's dependencies. */

typedef int tidemark_alias_holds_nothing;
