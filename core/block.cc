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

bool BlockPool::Reserve(int count) {
  while (free_count_ < count) {
    Array* array = new (std::nothrow) Array;
    if (array == nullptr) return false;
    array->next = arrays_;
    arrays_ = array;
    for (Block& block : array->blocks) Put(&block);
  }
  return true;
}

Block* BlockPool::Take() {
  Block* block = free_;
  free_ = block->next;
  --free_count_;
  *block = Block();
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  block->priority = random_;
  return block;
}

void BlockPool::Put(Block* block) {
  block->next = free_;
  free_ = block;
  ++free_count_;
}

bool FreeTree::Less(const Block* a, const Block* b) {
  return a->size != b->size ? a->size < b->size : a->offset < b->offset;
}

void FreeTree::Split(Block* root, const Block* at, Block** low, Block** high) {
  if (root == nullptr) {
    *low = *high = nullptr;
  } else if (Less(root, at)) {
    Split(root->right, at, &root->right, high);
    *low = root;
  } else {
    Split(root->left, at, low, &root->left);
    *high = root;
  }
}

Block* FreeTree::Merge(Block* low, Block* high) {
  if (low == nullptr) return high;
  if (high == nullptr) return low;
  if (low->priority > high->priority) {
    low->right = Merge(low->right, high);
    return low;
  }
  high->left = Merge(low, high->left);
  return high;
}

Block* FreeTree::Insert(Block* root, Block* block) {
  if (root == nullptr || block->priority > root->priority) {
    Split(root, block, &block->left, &block->right);
    return block;
  }
  if (Less(block, root)) {
    root->left = Insert(root->left, block);
  } else {
    root->right = Insert(root->right, block);
  }
  return root;
}

Block* FreeTree::Remove(Block* root, Block* block) {
  if (root == block) {
    Block* merged = Merge(root->left, root->right);
    block->left = block->right = nullptr;
    return merged;
  }
  if (Less(block, root)) {
    root->left = Remove(root->left, block);
  } else {
    root->right = Remove(root->right, block);
  }
  return root;
}

Block* FreeTree::AtLeast(Bytes size) const {
  Block* found = nullptr;
  for (Block* node = root_; node != nullptr;) {
    if (node->size >= size) {
      found = node;
      node = node->left;
    } else {
      node = node->right;
    }
  }
  return found;
}

Block* FreeTree::After(const Block* block) const {
  Block* found = nullptr;
  for (Block* node = root_; node != nullptr;) {
    if (Less(block, node)) {
      found = node;
      node = node->left;
    } else {
      node = node->right;
    }
  }
  return found;
}

Block* FreeTree::Largest() const {
  Block* node = root_;
  while (node != nullptr && node->right != nullptr) node = node->right;
  return node;
}

}  // namespace tidemark::core
