// Implementation of tests/bench/allocator/plain_model.h. Threads: none.

#include "tests/bench/allocator/plain_model.h"

namespace tidemark::bench {
namespace {

constexpr Bytes kRounding = 512;
constexpr Bytes kChunk = 2 * kMiB;
constexpr uint64_t kChunks = uint64_t{1} << 17;
constexpr Bytes kNowhere = ~Bytes{0};

Bytes AlignmentOf(Bytes size) { return size % kChunk == 0 ? kChunk : kRounding; }

}  // namespace

void PlainModel::Runs::Erase(std::map<Bytes, Bytes>::iterator at) {
  by_size_.erase({at->second, at->first});
  by_offset_.erase(at);
}

void PlainModel::Runs::Add(Bytes offset, Bytes size) {
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      Erase(previous);
    }
  }
  if (next != by_offset_.end() && next->first == offset + size) {
    size += next->second;
    Erase(next);
  }
  by_offset_[offset] = size;
  by_size_.insert({size, offset});
}

void PlainModel::Runs::Cut(Bytes offset, Bytes size) {
  const auto at = std::prev(by_offset_.upper_bound(offset));
  const Bytes begin = at->first;
  const Bytes end = begin + at->second;
  Erase(at);
  if (begin < offset) Add(begin, offset - begin);
  if (offset + size < end) Add(offset + size, end - offset - size);
}

PlainModel::PlainModel(Device* device, const PlainOptions& options)
    : device_(device), options_(options), chunks_(kChunks) {
  free_.Add(0, kChunks * kChunk);
}

bool PlainModel::Allocate(BlockId id, Bytes bytes, uint32_t) {
  const Bytes size = RoundUp(bytes == 0 ? 1 : bytes, kRounding);
  Bytes offset = 0;
  if (options_.fewest_chunks || !FindHole(size, AlignmentOf(size), &offset)) {
    const Place place = FindExtension(size, AlignmentOf(size));
    if (place.offset == kNowhere || !MapUnder(place, size, bytes)) return false;
    offset = place.offset;
  }
  holes_.Cut(offset, size);
  free_.Cut(offset, size);
  for (Bytes c = offset / kChunk; c <= (offset + size - 1) / kChunk; ++c) ++chunks_[c].live;
  live_[id] = {offset, size, bytes};
  requested_ += bytes;
  allocated_ += size;
  peak_requested_ = std::max(peak_requested_, requested_);
  return true;
}

void PlainModel::Free(BlockId id) {
  const auto found = live_.find(id);
  const Live live = found->second;
  live_.erase(found);
  requested_ -= live.requested;
  allocated_ -= live.size;
  for (Bytes c = live.offset / kChunk; c <= (live.offset + live.size - 1) / kChunk; ++c) {
    --chunks_[c].live;
  }
  free_.Add(live.offset, live.size);
  holes_.Add(live.offset, live.size);
}

Usage PlainModel::usage() const {
  const Bytes largest = holes_.by_size().empty() ? 0 : holes_.by_size().rbegin()->first;
  return {requested_, allocated_, held_ * kChunk - allocated_, largest};
}

bool PlainModel::FindHole(Bytes size, Bytes alignment, Bytes* offset) const {
  for (auto it = holes_.by_size().lower_bound({size, 0}); it != holes_.by_size().end(); ++it) {
    *offset = RoundUp(it->second, alignment);
    if (*offset + size <= it->second + it->first) return true;
  }
  return false;
}

// Candidates begin where a free run or a hole of it begins, or end where one ends.
PlainModel::Place PlainModel::FindExtension(Bytes size, Bytes alignment) const {
  Place best = {kNowhere, 0, 0};
  for (const auto& [offset, run] : free_.by_offset()) {
    const Bytes begin = offset;  // clang captures no structured binding
    const Bytes end = begin + run;
    const auto consider = [&](Bytes from, Bytes until) {
      from = RoundUp(from, alignment);
      if (from + size <= end) Consider(from, size, &best);
      if (until < begin + size) return;
      until = (until - size) / alignment * alignment;
      if (until >= begin) Consider(until, size, &best);
    };
    // The end of all addresses is no neighbour to lie close to.
    consider(begin, end == kChunks * kChunk ? 0 : end);
    auto hole = holes_.by_offset().lower_bound(begin);
    for (; hole != holes_.by_offset().end() && hole->first < end; ++hole) {
      consider(hole->first, hole->first + hole->second);
    }
  }
  return best;
}

void PlainModel::Consider(Bytes offset, Bytes size, Place* best) const {
  Place place = {offset, 0, 0};
  for (Bytes c = offset / kChunk; c <= (offset + size - 1) / kChunk; ++c) {
    if (!chunks_[c].mapped) ++place.missing;
    if (options_.fewest_chunks && chunks_[c].live == 0) ++place.taken;
  }
  if (best->offset == kNowhere || place.taken < best->taken ||
      (place.taken == best->taken && place.missing < best->missing)) {
    *best = place;
  }
}

bool PlainModel::MapUnder(const Place& place, Bytes size, Bytes requested) {
  const Bytes demand = std::max(peak_requested_, requested_ + requested);
  const Bytes allowed = demand + demand / 1000 * options_.slack_permille;
  const uint64_t chunks = std::max(allowed / kChunk, RoundUp(demand, kChunk) / kChunk);
  uint64_t fresh = chunks > held_ ? chunks - held_ : 0;
  fresh = std::min<uint64_t>(fresh, device_->left() / kChunk);
  const Bytes first = place.offset / kChunk;
  const Bytes last = (place.offset + size - 1) / kChunk;
  if (place.missing > fresh) UnmapFree(place.missing - fresh, first, last);
  if (!device_->Take(place.missing * kChunk)) return false;
  held_ += place.missing;
  mapped_ += place.missing;
  for (Bytes c = first; c <= last; ++c) {
    if (chunks_[c].mapped) continue;
    chunks_[c].mapped = true;
    holes_.Add(c * kChunk, kChunk);
  }
  return true;
}

// Up to `count` wholly free chunks, none of [first, last].
void PlainModel::UnmapFree(uint64_t count, Bytes first, Bytes last) {
  for (Bytes c = 0; c < kChunks && count > 0; ++c) {
    if (!chunks_[c].mapped || chunks_[c].live != 0 || (c >= first && c <= last)) continue;
    holes_.Cut(c * kChunk, kChunk);
    chunks_[c].mapped = false;
    device_->Give(kChunk);
    --held_;
    --count;
  }
}

}  // namespace tidemark::bench
