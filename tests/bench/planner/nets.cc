#include "tests/bench/planner/nets.h"

#include <cstdio>
#include <utility>

#include "tests/step/model_step.h"
#include "tests/step/simulator.h"
#include "tests/step/transformer_step.h"

namespace tidemark::bench {

namespace {

bool TakesTime(const core::Step& step) {
  for (const core::StepOp& op : step.ops) {
    if (op.duration > 0) return true;
  }
  return false;
}

// Empty, or a sentence.
std::string Read(const std::string& path, Net* net) {
  std::string error;
  if (!steps::ReadStepTrace(path, &net->named, &error)) return error;
  size_t at = 0;
  const char* wrong = net->named.step.Validate(&at);
  if (wrong != nullptr) return "step trace " + path + ": " + wrong;
  if (!TakesTime(net->named.step)) {
    return "step trace " + path + ": its operations take no time, so there is no speed to score";
  }
  net->live_peak = steps::LivePeak(net->named.step);
  if (net->live_peak == 0) return "step trace " + path + ": it has no tensors, so nothing to plan";
  return "";
}

}  // namespace

std::vector<Net> TracedNets(const std::string& folder, size_t* left_out) {
  *left_out = 0;
  std::vector<Net> nets;
  for (const std::string& path : steps::StepTracesIn(folder + "/step")) {
    Net net;
    const std::string wrong = Read(path, &net);
    if (wrong.empty()) {
      nets.push_back(std::move(net));
      continue;
    }
    std::fprintf(stderr, "planner: left out: %s\n", wrong.c_str());
    ++*left_out;
  }
  return nets;
}

std::vector<Net> GeneratedNets() {
  std::vector<Net> nets;
  std::vector<steps::NamedStep> named;
  for (const steps::TransformerShape& shape : steps::ScoreboardShapes()) {
    named.push_back(steps::TransformerStep(shape));
  }
  for (steps::NamedStep& step : steps::ModelSteps()) named.push_back(std::move(step));
  for (steps::NamedStep& step : named) {
    Net net;
    net.named = std::move(step);
    net.generated = true;
    net.live_peak = steps::LivePeak(net.named.step);
    nets.push_back(std::move(net));
  }
  return nets;
}

}  // namespace tidemark::bench
