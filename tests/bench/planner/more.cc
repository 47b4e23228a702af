#include "tests/bench/planner/more.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "core/planner.h"
#include "tests/bench/planner/in_parallel.h"
#include "tests/bench/progress.h"
#include "tests/step/any_step.h"
#include "tests/step/rising_machines.h"

namespace tidemark::bench {
namespace {

constexpr size_t kSteps = 50;

struct Pairs {
  size_t count = 0;
  size_t slower = 0;        // at all, beyond rounding
  size_t slower_a_bit = 0;  // by more than 0.1 %
  size_t slower_much = 0;   // by more than 1 %
  double worst = 0;

  void Add(double less, double more) {
    const double loss = more / less - 1;
    ++count;
    slower += more > less + 1.5 ? 1 : 0;
    slower_a_bit += loss > 0.001 ? 1 : 0;
    slower_much += loss > 0.01 ? 1 : 0;
    worst = std::max(worst, loss);
  }
  void Add(const Pairs& other) {
    count += other.count;
    slower += other.slower;
    slower_a_bit += other.slower_a_bit;
    slower_much += other.slower_much;
    worst = std::max(worst, other.worst);
  }
  void Print(const std::string& name) const {
    const double all = static_cast<double>(std::max<size_t>(count, 1)) / 100;
    std::printf("%-44s %7zu %9.2f %9.2f %9.2f %9.2f\n", name.c_str(), count,
                static_cast<double>(slower) / all, static_cast<double>(slower_a_bit) / all,
                static_cast<double>(slower_much) / all, 100 * worst);
  }
};

void AddChain(const core::Step& step, const std::vector<core::Machine>& machines, Pairs* pairs) {
  std::vector<double> times;
  for (const core::Machine& machine : machines) {
    core::Plan plan;
    if (core::MakePlan(step, machine, {}, &plan) != core::PlanOutcome::kPlanned) continue;
    for (const double less : times) pairs->Add(less, static_cast<double>(plan.step_time));
    times.push_back(static_cast<double>(plan.step_time));
  }
}

void PrintRandom(bool is_lossy) {
  for (const steps::Rise rise : steps::kRises) {
    std::vector<Pairs> of_step(kSteps);
    InParallel(kSteps, [&](size_t seed) {
      const steps::RisingMachines rising(seed, rise, is_lossy);
      AddChain(rising.step, rising.machines, &of_step[seed]);
    });
    Pairs pairs;
    for (const Pairs& some : of_step) pairs.Add(some);
    pairs.Print(std::string(steps::NameOf(rise)) + (is_lossy ? ", duplex loss" : ""));
  }
}

Pairs PairsOf(const std::vector<Cell>& cells) {
  const auto ours = static_cast<size_t>(Policy::kTidemark);
  Pairs pairs;
  for (const Cell& less : cells) {
    for (const Cell& more : cells) {
      const bool is_pair = less.net == more.net && &less != &more &&
                           less.cap_percent <= more.cap_percent && less.gb_per_s <= more.gb_per_s;
      if (!is_pair || !less.scores[ours].done || !more.scores[ours].done) continue;
      pairs.Add(less.scores[ours].step_ns, more.scores[ours].step_ns);
    }
  }
  return pairs;
}

}  // namespace

void PrintMore(const std::vector<Cell>& cells) {
  std::printf(
      "\nTable 5: more of anything: pairs of machines of which one has at least as much of "
      "everything; %% of pairs in\nwhich its plan is slower at all, by more than 0.1 %%, by more "
      "than 1 %%; most, in %%\n%-44s %7s %9s %9s %9s %9s\n",
      "pairs", "pairs", "slower", "> 0.1 %", "> 1 %", "most");
  PairsOf(cells).Print("table 1");
  for (const bool is_lossy : {false, true}) {
    Progress("planner", is_lossy ? "table 5, random steps, duplex loss" : "table 5, random steps");
    PrintRandom(is_lossy);
  }
}

}  // namespace tidemark::bench
