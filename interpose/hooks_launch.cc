// Launches of kernels and graphs, and stream memory operations.

#include "interpose/hook_gate.h"

namespace tidemark::interpose {
namespace {

template <typename Call>
CUresult Launch(CUstream stream, CUfunction function, void** params, void** extra,
                const Call& call) {
  Guard guard;
  if (!Manages(guard)) return call();
  GatePass pass(guard, stream, function, params, extra);
  return call();
}

template <typename Call>
CUresult LaunchGraph(CUstream stream, CUgraphExec graph, const Call& call) {
  Guard guard;
  if (!Manages(guard)) return call();
  GatePass pass(guard, stream, graph);
  return call();
}

// Opens one gate per kernel of a multi-device launch before the driver takes them all.
template <typename Call>
CUresult LaunchEach(const CUDA_LAUNCH_PARAMS* list, unsigned count, const Guard& guard,
                    const Call& call) {
  if (count == 0) return call();
  GatePass pass(guard, list->hStream, list->function, list->kernelParams, nullptr);
  return LaunchEach(list + 1, count - 1, guard, call);
}

// The device polls or writes `address` whenever it likes, so it must not move; 0 bytes pins the
// whole buffer.
template <typename Call>
CUresult StreamWord(CUstream stream, CUdeviceptr address, size_t bytes, const Call& call) {
  Guard guard;
  if (!Manages(guard)) return call();
  ManagerPin(guard, address, bytes, PinReason::kRegistered);
  GateSpan span = Writes(address, bytes);
  GatePass pass(guard, stream, &span, 1);
  return call();
}

bool NamesAddress(const CUstreamBatchMemOpParams& op) {
  return op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
         op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
         op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
         op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

template <typename Call>
CUresult StreamWords(CUstream stream, unsigned count, const CUstreamBatchMemOpParams* ops,
                     const Call& call) {
  Guard guard;
  if (!Manages(guard) || ops == nullptr) return call();
  for (unsigned i = 0; i < count; ++i) {
    if (!NamesAddress(ops[i])) continue;
    // waitValue and writeValue begin alike
    ManagerPin(guard, ops[i].waitValue.address, sizeof(uint64_t), PinReason::kRegistered);
  }
  GatePass pass(guard, stream, nullptr, 0);
  return call();
}

}  // namespace
}  // namespace tidemark::interpose

// cuda.h renames these to their second version; both are hooked.
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

#define TIDEMARK_LAUNCH(name, parameters, arguments, stream, extra) \
  CUresult Hook_##name parameters {                                 \
    return Launch(stream, function, params, extra,                  \
                  [&] { return tidemark_real_##name arguments; });  \
  }
#define TIDEMARK_LAUNCH_TWIN(name, parameters, arguments, extra) \
  TIDEMARK_LAUNCH(name, parameters, arguments, hStream, extra)   \
  TIDEMARK_LAUNCH(name##_ptsz, parameters, arguments, PerThread(hStream), extra)

TIDEMARK_LAUNCH_TWIN(cuLaunchKernel,
                     (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared_bytes, CUstream hStream,
                      void** params, void** extra),
                     (function, gx, gy, gz, bx, by, bz, shared_bytes, hStream, params, extra),
                     extra)
TIDEMARK_LAUNCH_TWIN(cuLaunchCooperativeKernel,
                     (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared_bytes, CUstream hStream,
                      void** params),
                     (function, gx, gy, gz, bx, by, bz, shared_bytes, hStream, params), nullptr)

CUresult Hook_cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                               void** extra) {
  auto call = [&] { return tidemark_real_cuLaunchKernelEx(config, function, params, extra); };
  if (config == nullptr) return call();
  return Launch(config->hStream, function, params, extra, call);
}

CUresult Hook_cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                    void** params, void** extra) {
  auto call = [&] { return tidemark_real_cuLaunchKernelEx_ptsz(config, function, params, extra); };
  if (config == nullptr) return call();
  return Launch(PerThread(config->hStream), function, params, extra, call);
}

CUresult Hook_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned count,
                                                   unsigned flags) {
  auto call = [&] {
    return tidemark_real_cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  };
  Guard guard;
  if (!Manages(guard) || list == nullptr) return call();
  return LaunchEach(list, count, guard, call);
}

CUresult Hook_cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return LaunchGraph(stream, graph, [&] { return tidemark_real_cuGraphLaunch(graph, stream); });
}

CUresult Hook_cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return LaunchGraph(PerThread(stream), graph,
                     [&] { return tidemark_real_cuGraphLaunch_ptsz(graph, stream); });
}

#define TIDEMARK_STREAM_WORD(name, Value, stream)                                            \
  CUresult Hook_##name(CUstream hStream, CUdeviceptr address, Value value, unsigned flags) { \
    return StreamWord(stream, address, sizeof(Value),                                        \
                      [&] { return tidemark_real_##name(hStream, address, value, flags); }); \
  }
#define TIDEMARK_STREAM_WORD_TWIN(name, Value) \
  TIDEMARK_STREAM_WORD(name, Value, hStream)   \
  TIDEMARK_STREAM_WORD(name##_ptsz, Value, PerThread(hStream))
TIDEMARK_STREAM_WORD_TWIN(cuStreamWriteValue32, cuuint32_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWriteValue32_v2, cuuint32_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWriteValue64, cuuint64_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWriteValue64_v2, cuuint64_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWaitValue32, cuuint32_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWaitValue32_v2, cuuint32_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWaitValue64, cuuint64_t)
TIDEMARK_STREAM_WORD_TWIN(cuStreamWaitValue64_v2, cuuint64_t)

#define TIDEMARK_STREAM_WORDS(name, stream)                                               \
  CUresult Hook_##name(CUstream hStream, unsigned count, CUstreamBatchMemOpParams* ops,   \
                       unsigned flags) {                                                  \
    return StreamWords(stream, count, ops,                                                \
                       [&] { return tidemark_real_##name(hStream, count, ops, flags); }); \
  }
TIDEMARK_STREAM_WORDS(cuStreamBatchMemOp, hStream)
TIDEMARK_STREAM_WORDS(cuStreamBatchMemOp_ptsz, PerThread(hStream))
TIDEMARK_STREAM_WORDS(cuStreamBatchMemOp_v2, hStream)
TIDEMARK_STREAM_WORDS(cuStreamBatchMemOp_v2_ptsz, PerThread(hStream))
