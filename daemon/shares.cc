#include "daemon/shares.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kMostChunksPerJob = uint64_t{1} << 20;

}  // namespace

ShareToken TokenOf(const tm_wire_share& message) {
  ShareToken token;
  std::copy(std::begin(message.token), std::end(message.token), token.begin());
  return token;
}

absl::Status Shares::Publish(JobId exporter, uid_t uid, const tm_wire_share& part) {
  const ShareToken token = TokenOf(part);
  auto found = shares_.find(token);
  if (found != shares_.end() &&
      (found->second.exporter != exporter || found->second.chunks.size() == found->second.total)) {
    return absl::AlreadyExistsError("the IPC token is in use");
  }
  const size_t done = found == shares_.end() ? 0 : found->second.chunks.size();
  if (part.first != done || (done > 0 && part.total != found->second.total)) {
    return absl::FailedPreconditionError(
        absl::StrCat("part ", part.first, " of ", part.total, " of an IPC token, expected part ",
                     done, " of ", done > 0 ? found->second.total : part.total));
  }
  uint64_t& published = chunks_of_[exporter];
  if (published + part.count > kMostChunksPerJob) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the job published ", published, " chunks; at most ", kMostChunksPerJob));
  }
  published += part.count;
  Share& share = shares_[token];
  share.exporter = exporter;
  share.uid = uid;
  share.total = part.total;
  for (uint32_t i = 0; i < part.count; ++i) {
    share.chunks.push_back(part.chunk_id[i]);
    by_chunk_.emplace(part.chunk_id[i], token);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ChunkId>> Shares::Open(const ShareToken& token, uid_t uid,
                                                  uint32_t first, uint32_t count) const {
  const auto found = shares_.find(token);
  if (found == shares_.end() || found->second.chunks.size() != found->second.total) {
    return absl::NotFoundError("no job publishes this IPC token");
  }
  const Share& share = found->second;
  if (share.uid != uid) {
    return absl::PermissionDeniedError("the IPC token belongs to another user");
  }
  if (first >= share.total) {
    return absl::NotFoundError(
        absl::StrCat("the IPC token has ", share.total, " chunks, none at ", first));
  }
  const uint32_t end = std::min(share.total, first + count);
  return std::vector<ChunkId>(share.chunks.begin() + first, share.chunks.begin() + end);
}

void Shares::Drop(std::map<ShareToken, Share>::iterator share) {
  for (const ChunkId chunk : share->second.chunks) {
    auto [at, end] = by_chunk_.equal_range(chunk);
    while (at != end) at = at->second == share->first ? by_chunk_.erase(at) : std::next(at);
  }
  chunks_of_[share->second.exporter] -= share->second.chunks.size();
  shares_.erase(share);
}

void Shares::DropChunk(JobId exporter, ChunkId chunk) {
  std::vector<ShareToken> tokens;
  const auto [begin, end] = by_chunk_.equal_range(chunk);
  for (auto at = begin; at != end; ++at) tokens.push_back(at->second);
  for (const ShareToken& token : tokens) {
    const auto share = shares_.find(token);
    if (share != shares_.end() && share->second.exporter == exporter) Drop(share);
  }
}

void Shares::DropJob(JobId exporter) {
  for (auto at = shares_.begin(); at != shares_.end();) {
    const auto share = at++;
    if (share->second.exporter == exporter) Drop(share);
  }
  chunks_of_.erase(exporter);
}

}  // namespace tidemark::daemon
