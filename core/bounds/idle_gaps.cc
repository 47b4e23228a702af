#include "core/bounds/idle_gaps.h"

#include <algorithm>

namespace tidemark::core {
namespace {

struct Use {
  OpIndex op;
  bool write;
};

constexpr size_t kMostUses = size_t{1} << 28;
constexpr Bytes kMostBytes = Bytes{1} << 60;  // a valid step's buffers have no more in all

// Uses per buffer in operation order: uses[first[b]] ... uses[first[b + 1]].
struct UseList {
  Array<uint32_t> first;
  Array<Use> uses;

  bool Build(const Step& step) {
    if (!first.Resize(step.buffers.size() + 1, 0)) return false;
    size_t total = 0;  // operations may share a run of accesses
    for (const StepOp& op : step.ops) {
      total += op.access_count;
      for (uint32_t a = 0; a < op.access_count; ++a) {
        ++first[step.accesses[op.first_access + a].buffer + 1];
      }
    }
    if (total > kMostUses || !uses.Resize(total)) return false;
    for (size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
    Array<uint32_t> next;
    if (!next.CopyFrom(first)) return false;
    for (OpIndex i = 0; i < step.ops.size(); ++i) {
      const StepOp& op = step.ops[i];
      for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
        const StepAccess& access = step.accesses[a];
        uses[next[access.buffer]++] = {i, access.write};
      }
    }
    return true;
  }
};

class GapBuilder {
 public:
  GapBuilder(const Step& step, const Machine& machine, IdleGaps* out)
      : step_(step), machine_(machine), out_(*out), n_(static_cast<uint32_t>(step.ops.size())) {}

  bool Allocate() {
    return list_.Build(step_) && out_.duration.Resize(n_) && out_.demand.Resize(n_) &&
           out_.dirty_demand.Resize(n_) && held_.Resize(n_, 0) && idle_.Resize(n_, 0) &&
           lasting_.Resize(n_, 0) && never_dirty_.Resize(n_, 0) &&
           out_.gaps.Reserve(list_.uses.size()) && out_.chain_gaps.Reserve(list_.uses.size()) &&
           out_.spans.Reserve(list_.uses.size());
  }

  BoundOutcome Run() {
    for (BufferIndex b = 0; b < step_.buffers.size(); ++b) {
      if (!AddBuffer(b)) return BoundOutcome::kNoMemory;
    }
    Merge(&out_.gaps);
    Merge(&out_.spans);
    return FillDemand();
  }

 private:
  bool AddBuffer(BufferIndex b) {
    const StepBuffer& buffer = step_.buffers[b];
    const Use* uses = &list_.uses[list_.first[b]];
    const uint32_t count = list_.first[b + 1] - list_.first[b];
    const auto bytes = static_cast<int64_t>(buffer.bytes);
    if (!buffer.movable || buffer.bytes < machine_.min_bytes) {
      if (buffer.persistent)
        Cover(&held_, 0, n_, bytes);
      else
        Cover(&held_, buffer.born, buffer.freed + 1, bytes);
      return true;
    }
    if (count == 0) return true;  // may stay away for good
    if (buffer.persistent)
      Cover(&held_, 0, n_, bytes);
    else
      Cover(&held_, uses[0].op, uses[count - 1].op + 1, bytes);
    return AddChains(buffer, uses, count);
  }

  // Gaps in cyclic order, a new chain at each write. Where no use writes, a persistent buffer is
  // never dirty; a transient one's content counts from its birth.
  bool AddChains(const StepBuffer& buffer, const Use* uses, uint32_t count) {
    uint32_t start = 0;
    while (start < count && !uses[start].write) ++start;
    const bool never_dirty = buffer.persistent && start == count;
    if (!buffer.persistent || never_dirty) start = 0;
    const auto bytes = static_cast<int64_t>(buffer.bytes);
    const uint32_t end = start + (buffer.persistent ? count : count - 1);
    for (uint32_t k = start; k < end; ++k) {
      const uint32_t from = OpAt(uses, count, k);
      const bool writes = uses[k % count].write;
      if (writes || k == start) {
        const uint32_t written = never_dirty ? kNeverDirty : writes ? from : buffer.born;
        if (k != start && !CloseChain()) return false;
        if (!OpenChain(written, bytes)) return false;
      }
      if (!AddGap({from, OpAt(uses, count, k + 1), bytes}, never_dirty)) return false;
    }
    return end == start || CloseChain();
  }

  bool OpenChain(uint32_t from, int64_t bytes) {
    CopyChain chain;
    chain.from = from;
    chain.first_gap = static_cast<uint32_t>(out_.chain_gaps.size());
    chain.bytes = bytes;
    return out_.chains.Append(chain);
  }

  bool AddGap(const IdleGap& gap, bool never_dirty) {
    if (gap.to == gap.from + 1) return true;
    Cover(&idle_, gap.from + 1, gap.to, gap.bytes);
    Cover(&lasting_, gap.from + 2, gap.to, gap.bytes);
    if (never_dirty) Cover(&never_dirty_, gap.from + 1, gap.to, gap.bytes);
    ++out_.chains[out_.chains.size() - 1].gap_count;
    return out_.chain_gaps.Append(gap) && out_.gaps.Append(Shifted(gap));
  }

  // Drops a chain without gaps; moves the others into the iteration they start in.
  bool CloseChain() {
    CopyChain& chain = out_.chains[out_.chains.size() - 1];
    if (chain.gap_count == 0) return out_.chains.Resize(out_.chains.size() - 1);
    IdleGap* gaps = &out_.chain_gaps[chain.first_gap];
    const bool never_dirty = chain.from == kNeverDirty;
    const uint32_t from = never_dirty ? gaps[0].from : chain.from;
    if (from >= n_) {
      for (uint32_t g = 0; g < chain.gap_count; ++g) {
        gaps[g].from -= n_;
        gaps[g].to -= n_;
      }
      if (!never_dirty) chain.from -= n_;
    }
    if (never_dirty) return true;
    return out_.spans.Append({chain.from, gaps[chain.gap_count - 1].to, chain.bytes});
  }

  IdleGap Shifted(const IdleGap& gap) const {
    const uint32_t back = gap.from >= n_ ? n_ : 0;
    return {gap.from - back, gap.to - back, gap.bytes};
  }

  uint32_t OpAt(const Use* uses, uint32_t count, uint32_t k) const {
    return uses[k % count].op + (k / count) * n_;
  }

  // Adds to operations [from, to), counted cyclically; to <= from + n.
  void Cover(Array<int64_t>* sums, uint32_t from, uint32_t to, int64_t bytes) const {
    for (uint32_t i = from; i < to; ++i) (*sums)[i < n_ ? i : i - n_] += bytes;
  }

  static void Merge(Array<IdleGap>* gaps) {
    std::sort(gaps->begin(), gaps->end(), [](const IdleGap& a, const IdleGap& b) {
      return a.from != b.from ? a.from < b.from : a.to < b.to;
    });
    Array<IdleGap>& all = *gaps;
    size_t kept = 0;
    for (size_t g = 0; g < all.size(); ++g) {
      const bool same =
          kept > 0 && all[kept - 1].from == all[g].from && all[kept - 1].to == all[g].to;
      if (same)
        all[kept - 1].bytes += all[g].bytes;
      else
        all[kept++] = all[g];
    }
    (void)all.Resize(kept);  // never grows
  }

  BoundOutcome FillDemand() {
    Bytes total = 0;  // no window's traffic is more than twice this
    for (const IdleGap& gap : out_.chain_gaps) {
      total += static_cast<Bytes>(gap.bytes);
      if (total <= kMostBytes) continue;
      out_.reason = "the gaps between uses hold more than 2^60 bytes in all";
      return BoundOutcome::kBadInput;
    }
    const auto budget = static_cast<int64_t>(std::min(machine_.device_budget, kMostBytes));
    const auto host = static_cast<int64_t>(std::min(machine_.host_budget, kMostBytes));
    bool fits = true;
    int64_t smallest = 0;
    for (uint32_t i = 0; i < n_; ++i) {
      out_.duration[i] = step_.ops[i].duration;
      out_.demand[i] = std::max<int64_t>(0, held_[i] - budget);
      out_.dirty_demand[i] = std::max<int64_t>(0, held_[i] - budget - never_dirty_[i]);
      fits = fits && out_.demand[i] <= std::min(idle_[i], host);
      smallest = std::max(smallest, held_[i] - idle_[i]);
    }
    out_.smallest_device_budget = static_cast<Bytes>(smallest);
    for (uint32_t i = 0; i < n_; ++i) {
      out_.exchanges_fit = out_.exchanges_fit && HostHoldsExchange(i, host);
    }
    if (fits) return BoundOutcome::kBound;
    out_.reason = "an operation needs more than the device and host budgets can hold";
    return BoundOutcome::kCannot;
  }

  // The copies of what was away during the operation before and of what is away during this one are
  // on the host together when they change places, and only some bytes can be both.
  bool HostHoldsExchange(uint32_t i, int64_t host) const {
    const int64_t before = out_.demand[i == 0 ? n_ - 1 : i - 1];
    return before + out_.demand[i] - std::min({before, out_.demand[i], lasting_[i]}) <= host;
  }

  const Step& step_;
  const Machine& machine_;
  IdleGaps& out_;
  const uint32_t n_;
  UseList list_;
  Array<int64_t>
      held_;  // bytes alive, but for movable ones before the first and after the last use
  Array<int64_t> idle_;     // of these, what can be away
  Array<int64_t> lasting_;  // of these, what can have been away during the operation before, too
  Array<int64_t> never_dirty_;  // of these, what a host copy from an earlier step serves
};

}  // namespace

BoundOutcome IdleGaps::Build(const Step& step, const Machine& machine) {
  size_t at = 0;
  const char* wrong = step.Validate(&at);
  if (wrong == nullptr) wrong = machine.Validate();
  if (wrong != nullptr) {
    reason = wrong;
    return BoundOutcome::kBadInput;
  }
  GapBuilder builder(step, machine, this);
  if (!builder.Allocate()) {
    reason = "no host memory for the list of gaps";
    return BoundOutcome::kNoMemory;
  }
  return builder.Run();
}

}  // namespace tidemark::core
