// Memsets: each passes the gate with the range that it writes.

#include "interpose/hook_gate.h"

using tidemark::interpose::PerThread;
using tidemark::interpose::PitchedBytes;
using tidemark::interpose::Writes;

#define TIDEMARK_MEMSET(sync, async, Value, width)                                             \
  TIDEMARK_GATED_SYNC(sync, (CUdeviceptr dst, Value value, size_t count), (dst, value, count), \
                      Writes(dst, count* width))                                               \
  TIDEMARK_GATED_ASYNC(async, (CUdeviceptr dst, Value value, size_t count, CUstream hStream),  \
                       (dst, value, count, hStream), Writes(dst, count* width))

#define TIDEMARK_MEMSET_2D(sync, async, Value, width)                                              \
  TIDEMARK_GATED_SYNC(                                                                             \
      sync, (CUdeviceptr dst, size_t pitch, Value value, size_t columns, size_t rows),             \
      (dst, pitch, value, columns, rows), Writes(dst, PitchedBytes(pitch, columns* width, rows)))  \
  TIDEMARK_GATED_ASYNC(                                                                            \
      async,                                                                                       \
      (CUdeviceptr dst, size_t pitch, Value value, size_t columns, size_t rows, CUstream hStream), \
      (dst, pitch, value, columns, rows, hStream),                                                 \
      Writes(dst, PitchedBytes(pitch, columns* width, rows)))

TIDEMARK_MEMSET(cuMemsetD8_v2, cuMemsetD8Async, unsigned char, 1)
TIDEMARK_MEMSET(cuMemsetD16_v2, cuMemsetD16Async, unsigned short, 2)
TIDEMARK_MEMSET(cuMemsetD32_v2, cuMemsetD32Async, unsigned int, 4)
TIDEMARK_MEMSET_2D(cuMemsetD2D8_v2, cuMemsetD2D8Async, unsigned char, 1)
TIDEMARK_MEMSET_2D(cuMemsetD2D16_v2, cuMemsetD2D16Async, unsigned short, 2)
TIDEMARK_MEMSET_2D(cuMemsetD2D32_v2, cuMemsetD2D32Async, unsigned int, 4)
