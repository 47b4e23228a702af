// Implementation of interpose/mover.h. Threads: as the header says.

#include "interpose/mover.h"

#include <string.h>

#include "interpose/log.h"

namespace tidemark::interpose {

void* HostMemory(const kernels::Driver& driver, size_t bytes) {
  void* memory = nullptr;
  const CUresult result = driver.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
  return result == CUDA_SUCCESS ? memory : nullptr;
}

bool CreateEvents(const kernels::Driver& driver, CUevent* events, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (events[i] != nullptr) continue;
    if (driver.cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
      events[i] = nullptr;
      return false;
    }
  }
  return true;
}

bool Mover::PrepareStreams() {
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
  return true;
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
  for (CUevent& event : events_) event = nullptr;
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
  if (AllowAccess(*driver_, device_, Staging(slot))) {
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
  return HashInto(data, base + offset, stream);
}

bool Mover::HashInto(CUdeviceptr data, CUdeviceptr result, CUstream stream) {
  const kernels::HashRange range{data, core::kChunkBytes, 0};
  return kernels::LaunchHash(*driver_, hash_, range, result, stream) == CUDA_SUCCESS;
}

bool Mover::SubmitOne(const Transfer& transfer, int slot) {
  const CUstream on = stream(transfer.to);
  const bool out = transfer.to == Place::kHost;
  const bool full = InFull(transfer.to);
  const bool source = out || full || !transfer.hash.known;
  const bool copy = !out || full;
  return (!source || Hash(transfer.source, &results_[slot].source, on)) &&
         (transfer.copied || driver_->cuMemcpyDtoDAsync(CopyOf(transfer, slot), transfer.source,
                                                        core::kChunkBytes, on) == CUDA_SUCCESS) &&
         (!copy || Hash(CopyOf(transfer, slot), &results_[slot].copy, on));
}

// Both directions take turns, for both are at work at once.
int Mover::MakeGroups(const Transfer* list, int count, Group* groups) {
  Group split[2][kBatch];
  int counts[2] = {};
  for (int i = 0; i < count;) {
    const int side = list[i].to == list[0].to ? 0 : 1;
    int end = i + 1;
    while (end < count && end - i < kGroup && list[end].to == list[i].to) ++end;
    split[side][counts[side]++] = {i, end - i};
    i = end;
  }
  int made = 0;
  for (int i = 0; i < counts[0] || i < counts[1]; ++i) {
    for (int side = 0; side < 2; ++side) {
      if (i < counts[side]) groups[made++] = split[side][i];
    }
  }
  return made;
}

// Returns how many groups the driver took, all of each.
int Mover::Submit(const Transfer* list, const Group* groups, int count, const Arrival& arrival) {
  int taken = 0;
  while (taken < count && StartGroup(list, groups[taken], arrival) &&
         SubmitGroup(list, groups[taken], events_[taken])) {
    ++taken;
  }
  return taken;
}

bool Mover::StartGroup(const Transfer* list, const Group& group, const Arrival& arrival) {
  for (int i = group.first; i < group.first + group.count; ++i) {
    if (arrival.starts != nullptr && !arrival.starts(arrival.owner, i)) return false;
    if (!MapStaging(list[i], i)) return false;
    staged_[i] = list[i].target.side == 0;
  }
  return true;
}

bool Mover::SubmitGroup(const Transfer* list, const Group& group, CUevent event) {
  const CUstream on = stream(list[group.first].to);
  for (int i = group.first; i < group.first + group.count; ++i) {
    if (!SubmitOne(list[i], i)) return false;
  }
  return Collect(group, on) && driver_->cuEventRecord(event, on) == CUDA_SUCCESS;
}

bool Mover::Collect(const Group& group, CUstream stream) {
  if (device_results_ == 0 || hash_.function == nullptr) return true;
  const auto first = static_cast<size_t>(group.first);
  return driver_->cuMemcpyDtoHAsync(&results_[first], device_results_ + first * sizeof(Results),
                                    static_cast<size_t>(group.count) * sizeof(Results),
                                    stream) == CUDA_SUCCESS;
}

bool Mover::EqualByReadBack(CUdeviceptr a, CUdeviceptr b) {
  return driver_->cuMemcpyDtoHAsync(read_back_, a, core::kChunkBytes, streams_[0]) ==
             CUDA_SUCCESS &&
         driver_->cuMemcpyDtoHAsync(read_back_ + core::kChunkBytes, b, core::kChunkBytes,
                                    streams_[0]) == CUDA_SUCCESS &&
         driver_->cuStreamSynchronize(streams_[0]) == CUDA_SUCCESS &&
         memcmp(read_back_, read_back_ + core::kChunkBytes, core::kChunkBytes) == 0;
}

// Whether the source, which changed while it was away, is what arrived. Nothing is in flight.
bool Mover::Recheck(const Transfer& transfer, int slot) {
  return PrepareResults() && Hash(transfer.source, &results_[slot].source, streams_[0]) &&
         Collect({slot, 1}, streams_[0]) &&
         driver_->cuStreamSynchronize(streams_[0]) == CUDA_SUCCESS &&
         results_[slot].source == seen_[slot];
}

bool Mover::IsProven(Transfer* transfer, int slot) {
  if (hash_.function == nullptr) return EqualByReadBack(transfer->source, CopyOf(*transfer, slot));
  const Results result = results_[slot];
  const bool full = InFull(transfer->to);
  if (transfer->to == Place::kHost) {
    if (transfer->copied && result.source != transfer->hash.value) return false;
    transfer->hash = {result.source, true};
    return !full || result.source == result.copy;
  }
  if (full || !transfer->hash.known) return result.source == result.copy;
  return result.copy == transfer->hash.value;
}

void Mover::Arrive(Transfer* list, const Group& group) {
  for (int i = group.first; i < group.first + group.count; ++i) {
    list[i].done = IsProven(&list[i], i);
    seen_[i] = hash_.function != nullptr ? results_[i].copy : 0;
    if (list[i].done) ++proven_[static_cast<int>(list[i].to)];
  }
}

void Mover::Copy(Transfer* list, int count, const Arrival& arrival) {
  for (int i = 0; i < count; ++i) list[i].done = false;
  if (!Prepare()) return;
  Group groups[kBatch];
  bool tried[kBatch] = {};
  for (bool& staged : staged_) staged = false;
  const int taken = Submit(list, groups, MakeGroups(list, count, groups), arrival);
  for (int g = 0; g < taken; ++g) {
    if (driver_->cuEventSynchronize(events_[g]) != CUDA_SUCCESS) continue;
    Arrive(list, groups[g]);
    for (int i = 0; i < groups[g].count; ++i) tried[groups[g].first + i] = true;
    arrival.arrived(arrival.owner, groups[g].first, groups[g].count);
  }
  // After a failure too: nothing may be in flight when the staging window goes.
  for (const CUstream stream : streams_) driver_->cuStreamSynchronize(stream);
  for (int i = 0; i < count; ++i) {
    if (!tried[i] || list[i].done) continue;
    list[i].done = list[i].to == Place::kDevice && list[i].hash.known && Recheck(list[i], i);
    if (list[i].done) {
      ++proven_[static_cast<int>(list[i].to)];
      arrival.arrived(arrival.owner, i, 1);
    } else if (!list[i].copied) {
      ++mismatches_;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (staged_[i]) UnmapStaging(i);
  }
  if (window_lost_) staging_ = 0;
  window_lost_ = false;
}

}  // namespace tidemark::interpose
