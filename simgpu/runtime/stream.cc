// Streams, events, host functions and stream capture. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

CUstreamAttrID AsDriver(cudaLaunchAttributeID id) { return static_cast<CUstreamAttrID>(id); }
CUstreamAttrValue* AsDriver(cudaLaunchAttributeValue* value) {
  return reinterpret_cast<CUstreamAttrValue*>(value);
}
const CUstreamAttrValue* AsDriver(const cudaLaunchAttributeValue* value) {
  return reinterpret_cast<const CUstreamAttrValue*>(value);
}
const CUgraphEdgeData* AsDriver(const cudaGraphEdgeData* edges) {
  return reinterpret_cast<const CUgraphEdgeData*>(edges);
}
CUstreamCaptureMode AsDriver(cudaStreamCaptureMode mode) {
  return static_cast<CUstreamCaptureMode>(mode);
}
CUstreamCaptureStatus* AsDriver(cudaStreamCaptureStatus* status) {
  return reinterpret_cast<CUstreamCaptureStatus*>(status);
}

int StreamDevice(const Driver& d, cudaStream_t stream, int* device) {
  CUdevice handle = 0;
  if (device == nullptr) return cudaErrorInvalidValue;
  const int code = d.cuStreamGetDevice(stream, &handle);
  if (code == CUDA_SUCCESS) *device = handle;
  return code;
}

int ExchangeCaptureMode(const Driver& d, cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return cudaErrorInvalidValue;
  CUstreamCaptureMode driver_mode = AsDriver(*mode);
  const int code = d.cuThreadExchangeStreamCaptureMode(&driver_mode);
  if (code == CUDA_SUCCESS) *mode = static_cast<cudaStreamCaptureMode>(driver_mode);
  return code;
}

}  // namespace

SIMGPU_CALL(cudaStreamCreate, (cudaStream_t * stream), d.cuStreamCreate(stream, 0))
SIMGPU_CALL(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
            d.cuStreamCreate(stream, flags))
SIMGPU_CALL(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
            d.cuStreamCreateWithPriority(stream, flags, priority))
SIMGPU_CALL(cudaStreamDestroy, (cudaStream_t stream), d.cuStreamDestroy(stream))
SIMGPU_CALL_TWINS(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority),
                  d.cuStreamGetPriority(stream, priority))
SIMGPU_CALL_TWINS(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned* flags),
                  d.cuStreamGetFlags(stream, flags))
SIMGPU_CALL_TWINS(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* id),
                  d.cuStreamGetId(stream, id))
SIMGPU_CALL_TWINS(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device),
                  StreamDevice(d, stream, device))
SIMGPU_CALL_TWINS(cudaStreamCopyAttributes, _ptsz, (cudaStream_t target, cudaStream_t source),
                  d.cuStreamCopyAttributes(target, source))
SIMGPU_CALL_TWINS(cudaStreamGetAttribute, _ptsz,
                  (cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value),
                  d.cuStreamGetAttribute(stream, AsDriver(id), AsDriver(value)))
SIMGPU_CALL_TWINS(cudaStreamSetAttribute, _ptsz,
                  (cudaStream_t stream, cudaLaunchAttributeID id,
                   const cudaLaunchAttributeValue* value),
                  d.cuStreamSetAttribute(stream, AsDriver(id), AsDriver(value)))
SIMGPU_CALL_TWINS(cudaStreamWaitEvent, _ptsz,
                  (cudaStream_t stream, cudaEvent_t event, unsigned flags),
                  d.cuStreamWaitEvent(stream, event, flags))
SIMGPU_CALL_TWINS(cudaStreamSynchronize, _ptsz, (cudaStream_t stream),
                  d.cuStreamSynchronize(stream))
SIMGPU_CALL_TWINS(cudaStreamQuery, _ptsz, (cudaStream_t stream), d.cuStreamQuery(stream))
SIMGPU_CALL_TWINS(cudaStreamAttachMemAsync, _ptsz,
                  (cudaStream_t stream, void* pointer, size_t bytes, unsigned flags),
                  d.cuStreamAttachMemAsync(stream, Address(pointer), bytes, flags))
// The two callback types differ only in the name of the error they are given.
SIMGPU_CALL_TWINS(cudaStreamAddCallback, _ptsz,
                  (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
                  d.cuStreamAddCallback(stream, reinterpret_cast<CUstreamCallback>(callback), data,
                                        flags))
SIMGPU_CALL_TWINS(cudaLaunchHostFunc, _ptsz,
                  (cudaStream_t stream, cudaHostFn_t function, void* data),
                  d.cuLaunchHostFunc(stream, function, data))

SIMGPU_CALL(cudaEventCreate, (cudaEvent_t * event), d.cuEventCreate(event, 0))
SIMGPU_CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags),
            d.cuEventCreate(event, flags))
SIMGPU_CALL_TWINS(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
                  d.cuEventRecord(event, stream))
SIMGPU_CALL_TWINS(cudaEventRecordWithFlags, _ptsz,
                  (cudaEvent_t event, cudaStream_t stream, unsigned flags),
                  d.cuEventRecordWithFlags(event, stream, flags))
SIMGPU_CALL(cudaEventQuery, (cudaEvent_t event), d.cuEventQuery(event))
SIMGPU_CALL(cudaEventSynchronize, (cudaEvent_t event), d.cuEventSynchronize(event))
SIMGPU_CALL(cudaEventDestroy, (cudaEvent_t event), d.cuEventDestroy(event))
SIMGPU_CALL(cudaEventElapsedTime, (float* milliseconds, cudaEvent_t start, cudaEvent_t end),
            d.cuEventElapsedTime(milliseconds, start, end))

SIMGPU_CALL(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode),
            ExchangeCaptureMode(d, mode))
SIMGPU_CALL_TWINS(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode),
                  d.cuStreamBeginCapture(stream, AsDriver(mode)))
SIMGPU_CALL_TWINS(cudaStreamBeginCaptureToGraph, _ptsz,
                  (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                   const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode),
                  d.cuStreamBeginCaptureToGraph(stream, graph, dependencies, AsDriver(edges), count,
                                                AsDriver(mode)))
SIMGPU_CALL_TWINS(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* graph),
                  d.cuStreamEndCapture(stream, graph))
SIMGPU_CALL_TWINS(cudaStreamIsCapturing, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status),
                  d.cuStreamIsCapturing(stream, AsDriver(status)))
SIMGPU_CALL_TWINS(cudaStreamGetCaptureInfo, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                   cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                   const cudaGraphEdgeData** edges, size_t* count),
                  d.cuStreamGetCaptureInfo(stream, AsDriver(status),
                                           reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                           reinterpret_cast<const CUgraphEdgeData**>(edges), count))
SIMGPU_CALL_TWINS(cudaStreamUpdateCaptureDependencies, _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t* dependencies,
                   const cudaGraphEdgeData* edges, size_t count, unsigned flags),
                  d.cuStreamUpdateCaptureDependencies(stream, dependencies, AsDriver(edges), count,
                                                      flags))

}  // namespace simgpu::runtime
