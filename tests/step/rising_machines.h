// A random small step and machines for it, each with at least as much of everything as the one
// before: for the promise that more is not slower. By seed. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_RISING_MACHINES_H_
#define TIDEMARK_TESTS_STEP_RISING_MACHINES_H_

#include <algorithm>
#include <vector>

#include "tests/step/any_step.h"
#include "tests/step/simulator.h"

namespace tidemark::steps {

enum class Rise : uint8_t { kDevice, kHost, kOutRate, kInRate, kBothRates, kOneAfterAnother };
inline constexpr Rise kRises[] = {Rise::kDevice, Rise::kHost,      Rise::kOutRate,
                                  Rise::kInRate, Rise::kBothRates, Rise::kOneAfterAnother};

inline const char* NameOf(Rise rise) {
  constexpr const char* kNames[] = {"device memory", "host memory", "rate out",
                                    "rate in",       "both rates",  "one after another, at random"};
  return kNames[static_cast<size_t>(rise)];
}

struct RisingMachines {
  static constexpr int kCount = 8;
  static constexpr uint64_t kGrain = 1000;

  RisingMachines(uint64_t seed, Rise rise, bool is_lossy)
      : random(seed * std::size(kRises) + static_cast<uint64_t>(rise)) {
    step = AnyStep(random, 60, 40);
    core::Machine machine = AnyMachine(random);
    machine.out_rate_duplex = machine.out_rate * (is_lossy ? 0.9 : 1);
    machine.in_rate_duplex = machine.in_rate * (is_lossy ? 0.45 : 1);
    floor = WorkingSetFloor(step, machine);
    peak = std::max(LivePeak(step), floor + 1);
    machine.device_budget = floor + Below(random, peak - floor);
    if (Below(random, 3) == 0 || rise == Rise::kHost) {
      machine.host_budget = peak * (5 + Below(random, 60)) / 100;
    }
    std::vector<uint64_t> at(kCount);
    for (uint64_t& share : at) share = Below(random, kGrain);
    std::sort(at.begin(), at.end());
    for (const uint64_t share : at) {
      if (rise == Rise::kOneAfterAnother) {
        RaiseOne(&machine);
        machines.push_back(machine);
      } else {
        machines.push_back(Raised(machine, rise, share));
      }
    }
  }

  std::mt19937_64 random;
  core::Step step;
  core::Bytes floor = 0, peak = 0;
  std::vector<core::Machine> machines;

 private:
  static void Scale(core::Machine* machine, double out, double in) {
    machine->out_rate *= out;
    machine->out_rate_duplex *= out;
    machine->in_rate *= in;
    machine->in_rate_duplex *= in;
  }

  // `share` of kGrain of what there is to raise: budgets up to the peak, rates up to five times.
  core::Machine Raised(core::Machine machine, Rise rise, uint64_t share) const {
    const double factor = 1 + 4 * static_cast<double>(share) / kGrain;
    if (rise == Rise::kDevice) machine.device_budget = floor + (peak - floor) * share / kGrain;
    if (rise == Rise::kHost) machine.host_budget = peak * share / kGrain;
    if (rise == Rise::kOutRate) Scale(&machine, factor, 1);
    if (rise == Rise::kInRate) Scale(&machine, 1, factor);
    if (rise == Rise::kBothRates) Scale(&machine, factor, factor);
    return machine;
  }

  void RaiseOne(core::Machine* machine) {
    const double factor = 1 + static_cast<double>(Below(random, 500)) / 1000;
    const uint64_t choice = Below(random, 4);
    if (choice == 0) machine->device_budget += Below(random, (peak - floor) / 4 + 1);
    if (choice == 1 && machine->host_budget != core::kNoLimit) {
      machine->host_budget += Below(random, peak / 8 + 1);
    }
    if (choice == 2) Scale(machine, factor, 1);
    if (choice == 3) Scale(machine, 1, factor);
  }
};

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_RISING_MACHINES_H_
