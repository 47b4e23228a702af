// Allocation side of interpose/device_memory.h: placing, growing, freeing, figures. Threads: as the
// header says.

#include "interpose/device_memory.h"

#include <stdlib.h>

#include <new>

#include "interpose/context_scope.h"
#include "interpose/log.h"

namespace tidemark::interpose {
namespace {

using core::Block;
using core::Bytes;
using core::ChunkIndex;
using core::ChunkState;
using core::kChunkBytes;

// Addresses cost nothing; this many times the device's memory leaves room for what lies in host
// memory.
constexpr Bytes kArenaTimesDevice = 4;
constexpr Bytes kArenaSmallest = Bytes{16} << 30;
constexpr int64_t kDecayNs = 1000000000;
constexpr uint64_t kIntervalsPerPeak = 10;  // mapped chunks: steps may last seconds
constexpr uint64_t kFreesPerLook = 256;
constexpr uint64_t kReserveFloor = 64;  // chunks: one lease
// Ids of buffers: apart from the driver's own, which count from one, and from other devices'.
constexpr uint64_t kFirstId = uint64_t{1} << 62;
constexpr int kDeviceIdBits = 48;

}  // namespace

bool DeviceMemory::Init(const kernels::Driver* driver, CUdevice device, Session* session) {
  driver_ = driver;
  device_ = device;
  session_ = session;
  size_t total = 0;
  int vmm = 0;
  if (driver->cuDeviceTotalMem(&total, device) != CUDA_SUCCESS) return false;
  if (driver->cuDeviceGetAttribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                   device) != CUDA_SUCCESS ||
      vmm == 0) {
    return false;
  }
  total_bytes_ = total;
  supply_.Init(driver, device, session);
  const CUmemAllocationProp prop = supply_.Properties(Place::kDevice);
  size_t granularity = 0;
  if (driver->cuMemGetAllocationGranularity(&granularity, &prop,
                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
      granularity == 0 || kChunkBytes % granularity != 0) {
    return false;
  }
  bytes_ = core::RoundUp(total * kArenaTimesDevice, kChunkBytes);
  if (bytes_ < kArenaSmallest) bytes_ = kArenaSmallest;
  const auto chunks = static_cast<ChunkIndex>(bytes_ / kChunkBytes);
  backing_ = static_cast<Chunk*>(calloc(chunks, sizeof(Chunk)));
  hashes_ = static_cast<ChunkHash*>(calloc(chunks, sizeof(ChunkHash)));
  if (backing_ == nullptr || hashes_ == nullptr || !arena_.Init(chunks, Seam())) return false;
  iteration_.Init();  // without it the least recently used leave
  streams.Init(driver);
  mover_.Init(driver, device);
  early_.Init(driver, &mover_);
  if (driver->cuMemAddressReserve(&base_, bytes_, kChunkBytes, 0, 0) != CUDA_SUCCESS) {
    bytes_ = 0;
    return false;
  }
  return true;
}

void DeviceMemory::SetBudgets(Bytes device_bytes, Bytes host_bytes) {
  supply_.SetBudget(Place::kDevice, device_bytes);
  supply_.SetBudget(Place::kHost, host_bytes);
}

CUresult DeviceMemory::Allocate(Bytes bytes, CUcontext context, CUdeviceptr* address, bool pooled,
                                core::StreamId stream) {
  NoteContext(context);
  FollowPolicy();
  streams.Poll();
  Block* block = PlaceBlock(bytes, stream);
  if (block == nullptr && !broken_ && !streams.capturing()) {
    block = WaitForOtherJobs(bytes, stream);
  }
  if (block == nullptr) {
    // During a capture the driver gets its turn, and says what the job hears.
    if (!streams.capturing()) ++counters_.ooms;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  block->last_use = launch_;
  block->kind = TM_WIRE_CLASS_UNKNOWN;
  block->tag = (kFirstId | static_cast<uint64_t>(device_) << kDeviceIdBits) + ++next_id_;
  block->birth = iteration_.Birth();
  demand_.Note(sums_.allocated());
  looked_ahead_ = 0;
  block->owner = pooled ? 0 : reinterpret_cast<uint64_t>(context);
  *address = base_ + block->offset;
  ++counters_.allocations;
  return CUDA_SUCCESS;
}

bool DeviceMemory::Free(CUdeviceptr address, core::StreamId stream) {
  Block* block = arena_.Find(address - base_);
  if (block == nullptr || AddressOf(block) != address) return false;
  const Bytes active = OnDevice(sums_.allocated());
  const Bytes requested = sums_.requested();
  if (active > counters_.peak_active) counters_.peak_active = active;
  if (requested > counters_.peak_requested) counters_.peak_requested = requested;
  tables.Drop(address);
  // Work of peers is not in our streams' events; the driver's own free would wait as well.
  for (int i = 0; i < peer_count_; ++i) peers_[i]->SynchronizeAll();
  iteration_.Died(NameOf(block));
  if (brought_count_ != 0) JudgeBrought(block);
  const bool pooled = ContextOf(block) == nullptr;  // of others no order is promised
  arena_.Free(block, pooled ? stream : core::kAnyStream, streams.open_epoch());
  ++counters_.frees;
  if (supply_.reserve(Place::kDevice) > kReserveFloor || counters_.frees % kFreesPerLook == 0) {
    Decay();
  }
  return true;
}

// Gives back, step by step, what the last while did without.
void DeviceMemory::Decay() {
  const int64_t now = NowNs();
  if (decay_at_ns_ == 0) decay_at_ns_ = now + kDecayNs;
  if (now < decay_at_ns_) return;
  decay_at_ns_ = now + kDecayNs;
  if (++decays_ % kIntervalsPerPeak == 0) {
    arena_.Passed(streams.passed());
    arena_.Decay();
  }
  const uint64_t reserve = supply_.reserve(Place::kDevice);
  if (reserve > kReserveFloor) {
    supply_.Trim(Place::kDevice, reserve - (reserve - kReserveFloor + 1) / 2);
  }
}

void DeviceMemory::NoteContext(CUcontext context) {
  for (int i = 0; i < context_count_; ++i) {
    if (contexts_[i] == context) return;
  }
  if (context_count_ < kContexts) contexts_[context_count_++] = context;
}

void DeviceMemory::DropContext(CUcontext context) {
  bool known = false;
  for (int i = 0; i < context_count_; ++i) {
    if (contexts_[i] != context) continue;
    contexts_[i] = contexts_[--context_count_];
    known = true;
    break;
  }
  if (!known) return;
  {
    ContextScope scope(*driver_, context);
    if (scope.ok()) driver_->cuCtxSynchronize();
  }
  streams.DropContext(context);
  mover_.Forget();
  early_.Forget();
  DropCopies(true);
  context_broken_ = false;
  DropBuffersOf(context);
  if (context_count_ == 0) DropEverything();
}

void DeviceMemory::DropBuffersOf(CUcontext context) {
  // Other contexts may still be at work on what freed memory is given to next.
  const bool idle = context == nullptr || context_count_ == 0;
  const core::FenceId fence = idle ? 0 : streams.open_epoch();
  for (Block* block = arena_.allocator().first(); block != nullptr;) {
    Block* next = block->next;
    if (block->state == Block::State::kLive &&
        (context == nullptr || ContextOf(block) == context)) {
      tables.Drop(AddressOf(block));
      arena_.Free(block, core::kAnyStream, fence);
      next = arena_.allocator().first();  // freeing may fold neighbours away
    }
    block = next;
  }
}

// No context is left, and the last one was synchronised: nothing is in flight.
void DeviceMemory::DropEverything() {
  DropBuffersOf(nullptr);
  brought_count_ = 0;
  streams.AllIdle();
  arena_.Passed(streams.passed());
  arena_.Release(table_.size());
  arena_.ReleaseHost();
}

void DeviceMemory::ReleaseForTesting() {
  SynchronizeAll();
  streams.AllIdle();
  DropCopies(true);
  DropEverything();
  supply_.Trim(Place::kDevice, 0);
  supply_.Trim(Place::kHost, 0);
  driver_->cuMemAddressFree(base_, bytes_);
  free(backing_);
  free(hashes_);
  backing_ = nullptr;
  hashes_ = nullptr;
}

void DeviceMemory::SetPeer(DeviceMemory* other, bool enabled) {
  int at = 0;
  while (at < peer_count_ && peers_[at] != other) ++at;
  if (enabled == (at < peer_count_)) return;
  if (!enabled) {
    peers_[at] = peers_[--peer_count_];
  } else if (peer_count_ < kDevices) {
    peers_[peer_count_++] = other;
    DropCopies(true);  // peers' work passes other gates
    for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
      if (table_.state(i) != ChunkState::kUnmapped) SetAccess(i, 1);
    }
  }
}

// Stops managing: what is allocated stays served, new requests go to the driver.
void DeviceMemory::Break(const char* what) {
  if (broken_) return;
  broken_ = true;
  Warn("device %d: %s; new allocations go to the driver from now on", device_, what);
}

}  // namespace tidemark::interpose
