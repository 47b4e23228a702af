#include "core/step.h"

#include <limits>

namespace tidemark::core {
namespace {

// So that sums of times and of bytes stay far away from the ends of their types.
constexpr Nanoseconds kLongestStep = Nanoseconds{1} << 52;  // 52 days
constexpr Bytes kMostBytes = Bytes{1} << 60;                // of all buffers together
constexpr size_t kMostOps = size_t{1} << 24;
constexpr double kSlowest = 1;     // bytes per second
constexpr double kFastest = 1e15;  // bytes per second

const char* WrongBuffers(const Step& step, size_t* at) {
  Bytes total = 0;
  for (size_t b = 0; b < step.buffers.size(); ++b) {
    const StepBuffer& buffer = step.buffers[b];
    *at = b;
    if (buffer.bytes > kMostBytes - total) return "the buffers hold more than 2^60 bytes in all";
    total += buffer.bytes;
    if (buffer.persistent) continue;
    if (buffer.freed >= step.ops.size()) return "a buffer is freed after the last operation";
    if (buffer.born > buffer.freed) return "a buffer is freed before it is born";
  }
  return nullptr;
}

const char* WrongAccess(const Step& step, OpIndex op, const StepAccess& access) {
  if (access.buffer >= step.buffers.size()) return "an operation uses a buffer that does not exist";
  if (!access.read && !access.write) return "an access neither reads nor writes";
  const StepBuffer& buffer = step.buffers[access.buffer];
  if (buffer.persistent || (op >= buffer.born && op <= buffer.freed)) return nullptr;
  return "an operation uses a buffer outside its life";
}

// A buffer stands once per operation: `seen` holds for each buffer one more than the last
// operation.
const char* WrongOp(const Step& step, OpIndex i, Array<uint32_t>* seen) {
  const StepOp& op = step.ops[i];
  if (op.duration < 0) return "an operation has a negative duration";
  if (uint64_t{op.first_access} + op.access_count > step.accesses.size()) {
    return "an operation's accesses lie outside the list of accesses";
  }
  for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
    const StepAccess& access = step.accesses[a];
    const char* wrong = WrongAccess(step, i, access);
    if (wrong != nullptr) return wrong;
    if ((*seen)[access.buffer] == i + 1) return "an operation names a buffer twice";
    (*seen)[access.buffer] = i + 1;
  }
  return nullptr;
}

bool IsRate(double rate) { return rate >= kSlowest && rate <= kFastest; }

}  // namespace

const char* Step::Validate(size_t* at) const {
  *at = 0;
  if (ops.empty()) return "the step has no operations";
  if (ops.size() > kMostOps) return "the step has more than 2^24 operations";
  if (buffers.size() > std::numeric_limits<BufferIndex>::max()) {
    return "the step has more than 2^32 buffers";
  }
  const char* wrong = WrongBuffers(*this, at);
  if (wrong != nullptr) return wrong;
  Array<uint32_t> seen;
  if (!seen.Resize(buffers.size())) return "there is no host memory to check the step";
  Nanoseconds total = 0;
  for (OpIndex i = 0; i < ops.size(); ++i) {
    *at = i;
    wrong = WrongOp(*this, i, &seen);
    if (wrong != nullptr) return wrong;
    if (ops[i].duration > kLongestStep - total) return "the step takes longer than 2^52 ns";
    total += ops[i].duration;
  }
  return nullptr;
}

const char* Machine::Validate() const {
  if (!IsRate(out_rate) || !IsRate(in_rate)) {
    return "a link rate is not between 1 and 10^15 bytes per second";
  }
  if (!IsRate(out_rate_duplex) || !IsRate(in_rate_duplex)) {
    return "a link rate for both directions at once is not between 1 and 10^15 bytes per second";
  }
  if (out_rate_duplex > out_rate || in_rate_duplex > in_rate) {
    return "a link is faster while the other direction is busy than alone";
  }
  if (safepoint < 0 || safepoint > kLongestStep) {
    return "the cost of a safepoint is not between 0 and 2^52 ns";
  }
  if (chunk_bytes == 0 || chunk_bytes > kMostBytes) return "a chunk is not 1 byte to 2^60 bytes";
  return nullptr;
}

}  // namespace tidemark::core
