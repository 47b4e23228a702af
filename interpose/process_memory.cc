// Start, fork and the counters page: implements interpose/process_memory.h and the first part of
// interpose/manager.h. Threads: as those say.

#include "interpose/process_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "interpose/host_memory.h"
#include "interpose/log.h"
#include "interpose/manager.h"
#include "interpose/options.h"
#include "proto/address.h"

namespace tidemark::interpose {

constinit std::atomic<ProcessMemory*> process_memory{nullptr};

namespace {

constexpr int64_t kPublishNs = 20000000;
constexpr uint32_t kGatesPerLook = 256;

// The child has the parent's mappings of nothing and the driver refuses it: it goes on without us,
// and the daemon must notice the parent's death even while the child lives.
void AfterForkInChild() {
  ProcessMemory* process = process_memory.exchange(nullptr);
  if (process != nullptr) process->session.Abandon();
}

void AtExit() {
  ProcessMemory* process = GetProcessMemory();
  if (process != nullptr) process->PublishAtExit();
}

void NameJob(const char* wanted, char* name) {
  char command[TM_WIRE_NAME_BYTES] = {};
  if (wanted[0] == 0) {
    const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? 0 : read(fd, command, sizeof(command) - 1);
    if (fd >= 0) close(fd);
    if (got > 0) command[strcspn(command, "\n")] = 0;
    wanted = command[0] != 0 ? command : "job";
  }
  Format(name, TM_WIRE_NAME_BYTES, "%s", wanted);
  for (char* c = name; *c != 0; ++c) {
    if (*c < 32 || *c > 126) *c = '?';
  }
}

JobDescription Describe(const kernels::Driver& driver, const Options& options, int count) {
  JobDescription job;
  job.device_count = static_cast<uint32_t>(count);
  size_t smallest = 0;
  for (int i = 0; i < count; ++i) {
    CUuuid uuid;
    size_t total = 0;
    if (driver.cuDeviceGetUuid(&uuid, i) == CUDA_SUCCESS)
      memcpy(job.device_uuid[i], uuid.bytes, 16);
    if (driver.cuDeviceTotalMem(&total, i) == CUDA_SUCCESS && (smallest == 0 || total < smallest)) {
      smallest = total;
    }
  }
  if (options.budget.given) job.device_budget_bytes = options.budget.Of(smallest);
  if (options.host_budget.given)
    job.host_budget_bytes = options.host_budget.Of(SpareHostBytes() * 2);
  NameJob(options.job_name, job.job_name);
  return job;
}

void AttachTo(const char* socket, const JobDescription& job, Session* session) {
  if (strcmp(socket, "auto") != 0) {
    session->Attach(socket, job);
    return;
  }
  const proto::SocketFolders folders(geteuid(), getenv("XDG_RUNTIME_DIR"));
  for (int i = 0; i < folders.size(); ++i) {
    char path[proto::kFolderBytes + sizeof(proto::kJobSocket)];
    Format(path, sizeof(path), "%s%s", folders[i], proto::kJobSocket);
    if (session->Attach(path, job)) return;
  }
}

bool StartDevice(ProcessMemory* process, const Options& options, int device) {
  auto* memory = new (std::nothrow) DeviceMemory;
  if (memory == nullptr || !memory->Init(process->driver, device, &process->session)) {
    delete memory;
    return false;
  }
  const uint64_t spare = SpareHostBytes();
  memory->SetBudgets(options.budget.Of(memory->total_bytes()),
                     options.host_budget.given ? options.host_budget.Of(2 * spare) : spare);
  if (options.planner) memory->EnablePlanner();
  process->devices[device] = memory;
  return true;
}

}  // namespace

void ManagerStart(const Guard&, const kernels::Driver& driver) {
  if (GetProcessMemory() != nullptr) return;
  const Options& options = GetOptions();
  int count = 0;
  if (options.disable || driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) return;
  if (count > DeviceMemory::kDevices) count = DeviceMemory::kDevices;
  auto* process = new (std::nothrow) ProcessMemory;
  if (process == nullptr) return;
  process->driver = &driver;
  process->device_count = count;
  AttachTo(options.socket, Describe(driver, options, count), &process->session);
  int started = 0;
  for (int i = 0; i < count; ++i) started += StartDevice(process, options, i) ? 1 : 0;
  if (started == 0) {
    Warn("no device with virtual memory management; memory is not managed");
    process->session.Abandon();
    delete process;
    return;
  }
  ProcessMemory* expected = nullptr;
  if (!process_memory.compare_exchange_strong(expected, process)) {
    process->session.Abandon();
    return;  // another thread's cuInit was first; what this one reserved is only address space
  }
  static constinit std::atomic<bool> registered{false};
  if (registered.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  atexit(AtExit);
}

bool ManagerActive() { return GetProcessMemory() != nullptr; }

DeviceMemory* ProcessMemory::Current(CUcontext* context) {
  CUdevice device = 0;
  if (driver->cuCtxGetCurrent(context) != CUDA_SUCCESS || *context == nullptr) return nullptr;
  if (device_count > 1 && driver->cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  return device >= 0 && device < device_count ? devices[device] : nullptr;
}

DeviceMemory* ProcessMemory::HomeOf(CUstream stream, CUcontext* context) {
  DeviceMemory* home = Current(context);
  const bool plain =
      stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  if (device_count == 1 || !plain || driver->cuStreamGetDevice == nullptr) return home;
  CUdevice device = -1;
  if (driver->cuStreamGetDevice(stream, &device) != CUDA_SUCCESS) return home;
  return device >= 0 && device < device_count ? devices[device] : home;
}

void ProcessMemory::PublishSometimes() {
  // Not one atomic step: two threads that count as one only delay the next look.
  const uint32_t passed = gates.load(std::memory_order_relaxed);
  gates.store(passed + 1, std::memory_order_relaxed);
  if (passed % kGatesPerLook != 0) return;
  if (!session.wanted()) return;
  const int64_t now = NowNs();
  int64_t due = publish_at.load(std::memory_order_relaxed);
  if (now < due || !publish_at.compare_exchange_strong(due, now + kPublishNs)) return;
  session.Check();
  Publish();
}

namespace {

constinit std::atomic<bool> writing{false};  // the page has one writer at a time

// `devices` has a bit for each device whose figures are new.
void WriteCounters(ProcessMemory* process, const tm_wire_counters_device* figures,
                   uint32_t devices) {
  const Session& session = process->session;
  tm_wire_counters_page* page = session.counters();
  const uint64_t sequence = __atomic_load_n(&page->sequence, __ATOMIC_RELAXED);
  __atomic_store_n(&page->sequence, sequence | 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  page->magic = TM_WIRE_MAGIC;
  page->version = TM_WIRE_PAGE_VERSION;
  page->daemon_round_trips_total = session.round_trips();
  page->reconnects_total = session.reconnects();
  page->heartbeat_ns = static_cast<uint64_t>(NowNs());
  for (uint32_t left = devices; left != 0; left &= left - 1) {
    const int i = __builtin_ctz(left);
    const int index = session.DeviceIndex(static_cast<uint32_t>(i));
    if (index >= 0 && index < TM_WIRE_MAX_DEVICES) page->device[index] = figures[i];
  }
  __atomic_store_n(&page->sequence, (sequence | 1) + 1, __ATOMIC_RELEASE);
}

}  // namespace

void ProcessMemory::Publish() {
  if (session.counters() == nullptr || writing.exchange(true, std::memory_order_acquire)) return;
  tm_wire_counters_device figures[DeviceMemory::kDevices];
  uint32_t filled = 0;
  for (int i = 0; i < device_count; ++i) {
    if (devices[i] == nullptr) continue;
    MutexLock lock(&devices[i]->mutex);
    devices[i]->FillCounters(&figures[i]);
    filled |= 1u << i;
  }
  WriteCounters(this, figures, filled);
  writing.store(false, std::memory_order_release);
}

void ProcessMemory::PublishAtExit() {
  if (session.counters() == nullptr || writing.exchange(true, std::memory_order_acquire)) return;
  tm_wire_counters_device figures[DeviceMemory::kDevices];
  uint32_t filled = 0;
  for (int i = 0; i < device_count; ++i) {
    if (devices[i] == nullptr || !devices[i]->mutex.TryLock()) continue;
    devices[i]->FillCounters(&figures[i]);
    devices[i]->mutex.Unlock();
    filled |= 1u << i;
  }
  WriteCounters(this, figures, filled);
  writing.store(false, std::memory_order_release);
}

}  // namespace tidemark::interpose
