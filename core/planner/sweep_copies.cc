// The sweep's choices: what leaves, what comes back, what is copied out ahead.

#include <algorithm>

#include "core/planner/heap.h"
#include "core/planner/sweep.h"

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostRefused = 32;  // pieces that the host has no room for, until none is tried
// What a piece costs that leaves and returns, in pieces that are looked at after a use.
constexpr uint64_t kWorkToLeave = 16;
constexpr uint64_t kWorkToPop = 1;  // an entry of a heap

}  // namespace

bool Sweep::IsEvictable(const Entry& entry, uint32_t now) const {
  const Piece& piece = pieces_[entry.piece];
  return piece.where == Where::kDevice && piece.copy != kNone &&
         Ranked(state_[piece.buffer].rank, piece) == entry.key &&
         state_[piece.buffer].next_at != kNone && state_[piece.buffer].next_at > now;
}

// First what is copied out already and must leave anyway; then what could have stayed, if it is
// back in time; then what is on its way, soonest done first; then what is not copied yet.
Sweep::Result Sweep::EvictOne(uint32_t now) {
  Victims found;
  if (!FindCopied(now, &found)) return Result::kNoMemory;
  uint32_t victim = found.done;
  if (victim == kNone && found.staying != kNone && ReturnsInTime(found.staying, now)) {
    victim = found.staying;
  }
  if (victim == kNone) victim = found.pending;
  if (victim == kNone && !CopyDirtyNow(now, &victim)) return Result::kNoMemory;
  if (victim == kNone) victim = found.staying;
  if (victim == kNone && !CopySpareNow(now, &victim)) return Result::kNoMemory;
  if (victim == kNone) return Result::kStuck;
  if (!IsCopyDone(pieces_[victim])) AdvanceUntilDone(kOut, pieces_[victim].copy);
  return Evict(victim, now) ? Result::kDone : Result::kNoMemory;
}

// Among the pieces with a copy: the farthest used one whose copy is done, if it is beyond the
// horizon, else of those on the way before it the one that is done soonest.
bool Sweep::FindCopied(uint32_t now, Victims* found) {
  if (!NoteCopied()) return false;
  while (!evictable_.empty() && !IsEvictable(evictable_[0], now)) {
    PopEvictable();
  }
  const bool is_any = !evictable_.empty();
  const Entry top = is_any ? evictable_[0] : Entry{0, kNone};
  if (is_any && !horizon_->Holds(top.key, now)) {
    found->done = top.piece;
    PopEvictable();
    return true;
  }
  found->staying = top.piece;
  for (uint32_t copy = known_done_; copy < copied_.size() && found->pending == kNone; ++copy) {
    const Entry& entry = copied_[copy];
    const bool counts = pieces_[entry.piece].copy == copy && IsEvictable(entry, now);
    if (counts && (!is_any || FarthestOnTop()(top, entry))) found->pending = entry.piece;
  }
  return true;
}

void Sweep::PopEvictable() {
  PopHeap<FarthestOnTop>(&evictable_);
  work_ += kWorkToPop;
}

// What has been copied out since the last time goes where it is found by its next use.
bool Sweep::NoteCopied() {
  for (; known_done_ < copied_.size() && IsDone(kOut, known_done_); ++known_done_) {
    const Entry& entry = copied_[known_done_];
    if (pieces_[entry.piece].copy != known_done_) continue;
    if (!PushHeap<FarthestOnTop>(&evictable_, entry)) return false;
  }
  return true;
}

bool Sweep::AddCopied(uint32_t p) {
  const Piece& piece = pieces_[p];
  const Entry entry{Ranked(state_[piece.buffer].rank, piece), p};
  if (piece.copy == kOldCopy || piece.copy < known_done_) {
    return PushHeap<FarthestOnTop>(&evictable_, entry);
  }
  copied_[piece.copy] = entry;
  return true;
}

bool Sweep::IsDirty(const Entry& entry) const {
  const Piece& piece = pieces_[entry.piece];
  return piece.where == Where::kDevice && piece.copy == kNone &&
         Ranked(state_[piece.buffer].dirty_rank, piece) == entry.key;
}

bool Sweep::IsSpare(const Entry& entry, uint32_t now) const {
  const Piece& piece = pieces_[entry.piece];
  return piece.where == Where::kDevice && piece.copy == kNone &&
         state_[piece.buffer].spare_key == entry.key && entry.key > now;
}

bool Sweep::Push(Array<Entry>* heap, uint32_t Piece::*entry, uint32_t key, uint32_t p) {
  if (pieces_[p].*entry == key) return true;
  pieces_[p].*entry = key;
  return PushHeap<FarthestOnTop>(heap, Entry{key, p});
}

Sweep::Entry Sweep::Pop(Array<Entry>* heap, uint32_t Piece::*entry) {
  const Entry top = (*heap)[0];
  PopHeap<FarthestOnTop>(heap);
  work_ += kWorkToPop;
  if (pieces_[top.piece].*entry == top.key) pieces_[top.piece].*entry = kNoEntry;
  return top;
}

// The top piece of `heap` that counts and is idle now; its copy is put. kNone: there is none.
template <typename Counts>
bool Sweep::CopyOutNow(uint32_t now, Array<Entry>* heap, uint32_t Piece::*entry, Counts counts,
                       uint32_t* victim) {
  aside_.Clear();
  uint32_t refused = 0;
  while (!heap->empty() && *victim == kNone && refused < kMostRefused) {
    const Entry top = Pop(heap, entry);
    if (!counts(top)) continue;
    const Piece& piece = pieces_[top.piece];
    const bool has_room = host_used_ + piece.bytes <= machine_->host_budget;
    if (!has_room || state_[piece.buffer].next_at == now) {
      refused += has_room ? 0 : 1;
      if (!aside_.Append(top)) return false;
      continue;
    }
    *victim = top.piece;
    if (!PutOut(top.piece, now)) return false;
  }
  for (const Entry& back : aside_) {
    if (!Push(heap, entry, back.key, back.piece)) return false;
  }
  aside_.Clear();
  return true;
}

// The farthest used piece without a copy.
bool Sweep::CopyDirtyNow(uint32_t now, uint32_t* victim) {
  return CopyOutNow(
      now, &dirty_, &Piece::dirty_entry, [this](const Entry& e) { return IsDirty(e); }, victim);
}

// What need not leave for what comes later, where nothing else is left.
bool Sweep::CopySpareNow(uint32_t now, uint32_t* victim) {
  return CopyOutNow(
      now, &spare_, &Piece::spare_entry, [=, this](const Entry& e) { return IsSpare(e, now); },
      victim);
}

uint32_t Sweep::TakeEvictable(uint32_t now, uint32_t use) {
  if (!NoteCopied()) out_of_memory_ = true;
  while (!evictable_.empty()) {
    const Entry top = evictable_[0];
    const bool counts = IsEvictable(top, now);
    if (counts && (top.key <= use || state_[pieces_[top.piece].buffer].next_at <= use))
      return kNone;
    PopEvictable();
    if (counts) return top.piece;
  }
  return kNone;
}

bool Sweep::Put(Direction direction, Bytes bytes, uint32_t* copy) {
  Array<double>& marks = marks_[direction];
  const double before = marks.empty() ? 0 : marks[marks.size() - 1];
  *copy = static_cast<uint32_t>(marks.size());
  if (!marks.Append(before + static_cast<double>(bytes))) return false;
  links_.PutUntil(direction, marks[*copy]);
  return true;
}

bool Sweep::PutOut(uint32_t p, uint32_t now) {
  Piece& piece = pieces_[p];
  if (!Put(kOut, piece.bytes, &piece.copy)) return false;
  piece.issued = now;
  host_used_ += piece.bytes;
  ++state_[piece.buffer].copies;
  return copied_.Append({0, p}) && AddCopied(p);
}

bool Sweep::PutIn(uint32_t p, uint32_t now) {
  Piece& piece = pieces_[p];
  if (!Put(kIn, piece.bytes, &piece.back)) return false;
  if (is_host_short_ && !returns_.Append(piece.record)) return false;
  piece.where = Where::kReturning;
  CountMissing(p, false);
  used_ += piece.bytes;
  if (piece.record != kNone) records_[piece.record].reserve = now;
  return true;
}

bool Sweep::Evict(uint32_t p, uint32_t now) {
  Piece& piece = pieces_[p];
  const BufferIndex b = piece.buffer;
  const uint32_t first = timeline_->first_use(b);
  const uint32_t use =
      (state_[b].next_use == first ? timeline_->first_use(b + 1) : state_[b].next_use) - 1;
  piece.record = static_cast<uint32_t>(records_.size());
  piece.where = Where::kHost;
  ++state_[b].absent;
  CountMissing(p, true);
  work_ += kWorkToLeave;
  used_ -= piece.bytes;
  const bool is_old = piece.copy == kOldCopy;
  const int64_t issue = is_old ? int64_t{now} : int64_t{piece.issued};
  const Record record{p, use, now, kNone, state_[b].base, issue, is_old ? now : piece.copy, 0};
  return records_.Append(record) && PushHeap<SoonestOnTop>(&missing_, Entry{state_[b].next_at, p});
}

bool Sweep::FetchMissing(uint32_t now) {
  const uint32_t i = now % n_;
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    const BufferIndex b = timeline_->user(k);
    if (state_[b].absent == 0) continue;
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
    if (piece.where == Where::kHost && state_[piece.buffer].next_at == top.key) return top.piece;
    PopHeap<SoonestOnTop>(&missing_);
  }
  return kNone;
}

bool Sweep::Prefetch(uint32_t now, double horizon) {
  while (links_.TimeToDrain(kIn) < horizon && !out_of_memory_) {
    const uint32_t p = TopMissing();
    if (p == kNone) return true;
    const uint32_t use = state_[pieces_[p].buffer].next_at;
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
    const bool is_stale = piece.stays || !IsDirty(top) || state_[piece.buffer].dirty_key <= now ||
                          horizon_->Excess(state_[piece.buffer].dirty_key, now) <=
                              leaving_[state_[piece.buffer].dirty_key % n_];
    if (!is_stale && host_used_ + piece.bytes > machine_->host_budget) return true;
    (void)Pop(&dirty_, &Piece::dirty_entry);
    if (!is_stale) leaving_[state_[piece.buffer].dirty_key % n_] += piece.bytes;
    if (!is_stale && !PutOut(top.piece, now)) return false;
    if (is_stale && IsDirty(top) &&
        !Push(&spare_, &Piece::spare_entry, state_[piece.buffer].spare_key, top.piece)) {
      return false;
    }
  }
  return options_.spares <= 0 || CopySpares(now, horizon);
}

bool Sweep::CopySpares(uint32_t now, double horizon) {
  const bool is_lossy = machine_->in_rate_duplex < machine_->in_rate;
  if (options_.spares_yield && is_lossy && links_.TimeToDrain(kIn) > 0) return true;
  while (!spare_.empty() && links_.TimeToDrain(kOut) < horizon) {
    const Entry top = spare_[0];
    const Piece& piece = pieces_[top.piece];
    const bool is_stale = !IsSpare(top, now);
    if (!is_stale && host_used_ + piece.bytes > machine_->host_budget / 2) return true;
    (void)Pop(&spare_, &Piece::spare_entry);
    if (!is_stale && !PutOut(top.piece, now)) return false;
  }
  return true;
}

// Counted by the operation of the next use, which lies within one iteration from now.
void Sweep::CountMissing(uint32_t p, bool is_more) {
  const Piece& piece = pieces_[p];
  for (uint32_t i = state_[piece.buffer].next_at % n_ + 1; i <= n_; i += i & (~i + 1)) {
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
  const uint32_t use = state_[piece.buffer].next_at;
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

}  // namespace tidemark::core::planner
