// What the driver holds for the job outside the arena: how many bytes each passed-through
// allocation has and on which device, so that its end can be counted as its beginning was. Not an
// owner: it knows sizes only.
//
// Threads: any. One lock, never held over a call to anything else.

#ifndef TIDEMARK_INTERPOSE_OUTSIDE_H_
#define TIDEMARK_INTERPOSE_OUTSIDE_H_

#include <stdint.h>

namespace tidemark::interpose {

// The name spaces of driver handles; equal values of two kinds are different allocations.
// kVmmMemory is what handles and mappings refer to, under a number of our own: it lives until the
// last of either is gone, while a handle's value may come back as another allocation.
enum class OutsideKind : uint32_t { kAddress, kVmmHandle, kArray, kVmmMemory, kVmmMapping, kHost };

struct OutsideAllocation {
  uint64_t bytes = 0;
  int device = -1;
  uint64_t memory = 0;  // handles and mappings: name of the kVmmMemory; 0: another process's memory
};

// Remembers an allocation with one reference. Forgotten silently when there is no memory for it:
// the count then stays on the high side.
void RememberOutside(OutsideKind kind, uint64_t name, OutsideAllocation allocation);

// One more reference to an allocation that is remembered; nothing when it is not.
void RetainOutside(OutsideKind kind, uint64_t name);

// What is remembered of an allocation; false: nothing.
bool LookOutside(OutsideKind kind, uint64_t name, OutsideAllocation* allocation);

// Drops one reference. Returns true, and what was remembered, when that was the last.
bool ForgetOutside(OutsideKind kind, uint64_t name, OutsideAllocation* allocation);

// Starts over, in a forked child: the parent's allocations are not the child's.
void ForgetAllOutside();

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_OUTSIDE_H_
