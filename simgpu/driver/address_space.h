#ifndef SIMGPU_DRIVER_ADDRESS_SPACE_H_
#define SIMGPU_DRIVER_ADDRESS_SPACE_H_
#include <cuda.h>
namespace simgpu {
void DropContextMemory(CUcontext context);
}
#endif
