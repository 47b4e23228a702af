// The wire between a job's preloaded library and tidemarkd: fixed-width C structs over a Unix
// SOCK_SEQPACKET socket, one struct per datagram, file descriptors beside it by SCM_RIGHTS. Both
// ends run on one machine, so byte order is the machine's.
//
// Rules. Every datagram starts with tm_wire_header. `size` is the size of the whole struct; a
// receiver accepts exactly the size it knows for (version, type) and drops the connection on
// anything else. Every request is answered by one reply that carries the request's `sequence` and
// an outcome. Counts and indices are validated by the receiver before use: both peers distrust each
// other. Not here: policy and counters, which travel in two shared pages (below) without any
// message.

#ifndef TIDEMARK_PROTO_WIRE_H_
#define TIDEMARK_PROTO_WIRE_H_

#include <stdint.h>

#define TM_WIRE_MAGIC UINT32_C(0x4b524d54)  // "TMRK"
#define TM_WIRE_VERSION UINT16_C(1)

enum {
  TM_WIRE_MAX_DEVICES = 16,
  TM_WIRE_MAX_FDS = 64,        // descriptors per datagram; below the kernel's SCM_MAX_FD of 253
  TM_WIRE_MAX_CHUNKS = 1024,   // chunk ids per datagram
  TM_WIRE_NAME_BYTES = 64,     // job name, zero terminated
  TM_WIRE_REASON_BYTES = 160,  // one sentence, zero terminated
};

enum tm_wire_type {
  TM_WIRE_HELLO = 1,  // job -> daemon, first; reply WELCOME with fds {policy page, counter page}
  TM_WIRE_WELCOME = 2,
  TM_WIRE_LEASE = 3,  // job -> daemon: chunks wanted; reply LEASED with one fd per chunk
  TM_WIRE_LEASED = 4,
  TM_WIRE_RETURN = 5,      // job -> daemon: chunks given back; reply DONE
  TM_WIRE_ADOPT = 6,       // job -> daemon after reconnect: chunks it still holds; reply DONE
  TM_WIRE_SHARE = 7,       // job -> daemon: publish an IPC token with chunk fds; reply DONE
  TM_WIRE_OPEN_SHARE = 8,  // job -> daemon: chunks of an IPC token; reply LEASED
  TM_WIRE_DONE = 9,
  TM_WIRE_PING = 10,  // either way; reply DONE
};

enum tm_wire_outcome {
  TM_WIRE_OK = 0,
  TM_WIRE_NO_MEMORY = 1,    // the device, or the job's budget, has no such chunk now
  TM_WIRE_REFUSED = 2,      // policy, quota or permission; `reason` says which
  TM_WIRE_BAD_REQUEST = 3,  // a field out of range; `reason` names it
  TM_WIRE_BAD_VERSION = 4,
  TM_WIRE_NOT_FOUND = 5,  // unknown chunk or IPC token
  TM_WIRE_INTERNAL = 6,   // the daemon's own driver or disk failed; `reason` says how
};

enum tm_wire_place {
  TM_WIRE_DEVICE = 0,  // memory of device `device`
  TM_WIRE_HOST = 1,    // pinned host memory of the NUMA node nearest to `device`
};

struct tm_wire_header {
  uint32_t magic;
  uint16_t version;
  uint16_t type;      // enum tm_wire_type
  uint32_t size;      // bytes of the whole struct
  uint32_t sequence;  // chosen by the requester, repeated by the reply
};

struct tm_wire_hello {
  struct tm_wire_header header;
  uint32_t pid;  // as the job sees it; the daemon trusts the socket's credentials instead
  uint32_t device_count;
  uint8_t device_uuid[TM_WIRE_MAX_DEVICES][16];  // by the job's ordinal; all zero: unused
  uint64_t device_budget_bytes;                  // asked for by the user; 0: what policy gives
  uint64_t host_budget_bytes;                    // likewise
  uint64_t resume_job_id;  // after reconnect: the id the former daemon gave; else 0
  char job_name[TM_WIRE_NAME_BYTES];
};

struct tm_wire_welcome {
  struct tm_wire_header header;
  uint32_t outcome;  // enum tm_wire_outcome
  uint32_t device_count;
  uint64_t job_id;                            // unique over the life of the node's state directory
  uint64_t chunk_bytes;                       // bytes of one chunk
  int32_t device_index[TM_WIRE_MAX_DEVICES];  // the daemon's index of the job's ordinal i, -1: not
                                              // managed
  char reason[TM_WIRE_REASON_BYTES];
};

struct tm_wire_lease {
  struct tm_wire_header header;
  uint32_t device;    // the daemon's device index
  uint32_t place;     // enum tm_wire_place
  uint32_t count;     // chunks wanted, 1..TM_WIRE_MAX_FDS
  uint32_t at_least;  // fewer than this is NO_MEMORY and leases nothing; 1..count
};

struct tm_wire_leased {
  struct tm_wire_header header;
  uint32_t outcome;
  uint32_t count;  // chunks leased, as many fds beside; 0 unless outcome is OK
  uint64_t chunk_id[TM_WIRE_MAX_FDS];
  uint64_t bytes_short;  // with NO_MEMORY: how much the budget or device lacks
  char reason[TM_WIRE_REASON_BYTES];
};

// RETURN and ADOPT. ADOPT carries no descriptors: the new daemon only accounts for the chunks,
// whose memory the driver frees when the job lets go.
struct tm_wire_chunks {
  struct tm_wire_header header;
  uint32_t device;
  uint32_t place;
  uint32_t count;  // 1..TM_WIRE_MAX_CHUNKS
  uint32_t last;   // ADOPT: 1 when no further ADOPT follows
  uint64_t chunk_id[TM_WIRE_MAX_CHUNKS];
};

struct tm_wire_share {
  struct tm_wire_header header;
  uint32_t device;
  uint32_t count;                      // chunks, in address order, 1..TM_WIRE_MAX_FDS per datagram
  uint32_t first;                      // index of the first one within the shared range
  uint32_t total;                      // chunks of the whole range
  uint8_t token[32];                   // random, chosen by the exporter
  uint64_t offset_bytes;               // of the buffer within its first chunk
  uint64_t size_bytes;                 // of the buffer
  uint64_t chunk_id[TM_WIRE_MAX_FDS];  // OPEN_SHARE sends zeros
};

struct tm_wire_done {
  struct tm_wire_header header;
  uint32_t outcome;
  uint32_t count;  // chunks or items the daemon acted on
  char reason[TM_WIRE_REASON_BYTES];
};

// ---- Shared pages -----------------------------------------------------------------------------
// One writer each, a seqlock: the writer makes `sequence` odd, writes, makes it even; a reader
// copies between two equal even reads. The daemon writes policy, the job writes counters. A page
// whose magic or version is foreign is ignored.

#define TM_WIRE_PAGE_VERSION UINT32_C(2)

enum tm_wire_level {
  TM_WIRE_LEVEL_OFF = 0,
  TM_WIRE_LEVEL_NORMAL = 1,
  TM_WIRE_LEVEL_AGGRESSIVE = 2
};

// Bit 1 << class in tm_wire_policy_page.movable_classes: buffers of that class may leave the
// device.
enum tm_wire_class {
  TM_WIRE_CLASS_PARAMETER = 0,
  TM_WIRE_CLASS_GRADIENT = 1,
  TM_WIRE_CLASS_OPTIMIZER = 2,
  TM_WIRE_CLASS_ACTIVATION = 3,
  TM_WIRE_CLASS_WORKSPACE = 4,
  TM_WIRE_CLASS_UNKNOWN = 5,
};

struct tm_wire_policy_device {
  uint64_t budget_bytes;       // device bytes the job may hold (leased, used or not)
  uint64_t host_budget_bytes;  // pinned host bytes the job may hold for this device
};

struct tm_wire_policy_page {
  uint32_t magic;
  uint32_t version;
  uint64_t sequence;
  uint32_t level;  // enum tm_wire_level
  uint32_t max_slowdown_permille;
  uint64_t min_size_bytes;  // smaller buffers leave last
  uint64_t generation;      // grows with every change of policy
  uint64_t
      evict_request_bytes;  // total ever requested by an operator, per job; the job acts on growth
  uint64_t prefetch_request_bytes;
  uint64_t movable_classes;                                  // bits by enum tm_wire_class
  struct tm_wire_policy_device device[TM_WIRE_MAX_DEVICES];  // by the daemon's device index
};

// Bytes unless named otherwise. Gauges are instantaneous, peaks since attach, totals only grow.
struct tm_wire_counters_device {
  uint64_t requested_bytes;      // asked for by live allocations
  uint64_t allocated_bytes;      // after rounding
  uint64_t active_bytes;         // on the device: allocated + freed ones that wait for a fence
  uint64_t reserved_bytes;       // device chunks leased or created
  uint64_t host_resident_bytes;  // live data whose chunks are in host memory
  uint64_t pinned_bytes;         // chunks that may not move
  uint64_t peak_active_bytes;
  uint64_t peak_reserved_bytes;
  uint64_t peak_requested_bytes;
  uint64_t free_mapped_bytes;          // holes in mapped chunks
  uint64_t largest_free_mapped_bytes;  // largest request that needs no driver call
  uint64_t largest_free_stitchable_bytes;
  uint64_t moved_out_bytes_total;  // device to host
  uint64_t moved_in_bytes_total;   // host to device
  uint64_t evicted_chunks_total;
  uint64_t prefetched_chunks_total;
  uint64_t demand_returned_chunks_total;
  uint64_t host_mapped_accesses_total;  // launches that touched host-resident chunks in place
  uint64_t safepoints_total;
  uint64_t safepoint_ns_total;
  uint64_t stall_ns_total;  // host time the job waited for memory to move
  uint64_t allocations_total;
  uint64_t frees_total;
  uint64_t launches_total;  // launches, copies and memsets that passed the gate
  uint64_t ooms_total;      // out-of-memory results given to the job
  uint64_t hash_mismatches_total;
  uint64_t passed_through_bytes;       // device memory that the driver serves the job itself
  uint64_t host_passed_through_bytes;  // the job's own pinned host memory
};

struct tm_wire_counters_page {
  uint32_t magic;
  uint32_t version;
  uint64_t sequence;
  uint64_t daemon_round_trips_total;  // every request sent to the daemon
  uint64_t reconnects_total;
  uint64_t heartbeat_ns;                                       // CLOCK_MONOTONIC of the last update
  struct tm_wire_counters_device device[TM_WIRE_MAX_DEVICES];  // by the daemon's device index
};

#ifdef __cplusplus
static_assert(sizeof(struct tm_wire_header) == 16, "wire layout");
static_assert(sizeof(struct tm_wire_hello) == 16 + 8 + 256 + 24 + 64, "wire layout");
static_assert(sizeof(struct tm_wire_welcome) == 16 + 8 + 16 + 64 + 160, "wire layout");
static_assert(sizeof(struct tm_wire_lease) == 32, "wire layout");
static_assert(sizeof(struct tm_wire_leased) == 16 + 8 + 512 + 8 + 160, "wire layout");
static_assert(sizeof(struct tm_wire_chunks) == 32 + 8192, "wire layout");
static_assert(sizeof(struct tm_wire_share) == 32 + 32 + 16 + 512, "wire layout");
static_assert(sizeof(struct tm_wire_done) == 24 + 160, "wire layout");
#endif

#endif  // TIDEMARK_PROTO_WIRE_H_
