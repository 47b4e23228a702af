// What the hooks ask of the memory manager inside a job. The seam between `hooks*.cc` (which calls
// of which library arrive, and under which name) and the arena, gate and mover (what happens to
// memory).
//
// Errors are the driver's own codes. Thread rule: callable from any thread of the job; a caller
// proves with a Guard that it is not already inside Tidemark on this thread.

#ifndef TIDEMARK_INTERPOSE_MANAGER_H_
#define TIDEMARK_INTERPOSE_MANAGER_H_

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/driver.h"

namespace tidemark::interpose {

// Thread-local re-entry mark. A hook makes one first; when `entered()` is false the hook was
// reached from inside Tidemark (or from inside the driver on Tidemark's behalf) and must pass
// straight through.
class Guard {
 public:
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  bool entered() const { return entered_; }

 private:
  bool entered_;
};

// Called after the job's own cuInit succeeded, with the real driver's functions, which must stay
// valid for the life of the process. Never fails: when the manager cannot work (no VMM, no budget,
// disabled) it stays inactive and every call below passes. A forked child is inactive until its own
// cuInit.
void ManagerStart(const Guard&, const kernels::Driver& driver);
bool ManagerActive();

// ---- Allocation. Each returns true when it handled the call and put the outcome in `*result`;
// false means "not ours, call the driver". `device` is that of the current context.
bool ManagerAlloc(const Guard&, CUdeviceptr* address, size_t bytes, CUresult* result);
bool ManagerAllocPitch(const Guard&, CUdeviceptr* address, size_t* pitch, size_t width_bytes,
                       size_t height, unsigned element_bytes, CUresult* result);
bool ManagerAllocAsync(const Guard&, CUdeviceptr* address, size_t bytes, CUstream stream,
                       CUresult* result);
bool ManagerFree(const Guard&, CUdeviceptr address, CUresult* result);
bool ManagerFreeAsync(const Guard&, CUdeviceptr address, CUstream stream, CUresult* result);
bool ManagerMemGetInfo(const Guard&, size_t* free_bytes, size_t* total_bytes, CUresult* result);
// What the buffer that holds `address` is, for cuMemGetAddressRange and pointer attributes. False:
// not arena memory.
struct BufferFacts {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  uint64_t id = 0;              // never used again in this process, and none of the driver's
  CUcontext context = nullptr;  // in which it was allocated; null: stream-ordered memory, of a pool
  CUdevice device = 0;
};
bool ManagerDescribe(const Guard&, CUdeviceptr address, BufferFacts* facts);

// Memory that the driver itself serves (managed, pools of the job, arrays, VMM of the job):
// counted, so that it is never lost from accounting. `sign` +1 or -1. `device` is where the memory
// lies, which need not be the current context's device: a VMM handle is created without any
// context. A device that is not managed (out of range, or not started) is ignored.
void ManagerCountPassedThrough(const Guard&, CUdevice device, uint64_t bytes, int sign);
// Pinned host memory of the job, by the device of the context it was allocated in.
void ManagerCountHost(const Guard&, CUdevice device, uint64_t bytes, int sign);
// A graph of the job holds allocations: its memory is counted by the driver's own figure after each
// launch of a graph on the current device.
void ManagerGraphAllocates(const Guard&);
// Asks for room on `device` before a passed-through allocation: evicts, or returns false (out of
// memory). True when the device is not managed. Must not look at the current context.
bool ManagerMakeRoom(const Guard&, CUdevice device, uint64_t bytes);
// The driver was out of memory in spite of that: lets chunks of `bytes` go although the budget
// allows them. False: there was nothing to give, so that asking the driver again is no use.
bool ManagerGiveBack(const Guard&, CUdevice device, uint64_t bytes);
// Whether the job's budget on `device` is below the device's memory: only then does it refuse what
// the driver could serve.
bool ManagerHasLimit(const Guard&, CUdevice device);
// The job chose a pool of its own for stream-ordered memory of `device` (or the default one again):
// such memory is the driver's, as memory taken from that pool by name is.
void ManagerUsesOwnPool(const Guard&, CUdevice device, bool own);

// ---- IPC of arena memory.
bool ManagerIpcGetHandle(const Guard&, CUipcMemHandle* handle, CUdeviceptr address,
                         CUresult* result);
bool ManagerIpcOpenHandle(const Guard&, CUdeviceptr* address, CUipcMemHandle handle,
                          CUresult* result);
bool ManagerIpcClose(const Guard&, CUdeviceptr address, CUresult* result);
// Whether ManagerIpcGetHandle can work at present; the answer to "is this pointer IPC capable".
bool ManagerIpcCapable();

// ---- Launch gate. Constructed before a piece of work is handed to the driver, destroyed right
// after the driver took it: between the two no chunk that the work may touch is moved.
struct GateSpan {
  CUdeviceptr base;
  size_t bytes;  // 0: the whole buffer that holds `base`
  bool write;
};
class GatePass {
 public:
  // Work with known extents: copies and memsets. `spans` may name host memory; it is ignored.
  GatePass(const Guard&, CUstream stream, const GateSpan* spans, size_t count);
  // A kernel: the parameter block is scanned for arena addresses. Exactly one of `params` (array of
  // pointers to values) and `extra` (CU_LAUNCH_PARAM_* list) is set, or neither.
  GatePass(const Guard&, CUstream stream, CUfunction function, void** params, void** extra);
  // A graph launch: everything the graph was captured with is resident already (pinned).
  GatePass(const Guard&, CUstream stream, CUgraphExec graph);
  ~GatePass();
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

 private:
  uint32_t devices_ = 0;     // one bit per device whose gate is held
  void* process_ = nullptr;  // the memory side's own
  void* stream_ = nullptr;
  bool graph_ = false;
};

// A small host-to-device copy: if its source bytes hold arena addresses, the destination is a
// pointer table and an edge to each target is kept. Called inside the GatePass of the copy.
void ManagerNotePointerTable(const Guard&, CUdeviceptr destination, const void* source,
                             size_t bytes);

// ---- Streams, contexts and capture, as the job makes and ends them.
void ManagerStreamCreated(const Guard&, CUstream stream);
void ManagerStreamDestroying(const Guard&, CUstream stream);  // before the driver destroys it
void ManagerCaptureBegan(const Guard&, CUstream stream);
void ManagerCaptureEnded(const Guard&, CUstream stream, CUgraph graph);
void ManagerContextDestroying(const Guard&, CUcontext context);  // also a device's primary reset

// After the job enabled (or disabled) access from the current context's device to `peer`'s memory:
// arena memory of `peer`'s device must then be reachable as the driver's own memory is.
void ManagerPeerAccess(const Guard&, CUcontext peer, bool enabled);

// The driver reported an error that ends the current context's usefulness (an illegal access, say).
// Further requests on its device go to the driver, which repeats the error, until the context ends.
void ManagerContextIsBroken(const Guard&);

// After the job unloaded a module or library: a function handle may now mean another function.
void ManagerFunctionsChanged(const Guard&);

// Registration that makes addresses immovable: IPC export, peer access, RDMA, graph capture.
enum class PinReason { kIpc, kPeer, kGraph, kRegistered };
void ManagerPin(const Guard&, CUdeviceptr address, size_t bytes, PinReason reason);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_MANAGER_H_
