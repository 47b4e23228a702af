#include <algorithm>

#include "core/planner/sweep.h"

namespace tidemark::core::planner {
namespace {

constexpr Bytes kNoBytes = 0;

}  // namespace

bool Sweep::Prepare() {
  n_ = timeline_->ops();
  Machine reckoned = *machine_;
  reckoned.out_rate *= options_.out_speed;
  reckoned.out_rate_duplex *= options_.out_speed;
  reckoned.in_rate *= options_.in_speed;
  reckoned.in_rate_duplex *= options_.in_speed;
  links_.Start(reckoned);
  for (Array<double>& marks : marks_) marks.Clear();
  used_ = host_used_ = kNoBytes;
  out_of_memory_ = false;
  evictable_.Clear();
  copied_.Clear();
  known_done_ = 0;
  dirty_.Clear();
  spare_.Clear();
  missing_.Clear();
  records_.Clear();
  returns_.Clear();
  noted_ = 0;
  is_host_short_ = machine_->host_budget != kNoLimit;
  state_.Clear();
  return CutPieces() && GroupByOp() && aims_.Resize(timeline_->uses()) &&
         state_.Resize(timeline_->buffers(), State{}) && ExpectTimes() && (AimUses(), StartState());
}

bool Sweep::ExpectTimes() {
  missing_until_.Clear();
  tight_.Clear();
  leaving_.Clear();
  if (!leaving_.Resize(n_, 0)) return false;
  if (!tight_.Resize(2 * size_t{n_} + 1, 0)) return false;
  if (!missing_until_.Resize(n_ + 1, 0) || !time_until_.Resize(n_ + 1)) return false;
  time_until_[0] = 0;
  for (uint32_t i = 0; i < n_; ++i) {
    const double wait = options_.waits_out == nullptr ? 0 : (*options_.waits_out)[i];
    time_until_[i + 1] =
        time_until_[i] + wait + static_cast<double>(timeline_->step().ops[i].duration);
  }
  return true;
}

bool Sweep::CutPieces() {
  pieces_.Clear();
  if (!first_piece_.Resize(timeline_->buffers() + 1)) return false;
  for (BufferIndex b = 0; b < timeline_->buffers(); ++b) {
    first_piece_[b] = static_cast<uint32_t>(pieces_.size());
    if (!timeline_->CanMove(b)) continue;
    const Bytes bytes = timeline_->buffer(b).bytes;
    const auto part = static_cast<Bytes>(static_cast<double>(bytes) * options_.stays);
    const Bytes stays = part / machine_->chunk_bytes * machine_->chunk_bytes;
    for (Bytes at = 0, end = 0; at < bytes; at = end) {
      end = std::min(at < stays ? stays : bytes, at + options_.piece);
      Piece piece{b, at, end - at, at < stays, Where::kDevice, kNone, 0, 0, 0, kNoEntry, kNoEntry};
      if (!pieces_.Append(piece)) return false;
    }
  }
  first_piece_[timeline_->buffers()] = static_cast<uint32_t>(pieces_.size());
  return true;
}

bool Sweep::GroupByOp() {
  const size_t buffers = timeline_->buffers();
  born_first_.Clear();
  freed_first_.Clear();
  if (!born_first_.Resize(n_ + 1, 0) || !freed_first_.Resize(n_ + 1, 0) ||
      !born_list_.Resize(buffers) || !freed_list_.Resize(buffers)) {
    return false;
  }
  for (BufferIndex b = 0; b < buffers; ++b) {
    const StepBuffer& buffer = timeline_->buffer(b);
    if (buffer.persistent) continue;
    ++born_first_[buffer.born];
    ++freed_first_[buffer.freed];
  }
  for (uint32_t i = 1; i <= n_; ++i) {
    born_first_[i] += born_first_[i - 1];
    freed_first_[i] += freed_first_[i - 1];
  }
  for (BufferIndex b = static_cast<BufferIndex>(buffers); b-- > 0;) {
    const StepBuffer& buffer = timeline_->buffer(b);
    if (buffer.persistent) continue;
    born_list_[--born_first_[buffer.born]] = b;
    freed_list_[--freed_first_[buffer.freed]] = b;
  }
  return true;
}

// Twice around, so that what a persistent buffer is used for in the next iteration is known.
void Sweep::AimUses() {
  uint32_t tight = 0;  // operations so far, over two iterations, that need anything to leave
  for (uint32_t i = 0; i < 2 * n_; ++i) {
    if (timeline_->live(i % n_) > machine_->device_budget) ++tight;
    tight_[i + 1] = tight;
  }
  for (BufferIndex b = 0; b < timeline_->buffers(); ++b) {
    const uint32_t first = timeline_->first_use(b), end = timeline_->first_use(b + 1);
    for (uint32_t u = first; u < end; ++u) aims_[u].must = aims_[u].could = 0;
    if (!timeline_->CanMove(b)) continue;
    for (uint32_t k = 2 * (end - first); k-- > 0;) {
      const uint32_t u = first + k % (end - first);
      const Use& use = timeline_->use(u);
      if (use.next == kNone) continue;
      const uint32_t after = u + 1 == end ? first : u + 1, length = use.next - use.op;
      aims_[u].must = timeline_->IsOpen(use) && !horizon_->Holds(use.next, use.op + 1) ? length : 0;
      const bool helps = timeline_->IsOpen(use) && tight_[use.next] > tight_[use.op + 1];
      aims_[u].could = helps ? length : 0;
      if (!timeline_->use(after).write && aims_[after].could != 0 &&
          aims_[after].could + length <= n_) {
        aims_[u].could = length + aims_[after].could;
      }
      if (!timeline_->use(after).write && aims_[after].must != 0 &&
          aims_[after].must + length <= n_) {
        aims_[u].must = length + aims_[after].must;
      }
    }
  }
}

// Before the first operation: persistent buffers are on the device, soonest used first, as far as
// they fit; the rest is on the host.
bool Sweep::StartState() {
  for (BufferIndex b = 0; b < timeline_->buffers(); ++b) {
    const bool is_idle =
        !timeline_->buffer(b).persistent || timeline_->first_use(b) == timeline_->first_use(b + 1);
    State& state = state_[b];
    state.next_use = timeline_->first_use(b);
    state.next_at = is_idle ? kNone : timeline_->use(state.next_use).op;
    state.base = 0;
    state.dirty_key = state.dirty_rank = state.spare_key = kNone;
    state.rank = state.next_at;
    if (timeline_->buffer(b).persistent) used_ += timeline_->buffer(b).bytes;
    if (is_idle) continue;
    for (uint32_t p = first_piece_[b]; p < first_piece_[b + 1]; ++p) {
      if (!aside_.Append({state.next_at, p})) return false;
    }
  }
  std::sort(aside_.begin(), aside_.end(), [](const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key > b.key : a.piece > b.piece;
  });
  for (const Entry& entry : aside_) {
    Piece& piece = pieces_[entry.piece];
    const uint32_t last = timeline_->first_use(piece.buffer + 1) - 1;
    if (used_ <= machine_->device_budget || entry.key == 0) break;
    if (host_used_ + piece.bytes > machine_->host_budget ||
        !timeline_->IsOpen(timeline_->use(last))) {
      continue;
    }
    piece.where = Where::kHost;
    piece.copy = kOldCopy;
    ++state_[piece.buffer].copies;
    ++state_[piece.buffer].absent;
    piece.record = kNone;
    used_ -= piece.bytes;
    host_used_ += piece.bytes;
    CountMissing(entry.piece, true);
    if (!missing_.Append({entry.key, entry.piece})) return false;
  }
  for (const Entry& entry : aside_) {
    const Piece& piece = pieces_[entry.piece];
    if (piece.where == Where::kHost) continue;
    const uint32_t last = timeline_->first_use(piece.buffer + 1) - 1;
    if (aims_[last].must == 0) continue;
    state_[piece.buffer].dirty_key = timeline_->use(last).op + aims_[last].must - n_;
    state_[piece.buffer].dirty_rank = state_[piece.buffer].dirty_key;
    const uint32_t key = Ranked(state_[piece.buffer].dirty_key, piece);
    if (!Push(&dirty_, &Piece::dirty_entry, key, entry.piece)) return false;
  }
  aside_.Clear();
  std::make_heap(missing_.begin(), missing_.end(),
                 [](const Entry& a, const Entry& b) { return a.key > b.key; });
  return true;
}

}  // namespace tidemark::core::planner
