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
// Places of several sizes may stand in strips (turn_strips.cc): a strip has as many of each size as
// are needed for a moment only. As all sizes go round it at the same pace, these are one strip
// again whenever nobody needs them, wherever they have got to, and so one large berth.
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
  // The same with some sizes in strips that are a berth at request `peak`. False: no strip is worth
  // what it needs beside Collect(), or there is no memory.
  bool CollectInStrips(Array<Recurring>* period, uint32_t peak);
  // Requests of `period` will come from `cut` on. Strips come out whole again if all are taken up
  // at the first that is free, after any number of requests that came otherwise.
  template <typename IsFree>
  void TakeUp(const Array<Recurring>& period, uint32_t cut, const IsFree& is_free) {
    if (in_strips_ == 0) return;
    const uint32_t strips = groups_[0].count / groups_[0].in_strip;
    BeginStrips(period, cut);
    bool was_free = NextAreFree(is_free);
    for (uint32_t strip = 0; strip < strips; ++strip) {
      SkipStrip();
      const bool free = NextAreFree(is_free);
      if (free && !was_free) return;
      was_free = free;
    }
  }
  // The places and who has them; for Take and TakeBerth only. False: out of memory.
  bool CopyFrom(const Turns& other);
  // Forgets all.
  void Clear();

  // That all places need.
  uint64_t units() const { return units_; }
  // At most Packing::kMostBerths: a strip, then places of the largest sizes.
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
      const bool is_strip = groups_[stay.group].in_strip != 0;
      const Turn* turn = is_strip ? NextStrip(is_free) : NextFree(stay.group, occupant, is_free);
      stay.turn = turn == nullptr ? kNoTurn : static_cast<uint32_t>(turn - turns_.begin());
    }
    if (stay.turn == kNoTurn) return Recurring::kNowhere;
    if (!stays || static_cast<int32_t>(end - stay.end) > 0) {
      stay.last = occupant;
      stay.end = end;
      Occupy(stay);
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
  // The requests of one size: all, or those whose places stand in strips, or those that were left.
  struct Group {
    uint32_t units = 0;     // of one place
    uint32_t count = 0;     // places
    uint32_t first = 0;     // in turns_
    uint32_t next = 0;      // the place to look at next
    uint32_t in_strip = 0;  // places in each strip; 0: they stand in none
  };
  // The requests of one size, by their marks.
  struct Size {
    uint32_t units = 0;
    uint32_t first = 0;  // mark
    uint32_t end = 0;    // of the marks
    uint32_t twice = 0;  // the most of them that are alive twice at once
    uint32_t in_strip = 0;
    uint32_t requests() const { return (end - first) / 2; }
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
      if (turn.occupant == 0 || is_free(turn.occupant)) {
        turn.occupant = occupant;
        return &turn;
      }
      if (g.in_strip != 0) break;  // it must not overtake the others
    }
    return nullptr;
  }
  // The strip that comes next, if it is whole and free.
  template <typename IsFree>
  const Turn* NextStrip(const IsFree& is_free) const {
    const uint32_t strip = groups_[0].next / groups_[0].in_strip;
    for (uint32_t group = 0; group < in_strips_; ++group) {
      if (groups_[group].next != strip * groups_[group].in_strip) return nullptr;
    }
    return NextAreFree(is_free) ? &turns_[groups_[0].first + groups_[0].next] : nullptr;
  }
  // As many places in strips as a strip has, from the next one of each size on.
  template <typename IsFree>
  bool NextAreFree(const IsFree& is_free) const {
    for (uint32_t group = 0; group < in_strips_; ++group) {
      const Group& g = groups_[group];
      for (uint32_t i = 0; i < g.in_strip; ++i) {
        const Turn& turn = turns_[g.first + (g.next + i) % g.count];
        if (turn.occupant != 0 && !is_free(turn.occupant)) return false;
      }
    }
    return true;
  }
  void Occupy(const Stay& stay);
  void BeginStrips(const Array<Recurring>& period, uint32_t cut);
  void SkipStrip();
  bool FindSizes(const Array<Recurring>& period);
  bool AddGroup(const Size& size, uint32_t from, uint32_t skipped, Array<Recurring>* period);
  bool AddTurn(uint64_t place);
  void Join(uint32_t group, const Size& size, uint32_t from, uint32_t skipped, uint32_t count,
            Array<Recurring>* period) const;
  bool AddBerths(uint32_t period);
  bool AddBerth(const Berth& berth, uint32_t group);
  bool FitsStrips(const Size& size, const Array<Recurring>& period, uint32_t peak) const;
  uint32_t ChooseStrips(const Array<Recurring>& period, uint32_t peak);
  Berth BerthAt(uint32_t peak, uint32_t period) const;
  bool AddStrips(uint32_t strips, uint32_t from, Array<Recurring>* period);

  Array<uint64_t> marks_;
  Array<Size> sizes_;       // ascending
  uint32_t in_strips_ = 0;  // groups, the first ones
  Array<Group> groups_;
  Array<Turn> turns_;  // by group
  Array<Berth> berths_;
  Array<Stay> stays_;  // by berth
  uint64_t units_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_TURNS_H_
