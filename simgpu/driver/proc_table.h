// Looks up exported functions for cuGetProcAddress. Includes no cuda.h, whose macros rename
// functions. Thread rule: none needed; the table is constant.

#ifndef SIMGPU_DRIVER_PROC_TABLE_H_
#define SIMGPU_DRIVER_PROC_TABLE_H_

namespace simgpu {

// As CUdriverProcAddressQueryResult.
enum ProcStatus { kFound = 0, kNoSuchSymbol = 1, kVersionTooOld = 2 };

// The newest form of `base` that CUDA `version` had; its per-thread form if asked for and there is
// one. Null unless found.
void* FindProc(const char* base, int version, bool per_thread, ProcStatus* status);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_PROC_TABLE_H_
