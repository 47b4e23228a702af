// Entry points of devices: count, names, attributes, identity, capacity, links between devices.
// Thread rule: callable from any thread, as the driver API is.

#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

constexpr int kClockKilohertz = 1'500'000;

// What the simulated device is: sizes and limits of compute capability 9.0, and what is not
// simulated is not offered. Attributes that are absent are 0.
struct Attribute {
  CUdevice_attribute id;
  int value;
};
constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 * 1024},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, kClockKilohertz},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2'600'000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 * 1024},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
};

CUresult GetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value == nullptr || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) *value = device + 1;
  for (const Attribute& known : kAttributes) {
    if (known.id == attribute) *value = known.value;
  }
  return CUDA_SUCCESS;
}

std::string BusId(int device) {
  char text[32];
  snprintf(text, sizeof(text), "0000:%02X:00.0", static_cast<unsigned>(device + 1));
  return text;
}

CUresult CopyText(const std::string& text, char* out, int room) {
  if (out == nullptr || room <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(out, static_cast<size_t>(room), "%s", text.c_str());
  return CUDA_SUCCESS;
}

CUresult GetUuid(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  memcpy(uuid->bytes, "simulated device", sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}

CUresult GetByBusId(CUdevice* device, const char* text) {
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  // [domain]:bus:device.[function]
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (sscanf(text, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  if (domain != 0 || slot != 0 || !IsDevice(static_cast<int>(bus) - 1)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *device = static_cast<int>(bus) - 1;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API CUresult CUDAAPI cuDriverGetVersion(int* version) {
  SIMGPU_ENTER();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetCount(int* count) {
  SIMGPU_ENTER();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = simgpu::GetConfig().devices;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  SIMGPU_ENTER();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetName(char* name, int room, CUdevice device) {
  SIMGPU_ENTER();
  if (!simgpu::IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return simgpu::CopyText("simgpu software GPU", name, room);
}

#undef cuDeviceGetUuid
SIMGPU_API CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  SIMGPU_ENTER();
  return simgpu::GetUuid(uuid, device);
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  SIMGPU_ENTER();
  return simgpu::GetUuid(uuid, device);
}

SIMGPU_API CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  SIMGPU_ENTER();
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = simgpu::GetConfig().memory_bytes;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                                 CUdevice device) {
  SIMGPU_ENTER();
  return simgpu::GetAttribute(value, attribute, device);
}

SIMGPU_API CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  SIMGPU_ENTER();
  const CUresult result =
      simgpu::GetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result != CUDA_SUCCESS) return result;
  return simgpu::GetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int room, CUdevice device) {
  SIMGPU_ENTER();
  if (!simgpu::IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return simgpu::CopyText(simgpu::BusId(device), text, room);
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  SIMGPU_ENTER();
  return simgpu::GetByBusId(device, text);
}

SIMGPU_API CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  SIMGPU_ENTER();
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::IsDevice(device) || !simgpu::IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute,
                                                    CUdevice device, CUdevice peer) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::IsDevice(device) || !simgpu::IsDevice(peer) || device == peer) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
