// Implementation of tests/replay/trace.h. Threads: none.

#include "tests/replay/trace.h"

#include <algorithm>
#include <map>

namespace tidemark::replay {
namespace {

std::vector<bool> LiveAtEnd(const Trace& trace) {
  std::vector<bool> live(trace.blocks.size());
  for (const Event& event : trace.events) live[event.block] = event.allocate;
  return live;
}

// Preexisting blocks that the iteration frees, the last one freed first.
std::vector<BlockId> FreedLastFirst(const Trace& trace) {
  std::vector<BlockId> freed;
  for (size_t i = trace.events.size(); i-- > 0;) {
    const Event& event = trace.events[i];
    if (!event.allocate && event.block < trace.preexisting) freed.push_back(event.block);
  }
  return freed;
}

// For each preexisting block of `trace`, the block that stands for it when the iteration is over.
// Of equal blocks, the last to be freed was replaced by the last to be made, and so on backwards:
// then each is freed as long after its successor was made as in the recording.
std::vector<BlockId> Successors(const Trace& trace, const std::vector<bool>& live) {
  std::map<std::pair<Bytes, uint64_t>, std::vector<BlockId>> spare;
  const auto kind = [&](BlockId id) {
    const BlockInfo& block = trace.blocks[id];
    return std::make_pair(block.bytes, uint64_t{block.stream} << 32 | block.process);
  };
  for (size_t id = trace.preexisting; id < trace.blocks.size(); ++id) {
    if (live[id]) spare[kind(static_cast<BlockId>(id))].push_back(static_cast<BlockId>(id));
  }
  std::vector<BlockId> successor(trace.preexisting);
  for (size_t id = 0; id < trace.preexisting; ++id) successor[id] = static_cast<BlockId>(id);
  for (const BlockId id : FreedLastFirst(trace)) {
    std::vector<BlockId>& same = spare[kind(id)];
    if (same.empty()) continue;
    successor[id] = same.back();
    same.pop_back();
  }
  return successor;
}

class Repeater {
 public:
  Repeater(const Trace& trace, Trace* out) : trace_(trace), out_(out), now_(trace.blocks.size()) {
    live_ = LiveAtEnd(trace);
    successor_ = Successors(trace, live_);
  }

  void First() {
    for (const Event& event : trace_.events) Play(event);
  }

  void Again() {
    out_->steps.push_back(out_->events.size());
    std::vector<BlockId> kept(trace_.preexisting);
    std::vector<bool> is_kept(trace_.blocks.size());
    for (size_t id = 0; id < trace_.preexisting; ++id) {
      if (!live_[successor_[id]]) continue;
      kept[id] = now_[successor_[id]];
      is_kept[successor_[id]] = true;
    }
    for (size_t id = 0; id < trace_.blocks.size(); ++id) {
      if (live_[id] && !is_kept[id]) out_->events.push_back({now_[id], false});
    }
    for (size_t id = 0; id < trace_.preexisting; ++id) {
      if (live_[successor_[id]]) {
        now_[id] = kept[id];
      } else {
        Play({static_cast<BlockId>(id), true});  // lost in the iteration: made anew
      }
    }
    for (size_t i = trace_.preexisting; i < trace_.events.size(); ++i) Play(trace_.events[i]);
  }

 private:
  void Play(const Event& event) {
    if (event.allocate) {
      now_[event.block] = static_cast<BlockId>(out_->blocks.size());
      out_->blocks.push_back(trace_.blocks[event.block]);
    }
    out_->events.push_back({now_[event.block], event.allocate});
  }

  const Trace& trace_;
  Trace* out_;
  std::vector<BlockId> now_;  // block of the output that stands for a block of the input
  std::vector<bool> live_;
  std::vector<BlockId> successor_;
};

}  // namespace

uint32_t Trace::processes() const {
  uint32_t last = 0;
  for (const BlockInfo& block : blocks) last = std::max(last, block.process);
  return last + 1;
}

uint32_t Trace::streams() const {
  uint32_t last = 0;
  for (const BlockInfo& block : blocks) last = std::max(last, block.stream);
  return last + 1;
}

Peak PeakRequested(const Trace& trace) {
  Peak peak;
  Bytes now = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Bytes bytes = trace.blocks[trace.events[i].block].bytes;
    now = trace.events[i].allocate ? now + bytes : now - bytes;
    if (now > peak.requested) peak = {now, i};
  }
  return peak;
}

std::string Check(const Trace& trace) {
  enum State : uint8_t { kUnseen, kLive, kFreed };
  std::vector<State> state(trace.blocks.size(), kUnseen);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const std::string where = "event " + std::to_string(i) + ": block ";
    if (event.block >= state.size()) return where + std::to_string(event.block) + " is unknown";
    const State needed = event.allocate ? kUnseen : kLive;
    if (state[event.block] != needed) {
      return where + std::to_string(event.block) +
             (event.allocate ? " is allocated twice" : " is freed while it is not live");
    }
    state[event.block] = event.allocate ? kLive : kFreed;
  }
  if (!std::is_sorted(trace.steps.begin(), trace.steps.end())) return "steps do not ascend";
  if (!trace.steps.empty() && trace.steps.back() > trace.events.size()) {
    return "a step begins after the last event";
  }
  return "";
}

Trace Repeat(const Trace& trace, int times) {
  Trace out;
  out.name = trace.name;
  out.preexisting = trace.preexisting;
  out.recorded_peak_reserved = trace.recorded_peak_reserved;
  out.recorded = trace.recorded;
  out.fixed_shape = true;
  out.steps = {trace.preexisting};
  Repeater repeater(trace, &out);
  repeater.First();
  for (int i = 1; i < times; ++i) repeater.Again();
  return out;
}

}  // namespace tidemark::replay
