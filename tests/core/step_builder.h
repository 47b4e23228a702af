// Builds small steps for tests, one call per buffer and operation. Not for traces: nothing is
// checked but by Step::Validate.

#ifndef TIDEMARK_TESTS_CORE_STEP_BUILDER_H_
#define TIDEMARK_TESTS_CORE_STEP_BUILDER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "core/step.h"

namespace tidemark::core {

class StepBuilder {
 public:
  BufferIndex Transient(Bytes bytes) { return Add(bytes, false); }
  BufferIndex Persistent(Bytes bytes) { return Add(bytes, true); }

  // A transient buffer lives from the first to the last operation that names it.
  OpIndex Op(Nanoseconds duration, std::initializer_list<BufferIndex> reads,
             std::initializer_list<BufferIndex> writes) {
    StepOp op;
    op.duration = duration;
    op.first_access = static_cast<uint32_t>(step.accesses.size());
    for (const BufferIndex b : writes) AddAccess(b, Contains(reads, b), true);
    for (const BufferIndex b : reads) {
      if (!Contains(writes, b)) AddAccess(b, true, false);
    }
    op.access_count = static_cast<uint32_t>(step.accesses.size()) - op.first_access;
    EXPECT_TRUE(step.ops.Append(op));
    return static_cast<OpIndex>(step.ops.size() - 1);
  }

  Step step;

 private:
  static bool Contains(std::initializer_list<BufferIndex> list, BufferIndex b) {
    return std::find(list.begin(), list.end(), b) != list.end();
  }
  BufferIndex Add(Bytes bytes, bool persistent) {
    StepBuffer buffer;
    buffer.bytes = bytes;
    buffer.persistent = persistent;
    EXPECT_TRUE(step.buffers.Append(buffer));
    EXPECT_TRUE(used_.Append(false));
    return static_cast<BufferIndex>(step.buffers.size() - 1);
  }
  void AddAccess(BufferIndex b, bool read, bool write) {
    const auto op = static_cast<OpIndex>(step.ops.size());
    if (!used_[b]) step.buffers[b].born = op;
    used_[b] = true;
    step.buffers[b].freed = op;
    EXPECT_TRUE(step.accesses.Append({b, read, write}));
  }

  Array<bool> used_;
};

// One byte per nanosecond each way, both ways at once; every buffer may leave, in single bytes.
inline Machine ByteMachine(Bytes device_budget) {
  Machine machine;
  machine.device_budget = device_budget;
  machine.out_rate = machine.in_rate = 1e9;
  machine.out_rate_duplex = machine.in_rate_duplex = 1e9;
  machine.chunk_bytes = 1;
  machine.min_bytes = 1;
  return machine;
}

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_STEP_BUILDER_H_
