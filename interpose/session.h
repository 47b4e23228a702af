// The job's end of proto/wire.h: attach, lease, return, adopt, share, and the two shared pages.
// Every call has a deadline. Any error closes the socket and the job goes on alone; attaching again
// is tried only from here, when something is needed, with back-off, and hands the new daemon every
// chunk held.
//
// Not here: what chunks are for (chunk_supply.h). Threads: any; one lock, a leaf below the devices'
// locks.

#ifndef TIDEMARK_INTERPOSE_SESSION_H_
#define TIDEMARK_INTERPOSE_SESSION_H_

#include <stdint.h>

#include "interpose/futex.h"
#include "proto/wire.h"

namespace tidemark::interpose {

enum class Place : uint32_t { kDevice = TM_WIRE_DEVICE, kHost = TM_WIRE_HOST };

// What the user and the machine say; filled before Attach.
struct JobDescription {
  uint32_t device_count = 0;
  uint8_t device_uuid[TM_WIRE_MAX_DEVICES][16] = {};
  uint64_t device_budget_bytes = 0;
  uint64_t host_budget_bytes = 0;
  char job_name[TM_WIRE_NAME_BYTES] = {};
};

enum class Answer {
  kOk,
  kNoMemory,  // the daemon has none for us
  kRefused,   // told why once
  kAlone,     // no daemon, or it went away during the call
};

// Ids of chunks that one (device, place) holds; grows, swap-removes.
class IdList {
 public:
  IdList() = default;
  ~IdList();
  IdList(const IdList&) = delete;
  IdList& operator=(const IdList&) = delete;
  bool Add(uint64_t id);
  bool Remove(uint64_t id);
  uint32_t size() const { return size_; }
  uint64_t at(uint32_t i) const { return ids_[i]; }

 private:
  uint64_t* ids_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
};

class Session {
 public:
  // Remembers `socket_path` (empty: never attach) and tries once. False: nobody serves there yet.
  bool Attach(const char* socket_path, const JobDescription& job);
  // Attached now, after a try to attach again where its time has come.
  bool Ready();
  // Notices that the daemon went away, and attaches again where its time has come. Cheap otherwise.
  void Check();
  bool attached() const { return socket_ >= 0; }
  bool has_been_attached() const { return job_id_ != 0; }
  // There is a socket to look for a daemon at.
  bool wanted() const { return path_[0] != 0; }

  // Leases 1 to `count` (at most TM_WIRE_MAX_FDS) chunks; the fds are the caller's.
  Answer Lease(uint32_t device, Place place, uint32_t count, int* fds, uint64_t* ids,
               uint32_t* got);
  // The memory behind `ids` was let go; tells the daemon, if there is one.
  void Return(uint32_t device, Place place, const uint64_t* ids, uint32_t count);
  // A chunk the job created itself: an id for it that a daemon will adopt. 0: no memory.
  uint64_t AddOwn(uint32_t device, Place place);

  Answer Share(const tm_wire_share& share);
  Answer OpenShare(const uint8_t token[32], uint32_t first, int* fds, uint32_t* got);

  // The policy page as last seen consistent. False: there never was one.
  bool ReadPolicy(tm_wire_policy_page* page) const;
  // One load; changes when the page does, or becomes another one.
  uint64_t PolicySequence() const;
  // The daemon's number of the job's device, or -1.
  int DeviceIndex(uint32_t device) const { return device_index_[device]; }
  tm_wire_counters_page* counters() const { return counters_; }
  uint64_t round_trips() const { return round_trips_; }
  uint64_t reconnects() const { return reconnects_; }

  // In a forked child: lets go of everything that is the parent's, without a word to the daemon.
  void Abandon();

 private:
  struct Reply;
  bool Connect();
  bool Believed();
  bool Hello();
  bool AdoptAll();
  bool AdoptList(uint32_t device, Place place);
  bool Call(void* request, uint32_t size, uint16_t type, Reply* reply);
  bool Receive(uint32_t sequence, int64_t deadline_ns, Reply* reply);
  void Close();
  void MapPages(int policy_fd, int counters_fd);

  Mutex mutex_;
  JobDescription job_;
  char path_[108] = {};
  int socket_ = -1;
  uint32_t sequence_ = 0;
  uint64_t job_id_ = 0;
  uint64_t next_own_ = 0;
  int64_t retry_at_ns_ = 0;
  int64_t retry_pause_ns_ = 0;
  uint64_t round_trips_ = 0;
  uint64_t reconnects_ = 0;
  int32_t device_index_[TM_WIRE_MAX_DEVICES] = {};
  const tm_wire_policy_page* policy_ = nullptr;
  tm_wire_counters_page* counters_ = nullptr;
  IdList held_[TM_WIRE_MAX_DEVICES][2];
  bool told_ = false;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_SESSION_H_
