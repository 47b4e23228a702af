// A recorded or generated sequence of allocations and frees, with where each iteration begins.
// Blocks are numbered in the order in which they are allocated.
//
// Not here: file formats (csv_trace.h, rmm_log.h, torch_snapshot.h), generators (generate.h).
// Threads: plain data.

#ifndef TIDEMARK_TESTS_REPLAY_TRACE_H_
#define TIDEMARK_TESTS_REPLAY_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::replay {

using Bytes = uint64_t;
using BlockId = uint32_t;

// What a file may hold; above it something is wrong with it, or scoring it takes hours.
inline constexpr Bytes kLargestBlock = Bytes{1} << 41;  // 2 TiB
inline constexpr Bytes kMostHeld = Bytes{1} << 42;      // 4 TiB at once
inline constexpr size_t kMostEvents = size_t{4} << 20;  // 4 Mi; in a snapshot, of all devices

struct BlockInfo {
  Bytes bytes = 0;
  uint32_t stream = 0;   // 0, 1, ... in order of appearance
  uint32_t process = 0;  // 0, 1, ...: each has its own allocator, all share the device
};

struct Event {
  BlockId block = 0;
  bool allocate = false;
};

struct Trace {
  std::string name;
  std::vector<BlockInfo> blocks;
  std::vector<Event> events;
  std::vector<size_t> steps;         // index of the first event of each iteration, ascending
  size_t preexisting = 0;            // leading allocations that happened before the recording
  Bytes recorded_peak_reserved = 0;  // 0: not recorded
  bool fixed_shape = false;          // every iteration asks for the same sizes
  bool recorded = false;             // from a real run, not from a generator

  uint32_t processes() const;
  uint32_t streams() const;
};

struct Peak {
  Bytes requested = 0;
  size_t event = 0;  // the first event after which it is reached
};

// The most bytes that are requested and not freed, over all processes.
Peak PeakRequested(const Trace& trace);

// Empty when every free follows its allocation, no block is allocated or freed twice and steps
// ascend; otherwise a sentence that says what is wrong.
std::string Check(const Trace& trace);

// `trace`, which is one iteration, `times` times in a row. What the iteration leaves behind beyond
// the blocks it found is freed where the next one begins (gradients set to none); a block it found
// and replaced (freed, and another of the same size left) is replaced again, in the order in which
// they were freed and made.
Trace Repeat(const Trace& trace, int times);

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_TRACE_H_
