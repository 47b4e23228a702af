// Inside of the engine: nodes (queued operations), lanes (ordered sequences of nodes: a stream, or
// one branch of a launched graph) and the scheduler that runs nodes. Not for other parts of the
// driver.
//
// Thread rule: everything here needs the driver lock, held once (not recursively) where a Lock is
// passed.

#ifndef SIMGPU_DRIVER_ENGINE_STATE_H_
#define SIMGPU_DRIVER_ENGINE_STATE_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/driver/engine.h"
#include "simgpu/driver/race.h"
#include "simgpu/driver/state.h"
#include "simgpu/driver/timeline.h"

namespace simgpu {

using Lock = std::unique_lock<std::recursive_mutex>;

struct Node;
// Owners: the engine's queues, the lane whose tail it is, events that recorded it, its successors'
// `before` lists until they ran.
using NodePtr = std::shared_ptr<Node>;

struct Node {
  Operation op;
  CUcontext context = nullptr;
  uint64_t stream_id = 0;
  uint64_t sequence = 0;  // order of submission
  bool executed = false;
  bool running = false;
  bool simulated = false;  // its end in virtual time is known and passed
  std::string doom;        // not empty: an address it names went away; the sentence to report
  uint32_t waiting_run = 0;
  uint32_t waiting_time = 0;
  uint64_t needed_mark = 0;
  double end_seconds = 0;
  uint32_t polls = 0;           // fruitless questions about it
  std::vector<NodePtr> before;  // not yet executed ones, in adversarial order only
  std::vector<NodePtr> run_next;
  std::vector<NodePtr> time_next;
  uint32_t lane = 0;
  Clock clock;  // under race=1: what is ordered before it, itself included
  std::shared_ptr<const RaceActor> actor;

  bool complete() const { return executed && simulated; }
};

struct Lane {
  Lane();
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  uint32_t index;  // component of clocks
  Clock clock;
  NodePtr tail;
};

// What becomes of submitted nodes.
class Engine {
 public:
  static Engine& Get();

  // Appends a node to `lane`, ordered after `after` too. The node may have run on return.
  NodePtr Add(Lane& lane, CUcontext context, uint64_t stream_id, Operation op,
              const std::vector<NodePtr>& after, Lock& lock);

  // Executes until all of `targets` ran and moves the host's virtual clock to their end.
  void RunUntil(const std::vector<NodePtr>& targets, Lock& lock);

  // A query: lets some work run, in adversarial order, and says whether `node` is complete for the
  // host. Repeated questions move the host's virtual clock, so that polling ends.
  bool Query(const NodePtr& node, Lock& lock);

  void Charge(double seconds);
  double host_seconds() const { return host_seconds_; }
  Timeline& timeline() { return timeline_; }
  size_t pending() const { return pending_.size(); }
  void Doom(CUdeviceptr base, size_t bytes);
  void Drop(CUcontext context);
  // Lets everything end in virtual time; nothing more runs.
  void FinishTime();
  // The operation that is running on this thread, as the race detector sees it; actor null when
  // none is.
  RaceAccess RunningAccess() const;
  bool running() const { return running_ != nullptr; }
  uint64_t illegal_accesses() const { return illegal_accesses_; }
  uint64_t Random(uint64_t below);

 private:
  Engine() = default;
  void Link(const NodePtr& before, const NodePtr& node);
  void Pump(Lock& lock);
  NodePtr TakeEager();
  NodePtr TakeAdversarial(uint64_t mark, bool anything);
  NodePtr TakeReady(size_t index);
  void Execute(const NodePtr& node, Lock& lock);
  CUresult Check(Node& node);
  void Finish(const NodePtr& node);
  void MarkNeeded(const std::vector<NodePtr>& targets, uint64_t mark);
  void WaitForProgress(Lock& lock);
  void HandToCallbackThread(const NodePtr& node);
  void StartCallbackThread();
  void CallbackThread();
  void RunCallback(const NodePtr& node);
  void CollectCallbacks();
  void ProgressWhileHostIdles(Lock& lock);
  void HostWaits(const Node& node);

  Timeline timeline_;
  std::map<uint64_t, NodePtr> pending_;  // not executed, by sequence
  std::vector<NodePtr> ready_;           // all their predecessors ran
  // Under a lock of their own, taken after the driver lock or without it: a callback ends even
  // while a thread that waits for it keeps the driver lock.
  std::mutex callback_mutex_;
  std::deque<NodePtr> callbacks_;  // for the callback thread
  std::vector<NodePtr> called_;    // done, but not yet marked as executed
  std::condition_variable callback_wanted_;
  std::condition_variable callback_done_;
  bool callback_thread_ = false;
  uint64_t open_callbacks_ = 0;  // submitted and not executed
  Node* running_ = nullptr;
  uint64_t sequence_ = 0;
  uint64_t mark_ = 0;
  uint64_t random_state_ = 0;
  bool random_ready_ = false;
  double host_seconds_ = 0;
  uint64_t entries_ = 0;  // calls into the engine, to tell an idle host
  uint64_t entries_seen_ = 0;
  uint64_t illegal_accesses_ = 0;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ENGINE_STATE_H_
