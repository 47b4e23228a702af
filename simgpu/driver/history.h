// What used to be where: the last ranges that went away, so that a fault report can say who owned
// the address and when it was freed. Thread rule: callers hold the driver lock.

#ifndef SIMGPU_DRIVER_HISTORY_H_
#define SIMGPU_DRIVER_HISTORY_H_

#include <cuda.h>

#include <string>

#include "simgpu/driver/address_space.h"

namespace simgpu {

void Remember(const Range& range, const char* verb);

// "a plain allocation of 4096 bytes at 0x..., freed by cuMemFree, 3 frees ago", or empty.
std::string WhatWasAt(CUdeviceptr address);
// False where the host may have been given the address since.
bool WasDeviceAddress(CUdeviceptr address);

// "a VMM mapping of 2097152 bytes at 0x... on device 0".
std::string Describe(const Range& range);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_HISTORY_H_
