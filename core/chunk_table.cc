// Implementation of core/chunk_table.h. Threads: as the header says.

#include "core/chunk_table.h"

#include <algorithm>
#include <new>

namespace tidemark::core {

bool ChunkTable::Init(ChunkIndex chunks) {
  slots_.reset(new (std::nothrow) Slot[chunks]);
  live_.reset(new (std::nothrow) uint16_t[chunks]());
  inside_.reset(new (std::nothrow) uint64_t[chunks / 64 + 2]());
  if (slots_ == nullptr || live_ == nullptr || inside_ == nullptr) return false;
  size_ = chunks;
  count_[0] = chunks;
  return true;
}

void ChunkTable::SetState(ChunkIndex chunk, ChunkState state) {
  --count_[static_cast<int>(slots_[chunk].state)];
  ++count_[static_cast<int>(state)];
  slots_[chunk].state = state;
  if (state != ChunkState::kUnmapped && chunk >= high_water_) high_water_ = chunk + 1;
}

bool ChunkTable::DropLive(ChunkIndex chunk) {
  if (live_[chunk] == 0) return false;
  --live_[chunk];
  return true;
}

void ChunkTable::UnpinIdle(ChunkIndex first, ChunkIndex last) {
  for (ChunkIndex i = first; i <= last; ++i) {
    if (live(i) == 0) UnpinAll(i);
  }
}

void ChunkTable::Pin(ChunkIndex chunk, PinReason reason) {
  if (count_rest_ != nullptr) count_rest_(counter_);  // it ends with the chunk's last buffer
  Slot& slot = slots_[chunk];
  uint16_t& count = slot.pins[static_cast<int>(reason)];
  if (count == UINT16_MAX / kPinReasons) return;  // saturated: stays pinned, never wraps
  ++count;
  if (slot.pins_total++ == 0) ++pinned_;
}

bool ChunkTable::Unpin(ChunkIndex chunk, PinReason reason) {
  Slot& slot = slots_[chunk];
  uint16_t& count = slot.pins[static_cast<int>(reason)];
  if (count == 0) return false;
  --count;
  if (--slot.pins_total == 0) --pinned_;
  return true;
}

void ChunkTable::UnpinAll(ChunkIndex chunk) {
  Slot& slot = slots_[chunk];
  if (slot.pins_total == 0) return;
  for (uint16_t& count : slot.pins) count = 0;
  slot.pins_total = 0;
  --pinned_;
}

void ChunkTable::ForgetNextUses() {
  for (ChunkIndex i = 0; i < high_water_; ++i) slots_[i].next_use = kNotForeseen;
}

bool ChunkTable::Better(ChunkIndex a, ChunkIndex b) const {
  const Slot& x = slots_[a];
  const Slot& y = slots_[b];
  if (x.held_back != y.held_back) return y.held_back;
  if (x.next_use != y.next_use) return x.next_use > y.next_use;
  if (x.last_use != y.last_use) return x.last_use < y.last_use;
  return a < b;
}

// A heap of the best ones so far, the worst of them on top.
uint32_t ChunkTable::Victims(LaunchNumber before, ChunkIndex* list, uint32_t most) const {
  const auto better = [this](ChunkIndex a, ChunkIndex b) { return Better(a, b); };
  uint32_t count = 0;
  for (ChunkIndex i = 0; i < high_water_ && most != 0; ++i) {
    const Slot& slot = slots_[i];
    if (slot.state != ChunkState::kDevice || live(i) == 0 || slot.pins_total != 0) continue;
    if (slot.last_use >= before) continue;
    if (count == most) {
      if (!Better(i, list[0])) continue;
      std::pop_heap(list, list + count--, better);
    }
    list[count++] = i;
    std::push_heap(list, list + count, better);
  }
  std::sort_heap(list, list + count, better);
  return count;
}

bool ChunkTable::Validate() const {
  ChunkIndex count[3] = {};
  ChunkIndex pinned = 0;
  for (ChunkIndex i = 0; i < size_; ++i) {
    const Slot& slot = slots_[i];
    ++count[static_cast<int>(slot.state)];
    unsigned pins = 0;
    for (uint16_t reason : slot.pins) pins += reason;
    if (pins != slot.pins_total) return false;
    if (pins != 0) ++pinned;
    if (slot.state == ChunkState::kUnmapped && (counted(i) != 0 || pins != 0)) return false;
    if (slot.state != ChunkState::kUnmapped && i >= high_water_) return false;
  }
  return count[0] == count_[0] && count[1] == count_[1] && count[2] == count_[2] &&
         pinned == pinned_;
}

}  // namespace tidemark::core
