// Contexts of the simulated driver: which are alive, which is current on each thread, primary
// contexts and peer access between devices. Entry points cuCtx*, cuDevicePrimaryCtx* are in
// context_api.cc. Thread rule: takes the driver lock; the stack of current contexts belongs to its
// thread.

#include "simgpu/driver/context.h"

#include <set>
#include <utility>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/engine.h"

namespace simgpu {
namespace {

constexpr uint32_t kMagic = 0x53494d43;  // "SIMC"
constexpr int kMostDevices = 16;

struct Contexts {
  CUctx_st primary[kMostDevices];
  std::set<CUcontext> alive;
  std::set<std::pair<CUcontext, CUcontext>> peers;  // (who may touch, whose memory)
  std::map<CUcontext, ContextSettings> settings;
  uint64_t last_id = 0;
};

Contexts& State() {
  static auto* contexts = new Contexts;
  return *contexts;
}

thread_local std::vector<CUcontext> t_stack;

void Begin(CUcontext context, int device, unsigned flags) {
  Contexts& state = State();
  context->magic = kMagic;
  context->device = device;
  context->flags = flags;
  context->sticky = CUDA_SUCCESS;
  state.alive.insert(context);
  state.settings[context] = ContextSettings{};
  state.settings[context].id = ++state.last_id;
}

}  // namespace

std::vector<CUcontext>& ContextStack() { return t_stack; }

bool IsDevice(int device) { return device >= 0 && device < GetConfig().devices; }

CUcontext PrimaryContext(int device) { return &State().primary[device]; }

CUcontext RetainPrimary(int device) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  CUcontext context = PrimaryContext(device);
  context->primary = true;
  if (!IsContext(context)) Begin(context, device, context->flags);
  ++context->primary_refs;
  return context;
}

CUcontext NewContext(int device, unsigned flags) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  auto* context = new CUctx_st;
  Begin(context, device, flags);
  return context;
}

ContextSettings* SettingsOf(CUcontext context) {
  auto found = State().settings.find(context);
  return found == State().settings.end() ? nullptr : &found->second;
}

CUcontext CurrentContext() { return t_stack.empty() ? nullptr : t_stack.back(); }

bool IsContext(CUcontext context) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  return context != nullptr && State().alive.count(context) != 0;
}

CUresult RequireContext(CUcontext* context) {
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  *context = CurrentContext();
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!IsContext(*context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return (*context)->sticky;
}

void MakeSticky(CUcontext context, CUresult error, const std::string& sentence) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  if (IsContext(context) && context->sticky == CUDA_SUCCESS) context->sticky = error;
  LogAlways("%s", sentence.c_str());
}

// A destroyed context's object is kept, so that a stale handle is recognised and never reused.
void EndContext(CUcontext context) {
  if (!IsContext(context)) return;
  DropContext(context);
  DropContextMemory(context);
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  Contexts& state = State();
  context->magic = 0;
  context->sticky = CUDA_SUCCESS;
  state.alive.erase(context);
  state.settings.erase(context);
  std::erase_if(state.peers, [context](const std::pair<CUcontext, CUcontext>& pair) {
    return pair.first == context || pair.second == context;
  });
}

bool PeerAccessEnabled(int device, int owner) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  for (const auto& [from, to] : State().peers) {
    if (from->device == device && to->device == owner) return true;
  }
  return false;
}

bool AddPeer(CUcontext from, CUcontext to) { return State().peers.insert({from, to}).second; }
bool RemovePeer(CUcontext from, CUcontext to) { return State().peers.erase({from, to}) != 0; }

}  // namespace simgpu
