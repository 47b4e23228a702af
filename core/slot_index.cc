// Implementation of core/slot_index.h. Threads: as the header says.

#include "core/slot_index.h"

#include <bit>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tidemark::core {
namespace {

using Value = SlotIndex::Value;

// Of 32 values: the greatest, and a bit for each that is at least `least`. Written out because
// these two are most of what an allocation does, and compilers make loops with a branch of them.
#ifdef __SSE2__
const __m128i* Vectors(const Value* group) { return reinterpret_cast<const __m128i*>(group); }

Value MaximumOf(const Value* group) {
  const __m128i* v = Vectors(group);
  __m128i most = _mm_max_epi16(_mm_max_epi16(_mm_loadu_si128(v), _mm_loadu_si128(v + 1)),
                               _mm_max_epi16(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3)));
  most = _mm_max_epi16(most, _mm_srli_si128(most, 8));
  most = _mm_max_epi16(most, _mm_srli_si128(most, 4));
  most = _mm_max_epi16(most, _mm_srli_si128(most, 2));
  return static_cast<Value>(_mm_extract_epi16(most, 0));
}

uint32_t AtLeast(const Value* group, Value least) {
  const __m128i* v = Vectors(group);
  const __m128i below = _mm_set1_epi16(static_cast<Value>(least - 1));
  const __m128i low = _mm_packs_epi16(_mm_cmpgt_epi16(_mm_loadu_si128(v), below),
                                      _mm_cmpgt_epi16(_mm_loadu_si128(v + 1), below));
  const __m128i high = _mm_packs_epi16(_mm_cmpgt_epi16(_mm_loadu_si128(v + 2), below),
                                       _mm_cmpgt_epi16(_mm_loadu_si128(v + 3), below));
  return static_cast<uint32_t>(_mm_movemask_epi8(low)) |
         static_cast<uint32_t>(_mm_movemask_epi8(high)) << 16;
}
#else
Value MaximumOf(const Value* group) {
  Value most = 0;
  for (int i = 0; i < 32; ++i) most = group[i] > most ? group[i] : most;
  return most;
}

uint32_t AtLeast(const Value* group, Value least) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(group[i] >= least) << i;
  return bits;
}
#endif

}  // namespace

bool SlotIndex::Init(uint32_t slots) {
  size_t total = 0;
  for (uint32_t count = slots; levels_ < kMostLevels;) {
    count = (count + kFan - 1) / kFan * kFan;
    level_[levels_++].count = count;
    total += count;
    if (count <= kFan) break;
    count /= kFan;
  }
  if (!storage_.Resize(total, 0)) return false;
  Value* next = storage_.begin();
  for (int i = 0; i < levels_; ++i) {
    level_[i].values = next;
    next += level_[i].count;
  }
  return true;
}

void SlotIndex::Cover(uint32_t slot) {
  while (slot >= covered_) {
    level_[depth_].values[0] = MaximumOf(level_[depth_ - 1].values);
    ++depth_;
    covered_ *= kFan;
  }
}

// `slot` of `level` went from `old` to `value`. Stops at the first maximum that does not change.
void SlotIndex::Propagate(int level, uint32_t slot, Value old, Value value) {
  for (int i = level + 1; i < depth_; ++i) {
    const uint32_t above = slot / kFan;
    Value* maximum = &level_[i].values[above];
    if (value <= *maximum && old < *maximum) return;
    if (value < *maximum) value = MaximumOf(&level_[i - 1].values[above * kFan]);
    old = *maximum;
    if (old == value) return;
    *maximum = value;
    slot = above;
  }
}

void SlotIndex::Set(uint32_t slot, Value value) {
  if (slot >= covered_) Cover(slot);
  const Value old = level_[0].values[slot];
  level_[0].values[slot] = value;
  Propagate(0, slot, old, value);
}

void SlotIndex::SetBoth(uint32_t slot, Value value, uint32_t other, Value other_value) {
  const uint32_t above = slot / kFan;
  if (above != other / kFan || slot >= covered_ || depth_ == 1) {
    Set(slot, value);
    Set(other, other_value);
    return;
  }
  level_[0].values[slot] = value;
  level_[0].values[other] = other_value;
  const Value old = level_[1].values[above];
  const Value now = MaximumOf(&level_[0].values[above * kFan]);
  level_[1].values[above] = now;
  if (old != now) Propagate(1, above, old, now);
}

uint32_t SlotIndex::Find(uint32_t from, Value least) const {
  int at = from == 0 ? depth_ - 1 : 0;
  uint32_t slot = from;
  for (;; ++at) {
    if (at == depth_ || slot >= level_[at].count) return kNone;
    const uint32_t group = slot / kFan * kFan;
    const uint32_t bits = AtLeast(&level_[at].values[group], least) & ~uint32_t{0} << slot % kFan;
    slot = group + static_cast<uint32_t>(std::countr_zero(bits));
    if (bits != 0) break;
    slot = group / kFan + 1;  // the rest of the level above
  }
  while (at-- > 0) {
    slot *= kFan;
    slot += static_cast<uint32_t>(std::countr_zero(AtLeast(&level_[at].values[slot], least)));
  }
  return slot;
}

bool SlotIndex::Validate() const {
  for (uint32_t slot = 0; slot < level_[0].count; ++slot) {
    if (level_[0].values[slot] != 0 && slot >= covered_) return false;
  }
  for (int i = 1; i < depth_; ++i) {
    for (uint32_t above = 0; above < level_[i - 1].count / kFan; ++above) {
      if (level_[i].values[above] != MaximumOf(&level_[i - 1].values[above * kFan])) return false;
    }
  }
  return true;
}

}  // namespace tidemark::core
