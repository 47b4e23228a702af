// A library that exports every driver function Tidemark calls; with FAKE_DRIVER_SUFFIX the required
// ones under other names, and no optional ones. Each returns CUDA_ERROR_NOT_SUPPORTED.

#if !defined(FAKE_DRIVER_SUFFIX)
#define FAKE_DRIVER_SUFFIX ""
#define TIDEMARK_DRIVER_OPTIONAL(name, exported) TIDEMARK_DRIVER_REQUIRED(name, exported)
#else
#define TIDEMARK_DRIVER_OPTIONAL(name, exported)
#endif
#define TIDEMARK_DRIVER_REQUIRED(name, exported)              \
  int fake_##name(void) __asm__(exported FAKE_DRIVER_SUFFIX); \
  int fake_##name(void) { return 801; }
#include "kernels/driver_functions.def"
