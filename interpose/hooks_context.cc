// Start, contexts and peers.

#include <atomic>

#include "interpose/hook_gate.h"
#include "interpose/resolve.h"
#include "interpose/start.h"

namespace tidemark::interpose {
namespace {

constexpr int kMostDevices = 64;

// The job's own references to each device's primary context. Below zero means that some were taken
// where we could not see them; then the driver alone knows, and the context is taken to live on.
std::atomic<int> primary_references[kMostDevices];

bool IsDevice(CUdevice device) { return device >= 0 && device < kMostDevices; }

// The primary context of `device` if it is alive, by a reference of our own that is given back.
CUcontext PrimaryContext(CUdevice device) {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUcontext context = nullptr;
  if (driver == nullptr || driver->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
    return nullptr;
  }
  driver->cuDevicePrimaryCtxRelease(device);
  return context;
}

void EndPrimary(const Guard& guard, CUdevice device) {
  if (CUcontext context = PrimaryContext(device)) ManagerContextDestroying(guard, context);
}

template <typename Call>
CUresult ReleasePrimary(CUdevice device, const Call& call) {
  Guard guard;
  if (Manages(guard) && IsDevice(device) && --primary_references[device] == 0) {
    EndPrimary(guard, device);
  }
  return call();
}

template <typename Call>
CUresult ResetPrimary(CUdevice device, const Call& call) {
  Guard guard;
  if (Manages(guard) && IsDevice(device)) EndPrimary(guard, device);
  return call();
}

template <typename Call>
CUresult DestroyContext(CUcontext context, const Call& call) {
  Guard guard;
  if (Manages(guard) && context != nullptr) ManagerContextDestroying(guard, context);
  return call();
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuInit(unsigned flags) {
  Guard guard;
  CUresult result = tidemark_real_cuInit(flags);
  if (result == CUDA_SUCCESS && guard.entered()) StartAfterInit(guard);
  return result;
}

CUresult Hook_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Guard guard;
  CUresult result = tidemark_real_cuDevicePrimaryCtxRetain(context, device);
  if (result == CUDA_SUCCESS && guard.entered() && IsDevice(device)) ++primary_references[device];
  return result;
}
CUresult Hook_cuDevicePrimaryCtxRelease(CUdevice device) {
  return ReleasePrimary(device, [&] { return tidemark_real_cuDevicePrimaryCtxRelease(device); });
}
CUresult Hook_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return ReleasePrimary(device, [&] { return tidemark_real_cuDevicePrimaryCtxRelease_v2(device); });
}
CUresult Hook_cuDevicePrimaryCtxReset(CUdevice device) {
  return ResetPrimary(device, [&] { return tidemark_real_cuDevicePrimaryCtxReset(device); });
}
CUresult Hook_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return ResetPrimary(device, [&] { return tidemark_real_cuDevicePrimaryCtxReset_v2(device); });
}
CUresult Hook_cuCtxDestroy(CUcontext context) {
  return DestroyContext(context, [&] { return tidemark_real_cuCtxDestroy(context); });
}
CUresult Hook_cuCtxDestroy_v2(CUcontext context) {
  return DestroyContext(context, [&] { return tidemark_real_cuCtxDestroy_v2(context); });
}

CUresult Hook_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Guard guard;
  CUresult result = tidemark_real_cuCtxEnablePeerAccess(peer, flags);
  if (result == CUDA_SUCCESS && Manages(guard)) ManagerPeerAccess(guard, peer, true);
  return result;
}
CUresult Hook_cuCtxDisablePeerAccess(CUcontext peer) {
  Guard guard;
  CUresult result = tidemark_real_cuCtxDisablePeerAccess(peer);
  if (result == CUDA_SUCCESS && Manages(guard)) ManagerPeerAccess(guard, peer, false);
  return result;
}
