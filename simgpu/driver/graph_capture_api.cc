// Entry points of stream capture.

#include <cuda.h>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

namespace simgpu {

CUstreamCaptureMode ExchangeCaptureMode(CUstreamCaptureMode mode);  // graph_capture.cc

namespace {

bool IsMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUstreamCaptureStatus StatusOf(CUstream stream) {
  if (stream->capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

CUresult StreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (!IsMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  return BeginCapture(stream, nullptr, {}, mode);
}

CUresult StreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode* from,
                                   size_t count, CUstreamCaptureMode mode) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (!IsMode(mode) || !Graphs::Get().IsGraph(graph) || (count != 0 && from == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return BeginCapture(stream, graph, std::vector<CUgraphNode>(from, from + count), mode);
}

CUresult StreamEndCapture(CUstream handle, CUgraph* graph) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return EndCapture(stream, graph);
}

CUresult StreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy) {
    // Asking is an error, not a misuse: the captures stay valid.
    for (Capture* capture : Captures()) {
      for (auto& [member, nodes] : capture->frontier) {
        if (member->blocking() && member->context == stream->context) {
          return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
      }
    }
  }
  *status = StatusOf(stream);
  return CUDA_SUCCESS;
}

CUresult StreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                              CUgraph* graph, const CUgraphNode** from,
                              const CUgraphEdgeData** edges, size_t* count) {
  Lock lock(DriverLock());
  if (const CUresult bad = StreamIsCapturing(handle, status); bad != CUDA_SUCCESS) return bad;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  CUstream stream = nullptr;
  Streams::Get().Resolve(handle, &stream);
  const std::vector<CUgraphNode>& frontier = stream->capture->frontier[stream];
  if (id != nullptr) *id = stream->capture->id;
  if (graph != nullptr) *graph = stream->capture->graph;
  if (from != nullptr) *from = frontier.data();
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = frontier.size();
  return CUDA_SUCCESS;
}

CUresult StreamGetCaptureInfoV2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                CUgraph* graph, const CUgraphNode** from, size_t* count) {
  return StreamGetCaptureInfo(stream, status, id, graph, from, nullptr, count);
}

CUresult StreamUpdateCapture(CUstream handle, CUgraphNode* from, size_t count, unsigned flags) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (count != 0 && from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode>& frontier = stream->capture->frontier[stream];
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    frontier.assign(from, from + count);
  } else if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) {
    frontier.insert(frontier.end(), from, from + count);
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu

SIMGPU_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  SIMGPU_ENTER();
  if (mode == nullptr || !simgpu::IsMode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  *mode = simgpu::ExchangeCaptureMode(*mode);
  return CUDA_SUCCESS;
}

SIMGPU_PTSZ(cuStreamBeginCapture_v2, StreamBeginCapture,
            (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
SIMGPU_PTSZ(cuStreamBeginCaptureToGraph, StreamBeginCaptureToGraph,
            (CUstream stream, CUgraph graph, const CUgraphNode* from, const CUgraphEdgeData*,
             size_t count, CUstreamCaptureMode mode),
            (stream, graph, from, count, mode))
SIMGPU_PTSZ(cuStreamEndCapture, StreamEndCapture, (CUstream stream, CUgraph* graph),
            (stream, graph))
SIMGPU_PTSZ(cuStreamIsCapturing, StreamIsCapturing,
            (CUstream stream, CUstreamCaptureStatus* status), (stream, status))
SIMGPU_PTSZ(cuStreamGetCaptureInfo_v2, StreamGetCaptureInfoV2,
            (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
             const CUgraphNode** from, size_t* count),
            (stream, status, id, graph, from, count))
SIMGPU_PTSZ(cuStreamGetCaptureInfo_v3, StreamGetCaptureInfo,
            (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
             const CUgraphNode** from, const CUgraphEdgeData** edges, size_t* count),
            (stream, status, id, graph, from, edges, count))
#undef cuStreamUpdateCaptureDependencies
SIMGPU_PTSZ(cuStreamUpdateCaptureDependencies, StreamUpdateCapture,
            (CUstream stream, CUgraphNode* from, size_t count, unsigned flags),
            (stream, from, count, flags))
SIMGPU_PTSZ(cuStreamUpdateCaptureDependencies_v2, StreamUpdateCapture,
            (CUstream stream, CUgraphNode* from, const CUgraphEdgeData*, size_t count,
             unsigned flags),
            (stream, from, count, flags))
