// The ledger's validity walk: recounts every total from the chunks alone.

#include "absl/strings/str_cat.h"
#include "daemon/ledger.h"

namespace tidemark::daemon {
namespace {

absl::Status Contradiction(const std::string& sentence) {
  return absl::InternalError(absl::StrCat("ledger: ", sentence));
}

}  // namespace

absl::Status Ledger::ValidateChunk(ChunkId id, const Chunk& chunk) const {
  if (chunk.holds.empty()) {
    if (chunk.owner != kNobody) {
      return Contradiction(absl::StrCat("idle chunk ", id, " is charged to job ", chunk.owner));
    }
    return chunk.suspect ? Contradiction(absl::StrCat("idle chunk ", id, " is suspect"))
                         : absl::OkStatus();
  }
  if (chunk.holds.count(chunk.owner) == 0) {
    return Contradiction(absl::StrCat("chunk ", id, " is charged to a job that does not hold it"));
  }
  for (const auto& [job, count] : chunk.holds) {
    const auto holder = jobs_.find(job);
    if (holder == jobs_.end() || count == 0 || holder->second.held.count(id) == 0) {
      return Contradiction(absl::StrCat("chunk ", id, " and job ", job, " disagree on a hold"));
    }
    if (holder->second.uid != chunk.uid) {
      return Contradiction(absl::StrCat("chunk ", id, " crossed to another uid"));
    }
  }
  return absl::OkStatus();
}

absl::Status Ledger::ValidateJob(JobId id, const Job& job) const {
  std::map<Slot, uint64_t> charged;
  for (const ChunkId chunk : job.held) {
    const auto found = chunks_.find(chunk);
    if (found == chunks_.end() || found->second.holds.count(id) == 0) {
      return Contradiction(absl::StrCat("job ", id, " lists chunk ", chunk, " it does not hold"));
    }
    if (found->second.owner == id) ++charged[found->second.slot];
  }
  for (const auto& [chunk, slot] : job.adopted) {
    if (chunks_.count(chunk) != 0) {
      return Contradiction(absl::StrCat("chunk ", chunk, " is both ours and adopted"));
    }
    ++charged[slot];
  }
  for (const auto& [slot, count] : job.charged) {
    if (charged[slot] != count) {
      return Contradiction(absl::StrCat("job ", id, " is charged ", count, " chunks on device ",
                                        slot.device, ", holds ", charged[slot]));
    }
    charged.erase(slot);
  }
  for (const auto& [slot, count] : charged) {
    if (count != 0) return Contradiction(absl::StrCat("job ", id, " holds uncharged chunks"));
  }
  return absl::OkStatus();
}

absl::Status Ledger::Validate() const {
  std::map<Slot, Totals> recount;
  for (const auto& [id, chunk] : chunks_) {
    if (absl::Status status = ValidateChunk(id, chunk); !status.ok()) return status;
    Totals& totals = recount[chunk.slot];
    ++(chunk.holds.empty() ? totals.idle : totals.leased);
  }
  for (const auto& [id, job] : jobs_) {
    if (absl::Status status = ValidateJob(id, job); !status.ok()) return status;
    for (const auto& [chunk, slot] : job.adopted) {
      ++recount[slot].adopted;
      ++recount[slot].leased;
    }
  }
  for (const auto& [slot, totals] : totals_) {
    const Totals& counted = recount[slot];
    if (totals.leased != counted.leased || totals.adopted != counted.adopted ||
        totals.idle != counted.idle) {
      return Contradiction(absl::StrCat("totals of device ", slot.device, " place ", slot.place,
                                        " do not match their chunks"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tidemark::daemon
