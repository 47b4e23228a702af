// Implementation of tests/bench/allocator/ours.h. Threads: none.

#include "tests/bench/allocator/ours.h"

#include <algorithm>
#include <unordered_map>

#include "core/arena.h"
#include "tests/core/late_fences.h"

namespace tidemark::bench {
namespace {

using core::ChunkIndex;
using core::kChunkBytes;

constexpr ChunkIndex kSlots = 1u << 18;  // 512 GiB of addresses

class Ours : public Policy {
 public:
  Ours(Device* device, const OursOptions& options)
      : device_(device),
        late_(options.requests_late != 0),
        knows_streams_(!late_ || options.in_stream_order),
        fences_(options.requests_late) {
    core::ArenaOptions arena;
    if (!options.use_default_slack) arena.slack_permille = options.slack_permille;
    ok_ = arena_.Init(kSlots, Seam(), arena);
    device_->sharers.push_back(this);
  }

  bool Allocate(BlockId id, Bytes bytes, uint32_t stream) override {
    if (late_) arena_.Passed(fences_.Poll());
    core::Block* block = ok_ ? arena_.Allocate(bytes, StreamOf(stream)) : nullptr;
    if (block == nullptr) return false;
    live_[id] = {block, stream};
    return true;
  }

  // Complete, so that no fence is left to wait for, unless frees are late.
  void Free(BlockId id) override {
    const auto found = live_.find(id);
    arena_.Free(found->second.block, StreamOf(found->second.stream), late_ ? fences_.open() : 0);
    live_.erase(found);
  }

  Usage usage() const override {
    const core::AllocatorStats stats = arena_.Stats();
    return {stats.requested, stats.allocated, stats.free_mapped + reserve_ * kChunkBytes,
            stats.largest_free_mapped};
  }

  uint64_t mapped_chunks() const override { return mapped_; }

  // What waits in the allocator's caches counts as free: it is folded back, as Release() does.
  Bytes Releasable() override {
    arena_.allocator().FoldCache();
    const core::ChunkTable& table = arena_.table();
    ChunkIndex free = reserve_;
    for (ChunkIndex i = 0; i < table.high_water(); ++i) {
      if (table.state(i) != core::ChunkState::kUnmapped && table.live(i) == 0) ++free;
    }
    return free * kChunkBytes;
  }

  void Release(Bytes bytes) override {
    const auto wanted = static_cast<ChunkIndex>(RoundUp(bytes, kChunkBytes) / kChunkBytes);
    if (reserve_ < wanted) arena_.Release(wanted - reserve_);
    const ChunkIndex given = std::min(wanted, reserve_);
    reserve_ -= given;
    device_->Give(given * kChunkBytes);
  }

 private:
  struct Live {
    core::Block* block;
    uint32_t stream;
  };

  core::ArenaSeam Seam() {
    core::ArenaSeam seam;
    seam.owner = this;
    seam.map = [](void* owner, ChunkIndex, ChunkIndex count) {
      return static_cast<Ours*>(owner)->Map(count);
    };
    seam.unmap = [](void* owner, ChunkIndex, ChunkIndex count) {
      static_cast<Ours*>(owner)->reserve_ += count;
      return true;
    };
    seam.available = [](void* owner) { return static_cast<Ours*>(owner)->Available(); };
    seam.order = [](void* owner, core::StreamId, core::FenceId fence) {
      static_cast<Ours*>(owner)->fences_.Order(fence);
      return true;
    };
    seam.settle = [](void* owner, core::FenceId) {
      return static_cast<Ours*>(owner)->fences_.Settle();
    };
    if (late_) {
      seam.available = [](void* owner) { return static_cast<Ours*>(owner)->reserve_; };
      seam.acquire = [](void* owner, ChunkIndex count) {
        static_cast<Ours*>(owner)->Acquire(count);
      };
      seam.alias = [](void* owner, ChunkIndex, ChunkIndex, ChunkIndex count) {
        static_cast<Ours*>(owner)->mapped_ += count;
        return true;
      };
      seam.leave = [](void*, ChunkIndex, ChunkIndex) { return true; };
    }
    return seam;
  }

  void Acquire(ChunkIndex count) {
    if (count <= reserve_) return;
    const Bytes most = std::min<Bytes>(device_->left() / kChunkBytes, count - reserve_);
    if (!device_->Take(most * kChunkBytes)) return;
    reserve_ += static_cast<ChunkIndex>(most);
  }

  core::StreamId StreamOf(uint32_t stream) const {
    return knows_streams_ ? stream + 1 : core::kAnyStream;
  }

  ChunkIndex Available() {
    Bytes bytes = device_->left();
    for (Policy* other : device_->sharers) {
      if (other != this) bytes += other->Releasable();
    }
    const Bytes fresh = std::min<Bytes>(bytes / kChunkBytes, kSlots);
    return reserve_ + static_cast<ChunkIndex>(fresh);
  }

  bool Map(ChunkIndex count) {
    const ChunkIndex fresh = count > reserve_ ? count - reserve_ : 0;
    const Bytes bytes = fresh * kChunkBytes;
    if (bytes > device_->left()) AskOthers(bytes - device_->left());
    if (!device_->Take(bytes)) return false;
    reserve_ -= count - fresh;
    mapped_ += count;
    return true;
  }

  void AskOthers(Bytes bytes) {
    const Bytes wanted_left = device_->left() + bytes;
    for (Policy* other : device_->sharers) {
      if (device_->left() >= wanted_left) return;
      if (other != this) other->Release(wanted_left - device_->left());
    }
  }

  Device* device_;
  bool late_;
  bool knows_streams_;
  core::LateFences fences_;
  core::Arena arena_;
  bool ok_ = false;
  ChunkIndex reserve_ = 0;  // taken from the device and mapped nowhere
  uint64_t mapped_ = 0;
  std::unordered_map<BlockId, Live> live_;
};

}  // namespace

std::unique_ptr<Policy> MakeOurs(Device* device, const OursOptions& options) {
  return std::make_unique<Ours>(device, options);
}

}  // namespace tidemark::bench
