// How one resource (a device's memory, or the node's pinned host memory) is divided between jobs
// that want more of it than there is. Pure arithmetic in chunks; knows no job by more than its
// claim.
//
// The rule, in this order:
//   1. memory that a job holds and may not be asked for (pinned, level off) stays where it is;
//   2. guarantees, in order of attachment;
//   3. a small minimum for everybody: an eighth of an equal share, so that nobody starves;
//   4. what is left: higher priority first; within a priority equal shares, and what one job does
//   not
//      want goes to the others (max-min fairness).
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_ARBITER_H_
#define TIDEMARK_DAEMON_ARBITER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::daemon {

struct Claim {
  uint64_t held = 0;       // chunks the job has now
  uint64_t wanted = 0;     // chunks it has or lately asked for; never below `held`
  uint64_t limit = 0;      // never gets more
  uint64_t guarantee = 0;  // gets this much when it wants it
  int32_t priority = 0;
  bool movable = true;  // false: what it holds cannot be asked for
};

// Chunks for each claim; claims are in order of attachment. Sums to min(capacity, demand), save
// that what immovable claims hold is never taken, even above the capacity.
std::vector<uint64_t> Divide(uint64_t capacity, const std::vector<Claim>& claims);

// What claim `index` may hold: its part if it wanted all it may have, while the others want what
// they want now. A job at or below its entitlement is never asked to shrink.
uint64_t Entitlement(uint64_t capacity, std::vector<Claim> claims, size_t index);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_ARBITER_H_
