// The scheduler: when a queued operation runs, in which order, and what its failure does. See
// engine_state.h.

#include <algorithm>

#include "simgpu/driver/engine_state.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

// A device's queue is finite: a host that runs this far ahead waits.
constexpr size_t kMaxQueued = 1024;
constexpr double kFirstPollSeconds = 1e-6;
constexpr uint32_t kMaxPollDoublings = 10;

bool Overlaps(const Span& span, CUdeviceptr base, size_t bytes) {
  return span.base < base + bytes && base < span.base + std::max<size_t>(span.bytes, 1);
}

bool Mentions(const Operation& op, CUdeviceptr base, size_t bytes) {
  return std::any_of(op.touches.begin(), op.touches.end(),
                     [&](const Span& span) { return Overlaps(span, base, bytes); }) ||
         std::any_of(op.mentions.begin(), op.mentions.end(),
                     [&](CUdeviceptr at) { return at >= base && at - base < bytes; });
}

}  // namespace

Engine& Engine::Get() {
  static auto* engine = new Engine;
  return *engine;
}

uint64_t Engine::Random(uint64_t below) {
  if (!random_ready_) {
    random_state_ = GetConfig().seed;
    random_ready_ = true;
  }
  // splitmix64: the same everywhere, unlike the standard library's distributions.
  uint64_t z = (random_state_ += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (z ^ (z >> 31)) % below;
}

void Engine::Charge(double seconds) { host_seconds_ += seconds; }

void Engine::Link(const NodePtr& before, const NodePtr& node) {
  if (!before->executed) {
    ++node->waiting_run;
    before->run_next.push_back(node);
    node->before.push_back(before);
  }
  if (!before->simulated) {
    ++node->waiting_time;
    before->time_next.push_back(node);
  }
}

NodePtr Engine::Add(Lane& lane, CUcontext context, uint64_t stream_id, Operation op,
                    const std::vector<NodePtr>& after, Lock& lock) {
  ++entries_;
  timeline_.AdvanceTo(host_seconds_);
  auto node = std::make_shared<Node>();
  node->op = std::move(op);
  node->context = context;
  node->op.device = context->device;
  node->stream_id = stream_id;
  node->sequence = ++sequence_;
  node->lane = lane.index;
  if (lane.tail) Link(lane.tail, node);
  for (const NodePtr& before : after) Link(before, node);
  if (GetConfig().race) {
    JoinClock(&lane.clock, HostClock());
    for (const NodePtr& before : after) JoinClock(&lane.clock, before->clock);
    if (lane.clock.size() <= lane.index) lane.clock.resize(lane.index + 1);
    ++lane.clock[lane.index];
    node->clock = lane.clock;
    node->actor = std::make_shared<RaceActor>(RaceActor{node->op.name, stream_id, node->sequence});
  }
  lane.tail = node;
  timeline_.Add(node);
  pending_.emplace(node->sequence, node);
  if (node->op.host_callback) {
    ++open_callbacks_;
    StartCallbackThread();
  }
  if (node->waiting_run == 0) ready_.push_back(node);
  Pump(lock);
  if (timeline_.open() > kMaxQueued) HostWaits(*timeline_.Oldest());
  return node;
}

NodePtr Engine::TakeReady(size_t index) {
  NodePtr node = std::move(ready_[index]);
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(index));
  return node;
}

NodePtr Engine::TakeEager() {
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (!ready_[i]->op.gate || ready_[i]->op.gate()) return TakeReady(i);
  }
  return nullptr;
}

// One of the ready nodes marked `mark`, or of all that may run when `anything` or when no marked
// one can go on. Callbacks that nobody waits for are left alone: what they wait for on the host,
// the waiting thread may hold.
NodePtr Engine::TakeAdversarial(uint64_t mark, bool anything) {
  std::vector<size_t> needed;
  std::vector<size_t> all;
  for (size_t i = 0; i < ready_.size(); ++i) {
    const Node& node = *ready_[i];
    if (node.op.gate && !node.op.gate()) continue;
    const bool marked = node.needed_mark == mark;
    if (marked) needed.push_back(i);
    if (marked || !node.op.host_callback) all.push_back(i);
  }
  const std::vector<size_t>& choice = anything || needed.empty() ? all : needed;
  if (choice.empty()) return nullptr;
  return TakeReady(choice[Random(choice.size())]);
}

void Engine::Pump(Lock& lock) {
  if (running_ != nullptr) return;
  if (!GetConfig().adversarial) {
    while (NodePtr node = TakeEager()) Execute(node, lock);
    return;
  }
  while (pending_.size() > kMaxQueued) {
    NodePtr node = TakeAdversarial(0, true);
    if (!node) return;
    Execute(node, lock);
  }
}

void Engine::MarkNeeded(const std::vector<NodePtr>& targets, uint64_t mark) {
  std::vector<Node*> work;
  work.reserve(targets.size());
  for (const NodePtr& target : targets) work.push_back(target.get());
  while (!work.empty()) {
    Node* node = work.back();
    work.pop_back();
    if (node->executed || node->needed_mark == mark) continue;
    node->needed_mark = mark;
    for (const NodePtr& before : node->before) work.push_back(before.get());
  }
}

void Engine::RunUntil(const std::vector<NodePtr>& targets, Lock& lock) {
  ++entries_;
  const bool adversarial = GetConfig().adversarial;
  const uint64_t mark = ++mark_;
  uint64_t eighths = 0;  // how often work that nobody waits for runs too
  if (adversarial) {
    static constexpr uint64_t kEighths[] = {0, 0, 1, 4, 8};
    MarkNeeded(targets, mark);
    eighths = kEighths[Random(std::size(kEighths))];
  }
  for (const NodePtr& target : targets) {
    while (!target->executed) {
      const NodePtr node = adversarial ? TakeAdversarial(mark, Random(8) < eighths) : TakeEager();
      if (!node) {
        WaitForProgress(lock);
        continue;
      }
      Execute(node, lock);
      // Waiting for the callback keeps the seed's order of everything after it.
      while (adversarial && !node->executed) WaitForProgress(lock);
    }
  }
  for (const NodePtr& target : targets) {
    HostWaits(*target);
    HostSaw(target);
  }
}

void Engine::HostWaits(const Node& node) {
  timeline_.AdvanceUntil(node);
  host_seconds_ = std::max(host_seconds_, timeline_.now());
}

bool Engine::Query(const NodePtr& node, Lock& lock) {
  ++entries_;
  if (!node) return true;
  if (!node->executed && GetConfig().adversarial && Random(2) == 0) {
    const uint64_t mark = ++mark_;
    MarkNeeded({node}, mark);
    if (const NodePtr next = TakeAdversarial(mark, Random(8) == 0)) Execute(next, lock);
  }
  timeline_.AdvanceTo(host_seconds_);
  if (node->complete()) {
    HostSaw(node);
    return true;
  }
  if (node->executed) {
    // Asking the same again and again is waiting; asking about many things once is not.
    const double wait = kFirstPollSeconds * static_cast<double>(uint64_t{1} << node->polls);
    if (node->polls < kMaxPollDoublings) ++node->polls;
    host_seconds_ += wait;
  } else if (!GetConfig().adversarial) {
    Pump(lock);  // a gate may have opened
  }
  return false;
}

RaceAccess Engine::RunningAccess() const {
  if (running_ == nullptr || !running_->actor) return {};
  return {running_->actor, running_->lane, running_->clock[running_->lane], &running_->clock};
}

// May the operation touch what it names? Copies may touch what either their own device or the owner
// of the memory may.
CUresult Engine::Check(Node& node) {
  Operation& op = node.op;
  if (!node.doom.empty()) {
    LogAlways("%s (stream %llu, operation %llu): %s", op.name.c_str(),
              static_cast<unsigned long long>(node.stream_id),
              static_cast<unsigned long long>(node.sequence), node.doom.c_str());
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const RaceAccess access = RunningAccess();
  for (const Span& span : op.touches) {
    std::string why;
    CUresult result = CheckSpan(op.device, span, op.from_kernel, &why);
    if (result != CUDA_SUCCESS && !op.from_kernel) {
      const Place place = PlaceOf(span.base);
      if (place.device >= 0 && place.device != op.device) {
        result = CheckSpan(place.device, span, false, &why);
      }
    }
    if (result != CUDA_SUCCESS) {
      LogAlways("%s (stream %llu, operation %llu): %s", op.name.c_str(),
                static_cast<unsigned long long>(node.stream_id),
                static_cast<unsigned long long>(node.sequence), why.c_str());
      return result;
    }
    if (access.actor && !op.from_kernel && !op.orders_others) {
      RaceDetector::Get().Touch(access, span.base, span.bytes, span.write);
    }
  }
  return CUDA_SUCCESS;
}

void Engine::Execute(const NodePtr& node, Lock& lock) {
  const bool alive = node->context != nullptr && node->context->sticky == CUDA_SUCCESS;
  if (node->op.host_callback && alive) {
    HandToCallbackThread(node);
    return;
  }
  (void)lock;
  Node* const outer = running_;
  running_ = node.get();
  CUresult result = CUDA_SUCCESS;
  if (alive) {
    result = Check(*node);
    if (result == CUDA_SUCCESS && node->op.run) {
      DeviceBytes bytes;
      result = node->op.run(node->op);
    }
  }
  running_ = outer;
  if (result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS) ++illegal_accesses_;
    MakeSticky(node->context, result, node->op.name + " failed on the device");
  }
  Finish(node);
}

void Engine::Finish(const NodePtr& node) {
  node->executed = true;
  node->running = false;
  if (node->op.host_callback) --open_callbacks_;
  // What the operation held (staged bytes, parameters) goes now; its name and times stay.
  node->op.run = nullptr;
  node->op.gate = nullptr;
  node->op.touches = {};
  node->op.params = nullptr;
  node->before.clear();
  pending_.erase(node->sequence);
  for (const NodePtr& next : node->run_next) {
    if (--next->waiting_run == 0) ready_.push_back(next);
  }
  node->run_next.clear();
}

void Engine::Doom(CUdeviceptr base, size_t bytes) {
  for (auto& [sequence, node] : pending_) {
    if (!node->doom.empty() || !Mentions(node->op, base, bytes)) continue;
    char text[160];
    snprintf(
        text, sizeof(text),
        "the memory at 0x%llx, %zu bytes, was unmapped or freed while this operation was queued",
        base, bytes);
    node->doom = text;
  }
}

void Engine::Drop(CUcontext context) {
  for (auto& [sequence, node] : pending_) {
    if (node->context == context) node->context = nullptr;
  }
  // Without a context they run as nothing, in any order.
  std::vector<NodePtr> dead;
  for (auto& [sequence, node] : pending_) {
    if (node->context == nullptr && !node->running) dead.push_back(node);
  }
  for (const NodePtr& node : dead) Finish(node);
  std::erase_if(ready_, [](const NodePtr& node) { return node->executed; });
}

void Engine::FinishTime() {
  timeline_.Drain();
  host_seconds_ = std::max(host_seconds_, timeline_.now());
}

}  // namespace simgpu
