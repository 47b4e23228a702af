// Copies chunks between the arena and fresh chunks, both directions at once: each on the stream of
// its direction, to the fresh chunk's place beside the arena, or where it has none, through a
// staging window that is mapped over it. The caller hears of each as soon as it is proven, while
// the next are on their way: remapping takes the host about as long as copying the link.
//
// Proof of a copy: bytes that leave are hashed where they lie, on the device, and what comes back
// is hashed there again; the two must agree, or the bytes on the host must have changed in between
// (work reached them over the link), which a hash over the link tells. The first kProven copies of
// each direction are also compared in full, source against copy. Where the hash kernel cannot be
// loaded, every copy is read back and compared.
//
// Not here: when it is safe and the remapping (residency.cc). Threads: the device's lock is held
// and no work of the job is in flight.

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
  bool copied = false;  // to the host: `target` holds the bytes if their hash is still `hash`
};

// Pinned host memory for results, freed with the context; null: there is none.
void* HostMemory(const kernels::Driver& driver, size_t bytes);
// Creates those of the `count` events that are null. False: one stayed null.
bool CreateEvents(const kernels::Driver& driver, CUevent* events, uint32_t count);

// The caller's side of a list of copies.
struct Arrival {
  void* owner = nullptr;
  // Before the copy of the transfer at `index` starts, while those before are on their way: gives
  // it its target, if it has none. False: there is none, and neither it nor what follows is tried.
  bool (*starts)(void* owner, int index) = nullptr;
  // [first, first + count) of the list have arrived, or have failed; `done` says which.
  void (*arrived)(void* owner, int first, int count) = nullptr;
};

class Mover {
 public:
  static constexpr int kBatch = 32;
  static constexpr uint64_t kProven = 64;

  void Init(const kernels::Driver* driver, CUdevice device) {
    driver_ = driver;
    device_ = device;
  }
  // Copies `list` (count <= kBatch, those to one place next to each other) in the current context.
  // Sets `done` where the copy is proven, and tells `arrival` then, in an order of its own; of a
  // transfer that was not even tried it says nothing. When it returns nothing is in flight or
  // mapped.
  void Copy(Transfer* list, int count, const Arrival& arrival);
  // For copies ahead (early_copies.h): streams and the hash kernel, in the current context. False:
  // not possible.
  bool PrepareToHash() { return PrepareStreams() && hash_.function != nullptr; }
  // Adds the hash of the chunk at `data` to the word at `result`.
  bool HashInto(CUdeviceptr data, CUdeviceptr result, CUstream stream);
  CUstream stream(Place to) const { return streams_[static_cast<int>(to)]; }
  // Copies that turned out different, ever.
  uint64_t mismatches() const { return mismatches_; }
  // The context dies: what it holds dies with it.
  void Forget();

 private:
  struct Results {  // of one transfer: hashes of its source and its copy
    uint64_t source;
    uint64_t copy;
  };
  static constexpr int kGroup = 1;  // transfers that arrive together
  struct Group {                    // neighbours in the list, of one direction
    int first;
    int count;
  };
  bool Prepare() {
    return PrepareStreams() && CreateEvents(*driver_, events_, kBatch) && PrepareResults();
  }
  bool PrepareStreams();
  bool PrepareResults();
  bool MapStaging(const Transfer& transfer, int slot);
  void UnmapStaging(int slot);
  static int MakeGroups(const Transfer* list, int count, Group* groups);
  int Submit(const Transfer* list, const Group* groups, int count, const Arrival& arrival);
  bool SubmitGroup(const Transfer* list, const Group& group, CUevent event);
  bool StartGroup(const Transfer* list, const Group& group, const Arrival& arrival);
  bool SubmitOne(const Transfer& transfer, int slot);
  bool Collect(const Group& group, CUstream stream);
  void Arrive(Transfer* list, const Group& group);
  bool Recheck(const Transfer& transfer, int slot);
  bool Hash(CUdeviceptr data, const uint64_t* result, CUstream stream);
  bool IsProven(Transfer* transfer, int slot);
  bool EqualByReadBack(CUdeviceptr a, CUdeviceptr b);
  bool SourceHash(const Transfer& transfer, int slot, uint64_t* hash);
  bool InFull(Place to) const { return proven_[static_cast<int>(to)] < kProven; }
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
  CUevent events_[kBatch] = {};     // of groups
  uint64_t seen_[kBatch] = {};      // hashes of what arrived
  CUdeviceptr device_results_ = 0;  // Results[kBatch]; 0: the hashes go to `results_` directly
  Results* results_ = nullptr;      // pinned
  char* read_back_ = nullptr;       // pinned: two chunks, only where the hash kernel is missing
  kernels::HashModule hash_;
  bool hash_tried_ = false;
  bool window_lost_ = false;
  bool staged_[kBatch] = {};  // MapStaging was done, of the list in hand
  uint64_t proven_[2] = {};
  uint64_t mismatches_ = 0;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_MOVER_H_
