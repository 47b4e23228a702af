// The devices this node's driver shows, with what the pool needs to create memory on them and near
// them. Needs cuInit, no context.
//
// Threads: called once, at start.

#ifndef TIDEMARK_DAEMON_DEVICE_LIST_H_
#define TIDEMARK_DAEMON_DEVICE_LIST_H_

#include <cuda.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/driver.h"

namespace tidemark::daemon {

using DeviceUuid = std::array<uint8_t, 16>;

struct ManagedDevice {
  CUdevice handle = 0;
  std::string name;
  DeviceUuid uuid = {};
  uint64_t total_bytes = 0;
  int numa_node = 0;  // nearest host memory
};

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", as nvidia-smi writes it.
std::string UuidText(const DeviceUuid& uuid);

// Initialises the driver. Fails when there is no device or one lacks virtual memory management.
absl::StatusOr<std::vector<ManagedDevice>> ListDevices(const kernels::Driver& driver);

// The smallest size of at least `wanted` bytes that every device can create a chunk of, on it and
// in host memory near it.
absl::StatusOr<uint64_t> ChunkBytes(const kernels::Driver& driver,
                                    const std::vector<ManagedDevice>& devices, uint64_t wanted);

// How a chunk is created: pinned memory at `device` (or near it), exportable as a file descriptor.
CUmemAllocationProp ChunkProperties(const ManagedDevice& device, bool on_host);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_DEVICE_LIST_H_
