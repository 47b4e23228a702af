// The holes of one arena in address order: the lowest one that is long enough, and the one at an
// address, in a few instructions. Starts and lengths lie in arrays of 32, in units of 512 B, so
// that one look at two lines of cache compares them all; a training step has tens of holes, and
// thousands cost a scan of one number for every 8 to 32 of them.
//
// Not here: what a hole is, and merging (arena_allocator.h). Threads: none of its own.

#ifndef TIDEMARK_CORE_HOLE_INDEX_H_
#define TIDEMARK_CORE_HOLE_INDEX_H_

#include <cstdint>

#include "core/array.h"
#include "core/block.h"

namespace tidemark::core {

class HoleIndex {
 public:
  // Where a hole stands in the order. Valid until holes are added or removed.
  struct Place {
    uint32_t group = 0;
    uint32_t slot = 0;
  };
  static constexpr Bytes kMostBytes = kBlockBytes << 32;  // of the arena: starts fit in 32 bits

  HoleIndex() = default;
  ~HoleIndex();
  HoleIndex(const HoleIndex&) = delete;
  HoleIndex& operator=(const HoleIndex&) = delete;

  // Room for so many holes, however they come and go. False: out of memory, nothing changed.
  bool Reserve(size_t holes) { return holes <= room_ || Grow(holes); }

  size_t room() const { return room_; }

  // Needs room for it.
  void Add(Block* hole);
  void Remove(const Block* hole) { RemoveAt(Locate(hole->offset)); }

  // Goes through the holes of at least `least` bytes, from the lowest address up.
  class Search {
   public:
    Search(HoleIndex* index, Bytes least) : index_(index), below_(LengthOf(least) - 1) {}
    // Leaves out those of more than `most` bytes from now on.
    void Narrow(Bytes most) { most_ = LengthOf(most); }
    // The next one; null: there is none.
    Block* Next();
    Place place() const { return place_; }

   private:
    bool FindGroup();

    HoleIndex* index_;
    int32_t below_;
    int32_t most_ = INT32_MAX;
    uint32_t fan_ = 0;     // the first group not compared yet; kFan are at once
    uint32_t groups_ = 0;  // of those compared last, the ones still to be looked into
    uint32_t fit_ = 0;     // slots of the group in hand that are still to come
    Place place_;
  };
  // The same from the highest one down, of those that start below `end`.
  class SearchDown {
   public:
    SearchDown(const HoleIndex* index, Bytes least, Bytes end);
    const Block* Next();

   private:
    const HoleIndex* index_;
    int32_t below_;
    uint32_t group_ = 0;
    uint32_t fit_ = 0;  // slots of the group that are still to come
  };

  // Chunks that lie wholly inside a hole.
  ChunkIndex whole_chunks() const { return whole_chunks_; }
  // Whether a hole with such a chunk is behind a fence that has not passed. Costs a look at those
  // holes only while there may be one.
  bool WholeChunksWait(FenceId passed) {
    return newest_ > passed && whole_chunks_ != 0 && FindsWaiting(passed);
  }

  // The place of the hole that starts at `offset`; there is one.
  Place Locate(Bytes offset) const;
  Place After(Place place) const;
  void RemoveAt(Place place);
  // The hole at `place` is `hole` now: other bytes, between the same two neighbours.
  void Replace(Place place, Block* hole);

  // In order, each entry as its block says, no maximum too small. `holes`: how many there are.
  bool Validate(size_t holes) const;

 private:
  static constexpr uint32_t kSlots = 32;
  static constexpr uint32_t kSparse = 16;  // two neighbours with so few holes together become one
  static constexpr uint32_t kFan = 16;     // the arrays over all groups come in so many
  static constexpr int32_t kBeyond = INT32_MAX;
  struct Group;

  // Starts as signed numbers in the same order.
  static int32_t StartOf(Bytes offset) {
    return static_cast<int32_t>(static_cast<uint32_t>(offset / kBlockBytes) ^ UINT32_C(1) << 31);
  }
  static int32_t LengthOf(Bytes size) {
    const Bytes units = size / kBlockBytes;
    return units < INT32_MAX ? static_cast<int32_t>(units) : INT32_MAX;
  }
  // Chunks that lie wholly inside the hole of these numbers.
  static ChunkIndex WholeIn(int32_t start, int32_t length) {
    constexpr uint64_t kUnits = kChunkBytes / kBlockBytes;
    const uint64_t from = static_cast<uint32_t>(start) ^ UINT32_C(1) << 31;
    const uint64_t first = (from + kUnits - 1) / kUnits;
    const uint64_t end = (from + static_cast<uint32_t>(length)) / kUnits;
    return end > first ? static_cast<ChunkIndex>(end - first) : 0;
  }
  bool FindsWaiting(FenceId passed);
  bool Grow(size_t holes);
  uint32_t GroupOf(int32_t start) const;
  void Put(Place place, Block* hole);
  void Split(uint32_t group);
  void DropIfSparse(uint32_t group);
  void Join(uint32_t low);
  void InsertGroup(uint32_t at, Group* group);
  void EraseGroup(uint32_t at);

  // By group in address order, with entries beyond the last up to a multiple of kFan.
  Array<Group*> groups_;
  Array<int32_t> first_;  // its lowest start
  Array<int32_t> most_;   // no hole of it is longer
  uint32_t count_ = 0;    // groups in use
  ChunkIndex whole_chunks_ = 0;
  FenceId newest_ = 0;  // no hole with a whole chunk has a later fence
  Array<Group*> made_;
  Group* spare_ = nullptr;
  size_t room_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_HOLE_INDEX_H_
