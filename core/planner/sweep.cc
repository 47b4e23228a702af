#include "core/planner/sweep.h"

#include <algorithm>

#include "core/planner/heap.h"

namespace tidemark::core::planner {
namespace {

constexpr uint64_t kWorkToUse = 5;     // what a use costs, in pieces that are looked at after it
constexpr uint64_t kWorkOfPiece = 14;  // to make it and to start with it
constexpr uint32_t kWarmUp = 2;        // iterations before the one that is written down

}  // namespace

Sweep::Result Sweep::Run(const Timeline& timeline, const Horizon& horizon, const Machine& machine,
                         const SweepOptions& options, Draft* draft) {
  timeline_ = &timeline;
  horizon_ = &horizon;
  machine_ = &machine;
  options_ = options;
  work_ = 0;
  if (machine.device_budget < timeline.largest_floor()) return Result::kStuck;
  if (!Prepare()) return Result::kNoMemory;
  work_ += kWorkOfPiece * pieces_.size();
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
  NoteReturns(now);
  Bytes born = 0;
  for (uint32_t k = born_first_[i]; k < born_first_[i + 1]; ++k) {
    const BufferIndex b = born_list_[k];
    born += timeline_->buffer(b).bytes;
    state_[b].next_use = timeline_->first_use(b);
  }
  const Result result = MakeRoom(now, born + MissingAt(i));
  if (result != Result::kDone) return result;
  used_ += born;
  if (!FetchMissing(now)) return Result::kNoMemory;
  const uint32_t last = LastReturning(i);
  double horizon = static_cast<double>(timeline_->step().ops[i].duration);
  if (last != kNone && !IsDone(kIn, last)) horizon += links_.TimeToDrain(kIn);
  if (options_.waits_out != nullptr) horizon += (*options_.waits_out)[(i + 1) % n_];
  const double piece = static_cast<double>(options_.piece) * 1e9;
  const double out_ahead = options_.out_ahead * piece / machine_->out_rate;
  const double in_ahead = options_.in_ahead * piece / machine_->in_rate;
  if (!Prefetch(now, horizon + in_ahead) || !CopyOutAhead(now, horizon + out_ahead)) {
    return Result::kNoMemory;
  }
  if (last != kNone) AdvanceUntilDone(kIn, last);
  return Result::kDone;
}

void Sweep::NoteReturns(uint32_t now) {
  for (; noted_ < returns_.size() && IsDone(kIn, noted_); ++noted_) {
    if (returns_[noted_] != kNone) records_[returns_[noted_]].back = now;
  }
}

Bytes Sweep::MissingAt(OpIndex i) const {
  Bytes missing = 0;
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    const BufferIndex b = timeline_->user(k);
    if (state_[b].absent == 0) continue;
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
      if (pieces_[p].where == Where::kHost) missing += pieces_[p].bytes;
    }
  }
  return missing;
}

uint32_t Sweep::LastReturning(OpIndex i) const {
  uint32_t last = kNone;
  for (uint32_t k = timeline_->first_user(i); k < timeline_->first_user(i + 1); ++k) {
    const BufferIndex b = timeline_->user(k);
    if (state_[b].absent == 0) continue;
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
      if (pieces_[p].where != Where::kReturning) continue;
      last = last == kNone ? pieces_[p].back : std::max(last, pieces_[p].back);
    }
  }
  return last;
}

Sweep::Result Sweep::MakeRoom(uint32_t now, Bytes needed) {
  while (used_ + needed > machine_->device_budget) {
    const Result result = EvictOne(now);
    if (result != Result::kDone) return result;
  }
  return Result::kDone;
}

void Sweep::DropCopy(Piece* piece) {
  if (piece->copy == kNone) return;
  piece->copy = kNone;
  --state_[piece->buffer].copies;
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
    state_[b].next_at = kNone;
    if (state_[b].copies == 0) continue;
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) DropCopy(&pieces_[p]);
  }
}

void Sweep::AfterUse(uint32_t now, BufferIndex b) {
  State& state = state_[b];
  const uint32_t u = state.next_use;
  const Use& use = timeline_->use(u);
  const Aim aim = aims_[u];
  state.base = now - use.op;
  state.next_at = use.next == kNone ? kNone : state.base + use.next;
  state.rank = state.next_at == kNone ? kNone : Shifted(state.next_at, u);
  state.next_use = u + 1;
  if (timeline_->buffer(b).persistent && u + 1 == timeline_->first_use(b + 1)) {
    state.next_use = timeline_->first_use(b);
  }
  state.dirty_key = aim.must == 0 ? kNone : now + aim.must;
  state.dirty_rank = state.dirty_key == kNone ? kNone : Shifted(state.dirty_key, u);
  state.spare_key = aim.could == 0 ? kNone : now + aim.could;
  const bool keeps =
      options_.keeps_copies && (aim.must != 0 || (options_.spares > 0 && aim.could != 0));
  const bool is_plain = state.absent == 0 && state.copies == 0 && state.dirty_key == kNone &&
                        state.spare_key == kNone;
  work_ += kWorkToUse + (is_plain ? 0 : first_piece_[b + 1] - first_piece_[b]);
  if (is_plain) return;
  state.absent = 0;
  for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
    Piece& piece = pieces_[p];
    piece.where = Where::kDevice;
    if (use.write || !keeps) DropCopy(&piece);
    if (state.next_at == kNone) continue;
    bool pushed = true;
    if (piece.copy != kNone) {
      pushed = AddCopied(p);
    } else if (state.dirty_key != kNone) {
      pushed = Push(&dirty_, &Piece::dirty_entry, Ranked(state.dirty_rank, piece), p);
    } else if (state.spare_key != kNone) {
      pushed = Push(&spare_, &Piece::spare_entry, state.spare_key, p);
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
              record.order,
              timeline_->use(record.use).next,
              record.back > record.base ? record.back - record.base : 0};
    if (!draft->aways.Append(away)) return false;
  }
  // A window that goes across the iteration's end may have been left early once and late once.
  Array<Away>& aways = draft->aways;
  std::sort(aways.begin(), aways.end(), ByWindow);
  size_t kept = 0;
  for (size_t k = 0; k < aways.size(); ++k) {
    const bool repeats = kept > 0 && aways[kept - 1].use == aways[k].use &&
                         aways[kept - 1].offset == aways[k].offset;
    aways[repeats ? kept - 1 : kept++] = aways[k];
  }
  return aways.Resize(kept);
}

}  // namespace tidemark::core::planner
