// Returns ahead of their use, for interpose/device_memory.h: where a launch waits for chunks in a
// safepoint, those that the next launches of the learned iteration will ask for come with them. One
// safepoint then serves many launches, and copies and remaps overlap.
//
// Nothing is evicted for it, and as far as can be told, nothing later because of it: what the job
// will allocate until a chunk's use, if it goes on as it did (demand.h), is left free.
//
// Not here: copies to the host ahead (ahead.cc). Threads: as the header says.

#include <algorithm>

#include "interpose/device_memory.h"

namespace tidemark::interpose {
namespace {

using core::Block;
using core::ChunkIndex;
using core::ChunkState;
using core::LaunchNumber;

// Beyond so many launches a use is too far for its chunk to take the place of anything else.
constexpr LaunchNumber kSoon = 192;
constexpr uint32_t kMostExtra = 64;  // chunks that come with those a launch waits for
constexpr uint64_t kSpare = 24;  // one in so many device chunks is left for what comes otherwise

}  // namespace

// Chunks that are in use now beyond what the allocated bytes would fill.
uint64_t DeviceMemory::PartlyUsed() const {
  uint64_t live = 0;
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) live += table_.live(i) != 0 ? 1 : 0;
  const uint64_t full = core::RoundUp(sums_.allocated(), core::kChunkBytes) / core::kChunkBytes;
  return live > full ? live - full : 0;
}

// Inside a safepoint, after LookAhead: appends to the `count` chunks of `list` those that are asked
// for next, the first of them first. Returns how many the list holds then.
uint32_t DeviceMemory::AddForeseen(ChunkIndex* list, uint32_t count) {
  const uint32_t period = iteration_.period();
  if (period == 0 || count >= kMostMoves) return count;
  const uint32_t wanted = count;
  for (ChunkIndex i = 0; i < table_.high_water() && count < kMostMoves; ++i) {
    const LaunchNumber next = table_.next_use(i);
    if (table_.state(i) != ChunkState::kHost || table_.live(i) == 0 || table_.pinned(i)) continue;
    if (next == core::ChunkTable::kNotForeseen || next > kSoon) continue;
    if (std::find(list, list + wanted, i) == list + wanted) list[count++] = i;
  }
  std::sort(list + wanted, list + count, [this](ChunkIndex a, ChunkIndex b) {
    const LaunchNumber x = table_.next_use(a), y = table_.next_use(b);
    return x != y ? x < y : a < b;
  });
  // Whatever is allocated until then and not on the host must fit, with the fragments that were
  // lately the most, fading.
  const uint64_t partly = partly_used_ = std::max(PartlyUsed(), partly_used_ - partly_used_ / 8);
  const uint64_t device = supply_.held(Place::kDevice) + supply_.room(Place::kDevice);
  uint32_t most = 0;
  LaunchNumber looked = 0;
  uint32_t kept = wanted;
  for (; kept < count && kept - wanted < kMostExtra; ++kept) {
    if (brought_count_ + kept - wanted >= kMostBrought) break;
    const LaunchNumber until = table_.next_use(list[kept]);
    const uint32_t more = demand_.Most(looked, until, period);
    looked = until;
    if (more == Demand::kUnknown) break;
    most = std::max(most, more);
    if (table_.host_chunks() < kept + 1) break;
    const uint64_t on_host = table_.host_chunks() - (kept + 1);
    if (most + partly + device / kSpare + 1 > device + on_host) break;
  }
  return kept;
}

// After they came.
void DeviceMemory::NoteBrought(const ChunkIndex* list, uint32_t count) {
  for (uint32_t i = 0; i < count && brought_count_ < kMostBrought; ++i) {
    if (table_.state(list[i]) != ChunkState::kDevice) continue;
    brought_[brought_count_++] = {list[i], launch_};
    ++counters_.brought_ahead;
    ++counters_.prefetched;
  }
}

// Who was used since it came need not be watched any longer. The table knows the last uses.
void DeviceMemory::JudgeBrought() {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < brought_count_; ++i) {
    if (table_.last_use(brought_[i].chunk) > brought_[i].launch) {
      ++counters_.brought_used;
    } else {
      brought_[kept++] = brought_[i];
    }
  }
  brought_count_ = kept;
}

// The buffer is about to go.
void DeviceMemory::JudgeBrought(const Block* freed) {
  const ChunkIndex first = core::ChunkOf(freed->offset);
  const ChunkIndex last = core::LastChunkOf(freed->offset, freed->size);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < brought_count_; ++i) {
    const Brought& brought = brought_[i];
    const bool inside = brought.chunk >= first && brought.chunk <= last;
    if (inside && freed->last_use > brought.launch) {
      ++counters_.brought_used;
    } else if (inside && table_.live(brought.chunk) == 1) {
      ++counters_.brought_wasted;
    } else {
      brought_[kept++] = brought;
    }
  }
  brought_count_ = kept;
}

// The chunk leaves.
void DeviceMemory::LoseBrought(ChunkIndex chunk) {
  for (uint32_t i = 0; i < brought_count_; ++i) {
    if (brought_[i].chunk != chunk) continue;
    brought_[i] = brought_[--brought_count_];
    ++counters_.brought_wasted;
    return;
  }
}

}  // namespace tidemark::interpose
