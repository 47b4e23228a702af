// The streams of one device, and the fences of freed memory. Frees are numbered by epochs. An epoch
// is closed when somebody wants memory freed in it: an event is recorded on every stream that got
// work since the last closing. A stream that waits for an epoch waits for all earlier ones, so
// holes that merge carry the larger number. A stream's own events cost it nothing.
//
// The legacy stream orders itself with every blocking stream, per-thread default streams included,
// so it stands for all of them. A capturing stream is never touched. Threads: the device's lock is
// held, except in NoteWork.

#ifndef TIDEMARK_INTERPOSE_STREAM_BOOK_H_
#define TIDEMARK_INTERPOSE_STREAM_BOOK_H_

#include <atomic>

#include "core/units.h"
#include "kernels/driver.h"

namespace tidemark::interpose {

struct StreamRecord {
  CUstream handle = nullptr;
  CUcontext context = nullptr;
  bool used = false;  // the slot is taken
  bool capturing = false;
  core::FenceId waited = 0;  // every event up to this epoch is waited for
  uint32_t number = 0;
  core::StreamId id = core::kAnyStream;  // of no other stream, before or after
  std::atomic<uint32_t> busy{0};         // got work since its last event
};

class StreamBook {
 public:
  void Init(const kernels::Driver* driver) { driver_ = driver; }

  // The record of `stream` in `context`; made when unknown. Null: the table is full or memory is
  // out; then nothing fenced may be handed out any more (see broken()).
  StreamRecord* Find(CUstream stream, CUcontext context);
  void Created(CUstream stream, CUcontext context);
  void Destroying(CUstream stream, CUcontext context);
  void DropContext(CUcontext context);
  // After the driver took work for the stream.
  static void NoteWork(StreamRecord* record) { record->busy.store(1, std::memory_order_release); }

  void CaptureBegan(CUstream stream, CUcontext context);
  void CaptureEnded(CUstream stream, CUcontext context);
  bool capturing() const { return captures_ != 0; }
  // Asks the driver: a stream can join another one's capture through an event.
  bool InCapture(const StreamRecord* record) { return !MayTouch(record); }

  // The number that a range freed now gets.
  core::FenceId open_epoch() const { return open_; }
  core::FenceId passed() const { return passed_; }
  // Looks which epochs have passed: a query per pending event, oldest first, stops at the first
  // that has not. Nothing is recorded.
  void Poll();

  // The id of a stream in whose order memory is allocated or freed; kAnyStream where that says
  // nothing: it was never seen, is captured, or is each thread's own by the same handle.
  core::StreamId IdOf(CUstream stream, CUcontext context);

  // Makes every stream that may use memory freed at `fence` wait for it, before this returns: the
  // one of this id, or all. False: not possible now (capture, or the driver refused); the memory
  // must not be handed out.
  bool Require(core::StreamId id, core::FenceId fence);
  // Before work goes to `record`: waits that it still lacks (default streams, new streams).
  bool BeforeWork(StreamRecord* record) {
    return record->waited >= required_ || record->capturing || Wait(record, required_);
  }
  // Lets `follower` wait for all work that streams have got so far. False: not possible now.
  bool Follow(CUstream follower);
  // Host waits until `fence` passed. False: not possible now.
  bool Synchronize(core::FenceId fence);
  // Every stream is known to be idle: all fences have passed.
  void AllIdle();

 private:
  struct Pending {
    core::FenceId epoch = 0;
    CUevent event = nullptr;
    StreamRecord* stream = nullptr;  // null: its stream is gone, everybody waits
  };
  static constexpr uint32_t kStreams = 1024;
  static constexpr uint32_t kPending = 4096;
  static constexpr uint32_t kIdleEvents = 256;

  StreamRecord* Known(CUstream stream, CUcontext context);
  bool Close();
  bool RecordEvent(StreamRecord* record);
  bool Wait(StreamRecord* record, core::FenceId fence);
  CUevent TakeEvent();
  void PutEvent(CUevent event);
  bool MayTouch(const StreamRecord* record);
  void PopPending();

  const kernels::Driver* driver_ = nullptr;
  StreamRecord records_[kStreams];
  uint32_t record_count_ = 0;
  Pending pending_[kPending];  // ring, oldest first
  uint32_t pending_first_ = 0;
  uint32_t pending_count_ = 0;
  CUevent idle_events_[kIdleEvents];
  uint32_t idle_count_ = 0;
  core::FenceId open_ = 1;
  core::FenceId passed_ = 0;
  core::FenceId required_ = 0;
  int captures_ = 0;
  core::StreamId last_id_ = core::kAnyStream;
  bool overflow_ = false;  // a stream has no record: only a synchronised host makes memory safe
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_STREAM_BOOK_H_
