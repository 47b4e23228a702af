// How much of each device is in use, by whomever, as NVIDIA's management library (NVML) says. The
// CUDA driver would tell it only to a process with a context, which itself takes device memory;
// NVML needs none. Opened at run time; where it is missing, or does not know a device (the software
// GPU, say), nothing is known.
//
// Threads: one at a time.

#ifndef TIDEMARK_DAEMON_DEVICE_USAGE_H_
#define TIDEMARK_DAEMON_DEVICE_USAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/device_list.h"

namespace tidemark::daemon {

class DeviceUsage {
 public:
  // `library` empty: libnvidia-ml.so.1 where the loader finds it. NotFound when it cannot be opened
  // or initialised, or knows none of the devices; the sentence says which.
  static absl::StatusOr<std::unique_ptr<DeviceUsage>> Open(
      const std::string& library, const std::vector<ManagedDevice>& devices);
  ~DeviceUsage();
  DeviceUsage(const DeviceUsage&) = delete;
  DeviceUsage& operator=(const DeviceUsage&) = delete;

  // Bytes in use now; nothing when the library does not know the device or does not answer.
  std::optional<uint64_t> UsedBytes(uint32_t device) const;

 private:
  struct Calls;
  DeviceUsage(std::unique_ptr<Calls> calls, std::vector<void*> handles);

  const std::unique_ptr<Calls> calls_;
  const std::vector<void*> handles_;  // by device; null: not known
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_DEVICE_USAGE_H_
