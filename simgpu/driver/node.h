#ifndef SIMGPU_DRIVER_NODE_H_
#define SIMGPU_DRIVER_NODE_H_
#include <cuda.h>
namespace simgpu {
CUresult JoinNode();
}
#endif
