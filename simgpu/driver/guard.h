// How device bytes are kept from host code: protection keys, mprotect, or not at all (SIMGPU's key
// `guard`). Ranges ask for their page protection here. Thread rule: callers hold the driver lock.

#ifndef SIMGPU_DRIVER_GUARD_H_
#define SIMGPU_DRIVER_GUARD_H_

#include <cstddef>

#include "simgpu/driver/address_space.h"

namespace simgpu {

// True for memory that only the device side may touch.
bool IsDeviceBytes(const Range& range);

// Gives the pages of `range` the protection that its rights and the guard ask for now.
bool ApplyProtection(const Range& range);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_GUARD_H_
