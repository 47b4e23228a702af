// IPC tokens: which chunks a job published under which random token, so that another process of the
// same user can open them. Pure state; the ledger keeps the chunks alive.
//
// Threads: not thread-safe; the broker's lock guards it.

#ifndef TIDEMARK_DAEMON_SHARES_H_
#define TIDEMARK_DAEMON_SHARES_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ledger.h"
#include "proto/wire.h"

namespace tidemark::daemon {

using ShareToken = std::array<uint8_t, 32>;

class Shares {
 public:
  // One part of a publication; parts come in order. FailedPrecondition out of order, AlreadyExists
  // for a token that is complete, ResourceExhausted when the job has too many.
  absl::Status Publish(JobId exporter, uid_t uid, const tm_wire_share& part);

  // Chunks [first, first + count) of a complete token, fewer at its end. NotFound, or
  // PermissionDenied across uids.
  absl::StatusOr<std::vector<ChunkId>> Open(const ShareToken& token, uid_t uid, uint32_t first,
                                            uint32_t count) const;

  // The exporter let go of `chunk`: tokens over it can be opened no more.
  void DropChunk(JobId exporter, ChunkId chunk);
  void DropJob(JobId exporter);
  size_t size() const { return shares_.size(); }

 private:
  struct Share {
    JobId exporter = kNobody;
    uid_t uid = 0;
    uint32_t total = 0;
    std::vector<ChunkId> chunks;
  };
  void Drop(std::map<ShareToken, Share>::iterator share);

  std::map<ShareToken, Share> shares_;
  std::multimap<ChunkId, ShareToken> by_chunk_;
  std::map<JobId, uint64_t> chunks_of_;  // published by each job, over all its tokens
};

ShareToken TokenOf(const tm_wire_share& message);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_SHARES_H_
