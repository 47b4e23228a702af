#include "daemon/pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/check.h"
#include "daemon/driver_status.h"

namespace tidemark::daemon {

Pool::Pool(const kernels::Driver& driver, std::vector<ManagedDevice> devices, uint64_t chunk_bytes,
           ChunkId first_id)
    : driver_(driver),
      devices_(std::move(devices)),
      chunk_bytes_(chunk_bytes),
      next_id_(first_id) {}

Pool::~Pool() {
  for (const auto& [id, chunk] : chunks_) driver_.cuMemRelease(chunk.handle);
}

uint64_t Pool::ChunksIn(Slot slot) const {
  const auto found = count_.find(slot);
  return found == count_.end() ? 0 : found->second;
}

void Pool::TakeIdle(Slot slot, uid_t uid, uint64_t count, Taken* taken) {
  std::list<Idle>& idle = idle_[slot];
  for (auto at = idle.end(); at != idle.begin() && taken->reused.size() < count;) {
    --at;
    if (at->uid != uid) continue;
    taken->reused.push_back(at->chunk);
    at = idle.erase(at);
  }
}

uint64_t Pool::DoomedIn(Slot slot) const {
  const auto found = doomed_.find(slot);
  return found == doomed_.end() ? 0 : found->second.size();
}

bool Pool::MakeRoom(Slot slot, Taken* taken) {
  std::vector<ChunkId>& doomed = doomed_[slot];
  if (doomed.empty()) return DestroyOldestIdle(slot, taken);
  Destroy(doomed.back());
  doomed.pop_back();
  return true;
}

bool Pool::DestroyOldestIdle(Slot slot, Taken* taken) {
  std::list<Idle>& idle = idle_[slot];
  if (idle.empty()) return false;
  const ChunkId oldest = idle.front().chunk;
  idle.pop_front();
  Destroy(oldest);
  taken->destroyed.push_back(oldest);
  return true;
}

absl::Status Pool::Create(Slot slot, uid_t uid, Taken* taken) {
  const bool on_host = slot.place == TM_WIRE_HOST;
  const CUmemAllocationProp properties = ChunkProperties(devices_.at(slot.device), on_host);
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = driver_.cuMemCreate(&handle, chunk_bytes_, &properties, 0);
  while (result == CUDA_ERROR_OUT_OF_MEMORY && MakeRoom(slot, taken)) {
    result = driver_.cuMemCreate(&handle, chunk_bytes_, &properties, 0);
  }
  if (result != CUDA_SUCCESS) {
    return DriverStatus(
        driver_, result,
        absl::StrCat("creating ", chunk_bytes_, " bytes ",
                     on_host ? "of pinned host memory near device " : "on device ", slot.device));
  }
  const ChunkId id = next_id_++;
  chunks_.emplace(id, Chunk{slot, uid, handle});
  ++count_[slot];
  taken->created.push_back(id);
  return absl::OkStatus();
}

Pool::Taken Pool::Take(Slot slot, uid_t uid, uint64_t count, uint64_t cap) {
  Taken taken;
  TakeIdle(slot, uid, count, &taken);
  while (taken.reused.size() + taken.created.size() < count) {
    while (ChunksIn(slot) >= cap && MakeRoom(slot, &taken)) {
    }
    if (ChunksIn(slot) >= cap) {
      taken.status = absl::ResourceExhaustedError("every chunk that may exist is held");
      break;
    }
    taken.status = Create(slot, uid, &taken);
    if (!taken.status.ok()) break;
  }
  return taken;
}

void Pool::GiveBack(ChunkId id, absl::Time now) {
  const Chunk& chunk = chunks_.at(id);
  idle_[chunk.slot].push_back({id, chunk.uid, now});
}

void Pool::Destroy(ChunkId id) {
  const auto found = chunks_.find(id);
  TIDEMARK_CHECK(found != chunks_.end());
  driver_.cuMemRelease(found->second.handle);
  --count_[found->second.slot];
  chunks_.erase(found);
}

void Pool::Doom(ChunkId id) { doomed_[chunks_.at(id).slot].push_back(id); }

bool Pool::Reap(uint64_t most) {
  for (auto& [slot, doomed] : doomed_) {
    for (; !doomed.empty() && most > 0; --most) {
      Destroy(doomed.back());
      doomed.pop_back();
    }
    if (!doomed.empty()) return true;
  }
  return false;
}

std::vector<ChunkId> Pool::Trim(absl::Time since) {
  Taken trimmed;
  for (auto& [slot, idle] : idle_) {
    while (!idle.empty() && idle.front().since < since) DestroyOldestIdle(slot, &trimmed);
  }
  return std::move(trimmed.destroyed);
}

absl::StatusOr<UniqueFd> Pool::Export(ChunkId id) {
  int fd = -1;
  const CUresult result = driver_.cuMemExportToShareableHandle(
      &fd, chunks_.at(id).handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result != CUDA_SUCCESS) {
    return DriverStatus(driver_, result, absl::StrCat("exporting chunk ", id));
  }
  return UniqueFd(fd);
}

}  // namespace tidemark::daemon
