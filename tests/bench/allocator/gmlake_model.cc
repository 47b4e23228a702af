// Implementation of tests/bench/allocator/gmlake_model.h. Threads: none.

#include "tests/bench/allocator/gmlake_model.h"

namespace tidemark::bench {
namespace {

constexpr Bytes kHandle = 2 * kMiB;
constexpr Bytes kSmallRequest = kMiB;
constexpr uint64_t kMidSegment = 10;     // handles
constexpr uint64_t kOwnSegmentFrom = 5;  // handles

}  // namespace

bool GmlakeModel::Allocate(BlockId id, Bytes bytes, uint32_t stream) {
  if (bytes <= kSmallRequest) {
    bool served = small_.Allocate(id, bytes, stream);
    if (!served) ReleaseSegments();
    return served || small_.Allocate(id, bytes, stream);
  }
  const uint64_t count = RoundUp(bytes, kHandle) / kHandle;
  Live live;
  live.requested = bytes;
  live.count = count;
  bool served = BestFit(count, stream, &live) || ReuseStitched(count, stream, &live) ||
                Stitch(count, stream, &live) || NewSegment(count, stream, &live);
  if (!served) {
    ReleaseSegments();
    small_.ReleaseCached();
    served = NewSegment(count, stream, &live) || Stitch(count, stream, &live);
  }
  if (!served) return false;
  allocated_ += count;
  requested_ += bytes;
  live_.emplace(id, std::move(live));
  return true;
}

void GmlakeModel::Free(BlockId id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return small_.Free(id);
  const Live live = std::move(found->second);
  live_.erase(found);
  allocated_ -= live.count;
  requested_ -= live.requested;
  for (const Handle part : live.parts) GivePart(part);
}

Usage GmlakeModel::usage() const {
  Usage usage = small_.usage();
  usage.requested += requested_;
  usage.allocated += allocated_ * kHandle;
  usage.free_held += (held_ - allocated_) * kHandle;
  for (const std::set<Key>* free : {&free_, &free_stitched_}) {
    for (const Key& key : *free) {
      usage.largest_free = std::max(usage.largest_free, std::get<1>(key) * kHandle);
    }
  }
  return usage;
}

bool GmlakeModel::BestFit(uint64_t count, uint32_t stream, Live* live) {
  const auto it = free_.lower_bound({stream, count, 0});
  if (it == free_.end() || std::get<0>(*it) != stream) return false;
  const Handle first = std::get<2>(*it);
  Split(first, count);
  TakePart(first, live);
  return true;
}

bool GmlakeModel::ReuseStitched(uint64_t count, uint32_t stream, Live* live) {
  const auto it = free_stitched_.lower_bound({stream, count, 0});
  if (it == free_stitched_.end() || std::get<0>(*it) != stream) return false;
  if (std::get<1>(*it) > count * options_.reuse_limit) return false;
  const std::vector<Run> runs = stitched_.at(std::get<2>(*it)).runs;
  for (const Run& run : runs) {
    if (count == 0) break;
    const uint64_t taken = std::min(run.count, count);
    TakeRun({run.first, taken}, live);
    count -= taken;
  }
  return true;
}

bool GmlakeModel::Stitch(uint64_t count, uint32_t stream, Live* live) {
  if (count * kHandle < options_.fragment_limit) return false;
  Stitched stitched;
  stitched.stream = stream;
  stitched.count = count;
  auto it = free_.lower_bound({stream + 1, 0, 0});
  uint64_t sum = 0;
  while (it != free_.begin() && sum < count) {
    --it;
    if (std::get<0>(*it) != stream) break;
    const uint64_t taken = std::min(std::get<1>(*it), count - sum);
    stitched.runs.push_back({std::get<2>(*it), taken});
    sum += taken;
  }
  if (sum < count || stitched.runs.size() < 2) return false;
  const uint64_t number = next_stitched_++;
  for (const Run& run : stitched.runs) {
    Split(run.first, run.count);
    for (Handle h = run.first; h < run.first + run.count; ++h) aliases_[h].push_back(number);
  }
  const std::vector<Run> runs = stitched.runs;
  free_stitched_.insert({stream, count, number});
  stitched_.emplace(number, std::move(stitched));
  for (const Run& run : runs) TakePart(run.first, live);
  mapped_ += count;
  return true;
}

bool GmlakeModel::NewSegment(uint64_t count, uint32_t stream, Live* live) {
  const uint64_t size = count < kOwnSegmentFrom ? kMidSegment : count;
  if (!device_->Take(size * kHandle)) return false;
  held_ += size;
  mapped_ += size;
  const Handle first = next_handle_;
  next_handle_ += size;
  blocks_[first] = {size, stream, next_segment_++, false};
  Index(first);
  Split(first, count);
  TakePart(first, live);
  return true;
}

// A segment that is one free block again goes back, and every stitched block over its handles.
void GmlakeModel::ReleaseSegments() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const Run run = {it->first, it->second.count};
    const uint64_t segment = it->second.segment;
    const auto next = std::next(it);
    const bool first = it == blocks_.begin() || std::prev(it)->second.segment != segment;
    const bool last = next == blocks_.end() || next->second.segment != segment;
    if (first && last && !it->second.allocated) {
      Unindex(run.first);
      ReleaseHandles(run);
      blocks_.erase(it);
    }
    it = next;
  }
}

void GmlakeModel::ReleaseHandles(Run run) {
  for (Handle h = run.first; h < run.first + run.count; ++h) {
    const auto found = aliases_.find(h);
    if (found == aliases_.end()) continue;
    for (const uint64_t number : found->second) {
      const auto stitched = stitched_.find(number);
      if (stitched == stitched_.end()) continue;
      free_stitched_.erase({stitched->second.stream, stitched->second.count, number});
      stitched_.erase(stitched);
    }
    aliases_.erase(found);
  }
  held_ -= run.count;
  device_->Give(run.count * kHandle);
}

void GmlakeModel::Index(Handle first) {
  const Primitive& block = blocks_.at(first);
  free_.insert({block.stream, block.count, first});
}

void GmlakeModel::Unindex(Handle first) {
  const Primitive& block = blocks_.at(first);
  free_.erase({block.stream, block.count, first});
}

// The free block at `first` keeps `count` handles, the rest becomes a free block of its own.
void GmlakeModel::Split(Handle first, uint64_t count) {
  Primitive& block = blocks_.at(first);
  if (block.count == count) return;
  Unindex(first);
  Primitive rest = block;
  rest.count -= count;
  block.count = count;
  blocks_[first + count] = rest;
  Index(first);
  Index(first + count);
}

void GmlakeModel::TakePart(Handle first, Live* live) {
  Unindex(first);
  Primitive& block = blocks_.at(first);
  block.allocated = true;
  live->parts.push_back(first);
  Use({first, block.count}, true);
}

// Handles of a stitched block: since it was made, primitive blocks may have merged and split.
void GmlakeModel::TakeRun(Run run, Live* live) {
  while (run.count != 0) {
    const Handle start = std::prev(blocks_.upper_bound(run.first))->first;
    if (start < run.first) Split(start, run.first - start);
    const uint64_t taken = std::min(blocks_.at(run.first).count, run.count);
    Split(run.first, taken);
    TakePart(run.first, live);
    run = {run.first + taken, run.count - taken};
  }
}

void GmlakeModel::GivePart(Handle first) {
  auto it = blocks_.find(first);
  it->second.allocated = false;
  Use({first, it->second.count}, false);
  const auto mergeable = [&](std::map<Handle, Primitive>::iterator other) {
    return other != blocks_.end() && !other->second.allocated &&
           other->second.segment == it->second.segment;
  };
  if (const auto next = std::next(it); mergeable(next)) {
    Unindex(next->first);
    it->second.count += next->second.count;
    blocks_.erase(next);
  }
  if (it != blocks_.begin() && mergeable(std::prev(it))) {
    const auto previous = std::prev(it);
    Unindex(previous->first);
    previous->second.count += it->second.count;
    blocks_.erase(it);
    it = previous;
  }
  Index(it->first);
}

void GmlakeModel::Use(Run run, bool used) {
  for (Handle h = run.first; h < run.first + run.count; ++h) {
    const auto found = aliases_.find(h);
    if (found == aliases_.end()) continue;
    for (const uint64_t number : found->second) {
      const auto at = stitched_.find(number);
      if (at == stitched_.end()) continue;  // its other handles went back to the device
      Stitched& stitched = at->second;
      const Key key = {stitched.stream, stitched.count, number};
      if (used && stitched.used++ == 0) free_stitched_.erase(key);
      if (!used && --stitched.used == 0) free_stitched_.insert(key);
    }
  }
}

}  // namespace tidemark::bench
