// Copies of device chunks made ahead of their leaving, on the mover's outgoing stream, while the
// job computes. The chunk stays where it is and may be used; a copy that is still true when the
// chunk leaves saves the way over the link. Whether it is true is not believed but seen: the bytes
// were hashed before the copy and are hashed again in the safepoint (mover.h).
//
// Work that the gate sees on such a chunk waits for the copy and makes it stale. The host chunks of
// the copies belong to this object until they are taken or popped.
//
// Not here: which chunks and when (ahead.cc). Threads: the device's lock is held.

#ifndef TIDEMARK_INTERPOSE_EARLY_COPIES_H_
#define TIDEMARK_INTERPOSE_EARLY_COPIES_H_

#include "core/array.h"
#include "interpose/mover.h"

namespace tidemark::interpose {

class EarlyCopies {
 public:
  static constexpr uint32_t kMost = 1024;

  void Init(const kernels::Driver* driver, Mover* mover) {
    driver_ = driver;
    mover_ = mover;
  }
  // Before Start, with the device's context current. False: not possible.
  bool Prepare(core::ChunkIndex chunks);
  // The stream of the copies: what it waits for is done before they read.
  CUstream stream() const { return mover_->stream(Place::kHost); }
  // Copies the chunk at `source` into `target`, which has a place beside the arena. False: nothing
  // was started, `target` is the caller's.
  bool Start(core::ChunkIndex chunk, CUdeviceptr source, const Chunk& target);
  // After one or more of them, before the lock is given up.
  void EndBatch();

  // Host chunks held here.
  uint32_t count() const { return count_; }
  bool Has(core::ChunkIndex chunk) const { return Find(chunk) != nullptr; }
  bool Fresh(core::ChunkIndex chunk) const {
    const Entry* entry = Find(chunk);
    return entry != nullptr && !entry->stale;
  }
  // Work is about to touch the chunk: its copy is stale, and `stream` waits for it. Without a
  // stream the host does.
  void Touch(core::ChunkIndex chunk, const CUstream* stream);
  void MakeStale(core::ChunkIndex chunk);
  // Work on `stream` may touch any of them, as far as they are stale or pinned.
  void TouchAny(const CUstream* stream);

  // In a safepoint: learns the hashes of what was copied.
  bool Collect();
  // A copy that was collected and is not stale.
  bool Take(core::ChunkIndex chunk, Chunk* target, ChunkHash* hash);
  // Gives up the copy of `chunk`, once nothing is in flight.
  bool Drop(core::ChunkIndex chunk, Chunk* target);
  // Gives up one that is stale, or, with `all`, any. False: there is none.
  bool Pop(bool all, Chunk* target);
  // The host waits until nothing is in flight.
  void Wait();
  // Something may be in flight, as far as is known without asking.
  bool InFlight() const { return batch_ - 1 > finished_; }
  // Asks whether all is done.
  bool Done();
  // The context dies, and with it what lives in it; the host chunks stay.
  void Forget();

 private:
  struct Entry {
    Chunk target;  // valid: the entry is in use
    core::ChunkIndex chunk = 0;
    uint64_t batch = 0;
    ChunkHash hash;
    bool stale = false;
    bool used_slot = false;  // its result is not zero
  };
  static constexpr uint32_t kEvents = 64;

  Entry* Find(core::ChunkIndex chunk) const {
    return count_ == 0 || of_chunk_[chunk] == 0 ? nullptr : &entries_[of_chunk_[chunk] - 1];
  }
  bool InFlight(const Entry& entry) const { return entry.batch > finished_; }
  CUevent EventOf(uint64_t batch) const { return events_[batch % kEvents]; }
  // `stream` waits for the batch; without a stream, or if it cannot, the host does for all.
  void LetWait(const CUstream* stream, uint64_t batch);
  Chunk Release(Entry* entry);

  const kernels::Driver* driver_ = nullptr;
  Mover* mover_ = nullptr;
  mutable core::Array<Entry> entries_;
  core::Array<uint16_t> of_chunk_;  // entry + 1
  CUdeviceptr device_results_ = 0;
  uint64_t* results_ = nullptr;  // pinned
  CUevent events_[kEvents] = {};
  uint64_t batch_ = 1;     // the one that is being started
  uint64_t finished_ = 0;  // all up to it are done
  uint32_t count_ = 0;
  uint32_t next_ = 0;  // where a free entry is looked for
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_EARLY_COPIES_H_
