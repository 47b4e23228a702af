// Implementation of interpose/mover.h. Threads: as the header says.

#include "interpose/mover.h"

#include <string.h>

#include "interpose/log.h"

namespace tidemark::interpose {
namespace {

void* HostMemory(const kernels::Driver& driver, size_t bytes) {
  void* memory = nullptr;
  const CUresult result = driver.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
  return result == CUDA_SUCCESS ? memory : nullptr;
}

}  // namespace

bool Mover::Prepare() {
  if (staging_ == 0 && driver_->cuMemAddressReserve(&staging_, kBatch * core::kChunkBytes,
                                                    core::kChunkBytes, 0, 0) != CUDA_SUCCESS) {
    staging_ = 0;
    return false;
  }
  for (CUstream& stream : streams_) {
    if (stream == nullptr &&
        driver_->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      stream = nullptr;
      return false;
    }
  }
  if (!hash_tried_) {
    hash_tried_ = true;
    if (kernels::LoadHash(*driver_, &hash_) != CUDA_SUCCESS) {
      hash_ = kernels::HashModule();
      Warn("no hash kernel for device %d; moves are verified by reading back, which is slower",
           device_);
    }
  }
  if (hash_.function == nullptr && read_back_ == nullptr) {
    read_back_ = static_cast<char*>(HostMemory(*driver_, 2 * core::kChunkBytes));
    if (read_back_ == nullptr) return false;
  }
  return PrepareResults();
}

// On the device, because a hash that adds into host memory crosses the link with every block.
bool Mover::PrepareResults() {
  if (results_ == nullptr) {
    results_ = static_cast<Results*>(HostMemory(*driver_, kBatch * sizeof(Results)));
    if (results_ == nullptr) return false;
  }
  if (device_results_ == 0 &&
      driver_->cuMemAlloc(&device_results_, kBatch * sizeof(Results)) != CUDA_SUCCESS) {
    device_results_ = 0;
    memset(results_, 0, kBatch * sizeof(Results));
    return true;
  }
  return driver_->cuMemsetD8Async(device_results_, 0, kBatch * sizeof(Results), streams_[0]) ==
             CUDA_SUCCESS &&
         driver_->cuStreamSynchronize(streams_[0]) == CUDA_SUCCESS;
}

void Mover::Forget() {
  streams_[0] = streams_[1] = nullptr;
  results_ = nullptr;
  device_results_ = 0;
  read_back_ = nullptr;
  hash_ = kernels::HashModule();
  hash_tried_ = false;
}

bool Mover::MapStaging(const Transfer& transfer, int slot) {
  if (transfer.target.side != 0) return true;
  if (driver_->cuMemMap(Staging(slot), core::kChunkBytes, 0, transfer.target.handle, 0) !=
      CUDA_SUCCESS) {
    return false;
  }
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (driver_->cuMemSetAccess(Staging(slot), core::kChunkBytes, &access, 1) == CUDA_SUCCESS) {
    return true;
  }
  UnmapStaging(slot);
  return false;
}

// A window that stays mapped keeps its chunks, which must not be used elsewhere: a new one next
// time.
void Mover::UnmapStaging(int slot) {
  if (driver_->cuMemUnmap(Staging(slot), core::kChunkBytes) != CUDA_SUCCESS &&
      driver_->cuMemUnmap(Staging(slot), core::kChunkBytes) != CUDA_SUCCESS) {
    window_lost_ = true;
  }
}

// `result` is a place in results_, which stands for the same place on the device.
bool Mover::Hash(CUdeviceptr data, const uint64_t* result, CUstream stream) {
  if (hash_.function == nullptr) return true;
  const auto offset = reinterpret_cast<uintptr_t>(result) - reinterpret_cast<uintptr_t>(results_);
  const CUdeviceptr base =
      device_results_ != 0 ? device_results_ : reinterpret_cast<CUdeviceptr>(results_);
  const kernels::HashRange range{data, core::kChunkBytes, 0};
  return kernels::LaunchHash(*driver_, hash_, range, base + offset, stream) == CUDA_SUCCESS;
}

bool Mover::SubmitOne(const Transfer& transfer, int slot) {
  const CUstream stream = StreamTo(transfer.to);
  const bool out = transfer.to == Place::kHost;
  const bool full = InFull(transfer.to);
  const bool source = out || full || !transfer.hash.known;
  const bool copy = !out || full;
  return (!source || Hash(transfer.source, &results_[slot].source, stream)) &&
         driver_->cuMemcpyDtoDAsync(CopyOf(transfer, slot), transfer.source, core::kChunkBytes,
                                    stream) == CUDA_SUCCESS &&
         (!copy || Hash(CopyOf(transfer, slot), &results_[slot].copy, stream));
}

// Also waits after a failure: nothing may be in flight when the staging window goes.
bool Mover::Submit(const Transfer* list, int count) {
  bool good = true;
  for (int i = 0; i < count && good; ++i) good = SubmitOne(list[i], i);
  for (const CUstream stream : streams_) {
    good = driver_->cuStreamSynchronize(stream) == CUDA_SUCCESS && good;
  }
  return good && Collect();
}

bool Mover::Collect() {
  if (device_results_ == 0 || hash_.function == nullptr) return true;
  return driver_->cuMemcpyDtoHAsync(results_, device_results_, kBatch * sizeof(Results),
                                    streams_[0]) == CUDA_SUCCESS &&
         driver_->cuStreamSynchronize(streams_[0]) == CUDA_SUCCESS;
}

bool Mover::EqualByReadBack(CUdeviceptr a, CUdeviceptr b) {
  return driver_->cuMemcpyDtoHAsync(read_back_, a, core::kChunkBytes, streams_[0]) ==
             CUDA_SUCCESS &&
         driver_->cuMemcpyDtoHAsync(read_back_ + core::kChunkBytes, b, core::kChunkBytes,
                                    streams_[0]) == CUDA_SUCCESS &&
         driver_->cuStreamSynchronize(streams_[0]) == CUDA_SUCCESS &&
         memcmp(read_back_, read_back_ + core::kChunkBytes, core::kChunkBytes) == 0;
}

// The source as it is now; for the rare one that changed while it was away.
bool Mover::SourceHash(const Transfer& transfer, int slot, uint64_t* hash) {
  if (!PrepareResults() || !Hash(transfer.source, &results_[slot].source, streams_[0]) ||
      driver_->cuStreamSynchronize(streams_[0]) != CUDA_SUCCESS || !Collect()) {
    return false;
  }
  *hash = results_[slot].source;
  return true;
}

bool Mover::IsProven(Transfer* transfer, int slot) {
  if (hash_.function == nullptr) return EqualByReadBack(transfer->source, CopyOf(*transfer, slot));
  const Results result = results_[slot];
  const bool full = InFull(transfer->to);
  if (transfer->to == Place::kHost) {
    transfer->hash = {result.source, true};
    return !full || result.source == result.copy;
  }
  if (full || !transfer->hash.known) return result.source == result.copy;
  return result.copy == transfer->hash.value;
}

int Mover::Copy(Transfer* list, int count) {
  for (int i = 0; i < count; ++i) list[i].done = false;
  if (!Prepare()) return 0;
  int mapped = 0;
  while (mapped < count && MapStaging(list[mapped], mapped)) ++mapped;
  int good = 0;
  if (mapped != 0 && Submit(list, mapped)) {
    uint64_t seen[kBatch];
    for (int i = 0; i < mapped; ++i) {
      list[i].done = IsProven(&list[i], i);
      seen[i] = hash_.function != nullptr ? results_[i].copy : 0;
    }
    for (int i = 0; i < mapped; ++i) {
      uint64_t now = 0;
      const bool changed = !list[i].done && list[i].to == Place::kDevice && list[i].hash.known;
      if (changed && SourceHash(list[i], i, &now)) list[i].done = now == seen[i];
      if (!list[i].done) ++mismatches_;
      if (list[i].done) ++proven_[static_cast<int>(list[i].to)], ++good;
    }
  }
  for (int i = 0; i < mapped; ++i) {
    if (list[i].target.side == 0) UnmapStaging(i);
  }
  if (window_lost_) staging_ = 0;
  window_lost_ = false;
  return good;
}

}  // namespace tidemark::interpose
