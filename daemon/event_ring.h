// The latest events, kept in memory with growing ids, for `tidemark events` and its followers.
//
// Threads: thread-safe; its lock is a leaf (nothing is called with it held).

#ifndef TIDEMARK_DAEMON_EVENT_RING_H_
#define TIDEMARK_DAEMON_EVENT_RING_H_

#include <condition_variable>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "daemon/mutex.h"
#include "daemon/node.h"

namespace tidemark::daemon {

class EventRing {
 public:
  explicit EventRing(size_t capacity) : capacity_(capacity) {}

  void Add(absl::Time time, std::string kind, uint64_t job_id, std::string sentence);
  std::vector<Event> After(uint64_t id) const;
  void WaitAfter(uint64_t id, absl::Duration timeout) const;

 private:
  const size_t capacity_;
  mutable Mutex mutex_;
  mutable std::condition_variable_any arrived_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_EVENT_RING_H_
