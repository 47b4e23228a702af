// Places for requests that outlive the period in which they recur: optimizer state that is made
// anew in each step before the old one is freed. No packing of one period has a place for them, and
// in one of two periods no two of them share a place, for each is alive for more than half of it.
// Instead those of one size take turns in a few places more than there are of them: as many as are
// alive at once. Whoever comes gets the next place that is free, so that after any number of
// periods each of them may lie anywhere among them.
//
// Of the places that are needed for that moment only, each is a berth for the rest of the period:
// packed requests may lie there together, all in the one that is free just then.
//
// Not here: where the places begin, and who is alive. Threads: none of its own.

#ifndef TIDEMARK_CORE_TURNS_H_
#define TIDEMARK_CORE_TURNS_H_

#include "core/array.h"
#include "core/packing.h"
#include "core/units.h"

namespace tidemark::core {

class Turns {
 public:
  // For those of `period` that live longer than it, up to two of it. Their place becomes the number
  // of their group. False: there is no memory.
  bool Collect(Array<Recurring>* period);
  // Forgets all.
  void Clear();

  // That all places need.
  uint64_t units() const { return units_; }
  // At most Packing::kMostBerths, of the largest sizes.
  const Array<Berth>& berths() const { return berths_; }
  // The next place of `group` for which `is_free(occupant)` says so, from the first on; it belongs
  // to `occupant` now. kNowhere: none.
  template <typename IsFree>
  uint32_t Take(uint32_t group, uint32_t occupant, const IsFree& is_free) {
    const Turn* turn = NextFree(group, occupant, is_free);
    return turn == nullptr ? Recurring::kNowhere : turn->place;
  }
  // The place of `berth` for `occupant`, who leaves it at `end`: the one in which the last of those
  // there still is, else the next that is free. kNowhere: none.
  template <typename IsFree>
  uint32_t TakeBerth(uint32_t berth, uint32_t occupant, uint32_t end, const IsFree& is_free) {
    Stay& stay = stays_[berth];
    const bool stays =
        stay.turn != kNoTurn && turns_[stay.turn].occupant == stay.last && !is_free(stay.last);
    if (!stays) {
      const Turn* turn = NextFree(stay.group, occupant, is_free);
      stay.turn = turn == nullptr ? kNoTurn : static_cast<uint32_t>(turn - turns_.begin());
    }
    if (stay.turn == kNoTurn) return Recurring::kNowhere;
    if (!stays || static_cast<int32_t>(end - stay.end) > 0) {
      stay.last = turns_[stay.turn].occupant = occupant;
      stay.end = end;
    }
    return turns_[stay.turn].place;
  }

  // For an owner that says where each place is: none has one yet.
  void Unplace();
  // A place of `group` that has none yet is at `place`, where `occupant` is. False: all have one.
  bool PutAt(uint32_t place, uint32_t group, uint32_t occupant);
  // One that has none yet, of the largest size, and that size. Null: all have one.
  uint32_t* Unplaced(uint32_t* units);
  // They come in the order in which they will be free: those that nobody has, then those whose
  // occupants were made first. `now`: the number of the newest.
  void Sort(uint32_t now);

 private:
  struct Turn {
    uint32_t place = Recurring::kNowhere;
    uint32_t occupant = 0;
  };
  struct Group {
    uint32_t units = 0;  // of one place
    uint32_t count = 0;  // places
    uint32_t first = 0;  // in turns_
    uint32_t next = 0;   // the place to look at next
  };
  static constexpr uint32_t kNoTurn = ~uint32_t{0};
  // Which place is a berth at present.
  struct Stay {
    uint32_t group = 0;
    uint32_t turn = kNoTurn;
    uint32_t last = 0;  // the occupant who leaves last
    uint32_t end = 0;   // and when
  };
  template <typename IsFree>
  const Turn* NextFree(uint32_t group, uint32_t occupant, const IsFree& is_free) {
    Group& g = groups_[group];
    for (uint32_t looked = 0; looked < g.count; ++looked) {
      Turn& turn = turns_[g.first + g.next];
      if (++g.next == g.count) g.next = 0;
      if (turn.occupant != 0 && !is_free(turn.occupant)) continue;
      turn.occupant = occupant;
      return &turn;
    }
    return nullptr;
  }
  bool AddGroup(const uint64_t* first, const uint64_t* end, Array<Recurring>* period);
  bool AddBerths(uint32_t period);

  Array<uint64_t> marks_;
  Array<Group> groups_;
  Array<Turn> turns_;  // by group
  Array<Berth> berths_;
  Array<Stay> stays_;  // by berth
  uint64_t units_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_TURNS_H_
