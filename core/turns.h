// Places for requests that outlive the period in which they recur: optimizer state that is made
// anew in each step before the old one is freed. No packing of one period has a place for them, and
// in one of two periods no two of them share a place, for each is alive for more than half of it.
// Instead those of one size take turns in a few places more than there are of them: as many as are
// alive at once. Whoever comes gets the next place that is free, so that after any number of
// periods each of them may lie anywhere among them.
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
  // The next place of `group` for which `is_free(occupant)` says so, from the first on; it belongs
  // to `occupant` now. kNowhere: none.
  template <typename IsFree>
  uint32_t Take(uint32_t group, uint32_t occupant, const IsFree& is_free) {
    Group& g = groups_[group];
    for (uint32_t looked = 0; looked < g.count; ++looked) {
      const uint32_t turn = g.turn;
      if (++g.turn == g.count) g.turn = 0;
      uint32_t& holder = occupants_[g.first + turn];
      if (holder != 0 && !is_free(holder)) continue;
      holder = occupant;
      return g.place + turn * g.units;
    }
    return Recurring::kNowhere;
  }

 private:
  struct Group {
    uint32_t units = 0;  // of one place
    uint32_t count = 0;  // places
    uint32_t first = 0;  // in occupants_
    uint32_t place = 0;  // of the first
    uint32_t turn = 0;   // the place to look at next
  };
  bool AddGroup(const uint64_t* first, const uint64_t* end, Array<Recurring>* period);

  Array<uint64_t> marks_;
  Array<Group> groups_;
  Array<uint32_t> occupants_;
  uint64_t units_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_TURNS_H_
