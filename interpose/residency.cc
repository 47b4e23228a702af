// Residency side of interpose/device_memory.h: safepoints, demand eviction and return, following
// the policy. A move is a transaction: whatever fails, the address keeps or regains its former
// chunk.
//
// Threads: as the header says.

#include "interpose/device_memory.h"

#include <algorithm>

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
  memory_->JudgeCopies();
  if (memory_->SynchronizeAll() != CUDA_SUCCESS) return;
  memory_->streams.AllIdle();
  memory_->arena_.Passed(memory_->streams.passed());
  memory_->arena_.LeaveOldPlaces();  // chunks may go to others now
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

// Tells the chunk table what the blocks know: last uses, what policy holds back, and, where the
// iteration is known, when each chunk is used next. A chunk is wanted when the first of its buffers
// is. On the device the end of a buffer counts as a use: what is about to be freed need not leave.
void DeviceMemory::LookAhead() {
  if (looked_ahead_ == launch_ && launch_ != 0) return;
  looked_ahead_ = launch_;
  iteration_.Learn();
  UpdatePlan();
  const bool planned = iteration_.period() != 0 && follower_.following(iteration_);
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) table_.HoldBack(i, false);
  table_.ForgetNextUses();
  for (Block* block = arena_.allocator().first(); block != nullptr; block = block->next) {
    if (block->state != Block::State::kLive) continue;
    bool known = false;
    core::NextUse next = iteration_.Next(NameOf(block), &known);
    const bool foreseen = iteration_.period() != 0;
    // Not used in the last iteration, or the job says that it is done with it: not expected.
    if (!known || block->last_use == 0) next.launches = core::Iteration::kNever;
    const bool held_back =
        block->requested < min_size_ || (movable_classes_ >> block->kind & 1) == 0;
    PlanAdvice advice;
    if (planned && known) advice = follower_.Advice(iteration_, NameOf(block));
    const ChunkIndex last = core::LastChunkOf(block->offset, block->size);
    for (ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
      table_.NoteUse(i, block->last_use);
      if (held_back) table_.HoldBack(i, true);
      if (foreseen) Foresee(block, i, next, advice);
    }
  }
  JudgeBrought();
}

// What a plan wants away goes first and comes back last, however near its next use; a part of a
// chunk that it wants here keeps the chunk.
void DeviceMemory::Foresee(const Block* block, ChunkIndex chunk, const core::NextUse& next,
                           const PlanAdvice& advice) {
  const bool host = table_.state(chunk) == ChunkState::kHost;
  if (next.is_end && host) return;
  LaunchNumber in = next.launches;
  if (early_.Fresh(chunk)) in = core::Iteration::kNever - 1;
  if (advice.away) {
    const Bytes begin = block->offset + advice.offset;
    const Bytes at = Bytes{chunk} * kChunkBytes;
    const bool part = at + kChunkBytes > begin && at < begin + advice.bytes;
    if (part) in = core::Iteration::kNever - 1;
  }
  table_.ForeseeUse(chunk, in + 1 == 0 ? in : in + 1);
}

// The machine as far as it is known here: budgets are policy's, rates the planner's own defaults.
void DeviceMemory::UpdatePlan() {
  if (!follower_.enabled()) return;
  const int64_t now = NowNs();
  const uint64_t launches = launch_ - timed_launch_;
  const auto stalled = static_cast<int64_t>(counters_.stall_ns - timed_stall_ns_);
  int64_t pace = timed_at_ns_ != 0 && launches != 0
                     ? (now - timed_at_ns_ - stalled) / static_cast<int64_t>(launches)
                     : 0;
  if (pace < 1000) pace = 1000;
  timed_launch_ = launch_;
  timed_at_ns_ = now;
  timed_stall_ns_ = counters_.stall_ns;
  core::Machine machine;
  machine.device_budget = supply_.budget(Place::kDevice);
  machine.host_budget = supply_.budget(Place::kHost);
  // Small buffers share chunks, so that one alone moves nothing, but its neighbours have like
  // windows.
  machine.min_bytes = min_size_ > core::kBlockBytes ? min_size_ : core::kBlockBytes;
  follower_.Update(iteration_, machine, pace);
}

// Inside a safepoint. Frees up to `count` device chunks into the reserve; returns how many.
uint64_t DeviceMemory::Evict(uint64_t count, LaunchNumber before) {
  const uint64_t evicted = counters_.evicted;
  Exchange(nullptr, 0, 0, count, before);
  return counters_.evicted - evicted;
}

// The same for an allocation that lacks `missing`. Where the iteration is known, more such are
// likely to follow, and what is not used for long leaves in the same safepoint.
uint64_t DeviceMemory::EvictAhead(uint64_t missing) {
  constexpr LaunchNumber kLong = 64;
  constexpr uint64_t kMost = 32;
  LookAhead();
  uint64_t count = missing;
  if (iteration_.period() != 0) {
    const uint64_t ahead = supply_.budget_chunks(Place::kDevice) / 12;
    const uint64_t most = ahead < kMost ? ahead : kMost;
    ChunkIndex list[kMost];
    if (count < most) {
      const uint32_t found = table_.Victims(~uint64_t{0}, list, static_cast<uint32_t>(most));
      while (count < found && table_.next_use(list[count]) > kLong) ++count;
    }
  }
  return Evict(count, ~uint64_t{0});
}

// Inside a safepoint: brings `wanted` to the device and frees `room` chunks besides into the
// device's reserve, with both directions of the link at work. For the room and for the first `must`
// of `wanted`, chunks last used before `before` leave; the others come as far as there is room.
// Returns how many of `wanted` came.
uint64_t DeviceMemory::Exchange(const ChunkIndex* wanted, uint32_t count, uint32_t must,
                                uint64_t room, LaunchNumber before) {
  if (!moves_allowed_) return 0;
  SettleCopies();
  LookAhead();
  // What waits in the allocator's caches is no victim: its chunks may go back to the supply below.
  arena_.allocator().FoldCache();
  ChunkIndex victims[kMostMoves];
  const uint64_t need = room + must < kMostMoves ? room + must : kMostMoves;
  const uint32_t victim_count = table_.Victims(before, victims, static_cast<uint32_t>(need));
  uint32_t next_victim = 0, next_wanted = 0;
  uint64_t came = 0;
  while (!broken_) {
    Shift list[Mover::kBatch];
    int batch = 0;
    const int most_in = next_victim < victim_count ? Mover::kBatch / 2 : Mover::kBatch;
    uint64_t free = FreeChunks();
    while (batch < most_in && next_wanted < count) {
      Chunk fresh;  // of those that are free, each is taken when its copy starts
      if (free == 0 && !supply_.Take(Place::kDevice, count - next_wanted - 1, &fresh)) break;
      if (free != 0) --free;
      const ChunkIndex index = wanted[next_wanted++];
      list[batch++] = {index, fresh, Place::kDevice, hashes_[index], false, false};
    }
    const uint64_t lacking = must > next_wanted ? must - next_wanted : 0;
    uint64_t leave = room + (lacking > free ? lacking - free : 0);
    for (; leave != 0 && batch < Mover::kBatch && next_victim < victim_count; --leave) {
      list[batch] = {victims[next_victim], Chunk(), Place::kHost, ChunkHash(), false, false};
      if (!TakeHostChunk(leave - 1, &list[batch])) break;
      ++next_victim;
      ++batch;
    }
    if (batch == 0 || MoveAll(list, batch) == 0) break;
    for (int i = 0; i < batch; ++i) {
      if (!list[i].done) continue;
      if (list[i].to == Place::kDevice) {
        ++came;
      } else if (room != 0) {
        --room;
      }
    }
  }
  return came;
}

// Device chunks that hold no byte of a live buffer.
uint64_t DeviceMemory::FreeChunks() const {
  uint64_t free = supply_.reserve(Place::kDevice);
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    free += table_.state(i) == ChunkState::kDevice && table_.live(i) == 0 ? 1 : 0;
  }
  return free;
}

// One MoveAll, as Arrived hears of it.
struct DeviceMemory::Moving {
  DeviceMemory* memory;
  Shift* list;
  Transfer* transfers;
  int lacking;  // transfers that have no chunk yet
};

// Inside a safepoint: puts each `fresh` under its chunk's address with the bytes that are there,
// each as soon as its copy is proven. Those not used go back to the supply. Returns how many moved.
uint64_t DeviceMemory::MoveAll(Shift* list, int count) {
  Transfer transfers[Mover::kBatch];
  // By direction, as the mover wants it, and in address order, so that neighbours are remapped with
  // one call.
  std::sort(list, list + count, [](const Shift& a, const Shift& b) {
    return a.to != b.to ? a.to < b.to : a.index < b.index;
  });
  int lacking = 0;
  for (int i = 0; i < count; ++i) {
    lacking += list[i].fresh.valid ? 0 : 1;
    if (list[i].fresh.valid) supply_.GiveSide(&list[i].fresh);
    transfers[i] = {ChunkAddress(list[i].index),
                    list[i].fresh,
                    list[i].to,
                    list[i].hash,
                    false,
                    list[i].copied};
  }
  Moving moving{this, list, transfers, lacking};
  mover_.Copy(transfers, count, {&moving, &Starts, &Arrived});
  uint64_t moved = 0;
  for (int i = 0; i < count; ++i) {
    if (list[i].done) {
      ++moved;
    } else if (list[i].fresh.valid) {
      supply_.Put(list[i].to, list[i].fresh);
    }
  }
  return moved;
}

// A free chunk is unmapped while former copies are on the link, a few at a time.
bool DeviceMemory::Starts(void* owner, int index) {
  constexpr int kFew = 4;
  Moving* moving = static_cast<Moving*>(owner);
  Chunk* fresh = &moving->list[index].fresh;
  if (fresh->valid) return true;
  ChunkSupply* supply = &moving->memory->supply_;
  const auto few = static_cast<ChunkIndex>(std::min(moving->lacking, kFew));
  if (supply->reserve(Place::kDevice) == 0) moving->memory->arena_.Release(few);
  --moving->lacking;
  if (!supply->Take(Place::kDevice, 0, fresh)) return false;
  supply->GiveSide(fresh);
  moving->transfers[index].target = *fresh;
  return true;
}

void DeviceMemory::Arrived(void* owner, int first, int count) {
  const Moving& moving = *static_cast<Moving*>(owner);
  for (const int end = first + count; first < end;) {
    int run = 0;
    while (first + run < end && moving.transfers[first + run].done &&
           moving.list[first + run].index == moving.list[first].index + run) {
      moving.list[first + run].hash = moving.transfers[first + run].hash;
      ++run;
    }
    if (run != 0) moving.memory->SwapRun(&moving.list[first], run);
    first += run != 0 ? run : 1;
  }
}

// Remaps neighbouring chunks, all or each for itself: what cannot be has its former chunk again.
void DeviceMemory::SwapRun(Shift* run, int count) {
  const auto chunks = static_cast<ChunkIndex>(count);
  const CUdeviceptr address = ChunkAddress(run->index);
  if (driver_->cuMemUnmap(address, chunks * kChunkBytes) != CUDA_SUCCESS) return;
  for (int i = 0; i < count; ++i) {
    const CUdeviceptr at = ChunkAddress(run[i].index);
    run[i].done = driver_->cuMemMap(at, kChunkBytes, 0, run[i].fresh.handle, 0) == CUDA_SUCCESS;
    if (!run[i].done &&
        driver_->cuMemMap(at, kChunkBytes, 0, backing_[run[i].index].handle, 0) != CUDA_SUCCESS) {
      SwapBack(run[i]);
    }
  }
  if (!SetAccess(run->index, chunks)) {
    for (int i = 0; i < count; ++i) {
      if (SetAccess(run[i].index, 1) || SetAccess(run[i].index, 1)) continue;
      driver_->cuMemUnmap(ChunkAddress(run[i].index), kChunkBytes);
      run[i].done = false;
      SwapBack(run[i]);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (!run[i].done) continue;
    const Chunk former = backing_[run[i].index];
    const bool out = run[i].to == Place::kHost;
    backing_[run[i].index] = run[i].fresh;
    hashes_[run[i].index] = out ? run[i].hash : ChunkHash();
    table_.SetState(run[i].index, out ? ChunkState::kHost : ChunkState::kDevice);
    supply_.Put(out ? Place::kDevice : Place::kHost, former);
    if (run[i].copied) {
      ++counters_.left_free;
    } else {
      ++(out ? counters_.moved_out : counters_.moved_in);
    }
    if (out) ++counters_.evicted;
    if (out && brought_count_ != 0) LoseBrought(run[i].index);
  }
}

bool DeviceMemory::SwapBack(const Shift& shift) {
  const Chunk& former = backing_[shift.index];
  if (MapChunk(shift.index, former) == CUDA_SUCCESS) return true;
  if (MapChunk(shift.index, former) == CUDA_SUCCESS) return true;
  Break("a chunk could not be mapped back after a failed move");
  return false;
}

void DeviceMemory::MakeResident(Block* const* blocks, int count, LaunchNumber launch) {
  ChunkIndex list[kMostMoves];
  uint32_t wanted = 0;
  for (int b = 0; b < count; ++b) {
    const ChunkIndex last = core::LastChunkOf(blocks[b]->offset, blocks[b]->size);
    for (ChunkIndex i = core::ChunkOf(blocks[b]->offset); i <= last && wanted < kMostMoves; ++i) {
      if (table_.state(i) != ChunkState::kHost) continue;
      bool seen = false;  // neighbours share boundary chunks
      for (uint32_t k = wanted; k-- > 0 && !seen;) seen = list[k] == i;
      if (!seen) list[wanted++] = i;
    }
  }
  if (wanted == 0) return;
  if (!CanReturn(launch)) {
    ++counters_.host_mapped_accesses;
    return;
  }
  const int64_t started = NowNs();
  {
    Safepoint safepoint(this);
    if (safepoint.reached()) {
      LookAhead();
      const uint32_t count = AddForeseen(list, wanted);
      Exchange(list, count, wanted, 0, launch);
      NoteBrought(list + wanted, count - wanted);
    }
  }
  uint32_t returned = 0;
  for (uint32_t i = 0; i < wanted; ++i) returned += table_.state(list[i]) == ChunkState::kDevice;
  counters_.returned += returned;
  if (returned < wanted) ++counters_.host_mapped_accesses;
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
  LookAhead();
  return HostRoom() != 0 && table_.Victim(launch) != table_.size();
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
    const uint64_t released = arena_.Release(static_cast<ChunkIndex>(held - allowed));
    if (held - allowed > released) Evict(held - allowed - released, ~uint64_t{0});
    const uint64_t left =
        supply_.held(Place::kDevice) > allowed ? supply_.held(Place::kDevice) - allowed : 0;
    const uint64_t now = supply_.reserve(Place::kDevice);
    supply_.Trim(Place::kDevice, now > left ? now - left : 0);
  }
  return supply_.held(Place::kDevice) <= allowed;
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
    uint64_t above = supply_.ShrinkToBudget(Place::kHost);
    if (above != 0) {
      DropCopies(true);
      above = supply_.ShrinkToBudget(Place::kHost);
    }
    if (above != 0) Prefetch(above);
    // A new daemon counts from zero.
    if (page.evict_request_bytes < evict_seen_) evict_seen_ = page.evict_request_bytes;
    if (page.prefetch_request_bytes < prefetch_seen_) prefetch_seen_ = page.prefetch_request_bytes;
    if (page.evict_request_bytes > evict_seen_) {
      const uint64_t chunks =
          (page.evict_request_bytes - evict_seen_ + kChunkBytes - 1) / kChunkBytes;
      Safepoint safepoint(this);
      if (safepoint.reached()) {
        Evict(chunks, ~uint64_t{0});
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
  ChunkIndex list[kMostMoves];
  uint32_t count = 0;
  for (ChunkIndex i = 0; i < table_.high_water() && count < kMostMoves; ++i) {
    if (count == chunks) break;
    if (table_.state(i) == ChunkState::kHost && table_.live(i) != 0) list[count++] = i;
  }
  if (count == 0) return;
  Safepoint safepoint(this);
  if (safepoint.reached()) counters_.prefetched += Return(list, count);
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
    const uint64_t released = arena_.Release(static_cast<ChunkIndex>(above));
    if (released < above) Evict(above - released, ~uint64_t{0});
    above = supply_.ShrinkToBudget(Place::kDevice);
  }
  shrink_pending_ = above != 0;
}

}  // namespace tidemark::interpose
