// Residency side of interpose/device_memory.h: safepoints, demand eviction and return, following
// the policy. A move is a transaction: whatever fails, the address keeps or regains its former
// chunk.
//
// Threads: as the header says.

#include "interpose/device_memory.h"

namespace tidemark::interpose {
namespace {

using core::Block;
using core::Bytes;
using core::ChunkIndex;
using core::ChunkState;
using core::kChunkBytes;
using core::LaunchNumber;

constexpr int64_t kDrainNs =
    2000000000;  // a launch call that takes longer waits for the device itself

}  // namespace

Safepoint::Safepoint(DeviceMemory* memory) : memory_(memory), started_ns_(NowNs()) {
  if (memory_->streams.capturing() || memory_->context_count_ == 0 || memory_->broken_) return;
  if (!memory_->inside.WaitForNone(kDrainNs)) return;
  for (int i = 0; i < memory_->peer_count_; ++i) {
    if (memory_->peers_[i]->SynchronizeAll() != CUDA_SUCCESS) return;
  }
  if (memory_->SynchronizeAll() != CUDA_SUCCESS) return;
  memory_->streams.AllIdle();
  ++memory_->counters_.safepoints;
  CUcontext current = nullptr;
  const kernels::Driver& driver = *memory_->driver_;
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS) return;
  for (int i = 0; i < memory_->context_count_; ++i) {
    reached_ = reached_ || memory_->contexts_[i] == current;
  }
  if (!reached_) {
    pushed_ = driver.cuCtxPushCurrent(memory_->contexts_[0]) == CUDA_SUCCESS;
    reached_ = pushed_;
  }
}

Safepoint::~Safepoint() {
  CUcontext popped;
  if (pushed_) memory_->driver_->cuCtxPopCurrent(&popped);
  if (reached_) memory_->counters_.safepoint_ns += static_cast<uint64_t>(NowNs() - started_ns_);
}

CUresult DeviceMemory::SynchronizeAll() {
  CUcontext current = nullptr;
  CUresult result = driver_->cuCtxGetCurrent(&current);
  for (int i = 0; i < context_count_ && result == CUDA_SUCCESS; ++i) {
    const bool push = contexts_[i] != current;
    if (push) result = driver_->cuCtxPushCurrent(contexts_[i]);
    if (result != CUDA_SUCCESS) break;
    result = driver_->cuCtxSynchronize();
    CUcontext popped;
    if (push) driver_->cuCtxPopCurrent(&popped);
  }
  return result;
}

void DeviceMemory::Touch(Block* block, LaunchNumber launch, const StreamRecord* stream,
                         bool write) {
  block->last_use = launch;
  log_.Add({launch, stream != nullptr ? stream->number : ~uint32_t{0}, write, block->offset});
}

bool DeviceMemory::OnHost(const Block* block) const {
  const ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
    if (table_.state(i) == ChunkState::kHost) return true;
  }
  return false;
}

void DeviceMemory::RefreshLastUse() {
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) table_.HoldBack(i, false);
  for (Block* block = allocator_.first(); block != nullptr; block = block->next) {
    if (block->state != Block::State::kLive) continue;
    const bool held_back =
        block->requested < min_size_ || (movable_classes_ >> block->kind & 1) == 0;
    const ChunkIndex last = core::LastChunkOf(block->offset, block->size);
    for (ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
      table_.NoteUse(i, block->last_use);
      if (held_back) table_.HoldBack(i, true);
    }
  }
}

// Inside a safepoint. Frees up to `count` device chunks into the reserve; returns how many.
uint64_t DeviceMemory::EvictLeastRecentlyUsed(uint64_t count, LaunchNumber before) {
  if (!moves_allowed_) return 0;
  RefreshLastUse();
  uint64_t evicted = 0;
  while (evicted < count && !broken_) {
    ChunkIndex list[Mover::kBatch];
    Chunk fresh[Mover::kBatch];
    int batch = 0;
    while (batch < Mover::kBatch && evicted + static_cast<uint64_t>(batch) < count) {
      const ChunkIndex victim = table_.Victim(before);
      if (victim == table_.size()) break;
      if (!supply_.Take(Place::kHost, count - evicted - static_cast<uint64_t>(batch) - 1,
                        &fresh[batch])) {
        break;
      }
      table_.Pin(victim, core::PinReason::kRegistered);  // so that it is not found again
      list[batch++] = victim;
    }
    for (int i = 0; i < batch; ++i) table_.Unpin(list[i], core::PinReason::kRegistered);
    if (batch == 0) break;
    const uint64_t moved = Move(list, fresh, batch, Place::kHost);
    counters_.evicted += moved;
    evicted += moved;
    if (moved == 0) break;
  }
  return evicted;
}

// Inside a safepoint: puts `fresh[i]`, chunks of `to`, under list[i] with the bytes that are there.
// Those not used go back to the supply. Returns how many moved.
uint64_t DeviceMemory::Move(const ChunkIndex* list, const Chunk* fresh, int count, Place to) {
  CUdeviceptr sources[Mover::kBatch] = {};
  bool done[Mover::kBatch] = {};
  for (int i = 0; i < count; ++i) sources[i] = ChunkAddress(list[i]);
  mover_.Copy(sources, fresh, count, done);
  uint64_t moved = 0;
  for (int i = 0; i < count; ++i) {
    if (done[i] && Swap(list[i], fresh[i], to)) {
      ++moved;
    } else {
      supply_.Put(to, fresh[i]);
    }
  }
  (to == Place::kHost ? counters_.moved_out : counters_.moved_in) += moved;
  return moved;
}

bool DeviceMemory::Swap(ChunkIndex index, const Chunk& fresh, Place to) {
  if (driver_->cuMemUnmap(ChunkAddress(index), kChunkBytes) != CUDA_SUCCESS) return false;
  const Chunk former = backing_[index];
  if (MapChunk(index, fresh) != CUDA_SUCCESS) {
    if (MapChunk(index, former) != CUDA_SUCCESS && MapChunk(index, former) != CUDA_SUCCESS) {
      Break("a chunk could not be mapped back after a failed move");
    }
    return false;
  }
  backing_[index] = fresh;
  table_.SetState(index, to == Place::kHost ? ChunkState::kHost : ChunkState::kDevice);
  supply_.Put(to == Place::kHost ? Place::kDevice : Place::kHost, former);
  return true;
}

void DeviceMemory::MakeResident(Block* const* blocks, int count, LaunchNumber launch) {
  constexpr int kMost = 1024;
  ChunkIndex list[kMost];
  int wanted = 0;
  for (int b = 0; b < count; ++b) {
    const ChunkIndex last = core::LastChunkOf(blocks[b]->offset, blocks[b]->size);
    for (ChunkIndex i = core::ChunkOf(blocks[b]->offset); i <= last && wanted < kMost; ++i) {
      if (table_.state(i) != ChunkState::kHost) continue;
      bool seen = false;  // neighbours share boundary chunks
      for (int k = wanted; k-- > 0 && !seen;) seen = list[k] == i;
      if (!seen) list[wanted++] = i;
    }
  }
  if (wanted == 0) return;
  if (!CanReturn(launch)) {
    ++counters_.host_mapped_accesses;
    return;
  }
  const int64_t started = NowNs();
  uint64_t returned = 0;
  {
    Safepoint safepoint(this);
    if (safepoint.reached()) returned = Return(list, wanted, launch, true);
  }
  counters_.returned += returned;
  if (returned < static_cast<uint64_t>(wanted)) ++counters_.host_mapped_accesses;
  counters_.stall_ns += static_cast<uint64_t>(NowNs() - started);
}

// Whether a safepoint would bring anything back that `launch` lacks. It costs the device's
// pipeline, and a buffer larger than the budget is touched again and again.
bool DeviceMemory::CanReturn(LaunchNumber launch) {
  if (!moves_allowed_) return false;
  if (supply_.reserve(Place::kDevice) != 0 || supply_.HasRoom(Place::kDevice)) return true;
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    if (table_.state(i) == ChunkState::kDevice && table_.live(i) == 0) return true;
  }
  RefreshLastUse();
  const bool host = supply_.reserve(Place::kHost) != 0 || supply_.HasRoom(Place::kHost);
  return host && table_.Victim(launch) != table_.size();
}

// Inside a safepoint. With `evict`, chunks last used before `before` make room.
uint64_t DeviceMemory::Return(const ChunkIndex* list, int count, LaunchNumber before, bool evict) {
  if (!moves_allowed_) return 0;
  uint64_t returned = 0;
  for (int first = 0; first < count && !broken_; first += Mover::kBatch) {
    const int most = count - first < Mover::kBatch ? count - first : Mover::kBatch;
    Chunk fresh[Mover::kBatch];
    int batch = 0;
    while (batch < most) {
      const auto left = static_cast<uint64_t>(most - batch);
      if (TakeDeviceChunk(left - 1, nullptr, &fresh[batch])) {
        ++batch;
      } else if (!evict || EvictLeastRecentlyUsed(left, before) == 0) {
        break;
      }
    }
    if (batch == 0) break;
    const uint64_t moved = Move(list + first, fresh, batch, Place::kDevice);
    returned += moved;
    if (moved < static_cast<uint64_t>(most)) break;
  }
  return returned;
}

bool DeviceMemory::MakeRoom(Bytes bytes) {
  FollowPolicy();
  const uint64_t wanted = core::RoundUp(bytes, kChunkBytes) / kChunkBytes;
  const uint64_t budget = supply_.budget_chunks(Place::kDevice);
  const uint64_t passed = core::RoundUp(passed_through_, kChunkBytes) / kChunkBytes;
  if (passed + wanted > budget) return false;
  return ReduceTo(budget - passed - wanted);
}

bool DeviceMemory::GiveBack(Bytes bytes) {
  const uint64_t wanted = core::RoundUp(bytes, kChunkBytes) / kChunkBytes;
  const uint64_t held = supply_.held(Place::kDevice);
  ReduceTo(held > wanted ? held - wanted : 0);
  return supply_.held(Place::kDevice) < held;
}

// Holds no more than `allowed` device chunks afterwards. False: not possible; what could go is
// gone.
bool DeviceMemory::ReduceTo(uint64_t allowed) {
  uint64_t held = supply_.held(Place::kDevice);
  if (held <= allowed) return true;
  const uint64_t reserve = supply_.reserve(Place::kDevice);
  const uint64_t above = held - allowed;
  supply_.Trim(Place::kDevice, reserve > above ? reserve - above : 0);
  held = supply_.held(Place::kDevice);
  if (held > allowed) {
    Safepoint safepoint(this);
    if (!safepoint.reached()) return false;
    const uint64_t released = ReleaseFreeChunks(held - allowed);
    if (held - allowed > released) EvictLeastRecentlyUsed(held - allowed - released, ~uint64_t{0});
    const uint64_t left =
        supply_.held(Place::kDevice) > allowed ? supply_.held(Place::kDevice) - allowed : 0;
    const uint64_t now = supply_.reserve(Place::kDevice);
    supply_.Trim(Place::kDevice, now > left ? now - left : 0);
  }
  return supply_.held(Place::kDevice) <= allowed;
}

// Moves wholly free mapped chunks to the reserve; returns how many.
uint64_t DeviceMemory::ReleaseFreeChunks(uint64_t count) {
  Chunk chunk;
  uint64_t released = 0;
  while (released < count && UnmapFreeChunk(nullptr, &chunk)) {
    supply_.Put(Place::kDevice, chunk);
    ++released;
  }
  return released;
}

bool DeviceMemory::ReadBudgets(tm_wire_policy_page* page) {
  const int index = session_->DeviceIndex(static_cast<uint32_t>(device_));
  if (index < 0 || !session_->ReadPolicy(page)) return false;
  moves_allowed_ = page->level != TM_WIRE_LEVEL_OFF;
  min_size_ = page->min_size_bytes;
  movable_classes_ = page->movable_classes;
  SetBudgets(page->device[index].budget_bytes, page->device[index].host_budget_bytes);
  return true;
}

void DeviceMemory::FollowPolicySlow() {
  const uint64_t sequence = session_->PolicySequence();
  tm_wire_policy_page page;
  if (sequence != policy_seen_) {
    policy_seen_ = sequence;
    if (!ReadBudgets(&page)) return;
    shrink_pending_ = supply_.ShrinkToBudget(Place::kDevice) != 0;
    // Above a smaller host budget: what the device has room for comes back.
    const uint64_t above = supply_.ShrinkToBudget(Place::kHost);
    if (above != 0) Prefetch(above);
    // A new daemon counts from zero.
    if (page.evict_request_bytes < evict_seen_) evict_seen_ = page.evict_request_bytes;
    if (page.prefetch_request_bytes < prefetch_seen_) prefetch_seen_ = page.prefetch_request_bytes;
    if (page.evict_request_bytes > evict_seen_) {
      const uint64_t chunks =
          (page.evict_request_bytes - evict_seen_ + kChunkBytes - 1) / kChunkBytes;
      Safepoint safepoint(this);
      if (safepoint.reached()) {
        EvictLeastRecentlyUsed(chunks, ~uint64_t{0});
        supply_.Trim(Place::kDevice, 0);
        evict_seen_ = page.evict_request_bytes;
      }
    }
    if (page.prefetch_request_bytes > prefetch_seen_) {
      Prefetch((page.prefetch_request_bytes - prefetch_seen_ + kChunkBytes - 1) / kChunkBytes);
      prefetch_seen_ = page.prefetch_request_bytes;
    }
  }
  if (shrink_pending_) Shrink();
}

// Host chunks back to the device, without evicting anything for it.
void DeviceMemory::Prefetch(uint64_t chunks) {
  ChunkIndex list[1024];
  int count = 0;
  for (ChunkIndex i = 0; i < table_.high_water() && count < 1024; ++i) {
    if (static_cast<uint64_t>(count) == chunks) break;
    if (table_.state(i) == ChunkState::kHost && table_.live(i) != 0) list[count++] = i;
  }
  if (count == 0) return;
  Safepoint safepoint(this);
  if (safepoint.reached()) counters_.prefetched += Return(list, count, 0, false);
  supply_.ShrinkToBudget(Place::kHost);
}

// Gives up device memory above the budget; what cannot go now is tried again at the next call, but
// no more often than the pause allows: an attempt costs a safepoint.
void DeviceMemory::Shrink() {
  constexpr int64_t kPauseNs = 100000000;
  const int64_t now = NowNs();
  if (now < shrink_at_ns_) return;
  shrink_at_ns_ = now + kPauseNs;
  uint64_t above = supply_.ShrinkToBudget(Place::kDevice);
  if (above != 0) {
    Safepoint safepoint(this);
    if (!safepoint.reached()) return;
    const uint64_t released = ReleaseFreeChunks(above);
    if (released < above) EvictLeastRecentlyUsed(above - released, ~uint64_t{0});
    above = supply_.ShrinkToBudget(Place::kDevice);
  }
  shrink_pending_ = above != 0;
}

}  // namespace tidemark::interpose
