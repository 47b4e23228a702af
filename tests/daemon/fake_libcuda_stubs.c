// Every driver function that Tidemark looks up, weak and unsupported; fake_libcuda.c has the real
// ones.

#define TIDEMARK_DRIVER_REQUIRED(name, exported)                 \
  __attribute__((weak)) int stub_##name(void) __asm__(exported); \
  __attribute__((weak)) int stub_##name(void) { return 801; }
#define TIDEMARK_DRIVER_OPTIONAL(name, exported) TIDEMARK_DRIVER_REQUIRED(name, exported)
#include "kernels/driver_functions.def"
