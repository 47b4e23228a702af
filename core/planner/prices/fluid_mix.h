// What the bytes of a fluid step (fluid_step.h) do in the mean so that it stalls nearly as little
// as it can: for the chains of each class a mix of courses (fluid_course.h), so many bytes on each.
// One class after the other moves bytes from its dearest course to the cheapest there is, as many
// as the prices of fluid_load.h allow that this changes: pairwise steps (Lacoste-Julien and Jaggi
// 2015). core/bounds asks for the prices that this comes to. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_FLUID_MIX_H_
#define TIDEMARK_CORE_PLANNER_PRICES_FLUID_MIX_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/prices/fluid_course.h"
#include "core/planner/prices/fluid_load.h"
#include "core/planner/prices/fluid_nesting.h"
#include "core/planner/prices/fluid_prices.h"
#include "core/planner/prices/fluid_step.h"
#include "core/step.h"

namespace tidemark::core::planner {

// Which share of some bytes does something when: share[k] of them at first + k.
struct FluidShares {
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t at = 0;  // in FluidMix::share
};

class FluidMix {
 public:
  // The step is kept by reference, and has a gap.
  FluidMix(const FluidStep& step, const Machine& machine);

  // From these prices on; `stall` in ns: about how much longer than its operations the step takes.
  // False: no host memory.
  [[nodiscard]] bool Start(const FluidPrices& prices, double stall);
  // From the mix of the same step in fewer stretches (carry_mix.cc).
  [[nodiscard]] bool Start(const FluidMix& coarser, double stall);
  // Round after round, until so much work (in units of kPriceWork) is done since the start.
  void Improve(uint64_t most_work);
  uint64_t work() const { return work_ + load_.work(); }

  // The prices that it came to, in ns per byte.
  double away_price(uint32_t k) const { return load_.away_price(k); }
  double out_price(uint32_t slot) const { return load_.out_price(slot); }
  double in_price(uint32_t slot) const { return load_.in_price(slot); }

  // Fills the shares below. False: no host memory.
  [[nodiscard]] bool FindShares();
  // Of a gap of the first chain of a class: boundaries, and slots of copies in.
  const FluidShares& release(uint32_t gap) const { return gap_shares_[gap].release; }
  const FluidShares& reserve(uint32_t gap) const { return gap_shares_[gap].reserve; }
  const FluidShares& in(uint32_t gap) const { return gap_shares_[gap].in; }
  // Of a class: slots of copies out.
  const FluidShares& out(uint32_t alike) const { return out_shares_[alike]; }
  double share(const FluidShares& shares, uint32_t k) const { return shares_[shares.at + k]; }

 private:
  // Of one class, among its courses.
  struct Course {
    double bytes = 0;
    uint32_t out_slot = kNone;
  };
  struct ClassCourses {
    size_t first = 0;       // in courses_
    size_t first_stay = 0;  // in stays_: GapsOf() for each course
    uint32_t most = 0;      // courses
    uint32_t count = 0;     // in use
  };
  struct GapShares {
    FluidShares release, reserve, in;
  };
  // Stretches in which the host holds a copy: [from, to).
  struct Span {
    uint32_t from = 0, to = 0;
  };

  [[nodiscard]] bool Allocate();
  void AddAll();
  void StayAll(uint32_t alike);
  void Carry(const FluidMix& coarser, const FluidNesting& nesting, uint32_t alike,
             SpreadCopies* outs, SpreadCopies* ins);
  FluidStay CarryStay(const FluidStay& coarse, const FluidGap& gap, uint32_t out_slot, double bytes,
                      SpreadCopies* ins) const;
  void Visit(uint32_t alike);
  uint32_t AddFound(uint32_t alike);
  bool IsFound(uint32_t alike, uint32_t course) const;
  bool MoveBytes(uint32_t alike);
  void SumPrices(uint32_t alike);
  double Cost(uint32_t alike, uint32_t course) const;
  double Slope(uint32_t alike, uint32_t from, uint32_t to) const;
  void Shift(uint32_t alike, uint32_t from, uint32_t to, double bytes);
  void AddCopies(uint32_t alike, uint32_t course, double bytes);
  void AddAways(uint32_t alike, uint32_t course, double bytes);
  Span HeldBy(uint32_t alike, uint32_t course) const;
  [[nodiscard]] bool AllocateShares();

  const FluidChain& ChainOf(uint32_t alike) const {
    return step_.chains[step_.classes[alike].chain];
  }
  uint32_t GapsOf(uint32_t alike) const { return ChainOf(alike).gap_count; }
  Course& CourseOf(uint32_t alike, uint32_t course) {
    return courses_[of_classes_[alike].first + course];
  }
  const Course& CourseOf(uint32_t alike, uint32_t course) const {
    return courses_[of_classes_[alike].first + course];
  }
  size_t StaysAt(uint32_t alike, uint32_t course) const {
    return of_classes_[alike].first_stay + size_t{course} * GapsOf(alike);
  }

  const FluidStep& step_;
  CourseFinder finder_;
  FluidLoad load_;
  Array<ClassCourses> of_classes_;
  Array<Course> courses_;
  Array<FluidStay> stays_;
  // Of prices of room and of the host, in the class at hand, from this stretch on.
  Array<double> sums_, host_sums_;
  uint32_t sums_from_ = 0;
  Array<GapShares> gap_shares_;
  Array<FluidShares> out_shares_;
  Array<double> shares_;
  uint64_t work_ = 0;
  uint32_t round_ = 0;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_FLUID_MIX_H_
