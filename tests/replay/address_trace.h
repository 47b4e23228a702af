// Builds a trace from events that name blocks by address: addresses recur, blocks do not. What is
// freed without having been allocated was alive before the first event. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_ADDRESS_TRACE_H_
#define TIDEMARK_TESTS_REPLAY_ADDRESS_TRACE_H_

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "tests/replay/trace.h"

namespace tidemark::replay {

class AddressTrace {
 public:
  // False: the address is in use.
  bool Allocate(uint64_t address, Bytes bytes, uint64_t stream) {
    const auto block = static_cast<uint32_t>(blocks_.size());
    if (!live_.emplace(address, block).second) return false;
    blocks_.push_back({address, {bytes, StreamOf(stream), 0}, false});
    events_.push_back({block, true});
    return true;
  }

  void Free(uint64_t address, Bytes bytes, uint64_t stream) {
    const auto found = live_.find(address);
    if (found == live_.end()) {
      events_.push_back({static_cast<uint32_t>(blocks_.size()), false});
      blocks_.push_back({address, {bytes, StreamOf(stream), 0}, true});
      return;
    }
    events_.push_back({found->second, false});
    live_.erase(found);
  }

  bool IsLive(uint64_t address) const { return live_.count(address) != 0; }
  size_t events() const { return events_.size(); }

  // A block that was alive all along.
  void Keep(uint64_t address, Bytes bytes, uint64_t stream) {
    blocks_.push_back({address, {bytes, StreamOf(stream), 0}, true});
  }

  // Preexisting blocks first, by address; then the events as they came.
  void Build(Trace* trace) const {
    std::vector<uint32_t> before;
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].before) before.push_back(i);
    }
    std::stable_sort(before.begin(), before.end(), [this](uint32_t a, uint32_t b) {
      return blocks_[a].address < blocks_[b].address;
    });
    std::vector<BlockId> id(blocks_.size());
    const auto allocate = [&](uint32_t i) {
      id[i] = static_cast<BlockId>(trace->blocks.size());
      trace->blocks.push_back(blocks_[i].info);
      trace->events.push_back({id[i], true});
    };
    for (const uint32_t i : before) allocate(i);
    trace->preexisting = before.size();
    for (const Event& event : events_) {
      if (event.allocate) {
        allocate(event.block);
      } else {
        trace->events.push_back({id[event.block], false});
      }
    }
  }

 private:
  struct Entry {
    uint64_t address;
    BlockInfo info;
    bool before;
  };

  uint32_t StreamOf(uint64_t stream) {
    return streams_.emplace(stream, static_cast<uint32_t>(streams_.size())).first->second;
  }

  std::vector<Entry> blocks_;
  std::vector<Event> events_;
  std::unordered_map<uint64_t, uint32_t> live_;
  std::unordered_map<uint64_t, uint32_t> streams_;
};

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_ADDRESS_TRACE_H_
