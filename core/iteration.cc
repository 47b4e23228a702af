// Implementation of core/iteration.h. Threads: as the header says.

#include "core/iteration.h"

namespace tidemark::core {
namespace {

constexpr int kBirthBits = 20;  // of the ordinal among the buffers born at one launch
constexpr uint64_t kPrime = UINT64_C(0x9e3779b97f4a7c15);

uint64_t Mix(uint64_t sum, uint64_t value) { return Period::Mix(sum, value); }

LaunchNumber BornAt(const BufferName& buffer) { return buffer.birth >> kBirthBits; }

}  // namespace

bool Iteration::Init() {
  ready_ = period_.Init() && events_.Resize(kEvents) && roles_.Resize(2 * kEvents) &&
           uses_.Resize(kEvents / 2);
  return ready_;
}

void Iteration::Begin(uint64_t what) {
  ++now_;
  born_ = 0;
  signature_ = Mix(kPrime, what);
}

void Iteration::Touch(const BufferName& buffer) {
  signature_ = Mix(signature_, buffer.bytes);
  Log(buffer, false);
}

void Iteration::Died(const BufferName& buffer) { Log(buffer, true); }

uint64_t Iteration::Birth() { return now_ << kBirthBits | (born_++ & ((1u << kBirthBits) - 1)); }

void Iteration::Log(const BufferName& buffer, bool is_end) {
  if (ready_) events_[event_count_++ % kEvents] = {now_, buffer, is_end};
}

void Iteration::End() {
  if (ready_) period_.Add(signature_);
}

uint64_t Iteration::YoungKey(const BufferName& buffer) const {
  const uint64_t phase = BornAt(buffer) % learned_period_;
  const uint64_t ordinal = buffer.birth & ((1u << kBirthBits) - 1);
  return Mix(Mix(Mix(1, phase), ordinal), buffer.bytes) | 1;
}

uint64_t Iteration::KeyOf(const BufferName& buffer, LaunchNumber at) const {
  const bool young = at - BornAt(buffer) < 2 * LaunchNumber{learned_period_};
  return young ? YoungKey(buffer) : Mix(2, buffer.id) | 1;
}

Iteration::Role* Iteration::Find(uint64_t key) {
  uint32_t at = static_cast<uint32_t>(key >> 33) & role_mask_;
  while (roles_[at].key != 0 && roles_[at].key != key) at = (at + 1) & role_mask_;
  return &roles_[at];
}

// False: the last period holds more events than are kept.
bool Iteration::FindLastPeriod(uint64_t* first) const {
  const uint64_t oldest = event_count_ > kEvents / 2 ? event_count_ - kEvents / 2 : 0;
  *first = event_count_;
  while (*first > oldest && events_[(*first - 1) % kEvents].launch > now_ - period()) --*first;
  return *first != oldest || oldest == 0;
}

void Iteration::Learn() {
  uint64_t first = 0;
  if (period() == 0) return;
  if (learned_period_ == period() && now_ - learned_at_ < period()) return;
  learned_period_ = 0;
  if (!FindLastPeriod(&first)) return;
  learned_period_ = period();
  learned_from_ = now_ - period();
  learned_at_ = now_;
  learned_events_ = first;
  learned_end_ = event_count_;
  role_mask_ = 63;
  while (role_mask_ < 2 * (event_count_ - first)) role_mask_ = 2 * role_mask_ + 1;
  for (uint32_t i = 0; i <= role_mask_; ++i) roles_[i] = Role();
  for (uint64_t i = first; i < event_count_; ++i) {
    const uint64_t key = KeyOf(events_[i % kEvents].buffer, now_);
    Role* role = Find(key);
    role->key = key;
    ++role->count;
  }
  uint32_t place = 0;
  for (uint32_t i = 0; i <= role_mask_; ++i) {
    roles_[i].first = place;
    place += roles_[i].count;
    roles_[i].count = 0;
  }
  for (uint64_t i = first; i < event_count_; ++i) {
    const Event& event = events_[i % kEvents];
    Role* role = Find(KeyOf(event.buffer, now_));
    const auto since = static_cast<uint32_t>(event.launch - learned_from_);
    uses_[role->first + role->count++] = 2 * since + (event.is_end ? 1 : 0);
  }
}

NextUse Iteration::Next(const BufferName& buffer, bool* known) const {
  *known = false;
  NextUse next{kNever, false};
  if (period() == 0 || learned_period_ != period()) return next;
  const Role* role = Find(Mix(2, buffer.id) | 1);
  if (role->key == 0) role = Find(YoungKey(buffer));
  if (role->key == 0 || role->count == 0) return next;
  *known = true;
  // Where in the learned period the current launch is, from 1 to the period.
  const auto here = static_cast<uint32_t>((now_ - learned_from_ - 1) % learned_period_ + 1);
  const uint32_t* uses = &uses_[role->first];
  uint32_t low = 0, high = role->count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (uses[middle] > 2 * here) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const bool wraps = low == role->count;
  const uint32_t use = uses[wraps ? 0 : low];
  next.launches = use / 2 + (wraps ? learned_period_ : 0) - here;
  next.is_end = use % 2 != 0;
  return next;
}

uint64_t Iteration::KeyOf(const BufferName& buffer) const {
  if (learned_period_ == 0) return 0;
  const Role* role = Find(Mix(2, buffer.id) | 1);
  return role->key != 0 ? role->key : YoungKey(buffer);
}

BufferIndex Iteration::SlotOf(const Event& event) const {
  return static_cast<BufferIndex>(Find(KeyOf(event.buffer, learned_from_ + learned_period_)) -
                                  &roles_[0]);
}

// One buffer for each role, with phases for operations; an end in the period makes it transient.
bool Iteration::FindBuffers(Step* step, Array<uint64_t>* keys, Array<BufferIndex>* of_slot) const {
  if (!of_slot->Resize(role_mask_ + 1)) return false;
  for (uint32_t i = 0; i <= role_mask_; ++i) {
    if (roles_[i].key == 0) continue;
    (*of_slot)[i] = static_cast<BufferIndex>(keys->size());
    if (!keys->Append(roles_[i].key) || !step->buffers.Append(StepBuffer())) return false;
  }
  for (StepBuffer& buffer : step->buffers) buffer.persistent = true;
  for (uint64_t i = learned_events_; i < learned_end_; ++i) {
    const Event& event = events_[i % kEvents];
    StepBuffer& buffer = step->buffers[(*of_slot)[SlotOf(event)]];
    buffer.bytes = event.buffer.bytes;
    if (!event.is_end) continue;
    buffer.persistent = false;
    // Births count from the launch before them, and may lie before the period.
    const LaunchNumber back = 4 * LaunchNumber{learned_period_};
    buffer.born = PhaseOf(BornAt(event.buffer) + 1 + back);
    buffer.freed = PhaseOf(event.launch);
  }
  return true;
}

// The phase before which the fewest transient bytes are alive.
bool Iteration::FindOrigin(const Step& step, OpIndex* origin) const {
  Array<int64_t> change;
  if (!change.Resize(learned_period_ + 1)) return false;
  int64_t alive = 0;
  for (const StepBuffer& buffer : step.buffers) {
    if (buffer.persistent) continue;
    const auto bytes = static_cast<int64_t>(buffer.bytes);
    change[buffer.born + 1] += bytes;
    change[buffer.freed + 1] -= bytes;
    if (buffer.born > buffer.freed) alive += bytes;
  }
  int64_t least = INT64_MAX;
  for (OpIndex phase = 0; phase < learned_period_; ++phase) {
    alive += change[phase];
    if (alive >= least) continue;
    least = alive;
    *origin = phase;
  }
  return true;
}

bool Iteration::AddAccess(OpIndex op, BufferIndex buffer, Step* step) const {
  StepOp& last = step->ops[op];
  const auto count = static_cast<uint32_t>(step->accesses.size());
  if (last.access_count == 0) last.first_access = count;
  for (uint32_t i = last.first_access; i < count; ++i) {
    if (step->accesses[i].buffer == buffer) return true;
  }
  StepBuffer& used = step->buffers[buffer];
  if (!used.persistent && (op < used.born || op > used.freed)) {
    used.persistent = true;  // one of several that overlap: it lives longer than an iteration
    used.movable = false;
  }
  ++last.access_count;
  return step->accesses.Append({buffer, true, true});
}

bool Iteration::Describe(Nanoseconds duration, Step* step, Array<uint64_t>* keys,
                         LaunchNumber* first) const {
  if (period() == 0 || learned_period_ != period()) return false;
  if (event_count_ - learned_events_ > kEvents) return false;  // overwritten since
  Array<BufferIndex> of_slot;
  OpIndex origin = 0;
  if (!step->ops.Resize(learned_period_) || !FindBuffers(step, keys, &of_slot) ||
      !FindOrigin(*step, &origin)) {
    return false;
  }
  *first = learned_from_ + 1 + origin;
  const auto turned = [&](OpIndex phase) {
    return phase >= origin ? phase - origin : phase + learned_period_ - origin;
  };
  for (StepBuffer& buffer : step->buffers) {
    buffer.born = turned(buffer.born);
    buffer.freed = turned(buffer.freed);
    if (buffer.persistent || buffer.born <= buffer.freed) continue;
    buffer.persistent = true;
    buffer.movable = false;
  }
  for (StepOp& op : step->ops) op.duration = duration;
  for (int half = 0; half < 2; ++half) {
    for (uint64_t i = learned_events_; i < learned_end_; ++i) {
      const Event& event = events_[i % kEvents];
      const OpIndex phase = PhaseOf(event.launch);
      if (event.is_end || (phase >= origin) != (half == 0)) continue;
      if (!AddAccess(turned(phase), of_slot[SlotOf(event)], step)) return false;
    }
  }
  return true;
}

}  // namespace tidemark::core
