// A step by buffer instead of by operation: the uses of each buffer in order, the windows between
// them, what is alive at each operation and what of it cannot be away. Built once per planning; all
// else in this folder reads it. Windows are named by the use they follow. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_TIMELINE_H_
#define TIDEMARK_CORE_PLANNER_TIMELINE_H_

#include <cstdint>

#include "core/array.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core::planner {

inline constexpr uint32_t kNone = ~uint32_t{0};

struct Use {
  OpIndex op = 0;
  bool write = false;
  // For the window that follows: the next use, counted on through the iteration's end (>= n there);
  // kNone after the last use of a transient buffer.
  uint32_t next = kNone;
  // The last write at or before this use, counted back through the iteration's start: op of that
  // write is `op - since_write`; kNone: the buffer is never written in the step.
  uint32_t since_write = kNone;

  // The boundary from which what leaves in the window can be copied out, as far as is known.
  int32_t FirstIssue() const {
    const auto after = static_cast<int32_t>(op + 1);
    return since_write == kNone ? after : after - static_cast<int32_t>(since_write);
  }
};

class Timeline {
 public:
  // The step and machine are valid and outlive this. False: no host memory.
  [[nodiscard]] bool Build(const Step& step, const Machine& machine);

  uint32_t ops() const { return static_cast<uint32_t>(step_->ops.size()); }
  const Step& step() const { return *step_; }
  const StepBuffer& buffer(BufferIndex b) const { return step_->buffers[b]; }
  size_t buffers() const { return step_->buffers.size(); }
  Nanoseconds ideal() const { return ideal_; }
  // ns from the iteration's start to operation i, or to its end for i = ops(), without waits.
  double start(uint32_t i) const { return starts_[i]; }

  // Uses of buffer b: use(i) for i in [first_use(b), first_use(b + 1)).
  uint32_t first_use(BufferIndex b) const { return first_use_[b]; }
  const Use& use(uint32_t i) const { return uses_[i]; }
  size_t uses() const { return uses_.size(); }
  // Buffers used by operation i: user(k) for k in [first_user(i), first_user(i + 1)).
  uint32_t first_user(OpIndex i) const { return op_first_[i]; }
  BufferIndex user(uint32_t k) const { return op_list_[k]; }
  uint32_t use_of_user(uint32_t k) const { return op_uses_[k]; }  // an index of use()

  // Whether policy and size allow the buffer to leave at all.
  bool CanMove(BufferIndex b) const {
    return buffer(b).movable && buffer(b).bytes >= min_bytes_ && buffer(b).bytes != 0;
  }
  // A window is open when at least one operation runs inside it.
  bool IsOpen(const Use& use) const { return use.next != kNone && use.next - use.op >= 2; }

  // The use of b whose window a move with this release lies in; kNone: no window does.
  uint32_t WindowOf(BufferIndex b, OpIndex release) const;

  Bytes live(OpIndex i) const { return live_[i]; }    // all that is alive
  Bytes floor(OpIndex i) const { return floor_[i]; }  // of it, what cannot be away
  Bytes peak() const { return peak_; }
  Bytes largest_floor() const { return largest_floor_; }

 private:
  [[nodiscard]] bool CollectUses();
  [[nodiscard]] bool StartLists();
  OpIndex LeastAlive() const;
  [[nodiscard]] bool SumDurations();
  void CountAlive();
  void LinkUses(BufferIndex b);

  const Step* step_ = nullptr;
  Bytes min_bytes_ = 0;
  Nanoseconds ideal_ = 0;
  Array<double> starts_;
  Array<uint32_t> first_use_;
  Array<Use> uses_;
  Array<uint32_t> op_first_;
  Array<BufferIndex> op_list_;
  Array<uint32_t> op_uses_;
  Array<Bytes> live_;
  Array<Bytes> floor_;
  Bytes peak_ = 0;
  Bytes largest_floor_ = 0;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_TIMELINE_H_
