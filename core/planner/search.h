// Tries ways to plan one step on one machine and keeps the best: sweeps by a fixed list of recipes,
// each made to hold the budget, written down and valued. How many are tried depends on counts and
// results only, never on time passed. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_SEARCH_H_
#define TIDEMARK_CORE_PLANNER_SEARCH_H_

#include <cstdint>

#include "core/plan.h"
#include "core/planner/change_draft.h"
#include "core/planner/draft.h"
#include "core/planner/evaluate.h"
#include "core/planner/prices/price_draft.h"
#include "core/planner/seen_drafts.h"
#include "core/planner/sweep.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

enum class Found : uint8_t { kPlan, kNothing, kNoMemory };

class Search {
 public:
  // False: no host memory. Step and machine are valid; the step outlives this.
  [[nodiscard]] bool Init(const Step& step, const Machine& machine);

  const Timeline& timeline() const { return timeline_; }
  void SetBudget(Bytes device_budget) { machine_.device_budget = device_budget; }
  const Machine& machine() const { return machine_; }

  // Forgets what was found so far.
  void Restart();
  // Tries a plan that exists, as far as it still fits the step.
  Found TryPrevious(const Plan& previous);
  // Tries the recipes in order, until the step is not delayed at all.
  Found TryRecipes();
  Found TryRecipe(uint32_t recipe);
  Found TryQuick(uint32_t recipe);  // a cheaper one instead, if it takes long
  // Where nothing else found a plan: tries to find any.
  Found TryAtRandom();
  // Tries changes of what leaves first, at random but always the same, as many as the size of the
  // step allows.
  Found Improve();
  // The same with the parts of the best plan: thousands of trials for small steps, as long as they
  // find something; few for large ones.
  Found Polish();
  // Drafts by prices, for steps that are short enough, have a plan and lose time. They have many
  // small parts.
  Found TryPrices();

  // What planning may take until drafts by prices, whose work counts by itself (kPriceWork): 15 to
  // 30 ns each on a server's processor of 2.5 GHz. Counted since Init over all that is done, by
  // what its time goes with.
  static constexpr uint64_t kMostWork = 4'000'000;
  static constexpr uint64_t kMostWorkOfSmall = 5'000'000;  // likewise, where IsSmall()
  uint64_t spent() const { return spent_; }
  uint64_t spent_on_prices() const { return spent_on_prices_; }
  // Whether so much is spent.
  bool IsSpent(uint64_t work = kMostWork) const { return spent_ >= work; }

  // Whether no better plan can exist, as far as that is known.
  bool IsDone() const { return has_plan_ && best_.step_time <= least_time_; }

  // Whether the step has few operations, and the best plan few moves.
  bool IsSmall() const { return has_plan_ && IsSmall(best_); }

  // Whether drafts by prices are likely to beat what sweeps come to.
  bool TrustsPrices() const;

  bool has_plan() const { return has_plan_; }
  const Plan& best() const { return best_; }
  // To put another plan in its place.
  Plan* mutable_best() { return &best_; }
  void SetHasPlan(bool has_plan) { has_plan_ = has_plan; }

  static constexpr uint32_t kByDemand = 2;  // the recipe without a sweep

 private:
  // Of it: until recipes and Improve are through; the second for steps that Polish and drafts by
  // prices search further; the others before and after drafts by prices that are trusted.
  static constexpr uint64_t kSweepWork = 3'600'000;
  static constexpr uint64_t kSweepWorkOfShort = 1'600'000;
  static constexpr uint64_t kSweepWorkBeforePrices = 2'200'000;
  static constexpr uint64_t kSweepWorkAfterPrices = 3'000'000;
  // All in all, for steps whose drafts by prices are trusted.
  static constexpr uint64_t kMostWorkWithPrices = 3'600'000;

  bool IsShort() const;
  uint64_t MostSweepWork() const;

  Found TryPrices(uint32_t stretches);
  Found TryDraft(const CoverChoice& choice = {});
  Found ValueDraft(double most);
  void Charge(Draft* draft) {
    spent_ += draft->work;
    draft->work = 0;
  }
  double SafepointsAtMost() const;
  Found KeepIfBetter();
  bool IsBetter(const Plan& plan) const;
  bool GoesRound() const;
  double PartThatStays(double room) const;
  double PartWithoutHost() const;
  uint64_t PiecesOf(Bytes piece) const;
  bool IsAffordable(Bytes piece) const;
  Found TrySweep(const SweepOptions& options);
  Found SweepOn(const Machine& machine, const SweepOptions& options);
  Found PolishLong();
  Found PolishOneRound(DraftChanger* changer, Dice* dice);
  Found PolishBoldly();
  Found TryChange(double most, DraftChanger* changer, Dice* dice);
  bool IsSmall(const Plan& plan) const;
  [[nodiscard]] bool ListOpenWindows();
  [[nodiscard]] bool BoundTime();
  [[nodiscard]] bool ShareInTrial(double most);

  Timeline timeline_;
  Machine machine_;
  Horizon horizon_;  // of the budget horizon_budget_
  Bytes horizon_budget_ = kNoLimit;
  Sweep sweep_;
  Evaluator evaluator_;
  Draft draft_;
  Draft current_;  // where Polish stands
  SeenDrafts seen_;
  Plan trial_;
  Plan shared_;  // the trial with shared safepoints
  Plan best_;
  Array<double> waits_;        // for copies out, in the best plan ...
  Array<double> trial_waits_;  // ... and in the trial
  Array<OpenWindow> windows_;
  Array<int32_t> shifts_, best_shifts_;
  SweepOptions best_options_;
  size_t best_pieces_ = 0;  // of the sweep with them
  uint64_t spent_ = 0;      // of kMostWork
  uint64_t spent_on_prices_ = 0;
  uint64_t first_work_ = 0;  // of the first sweep and its draft, 0: none yet; and the pieces it had
  size_t first_pieces_ = 0;
  Nanoseconds least_time_ = 0;  // no plan within the budgets is faster
  bool has_plan_ = false;
  bool improved_ = false;   // by the last draft
  bool was_seen_ = false;   // the last change of Polish's made a draft that was tried before
  bool fits_host_ = false;  // likewise: its copies do
};

// Fills plan->decisions: one for each idle window of the step. False: no host memory.
[[nodiscard]] bool Decide(const Timeline& timeline, const Machine& machine, Plan* plan);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_SEARCH_H_
