// How much host memory this process may still take for buffers that left the device: what the node
// has available, bounded by the cgroup, halved. Threads: any; reads /proc and /sys.

#ifndef TIDEMARK_INTERPOSE_HOST_MEMORY_H_
#define TIDEMARK_INTERPOSE_HOST_MEMORY_H_

#include <stdint.h>

namespace tidemark::interpose {

uint64_t SpareHostBytes();

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_HOST_MEMORY_H_
