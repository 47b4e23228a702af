#include "tests/bench/planner/paging_walk.h"

#include <algorithm>

namespace tidemark::bench {

using core::BufferIndex;
using core::Bytes;
using core::OpIndex;

namespace {

constexpr BufferIndex kNone = ~BufferIndex{0};
constexpr Turn kMostIterations = 16;  // until two in a row make the same moves

}  // namespace

bool PagingPolicy::Spares(const PagingWalk&, BufferIndex, Turn) const { return false; }
void PagingPolicy::AtBoundary(PagingWalk*, Turn) {}

PagingWalk::PagingWalk(const core::Step& step, const core::Machine& machine, PagingRules rules)
    : step_(step), machine_(machine), rules_(rules) {
  const size_t n = step.ops.size();
  needed_.resize(n);
  born_.resize(n);
  freed_.resize(n);
  uses_.resize(step.buffers.size());
  books_.resize(step.buffers.size());
  in_use_.assign(step.buffers.size(), -1);
  prefix_ns_.assign(n + 1, 0);
  for (OpIndex i = 0; i < n; ++i) {
    const core::StepOp& op = step.ops[i];
    prefix_ns_[i + 1] = prefix_ns_[i] + static_cast<double>(op.duration);
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      needed_[i].push_back(step.accesses[a].buffer);
    }
  }
  for (BufferIndex b = 0; b < step.buffers.size(); ++b) {
    const core::StepBuffer& buffer = step.buffers[b];
    if (buffer.persistent) continue;
    born_[buffer.born].push_back(b);
    freed_[buffer.freed].push_back(b);
    for (OpIndex i : {buffer.born, buffer.freed}) {
      std::vector<BufferIndex>& needed = needed_[i];
      if (std::find(needed.begin(), needed.end(), b) == needed.end()) needed.push_back(b);
    }
  }
  for (OpIndex i = 0; i < n; ++i) {
    for (BufferIndex b : needed_[i]) uses_[b].push_back(i);
  }
  for (BufferIndex b = 0; b < step.buffers.size(); ++b) {
    const core::StepBuffer& buffer = step.buffers[b];
    // A buffer that is never used would never come back; see PlanOf.
    books_[b].movable = buffer.movable && buffer.bytes >= machine.min_bytes && !uses_[b].empty();
  }
}

double PagingWalk::TimeOf(Turn turn) const {
  const Turn n = ops();
  return static_cast<double>(turn / n) * prefix_ns_[static_cast<size_t>(n)] +
         prefix_ns_[static_cast<size_t>(turn % n)];
}

Turn PagingWalk::NextUse(BufferIndex buffer, Turn turn) const {
  const std::vector<OpIndex>& uses = uses_[buffer];
  if (uses.empty()) return INT64_MAX / 2;
  const Turn base = turn - turn % ops();
  const auto at = std::lower_bound(uses.begin(), uses.end(), static_cast<OpIndex>(turn % ops()));
  return at == uses.end() ? base + ops() + uses.front() : base + *at;
}

Bytes PagingWalk::FreeBytes() const {
  return machine_.device_budget > used_ ? machine_.device_budget - used_ : 0;
}

bool PagingWalk::Run(PagingPolicy* policy, core::Plan* plan, std::string* why_not) {
  policy_ = policy;
  for (BufferIndex b = 0; b < books_.size(); ++b) {
    if (step_.buffers[b].persistent) Born(b, 0);
  }
  Turn iteration = 0;
  for (; iteration < kMostIterations && !Repeats(iteration); ++iteration) {
    for (Turn i = 0; i < ops(); ++i) {
      if (Walk(iteration * ops() + i)) continue;
      *why_not = why_not_;
      return false;
    }
  }
  // Moves that never repeat exactly often fit together all the same; the simulator will say.
  plan->outcome = core::PlanOutcome::kPlanned;
  if (WritePlan((iteration - 2) * ops(), plan)) return true;
  *why_not = "out of memory";
  return false;
}

std::vector<const PagingWalk::Draft*> PagingWalk::DraftsOf(Turn iteration) const {
  std::vector<const Draft*> drafts;
  for (const Draft& d : drafts_) {
    if (d.release / ops() == iteration) drafts.push_back(&d);
  }
  return drafts;
}

// Before `iteration`: every move of the two that ended before the last one is finished.
bool PagingWalk::Repeats(Turn iteration) const {
  if (iteration < 4) return false;
  const std::vector<const Draft*> a = DraftsOf(iteration - 2), b = DraftsOf(iteration - 3);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Draft* x, const Draft* y) {
    const core::Move &m = x->move, &k = y->move;
    return m.buffer == k.buffer && m.offset == k.offset && m.bytes == k.bytes &&
           m.after == k.after && m.release == k.release && m.reserve == k.reserve &&
           m.ready == k.ready && m.clean == k.clean && m.keeps_copy == k.keeps_copy;
  });
}

bool PagingWalk::Walk(Turn turn) {
  const auto op = static_cast<size_t>(turn % ops());
  for (BufferIndex b : needed_[op]) {
    in_use_[b] = turn;
    Cancel(b);
  }
  policy_->AtBoundary(this, turn);
  Bytes born = 0;
  for (BufferIndex b : born_[op]) born += step_.buffers[b].bytes;
  // The first iteration starts with everything persistent on the device, whatever the budget.
  if (!MakeRoom(born, turn, true)) return false;
  for (BufferIndex b : born_[op]) Born(b, turn);
  for (BufferIndex b : needed_[op]) {
    if (!Need(b, turn)) return false;
  }
  const core::StepOp& o = step_.ops[op];
  for (BufferIndex b : needed_[op]) {
    Finish(b, turn);
    books_[b].last_use = turn;
    Rekey(b, turn);
  }
  for (uint32_t a = o.first_access; a < o.first_access + o.access_count; ++a) {
    if (step_.accesses[a].write) books_[step_.accesses[a].buffer].host_valid = false;
  }
  for (BufferIndex b : freed_[op]) Free(b);
  return true;
}

bool PagingWalk::Need(BufferIndex b, Turn turn) {
  if (books_[b].away == 0) return true;
  if (!MakeRoom(books_[b].away, turn, true)) return false;
  TakeBack(b, turn);
  return true;
}

void PagingWalk::Born(BufferIndex b, Turn turn) {
  Book& book = books_[b];
  book.alive = true;
  book.resident = step_.buffers[b].bytes;
  book.host_valid = false;
  book.last_draft = SIZE_MAX;
  book.last_use = book.last_return = turn;
  used_ += book.resident;
  Rekey(b, turn);
}

void PagingWalk::Free(BufferIndex b) {
  Cancel(b);
  Track(b, false);
  used_ -= step_.buffers[b].bytes;
  books_[b].alive = false;
  books_[b].resident = 0;
}

void PagingWalk::Track(BufferIndex b, bool resident) {
  Book& book = books_[b];
  order_.erase({book.key, b});
  if (resident && book.movable && book.alive) order_.insert({book.key, b});
}

void PagingWalk::Rekey(BufferIndex b, Turn turn) {
  Track(b, false);
  books_[b].key = policy_->KeyOf(*this, b, turn);
  Track(b, books_[b].resident > 0);
}

BufferIndex PagingWalk::Victim(Turn turn, Turn not_before) const {
  BufferIndex spared = kNone;
  for (const auto& [key, b] : order_) {
    if (in_use_[b] == turn || books_[b].resident == 0) continue;
    if (NextUse(b, turn) <= not_before) continue;
    if (!policy_->Spares(*this, b, turn)) return b;
    if (spared == kNone) spared = b;
  }
  return spared;
}

bool PagingWalk::MakeRoom(Bytes bytes, Turn turn, bool waits) {
  while (used_ + bytes > machine_.device_budget) {
    if (ReleaseOldest(turn, waits)) continue;
    if (!waits) return false;
    const BufferIndex victim = Victim(turn, -1);
    if (victim == kNone && GiveUpPrefetch(turn)) continue;
    if (victim == kNone) {
      why_not_ = "operation " + std::to_string(turn % ops()) + " finds nothing to evict";
      return false;
    }
    StartEvictionOf(victim, turn, used_ + bytes - machine_.device_budget - leaving_bytes_);
    if (!why_not_.empty()) return false;
  }
  return true;
}

bool PagingWalk::StartEviction(Turn turn, Bytes bytes) {
  for (const auto& [key, b] : order_) {
    if (in_use_[b] == turn || policy_->Spares(*this, b, turn)) continue;
    StartEvictionOf(b, turn, bytes);
    return true;
  }
  return false;
}

void PagingWalk::StartEvictionOf(BufferIndex b, Turn turn, Bytes bytes) {
  Book& book = books_[b];
  if (book.resident == 0 || !book.movable || !book.alive) return;
  Bytes keep = 0;
  if (!rules_.whole_buffers && bytes < book.resident) {
    keep = (book.resident - bytes) / machine_.chunk_bytes * machine_.chunk_bytes;
  }
  Part part;
  part.move.buffer = b;
  part.move.offset = keep;
  part.move.bytes = book.resident - keep;
  const Turn after = rules_.copies_out_early ? book.last_use : turn - 1;
  part.move.after = static_cast<OpIndex>((after + ops()) % ops());
  part.out_order = next_order_++;
  part.move.clean = rules_.drops_clean && rules_.whole_buffers && book.host_valid;
  if (part.move.clean) {
    drafts_[book.last_draft].move.keeps_copy = true;
  } else {
    const double start = std::max(out_free_ns_, TimeOf(std::max<Turn>(after + 1, 0)));
    out_free_ns_ = start + static_cast<double>(part.move.bytes) * 1e9 / machine_.out_rate;
    part.out_done = out_free_ns_;
  }
  host_used_ += part.move.bytes;
  if (host_used_ > machine_.host_budget) why_not_ = "the host budget is full";
  book.resident = keep;
  leaving_bytes_ += part.move.bytes;
  leaving_.push_back({b, part.out_order});
  book.parts.push_back(part);
  Track(b, keep > 0);
}

bool PagingWalk::ReleaseOldest(Turn turn, bool waits) {
  for (size_t i = 0; i < leaving_.size(); ++i) {
    const auto [b, order] = leaving_[i];
    Book& book = books_[b];
    const auto part = std::find_if(book.parts.begin(), book.parts.end(),
                                   [o = order](const Part& p) { return p.out_order == o; });
    if (!waits && part->out_done > TimeOf(turn)) continue;
    part->release = turn;
    part->move.release = static_cast<OpIndex>(turn % ops());
    used_ -= part->move.bytes;
    leaving_bytes_ -= part->move.bytes;
    book.away += part->move.bytes;
    away_order_.insert({NextUse(b, turn), b});
    leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

// What has not left yet stays after all. Parts leave from the end, so those that stay are a prefix.
void PagingWalk::Cancel(BufferIndex b) {
  Book& book = books_[b];
  bool changed = false;
  for (size_t i = 0; i < book.parts.size();) {
    const Part& part = book.parts[i];
    if (part.release >= 0) {
      ++i;
      continue;
    }
    book.resident += part.move.bytes;
    leaving_bytes_ -= part.move.bytes;
    host_used_ -= part.move.bytes;
    leaving_.erase(std::find(leaving_.begin(), leaving_.end(), std::pair(b, part.out_order)));
    book.parts.erase(book.parts.begin() + static_cast<std::ptrdiff_t>(i));
    changed = true;
  }
  if (changed) Track(b, true);
}

void PagingWalk::TakeBack(BufferIndex b, Turn turn) {
  Book& book = books_[b];
  for (Part& part : book.parts) {
    if (part.release < 0 || part.reserve >= 0) continue;
    part.reserve = turn;
    part.in_order = next_order_++;
    part.move.reserve = static_cast<OpIndex>(turn % ops());
    used_ += part.move.bytes;
  }
  away_order_.erase({NextUse(b, turn), b});
  returning_.insert({NextUse(b, turn), b});
  book.away = 0;
  book.last_return = turn;
}

// The prefetch that is needed last is taken back, as if it had never been asked for.
bool PagingWalk::GiveUpPrefetch(Turn turn) {
  for (auto at = returning_.rbegin(); at != returning_.rend(); ++at) {
    const auto [use, b] = *at;
    if (in_use_[b] == turn) continue;
    Book& book = books_[b];
    for (Part& part : book.parts) {
      if (part.reserve < 0) continue;
      part.reserve = -1;
      used_ -= part.move.bytes;
      book.away += part.move.bytes;
    }
    returning_.erase({use, b});
    away_order_.insert({use, b});
    return true;
  }
  return false;
}

bool PagingWalk::Prefetch(BufferIndex b, Turn turn) {
  Book& book = books_[b];
  Cancel(b);
  if (book.away == 0) return true;
  for (const Part& part : book.parts) {
    if (part.release == turn) return true;  // it left at this boundary
  }
  if (!MakeRoom(book.away, turn, false)) return false;
  TakeBack(b, turn);
  return true;
}

bool PagingWalk::PrefetchOver(BufferIndex b, Turn turn) {
  const Turn use = NextUse(b, turn);
  while (FreeBytes() < books_[b].away) {
    if (ReleaseOldest(turn, true)) continue;
    const BufferIndex victim = Victim(turn, use);
    if (victim == kNone) return false;
    StartEvictionOf(victim, turn, books_[b].away);
    if (!why_not_.empty()) return false;
  }
  return Prefetch(b, turn);
}

// The buffer is used at `turn`: everything of it is back by then.
void PagingWalk::Finish(BufferIndex b, Turn turn) {
  Book& book = books_[b];
  if (!book.parts.empty()) returning_.erase({turn, b});
  for (Part& part : book.parts) {
    part.move.ready = static_cast<OpIndex>(turn % ops());
    book.last_draft = drafts_.size();
    drafts_.push_back({part.move, part.release, part.out_order, part.in_order});
    book.host_valid = true;
    host_used_ -= part.move.bytes;
  }
  if (!book.parts.empty()) book.resident = step_.buffers[b].bytes;
  book.parts.clear();
}

// Queues run by iteration, so a move's place follows from the operation and the order within it.
bool PagingWalk::WritePlan(Turn first_turn, core::Plan* plan) const {
  const std::vector<const Draft*> drafts = DraftsOf(first_turn / ops());
  std::vector<core::MoveIndex> out, in;
  for (core::MoveIndex m = 0; m < drafts.size(); ++m) {
    if (!plan->moves.Append(drafts[m]->move)) return false;
    if (!drafts[m]->move.clean) out.push_back(m);
    in.push_back(m);
  }
  std::sort(out.begin(), out.end(), [&](core::MoveIndex a, core::MoveIndex b) {
    return std::pair(drafts[a]->move.after, drafts[a]->out_order) <
           std::pair(drafts[b]->move.after, drafts[b]->out_order);
  });
  std::sort(in.begin(), in.end(), [&](core::MoveIndex a, core::MoveIndex b) {
    return std::pair(drafts[a]->move.reserve, drafts[a]->in_order) <
           std::pair(drafts[b]->move.reserve, drafts[b]->in_order);
  });
  for (core::MoveIndex m : out) {
    if (!plan->out_queue.Append(m)) return false;
  }
  for (core::MoveIndex m : in) {
    if (!plan->in_queue.Append(m)) return false;
  }
  return true;
}

}  // namespace tidemark::bench
