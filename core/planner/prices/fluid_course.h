// What a byte of a fluid step (fluid_step.h) does best at given prices: when it is copied out, in
// which gaps it is away, from when to when, and when it is copied in. That the host holds its copy
// between two gaps, too, is not looked at. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_FLUID_COURSE_H_
#define TIDEMARK_CORE_PLANNER_PRICES_FLUID_COURSE_H_

#include <algorithm>
#include <cstdint>

#include "core/array.h"
#include "core/planner/prices/fluid_step.h"

namespace tidemark::core::planner {

// In one gap: boundaries, and the slot of the copy in.
struct FluidStay {
  uint32_t release = kNone;  // kNone: the byte stays on the device
  uint32_t reserve = kNone;
  uint32_t in_slot = kNone;

  bool operator==(const FluidStay&) const = default;
  bool is_away() const { return release != kNone; }
  uint32_t length() const { return reserve - release; }  // stretches
  // The host needs the copy no longer from this stretch on.
  uint32_t copy_end() const { return (in_slot + 1) / 3 + 1; }
  // Stretches in which both are away.
  uint32_t Common(const FluidStay& other) const {
    if (!is_away() || !other.is_away()) return 0;
    const uint32_t from = std::max(release, other.release);
    const uint32_t to = std::min(reserve, other.reserve);
    return to > from ? to - from : 0;
  }
};

class CourseFinder {
 public:
  // The step is kept by reference, and has a gap.
  explicit CourseFinder(const FluidStep& step);
  // False: no host memory.
  [[nodiscard]] bool Allocate();

  // Prices in ns per byte: of a byte away in a stretch, of a copy that the host holds then, and of
  // the links in a slot. After those of slots, Compare() for the boundaries that they are next to.
  void SetAway(uint32_t stretch, double price);
  void SetHost(uint32_t stretch, double price);
  void SetLinks(uint32_t slot, double out, double in);
  void Compare(uint32_t boundary);
  void CompareAround(uint32_t slot);
  // Counted on through the iterations.
  double away(uint32_t stretch) const { return away_[stretch]; }
  double host(uint32_t stretch) const { return host_[stretch]; }
  double out(uint32_t slot) const { return out_[slot]; }
  double in(uint32_t slot) const { return in_[slot]; }
  // No slot's price is below it; what it helps is speed.
  void SetLowestOut(double price) { lowest_out_ = price; }

  // Finds the best course of the chains of a class, and returns what it gains: ns per byte.
  double Find(uint32_t alike);
  // What was found: the slot of the copy out, kNone: there is none; and for each gap of the class's
  // first chain.
  uint32_t out_slot() const { return out_slot_; }
  const FluidStay& stay(uint32_t gap) const { return found_[gap]; }

 private:
  // What one byte of a gap does best if it leaves at some boundary, the way out not counted.
  struct Stay {
    double gain;  // ns per byte
    uint32_t reserve;
    uint32_t in_slot;
  };
  struct Cheapest {
    double price;
    uint32_t slot;
  };

  double Gap(const FluidGap& gap, uint32_t first_stay, uint32_t* release);
  double LeaveFirst(const FluidChain& chain, double later, uint32_t* first);

  const FluidStep& step_;
  const uint32_t n_;
  Array<double> away_, host_, out_, in_;  // over two iterations and a bit
  bool has_host_ = false;                 // some price of it may not be 0
  // Per boundary: of the slots since the one before, up to its wait for copies out, which is not
  // one of them; and of those behind its wait for copies in up to the next one's for copies out.
  Array<Cheapest> cheap_out_, cheap_in_;
  double lowest_out_ = 0;
  Array<Stay> stay_;         // of the chain at hand, per boundary of its gaps
  Array<uint32_t> release_;  // per gap of it: the best, kNone: none pays ...
  Array<double> gain_;       // ... and what that gains
  Array<FluidStay> found_;
  uint32_t out_slot_ = kNone;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_FLUID_COURSE_H_
