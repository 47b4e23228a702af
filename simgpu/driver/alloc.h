// Plain device memory: what cuMemAlloc, the pools and IPC imports stand on.
// Thread rule: callers hold the driver lock.

#ifndef SIMGPU_DRIVER_ALLOC_H_
#define SIMGPU_DRIVER_ALLOC_H_

#include <cuda.h>

#include "simgpu/driver/address_space.h"

namespace simgpu {

// What `bytes` of plain memory cost a device: small requests in steps of 64 KiB, others in whole 2
// MiB.
size_t ChargedBytes(size_t bytes);

// A range of `kind` on `device` with fresh, poisoned memory; null with the error in `*result`. When
// memory is short, unused pool memory is given back first.
Range* AllocateRange(Kind kind, int device, size_t bytes, CUresult* result);

// Maps `physical` at a new address as a range of `kind`.
Range* PlaceRange(Kind kind, std::unique_ptr<Physical> physical, size_t bytes, CUresult* result);

// Ends `range`, which device work no longer uses.
void FreeRange(Range* range, const char* verb);

// Gives all unused pool memory of `device` back; true if there was any.
bool TrimPools(int device);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ALLOC_H_
