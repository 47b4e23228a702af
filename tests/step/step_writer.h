// Writes down a step kernel by kernel: durations from a roofline of the same device as
// transformer_step.h. For generators. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_STEP_WRITER_H_
#define TIDEMARK_TESTS_STEP_STEP_WRITER_H_

#include <algorithm>
#include <utility>

#include "tests/step/step_builder.h"
#include "tests/step/step_trace.h"

namespace tidemark::steps {

class StepWriter {
 public:
  using Buffers = StepBuilder::Buffers;

  explicit StepWriter(const char* name) { out_.name = name; }

  core::BufferIndex Kept(core::Bytes bytes) { return steps_.Persistent(bytes); }
  core::BufferIndex Passing(core::Bytes bytes) { return steps_.Transient(bytes); }
  core::Bytes bytes(core::BufferIndex b) const { return steps_.step().buffers[b].bytes; }

  // All buffers are touched once, but for those of which only `touched` bytes are.
  void Emit(const char* name, double flops, const Buffers& reads, const Buffers& writes) {
    double touched = 0;
    for (const Buffers* list : {&reads, &writes}) {
      for (core::BufferIndex b : *list) touched += static_cast<double>(bytes(b));
    }
    EmitTouching(name, flops, touched, reads, writes);
  }
  void EmitTouching(const char* name, double flops, double touched, const Buffers& reads,
                    const Buffers& writes) {
    constexpr double kFlopsRate = 150e12;   // FLOP/s
    constexpr double kMemoryRate = 1.5e12;  // bytes/s
    constexpr int64_t kLaunchNs = 4000;
    const double seconds = std::max(flops / kFlopsRate, touched / kMemoryRate);
    steps_.Op(kLaunchNs + static_cast<int64_t>(seconds * 1e9), reads, writes);
    out_.op_names.emplace_back(name);
  }

  NamedStep Take() {
    out_.step = steps_.Take();
    return std::move(out_);
  }

 private:
  NamedStep out_;
  StepBuilder steps_;
};

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_STEP_WRITER_H_
