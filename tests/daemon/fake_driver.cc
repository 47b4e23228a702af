#include "tests/daemon/fake_driver.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tidemark::daemon {
namespace {

constexpr int kHost = -1;
FakeDriver* current = nullptr;

int PlaceOf(const CUmemAllocationProp* properties) {
  return properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties->location.id : kHost;
}

}  // namespace

struct FakeCalls {
  static CUresult CUDAAPI Init(unsigned) { return CUDA_SUCCESS; }
  static CUresult CUDAAPI Version(int* version) { return *version = 13000, CUDA_SUCCESS; }
  static CUresult CUDAAPI Get(CUdevice* device, int ordinal) {
    return *device = ordinal, CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Count(int* count) {
    return *count = static_cast<int>(current->device_count_), CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Name(char* name, int size, CUdevice device) {
    std::snprintf(name, static_cast<size_t>(size), "fake %d", device);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Uuid(CUuuid* uuid, CUdevice device) {
    std::memset(uuid->bytes, 0x40 + device, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Total(size_t* bytes, CUdevice device) {
    return *bytes = static_cast<size_t>(current->capacity_.at(device)), CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Attribute(int* value, CUdevice_attribute attribute, CUdevice) {
    return *value = attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID ? 0 : 1, CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Granularity(size_t* bytes, const CUmemAllocationProp*,
                                      CUmemAllocationGranularity_flags) {
    return *bytes = 2 << 20, CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Create(CUmemGenericAllocationHandle* handle, size_t bytes,
                                 const CUmemAllocationProp* properties, unsigned long long) {
    std::lock_guard<std::mutex> lock(current->mutex_);
    if (current->fail_create_in_ > 0 && --current->fail_create_in_ == 0) {
      return current->fail_create_code_;
    }
    const int place = PlaceOf(properties);
    if (current->used_[place] + static_cast<int64_t>(bytes) > current->capacity_.at(place)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    current->used_[place] += static_cast<int64_t>(bytes);
    *handle = current->next_handle_++;
    current->chunks_[*handle] = {place, bytes};
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Release(CUmemGenericAllocationHandle handle) {
    std::lock_guard<std::mutex> lock(current->mutex_);
    const auto found = current->chunks_.find(handle);
    if (found == current->chunks_.end()) std::abort();  // a double release is our bug
    current->used_[found->second.device] -= static_cast<int64_t>(found->second.bytes);
    current->chunks_.erase(found);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI Export(void* fd, CUmemGenericAllocationHandle handle,
                                 CUmemAllocationHandleType, unsigned long long) {
    std::lock_guard<std::mutex> lock(current->mutex_);
    if (current->fail_exports_) return CUDA_ERROR_OPERATING_SYSTEM;
    if (current->chunks_.count(handle) == 0) std::abort();
    *static_cast<int*>(fd) = memfd_create("fake-chunk", MFD_CLOEXEC);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI ErrorText(CUresult, const char** text) {
    return *text = "fake failure", CUDA_SUCCESS;
  }
};

FakeDriver::FakeDriver(std::vector<uint64_t> device_bytes, uint64_t host_bytes)
    : device_count_(device_bytes.size()) {
  if (current != nullptr) std::abort();
  current = this;
  for (size_t i = 0; i < device_bytes.size(); ++i) {
    capacity_[static_cast<int>(i)] = static_cast<int64_t>(device_bytes[i]);
  }
  capacity_[kHost] = static_cast<int64_t>(host_bytes);
  table_.cuInit = FakeCalls::Init;
  table_.cuDriverGetVersion = FakeCalls::Version;
  table_.cuDeviceGet = FakeCalls::Get;
  table_.cuDeviceGetCount = FakeCalls::Count;
  table_.cuDeviceGetName = FakeCalls::Name;
  table_.cuDeviceGetUuid = FakeCalls::Uuid;
  table_.cuDeviceTotalMem = FakeCalls::Total;
  table_.cuDeviceGetAttribute = FakeCalls::Attribute;
  table_.cuMemGetAllocationGranularity = FakeCalls::Granularity;
  table_.cuMemCreate = FakeCalls::Create;
  table_.cuMemRelease = FakeCalls::Release;
  table_.cuMemExportToShareableHandle = FakeCalls::Export;
  table_.cuGetErrorName = FakeCalls::ErrorText;
  table_.cuGetErrorString = FakeCalls::ErrorText;
}

FakeDriver::~FakeDriver() { current = nullptr; }

int64_t FakeDriver::Alive(int device) {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t alive = 0;
  for (const auto& [handle, chunk] : chunks_) alive += chunk.device == device;
  return alive;
}

void FakeDriver::TakeForeign(int device, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  used_[device] += bytes;
}

void FakeDriver::FailCreate(uint64_t n, CUresult code) {
  std::lock_guard<std::mutex> lock(mutex_);
  fail_create_in_ = n;
  fail_create_code_ = code;
}

void FakeDriver::FailExports(bool fail) {
  std::lock_guard<std::mutex> lock(mutex_);
  fail_exports_ = fail;
}

}  // namespace tidemark::daemon
