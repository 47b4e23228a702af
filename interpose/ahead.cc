// Copies ahead of leaving, for interpose/device_memory.h: where a plan is followed, a buffer that
// it wants away is copied to the host right after its last use, while the job computes. When the
// memory is needed, the chunk leaves without a way over the link, if its bytes are still those.
//
// Not here: the copies themselves (early_copies.h). Threads: as the header says; no copy starts
// while a thread is between the gate and the driver, for its work would not be waited for.

#include "interpose/context_scope.h"
#include "interpose/device_memory.h"

namespace tidemark::interpose {
namespace {

using core::Block;
using core::Bytes;
using core::ChunkIndex;
using core::ChunkState;
using core::kChunkBytes;
using core::LaunchNumber;

// Launches until the next use below which a copy is not worth its start.
constexpr LaunchNumber kFar = 16;
constexpr uint32_t kMostAhead = 64;  // copies that wait for their chunks to leave

}  // namespace

void DeviceMemory::NoteLeaving(const Block* block) {
  if (!follower_.following(iteration_)) return;
  bool known = false;
  const core::NextUse next = iteration_.Next(NameOf(block), &known);
  if (!known || next.is_end || next.launches < kFar) return;
  if (!follower_.LeavesWithin(iteration_, NameOf(block), next.launches)) return;
  const ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
    if (due_count_ == kMostDue) return;
    due_[(due_first_ + due_count_++) % kMostDue] = i;
  }
}

// Nobody but this device's only context reaches the memory, and the host may ask for copies.
bool DeviceMemory::MayCopyAhead() const {
  return moves_allowed_ && context_count_ == 1 && peer_count_ == 0 && !streams.capturing() &&
         !broken();
}

void DeviceMemory::StartCopiesSlow() {
  if (!MayCopyAhead()) return;
  const ContextScope scope(*driver_, contexts_[0]);
  bool started = false;
  while (due_count_ != 0 && early_.count() < ahead_) {
    const ChunkIndex chunk = due_[due_first_];
    due_first_ = (due_first_ + 1) % kMostDue;
    --due_count_;
    if (!IsIdle(chunk)) continue;
    if (!started &&
        (!scope.ok() || !early_.Prepare(table_.size()) || !streams.Follow(early_.stream()))) {
      return;
    }
    started = true;
    CopyAhead(chunk);
  }
  if (started) early_.EndBatch();
}

// Wholly in use by buffers whose next use is far: what is free would be given out and written.
bool DeviceMemory::IsIdle(ChunkIndex chunk) {
  if (table_.state(chunk) != ChunkState::kDevice || table_.pinned(chunk) || early_.Has(chunk)) {
    return false;
  }
  const Bytes begin = Bytes{chunk} * kChunkBytes;
  const Block* block = arena_.allocator().BlockAt(begin);
  for (; block != nullptr && block->offset < begin + kChunkBytes; block = block->next) {
    if (block->state != Block::State::kLive) return false;
    bool known = false;
    const core::NextUse next = iteration_.Next(NameOf(block), &known);
    if (!known || next.launches < kFar) return false;
  }
  return true;
}

// No lease on the way of a launch: the next safepoint gets what is lacking.
void DeviceMemory::CopyAhead(ChunkIndex chunk) {
  Chunk target;
  if (session_->attached() && supply_.reserve(Place::kHost) == 0) {
    ++host_lacking_;
    return;
  }
  if (!supply_.Take(Place::kHost, 0, &target)) return;
  supply_.GiveSide(&target);
  if (target.side == 0 || !early_.Start(chunk, ChunkAddress(chunk), target)) {
    supply_.Put(Place::kHost, target);
    return;
  }
  ++counters_.copied_ahead;
  ++counters_.moved_out;
}

void DeviceMemory::ShieldCopies(const Block* block, const StreamRecord* stream) {
  if (early_.count() == 0) return;
  const ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
    if (streams.capturing()) {
      early_.MakeStale(i);  // the graph's launches wait
    } else {
      early_.Touch(i, stream != nullptr ? &stream->handle : nullptr);
    }
  }
}

// As a safepoint begins, which waits for copies that are on their way: where the job's own work is
// done before them, fewer run ahead from now on, else more.
void DeviceMemory::JudgeCopies() {
  if (!early_.InFlight() || !streams.Synchronize(streams.open_epoch())) return;
  if (!early_.Done()) {
    ahead_ = ahead_ / 2 > 0 ? ahead_ / 2 : 1;
  } else if (ahead_ < kMostAhead) {
    ++ahead_;
  }
}

// In a safepoint, before chunks are chosen.
void DeviceMemory::SettleCopies() {
  if (host_lacking_ != 0) supply_.Refill(Place::kHost, host_lacking_);
  host_lacking_ = 0;
  if (early_.count() == 0) return;
  early_.Collect();
  DropCopies(false);
}

void DeviceMemory::DropCopies(bool all) {
  Chunk target;
  while (early_.Pop(all, &target)) supply_.Put(Place::kHost, target);
}

void DeviceMemory::DropCopy(ChunkIndex chunk) {
  Chunk target;
  if (early_.Drop(chunk, &target)) supply_.Put(Place::kHost, target);
}

// The host chunk for a chunk that leaves: the one its bytes were copied to, or any.
bool DeviceMemory::TakeHostChunk(uint64_t more, Shift* shift) {
  shift->copied = early_.Take(shift->index, &shift->fresh, &shift->hash);
  return shift->copied || early_.Drop(shift->index, &shift->fresh) ||
         supply_.Take(Place::kHost, more, &shift->fresh) || early_.Pop(true, &shift->fresh);
}

}  // namespace tidemark::interpose
