// Copies chunks between the arena and fresh chunks, verified: a staging window is mapped over the
// fresh chunks, each is copied on a stream of its own, and source and copy are hashed where they
// lie. Where the hash kernel cannot be loaded both are read back and compared; a copy is never
// taken on trust.
//
// Not here: when it is safe (residency.cc makes the safepoint) and the remapping
// (device_memory.cc). Threads: the device's lock is held and no work of the job is in flight.

#ifndef TIDEMARK_INTERPOSE_MOVER_H_
#define TIDEMARK_INTERPOSE_MOVER_H_

#include "interpose/chunk_supply.h"
#include "kernels/driver.h"
#include "kernels/hash.h"

namespace tidemark::interpose {

class Mover {
 public:
  static constexpr int kBatch = 16;

  void Init(const kernels::Driver* driver, CUdevice device) {
    driver_ = driver;
    device_ = device;
  }
  // Copies `sources[i]` (a chunk of the arena) into `targets[i]`, count <= kBatch, in the current
  // context. Sets done[i] where the copy is proven equal; returns how many. Leaves nothing mapped.
  int Copy(const CUdeviceptr* sources, const Chunk* targets, int count, bool* done);
  // Copies that turned out different, ever.
  uint64_t mismatches() const { return mismatches_; }
  // The context dies: what it holds dies with it.
  void Forget();

 private:
  bool Prepare();
  bool MapStaging(int slot, const Chunk& target);
  bool Submit(const CUdeviceptr* sources, int count, const bool* mapped);
  bool Hash(CUdeviceptr data, int result);
  bool EqualByReadBack(CUdeviceptr a, CUdeviceptr b);
  CUdeviceptr Staging(int slot) const {
    return staging_ + static_cast<uint64_t>(slot) * core::kChunkBytes;
  }

  const kernels::Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  CUdeviceptr staging_ = 0;
  CUstream stream_ = nullptr;
  uint64_t* results_ = nullptr;  // pinned: kBatch of the sources, kBatch of the copies
  char* read_back_ = nullptr;    // pinned: two chunks, only where the hash kernel is missing
  kernels::HashModule hash_;
  bool hash_tried_ = false;
  uint64_t mismatches_ = 0;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_MOVER_H_
