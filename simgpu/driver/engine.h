// Work queues of the software GPU: streams, events, orders of execution, virtual time, races. API
// entry points build an Operation and Submit it; the engine decides when it runs.
//
// Thread rule: every function takes the driver lock itself; an Operation's `run` is called with the
// lock held, except for host callbacks.

#ifndef SIMGPU_DRIVER_ENGINE_H_
#define SIMGPU_DRIVER_ENGINE_H_

#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

#include "simgpu/driver/memory.h"

namespace simgpu {

enum class Unit { kNone, kCompute, kCopyToDevice, kCopyToHost, kCopyOnDevice, kHost };

struct Operation {
  std::string name;  // "cuMemcpyHtoDAsync 4194304 bytes", for race and fault reports
  Unit unit = Unit::kNone;
  double seconds = 0;         // modelled duration on its unit
  std::vector<Span> touches;  // checked and race-checked just before `run`; `run` may add more
  bool from_kernel = false;
  bool host_callback = false;  // run without the driver lock; must not call the CUDA API
  std::function<CUresult(Operation&)> run;  // may be empty
};

// Queues `op` on `stream` (0/CU_STREAM_LEGACY and CU_STREAM_PER_THREAD included) of the current
// context. During capture it becomes a graph node instead. Returns sticky errors first.
CUresult Submit(CUstream stream, Operation op);

// Run what must have run before the host may go on; they return sticky errors.
CUresult SynchronizeStream(CUstream stream);
CUresult SynchronizeContext(CUcontext context);
CUresult SynchronizeDevice(int device);

// Adds to the host's virtual clock: what a driver call costs on the calling thread.
void ChargeHost(double seconds);

// Forgets `context`'s streams, events and queued work (context destruction, primary reset).
void DropContext(CUcontext context);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ENGINE_H_
