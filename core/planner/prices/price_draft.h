// Drafts from prices, as other starts: what the step would do if bytes were a fluid, rounded to
// chunks. Where most of what is alive must be away, this balances the links over the whole step,
// which a sweep does not. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_PRICE_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_PRICES_PRICE_DRAFT_H_

#include <cstdint>
#include <optional>

#include "core/planner/draft.h"
#include "core/planner/prices/fluid_mix.h"
#include "core/planner/prices/fluid_step.h"
#include "core/step.h"

namespace tidemark::core::planner {

inline constexpr uint32_t kFinest = 0;

// For all drafts of a plan: 4 to 8 ns each on a server's processor of 2.5 GHz.
inline constexpr uint64_t kPriceWork = 9'000'000;

class PriceDrafts {
 public:
  // `stall` in ns: what the step takes on top of its operations, by a plan that exists. In so many
  // stretches of the step; with few of them there are few safepoints; kFinest: as many as there is
  // work for. All are kept by reference; *work is what is left.
  PriceDrafts(const Timeline& timeline, const Machine& machine, double stall, uint32_t stretches,
              uint64_t* work);

  // The next one: the budget holds roughly; CoverDemand sees to the rest. kCannot: there is none,
  // the step needs none, or all would take more work than there is.
  DraftResult Next(Draft* draft);

 private:
  DraftResult First();
  DraftResult Second();
  DraftResult ChooseStretches();
  DraftResult Solve(const FluidStep& step, uint32_t count, uint32_t levels, uint64_t rounds,
                    FluidMix* mix);
  DraftResult SolveCoarser(const FluidStep& step, uint32_t count, uint32_t levels, FluidMix* mix);
  void Improve(const FluidStep& step, uint64_t rounds, FluidMix* mix);
  DraftResult Build(uint32_t count, FluidStep* step);
  DraftResult Write(const FluidStep& step, FluidMix* mix, Draft* draft) const;

  const Timeline& timeline_;
  const Machine& machine_;
  const double stall_;
  const bool is_finest_;
  uint64_t& work_;
  uint32_t count_;  // stretches, at most
  uint32_t drafts_ = 0;
  FluidStep step_, finer_step_;
  std::optional<FluidMix> mix_, finer_mix_;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_PRICE_DRAFT_H_
