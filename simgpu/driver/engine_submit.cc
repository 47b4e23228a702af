// The seam of the engine towards the rest of the driver: engine.h's functions.

#include "simgpu/driver/engine.h"

#include "simgpu/driver/graph.h"
#include "simgpu/driver/module.h"
#include "simgpu/driver/pool.h"
#include "simgpu/driver/report.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

CUresult WaitForAll(CUcontext context, Lock& lock) {
  if (const CUresult bad = ForbidDuringCapture(); bad != CUDA_SUCCESS) return bad;
  Engine::Get().RunUntil(Streams::Get().Tails(context), lock);
  TrimPoolsToThreshold();
  return context->sticky;
}

CUresult SynchronizeAll(CUcontext context, Lock& lock) {
  ContextStreams& of = Streams::Get().Of(context);
  for (const CUstream stream : of.streams) {
    if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  }
  return WaitForAll(context, lock);
}

}  // namespace

CUresult Submit(CUstream handle, Operation op) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream->capture != nullptr) return CaptureOperation(stream, op);
  if (stream->legacy) {
    if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  }
  CountOperation(op);
  // What the call costs the host before the device can start.
  if (op.unit == Unit::kCompute || op.bytes != 0) Engine::Get().Charge(GetConfig().launch_seconds);
  Enqueue(stream, std::move(op), {}, lock);
  return CUDA_SUCCESS;
}

CUresult SynchronizeStream(CUstream handle) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  const CUcontext context = stream->context;
  if (stream->lane.tail) Engine::Get().RunUntil({stream->lane.tail}, lock);
  TrimPoolsToThreshold();
  return IsContext(context) ? context->sticky : CUDA_SUCCESS;
}

CUresult SynchronizeContext(CUcontext context) {
  Lock lock(DriverLock());
  if (!IsContext(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->sticky != CUDA_SUCCESS) return context->sticky;
  return SynchronizeAll(context, lock);
}

CUresult SynchronizeDevice(int device) {
  Lock lock(DriverLock());
  std::vector<CUcontext> contexts;
  for (const auto& [context, streams] : Streams::Get().contexts()) {
    if (context->device == device) contexts.push_back(context);
  }
  CUresult first = CUDA_SUCCESS;
  for (const CUcontext context : contexts) {
    if (!IsContext(context)) continue;
    const CUresult result = WaitForAll(context, lock);
    if (first == CUDA_SUCCESS) first = result;
  }
  return first;
}

void ChargeHost(double seconds) {
  Lock lock(DriverLock());
  Engine::Get().Charge(seconds);
}

double HostSeconds() {
  Lock lock(DriverLock());
  return Engine::Get().host_seconds();
}

void ForgetRange(CUdeviceptr base, size_t bytes) {
  Lock lock(DriverLock());
  Engine& engine = Engine::Get();
  if (!engine.running()) engine.Doom(base, bytes);
  if (!GetConfig().race) return;
  RaceAccess access = engine.RunningAccess();
  if (!access.actor) {
    static const auto* host = new std::shared_ptr<const RaceActor>(
        std::make_shared<RaceActor>(RaceActor{"the host (free or unmap)", 0, 0}));
    access.actor = *host;
    access.clock = &HostClock();
  }
  RaceDetector::Get().Retire(access, base, bytes);
}

void DropContext(CUcontext context) {
  Lock lock(DriverLock());
  Engine::Get().Drop(context);
  Streams::Get().Drop(context);
  Modules::Get().DropContext(context);
}

}  // namespace simgpu
