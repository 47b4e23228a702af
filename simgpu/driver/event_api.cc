// Entry points of events: recording, waiting, timing in virtual time.

#include <cuda.h>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult CreateEvent(CUevent* out, unsigned flags) {
  Lock lock(DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (out == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    // Only without timing, by the documentation; and IPC of events is not simulated at all.
    return (flags & CU_EVENT_DISABLE_TIMING) == 0 ? CUDA_ERROR_INVALID_VALUE
                                                  : CUDA_ERROR_NOT_SUPPORTED;
  }
  *out = Streams::Get().CreateEvent(context, flags);
  return CUDA_SUCCESS;
}

CUresult DestroyEvent(CUevent event) {
  Lock lock(DriverLock());
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Streams::Get().IsEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  Streams::Get().DestroyEvent(event);
  return CUDA_SUCCESS;
}

// The event is alive and its context has not failed.
CUresult UsableEvent(CUevent event) {
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Streams::Get().IsEvent(event)) return CUDA_ERROR_INVALID_HANDLE;
  return event->context->sticky;
}

// As UsableEvent, for calls that ask the device about it.
CUresult AskableEvent(CUevent event) {
  if (const CUresult bad = UsableEvent(event); bad != CUDA_SUCCESS) return bad;
  if (EventIsCaptured(event)) return CUDA_ERROR_CAPTURED_EVENT;
  return ForbidDuringCapture();
}

CUresult Query(CUevent event) {
  Lock lock(DriverLock());
  if (const CUresult bad = AskableEvent(event); bad != CUDA_SUCCESS) return bad;
  const CUcontext context = event->context;
  const bool done = Engine::Get().Query(event->node, lock);
  if (context->sticky != CUDA_SUCCESS) return context->sticky;
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult Synchronize(CUevent event) {
  Lock lock(DriverLock());
  if (const CUresult bad = AskableEvent(event); bad != CUDA_SUCCESS) return bad;
  const CUcontext context = event->context;
  if (event->node) Engine::Get().RunUntil({event->node}, lock);
  return IsContext(context) ? context->sticky : CUDA_SUCCESS;
}

CUresult Elapsed(float* milliseconds, CUevent start, CUevent end) {
  Lock lock(DriverLock());
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const CUevent event : {start, end}) {
    if (const CUresult bad = UsableEvent(event); bad != CUDA_SUCCESS) return bad;
    if (EventIsCaptured(event)) return CUDA_ERROR_CAPTURED_EVENT;
    if ((event->flags & CU_EVENT_DISABLE_TIMING) != 0 || !event->node) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
  }
  if (start->context != end->context) return CUDA_ERROR_INVALID_HANDLE;
  for (const CUevent event : {start, end}) {
    if (!Engine::Get().Query(event->node, lock)) return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = static_cast<float>((end->node->end_seconds - start->node->end_seconds) * 1e3);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult EventRecord(CUevent event, CUstream handle, unsigned flags) {
  Lock lock(DriverLock());
  if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = UsableEvent(event); bad != CUDA_SUCCESS) return bad;
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) {
    return CaptureEventRecord(stream, event, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
  }
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;  // external is for captures
  if (stream->legacy) {
    if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  }
  Operation op;
  op.name = "cuEventRecord";
  event->capture = nullptr;
  event->node = Enqueue(stream, std::move(op), {}, lock);
  return CUDA_SUCCESS;
}

CUresult StreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  Lock lock(DriverLock());
  if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = UsableEvent(event); bad != CUDA_SUCCESS) return bad;
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream->capture != nullptr || EventIsCaptured(event)) {
    return CaptureEventWait(stream, event, (flags & CU_EVENT_WAIT_EXTERNAL) != 0);
  }
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy) {
    if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  }
  if (!event->node) return CUDA_SUCCESS;
  Operation op;
  op.name = "cuStreamWaitEvent";
  Enqueue(stream, std::move(op), {event->node}, lock);
  return CUDA_SUCCESS;
}

CUresult EventRecordPlain(CUevent event, CUstream stream) { return EventRecord(event, stream, 0); }

}  // namespace simgpu

SIMGPU_API CUresult cuEventCreate(CUevent* event, unsigned flags) {
  SIMGPU_ENTER();
  return simgpu::CreateEvent(event, flags);
}

SIMGPU_API CUresult cuEventDestroy_v2(CUevent event) {
  SIMGPU_ENTER();
  return simgpu::DestroyEvent(event);
}

#undef cuEventDestroy
SIMGPU_API CUresult cuEventDestroy(CUevent event) {
  SIMGPU_ENTER();
  return simgpu::DestroyEvent(event);
}

SIMGPU_API CUresult cuEventQuery(CUevent event) {
  SIMGPU_ENTER();
  return simgpu::Query(event);
}

SIMGPU_API CUresult cuEventSynchronize(CUevent event) {
  SIMGPU_ENTER();
  return simgpu::Synchronize(event);
}

SIMGPU_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  SIMGPU_ENTER();
  return simgpu::Elapsed(milliseconds, start, end);
}

#undef cuEventElapsedTime
SIMGPU_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  SIMGPU_ENTER();
  return simgpu::Elapsed(milliseconds, start, end);
}

SIMGPU_API CUresult cuIpcGetEventHandle(CUipcEventHandle*, CUevent) {
  SIMGPU_ENTER();
  return CUDA_ERROR_NOT_SUPPORTED;
}

SIMGPU_API CUresult cuIpcOpenEventHandle(CUevent*, CUipcEventHandle) {
  SIMGPU_ENTER();
  return CUDA_ERROR_NOT_SUPPORTED;
}

SIMGPU_PTSZ(cuEventRecord, EventRecordPlain, (CUevent event, CUstream stream), (event, stream))
SIMGPU_PTSZ(cuEventRecordWithFlags, EventRecord, (CUevent event, CUstream stream, unsigned flags),
            (event, stream, flags))
SIMGPU_PTSZ(cuStreamWaitEvent, StreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
            (stream, event, flags))
