// Implementation of interpose/pointer_tables.h. Threads: as the header says.

#include "interpose/pointer_tables.h"

#include <string.h>

namespace tidemark::interpose {

void PointerTables::Set(CUdeviceptr table, const CUdeviceptr* targets, int count) {
  Table* slot = nullptr;
  Table* spare = nullptr;
  for (Table& entry : tables_) {
    if (entry.base == table) slot = &entry;
    if (entry.base == 0 && spare == nullptr) spare = &entry;
  }
  if (count == 0) {
    if (slot == nullptr) return;
    slot->base = 0;
    --used_;
    return;
  }
  if (slot == nullptr && spare != nullptr) {
    slot = spare;
    ++used_;
  }
  if (slot == nullptr) {
    slot = &tables_[next_];
    next_ = (next_ + 1) % kTables;
  }
  slot->base = table;
  slot->count = count < kTargets ? count : kTargets;
  memcpy(slot->targets, targets, static_cast<size_t>(slot->count) * sizeof(CUdeviceptr));
}

const CUdeviceptr* PointerTables::Targets(CUdeviceptr table, int* count) const {
  for (const Table& entry : tables_) {
    if (entry.base != table) continue;
    *count = entry.count;
    return entry.targets;
  }
  return nullptr;
}

}  // namespace tidemark::interpose
