// Kernel launches: arguments are copied and checked here, twins run here, and other kernels take
// time.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_LAUNCH_H_
#define SIMGPU_DRIVER_LAUNCH_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/driver/engine.h"
#include "simgpu/driver/module.h"

namespace simgpu {

struct Launch {
  CUfunction function = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::vector<unsigned char> block_of_params;  // as laid out for the device
  std::vector<void*> params;                   // pointers into it, one per parameter

  uint64_t Blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint64_t Threads() const { return uint64_t{block[0]} * block[1] * block[2]; }
};

// A launch of the shape that `given` states, in the field names that the API's structs share.
template <typename Given>
std::shared_ptr<Launch> LaunchShapedAs(const Given& given) {
  auto launch = std::make_shared<Launch>();
  launch->grid[0] = given.gridDimX;
  launch->grid[1] = given.gridDimY;
  launch->grid[2] = given.gridDimZ;
  launch->block[0] = given.blockDimX;
  launch->block[1] = given.blockDimY;
  launch->block[2] = given.blockDimZ;
  launch->dynamic_shared_bytes = given.sharedMemBytes;
  return launch;
}

// Copies the arguments of a launch, in either of the two forms, and checks the shape.
CUresult FillLaunch(CUfunction function, void** kernel_params, void** extra, Launch* launch);

// The operation that runs `launch`; its modelled time is decided here. Owners of the launch: the
// operation and the graph node made of it.
Operation MakeLaunchOperation(std::shared_ptr<const Launch> launch, int device);

// Runs a twin's blocks on this thread. A fault inside it ends as CUDA_ERROR_ILLEGAL_ADDRESS with
// the address in `fault`. `touch` may be null.
struct TwinRun {
  const TwinKernel* twin = nullptr;
  TwinLaunch launch{};
  bool traced = false;
  uint64_t fault = 0;
};
CUresult RunTwin(TwinRun* run);

// Calls body(argument) with faults caught: false, and the address, when it faulted.
bool CallTrapped(void (*body)(void*), void* argument, uint64_t* fault);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_LAUNCH_H_
