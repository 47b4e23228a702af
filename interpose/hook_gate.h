// What the bodies of hooks are made of: the guard, the gate, and one body for a function and its
// per-thread twin. Included by hooks_*.cc only.
//
// Rule of every hook: without entry (we are inside Tidemark on this thread) or with an inactive
// memory side, the call goes to the real driver exactly as it came.

#ifndef TIDEMARK_INTERPOSE_HOOK_GATE_H_
#define TIDEMARK_INTERPOSE_HOOK_GATE_H_

#include <initializer_list>

#include "hook_calls.h"
#include "interpose/manager.h"

namespace tidemark::interpose {

// Stream 0 of the per-thread entry points is the calling thread's own stream.
inline CUstream PerThread(CUstream stream) {
  return stream != nullptr ? stream : CU_STREAM_PER_THREAD;
}

// Whether a hook has anything to do beyond forwarding.
inline bool Manages(const Guard& guard) { return guard.entered() && ManagerActive(); }

inline GateSpan Reads(CUdeviceptr base, size_t bytes) { return {base, bytes, false}; }
inline GateSpan Writes(CUdeviceptr base, size_t bytes) { return {base, bytes, true}; }

// Bytes from the first to the last byte of `rows` rows of `row_bytes`, `pitch` apart.
inline size_t PitchedBytes(size_t pitch, size_t row_bytes, size_t rows) {
  return rows == 0 ? 0 : pitch * (rows - 1) + row_bytes;
}

// Hands work that touches `spans` to the driver while the gate keeps them in place.
template <typename Call>
CUresult ThroughGate(CUstream stream, std::initializer_list<GateSpan> spans, const Call& call) {
  Guard guard;
  if (!Manages(guard)) return call();
  GatePass pass(guard, stream, spans.begin(), spans.size());
  return call();
}

}  // namespace tidemark::interpose

// Defines the hook of `name`, passing the gate with the spans after `stream`.
#define TIDEMARK_GATED(name, parameters, arguments, stream, ...)                               \
  CUresult Hook_##name parameters {                                                            \
    return ::tidemark::interpose::ThroughGate(stream, {__VA_ARGS__},                           \
                                              [&] { return tidemark_real_##name arguments; }); \
  }
// ... of an asynchronous call and its twin; the parameter that holds the stream is `hStream`.
#define TIDEMARK_GATED_ASYNC(name, parameters, arguments, ...)      \
  TIDEMARK_GATED(name, parameters, arguments, hStream, __VA_ARGS__) \
  TIDEMARK_GATED(name##_ptsz, parameters, arguments, PerThread(hStream), __VA_ARGS__)
// ... of a synchronous call and its twin.
#define TIDEMARK_GATED_SYNC(name, parameters, arguments, ...)       \
  TIDEMARK_GATED(name, parameters, arguments, nullptr, __VA_ARGS__) \
  TIDEMARK_GATED(name##_ptds, parameters, arguments, CU_STREAM_PER_THREAD, __VA_ARGS__)

#endif  // TIDEMARK_INTERPOSE_HOOK_GATE_H_
