// Implementation of interpose/early_copies.h. Threads: as the header says.

#include "interpose/early_copies.h"

namespace tidemark::interpose {

bool EarlyCopies::Prepare(core::ChunkIndex chunks) {
  if (!mover_->PrepareToHash()) return false;
  if (!entries_.Resize(kMost) || !of_chunk_.Resize(chunks)) return false;
  if (!CreateEvents(*driver_, events_, kEvents)) return false;
  if (results_ == nullptr) {
    results_ = static_cast<uint64_t*>(HostMemory(*driver_, kMost * sizeof(uint64_t)));
    if (results_ == nullptr) return false;
  }
  if (device_results_ != 0) return true;
  if (driver_->cuMemAlloc(&device_results_, kMost * sizeof(uint64_t)) != CUDA_SUCCESS) {
    device_results_ = 0;
    return false;
  }
  return driver_->cuMemsetD8Async(device_results_, 0, kMost * sizeof(uint64_t), stream()) ==
         CUDA_SUCCESS;
}

bool EarlyCopies::Start(core::ChunkIndex chunk, CUdeviceptr source, const Chunk& target) {
  if (of_chunk_[chunk] != 0 || count_ == kMost) return false;
  uint32_t looked = 0;
  while (entries_[next_].target.valid || entries_[next_].used_slot) {
    next_ = (next_ + 1) % kMost;
    if (++looked == kMost) return false;
  }
  Entry& entry = entries_[next_];
  entry.used_slot = true;
  // Hashed before: what is written meanwhile shows when it is hashed again.
  const CUdeviceptr result = device_results_ + next_ * sizeof(uint64_t);
  if (!mover_->HashInto(source, result, stream()) ||
      driver_->cuMemcpyDtoDAsync(target.side, source, core::kChunkBytes, stream()) !=
          CUDA_SUCCESS) {
    driver_->cuStreamSynchronize(stream());  // nothing would guard the chunk against the hash
    return false;
  }
  entry.target = target;
  entry.chunk = chunk;
  entry.batch = batch_;
  entry.hash = ChunkHash();
  entry.stale = false;
  of_chunk_[chunk] = static_cast<uint16_t>(next_ + 1);
  ++count_;
  return true;
}

void EarlyCopies::EndBatch() {
  if (driver_->cuEventRecord(EventOf(batch_), stream()) != CUDA_SUCCESS) {
    driver_->cuStreamSynchronize(stream());
    finished_ = batch_;
  }
  ++batch_;
}

void EarlyCopies::MakeStale(core::ChunkIndex chunk) {
  Entry* entry = Find(chunk);
  if (entry != nullptr) entry->stale = true;
}

void EarlyCopies::Touch(core::ChunkIndex chunk, const CUstream* stream) {
  Entry* entry = Find(chunk);
  if (entry == nullptr) return;
  entry->stale = true;
  if (InFlight(*entry)) LetWait(stream, entry->batch);
}

void EarlyCopies::TouchAny(const CUstream* stream) {
  if (InFlight()) LetWait(stream, batch_ - 1);
}

void EarlyCopies::LetWait(const CUstream* stream, uint64_t batch) {
  if (stream == nullptr || driver_->cuStreamWaitEvent(*stream, EventOf(batch), 0) != CUDA_SUCCESS) {
    Wait();
  }
}

void EarlyCopies::Wait() {
  if (!InFlight()) return;
  if (driver_->cuEventSynchronize(EventOf(batch_ - 1)) == CUDA_SUCCESS) finished_ = batch_ - 1;
}

bool EarlyCopies::Done() {
  if (InFlight() && driver_->cuEventQuery(EventOf(batch_ - 1)) == CUDA_SUCCESS) {
    finished_ = batch_ - 1;
  }
  return !InFlight();
}

bool EarlyCopies::Collect() {
  finished_ = batch_ - 1;
  bool any = false;
  for (const Entry& entry : entries_) any = any || entry.used_slot;
  if (!any) return true;
  const size_t bytes = kMost * sizeof(uint64_t);
  if (driver_->cuMemcpyDtoHAsync(results_, device_results_, bytes, stream()) != CUDA_SUCCESS ||
      driver_->cuMemsetD8Async(device_results_, 0, bytes, stream()) != CUDA_SUCCESS ||
      driver_->cuStreamSynchronize(stream()) != CUDA_SUCCESS) {
    return false;
  }
  for (uint32_t i = 0; i < kMost; ++i) {
    Entry& entry = entries_[i];
    if (entry.used_slot && entry.target.valid) entry.hash = {results_[i], true};
    entry.used_slot = false;
  }
  return true;
}

Chunk EarlyCopies::Release(Entry* entry) {
  const Chunk target = entry->target;
  of_chunk_[entry->chunk] = 0;
  entry->target = Chunk();
  --count_;
  return target;
}

bool EarlyCopies::Take(core::ChunkIndex chunk, Chunk* target, ChunkHash* hash) {
  Entry* entry = Find(chunk);
  if (entry == nullptr || entry->stale || !entry->hash.known || InFlight(*entry)) return false;
  *hash = entry->hash;
  *target = Release(entry);
  return true;
}

bool EarlyCopies::Drop(core::ChunkIndex chunk, Chunk* target) {
  Entry* entry = Find(chunk);
  if (entry == nullptr) return false;
  if (InFlight(*entry)) Wait();
  *target = Release(entry);
  return true;
}

bool EarlyCopies::Pop(bool all, Chunk* target) {
  if (count_ == 0) return false;
  for (Entry& entry : entries_) {
    if (!entry.target.valid || (!all && !entry.stale)) continue;
    if (InFlight(entry)) Wait();
    *target = Release(&entry);
    return true;
  }
  return false;
}

void EarlyCopies::Forget() {
  for (CUevent& event : events_) event = nullptr;
  device_results_ = 0;
  results_ = nullptr;
  finished_ = batch_ - 1;
  for (Entry& entry : entries_) {
    entry.used_slot = false;
    entry.hash = ChunkHash();
    entry.stale = true;
  }
}

}  // namespace tidemark::interpose
