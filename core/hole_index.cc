// Implementation of core/hole_index.h. Threads: as the header says.

#include "core/hole_index.h"

#include <algorithm>
#include <bit>
#include <new>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tidemark::core {
namespace {

// A bit for each of 16 values that is greater than `than`. Written out because these comparisons
// are most of what finding a hole costs, and compilers make loops with a branch of them.
#ifdef __SSE2__
uint32_t Greater16(const int32_t* values, int32_t than) {
  const auto* v = reinterpret_cast<const __m128i*>(values);
  const __m128i t = _mm_set1_epi32(than);
  const __m128i low = _mm_packs_epi32(_mm_cmpgt_epi32(_mm_loadu_si128(v), t),
                                      _mm_cmpgt_epi32(_mm_loadu_si128(v + 1), t));
  const __m128i high = _mm_packs_epi32(_mm_cmpgt_epi32(_mm_loadu_si128(v + 2), t),
                                       _mm_cmpgt_epi32(_mm_loadu_si128(v + 3), t));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

int32_t Longest32(const int32_t* values) {
  const auto* v = reinterpret_cast<const __m128i*>(values);
  __m128i most = _mm_loadu_si128(v);
  for (int i = 1; i < 8; ++i) {
    const __m128i next = _mm_loadu_si128(v + i);
    const __m128i greater = _mm_cmpgt_epi32(next, most);
    most = _mm_or_si128(_mm_and_si128(greater, next), _mm_andnot_si128(greater, most));
  }
  alignas(16) int32_t four[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(four), most);
  return std::max(std::max(four[0], four[1]), std::max(four[2], four[3]));
}
#else
int32_t Longest32(const int32_t* values) { return *std::max_element(values, values + 32); }

uint32_t Greater16(const int32_t* values, int32_t than) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<uint32_t>(values[i] > than) << i;
  return bits;
}
#endif

uint32_t Greater32(const int32_t* values, int32_t than) {
  return Greater16(values, than) | Greater16(values + 16, than) << 16;
}

}  // namespace

// Slots in use come first, in address order; the others have length 0 and start beyond all.
struct HoleIndex::Group {
  int32_t length[kSlots];
  int32_t start[kSlots];
  Block* hole[kSlots];
  uint32_t used;
  Group* next_spare;

  Group() {
    used = kSlots;
    Clear(0);
  }
  void Clear(uint32_t from) {
    for (uint32_t i = from; i < used; ++i) {
      length[i] = 0;
      start[i] = kBeyond;
    }
    used = from;
  }
  void Open(uint32_t slot) {
    for (uint32_t i = used++; i > slot; --i) Copy(i, *this, i - 1);
  }
  void Close(uint32_t slot) {
    --used;
    for (uint32_t i = slot; i < used; ++i) Copy(i, *this, i + 1);
    length[used] = 0;
    start[used] = kBeyond;
  }
  void Copy(uint32_t slot, const Group& from, uint32_t from_slot) {
    length[slot] = from.length[from_slot];
    start[slot] = from.start[from_slot];
    hole[slot] = from.hole[from_slot];
  }
  int32_t Longest() const { return Longest32(length); }
};

HoleIndex::~HoleIndex() {
  for (Group* group : made_) delete group;
}

// Two neighbours have more than kSparse holes together, so no more groups than this are in use.
bool HoleIndex::Grow(size_t holes) {
  const size_t groups = holes / (kSparse / 2) + 2;
  const size_t padded = (groups + kFan) / kFan * kFan;
  if (!groups_.Resize(padded, nullptr) || !first_.Resize(padded, kBeyond)) return false;
  if (!most_.Resize(padded, 0) || !made_.Reserve(groups)) return false;
  while (made_.size() < groups) {
    auto* group = new (std::nothrow) Group;
    if (group == nullptr) return false;
    (void)made_.Append(group);
    group->next_spare = spare_;
    spare_ = group;
  }
  room_ = holes;
  return true;
}

// The last group that starts at or below `start`; the first one where none does.
uint32_t HoleIndex::GroupOf(int32_t start) const {
  uint32_t base = 0;
  uint32_t above = Greater16(first_.begin(), start);
  while (above == 0) above = Greater16(first_.begin() + (base += kFan), start);
  const uint32_t group = base + static_cast<uint32_t>(std::countr_zero(above));
  return group == 0 ? 0 : group - 1;
}

HoleIndex::Place HoleIndex::Locate(Bytes offset) const {
  const int32_t start = StartOf(offset);
  const uint32_t group = GroupOf(start);
  const uint32_t above = Greater32(groups_[group]->start, start);
  const int slot = above == 0 ? static_cast<int>(kSlots) : std::countr_zero(above);
  return {group, static_cast<uint32_t>(slot - 1)};
}

HoleIndex::Place HoleIndex::After(Place place) const {
  if (place.slot + 1 < groups_[place.group]->used) return {place.group, place.slot + 1};
  return {place.group + 1, 0};
}

// A group that may have a hole that is long enough.
bool HoleIndex::Search::FindGroup() {
  while (groups_ == 0) {
    if (fan_ >= index_->count_) return false;
    groups_ = Greater16(index_->most_.begin() + fan_, below_);
    fan_ += kFan;
  }
  place_.group = fan_ - kFan + static_cast<uint32_t>(std::countr_zero(groups_));
  groups_ &= groups_ - 1;
  return true;
}

Block* HoleIndex::Search::Next() {
  while (fit_ == 0) {
    if (!FindGroup()) return nullptr;
    const Group& group = *index_->groups_[place_.group];
    fit_ = Greater32(group.length, below_);
    if (fit_ == 0) index_->most_[place_.group] = Longest32(group.length);
    if (most_ != INT32_MAX) fit_ &= ~Greater32(group.length, most_);
  }
  place_.slot = static_cast<uint32_t>(std::countr_zero(fit_));
  fit_ &= fit_ - 1;
  return index_->groups_[place_.group]->hole[place_.slot];
}

HoleIndex::SearchDown::SearchDown(const HoleIndex* index, Bytes least, Bytes end)
    : index_(index), below_(LengthOf(least) - 1) {
  if (index->count_ == 0 || end == 0) return;
  const int32_t last = StartOf(end - 1);
  group_ = index->GroupOf(last);
  const Group& group = *index->groups_[group_];
  fit_ = Greater32(group.length, below_) & ~Greater32(group.start, last);
}

const Block* HoleIndex::SearchDown::Next() {
  while (fit_ == 0) {
    if (group_ == 0) return nullptr;
    --group_;
    if (index_->most_[group_] > below_) fit_ = Greater32(index_->groups_[group_]->length, below_);
  }
  const int slot = static_cast<int>(std::bit_width(fit_)) - 1;
  fit_ ^= uint32_t{1} << slot;
  return index_->groups_[group_]->hole[slot];
}

// Looks at no block that is shorter than a chunk.
bool HoleIndex::FindsWaiting(FenceId passed) {
  constexpr auto kUnits = static_cast<int32_t>(kChunkBytes / kBlockBytes);
  for (uint32_t i = 0; i < count_; ++i) {
    if (most_[i] < kUnits) continue;
    const Group& group = *groups_[i];
    for (uint32_t fit = Greater32(group.length, kUnits - 1); fit != 0; fit &= fit - 1) {
      const auto slot = static_cast<uint32_t>(std::countr_zero(fit));
      if (WholeIn(group.start[slot], group.length[slot]) == 0) continue;
      if (group.hole[slot]->fence > passed) return true;
    }
  }
  newest_ = passed;
  return false;
}

void HoleIndex::Replace(Place place, Block* hole) {
  const Group* group = groups_[place.group];
  whole_chunks_ -= WholeIn(group->start[place.slot], group->length[place.slot]);
  Put(place, hole);
}

void HoleIndex::Put(Place place, Block* hole) {
  Group* group = groups_[place.group];
  const int32_t start = StartOf(hole->offset);
  const int32_t length = LengthOf(hole->size);
  const ChunkIndex whole = WholeIn(start, length);
  whole_chunks_ += whole;
  if (whole != 0 && hole->fence > newest_) newest_ = hole->fence;
  group->length[place.slot] = length;
  group->start[place.slot] = start;
  group->hole[place.slot] = hole;
  first_[place.group] = group->start[0];
  if (length > most_[place.group]) most_[place.group] = length;
}

void HoleIndex::Add(Block* hole) {
  if (count_ == 0) {
    Group* group = spare_;
    spare_ = group->next_spare;
    InsertGroup(0, group);
  }
  const int32_t start = StartOf(hole->offset);
  uint32_t at = GroupOf(start);
  if (groups_[at]->used == kSlots) {
    Split(at);
    at = GroupOf(start);
  }
  const auto slot = static_cast<uint32_t>(std::countr_zero(Greater32(groups_[at]->start, start)));
  groups_[at]->Open(slot);
  Put({at, slot}, hole);
}

void HoleIndex::RemoveAt(Place place) {
  Group* group = groups_[place.group];
  whole_chunks_ -= WholeIn(group->start[place.slot], group->length[place.slot]);
  group->Close(place.slot);
  first_[place.group] = group->start[0];
  if (group->used < kSparse) DropIfSparse(place.group);
}

void HoleIndex::DropIfSparse(uint32_t group) {
  const uint32_t used = groups_[group]->used;
  if (group + 1 < count_ && used + groups_[group + 1]->used <= kSparse) return Join(group);
  if (group > 0 && used + groups_[group - 1]->used <= kSparse) return Join(group - 1);
  if (used == 0) EraseGroup(group);
}

// The holes of the group above `low` move into it.
void HoleIndex::Join(uint32_t low) {
  Group* into = groups_[low];
  const Group* from = groups_[low + 1];
  for (uint32_t i = 0; i < from->used; ++i) into->Copy(into->used++, *from, i);
  most_[low] = std::max(most_[low], most_[low + 1]);
  first_[low] = into->start[0];
  EraseGroup(low + 1);
}

void HoleIndex::Split(uint32_t at) {
  Group* low = groups_[at];
  Group* high = spare_;
  spare_ = high->next_spare;
  for (uint32_t i = kSlots / 2; i < kSlots; ++i) high->Copy(high->used++, *low, i);
  low->Clear(kSlots / 2);
  InsertGroup(at + 1, high);
  most_[at] = low->Longest();
}

void HoleIndex::InsertGroup(uint32_t at, Group* group) {
  for (uint32_t i = count_++; i > at; --i) {
    groups_[i] = groups_[i - 1];
    first_[i] = first_[i - 1];
    most_[i] = most_[i - 1];
  }
  groups_[at] = group;
  first_[at] = group->start[0];
  most_[at] = group->Longest();
}

void HoleIndex::EraseGroup(uint32_t at) {
  Group* group = groups_[at];
  group->Clear(0);
  group->next_spare = spare_;
  spare_ = group;
  for (uint32_t i = at; i + 1 < count_; ++i) {
    groups_[i] = groups_[i + 1];
    first_[i] = first_[i + 1];
    most_[i] = most_[i + 1];
  }
  --count_;
  first_[count_] = kBeyond;
  most_[count_] = 0;
}

bool HoleIndex::Validate(size_t holes) const {
  size_t seen = 0;
  ChunkIndex whole = 0;
  const Block* last = nullptr;
  for (uint32_t i = 0; i < count_; ++i) {
    const Group& group = *groups_[i];
    if (group.used == 0 || group.used > kSlots || first_[i] != group.start[0]) return false;
    if (most_[i] < group.Longest()) return false;
    if (i > 0 && group.used + groups_[i - 1]->used <= kSparse) return false;
    for (uint32_t slot = 0; slot < group.used; ++slot, ++seen) {
      const Block* hole = group.hole[slot];
      if (last != nullptr && last->end() > hole->offset) return false;
      if (group.start[slot] != StartOf(hole->offset)) return false;
      if (group.length[slot] != LengthOf(hole->size)) return false;
      whole += WholeIn(group.start[slot], group.length[slot]);
      if (hole->WholeChunks() != 0 && hole->fence > newest_) return false;
      last = hole;
    }
    for (uint32_t slot = group.used; slot < kSlots; ++slot) {
      if (group.length[slot] != 0 || group.start[slot] != kBeyond) return false;
    }
  }
  return seen == holes && whole == whole_chunks_;
}

}  // namespace tidemark::core
