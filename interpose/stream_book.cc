// Implementation of interpose/stream_book.h. Threads: as the header says.

#include "interpose/stream_book.h"

#include "interpose/context_scope.h"

namespace tidemark::interpose {
namespace {

// Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: one record, spoken to through the legacy stream.
CUstream Normal(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : stream;
}

}  // namespace

StreamRecord* StreamBook::Known(CUstream stream, CUcontext context) {
  stream = Normal(stream);
  for (uint32_t i = 0; i < record_count_; ++i) {
    StreamRecord& record = records_[i];
    if (record.used && record.handle == stream &&
        (stream != CU_STREAM_LEGACY || record.context == context)) {
      return &record;
    }
  }
  return nullptr;
}

StreamRecord* StreamBook::Find(CUstream stream, CUcontext context) {
  if (StreamRecord* known = Known(stream, context)) return known;
  StreamRecord* spare = nullptr;
  for (uint32_t i = 0; i < record_count_ && spare == nullptr; ++i) {
    if (!records_[i].used) spare = &records_[i];
  }
  if (spare == nullptr && record_count_ < kStreams) spare = &records_[record_count_++];
  if (spare == nullptr) {
    overflow_ = true;
    return nullptr;
  }
  spare->number = static_cast<uint32_t>(spare - records_);
  spare->id = ++last_id_;
  spare->handle = Normal(stream);
  spare->context = context;
  spare->capturing = false;
  spare->waited = passed_;
  spare->busy.store(0, std::memory_order_relaxed);
  spare->used = true;
  return spare;
}

core::StreamId StreamBook::IdOf(CUstream stream, CUcontext context) {
  if (stream == CU_STREAM_PER_THREAD) return core::kAnyStream;
  const StreamRecord* record = Known(stream, context);
  return record == nullptr || InCapture(record) ? core::kAnyStream : record->id;
}

void StreamBook::Created(CUstream stream, CUcontext context) {
  StreamRecord* record = Find(stream, context);
  if (record != nullptr) BeforeWork(record);
}

void StreamBook::Destroying(CUstream stream, CUcontext context) {
  StreamRecord* record = Find(stream, context);
  if (record == nullptr || record->handle == CU_STREAM_LEGACY) return;
  // The driver finishes the stream's work after this call: its event must outlive it. Where no
  // event can be had, the stream counts as one we lost sight of.
  if (record->busy.load(std::memory_order_acquire) != 0 && !RecordEvent(record)) overflow_ = true;
  for (uint32_t i = 0; i < pending_count_; ++i) {
    Pending& pending = pending_[(pending_first_ + i) % kPending];
    if (pending.stream == record) pending.stream = nullptr;
  }
  if (record->capturing) --captures_;
  record->used = false;
}

void StreamBook::DropContext(CUcontext context) {
  for (uint32_t i = 0; i < record_count_; ++i) {
    StreamRecord& record = records_[i];
    if (!record.used || record.context != context) continue;
    if (record.capturing) --captures_;
    record.used = false;
  }
  // Events belong to the context that made them; what remains was synchronised by the caller.
  pending_count_ = idle_count_ = 0;
  passed_ = open_ - 1;
}

void StreamBook::CaptureBegan(CUstream stream, CUcontext context) {
  StreamRecord* record = Find(stream, context);
  if (record == nullptr || record->capturing) return;
  record->capturing = true;
  ++captures_;
}

void StreamBook::CaptureEnded(CUstream stream, CUcontext context) {
  StreamRecord* record = Find(stream, context);
  if (record == nullptr || !record->capturing) return;
  record->capturing = false;
  --captures_;
}

CUevent StreamBook::TakeEvent() {
  if (idle_count_ != 0) return idle_events_[--idle_count_];
  CUevent event = nullptr;
  if (driver_->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
  return event;
}

void StreamBook::PutEvent(CUevent event) {
  if (idle_count_ < kIdleEvents) {
    idle_events_[idle_count_++] = event;
  } else {
    driver_->cuEventDestroy(event);
  }
}

bool StreamBook::MayTouch(const StreamRecord* record) {
  if (record->capturing) return false;
  if (captures_ == 0) return true;
  if (record->handle == CU_STREAM_LEGACY)
    return false;  // it would end any capture of a blocking stream
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return driver_->cuStreamIsCapturing(record->handle, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

bool StreamBook::RecordEvent(StreamRecord* record) {
  if (!MayTouch(record)) return false;
  if (pending_count_ == kPending) Poll();
  if (pending_count_ == kPending) return false;
  ContextScope scope(*driver_, record->context);
  CUevent event = scope.ok() ? TakeEvent() : nullptr;
  if (event == nullptr) return false;
  // Cleared first: work that arrives meanwhile sets it again.
  record->busy.store(0, std::memory_order_release);
  if (driver_->cuEventRecord(event, record->handle) != CUDA_SUCCESS) {
    record->busy.store(1, std::memory_order_release);
    PutEvent(event);
    return false;
  }
  Pending& slot = pending_[(pending_first_ + pending_count_++) % kPending];
  slot = Pending{open_, event, record};
  return true;
}

bool StreamBook::Close() {
  if (overflow_) return false;
  for (uint32_t i = 0; i < record_count_; ++i) {
    StreamRecord& record = records_[i];
    if (!record.used || record.busy.load(std::memory_order_acquire) == 0) continue;
    if (!RecordEvent(&record)) return false;
  }
  ++open_;
  if (pending_count_ == 0) passed_ = open_ - 1;
  return true;
}

void StreamBook::PopPending() {
  PutEvent(pending_[pending_first_].event);
  pending_first_ = (pending_first_ + 1) % kPending;
  --pending_count_;
}

void StreamBook::Poll() {
  // A query is among the calls that a capture in another thread forbids.
  if (captures_ != 0 || pending_count_ == 0) return;
  while (pending_count_ != 0 &&
         driver_->cuEventQuery(pending_[pending_first_].event) == CUDA_SUCCESS) {
    PopPending();
  }
  const core::FenceId oldest = pending_count_ != 0 ? pending_[pending_first_].epoch : open_;
  if (oldest - 1 > passed_) passed_ = oldest - 1;
}

// Until `fence`, which is beyond what it waits for already.
bool StreamBook::Wait(StreamRecord* record, core::FenceId fence) {
  if (!MayTouch(record)) return false;
  ContextScope scope(*driver_, record->context);
  if (!scope.ok()) return false;
  for (uint32_t i = 0; i < pending_count_; ++i) {
    const Pending& pending = pending_[(pending_first_ + i) % kPending];
    if (pending.epoch <= record->waited || pending.stream == record) continue;
    if (pending.epoch > fence) break;
    if (driver_->cuStreamWaitEvent(record->handle, pending.event, 0) != CUDA_SUCCESS) return false;
  }
  record->waited = fence;
  return true;
}

bool StreamBook::Require(core::StreamId id, core::FenceId fence) {
  if (fence <= passed_) return true;
  Poll();
  if (fence <= passed_) return true;
  if (fence >= open_ && !Close()) return false;
  if (fence <= passed_) return true;
  const bool all = id == core::kAnyStream;
  const core::FenceId until = all && fence < required_ ? required_ : fence;
  if (all) required_ = until;
  for (uint32_t i = 0; i < record_count_; ++i) {
    StreamRecord& record = records_[i];
    if (!record.used || record.waited >= until || (!all && record.id != id)) continue;
    if (!Wait(&record, until)) return false;
  }
  return true;
}

// No epoch is closed for it: nobody will ask for these events again.
bool StreamBook::Follow(CUstream follower) {
  if (captures_ != 0 || overflow_) return false;
  for (uint32_t i = 0; i < pending_count_; ++i) {
    const CUevent event = pending_[(pending_first_ + i) % kPending].event;
    if (driver_->cuStreamWaitEvent(follower, event, 0) != CUDA_SUCCESS) return false;
  }
  for (uint32_t i = 0; i < record_count_; ++i) {
    const StreamRecord& record = records_[i];
    if (!record.used || record.busy.load(std::memory_order_acquire) == 0) continue;
    const ContextScope scope(*driver_, record.context);
    CUevent event = scope.ok() ? TakeEvent() : nullptr;
    if (event == nullptr) return false;
    const bool good = driver_->cuEventRecord(event, record.handle) == CUDA_SUCCESS &&
                      driver_->cuStreamWaitEvent(follower, event, 0) == CUDA_SUCCESS;
    PutEvent(event);
    if (!good) return false;
  }
  return true;
}

bool StreamBook::Synchronize(core::FenceId fence) {
  if (fence <= passed_) return true;
  if (captures_ != 0) return false;
  if (fence >= open_ && !Close()) return false;
  while (pending_count_ != 0 && pending_[pending_first_].epoch <= fence) {
    if (driver_->cuEventSynchronize(pending_[pending_first_].event) != CUDA_SUCCESS) return false;
    PopPending();
  }
  Poll();
  if (fence > passed_) passed_ = fence;
  return true;
}

void StreamBook::AllIdle() {
  while (pending_count_ != 0) PopPending();
  for (uint32_t i = 0; i < record_count_; ++i) {
    records_[i].busy.store(0, std::memory_order_relaxed);
  }
  passed_ = open_++;
  overflow_ = false;
}

}  // namespace tidemark::interpose
