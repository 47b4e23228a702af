#include "daemon/device_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/driver_status.h"
#include "proto/wire.h"

namespace tidemark::daemon {
namespace {

absl::StatusOr<ManagedDevice> Describe(const kernels::Driver& driver, int ordinal) {
  ManagedDevice device;
  const std::string what = absl::StrCat("asking the driver about device ", ordinal);
  char name[128] = {};
  CUuuid uuid = {};
  size_t total = 0;
  int vmm = 0;
  CUresult result = driver.cuDeviceGet(&device.handle, ordinal);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetName(name, sizeof(name), device.handle);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetUuid(&uuid, device.handle);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceTotalMem(&total, device.handle);
  if (result == CUDA_SUCCESS) {
    result = driver.cuDeviceGetAttribute(
        &vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device.handle);
  }
  if (result != CUDA_SUCCESS) return DriverStatus(driver, result, what);
  if (vmm == 0) {
    return absl::UnimplementedError(absl::StrCat("device ", ordinal, " (", name,
                                                 ") has no virtual memory management, which "
                                                 "Tidemark needs"));
  }
  // A driver that does not know the attribute, or a machine without NUMA: node 0 is all there is.
  int node = 0;
  if (driver.cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device.handle) ==
      CUDA_SUCCESS) {
    device.numa_node = std::max(node, 0);
  }
  device.name = name;
  device.total_bytes = total;
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), device.uuid.begin());
  return device;
}

}  // namespace

std::string UuidText(const DeviceUuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", uuid[i]);
  }
  return text;
}

absl::StatusOr<std::vector<ManagedDevice>> ListDevices(const kernels::Driver& driver) {
  if (CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    return DriverStatus(driver, result, "initialising the driver");
  }
  int count = 0;
  if (CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    return DriverStatus(driver, result, "counting the devices");
  }
  if (count < 1) return absl::NotFoundError("the driver shows no device");
  if (count > TM_WIRE_MAX_DEVICES) {
    return absl::UnimplementedError(absl::StrCat("the driver shows ", count, " devices; at most ",
                                                 +TM_WIRE_MAX_DEVICES,
                                                 " are supported (CUDA_VISIBLE_DEVICES selects)"));
  }
  std::vector<ManagedDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    absl::StatusOr<ManagedDevice> device = Describe(driver, ordinal);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  return devices;
}

absl::StatusOr<uint64_t> ChunkBytes(const kernels::Driver& driver,
                                    const std::vector<ManagedDevice>& devices, uint64_t wanted) {
  uint64_t bytes = wanted;
  for (const ManagedDevice& device : devices) {
    for (const bool on_host : {false, true}) {
      const CUmemAllocationProp properties = ChunkProperties(device, on_host);
      size_t granularity = 0;
      const CUresult result = driver.cuMemGetAllocationGranularity(
          &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      if (result != CUDA_SUCCESS) {
        return DriverStatus(driver, result,
                            absl::StrCat("asking for the granularity of ",
                                         on_host ? "host memory near " : "", device.name));
      }
      if (granularity > 0) bytes = (bytes + granularity - 1) / granularity * granularity;
    }
  }
  return bytes;
}

CUmemAllocationProp ChunkProperties(const ManagedDevice& device, bool on_host) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = on_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = on_host ? device.numa_node : device.handle;
  return properties;
}

}  // namespace tidemark::daemon
