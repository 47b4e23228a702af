// What the bytes of a fluid step (fluid_step.h) take of the links and of the host and leave free of
// the device, all together, and the prices that follow by the method of multipliers (Hestenes 1969,
// Powell 1969): a price is that of the centre, higher by what is too much on a link or on the host
// or short in room. From round to round the centre follows the prices. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_FLUID_LOAD_H_
#define TIDEMARK_CORE_PLANNER_PRICES_FLUID_LOAD_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/prices/fluid_course.h"
#include "core/planner/prices/fluid_nesting.h"
#include "core/planner/prices/fluid_prices.h"
#include "core/planner/prices/fluid_step.h"
#include "core/step.h"

namespace tidemark::core::planner {

class FluidLoad {
 public:
  // Step and finder are kept by reference.
  FluidLoad(const FluidStep& step, const Machine& machine, CourseFinder* finder);

  // With nothing away, at these prices; `stall` in ns: about how much longer than its operations
  // the step takes. False: no host memory.
  [[nodiscard]] bool Start(const FluidPrices& prices, double stall);
  // The same at the prices that came out for a coarser step (fluid_nesting.h).
  [[nodiscard]] bool Start(const FluidLoad& coarser, const FluidNesting& nesting, double stall);

  // So much more, or less, is copied in a slot, or away or on the host in stretches [from, to),
  // none if `to` is not behind `from`; all counted on through the iterations. Tells the finder of
  // the new prices.
  void AddOut(uint32_t slot, double bytes);
  void AddIn(uint32_t slot, double bytes);
  void AddAway(uint32_t from, uint32_t to, double bytes);
  void AddHost(uint32_t from, uint32_t to, double bytes);
  // Whether AddHost does anything.
  bool minds_host() const { return !hosts_.empty(); }
  // The centre follows, and the prices with it.
  void Follow();

  // How much the price of one byte rises at most with each byte that is copied out or in in the
  // slot or on the host in the stretch, and falls with each that is away in it: ns per byte per
  // byte.
  double out_slope() const {
    return slot_slope_ * out_unit_ * out_unit_ * (1 + in_to_out_ * in_to_out_);
  }
  double in_slope() const {
    return slot_slope_ * in_unit_ * in_unit_ * (1 + out_to_in_ * out_to_in_);
  }
  double away_slope() const { return room_slope_; }
  // ns per byte; no room is dearer.
  double highest_away() const { return out_unit_ + in_unit_; }

  // Of the centre, in ns per byte.
  double away_price(uint32_t k) const { return rooms_[k].centre; }
  double out_price(uint32_t slot) const {
    return (slots_[slot].centre[0] + slots_[slot].centre[1] * out_to_in_) * out_unit_;
  }
  double in_price(uint32_t slot) const {
    return (slots_[slot].centre[1] + slots_[slot].centre[0] * in_to_out_) * in_unit_;
  }

  // What is copied in a slot.
  double out_bytes(uint32_t slot) const { return slots_[slot].out / out_unit_; }
  double in_bytes(uint32_t slot) const { return slots_[slot].in / in_unit_; }

  // What was looked at, in units of kPriceWork.
  uint64_t work() const { return work_; }

 private:
  // The links in a slot, in ns of their time alone. What both carry is limited by two sums, each at
  // most the slot's time: out + in * in_to_out_, and in + out * out_to_in_. Each has a price, in ns
  // of stall per ns; a stall costs 1, so together they are no dearer.
  struct Slot {
    double time = 0;
    double out = 0, in = 0;
    double prices[2] = {}, centre[2] = {};
  };
  struct Room {                    // of a stretch: that others leave free, or that the host has
    double bytes = 0;              // away, or on the host
    double price = 0, centre = 0;  // ns per byte
  };

  template <void (FluidLoad::*price)(uint32_t)>
  void AddTo(Array<Room>* rooms, uint32_t from, uint32_t to, double bytes);
  [[nodiscard]] bool Allocate(double stall);
  void StartFinder();
  void PriceAgain(uint32_t slot);
  void PriceSlot(uint32_t slot);
  void PriceRoom(uint32_t stretch);
  void PriceHost(uint32_t stretch);
  void PriceAll();

  const FluidStep& step_;
  CourseFinder& finder_;
  const uint32_t n_;
  double in_to_out_ = 0, out_to_in_ = 0;
  double out_unit_ = 0, in_unit_ = 0;       // ns per byte
  double slot_slope_ = 0, room_slope_ = 0;  // of prices: per ns, and ns per byte per byte
  Array<Slot> slots_;
  Array<Room> rooms_;
  const double host_budget_;
  Array<Room> hosts_;  // none, if the host has room for all
  uint64_t work_ = 0;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_FLUID_LOAD_H_
