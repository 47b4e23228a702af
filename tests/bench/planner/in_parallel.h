// Does independent pieces of work on all cores. Threads: starts some and waits for them.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_IN_PARALLEL_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_IN_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace tidemark::bench {

// work(0) ... work(count - 1), each once, in any order, several at a time.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(cores, count); ++t) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
}

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_IN_PARALLEL_H_
