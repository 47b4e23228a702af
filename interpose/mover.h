// Copies chunks between the arena and fresh chunks, both directions at once: each on the stream of
// its direction, to the fresh chunk's place beside the arena, or where it has none, through a
// staging window that is mapped over it.
//
// Proof of a copy: bytes that leave are hashed where they lie, on the device, and what comes back
// is hashed there again; the two must agree, or the bytes on the host must have changed in between
// (work reached them over the link), which a hash over the link tells. The first kProven copies of
// each direction are also compared in full, source against copy. Where the hash kernel cannot be
// loaded, every copy is read back and compared.
//
// Not here: when it is safe (residency.cc makes the safepoint) and the remapping
// (device_memory.cc). Threads: the device's lock is held and no work of the job is in flight.

#ifndef TIDEMARK_INTERPOSE_MOVER_H_
#define TIDEMARK_INTERPOSE_MOVER_H_

#include "interpose/chunk_supply.h"
#include "kernels/driver.h"
#include "kernels/hash.h"

namespace tidemark::interpose {

// A hash of a chunk's bytes, kept while they are on the host.
struct ChunkHash {
  uint64_t value = 0;
  bool known = false;
};

// One chunk to copy.
struct Transfer {
  CUdeviceptr source = 0;  // in the arena
  Chunk target;
  Place to = Place::kHost;
  ChunkHash hash;  // to the device: as it left, if known; to the host: set by Copy
  bool done = false;
};

class Mover {
 public:
  static constexpr int kBatch = 32;
  static constexpr uint64_t kProven = 64;

  void Init(const kernels::Driver* driver, CUdevice device) {
    driver_ = driver;
    device_ = device;
  }
  // Copies `list` (count <= kBatch) in the current context. Sets `done` where the copy is proven;
  // returns how many. Leaves nothing mapped.
  int Copy(Transfer* list, int count);
  // Copies that turned out different, ever.
  uint64_t mismatches() const { return mismatches_; }
  // The context dies: what it holds dies with it.
  void Forget();

 private:
  struct Results {  // of one transfer: hashes of its source and its copy
    uint64_t source;
    uint64_t copy;
  };
  bool Prepare();
  bool PrepareResults();
  bool MapStaging(const Transfer& transfer, int slot);
  void UnmapStaging(int slot);
  bool Submit(const Transfer* list, int count);
  bool SubmitOne(const Transfer& transfer, int slot);
  bool Collect();
  bool Hash(CUdeviceptr data, const uint64_t* result, CUstream stream);
  bool IsProven(Transfer* transfer, int slot);
  bool EqualByReadBack(CUdeviceptr a, CUdeviceptr b);
  bool SourceHash(const Transfer& transfer, int slot, uint64_t* hash);
  bool InFull(Place to) const { return proven_[static_cast<int>(to)] < kProven; }
  CUstream StreamTo(Place to) const { return streams_[static_cast<int>(to)]; }
  // Where the copy of a transfer goes.
  CUdeviceptr CopyOf(const Transfer& transfer, int slot) const {
    return transfer.target.side != 0 ? transfer.target.side : Staging(slot);
  }
  CUdeviceptr Staging(int slot) const {
    return staging_ + static_cast<uint64_t>(slot) * core::kChunkBytes;
  }

  const kernels::Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  CUdeviceptr staging_ = 0;
  CUstream streams_[2] = {};
  CUdeviceptr device_results_ = 0;  // Results[kBatch]; 0: the hashes go to `results_` directly
  Results* results_ = nullptr;      // pinned
  char* read_back_ = nullptr;       // pinned: two chunks, only where the hash kernel is missing
  kernels::HashModule hash_;
  bool hash_tried_ = false;
  bool window_lost_ = false;
  uint64_t proven_[2] = {};
  uint64_t mismatches_ = 0;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_MOVER_H_
