// Stream-ordered memory pools: cuMemAllocAsync and what belongs to it.
// Thread rule: callers hold the driver lock.

#ifndef SIMGPU_DRIVER_POOL_H_
#define SIMGPU_DRIVER_POOL_H_

#include "simgpu/driver/address_space.h"

namespace simgpu {

// Ends a pool allocation that the device no longer uses; its memory stays with the pool.
void ReturnToPool(Range* range);

// What a synchronisation does: every pool gives back unused memory above its release threshold.
void TrimPoolsToThreshold();

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_POOL_H_
