// Implementation of core/arena_allocator.h: requests, frees, the cache, and how blocks split and
// merge. Where a request goes is in arena_place.cc, what concerns mapping in arena_mapping.cc, the
// validity walk in arena_validate.cc. Threads: as the header says.

#include "core/arena_allocator.h"

#include <algorithm>
#include <bit>
#include <new>

#include "core/slab_map.h"

namespace tidemark::core {
namespace {

constexpr int kCacheSearch = 8;  // entries of one bin that a request looks at
constexpr uint64_t kCacheLimit = 512;
constexpr Bytes kCacheBytes = 16 * kMiB;

}  // namespace

ArenaAllocator::~ArenaAllocator() {
  delete spare_slab_;
  if (starts_ == nullptr) return;
  for (ChunkIndex i = 0; i < table_->size(); ++i) delete starts_[i].slab;
}

bool ArenaAllocator::Init(ChunkTable* table) {
  table_ = table;
  starts_.reset(new (std::nothrow) Starts[table->size()]);
  if (starts_ == nullptr || !start_bits_.Resize((table->size() + 63) / 64, 0)) return false;
  if (Bytes{table->size()} * kChunkBytes >= HoleIndex::kMostBytes || !ReserveMark()) return false;
  first_ = pool_.Take();
  first_->Reset();
  first_->size = Bytes{table->size()} * kChunkBytes;
  NoteStart(first_);
  AddToIndex(first_);
  return true;
}

Block* ArenaAllocator::Allocate(const Request& request) {
  if (request.passed > passed_) passed_ = request.passed;
  if (request.bytes > Bytes{table_->size()} * kChunkBytes) return nullptr;
  const Bytes size = RoundUp(request.bytes == 0 ? 1 : request.bytes, kBlockBytes);
  const bool small = size <= kSmallLimit && !request.anywhere;
  Block* block = small ? FromCache(size, request.stream) : FromParked(size, request.stream);
  if (block == nullptr) {
    if (!ReserveMark()) return nullptr;
    block = Choose(request, size, small);
    if (block == nullptr) return nullptr;
    if (size % kChunkBytes == 0 && lasting_.MayLast(size)) gaps_ += GapBefore(block);
    table_->AddLive(ChunkOf(block->offset), LastChunkOf(block->offset, block->size));
  }
  MakeLive(block, request);
  lasting_.Made(size);
  return block;
}

Block* ArenaAllocator::AllocateAt(const Request& request, Bytes offset) {
  if (request.passed > passed_) passed_ = request.passed;
  const Bytes size = RoundUp(request.bytes == 0 ? 1 : request.bytes, kBlockBytes);
  Block* block = FromParkedAt(size, offset);
  if (block == nullptr) {
    if (!ReserveMark()) return nullptr;
    FoldParked();
    Block* hole = BlockAt(offset);
    if (!IsHole(hole) || hole->end() < offset + size) return nullptr;
    block = TakeAt(holes_.Locate(hole->offset), hole, offset, size);
    table_->AddLive(ChunkOf(block->offset), LastChunkOf(block->offset, block->size));
  }
  MakeLive(block, request);
  lasting_.Made(size);
  return block;
}

Block* ArenaAllocator::Choose(const Request& request, Bytes size, bool small) {
  if (!small) FoldParked();
  for (int round = 0; round < 2; ++round) {
    Block* block = small ? FromSlabs(size, request.stream)
                   : request.anywhere
                       ? FromAnywhere(size, request.stream)
                       : FromHoles(size, AlignmentFor(size, request.bytes), request.stream);
    if (block != nullptr || (cached_ == 0 && parked_count_ == 0)) return block;
    FoldCache();
  }
  return nullptr;
}

void ArenaAllocator::Free(Block* block, FenceId fence, StreamId stream) {
  CountOut(block);
  lasting_.Freed(block->size);
  AddFence(block, fence, stream);
  if (Keep(block)) return;
  NoteRun();
  // Kept neighbours would keep a chunk from losing its pins.
  if (table_->pinned_chunks() != 0) FoldCache();
  table_->DropLive(ChunkOf(block->offset), LastChunkOf(block->offset, block->size));
  Release(block);
}

// In the cache or parked, if there is room. Its chunks count it as if it were live.
bool ArenaAllocator::Keep(Block* block) {
  if (table_->pinned_chunks() != 0) return false;
  if (block->small) {
    if (cached_ == kCacheLimit || cached_bytes_ + block->size > kCacheBytes) return false;
    const int bin = BinOf(block->size, block->stream);
    cache_[bin].Append(block);
    cache_bits_[bin / 64] |= uint64_t{1} << bin % 64;
    ++cached_;
    cached_bytes_ += block->size;
  } else {
    if (parked_count_ == kParked) return false;
    parked_[parked_count_++] = block;
  }
  block->state = Block::State::kCached;
  block->mapped = true;
  return true;
}

void ArenaAllocator::CountHeld(const Block* block, bool add) {
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  add ? table_->AddLive(ChunkOf(block->offset), last)
      : table_->DropLive(ChunkOf(block->offset), last);
}

Block* ArenaAllocator::Find(Bytes offset) const {
  if (offset >= Bytes{table_->size()} * kChunkBytes) return nullptr;
  Block* block = BlockAt(offset);
  return block != nullptr && block->state == Block::State::kLive ? block : nullptr;
}

int ArenaAllocator::BinOf(Bytes size, StreamId stream) {
  return static_cast<int>(
      ((size / kBlockBytes + Bytes{stream} * 4097) * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

// The newest of the request's own stream, whose bytes are likely still in the device's cache. Where
// the stream is not known, the oldest: its fence has had the most time to pass.
Block* ArenaAllocator::FromCache(Bytes size, StreamId stream) {
  const int number = BinOf(size, stream);
  BlockList& bin = cache_[number];
  const bool oldest = stream == kAnyStream;
  Block* block = oldest ? bin.head : bin.tail;
  for (int i = 0; block != nullptr; block = oldest ? block->right : block->left) {
    if (block->size == size && block->stream == stream) break;
    if (++i == kCacheSearch) return nullptr;
  }
  if (block == nullptr) return nullptr;
  bin.Remove(block);
  if (bin.head == nullptr) cache_bits_[number / 64] &= ~(uint64_t{1} << number % 64);
  --cached_;
  cached_bytes_ -= size;
  return block;
}

// The newest of the same size that need not wait.
Block* ArenaAllocator::FromParked(Bytes size, StreamId stream) {
  for (int i = parked_count_; i-- > 0;) {
    Block* block = parked_[i];
    if (block->size != size || Waits(block, stream)) continue;
    TakeParked(i);
    return block;
  }
  return nullptr;
}

Block* ArenaAllocator::FromParkedAt(Bytes size, Bytes offset) {
  for (int i = 0; i < parked_count_; ++i) {
    Block* block = parked_[i];
    if (block->offset != offset || block->size != size) continue;
    TakeParked(i);
    return block;
  }
  return nullptr;
}

void ArenaAllocator::TakeParked(int i) {
  --parked_count_;
  for (; i < parked_count_; ++i) parked_[i] = parked_[i + 1];
}

void ArenaAllocator::FoldParked() {
  while (parked_count_ > 0) {
    Block* block = parked_[--parked_count_];
    table_->DropLive(ChunkOf(block->offset), LastChunkOf(block->offset, block->size));
    Release(block);
  }
}

void ArenaAllocator::FoldCache() {
  FoldParked();
  if (cached_ == 0) return;
  for (int word = 0; word < kCacheBins / 64; ++word) {
    for (uint64_t bits = cache_bits_[word]; bits != 0; bits &= bits - 1) {
      FoldBin(word * 64 + std::countr_zero(bits));
    }
    cache_bits_[word] = 0;
  }
  cached_ = 0;
  cached_bytes_ = 0;
}

void ArenaAllocator::FoldBin(int bin) {
  Block* block = cache_[bin].head;
  cache_[bin] = BlockList();
  while (block != nullptr) {
    Block* next = block->right;
    table_->DropLive(ChunkOf(block->offset), ChunkOf(block->offset));
    Release(block);
    block = next;
  }
}

void ArenaAllocator::DropSlab(Block* block) {
  Starts& starts = starts_[ChunkOf(block->offset)];
  delete spare_slab_;
  spare_slab_ = starts.slab;
  starts.slab = nullptr;
  block->small = false;
  --slabs_;
}

void ArenaAllocator::Release(Block* block) {
  block->state = Block::State::kFree;
  block->mapped = true;
  if (!block->small) return ReturnHole(block);
  block = MergeWithNeighbours(block);
  if (block->size != kChunkBytes) return AddToIndex(block);
  DropSlab(block);
  ReturnHole(block);
}

// As merging and adding, with one look for the place in the index.
void ArenaAllocator::ReturnHole(Block* block) {
  Block* low = CanMerge(block->previous, block) ? block->previous : nullptr;
  Block* high = CanMerge(block, block->next) ? block->next : nullptr;
  if (low == nullptr && high == nullptr) return AddToIndex(block);
  const HoleIndex::Place place = holes_.Locate((low != nullptr ? low : high)->offset);
  if (high != nullptr) Absorb(block, high);
  if (low != nullptr) Absorb(low, block);
  if (low != nullptr) block = low;
  holes_.Replace(place, block);
  if (low != nullptr && high != nullptr) holes_.RemoveAt(holes_.After(place));
  runs_.Changed(block);
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

Block* ArenaAllocator::SplitAt(Block* block, Bytes offset) {
  Block* upper = pool_.Take();
  upper->Reset();
  upper->offset = offset;
  upper->size = block->end() - offset;
  upper->fence = block->fence;
  upper->stream = block->stream;
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
  AddFence(low, high->fence, high->stream);
  low->next = high->next;
  if (low->next != nullptr) low->next->previous = low;
  pool_.Put(high);
}

void ArenaAllocator::NoteStart(Block* block) {
  const ChunkIndex chunk = ChunkOf(block->offset);
  Starts& starts = starts_[chunk];
  if (starts.first == nullptr || block->offset < starts.first->offset) starts.first = block;
  if (starts.slab != nullptr) starts.slab->Add(block);
  start_bits_[chunk / 64] |= uint64_t{1} << chunk % 64;
}

void ArenaAllocator::ForgetStart(Block* block) {
  const ChunkIndex chunk = ChunkOf(block->offset);
  Starts& starts = starts_[chunk];
  if (starts.slab != nullptr) starts.slab->Remove(block);
  if (starts.first != block) return;
  Block* next = block->next;
  starts.first = next != nullptr && ChunkOf(next->offset) == chunk ? next : nullptr;
  if (starts.first == nullptr) start_bits_[chunk / 64] &= ~(uint64_t{1} << chunk % 64);
}

// A chunk in which no block starts lies inside one that started further down.
Block* ArenaAllocator::BlockAt(Bytes offset) const {
  const ChunkIndex chunk = ChunkOf(offset);
  if (starts_[chunk].slab != nullptr) return starts_[chunk].slab->At(offset % kChunkBytes);
  Block* block = starts_[chunk].first;
  if (block == nullptr || block->offset > offset) {
    ChunkIndex word = chunk / 64;
    uint64_t bits = start_bits_[word] & ((uint64_t{1} << chunk % 64) - 1);
    while (bits == 0) bits = start_bits_[--word];
    block = starts_[word * 64 + 63 - static_cast<ChunkIndex>(std::countl_zero(bits))].first;
  }
  while (block->end() <= offset) block = block->next;  // of the last one, too, only itself is read
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

AllocatorStats ArenaAllocator::Stats(FenceId passed, const HeldPlaces* places) const {
  AllocatorStats stats = Totals();
  if (places != nullptr) AddHeldTo(&stats, passed, *places);
  for (const Block* block = first_; block != nullptr; block = block->next) {
    if (block->state == Block::State::kLive || !block->mapped) continue;
    if (block->state == Block::State::kHeld) continue;
    stats.free_mapped += block->size;
    if (block->fence > passed) stats.waiting += block->size;
    if (block->size > stats.largest_free_mapped) stats.largest_free_mapped = block->size;
  }
  return stats;
}

}  // namespace tidemark::core
