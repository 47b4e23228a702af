// The constructive part: runs the step forward in simulated time, keeping both links busy, and
// decides at each operation boundary. What is used farthest in the future is copied out first and
// leaves first; what is used soonest comes back first, as early as the horizon allows. This is the
// "aggressive" rule of integrated prefetching and caching (Cao, Felten, Karlin, Li 1995), at chunk
// runs, with copies out and births of buffers added. Pieces are runs of chunks of one buffer.
// Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_SWEEP_H_
#define TIDEMARK_CORE_PLANNER_SWEEP_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/draft.h"
#include "core/planner/horizon.h"
#include "core/planner/links.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

struct SweepOptions {
  Bytes piece = kChunkBytes;                 // the size of pieces, whole chunks
  const Array<double>* waits_out = nullptr;  // expected waits for copies out, per operation
  // An idle link copies out what need not leave, so that there is something to give up without a
  // wait ("spare" copies); and that is given up rather than wait, as long as the way back fits into
  // this part of the link's time until its use. 0: none of it.
  double spares = 0;
  // Spare copies only while nothing comes in, where that would be slowed down by them.
  bool spares_yield = false;
  double out_speed = 1;  // the links it reckons with, as parts of what the machine has
  double in_speed = 1;
  // Copies stand in the queues for so much longer than until the next boundary, in pieces.
  double out_ahead = 0;
  double in_ahead = 0;
  bool evicts_to_prefetch = true;  // what is used later makes room for what is used sooner
  // Per use of the timeline: operations by which the window after it ranks as longer than it is.
  const Array<int32_t>* shifts = nullptr;
  // Of each buffer this part leaves last, in all windows alike: where the same is used again and
  // again in a circle, the rest streams through what room there is.
  double stays = 0;
  bool keeps_copies = true;  // for another window of the same content, if the host has room
};

class Sweep {
 public:
  enum class Result : uint8_t { kDone, kStuck, kNoMemory };

  // Fills *draft with one iteration of the steady state as the sweep saw it. The horizon is that of
  // the device budget.
  Result Run(const Timeline& timeline, const Horizon& horizon, const Machine& machine,
             const SweepOptions& options, Draft* draft);

  size_t pieces() const { return pieces_.size(); }
  // Of the last run, what its time goes with: pieces looked at after their uses, and pieces that
  // left.
  uint64_t work() const { return work_; }

 private:
  enum class Where : uint8_t { kDevice, kHost, kReturning };
  struct Piece {
    BufferIndex buffer;
    Bytes offset;
    Bytes bytes;
    bool stays;  // SweepOptions::stays
    Where where;
    uint32_t copy;         // number of its copy out; kNone: no valid one; kOldCopy
    uint32_t issued;       // boundary at which that copy was put
    uint32_t back;         // number of its copy in, while returning
    uint32_t record;       // of records_, while away or returning
    uint32_t dirty_entry;  // the key it has in dirty_, kNoEntry: it is not there,
    uint32_t spare_entry;  // in spare_; at most one that is not stale, however often it is used
  };
  struct State {          // of a buffer; operations are counted on through the iterations
    uint32_t next_use;    // of the timeline
    uint32_t next_at;     // its operation; kNone: none
    uint32_t base;        // first operation of the iteration of its last use
    uint32_t rank;        // next_at, shifted; what leaves first ranks highest
    uint32_t dirty_key;   // when what is to be copied out is used
    uint32_t dirty_rank;  // the same, shifted
    uint32_t spare_key;   // the same as dirty_key for spare copies
    uint32_t absent;      // pieces on the host or returning
    uint32_t copies;      // pieces with a copy, put or done
  };
  struct Aim {       // operations from a use to the last window, before the content changes, ...
    uint32_t must;   // ... that must leave; 0: none
    uint32_t could;  // ... that could leave and help
  };
  struct Entry {  // of a heap; stale when the key no longer is that of the piece's buffer
    uint32_t key;
    uint32_t piece;
  };
  struct Record {
    uint32_t piece;
    uint32_t use;
    uint32_t release;
    uint32_t reserve;
    uint32_t base;  // first operation of the iteration that holds the window's first use
    int64_t issue;
    uint32_t order;
    uint32_t back;  // boundary at which it was back; 0: later than at the last one, or not known
  };
  static constexpr uint32_t kStay = 16;  // what stays ranks as used so much sooner
  static constexpr uint32_t kOldCopy = kNone - 1;
  static constexpr uint32_t kNoEntry = kNone - 1;

  [[nodiscard]] bool Prepare();
  [[nodiscard]] bool CutPieces();
  [[nodiscard]] bool GroupByOp();
  [[nodiscard]] bool ExpectTimes();
  void AimUses();
  [[nodiscard]] bool StartState();

  Result Boundary(uint32_t now);
  Bytes MissingAt(OpIndex i) const;         // of what operation i uses, on the host
  uint32_t LastReturning(OpIndex i) const;  // copy in that operation i waits for; kNone
  Result MakeRoom(uint32_t now, Bytes needed);
  Result EvictOne(uint32_t now);
  struct Victims {  // pieces, kNone where there is none
    uint32_t done = kNone;
    uint32_t pending = kNone;
    uint32_t staying = kNone;
  };
  [[nodiscard]] bool FindCopied(uint32_t now, Victims* found);
  [[nodiscard]] bool NoteCopied();
  void PopEvictable();
  [[nodiscard]] bool AddCopied(uint32_t p);
  // Into dirty_ or spare_, and out of it; the piece knows by its member `entry`.
  [[nodiscard]] bool Push(Array<Entry>* heap, uint32_t Piece::*entry, uint32_t key, uint32_t p);
  Entry Pop(Array<Entry>* heap, uint32_t Piece::*entry);
  template <typename Counts>
  [[nodiscard]] bool CopyOutNow(uint32_t now, Array<Entry>* heap, uint32_t Piece::*entry,
                                Counts counts, uint32_t* victim);
  [[nodiscard]] bool CopyDirtyNow(uint32_t now, uint32_t* victim);
  [[nodiscard]] bool CopySpareNow(uint32_t now, uint32_t* victim);
  void NoteReturns(uint32_t now);
  [[nodiscard]] bool FetchMissing(uint32_t now);
  [[nodiscard]] bool Prefetch(uint32_t now, double horizon);
  [[nodiscard]] bool CopyOutAhead(uint32_t now, double horizon);
  [[nodiscard]] bool CopySpares(uint32_t now, double horizon);
  bool ReturnsInTime(uint32_t p, uint32_t now) const;
  void CountMissing(uint32_t p, bool is_more);
  Bytes MissingUntil(uint32_t use, uint32_t now) const;
  void RunOp(uint32_t now);
  void AfterUse(uint32_t now, BufferIndex b);

  // Rank of a piece, from that of its buffer.
  static uint32_t Ranked(uint32_t rank, const Piece& piece) {
    return piece.stays && rank != kNone ? rank / kStay : rank;
  }
  uint32_t Shifted(uint32_t at, uint32_t use) const;
  // Whether an entry of the heap of that name is not stale.
  bool IsEvictable(const Entry& entry, uint32_t now) const;
  bool IsDirty(const Entry& entry) const;
  bool IsSpare(const Entry& entry, uint32_t now) const;
  bool IsCopyDone(const Piece& piece) const {
    return piece.copy == kOldCopy || IsDone(kOut, piece.copy);
  }
  // Copies of a direction are numbered in the order in which they are put.
  bool IsDone(Direction direction, uint32_t copy) const {
    return links_.IsDone(direction, marks_[direction][copy]);
  }
  void AdvanceUntilDone(Direction direction, uint32_t copy) {
    links_.AdvanceUntilDone(direction, marks_[direction][copy]);
  }
  [[nodiscard]] bool Put(Direction direction, Bytes bytes, uint32_t* copy);
  [[nodiscard]] bool PutOut(uint32_t p, uint32_t now);
  [[nodiscard]] bool PutIn(uint32_t p, uint32_t now);
  [[nodiscard]] bool Evict(uint32_t p, uint32_t now);
  void DropCopy(Piece* piece);
  uint32_t TopMissing();
  // The farthest used piece whose copy is done and that is used after `use`; kNone if there is
  // none.
  uint32_t TakeEvictable(uint32_t now, uint32_t use);
  [[nodiscard]] bool WriteDraft(uint32_t from, uint32_t to, Draft* draft);

  const Timeline* timeline_ = nullptr;
  const Machine* machine_ = nullptr;
  SweepOptions options_;
  uint32_t n_ = 0;
  const Horizon* horizon_ = nullptr;
  Links links_;
  Array<double> marks_[2];  // of all copies ever put
  Bytes used_ = 0;
  Bytes host_used_ = 0;
  bool out_of_memory_ = false;
  bool is_host_short_ = false;
  uint64_t work_ = 0;

  Array<Piece> pieces_;
  Array<uint32_t> first_piece_;  // per buffer
  Array<uint32_t> born_first_, born_list_, freed_first_, freed_list_;
  Array<State> state_;       // per buffer
  Array<Aim> aims_;          // per use
  Array<Entry> evictable_;   // on the device with a copy that is done, farthest next use on top
  Array<Entry> copied_;      // per copy out: what it makes evictable when it is done, ...
  uint32_t known_done_ = 0;  // ... from this one on; those before it were seen to be done
  Array<Entry> dirty_;       // on the device without, farthest aim on top
  Array<Entry> spare_;       // on the device without, not in dirty_, farthest aim on top
  Array<Entry> missing_;     // on the host, soonest next use on top
  Array<Entry> aside_;
  Array<Bytes> leaving_;        // bytes copied out ahead by operation of the use they are for
  Array<Bytes> missing_until_;  // bytes on the host by operation of their next use; a Fenwick tree
  Array<uint32_t> tight_;       // operations before this one, over two iterations, above the budget
  Array<double> time_until_;    // expected time from the iteration's start to each operation
  Array<Record> records_;
  Array<uint32_t> returns_;  // where the host is short: per copy in, its record or kNone,
  uint32_t noted_ = 0;       // as far as they are done
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_SWEEP_H_
