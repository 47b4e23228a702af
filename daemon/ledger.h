// Who holds which chunk: pure state, no driver, no clock. Two kinds of chunk: those this daemon
// created (idle in the pool, or held by one or more jobs), and adopted ones, which a job brought
// along from a former daemon or made itself; the ledger only counts the latter.
//
// Every chunk in use is charged to exactly one job, its owner. Other holders got it through an IPC
// share; when the owner lets go, the charge passes to the next holder.
//
// Threads: not thread-safe; the broker's lock guards it.

#ifndef TIDEMARK_DAEMON_LEDGER_H_
#define TIDEMARK_DAEMON_LEDGER_H_

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire.h"

namespace tidemark::daemon {

using ChunkId = uint64_t;
using JobId = uint64_t;

inline constexpr JobId kNobody = 0;

// Where memory lies: on a device, or in pinned host memory near that device.
struct Slot {
  uint32_t device = 0;
  tm_wire_place place = TM_WIRE_DEVICE;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that clang-tidy 14 sees is not in the source.
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// What became of a chunk that a job let go.
enum class LetGo {
  kIdle,       // nobody holds it: back to the pool, for the same uid
  kDestroy,    // nobody holds it, but a holder died with work in flight: must not be reused
  kStillHeld,  // another holder remains, or this one holds it once more
  kForgotten,  // adopted: the driver frees it
};

class Ledger {
 public:
  void AddJob(JobId job, uid_t uid);
  // Forgets the job. Returns the chunks that nobody holds any more; they left the ledger and must
  // be destroyed, because the job's last work may still run on the device.
  std::vector<ChunkId> RemoveJob(JobId job);

  void AddIdle(ChunkId chunk, Slot slot, uid_t uid);
  void RemoveIdle(ChunkId chunk);
  // The chunk must be idle and of the job's uid.
  void Lease(ChunkId chunk, JobId job);

  // Counts a chunk that the job says it holds. AlreadyExists when this ledger has the chunk.
  absl::Status Adopt(ChunkId chunk, Slot slot, JobId job);
  // One more hold on a held chunk. PermissionDenied across uids, NotFound unless held.
  absl::Status Import(ChunkId chunk, JobId job);
  // Ends one hold. NotFound unless the job holds the chunk. After kDestroy it left the ledger.
  absl::StatusOr<LetGo> Release(ChunkId chunk, JobId job);

  bool Holds(JobId job, ChunkId chunk, Slot slot) const;
  bool Owns(JobId job, ChunkId chunk) const;
  uint64_t HeldChunks(JobId job, Slot slot) const;  // charged to the job, adopted ones included
  uint64_t LeasedChunks(Slot slot) const;           // charged to any job, adopted ones included
  uint64_t AdoptedChunks(Slot slot) const;
  uint64_t IdleChunks(Slot slot) const;

  struct Holding {
    ChunkId chunk;
    Slot slot;
    bool adopted;
  };
  // What is charged to the job, ordered by slot, then id.
  std::vector<Holding> HoldingsOf(JobId job) const;

  // Recounts everything from nothing. OK, or the first contradiction as a sentence.
  absl::Status Validate() const;

 private:
  struct Chunk {
    Slot slot;
    uid_t uid = 0;
    JobId owner = kNobody;            // kNobody: idle
    bool suspect = false;             // a holder died: never recycle
    std::map<JobId, uint32_t> holds;  // number of holds by job; empty: idle
  };
  struct Job {
    uid_t uid = 0;
    std::map<Slot, uint64_t> charged;
    std::set<ChunkId> held;  // chunks of this daemon
    std::map<ChunkId, Slot> adopted;
  };
  struct Totals {
    uint64_t leased = 0;
    uint64_t adopted = 0;  // part of leased
    uint64_t idle = 0;
  };

  Job& JobAt(JobId job);
  void Charge(Chunk& chunk, JobId job);
  void Uncharge(const Chunk& chunk);
  LetGo DropHold(ChunkId id, Chunk& chunk, JobId job);
  absl::Status ValidateChunk(ChunkId id, const Chunk& chunk) const;
  absl::Status ValidateJob(JobId id, const Job& job) const;

  std::map<ChunkId, Chunk> chunks_;
  std::map<JobId, Job> jobs_;
  std::map<Slot, Totals> totals_;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_LEDGER_H_
