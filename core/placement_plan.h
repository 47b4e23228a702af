// Places for the requests of a job whose requests recur, found from its last iterations: who asks
// for how much on which stream, how long it lives, and where it would have to lie so that nothing
// need be moved (packing.h). The arena starts it when it first has to move chunks; until then it
// costs nothing.
//
//   watching   logs requests and frees, and looks for the period of the requests
//   asking     a period is known in which chunks were moved: the owner says how much room there is
//   packing    the work is spread over requests
//   ready      the owner says whether the plan fits
//   waiting    for the period to begin
//   following  each request that comes as it came before gets the place of the plan
//
// Where no chunk has to move and every request gets the place again that it had a period before,
// those places are followed as they are (plan_as_is.cc). Where they do not recur, they are packed
// around what lives when following begins, all at once (plan_in_place.cc): nothing has to move.
//
// What lives longer than a period (optimizer state that is made anew in each step) takes turns in
// places above those that are packed (turns.h). Where that needs too much, the plan is made for two
// periods instead; where that does, too, some of what is packed lies in places of turns that are
// free meanwhile, which may stand in strips. If nothing else helps, the plan may take more memory.
//
// The first request that differs ends following at once; it is taken up again when the period
// begins again. A place is a proposal: the arena looks whether it is free. So a wrong plan costs
// time, never bytes. Frees need not come as they came.
//
// Not here: blocks, chunks, whether the plan fits (arena_plan.cc). Threads: none of its own.

#ifndef TIDEMARK_CORE_PLACEMENT_PLAN_H_
#define TIDEMARK_CORE_PLACEMENT_PLAN_H_

#include "core/array.h"
#include "core/packing.h"
#include "core/period.h"
#include "core/turns.h"
#include "core/units.h"

namespace tidemark::core {

// Of a request that the plan has seen, kept with its block. It wraps around; 0 is never given.
using RequestNumber = uint32_t;

class PlacementPlan {
 public:
  static constexpr Bytes kNowhere = ~Bytes{0};

  // In blocks; Recurring::kNowhere for more than the arena can have.
  static uint32_t UnitsOf(Bytes bytes) {
    const Bytes units = bytes / kBlockBytes + (bytes % kBlockBytes != 0 ? 1 : 0);
    return units < Recurring::kNowhere ? static_cast<uint32_t>(units) : Recurring::kNowhere;
  }

  // Begins to watch, with memory for all that may follow (about 2 MiB). False: there is none, and
  // it stays off.
  bool Start();
  bool on() const { return state_ != State::kOff; }
  // A request while it is off: now and then it begins to watch where no chunk has moved, too.
  bool LooksAgain() { return --until_look_ == 0 && LookAgain(); }

  // A request that is about to be placed. Returns its place from the base, or kNowhere.
  Bytes Next(Bytes bytes, StreamId stream);
  // The same while following, for an owner that needs the place in the plan only: its phase(). It
  // is told of the frees of those only that are not packed. False: another request was due, or the
  // plan is given up; nothing else has changed, and Next is to be called.
  bool Step(Bytes bytes, StreamId stream) {
    if (!IsDue(bytes, stream)) return false;
    if (phase_ == cut_) {
      BeginPeriod();
      if (state_ != State::kFollowing) return false;
    }
    asked_ = phase_;
    StepWithin();
    LogPlanned(requests_);
    return true;
  }
  // The same for a request that is packed and known to be due, where it does not begin a period. It
  // is only counted, and CatchUp() logs it.
  bool within() const { return phase_ != cut_; }
  uint32_t next_phase() const { return phase_; }
  RequestNumber StepWithin() {
    const uint32_t next = phase_ + 1;
    phase_ = next == plan_.size() ? 0 : next;
    return static_cast<RequestNumber>(++requests_);
  }
  // To be called after such, before Next and whatever asks for requests.
  void CatchUp();
  // Where the request of this phase lies from the base, or kNowhere. To be asked once.
  Bytes PlaceOf(uint32_t phase);
  // Where the request will lie that comes `ahead` requests after the one in hand, if all come as
  // planned: to be asked for each in turn, from 1 on. kNowhere also where there is no memory.
  Bytes PlaceAhead(uint32_t ahead);
  // Bytes from the base in which the packed requests lie; those that take turns lie above.
  Bytes packed() const { return Bytes{top_} * kBlockBytes; }
  // The plan is what the arena's own rules gave: it needs no room of its own, and others may have
  // all bytes that it does not use.
  bool as_is() const { return as_is_; }
  // The plan is packed around what lives, from the arena's base on, in what is mapped.
  bool in_place() const { return in_place_; }
  // One of these two: no buffer has to move for it.
  bool stays() const { return as_is_ || in_place_; }
  // Where a request that it has seen lies. The places of a plan as it is count from the arena's
  // base.
  void Placed(RequestNumber number, Bytes offset);
  // It is in the way, or waits in vain.
  void DropAsIs();
  // How many plans there were.
  uint32_t plans() const { return plans_; }
  // Such a request is due and begins a period, and chunks stayed where they are in the last one.
  bool BeginsQuietly(Bytes bytes, StreamId stream) const {
    return following() && in_step_ && phase_ == cut_ && followed_ != 0 && IsDue(bytes, stream) &&
           MovedWithin(plan_.size()) == 0;
  }
  // The index in the plan of a live block's request; kNone: it is not one of the last period.
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t IndexOf(RequestNumber number) const;
  // Of a live block: its life will be as planned.
  void Foresee(RequestNumber number);

  // Of the last request.
  RequestNumber number() const { return static_cast<RequestNumber>(requests_); }
  // The block of a request is free again, or the request was refused.
  void Freed(RequestNumber number);
  // Chunks were moved for the request in hand.
  void NoteMoved(ChunkIndex chunks) {
    moved_ += chunks;
    if (chunks != 0) quiet_since_ = requests_;
  }

  // Chunks were moved lately.
  bool moves() const { return on() && moved_ != 0 && requests_ - quiet_since_ <= kLog; }

  // The owner is asked how many bytes the plan may take, see Pack().
  bool asks() const { return state_ == State::kAsking; }
  // How many times the slack it may take, from when it asks on.
  uint32_t slacks() const { return making_ == Making::kInMore ? 2 : 1; }
  void Pack(Bytes room);
  // The same for a plan in place, where all of it is done at once, for the request in hand: first
  // every live block and whatever else is not for others, in address order. False: out of memory,
  // or of places for those that take turns.
  bool AddLive(RequestNumber number, Bytes begin, Bytes end);
  bool AddTaken(Bytes begin, Bytes end);
  // It is followed from the request in hand on, or there is none.
  void PackInPlace(Bytes room);
  // The owner is asked whether the plan is to be followed.
  bool ready() const { return state_ == State::kReady; }
  void Accept();
  // It does not fit. Another one is made later, each time later than before.
  void Refuse();
  // It does not fit as it begins(). It is to begin with the next period, unless it did not for
  // some.
  void Postpone();
  bool following() const { return state_ == State::kFollowing; }
  // The plan is followed from the request in hand on, for the first time: buffers begin to change
  // places.
  bool begins() const { return state_ == State::kFollowing && begins_; }
  // The requests of a period, with their places if they have a fixed one, and which of them is in
  // hand.
  const Array<Recurring>& requests() const { return plan_; }
  uint32_t phase() const { return asked_; }
  // Before which request from the one in hand (0) on the live block of this number is freed.
  // kNever: not within two periods.
  static constexpr uint32_t kNever = ~uint32_t{0};
  uint32_t EndOf(RequestNumber number) const;
  // Bytes from the base that the plan uses, or lies between.
  Bytes size() const { return (top_ + (in_place_ ? 0 : turns_.units())) * kBlockBytes; }
  // What becomes of the live block of this number in the next periods.
  enum class Fate : uint8_t { kStays, kIsPlaced, kIsMadeElsewhere };
  Fate FateOf(RequestNumber number) const;
  // Ends following for now.
  void Suspend();

 private:
  enum class State : uint8_t { kOff, kWatching, kAsking, kPacking, kReady, kWaiting, kFollowing };
  static constexpr uint32_t kLog = Period::kSigns;
  static constexpr uint32_t kContext = 32;        // requests by which a beginning is recognised
  static constexpr uint32_t kLookFrom = 1 << 10;  // requests that no plan has seen
  static constexpr uint32_t kLookEvery = 1 << 20;
  static constexpr uint32_t kShortest = 128;  // requests in a period that is worth a plan
  static_assert(kContext < kShortest);
  struct Entry {
    RequestNumber number = 0;
    uint32_t units = 0;
    StreamId stream = kAnyStream;
    uint32_t life = 0;                     // 0: alive
    uint32_t moved = 0;                    // chunks, before it
    uint32_t place = Recurring::kNowhere;  // from Placed()
  };

  const Entry& At(uint64_t request) const { return log_[request % kLog]; }
  template <typename Request>  // an Entry, or a Recurring
  static uint64_t SignOf(const Request& request) {
    return Period::Mix(request.units, request.stream);
  }
  // Of a request of the plan's period, counted from its first. The last one of a period before may
  // be in hand still.
  uint32_t PhaseOf(uint64_t request) const {
    return static_cast<uint32_t>((request + plan_.size() - begun_at_ - 1) % plan_.size());
  }
  // What the request of this number, of the last two periods, is in the plan, while in_step_.
  uint32_t PlannedIndex(RequestNumber asked) const {
    const auto period = static_cast<uint32_t>(plan_.size());
    return (PhaseOf(requests_) + 2 * period - (number() - asked)) % period;
  }
  const Recurring& Planned(RequestNumber asked) const { return plan_[PlannedIndex(asked)]; }
  bool IsDue(Bytes bytes, StreamId stream) const {
    return plan_[phase_].units == UnitsOf(bytes) && plan_[phase_].stream == stream;
  }
  // Whether the block of this request is free again, as far as it is known.
  bool IsOver(RequestNumber asked) const {
    const Entry& entry = log_[asked % kLog];
    return entry.number != asked || entry.life != 0;
  }
  template <typename IsFree>
  Bytes PlaceIn(Turns* turns, uint32_t phase, RequestNumber number, const IsFree& is_free) const;
  bool LookAgain();
  void Log(Bytes bytes, StreamId stream);
  void LogPlanned(uint64_t request);
  void Watch();
  uint64_t QuietPatience(uint32_t period) const;
  bool TakeAsIs(uint32_t period);
  bool SeekInPlace(uint32_t period);
  bool PlaceTurns(uint64_t room);
  // Units from which the places of turns count.
  uint64_t turns_from() const { return in_place_ ? 0 : top_; }
  void BeginFollowing();
  bool WaitsAsIs() const { return as_is_ && state_ == State::kWaiting; }
  void WatchAsIs();
  void Rest(uint32_t period, uint32_t patience);
  bool Collect(uint32_t period);
  bool MakeOtherwise();
  bool MakeForTwo();
  bool MakeWithGuests(bool in_strips);
  uint32_t LifeOf(uint64_t request, uint32_t period) const;
  Bytes Spare() const;
  void EndPacking();
  void FindBeginning();
  void KeepStep();
  void StopFollowing(State state);
  bool TakesOtherTurn();
  void BeginPeriod();
  uint64_t MovedWithin(uint64_t requests) const;

  State state_ = State::kOff;
  Period period_;
  Packing packing_;
  Array<Entry> log_;  // ring by request
  Array<Recurring> plan_;
  Turns turns_;
  Turns turns_ahead_;                // as they will be, for PlaceAhead()
  uint64_t top_ = 0;                 // of the places that do not change
  uint32_t until_look_ = kLookFrom;  // requests while it is off
  bool as_is_ = false;
  bool in_place_ = false;
  // How the plan is made, one after the other until there is one.
  enum class Making : uint8_t { kForOne, kForTwo, kWithGuests, kInStrips, kInMore };
  Making making_ = Making::kForOne;
  Array<uint64_t> contexts_;  // by request
  Array<uint64_t> sorted_contexts_;
  Array<Taken> taken_;              // around which a plan in place is packed
  uint64_t in_place_at_ = 0;        // no such plan before this request
  uint32_t in_place_patience_ = 0;  // periods to wait after one that did not last
  uint32_t same_period_ = 0;
  uint32_t same_places_ = 0;     // requests in a row that lie where one lay `same_period_` before
  uint64_t as_is_at_ = 0;        // no such plan before this request
  uint32_t as_is_followed_ = 0;  // periods for which it was
  uint32_t as_is_patience_ = 0;  // periods to wait after one that was not worth it
  uint64_t waits_since_ = 0;     // the request before it was last left
  uint32_t plans_ = 0;
  uint32_t period_length_ = 0;  // of what is collected; the plan holds one or two of them
  uint64_t requests_ = 0;       // so far; the first is number 1
  uint64_t logged_ = 0;         // up to here all of them are logged
  uint64_t context_ = 0;        // of the last kContext of them
  uint64_t begins_in_ = 0;      // the context in which request `begins_at_` of the plan comes
  uint32_t begins_at_ = 0;
  uint64_t begun_at_ = 0;      // the request before a period of the plan
  uint32_t phase_ = 0;         // while in_step_: PhaseOf the request to come
  uint32_t asked_ = 0;         // of the last one
  uint32_t cut_ = 0;           // following begins with this request of a period
  bool begins_ = false;        // following has begun with the request in hand, for the first time
  bool in_step_ = false;       // every request since has come as in the plan
  uint32_t moved_ = 0;         // chunks; wraps around
  uint32_t moved_before_ = 0;  // the same, when the period began
  uint64_t watched_since_ = 0;
  uint64_t quiet_since_ = 0;      // the last request before which chunks were moved
  uint64_t moved_unplanned_ = 0;  // chunks in the period before following
  uint64_t retry_at_ = 0;         // no new plan before this request
  uint32_t patience_ = 0;         // periods to wait after a rejection
  uint32_t followed_ = 0;         // whole periods without a break
  bool has_begun_ = false;        // to be followed, since it was accepted
  uint32_t postponed_ = 0;        // times, since then
  uint32_t broken_ = 0;           // breaks in a row without a whole period
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_PLACEMENT_PLAN_H_
