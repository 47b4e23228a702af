// Writes down a step in a few lines: buffers first, then operations in order. A transient buffer is
// born at the first operation that uses it and freed after the last. For tests and generators,
// where running out of memory may abort. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_STEP_BUILDER_H_
#define TIDEMARK_TESTS_STEP_STEP_BUILDER_H_

#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "core/step.h"

namespace tidemark::steps {

class StepBuilder {
 public:
  using Buffers = std::vector<core::BufferIndex>;

  core::BufferIndex Persistent(core::Bytes bytes) { return Add(bytes, true); }
  core::BufferIndex Transient(core::Bytes bytes) { return Add(bytes, false); }

  // A buffer in both lists is one access that reads and writes.
  core::OpIndex Op(core::Nanoseconds duration, const Buffers& reads, const Buffers& writes) {
    const auto index = static_cast<core::OpIndex>(step_.ops.size());
    const auto first = static_cast<uint32_t>(step_.accesses.size());
    for (core::BufferIndex b : reads) Touch(b, index, first, false);
    for (core::BufferIndex b : writes) Touch(b, index, first, true);
    const auto count = static_cast<uint32_t>(step_.accesses.size()) - first;
    Must(step_.ops.Append({duration, first, count}));
    return index;
  }

  core::Step& step() { return step_; }
  const core::Step& step() const { return step_; }
  core::Step Take() { return std::move(step_); }

 private:
  static void Must(bool ok) {
    if (!ok) std::abort();
  }

  core::BufferIndex Add(core::Bytes bytes, bool persistent) {
    core::StepBuffer buffer;
    buffer.bytes = bytes;
    buffer.persistent = persistent;
    buffer.born = std::numeric_limits<core::OpIndex>::max();
    if (persistent) buffer.born = 0;
    Must(step_.buffers.Append(buffer));
    return static_cast<core::BufferIndex>(step_.buffers.size() - 1);
  }

  void Touch(core::BufferIndex buffer, core::OpIndex op, uint32_t first, bool write) {
    core::StepBuffer& b = step_.buffers[buffer];
    if (!b.persistent) {
      if (b.born > op) b.born = op;
      b.freed = op;
    }
    for (size_t i = first; i < step_.accesses.size(); ++i) {
      if (step_.accesses[i].buffer != buffer) continue;
      (write ? step_.accesses[i].write : step_.accesses[i].read) = true;
      return;
    }
    Must(step_.accesses.Append({buffer, !write, write}));
  }

  core::Step step_;
};

// The links' rates in bytes per second, the same with both busy.
inline void SetRates(double out, double in, core::Machine* machine) {
  machine->out_rate = machine->out_rate_duplex = out;
  machine->in_rate = machine->in_rate_duplex = in;
}

// One byte per nanosecond each way, both ways at once; every buffer may leave, in chunks of
// `chunk_bytes`.
inline core::Machine BytePerNanosecond(core::Bytes device_budget, core::Bytes chunk_bytes) {
  core::Machine machine;
  machine.device_budget = device_budget;
  SetRates(1e9, 1e9, &machine);
  machine.chunk_bytes = chunk_bytes;
  machine.min_bytes = 1;
  return machine;
}

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_STEP_BUILDER_H_
