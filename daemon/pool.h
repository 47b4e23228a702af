// The physical chunks this daemon owns: creates them through the driver, exports them, keeps those
// that nobody holds for the same uid to use again, and destroys the rest. A chunk never passes from
// one uid to another: it is destroyed and created anew, and the driver clears it.
//
// The pool knows handles, not holders; the ledger knows holders, not handles. What the pool created
// and destroyed is in each answer, so that the ledger can follow.
//
// Threads: one thread, the session loop. Every call may block in the driver: hold no lock.

#ifndef TIDEMARK_DAEMON_POOL_H_
#define TIDEMARK_DAEMON_POOL_H_

#include <cuda.h>
#include <sys/types.h>

#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/device_list.h"
#include "daemon/ledger.h"
#include "daemon/unique_fd.h"
#include "kernels/driver.h"

namespace tidemark::daemon {

class Pool {
 public:
  // Chunk ids count up from `first_id`; ids must be new over the life of the state directory.
  Pool(const kernels::Driver& driver, std::vector<ManagedDevice> devices, uint64_t chunk_bytes,
       ChunkId first_id);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  struct Taken {
    std::vector<ChunkId> reused;  // were idle, of this uid
    std::vector<ChunkId> created;
    std::vector<ChunkId> destroyed;  // idle ones that made room
    absl::Status status;             // why fewer than asked; ResourceExhausted: the driver has none
  };
  // Up to `count` chunks for `uid`. Idle ones of that uid first, the latest returned before others;
  // then new ones, as long as the slot holds at most `cap` chunks.
  Taken Take(Slot slot, uid_t uid, uint64_t count, uint64_t cap);

  // The chunk becomes idle.
  void GiveBack(ChunkId chunk, absl::Time now);
  // The chunk will never be used again. It is destroyed by Reap, or by Take when it needs the room:
  // a dead job may leave tens of thousands, and the living must not wait for all of them.
  void Doom(ChunkId chunk);
  // Destroys up to `most` doomed chunks; returns whether some remain.
  bool Reap(uint64_t most);
  // Destroys what has been idle since before `since`; returns its ids.
  std::vector<ChunkId> Trim(absl::Time since);

  absl::StatusOr<UniqueFd> Export(ChunkId chunk);

  uint64_t ChunksIn(Slot slot) const;  // doomed ones included
  uint64_t DoomedIn(Slot slot) const;

 private:
  struct Idle {
    ChunkId chunk;
    uid_t uid;
    absl::Time since;
  };
  struct Chunk {
    Slot slot;
    uid_t uid;
    CUmemGenericAllocationHandle handle;
  };

  void TakeIdle(Slot slot, uid_t uid, uint64_t count, Taken* taken);
  void Destroy(ChunkId chunk);
  // Destroys one chunk of the slot that nobody holds; false when there is none.
  bool MakeRoom(Slot slot, Taken* taken);
  bool DestroyOldestIdle(Slot slot, Taken* taken);
  absl::Status Create(Slot slot, uid_t uid, Taken* taken);

  const kernels::Driver& driver_;
  const std::vector<ManagedDevice> devices_;
  const uint64_t chunk_bytes_;
  ChunkId next_id_;
  std::map<ChunkId, Chunk> chunks_;
  std::map<Slot, uint64_t> count_;
  std::map<Slot, std::list<Idle>> idle_;  // oldest first
  std::map<Slot, std::vector<ChunkId>> doomed_;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_POOL_H_
