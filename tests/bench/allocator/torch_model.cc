// Implementation of tests/bench/allocator/torch_model.h. Threads: none.

#include "tests/bench/allocator/torch_model.h"

#include <tuple>

namespace tidemark::bench {
namespace {

constexpr Bytes kRounding = 512;
constexpr Bytes kSmallRequest = kMiB;
constexpr Bytes kSmallSegment = 2 * kMiB;
constexpr Bytes kMidSegment = 20 * kMiB;
constexpr Bytes kOwnSegmentFrom = 10 * kMiB;
constexpr Bytes kLargeRounding = 2 * kMiB;
constexpr Bytes kRangeBytes = Bytes{1} << 46;  // more address space than any device has memory

Bytes SegmentFor(Bytes size) {
  if (size <= kSmallRequest) return kSmallSegment;
  if (size < kOwnSegmentFrom) return kMidSegment;
  return RoundUp(size, kLargeRounding);
}

}  // namespace

bool TorchModel::BySize::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
}

bool TorchModel::ByAddress::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->address) < std::tie(b->stream, b->address);
}

TorchModel::~TorchModel() {
  std::set<Block*> all;
  const auto add = [&](Block* block) {
    while (block->previous != nullptr) block = block->previous;
    for (; block != nullptr && all.insert(block).second;) block = block->next;
  };
  for (const auto& [id, block] : live_) add(block);
  for (Pool* pool : {&small_, &large_}) {
    for (Block* block : pool->free) add(block);
    for (Block* block : pool->unmapped) add(block);
  }
  for (Block* block : all) delete block;
}

bool TorchModel::Allocate(BlockId id, Bytes bytes, uint32_t stream) {
  Block wanted;
  wanted.size = RoundUp(bytes == 0 ? 1 : bytes, kRounding);
  wanted.stream = stream;
  wanted.small = wanted.size <= kSmallRequest;
  Block* block = FindFree(wanted);
  for (int round = 0; block == nullptr && round < 2; ++round) {
    if (round == 1) ReleaseCached();
    block = options_.expandable ? Expand(wanted) : NewSegment(wanted);
  }
  if (block == nullptr) return false;
  const Bytes remaining = block->size - wanted.size;
  const bool any = wanted.small || options_.expandable;
  if (any ? remaining >= kRounding : remaining > kSmallRequest) {
    PoolOf(block->small).free.insert(Split(block, wanted.size));
  }
  block->allocated = true;
  block->requested = bytes;
  allocated_ += block->size;
  requested_ += bytes;
  live_.emplace(id, block);
  return true;
}

void TorchModel::Free(BlockId id) {
  const auto found = live_.find(id);
  Block* block = found->second;
  live_.erase(found);
  block->allocated = false;
  allocated_ -= block->size;
  requested_ -= block->requested;
  PoolOf(block->small).free.insert(Merge(block));
}

Usage TorchModel::usage() const {
  Usage usage{requested_, allocated_, held_ - allocated_, 0};
  for (const Pool* pool : {&small_, &large_}) {
    for (const Block* block : pool->free) {
      usage.largest_free = std::max(usage.largest_free, block->size);
    }
  }
  return usage;
}

// Takes the block out of its pool. Expandable segments count what a block can grow into as its
// size, so a fitting block at the growing end yields to a later one that is smaller in that sense.
TorchModel::Block* TorchModel::FindFree(const Block& wanted) {
  Pool& pool = PoolOf(wanted.small);
  Block key = wanted;
  auto it = pool.free.lower_bound(&key);
  if (it == pool.free.end() || (*it)->stream != wanted.stream) return nullptr;
  if (options_.expandable) {
    const auto grown = [](const Block* b) {
      return b->size + (b->next != nullptr && !b->next->mapped ? b->next->size : 0);
    };
    auto next = std::next(it);
    while (((*it)->previous != nullptr || (*it)->next != nullptr) && next != pool.free.end() &&
           (*next)->stream == wanted.stream && grown(*next) < grown(*it)) {
      it = next++;
    }
  }
  Block* block = *it;
  pool.free.erase(it);
  return block;
}

TorchModel::Block* TorchModel::NewSegment(const Block& wanted) {
  const Bytes size = SegmentFor(wanted.size);
  if (!device_->Take(size)) return nullptr;
  held_ += size;
  mapped_bytes_ += size;
  Block* block = new Block(wanted);
  block->size = size;
  block->address = next_address_;
  next_address_ += size;
  return block;
}

// A mapped free block of at least the wanted size, in no pool; or null, and what was mapped on the
// way is free.
TorchModel::Block* TorchModel::Expand(const Block& wanted) {
  Block* block = FindExpandable(wanted);
  if (!block->mapped) block = Map(block, std::min(block->size, wanted.size));
  while (block != nullptr && block->size < wanted.size) {
    block = Map(block->next, std::min(wanted.size - block->size, block->next->size));
  }
  if (block == nullptr) return nullptr;
  PoolOf(block->small).free.erase(block);
  return block;
}

bool TorchModel::Expandable(const Block* block, Bytes size) {
  Bytes sum = 0;
  for (; sum < size && block != nullptr && !block->allocated; block = block->next) {
    sum += block->size;
  }
  return sum >= size;
}

TorchModel::Block* TorchModel::FindExpandable(const Block& wanted) {
  Pool& pool = PoolOf(wanted.small);
  Block key = wanted;
  for (auto it = pool.unmapped.lower_bound(&key);
       it != pool.unmapped.end() && (*it)->stream == wanted.stream; ++it) {
    Block* block = *it;
    if (block->previous != nullptr && !block->previous->allocated) block = block->previous;
    if (Expandable(block, wanted.size)) return block;
  }
  return NewRange(wanted);
}

TorchModel::Block* TorchModel::NewRange(const Block& wanted) {
  Block* block = new Block(wanted);
  block->size = kRangeBytes / PageOf(wanted.small) * PageOf(wanted.small);
  block->address = next_address_;
  block->mapped = false;
  next_address_ += kRangeBytes;
  PoolOf(wanted.small).unmapped.insert(block);
  return block;
}

// Maps whole pages for the first `bytes` of an unmapped block; the result is merged with its free
// neighbours and lies in the pool. Null: the device has no room, nothing changed.
TorchModel::Block* TorchModel::Map(Block* block, Bytes bytes) {
  Pool& pool = PoolOf(block->small);
  const Bytes size = RoundUp(bytes, PageOf(block->small));
  if (!device_->Take(size)) return nullptr;
  held_ += size;
  mapped_bytes_ += size;
  pool.unmapped.erase(block);
  if (block->size > size) pool.unmapped.insert(Split(block, size));
  block->mapped = true;
  block = Merge(block);
  pool.free.insert(block);
  return block;
}

// Unmaps the whole pages inside a free block of the pool.
void TorchModel::Unmap(Block* block) {
  Pool& pool = PoolOf(block->small);
  const Bytes page = PageOf(block->small);
  const uint64_t origin = block->address / kRangeBytes * kRangeBytes;  // ranges start on multiples
  const uint64_t begin = origin + RoundUp(block->address - origin, page);
  const uint64_t end = origin + (block->address + block->size - origin) / page * page;
  if (begin >= end) return;
  pool.free.erase(block);
  if (block->address < begin) {
    Block* upper = Split(block, begin - block->address);
    pool.free.insert(block);
    block = upper;
  }
  if (block->address + block->size > end) pool.free.insert(Split(block, end - begin));
  held_ -= block->size;
  device_->Give(block->size);
  block->mapped = false;
  pool.unmapped.insert(Merge(block));
}

void TorchModel::ReleaseCached() {
  ReleasePool(&large_);
  ReleasePool(&small_);
}

void TorchModel::ReleasePool(Pool* pool) {
  const std::vector<Block*> cached(pool->free.begin(), pool->free.end());
  for (Block* block : cached) {
    if (options_.expandable) {
      Unmap(block);
    } else if (block->previous == nullptr && block->next == nullptr) {
      pool->free.erase(block);
      held_ -= block->size;
      device_->Give(block->size);
      delete block;
    }
  }
}

// `block` keeps its first `size` bytes and is in no pool; returns the rest.
TorchModel::Block* TorchModel::Split(Block* block, Bytes size) {
  Block* rest = new Block(*block);
  rest->address += size;
  rest->size -= size;
  rest->requested = 0;
  rest->previous = block;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

void TorchModel::MergeInto(Block* block, Block* neighbour) {
  Pool& pool = PoolOf(block->small);
  if (neighbour->mapped) {
    pool.free.erase(neighbour);
  } else {
    pool.unmapped.erase(neighbour);
  }
  if (neighbour == block->previous) {
    block->address = neighbour->address;
    block->previous = neighbour->previous;
    if (block->previous != nullptr) block->previous->next = block;
  } else {
    block->next = neighbour->next;
    if (block->next != nullptr) block->next->previous = block;
  }
  block->size += neighbour->size;
  delete neighbour;
}

// `block` is in no pool; neighbours of the same kind leave theirs.
TorchModel::Block* TorchModel::Merge(Block* block) {
  for (Block* neighbour : {block->previous, block->next}) {
    const bool same =
        neighbour != nullptr && !neighbour->allocated && neighbour->mapped == block->mapped;
    if (same) MergeInto(block, neighbour);
  }
  return block;
}

}  // namespace tidemark::bench
