// Implementation of core/block.h. Threads: as the header says.

#include "core/block.h"

#include <cstdlib>
#include <new>

namespace tidemark::core {

struct BlockPool::Blocks {
  Blocks* next = nullptr;
  Block blocks[kAtOnce];
};

BlockPool::~BlockPool() {
  while (arrays_ != nullptr) {
    Blocks* next = arrays_->next;
    std::free(arrays_);
    arrays_ = next;
  }
}

// Not by `new`: that of aligned types is not to be had inside the preloaded library.
bool BlockPool::Grow(int count) {
  while (free_count_ < count) {
    void* memory = std::aligned_alloc(alignof(Blocks), sizeof(Blocks));
    if (memory == nullptr) return false;
    auto* array = new (memory) Blocks;
    array->next = arrays_;
    arrays_ = array;
    made_ += kAtOnce;
    for (int i = kAtOnce; i-- > 0;) Put(&array->blocks[i]);
  }
  return true;
}

}  // namespace tidemark::core
