// Implementation of core/arena_allocator.h: requests, frees and the cache. What concerns mapping is
// in arena_mapping.cc, the validity walk in arena_validate.cc. Threads: as the header says.

#include "core/arena_allocator.h"

#include <new>

#include "core/slab_map.h"

namespace tidemark::core {
namespace {

constexpr int kCacheSearch = 16;  // entries of one bin that a request looks at
constexpr int kFenceSearch = 8;   // further holes looked at to avoid waiting for a fence
constexpr uint64_t kCacheLimit = 1024;

}  // namespace

ArenaAllocator::~ArenaAllocator() {
  if (starts_ == nullptr) return;
  for (ChunkIndex i = 0; i < table_->size(); ++i) delete starts_[i].slab;
}

bool ArenaAllocator::Init(ChunkTable* table) {
  table_ = table;
  starts_.reset(new (std::nothrow) Starts[table->size()]);
  if (starts_ == nullptr || !pool_.Reserve(kNodesPerCall)) return false;
  first_ = pool_.Take();
  first_->size = Bytes{table->size()} * kChunkBytes;
  NoteStart(first_);
  AddToIndex(first_);
  return true;
}

Block* ArenaAllocator::Allocate(Bytes bytes, FenceId passed, bool anywhere) {
  if (bytes > Bytes{table_->size()} * kChunkBytes) return nullptr;
  const Bytes size = RoundUp(bytes == 0 ? 1 : bytes, kBlockBytes);
  const bool small = size <= kSmallLimit && !anywhere;
  const Bytes alignment = size >= kLargeLimit ? kChunkBytes : kBlockBytes;
  Block* block = FromCache(size, small);
  if (block == nullptr && !pool_.Reserve(kNodesPerCall)) return nullptr;
  for (int round = 0; block == nullptr && round < 2; ++round) {
    if (round == 1 && cached_ == 0) break;
    if (round == 1) FoldCache();
    block = FromTree(small ? &small_ : &general_, size, alignment, passed);
    if (block == nullptr && small && AddSlab(passed)) {
      block = FromTree(&small_, size, alignment, passed);
    }
  }
  if (block != nullptr) MakeLive(block, bytes);
  return block;
}

void ArenaAllocator::Free(Block* block, FenceId fence) {
  requested_ -= block->requested;
  allocated_ -= block->size;
  --live_buffers_;
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  for (ChunkIndex chunk = ChunkOf(block->offset); chunk <= last; ++chunk) {
    table_->DropLive(chunk);
    if (table_->live(chunk) == 0) table_->UnpinAll(chunk);
  }
  if (fence > block->fence) block->fence = fence;
  block->state = Block::State::kCached;
  block->mapped = true;
  CacheBin& bin = cache_[BinOf(block->size)];
  block->left = bin.tail;
  block->right = nullptr;
  (bin.tail != nullptr ? bin.tail->right : bin.head) = block;
  bin.tail = block;
  if (++cached_ > kCacheLimit) FoldCache();
}

void ArenaAllocator::MakeLive(Block* block, Bytes requested) {
  block->state = Block::State::kLive;
  block->requested = requested;
  block->last_use = 0;
  block->tag = block->owner = 0;
  requested_ += requested;
  allocated_ += block->size;
  ++live_buffers_;
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  for (ChunkIndex chunk = ChunkOf(block->offset); chunk <= last; ++chunk) table_->AddLive(chunk);
}

Block* ArenaAllocator::Find(Bytes offset) const {
  if (offset >= Bytes{table_->size()} * kChunkBytes) return nullptr;
  Block* block = BlockAt(offset);
  return block != nullptr && block->state == Block::State::kLive ? block : nullptr;
}

int ArenaAllocator::BinOf(Bytes size) {
  return static_cast<int>(((size / kBlockBytes) * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

// Oldest first: its fence has had the most time to pass.
Block* ArenaAllocator::FromCache(Bytes size, bool small) {
  CacheBin& bin = cache_[BinOf(size)];
  Block* block = bin.head;
  for (int i = 0; block != nullptr; block = block->right) {
    if (block->size == size && block->small == small) break;
    if (++i == kCacheSearch) return nullptr;
  }
  if (block == nullptr) return nullptr;
  (block->left != nullptr ? block->left->right : bin.head) = block->right;
  (block->right != nullptr ? block->right->left : bin.tail) = block->left;
  block->left = block->right = nullptr;
  --cached_;
  return block;
}

void ArenaAllocator::FoldCache() {
  if (cached_ == 0) return;
  for (CacheBin& bin : cache_) {
    Block* block = bin.head;
    bin = CacheBin();
    while (block != nullptr) {
      Block* next = block->right;
      block->left = block->right = nullptr;
      Release(block);
      block = next;
    }
  }
  cached_ = 0;
}

// The best fit, unless it must wait and a hole of less than twice its size need not.
Block* ArenaAllocator::FromTree(FreeTree* tree, Bytes size, Bytes alignment, FenceId passed) {
  Block* best = nullptr;
  int looked = 0;
  for (Block* b = tree->AtLeast(size); b != nullptr; b = tree->After(b)) {
    if (RoundUp(b->offset, alignment) + size > b->end()) continue;
    if (best == nullptr) best = b;
    if (b->fence <= passed) {
      best = b;
      break;
    }
    if (++looked > kFenceSearch || b->size > 2 * best->size) break;
  }
  if (best == nullptr) return nullptr;
  RemoveFromIndex(best);
  return Carve(best, RoundUp(best->offset, alignment), size);
}

// `block` is free and in no index; what is left over on both sides goes back.
Block* ArenaAllocator::Carve(Block* block, Bytes offset, Bytes size) {
  if (offset != block->offset) {
    Block* upper = SplitAt(block, offset);
    AddToIndex(block);
    block = upper;
  }
  if (size != block->size) AddToIndex(SplitAt(block, offset + size));
  return block;
}

bool ArenaAllocator::AddSlab(FenceId passed) {
  SlabMap* map = new (std::nothrow) SlabMap;
  if (map == nullptr) return false;
  Block* block = FromTree(&general_, kChunkBytes, kChunkBytes, passed);
  if (block == nullptr) {
    delete map;
    return false;
  }
  starts_[ChunkOf(block->offset)].slab = map;
  block->small = true;
  ++slabs_;
  NoteStart(block);
  AddToIndex(block);
  return true;
}

void ArenaAllocator::DropSlab(Block* block) {
  Starts& starts = starts_[ChunkOf(block->offset)];
  delete starts.slab;
  starts.slab = nullptr;
  block->small = false;
  --slabs_;
}

void ArenaAllocator::Release(Block* block) {
  block->state = Block::State::kFree;
  block->mapped = true;
  block = MergeWithNeighbours(block);
  if (block->small && block->size == kChunkBytes) {
    DropSlab(block);
    block = MergeWithNeighbours(block);
  }
  AddToIndex(block);
}

Block* ArenaAllocator::SplitAt(Block* block, Bytes offset) {
  Block* upper = pool_.Take();
  upper->offset = offset;
  upper->size = block->end() - offset;
  upper->fence = block->fence;
  upper->small = block->small;
  upper->mapped = block->mapped;
  upper->previous = block;
  upper->next = block->next;
  if (upper->next != nullptr) upper->next->previous = upper;
  block->next = upper;
  block->size = offset - block->offset;
  NoteStart(upper);
  return upper;
}

// Slabs stay apart: each must be able to become a plain chunk again.
bool ArenaAllocator::CanMerge(const Block* low, const Block* high) const {
  if (low == nullptr || high == nullptr) return false;
  if (low->state != Block::State::kFree || high->state != Block::State::kFree) return false;
  if (low->small != high->small || low->mapped != high->mapped) return false;
  return !low->small || high->offset % kChunkBytes != 0;
}

// `block` is in no index; neighbours that merge leave theirs.
Block* ArenaAllocator::MergeWithNeighbours(Block* block) {
  if (CanMerge(block->previous, block)) {
    Block* low = block->previous;
    RemoveFromIndex(low);
    Absorb(low, block);
    block = low;
  }
  if (CanMerge(block, block->next)) {
    RemoveFromIndex(block->next);
    Absorb(block, block->next);
  }
  return block;
}

void ArenaAllocator::Absorb(Block* low, Block* high) {
  ForgetStart(high);
  low->size += high->size;
  if (high->fence > low->fence) low->fence = high->fence;
  low->next = high->next;
  if (low->next != nullptr) low->next->previous = low;
  pool_.Put(high);
}

void ArenaAllocator::AddToIndex(Block* block) {
  if (block->mapped) {
    TreeOf(block)->Insert(block);
    return;
  }
  block->left = nullptr;
  block->right = unmapped_;
  if (unmapped_ != nullptr) unmapped_->left = block;
  unmapped_ = block;
}

void ArenaAllocator::RemoveFromIndex(Block* block) {
  if (block->mapped) {
    TreeOf(block)->Remove(block);
    return;
  }
  (block->left != nullptr ? block->left->right : unmapped_) = block->right;
  if (block->right != nullptr) block->right->left = block->left;
  block->left = block->right = nullptr;
}

void ArenaAllocator::NoteStart(Block* block) {
  Starts& starts = starts_[ChunkOf(block->offset)];
  if (starts.first == nullptr || block->offset < starts.first->offset) starts.first = block;
  if (starts.slab != nullptr) starts.slab->Add(block);
}

void ArenaAllocator::ForgetStart(Block* block) {
  const ChunkIndex chunk = ChunkOf(block->offset);
  Starts& starts = starts_[chunk];
  if (starts.slab != nullptr) starts.slab->Remove(block);
  if (starts.first != block) return;
  Block* next = block->next;
  starts.first = next != nullptr && ChunkOf(next->offset) == chunk ? next : nullptr;
}

// A chunk in which no block starts lies inside one that started further down.
Block* ArenaAllocator::BlockAt(Bytes offset) const {
  ChunkIndex chunk = ChunkOf(offset);
  if (starts_[chunk].slab != nullptr) return starts_[chunk].slab->At(offset % kChunkBytes);
  Block* block = starts_[chunk].first;
  if (block == nullptr || block->offset > offset) {
    do {
      block = starts_[--chunk].first;
    } while (block == nullptr);
  }
  while (block->next != nullptr && block->next->offset <= offset) block = block->next;
  return block;
}

AllocatorStats ArenaAllocator::Totals() const {
  AllocatorStats stats;
  stats.requested = requested_;
  stats.allocated = allocated_;
  stats.live_buffers = live_buffers_;
  stats.slabs = slabs_;
  return stats;
}

AllocatorStats ArenaAllocator::Stats(FenceId passed) const {
  AllocatorStats stats = Totals();
  for (const Block* block = first_; block != nullptr; block = block->next) {
    if (block->state == Block::State::kLive || !block->mapped) continue;
    stats.free_mapped += block->size;
    if (block->fence > passed) stats.waiting += block->size;
    if (block->size > stats.largest_free_mapped) stats.largest_free_mapped = block->size;
  }
  return stats;
}

}  // namespace tidemark::core
