// What lies under the arena: the owner's side of core/arena.h, over the driver and the supply of
// chunks. Not here: which chunk, when and in what order (core/arena.cc), and how bytes move
// (residency.cc).
//
// Threads: as interpose/device_memory.h says; Stock and WaitForOtherJobs give the lock up while
// they wait for the daemon or for other jobs.

#include <time.h>

#include "interpose/device_memory.h"

namespace tidemark::interpose {
namespace {

using core::Block;
using core::Bytes;
using core::ChunkIndex;
using core::ChunkState;
using core::kChunkBytes;

constexpr int64_t kPatienceNs = 2000000000;

DeviceMemory* Self(void* owner) { return static_cast<DeviceMemory*>(owner); }

}  // namespace

core::ArenaSeam DeviceMemory::Seam() {
  core::ArenaSeam seam;
  seam.owner = this;
  seam.map = [](void* owner, ChunkIndex first, ChunkIndex count) {
    return Self(owner)->Map(Place::kDevice, first, count);
  };
  seam.map_host = [](void* owner, ChunkIndex first, ChunkIndex count) {
    return Self(owner)->MapOnHost(first, count);
  };
  seam.unmap = [](void* owner, ChunkIndex first, ChunkIndex count) {
    return Self(owner)->Unmap(first, count);
  };
  seam.available = [](void* owner) {
    return static_cast<ChunkIndex>(Self(owner)->supply_.reserve(Place::kDevice));
  };
  seam.acquire = [](void* owner, ChunkIndex count) { Self(owner)->Acquire(count); };
  seam.order = [](void* owner, core::StreamId stream, core::FenceId fence) {
    return Self(owner)->streams.Require(stream, fence);
  };
  seam.settle = [](void* owner, core::FenceId) {
    Self(owner)->EnterSafepoint();
    return Self(owner)->streams.passed();
  };
  seam.evict = [](void* owner, ChunkIndex count) { return Self(owner)->MakeSpare(count); };
  seam.alias = [](void* owner, ChunkIndex from, ChunkIndex to, ChunkIndex count) {
    return Self(owner)->Alias(from, to, count);
  };
  seam.leave = [](void* owner, ChunkIndex first, ChunkIndex count) {
    return Self(owner)->Leave(first, count);
  };
  return seam;
}

// One request, with the safepoint that it may have needed.
Block* DeviceMemory::PlaceBlock(Bytes bytes, core::StreamId stream) {
  arena_.Passed(streams.passed());
  Block* block = arena_.Allocate(bytes, stream);
  if (point_.has_value()) {
    counters_.stall_ns += static_cast<uint64_t>(NowNs() - point_->started_ns());
    point_.reset();
  }
  return block;
}

bool DeviceMemory::EnterSafepoint() {
  if (!point_.has_value()) point_.emplace(this);
  return point_->reached();
}

// All of [first, first + count), from the reserve first, or nothing.
bool DeviceMemory::Map(Place place, ChunkIndex first, ChunkIndex count) {
  ChunkIndex mapped = 0;
  while (mapped < count) {
    Chunk* chunk = &backing_[first + mapped];
    if (!supply_.Take(place, count - mapped - 1, chunk)) break;
    if (driver_->cuMemMap(ChunkAddress(first + mapped), kChunkBytes, 0, chunk->handle, 0) !=
        CUDA_SUCCESS) {
      PutBack(place, first + mapped);
      break;
    }
    ++mapped;
  }
  if (mapped == count && SetAccess(first, count)) return true;
  while (mapped-- > 0) {
    UnmapOrBreak(first + mapped);
    PutBack(place, first + mapped);
  }
  return false;
}

void DeviceMemory::UnmapOrBreak(ChunkIndex chunk) {
  const CUdeviceptr at = ChunkAddress(chunk);
  if (driver_->cuMemUnmap(at, kChunkBytes) != CUDA_SUCCESS &&
      driver_->cuMemUnmap(at, kChunkBytes) != CUDA_SUCCESS) {
    Break("a chunk stays mapped where nothing is to be");
  }
}

// During a capture no stream could be ordered after the work in flight, and to drop a copy that
// runs ahead is to wait for it, and for what it waits for.
bool DeviceMemory::Alias(ChunkIndex from, ChunkIndex to, ChunkIndex count) {
  if (streams.capturing()) return false;
  for (ChunkIndex i = from; i < from + count && early_.count() != 0; ++i) {
    if (early_.Has(i)) return false;
  }
  ChunkIndex mapped = 0;
  while (mapped < count && driver_->cuMemMap(ChunkAddress(to + mapped), kChunkBytes, 0,
                                             backing_[from + mapped].handle, 0) == CUDA_SUCCESS) {
    ++mapped;
  }
  if (mapped < count || !SetAccess(to, count)) {
    while (mapped-- > 0) UnmapOrBreak(to + mapped);
    return false;
  }
  for (ChunkIndex i = 0; i < count; ++i) {
    backing_[to + i] = backing_[from + i];
    backing_[from + i] = Chunk();
  }
  return true;
}

bool DeviceMemory::Leave(ChunkIndex first, ChunkIndex count) {
  return driver_->cuMemUnmap(ChunkAddress(first), count * kChunkBytes) == CUDA_SUCCESS;
}

bool DeviceMemory::MapOnHost(ChunkIndex first, ChunkIndex count) {
  if (!moves_allowed_ || HostRoom() < count || !EnterSafepoint()) return false;
  if (supply_.reserve(Place::kHost) + supply_.room(Place::kHost) < count) DropCopies(true);
  return Map(Place::kHost, first, count);
}

bool DeviceMemory::Unmap(ChunkIndex first, ChunkIndex count) {
  for (ChunkIndex i = first; i < first + count && early_.count() != 0; ++i) DropCopy(i);
  if (driver_->cuMemUnmap(ChunkAddress(first), count * kChunkBytes) != CUDA_SUCCESS) return false;
  const bool host = table_.state(first) == ChunkState::kHost;
  for (ChunkIndex i = first; i < first + count; ++i) {
    PutBack(host ? Place::kHost : Place::kDevice, i);
  }
  return true;
}

void DeviceMemory::PutBack(Place place, ChunkIndex index) {
  supply_.Put(place, backing_[index]);
  backing_[index] = Chunk();
}

// What eviction is to give instead needs host chunks, and those are not waited for in a safepoint.
void DeviceMemory::Acquire(ChunkIndex count) {
  if (!FitsAtAll(count)) return;
  Stock(Place::kDevice, count);
  const uint64_t reserve = supply_.reserve(Place::kDevice);
  if (moves_allowed_ && session_->attached() && reserve < count) {
    Stock(Place::kHost, count - reserve);
  }
}

// More than both budgets hold: evicting everything for it would be for nothing.
ChunkIndex DeviceMemory::MakeSpare(ChunkIndex count) {
  if (!moves_allowed_ || HostRoom() < count || !EnterSafepoint()) return 0;
  return static_cast<ChunkIndex>(EvictAhead(count));
}

// Chunks for the reserve until it has `count`, or the budget, the daemon or the device ends it. The
// daemon may take its time, and other threads go on meanwhile.
void DeviceMemory::Stock(Place place, uint64_t count) {
  while (supply_.reserve(place) < count && supply_.HasRoom(place)) {
    if (!session_->attached()) {
      if (!supply_.Refill(place, count - supply_.reserve(place))) return;
      continue;
    }
    const uint64_t batch = supply_.BatchOf(place, count - supply_.reserve(place));
    ChunkSupply::Offer offer;
    {
      MutexUnlock unlocked(&mutex);
      supply_.Ask(place, batch, &offer);
    }
    supply_.Accept(place, offer);
    if (offer.got == 0 && offer.answer != Answer::kAlone) return;
  }
}

// The daemon may have asked other jobs to make room for this one; they do so at their next launch.
// The job's own error would be final, so it is worth a moment.
Block* DeviceMemory::WaitForOtherJobs(Bytes bytes, core::StreamId stream) {
  const int64_t started = NowNs();
  const timespec pause = {0, 10000000};
  Block* block = nullptr;
  while (block == nullptr && session_->attached() && NowNs() < started + kPatienceNs) {
    ReadBudgets();
    const ChunkIndex missing = arena_.Missing(bytes);
    if (missing == 0) break;
    ChunkSupply::Offer offer;
    {
      MutexUnlock unlocked(&mutex);
      supply_.Ask(Place::kDevice, uint64_t{missing} + 1, &offer);
      if (offer.got == 0) nanosleep(&pause, nullptr);
    }
    supply_.Accept(Place::kDevice, offer);
    if (offer.got != 0) block = PlaceBlock(bytes, stream);
  }
  counters_.stall_ns += static_cast<uint64_t>(NowNs() - started);
  return block;
}

// Whether `missing` further chunks and all that is live fit into both budgets together.
bool DeviceMemory::FitsAtAll(uint64_t missing) const {
  uint64_t live = table_.host_chunks();
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    if (table_.state(i) == ChunkState::kDevice && table_.live(i) != 0) ++live;
  }
  const uint64_t host = supply_.budget_chunks(Place::kHost);
  const uint64_t device = supply_.held(Place::kDevice) + supply_.room(Place::kDevice);
  return live + missing <= device + (moves_allowed_ ? host : 0);
}

CUresult DeviceMemory::MapChunk(ChunkIndex index, const Chunk& chunk) {
  const CUresult result = driver_->cuMemMap(ChunkAddress(index), kChunkBytes, 0, chunk.handle, 0);
  if (result != CUDA_SUCCESS) return result;
  if (SetAccess(index, 1)) return CUDA_SUCCESS;
  driver_->cuMemUnmap(ChunkAddress(index), kChunkBytes);
  return CUDA_ERROR_UNKNOWN;
}

bool DeviceMemory::SetAccess(ChunkIndex first, ChunkIndex chunks) {
  CUmemAccessDesc access[kDevices + 1] = {};
  size_t count = 0;
  for (int i = -1; i < peer_count_; ++i) {
    access[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[count].location.id = i < 0 ? device_ : peers_[i]->device_;
    access[count++].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return driver_->cuMemSetAccess(ChunkAddress(first), chunks * kChunkBytes, access, count) ==
         CUDA_SUCCESS;
}

}  // namespace tidemark::interpose
