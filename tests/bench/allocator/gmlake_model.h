// A model of GMLake (ASPLOS'24), written from its published rules: a yardstick, not a product. On
// top of PyTorch's native small pool; requests above 1 MiB are rounded to 2 MiB and served from
// primitive blocks made of 2 MiB handles: best fit, split at 2 MiB, merged inside their segment.
// Where none fits, a free stitched block of at most `reuse_limit` times the request is used; then,
// from `fragment_limit` on, free blocks of the stream are stitched, the largest first, under a new
// address that aliases their handles; then a new segment; then all wholly free segments go back
// and it is tried again. Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_GMLAKE_MODEL_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_GMLAKE_MODEL_H_

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "tests/bench/allocator/torch_model.h"

namespace tidemark::bench {

struct GmlakeOptions {
  Bytes fragment_limit = 512 * kMiB;  // the published default
  Bytes reuse_limit = 10;
};

class GmlakeModel : public Policy {
 public:
  GmlakeModel(Device* device, const GmlakeOptions& options)
      : device_(device), options_(options), small_(device, TorchOptions()) {}

  bool Allocate(BlockId id, Bytes bytes, uint32_t stream) override;
  void Free(BlockId id) override;
  Usage usage() const override;
  uint64_t mapped_chunks() const override { return mapped_ + small_.mapped_chunks(); }

 private:
  using Handle = uint64_t;  // numbered without gaps inside a segment
  struct Run {
    Handle first = 0;
    uint64_t count = 0;
  };
  struct Primitive {
    uint64_t count = 0;
    uint32_t stream = 0;
    uint64_t segment = 0;
    bool allocated = false;
  };
  struct Stitched {
    std::vector<Run> runs;
    uint64_t count = 0;
    uint64_t used = 0;  // handles in use
    uint32_t stream = 0;
  };
  struct Live {
    std::vector<Handle> parts;  // first handles of primitive blocks
    Bytes requested = 0;
    uint64_t count = 0;
  };
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;  // stream, size, first handle or number

  bool BestFit(uint64_t count, uint32_t stream, Live* live);
  bool ReuseStitched(uint64_t count, uint32_t stream, Live* live);
  bool Stitch(uint64_t count, uint32_t stream, Live* live);
  bool NewSegment(uint64_t count, uint32_t stream, Live* live);
  void ReleaseSegments();
  void ReleaseHandles(Run run);

  void Index(Handle first);
  void Unindex(Handle first);
  void Split(Handle first, uint64_t count);
  void TakePart(Handle first, Live* live);
  void TakeRun(Run run, Live* live);
  void GivePart(Handle first);
  void Use(Run run, bool used);

  Device* device_;
  GmlakeOptions options_;
  TorchModel small_;
  std::map<Handle, Primitive> blocks_;  // by first handle
  std::set<Key> free_;
  std::map<uint64_t, Stitched> stitched_;
  std::set<Key> free_stitched_;
  std::unordered_map<Handle, std::vector<uint64_t>> aliases_;  // handle to stitched blocks
  std::unordered_map<BlockId, Live> live_;
  Handle next_handle_ = 0;
  uint64_t next_segment_ = 0;
  uint64_t next_stitched_ = 0;
  uint64_t held_ = 0;
  uint64_t allocated_ = 0;
  Bytes requested_ = 0;
  uint64_t mapped_ = 0;
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_GMLAKE_MODEL_H_
