// Streams and events as objects: who is alive, which handle means which stream, what waits on what.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_STREAM_H_
#define SIMGPU_DRIVER_STREAM_H_

#include <cuda.h>

#include <map>
#include <thread>
#include <unordered_set>
#include <vector>

#include "simgpu/driver/engine_state.h"

namespace simgpu {
struct Capture;  // graph.h
}

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = CU_STREAM_DEFAULT;
  int priority = 0;
  unsigned long long id = 0;
  bool legacy = false;
  bool per_thread = false;
  simgpu::Lane lane;
  simgpu::Capture* capture = nullptr;  // the capture this stream belongs to now
  CUaccessPolicyWindow window{};
  CUsynchronizationPolicy sync_policy = CU_SYNC_POLICY_AUTO;

  // Takes part in the legacy stream's implicit ordering.
  bool blocking() const { return !legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  simgpu::NodePtr node;                // of the last record; null before the first
  simgpu::Capture* capture = nullptr;  // recorded under this capture, which is still going on
  uint64_t capture_id = 0;
  std::vector<CUgraphNode> captured;  // what a wait for it depends on
};

namespace simgpu {

struct ContextStreams {
  CUstream legacy = nullptr;
  std::map<std::thread::id, CUstream> per_thread;
  std::vector<CUstream> streams;       // all, in order of creation
  std::vector<NodePtr> orphans;        // last nodes of destroyed blocking streams, while incomplete
  std::vector<NodePtr> loose_orphans;  // ... of destroyed non-blocking ones
  Clock orphan_clock;
};

class Streams {
 public:
  static Streams& Get();

  // The stream a handle means on the calling thread. INVALID_HANDLE, INVALID_CONTEXT,
  // NOT_INITIALIZED or the context's sticky error otherwise.
  CUresult Resolve(CUstream handle, CUstream* stream);
  // As Resolve, for queries that are answered after a fault too.
  CUresult Find(CUstream handle, CUstream* stream);

  CUstream Create(CUcontext context, unsigned flags, int priority);
  void Destroy(CUstream stream);
  ContextStreams& Of(CUcontext context) { return contexts_[context]; }
  const std::map<CUcontext, ContextStreams>& contexts() const { return contexts_; }

  // What the next operation of `stream` is ordered after because of the legacy stream; joins
  // clocks.
  void AddImplicitOrder(CUstream stream, std::vector<NodePtr>* after);

  CUevent CreateEvent(CUcontext context, unsigned flags);
  bool IsEvent(CUevent event) const { return events_.count(event) != 0; }
  void DestroyEvent(CUevent event);

  void Drop(CUcontext context);
  // Ends of everything submitted to `context`.
  std::vector<NodePtr> Tails(CUcontext context);

 private:
  Streams() = default;
  CUstream Legacy(CUcontext context);
  CUstream PerThread(CUcontext context);

  std::map<CUcontext, ContextStreams> contexts_;
  std::unordered_set<CUstream> alive_;
  std::unordered_set<CUevent> events_;
  unsigned long long next_id_ = 1;
};

// The host as a participant of the race detector.
Clock& HostClock();

// Appends `op` to a stream that does not capture.
NodePtr Enqueue(CUstream stream, Operation op, const std::vector<NodePtr>& extra, Lock& lock);

// The host has seen `node` complete.
void HostSaw(const NodePtr& node);

// Entry points come in two forms that differ only in what stream 0 means. The macros define both;
// `params` names the stream parameter `stream`, and for the _ptds form (no stream parameter) `args`
// passes a `stream` of the default kind.
#define SIMGPU_PTSZ(name, impl, params, args)             \
  SIMGPU_API CUresult name params {                       \
    SIMGPU_ENTER();                                       \
    if (stream == nullptr) stream = CU_STREAM_LEGACY;     \
    return ::simgpu::impl args;                           \
  }                                                       \
  SIMGPU_API CUresult name##_ptsz params {                \
    SIMGPU_ENTER();                                       \
    if (stream == nullptr) stream = CU_STREAM_PER_THREAD; \
    return ::simgpu::impl args;                           \
  }
#define SIMGPU_PTDS(name, impl, params, args)     \
  SIMGPU_API CUresult name params {               \
    SIMGPU_ENTER();                               \
    const CUstream stream = CU_STREAM_LEGACY;     \
    return ::simgpu::impl args;                   \
  }                                               \
  SIMGPU_API CUresult name##_ptds params {        \
    SIMGPU_ENTER();                               \
    const CUstream stream = CU_STREAM_PER_THREAD; \
    return ::simgpu::impl args;                   \
  }

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_STREAM_H_
