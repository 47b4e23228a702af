#include "core/planner/sweep.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kWarmUp = 2;  // iterations before the one that is written down

struct FarthestOnTop {
  template <typename Entry>
  bool operator()(const Entry& a, const Entry& b) const {
    return a.key != b.key ? a.key < b.key : a.piece > b.piece;
  }
};
struct SoonestOnTop {
  template <typename Entry>
  bool operator()(const Entry& a, const Entry& b) const {
    return a.key != b.key ? a.key > b.key : a.piece > b.piece;
  }
};

template <typename Order, typename Heap, typename Entry>
[[nodiscard]] bool PushHeap(Heap* heap, const Entry& entry) {
  if (!heap->Append(entry)) return false;
  std::push_heap(heap->begin(), heap->end(), Order());
  return true;
}
template <typename Order, typename Heap>
void PopHeap(Heap* heap) {
  std::pop_heap(heap->begin(), heap->end(), Order());
  (void)heap->Resize(heap->size() - 1);  // shrinks
}

}  // namespace

Sweep::Result Sweep::Run(const Timeline& timeline, const Horizon& horizon, const Machine& machine,
                         const SweepOptions& options, Draft* draft) {
  timeline_ = &timeline;
  horizon_ = &horizon;
  machine_ = &machine;
  options_ = options;
  if (machine.device_budget < timeline.largest_floor()) return Result::kStuck;
  if (!Prepare()) return Result::kNoMemory;
  const uint32_t from = kWarmUp * n_, to = from + n_;
  for (uint32_t now = 0; now < to + n_; ++now) {
    const Result result = Boundary(now);
    if (result != Result::kDone) return result;
    links_.AdvanceTo(links_.now() + static_cast<double>(timeline_->step().ops[now % n_].duration));
    RunOp(now);
    if (out_of_memory_) return Result::kNoMemory;
  }
  return WriteDraft(from, to, draft) ? Result::kDone : Result::kNoMemory;
}

Sweep::Result Sweep::Boundary(uint32_t now) {
  const uint32_t i = now % n_;
  const StepOp& op = timeline_->step().ops[i];
  Bytes born = 0, missing = 0;
  for (uint32_t k = born_first_[i]; k < born_first_[i + 1]; ++k) {
    const BufferIndex b = born_list_[k];
    born += timeline_->buffer(b).bytes;
    next_use_[b] = timeline_->first_use(b);
  }
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    const BufferIndex b = timeline_->user(k);
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
      if (pieces_[p].where == Where::kHost) missing += pieces_[p].bytes;
    }
  }
  const Result result = MakeRoom(now, born + missing);
  if (result != Result::kDone) return result;
  used_ += born;
  if (!FetchMissing(now)) return Result::kNoMemory;
  uint32_t last = kNone;
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    const BufferIndex b = timeline_->user(k);
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
      if (pieces_[p].where != Where::kReturning) continue;
      last = last == kNone ? pieces_[p].back : std::max(last, pieces_[p].back);
    }
  }
  double horizon = static_cast<double>(op.duration);
  if (last != kNone && !links_.IsDone(kIn, last)) horizon += links_.TimeToDrain(kIn);
  if (options_.waits_out != nullptr) horizon += (*options_.waits_out)[(i + 1) % n_];
  if (!Prefetch(now, horizon) || !CopyOutAhead(now, horizon)) return Result::kNoMemory;
  if (last != kNone) links_.AdvanceUntilDone(kIn, last);
  return Result::kDone;
}

Sweep::Result Sweep::MakeRoom(uint32_t now, Bytes needed) {
  while (used_ + needed > machine_->device_budget) {
    const Result result = EvictOne(now);
    if (result != Result::kDone) return result;
  }
  return Result::kDone;
}

bool Sweep::IsEvictable(const Entry& entry, uint32_t now) const {
  const Piece& piece = pieces_[entry.piece];
  return piece.where == Where::kDevice && piece.copy != kNone && rank_[piece.buffer] == entry.key &&
         next_at_[piece.buffer] != kNone && next_at_[piece.buffer] > now;
}

// First what is copied out already and must leave anyway; then what is on its way, soonest done
// first; then what is not copied yet; last what could have stayed.
Sweep::Result Sweep::EvictOne(uint32_t now) {
  uint32_t done = kNone, pending = kNone, staying = kNone;
  aside_.Clear();
  while (!evictable_.empty() && done == kNone) {
    const Entry top = evictable_[0];
    if (!IsEvictable(top, now)) {
      PopHeap<FarthestOnTop>(&evictable_);
      continue;
    }
    const bool is_done = IsCopyDone(pieces_[top.piece]);
    if (is_done && horizon_->Holds(top.key, now)) {
      staying = top.piece;
      break;
    }
    PopHeap<FarthestOnTop>(&evictable_);
    if (is_done) {
      done = top.piece;
    } else {
      if (!aside_.Append(top)) return Result::kNoMemory;
      if (pending == kNone || pieces_[top.piece].copy < pieces_[pending].copy) pending = top.piece;
    }
  }
  for (const Entry& entry : aside_) {
    if (!PushHeap<FarthestOnTop>(&evictable_, entry)) return Result::kNoMemory;
  }
  aside_.Clear();
  if (done == kNone && staying != kNone && ReturnsInTime(staying, now)) done = staying;
  if (done == kNone && pending == kNone) {
    while (!dirty_.empty() && pending == kNone) {
      const Entry top = dirty_[0];
      PopHeap<FarthestOnTop>(&dirty_);
      const Piece& piece = pieces_[top.piece];
      if (piece.where != Where::kDevice || piece.copy != kNone ||
          dirty_rank_[piece.buffer] != top.key) {
        continue;
      }
      if (next_at_[piece.buffer] == now || host_used_ + piece.bytes > machine_->host_budget) {
        if (!aside_.Append(top)) return Result::kNoMemory;
        continue;
      }
      pending = top.piece;
      if (!PutOut(pending, now)) return Result::kNoMemory;
    }
    for (const Entry& entry : aside_) {
      if (!PushHeap<FarthestOnTop>(&dirty_, entry)) return Result::kNoMemory;
    }
    aside_.Clear();
  }
  uint32_t victim = done != kNone ? done : pending != kNone ? pending : staying;
  if (victim == kNone) return Result::kStuck;
  if (!IsCopyDone(pieces_[victim])) links_.AdvanceUntilDone(kOut, pieces_[victim].copy);
  return Evict(victim, now) ? Result::kDone : Result::kNoMemory;
}

uint32_t Sweep::TakeEvictable(uint32_t now, uint32_t use) {
  uint32_t taken = kNone;
  aside_.Clear();
  while (!evictable_.empty() && taken == kNone) {
    const Entry top = evictable_[0];
    if (IsEvictable(top, now)) {
      if (top.key <= use || next_at_[pieces_[top.piece].buffer] <= use) break;
      if (IsCopyDone(pieces_[top.piece])) {
        taken = top.piece;
      } else if (!aside_.Append(top)) {
        out_of_memory_ = true;
      }
    }
    PopHeap<FarthestOnTop>(&evictable_);
  }
  for (const Entry& entry : aside_) {
    if (!PushHeap<FarthestOnTop>(&evictable_, entry)) out_of_memory_ = true;
  }
  return taken;
}

bool Sweep::PutOut(uint32_t p, uint32_t now) {
  Piece& piece = pieces_[p];
  piece.copy = links_.Put(kOut, piece.bytes);
  piece.issued = now;
  host_used_ += piece.bytes;
  if (piece.copy == Links::kNoMemoryLeft) return false;
  return PushHeap<FarthestOnTop>(&evictable_, Entry{rank_[piece.buffer], p});
}

bool Sweep::PutIn(uint32_t p, uint32_t now) {
  Piece& piece = pieces_[p];
  piece.back = links_.Put(kIn, piece.bytes);
  piece.where = Where::kReturning;
  CountMissing(p, false);
  used_ += piece.bytes;
  if (piece.record != kNone) records_[piece.record].reserve = now;
  return piece.back != Links::kNoMemoryLeft;
}

bool Sweep::Evict(uint32_t p, uint32_t now) {
  Piece& piece = pieces_[p];
  const BufferIndex b = piece.buffer;
  const uint32_t first = timeline_->first_use(b);
  const uint32_t use = (next_use_[b] == first ? timeline_->first_use(b + 1) : next_use_[b]) - 1;
  piece.record = static_cast<uint32_t>(records_.size());
  piece.where = Where::kHost;
  CountMissing(p, true);
  used_ -= piece.bytes;
  const bool is_old = piece.copy == kOldCopy;
  const int64_t issue = is_old ? int64_t{now} : int64_t{piece.issued};
  const Record record{p, use, now, kNone, base_[b], issue, is_old ? now : piece.copy};
  return records_.Append(record) && PushHeap<SoonestOnTop>(&missing_, Entry{next_at_[b], p});
}

bool Sweep::FetchMissing(uint32_t now) {
  const uint32_t i = now % n_;
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    const BufferIndex b = timeline_->user(k);
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
      if (pieces_[p].where == Where::kHost && !PutIn(p, now)) return false;
    }
  }
  return true;
}

uint32_t Sweep::TopMissing() {
  while (!missing_.empty()) {
    const Entry top = missing_[0];
    const Piece& piece = pieces_[top.piece];
    if (piece.where == Where::kHost && next_at_[piece.buffer] == top.key) return top.piece;
    PopHeap<SoonestOnTop>(&missing_);
  }
  return kNone;
}

bool Sweep::Prefetch(uint32_t now, double horizon) {
  while (links_.TimeToDrain(kIn) < horizon && !out_of_memory_) {
    const uint32_t p = TopMissing();
    if (p == kNone) return true;
    const uint32_t use = next_at_[pieces_[p].buffer];
    const uint32_t record = pieces_[p].record;
    const bool left_just_now = record != kNone && records_[record].release == now;
    const Bytes stays_away = MissingUntil(use, now) - pieces_[p].bytes;
    if (left_just_now || horizon_->Excess(use, now) > stays_away) return true;
    while (used_ + pieces_[p].bytes > machine_->device_budget) {
      if (!options_.evicts_to_prefetch) return true;
      const uint32_t victim = TakeEvictable(now, use);
      if (victim == kNone) return !out_of_memory_;
      if (!Evict(victim, now)) return false;
    }
    if (!PutIn(p, now)) return false;
  }
  return !out_of_memory_;
}

bool Sweep::CopyOutAhead(uint32_t now, double horizon) {
  while (!dirty_.empty() && links_.TimeToDrain(kOut) < horizon) {
    const Entry top = dirty_[0];
    const Piece& piece = pieces_[top.piece];
    const bool is_stale =
        piece.where != Where::kDevice || piece.copy != kNone ||
        dirty_rank_[piece.buffer] != top.key || dirty_key_[piece.buffer] <= now ||
        horizon_->Excess(dirty_key_[piece.buffer], now) <= leaving_[dirty_key_[piece.buffer] % n_];
    if (!is_stale && host_used_ + piece.bytes > machine_->host_budget) return true;
    PopHeap<FarthestOnTop>(&dirty_);
    if (!is_stale) leaving_[dirty_key_[piece.buffer] % n_] += piece.bytes;
    if (!is_stale && !PutOut(top.piece, now)) return false;
    if (is_stale && dirty_rank_[piece.buffer] == top.key && piece.where == Where::kDevice &&
        piece.copy == kNone &&
        !PushHeap<FarthestOnTop>(&spare_, Entry{spare_key_[piece.buffer], top.piece})) {
      return false;
    }
  }
  return options_.spares <= 0 || CopySpares(now, horizon);
}

bool Sweep::CopySpares(uint32_t now, double horizon) {
  while (!spare_.empty() && links_.TimeToDrain(kOut) < horizon) {
    const Entry top = spare_[0];
    const Piece& piece = pieces_[top.piece];
    const bool is_stale = piece.where != Where::kDevice || piece.copy != kNone ||
                          spare_key_[piece.buffer] != top.key || top.key <= now;
    if (!is_stale && host_used_ + piece.bytes > machine_->host_budget / 2) return true;
    PopHeap<FarthestOnTop>(&spare_);
    if (!is_stale && !PutOut(top.piece, now)) return false;
  }
  return true;
}

// Counted by the operation of the next use, which lies within one iteration from now.
void Sweep::CountMissing(uint32_t p, bool is_more) {
  const Piece& piece = pieces_[p];
  for (uint32_t i = next_at_[piece.buffer] % n_ + 1; i <= n_; i += i & (~i + 1)) {
    missing_until_[i] += is_more ? piece.bytes : ~piece.bytes + 1;
  }
}

Bytes Sweep::MissingUntil(uint32_t use, uint32_t now) const {
  const auto before = [this](uint32_t i) {
    Bytes sum = 0;
    for (; i > 0; i &= i - 1) sum += missing_until_[i];
    return sum;
  };
  const uint32_t from = now % n_, to = use % n_;
  const Bytes until = before(to + 1) - before(from);
  return to >= from ? until : until + before(n_);
}

bool Sweep::ReturnsInTime(uint32_t p, uint32_t now) const {
  if (options_.spares <= 0) return false;
  const Piece& piece = pieces_[p];
  const uint32_t use = next_at_[piece.buffer];
  double time = time_until_[use % n_] - time_until_[now % n_];
  if (use % n_ <= now % n_) time += time_until_[n_];
  const double bytes =
      links_.Backlog(kIn) + static_cast<double>(MissingUntil(use, now) + piece.bytes);
  return bytes <= time * options_.spares * machine_->in_rate_duplex / 1e9;
}

uint32_t Sweep::Shifted(uint32_t at, uint32_t use) const {
  if (options_.shifts == nullptr) return at;
  const int64_t rank = int64_t{at} + (*options_.shifts)[use];
  return rank < 0 ? 0 : static_cast<uint32_t>(rank);
}

void Sweep::DropCopy(Piece* piece) {
  if (piece->copy == kNone) return;
  piece->copy = kNone;
  host_used_ -= piece->bytes;
}

void Sweep::RunOp(uint32_t now) {
  const uint32_t i = now % n_;
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    AfterUse(now, timeline_->user(k));
  }
  leaving_[i] = 0;
  for (uint32_t k = freed_first_[i]; k < freed_first_[i + 1]; ++k) {
    const BufferIndex b = freed_list_[k];
    used_ -= timeline_->buffer(b).bytes;
    next_at_[b] = kNone;
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) DropCopy(&pieces_[p]);
  }
}

void Sweep::AfterUse(uint32_t now, BufferIndex b) {
  const uint32_t u = next_use_[b];
  const Use& use = timeline_->use(u);
  base_[b] = now - use.op;
  next_at_[b] = use.next == kNone ? kNone : base_[b] + use.next;
  rank_[b] = next_at_[b] == kNone ? kNone : Shifted(next_at_[b], u);
  next_use_[b] = u + 1;
  if (timeline_->buffer(b).persistent && u + 1 == timeline_->first_use(b + 1)) {
    next_use_[b] = timeline_->first_use(b);
  }
  dirty_key_[b] = aim_[u] == 0 ? kNone : now + aim_[u];
  dirty_rank_[b] = dirty_key_[b] == kNone ? kNone : Shifted(dirty_key_[b], u);
  spare_key_[b] = spare_aim_[u] == 0 ? kNone : now + spare_aim_[u];
  const bool keeps =
      options_.keeps_copies && (aim_[u] != 0 || (options_.spares > 0 && spare_aim_[u] != 0));
  for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
    Piece& piece = pieces_[p];
    piece.where = Where::kDevice;
    if (use.write || !keeps) DropCopy(&piece);
    if (next_at_[b] == kNone) continue;
    bool pushed = true;
    if (piece.copy != kNone) {
      pushed = PushHeap<FarthestOnTop>(&evictable_, Entry{rank_[b], p});
    } else if (dirty_key_[b] != kNone) {
      pushed = PushHeap<FarthestOnTop>(&dirty_, Entry{dirty_rank_[b], p});
    } else if (spare_key_[b] != kNone) {
      pushed = PushHeap<FarthestOnTop>(&spare_, Entry{spare_key_[b], p});
    }
    if (!pushed) out_of_memory_ = true;
  }
}

bool Sweep::WriteDraft(uint32_t from, uint32_t to, Draft* draft) {
  draft->aways.Clear();
  for (const Record& record : records_) {
    if (record.release < from || record.release >= to) continue;
    const Piece& piece = pieces_[record.piece];
    const int64_t base = record.base;
    Away away{piece.buffer,
              record.use,
              piece.offset,
              piece.bytes,
              record.release - record.base,
              record.reserve - record.base,
              static_cast<int32_t>(record.issue - base),
              record.order};
    if (!draft->aways.Append(away)) return false;
  }
  // A window that goes across the iteration's end may have been left early once and late once.
  Array<Away>& aways = draft->aways;
  std::sort(aways.begin(), aways.end(), [](const Away& a, const Away& b) {
    if (a.use != b.use) return a.use < b.use;
    return a.offset != b.offset ? a.offset < b.offset : a.release < b.release;
  });
  size_t kept = 0;
  for (size_t k = 0; k < aways.size(); ++k) {
    const bool repeats = kept > 0 && aways[kept - 1].use == aways[k].use &&
                         aways[kept - 1].offset == aways[k].offset;
    aways[repeats ? kept - 1 : kept++] = aways[k];
  }
  return aways.Resize(kept);
}

}  // namespace tidemark::core::planner
