// Address space of the software GPU: which device addresses exist, what is mapped there, who may
// touch it. The engine (engine.h) asks here before a copy, memset or kernel touches bytes; the API
// entry points of allocation and VMM change it.
//
// Thread rule: every function takes and releases the driver lock itself unless it says otherwise.

#ifndef SIMGPU_DRIVER_MEMORY_H_
#define SIMGPU_DRIVER_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace simgpu {

// A run of bytes that an operation touches. `base` is a device address, or a host address for
// pinned, registered, managed or pageable host memory.
struct Span {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  bool write = false;
};

enum class Space {
  kPageable,  // host memory the driver does not know
  kPinned,    // cuMemHostAlloc, cuMemHostRegister
  kManaged,
  kDevice,  // any mapped address of a device range: plain, VMM (device or host backed), pool, IPC
  kHole,    // inside a device range, but nothing is mapped there
};

struct Place {
  Space space = Space::kPageable;
  int device = -1;           // owner; -1 for host spaces
  bool host_backed = false;  // VMM mapping of HOST/HOST_NUMA memory: an access goes over the link
  CUdeviceptr base = 0;      // of the allocation or mapping
  size_t bytes = 0;
};

// What lies at `address`.
Place PlaceOf(CUdeviceptr address);

// May `device` touch `span`? CUDA_SUCCESS, or CUDA_ERROR_ILLEGAL_ADDRESS with a sentence in `why`
// (address, what is or was there, its owner and history). Pageable host memory is illegal for
// kernels
// (`from_kernel`) and accepted for copies.
CUresult CheckSpan(int device, const Span& span, bool from_kernel, std::string* why);

// True for values that look like addresses of this address space (mapped or a hole), which is how
// pointer-like kernel arguments are recognised.
bool LooksLikeDeviceAddress(uint64_t value);

// While one lives on a thread, that thread may read and write device bytes; other threads fault as
// on a GPU where the guard mode allows it (see README.md, key `guard`). Nestable.
class DeviceBytes {
 public:
  DeviceBytes();
  ~DeviceBytes();
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_MEMORY_H_
