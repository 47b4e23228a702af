// The memory side's state of this process: its devices, the session, the driver's table. One
// object, made by ManagerStart, never destroyed: at exit the driver and the daemon take everything
// back.
//
// Threads: Get() may be called by any thread; null means inactive. A forked child gets null.

#ifndef TIDEMARK_INTERPOSE_PROCESS_MEMORY_H_
#define TIDEMARK_INTERPOSE_PROCESS_MEMORY_H_

#include <atomic>

#include "interpose/device_memory.h"

namespace tidemark::interpose {

struct ProcessMemory {
  const kernels::Driver* driver = nullptr;
  Session session;
  int device_count = 0;
  DeviceMemory* devices[DeviceMemory::kDevices] = {};
  std::atomic<uint32_t> gates{0};  // passed, for the pace of publishing
  std::atomic<int64_t> publish_at{0};

  // The device of the current context, or null when it is not managed (`*context` is then
  // undefined).
  DeviceMemory* Current(CUcontext* context);
  // The device of `stream`, with the current context; the current one's where that is not known.
  DeviceMemory* HomeOf(CUstream stream, CUcontext* context);
  // The device whose arena holds `address`, or null.
  DeviceMemory* Owner(CUdeviceptr address) {
    for (int i = 0; i < device_count; ++i) {
      if (devices[i] != nullptr && devices[i]->Contains(address)) return devices[i];
    }
    return nullptr;
  }
  // Runs `action(memory)` for each managed device, one after the other, under its lock.
  template <typename Action>
  void EachDevice(const Action& action) {
    for (int i = 0; i < device_count; ++i) {
      if (devices[i] == nullptr) continue;
      MutexLock lock(&devices[i]->mutex);
      action(devices[i]);
    }
  }
  // Writes the counters page when it is due; no lock may be held.
  void PublishSometimes();
  void Publish();
  // The last figures, at the job's exit: another thread may hold any lock for good by then, so
  // nothing is waited for, and a device that is busy keeps its former figures.
  void PublishAtExit();
};

extern std::atomic<ProcessMemory*> process_memory;

inline ProcessMemory* GetProcessMemory() { return process_memory.load(std::memory_order_acquire); }

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_PROCESS_MEMORY_H_
