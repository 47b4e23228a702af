// A memory side for the tests of the hooks: active once started, serves addresses from a range of
// its own, and appends what it was asked to the log that the fake driver writes too, so that a test
// reads one sequence. Requests over 1 GiB are out of memory.

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "interpose/log.h"
#include "interpose/manager.h"

namespace tidemark::interpose {
namespace {

constexpr CUdeviceptr kArena = 0x500000000000;
constexpr CUdeviceptr kArenaEnd = 0x600000000000;
constexpr size_t kMost = size_t{1} << 30;
std::atomic<bool> active{false};
std::atomic<CUdeviceptr> next_address{kArena};

__attribute__((format(printf, 2, 3))) void Record(const Guard& guard, const char* format, ...) {
  if (!guard.entered()) abort();
  const char* path = getenv("FAKE_DRIVER_LOG");
  char line[256];
  va_list list;
  va_start(list, format);
  size_t bytes = FormatList(line, sizeof(line) - 1, format, list);
  va_end(list);
  line[bytes++] = '\n';
  int fd = path != nullptr ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd >= 0 && write(fd, line, bytes) != static_cast<ssize_t>(bytes)) abort();
  if (fd >= 0) close(fd);
}

bool Serve(CUdeviceptr* address, size_t bytes, CUresult* result) {
  *result = bytes > kMost ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  if (*result == CUDA_SUCCESS) *address = next_address.fetch_add(bytes + 512);
  return true;
}

bool Ours(CUdeviceptr address) { return address >= kArena && address < kArenaEnd; }

}  // namespace

void ManagerStart(const Guard& guard, const kernels::Driver&) {
  Record(guard, "memory:start");
  active = true;
}
bool ManagerActive() { return active; }

bool ManagerAlloc(const Guard& guard, CUdeviceptr* address, size_t bytes, CUresult* result) {
  Record(guard, "memory:alloc %zu", bytes);
  return Serve(address, bytes, result);
}
bool ManagerAllocPitch(const Guard& guard, CUdeviceptr* address, size_t* pitch, size_t width_bytes,
                       size_t height, unsigned, CUresult* result) {
  Record(guard, "memory:pitch %zu %zu", width_bytes, height);
  *pitch = width_bytes;
  return Serve(address, width_bytes * height, result);
}
bool ManagerAllocAsync(const Guard& guard, CUdeviceptr* address, size_t bytes, CUstream stream,
                       CUresult* result) {
  Record(guard, "memory:alloc_async %zu %p", bytes, static_cast<void*>(stream));
  return Serve(address, bytes, result);
}
bool ManagerFree(const Guard& guard, CUdeviceptr address, CUresult* result) {
  if (!Ours(address)) return false;
  Record(guard, "memory:free");
  *result = CUDA_SUCCESS;
  return true;
}
bool ManagerFreeAsync(const Guard& guard, CUdeviceptr address, CUstream, CUresult* result) {
  return ManagerFree(guard, address, result);
}
bool ManagerMemGetInfo(const Guard&, size_t* free_bytes, size_t* total_bytes, CUresult* result) {
  *free_bytes = 1000;
  *total_bytes = 2000;
  *result = CUDA_SUCCESS;
  return true;
}
bool ManagerDescribe(const Guard&, CUdeviceptr address, BufferFacts* facts) {
  if (!Ours(address)) return false;
  *facts = {address & ~CUdeviceptr{0xfff}, 0x1000, 77, nullptr, 0};
  return true;
}
void ManagerCountPassedThrough(const Guard& guard, CUdevice device, uint64_t bytes, int sign) {
  Record(guard, "memory:count %d %lu %d", device, bytes, sign);
}
void ManagerCountHost(const Guard& guard, CUdevice device, uint64_t bytes, int sign) {
  Record(guard, "memory:host %d %lu %d", device, bytes, sign);
}
void ManagerGraphAllocates(const Guard& guard) { Record(guard, "memory:graph_allocates"); }
bool ManagerMakeRoom(const Guard& guard, CUdevice device, uint64_t bytes) {
  Record(guard, "memory:room %d %lu", device, bytes);
  return bytes <= kMost;
}
bool ManagerGiveBack(const Guard& guard, CUdevice device, uint64_t bytes) {
  Record(guard, "memory:give_back %d %lu", device, bytes);
  return false;
}
bool ManagerHasLimit(const Guard&, CUdevice) { return true; }
void ManagerUsesOwnPool(const Guard& guard, CUdevice device, bool own) {
  Record(guard, "memory:own_pool %d %d", device, own ? 1 : 0);
}
void ManagerContextIsBroken(const Guard& guard) { Record(guard, "memory:broken_context"); }

bool ManagerIpcGetHandle(const Guard&, CUipcMemHandle*, CUdeviceptr, CUresult*) { return false; }
bool ManagerIpcOpenHandle(const Guard&, CUdeviceptr*, CUipcMemHandle, CUresult*) { return false; }
bool ManagerIpcClose(const Guard&, CUdeviceptr, CUresult*) { return false; }
bool ManagerIpcCapable() { return true; }

GatePass::GatePass(const Guard& guard, CUstream stream, const GateSpan* spans, size_t count) {
  Record(guard, "gate:spans %p %zu", static_cast<void*>(stream), count);
  for (size_t i = 0; i < count; ++i) {
    Record(guard, "gate:%s %lx %zu", spans[i].write ? "writes" : "reads",
           static_cast<unsigned long>(spans[i].base), spans[i].bytes);
  }
}
GatePass::GatePass(const Guard& guard, CUstream stream, CUfunction function, void**, void**) {
  Record(guard, "gate:kernel %p %p", static_cast<void*>(stream), static_cast<void*>(function));
}
GatePass::GatePass(const Guard& guard, CUstream stream, CUgraphExec graph) {
  Record(guard, "gate:graph %p %p", static_cast<void*>(stream), static_cast<void*>(graph));
}
GatePass::~GatePass() {
  devices_ = 0;
  graph_ = false;
  process_ = stream_ = nullptr;
}

void ManagerNotePointerTable(const Guard& guard, CUdeviceptr, const void*, size_t bytes) {
  Record(guard, "memory:table %zu", bytes);
}
void ManagerStreamCreated(const Guard& guard, CUstream) { Record(guard, "memory:stream"); }
void ManagerStreamDestroying(const Guard& guard, CUstream) { Record(guard, "memory:stream_end"); }
void ManagerCaptureBegan(const Guard& guard, CUstream) { Record(guard, "memory:capture"); }
void ManagerCaptureEnded(const Guard& guard, CUstream, CUgraph) {
  Record(guard, "memory:capture_end");
}
void ManagerContextDestroying(const Guard& guard, CUcontext) {
  Record(guard, "memory:context_end");
}
void ManagerPeerAccess(const Guard& guard, CUcontext, bool enabled) {
  Record(guard, "memory:peer %d", enabled ? 1 : 0);
}
void ManagerFunctionsChanged(const Guard& guard) { Record(guard, "memory:functions_changed"); }
void ManagerPin(const Guard& guard, CUdeviceptr address, size_t bytes, PinReason reason) {
  Record(guard, "memory:pin %lx %zu %d", static_cast<unsigned long>(address), bytes,
         static_cast<int>(reason));
}

}  // namespace tidemark::interpose
