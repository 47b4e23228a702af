// Work queues of the software GPU: streams, events, orders of execution, virtual time, races. API
// entry points build an Operation and Submit it; the engine decides when it runs.
//
// Thread rule: every function takes the driver lock itself; an Operation's `run` is called with the
// lock held, except for host callbacks, which run on the driver's callback thread without it.
// Callers of Synchronize* do not hold the lock, or a callback that another thread waits for may
// never end.

#ifndef SIMGPU_DRIVER_ENGINE_H_
#define SIMGPU_DRIVER_ENGINE_H_

#include <cuda.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/driver/memory.h"

namespace simgpu {

enum class Unit { kNone, kCompute, kCopyToDevice, kCopyToHost, kCopyOnDevice, kHost };
inline constexpr int kUnits = 6;

struct NodeParams;  // graph.h: what a graph node of this operation answers to GetParams

struct Operation {
  std::string name;  // "cuMemcpyHtoDAsync_v2", for race and fault reports
  Unit unit = Unit::kNone;
  double seconds = 0;         // modelled duration on its unit
  uint64_t bytes = 0;         // moved by a copy or memset, for the report
  std::vector<Span> touches;  // checked and race-checked just before `run`; `run` may add more
  std::vector<CUdeviceptr> mentions;  // addresses a kernel was given and may or may not use
  bool from_kernel = false;
  bool orders_others = false;  // waits for or writes a value: a synchronisation, not a race
  bool host_callback = false;  // run without the driver lock; must not call the CUDA API
  int device = 0;              // set by Submit: the device of the stream's context
  std::function<bool()> gate;  // may be empty; the operation waits until it answers true
  std::function<CUresult(Operation&)> run;  // may be empty
  // Owners: the queued operation and the graph node made of it under capture.
  std::shared_ptr<NodeParams> params;
};

// Queues `op` on `stream` (0/CU_STREAM_LEGACY and CU_STREAM_PER_THREAD included) of the current
// context. During capture it becomes a graph node instead. Returns sticky errors first.
CUresult Submit(CUstream stream, Operation op);

// Run what must have run before the host may go on; they return sticky errors. A synchronisation of
// a capturing stream or its context is refused and invalidates the capture.
CUresult SynchronizeStream(CUstream stream);
CUresult SynchronizeContext(CUcontext context);
// What frees wait for: everything that runs or is queued on the device. A capturing stream has
// nothing to wait for, so it is no obstacle where the thread's capture mode allows the free at all.
CUresult SynchronizeDevice(int device);

// Adds to the host's virtual clock: what a driver call costs on the calling thread.
void ChargeHost(double seconds);

// The host's virtual clock, seconds since the first call.
double HostSeconds();

// Tells the engine that [base, base + bytes) stops being what it was: freed, unmapped, given back
// to a pool. Forgets who touched it, reports a race when an access to it is not ordered before this
// moment, and makes operations that are still queued and name it fail as illegal accesses, even if
// the range is mapped again before they run. Call it before the memory goes. Frees that synchronise
// do so first.
void ForgetRange(CUdeviceptr base, size_t bytes);

// Forgets `context`'s streams, events and queued work (context destruction, primary reset).
void DropContext(CUcontext context);

// What the thread may do while some stream captures: CUDA_SUCCESS, or
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED for a call that CUDA lists as potentially unsafe
// (allocation, synchronisation) and that the capture modes in force prohibit; the captures become
// invalid.
CUresult ForbidDuringCapture();

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ENGINE_H_
