// libtidemark: what a job may tell Tidemark, and ask of it. None of it is needed: a job that calls
// nothing runs the same, only Tidemark knows less. Link with -ltidemark; the program also runs
// where Tidemark is not loaded, and every call then says TM_NOT_UNDER_TIDEMARK and does nothing.
//
// Rules. No call ever fails the job: whatever a call returns, the job's memory is as valid as
// before and every pointer reads and writes the same bytes. A call that names a part of a buffer
// speaks of the whole buffer; a range may reach over several buffers. Pointers are device pointers
// of the calling process (cudaMalloc, cuMemAlloc, cudaMallocAsync). All functions may be called
// from any thread; none keeps a pointer of the caller.
//
// ABI. C, stable within one soname. Structs end in zeroed words that later versions may use.

#ifndef TIDEMARK_TIDEMARK_H_
#define TIDEMARK_TIDEMARK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TM_VERSION_MAJOR 1
#define TM_VERSION_MINOR 0

enum tm_status {
  TM_OK = 0,                  // done, with the effect that stands at the function
  TM_NOT_USED_YET = 1,        // accepted; this version of Tidemark places no memory by it
  TM_NOT_UNDER_TIDEMARK = 2,  // this process does not run under Tidemark; nothing was done
  TM_INACTIVE = 3,  // loaded, but switched off, or the job made no CUDA call yet; nothing was done
  TM_NOT_MANAGED = 4,   // no live buffer of Tidemark's at this address; nothing was done
  TM_BAD_ARGUMENT = 5,  // a value out of range; nothing was done
  TM_IN_PART = 6,       // done as far as the budget, or a capture in progress, allowed
  TM_TOO_OLD = 7        // the loaded Tidemark does not know this call; nothing was done
};

enum tm_class {
  TM_PARAMETER = 0,
  TM_GRADIENT = 1,
  TM_OPTIMIZER = 2,
  TM_ACTIVATION = 3,
  TM_WORKSPACE = 4,
  TM_UNKNOWN = 5
};

enum tm_phase { TM_OTHER = 0, TM_FORWARD = 1, TM_BACKWARD = 2, TM_OPTIMIZER_STEP = 3 };

// The version of this library, major << 16 | minor; compare with the TM_VERSION_* compiled against.
uint32_t tm_version(void);
// One short sentence, never null; the string is the library's.
const char* tm_status_text(int status);
// TM_OK when this process's device memory is managed now.
int tm_active(void);

// ---- Marks. Counted, and shown in the snapshot; placement does not look at them yet
// (TM_NOT_USED_YET).
int tm_mark_step(void);        // a training iteration begins
int tm_mark_phase(int phase);  // a part of it begins, enum tm_phase

// ---- Buffers.
// What the buffer is for, an enum tm_class; until it is freed. Buffers of a class that the policy's
// movable_classes lacks leave the device only where nothing else can.
int tm_register(const void* buffer, size_t bytes, int buffer_class);
// Work that uses it comes soon: what is on the host of it comes back to the device before this call
// returns, least recently used memory making room, as it would at the launch that uses it.
// TM_OK: all of it is on the device. The call waits for the device if something has to move.
int tm_will_use(const void* buffer, size_t bytes);
// It is not needed for a while: it leaves before memory that was used, should memory be short.
int tm_done_with(const void* buffer, size_t bytes);
// As tm_will_use; then it stays on the device until as many tm_unpin, or until it is freed. Counts
// against the budget, so a job can run itself out of memory with it. TM_IN_PART: it could not all
// be brought to the device, and nothing is pinned. Neighbours in the same chunk (2 MiB) stay too.
int tm_pin(const void* buffer, size_t bytes);
int tm_unpin(const void* buffer, size_t bytes);  // TM_BAD_ARGUMENT when it is not pinned

// ---- Snapshot: this process's memory, as data.
typedef struct tm_device_memory {
  uint32_t device;               // CUDA ordinal
  uint32_t under_daemon;         // 1: leases from tidemarkd, 0: standalone
  uint64_t budget_bytes;         // device memory that this process may hold
  uint64_t requested_bytes;      // by live allocations
  uint64_t allocated_bytes;      // the same after rounding
  uint64_t reserved_bytes;       // device memory held
  uint64_t host_resident_bytes;  // in host memory
  uint64_t pinned_bytes;         // may not move
  uint64_t peak_reserved_bytes;
  uint64_t moved_out_bytes;  // device to host, so far
  uint64_t moved_in_bytes;   // host to device, so far
  uint64_t stall_ns;         // host time spent waiting for memory to move, so far
  uint64_t launches;         // launches, copies and memsets so far
  uint64_t steps;            // tm_mark_step calls so far
  uint64_t zero[8];
} tm_device_memory;

typedef struct tm_buffer_memory {
  const void* address;
  uint64_t bytes;       // as requested
  uint64_t id;          // of the allocation; never used again in this process
  uint64_t host_bytes;  // bytes of its chunks that are in host memory
  uint64_t last_use;    // number of the launch that used it last; 0: none, or tm_done_with
  uint32_t device;
  uint32_t buffer_class;  // enum tm_class
  uint32_t pinned;        // 1: some of its chunks may not move, for whatever reason
  uint32_t zero32;
  uint64_t zero[4];
} tm_buffer_memory;

// Both write at most `room` entries to `out` (which may be null when room is 0) and the number
// there are to *count, in order of device and address. Each device is looked at in one moment.
int tm_snapshot_devices(tm_device_memory* out, size_t room, size_t* count);
int tm_snapshot_buffers(tm_buffer_memory* out, size_t room, size_t* count);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TIDEMARK_TIDEMARK_H_
