// Stream memory operations: waiting for a value in memory, and writing one, in stream order.

#include <cuda.h>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

// Does the value in memory satisfy the wait?
template <typename T>
bool Satisfied(CUdeviceptr address, T wanted, unsigned mode) {
  std::string why;
  // A gone address lets the operation run, which then fails as an illegal access.
  if (CheckSpan(0, {address, sizeof(T), false}, false, &why) != CUDA_SUCCESS) return true;
  DeviceBytes bytes;
  const T now = __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
  switch (mode) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(now - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & wanted) != 0;
    default:
      return static_cast<T>(~(now | wanted)) != 0;
  }
}

template <typename T>
CUresult WaitValue(CUstream stream, CUdeviceptr address, T value, unsigned flags) {
  const unsigned mode = flags & 3u;
  if (address == 0 || address % sizeof(T) != 0 ||
      (flags & ~(3u | unsigned{CU_STREAM_WAIT_VALUE_FLUSH})) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation op;
  op.name = "cuStreamWaitValue";
  op.gate = [=] { return Satisfied<T>(address, value, mode); };
  op.orders_others = true;
  op.touches.push_back({address, sizeof(T), false});
  return Submit(stream, std::move(op));
}

template <typename T>
CUresult WriteValue(CUstream stream, CUdeviceptr address, T value, unsigned flags) {
  if (address == 0 || address % sizeof(T) != 0 ||
      (flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation op;
  op.name = "cuStreamWriteValue";
  op.orders_others = true;
  op.touches.push_back({address, sizeof(T), true});
  op.run = [=](Operation&) {
    __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
  };
  return Submit(stream, std::move(op));
}

}  // namespace

CUresult WaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return WaitValue<uint32_t>(stream, address, value, flags);
}
CUresult WaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return WaitValue<uint64_t>(stream, address, value, flags);
}
CUresult WriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return WriteValue<uint32_t>(stream, address, value, flags);
}
CUresult WriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return WriteValue<uint64_t>(stream, address, value, flags);
}

}  // namespace simgpu

SIMGPU_PTSZ(cuStreamWaitValue32_v2, WaitValue32,
            (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
            (stream, address, value, flags))
SIMGPU_PTSZ(cuStreamWaitValue64_v2, WaitValue64,
            (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
            (stream, address, value, flags))
SIMGPU_PTSZ(cuStreamWriteValue32_v2, WriteValue32,
            (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
            (stream, address, value, flags))
SIMGPU_PTSZ(cuStreamWriteValue64_v2, WriteValue64,
            (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
            (stream, address, value, flags))
