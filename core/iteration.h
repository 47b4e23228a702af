// Learns the iteration of a job from the work that passes its gate: after how many launches the
// sequence repeats, and from that, when each buffer is used next. A guess, and nothing rests on it
// but the order in which buffers leave and come back.
//
// A launch's signature is what was launched and the sizes of the buffers it touched (period.h finds
// how they repeat). Buffers that live across iterations are recognised by their id; those born in
// each iteration anew by the place of their birth in it.
//
// Not here: who leaves (interpose/residency.cc), what an iteration costs (step.h). Threads: none of
// its own; the owner serialises.

#ifndef TIDEMARK_CORE_ITERATION_H_
#define TIDEMARK_CORE_ITERATION_H_

#include "core/array.h"
#include "core/period.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core {

// Who a buffer is, across iterations.
struct BufferName {
  uint64_t id = 0;     // its own, never used again
  uint64_t birth = 0;  // from Iteration::Birth() when it was allocated
  Bytes bytes = 0;
};

struct NextUse {
  LaunchNumber launches = 0;  // from the current launch; kNever when it is not known to come
  bool is_end = false;        // it is freed then, not used
};

class Iteration {
 public:
  static constexpr LaunchNumber kNever = ~LaunchNumber{0};
  static constexpr uint32_t kEvents = 1 << 16;  // uses and ends in one period, at most half

  // False: out of host memory; the object then learns nothing and everything else may be called.
  bool Init();

  // A launch: what it is (any number that is the same in each iteration), then what it touches,
  // then its end. A buffer touched outside of Begin and End belongs to the launch before.
  void Begin(uint64_t what);
  void Touch(const BufferName& buffer);
  void End();
  // The mark of a buffer allocated now.
  uint64_t Birth();
  void Died(const BufferName& buffer);

  // Launches in one iteration; 0: not known at present.
  uint32_t period() const { return period_.length(); }
  LaunchNumber now() const { return now_; }
  // Reads the last iteration off the log where that is due; before a row of questions. Costs about
  // 20 ns for each use in an iteration.
  void Learn();
  // When `buffer` is used next. Nothing is known before a period is, nor of a buffer that the last
  // iteration did not use: launches is kNever then, and `*known` is false.
  NextUse Next(const BufferName& buffer, bool* known) const;

  // The learned iteration as the planner wants it: one operation for each launch, all of
  // `duration`, from a launch on, `*first`, at which the fewest bytes are alive that were born in
  // the iteration. What is alive then all the same is described as staying and immovable. `keys`
  // gets the key of each buffer of the step. False: nothing is learned, or out of host memory.
  bool Describe(Nanoseconds duration, Step* step, Array<uint64_t>* keys, LaunchNumber* first) const;
  // What `buffer` is called in `keys`: the same in each iteration. Needs Learn() before.
  uint64_t KeyOf(const BufferName& buffer) const;

 private:
  struct Event {
    LaunchNumber launch = 0;
    BufferName buffer;
    bool is_end = false;
  };
  struct Role {
    uint64_t key = 0;  // 0: free
    uint32_t first = 0;
    uint32_t count = 0;
  };

  void Log(const BufferName& buffer, bool is_end);
  bool FindLastPeriod(uint64_t* first) const;
  // Counted from the start of the learned period.
  OpIndex PhaseOf(LaunchNumber launch) const {
    return static_cast<OpIndex>((launch - learned_from_ - 1) % learned_period_);
  }
  BufferIndex SlotOf(const Event& event) const;
  bool FindBuffers(Step* step, Array<uint64_t>* keys, Array<BufferIndex>* of_slot) const;
  bool FindOrigin(const Step& step, OpIndex* origin) const;
  bool AddAccess(OpIndex op, BufferIndex buffer, Step* step) const;
  uint64_t KeyOf(const BufferName& buffer, LaunchNumber at) const;
  uint64_t YoungKey(const BufferName& buffer) const;
  Role* Find(uint64_t key);
  const Role* Find(uint64_t key) const { return const_cast<Iteration*>(this)->Find(key); }

  bool ready_ = false;
  LaunchNumber now_ = 0;
  uint32_t born_ = 0;  // since the current launch began
  uint64_t signature_ = 0;
  Period period_;
  LaunchNumber learned_at_ = 0;
  uint64_t event_count_ = 0;
  Array<Event> events_;   // ring
  Array<Role> roles_;     // open addressing
  Array<uint32_t> uses_;  // of each role, launches from the start of the learned period * 2,
                          // + 1 for an end
  LaunchNumber learned_from_ = 0;
  uint64_t learned_events_ = 0;  // the first event of the learned period
  uint64_t learned_end_ = 0;     // one past the last
  uint32_t learned_period_ = 0;  // 0: nothing was learned
  uint32_t role_mask_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ITERATION_H_
