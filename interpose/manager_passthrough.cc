// A memory side that never becomes active: every call passes through. It stands in until the real
// one is linked, and lets the hooks be tested by themselves.

#include "interpose/manager.h"

namespace tidemark::interpose {

void ManagerStart(const Guard&, const kernels::Driver&) {}
bool ManagerActive() { return false; }

bool ManagerAlloc(const Guard&, CUdeviceptr*, size_t, CUresult*) { return false; }
bool ManagerAllocPitch(const Guard&, CUdeviceptr*, size_t*, size_t, size_t, unsigned, CUresult*) {
  return false;
}
bool ManagerAllocAsync(const Guard&, CUdeviceptr*, size_t, CUstream, CUresult*) { return false; }
bool ManagerFree(const Guard&, CUdeviceptr, CUresult*) { return false; }
bool ManagerFreeAsync(const Guard&, CUdeviceptr, CUstream, CUresult*) { return false; }
bool ManagerMemGetInfo(const Guard&, size_t*, size_t*, CUresult*) { return false; }
bool ManagerAddressRange(const Guard&, CUdeviceptr, CUdeviceptr*, size_t*) { return false; }
void ManagerCountPassedThrough(const Guard&, CUdevice, uint64_t, int) {}
bool ManagerMakeRoom(const Guard&, CUdevice, uint64_t) { return true; }

bool ManagerIpcGetHandle(const Guard&, CUipcMemHandle*, CUdeviceptr, CUresult*) { return false; }
bool ManagerIpcOpenHandle(const Guard&, CUdeviceptr*, CUipcMemHandle, CUresult*) { return false; }
bool ManagerIpcClose(const Guard&, CUdeviceptr, CUresult*) { return false; }
bool ManagerIpcCapable() { return false; }

GatePass::GatePass(const Guard&, CUstream, const GateSpan*, size_t) {}
GatePass::GatePass(const Guard&, CUstream, CUfunction, void**, void**) {}
GatePass::GatePass(const Guard&, CUstream, CUgraphExec) {}
GatePass::~GatePass() { devices_ = 0; }

void ManagerNotePointerTable(const Guard&, CUdeviceptr, const void*, size_t) {}
void ManagerStreamCreated(const Guard&, CUstream) {}
void ManagerStreamDestroying(const Guard&, CUstream) {}
void ManagerCaptureBegan(const Guard&, CUstream) {}
void ManagerCaptureEnded(const Guard&, CUstream, CUgraph) {}
void ManagerContextDestroying(const Guard&, CUcontext) {}
void ManagerPeerAccess(const Guard&, CUcontext, bool) {}
void ManagerPin(const Guard&, CUdeviceptr, size_t, PinReason) {}

}  // namespace tidemark::interpose
