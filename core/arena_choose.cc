// Where a request goes when chunks are short: the part of core/arena_allocator.h and core/arena.h
// that looks at all places, mapped or not, and takes the one that does the least harm. Harm is, in
// this order of weight: whole free chunks that are used up, for a chunk used in part is lost to
// others; chunks to be moved there, by the logarithm, for a place that fits well is worth many of
// them once and then stays; and what stays free beside it up to the next live neighbours, by the
// logarithm, for a narrow rest is seldom of use and a wide one is needed whole. A fifth of a chunk
// for each doubling did best of 0.05 to 0.4 on the traces of tests/bench/allocator.
//
// What stays free beside it is known from the length of a run alone, so most runs are left out
// without a look. It moves more chunks than the lowest mapped hole does; a place that must wait for
// a fence counts a little worse. So it is for large requests of an arena that moves chunks anyway,
// while more than the slack is lost in chunks used in part. Threads: as the headers say.

#include <algorithm>
#include <bit>

#include "core/arena.h"

namespace tidemark::core {
namespace {

// In chunks used in part may be lost one part in so many of the demand, or the slack. With 256 more
// requests are looked at and more chunks move, for one twentieth less that is lost.
constexpr Bytes kMayBeLost = 160;
constexpr uint64_t kPerDoubling = 16;
constexpr uint64_t kPerChunk = 5 * kPerDoubling;
constexpr uint64_t kPerWait = kPerDoubling;

// kPerDoubling times the binary logarithm, rounded down; straight between powers of two.
uint64_t Logarithm(uint64_t value) {
  const int power = std::bit_width(value) - 1;
  const uint64_t above = value - (uint64_t{1} << power);
  return static_cast<uint64_t>(power) * kPerDoubling + (above * kPerDoubling >> power);
}

// `alignment` is a power of two, which saves the divisions.
Bytes AlignDown(Bytes offset, Bytes alignment) { return offset & ~(alignment - 1); }
Bytes AlignUp(Bytes offset, Bytes alignment) {
  return AlignDown(offset + alignment - 1, alignment);
}

// The greatest value with a logarithm of at most so much.
uint64_t LargestOf(uint64_t logarithm) {
  const uint64_t power = logarithm / kPerDoubling;
  const uint64_t next = (logarithm % kPerDoubling + 1) << power;
  return (uint64_t{1} << power) + (next + kPerDoubling - 1) / kPerDoubling - 1;
}

}  // namespace

// ---- The allocator's side: where.

// Of all places that need no more than `chunks` wholly free ones, the one that does the least harm.
class ArenaAllocator::PlaceSearch {
 public:
  PlaceSearch(ArenaAllocator& allocator, const Request& request, ChunkIndex chunks)
      : a_(allocator), stream_(request.stream), chunks_(chunks) {
    size_ = RoundUp(request.bytes, kBlockBytes);
    alignment_ = a_.AlignmentFor(size_, request.bytes);
    least_touched_ = static_cast<ChunkIndex>(RoundUp(size_, kChunkBytes) / kChunkBytes);
  }

  // kNowhere: there is none.
  Bytes Find() {
    HoleIndex::Search search(&a_.holes_, size_);
    while (const Block* hole = search.Next()) {
      if (FitsExactly(hole)) return hole->offset;
      if (!MayBeIn(hole->offset, hole->end())) continue;
      // Beside an unmapped block it is part of a run that is looked at anyway.
      if (IsFreeForAll(hole->previous) || IsFreeForAll(hole->next)) continue;
      LookAtHole(hole);
      search.Narrow(size_ + spare_);
    }
    for (const FreeRuns::Run& run : a_.runs_.All()) {
      if (MayBeIn(run.offset(), run.offset() + run.size())) LookAt(run);
    }
    return found_;
  }

 private:
  // Nothing does less harm.
  bool FitsExactly(const Block* hole) const {
    return hole->size == size_ && hole->offset % alignment_ == 0 &&
           !a_.InKept(hole->offset, size_) && !a_.Waits(hole, stream_);
  }

  // Whether a place in this run may do no more harm than the one found.
  bool MayBeIn(Bytes begin, Bytes end) const {
    const Bytes size = end - begin;
    if (size - size_ > spare_) return false;
    const ChunkIndex used = (alignment_ != kChunkBytes && begin % kChunkBytes != 0 ? 1 : 0) +
                            (end % kChunkBytes != 0 ? 1 : 0);
    // It touches all chunks of the run, or it shares one at most.
    const bool has_more = LastChunkOf(begin, size) - ChunkOf(begin) >= least_touched_;
    return size <= longest_[has_more ? std::min<ChunkIndex>(used, 1) : used];
  }

  // A place takes the chunks that it touches, but for those that it shares. With so many shared, no
  // longer run than that has one that does as little harm as the one found.
  void NoteLongest(uint64_t harm) {
    for (ChunkIndex shared = 0; shared <= kMostShared; ++shared) {
      const uint64_t taken = (least_touched_ - std::min(least_touched_, shared)) * kPerChunk;
      const uint64_t rest = harm - std::min(harm, taken);
      const Bytes free = LargestOf(rest) * kBlockBytes;
      longest_[shared] = free < kChunkBytes ? 0 : size_ + free - kChunkBytes;
    }
    // Only a run that is no longer than the chunks that a place touches can share two of them.
    const Bytes longest =
        std::max(longest_[1], std::min(longest_[2], least_touched_ * kChunkBytes));
    spare_ = longest - std::min(longest, size_);
  }

  // Candidates begin where the hole begins, or end where it ends; the end of all addresses is no
  // neighbour to lie close to.
  void LookAtHole(const Block* hole) {
    Enter(hole->offset, hole->end());
    const uint64_t harm = rest_ + (a_.Waits(hole, stream_) ? kPerWait : 0);
    const Bytes lowest = AlignUp(begin_, alignment_);
    const Bytes highest = AlignDown(end_ - size_, alignment_);
    if (highest < lowest) return;
    Offer(lowest, TakenAt(lowest), harm);
    if (hole->next != nullptr) Offer(highest, TakenAt(highest), harm);
  }

  // The same for each block of the run.
  void LookAt(const FreeRuns::Run& run) {
    Enter(run.offset(), run.offset() + run.size());
    for (const Block* b = run.first(); IsFreeForAll(b); b = b->next) {
      Consider(b, AlignUp(b->offset, alignment_));
      if (b->next == nullptr || b->end() < begin_ + size_) continue;
      const Bytes offset = AlignDown(b->end() - size_, alignment_);
      if (offset < begin_) continue;
      const Block* block = b;
      while (block->offset > offset) block = block->previous;
      Consider(block, offset);
    }
  }

  // Whoever is next to a run has bytes of the chunk in which it begins, or ends. The chunks between
  // are wholly free.
  void Enter(Bytes begin, Bytes end) {
    begin_ = begin;
    end_ = end;
    used_low_ = begin % kChunkBytes != 0 ? ChunkOf(begin) : kNoChunk;
    used_high_ = end % kChunkBytes != 0 ? ChunkOf(end) : kNoChunk;
    rest_ = Logarithm((end - begin - size_ + kChunkBytes) / kBlockBytes);
  }

  // `block` begins at or below `offset`, in the run.
  void Consider(const Block* block, Bytes offset) {
    if (offset < begin_ || offset + size_ > end_) return;
    const ChunkIndex taken = TakenAt(offset);
    const uint64_t harm = rest_ + taken * kPerChunk;
    if (harm < harm_ || (harm == harm_ && offset < found_)) {
      Offer(offset, taken, rest_ + CostAt(block, offset));
    }
  }

  ChunkIndex TakenAt(Bytes offset) const {
    const ChunkIndex first = ChunkOf(offset);
    const ChunkIndex last = LastChunkOf(offset, size_);
    ChunkIndex taken = last - first + 1;
    if (first == used_low_ || first == used_high_) --taken;
    if (first != last && (last == used_low_ || last == used_high_)) --taken;
    return taken;
  }

  void Offer(Bytes offset, ChunkIndex taken, uint64_t other_harm) {
    const uint64_t harm = taken * kPerChunk + other_harm;
    if (harm > harm_ || (harm == harm_ && offset >= found_)) return;
    if (taken > chunks_ || a_.InKept(offset, size_)) return;
    if (harm != harm_) NoteLongest(harm);
    harm_ = harm;
    found_ = offset;
  }

  // Of what has to be mapped there, and waited for.
  uint64_t CostAt(const Block* block, Bytes offset) const {
    const Bytes end = offset + size_;
    ChunkIndex missing = 0;
    bool waits = false;
    for (const Block* b = block; b != nullptr && b->offset < end; b = b->next) {
      if (b->end() <= offset) continue;
      waits = waits || (b->mapped && a_.Waits(b, stream_));
      if (b->mapped) continue;
      const Bytes from = std::max(b->offset, offset);
      missing += LastChunkOf(from, std::min(b->end(), end) - from) - ChunkOf(from) + 1;
    }
    return Logarithm(missing + 1) + (waits ? kPerWait : 0);
  }

  static constexpr ChunkIndex kNoChunk = ~ChunkIndex{0};
  static constexpr ChunkIndex kMostShared = 2;  // those at both ends

  ArenaAllocator& a_;
  StreamId stream_;
  ChunkIndex chunks_;
  Bytes size_ = 0;
  Bytes alignment_ = 0;
  ChunkIndex least_touched_ = 0;
  Bytes spare_ = ~Bytes{0} >> 1;  // no run that is longer than `size_` by more is looked at
  Bytes begin_ = 0;               // of the run
  Bytes end_ = 0;
  ChunkIndex used_low_ = kNoChunk;   // its first chunk, where somebody has bytes of that
  ChunkIndex used_high_ = kNoChunk;  // its last one
  uint64_t rest_ = 0;                // the harm of what stays free there
  uint64_t harm_ = ~uint64_t{0};
  Bytes longest_[kMostShared + 1] = {kNowhere, kNowhere, kNowhere};
  Bytes found_ = kNowhere;
};

Bytes ArenaAllocator::LostInParts() const {
  const ChunkIndex used = table_->device_chunks() - holes_.whole_chunks();
  Bytes lost = Bytes{used} * kChunkBytes - allocated_;
  for (int i = 0; i < parked_count_; ++i) lost -= parked_[i]->size;
  return lost;
}

// Nowhere while chunks are free behind fences, which cannot be moved yet: to go elsewhere again and
// again meanwhile takes chunks without end.
Bytes ArenaAllocator::ChoosePlace(const Request& request, ChunkIndex fresh) {
  if (request.passed > passed_) passed_ = request.passed;
  if (request.bytes > Bytes{table_->size()} * kChunkBytes) return kNowhere;
  if (ChunksWait()) return kNowhere;
  FoldParked();
  if (ChunksWait()) return kNowhere;
  PlaceSearch places(*this, request, holes_.whole_chunks() + fresh);
  return places.Find();
}

// ---- The arena's side: when.

// Null: as otherwise, then. Beside a plan few requests come here; and where live chunks have to
// leave, that the same ones come and go matters more than how close buffers lie. Nor while chunks
// are free behind fences, which cannot be moved yet: to go elsewhere again and again meanwhile
// takes chunks without end.
Block* Arena::PlaceChosen(const Request& request) {
  const bool planned = plan_.following() && !plan_.as_is();
  if (held_ || planned || Evicts()) return nullptr;
  const Bytes demand = DemandWith(request.bytes);
  const Bytes slack = Bytes{SlotsFor(demand)} * kChunkBytes - demand;
  if (allocator_.LostInParts() <= std::max(slack, demand / kMayBeLost)) return nullptr;
  const Bytes place = allocator_.ChoosePlace(request, FreshFor(request.bytes));
  if (place == ArenaAllocator::kNowhere) return nullptr;
  Block* block = PlaceAt(request, place);
  if (block != nullptr) ++counters_.chosen;
  return block;
}

}  // namespace tidemark::core
