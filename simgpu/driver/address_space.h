// The ranges behind memory.h: reservations, and what is allocated or mapped where, with the history
// that fault reports quote. The API entry points (alloc_api, vmm_api, host_api, pool_api, ipc_api)
// change it.
// Thread rule: callers hold the driver lock.

#ifndef SIMGPU_DRIVER_ADDRESS_SPACE_H_
#define SIMGPU_DRIVER_ADDRESS_SPACE_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "simgpu/driver/physical.h"

namespace simgpu {

constexpr size_t kGranularity = size_t{2} << 20;

enum class Kind { kPlain, kPool, kIpc, kMapping, kVariable, kPinned, kRegistered, kManaged };

// One allocation or mapping. `bytes` is what its owner may touch; `span_bytes` what is really
// mapped.
struct Range {
  Kind kind = Kind::kPlain;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  size_t span_bytes = 0;
  int device = -1;            // -1: host memory
  CUcontext owner = nullptr;  // whose destruction frees it; null for mappings and pools
  unsigned flags = 0;         // of host memory
  uint64_t buffer_id = 0;     // CU_POINTER_ATTRIBUTE_BUFFER_ID: never used twice in a process
  bool live = true;           // pool memory: between allocation and free in stream order
  CUmemoryPool pool = nullptr;
  bool free_queued = false;       // pool memory: cuMemFreeAsync was called, its place not reached
  bool of_graph = false;          // memory of a graph's allocation node (kind kPool, no pool)
  bool graph_gone = false;        // ... whose graph is no more: the next free is the last
  int opens = 0;                  // IPC imports: cuIpcOpenMemHandle less cuIpcCloseMemHandle
  Physical* physical = nullptr;   // mappings: owned by the handle table
  std::unique_ptr<Physical> own;  // everything else that stands on node memory
  std::map<int, CUmemAccess_flags> access;  // mappings: by device
};

struct Reservation {
  CUdeviceptr base = 0;
  size_t bytes = 0;
};

// Address space of the process, not backed by anything: `bytes` at a multiple of `alignment`, near
// `hint` if that is free. 0 when there is none.
CUdeviceptr TakeAddresses(size_t bytes, size_t alignment, CUdeviceptr hint);
void GiveAddresses(CUdeviceptr base, size_t bytes);
// False for an address that, once given back, the host may receive for memory of its own.
bool InOwnWindow(CUdeviceptr address);

// What holds `address`, or null. FindFrom is the first range that ends above `address`.
Range* FindRange(CUdeviceptr address);
Range* FindFrom(CUdeviceptr address);
Range* AddRange(Range range);
// Notes `verb` ("freed by cuMemFree") in the history and forgets the range; returns what it was.
Range RemoveRange(CUdeviceptr base, const char* verb);

std::map<CUdeviceptr, Reservation>& Reservations();
Reservation* FindReservation(CUdeviceptr address);

// Makes the bytes of `range` reachable in this process at its address, or unreachable; the guard
// mode decides how. False when the system refuses.
bool MapBytes(const Range& range, const Physical& physical);
bool UnmapBytes(CUdeviceptr base, size_t bytes);

// All plain memory of `context` goes; called when it ends. Takes the driver lock.
void DropContextMemory(CUcontext context);

// Visits every range; the visitor may not change the set.
template <typename Visitor>
void ForEachRange(Visitor visitor);

std::map<CUdeviceptr, Range>& Ranges();

template <typename Visitor>
void ForEachRange(Visitor visitor) {
  for (auto& [base, range] : Ranges()) visitor(range);
}

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ADDRESS_SPACE_H_
