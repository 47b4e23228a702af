// Implementation of tests/bench/allocator/ours.h. Threads: none.

#include "tests/bench/allocator/ours.h"

#include <unordered_map>

#include "core/arena.h"

namespace tidemark::bench {
namespace {

using core::ChunkIndex;
using core::kChunkBytes;

constexpr ChunkIndex kSlots = 1u << 18;  // 512 GiB of addresses

class Ours : public Policy {
 public:
  Ours(Device* device, const OursOptions& options) : device_(device) {
    core::ArenaOptions arena;
    if (!options.use_default_slack) arena.slack_permille = options.slack_permille;
    ok_ = arena_.Init(kSlots, Seam(), arena);
    device_->sharers.push_back(this);
  }

  bool Allocate(BlockId id, Bytes bytes, uint32_t stream) override {
    core::Block* block = ok_ ? arena_.Allocate(bytes, stream + 1) : nullptr;
    if (block == nullptr) return false;
    live_[id] = {block, stream};
    return true;
  }

  // A complete free: no fence is left to wait for.
  void Free(BlockId id) override {
    const auto found = live_.find(id);
    arena_.Free(found->second.block, found->second.stream + 1, 0);
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
    seam.order = [](void*, core::StreamId, core::FenceId) { return true; };
    seam.settle = [](void*, core::FenceId fence) { return fence; };
    return seam;
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
