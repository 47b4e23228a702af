// Allocation side of interpose/device_memory.h: placing, growing, freeing, figures. Threads: as the
// header says.

#include "interpose/device_memory.h"

#include <stdlib.h>
#include <time.h>

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
constexpr int64_t kPatienceNs = 2000000000;
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
  if (backing_ == nullptr || hashes_ == nullptr || !table_.Init(chunks) ||
      !allocator_.Init(&table_))
    return false;
  iteration_.Init();  // without it the least recently used leave
  streams.Init(driver);
  mover_.Init(driver, device);
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

CUresult DeviceMemory::Allocate(Bytes bytes, CUcontext context, CUdeviceptr* address, bool pooled) {
  NoteContext(context);
  FollowPolicy();
  streams.Poll();
  if (holes_on_host_) DropFreeHostChunks();
  Block* block = TryPlace(bytes, false);
  if (block == nullptr) block = Grow(bytes);
  if (block == nullptr) {
    // During a capture the driver gets its turn, and says what the job hears.
    if (!streams.capturing()) ++counters_.ooms;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  block->last_use = launch_;
  block->kind = TM_WIRE_CLASS_UNKNOWN;
  block->tag = (kFirstId | static_cast<uint64_t>(device_) << kDeviceIdBits) + ++next_id_;
  block->birth = iteration_.Birth();
  looked_ahead_ = 0;
  block->owner = pooled ? 0 : reinterpret_cast<uint64_t>(context);
  *address = base_ + block->offset;
  ++counters_.allocations;
  return CUDA_SUCCESS;
}

// A hole in mapped chunks that every stream may use from now on.
Block* DeviceMemory::TryPlace(Bytes bytes, bool anywhere) {
  Block* block = allocator_.Allocate({bytes, streams.passed(), core::kAnyStream, anywhere});
  if (block == nullptr || block->fence <= streams.passed()) return block;
  if (streams.Require(block->fence)) return block;
  allocator_.Free(block, block->fence);
  return nullptr;
}

// Own and leased chunks first, then, with the device idle, whatever eviction frees.
Block* DeviceMemory::Grow(Bytes bytes) {
  uint64_t missing = 0;
  core::Extension extension;
  if (session_->attached() && allocator_.PlanExtension(bytes, &extension)) {
    const uint64_t free = FreeChunks();  // they serve first: no address needs them
    if (extension.missing > free) Stock(Place::kDevice, extension.missing - free);
  }
  Block* block = MapExtension(bytes, &missing) ? TryPlace(bytes, false) : nullptr;
  if (block != nullptr || broken_) return block;
  const int64_t started = NowNs();
  Stock(Place::kHost, missing);
  {
    Safepoint safepoint(this);
    if (safepoint.reached()) {
      block = TryPlace(bytes, false);
      // Each round maps what it could get, so the plan may change; two rounds settle it.
      for (int round = 0; block == nullptr && round < 3; ++round) {
        if (MapExtension(bytes, &missing)) {
          block = TryPlace(bytes, false);
          break;
        }
        if (missing == 0 || EvictAhead(missing) == 0) break;
      }
      if (block == nullptr && missing != 0 && MapOnHost(bytes)) block = TryPlace(bytes, false);
    }
  }
  if (block == nullptr) block = TryPlace(bytes, true);
  if (block == nullptr) block = WaitForOtherJobs(bytes);
  counters_.stall_ns += static_cast<uint64_t>(NowNs() - started);
  return block;
}

// Wholly free device chunks that nothing in flight can touch.
uint64_t DeviceMemory::FreeChunks() {
  uint64_t free = 0;
  allocator_.FoldCache();
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) free += IsFree(i, nullptr) ? 1 : 0;
  return free;
}

// Leases until the reserve has `count` chunks, or the budget or the daemon ends it. The daemon may
// take its time, and other threads go on meanwhile.
void DeviceMemory::Stock(Place place, uint64_t count) {
  while (session_->attached() && supply_.reserve(place) < count && supply_.HasRoom(place)) {
    const uint64_t batch = supply_.BatchOf(place, count - supply_.reserve(place));
    ChunkSupply::Offer offer;
    {
      MutexUnlock unlocked(&mutex);
      supply_.Ask(place, batch, &offer);
    }
    supply_.Accept(place, offer);
    if (offer.got == 0) return;
  }
}

// The daemon may have asked other jobs to make room for this one; they do so at their next launch.
// The job's own error would be final, so it is worth a moment.
Block* DeviceMemory::WaitForOtherJobs(Bytes bytes) {
  const int64_t deadline = NowNs() + kPatienceNs;
  const timespec pause = {0, 10000000};
  uint64_t missing = 0;
  while (session_->attached() && NowNs() < deadline) {
    ReadBudgets();
    core::Extension extension;
    if (!allocator_.PlanExtension(bytes, &extension)) return nullptr;
    ChunkSupply::Offer offer;
    {
      MutexUnlock unlocked(&mutex);
      supply_.Ask(Place::kDevice, Bytes{extension.missing} + 1, &offer);
      if (offer.got == 0) nanosleep(&pause, nullptr);
    }
    supply_.Accept(Place::kDevice, offer);
    if (offer.got == 0 && supply_.reserve(Place::kDevice) == 0) continue;
    Block* block = MapExtension(bytes, &missing) ? TryPlace(bytes, false) : nullptr;
    if (block != nullptr || missing == 0) return block;
  }
  return nullptr;
}

// Whether `missing` further chunks and all that is live fit into both budgets together.
bool DeviceMemory::FitsAtAll(uint64_t missing) const {
  uint64_t live = table_.host_chunks();
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    if (table_.state(i) == ChunkState::kDevice && table_.live(i) != 0) ++live;
  }
  const uint64_t host = supply_.budget_chunks(Place::kHost);
  const uint64_t device = supply_.held(Place::kDevice) + supply_.room(Place::kDevice);
  return live + missing <= device + (moves_allowed_ ? host : 0);
}

// Inside a safepoint, when eviction has freed what it can: the rest of the place for `bytes` lies
// in host memory, at the speed of the link. So an allocation above the budget works.
bool DeviceMemory::MapOnHost(Bytes bytes) {
  core::Extension extension;
  uint64_t missing = 0;
  return moves_allowed_ && allocator_.PlanExtension(bytes, &extension) &&
         Fill(extension, Place::kHost, &missing);
}

// What was mapped stays mapped when it is not enough: a hole for the next request. `*missing`:
// chunks that could not be had; 0 when more chunks would not help.
bool DeviceMemory::MapExtension(Bytes bytes, uint64_t* missing) {
  *missing = 0;
  core::Extension extension;
  if (!allocator_.PlanExtension(bytes, &extension)) return false;
  // More than both budgets hold: evicting everything for it would be for nothing.
  if (!FitsAtAll(extension.missing)) return false;
  const uint64_t reserve = supply_.reserve(Place::kDevice);
  if (reserve < extension.missing) CollectFree(extension.missing - reserve, &extension);
  return Fill(extension, Place::kDevice, missing);
}

// Puts chunks of `place` under the unmapped slots of `extension`, in runs.
bool DeviceMemory::Fill(const core::Extension& extension, Place place, uint64_t* missing) {
  constexpr ChunkIndex kPiece = 64;
  const ChunkIndex end = extension.first + extension.count;
  uint64_t left = extension.missing;
  for (ChunkIndex i = extension.first; i < end;) {
    if (table_.state(i) != ChunkState::kUnmapped) {
      ++i;
      continue;
    }
    Chunk chunks[kPiece];
    ChunkIndex count = 0, run = 0;
    while (run < kPiece && i + run < end && table_.state(i + run) == ChunkState::kUnmapped) ++run;
    while (count < run && supply_.Take(place, left - count - 1, &chunks[count])) ++count;
    if (count != 0 && !MapRun(i, chunks, count, place)) {
      for (ChunkIndex k = 0; k < count; ++k) supply_.Put(place, chunks[k]);
      return false;
    }
    left -= count;
    if (count < run) {
      *missing = left;
      return false;
    }
    i += run;
  }
  return true;
}

// All or nothing. False as well when the books have no room for it.
bool DeviceMemory::MapRun(ChunkIndex first, const Chunk* chunks, ChunkIndex count, Place place) {
  ChunkIndex mapped = 0;
  if (!allocator_.ReserveMark()) return false;
  while (mapped < count && driver_->cuMemMap(ChunkAddress(first + mapped), kChunkBytes, 0,
                                             chunks[mapped].handle, 0) == CUDA_SUCCESS) {
    ++mapped;
  }
  if (mapped < count || !SetAccess(first, count)) {
    for (ChunkIndex i = 0; i < mapped; ++i) {
      driver_->cuMemUnmap(ChunkAddress(first + i), kChunkBytes);
    }
    return false;
  }
  for (ChunkIndex i = 0; i < count; ++i) {
    backing_[first + i] = chunks[i];
    table_.SetState(first + i, place == Place::kHost ? ChunkState::kHost : ChunkState::kDevice);
  }
  if (!allocator_.MarkMapped(first, count)) {
    Break("the arena refused chunks that were just mapped");
  }
  return !broken_;
}

bool DeviceMemory::TakeDeviceChunk(uint64_t more, Chunk* chunk) {
  if (supply_.reserve(Place::kDevice) == 0) CollectFree(more + 1, nullptr);
  return supply_.Take(Place::kDevice, more, chunk);
}

// A wholly free device chunk outside `keep` that nothing in flight can touch.
bool DeviceMemory::IsFree(ChunkIndex i, const core::Extension* keep) const {
  if (table_.state(i) != ChunkState::kDevice || table_.live(i) != 0) return false;
  if (keep != nullptr && i >= keep->first && i < keep->first + keep->count) return false;
  return allocator_.FenceOf(i) <= streams.passed();
}

// Moves up to `count` free chunks into the reserve, from the highest address down, neighbours with
// one call. Returns how many.
uint64_t DeviceMemory::CollectFree(uint64_t count, const core::Extension* keep) {
  uint64_t collected = 0;
  allocator_.FoldCache();
  for (ChunkIndex i = table_.high_water(); i-- > 0 && collected < count;) {
    if (!IsFree(i, keep)) continue;
    ChunkIndex run = 1;
    const Block* block = allocator_.BlockAt(Bytes{i} * kChunkBytes);
    while (run <= i && collected + run < count && IsFree(i - run, keep) &&
           allocator_.BlockAt(Bytes{i - run} * kChunkBytes) == block) {
      ++run;
    }
    i -= run - 1;
    if (UnmapRun(i, run)) collected += run;
  }
  return collected;
}

bool DeviceMemory::UnmapRun(ChunkIndex first, ChunkIndex count) {
  if (!allocator_.ReserveMark()) return false;
  if (driver_->cuMemUnmap(ChunkAddress(first), count * kChunkBytes) != CUDA_SUCCESS) return false;
  const bool marked = allocator_.MarkUnmapped(first, count);
  for (ChunkIndex i = first; i < first + count; ++i) {
    if (!marked) {
      if (MapChunk(i, backing_[i]) != CUDA_SUCCESS) Break("a chunk could not be mapped back");
      continue;
    }
    table_.SetState(i, ChunkState::kUnmapped);
    supply_.Put(Place::kDevice, backing_[i]);
    backing_[i] = Chunk();
  }
  return marked;
}

// Wholly free chunks in host memory serve nobody: a buffer placed on one would have to come back
// with bytes that nobody wants.
void DeviceMemory::DropFreeHostChunks() {
  holes_on_host_ = false;
  if (table_.host_chunks() == 0) return;
  allocator_.FoldCache();
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    if (table_.state(i) != ChunkState::kHost || table_.live(i) != 0) continue;
    if (allocator_.FenceOf(i) > streams.passed()) {
      holes_on_host_ = true;  // later
      continue;
    }
    if (!allocator_.ReserveMark()) return;
    if (driver_->cuMemUnmap(ChunkAddress(i), kChunkBytes) != CUDA_SUCCESS) continue;
    allocator_.MarkUnmapped(i);
    table_.SetState(i, ChunkState::kUnmapped);
    supply_.Put(Place::kHost, backing_[i]);
    backing_[i] = Chunk();
  }
}

CUresult DeviceMemory::MapChunk(ChunkIndex index, const Chunk& chunk) {
  const CUresult result = driver_->cuMemMap(ChunkAddress(index), kChunkBytes, 0, chunk.handle, 0);
  if (result != CUDA_SUCCESS) return result;
  if (SetAccess(index, 1)) return CUDA_SUCCESS;
  driver_->cuMemUnmap(ChunkAddress(index), kChunkBytes);
  return CUDA_ERROR_UNKNOWN;
}

bool DeviceMemory::SetAccess(ChunkIndex first, ChunkIndex chunks) {
  CUmemAccessDesc access[kDevices + 1] = {};
  size_t count = 0;
  for (int i = -1; i < peer_count_; ++i) {
    access[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[count].location.id = i < 0 ? device_ : peers_[i]->device_;
    access[count++].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return driver_->cuMemSetAccess(ChunkAddress(first), chunks * kChunkBytes, access, count) ==
         CUDA_SUCCESS;
}

bool DeviceMemory::Free(CUdeviceptr address) {
  Block* block = allocator_.Find(address - base_);
  if (block == nullptr || AddressOf(block) != address) return false;
  const core::AllocatorStats stats = allocator_.Totals();
  const Bytes active = OnDevice(stats.allocated);
  if (active > counters_.peak_active) counters_.peak_active = active;
  if (stats.requested > counters_.peak_requested) counters_.peak_requested = stats.requested;
  tables.Drop(address);
  // Work of peers is not in our streams' events; the driver's own free would wait as well.
  for (int i = 0; i < peer_count_; ++i) peers_[i]->SynchronizeAll();
  iteration_.Died(NameOf(block));
  holes_on_host_ = holes_on_host_ || OnHost(block);
  allocator_.Free(block, streams.open_epoch());
  ++counters_.frees;
  if (supply_.reserve(Place::kDevice) > kReserveFloor) {
    const int64_t now = NowNs();
    if (decay_at_ns_ == 0) decay_at_ns_ = now + kDecayNs;
    if (now >= decay_at_ns_) {
      const uint64_t reserve = supply_.reserve(Place::kDevice);
      supply_.Trim(Place::kDevice, reserve - (reserve - kReserveFloor + 1) / 2);
      decay_at_ns_ = 0;
    }
  }
  return true;
}

void DeviceMemory::MemInfo(size_t* free_bytes, size_t* total_bytes) {
  FollowPolicy();
  const Bytes budget = supply_.budget(Place::kDevice);
  const Bytes total = budget < total_bytes_ ? budget : total_bytes_;
  const Bytes used = allocator_.Totals().allocated + passed_through_;
  *total_bytes = total;
  *free_bytes = used < total ? (total - used) / kChunkBytes * kChunkBytes : 0;
  // Nobody but the driver knows what other processes took. A daemon does, and says so by the
  // budget.
  size_t left = 0, ignored = 0;
  if (session_->attached() || driver_->cuMemGetInfo(&left, &ignored) != CUDA_SUCCESS) return;
  const Bytes held = supply_.held(Place::kDevice) * kChunkBytes;
  const Bytes live = allocator_.Totals().allocated;
  const Bytes reachable = left + (held > live ? held - live : 0);
  if (reachable < *free_bytes) *free_bytes = reachable / kChunkBytes * kChunkBytes;
}

void DeviceMemory::CountPassedThrough(Bytes bytes, int sign) {
  if (sign > 0) {
    passed_through_ += bytes;
  } else {
    passed_through_ -= bytes < passed_through_ ? bytes : passed_through_;
  }
  supply_.SetPassedThrough(passed_through_);
}

void DeviceMemory::CountHost(Bytes bytes, int sign) {
  if (sign > 0) {
    host_passed_through_ += bytes;
  } else {
    host_passed_through_ -= bytes < host_passed_through_ ? bytes : host_passed_through_;
  }
}

void DeviceMemory::CountGraphMemory() {
  cuuint64_t reserved = 0;
  if (driver_->cuDeviceGetGraphMemAttribute == nullptr ||
      driver_->cuDeviceGetGraphMemAttribute(device_, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                            &reserved) != CUDA_SUCCESS) {
    return;
  }
  CountPassedThrough(graph_memory_, -1);
  CountPassedThrough(reserved, +1);
  graph_memory_ = reserved;
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
  context_broken_ = false;
  DropBuffersOf(context);
  if (context_count_ == 0) DropEverything();
}

void DeviceMemory::DropBuffersOf(CUcontext context) {
  // Other contexts may still be at work on what freed memory is given to next.
  const bool idle = context == nullptr || context_count_ == 0;
  const core::FenceId fence = idle ? 0 : streams.open_epoch();
  for (Block* block = allocator_.first(); block != nullptr;) {
    Block* next = block->next;
    if (block->state == Block::State::kLive &&
        (context == nullptr || ContextOf(block) == context)) {
      tables.Drop(AddressOf(block));
      allocator_.Free(block, fence);
      next = allocator_.first();  // freeing may fold neighbours away
    }
    block = next;
  }
}

void DeviceMemory::DropEverything() {
  DropBuffersOf(nullptr);
  CollectFree(~uint64_t{0}, nullptr);
  DropFreeHostChunks();
}

void DeviceMemory::ReleaseForTesting() {
  SynchronizeAll();
  streams.AllIdle();
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
    for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
      if (table_.state(i) != ChunkState::kUnmapped) SetAccess(i, 1);
    }
  }
}

void DeviceMemory::Pin(Block* block, core::PinReason reason) {
  const ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) table_.Pin(i, reason);
}

// Stops managing: what is allocated stays served, new requests go to the driver.
void DeviceMemory::Break(const char* what) {
  if (broken_) return;
  broken_ = true;
  Warn("device %d: %s; new allocations go to the driver from now on", device_, what);
}

void DeviceMemory::FillCounters(tm_wire_counters_device* out) {
  const core::AllocatorStats stats = allocator_.Stats(streams.passed());
  const MoveCounters& c = counters_;
  *out = tm_wire_counters_device();
  out->requested_bytes = stats.requested;
  out->allocated_bytes = stats.allocated;
  out->active_bytes = OnDevice(stats.allocated + stats.waiting);
  out->reserved_bytes = supply_.held(Place::kDevice) * kChunkBytes;
  out->host_resident_bytes = table_.host_chunks() * kChunkBytes;
  out->pinned_bytes = table_.pinned_chunks() * kChunkBytes;
  if (out->active_bytes > counters_.peak_active) counters_.peak_active = out->active_bytes;
  if (stats.requested > counters_.peak_requested) counters_.peak_requested = stats.requested;
  out->peak_active_bytes = c.peak_active;
  out->peak_reserved_bytes = supply_.peak_held() * kChunkBytes;
  out->peak_requested_bytes = c.peak_requested;
  out->free_mapped_bytes = stats.free_mapped;
  out->largest_free_mapped_bytes = stats.largest_free_mapped;
  uint64_t whole = supply_.reserve(Place::kDevice);
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    if (table_.state(i) == ChunkState::kDevice && table_.live(i) == 0) ++whole;
  }
  out->largest_free_stitchable_bytes = whole * kChunkBytes;
  out->moved_out_bytes_total = c.moved_out * kChunkBytes;
  out->moved_in_bytes_total = c.moved_in * kChunkBytes;
  out->evicted_chunks_total = c.evicted;
  out->prefetched_chunks_total = c.prefetched;
  out->demand_returned_chunks_total = c.returned;
  out->host_mapped_accesses_total = c.host_mapped_accesses;
  out->safepoints_total = c.safepoints;
  out->safepoint_ns_total = c.safepoint_ns;
  out->stall_ns_total = c.stall_ns;
  out->allocations_total = c.allocations;
  out->frees_total = c.frees;
  out->launches_total = launch_ - hints_;
  out->ooms_total = c.ooms;
  out->hash_mismatches_total = mover_.mismatches();
  out->passed_through_bytes = passed_through_;
  out->host_passed_through_bytes = host_passed_through_;
}

bool DeviceMemory::Validate() const {
  if (!allocator_.Validate()) return false;
  for (ChunkIndex i = 0; i < table_.size(); ++i) {
    if (backing_[i].valid != (table_.state(i) != ChunkState::kUnmapped)) return false;
  }
  const uint64_t device = table_.device_chunks() + supply_.reserve(Place::kDevice);
  const uint64_t host = table_.host_chunks() + supply_.reserve(Place::kHost);
  return device == supply_.held(Place::kDevice) && host == supply_.held(Place::kHost);
}

}  // namespace tidemark::interpose
