#include "daemon/device_usage.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tidemark::daemon {
namespace {

// nvmlMemory_t of NVML's public interface, unchanged since its first version.
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
constexpr int kNvmlSuccess = 0;
constexpr char kLibrary[] = "libnvidia-ml.so.1";

}  // namespace

struct DeviceUsage::Calls {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handle_by_uuid)(const char* uuid, void** device) = nullptr;
  int (*memory_info)(void* device, NvmlMemory* memory) = nullptr;

  template <typename Function>
  bool Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
  }
  ~Calls() {
    if (library != nullptr) dlclose(library);
  }
};

absl::StatusOr<std::unique_ptr<DeviceUsage>> DeviceUsage::Open(
    const std::string& library, const std::vector<ManagedDevice>& devices) {
  const std::string name = library.empty() ? kLibrary : library;
  auto calls = std::make_unique<Calls>();
  calls->library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (calls->library == nullptr) {
    return absl::NotFoundError(absl::StrCat(name, " cannot be opened: ", dlerror()));
  }
  if (!calls->Find("nvmlInit_v2", &calls->init) || !calls->Find("nvmlShutdown", &calls->shutdown) ||
      !calls->Find("nvmlDeviceGetHandleByUUID", &calls->handle_by_uuid) ||
      !calls->Find("nvmlDeviceGetMemoryInfo", &calls->memory_info)) {
    return absl::NotFoundError(absl::StrCat(name, " lacks a function: ", dlerror()));
  }
  if (const int result = calls->init(); result != kNvmlSuccess) {
    return absl::NotFoundError(absl::StrCat(name, ": nvmlInit_v2 answers ", result));
  }
  std::vector<void*> handles;
  for (const ManagedDevice& device : devices) {
    void* handle = nullptr;
    if (calls->handle_by_uuid(UuidText(device.uuid).c_str(), &handle) != kNvmlSuccess) {
      handle = nullptr;
    }
    handles.push_back(handle);
  }
  if (std::all_of(handles.begin(), handles.end(), [](void* handle) { return handle == nullptr; })) {
    calls->shutdown();
    return absl::NotFoundError(absl::StrCat(name, " knows none of the devices"));
  }
  return std::unique_ptr<DeviceUsage>(new DeviceUsage(std::move(calls), std::move(handles)));
}

DeviceUsage::DeviceUsage(std::unique_ptr<Calls> calls, std::vector<void*> handles)
    : calls_(std::move(calls)), handles_(std::move(handles)) {}

DeviceUsage::~DeviceUsage() { calls_->shutdown(); }

std::optional<uint64_t> DeviceUsage::UsedBytes(uint32_t device) const {
  NvmlMemory memory = {};
  if (device >= handles_.size() || handles_[device] == nullptr ||
      calls_->memory_info(handles_[device], &memory) != kNvmlSuccess) {
    return std::nullopt;
  }
  return memory.used;
}

}  // namespace tidemark::daemon
