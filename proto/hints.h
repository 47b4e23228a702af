// The seam between libtidemark (client/lib) and the preloaded library inside one process: a table
// of functions, found by its symbol. A version is never changed after a release; a later version is
// another symbol beside this one, so either side may be the newer one.
//
// Every function returns an enum tm_hints_outcome. Addresses are device addresses. Figures are
// written through the caller's structs, whose layout is the version's. Needs stdint.h alone.
// Threads: the functions may be called from any thread.

#ifndef TIDEMARK_PROTO_HINTS_H_
#define TIDEMARK_PROTO_HINTS_H_

#include <stdint.h>

#define TM_HINTS_SYMBOL "tidemark_hooks_v1"

enum tm_hints_outcome {
  TM_HINTS_DONE = 0,
  TM_HINTS_KEPT = 1,          // accepted and kept; nothing acts on it yet
  TM_HINTS_INACTIVE = 2,      // switched off, or the job made no CUDA call yet
  TM_HINTS_NOT_MANAGED = 3,   // no live buffer of Tidemark's at this address
  TM_HINTS_BAD_ARGUMENT = 4,  // out of range
  TM_HINTS_IN_PART = 5,       // as far as memory, or a capture in progress, allowed
};

struct tm_hints_device {
  uint32_t device;    // the job's ordinal
  uint32_t attached;  // 1: under tidemarkd, 0: standalone
  uint64_t budget_bytes;
  uint64_t requested_bytes;
  uint64_t allocated_bytes;
  uint64_t reserved_bytes;
  uint64_t host_resident_bytes;
  uint64_t pinned_bytes;
  uint64_t peak_reserved_bytes;
  uint64_t moved_out_bytes;
  uint64_t moved_in_bytes;
  uint64_t stall_ns;
  uint64_t launches;
  uint64_t steps;  // marks of this process
};

struct tm_hints_buffer {
  uint64_t address;
  uint64_t bytes;
  uint64_t id;          // of the allocation; never used again in this process
  uint64_t host_bytes;  // of its chunks, how much is in host memory
  uint64_t last_use;    // number of the launch that used it last; 0: none, or done with
  uint32_t device;
  uint32_t buffer_class;  // as registered; 5, unknown, without
  uint32_t pinned;        // 1: some of its chunks do not move
  uint32_t zero;
};

struct tm_hooks_v1 {
  uint32_t size;  // of this struct
  uint32_t zero;
  int (*step)(void);
  int (*phase)(uint32_t phase);  // 0 other, 1 forward, 2 backward, 3 optimizer
  int (*register_buffer)(uint64_t address, uint64_t bytes, uint32_t buffer_class);
  int (*will_use)(uint64_t address, uint64_t bytes);
  int (*done_with)(uint64_t address, uint64_t bytes);
  int (*pin)(uint64_t address, uint64_t bytes);
  int (*unpin)(uint64_t address, uint64_t bytes);
  // Write at most `room` entries and say in *count how many there are.
  int (*devices)(struct tm_hints_device* out, uint64_t room, uint64_t* count);
  int (*buffers)(struct tm_hints_buffer* out, uint64_t room, uint64_t* count);
};

#endif  // TIDEMARK_PROTO_HINTS_H_
