// Turns a paging policy into a plan. The walk goes through several iterations operation by
// operation, keeps the books of who is on the device, asks the policy for victims and prefetches,
// and writes down the moves of an iteration that repeats. It knows the time only as the sum of
// durations and copies queued so far: what really happens is the simulator's answer. For
// yardsticks; nothing of it is in the product. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_PAGING_WALK_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_PAGING_WALK_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/step.h"

namespace tidemark::bench {

using Turn = int64_t;  // an operation of an iteration: iteration * operations + index

class PagingWalk;

class PagingPolicy {
 public:
  virtual ~PagingPolicy() = default;
  // The buffer with the smallest key leaves first. Asked after each use and each return.
  virtual Turn KeyOf(const PagingWalk& walk, core::BufferIndex buffer, Turn turn) const = 0;
  // Not evicted at this turn, as long as there is another.
  virtual bool Spares(const PagingWalk& walk, core::BufferIndex buffer, Turn turn) const;
  // Before operation `turn`: early evictions and prefetches.
  virtual void AtBoundary(PagingWalk* walk, Turn turn);
};

struct PagingRules {
  bool whole_buffers = true;      // else parts in whole chunks, as much as is needed
  bool drops_clean = false;       // a valid host copy is not copied out again
  bool copies_out_early = false;  // from the last use on, not from the decision on
};

class PagingWalk {
 public:
  PagingWalk(const core::Step& step, const core::Machine& machine, PagingRules rules);

  // False: no plan, and *why_not says why.
  bool Run(PagingPolicy* policy, core::Plan* plan, std::string* why_not);

  // --- what a policy may ask ---
  const core::Step& step() const { return step_; }
  Turn ops() const { return static_cast<Turn>(step_.ops.size()); }
  double TimeOf(Turn turn) const;  // ns since the first iteration's start, without stalls
  Turn LastUse(core::BufferIndex buffer) const { return books_[buffer].last_use; }
  Turn LastReturn(core::BufferIndex buffer) const { return books_[buffer].last_return; }
  Turn NextUse(core::BufferIndex buffer, Turn turn) const;  // at or after `turn`
  core::Bytes AwayBytes(core::BufferIndex buffer) const { return books_[buffer].away; }
  core::Bytes FreeBytes() const;                               // of the budget, now
  core::Bytes LeavingBytes() const { return leaving_bytes_; }  // copies out under way
  // Buffers of which something is away, by next use.
  const std::set<std::pair<Turn, core::BufferIndex>>& Away() const { return away_order_; }

  // --- what a policy may do at a boundary ---
  // The first by key that is not spared begins to leave; its bytes are free when the copy is done
  // or somebody waits for it. False: there is none.
  bool StartEviction(Turn turn, core::Bytes bytes);
  void StartEvictionOf(core::BufferIndex buffer, Turn turn, core::Bytes bytes);
  // Takes the room and lets the copy in start. Waits for nothing: false, when no room is free now.
  bool Prefetch(core::BufferIndex buffer, Turn turn);
  // Makes room for it by evicting what is used later, and prefetches.
  bool PrefetchOver(core::BufferIndex buffer, Turn turn);

 private:
  struct Part {  // of a buffer, from the decision to leave until it is back
    core::Move move;
    Turn release = -1;  // not yet: its bytes still count
    Turn reserve = -1;
    uint64_t out_order = 0;
    uint64_t in_order = 0;
    double out_done = 0;  // estimate
  };
  struct Book {  // of one buffer
    bool alive = false;
    bool movable = false;
    core::Bytes resident = 0;  // a prefix of the buffer
    core::Bytes away = 0;      // released and not back
    Turn last_use = -1;
    Turn last_return = -1;
    bool host_valid = false;
    size_t last_draft = SIZE_MAX;
    std::vector<Part> parts;
    Turn key = 0;
  };
  struct Draft {  // a finished move
    core::Move move;
    Turn release;
    uint64_t out_order;
    uint64_t in_order;
  };

  bool Walk(Turn turn);
  std::vector<const Draft*> DraftsOf(Turn iteration) const;  // that left in it
  bool Repeats(Turn iteration) const;
  bool Need(core::BufferIndex buffer, Turn turn);
  bool MakeRoom(core::Bytes bytes, Turn turn, bool waits);
  bool ReleaseOldest(Turn turn, bool waits);
  void Cancel(core::BufferIndex buffer);
  void TakeBack(core::BufferIndex buffer, Turn turn);
  bool GiveUpPrefetch(Turn turn);
  void Finish(core::BufferIndex buffer, Turn turn);
  void Rekey(core::BufferIndex buffer, Turn turn);
  void Track(core::BufferIndex buffer, bool resident);
  void Born(core::BufferIndex buffer, Turn turn);
  void Free(core::BufferIndex buffer);
  core::BufferIndex Victim(Turn turn, Turn not_before) const;
  bool WritePlan(Turn first_turn, core::Plan* plan) const;

  const core::Step& step_;
  const core::Machine& machine_;
  const PagingRules rules_;
  PagingPolicy* policy_ = nullptr;
  std::string why_not_;
  std::vector<double> prefix_ns_;
  std::vector<std::vector<core::BufferIndex>> needed_, born_, freed_;  // by operation
  std::vector<std::vector<core::OpIndex>> uses_;                       // by buffer
  std::vector<Book> books_;
  std::vector<Turn> in_use_;                            // by buffer: the last turn that needs it
  std::set<std::pair<Turn, core::BufferIndex>> order_;  // who may leave, by key
  std::set<std::pair<Turn, core::BufferIndex>> away_order_;      // by next use
  std::set<std::pair<Turn, core::BufferIndex>> returning_;       // by next use
  std::vector<std::pair<core::BufferIndex, uint64_t>> leaving_;  // oldest first, by out_order
  core::Bytes leaving_bytes_ = 0;
  core::Bytes used_ = 0;
  core::Bytes host_used_ = 0;
  double out_free_ns_ = 0;
  uint64_t next_order_ = 1;
  std::vector<Draft> drafts_;
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_PAGING_WALK_H_
