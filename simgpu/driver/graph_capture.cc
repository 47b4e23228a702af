// Stream capture: turning submissions into graph nodes, and the rules about what may not happen
// while a capture goes on. See graph.h.

#include <algorithm>
#include <utility>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
uint64_t next_capture_id = 1;

CUresult Invalidate(Capture* capture, CUresult error) {
  capture->invalid = true;
  return error;
}

void Leave(Capture* capture) {
  for (auto& [stream, nodes] : capture->frontier) stream->capture = nullptr;
  std::erase(Captures(), capture);
  delete capture;
}

// Work of the capture that the origin stream does not depend on at the end.
bool HasUnjoinedWork(const Capture& capture) {
  const auto ends = capture.frontier.find(capture.origin);
  for (const CUgraphNode node : capture.made) {
    if (!Graphs::Get().IsNode(node) || !node->to.empty()) continue;
    if (std::find(ends->second.begin(), ends->second.end(), node) == ends->second.end()) {
      return true;
    }
  }
  return false;
}

void AddToFrontier(Capture* capture, CUstream stream, const std::vector<CUgraphNode>& nodes) {
  std::vector<CUgraphNode>& frontier = capture->frontier[stream];
  for (const CUgraphNode node : nodes) {
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) {
      frontier.push_back(node);
    }
  }
}

}  // namespace

CUstreamCaptureMode ExchangeCaptureMode(CUstreamCaptureMode mode) {
  return std::exchange(t_mode, mode);
}

std::vector<Capture*>& Captures() {
  static auto* captures = new std::vector<Capture*>;
  return *captures;
}

Capture* FindCapture(uint64_t id) {
  for (Capture* capture : Captures()) {
    if (capture->id == id) return capture;
  }
  return nullptr;
}

CUresult ForbidDuringCapture() {
  if (Captures().empty() || t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : Captures()) {
    const bool mine = capture->thread == std::this_thread::get_id();
    const bool forbids = mine ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                              : t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                    capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (forbids) result = Invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult ForbidOnCapturing(CUstream stream) {
  if (Captures().empty()) return CUDA_SUCCESS;
  if (stream->capture != nullptr) {
    return Invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  if (!stream->legacy) return CUDA_SUCCESS;
  // The legacy stream would wait for a stream whose work does not run.
  for (Capture* capture : Captures()) {
    for (auto& [member, nodes] : capture->frontier) {
      if (member->blocking() && member->context == stream->context) {
        return Invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
      }
    }
  }
  return CUDA_SUCCESS;
}

CUresult CaptureNode(CUstream stream, NodeParams params) {
  Capture* capture = stream->capture;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<CUgraphNode>& frontier = capture->frontier[stream];
  CUgraphNode node = Graphs::Get().AddNode(capture->graph, frontier, std::move(params));
  capture->made.insert(node);
  frontier = {node};
  return CUDA_SUCCESS;
}

CUresult CaptureOperation(CUstream stream, const Operation& op) {
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!op.params) {
    LogVerbose("%s cannot be captured", op.name.c_str());
    return Invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return CaptureNode(stream, *op.params);
}

CUresult CaptureEventRecord(CUstream stream, CUevent event, bool external) {
  Capture* capture = stream->capture;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (external) {
    NodeParams params;
    params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    params.event = event;
    return CaptureNode(stream, std::move(params));
  }
  event->capture = capture;
  event->capture_id = capture->id;
  event->captured = capture->frontier[stream];
  return CUDA_SUCCESS;
}

bool EventIsCaptured(CUevent event) {
  return event->capture != nullptr && FindCapture(event->capture_id) == event->capture;
}

CUresult CaptureEventWait(CUstream stream, CUevent event, bool external) {
  Capture* capture = stream->capture;
  if (capture != nullptr && capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (external && capture != nullptr) {
    NodeParams params;
    params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    params.event = event;
    return CaptureNode(stream, std::move(params));
  }
  if (!EventIsCaptured(event)) {
    if (!event->node) return CUDA_SUCCESS;
    return Invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  Capture* from = event->capture;
  if (from->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture != nullptr && capture != from) {
    Invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    return Invalidate(from, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (stream->legacy) return Invalidate(from, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  stream->capture = from;
  AddToFrontier(from, stream, event->captured);
  return CUDA_SUCCESS;
}

CUresult BeginCapture(CUstream stream, CUgraph graph, std::vector<CUgraphNode> from,
                      CUstreamCaptureMode mode) {
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto* capture = new Capture;
  capture->owns_graph = graph == nullptr;
  capture->graph = graph != nullptr ? graph : Graphs::Get().Create();
  capture->id = next_capture_id++;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream;
  capture->frontier[stream] = std::move(from);
  stream->capture = capture;
  Captures().push_back(capture);
  return CUDA_SUCCESS;
}

CUresult EndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  Capture* capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) {
    return Invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->invalid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (HasUnjoinedWork(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  if (result == CUDA_SUCCESS) {
    *graph = capture->graph;
  } else if (capture->owns_graph) {
    Graphs::Get().Destroy(capture->graph);
  }
  Leave(capture);
  return result;
}

void DropCaptureOf(CUstream stream) {
  Capture* capture = stream->capture;
  if (capture->origin != stream) {
    capture->frontier.erase(stream);
    capture->invalid = true;
    stream->capture = nullptr;
    return;
  }
  if (capture->owns_graph) Graphs::Get().Destroy(capture->graph);
  Leave(capture);
}

}  // namespace simgpu
