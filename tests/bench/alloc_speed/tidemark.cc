// Tidemark's arena over a seam that always succeeds; shared, under the lock that the preloaded
// library uses. A free looks its block up by address, as there.

#include "core/arena.h"
#include "interpose/biased_mutex.h"
#include "tests/bench/alloc_speed/contender.h"

namespace tidemark::bench {
namespace {

using core::ChunkIndex;

class Tidemark : public Contender {
 public:
  Tidemark(bool shared, size_t capacity) : shared_(shared) {
    core::ArenaSeam seam;
    seam.owner = this;
    seam.map = [](void* owner, ChunkIndex, ChunkIndex count) {
      auto* self = static_cast<Tidemark*>(owner);
      if (count > self->left_) return false;
      self->left_ -= count;
      return true;
    };
    seam.unmap = [](void* owner, ChunkIndex, ChunkIndex count) {
      static_cast<Tidemark*>(owner)->left_ += count;
      return true;
    };
    seam.available = [](void* owner) { return static_cast<Tidemark*>(owner)->left_; };
    seam.order = [](void*, core::StreamId, core::FenceId) { return true; };
    seam.settle = [](void*, core::FenceId fence) { return fence; };
    left_ = static_cast<ChunkIndex>(capacity / core::kChunkBytes);
    ok_ = arena_.Init(4 * left_, seam);
  }

  void* Allocate(size_t bytes, uint32_t stream) override {
    if (shared_) mutex_.Lock();
    core::Block* block = ok_ ? arena_.Allocate(bytes, stream + 1) : nullptr;
    void* address = block == nullptr ? nullptr : reinterpret_cast<void*>(kBase + block->offset);
    if (shared_) mutex_.Unlock();
    return address;
  }
  void Free(void* address, size_t, uint32_t stream) override {
    if (shared_) mutex_.Lock();
    core::Block* block = arena_.Find(reinterpret_cast<uintptr_t>(address) - kBase);
    arena_.Free(block, stream + 1, 0);
    if (shared_) mutex_.Unlock();
  }

 private:
  static constexpr uintptr_t kBase = uintptr_t{1} << 40;
  bool shared_;
  bool ok_ = false;
  ChunkIndex left_ = 0;
  core::Arena arena_;
  interpose::BiasedMutex mutex_;
};

}  // namespace

std::unique_ptr<Contender> MakeTidemark(bool shared, size_t capacity) {
  return std::make_unique<Tidemark>(shared, capacity);
}

}  // namespace tidemark::bench
