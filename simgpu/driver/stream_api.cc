// Entry points of streams: creation, properties, synchronisation, callbacks.

#include <cuda.h>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/report.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

constexpr int kGreatestPriority = -5;

CUresult CreateStream(CUstream* out, unsigned flags, int priority) {
  Lock lock(DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = Streams::Get().Create(context, flags, std::clamp(priority, kGreatestPriority, 0));
  return CUDA_SUCCESS;
}

CUresult DestroyStream(CUstream handle) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Find(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream != handle) return CUDA_ERROR_INVALID_HANDLE;  // a default stream
  if (stream->capture != nullptr) DropCaptureOf(stream);
  Streams::Get().Destroy(stream);
  return CUDA_SUCCESS;
}

// Runs `answer(stream)` on the stream that `handle` means.
template <typename Answer>
CUresult WithStream(CUstream handle, Answer answer) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Find(handle, &stream); bad != CUDA_SUCCESS) return bad;
  return answer(stream);
}

}  // namespace

CUresult StreamQuery(CUstream handle) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  const CUcontext context = stream->context;
  const bool done = Engine::Get().Query(stream->lane.tail, lock);
  if (context->sticky != CUDA_SUCCESS) return context->sticky;
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult StreamGetPriority(CUstream handle, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    *priority = stream->priority;
    return CUDA_SUCCESS;
  });
}

CUresult StreamGetFlags(CUstream handle, unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    *flags = stream->flags;
    return CUDA_SUCCESS;
  });
}

CUresult StreamGetId(CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    *id = stream->id;
    return CUDA_SUCCESS;
  });
}

CUresult StreamGetDevice(CUstream handle, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    *device = stream->context->device;
    return CUDA_SUCCESS;
  });
}

CUresult StreamGetCtx(CUstream handle, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    *context = stream->context;
    return CUDA_SUCCESS;
  });
}

CUresult StreamGetCtxV2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  const CUresult result = StreamGetCtx(handle, context);
  if (result == CUDA_SUCCESS && green != nullptr) *green = nullptr;
  return result;
}

CUresult StreamCopyAttributes(CUstream to, CUstream from) {
  return WithStream(to, [&](CUstream dst) {
    return WithStream(from, [&](CUstream src) {
      dst->window = src->window;
      dst->sync_policy = src->sync_policy;
      return CUDA_SUCCESS;
    });
  });
}

CUresult StreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    switch (attribute) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = stream->window;
        return CUDA_SUCCESS;
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = stream->sync_policy;
        return CUDA_SUCCESS;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult StreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                            const CUstreamAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](CUstream stream) {
    switch (attribute) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        stream->window = value->accessPolicyWindow;
        return CUDA_SUCCESS;
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        stream->sync_policy = value->syncPolicy;
        return CUDA_SUCCESS;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        stream->priority = std::clamp(value->priority, kGreatestPriority, 0);
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult StreamAttachMem(CUstream stream, unsigned flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
      flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation op;
  op.name = "cuStreamAttachMemAsync";
  return Submit(stream, std::move(op));
}

CUresult LaunchHostFunc(CUstream stream, CUhostFn fn, void* data) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Operation op;
  op.name = "cuLaunchHostFunc";
  op.unit = Unit::kHost;
  op.host_callback = true;
  op.run = [fn, data](Operation&) {
    fn(data);
    return CUDA_SUCCESS;
  };
  op.params = std::make_shared<NodeParams>();
  op.params->type = CU_GRAPH_NODE_TYPE_HOST;
  op.params->host = {fn, data};
  return Submit(stream, std::move(op));
}

CUresult StreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Operation op;
  op.name = "cuStreamAddCallback";
  op.unit = Unit::kHost;
  op.host_callback = true;
  op.run = [stream, callback, data](Operation&) {
    callback(stream, CUDA_SUCCESS, data);
    return CUDA_SUCCESS;
  };
  return Submit(stream,
                std::move(op));  // has no node parameters: not allowed in a capture, as on a GPU
}

}  // namespace simgpu

SIMGPU_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  SIMGPU_ENTER();
  return simgpu::CreateStream(stream, flags, 0);
}

SIMGPU_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  SIMGPU_ENTER();
  return simgpu::CreateStream(stream, flags, priority);
}

SIMGPU_API CUresult cuStreamDestroy_v2(CUstream stream) {
  SIMGPU_ENTER();
  return simgpu::DestroyStream(stream);
}

#undef cuStreamDestroy
SIMGPU_API CUresult cuStreamDestroy(CUstream stream) {
  SIMGPU_ENTER();
  return simgpu::DestroyStream(stream);
}

SIMGPU_PTSZ(cuStreamSynchronize, SynchronizeStream, (CUstream stream), (stream))
SIMGPU_PTSZ(cuStreamQuery, StreamQuery, (CUstream stream), (stream))
SIMGPU_PTSZ(cuStreamGetPriority, StreamGetPriority, (CUstream stream, int* priority),
            (stream, priority))
SIMGPU_PTSZ(cuStreamGetFlags, StreamGetFlags, (CUstream stream, unsigned* flags), (stream, flags))
SIMGPU_PTSZ(cuStreamGetId, StreamGetId, (CUstream stream, unsigned long long* id), (stream, id))
SIMGPU_PTSZ(cuStreamGetDevice, StreamGetDevice, (CUstream stream, CUdevice* device),
            (stream, device))
SIMGPU_PTSZ(cuStreamGetCtx, StreamGetCtx, (CUstream stream, CUcontext* context), (stream, context))
SIMGPU_PTSZ(cuStreamGetCtx_v2, StreamGetCtxV2,
            (CUstream stream, CUcontext* context, CUgreenCtx* green), (stream, context, green))
SIMGPU_PTSZ(cuStreamCopyAttributes, StreamCopyAttributes, (CUstream stream, CUstream from),
            (stream, from))
SIMGPU_PTSZ(cuStreamGetAttribute, StreamGetAttribute,
            (CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value),
            (stream, attribute, value))
SIMGPU_PTSZ(cuStreamSetAttribute, StreamSetAttribute,
            (CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue* value),
            (stream, attribute, value))
SIMGPU_PTSZ(cuStreamAttachMemAsync, StreamAttachMem,
            (CUstream stream, CUdeviceptr, size_t, unsigned flags), (stream, flags))
SIMGPU_PTSZ(cuLaunchHostFunc, LaunchHostFunc, (CUstream stream, CUhostFn fn, void* data),
            (stream, fn, data))
SIMGPU_PTSZ(cuStreamAddCallback, StreamAddCallback,
            (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
            (stream, callback, data, flags))
