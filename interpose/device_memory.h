// Everything Tidemark knows about one device inside a job: the arena's reservation, who has which
// bytes of it, which chunk lies under which, the streams and fences, and the supply of chunks.
//
// Flow: manager.cc and gate.cc call in with the lock held (Allocate gives it up while it waits for
// the daemon or for other jobs); allocation is in device_memory.cc, what lies
// under the arena in backing.cc, moves and safepoints in residency.cc, what runs ahead of need in
// ahead.cc and foreseen.cc, figures in figures.cc.
// Threads: `mutex` is held for every call except Contains(); work that was let through the gate is
// counted in `inside` until the driver took it.

#ifndef TIDEMARK_INTERPOSE_DEVICE_MEMORY_H_
#define TIDEMARK_INTERPOSE_DEVICE_MEMORY_H_

#include <optional>

#include "core/arena.h"
#include "core/iteration.h"
#include "interpose/biased_mutex.h"
#include "interpose/chunk_supply.h"
#include "interpose/demand.h"
#include "interpose/early_copies.h"
#include "interpose/mover.h"
#include "interpose/plan_follower.h"
#include "interpose/pointer_tables.h"
#include "interpose/session.h"
#include "interpose/stream_book.h"

namespace tidemark::interpose {

struct MoveCounters {
  uint64_t moved_out = 0;  // chunks
  uint64_t moved_in = 0;
  uint64_t evicted = 0;
  uint64_t copied_ahead = 0;  // while the job computed, before they were to leave
  uint64_t left_free = 0;     // of those, that left without another copy
  uint64_t prefetched = 0;
  uint64_t brought_ahead = 0;   // with what a launch waited for, because it was foreseen
  uint64_t brought_used = 0;    // of those, that were used
  uint64_t brought_wasted = 0;  // of those, that left or were freed without a use
  uint64_t returned = 0;
  uint64_t host_mapped_accesses = 0;
  uint64_t safepoints = 0;
  uint64_t safepoint_ns = 0;
  uint64_t stall_ns = 0;
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t launches = 0;
  uint64_t ooms = 0;
  core::Bytes peak_active = 0;
  core::Bytes peak_requested = 0;
};

class DeviceMemory;

// No work of the job in flight on a device: newcomers wait for the lock, who is inside has left,
// the contexts are synchronised. The device's lock is held for as long as it lives.
class Safepoint {
 public:
  explicit Safepoint(DeviceMemory* memory);
  ~Safepoint();
  Safepoint(const Safepoint&) = delete;
  Safepoint& operator=(const Safepoint&) = delete;
  // False: a capture is active, somebody did not leave in time, or the device reported an error.
  bool reached() const { return reached_; }
  int64_t started_ns() const { return started_ns_; }

 private:
  DeviceMemory* memory_;
  int64_t started_ns_;
  bool pushed_ = false;
  bool reached_ = false;
};

class DeviceMemory {
 public:
  static constexpr int kContexts = 16;
  static constexpr int kDevices = TM_WIRE_MAX_DEVICES;

  // Reserves the arena and fills in budgets. False: this device is not managed.
  bool Init(const kernels::Driver* driver, CUdevice device, Session* session);
  void SetBudgets(core::Bytes device_bytes, core::Bytes host_bytes);

  bool Contains(CUdeviceptr address) const { return address - base_ < bytes_; }
  core::Bytes total_bytes() const { return total_bytes_; }
  CUdevice device() const { return device_; }

  // ---- Allocation. Codes are what the job gets.
  // `pooled` memory (stream-ordered) outlives the context it was allocated in; with an id of
  // `streams` it is for work after this moment in the order of that stream only.
  CUresult Allocate(core::Bytes bytes, CUcontext context, CUdeviceptr* address, bool pooled = false,
                    core::StreamId stream = core::kAnyStream);
  // With an id of `streams`: pooled memory goes in the order of that stream, after all work on the
  // buffer. False: `address` is no live buffer's base.
  bool Free(CUdeviceptr address, core::StreamId stream = core::kAnyStream);
  core::Block* Find(CUdeviceptr address) const { return arena_.Find(address - base_); }
  CUdeviceptr AddressOf(const core::Block* block) const { return base_ + block->offset; }
  void MemInfo(size_t* free_bytes, size_t* total_bytes);
  void CountPassedThrough(core::Bytes bytes, int sign);
  void CountHost(core::Bytes bytes, int sign);
  // Asks the driver what its graphs' memory holds at present.
  void CountGraphMemory();
  // The context of `block`; null when it is of a pool.
  static CUcontext ContextOf(const core::Block* block) {
    return reinterpret_cast<CUcontext>(block->owner);
  }

  // ---- Use.
  // A launch that is `what` (any number that is the same when the job does the same again), then
  // what it touches, then its end.
  core::LaunchNumber NextLaunch(uint64_t what = 0) {
    iteration_.Begin(what);
    demand_.Begin(iteration_.now(), sums_.allocated());
    return ++launch_;
  }
  void Touch(core::Block* block, core::LaunchNumber launch) {
    block->last_use = launch;
    iteration_.Touch(NameOf(block));
    if (follower_.enabled()) NoteLeaving(block);
  }
  void EndLaunch() { iteration_.End(); }
  bool anything_on_host() const { return table_.host_chunks() != 0; }
  bool OnHost(const core::Block* block) const { return arena_.OnHost(block); }
  // Brings the host chunks of `blocks` back as far as the budget allows without evicting what
  // `launch` touches. Whatever stays is reached over the link.
  void MakeResident(core::Block* const* blocks, int count, core::LaunchNumber launch);
  // Room for `bytes` of memory that the driver will serve itself.
  bool MakeRoom(core::Bytes bytes);
  // Lets device chunks of `bytes` go, whatever the budget says. False: none went.
  bool GiveBack(core::Bytes bytes);
  bool HasLimit() const { return supply_.budget(Place::kDevice) < total_bytes_; }
  // Acts on a changed policy page and on requests in it. Cheap when nothing changed.
  void FollowPolicy() {
    if (session_->PolicySequence() != policy_seen_ || shrink_pending_) FollowPolicySlow();
  }
  void Pin(core::Block* block, core::PinReason reason) {
    arena_.Pin(block, reason);
    ShieldCopies(block, nullptr);
  }

  // ---- Copies ahead of leaving (ahead.cc).
  // Before a launch passes the gate: copies what former ones were the last to use.
  void StartCopies() {
    if (due_count_ != 0 && inside.Empty()) StartCopiesSlow();
  }
  // Work on `stream` (null: one that is not known) is about to touch the block, or any memory.
  void ShieldCopies(const core::Block* block, const StreamRecord* stream);
  void ShieldAllCopies(const StreamRecord* stream) {
    if (early_.count() != 0) early_.TouchAny(stream == nullptr ? nullptr : &stream->handle);
  }

  // ---- What the job itself says (hints.cc).
  // False, and nothing changed: a chunk of it has no such pin.
  bool Unpin(const core::Block* block, core::PinReason reason);
  bool Pinned(const core::Block* block) const;
  core::LaunchNumber NextHint() { return ++hints_, ++launch_; }  // in the order of launches
  void ForgetUse(core::Block* block);                            // it leaves before what was used
  core::Bytes HostBytes(const core::Block* block) const;
  core::Bytes budget_bytes() const { return supply_.budget(Place::kDevice); }
  const core::Block* first_block() { return arena_.allocator().first(); }

  // ---- Contexts and peers.
  void NoteContext(CUcontext context);
  // The job destroys `context`. When it is the last one of the device, every buffer goes with it.
  void DropContext(CUcontext context);
  // Memory of this device becomes (un)reachable from `other`, whose contexts then are synchronised
  // too.
  void SetPeer(DeviceMemory* other, bool enabled);
  CUresult SynchronizeAll();

  // For IPC: what lies under a chunk.
  const Chunk& backing(core::ChunkIndex chunk) const { return backing_[chunk]; }

  void FillCounters(tm_wire_counters_device* out);
  bool Validate() const;
  // Nothing is served any more: our own books, or the job's context.
  bool broken() const { return broken_ || context_broken_; }
  void BreakContext() { context_broken_ = true; }
  bool graphs_allocate = false;  // a graph of the job has allocations among its nodes
  // Lets a plan order what leaves and comes back.
  void EnablePlanner() { follower_.Enable(); }
  void FinishPlanForTesting() { follower_.FinishForTesting(); }
  bool uses_own_pool = false;  // the job's own pool serves its stream-ordered memory
  const MoveCounters& move_counters() const { return counters_; }
  // Gives everything back, addresses included; the object is unusable afterwards.
  void ReleaseForTesting();

  BiasedMutex mutex;
  DrainCounter inside;
  StreamBook streams;
  PointerTables tables;

 private:
  friend class Safepoint;

  // ---- The owner's side of the arena (backing.cc).
  core::ArenaSeam Seam();
  core::Block* PlaceBlock(core::Bytes bytes, core::StreamId stream);
  core::Block* WaitForOtherJobs(core::Bytes bytes, core::StreamId stream);
  bool EnterSafepoint();
  bool Map(Place place, core::ChunkIndex first, core::ChunkIndex count);
  bool MapOnHost(core::ChunkIndex first, core::ChunkIndex count);
  bool Unmap(core::ChunkIndex first, core::ChunkIndex count);
  void UnmapOrBreak(core::ChunkIndex chunk);
  bool Alias(core::ChunkIndex from, core::ChunkIndex to, core::ChunkIndex count);
  bool Leave(core::ChunkIndex first, core::ChunkIndex count);
  void PutBack(Place place, core::ChunkIndex index);
  void Acquire(core::ChunkIndex count);
  core::ChunkIndex MakeSpare(core::ChunkIndex count);
  void Stock(Place place, uint64_t count);
  bool FitsAtAll(uint64_t missing) const;
  uint64_t HostRoom() const {
    return supply_.reserve(Place::kHost) + supply_.room(Place::kHost) + early_.count();
  }
  uint64_t FreeChunks() const;
  CUresult MapChunk(core::ChunkIndex index, const Chunk& chunk);
  CUdeviceptr ChunkAddress(core::ChunkIndex index) const {
    return base_ + core::Bytes{index} * core::kChunkBytes;
  }

  void NoteLeaving(const core::Block* block);
  void StartCopiesSlow();
  bool MayCopyAhead() const;
  bool IsIdle(core::ChunkIndex chunk);
  void CopyAhead(core::ChunkIndex chunk);
  void JudgeCopies();
  void SettleCopies();
  void DropCopies(bool all);
  void DropCopy(core::ChunkIndex chunk);

  // ---- Returns ahead of their use (foreseen.cc).
  uint64_t PartlyUsed() const;
  uint32_t AddForeseen(core::ChunkIndex* list, uint32_t count);
  void NoteBrought(const core::ChunkIndex* list, uint32_t count);
  void JudgeBrought();
  void JudgeBrought(const core::Block* freed);
  void LoseBrought(core::ChunkIndex chunk);

  bool CanReturn(core::LaunchNumber launch);
  // One chunk on its way to the other side.
  struct Shift {
    core::ChunkIndex index;
    Chunk fresh;
    Place to;
    ChunkHash hash;
    bool done;
    bool copied;
  };
  bool TakeHostChunk(uint64_t more, Shift* shift);
  static constexpr uint32_t kMostMoves = 1024;  // in one safepoint

  static core::BufferName NameOf(const core::Block* block) {
    return {block->tag, block->birth, block->requested};
  }
  void LookAhead();
  void UpdatePlan();
  void Foresee(const core::Block* block, core::ChunkIndex chunk, const core::NextUse& next,
               const PlanAdvice& advice);
  uint64_t Evict(uint64_t count, core::LaunchNumber before);
  uint64_t EvictAhead(uint64_t missing);
  uint64_t Exchange(const core::ChunkIndex* wanted, uint32_t count, uint32_t must, uint64_t room,
                    core::LaunchNumber before);
  struct Moving;
  uint64_t MoveAll(Shift* list, int count);
  static bool Starts(void* moving, int index);
  static void Arrived(void* moving, int first, int count);
  void SwapRun(Shift* run, int count);
  bool SwapBack(const Shift& shift);
  bool SetAccess(core::ChunkIndex first, core::ChunkIndex chunks);
  uint64_t Return(const core::ChunkIndex* list, uint32_t count) {
    return Exchange(list, count, 0, 0, 0);
  }
  void FollowPolicySlow();
  bool ReadBudgets(tm_wire_policy_page* page);
  void ReadBudgets() {
    tm_wire_policy_page page;
    ReadBudgets(&page);
  }
  void Prefetch(uint64_t chunks);
  void Shrink();
  void Decay();
  void Break(const char* what);
  void DropBuffersOf(CUcontext context);
  void DropEverything();
  bool ReduceTo(uint64_t allowed);
  // The part of `bytes` of buffers that is on the device. Where some are on the host, the device's
  // chunks are full to within a rounding, so that the smaller of both sums tells.
  core::Bytes OnDevice(core::Bytes bytes) const {
    const core::Bytes mapped = core::Bytes{table_.device_chunks()} * core::kChunkBytes;
    return bytes < mapped ? bytes : mapped;
  }

  const kernels::Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  Session* session_ = nullptr;
  CUdeviceptr base_ = 0;
  core::Bytes bytes_ = 0;
  core::Bytes total_bytes_ = 0;
  core::Arena arena_;
  core::ChunkTable& table_ = arena_.table();
  const core::ArenaAllocator& sums_ = arena_.sums();
  core::Iteration iteration_;
  Demand demand_;
  PlanFollower follower_;
  core::LaunchNumber timed_launch_ = 0;  // launches and time at the last look ahead, for their pace
  int64_t timed_at_ns_ = 0;
  uint64_t timed_stall_ns_ = 0;
  Chunk* backing_ = nullptr;
  ChunkHash* hashes_ = nullptr;          // of the chunks on the host, as they left
  core::LaunchNumber looked_ahead_ = 0;  // LookAhead() was done at this launch
  ChunkSupply supply_;
  Mover mover_;
  EarlyCopies early_;
  static constexpr uint32_t kMostDue = 1024;
  core::ChunkIndex due_[kMostDue];  // ring: chunks that a plan wants away, by their last use
  uint32_t due_first_ = 0;
  uint32_t due_count_ = 0;
  uint32_t ahead_ = 16;        // copies that may run ahead at present
  uint64_t host_lacking_ = 0;  // host chunks that copies ahead wanted and that were not there
  struct Brought {
    core::ChunkIndex chunk;
    core::LaunchNumber launch;
  };
  static constexpr uint32_t kMostBrought = 256;
  Brought brought_[kMostBrought];  // ahead, and not yet used as far as was looked
  uint32_t brought_count_ = 0;
  uint64_t partly_used_ = 0;  // chunks, see AddForeseen
  CUcontext contexts_[kContexts] = {};
  int context_count_ = 0;
  DeviceMemory* peers_[kDevices] = {};
  int peer_count_ = 0;
  core::LaunchNumber launch_ = 0;
  core::LaunchNumber hints_ = 0;  // of those, what was no launch
  core::Bytes passed_through_ = 0;
  core::Bytes graph_memory_ = 0;  // part of passed_through_
  core::Bytes host_passed_through_ = 0;
  uint64_t policy_seen_ = ~uint64_t{0};
  uint64_t evict_seen_ = 0;
  uint64_t prefetch_seen_ = 0;
  int64_t decay_at_ns_ = 0;
  uint64_t decays_ = 0;
  int64_t shrink_at_ns_ = 0;
  bool moves_allowed_ = true;                // policy level is not off
  uint64_t movable_classes_ = ~uint64_t{0};  // policy: others stay on the device where possible
  core::Bytes min_size_ = 0;  // policy: smaller buffers stay on the device where possible
  bool shrink_pending_ = false;
  bool broken_ = false;
  bool context_broken_ = false;
  uint64_t next_id_ = 0;
  std::optional<Safepoint> point_;  // of the request in hand
  MoveCounters counters_;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_DEVICE_MEMORY_H_
