// The steps of the planner scoreboard: those of a trace folder, and generated ones that need none.
// Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_NETS_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_NETS_H_

#include <string>
#include <vector>

#include "tests/step/step_trace.h"

namespace tidemark::bench {

struct Net {
  steps::NamedStep named;
  bool generated = false;
  core::Bytes live_peak = 0;  // with nothing away
};

// Reads FOLDER/step/*. Prints to stderr what cannot be read or scored, counts it, and goes on
// without.
std::vector<Net> TracedNets(const std::string& folder, size_t* left_out);
std::vector<Net> GeneratedNets();

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_NETS_H_
