// IPC of arena memory for interpose/manager.h. The driver's own handles know nothing of mapped
// chunks, so a Tidemark handle carries a token; the daemon gives whoever shows it the chunks'
// descriptors. Without a daemon there is nobody to give them: CUDA_ERROR_NOT_SUPPORTED. Threads:
// any.

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "interpose/chunk_supply.h"
#include "interpose/log.h"
#include "interpose/manager.h"
#include "interpose/process_memory.h"

namespace tidemark::interpose {
namespace {

using core::ChunkIndex;
using core::kChunkBytes;

constexpr char kMagic[8] = {'T', 'M', 'R', 'K', 'I', 'P', 'C', '1'};

struct Handle {
  char magic[8];
  uint8_t token[32];
  uint64_t offset;
  uint64_t bytes;
  uint32_t device;
  uint32_t unused;
};
static_assert(sizeof(Handle) <= sizeof(CUipcMemHandle), "fits into the driver's handle");

// One opened handle.
struct Opened {
  Opened* next;
  CUdeviceptr base;     // of the reservation
  CUdeviceptr address;  // what the job got
  uint64_t chunks;      // mapped, from the base on
  uint64_t reserved;
};
constinit Mutex opened_mutex;
constinit Opened* opened_list = nullptr;

bool RandomToken(uint8_t token[32]) {
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, token, 32);
  close(fd);
  return got == 32;
}

// The same buffer gets the same handle each time, so that importers may cache, and no two buffers
// ever the same: its number, and 24 random bytes that only this process knows.
bool TokenOf(const core::Block* block, uint8_t token[32]) {
  static uint8_t own[32];
  static bool have = RandomToken(own);
  if (!have) return false;
  memcpy(token, own, sizeof(own));
  memcpy(token, &block->tag, sizeof(block->tag));
  return true;
}

CUresult Publish(ProcessMemory* process, DeviceMemory* memory, core::Block* block,
                 const Handle& handle) {
  const ChunkIndex first = core::ChunkOf(block->offset);
  const ChunkIndex total = core::LastChunkOf(block->offset, block->size) - first + 1;
  for (ChunkIndex at = 0; at < total;) {
    tm_wire_share share = {};
    const int index = process->session.DeviceIndex(static_cast<uint32_t>(memory->device()));
    if (index < 0) return CUDA_ERROR_NOT_SUPPORTED;
    share.device = static_cast<uint32_t>(index);
    share.first = at;
    share.total = total;
    share.count =
        total - at < TM_WIRE_MAX_FDS ? total - at : static_cast<uint32_t>(TM_WIRE_MAX_FDS);
    memcpy(share.token, handle.token, sizeof(share.token));
    share.offset_bytes = handle.offset;
    share.size_bytes = handle.bytes;
    for (uint32_t i = 0; i < share.count; ++i) {
      share.chunk_id[i] = memory->backing(first + at + i).id;
    }
    if (process->session.Share(share) != Answer::kOk) return CUDA_ERROR_NOT_SUPPORTED;
    at += share.count;
  }
  return CUDA_SUCCESS;
}

bool MapShared(ProcessMemory* process, CUdevice device, Opened* opened, uint64_t total,
               const uint8_t token[32]) {
  const kernels::Driver& driver = *process->driver;
  while (opened->chunks < total) {
    int fds[TM_WIRE_MAX_FDS];
    uint32_t got = 0;
    const auto first = static_cast<uint32_t>(opened->chunks);
    if (process->session.OpenShare(token, first, fds, &got) != Answer::kOk || got == 0)
      return false;
    bool good = true;
    for (uint32_t i = 0; i < got; ++i) {
      CUmemGenericAllocationHandle chunk = 0;
      const CUdeviceptr at = opened->base + opened->chunks * kChunkBytes;
      good = good && opened->chunks < total &&
             driver.cuMemImportFromShareableHandle(
                 &chunk, reinterpret_cast<void*>(static_cast<uintptr_t>(fds[i])),
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS;
      close(fds[i]);
      if (!good) continue;
      good = driver.cuMemMap(at, kChunkBytes, 0, chunk, 0) == CUDA_SUCCESS;
      driver.cuMemRelease(chunk);  // the mapping keeps it
      if (good) ++opened->chunks;
      good = good && AllowAccess(driver, device, at);
    }
    if (!good) return false;
  }
  return true;
}

void Unmap(const kernels::Driver& driver, Opened* opened) {
  for (uint64_t i = 0; i < opened->chunks; ++i) {
    driver.cuMemUnmap(opened->base + i * kChunkBytes, kChunkBytes);
  }
  driver.cuMemAddressFree(opened->base, opened->reserved);
  delete opened;
}

}  // namespace

bool ManagerIpcCapable() {
  ProcessMemory* process = GetProcessMemory();
  return process != nullptr && process->session.attached();
}

bool ManagerIpcGetHandle(const Guard& guard, CUipcMemHandle* handle, CUdeviceptr address,
                         CUresult* result) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered() || handle == nullptr) return false;
  DeviceMemory* memory = process->Owner(address);
  if (memory == nullptr) return false;
  MutexLock lock(&memory->mutex);
  core::Block* block = memory->Find(address);
  if (block == nullptr) {
    *result = CUDA_ERROR_INVALID_VALUE;
    return true;
  }
  *result = CUDA_ERROR_NOT_SUPPORTED;
  static constinit std::atomic<bool> told{false};
  Handle ours = {};
  if (!process->session.Ready()) {
    if (!told.exchange(true)) {
      Warn(
          "sharing device memory with another process (CUDA IPC) needs the daemon; none is "
          "attached");
    }
    return true;
  }
  if (memory->OnHost(block)) {
    memory->MakeResident(&block, 1, memory->NextLaunch());
    memory->EndLaunch();
  }
  memcpy(ours.magic, kMagic, sizeof(kMagic));
  ours.offset = block->offset % kChunkBytes;
  ours.bytes = block->requested;
  ours.device = static_cast<uint32_t>(memory->device());
  if (!TokenOf(block, ours.token)) return true;
  *result = Publish(process, memory, block, ours);
  if (*result != CUDA_SUCCESS) return true;
  memory->Pin(block, core::PinReason::kIpc);
  memset(handle, 0, sizeof(*handle));
  memcpy(handle, &ours, sizeof(ours));
  return true;
}

bool ManagerIpcOpenHandle(const Guard& guard, CUdeviceptr* address, CUipcMemHandle handle,
                          CUresult* result) {
  Handle theirs;
  memcpy(&theirs, &handle, sizeof(theirs));
  ProcessMemory* process = GetProcessMemory();
  if (memcmp(theirs.magic, kMagic, sizeof(kMagic)) != 0) return false;
  *result = CUDA_ERROR_NOT_SUPPORTED;
  CUcontext context;
  if (process == nullptr || !guard.entered()) return true;
  DeviceMemory* memory = process->Current(&context);
  auto* opened = new (std::nothrow) Opened();
  if (memory == nullptr || opened == nullptr || theirs.offset >= kChunkBytes || theirs.bytes == 0 ||
      theirs.bytes > UINT64_C(1) << 46) {
    delete opened;
    *result = CUDA_ERROR_INVALID_VALUE;
    return true;
  }
  opened->reserved = core::RoundUp(theirs.offset + theirs.bytes, kChunkBytes);
  *result =
      process->driver->cuMemAddressReserve(&opened->base, opened->reserved, kChunkBytes, 0, 0);
  if (*result != CUDA_SUCCESS) {
    delete opened;
    return true;
  }
  if (!MapShared(process, memory->device(), opened, opened->reserved / kChunkBytes, theirs.token)) {
    Unmap(*process->driver, opened);
    *result = CUDA_ERROR_MAP_FAILED;
    return true;
  }
  opened->address = opened->base + theirs.offset;
  MutexLock lock(&opened_mutex);
  opened->next = opened_list;
  opened_list = opened;
  *address = opened->address;
  return true;
}

bool ManagerIpcClose(const Guard& guard, CUdeviceptr address, CUresult* result) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return false;
  Opened* found = nullptr;
  {
    MutexLock lock(&opened_mutex);
    for (Opened** at = &opened_list; *at != nullptr; at = &(*at)->next) {
      if ((*at)->address != address) continue;
      found = *at;
      *at = found->next;
      break;
    }
  }
  if (found == nullptr) return false;
  // The driver's own close waits for work that may still read the memory.
  process->driver->cuCtxSynchronize();
  Unmap(*process->driver, found);
  *result = CUDA_SUCCESS;
  return true;
}

}  // namespace tidemark::interpose
