// Implementation of tests/bench/allocator/packing.h. Threads: none.

#include "tests/bench/allocator/packing.h"

#include <numeric>

namespace tidemark::bench {
namespace {

constexpr Bytes kRounding = 512;

struct Life {
  Bytes size;
  uint32_t begin;
  uint32_t end;  // the event that frees it
  double Length() const { return static_cast<double>(end) - begin; }
};

struct Placed {
  Bytes offset;
  Bytes end;
  uint32_t born;
  uint32_t dies;
};

std::vector<Life> Lives(const replay::Trace& trace) {
  std::vector<Life> lives(trace.blocks.size());
  const auto last = static_cast<uint32_t>(trace.events.size());
  for (uint32_t i = 0; i < last; ++i) {
    const replay::Event& event = trace.events[i];
    const Bytes bytes = trace.blocks[event.block].bytes;
    if (event.allocate) {
      lives[event.block] = {RoundUp(bytes == 0 ? 1 : bytes, kRounding), i, last};
    } else {
      lives[event.block].end = i;
    }
  }
  return lives;
}

// `placed` is in order of offsets.
Bytes SmallestGap(const std::vector<Placed>& placed, const Life& life) {
  Bytes best = 0;
  Bytes best_gap = ~Bytes{0};
  Bytes reached = 0;
  for (const Placed& p : placed) {
    if (p.born >= life.end || p.dies <= life.begin) continue;
    if (p.offset > reached) {
      const Bytes gap = p.offset - reached;
      if (gap >= life.size && gap < best_gap) best = reached, best_gap = gap;
      if (gap == life.size) return reached;
    }
    reached = std::max(reached, p.end);
  }
  return best_gap == ~Bytes{0} ? reached : best;
}

template <typename Key>
Bytes Pack(const std::vector<Life>& lives, Key key) {
  std::vector<uint32_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key(lives[a]) > key(lives[b]); });
  std::vector<Placed> placed;
  placed.reserve(lives.size());
  Bytes top = 0;
  for (const uint32_t i : order) {
    const Life& life = lives[i];
    const Bytes offset = SmallestGap(placed, life);
    const Placed now = {offset, offset + life.size, life.begin, life.end};
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), now,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    placed.insert(at, now);
    top = std::max(top, now.end);
  }
  return top;
}

}  // namespace

Bytes OfflinePacking(const replay::Trace& trace) {
  const std::vector<Life> lives = Lives(trace);
  const auto size = [](const Life& l) { return static_cast<double>(l.size); };
  const Bytes by_size = Pack(lives, size);
  const Bytes by_area = Pack(lives, [&](const Life& l) { return size(l) * l.Length(); });
  const Bytes by_life = Pack(lives, [](const Life& l) { return l.Length(); });
  return std::min({by_size, by_area, by_life});
}

}  // namespace tidemark::bench
