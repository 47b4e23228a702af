// Implementation of core/slot_index.h. Threads: as the header says.

#include "core/slot_index.h"

namespace tidemark::core {

bool SlotIndex::Init(uint32_t slots) {
  size_t total = 0;
  for (uint32_t count = slots; levels_ < kMostLevels;) {
    count = (count + kFan - 1) / kFan * kFan;
    level_[levels_++].count = count;
    total += count;
    if (count <= kFan) break;
    count /= kFan;
  }
  if (!storage_.Resize(total, 0)) return false;
  Value* next = storage_.begin();
  for (int i = 0; i < levels_; ++i) {
    level_[i].values = next;
    next += level_[i].count;
  }
  return true;
}

SlotIndex::Value SlotIndex::MaximumOf(const Value* group) const {
  Value most = 0;
  for (uint32_t i = 0; i < kFan; ++i) most = group[i] > most ? group[i] : most;
  return most;
}

// Stops at the first maximum that does not change.
void SlotIndex::Set(uint32_t slot, Value value) {
  Value old = level_[0].values[slot];
  level_[0].values[slot] = value;
  for (int i = 1; i < levels_; ++i) {
    const uint32_t above = slot / kFan;
    Value* maximum = &level_[i].values[above];
    if (value <= *maximum && old < *maximum) return;
    if (value < *maximum) value = MaximumOf(&level_[i - 1].values[above * kFan]);
    old = *maximum;
    if (old == value) return;
    *maximum = value;
    slot = above;
  }
}

uint32_t SlotIndex::Find(uint32_t from, Value least) const {
  int at = from == 0 ? levels_ - 1 : 0;
  uint32_t slot = from;
  for (;; ++at, slot = slot / kFan) {
    if (at == levels_ || slot >= level_[at].count) return kNone;
    const Value* values = level_[at].values;
    const uint32_t end = slot / kFan * kFan + kFan;
    while (slot < end && values[slot] < least) ++slot;
    if (slot < end) break;
  }
  while (at-- > 0) {
    slot *= kFan;
    while (level_[at].values[slot] < least) ++slot;
  }
  return slot;
}

bool SlotIndex::Validate() const {
  for (int i = 1; i < levels_; ++i) {
    for (uint32_t above = 0; above < level_[i - 1].count / kFan; ++above) {
      if (level_[i].values[above] != MaximumOf(&level_[i - 1].values[above * kFan])) return false;
    }
  }
  return true;
}

}  // namespace tidemark::core
