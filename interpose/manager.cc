// Allocation, accounting, streams and contexts: implements the rest of interpose/manager.h but the
// gate (gate.cc), IPC (ipc.cc) and start (process_memory.cc). Finds the device, takes its lock,
// calls device_memory.h. Threads: any.

#include "interpose/manager.h"

#include "interpose/function_info.h"
#include "interpose/process_memory.h"

namespace tidemark::interpose {
namespace {

constexpr size_t kPitch = 512;

// In whose order memory of `memory` is allocated or freed; its lock is held.
core::StreamId IdOf(ProcessMemory* process, DeviceMemory* memory, CUstream stream) {
  CUcontext context;
  if (process->HomeOf(stream, &context) != memory) return core::kAnyStream;
  return memory->streams.IdOf(stream, context);
}

// `stream`: of stream-ordered memory; null for other memory, which work of any stream may use.
bool AllocateFor(const Guard& guard, CUdeviceptr* address, size_t bytes, CUresult* result,
                 const CUstream* stream = nullptr) {
  ProcessMemory* process = GetProcessMemory();
  CUcontext context;
  if (process == nullptr || !guard.entered() || address == nullptr || bytes == 0) return false;
  DeviceMemory* memory = process->Current(&context);
  if (memory == nullptr) return false;
  {
    MutexLock lock(&memory->mutex);
    const bool pooled = stream != nullptr;
    if (memory->broken() || (pooled && memory->uses_own_pool)) return false;
    const core::StreamId id = pooled ? IdOf(process, memory, *stream) : core::kAnyStream;
    *result = memory->Allocate(bytes, context, address, pooled, id);
    // A capture forbids waiting for freed ranges and making room. Only the driver can say whether
    // the capture's mode allows this allocation; what it gives is counted as passed through.
    if (*result == CUDA_ERROR_OUT_OF_MEMORY && memory->streams.capturing()) return false;
  }
  process->PublishSometimes();
  return true;
}

// The fence of a free covers all streams with work in flight. Stream-ordered memory was last used
// before its free in the order of `stream`, so what comes after it there needs no fence.
bool FreeFor(const Guard& guard, CUdeviceptr address, CUresult* result,
             const CUstream* stream = nullptr) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return false;
  DeviceMemory* memory = process->Owner(address);
  if (memory == nullptr) return false;
  {
    MutexLock lock(&memory->mutex);
    const core::StreamId id = stream != nullptr ? IdOf(process, memory, *stream) : core::kAnyStream;
    *result = memory->Free(address, id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  process->PublishSometimes();
  return true;
}

bool StreamIsCapturing(ProcessMemory* process, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return process->driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Runs `action(memory, context)` with the lock of the current context's device.
template <typename Action>
void OnCurrentDevice(const Guard& guard, Action action) {
  ProcessMemory* process = GetProcessMemory();
  CUcontext context;
  if (process == nullptr || !guard.entered()) return;
  DeviceMemory* memory = process->Current(&context);
  if (memory == nullptr) return;
  MutexLock lock(&memory->mutex);
  memory->NoteContext(context);
  action(memory, context);
}

DeviceMemory* Numbered(CUdevice device) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || device < 0 || device >= process->device_count) return nullptr;
  return process->devices[device];
}

}  // namespace

bool ManagerAlloc(const Guard& guard, CUdeviceptr* address, size_t bytes, CUresult* result) {
  return AllocateFor(guard, address, bytes, result);
}

bool ManagerAllocPitch(const Guard& guard, CUdeviceptr* address, size_t* pitch, size_t width_bytes,
                       size_t height, unsigned element_bytes, CUresult* result) {
  if (pitch == nullptr || width_bytes == 0 || height == 0) return false;
  if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return false;
  const size_t row = (width_bytes + kPitch - 1) / kPitch * kPitch;
  size_t bytes = 0;
  if (row < width_bytes || __builtin_mul_overflow(row, height, &bytes)) return false;
  if (!AllocateFor(guard, address, bytes, result)) return false;
  if (*result == CUDA_SUCCESS) *pitch = row;
  return true;
}

bool ManagerAllocAsync(const Guard& guard, CUdeviceptr* address, size_t bytes, CUstream stream,
                       CUresult* result) {
  ProcessMemory* process = GetProcessMemory();
  // Inside a capture the allocation becomes a node of the graph: the driver's own business.
  if (process == nullptr || !guard.entered() || StreamIsCapturing(process, stream)) return false;
  return AllocateFor(guard, address, bytes, result, &stream);
}

bool ManagerFree(const Guard& guard, CUdeviceptr address, CUresult* result) {
  return FreeFor(guard, address, result);
}

bool ManagerFreeAsync(const Guard& guard, CUdeviceptr address, CUstream stream, CUresult* result) {
  return FreeFor(guard, address, result, &stream);
}

bool ManagerMemGetInfo(const Guard& guard, size_t* free_bytes, size_t* total_bytes,
                       CUresult* result) {
  ProcessMemory* process = GetProcessMemory();
  CUcontext context;
  if (process == nullptr || !guard.entered()) return false;
  DeviceMemory* memory = process->Current(&context);
  if (memory == nullptr) return false;
  size_t free_now = 0, total = 0;
  {
    MutexLock lock(&memory->mutex);
    memory->MemInfo(&free_now, &total);
  }
  if (free_bytes != nullptr) *free_bytes = free_now;
  if (total_bytes != nullptr) *total_bytes = total;
  *result = CUDA_SUCCESS;
  return true;
}

bool ManagerDescribe(const Guard& guard, CUdeviceptr address, BufferFacts* facts) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return false;
  DeviceMemory* memory = process->Owner(address);
  if (memory == nullptr) return false;
  MutexLock lock(&memory->mutex);
  const core::Block* block = memory->Find(address);
  if (block == nullptr) return false;
  facts->base = memory->AddressOf(block);
  facts->bytes = block->requested;
  facts->id = block->tag;
  facts->context = DeviceMemory::ContextOf(block);
  facts->device = memory->device();
  return true;
}

void ManagerCountPassedThrough(const Guard& guard, CUdevice device, uint64_t bytes, int sign) {
  DeviceMemory* memory = Numbered(device);
  if (memory == nullptr || !guard.entered()) return;
  MutexLock lock(&memory->mutex);
  memory->CountPassedThrough(bytes, sign);
}

void ManagerCountHost(const Guard& guard, CUdevice device, uint64_t bytes, int sign) {
  DeviceMemory* memory = Numbered(device);
  if (memory == nullptr || !guard.entered()) return;
  MutexLock lock(&memory->mutex);
  memory->CountHost(bytes, sign);
}

void ManagerGraphAllocates(const Guard& guard) {
  OnCurrentDevice(guard, [](DeviceMemory* memory, CUcontext) { memory->graphs_allocate = true; });
}

bool ManagerMakeRoom(const Guard& guard, CUdevice device, uint64_t bytes) {
  DeviceMemory* memory = Numbered(device);
  if (memory == nullptr || !guard.entered()) return true;
  MutexLock lock(&memory->mutex);
  return memory->broken() || memory->MakeRoom(bytes);
}

bool ManagerGiveBack(const Guard& guard, CUdevice device, uint64_t bytes) {
  DeviceMemory* memory = Numbered(device);
  if (memory == nullptr || !guard.entered()) return false;
  MutexLock lock(&memory->mutex);
  return !memory->broken() && memory->GiveBack(bytes);
}

bool ManagerHasLimit(const Guard&, CUdevice device) {
  DeviceMemory* memory = Numbered(device);
  if (memory == nullptr) return false;
  MutexLock lock(&memory->mutex);
  return memory->HasLimit();
}

void ManagerUsesOwnPool(const Guard&, CUdevice device, bool own) {
  DeviceMemory* memory = Numbered(device);
  if (memory == nullptr) return;
  MutexLock lock(&memory->mutex);
  memory->uses_own_pool = own;
}

void ManagerContextIsBroken(const Guard& guard) {
  OnCurrentDevice(guard, [](DeviceMemory* memory, CUcontext) { memory->BreakContext(); });
}

void ManagerNotePointerTable(const Guard& guard, CUdeviceptr destination, const void* source,
                             size_t bytes) {
  constexpr size_t kLargest = size_t{64} << 10;
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered() || bytes > kLargest || source == nullptr) return;
  DeviceMemory* memory = process->Owner(destination);
  if (memory == nullptr) return;
  CUdeviceptr targets[PointerTables::kTargets];
  int count = 0;
  const char* at = static_cast<const char*>(source);
  for (size_t i = 0; i + sizeof(CUdeviceptr) <= bytes && count < PointerTables::kTargets;
       i += sizeof(CUdeviceptr)) {
    CUdeviceptr value;
    __builtin_memcpy(&value, at + i, sizeof(value));
    if (memory->Contains(value)) targets[count++] = value;
  }
  if (count == 0 && memory->tables.empty()) return;
  MutexLock lock(&memory->mutex);
  const core::Block* block = memory->Find(destination);
  if (block != nullptr) memory->tables.Set(memory->AddressOf(block), targets, count);
}

void ManagerStreamCreated(const Guard& guard, CUstream stream) {
  OnCurrentDevice(guard, [stream](DeviceMemory* memory, CUcontext context) {
    memory->streams.Created(stream, context);
  });
}

void ManagerStreamDestroying(const Guard& guard, CUstream stream) {
  OnCurrentDevice(guard, [stream](DeviceMemory* memory, CUcontext context) {
    memory->streams.Destroying(stream, context);
  });
}

void ManagerCaptureBegan(const Guard& guard, CUstream stream) {
  OnCurrentDevice(guard, [stream](DeviceMemory* memory, CUcontext context) {
    memory->streams.CaptureBegan(stream, context);
  });
}

void ManagerCaptureEnded(const Guard& guard, CUstream stream, CUgraph) {
  OnCurrentDevice(guard, [stream](DeviceMemory* memory, CUcontext context) {
    memory->streams.CaptureEnded(stream, context);
  });
}

void ManagerContextDestroying(const Guard& guard, CUcontext context) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return;
  process->EachDevice([context](DeviceMemory* memory) { memory->DropContext(context); });
  ForgetFunctions();
}

void ManagerPeerAccess(const Guard& guard, CUcontext peer, bool enabled) {
  ProcessMemory* process = GetProcessMemory();
  CUcontext context;
  if (process == nullptr || !guard.entered()) return;
  DeviceMemory* here = process->Current(&context);
  CUdevice device = -1;
  CUcontext popped;
  if (process->driver->cuCtxPushCurrent(peer) != CUDA_SUCCESS) return;
  process->driver->cuCtxGetDevice(&device);
  process->driver->cuCtxPopCurrent(&popped);
  DeviceMemory* there = Numbered(device);
  if (here == nullptr || there == nullptr || here == there) return;
  MutexLock lock(&there->mutex);
  there->SetPeer(here, enabled);
}

void ManagerFunctionsChanged(const Guard&) { ForgetFunctions(); }

void ManagerPin(const Guard& guard, CUdeviceptr address, size_t bytes, PinReason reason) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return;
  DeviceMemory* memory = process->Owner(address);
  if (memory == nullptr) return;
  MutexLock lock(&memory->mutex);
  const CUdeviceptr end = address + (bytes == 0 ? 1 : bytes);
  for (CUdeviceptr at = address; at < end;) {
    core::Block* block = memory->Find(at);
    if (block == nullptr) return;
    memory->Pin(block, static_cast<core::PinReason>(reason));
    at = memory->AddressOf(block) + block->size;
  }
}

}  // namespace tidemark::interpose
