// Streams as they come and go, and captures as they begin and end.

#include "interpose/hook_gate.h"

namespace tidemark::interpose {
namespace {

template <typename Call>
CUresult Created(CUstream* stream, const Call& call) {
  Guard guard;
  CUresult result = call();
  if (result == CUDA_SUCCESS && Manages(guard)) ManagerStreamCreated(guard, *stream);
  return result;
}

template <typename Call>
CUresult Destroyed(CUstream stream, const Call& call) {
  Guard guard;
  if (Manages(guard) && stream != nullptr) ManagerStreamDestroying(guard, stream);
  return call();
}

template <typename Call>
CUresult Began(CUstream stream, const Call& call) {
  Guard guard;
  bool managed = Manages(guard);
  CUresult result = call();
  if (managed && result == CUDA_SUCCESS) ManagerCaptureBegan(guard, stream);
  return result;
}

template <typename Call>
CUresult Ended(CUstream stream, CUgraph* graph, const Call& call) {
  Guard guard;
  CUresult result = call();
  if (!Manages(guard)) return result;
  bool captured = result == CUDA_SUCCESS && graph != nullptr;
  ManagerCaptureEnded(guard, stream, captured ? *graph : nullptr);
  return result;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuStreamCreate(CUstream* stream, unsigned flags) {
  return Created(stream, [&] { return tidemark_real_cuStreamCreate(stream, flags); });
}
CUresult Hook_cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return Created(stream,
                 [&] { return tidemark_real_cuStreamCreateWithPriority(stream, flags, priority); });
}
CUresult Hook_cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags,
                                     int priority) {
  return Created(stream, [&] {
    return tidemark_real_cuGreenCtxStreamCreate(stream, context, flags, priority);
  });
}
CUresult Hook_cuStreamDestroy(CUstream stream) {
  return Destroyed(stream, [&] { return tidemark_real_cuStreamDestroy(stream); });
}
CUresult Hook_cuStreamDestroy_v2(CUstream stream) {
  return Destroyed(stream, [&] { return tidemark_real_cuStreamDestroy_v2(stream); });
}

CUresult Hook_cuStreamBeginCapture(CUstream stream) {
  return Began(stream, [&] { return tidemark_real_cuStreamBeginCapture(stream); });
}
CUresult Hook_cuStreamBeginCapture_ptsz(CUstream stream) {
  return Began(PerThread(stream), [&] { return tidemark_real_cuStreamBeginCapture_ptsz(stream); });
}
CUresult Hook_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return Began(stream, [&] { return tidemark_real_cuStreamBeginCapture_v2(stream, mode); });
}
CUresult Hook_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return Began(PerThread(stream),
               [&] { return tidemark_real_cuStreamBeginCapture_v2_ptsz(stream, mode); });
}
CUresult Hook_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                          const CUgraphEdgeData* edges, size_t after_count,
                                          CUstreamCaptureMode mode) {
  return Began(stream, [&] {
    return tidemark_real_cuStreamBeginCaptureToGraph(stream, graph, after, edges, after_count,
                                                     mode);
  });
}
CUresult Hook_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                               const CUgraphNode* after,
                                               const CUgraphEdgeData* edges, size_t after_count,
                                               CUstreamCaptureMode mode) {
  return Began(PerThread(stream), [&] {
    return tidemark_real_cuStreamBeginCaptureToGraph_ptsz(stream, graph, after, edges, after_count,
                                                          mode);
  });
}
CUresult Hook_cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return Ended(stream, graph, [&] { return tidemark_real_cuStreamEndCapture(stream, graph); });
}
CUresult Hook_cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return Ended(PerThread(stream), graph,
               [&] { return tidemark_real_cuStreamEndCapture_ptsz(stream, graph); });
}
