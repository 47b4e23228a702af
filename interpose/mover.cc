// Implementation of interpose/mover.h. Threads: as the header says.

#include "interpose/mover.h"

#include <string.h>

#include "interpose/log.h"

namespace tidemark::interpose {

bool Mover::Prepare() {
  if (staging_ == 0 && driver_->cuMemAddressReserve(&staging_, kBatch * core::kChunkBytes,
                                                    core::kChunkBytes, 0, 0) != CUDA_SUCCESS) {
    staging_ = 0;
    return false;
  }
  if (stream_ == nullptr &&
      driver_->cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    stream_ = nullptr;
    return false;
  }
  if (results_ == nullptr) {
    void* memory = nullptr;
    if (driver_->cuMemHostAlloc(&memory, 2 * kBatch * sizeof(uint64_t), CU_MEMHOSTALLOC_PORTABLE) !=
        CUDA_SUCCESS) {
      return false;
    }
    results_ = static_cast<uint64_t*>(memory);
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
    void* memory = nullptr;
    if (driver_->cuMemHostAlloc(&memory, 2 * core::kChunkBytes, CU_MEMHOSTALLOC_PORTABLE) !=
        CUDA_SUCCESS) {
      return false;
    }
    read_back_ = static_cast<char*>(memory);
  }
  return true;
}

void Mover::Forget() {
  stream_ = nullptr;
  results_ = nullptr;
  read_back_ = nullptr;
  hash_ = kernels::HashModule();
  hash_tried_ = false;
}

bool Mover::MapStaging(int slot, const Chunk& target) {
  if (driver_->cuMemMap(Staging(slot), core::kChunkBytes, 0, target.handle, 0) != CUDA_SUCCESS) {
    return false;
  }
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (driver_->cuMemSetAccess(Staging(slot), core::kChunkBytes, &access, 1) == CUDA_SUCCESS) {
    return true;
  }
  driver_->cuMemUnmap(Staging(slot), core::kChunkBytes);
  return false;
}

bool Mover::Hash(CUdeviceptr data, int result) {
  if (hash_.function == nullptr) return true;
  results_[result] = 0;
  const kernels::HashRange range{data, core::kChunkBytes, 0};
  return kernels::LaunchHash(*driver_, hash_, range,
                             reinterpret_cast<CUdeviceptr>(&results_[result]),
                             stream_) == CUDA_SUCCESS;
}

bool Mover::Submit(const CUdeviceptr* sources, int count, const bool* mapped) {
  bool good = true;
  for (int i = 0; i < count && good; ++i) {
    if (!mapped[i]) continue;
    good = Hash(sources[i], i) &&
           driver_->cuMemcpyDtoDAsync(Staging(i), sources[i], core::kChunkBytes, stream_) ==
               CUDA_SUCCESS &&
           Hash(Staging(i), kBatch + i);
  }
  // Also after a failure: nothing may be in flight when the staging window goes.
  return driver_->cuStreamSynchronize(stream_) == CUDA_SUCCESS && good;
}

bool Mover::EqualByReadBack(CUdeviceptr a, CUdeviceptr b) {
  return driver_->cuMemcpyDtoHAsync(read_back_, a, core::kChunkBytes, stream_) == CUDA_SUCCESS &&
         driver_->cuMemcpyDtoHAsync(read_back_ + core::kChunkBytes, b, core::kChunkBytes,
                                    stream_) == CUDA_SUCCESS &&
         driver_->cuStreamSynchronize(stream_) == CUDA_SUCCESS &&
         memcmp(read_back_, read_back_ + core::kChunkBytes, core::kChunkBytes) == 0;
}

int Mover::Copy(const CUdeviceptr* sources, const Chunk* targets, int count, bool* done) {
  for (int i = 0; i < count; ++i) done[i] = false;
  if (!Prepare()) return 0;
  bool mapped[kBatch] = {};
  for (int i = 0; i < count; ++i) mapped[i] = MapStaging(i, targets[i]);
  const bool submitted = Submit(sources, count, mapped);
  int good = 0;
  for (int i = 0; i < count; ++i) {
    if (!mapped[i]) continue;
    if (submitted) {
      done[i] = hash_.function != nullptr ? results_[i] == results_[kBatch + i]
                                          : EqualByReadBack(sources[i], Staging(i));
      if (!done[i]) ++mismatches_;
    }
    // A window that stays mapped keeps the chunk: it must not be used elsewhere.
    if (driver_->cuMemUnmap(Staging(i), core::kChunkBytes) != CUDA_SUCCESS &&
        driver_->cuMemUnmap(Staging(i), core::kChunkBytes) != CUDA_SUCCESS) {
      staging_ = 0;  // a new window next time
    }
    if (done[i]) ++good;
  }
  return good;
}

}  // namespace tidemark::interpose
