// The broker's answers to an attached job: leases, returns, adoption, IPC shares.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/broker.h"
#include "daemon/byte_text.h"
#include "daemon/check.h"

namespace tidemark::daemon {
namespace {

constexpr absl::Duration kShortageLife = absl::Seconds(5);
// Short: right after a job died, the driver may still be giving its memory back.
constexpr absl::Duration kCeilingLife = absl::Seconds(3);
constexpr absl::Duration kRefusalEventPause = absl::Seconds(1);

tm_wire_outcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return TM_WIRE_OK;
    case absl::StatusCode::kNotFound:
      return TM_WIRE_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted:
      return TM_WIRE_NO_MEMORY;
    case absl::StatusCode::kPermissionDenied:
      return TM_WIRE_REFUSED;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return TM_WIRE_BAD_REQUEST;
    default:
      return TM_WIRE_INTERNAL;
  }
}

Reply StatusReply(const tm_wire_header& header, const absl::Status& status, uint32_t count = 0) {
  return OutcomeReply(header, OutcomeOf(status), status.message(), count);
}

Slot SlotOf(uint32_t device, uint32_t place) {
  return {device, place == TM_WIRE_HOST ? TM_WIRE_HOST : TM_WIRE_DEVICE};
}

std::string PlaceText(Slot slot) {
  return absl::StrCat(slot.place == TM_WIRE_HOST ? "host memory near device " : "device ",
                      slot.device);
}

std::vector<ChunkId> AllOf(const Pool::Taken& taken) {
  std::vector<ChunkId> all = taken.reused;
  all.insert(all.end(), taken.created.begin(), taken.created.end());
  return all;
}

}  // namespace

Reply Broker::Serve(const Attachment& attachment, const Request& request) {
  const tm_wire_header& header = request.header;
  {
    MutexLock lock(&mutex_);
    if (Find(attachment) == nullptr) {
      Reply reply = OutcomeReply(header, TM_WIRE_REFUSED, "the job attached anew elsewhere");
      reply.close_reason = "the job attached anew elsewhere";
      return reply;
    }
  }
  switch (header.type) {
    case TM_WIRE_LEASE:
      return Grant(attachment, header, std::get<tm_wire_lease>(request.body));
    case TM_WIRE_RETURN:
      return TakeBack(attachment, header, std::get<tm_wire_chunks>(request.body));
    case TM_WIRE_ADOPT:
      return Adopt(attachment, header, std::get<tm_wire_chunks>(request.body));
    case TM_WIRE_SHARE:
      return Share(attachment, header, std::get<tm_wire_share>(request.body));
    case TM_WIRE_OPEN_SHARE:
      return OpenShare(attachment, header, std::get<tm_wire_share>(request.body));
    case TM_WIRE_PING:
      return OutcomeReply(header, TM_WIRE_OK, "");
    default:
      return OutcomeReply(header, TM_WIRE_BAD_REQUEST, "HELLO after HELLO");
  }
}

LeaseQuestion Broker::Ask(JobId id, const Job& job, const tm_wire_lease& request) const {
  const Slot slot = SlotOf(request.device, request.place);
  LeaseQuestion question;
  question.count = request.count;
  question.at_least = request.at_least;
  question.chunk_bytes = hardware_.chunk_bytes;
  question.place = PlaceText(slot);
  uint64_t cap = 0;
  uint64_t leased = 0;
  if (slot.place == TM_WIRE_HOST) {
    question.held = HostHeldBy(id);
    question.budget = HostBudget(id);
    question.limit = HostLimit(job);
    cap = HostCap();
    leased = HostHeld();
  } else {
    question.held = ledger_.HeldChunks(id, slot);
    question.budget = DeviceBudget(id, slot.device);
    question.limit = DeviceLimit(job, slot.device);
    cap = DeviceCap(slot.device);
    leased = ledger_.LeasedChunks(slot);
  }
  question.room = cap > leased ? cap - leased : 0;
  question.quota = QuotasIn(slot).at(job.peer.uid);
  return question;
}

Reply Broker::NoMemory(JobId id, const tm_wire_header& header, const tm_wire_lease& request,
                       const LeaseAnswer& answer) {
  Job& job = jobs_.at(id);
  const absl::Time now = world_.now();
  const Slot slot = SlotOf(request.device, request.place);
  if (answer.contended && slot.place == TM_WIRE_DEVICE) {
    Shortage& shortage = job.shortages[slot.device];
    shortage.wanted_chunks = ledger_.HeldChunks(id, slot) + request.count;
    shortage.until = now + kShortageLife;
    Publish();
  }
  if (now - job.last_refusal_event >= kRefusalEventPause) {
    job.last_refusal_event = now;
    AddEvent("lease_refused", id, absl::StrCat("job ", id, " was refused ", answer.reason));
  }
  tm_wire_leased leased = {};
  leased.header = ReplyHeader(TM_WIRE_LEASED, sizeof(leased), header);
  leased.outcome = TM_WIRE_NO_MEMORY;
  leased.bytes_short = answer.chunks_short * hardware_.chunk_bytes;
  SetReason(leased.reason, answer.reason);
  Reply reply;
  reply.bytes = BytesOf(leased);
  return reply;
}

void Broker::Follow(const Pool::Taken& taken, Slot slot, uid_t uid) {
  for (const ChunkId chunk : taken.destroyed) ledger_.RemoveIdle(chunk);
  for (const ChunkId chunk : taken.created) ledger_.AddIdle(chunk, slot, uid);
}

absl::StatusOr<std::vector<UniqueFd>> Broker::ExportAll(const std::vector<ChunkId>& chunks) {
  std::vector<UniqueFd> fds;
  for (const ChunkId chunk : chunks) {
    absl::StatusOr<UniqueFd> fd = pool_.Export(chunk);
    if (!fd.ok()) return fd.status();
    fds.push_back(*std::move(fd));
  }
  return fds;
}

Reply Broker::Grant(const Attachment& attachment, const tm_wire_header& header,
                    const tm_wire_lease& request) {
  Lease lease;
  lease.slot = SlotOf(request.device, request.place);
  {
    MutexLock lock(&mutex_);
    if (request.device >= hardware_.devices.size()) {
      return OutcomeReply(header, TM_WIRE_BAD_REQUEST,
                          absl::StrCat("device ", request.device, " is out of range: 0 to ",
                                       hardware_.devices.size() - 1));
    }
    const Job& job = jobs_.at(attachment.job);
    const LeaseAnswer answer = Answer(Ask(attachment.job, job, request));
    if (answer.granted < request.count) ++lease_refusals_total_;
    if (answer.granted == 0) return NoMemory(attachment.job, header, request, answer);
    lease.count = answer.granted;
    lease.uid = job.peer.uid;
    if (lease.slot.place == TM_WIRE_DEVICE) {
      lease.cap = DeviceCap(lease.slot.device) - ledger_.AdoptedChunks(lease.slot);
    } else {
      // Idle host chunks near other devices may be above the budget until they are trimmed.
      lease.cap = HostCap() - HostHeld() + ledger_.LeasedChunks(lease.slot) -
                  ledger_.AdoptedChunks(lease.slot);
    }
  }
  const Pool::Taken taken = pool_.Take(lease.slot, lease.uid, lease.count, lease.cap);
  return Settle(attachment, header, request, taken, ExportAll(AllOf(taken)));
}

Reply Broker::NotCreated(JobId id, const tm_wire_header& header, const tm_wire_lease& request,
                         const std::vector<ChunkId>& got, const absl::Status& status) {
  for (const ChunkId chunk : got) pool_.GiveBack(chunk, world_.now());
  ++lease_refusals_total_;
  if (!absl::IsResourceExhausted(status)) {
    return OutcomeReply(header, TM_WIRE_INTERNAL, status.message());
  }
  const Slot slot = SlotOf(request.device, request.place);
  LeaseAnswer answer;
  answer.chunks_short = request.at_least - std::min<uint64_t>(got.size(), request.at_least);
  answer.contended = true;
  answer.reason = absl::StrCat(PlaceText(slot), ": ", status.message());
  if (slot.place == TM_WIRE_DEVICE) {
    // Something else uses the device: until this expires, shares are cut from what there really is.
    ceilings_[slot.device] = {ledger_.LeasedChunks(slot) + ledger_.IdleChunks(slot),
                              world_.now() + kCeilingLife};
  } else if (host_.memlock_bytes != UINT64_MAX) {
    absl::StrAppend(&answer.reason, " (the memlock limit is ", ReadableBytes(host_.memlock_bytes),
                    ")");
  }
  return NoMemory(id, header, request, answer);
}

Reply Broker::Settle(const Attachment& attachment, const tm_wire_header& header,
                     const tm_wire_lease& request, const Pool::Taken& taken,
                     absl::StatusOr<std::vector<UniqueFd>> fds) {
  const std::vector<ChunkId> got = AllOf(taken);
  MutexLock lock(&mutex_);
  Job& job = jobs_.at(attachment.job);
  Follow(taken, SlotOf(request.device, request.place), job.peer.uid);
  if (!fds.ok()) return NotCreated(attachment.job, header, request, got, fds.status());
  if (got.size() < request.at_least) {
    return NotCreated(attachment.job, header, request, got, taken.status);
  }
  for (const ChunkId chunk : got) ledger_.Lease(chunk, attachment.job);
  leases_total_ += got.size();
  if (!taken.status.ok()) ++lease_refusals_total_;
  if (request.place == TM_WIRE_DEVICE && got.size() == request.count) {
    job.shortages.erase(request.device);
  }
  Publish();
  return LeasedReply(header, got, *std::move(fds));
}

Reply Broker::TakeBack(const Attachment& attachment, const tm_wire_header& header,
                       const tm_wire_chunks& request) {
  const Slot slot = SlotOf(request.device, request.place);
  std::vector<ChunkId> idle;
  std::vector<ChunkId> ended;
  {
    MutexLock lock(&mutex_);
    for (uint32_t i = 0; i < request.count; ++i) {
      if (!ledger_.Holds(attachment.job, request.chunk_id[i], slot)) {
        return OutcomeReply(header, TM_WIRE_NOT_FOUND,
                            absl::StrCat("job ", attachment.job, " holds no chunk ",
                                         request.chunk_id[i], " on ", PlaceText(slot)));
      }
    }
    for (uint32_t i = 0; i < request.count; ++i) {
      const ChunkId chunk = request.chunk_id[i];
      const absl::StatusOr<LetGo> outcome = ledger_.Release(chunk, attachment.job);
      TIDEMARK_CHECK_OK(outcome.status());
      if (!ledger_.Holds(attachment.job, chunk, slot)) shares_.DropChunk(attachment.job, chunk);
      if (*outcome == LetGo::kIdle) idle.push_back(chunk);
      if (*outcome == LetGo::kDestroy) ended.push_back(chunk);
    }
    Publish();
  }
  for (const ChunkId chunk : idle) pool_.GiveBack(chunk, world_.now());
  for (const ChunkId chunk : ended) pool_.Doom(chunk);
  return OutcomeReply(header, TM_WIRE_OK, "", request.count);
}

absl::Status Broker::AdoptAll(JobId id, const tm_wire_chunks& request) {
  if (request.device >= hardware_.devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", request.device, " is out of range: ", "0 to ", hardware_.devices.size() - 1));
  }
  const Slot slot = SlotOf(request.device, request.place);
  const uint64_t memory =
      slot.place == TM_WIRE_DEVICE ? hardware_.devices[slot.device].total_bytes : host_.total_bytes;
  if ((ledger_.LeasedChunks(slot) + request.count) * hardware_.chunk_bytes > memory) {
    return absl::InvalidArgumentError(absl::StrCat("more chunks than ", PlaceText(slot), " has"));
  }
  for (uint32_t i = 0; i < request.count; ++i) {
    absl::Status status = ledger_.Adopt(request.chunk_id[i], slot, id);
    if (status.ok()) continue;
    while (i > 0) TIDEMARK_CHECK_OK(ledger_.Release(request.chunk_id[--i], id).status());
    return status;
  }
  return absl::OkStatus();
}

Reply Broker::Adopt(const Attachment& attachment, const tm_wire_header& header,
                    const tm_wire_chunks& request) {
  MutexLock lock(&mutex_);
  if (absl::Status status = AdoptAll(attachment.job, request); !status.ok()) {
    return StatusReply(header, status);
  }
  Job& job = jobs_.at(attachment.job);
  job.adopted_chunks += request.count;
  if (request.last == 1) {
    AddEvent("chunks_adopted", attachment.job,
             absl::StrCat("job ", attachment.job, " handed over ", job.adopted_chunks,
                          " chunks it holds"));
  }
  Publish();
  return OutcomeReply(header, TM_WIRE_OK, "", request.count);
}

Reply Broker::Share(const Attachment& attachment, const tm_wire_header& header,
                    const tm_wire_share& request) {
  MutexLock lock(&mutex_);
  for (uint32_t i = 0; i < request.count; ++i) {
    const ChunkId chunk = request.chunk_id[i];
    if (!ledger_.Owns(attachment.job, chunk)) {
      return OutcomeReply(header, TM_WIRE_NOT_FOUND,
                          absl::StrCat("chunk ", chunk, " was not leased to job ", attachment.job,
                                       " by this daemon, so it cannot be shared"));
    }
  }
  const absl::Status status =
      shares_.Publish(attachment.job, jobs_.at(attachment.job).peer.uid, request);
  return StatusReply(header, status, status.ok() ? request.count : 0);
}

Reply Broker::OpenShare(const Attachment& attachment, const tm_wire_header& header,
                        const tm_wire_share& request) {
  std::vector<ChunkId> chunks;
  {
    MutexLock lock(&mutex_);
    absl::StatusOr<std::vector<ChunkId>> opened = shares_.Open(
        TokenOf(request), jobs_.at(attachment.job).peer.uid, request.first, request.count);
    if (!opened.ok()) return StatusReply(header, opened.status());
    chunks = *std::move(opened);
    for (const ChunkId chunk : chunks) TIDEMARK_CHECK_OK(ledger_.Import(chunk, attachment.job));
  }
  absl::StatusOr<std::vector<UniqueFd>> fds = ExportAll(chunks);
  if (fds.ok()) return LeasedReply(header, chunks, *std::move(fds));
  MutexLock lock(&mutex_);
  for (const ChunkId chunk : chunks) {
    TIDEMARK_CHECK_OK(ledger_.Release(chunk, attachment.job).status());
  }
  return StatusReply(header, fds.status());
}

}  // namespace tidemark::daemon
