#include "tests/bench/planner/nets.h"

#include <cstdio>
#include <utility>

#include "tests/step/simulator.h"
#include "tests/step/transformer_step.h"

namespace tidemark::bench {

std::vector<Net> TracedNets(const std::string& folder) {
  std::vector<Net> nets;
  for (const std::string& path : steps::StepTracesIn(folder + "/step")) {
    Net net;
    std::string error;
    if (!steps::ReadStepTrace(path, &net.named, &error)) {
      std::fprintf(stderr, "planner: left out: %s\n", error.c_str());
      continue;
    }
    net.live_peak = steps::LivePeak(net.named.step);
    nets.push_back(std::move(net));
  }
  return nets;
}

std::vector<Net> GeneratedNets() {
  std::vector<Net> nets;
  for (const steps::TransformerShape& shape : steps::ScoreboardShapes()) {
    Net net;
    net.named = steps::TransformerStep(shape);
    net.generated = true;
    net.live_peak = steps::LivePeak(net.named.step);
    nets.push_back(std::move(net));
  }
  return nets;
}

}  // namespace tidemark::bench
