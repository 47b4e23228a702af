// A model of PyTorch's CUDA caching allocator, with segments from cudaMalloc ("native") or with
// expandable segments, written from its published rules: a yardstick, not a product. Native:
// 512 B rounding; requests up to 1 MiB from 2 MiB segments, up to 10 MiB from 20 MiB ones, larger
// ones from their own, rounded to 2 MiB; best fit by (stream, size, address); split when 512 B
// (small) or more than 1 MiB (large) remain; merge inside a segment; on failure release all wholly
// free segments and retry. Expandable: one address range per stream and pool, grown at the lowest
// free address by pages of 2 MiB (small pool) or `large_page`; on failure unmap all wholly free
// pages and retry. Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_TORCH_MODEL_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_TORCH_MODEL_H_

#include <memory>
#include <set>
#include <unordered_map>

#include "tests/bench/allocator/policy.h"

namespace tidemark::bench {

struct TorchOptions {
  bool expandable = false;
  Bytes large_page = 20 * kMiB;  // expandable: page of the large pool
};

class TorchModel : public Policy {
 public:
  TorchModel(Device* device, const TorchOptions& options) : device_(device), options_(options) {}
  ~TorchModel() override;

  bool Allocate(BlockId id, Bytes bytes, uint32_t stream) override;
  void Free(BlockId id) override;
  Usage usage() const override;
  uint64_t mapped_chunks() const override { return mapped_bytes_ / (2 * kMiB); }

  // Everything that is wholly free goes back to the device.
  void ReleaseCached();

 private:
  struct Block {
    uint64_t address = 0;
    Bytes size = 0;
    Bytes requested = 0;
    uint32_t stream = 0;
    bool small = false;
    bool allocated = false;
    bool mapped = true;
    Block* previous = nullptr;  // neighbours in the segment
    Block* next = nullptr;
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct ByAddress {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    std::set<Block*, BySize> free;
    std::set<Block*, ByAddress> unmapped;
  };

  Pool& PoolOf(bool small) { return small ? small_ : large_; }
  Bytes PageOf(bool small) const { return small ? 2 * kMiB : options_.large_page; }
  Block* FindFree(const Block& wanted);
  Block* NewSegment(const Block& wanted);
  Block* Expand(const Block& wanted);
  Block* FindExpandable(const Block& wanted);
  Block* NewRange(const Block& wanted);
  Block* Map(Block* block, Bytes bytes);
  void Unmap(Block* block);
  void ReleasePool(Pool* pool);
  Block* Split(Block* block, Bytes size);
  void MergeInto(Block* block, Block* neighbour);
  Block* Merge(Block* block);
  static bool Expandable(const Block* block, Bytes size);

  Device* device_;
  TorchOptions options_;
  Pool small_;
  Pool large_;
  std::unordered_map<BlockId, Block*> live_;
  uint64_t next_address_ = Bytes{1} << 46;
  Bytes held_ = 0;
  Bytes allocated_ = 0;
  Bytes requested_ = 0;
  Bytes mapped_bytes_ = 0;
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_TORCH_MODEL_H_
