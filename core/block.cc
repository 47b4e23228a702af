// Implementation of core/block.h. Threads: as the header says.

#include "core/block.h"

#include <new>

namespace tidemark::core {

struct BlockPool::Array {
  static constexpr int kCount = 256;
  Array* next = nullptr;
  Block blocks[kCount];
};

BlockPool::~BlockPool() {
  while (arrays_ != nullptr) {
    Array* next = arrays_->next;
    delete arrays_;
    arrays_ = next;
  }
}

bool BlockPool::Grow(int count) {
  while (free_count_ < count) {
    Array* array = new (std::nothrow) Array;
    if (array == nullptr) return false;
    array->next = arrays_;
    arrays_ = array;
    made_ += Array::kCount;
    for (int i = Array::kCount; i-- > 0;) Put(&array->blocks[i]);
  }
  return true;
}

Block* BlockPool::Take() {
  Block* block = free_;
  free_ = block->next;
  --free_count_;
  *block = Block();
  return block;
}

}  // namespace tidemark::core
