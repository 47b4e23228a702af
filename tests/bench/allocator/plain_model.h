// The plainest arena that remaps: best fit at 512 B over one address range, lowest address on ties,
// whole multiples of a chunk on a chunk boundary, everything merged at once; no slabs, no cache, no
// streams. Where no mapped hole fits, the place that lacks the fewest chunks is taken; its chunks
// are new while what is mapped stays within the slack over the highest demand so far, and moved
// from under free holes, the lowest first, beyond it. A yardstick for placement rules: it shows
// what Tidemark's arena gives up for speed. With `fewest_chunks` it takes the place, of all in
// mapped holes and beyond, that uses up the fewest wholly free chunks, then the one that lacks the
// fewest: the least that any choice of places can hold at the next request. Every search here is
// linear. Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_PLAIN_MODEL_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_PLAIN_MODEL_H_

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "tests/bench/allocator/policy.h"

namespace tidemark::bench {

struct PlainOptions {
  uint32_t slack_permille = 0;
  bool fewest_chunks = false;
};

class PlainModel : public Policy {
 public:
  PlainModel(Device* device, const PlainOptions& options);

  bool Allocate(BlockId id, Bytes bytes, uint32_t stream) override;
  void Free(BlockId id) override;
  Usage usage() const override;
  uint64_t mapped_chunks() const override { return mapped_; }

 private:
  // Runs of bytes by address, neighbours merged.
  class Runs {
   public:
    void Add(Bytes offset, Bytes size);
    // Takes [offset, offset + size) out of the run that holds it.
    void Cut(Bytes offset, Bytes size);
    const std::map<Bytes, Bytes>& by_offset() const { return by_offset_; }
    const std::set<std::pair<Bytes, Bytes>>& by_size() const { return by_size_; }

   private:
    void Erase(std::map<Bytes, Bytes>::iterator at);
    std::map<Bytes, Bytes> by_offset_;
    std::set<std::pair<Bytes, Bytes>> by_size_;
  };
  struct Place {
    Bytes offset = 0;
    uint64_t missing = 0;  // chunks
    uint64_t taken = 0;    // chunks that were wholly free, where that is asked for
  };
  struct Chunk {
    uint32_t live = 0;
    bool mapped = false;
  };
  struct Live {
    Bytes offset = 0;
    Bytes size = 0;
    Bytes requested = 0;
  };

  bool FindHole(Bytes size, Bytes alignment, Bytes* offset) const;
  Place FindExtension(Bytes size, Bytes alignment) const;
  void Consider(Bytes offset, Bytes size, Place* best) const;
  bool MapUnder(const Place& place, Bytes size, Bytes requested);
  void UnmapFree(uint64_t count, Bytes first, Bytes last);

  Device* device_;
  PlainOptions options_;
  std::vector<Chunk> chunks_;
  Runs free_;   // mapped or not
  Runs holes_;  // free and mapped
  std::unordered_map<BlockId, Live> live_;
  uint64_t mapped_ = 0;  // ever
  uint64_t held_ = 0;    // chunks mapped now
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
  Bytes peak_requested_ = 0;
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_PLAIN_MODEL_H_
