// See stream.h.

#include "simgpu/driver/stream.h"

#include <algorithm>

#include "simgpu/driver/graph.h"

namespace simgpu {

Lane::Lane() : index(TakeLaneIndex()) {}
Lane::~Lane() { GiveLaneIndex(index); }

Clock& HostClock() {
  static auto* clock = new Clock;
  return *clock;
}

Streams& Streams::Get() {
  static auto* streams = new Streams;
  return *streams;
}

CUstream Streams::Create(CUcontext context, unsigned flags, int priority) {
  auto* stream = new CUstream_st;
  stream->context = context;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_id_++;
  alive_.insert(stream);
  Of(context).streams.push_back(stream);
  return stream;
}

CUstream Streams::Legacy(CUcontext context) {
  ContextStreams& of = Of(context);
  if (of.legacy == nullptr) {
    of.legacy = Create(context, CU_STREAM_DEFAULT, 0);
    of.legacy->legacy = true;
  }
  return of.legacy;
}

CUstream Streams::PerThread(CUcontext context) {
  CUstream& stream = Of(context).per_thread[std::this_thread::get_id()];
  if (stream == nullptr) {
    stream = Create(context, CU_STREAM_DEFAULT, 0);
    stream->per_thread = true;
  }
  return stream;
}

CUresult Streams::Find(CUstream handle, CUstream* stream) {
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    const CUcontext context = CurrentContext();
    if (context == nullptr || !IsContext(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *stream = handle == CU_STREAM_PER_THREAD ? PerThread(context) : Legacy(context);
    return CUDA_SUCCESS;
  }
  if (alive_.count(handle) == 0) return CUDA_ERROR_INVALID_HANDLE;
  *stream = handle;
  return CUDA_SUCCESS;
}

CUresult Streams::Resolve(CUstream handle, CUstream* stream) {
  const CUresult found = Find(handle, stream);
  return found != CUDA_SUCCESS ? found : (*stream)->context->sticky;
}

void Streams::Destroy(CUstream stream) {
  ContextStreams& of = Of(stream->context);
  // Its work goes on; synchronising the context, and the legacy stream for blocking ones, waits for
  // it.
  if (stream->lane.tail) {
    std::vector<NodePtr>& left = stream->blocking() ? of.orphans : of.loose_orphans;
    std::erase_if(left, [](const NodePtr& node) { return node->complete(); });
    if (!stream->lane.tail->complete()) left.push_back(stream->lane.tail);
    if (stream->blocking() && GetConfig().race) JoinClock(&of.orphan_clock, stream->lane.clock);
  }
  of.streams.erase(std::find(of.streams.begin(), of.streams.end(), stream));
  alive_.erase(stream);
  delete stream;
}

void Streams::AddImplicitOrder(CUstream stream, std::vector<NodePtr>* after) {
  if (!stream->legacy && !stream->blocking()) return;
  const bool race = GetConfig().race;
  ContextStreams& of = Of(stream->context);
  if (!stream->legacy) {
    if (of.legacy == nullptr || of.legacy->lane.tail == nullptr) return;
    if (!of.legacy->lane.tail->complete()) after->push_back(of.legacy->lane.tail);
    if (race) JoinClock(&stream->lane.clock, of.legacy->lane.clock);
    return;
  }
  for (const CUstream other : of.streams) {
    if (!other->blocking() || other->lane.tail == nullptr) continue;
    if (!other->lane.tail->complete()) after->push_back(other->lane.tail);
    if (race) JoinClock(&stream->lane.clock, other->lane.clock);
  }
  std::erase_if(of.orphans, [](const NodePtr& node) { return node->complete(); });
  after->insert(after->end(), of.orphans.begin(), of.orphans.end());
  if (race) JoinClock(&stream->lane.clock, of.orphan_clock);
}

CUevent Streams::CreateEvent(CUcontext context, unsigned flags) {
  auto* event = new CUevent_st;
  event->context = context;
  event->flags = flags;
  events_.insert(event);
  return event;
}

void Streams::DestroyEvent(CUevent event) {
  events_.erase(event);
  delete event;
}

std::vector<NodePtr> Streams::Tails(CUcontext context) {
  std::vector<NodePtr> tails;
  ContextStreams& of = Of(context);
  for (const CUstream stream : of.streams) {
    if (stream->lane.tail) tails.push_back(stream->lane.tail);
  }
  tails.insert(tails.end(), of.orphans.begin(), of.orphans.end());
  tails.insert(tails.end(), of.loose_orphans.begin(), of.loose_orphans.end());
  return tails;
}

void Streams::Drop(CUcontext context) {
  auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  for (const CUstream stream : found->second.streams) {
    if (stream->capture != nullptr) DropCaptureOf(stream);
    alive_.erase(stream);
    delete stream;
  }
  contexts_.erase(found);
  std::vector<CUevent> dead;
  for (const CUevent event : events_) {
    if (event->context == context) dead.push_back(event);
  }
  for (const CUevent event : dead) DestroyEvent(event);
}

void HostSaw(const NodePtr& node) {
  if (GetConfig().race) JoinClock(&HostClock(), node->clock);
}

NodePtr Enqueue(CUstream stream, Operation op, const std::vector<NodePtr>& extra, Lock& lock) {
  std::vector<NodePtr> after = extra;
  Streams::Get().AddImplicitOrder(stream, &after);
  return Engine::Get().Add(stream->lane, stream->context, stream->id, std::move(op), after, lock);
}

}  // namespace simgpu
